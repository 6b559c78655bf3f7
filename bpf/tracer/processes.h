/* Processes: the node that they belong to, and how they start, stop, continue and end.
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_TRACER_PROCESSES_H
#define ROSE_TRACER_PROCESSES_H

#include "tracer/calls.h"
#include "tracer/storms.h"

static __always_inline __u8 process_flags(__u32 node, __u32 tgid, bool is_main)
{
	struct rose_node *state = bpf_map_lookup_elem(&rose_nodes, &node);
	__u8 flags = is_main ? ROSE_MAIN : 0;

	if (!state)
		return flags;
	if (tgid && state->main_tgid == tgid)
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

/* Adds the process to the map. Returns true if it was not there yet. */
static __always_inline bool is_first(struct task_struct *task, void *map)
{
	struct rose_identity identity = {};
	__u8 one = 1;

	identity.start_ns = BPF_CORE_READ(task, group_leader, start_time);
	identity.tgid = task->tgid;
	return !bpf_map_update_elem(map, &identity, &one, BPF_NOEXIST);
}

#define DEV_FD 0x2f64662f7665642full /* "/dev/fd/" */

SEC("tp_btf/sched_process_exec")
int BPF_PROG(rose_exec, struct task_struct *task, pid_t old_pid, struct linux_binprm *bprm)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct rose_process process = {};
	struct rose_call *call;
	struct scratch *s;
	bool is_main = false;
	__s32 node = node_of_current(tgid, &is_main);
	__u32 off;
	long n;

	if (node < 0)
		return 0;
	/* A script that executes another program is still the same process, whose start has been reported. */
	if (is_first(task, &rose_began)) {
		fill_head(&process.head, ROSE_PROCESS, sizeof(process), node);
		process.state = ROSE_STARTED;
		process.exit_code = -1;
		process.flags = process_flags(node, tgid, is_main);
		emit_process(&process, false);
	}

	/* The call itself is recorded here, because at its exit the old program is gone, and the arguments with it. */
	s = take_scratch(node);
	if (!s)
		return 0;
	call = (void *)s->record;
	fill_head(&call->head, ROSE_CHANGED, 0, node);
	/* The kernel has set orig_ax to the number of execve in the new program's table, whichever call was made. In
	 * the table of 32-bit programs, that number means another call. */
	call->nr = NR_EXECVE;
	call->result = 0;
	call->fd = -1;
	call->operation = 0;
	call->flags = 0;
	call->open_flags = 0;
	call->requested = 0;
	s->size = off = sizeof(*call);
	n = bpf_probe_read_kernel_str(&s->record[off + sizeof(struct rose_piece)], ROSE_PATH_BYTES,
				      BPF_CORE_READ(bprm, filename));
	if (n > 0 && n <= ROSE_PATH_BYTES) {
		const __u8 *text = &s->record[off + sizeof(struct rose_piece)];
		__u64 begin = *(__u64 *)text;

		put_head(s, off, ROSE_PATH, 0, n - 1);
		if (n > 8 && begin == DEV_FD) {
			/* The program is executed by its descriptor. The path of its file is more informative than the
			 * descriptor's number. */
			s->size = off;
			put_file(s, BPF_CORE_READ(bprm, file));
		} else if (text[0] != '/')
			put_fragments(s, BPF_CORE_READ(task, fs, pwd.mnt), BPF_CORE_READ(task, fs, pwd.dentry), ROSE_BASE);
	}
	emit_call(s, node);
	give_back(s);
	return 0;
}

enum { SIGKILL_ = 9, SIGCONT_ = 18, SIGSTOP_ = 19, SIGTSTP_ = 20, SIGTTIN_ = 21, SIGTTOU_ = 22 };

/* Ends a pause. If `now` is 0, there was no pause after all, and nothing is reported. */
static __always_inline void end_pause(__u64 key, __u64 now)
{
	struct rose_pause *pause = bpf_map_lookup_elem(&rose_paused, &key);
	struct rose_process process = {};
	__u64 since;
	__u32 node;

	if (!pause)
		return;
	/* The exchange is atomic, so that two simultaneous SIGCONTs do not report the pause twice. */
	since = rose_exchange(&pause->since_ns, 0);
	node = pause->node;
	if (since && now > since && now - since >= rose_pause_ns) {
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
		emit(node, &process, sizeof(process), true);
	}
	bpf_map_delete_elem(&rose_paused, &key);
}

