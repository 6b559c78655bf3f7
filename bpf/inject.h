/*
 * The one state of a schedule that is being injected: what the kernel programs (inject.bpf.c, network.bpf.c) and the
 * injector in userspace share through mmapable arrays, and the few steps that advance it. Both sides run the very
 * same steps with the same atomics, so that nothing fires early, out of order or twice, whoever comes first.
 *
 * C that C++ also compiles; include <linux/types.h> or the like before (for __u64).
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_INJECT_H
#define ROSE_INJECT_H

enum {
	ROSE_MAX_CHAINS = 2048,		/* faults, and the `until` of partitions */
	ROSE_MAX_CONDITIONS = 8192,
	ROSE_MAX_EDGES = 16384,		/* "`after` names it" */
	ROSE_MAX_NODES = 256,
	ROSE_MAX_SITES = 65536,		/* probed addresses */
	ROSE_MAX_LIST = 4096,		/* conditions that one call or one function entry may count for */
	ROSE_MAX_PENDING = 64,		/* of them, in one element of rose_pending */
	ROSE_MAX_CALLS = 8192,		/* conditions and faults that one call may be matched against */
	ROSE_SYSCALLS = 512,
	ROSE_GLOB_BYTES = 252,
	ROSE_FIRING_BYTES = 496,
	ROSE_MAX_RULES = 2046,		/* partitions and bad links */
	ROSE_MAX_WAYS = 16,
	ROSE_PAYLOAD_BYTES = 64,
	ROSE_NODE_WORDS = ROSE_MAX_NODES / 64,
	ROSE_MAX_ROLES = 64,
	ROSE_MAX_THROWS = 16,		/* at one place */
	ROSE_ROLE_NODES = 0x10000,	/* from here on a node is "whoever has role n - ROSE_ROLE_NODES" */
	ROSE_CHAIN_NODES = 0x20000,	/* ... and "which chain n - ROSE_CHAIN_NODES is bound to" */
	ROSE_ANY_NODE = 0xffffffff,
	ROSE_MAX_CHAIN_CONDITIONS = 4000,
	ROSE_STACK_WORDS = 4096,	/* of a thread's stack, from its stack pointer on */
	ROSE_STACK_MAPS = 40,		/* code that the words may be addresses of */
	ROSE_STACK_PATH = 512,
	ROSE_STACK_RANGES = 64,
	ROSE_STACKS_EACH = 4,		/* a fault's first firings */
	ROSE_MAX_STACKS = 256,
	ROSE_MAX_FULL_DISKS = 4096,
};

enum rose_chain_kind {
	ROSE_CHAIN_SYSCALL = 1,		/* once its conditions are met it waits for calls */
	ROSE_CHAIN_CRASH = 2,
	ROSE_CHAIN_PAUSE = 3,
	ROSE_CHAIN_PARTITION = 4,
	ROSE_CHAIN_END = 5,		/* `until`: ends the fault `target` */
	ROSE_CHAIN_NETWORK = 6,
	ROSE_CHAIN_CLOCK = 7,
	ROSE_CHAIN_EXCEPTION = 8,	/* once its conditions are met it waits for threads at its place */
	ROSE_CHAIN_MARK = 9,		/* an event or a step of the workload: does nothing but open what comes after it */
	ROSE_CHAIN_RESOURCE = 10,	/* descriptors, memory, processor time, room on a disk: user space limits them */
	ROSE_CHAIN_BLOCK = 11,		/* once its conditions are met it waits for the thread that it holds */
};

/* The kernel writes when it ends: at once in force, and over at its exact time. */
#define ROSE_LASTS(kind)                                                                                             \
	((kind) == ROSE_CHAIN_PARTITION || (kind) == ROSE_CHAIN_NETWORK || (kind) == ROSE_CHAIN_CLOCK ||             \
	 (kind) == ROSE_CHAIN_RESOURCE || (kind) == ROSE_CHAIN_BLOCK)

