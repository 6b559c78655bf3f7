/* Conditions that are met inside the kernel. They are met by returns of system calls that were matched at their entry
 * (by the seccomp supervisor, or by rose_call of the override backend), and by threads that reach probed functions or
 * offsets in them. The thread that meets a condition advances the schedule's state (inject.h) and acts immediately on
 * the running process, so that a crash does not wait for user space.
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "rose_core.h"
#include "inject.h"

char LICENSE[] SEC("license") = "GPL";

/* The form of io_uring_complete's arguments. 0: (ring, request, completion), since Linux 6.11. 1: (ring, request, user
 * data, result, ...), since 5.19. 2: (ring, user data, result, ...), before 5.19; these do not identify the request. */
ROSE_FIXED __u8 rose_uring_form = 0;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, ROSE_MAX_CHAINS);
	__type(key, __u32);
	__type(value, struct rose_chain);
} rose_chains SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, ROSE_MAX_CONDITIONS);
	__type(key, __u32);
	__type(value, struct rose_condition);
} rose_conds SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, ROSE_MAX_EDGES);
	__type(key, __u32);
	__type(value, struct rose_word);
} rose_edges SEC(".maps");

/* For each group, the fault that fired in it, as index + 1. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, ROSE_MAX_CHAINS);
	__type(key, __u32);
	__type(value, struct rose_word);
} rose_groups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, ROSE_MAX_NODES);
	__type(key, __u32);
	__type(value, struct rose_node_state);
} rose_nodes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, ROSE_MAX_ROLES);
	__type(key, __u32);
	__type(value, struct rose_role);
} rose_roles SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rose_settings);
} rose_settings SEC(".maps");

/* Sized to the schedule before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rose_site);
} rose_sites SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rose_word);
} rose_site_conds SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ROSE_MAX_NODES);
	__type(key, __u64);
	__type(value, __u32);
} rose_cgroups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);		/* ROSE_PENDING_KEY */
	__type(value, struct rose_pending);
} rose_pending SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct rose_restart);
} rose_restarts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024);
} rose_notices SEC(".maps");

static __always_inline struct rose_settings *settings(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&rose_settings, &zero);
}

/* Index of the node that the current process belongs to, or -1. */
static __always_inline long current_node(struct rose_settings *set)
{
	__u64 id = bpf_get_current_cgroup_id();
	__u32 *node = bpf_map_lookup_elem(&rose_cgroups, &id);
	int i;
#ifdef ROSE_OLD
	struct cgroup *cgroup = BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), cgroups, dfl_cgrp);
#endif

	/* The process may be in a cgroup that was created below the node's own. */
	for (i = 0; !node && i < 4; i++) {
		if (!set->levels[i])
			break;
#ifdef ROSE_OLD /* tracing programs cannot call the helper below before Linux 5.16 (commit 95b861a7935b) */
		id = rose_ancestor_id(cgroup, set->levels[i]);
#else
		id = bpf_get_current_ancestor_cgroup_id(set->levels[i]);
#endif
		if (id)
			node = bpf_map_lookup_elem(&rose_cgroups, &id);
	}
	return node ? (long)*node : -1;
}

static __always_inline void ring(__u32 chain, __u32 what, __u64 now)
{
	struct rose_notice notice = { .chain = chain, .what = what, .ns = now };

	bpf_ringbuf_output(&rose_notices, &notice, sizeof(notice), BPF_RB_FORCE_WAKEUP);
}

static __always_inline __attribute__((unused)) void ring_changed(__u32 chain, __u32 tid, __u32 syscall, __u64 now)
{
	struct rose_notice notice = { .chain = chain, .what = ROSE_CHANGED, .ns = now, .tid = tid, .syscall = syscall };

	bpf_ringbuf_output(&rose_notices, &notice, sizeof(notice), 0);
}

#include "inject/stack.h"

struct opening {
	__u32 first;
	__u32 pad;
	__u64 now;
};