enum { SIGINT_ = 2, SIGQUIT_ = 3, SIGBUS_ = 7, SIGTERM_ = 15, SIGCHLD_ = 17, SIGURG_ = 23, SIGWINCH_ = 28 };

static __always_inline bool asks_to_end(int sig)
{
	return sig == SIGTERM_ || sig == SIGINT_ || sig == SIGQUIT_;
}

enum rose_ending { ROSE_STAYS, ROSE_ASKED, ROSE_ENDS };

/* Determines whether a signal ends the process or asks it to end. Other signals that a program catches are for the
 * program's own use: the JVM and Go use them thousands of times per second. */
static __always_inline int ending_of(struct task_struct *task, int sig)
{
	struct sighand_struct *hands;
	__sighandler_t handler = NULL;

	if (sig == SIGKILL_)
		return ROSE_ENDS;
	if (sig < 1 || sig > 64 || sig == SIGURG_ || sig == SIGWINCH_ || (sig >= SIGCHLD_ && sig <= SIGTTOU_))
		return ROSE_STAYS;
	hands = BPF_CORE_READ(task, sighand);
	/* The kernel's table has larger elements than the struct declared here. */
	if (bpf_probe_read_kernel(&handler, sizeof(handler),
				  (void *)hands + bpf_core_field_offset(struct sighand_struct, action) +
					  (sig - 1) * bpf_core_type_size(struct k_sigaction) +
					  bpf_core_field_offset(struct k_sigaction, sa.sa_handler)))
		return ROSE_STAYS;
	if ((unsigned long)handler == 0)
		return ROSE_ENDS;
	return (unsigned long)handler > 1 && asks_to_end(sig) ? ROSE_ASKED : ROSE_STAYS;
}

static __noinline int note_signal(struct kernel_siginfo *info, struct task_struct *task, int sig, int ending)
{
	enum { SEND_SIG_PRIV = 1, SI_TIMER = -2 };
	__u32 tgid = BPF_CORE_READ(task, tgid), sender = bpf_get_current_pid_tgid() >> 32;
	struct rose_signalled noted = {}, *before;
	bool is_main;
	__s32 node;

	node = node_of_task(task, tgid, &is_main);
	if (node < 0 || (__u32)node >= rose_node_count)
		return 0;
	noted.start_ns = BPF_CORE_READ(task, group_leader, start_time);
	before = bpf_map_lookup_elem(&rose_signalled, &tgid);
	/* The same signal again changes nothing, and neither does a signal after a fatal one. While a process ends, the
	 * kernel may refuse it a page and send it SIGSEGV for this reason. */
	if (before && before->start_ns == noted.start_ns &&
	    (before->fatal || (before->signal == sig && bpf_ktime_get_ns() - before->ts_ns < ROSE_ASKED_NS)))
		return 0;
	noted.ts_ns = bpf_ktime_get_ns();
	noted.signal = sig;
	noted.fatal = ending == ROSE_ENDS;
	if ((unsigned long)info == SEND_SIG_PRIV) {
		noted.origin = ROSE_BY_KERNEL;
	} else {
		/* A positive code means that the kernel generated the signal. If there is no siginfo, the current
		 * process has sent the signal. */
		int code = info ? BPF_CORE_READ(info, si_code) : 0;

		if (sender == tgid)
			noted.origin = ROSE_BY_ITSELF;
		else
			noted.origin = code > 0 || code == SI_TIMER ? ROSE_BY_KERNEL : ROSE_BY_PROCESS;
	}
	if (noted.origin == ROSE_BY_PROCESS) {
		noted.by = sender;
		BPF_CORE_READ_INTO(&noted.by_name, (struct task_struct *)bpf_get_current_task(), group_leader, comm);
	}
	bpf_map_update_elem(&rose_signalled, &tgid, &noted, BPF_ANY);
	return 0;
}