enum rose_chain_state {
	ROSE_WAITING = 0,
	ROSE_ARMED = 1,			/* conditions met; the next step is a matching call's */
	ROSE_FIRING = 2,		/* claimed; the stamps below are being written */
	ROSE_FIRED = 3,
	ROSE_WITHDRAWN = 4,
};

enum rose_chain_flags {
	ROSE_WAITS_FOR_CALL = 1,	/* syscall faults, and `before` of crash and pause */
	ROSE_MAIN_ONLY = 2,		/* scope = "main" */
	ROSE_AT_WORKLOAD = 4,		/* no conditions, no `after`: the workload's beginning opens it */
	ROSE_MAIN_SPARED = 8,		/* scope = "others" */
	ROSE_IN_TURN = 16,		/* an event: `after_left` counts what must come before it, and its conditions count all along */
	ROSE_HOLDS = 32,		/* ... and the thread that meets the last of them too early waits there */
};

enum rose_condition_kind {
	ROSE_ON_ELAPSED = 1,
	ROSE_ON_FUNCTION = 2,
	ROSE_ON_SYSCALL = 3,
	ROSE_ON_LOG = 4,
	ROSE_ON_PROCESS = 5,
	ROSE_ON_ROLE = 6,
};

enum rose_result_kind {
	ROSE_RESULT_ANY = 0,
	ROSE_RESULT_OK = 1,
	ROSE_RESULT_ERROR = 2,
	ROSE_RESULT_VALUE = 3,
};

/*
 * progress: which condition is the current one, how often it was seen, and which thread met the one before, in one
 * word that changes at once.   position:12 | tid:22 | seen:30
 */
#define ROSE_POSITION(progress) ((__u32)((progress) >> 52))
#define ROSE_TID(progress) ((__u32)((progress) >> 30) & 0x3fffffu)
#define ROSE_SEEN(progress) ((__u32)(progress) & 0x3fffffffu)
#define ROSE_PROGRESS(position, tid, seen) \
	((((__u64)(position)) << 52) | (((__u64)(tid) & 0x3fffffu) << 30) | ((__u64)(seen) & 0x3fffffffu))
#define ROSE_CLOSED 0xfffu		/* a position: some `after` was not injected yet */

struct rose_chain {
	__u64 progress;
	__u64 opened_ns;		/* when the last `after` was injected; 0: not yet */
	__u64 armed_ns;
	__u64 fired_ns;
	__u64 until_ns;			/* what lasts: in force while now < until_ns */
	__u64 seen;			/* matching calls since it was armed */
	__u64 injected;			/* calls changed or packets dropped */
	__u64 duration_ns;		/* what lasts: 0 without end */
	__u32 state;
	__u32 after_left;
	__u32 pid;			/* where it fired */
	__u32 tid;
	__u32 signalled;		/* tgid that the kernel program signalled on the spot; ROSE_NOT_HELD */
	/* constant once armed */
	__u32 kind;
	__u32 flags;
	__u32 node;
	__u32 target;
	__u32 group;			/* 0: none */
	__u32 signal;			/* crash, pause: what bpf_send_signal sends */
	__u32 first_condition;
	__u32 conditions;
	__u32 first_edge;
	__u32 edges;
	__u32 bound;			/* `node` is a role: whose it was when the conditions were met, +1 */
	__u32 stacks;			/* that were begun to be taken */
	__u32 count;			/* block: the nth thread that comes by */
};

/* `signalled` of a thread that should wait and does not: a debugger has it. */
#define ROSE_NOT_HELD 0xffffffffu

/* Who last entered the role's function. */
struct rose_role {
	__u32 holder;			/* node + 1; 0: nobody yet */
	__u32 entries;
	__u64 since_ns;
};

struct rose_condition {
	__u64 met_ns;			/* written after the step that met it; 0: not met */
	__s64 result;
	__u32 met_pid;
	__u32 met_tid;
	__u32 chain;
	__u32 position;
	__u32 kind;
	__u32 node;
	__u32 count;
	__u16 same_thread;
	__u16 role;
	__u32 result_kind;
	__u32 met_node;			/* `node` is a role or any: which one it was, +1 */
};