#ifdef ROSE_OLD
__noinline int rose_open_one(__u32 key, __u64 now)
{
	struct rose_word *index = bpf_map_lookup_elem(&rose_edges, &key);
	struct rose_chain *chain;

	if (!index)
		return 1;
	key = index->value;
	chain = bpf_map_lookup_elem(&rose_chains, &key);
	if (chain)
		rose_open(chain, now);
	return 0;
}
static long open_one(__u32 i, struct opening *opening)
{
	return rose_open_one(opening->first + i, opening->now);
}
#else
static long open_one(__u32 i, void *data)
{
	struct opening *opening = data;
	__u32 key = opening->first + i;
	struct rose_word *index = bpf_map_lookup_elem(&rose_edges, &key);
	struct rose_chain *chain;

	if (!index)
		return 1;
	key = index->value;
	chain = bpf_map_lookup_elem(&rose_chains, &key);
	if (chain)
		rose_open(chain, opening->now);
	return 0;
}
#endif

/* Fires a chain on this thread and opens the chains that come after it. */
static __always_inline int fire(struct rose_chain *chain, __u32 index, __u64 now)
{
	__u64 pid_tid = bpf_get_current_pid_tgid();
	struct opening opening = { .now = now };
	struct rose_word *group = 0;
	__u32 key;

	if (chain->group) {
		key = chain->group;
		group = bpf_map_lookup_elem(&rose_groups, &key);
	}
	if (!rose_fire(chain, index, group ? &group->value : 0, pid_tid >> 32, (__u32)pid_tid, now))
		return 0;
	opening.first = chain->first_edge;
	rose_loop(chain->edges, ROSE_MAX_CHAINS, open_one, &opening);
	return 1;
}

/* True if the crash or pause affects the current process. */
static __always_inline int is_meant(const struct rose_chain *chain)
{
	__u32 key = rose_chain_node(chain) - 1;
	struct rose_node_state *state;

	if (!(chain->flags & (ROSE_MAIN_ONLY | ROSE_MAIN_SPARED)))
		return 1;
	state = bpf_map_lookup_elem(&rose_nodes, &key);
	return state && (state->main_pid == bpf_get_current_pid_tgid() >> 32) == !!(chain->flags & ROSE_MAIN_ONLY);
}

enum { HOLD_SIGNAL = 19 };		/* SIGSTOP cannot be ignored */

static __always_inline int signal_current(struct rose_chain *chain, __u32 number)
{
	if (bpf_send_signal(number))
		return 0;
	ROSE_WRITE(chain->signalled, bpf_get_current_pid_tgid() >> 32);
	__sync_fetch_and_add(&chain->injected, 1);
	return 1;
}

/* Stops only this thread, before it returns to its program: the process that traces the thread keeps it stopped at the
 * signal (src/inject/holder.h). */
static __noinline int hold_current(struct rose_chain *chain)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct rose_settings *set = settings();

	if (!chain)
		return 0;
	/* A thread that a debugger traces is not held, because the debugger would receive the signal. */
	if (!set || (BPF_CORE_READ(task, ptrace) && (__u32)BPF_CORE_READ(task, parent, tgid) != set->holder) ||
	    bpf_send_signal_thread(HOLD_SIGNAL)) {
		ROSE_WRITE(chain->signalled, ROSE_NOT_HELD);
		return 0;
	}
	ROSE_WRITE(chain->signalled, bpf_get_current_pid_tgid() >> 32);
	__sync_fetch_and_add(&chain->injected, 1);
	return 1;
}

struct visit {
	__u64 now;
	__s64 result;
	__u32 first;		/* site: start of its list */
	__u32 tid;
	__u32 node;
	__u32 roles;		/* not 0: the thread's node took a role */
	__u32 hit[2];		/* chains that affect the thread, as index + 1 */
};

