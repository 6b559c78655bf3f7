/* The state of a schedule that is being injected. The BPF programs (inject.bpf.c, network.bpf.c) and the injector in
 * user space share it through mmapable arrays, and both advance it with the functions below. Because they use the same
 * functions and atomic operations, nothing fires early, out of order or twice, whichever side is first.
 *
 * C++ compiles this file as well. Include <linux/types.h> or similar before it (for __u64).
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_INJECT_H
#define ROSE_INJECT_H

enum {
	ROSE_MAX_CHAINS = 2048,		/* faults, and the `until` of partitions */
	ROSE_MAX_CONDITIONS = 8192,
	ROSE_MAX_EDGES = 16384,		/* entries of `after` */
	ROSE_MAX_NODES = 256,
	ROSE_MAX_SITES = 65536,		/* probed addresses */
	ROSE_MAX_LIST = 4096,		/* conditions that one call or one function entry may count for */
	ROSE_MAX_PENDING = 64,		/* conditions in one element of rose_pending */
	ROSE_MAX_CALLS = 8192,		/* conditions and faults that one call is matched against */
	ROSE_SYSCALLS = 512,
	ROSE_GLOB_BYTES = 252,
	ROSE_FIRING_BYTES = 496,
	ROSE_MAX_RULES = 2046,		/* partitions and bad links */
	ROSE_MAX_WAYS = 16,
	ROSE_PAYLOAD_BYTES = 64,
	ROSE_NODE_WORDS = ROSE_MAX_NODES / 64,
	ROSE_MAX_ROLES = 64,
	ROSE_MAX_THROWS = 16,		/* exceptions at one location */
	ROSE_ROLE_NODES = 0x10000,	/* a node number from here on means "the holder of role n - ROSE_ROLE_NODES" */
	/* a node number from here on means "the node that chain n - ROSE_CHAIN_NODES is bound to" */
	ROSE_CHAIN_NODES = 0x20000,
	ROSE_ANY_NODE = 0xffffffff,
	ROSE_MAX_CHAIN_CONDITIONS = 4000,
#if defined(__TARGET_ARCH_arm64) || defined(__aarch64__)
	ROSE_REGISTERS = 33,
	ROSE_STACK_POINTER = 31,	/* the stack pointer's number among the registers */
	ROSE_ADDRESS_BITS = 48,		/* bits of user space addresses; mmap gives larger ones only on request */
#else
	ROSE_REGISTERS = 17,
	ROSE_STACK_POINTER = 7,
	ROSE_ADDRESS_BITS = 47,
#endif
	ROSE_STACK_WORDS = 4096,	/* words that are copied of a thread's stack, from the stack pointer upwards */
	ROSE_STACK_MAPS = 40,		/* at most this many mappings of code that the words may point into */
	ROSE_STACK_PATH = 512,
	ROSE_STACK_RANGES = 64,
	ROSE_STACKS_EACH = 4,		/* at most this many stacks for each fault, of its first firings */
	ROSE_MAX_STACKS = 256,
	ROSE_MAX_FULL_DISKS = 4096,
};

enum rose_chain_kind {
	ROSE_CHAIN_SYSCALL = 1,		/* armed by its conditions; a matching call then fires it */
	ROSE_CHAIN_CRASH = 2,
	ROSE_CHAIN_PAUSE = 3,
	ROSE_CHAIN_PARTITION = 4,
	ROSE_CHAIN_END = 5,		/* an `until`: ends the fault `target` */
	ROSE_CHAIN_NETWORK = 6,
	ROSE_CHAIN_CLOCK = 7,
	ROSE_CHAIN_EXCEPTION = 8,	/* armed by its conditions; a thread that reaches its location then fires it */
	ROSE_CHAIN_MARK = 9,  /* an event or a step of the workload: has no effect but to open the chains after it */
	/* a limit on descriptors, memory, processor time or disk space, set from user space */
	ROSE_CHAIN_RESOURCE = 10,
	/* armed by its conditions; a thread that reaches its location then fires it and is held */
	ROSE_CHAIN_BLOCK = 11,
};

/* Faults that last. The step that fires such a fault also writes its end time, so that the fault takes effect at once
 * and ends on time. */
