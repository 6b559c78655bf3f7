/* The override backend. At the entry of a system call, it determines whether a condition or fault matches the call,
 * counts the call, and supplies the result instead of the kernel (bpf_override_return). It takes the same steps in the
 * same order as Supervisor::decide in src/inject/supervisor.cc.
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_INJECT_CALLS_H
#define ROSE_INJECT_CALLS_H

#include "inject/call_text.h"


/* Sized to the schedule before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rose_glob);
} rose_globs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rose_wanted_call);
} rose_calls SEC(".maps");

/* The key is node << 16 | syscall. The value is a range of rose_call_items, which are indices of rose_calls. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rose_site);
} rose_call_lists SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rose_word);
} rose_call_items SEC(".maps");

/* The key is the chain's index. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rose_firing);
} rose_firings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct call_scratch);
} rose_call_scratch SEC(".maps");

enum {
	GLOB_STEPS = 1 << 20,		/* enough for a path of 4,096 bytes and a glob of 252 */
	LOCK_TRIES = 1 << 22,
	NO_STAR = ~0u,
	EINTR__ = 4,
	ERESTARTNOINTR_ = 513,
	SIGCONT_ = 18,
	SIGSTOP_ = 19,
	MISSING_LIMIT_NS = 300 * 1000 * 1000,
	MISSING_NOTICE_NS = 5 * 1000 * 1000,
};

#ifdef ROSE_OLD
/* Old kernels use the seccomp backend, because matching paths there would need another program. */
SEC("kprobe")
int rose_call(struct pt_regs *ctx)
{
	return ctx ? 0 : 0;
}
#else

/* ---- globs ---- */

struct globbing {
	struct call_scratch *scratch;
	struct rose_glob *glob;
};

static long glob_step(__u32 i, struct globbing *g)
{
	struct call_scratch *scratch = g->scratch;
	struct rose_glob *glob = g->glob;
	__u32 p = scratch->p, t = scratch->t, at = scratch->text.at + t;
	__u8 want = 0, c;

	if (p < glob->length && p < ROSE_GLOB_BYTES)
		want = glob->text[p];
	else
		p = ROSE_GLOB_BYTES;
	if (t >= scratch->text.length) {
		if (p < ROSE_GLOB_BYTES && want == '*') {
			scratch->p = p + 1;
			return 0;
		}
		return 1;
	}
	if (at >= ARENA)
		return 1;
	c = scratch->bytes[at];
	if (p < ROSE_GLOB_BYTES && want == '*') {
		scratch->star = p;
		scratch->p = p + 1;
		scratch->retry = t;
	} else if (p < ROSE_GLOB_BYTES && (want == '?' || want == c)) {
		scratch->p = p + 1;
		scratch->t = t + 1;
	} else if (scratch->star != NO_STAR) {
		scratch->p = scratch->star + 1;
		scratch->retry = scratch->retry + 1;
		scratch->t = scratch->retry;
	} else {
		return 1;
	}
	return 0;
}

__noinline int rose_glob_matches(struct call_scratch *scratch, __u32 at, __u32 length, __u32 number)
{
	struct globbing g = {.scratch = scratch};
	__u32 key = number - 1, p, last;

	if (!scratch)
		return 0;
	g.glob = bpf_map_lookup_elem(&rose_globs, &key);
	if (!g.glob)
		return 0;
	/* Most globs can be rejected by the last byte of the text. */
	p = g.glob->length - 1;
	if (p < ROSE_GLOB_BYTES && g.glob->text[p] != '*' && g.glob->text[p] != '?') {
		last = at + length - 1;
		if (!length || last >= ARENA || scratch->bytes[last] != g.glob->text[p])
			return 0;
	}
	scratch->text.at = at;
	scratch->text.length = length;
	scratch->t = scratch->p = scratch->retry = 0;
	scratch->star = NO_STAR;
	bpf_loop(GLOB_STEPS, glob_step, &g, 0);
	return scratch->t >= length && scratch->p >= g.glob->length;
}

static long colon_step(__u32 i, struct call_scratch **context)
{
	struct call_scratch *scratch = *context;
	__u32 at = scratch->text.at + scratch->text.length - 1 - i;

	return i >= scratch->text.length || at >= ARENA || scratch->bytes[at] == ':';
}