#ifdef ROSE_OLD
/* Old verifiers check a function once, instead of at each call, only if its arguments are numbers. So the visit is
 * stored in a per-CPU map, not passed as an argument. No other program overwrites it meanwhile, because none of these
 * programs runs in an interrupt. */
struct java_visit {
	struct visit visit;
	__u64 entries;
	__u32 throws, ordered;
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct java_visit);
} rose_rooms SEC(".maps");

static __always_inline struct java_visit *room(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&rose_rooms, &zero);
}

static __always_inline struct java_visit *clear_room(void)
{
	struct java_visit *visit = room();

	if (visit)
		__builtin_memset(visit, 0, sizeof(*visit));
	return visit;
}

/* Takes the lock under which the kernel and user space advance a schedule, one step at a time. */
static __noinline int rose_lock(struct rose_settings *set)
{
	int i;

	for (i = 0; i < 1024; i++) {
		if (rose_try(&set->lock))
			return 1;
	}
	__sync_fetch_and_add(&set->contended, 1);
	return 0;
}
#define rose_unlock(set, locked)                                                     \
	do {                                                                         \
		if (locked)                                                          \
			rose_leave(&(set)->lock);                                    \
	} while (0)
#else
#define rose_lock(set) 0
#define rose_unlock(set, locked) ((void)(locked))
#endif

/* The stack is copied at the end of the program, when the visit needs no more space on the BPF stack. */
static __always_inline void note_hit(struct visit *visit, __u32 index)
{
	visit->hit[visit->hit[0] ? 1 : 0] = index + 1;
}

static __always_inline void take_stacks(const struct visit *visit)
{
	if (visit->hit[0])
		rose_take_stack(visit->hit[0] - 1);
	if (visit->hit[1])
		rose_take_stack(visit->hit[1] - 1);
}

/* Called when this thread has met the last condition of the chain. */
static __always_inline void complete(struct rose_chain *chain, __u32 index, struct visit *visit)
{
	__u64 now = visit->now;
	__u32 node = visit->node;
	__u32 key;

	key = chain->node - ROSE_ROLE_NODES;
	if (!rose_bind(chain, chain->node < ROSE_ROLE_NODES ? 0 : bpf_map_lookup_elem(&rose_roles, &key))) {
		ring(index, 1, now);
		return;
	}
	if (chain->flags & ROSE_WAITS_FOR_CALL) {
		rose_arm(chain, now);
		ring(index, 2, now);
		return;
	}
	if ((chain->flags & ROSE_HOLDS) && ROSE_READ(chain->after_left)) {
		chain->pid = bpf_get_current_pid_tgid() >> 32;
		chain->tid = visit->tid;
		rose_arm(chain, now);
		hold_current(chain);
		ring(index, 2, now);
		return;
	}
	if (!fire(chain, index, now)) {
		ring(index, 1, now);
		return;
	}
	if ((chain->kind == ROSE_CHAIN_CRASH || chain->kind == ROSE_CHAIN_PAUSE) &&
	    rose_chain_node(chain) == node + 1) {
		if (is_meant(chain))
			signal_current(chain, chain->signal);
		note_hit(visit, index);
	} else if (chain->kind == ROSE_CHAIN_END) {
		struct rose_chain *target;

		key = chain->target;
		target = bpf_map_lookup_elem(&rose_chains, &key);
		if (target && ROSE_READ(target->until_ns) > now)
			ROSE_WRITE(target->until_ns, now);
	}
	ring(index, 3, now);
}

static __always_inline int is_there(__u32 where, __u32 node)
{
	struct rose_role *role;
	__u32 key = where - ROSE_ROLE_NODES;

	if (where < ROSE_ROLE_NODES)
		return where == node;
	if (where == ROSE_ANY_NODE)
		return 1;
	if (where >= ROSE_CHAIN_NODES) {
		struct rose_chain *chain;

		key = where - ROSE_CHAIN_NODES;
		chain = bpf_map_lookup_elem(&rose_chains, &key);
		return chain && rose_chain_node(chain) == node + 1;
	}
	role = bpf_map_lookup_elem(&rose_roles, &key);
	return role && ROSE_READ(role->holder) == node + 1;
}