struct rose_node_state {
	__u64 cgroup_id;
	__u32 main_pid;
	__u32 counting;			/* a lock: one call of the node is being counted by the override backend */
	/* while a schedule limits descriptors or fills disks */
	__u64 descriptors_lacked;	/* calls that failed since the process may have no further descriptor */
	__u64 room_lacked;		/* calls on paths, and writes to mapped memory, that failed since a disk is full */
};

/*
 * A thread inside a call that was matched at its entry; sys_exit takes it away. More conditions than fit are in further elements,
 * which ROSE_PENDING_KEY numbers; `count`, in the first, is of all.
 */
#define ROSE_PENDING_KEY(tid, element) ((__u64)(__u32)(tid) | (__u64)(element) << 32)
struct rose_pending {
	__u32 syscall;
	__u32 count;
	__u16 conditions[ROSE_MAX_PENDING];
};

/*
 * A call that a signal interrupted. The kernel makes it again, notification and all, unless a handler ran that wanted EINTR:
 * the same call then, not another one.
 */
struct rose_restart {
	__u64 ip;			/* behind the call's instruction */
	__u64 since_ns;			/* not 0: made again by the override backend, which has not looked at it yet */
	__u64 rung_ns;
	__u32 syscall;
	__u32 reserved;
};

/*
 * What a probed address stands for: a part of rose_site_conds, of conditions, blocks and (first) roles. A place in a JVM's method has such a
 * list in the agent there, in which exceptions may stand too: indices of rose_throws.
 */
#define ROSE_SITE_ROLE 0x80000000u
#define ROSE_SITE_THROW 0x40000000u
#define ROSE_SITE_BLOCK 0x20000000u	/* a chain that holds a thread here */
struct rose_site {
	__u32 first;
	__u32 count;
};

/* An exception to be thrown at a place. */
struct rose_throw {
	__u32 chain;
	__u32 reserved;
	__u64 count;			/* the nth thread that comes by once the chain is armed */
	__s64 times;			/* -1: forever */
};

/* An element of an array of words: the kernel pads values of mmapable arrays to 8 bytes. */
struct rose_word {
	__u32 value;
	__u32 reserved;
};

/* Userspace looks at the whole state whenever it hears one of these, so losing one loses nothing but time. */
struct rose_notice {
	__u32 chain;
	__u32 what;			/* 1 a condition was met, 2 armed, 3 fired, 4 a role was taken; 5, 6 see below */
	__u64 ns;
	__u32 tid;
	__u32 syscall;
};
/* `what` of a notice that asks for a thread's memory: `chain` is the thread, `ns` the address that is not in memory. */
#define ROSE_PAGE_IN 5u
/* `tid` makes the call `syscall`, which ends as `chain` says. This one is told nowhere else. */
#define ROSE_CHANGED 6u

struct rose_settings {
	__u32 levels[4];		/* depths of the nodes' cgroups; 0 unused */
	__u32 pending;			/* threads in rose_pending; 0 lets sys_exit return at once */
	__u32 contended;		/* steps given up after too many lost races: must stay 0 */
	__u32 restarts;			/* threads in rose_restarts */
	__u32 rules;
	__u32 own_pid;			/* rose: its children are not the node yet before their execve */
	__u32 unread;			/* calls whose arguments could not be read, and which went by unmatched */
	__u32 hold;			/* the interface that holds packets back; 0: none does */
	__u32 stacks;			/* that are taken of each fault; 0: none */
	__u32 stack_slots;		/* in rose_stacks */
	__u32 holder;			/* who traces threads so as to hold them */
};

/* ---- the override backend: what rose_call matches a call against, and what it does ---- */

/* `*` any text, `?` any byte. */
struct rose_glob {
	__u32 length;
	__u8 text[ROSE_GLOB_BYTES];
};

