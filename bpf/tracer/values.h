/* Records requested values at code locations, from registers and memory, as rose_fetches describes them. Changes
 * nothing in the program.
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_TRACER_VALUES_H
#define ROSE_TRACER_VALUES_H

#include "tracer/maps.h"

/* Follows a chain. Returns false if an address that it reads is not in memory. */
static __always_inline bool follow_chain(const struct pt_regs *regs, const struct rose_chain *chain, __u64 *out)
{
	__u64 at = rose_register(regs, chain->base) + chain->offsets[0];

	for (int i = 1; i < ROSE_CHAIN_STEPS; i++) {
		if (i > chain->reads)
			break;
		if (bpf_probe_read_user(&at, sizeof(at), (void *)at))
			return false;
		at += chain->offsets[i];
	}
	*out = at;
	return true;
}

static __noinline int fetch_value(const struct pt_regs *regs, const struct rose_fetch *fetch, struct rose_value *value)
{
	__u64 at, length = 0;
	long n;

	if (!follow_chain(regs, &fetch->at, &at))
		return ROSE_UNREADABLE;
	switch (fetch->kind) {
	case ROSE_FETCH_WORD:
		value->word = at;
		return 0;
	case ROSE_FETCH_MEMORY:
		switch (fetch->size) {
		case 1: return bpf_probe_read_user(&value->word, 1, (void *)at) ? ROSE_UNREADABLE : 0;
		case 2: return bpf_probe_read_user(&value->word, 2, (void *)at) ? ROSE_UNREADABLE : 0;
		case 4: return bpf_probe_read_user(&value->word, 4, (void *)at) ? ROSE_UNREADABLE : 0;
		case 8: return bpf_probe_read_user(&value->word, 8, (void *)at) ? ROSE_UNREADABLE : 0;
		}
		return ROSE_UNREADABLE;
	case ROSE_FETCH_CODE:
		if (!rose_code_at(at, &value->word))
			return ROSE_UNREADABLE;
		value->word -= rose_read_ip(regs);
		return 0;
	case ROSE_FETCH_TEXT:
		if (!at)
			return ROSE_NULL;
		n = bpf_probe_read_user_str(value->text, ROSE_TEXT_BYTES, (void *)at);
		if (n <= 0)
			return ROSE_UNREADABLE;
		value->length = n - 1;
		value->word = n; /* one more than `length`: the text may have been truncated */
		if (n < ROSE_TEXT_BYTES)
			value->word = n - 1;
		return 0;
	case ROSE_FETCH_COUNTED:
		if (!follow_chain(regs, &fetch->length, &length))
			return ROSE_UNREADABLE;
		value->word = length;
		if (length > ROSE_TEXT_BYTES)
			length = ROSE_TEXT_BYTES;
		length = rose_unknown(length);
		if (length == 0)
			return 0;
		if (length > ROSE_TEXT_BYTES || bpf_probe_read_user(value->text, length, (void *)at))
			return ROSE_UNREADABLE;
		value->length = length;
		return 0;
	}
	return ROSE_UNREADABLE;
}

struct fetching {
	struct pt_regs *regs;
	__u64 ts_ns;
	__u32 first, count;
	__s32 node;
	__u32 pad;
};
static __always_inline int fetch_at(struct pt_regs *regs, __u32 key, __u32 node, __u64 ts_ns)
{
	struct rose_fetch *how = bpf_map_lookup_elem(&rose_fetches, &key);
	struct rose_value value = {};

	if (!how)
		return 1;
	fill_head(&value.head, ROSE_VALUE, sizeof(value), node);
	value.head.ts_ns = ts_ns; /* all values read at one location have the same time */
	value.fetch = key;
	value.failed = fetch_value(regs, how, &value);
	emit(node, &value, sizeof(value), false);
	return 0;
}

#ifdef ROSE_OLD
/* Old verifiers check a function only once if its arguments are numbers. */
__noinline int rose_fetch_at(__u32 key, __u32 node, __u64 ts_ns)
{
	return fetch_at(rose_task_regs(rose_current_btf()), key, node, ts_ns);
}
#define fetch_at(regs, key, node, ts_ns) rose_fetch_at(key, node, ts_ns)
#endif

static long fetch_step(__u32 i, struct fetching *f)
{
	if (i >= f->count)
		return 1;
	return fetch_at(f->regs, f->first + i, f->node, f->ts_ns);
}

SEC("uprobe")
int rose_value(struct pt_regs *ctx)
{
	__u64 cookie = rose_cookie(ctx);
	__s32 node = node_of_current(bpf_get_current_pid_tgid() >> 32, NULL);
	__u32 key = (cookie & 0xffff) * (rose_node_count + 1) + (node < 0 ? rose_node_count : (__u32)node);
	struct fetching f = {.regs = ctx, .first = (cookie >> 16) & 0xffff, .count = cookie >> 32, .node = node};
	__u64 *comings = bpf_map_lookup_elem(&rose_comings, &key);

	if (comings)
		__sync_fetch_and_add(comings, 1);
	if (node < 0)
		return 0;
	f.ts_ns = bpf_ktime_get_ns();
	rose_loop(ROSE_FETCHES_AT_ONCE, ROSE_FETCHES_AT_ONCE, fetch_step, &f);
	return 0;
}

/* A value that the agent in a JVM has read (src/jvm/agent): rose_jvm_value(value, place), where `value` is a struct
 * rose_value from its fetch on. */
SEC("uprobe")
int rose_java_value(struct pt_regs *ctx)
{
	__s32 node = node_of_current(bpf_get_current_pid_tgid() >> 32, NULL);
	struct rose_value value = {};
	__u64 *comings;
	__u32 key;

	if (node < 0)
		return 0;
	if (bpf_probe_read_user(&value.fetch, sizeof(value) - sizeof(value.head), (void *)rose_parameter(ctx, 0)))
		return 0;
	key = (rose_parameter(ctx, 1) & 0xffff) * (rose_node_count + 1) + (__u32)node;
	comings = bpf_map_lookup_elem(&rose_comings, &key);
	if (comings)
		__sync_fetch_and_add(comings, 1);
	fill_head(&value.head, ROSE_VALUE, sizeof(value), node);
	emit(node, &value, sizeof(value), false);
	return 0;
}

#endif