static __always_inline int visit_condition(struct visit *visit, __u32 id)
{
	struct rose_condition *condition, *before;
	struct rose_chain *chain;
	struct rose_settings *set;
	__u32 key = id;
	int step;

	condition = bpf_map_lookup_elem(&rose_conds, &key);
	if (!condition || !is_there(condition->node, visit->node))
		return 0;
	key = condition->chain;
	chain = bpf_map_lookup_elem(&rose_chains, &key);
	if (!chain)
		return 0;
	/* -EINPROGRESS counts as a success, because a non-blocking connect has then begun, and the tracer records that
	 * as a change. */
	if (condition->result_kind == ROSE_RESULT_OK && visit->result < 0 && visit->result >= -4095 && visit->result != -115)
		return 0;
	if (condition->result_kind == ROSE_RESULT_ERROR && (visit->result >= 0 || visit->result < -4095))
		return 0;
	if (condition->result_kind == ROSE_RESULT_VALUE && visit->result != condition->result)
		return 0;
	if (!rose_is_current(chain, condition, visit->tid))
		return 0;
	/* A call or function entry may match several conditions, even of one chain. It must count only once for a
	 * chain, and not for chains that it opens itself. The opened_ns of those chains is the time stamp of this
	 * visit. */
	if (condition->position) {
		key = id - 1;
		before = bpf_map_lookup_elem(&rose_conds, &key);
		if (before && ROSE_READ(before->met_ns) == visit->now)
			return 0;
	} else if (ROSE_READ(chain->opened_ns) == visit->now) {
		return 0;
	}
	set = settings();
	if (!set)
		return 0;
	step = rose_count(chain, condition, set, bpf_get_current_pid_tgid() >> 32, visit->tid, visit->now);
	if (step >= ROSE_MET)
		condition->met_node = visit->node + 1;
	if (step == ROSE_COMPLETE)
		complete(chain, condition->chain, visit);
	else if (step == ROSE_MET)
		ring(condition->chain, 1, visit->now);
	return 0;
}

#ifdef ROSE_OLD
__noinline int rose_visit_condition_at(__u32 id)
{
	struct java_visit *java = room();

	return java ? visit_condition(&java->visit, id) : 0;
}
#define rose_visit_condition(visit, id) rose_visit_condition_at(id)
#else
/* Not static, so that the verifier checks it once instead of along each path through its callers. */
__noinline int rose_visit_condition(struct visit *visit, __u32 id)
{
	return visit ? visit_condition(visit, id) : 0;
}
#endif

static long visit_pending(__u32 i, void *data)
{
	struct visit *visit = data;
	__u64 key = ROSE_PENDING_KEY(visit->tid, i / ROSE_MAX_PENDING);
	struct rose_pending *pending = bpf_map_lookup_elem(&rose_pending, &key);

	if (!pending)
		return 1;
	rose_visit_condition(visit, pending->conditions[i % ROSE_MAX_PENDING]);
	return 0;
}

/* Called when a thread has reached the location of a block. */
static __always_inline int visit_block(struct visit *visit, __u32 index)
{
	struct rose_chain *chain;

	chain = bpf_map_lookup_elem(&rose_chains, &index);
	if (!chain || rose_chain_node(chain) != visit->node + 1 || ROSE_READ(chain->state) != ROSE_ARMED)
		return 0;
	/* This visit does not count if it armed or opened the chain itself. */
	if (ROSE_READ(chain->armed_ns) == visit->now || ROSE_READ(chain->opened_ns) == visit->now)
		return 0;
	if (ROSE_ADD(&chain->seen, 1) + 1 != chain->count)
		return 0;
	if (!fire(chain, index, visit->now)) {
		ring(index, 1, visit->now);
		return 0;
	}
	hold_current(chain);
	note_hit(visit, index);
	ring(index, 3, visit->now);
	return 0;
}