enum rose_call_kind { ROSE_CALL_CONDITION = 1, ROSE_CALL_FAULT = 2 };
enum rose_call_action {
	ROSE_DO_NOTHING = 0,		/* the call happens as ever; it counts */
	ROSE_DO_ANSWER = 1,		/* it does not happen, the caller is told `answer` */
	ROSE_DO_CRASH = 2,		/* it does not happen, the caller is signalled */
	ROSE_DO_PAUSE = 3,		/* the caller is stopped ahead of it */
};
enum rose_call_flags {
	ROSE_PEER_PORT = 1,		/* the glob is for what stands behind the last colon, the colon included */
	ROSE_LOCAL_PORT = 2,
	ROSE_SPARED_ANYWAY = 4,		/* crash: a caller that is not meant goes on with its call */
};

struct rose_wanted_call {
	__u32 kind;
	__u32 index;			/* of the condition or chain */
	__u32 action;
	__u32 flags;
	__u32 signal;
	__u32 arguments;		/* bit n: argument n is compared */
	__s64 answer;
	__u64 count;			/* the nth matching call */
	__s64 times;			/* -1: forever */
	/* globs, as index + 1; 0: anything */
	__u16 path;
	__u16 peer;
	__u16 local;
	__u16 process;
	__u64 value[6];
	__u64 mask[6];
};

/* What a syscall's arguments refer to; -1: nothing. */
struct rose_call_arguments {
	__s8 path;
	__s8 dirfd;
	__s8 path2;
	__s8 dirfd2;
	__s8 fd;
	__s8 sockaddr;
	__u8 binds;			/* the address is the socket's own */
	__u8 message;			/* the address is in the msghdr that argument 1 points to */
};

/* The call at which a fault fired, for people. */
struct rose_firing {
	__u32 syscall;
	__u32 length;
	__u32 what;			/* 0 nothing, 1 paths (NUL between two), 2 peer, 3 local */
	__u32 ready;			/* written last */
	__u8 text[ROSE_FIRING_BYTES];
};

/* Executable memory of the process, and what file it is of. */
struct rose_stack_map {
	__u64 start;
	__u64 end;
	__u64 offset;			/* in the file */
	__u64 inode;			/* 0: of no file */
	__u32 at;			/* where the path begins; ROSE_STACK_PATH: it is not known */
	__u32 reserved;
	__u8 path[ROSE_STACK_PATH];	/* as the process sees it, to the end */
};

/* Addresses that were looked up: the same answer for all between. */
struct rose_stack_range {
	__u64 start;
	__u64 end;
};

/* A thread as a fault met it: its registers, the top of its stack, and the code that this may be a way through. */
struct rose_stack {
	__u64 at_ns;
	__u64 registers[17];		/* in the order of the psABI's DWARF numbers; the last is the instruction's address */
	__u32 pid;
	__u32 tid;
	__u32 ready;			/* written last */
	__u32 bytes;			/* of the stack that could be read */
	__u32 map_count;
	__u32 more_maps;		/* that did not fit */
	__u32 unknown;			/* addresses that could not be looked up: the memory map was being changed */
	__u32 reserved;
	char thread[16];
	__u64 words[ROSE_STACK_WORDS];
	struct rose_stack_map maps[ROSE_STACK_MAPS];
	/* scratch */
	struct rose_stack_range ranges[ROSE_STACK_RANGES];
	__u8 name[256];
};

enum rose_direction { ROSE_BOTH = 0, ROSE_IN = 1, ROSE_OUT = 2 };

enum rose_rule_flags {
	ROSE_RULE_OTHERS = 1,		/* the peers are all nodes that are not on the side */
	ROSE_RULE_REJECT = 2,		/* the sender is answered */
	ROSE_RULE_PORTS = 4,		/* only ports that rose_rule_ports has */
	ROSE_RULE_NETS = 8,		/* the peers are also the addresses that rose_nets has */
	ROSE_RULE_BOUND = 16,		/* the side is the node that the chain is bound to */
	ROSE_RULE_LINK = 32,		/* a bad link: rose_links says what it does */
};

