/* Functions of the application. Records each entry of infrequent functions, or counts entries for a profile.
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_TRACER_FUNCTIONS_H
#define ROSE_TRACER_FUNCTIONS_H

#include "tracer/records.h"

/* Counts an entry. A probe belongs to the file, so it slows every process that executes the file. Therefore, entries of
 * processes that belong to no node are counted, too. Returns the node, or -1. */
static __always_inline __s32 count_entry(__u32 function)
{
	__s32 node = node_of_current(bpf_get_current_pid_tgid() >> 32, NULL);
	__u32 key = function * (rose_node_count + 1) + (node < 0 ? rose_node_count : (__u32)node);
	__u64 *count = bpf_map_lookup_elem(&rose_entries, &key);

	if (count)
		__sync_fetch_and_add(count, 1);
	return node;
}

SEC("uprobe")
int rose_function(void *ctx)
{
	__u64 cookie = rose_cookie(ctx);
	__s32 node = count_entry((__u32)cookie);
	struct rose_entered record = {};

	if (node < 0)
		return 0;
	fill_head(&record.head, ROSE_ENTERED, sizeof(record), node);
	record.function = (__u32)cookie;
	record.link = cookie >> 32;
	emit(node, &record, sizeof(record), false);
	return 0;
}

/* Functions of Java, Python and JavaScript: the agent in the process (src/jvm, src/python, src/javascript) calls
 * rose_jvm_enter(name, let_go). `let_go` is not 0 if the agent does not report the next entries of the function. */
SEC("uprobe")
int rose_method(void *ctx)
{
	struct pt_regs *regs = ctx;
	struct rose_entered *record;
	struct scratch *s;
	__u32 size;
	__s32 node = node_of_current(bpf_get_current_pid_tgid() >> 32, NULL);

	if (node < 0)
		return 0;
	s = take_scratch(node);
	if (!s)
		return 0;
	record = (void *)s->record;
	fill_head(&record->head, ROSE_ENTERED, 0, node);
	record->function = ROSE_NAMED;
	record->link = rose_parameter(regs, 1) != 0;
	s->size = sizeof(*record);
	put_user_path(s, rose_parameter(regs, 0), ROSE_NAME);
	size = s->size;
	if (size > ROSE_RECORD_BYTES)
		size = ROSE_RECORD_BYTES;
	record->head.size = size;
	if (size >= sizeof(*record))
		emit(node, record, size, false);
	give_back(s);
	return 0;
}

SEC("uprobe")
int rose_function_count(void *ctx)
{
	count_entry((__u32)rose_cookie(ctx));
	return 0;
}

#endif