/* `port_only`: compares only the part from the last colon on. */
__noinline int rose_address_matches(struct call_scratch *scratch, __u32 at, __u32 length, __u32 number, __u32 port_only)
{
	struct call_scratch *context = scratch;
	long n;

	if (!scratch || !length)
		return 0;
	if (port_only) {
		scratch->text.at = at;
		scratch->text.length = length;
		n = bpf_loop(ADDRESS_ROOM, colon_step, &context, 0);
		if (n <= 0 || n > length)
			return 0;
		at += length - n;
		length = n;
	}
	return rose_glob_matches(scratch, at, length, number);
}

__noinline int rose_call_matches(struct call_scratch *scratch, __u32 index)
{
	struct rose_wanted_call *call = bpf_map_lookup_elem(&rose_calls, &index);

	if (!scratch || !call)
		return 0;
	if (call->arguments) {
		for (__u32 i = 0; i < 6; i++) {
			if ((call->arguments & (1u << i)) && (scratch->arguments[i] & call->mask[i]) != call->value[i])
				return 0;
		}
	}
	if (call->process) {
		read_process(scratch);
		if (!rose_glob_matches(scratch, scratch->process.at, scratch->process.length, call->process))
			return 0;
	}
	if (call->path2) {
		rose_read_paths(scratch);
		if (scratch->path_count < 2 ||
		    !rose_glob_matches(scratch, scratch->paths[1].at, scratch->paths[1].length, call->path2))
			return 0;
		if (call->path && !rose_glob_matches(scratch, scratch->paths[0].at, scratch->paths[0].length, call->path))
			return 0;
	} else if (call->path) {
		int any = 0;

		rose_read_paths(scratch);
		if (scratch->path_count > 0)
			any = rose_glob_matches(scratch, scratch->paths[0].at, scratch->paths[0].length, call->path);
		if (!any && scratch->path_count > 1)
			any = rose_glob_matches(scratch, scratch->paths[1].at, scratch->paths[1].length, call->path);
		if (!any)
			return 0;
	}
	if (call->peer) {
		rose_read_socket(scratch);
		if (!rose_address_matches(scratch, scratch->peer.at, scratch->peer.length, call->peer,
					  call->flags & ROSE_PEER_PORT))
			return 0;
	}
	if (call->local) {
		rose_read_socket(scratch);
		if (!rose_address_matches(scratch, scratch->local.at, scratch->local.length, call->local,
					  call->flags & ROSE_LOCAL_PORT))
			return 0;
	}
	return 1;
}

/* ---- decisions ---- */

struct deciding {
	struct call_scratch *scratch;
	struct rose_settings *set;
	__u64 now;
	__u32 first;
	__u32 tid;
	__u32 node;
};

static __always_inline struct rose_wanted_call *item(struct deciding *d, __u32 i, __u32 *index)
{
	__u32 key = d->first + i;
	struct rose_word *word = bpf_map_lookup_elem(&rose_call_items, &key);

	if (!word || i >= ROSE_MAX_CALLS)
		return 0;
	*index = word->value;
	return bpf_map_lookup_elem(&rose_calls, index);
}

static __always_inline bool was_matched(struct call_scratch *scratch, __u32 i)
{
	return scratch->matched[(i / 64) & (ROSE_MAX_CALLS / 64 - 1)] & (1ULL << (i & 63));
}

static __always_inline bool is_over(const struct rose_chain *chain, const struct rose_wanted_call *call)
{
	if (ROSE_READ(chain->state) != ROSE_FIRED)
		return false;
	if (chain->kind != ROSE_CHAIN_SYSCALL)
		return true;
	return call->times >= 0 && ROSE_READ(chain->injected) >= (__u64)call->times;
}

/* Records whether a call matches a condition that is not met yet, or a fault that is not finished. */
static long match_item(__u32 i, struct deciding *d)
{
	struct call_scratch *scratch = d->scratch;
	struct rose_chain *chain;
	struct rose_wanted_call *call;
	__u32 index, key;

	call = item(d, i, &index);
	if (!call)
		return 1;
	if (call->kind == ROSE_CALL_CONDITION) {
		struct rose_condition *condition;
		__u32 position;

		key = call->index;
		condition = bpf_map_lookup_elem(&rose_conds, &key);
		if (!condition)
			return 0;
		key = condition->chain;
		chain = bpf_map_lookup_elem(&rose_chains, &key);
		if (!chain || ROSE_READ(chain->state) != ROSE_WAITING)
			return 0;
		position = ROSE_POSITION(ROSE_READ(chain->progress));
		if (position != ROSE_CLOSED && position > condition->position)
			return 0;
	} else {
		key = call->index;
		chain = bpf_map_lookup_elem(&rose_chains, &key);
		if (!chain || ROSE_READ(chain->state) == ROSE_WITHDRAWN || is_over(chain, call))
			return 0;
	}
	if (!rose_call_matches(scratch, index))
		return 0;
	scratch->matched[(i / 64) & (ROSE_MAX_CALLS / 64 - 1)] |= 1ULL << (i & 63);
	if (call->kind == ROSE_CALL_CONDITION)
		d->scratch->conditions++;
	else
		d->scratch->faults++;
	return 0;
}