#ifdef ROSE_OLD
__noinline int rose_visit_block_at(__u32 index)
{
	struct java_visit *java = room();

	return java ? visit_block(&java->visit, index) : 0;
}
#define rose_visit_block(visit, index) rose_visit_block_at(index)
#else
/* Not static, so that the verifier checks it once instead of along each path through its callers. */
__noinline int rose_visit_block(struct visit *visit, __u32 index)
{
	return visit ? visit_block(visit, index) : 0;
}
#endif

/* Handles an element of a location's list: a condition, a role or a block. */
static __always_inline void visit_listed(struct visit *visit, __u32 id)
{
	if (id & ROSE_SITE_ROLE) {
		__u32 index = id & ~ROSE_SITE_ROLE;
		struct rose_role *role = bpf_map_lookup_elem(&rose_roles, &index);

		if (!role)
			return;
		role->since_ns = visit->now;
		__sync_fetch_and_add(&role->entries, 1);
		ROSE_WRITE(role->holder, visit->node + 1);
		visit->roles = 1;
		return;
	}
	if (id & ROSE_SITE_BLOCK) {
		rose_visit_block(visit, id & ~ROSE_SITE_BLOCK);
		return;
	}
	rose_visit_condition(visit, id);
}

static long visit_site(__u32 i, void *data)
{
	struct visit *visit = data;
	__u32 key = visit->first + i;
	struct rose_word *id = bpf_map_lookup_elem(&rose_site_conds, &key);

	if (!id || i >= ROSE_MAX_LIST)
		return 1;
	visit_listed(visit, id->value);
	return 0;
}

#ifdef ROSE_OLD
__noinline int rose_visit_site(__u32 i, __u32 count)
{
	struct java_visit *java = room();

	return !java || i >= count || visit_site(i, &java->visit);
}

__noinline int rose_visit_pending(__u32 i, __u32 count)
{
	struct java_visit *java = room();

	return !java || i >= count || visit_pending(i, &java->visit);
}
#define visit_all(count, step, visit) rose_long_loop(count, ROSE_MAX_LIST, rose_##step)
#else
#define visit_all(count, step, visit) bpf_loop(count, step, visit, 0)
#endif

static long forget_further(__u32 i, void *data)
{
	__u64 key = ROSE_PENDING_KEY(*(__u32 *)data, i + 1);

	bpf_map_delete_elem(&rose_pending, &key);
	return 0;
}

/* Forgets the `count` conditions that were pending, because the thread's call has returned or the thread makes another
 * call. */
static __always_inline void forget_pending(struct rose_settings *set, __u32 tid, __u32 count)
{
	__u64 key = ROSE_PENDING_KEY(tid, 0);

	if (count > ROSE_MAX_PENDING)
		rose_loop((count - 1) / ROSE_MAX_PENDING, ROSE_MAX_LIST / ROSE_MAX_PENDING, forget_further, &tid);
	if (!bpf_map_delete_elem(&rose_pending, &key))
		__sync_fetch_and_add(&set->pending, -1);
}

static __always_inline void forget_restart(struct rose_settings *set, __u32 tid)
{
	if (!bpf_map_delete_elem(&rose_restarts, &tid))
		__sync_fetch_and_add(&set->restarts, -1);
}

enum {
	NR_NONE = -1,			/* rt_sigreturn clears the number */
};

#ifdef ROSE_OLD
#define ROSE_VISIT(name) struct visit *name = (struct visit *)clear_room()
#else
#define ROSE_VISIT(name) struct visit name##_ = {}, *name = &name##_
#endif

