/* What the tracer's programs share: constants that user space sets before loading, maps, the ring, and functions that
 * determine the node of a task and send records.
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_TRACER_MAPS_H
#define ROSE_TRACER_MAPS_H

#include "rose_core.h"

#include "tracer.h"

/* ---- set before loading ---- */
ROSE_FIXED __u64 rose_changing[ROSE_SYSCALLS / 64] = {}; /* calls whose success can be an event */
ROSE_FIXED __u8 rose_classes[ROSE_SYSCALLS] = {}; /* rose_call_class */
ROSE_FIXED struct rose_call_signature rose_signatures[ROSE_SYSCALLS] = {};
ROSE_FIXED __u64 rose_noise[ROSE_SYSCALLS * ROSE_NOISE_WORDS] = {}; /* expected failures */
ROSE_FIXED __u32 rose_levels[ROSE_MOST_LEVELS] = {}; /* depths of the target cgroups, deepest first */
ROSE_FIXED __u32 rose_level_count = 0;
ROSE_FIXED __u32 rose_node_count = 0;
ROSE_FIXED __u64 rose_pause_ns = 0;
ROSE_FIXED __u64 rose_wakeup_bytes = 0; /* the reader is woken when this many bytes are waiting */
ROSE_FIXED __u64 rose_ring_limit = 0; /* if more bytes are waiting, only records that must not be missed are sent */
ROSE_FIXED struct rose_network_settings rose_network = {};
ROSE_FIXED __u32 rose_victim_task = 0; /* not 0: mark_victim passes the task instead of its id (since Linux 6.9) */
ROSE_FIXED __u32 rose_uring_form = 0; /* the form of the tracepoint's arguments, of enum rose_uring_form */

ROSE_FIXED __u32 rose_storm_slots = 0; /* number of entries per CPU, a power of two */

/* ---- maps ---- */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} rose_ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, __u32);
} rose_procs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, __u32);
} rose_cgroups SEC(".maps");

/* Cgroups that pause a node when they are frozen. The key is the id. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, __u32);
} rose_freezable SEC(".maps");

/* Target cgroups by path, because the cgroup of a restarted unit has another id. */
struct rose_cgroup_path {
	char text[ROSE_CGROUP_PATH];
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1024);
#ifdef ROSE_OLD
	__type(key, struct rose_place_sums);
#else
	__type(key, struct rose_cgroup_path);
#endif
	__type(value, struct rose_place);
} rose_places SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 8192);
	__type(key, __u64);
	__type(value, struct rose_pause);
} rose_paused SEC(".maps");

/* Actions of the OOM killer on processes of nodes. With a thread's id as the key, the value is the process to which the
 * kernel itself sent SIGKILL. An element with the key ROSE_MARKED | process exists if the reason was lack of
 * memory. */
#define ROSE_MARKED (1ull << 32)
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 512);
	__type(key, __u64);
	__type(value, __u32);
} rose_doomed SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct rose_signalled);
} rose_signalled SEC(".maps");