static __always_inline void store_pending(struct deciding *d, __u32 element)
{
	__u64 key = ROSE_PENDING_KEY(d->tid, element);
	struct rose_pending *pending = &d->scratch->pending;

	pending->count = d->scratch->conditions;
	if (!element) {
		__sync_fetch_and_add(&d->set->pending, 1);
		if (!bpf_map_update_elem(&rose_pending, &key, pending, BPF_NOEXIST))
			return;
		/* The entry was left by a thread that was killed inside its call and whose id was reused, or the call
		 * is being repeated. */
		__sync_fetch_and_add(&d->set->pending, -1);
	}
	bpf_map_update_elem(&rose_pending, &key, pending, BPF_ANY);
}

/* Records a matched condition that the call may meet when it returns. */
static long tag_item(__u32 i, struct deciding *d)
{
	struct call_scratch *scratch = d->scratch;
	struct rose_wanted_call *call;
	__u32 index;

	if (!was_matched(scratch, i))
		return 0;
	call = item(d, i, &index);
	if (!call || call->kind != ROSE_CALL_CONDITION)
		return 0;
	scratch->pending.conditions[d->scratch->stored % ROSE_MAX_PENDING] = call->index;
	d->scratch->stored++;
	if (d->scratch->stored % ROSE_MAX_PENDING == 0 || d->scratch->stored == d->scratch->conditions)
		store_pending(d, (d->scratch->stored - 1) / ROSE_MAX_PENDING);
	return 0;
}

/* Drops the matched faults that are not armed. This is done for all faults before the first one fires, so that a call
 * cannot both arm a fault and match it. */
static long armed_item(__u32 i, struct deciding *d)
{
	struct rose_chain *chain;
	struct rose_wanted_call *call;
	__u32 index, key, state;

	if (!was_matched(d->scratch, i))
		return 0;
	call = item(d, i, &index);
	if (!call || call->kind != ROSE_CALL_FAULT)
		return 0;
	key = call->index;
	chain = bpf_map_lookup_elem(&rose_chains, &key);
	state = chain ? ROSE_READ(chain->state) : ROSE_WAITING;
	if ((state != ROSE_ARMED && state != ROSE_FIRED) || rose_chain_node(chain) != d->node + 1)
		d->scratch->matched[(i / 64) & (ROSE_MAX_CALLS / 64 - 1)] &= ~(1ULL << (i & 63));
	return 0;
}

static long count_item(__u32 i, struct deciding *d)
{
	struct rose_chain *chain;
	struct rose_wanted_call *call;
	struct rose_word *group;
	__u32 index, key;
	__u64 seen;

	if (!was_matched(d->scratch, i))
		return 0;
	call = item(d, i, &index);
	if (!call || call->kind != ROSE_CALL_FAULT)
		return 0;
	key = call->index;
	chain = bpf_map_lookup_elem(&rose_chains, &key);
	if (!chain)
		return 0;
	if (chain->group) {
		__u32 at = chain->group;

		group = bpf_map_lookup_elem(&rose_groups, &at);
		if (group && ROSE_READ(group->value) && ROSE_READ(group->value) != key + 1)
			return 0;
	}
	if (is_over(chain, call))
		return 0;
	seen = __sync_fetch_and_add(&chain->seen, 1) + 1;
	/* Only one fault changes a call. Another fault that matches will change the next matching call. */
	if (seen < call->count || d->scratch->decision)
		return 0;
	if (ROSE_READ(chain->state) == ROSE_ARMED) {
		if (!fire(chain, key, d->now))
			return 0;
		d->scratch->fired = 1;
	}
	if (chain->kind == ROSE_CHAIN_SYSCALL)
		__sync_fetch_and_add(&chain->injected, 1);
	d->scratch->decision = index + 1;
	return 0;
}