/* A partition or a bad link: between the nodes of its side and its peers. Sets of nodes are bits. */
struct rose_rule {
	__u32 chain;
	__u32 direction;		/* as the side sees it */
	__u32 threshold;		/* stopped when random <= threshold */
	__u8 protocol;			/* 0: all */
	__u8 flags;
	__u16 reserved;
	__u64 side[ROSE_NODE_WORDS];
	__u64 peers[ROSE_NODE_WORDS];
	__u64 stopped;			/* packets that did not arrive */
	__u64 rejected;			/* of those: answered */
};

/*
 * What a bad link does to the packets of its rule. Chances are of 2^32, and drawn from the packet's number: the same packets meet
 * the same fate in every run.
 */
struct rose_link {
	__u64 seed;
	__u64 count;			/* from the nth packet or connection on ... */
	__s64 times;			/* ... so many; -1: all */
	__u64 lose;
	__u64 duplicate;
	__u64 corrupt;
	__u32 hold;			/* what is left goes through rose, which delays it, or lets only so much pass */
	__u32 connections;		/* `count` is of these */
	__u32 payload_length;		/* 0: any */
	__u32 reserved;
	__u8 payload[ROSE_PAYLOAD_BYTES];
	/* counted */
	__u64 matched;			/* packets that the rule is about */
	__u64 opened;			/* connections */
	__u64 touched;			/* packets to which it did something */
	__u64 lost;
	__u64 duplicated;
	__u64 corrupted;
	__u64 held;
};

/* A connection as the packet that opened it shows it. */
struct rose_flow {
	__u32 rule;
	__u8 protocol;
	__u8 reserved[3];
	__u8 from[16];
	__u8 to[16];
	__u16 from_port;
	__u16 to_port;
};
struct rose_numbered {
	__u64 number;
	__u32 sequence;			/* TCP: of its SYN, which tells a repeated one from a new connection */
	__u32 reserved;
};

/* Where a packet goes on that was held back. */
struct rose_way {
	__u32 ifindex;			/* 0: there is none */
	__u32 received;			/* as if it had come in there; else as if it was sent */
};

/*
 * The VLAN tag that a packet bears while it is held back: the rule that holds it (+1, 11 bits), whether it goes to the side (1 bit)
 * and its way (4 bits).
 */
#define ROSE_TAG(rule, to_side, way) (((rule) + 1) | (to_side) << 11 | (way) << 12)
#define ROSE_TAG_RULE(tag) (((tag) & 0x7ff) - 1)
#define ROSE_TAG_TO_SIDE(tag) (((tag) >> 11) & 1)
#define ROSE_TAG_WAY(tag) (((tag) >> 12) & 15)

/* One of the link's draws for its nth packet, evenly from 32 bits (Steele and others, "splitmix64"). */
enum rose_draw { ROSE_DRAW_LOSE = 1, ROSE_DRAW_DUPLICATE = 2, ROSE_DRAW_CORRUPT = 3, ROSE_DRAW_WHERE = 4, ROSE_DRAW_REORDER = 5,
		 ROSE_DRAW_JITTER = 6 };

/* A port of a partition, in host order; either end's counts. */
struct rose_rule_port {
	__u32 rule;
	__u32 port;
};

/* Addresses of a partition that are no node's: a key of a trie, the rule is the first 32 bits of it. */
struct rose_net {
	__u32 prefix;
	__u32 rule;
	__u8 ip[16];			/* IPv4 as ::ffff:a.b.c.d */
};

/* A node's network interface. */
struct rose_mac {
	__u8 bytes[6];
	__u16 reserved;
};

/* Who sends from an address and port, in host deployments. */
struct rose_endpoint {
	__u8 ip[16];			/* IPv4 as ::ffff:a.b.c.d */
	__u16 port;			/* host order */
	__u8 protocol;
	__u8 reserved;
};