SEC("raw_tp/sys_exit")
int rose_sys_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct rose_settings *set = settings();
	struct pt_regs *regs = (void *)ctx->args[0];
	struct rose_restart *known = 0, fresh = {};
	struct rose_pending *pending;
	ROSE_VISIT(visit);
	int interrupted, number, locked;
	__u32 count;
	__u64 ip, key;
	long node;

	if (!set || !visit)
		return 0;
	visit->result = (long)ctx->args[1];
	interrupted = visit->result <= -512 && visit->result >= -516;
	if (!interrupted && !ROSE_READ(set->pending) && !ROSE_READ(set->restarts))
		return 0;
	visit->tid = (__u32)bpf_get_current_pid_tgid();
	number = rose_read_number(regs);
	ip = rose_read_ip(regs);
	if (interrupted) {
		if (number == NR_RESTART_SYSCALL || current_node(set) < 0)
			return 0;
		known = bpf_map_lookup_elem(&rose_restarts, &visit->tid);
		/* The override backend had the call repeated and has not counted it yet. */
		if (known && known->since_ns && known->ip == ip && known->syscall == (__u32)number)
			return 0;
		fresh.ip = ip;
		fresh.syscall = number;
		__sync_fetch_and_add(&set->restarts, 1);
		if (bpf_map_update_elem(&rose_restarts, &visit->tid, &fresh, BPF_NOEXIST)) {
			__sync_fetch_and_add(&set->restarts, -1);
			bpf_map_update_elem(&rose_restarts, &visit->tid, &fresh, BPF_EXIST);
		}
		return 0;
	}
	if (ROSE_READ(set->restarts)) {
		known = bpf_map_lookup_elem(&rose_restarts, &visit->tid);
		if (known && number == NR_NONE) {
			/* A signal handler has returned. If it returned to the call's instruction, the call is
			 * repeated. If it returned behind that instruction, the call has failed with EINTR. It may also
			 * have returned to another place. */
			if (ip != known->ip)
				return 0;
			number = known->syscall;
			visit->result = -4;
			forget_restart(set, visit->tid);
		} else if (known && number == NR_RESTART_SYSCALL) {
			number = known->syscall;
			forget_restart(set, visit->tid);
		} else if (known && known->syscall == (__u32)number && known->ip == ip) {
			forget_restart(set, visit->tid);
		}
	}
	key = ROSE_PENDING_KEY(visit->tid, 0);
	pending = bpf_map_lookup_elem(&rose_pending, &key);
	if (!pending || number == NR_NONE)
		return 0;
	count = pending->count;
	node = current_node(set);
	/* If the numbers differ, the entry was left by a thread that died in its call and whose id was reused, or a
	 * signal handler that interrupts the thread's call made this call. */
	if (node < 0 || pending->syscall != (__u32)number)
		return 0;
	visit->node = node;
	visit->now = bpf_ktime_get_ns();
	locked = rose_lock(set);
	visit_all(count, visit_pending, visit);
	rose_unlock(set, locked);
	forget_pending(set, visit->tid, count);
	take_stacks(visit);
	return 0;
}

SEC("uprobe")
int rose_probe(void *ctx)
{
	struct rose_settings *set = settings();
	struct rose_site *site;
	ROSE_VISIT(visit);
	__u32 key = rose_cookie(ctx);
	__u32 count;
	int locked;
	long node;

	if (!set || !visit)
		return 0;
	node = current_node(set);
	if (node < 0)
		return 0;
	site = bpf_map_lookup_elem(&rose_sites, &key);
	if (!site)
		return 0;
	visit->first = site->first;
	count = site->count;
	visit->tid = (__u32)bpf_get_current_pid_tgid();
	visit->node = node;
	visit->now = bpf_ktime_get_ns();
	locked = rose_lock(set);
	visit_all(count, visit_site, visit);
	rose_unlock(set, locked);
	if (visit->roles)
		ring(0, 4, visit->now);
	take_stacks(visit);
	return 0;
}

#include "inject/java.h"
#include "inject/calls.h"
#include "inject/limits.h"