struct locking {
	__u32 *lock;
	__u32 mine;
};

static long lock_step(__u32 i, struct locking *locking)
{
	locking->mine = ROSE_CAS(locking->lock, 0, 1) == 0;
	return locking->mine;
}

/* A call that is repeated after a signal was already counted when it was made first. Returns true if this call is such
 * a repetition, and removes its entry. */
static __always_inline bool take_restart(struct rose_settings *set, __u32 tid, __u32 number, __u64 ip)
{
	struct rose_restart *known;

	if (!ROSE_READ(set->restarts))
		return false;
	known = bpf_map_lookup_elem(&rose_restarts, &tid);
	if (!known || known->syscall != number || known->ip != ip)
		return false;
	forget_restart(set, tid);
	return true;
}

static __always_inline void put_restart(struct rose_settings *set, __u32 tid, struct rose_restart *restart)
{
	__sync_fetch_and_add(&set->restarts, 1);
	if (!bpf_map_update_elem(&rose_restarts, &tid, restart, BPF_NOEXIST))
		return;
	__sync_fetch_and_add(&set->restarts, -1);
	bpf_map_update_elem(&rose_restarts, &tid, restart, BPF_EXIST);
}

/* Has the call repeated because its arguments are not in memory. A path that the caller has never accessed itself may
 * not be in memory: the kernel fetches it only during the call, and this BPF program, which runs before that, cannot
 * wait for a page fault. So the call is repeated, and meanwhile rose reads the memory, which fetches the page. The
 * kernel restarts the call only if a signal is pending. So the program sends SIGSTOP and immediately SIGCONT, which
 * have no other effect. Returns 1 if the call is repeated. */
static __noinline int make_again(struct rose_settings *set, __u64 missing, __u32 tid, __u32 number, __u64 ip)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct rose_restart fresh = {.ip = ip, .syscall = number}, *known;
	__u64 now = bpf_ktime_get_ns();

	/* The handler 0 is the default action, and 1 ignores the signal. With any other value, the program has a
	 * handler that would notice the SIGCONT. */
	if ((unsigned long)BPF_CORE_READ(task, sighand, action[SIGCONT_ - 1].sa.sa_handler) > 1)
		return 0;
	known = bpf_map_lookup_elem(&rose_restarts, &tid);
	if (known && known->since_ns && known->ip == ip && known->syscall == number) {
		if (now - known->since_ns > MISSING_LIMIT_NS)
			return 0;
		if (now - known->rung_ns > MISSING_NOTICE_NS) {
			known->rung_ns = now;
			ring(tid, ROSE_PAGE_IN, missing);
		}
	} else {
		fresh.since_ns = fresh.rung_ns = now;
		put_restart(set, tid, &fresh);
		ring(tid, ROSE_PAGE_IN, missing);
	}
	if (bpf_send_signal_thread(SIGSTOP_))
		return 0;
	bpf_send_signal(SIGCONT_);
	return 1;
}

static __noinline int copy_text(struct rose_firing *firing, struct call_scratch *scratch, const struct text *text)
{
	__u32 at = text->at, length = text->length, to = firing->length;

	if (to >= ROSE_FIRING_BYTES / 2)
		return 0;
	/* If a path is too long, keep its end, which is more informative than its beginning. */
	if (length > ROSE_FIRING_BYTES / 2 - 1) {
		at += length - (ROSE_FIRING_BYTES / 2 - 1);
		length = ROSE_FIRING_BYTES / 2 - 1;
	}
	if (at >= ARENA)
		return 0;
	bpf_probe_read_kernel(&firing->text[to], length & 255, &scratch->bytes[at]);
	firing->length = to + length;
	return 0;
}