#define ROSE_LASTS(kind)                                                                                             \
	((kind) == ROSE_CHAIN_PARTITION || (kind) == ROSE_CHAIN_NETWORK || (kind) == ROSE_CHAIN_CLOCK ||             \
	 (kind) == ROSE_CHAIN_RESOURCE || (kind) == ROSE_CHAIN_BLOCK)

enum rose_chain_state {
	ROSE_WAITING = 0,
	ROSE_ARMED = 1,  /* conditions are met; a matching call, or a thread at the location, may fire it */
	ROSE_FIRING = 2,		/* a thread has claimed the firing and is writing its time stamps */
	ROSE_FIRED = 3,
	ROSE_WITHDRAWN = 4,
};

enum rose_chain_flags {
	ROSE_WAITS_FOR_CALL = 1,	/* syscall faults, and `before` of crash and pause */
	ROSE_MAIN_ONLY = 2,		/* scope = "main" */
	ROSE_AT_WORKLOAD = 4,		/* has neither conditions nor `after`: the start of the workload opens it */
	ROSE_MAIN_SPARED = 8,		/* scope = "others" */
	/* an event. Its conditions count even while `after_left`, the number of chains that come first, is not 0 */
	ROSE_IN_TURN = 16,
	ROSE_HOLDS = 32,  /* with ROSE_IN_TURN: a thread that meets the last condition too early is held there */
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

/* `progress` is one word, so that it can be changed atomically: the position of the current condition (12 bits), the
 * thread that met the previous condition (22 bits), and how often the current one was seen (30 bits). */
#define ROSE_POSITION(progress) ((__u32)((progress) >> 52))
#define ROSE_TID(progress) ((__u32)((progress) >> 30) & 0x3fffffu)
#define ROSE_SEEN(progress) ((__u32)(progress) & 0x3fffffffu)
#define ROSE_PROGRESS(position, tid, seen) \
	((((__u64)(position)) << 52) | (((__u64)(tid) & 0x3fffffu) << 30) | ((__u64)(seen) & 0x3fffffffu))
#define ROSE_CLOSED 0xfffu		/* the position while an entry of `after` is not injected yet */

struct rose_chain {
	__u64 progress;
	__u64 opened_ns;		/* when the last entry of `after` was injected; 0: not yet */
	__u64 armed_ns;
	__u64 fired_ns;
	__u64 until_ns;			/* lasting faults: in effect while now < until_ns */
	__u64 seen;			/* while armed: calls that matched, or threads that reached the location */
	__u64 injected;			/* calls that were changed, or packets that were dropped */
	__u64 duration_ns;		/* lasting faults: 0 means without end */
	__u32 state;
	__u32 after_left;
	__u32 pid;			/* the process in which it fired */
	__u32 tid;
	__u32 signalled;		/* the process that the BPF program signalled itself; or ROSE_NOT_HELD */
	/* From here on, except for `stacks`, constant once the chain is armed: */
	__u32 kind;
	__u32 flags;
	__u32 node;
	__u32 target;
	__u32 group;			/* 0 if none */
	__u32 signal;			/* crash, pause: the signal for bpf_send_signal */
	__u32 first_condition;
	__u32 conditions;
	__u32 first_edge;
	__u32 edges;
	__u32 bound;			/* if `node` is a role: node + 1 of its holder when the conditions were met */
	__u32 stacks;			/* number of stacks taken or being taken */
	__u32 count;			/* block: the nth thread that reaches the location */
};

/* A value of `signalled`: the thread should be held but is not, for example because a debugger traces it. */
#define ROSE_NOT_HELD 0xffffffffu

/* The node that last entered the role's function. */
struct rose_role {
	__u32 holder;			/* node + 1; 0: none yet */
	__u32 entries;
	__u64 since_ns;
};

struct rose_condition {
	__u64 met_ns;			/* written after met_pid and met_tid; 0: not met */
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
	__u32 met_node;			/* if `node` is a role or any node: node + 1 of the node that met it */
};

struct rose_node_state {
	__u64 cgroup_id;
	__u32 main_pid;
	__u32 counting;			/* a lock, held while the override backend counts a call of the node */
	/* Counted while a schedule limits descriptors or fills disks: */
	__u64 descriptors_lacked;	/* calls that failed because the process may have no further descriptor */
	__u64 room_lacked;  /* calls on paths, and writes to mapped memory, that failed because a disk is full */
	/* The fault whose limit is in force, as its chain's index + 1. The stacks of threads that meet the limit are
	 * copied for this fault. */
	__u32 descriptors_chain;
	__u32 room_chain;
	__u32 memory_chain;
	__u32 reserved;
};

/* The conditions that a thread's current call matched at its entry. sys_exit removes them. Those that do not fit into
 * one element are in further elements, whose keys are ROSE_PENDING_KEY. `count` of the first element is the total. */
#define ROSE_PENDING_KEY(tid, element) ((__u64)(__u32)(tid) | (__u64)(element) << 32)
struct rose_pending {
	__u32 syscall;
	__u32 count;
	__u16 conditions[ROSE_MAX_PENDING];
};

/* A call that a signal interrupted. The kernel repeats it, and seccomp notifies rose again, unless a signal handler ran
 * that requires EINTR. The repeated call must be recognised and must not be counted again. */
struct rose_restart {
	__u64 ip;			/* address after the call's instruction */
	__u64 since_ns;  /* not 0: the override backend had the call repeated, and has not matched it yet */
	__u64 rung_ns;
	__u32 syscall;
	__u32 reserved;
};

/* The list of a probed address: a range of rose_site_conds, with roles first, then conditions and blocks. The agent in
 * a JVM has such a list for each location in a Java method. That list may also contain exceptions, as indices of
 * rose_throws. */
#define ROSE_SITE_ROLE 0x80000000u
#define ROSE_SITE_THROW 0x40000000u
#define ROSE_SITE_BLOCK 0x20000000u	/* marks the index of a chain that holds a thread here */
struct rose_site {
	__u32 first;
	__u32 count;
};

/* An exception to be thrown at a location. */
struct rose_throw {
	__u32 chain;
	__u32 reserved;
	__u64 count;			/* the nth thread that reaches the location once the chain is armed */
	__s64 times;			/* -1: forever */
};

/* An element of an array of words. It has 8 bytes because the kernel pads values of mmapable arrays to 8 bytes. */
struct rose_word {
	__u32 value;
	__u32 reserved;
};

/* User space checks the whole state whenever it receives a notice, so a lost notice only causes a delay. The exception
 * is ROSE_CHANGED. */
struct rose_notice {
	__u32 chain;
	/* 1: a condition was met; 2: a chain is armed; 3: it fired; 4: a role was taken; 5 and 6: see below */
	__u32 what;
	__u64 ns;
	__u32 tid;
	__u32 syscall;
};
/* A value of `what`: requests that user space read the memory of the thread `chain` at the address `ns`, which is not
 * present. */
#define ROSE_PAGE_IN 5u
/* A value of `what`: thread `tid` makes the call `syscall`, and gets the result that `chain` defines. No other record
 * contains this, so it is missing if the notice is lost. */
#define ROSE_CHANGED 6u

struct rose_settings {
	__u32 levels[4];		/* depths of the nodes' cgroups; 0: unused */
	__u32 pending;			/* threads in rose_pending; if 0, sys_exit returns immediately */
	/* Steps that were abandoned because other threads changed the word each time, or that were made without the
	 * lock. Must stay 0. */
	__u32 contended;
	__u32 restarts;			/* threads in rose_restarts */
	__u32 rules;
	__u32 own_pid;  /* the process id of rose; its children belong to a node only after their execve */
	__u32 unread;			/* calls that were not matched because their arguments could not be read */
	__u32 hold;			/* the interface that delays packets; 0: none */
	__u32 stacks;			/* at most this many stacks are copied for each fault; 0: none */
	__u32 stack_slots;		/* the number of elements of rose_stacks */
	__u32 holder;			/* the process that traces threads in order to hold them */
	/* A lock around each step, for old kernels, whose atomic additions return no value. User space takes it by
	 * exchanging 0 for 1, and both sides release it by subtracting 1. */
	__u64 lock;
	__u32 locks;			/* not 0: user space takes the lock, too */
	__u32 wanted;  /* the thread that rose_registers reports, on kernels whose iterators take no parameters */
};

/* ---- the override backend: what rose_call matches calls against, and what it does ---- */

/* In a glob, `*` matches any text and `?` any byte. */
struct rose_glob {
	__u32 length;
	__u8 text[ROSE_GLOB_BYTES];
};

enum rose_call_kind { ROSE_CALL_CONDITION = 1, ROSE_CALL_FAULT = 2 };
enum rose_call_action {
	ROSE_DO_NOTHING = 0,		/* the call is executed unchanged but counted */
	ROSE_DO_ANSWER = 1,		/* it is not executed and returns `answer` */
	ROSE_DO_CRASH = 2,		/* it is not executed and the caller is signalled */
	ROSE_DO_PAUSE = 3,		/* the caller is stopped before it */
};
enum rose_call_flags {
	ROSE_PEER_PORT = 1,		/* the glob is compared with the part from the last colon on */
	ROSE_LOCAL_PORT = 2,
	ROSE_SPARED_ANYWAY = 4,		/* crash: if it does not affect the caller, the call is executed */
};

struct rose_wanted_call {
	__u32 kind;
	__u32 index;			/* the index of the condition or chain */
	__u32 action;
	__u32 flags;
	__u32 signal;
	__u32 arguments;		/* bit n: argument n is compared */
	__s64 answer;
	__u64 count;			/* the nth matching call */
	__s64 times;			/* -1: forever */
	/* Globs, as index + 1; 0: any text matches. */
	__u16 path;
	__u16 peer;
	__u16 local;
	__u16 process;
	__u16 path2;  /* the glob of the second path; `path` is then compared with the first path only */
	__u16 reserved[3];
	__u64 value[6];
	__u64 mask[6];
};

/* For each kind of argument, the position at which a system call has it; -1: nowhere. */
struct rose_call_arguments {
	__s8 path;
	__s8 dirfd;
	__s8 path2;
	__s8 dirfd2;
	__s8 fd;
	__s8 sockaddr;
	__u8 binds;			/* not 0: the address is that of the socket itself */
	__u8 message;			/* not 0: the address is in the msghdr that argument 1 points to */
};

/* The call at which a fault fired. User space shows it in messages. */
struct rose_firing {
	__u32 syscall;
	__u32 length;
	__u32 what;  /* what `text` is. 0: nothing, 1: paths (separated by NUL), 2: peer, 3: local address */
	__u32 ready;			/* written after all other fields */
	__u8 text[ROSE_FIRING_BYTES];
};

/* A mapping of executable memory of the process, and the file that is mapped there. */
struct rose_stack_map {
	__u64 start;
	__u64 end;
	__u64 offset;			/* offset of the mapping in the file */
	__u64 inode;			/* 0: no file is mapped */
	__u32 at;			/* offset in `path` at which the path starts; ROSE_STACK_PATH: unknown */
	__u32 reserved;
	__u8 path[ROSE_STACK_PATH];	/* the path as the process sees it; it ends at the end of the array */
};

/* An address range that was looked up. All addresses in it have the same result. */
struct rose_stack_range {
	__u64 start;
	__u64 end;
};

/* The state of a thread at the moment when a fault affected it: its registers, the top of its stack, and the mappings
 * of code that the words of the stack may point into. */
struct rose_stack {
	__u64 at_ns;
	__u64 registers[ROSE_REGISTERS]; /* by DWARF register number (psABI); the last is the instruction pointer */
	__u32 pid;
	__u32 tid;
	__u32 ready;			/* written after all other fields */
	__u32 bytes;			/* bytes of the stack that could be read */
	__u32 map_count;
	__u32 more_maps;		/* number of mappings that did not fit */
	/* addresses that could not be looked up, because the memory map was being changed */
	__u32 unknown;
	__u32 own_tid;			/* the thread's id in its own PID namespace; 0: unknown */
	char thread[16];
	__u64 words[ROSE_STACK_WORDS];
	struct rose_stack_map maps[ROSE_STACK_MAPS];
	/* Used only while the stack is copied: */
	struct rose_stack_range ranges[ROSE_STACK_RANGES];
	__u8 name[256];
};

enum rose_direction { ROSE_BOTH = 0, ROSE_IN = 1, ROSE_OUT = 2 };

enum rose_rule_flags {
	ROSE_RULE_OTHERS = 1,		/* the peers are all nodes that are not on the side */
	ROSE_RULE_REJECT = 2,		/* the sender gets a response */
	ROSE_RULE_PORTS = 4,		/* only ports in rose_rule_ports */
	ROSE_RULE_NETS = 8,		/* the peers include the addresses in rose_nets */
	ROSE_RULE_BOUND = 16,		/* the side is the node that the chain is bound to */
	ROSE_RULE_LINK = 32,		/* a bad link, whose effects are in rose_links */
};

/* A partition or a bad link between the nodes on its side and its peers. Sets of nodes are bit sets. */
struct rose_rule {
	__u32 chain;
	__u32 direction;		/* the direction of the packets, as seen from the side */
	__u32 threshold;		/* a packet is dropped if its random number is at most this */
	__u8 protocol;			/* 0: all protocols */
	__u8 flags;
	__u16 reserved;
	__u64 side[ROSE_NODE_WORDS];
	__u64 peers[ROSE_NODE_WORDS];
	__u64 stopped;			/* packets that were dropped or rejected */
	__u64 rejected;			/* those of them whose sender got a response */
};

/* The effects of a bad link on the packets of its rule. Probabilities are multiples of 2^-32. Random numbers are
 * derived from the packet's number, so that the same packets are affected in the same way in every run. */
struct rose_link {
	__u64 seed;
	__u64 count;			/* the effects begin with the nth packet or connection */
	__s64 times;			/* they affect this many packets or connections; -1: all */
	__u64 lose;
	__u64 duplicate;
	__u64 corrupt;
	/* rose receives the packets that are not lost, in order to delay them or to limit their rate */
	__u32 hold;
	__u32 connections;		/* not 0: `count` counts connections */
	__u32 payload_length;		/* 0: packets with any payload */
	__u32 reserved;
	__u8 payload[ROSE_PAYLOAD_BYTES];
	/* Counters: */
	__u64 matched;			/* packets that the rule applies to */
	__u64 opened;			/* connections */
	__u64 touched;			/* packets that were changed */
	__u64 lost;
	__u64 duplicated;
	__u64 corrupted;
	__u64 held;
};

/* A connection, identified by the packet that opened it. */
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
	/* TCP: the sequence number of its SYN, which distinguishes a repeated SYN from a new connection */
	__u32 sequence;
	__u32 reserved;
};

