/* Functions of the application: each entry of a rare one, or (profile) how often each is entered.
 *
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_TRACER_FUNCTIONS_H
#define ROSE_TRACER_FUNCTIONS_H

#include "tracer/maps.h"

SEC("uprobe")
int rose_function(void *ctx)
{
	__s32 node = node_of_current(bpf_get_current_pid_tgid() >> 32, NULL);
	struct rose_entered record = {};
	__u64 cookie;

	if (node < 0)
		return 0;
	fill_head(&record.head, ROSE_ENTERED, sizeof(record), node);
	cookie = bpf_get_attach_cookie(ctx);
	record.function = (__u32)cookie;
	record.link = cookie >> 32;
	emit(node, &record, sizeof(record));
	return 0;
}

SEC("uprobe")
int rose_function_count(void *ctx)
{
	__s32 node = node_of_current(bpf_get_current_pid_tgid() >> 32, NULL);
	__u64 *count;
	__u32 key;

	if (node < 0)
		return 0;
	key = (__u32)bpf_get_attach_cookie(ctx) * rose_node_count + node;
	count = bpf_map_lookup_elem(&rose_entries, &key);
	if (count)
		__sync_fetch_and_add(count, 1);
	return 0;
}

#endif