/* Adds what is known of the signal that ended the process or asked it to end. */
static __always_inline void report_signal(struct task_struct *task, struct rose_process *process, __u64 now)
{
	__u32 tgid = process->head.tgid;
	struct rose_signalled *noted = bpf_map_lookup_elem(&rose_signalled, &tgid);

	if (!noted)
		return;
	if (noted->start_ns == BPF_CORE_READ(task, group_leader, start_time) && now > noted->ts_ns &&
	    (process->signal ? process->signal == noted->signal :
			       asks_to_end(noted->signal) && now - noted->ts_ns < ROSE_ASKED_NS)) {
		process->duration_ns = now - noted->ts_ns;
		process->origin = noted->origin;
		process->by = noted->by;
		__builtin_memcpy(process->by_name, noted->by_name, ROSE_COMM_BYTES);
	}
	bpf_map_delete_elem(&rose_signalled, &tgid);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(rose_exit, struct task_struct *task)
{
	struct signal_struct *signal = BPF_CORE_READ(task, signal);
	struct rose_process process = {};
	bool is_main = false, orderly;
	__s32 code, node;
	__u32 tgid;
	__u64 key;

	if (BPF_CORE_READ(signal, live.counter) != 0)
		return 0; /* other threads of the process still run */
	tgid = task->tgid;
	node = node_of_current(tgid, &is_main);
	if (node < 0) {
		/* A helper of rose has ended, and its pid may be reused. */
		if (bpf_map_lookup_elem(&rose_procs, &tgid))
			bpf_map_delete_elem(&rose_procs, &tgid);
		return 0;
	}
	/* If the last threads end at the same time on several CPUs, each of them may find that no other is left. Only
	 * one of them reports the end. */
	if (!is_first(task, &rose_ended))
		return 0;
	code = BPF_CORE_READ(signal, flags) & SIGNAL_GROUP_EXIT ? BPF_CORE_READ(signal, group_exit_code) : task->exit_code;
	fill_head(&process.head, ROSE_PROCESS, sizeof(process), node);
	end_pause(tgid, process.head.ts_ns);
	process.signal = code & 0x7f;
	process.state = process.signal ? ROSE_CRASHED : ROSE_EXITED;
	process.exit_code = process.signal ? -1 : (code >> 8) & 0xff;
	if (!code && is_container_setup(task)) {
		bpf_map_delete_elem(&rose_procs, &tgid);
		return 0;
	}
	report_signal(task, &process, process.head.ts_ns);
	process.flags = process_flags(node, tgid, is_main);
	if (process.signal && (code & 0x80))
		process.flags |= ROSE_CORE;
	key = ROSE_MARKED | tgid;
	if (process.signal == SIGKILL_ && bpf_map_lookup_elem(&rose_doomed, &key)) {
		process.flags |= ROSE_OUT_OF_MEMORY;
		bpf_map_delete_elem(&rose_doomed, &key);
	}
	orderly = !process.signal && (!process.exit_code || !(process.flags & ROSE_MAIN));
	if (!emit_process(&process, !orderly) && !orderly) {
		rose_missed.node = node;
		rose_missed.tgid = tgid;
		rose_missed.exit_code = process.exit_code;
		rose_missed.signal = process.signal;
		rose_missed.flags = process.flags;
		__sync_fetch_and_add(&rose_missed.ends, 1);
	}
	bpf_map_delete_elem(&rose_procs, &tgid);
	return 0;
}

struct mapping {
	struct scratch *s;
};
static long put_mapping(struct task_struct *task, struct vm_area_struct *vma, struct mapping *mapping)
{
	struct file *file = BPF_CORE_READ(vma, vm_file);

	if (file)
		put_file(mapping->s, file);
	return 0;
}

/* Records an access to a mapped file that failed: the file system has no space or no data for the page, or the page is
 * beyond the end of the file. */
static __noinline int note_bus_error(struct kernel_siginfo *info)
{
	enum { BUS_ADRALN = 1 };
	struct task_struct *task = rose_current_btf();
	struct mapping mapping = {};
	__u64 address;
	__s32 node;

	if ((unsigned long)info <= 1 || BPF_CORE_READ(info, si_code) <= BUS_ADRALN)
		return 0; /* a process sent it, or the file is not the reason */
	node = node_of_current(bpf_get_current_pid_tgid() >> 32, NULL);
	if (node < 0)
		return 0;
	mapping.s = take_scratch(node);
	if (!mapping.s)
		return 0;
	begin_silent(mapping.s, node, NR_MMAP, ROSE_BUS);
	address = (__u64)BPF_CORE_READ(info, _sifields._sigfault._addr);
	rose_find_area(task, address, put_mapping, &mapping);
	emit_call(mapping.s, node);
	give_back(mapping.s);
	return 0;
}

/* Notes that the kernel itself sent SIGKILL. The OOM killer marks the processes that it kills, but also processes that
 * are already ending when memory runs out. So it killed a marked process only if the kernel had sent SIGKILL to that
 * process before. */
static __always_inline void note_kill(struct kernel_siginfo *info, struct task_struct *task)
{
	enum { SEND_SIG_PRIV = 1 };
	__u32 tgid = task->tgid;
	__u64 key = task->pid;
	bool is_main;

	if ((unsigned long)info == SEND_SIG_PRIV && node_of_task(task, tgid, &is_main) >= 0)
		bpf_map_update_elem(&rose_doomed, &key, &tgid, BPF_ANY);
}

SEC("raw_tp/mark_victim")
int rose_victim(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 key = rose_victim_task ? BPF_CORE_READ((struct task_struct *)ctx->args[0], pid) : (__u32)ctx->args[0];
	__u32 *tgid = bpf_map_lookup_elem(&rose_doomed, &key);
	__u32 value;

	if (!tgid)
		return 0;
	value = *tgid;
	bpf_map_delete_elem(&rose_doomed, &key);
	key = ROSE_MARKED | value;
	bpf_map_update_elem(&rose_doomed, &key, &value, BPF_ANY);
	return 0;
}

/* Records a call that failed because a signal interrupted it. Such a call first returns a code that is internal to the
 * kernel. Whether the call is restarted or fails with EINTR is decided only when the signal's handler is about to run.
 */
static __always_inline void note_interrupted(struct k_sigaction *action)
{
	enum { ERESTARTSYS = 512, ERESTARTNOHAND = 514, ERESTART_RESTARTBLOCK = 516, SA_RESTART = 0x10000000, EINTR = 4 };
	struct pt_regs *regs;
	long left;

	if ((unsigned long)BPF_CORE_READ(action, sa.sa_handler) <= 1)
		return; /* SIG_DFL, SIG_IGN */
	regs = rose_task_regs(rose_current_btf());
	if ((long)rose_read_number(regs) == -1)
		return; /* not in a call */
	left = rose_interrupted(regs);
	if (left == -ERESTARTNOHAND || left == -ERESTART_RESTARTBLOCK ||
	    (left == -ERESTARTSYS && !(BPF_CORE_READ(action, sa.sa_flags) & SA_RESTART)))
		record_call(regs, -EINTR);
}

/* A stop begins here, when a thread receives the signal. */
SEC("tp_btf/signal_deliver")
int BPF_PROG(rose_signal, int sig, struct kernel_siginfo *info, struct k_sigaction *action)
{
	struct rose_pause pause = {};
	bool is_main = false;
	__s32 node;
	__u64 key;

	note_interrupted(action);
	if (sig < SIGSTOP_ || sig > SIGTTOU_)
		return 0;
	if (sig != SIGSTOP_ && BPF_CORE_READ(action, sa.sa_handler))
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
	/* If the process is already stopped, the stop that is recorded began earlier and stays as it is. */
	bpf_map_update_elem(&rose_paused, &key, &pause, BPF_NOEXIST);
	return 0;
}

/* A stop ends here, when SIGCONT is sent, even if the process catches or blocks it. */
SEC("tp_btf/signal_generate")
int BPF_PROG(rose_continued, int sig, struct kernel_siginfo *info, struct task_struct *task)
{
	int ending;

	if (sig == SIGCONT_) {
		/* A stop signal does not always stop a process. If SIGCONT has ended no stop, there was no pause. */
		__u64 key = task->tgid, now = bpf_ktime_get_ns();

		end_pause(key, BPF_CORE_READ(task, signal, flags) & SIGNAL_CLD_MASK ? now : 0);
	}
	if (sig == SIGKILL_)
		note_kill(info, task);
	if (sig == SIGBUS_)
		note_bus_error(info);
	ending = ending_of(task, sig);
	if (ending)
		note_signal(info, task, sig, ending);
	return 0;
}

/* If a cgroup is frozen, all cgroups below it are frozen, too, and this program runs for each of them. The whole node
 * is paused only if its own cgroup is frozen. If only a cgroup below it is frozen, a part of the node is paused. */
SEC("tp_btf/cgroup_notify_frozen")
int BPF_PROG(rose_frozen, struct cgroup *cgroup, const char *path, int frozen)
{
	__u64 id = BPF_CORE_READ(cgroup, kn, id), key = id | ROSE_FROZEN;
	struct rose_pause pause = {};
	__u32 *value;
	__s32 node;

	if (!frozen) {
		end_pause(key, bpf_ktime_get_ns());
		return 0;
	}
	value = bpf_map_lookup_elem(&rose_freezable, &id);
	if (value) {
		node = *value;
		pause.flags = process_flags(node, 0, true);
	} else {
		node = node_of_cgroup(cgroup);
		if (node < 0 || (BPF_CORE_READ(cgroup, self.parent, cgroup, flags) & CGRP_FREEZE_BIT))
			return 0;
		pause.flags = process_flags(node, 0, false);
	}
	pause.since_ns = bpf_ktime_get_ns();
	pause.node = node;
	bpf_map_update_elem(&rose_paused, &key, &pause, BPF_NOEXIST);
	return 0;
}

/* The processes of a frozen cgroup can be killed. The pause ends when none is left. */
SEC("tp_btf/cgroup_notify_populated")
int BPF_PROG(rose_emptied, struct cgroup *cgroup, const char *path, int populated)
{
	if (!populated)
		end_pause(BPF_CORE_READ(cgroup, kn, id) | ROSE_FROZEN, bpf_ktime_get_ns());
	return 0;
}

/* True if the task waits in vfork, which it does uninterruptibly until its child executes a program or ends. The newest
 * children are last in the list. */
static __always_inline bool waits_for_vfork(struct task_struct *task)
{
	struct list_head *at = BPF_CORE_READ(task, children.prev);
	struct list_head *head = (void *)task + bpf_core_field_offset(struct task_struct, children);

	for (int i = 0; i < 8; i++) {
		struct task_struct *child;

		if (!at || at == head)
			break;
		child = (void *)at - bpf_core_field_offset(struct task_struct, sibling);
		if (BPF_CORE_READ(child, vfork_done))
			return true;
		at = BPF_CORE_READ(at, prev);
	}
	return false;
}

/* The reader runs this iterator over all tasks at least once per second, because programs at context switches would
 * cost too much. It reports the threads of nodes that wait uninterruptibly, and those in the freezer of cgroup v1,
 * which has no tracepoint. It also records a pause for processes that were stopped before tracing began. */
SEC("iter/task")
int rose_waits(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct rose_blocked blocked = {};
	bool is_main = false, frozen;
	__u32 state, tgid;
	__s32 node;

	if (!task)
		return 0;
	state = rose_state_of(task);
	frozen = (state & TASK_FROZEN) || (task->flags & PF_FROZEN);
	if ((!frozen && !(state & (TASK_UNINTERRUPTIBLE | TASK_STOPPED_BIT))) || (state & TASK_NOLOAD) ||
	    (task->flags & PF_KTHREAD))
		return 0;
	tgid = task->tgid;
	node = node_of_task(task, tgid, &is_main);
	if (node < 0)
		return 0;
	if (!frozen && (state & TASK_STOPPED_BIT)) {
		struct rose_pause pause = {.since_ns = bpf_ktime_get_ns(), .node = node, .tgid = tgid, .signal = SIGSTOP_};
		__u64 key = tgid;

		pause.flags = process_flags(node, tgid, is_main);
		bpf_map_update_elem(&rose_paused, &key, &pause, BPF_NOEXIST);
		return 0;
	}
	if (!frozen && waits_for_vfork(task))
		return 0;
	blocked.start_ns = task->start_time;
	blocked.switches = task->nvcsw + task->nivcsw;
	blocked.tgid = tgid;
	blocked.tid = task->pid;
	blocked.node = node;
	blocked.flags = process_flags(node, tgid, is_main);
	if (frozen)
		blocked.flags |= ROSE_IN_FREEZER;
	bpf_seq_write(ctx->meta->seq, &blocked, sizeof(blocked));
	return 0;
}

#endif