/* The interface on which a delayed packet continues. */
struct rose_way {
	__u32 ifindex;			/* 0: none */
	__u32 received;			/* 1: as if the interface had received it; 0: as if it were sent there */
};

/* While a packet is delayed, its VLAN tag holds the rule that delays it (+ 1, 11 bits), whether the packet goes to the
 * rule's side (1 bit), and its way (4 bits). */
#define ROSE_TAG(rule, to_side, way) (((rule) + 1) | (to_side) << 11 | (way) << 12)
#define ROSE_TAG_RULE(tag) (((tag) & 0x7ff) - 1)
#define ROSE_TAG_TO_SIDE(tag) (((tag) >> 11) & 1)
#define ROSE_TAG_WAY(tag) (((tag) >> 12) & 15)

/* The purposes of random numbers. rose_draw() returns the link's random number for its nth packet, uniform in 32 bits
 * (splitmix64 of Steele and others). */
enum rose_draw { ROSE_DRAW_LOSE = 1, ROSE_DRAW_DUPLICATE = 2, ROSE_DRAW_CORRUPT = 3, ROSE_DRAW_WHERE = 4,
		 ROSE_DRAW_REORDER = 5, ROSE_DRAW_JITTER = 6 };

/* A port of a partition, in host order, on either end. */
struct rose_rule_port {
	__u32 rule;
	__u32 port;
};