__noinline int rose_describe(struct call_scratch *scratch, __u32 chain, __u32 number)
{
	struct rose_firing *firing = bpf_map_lookup_elem(&rose_firings, &chain);
	__u32 to;

	if (!firing || !scratch)
		return 0;
	rose_read_paths(scratch);
	firing->syscall = number;
	firing->length = 0;
	rose_read_socket(scratch);
	if (scratch->path_count && !(scratch->bytes[scratch->paths[0].at & (PATH_ROOM - 1)] == 's' &&
				     (scratch->peer.length || scratch->local.length))) {
		firing->what = 1;
		copy_text(firing, scratch, &scratch->paths[0]);
		to = firing->length;
		if (scratch->path_count > 1 && to < ROSE_FIRING_BYTES / 2) {
			firing->text[to] = 0;
			firing->length = to + 1;
			copy_text(firing, scratch, &scratch->paths[1]);
		}
	} else if (scratch->peer.length) {
		firing->what = 2;
		copy_text(firing, scratch, &scratch->peer);
	} else if (scratch->local.length) {
		firing->what = 3;
		copy_text(firing, scratch, &scratch->local);
	}
	ROSE_WRITE(firing->ready, 1);
	return 0;
}

/* True if the current process is a child of rose between fork and execve. It does not belong to the node yet. */
static __always_inline bool is_launching(struct rose_settings *set)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct task_struct *parent;

	if (!(BPF_CORE_READ(task, flags) & PF_FORKNOEXEC))
		return false;
	parent = BPF_CORE_READ(task, real_parent);
	return (__u32)BPF_CORE_READ(parent, tgid) == set->own_pid &&
	       BPF_CORE_READ(parent, mm, exe_file, f_inode) == BPF_CORE_READ(task, mm, exe_file, f_inode);
}

/* Copies field by field. Copying the whole struct would lose the volatile, without which the compiler assumes that all
 * fields are zero. */
static __always_inline void copy_signature(struct call_scratch *scratch, __u32 number)
{
	const volatile struct rose_call_arguments *signature = &rose_signatures[number & (ROSE_SYSCALLS - 1)];

	scratch->signature.path = signature->path;
	scratch->signature.dirfd = signature->dirfd;
	scratch->signature.path2 = signature->path2;
	scratch->signature.dirfd2 = signature->dirfd2;
	scratch->signature.fd = signature->fd;
	scratch->signature.sockaddr = signature->sockaddr;
	scratch->signature.binds = signature->binds;
	scratch->signature.message = signature->message;
}

static __noinline long clear_call(struct call_scratch *scratch)
{
	scratch->path_count = 0;
	scratch->conditions = scratch->faults = scratch->stored = scratch->decision = scratch->fired = 0;
	scratch->have_paths = scratch->have_socket = scratch->have_process = scratch->unread = 0;
	scratch->peer.length = scratch->local.length = scratch->process.length = 0;
	return 0;
}

/* Reads the call's arguments and matches the call with conditions and faults. */
static __always_inline void read_call(struct deciding *d, struct pt_regs *regs, __u32 number, __u32 count)
{
	struct call_scratch *scratch = d->scratch;

	clear_call(scratch);
	for (int i = 0; i < 6; i++)
		scratch->arguments[i] = rose_argument(regs, i);
	if (number == NR_OPENAT2) {
		/* The flags of openat2 are in memory. They are compared like the flags of openat. */
		__u64 how = scratch->arguments[2];

		if (bpf_probe_read_user(&scratch->arguments[2], sizeof(__u64), (void *)how)) {
			scratch->unread = 1;
			scratch->missing = how;
		}
	}
	copy_signature(scratch, number);
	for (__u32 i = 0; i < ROSE_MAX_CALLS / 64; i++) {
		if (i * 64 >= count)
			break;
		scratch->matched[i] = 0;
	}
	bpf_loop(count, match_item, d, 0);
}

/* Removes the state of this thread's last call. */
static __always_inline void forget_last(struct deciding *d)
{
	/* The call is not repeated any more: its arguments have been read, or rose has given up reading them. */
	if (ROSE_READ(d->set->restarts)) {
		struct rose_restart *known = bpf_map_lookup_elem(&rose_restarts, &d->tid);

		if (known && known->since_ns)
			forget_restart(d->set, d->tid);
	}
	if (!d->scratch->conditions && ROSE_READ(d->set->pending)) {
		__u64 key = ROSE_PENDING_KEY(d->tid, 0);
		struct rose_pending *pending = bpf_map_lookup_elem(&rose_pending, &key);

		if (pending)
			forget_pending(d->set, d->tid, pending->count);
	}
}