#ifdef __cplusplus
#define ROSE_SIZE(type, size) static_assert(sizeof(struct type) == (size), #type)
#else
#define ROSE_SIZE(type, size) _Static_assert(sizeof(struct type) == (size), #type)
#endif
ROSE_SIZE(rose_chain, 136);
ROSE_SIZE(rose_role, 16);
ROSE_SIZE(rose_condition, 56);
ROSE_SIZE(rose_node_state, 32);
ROSE_SIZE(rose_pending, 136);
ROSE_SIZE(rose_restart, 32);
ROSE_SIZE(rose_site, 8);
ROSE_SIZE(rose_throw, 24);
ROSE_SIZE(rose_word, 8);
ROSE_SIZE(rose_notice, 24);
ROSE_SIZE(rose_settings, 56);
ROSE_SIZE(rose_glob, 256);
ROSE_SIZE(rose_wanted_call, 152);
ROSE_SIZE(rose_call_arguments, 8);
ROSE_SIZE(rose_firing, 512);
ROSE_SIZE(rose_stack_map, 552);
ROSE_SIZE(rose_stack_range, 16);
ROSE_SIZE(rose_stack, 56320);
ROSE_SIZE(rose_rule, 96);
ROSE_SIZE(rose_link, 184);
ROSE_SIZE(rose_flow, 44);
ROSE_SIZE(rose_numbered, 16);
ROSE_SIZE(rose_way, 8);
ROSE_SIZE(rose_rule_port, 8);
ROSE_SIZE(rose_net, 24);
ROSE_SIZE(rose_mac, 8);
ROSE_SIZE(rose_endpoint, 20);

/* ---- the steps ---- */

#ifdef __cplusplus
#define ROSE_READ(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define ROSE_WRITE(x, value) __atomic_store_n(&(x), value, __ATOMIC_RELEASE)
#else /* BPF knows no other order; x86-64 keeps stores in order */
#define ROSE_READ(x) (*(const volatile __typeof__(x) *)&(x))
#define ROSE_WRITE(x, value) (*(volatile __typeof__(x) *)&(x) = (value))
#endif
#define ROSE_CAS(pointer, expected, value) __sync_val_compare_and_swap(pointer, expected, value)
#ifndef ROSE_INLINE
#define ROSE_INLINE static inline __attribute__((always_inline))
#endif

enum { ROSE_CAS_TRIES = 32 };

ROSE_INLINE __u32 rose_draw(__u64 seed, __u64 n, __u32 draw)
{
	__u64 z = seed + (n * 8 + draw) * 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (__u32)((z ^ (z >> 31)) >> 16);
}

enum rose_step { ROSE_NOTHING = 0, ROSE_COUNTED = 1, ROSE_MET = 2, ROSE_COMPLETE = 3 };

/* Is `condition` the current one of its chain, for this thread? */
ROSE_INLINE int rose_is_current(const struct rose_chain *chain, const struct rose_condition *condition, __u32 tid)
{
	__u64 progress = ROSE_READ(chain->progress);

	if (ROSE_POSITION(progress) != condition->position)
		return 0;
	return !condition->same_thread || ROSE_TID(progress) == (tid & 0x3fffffu);
}

/* Counts one match. ROSE_MET: it was the wanted one; ROSE_COMPLETE: and the last condition of the chain. */
ROSE_INLINE int rose_count(struct rose_chain *chain, struct rose_condition *condition, struct rose_settings *settings,
			   __u32 pid, __u32 tid, __u64 now)
{
	int i;

	for (i = 0; i < ROSE_CAS_TRIES; i++) {
		__u64 old = ROSE_READ(chain->progress);
		__u64 next = old + 1;
		int met = ROSE_SEEN(old) + 1 >= condition->count;

		if (ROSE_POSITION(old) != condition->position)
			return ROSE_NOTHING;
		if (condition->same_thread && ROSE_TID(old) != (tid & 0x3fffffu))
			return ROSE_NOTHING;
		if (met)
			next = ROSE_PROGRESS(condition->position + 1, tid, 0);
		if (ROSE_CAS(&chain->progress, old, next) != old)
			continue;
		if (!met)
			return ROSE_COUNTED;
		condition->met_pid = pid;
		condition->met_tid = tid;
		ROSE_WRITE(condition->met_ns, now);
		return condition->position + 1 == chain->conditions ? ROSE_COMPLETE : ROSE_MET;
	}
	__sync_fetch_and_add(&settings->contended, 1);
	return ROSE_NOTHING;
}