/* The key of a trie with the addresses of a partition that do not belong to nodes. The rule is in the first 32 bits. */
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

/* In host deployments: an address and port from which a node sends. */
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
ROSE_SIZE(rose_node_state, 48);
ROSE_SIZE(rose_pending, 136);
ROSE_SIZE(rose_restart, 32);
ROSE_SIZE(rose_site, 8);
ROSE_SIZE(rose_throw, 24);
ROSE_SIZE(rose_word, 8);
ROSE_SIZE(rose_notice, 24);
ROSE_SIZE(rose_settings, 72);
ROSE_SIZE(rose_glob, 256);
ROSE_SIZE(rose_wanted_call, 160);
ROSE_SIZE(rose_call_arguments, 8);
ROSE_SIZE(rose_firing, 512);
ROSE_SIZE(rose_stack_map, 552);
ROSE_SIZE(rose_stack_range, 16);
ROSE_SIZE(rose_stack, 56184 + 8 * ROSE_REGISTERS);
ROSE_SIZE(rose_rule, 96);
ROSE_SIZE(rose_link, 184);
ROSE_SIZE(rose_flow, 44);
ROSE_SIZE(rose_numbered, 16);
ROSE_SIZE(rose_way, 8);
ROSE_SIZE(rose_rule_port, 8);
ROSE_SIZE(rose_net, 24);
ROSE_SIZE(rose_mac, 8);
ROSE_SIZE(rose_endpoint, 20);