/* rose_began: processes whose start was reported. rose_ended: processes whose end was reported. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct rose_identity);
	__type(value, __u8);
} rose_began SEC(".maps"), rose_ended SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rose_node);
} rose_nodes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rose_stats);
} rose_stats SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} rose_calls SEC(".maps");

/* Numbers of entries, at [function * (nodes + 1) + node]. The last element of each function is for processes that
 * belong to no node, because a watched function slows them as well. User space maps this array, because it reads the
 * array many times per second. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} rose_entries SEC(".maps");

/* Requested values (rose_fetches), and how often each of their locations was reached (rose_comings, at [place * (nodes
 * + 1) + node]). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rose_fetch);
} rose_fetches SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} rose_comings SEC(".maps");

/* rose_node_addrs: the nodes' addresses; messages to and from them are recorded. rose_gates: by node, the counters that
 * limit the recorded messages. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct in6_addr);
	__type(value, __u8);
} rose_node_addrs SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rose_transfer_gate);
} rose_gates SEC(".maps");

/* Numbers of expected failures. The key is call << 16 | errno. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u64);
} rose_quiet SEC(".maps");

struct scratch {
	__u64 busy;
	__u32 size;
	__u32 pad;
	__u8 record[ROSE_RECORD_BYTES];
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ROSE_SCRATCHES);
	__type(key, __u32);
	__type(value, struct scratch);
} rose_scratch SEC(".maps");

/* Entries for storms: each CPU has a table of rose_storm_slots entries. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rose_storm);
} rose_storms SEC(".maps");

/* Pairs with enough packets that their silence can be reported are in rose_pairs. Other pairs are in rose_fresh, so
 * that many rare pairs cannot evict a pair that is in use. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct rose_pair);
	__type(value, struct rose_pair_state);
} rose_pairs SEC(".maps"), rose_fresh SEC(".maps");

/* Connections that are open. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct rose_connection);
	__type(value, struct rose_connection_state);
} rose_conns SEC(".maps");

/* Connections that this side closed after they had been quiet. The key is the socket. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, struct rose_closing);
} rose_closing SEC(".maps");

/* Connections that have just ended, so that late packets do not reopen them. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct rose_connection);
	__type(value, __u8);
} rose_over SEC(".maps");

struct rose_network_counts rose_network_counts SEC(".bss");
struct rose_missed rose_missed SEC(".bss");
__u64 rose_streams[ROSE_STREAMS] SEC(".bss");
/* Opens that only read a file are recorded if the file was changed at this time or later, in s since the epoch. 0: such
 * opens are not recorded. */
__s64 rose_reads_since SEC(".bss");

/* The node + 1 of the process that created a socket. An accepted socket inherits it from the listening socket. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, __u32);
} rose_sockets SEC(".maps");

/* The sockets that existed before tracing began, by the lower half of their address, until their first packet. An
 * iterator finds them. It cannot write to rose_sockets itself: recent verifiers (Linux 6.18.44) do not trust the
 * pointers that it reads, and old kernels do not allow the helper there. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct rose_found_socket);
} rose_found SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 256);
	__type(key, struct rose_hosts);
	__type(value, struct rose_handshakes);
} rose_handshakes SEC(".maps");

/* Handshakes whose SYN arrived and whose ACK has not arrived yet. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct rose_connection);
	__type(value, struct rose_syn);
} rose_syns SEC(".maps");

/* Addresses and ports that accept connections, learnt from handshakes. They are needed if both ports of a connection
 * could be a client's. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct rose_service);
	__type(value, __u8);
} rose_services SEC(".maps");

/* When whole interfaces are traced: the node of each local address. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct in6_addr);
	__type(value, __u32);
} rose_addresses SEC(".maps");

struct cgroup_storage_key {
	__u64 cgroup;
	__u32 attach_type;
	__u32 pad;
};
/* For each cgroup to which a packet program is attached: ROSE_ATTACHED_NODE and flags. */
struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_STORAGE);
	/* Has sizes instead of types: for this kind of map, the kernel accepts types only if the key has exactly two
	 * members, and `pad` is a third one. */
	__uint(key_size, sizeof(struct cgroup_storage_key));
	__uint(value_size, sizeof(__u64));
} rose_attached SEC(".maps");

/* ---- nodes, counters, the ring ---- */

static __always_inline __s32 node_of_cgroup(struct cgroup *cgroup);

/* The node that a value of rose_procs names, or -1 for a process that belongs to no node, such as a helper of rose. */
static __always_inline __s32 node_of_value(__u32 value)
{
	__u32 node = value & ROSE_PROC_NODE;

	return node == ROSE_PROC_NODE ? -1 : (__s32)node;
}