/* Index + 1 of the node that a chain is about; 0: not known yet. */
ROSE_INLINE __u32 rose_chain_node(const struct rose_chain *chain)
{
	return chain->node < ROSE_ROLE_NODES ? chain->node + 1 : ROSE_READ(chain->bound);
}

/*
 * A chain on a role gets its node when its conditions are met. 0: nobody has the role yet; then it stays as it is, and userspace
 * tries again when it hears that somebody took it.
 */
ROSE_INLINE int rose_bind(struct rose_chain *chain, const struct rose_role *role)
{
	__u32 holder;

	if (rose_chain_node(chain))
		return 1;
	holder = role ? ROSE_READ(role->holder) : 0;
	if (!holder)
		return 0;
	ROSE_CAS(&chain->bound, 0, holder);
	return 1;
}

/* All conditions of a chain that waits for calls are met. It is bound. */
ROSE_INLINE void rose_arm(struct rose_chain *chain, __u64 now)
{
	ROSE_WRITE(chain->armed_ns, now);
	ROSE_CAS(&chain->state, ROSE_WAITING, ROSE_ARMED);
}

/*
 * Claims the firing of a chain: one caller gets 1 and carries it out; nobody else gets 1 for it, nor for another of its
 * group. The chain is bound. The caller then opens the chains that come `after`.
 */
ROSE_INLINE int rose_fire(struct rose_chain *chain, __u32 index, __u32 *group, __u32 pid, __u32 tid, __u64 now)
{
	__u32 state = ROSE_READ(chain->state);

	if (state != ROSE_WAITING && state != ROSE_ARMED)
		return 0;
	if (group) {
		__u32 winner = ROSE_CAS(group, 0, index + 1);

		if (winner && winner != index + 1) {
			ROSE_CAS(&chain->state, state, ROSE_WITHDRAWN);
			return 0;
		}
	}
	if (ROSE_CAS(&chain->state, state, ROSE_FIRING) != state)
		return 0;
	if (!ROSE_READ(chain->armed_ns))
		ROSE_WRITE(chain->armed_ns, now);
	chain->pid = pid;
	chain->tid = tid;
	ROSE_WRITE(chain->fired_ns, now);
	if (ROSE_LASTS(chain->kind))
		ROSE_WRITE(chain->until_ns, chain->duration_ns ? now + chain->duration_ns : ~(__u64)0);
	ROSE_CAS(&chain->state, ROSE_FIRING, ROSE_FIRED);
	return 1;
}

/* One of its `after` was injected. 1: it was the last one, the chain's own conditions count from now on. */
ROSE_INLINE int rose_open(struct rose_chain *chain, __u64 now)
{
	if (chain->flags & ROSE_IN_TURN) {
		__sync_fetch_and_add(&chain->after_left, -1);
		return 0;
	}
	if (__sync_fetch_and_add(&chain->after_left, -1) != 1)
		return 0;
	ROSE_WRITE(chain->opened_ns, now);
	if (!chain->conditions && (chain->flags & ROSE_WAITS_FOR_CALL) && rose_chain_node(chain))
		rose_arm(chain, now);
	ROSE_CAS(&chain->progress, ROSE_PROGRESS(ROSE_CLOSED, 0, 0), ROSE_PROGRESS(0, 0, 0));
	return 1;
}

#endif