/* ---- the steps of a schedule ---- */

#ifdef __cplusplus
#define ROSE_READ(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define ROSE_WRITE(x, value) __atomic_store_n(&(x), value, __ATOMIC_RELEASE)
#else /* BPF programs cannot use acquire and release. x86-64 keeps stores in order anyway; arm64 does not. */
#define ROSE_READ(x) (*(const volatile __typeof__(x) *)&(x))
#define ROSE_WRITE(x, value) (*(volatile __typeof__(x) *)&(x) = (value))
#endif
#ifdef ROSE_OLD /* callers hold rose_settings.lock */
#define ROSE_CAS(pointer, expected, value) rose_replace(pointer, expected, value)
#define ROSE_ADD(pointer, change) rose_add(pointer, change)
#else
#define ROSE_CAS(pointer, expected, value) __sync_val_compare_and_swap(pointer, expected, value)
#define ROSE_ADD(pointer, change) __sync_fetch_and_add(pointer, change)
#endif
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

/* True if `condition` is the current condition of its chain and this thread may meet it. */
ROSE_INLINE int rose_is_current(const struct rose_chain *chain, const struct rose_condition *condition, __u32 tid)
{
	__u64 progress = ROSE_READ(chain->progress);

	if (ROSE_POSITION(progress) != condition->position)
		return 0;
	return !condition->same_thread || ROSE_TID(progress) == (tid & 0x3fffffu);
}