/* Counts the call for the faults that match it, and selects the one that changes it. */
static __always_inline void decide(struct deciding *d, __u32 count)
{
	struct locking locking = {};
	struct rose_node_state *state;
	__u32 key = d->node;

	state = bpf_map_lookup_elem(&rose_nodes, &key);
	if (!state)
		return;
	/* The wait is short: the thread that holds the lock cannot be preempted, and needs only a few steps. */
	locking.lock = &state->counting;
	bpf_loop(LOCK_TRIES, lock_step, &locking, 0);
	if (!locking.mine)
		__sync_fetch_and_add(&d->set->contended, 1);
	d->now = bpf_ktime_get_ns();
	bpf_loop(count, armed_item, d, 0);
	bpf_loop(count, count_item, d, 0);
	if (locking.mine)
		ROSE_CAS(&state->counting, 1, 0);
}

static __always_inline void carry_out(struct pt_regs *ctx, struct deciding *d, __u32 number, __u64 ip)
{
	struct call_scratch *scratch = d->scratch;
	struct rose_chain *chain;
	struct rose_wanted_call *call;
	__u32 key = scratch->decision - 1;

	call = bpf_map_lookup_elem(&rose_calls, &key);
	if (!call)
		return;
	key = call->index;
	chain = bpf_map_lookup_elem(&rose_chains, &key);
	if (!chain)
		return;
	if (scratch->fired)
		rose_describe(scratch, call->index, number);
	if (call->action != ROSE_DO_NOTHING)
		rose_take_stack(call->index);
	if (call->action == ROSE_DO_ANSWER) {
		bpf_override_return(ctx, call->answer);
		ring_changed(call->index, d->tid, number, d->now);
	} else if (call->action == ROSE_DO_CRASH) {
		int hit = is_meant(chain);

		if (hit && !bpf_send_signal(call->signal)) {
			ROSE_WRITE(chain->signalled, bpf_get_current_pid_tgid() >> 32);
			if (chain->kind == ROSE_CHAIN_CRASH)
				__sync_fetch_and_add(&chain->injected, 1);
		}
		/* The signal is delivered before the call returns to the program. If the program handles the signal, it
		 * sees that the call has failed. */
		if (hit || !(call->flags & ROSE_SPARED_ANYWAY))
			bpf_override_return(ctx, -EINTR__);
	} else if (call->action == ROSE_DO_PAUSE && is_meant(chain)) {
		struct rose_restart restart = {.ip = ip, .syscall = number};

		/* The thread stops before it returns to the program. After the stop, it makes the same call again. */
		if (signal_current(chain, SIGSTOP_)) {
			put_restart(d->set, d->tid, &restart);
			bpf_override_return(ctx, -ERESTARTNOINTR_);
		}
	}
	if (scratch->fired)
		ring(call->index, 3, d->now);
}

SEC("kprobe")
int rose_call(struct pt_regs *ctx)
{
	struct pt_regs *regs = (void *)rose_entered_with(ctx);
	struct rose_settings *set = settings();
	struct deciding d = {};
	struct rose_site *list;
	struct call_scratch *scratch;
	__u32 key, number, count;
	__u64 ip;
	long node;

	if (!set)
		return 0;
	node = current_node(set);
	if (node < 0 || is_launching(set))
		return 0;
	number = rose_read_number(regs);
	if (number >= ROSE_SYSCALLS)	/* a call of the x32 table */
		return 0;
	d.node = node;
	key = d.node << 16 | number;
	list = bpf_map_lookup_elem(&rose_call_lists, &key);
	key = 0;
	scratch = bpf_map_lookup_elem(&rose_call_scratch, &key);
	if (!list || !scratch)
		return 0;
	d.tid = (__u32)bpf_get_current_pid_tgid();
	d.scratch = scratch;
	d.set = set;
	d.first = list->first;
	count = list->count;
	read_call(&d, regs, number, count);

	ip = rose_read_ip(regs);
	if (scratch->unread) {
		if (make_again(set, scratch->missing, d.tid, number, ip)) {
			bpf_override_return(ctx, -ERESTARTNOINTR_);
			return 0;
		}
		__sync_fetch_and_add(&set->unread, 1);
	}
	forget_last(&d);
	if (!scratch->conditions && !scratch->faults)
		return 0;
	if (scratch->conditions) {
		scratch->pending.syscall = number;
		bpf_loop(count, tag_item, &d, 0);
	}
	if (take_restart(set, d.tid, number, ip) || !scratch->faults)
		return 0;
	decide(&d, count);
	if (scratch->decision)
		carry_out(ctx, &d, number, ip);
	return 0;
}

#endif

#endif