/* The node that the current task belongs to, or -1. */
static __always_inline __s32 node_of_current(__u32 tgid, bool *is_main)
{
	__u32 *value = bpf_map_lookup_elem(&rose_procs, &tgid);

	if (value) {
		if (is_main)
			*is_main = *value & ROSE_PROC_MAIN;
		return node_of_value(*value);
	}
#ifdef ROSE_OLD /* tracing programs cannot call the helper before Linux 5.16 (commit 95b861a7935b) */
	return node_of_cgroup(BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), cgroups, dfl_cgrp));
#else
	for (__u32 i = 0; i < ROSE_MOST_LEVELS; i++) {
		if (i >= rose_level_count)
			break;
		__u64 id = bpf_get_current_ancestor_cgroup_id(rose_levels[i]);

		if (id && (value = bpf_map_lookup_elem(&rose_cgroups, &id)))
			return *value;
	}
	return -1;
#endif
}

/* True if the task is a container's runtime. A runtime runs inside the container's cgroup at each start and exec, until
 * it executes the program. Its processes have names such as "runc:[1:CHILD]", "runc:[2:INIT]", "youki:[2:INIT]" and
 * "crun". Their failures are not failures of the program. */
static __always_inline bool is_container_setup(struct task_struct *task)
{
	char name[16] = {};

	BPF_CORE_READ_INTO(&name, task, group_leader, comm);
	return !__builtin_memcmp(name, "runc:[", 6) || !__builtin_memcmp(name, "youki:[", 7) ||
	       !__builtin_memcmp(name, "crun", 5);
}

/* The node whose cgroup is this one or contains it, or -1. */
static __always_inline __s32 node_of_cgroup(struct cgroup *cgroup)
{
	for (__u32 i = 0; i < ROSE_MOST_LEVELS; i++) {
		__u32 *value;
		__u64 id;

		if (i >= rose_level_count)
			break;
		id = rose_ancestor_id(cgroup, rose_levels[i]);
		if (id && (value = bpf_map_lookup_elem(&rose_cgroups, &id)))
			return *value;
	}
	return -1;
}

/* The node of a task, or -1. The task need not be the current one. */
static __always_inline __s32 node_of_task(struct task_struct *task, __u32 tgid, bool *is_main)
{
	__u32 *value = bpf_map_lookup_elem(&rose_procs, &tgid);

	if (value) {
		*is_main = *value & ROSE_PROC_MAIN;
		return node_of_value(*value);
	}
	return node_of_cgroup(BPF_CORE_READ(task, cgroups, dfl_cgrp));
}

static __always_inline struct rose_stats *stats_of(__u32 node)
{
	return bpf_map_lookup_elem(&rose_stats, &node);
}

/* Sends a record. Returns false if the ring is full. `vital` records may use the space that is reserved for them. */
static __always_inline bool send(void *record, __u64 size, bool vital)
{
	__u64 waiting = bpf_ringbuf_query(&rose_ring, BPF_RB_AVAIL_DATA);

	if (!vital && waiting > rose_ring_limit)
		return false;
	/* The reader polls periodically, so it is woken only if many bytes are waiting. */
	return bpf_ringbuf_output(&rose_ring, record, size,
				  waiting >= rose_wakeup_bytes ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP) == 0;
}

static __always_inline bool emit(__u32 node, void *record, __u64 size, bool vital)
{
	struct rose_stats *stats = stats_of(node);
	bool sent = send(record, size, vital);

	if (!stats)
		return sent;
	if (sent)
		__sync_fetch_and_add(&stats->recorded, 1);
	else
		__sync_fetch_and_add(&stats->lost, 1);
	return sent;
}

static __always_inline void fill_head(struct rose_head *head, __u16 kind, __u32 size, __u32 node)
{
	__u64 both = bpf_get_current_pid_tgid();

	head->size = size;
	head->kind = kind;
	head->node = node;
	head->ts_ns = bpf_ktime_get_ns();
	head->tgid = both >> 32;
	head->tid = (__u32)both;
}

#endif
