/* Processes: who belongs to a node, how they begin, stop, go on and end.
 *
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_TRACER_PROCESSES_H
#define ROSE_TRACER_PROCESSES_H

#include "tracer/records.h"

static __always_inline __u8 process_flags(__u32 node, __u32 tgid, bool is_main)
{
	struct rose_node *state = bpf_map_lookup_elem(&rose_nodes, &node);
	__u8 flags = is_main ? ROSE_MAIN : 0;

	if (!state)
		return flags;
	if (state->main_tgid == tgid)
		flags |= ROSE_MAIN;
	if (state->planned)
		flags |= ROSE_PLANNED;
	return flags;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(rose_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 from = parent->tgid, to = child->tgid;
	__u32 *value, node;

	if (from == to)
		return 0;
	value = bpf_map_lookup_elem(&rose_procs, &from);
	if (!value)
		return 0;
	node = *value & ROSE_PROC_NODE;
	if (bpf_map_update_elem(&rose_procs, &to, &node, BPF_ANY)) {
		struct rose_stats *stats = stats_of(node);

		if (stats)
			__sync_fetch_and_add(&stats->lost, 1);
	}
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(rose_exec, struct task_struct *task, pid_t old_pid, struct linux_binprm *bprm)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct rose_process process = {};
	struct rose_call *call;
	struct pt_regs *regs;
	struct scratch *s;
	bool is_main = false;
	__s32 node = node_of_current(tgid, &is_main);
	__u32 off, size;
	long n;

	if (node < 0)
		return 0;
	fill_head(&process.head, ROSE_PROCESS, sizeof(process), node);
	process.state = ROSE_STARTED;
	process.exit_code = -1;
	process.flags = process_flags(node, tgid, is_main);
	emit(node, &process, sizeof(process));

	/* The call itself: at its exit the arguments are gone with the old program. */
	s = take_scratch(node);
	if (!s)
		return 0;
	call = (void *)s->record;
	fill_head(&call->head, ROSE_CHANGED, 0, node);
	regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	call->nr = BPF_CORE_READ(regs, orig_ax);
	call->result = 0;
	call->fd = -1;
	call->pad = 0;
	s->size = off = sizeof(*call);
	n = bpf_probe_read_kernel_str(&s->record[off + sizeof(struct rose_piece)], ROSE_PATH_BYTES,
				      BPF_CORE_READ(bprm, filename));
	if (n > 0 && n <= ROSE_PATH_BYTES) {
		__u8 first = s->record[off + sizeof(struct rose_piece)];

		put_head(s, off, ROSE_PATH, 0, n - 1);
		if (first != '/')
			put_fragments(s, BPF_CORE_READ(task, fs, pwd.mnt), BPF_CORE_READ(task, fs, pwd.dentry), ROSE_BASE);
	}
	size = s->size;
	if (size > sizeof(s->record))
		size = sizeof(s->record);
	call->head.size = size;
	emit(node, s->record, size);
	give_back(s);
	return 0;
}

static __always_inline void end_pause(__u64 key, __u64 now)
{
	struct rose_pause *pause = bpf_map_lookup_elem(&rose_paused, &key);
	struct rose_process process = {};
	__u64 since;
	__u32 node;

	if (!pause)
		return;
	/* Taken by one: a second SIGCONT at once must not tell it twice. */
	since = __sync_lock_test_and_set(&pause->since_ns, 0);
	node = pause->node;
	if (since && now - since >= rose_pause_ns) {
		process.head.size = sizeof(process);
		process.head.kind = ROSE_PROCESS;
		process.head.node = node;
		process.head.ts_ns = now;
		process.head.tgid = pause->tgid;
		process.head.tid = pause->tgid;
		process.duration_ns = now - since;
		process.exit_code = -1;
		process.state = ROSE_PAUSED;
		process.signal = pause->signal;
		process.flags = pause->flags;
		emit(node, &process, sizeof(process));
	}
	bpf_map_delete_elem(&rose_paused, &key);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(rose_exit, struct task_struct *task)
{
	struct signal_struct *signal = task->signal;
	struct rose_process process = {};
	struct rose_identity identity = {};
	bool is_main = false;
	__s32 code, node;
	__u32 tgid;
	__u8 one = 1;

	if (signal->live.counter != 0)
		return 0; /* other threads go on */
	tgid = task->tgid;
	node = node_of_current(tgid, &is_main);
	if (node < 0)
		return 0;
	/* Of threads that end at once on several CPUs, each may see that none is left: one tells it. */
	identity.start_ns = task->group_leader->start_time;
	identity.tgid = tgid;
	if (bpf_map_update_elem(&rose_ended, &identity, &one, BPF_NOEXIST))
		return 0;
	code = signal->flags & SIGNAL_GROUP_EXIT ? signal->group_exit_code : task->exit_code;
	fill_head(&process.head, ROSE_PROCESS, sizeof(process), node);
	end_pause(tgid, process.head.ts_ns);
	process.signal = code & 0x7f;
	process.state = process.signal ? ROSE_CRASHED : ROSE_EXITED;
	process.exit_code = process.signal ? -1 : (code >> 8) & 0xff;
	process.flags = process_flags(node, tgid, is_main);
	if (process.signal && (code & 0x80))
		process.flags |= ROSE_CORE;
	emit(node, &process, sizeof(process));
	bpf_map_delete_elem(&rose_procs, &tgid);
	return 0;
}

enum { SIGCONT_ = 18, SIGSTOP_ = 19, SIGTSTP_ = 20, SIGTTIN_ = 21, SIGTTOU_ = 22 };

/* A stop begins when a thread takes the signal ... */
SEC("tp_btf/signal_deliver")
int BPF_PROG(rose_stopped, int sig, struct kernel_siginfo *info, struct k_sigaction *action)
{
	struct rose_pause pause = {};
	bool is_main = false;
	__s32 node;
	__u64 key;

	if (sig < SIGSTOP_ || sig > SIGTTOU_)
		return 0;
	if (sig != SIGSTOP_ && action->sa.sa_handler)
		return 0; /* caught or ignored */
	pause.tgid = bpf_get_current_pid_tgid() >> 32;
	node = node_of_current(pause.tgid, &is_main);
	if (node < 0)
		return 0;
	key = pause.tgid;
	pause.since_ns = bpf_ktime_get_ns();
	pause.node = node;
	pause.signal = sig;
	pause.flags = process_flags(node, pause.tgid, is_main);
	/* A process that is stopped already stays stopped since then. */
	bpf_map_update_elem(&rose_paused, &key, &pause, BPF_NOEXIST);
	return 0;
}

/* ... and ends when SIGCONT is sent, whether or not it is caught or blocked. */
SEC("tp_btf/signal_generate")
int BPF_PROG(rose_continued, int sig, struct kernel_siginfo *info, struct task_struct *task)
{
	if (sig != SIGCONT_)
		return 0;
	end_pause(task->tgid, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/cgroup_notify_frozen")
int BPF_PROG(rose_frozen, struct cgroup *cgroup, const char *path, int frozen)
{
	__u64 id = cgroup->kn->id, key = id | ROSE_FROZEN;
	struct rose_pause pause = {};
	__u32 *node = bpf_map_lookup_elem(&rose_freezable, &id);

	if (!node)
		return 0;
	if (!frozen) {
		end_pause(key, bpf_ktime_get_ns());
		return 0;
	}
	pause.since_ns = bpf_ktime_get_ns();
	pause.node = *node;
	pause.flags = process_flags(*node, 0, true);
	bpf_map_update_elem(&rose_paused, &key, &pause, BPF_NOEXIST);
	return 0;
}

#endif