/* Counts one match. Returns ROSE_MET if the condition is met, and ROSE_COMPLETE if it was also the last condition of
 * the chain. */
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

/* The node that a chain concerns, as index + 1. 0 if it is not known yet. */
ROSE_INLINE __u32 rose_chain_node(const struct rose_chain *chain)
{
	return chain->node < ROSE_ROLE_NODES ? chain->node + 1 : ROSE_READ(chain->bound);
}

/* Binds a chain whose node is a role to the node that has the role. Called when the chain's conditions are met. Returns
 * 0 if no node has the role yet: the chain then stays unchanged, and user space tries again when a node takes the role.
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

/* Arms a chain that waits for calls. Called when all its conditions are met. The chain must be bound. */
ROSE_INLINE void rose_arm(struct rose_chain *chain, __u64 now)
{
	ROSE_WRITE(chain->armed_ns, now);
	ROSE_CAS(&chain->state, ROSE_WAITING, ROSE_ARMED);
}

/* Claims the firing of a chain. If this returns 1, the caller must carry out the fault and then open the chains that
 * have this one in `after`. No other caller gets 1 for this chain or for another chain of its group. The chain must be
 * bound. */
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

/* Called when one entry of the chain's `after` was injected. Returns 1 if it was the last entry, so that the chain's
 * own conditions count from then on. Always returns 0 for ROSE_IN_TURN, because these conditions count from the start.
 */
ROSE_INLINE int rose_open(struct rose_chain *chain, __u64 now)
{
	if (chain->flags & ROSE_IN_TURN) {
		__sync_fetch_and_add(&chain->after_left, -1);
		return 0;
	}
	if (ROSE_ADD(&chain->after_left, -1) != 1)
		return 0;
	ROSE_WRITE(chain->opened_ns, now);
	if (!chain->conditions && (chain->flags & ROSE_WAITS_FOR_CALL) && rose_chain_node(chain))
		rose_arm(chain, now);
	ROSE_CAS(&chain->progress, ROSE_PROGRESS(ROSE_CLOSED, 0, 0), ROSE_PROGRESS(0, 0, 0));
	return 1;
}

#endif
