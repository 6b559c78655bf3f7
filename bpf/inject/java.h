/* Java methods. The agent in the JVM (src/jvm/agent) calls rose_jvm_visit(entries, count, signal) whenever a thread
 * reaches a location of the schedule. `entries` are conditions, roles, blocks and exceptions. To have the nth exception
 * of the location thrown, the BPF program sends the signal `signal` to the thread n times. The agent receives these
 * signals before it leaves the function.
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_INJECT_JAVA_H
#define ROSE_INJECT_JAVA_H

/* Sized to the schedule before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rose_throw);
} rose_throws SEC(".maps");

#ifndef ROSE_OLD
struct java_visit {
	struct visit visit;
	__u64 entries;
	__u32 throws;		/* exceptions of this location that were visited so far */
	__u32 ordered;		/* which of them is to be thrown, counted from 1; 0: none */
};
#endif

static __always_inline int visit_throw(struct java_visit *java, __u32 index)
{
	struct rose_throw *thrown = bpf_map_lookup_elem(&rose_throws, &index);
	__u64 now, seen;
	struct rose_chain *chain;
	__u32 key, state;

	now = java->visit.now;
	java->throws++;
	/* At most one exception is thrown each time the method is entered. If one is ordered already, the exception of
	 * another fault is thrown when the method is entered again. */
	if (!thrown || java->ordered)
		return 0;
	key = thrown->chain;
	chain = bpf_map_lookup_elem(&rose_chains, &key);
	if (!chain || rose_chain_node(chain) != java->visit.node + 1)
		return 0;
	state = ROSE_READ(chain->state);
	if (state == ROSE_WAITING || state == ROSE_WITHDRAWN)
		return 0;
	/* The visit that armed or opened the chain does not count. */
	if (ROSE_READ(chain->armed_ns) == now || ROSE_READ(chain->opened_ns) == now)
		return 0;
	seen = ROSE_ADD(&chain->seen, 1) + 1;
	if (seen < thrown->count || (thrown->times >= 0 && seen >= thrown->count + thrown->times))
		return 0;
	if (seen == thrown->count) {
		if (!fire(chain, thrown->chain, now)) {
			ring(thrown->chain, 1, now);
			return 0;
		}
		ring(thrown->chain, 3, now);
	} else if (chain->group && ROSE_READ(chain->state) != ROSE_FIRED) {
		/* Another fault of the group may be firing at this moment. */
		return 0;
	}
	__sync_fetch_and_add(&chain->injected, 1);
	note_hit(&java->visit, thrown->chain);
	java->ordered = java->throws;
	return 0;
}

#ifdef ROSE_OLD
__noinline int rose_visit_throw_at(__u32 index)
{
	struct java_visit *java = room();

	return java ? visit_throw(java, index) : 0;
}
#define rose_visit_throw(java, index) rose_visit_throw_at(index)
#else
/* Not static, so that the verifier checks it once instead of along each path through its callers. */
__noinline int rose_visit_throw(struct java_visit *java, __u32 index)
{
	return java ? visit_throw(java, index) : 0;
}
#endif

static long visit_entry(__u32 i, struct java_visit *java)
{
	__u32 id;

	if (bpf_probe_read_user(&id, sizeof(id), (void *)(java->entries + sizeof(id) * i))) {
		struct rose_settings *set = settings();

		if (set)
			__sync_fetch_and_add(&set->unread, 1);
		return 1;
	}
	if (!(id & ROSE_SITE_ROLE) && id & ROSE_SITE_THROW)
		rose_visit_throw(java, id & ~ROSE_SITE_THROW);
	else
		visit_listed(&java->visit, id);
	return 0;
}

#ifdef ROSE_OLD
__noinline int rose_visit_entry(__u32 i, __u32 count)
{
	struct java_visit *java = room();

	return !java || i >= count || visit_entry(i, java);
}
#endif

SEC("uprobe")
int rose_java(void *ctx)
{
	struct rose_settings *set = settings();
	struct pt_regs *regs = ctx;
#ifdef ROSE_OLD
	struct java_visit *java = clear_room();
#else
	struct java_visit here = {}, *java = &here;
#endif
	__u32 count, number;
	int locked;
	long node;

	if (!set || !java)
		return 0;
	node = current_node(set);
	if (node < 0)
		return 0;
	java->entries = rose_parameter(regs, 0);
	count = rose_parameter(regs, 1);
	number = rose_parameter(regs, 2);
	if (count > ROSE_MAX_LIST)
		count = ROSE_MAX_LIST;
	java->visit.tid = (__u32)bpf_get_current_pid_tgid();
	java->visit.node = node;
	java->visit.now = bpf_ktime_get_ns();
	locked = rose_lock(set);
	visit_all(count, visit_entry, java);
	rose_unlock(set, locked);
	if (java->visit.roles)
		ring(0, 4, java->visit.now);
	for (__u32 i = 0; i < ROSE_MAX_THROWS; i++) {
		if (i >= java->ordered)
			break;
		bpf_send_signal_thread(number);
	}
	take_stacks(&java->visit);
	return 0;
}

#endif
