/* Storms of equal events: failures, changes, or starts and ends of processes. Events above a few per second are only
 * counted, so that a loop of failures costs one record per second and does not displace other events from the window.
 * Totals are always exact, because the count of an entry is reported before the entry is reused.
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_TRACER_STORMS_H
#define ROSE_TRACER_STORMS_H

#include "tracer/records.h"

_Static_assert(ROSE_RECORD_BYTES / 8 <= 0xfff, "key_of");

struct key_walk {
	struct scratch *s;
	__u64 key;
};
static long key_step(__u32 i, struct key_walk *walk)
{
	__u32 off = sizeof(struct rose_call) + i * 8;
	void *word;

	if (off > ROSE_RECORD_BYTES - 8)
		return 1;
	word = &walk->s->record[off];
	walk->key = (walk->key ^ *(__u64 *)word) * 0xff51afd7ed558ccdull;
	walk->key ^= walk->key >> 32;
	return 0;
}

/* The key of a call. Calls with the same node, call, error and parts have the same key, whatever their process, time
 * and descriptor are. */
static __always_inline __u64 key_of(struct scratch *s, __u32 size)
{
	struct rose_call *call = (void *)s->record;
	struct key_walk walk = {.s = s};

	walk.key = (__u64)call->head.node << 48 | (__u64)call->nr << 32 | (__u64)call->head.kind << 16;
	if (call->result < 0)
		walk.key |= -call->result & 0xffff;
	walk.key ^= (__u64)call->operation << 56 ^ (__u64)call->flags << 40 ^ call->open_flags;
	walk.key *= 0x9e3779b97f4a7c15ull;
	/* The count is masked, because clang leaves the upper half of the register undefined, and the verifier compares
	 * all of it. */
	rose_loop((size - sizeof(*call)) / 8 & 0xfff, 1024, key_step, &walk);
	return walk.key ? walk.key : 1;
}

/* True if the storm is still going on. It then keeps its entry. */
static __always_inline bool is_raging(const struct rose_storm *storm, __u64 now)
{
	return storm->seen > ROSE_STORM_FEW && now - storm->last_ns < ROSE_STORM_NS;
}

static __noinline bool report_counted(struct rose_storm *storm)
{
	struct rose_counted counted = {};

	counted.head.size = sizeof(counted);
	counted.head.kind = ROSE_COUNTED;
	counted.head.node = storm->node;
	counted.head.ts_ns = storm->last_ns;
	counted.head.tgid = storm->tgid;
	counted.head.tid = storm->tid;
	counted.mark.key = storm->key;
	counted.mark.first_ns = storm->first_ns;
	counted.mark.count = storm->pending;
	return send(&counted, sizeof(counted), false);
}

/* Sends the record that has been built, or counts it. Returns false if it is lost. Not static, so that the verifier
 * checks it once per program, instead of once for each state in which it is called. The same reason applies to the
 * other functions that are not static. */
ROSE_ONCE bool emit_keyed(struct scratch *s, __u32 node, __u64 key, bool vital)
{
	struct rose_storm *storm, *other;
	struct rose_storm_mark *mark;
	__u32 size, first, second;
	struct rose_head *head;
	bool reports;
	__u64 now;

	if (!s)
		return false;
	head = (void *)s->record;
	now = head->ts_ns;
	size = s->size;
	if (size > ROSE_RECORD_BYTES)
		size = ROSE_RECORD_BYTES;
	first = bpf_get_smp_processor_id() * rose_storm_slots;
	second = first + ((key >> 32) & (rose_storm_slots - 1));
	first += key & (rose_storm_slots - 1);
	storm = bpf_map_lookup_elem(&rose_storms, &first);
	other = bpf_map_lookup_elem(&rose_storms, &second);
	if (!storm || !other)
		goto plain;
	if (storm->key != key && (other->key == key || is_raging(storm, now)))
		storm = other;
	if (!rose_try(&storm->busy))
		goto plain;
	if (storm->key != key) {
		if (is_raging(storm, now) || (storm->pending && !report_counted(storm)))
			goto leave;
		storm->key = key;
		storm->begin_ns = now;
		storm->seen = 0;
		storm->pending = 0;
		storm->reported = 0;
	}
	reports = false;
	if (now - storm->begin_ns >= ROSE_STORM_NS) {
		/* A storm that continues is reported once per second. Otherwise, the count of the second begins anew.
		 */
		storm->seen = is_raging(storm, now) ? ROSE_STORM_FEW : 0;
		storm->begin_ns = now;
		reports = storm->pending;
	}
	storm->last_ns = now;
	storm->seen++;
	if (storm->seen <= ROSE_STORM_FEW && !storm->pending)
		goto leave;
	if (!storm->pending)
		storm->first_ns = now;
	if (!storm->reported || reports) {
		if (size > ROSE_RECORD_LIMIT - sizeof(struct rose_piece))
			/* the mark does not fit, so such a record is sent each time instead of being counted */
			goto leave;
		mark = (void *)&s->record[size + sizeof(struct rose_piece)];
		mark->key = key;
		mark->first_ns = storm->first_ns;
		mark->count = storm->pending + 1;
		mark->pad = 0;
		put_head(s, size, ROSE_STORM, 0, sizeof(*mark));
		head->size = size + sizeof(struct rose_piece) + sizeof(*mark);
		if (send(s->record, size + sizeof(struct rose_piece) + sizeof(*mark), vital)) {
			storm->reported = 1;
			storm->pending = 0;
			rose_leave(&storm->busy);
			return true;
		}
		head->size = size;
		if (!storm->reported)
			goto leave;
	}
	storm->pending++;
	storm->node = node;
	storm->tgid = head->tgid;
	storm->tid = head->tid;
	rose_leave(&storm->busy);
	return true;

leave:
	rose_leave(&storm->busy);
plain:
	return emit(node, s->record, size, vital);
}

static __always_inline void emit_call(struct scratch *s, __u32 node)
{
	struct rose_call *call = (void *)s->record;
	__u32 size = s->size;

	if (size > ROSE_RECORD_BYTES)
		size = ROSE_RECORD_BYTES;
	call->head.size = size;
	if (size >= sizeof(*call))
		emit_keyed(s, node, key_of(s, size), false);
}

/* Sends a record of a process. Starts and ends of main processes are always reported. Helpers, of which there may be
 * thousands per second, are treated like calls. Returns false if the record is lost. */
ROSE_ONCE bool emit_process(struct rose_process *process, bool vital)
{
	struct scratch *s;
	__u32 node;
	__u64 key;
	bool sent;

	if (!process)
		return false;
	node = process->head.node;
	if (process->flags & ROSE_MAIN)
		return emit(node, process, sizeof(*process), vital);
	s = take_scratch(node);
	if (!s)
		return false;
	__builtin_memcpy(s->record, process, sizeof(*process));
	s->size = sizeof(*process);
	key = (__u64)node << 48 | (__u64)ROSE_PROCESS << 40 | (__u64)process->state << 32 | (__u64)process->signal << 24 |
	      (__u64)process->flags << 16 | (process->exit_code & 0xffff);
	key = (key ^ key >> 32) * 0x9e3779b97f4a7c15ull;
	sent = emit_keyed(s, node, key ? key : 1, vital);
	give_back(s);
	return sent;
}

#endif
