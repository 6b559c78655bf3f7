/* Creation and removal of target cgroups. A unit or container that is restarted has a cgroup with the same path and
 * another id. The programs enter this id into the maps before the cgroup's folder becomes visible, so that its first
 * process is traced from its first instruction.
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_TRACER_CGROUPS_H
#define ROSE_TRACER_CGROUPS_H

#include "tracer/processes.h"

static __always_inline void report_cgroup(__u32 node, __u64 id, __u32 place, bool gone)
{
	struct rose_cgroup record = {.id = id, .place = place, .gone = gone};

	fill_head(&record.head, ROSE_CGROUP, sizeof(record), node);
	/* The record is not an event and is not counted as one. User space needs it to trace the packets of a new
	 * cgroup. So if the ring is full, rose_missed makes user space check all cgroups. */
	if (bpf_ringbuf_output(&rose_ring, &record, sizeof(record), BPF_RB_FORCE_WAKEUP))
		__sync_fetch_and_add(&rose_missed.cgroups, 1);
}

SEC("tp_btf/cgroup_mkdir")
int BPF_PROG(rose_cgroup_mkdir, struct cgroup *cgroup, const char *path)
{
	struct rose_place *place;
	struct scratch *s;
	__u64 id;

	if (BPF_CORE_READ(cgroup, root, hierarchy_id) != 0)
		return 0;
	s = take_scratch(0);
	if (!s)
		return 0;
	for (__u32 i = 0; i < ROSE_CGROUP_PATH; i += sizeof(__u64))
		*(__u64 *)&s->record[i] = 0;
	bpf_probe_read_kernel_str(s->record, ROSE_CGROUP_PATH, path);
#ifdef ROSE_OLD
	struct rose_place_sums sums = rose_sums_of((const rose_u64 *)s->record);

	place = bpf_map_lookup_elem(&rose_places, &sums);
#else
	place = bpf_map_lookup_elem(&rose_places, s->record);
#endif
	give_back(s);
	if (!place)
		return 0;
	id = BPF_CORE_READ(cgroup, kn, id);
	bpf_map_update_elem(&rose_freezable, &id, &place->node, BPF_ANY);
	if (bpf_map_update_elem(&rose_cgroups, &id, &place->node, BPF_ANY)) {
		struct rose_stats *stats = stats_of(place->node);

		if (stats)
			__sync_fetch_and_add(&stats->lost, 1);
	}
	report_cgroup(place->node, id, place->place, false);
	return 0;
}

/* Only empty cgroups are removed, so the processes need no handling here. */
SEC("tp_btf/cgroup_rmdir")
int BPF_PROG(rose_cgroup_rmdir, struct cgroup *cgroup, const char *path)
{
	__u32 *node, owner;
	__u64 id;

	if (BPF_CORE_READ(cgroup, root, hierarchy_id) != 0)
		return 0;
	id = BPF_CORE_READ(cgroup, kn, id);
	node = bpf_map_lookup_elem(&rose_freezable, &id);
	if (!node)
		return 0;
	owner = *node;
	end_pause(id | ROSE_FROZEN, bpf_ktime_get_ns());
	bpf_map_delete_elem(&rose_freezable, &id);
	bpf_map_delete_elem(&rose_cgroups, &id);
	report_cgroup(owner, id, 0, true);
	return 0;
}

#endif
