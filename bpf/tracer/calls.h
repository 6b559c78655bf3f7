/* System calls that failed or changed state, including failures of io_uring operations.
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_TRACER_CALLS_H
#define ROSE_TRACER_CALLS_H

#include "tracer/storms.h"

enum {
	EAGAIN_ = 11,
	EALREADY_ = 114,
	EINPROGRESS_ = 115,
	O_CREAT_OR_TRUNC = 0100 | 01000,
	MSG_DONTWAIT_ = 0x40,
};

static __always_inline bool is_noise(const volatile struct rose_call_signature *signature, __u32 nr,
				     struct task_struct *task, const struct pt_regs *regs, __u32 err)
{
	if (err >= ROSE_NOISE_ERRNOS)
		return false;
	if (rose_noise[rose_unknown(nr * ROSE_NOISE_WORDS + (err >> 6)) & (ROSE_SYSCALLS * ROSE_NOISE_WORDS - 1)] >>
		    (err & 63) &
	    1)
		return true;
	if (err != EAGAIN_ || !(signature->flags & ROSE_AGAIN_NONBLOCK))
		return false;
	if (signature->message_flags >= 0 && (rose_argument(regs, signature->message_flags) & MSG_DONTWAIT_))
		return true;
	if (signature->fd >= 0) {
		struct file *file = rose_file_of(task, (__s32)rose_argument(regs, signature->fd));

		return file && (BPF_CORE_READ(file, f_flags) & O_NONBLOCK);
	}
	return false;
}

static __noinline int count_noise(__u32 node, __u32 nr, __u32 err)
{
	struct rose_stats *stats = stats_of(node);
	__u32 key = nr << 16 | err;
	__u64 one = 1, *count = bpf_map_lookup_elem(&rose_quiet, &key);

	if (stats)
		__sync_fetch_and_add(&stats->suppressed, 1);
	/* If the table is full, the failure is counted in the total only. */
	if (count)
		__sync_fetch_and_add(count, 1);
	else
		bpf_map_update_elem(&rose_quiet, &key, &one, BPF_NOEXIST);
	return 0;
}

enum { ROSE_OPEN_FLAGS = ROSE_FLAGS_1 | ROSE_FLAGS_2 | ROSE_FLAGS_HOW };

static __always_inline __u32 open_flags_of(const volatile struct rose_call_signature *signature,
						   const struct pt_regs *regs)
{
	__u64 flags = 0;

	if (signature->flags & ROSE_FLAGS_1)
		flags = rose_argument(regs, 1);
	else if (signature->flags & ROSE_FLAGS_2)
		flags = rose_argument(regs, 2);
	else if (signature->flags & ROSE_FLAGS_HOW)
		bpf_probe_read_user(&flags, sizeof(flags), (void *)rose_argument(regs, 2));
	return flags;
}

/* Returns ROSE_DYING if the process is ending, stopping or freezing. While a process ends, its calls fail in many ways:
 * fork and page faults fail for lack of memory, waits are interrupted, and writes are incomplete. */
static __always_inline __u8 call_state(struct task_struct *task)
{
	enum { SIGKILL_BIT = 1 << 8, ENDING = SIGNAL_GROUP_EXIT | SIGNAL_GROUP_COREDUMP };

	if ((BPF_CORE_READ(task, pending.signal.sig[0]) & SIGKILL_BIT) || (BPF_CORE_READ(task, signal, flags) & ENDING) ||
	    (BPF_CORE_READ(task, jobctl) & (JOBCTL_TRAP_FREEZE | JOBCTL_STOP_PENDING)))
		return ROSE_DYING;
	return 0;
}

static __always_inline bool is_changing(__u64 nr)
{
	return nr < ROSE_SYSCALLS && ((rose_changing[nr / 64] >> (nr % 64)) & 1);
}

/* True if the file of a descriptor was changed while rose was running, so the deployment itself has written it. */
static __noinline bool was_changed(struct task_struct *task, __s64 fd)
{
	struct file *file = rose_file_of(task, fd);
	struct inode *inode;
	__s64 changed;

	if (!file)
		return false;
	inode = BPF_CORE_READ(file, f_inode);
	/* The files of the kernel's own file systems, as in /proc, are new at each use. */
	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) != S_IFREG || BPF_CORE_READ(inode, i_sb, s_iflags) & SB_I_NOEXEC)
		return false;
	if (bpf_core_field_exists(struct inode___seconds, i_mtime_sec))
		changed = BPF_CORE_READ((struct inode___seconds *)inode, i_mtime_sec);
	else if (bpf_core_field_exists(struct inode___hidden, __i_mtime))
		changed = BPF_CORE_READ((struct inode___hidden *)inode, __i_mtime.tv_sec);
	else
		changed = BPF_CORE_READ((struct inode___old *)inode, i_mtime.tv_sec);
	return changed >= rose_reads_since;
}

static __noinline int record_call(struct pt_regs *regs, __s64 result)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	const volatile struct rose_call_signature *signature;
	__u64 nr = rose_read_number(regs);
	bool failed = result < 0;
	struct rose_call *call;
	__u32 open_flags = 0;
	struct scratch *s;
	__s32 node;

	node = node_of_current(tgid, NULL);
	if (node < 0)
		return 0;
	if (nr >= ROSE_SYSCALLS || (BPF_CORE_READ(task, thread_info.ROSE_THREAD_FLAGS) & ROSE_COMPAT)) {
		struct rose_stats *stats = failed ? stats_of(node) : NULL;

		/* The call is not in the 64-bit table, so its name is unknown. (The number -1 means that ptrace or
		 * seccomp skipped the call, so the kernel did not cause its failure.) */
		if (stats && nr != (__u64)-1)
			__sync_fetch_and_add(&stats->foreign, 1);
		return 0;
	}
	signature = &rose_signatures[nr & (ROSE_SYSCALLS - 1)];
	/* A non-blocking connect that returns EINPROGRESS has changed state, because the connection attempt has begun.
	 */
	if (result == -EINPROGRESS_ && is_changing(nr))
		failed = false;
	if (failed) {
		if (is_noise(signature, nr, task, regs, -result)) {
			count_noise(node, nr, -result);
			return 0;
		}
	} else if (signature->flags & ROSE_OPEN_FLAGS) {
		open_flags = open_flags_of(signature, regs);
		if (!(open_flags & O_CREAT_OR_TRUNC) && (!rose_reads_since || !was_changed(task, result)))
			return 0;
	}
	if (is_container_setup(task)) {
		if (failed)
			count_noise(node, nr, -result);
		return 0;
	}

	s = take_scratch(node);
	if (!s)
		return 0;
	call = (void *)s->record;
	fill_head(&call->head, failed ? ROSE_FAILED : ROSE_CHANGED, 0, node);
	call->result = result;
	call->nr = nr;
	call->operation = 0;
	call->flags = failed ? call_state(task) : 0;
	call->fd = -1;
	call->open_flags = open_flags;
	call->requested = 0;
	s->size = sizeof(*call);
	if (signature->path >= 0) {
		__s32 dirfd = signature->dirfd >= 0 ? (__s32)rose_argument(regs, signature->dirfd) : AT_FDCWD;

		put_path(s, task, rose_argument(regs, signature->path), dirfd, ROSE_PATH, false);
	}
	if (signature->path2 >= 0) {
		__s32 dirfd = signature->dirfd2 >= 0 ? (__s32)rose_argument(regs, signature->dirfd2) : AT_FDCWD;

		put_path(s, task, rose_argument(regs, signature->path2), dirfd, ROSE_PATH2, signature->flags & ROSE_TEXT2);
	}
	if (signature->fd >= 0) {
		__s32 fd = rose_argument(regs, signature->fd);
		int have = 0;

		call->fd = fd;
		if (!failed && (signature->flags & ROSE_NEW_SOCKET)) {
			fd = result;
		} else if (signature->sockaddr >= 0 && signature->sockaddr < 5) {
			have = put_user_address(s, rose_argument(regs, signature->sockaddr),
						rose_argument(regs, signature->sockaddr + 1));
		} else if (signature->flags & ROSE_MESSAGE) {
			struct rose_user_msghdr message = {};

			if (!bpf_probe_read_user(&message, 16, (void *)rose_argument(regs, 1)) && message.name)
				have = put_user_address(s, message.name, message.namelen);
		}
		if (!have) {
			struct file *file = rose_file_of(task, fd);

			if (file)
				put_file(s, file);
		}
	}
	emit_call(s, node);
	give_back(s);
	return 0;
}

/* Begins a record of something that failed without an error, with the fields that all such records have in common. */
static __always_inline struct rose_call *begin_silent(struct scratch *s, __u32 node, __u16 nr, __u8 flags)
{
	struct rose_call *call = (void *)s->record;

	fill_head(&call->head, ROSE_FAILED, 0, node);
	call->result = 0;
	call->nr = nr;
	call->operation = 0;
	call->flags = call_state((void *)bpf_get_current_task()) | flags;
	call->fd = -1;
	call->open_flags = 0;
	call->requested = 0;
	s->size = sizeof(*call);
	return call;
}

/* Records a read or write that moved fewer bytes than were asked for. On a regular file, this is a failure, unless a
 * read reached the end of the file, or the file system is the kernel's own. If the file is not a regular file, only
 * stores `key` in *stream, so that rose_sys_exit ignores further calls on this descriptor. */
static __noinline int record_short(struct pt_regs *regs, __s64 result, __u64 *stream, __u64 key)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u64 nr = rose_read_number(regs), asked = rose_argument(regs, 2);
	__s32 fd = rose_argument(regs, 0), node;
	struct file *file = rose_file_of(task, fd);
	struct rose_call *call;
	struct scratch *s;
	__u16 mode;

	if (!file)
		return 0;
	mode = BPF_CORE_READ(file, f_inode, i_mode);
	if ((mode & S_IFMT) != S_IFREG) {
		*stream = key;
		return 0;
	}
	if (asked > ROSE_MOST_AT_ONCE)
		asked = ROSE_MOST_AT_ONCE;
	if (result >= (__s64)asked || (BPF_CORE_READ(task, thread_info.ROSE_THREAD_FLAGS) & ROSE_COMPAT))
		return 0;
	if (nr == NR_READ || nr == NR_PREAD64) {
		__s64 end = nr == NR_READ ? BPF_CORE_READ(file, f_pos) : (__s64)rose_argument(regs, 3) + result;

		if (end >= BPF_CORE_READ(file, f_inode, i_size))
			return 0;
	}
	if (BPF_CORE_READ(file, f_inode, i_sb, s_iflags) & SB_I_NOEXEC)
		return 0;
	node = node_of_current(bpf_get_current_pid_tgid() >> 32, NULL);
	if (node < 0 || is_container_setup(task))
		return 0;
	s = take_scratch(node);
	if (!s)
		return 0;
	call = begin_silent(s, node, nr, 0);
	call->result = result;
	call->fd = fd;
	call->requested = asked;
	put_file(s, file);
	emit_call(s, node);
	give_back(s);
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(rose_sys_exit, struct pt_regs *regs, long ret)
{
	if ((unsigned long)ret < -(unsigned long)MAX_ERRNO) {
		unsigned long nr = rose_number_of(regs);
		__u8 class;

		if (nr >= ROSE_SYSCALLS)
			return 0;
		class = rose_classes[nr];
		if (!class)
			return 0;
		if (class == ROSE_SIZED) {
			char *streams = (char *)rose_streams;
			__u64 key, *stream;

			if ((unsigned long)ret >= rose_third_of(regs))
				return 0;
			/* Returns early for sockets and pipes, which are read all the time and usually have fewer bytes
			 * than were asked for. The registers are on the thread's own kernel stack, which is 2^14 bytes
			 * long, so their address identifies the thread. */
			key = (__u64)regs - (__u64)streams + rose_first_of(regs) * 0x4001;
			stream = (__u64 *)(streams + (key >> 11 & (ROSE_STREAMS - 1) * sizeof(key)));
			if (*stream == key)
				return 0;
			return record_short(regs, ret, stream, key);
		}
	} else if (ret <= -512 && ret >= -516) {
		/* ERESTART* is internal to the kernel, and programs never see it; see note_interrupted() */
		return 0;
	}
	return record_call(regs, ret);
}

/* Operations of io_uring fail on completion, not at the exit of a call. At that time, the kernel still has the file of
 * the request, but not its other arguments. Such failures are recorded as failures of io_uring_enter. */
SEC("raw_tp/io_uring_complete")
int rose_uring(struct bpf_raw_tracepoint_args *ctx)
{
	enum { ETIME_ = 62, ECANCELED_ = 125 };
	struct io_kiocb *request = (void *)ctx->args[1];
	struct rose_call *call;
	struct scratch *s;
	struct file *file;
	__s32 result, node;

	if (rose_uring_form == ROSE_URING_DATA)
		result = (__s32)ctx->args[2];
	else if (rose_uring_form == ROSE_URING_RESULT)
		result = (__s32)ctx->args[3];
	else
		result = BPF_CORE_READ((struct io_uring_cqe *)ctx->args[2], res);
	if (result >= 0 || result < -MAX_ERRNO)
		return 0;
	node = node_of_current(bpf_get_current_pid_tgid() >> 32, NULL);
	if (node < 0)
		return 0;
	/* Expired timeouts, cancelled waits and "not yet" are part of the normal use of io_uring. */
	if (result == -ETIME_ || result == -ECANCELED_ || result == -EAGAIN_ || result == -EINPROGRESS_ ||
	    result == -EALREADY_) {
		count_noise(node, NR_IO_URING_ENTER, -result);
		return 0;
	}
	s = take_scratch(node);
	if (!s)
		return 0;
	call = (void *)s->record;
	fill_head(&call->head, ROSE_FAILED, 0, node);
	call->result = result;
	call->nr = NR_IO_URING_ENTER;
	call->operation = rose_uring_form == ROSE_URING_DATA ? 0 : BPF_CORE_READ(request, opcode);
	call->flags = call_state((void *)bpf_get_current_task());
	call->fd = -1;
	call->open_flags = 0;
	call->requested = 0;
	s->size = sizeof(*call);
	file = rose_uring_form == ROSE_URING_DATA ? NULL : BPF_CORE_READ(request, file);
	if (file)
		put_file(s, file);
	emit_call(s, node);
	give_back(s);
	return 0;
}

/* Loaded only for profiles. Counts every call by node and number. */
SEC("tp_btf/sys_exit")
int BPF_PROG(rose_sys_count, struct pt_regs *regs, long ret)
{
	struct task_struct *task = rose_current_btf();
	unsigned long nr = rose_number_of(regs);
	__s32 node;
	__u64 *count;
	__u32 key;

	if (nr >= ROSE_SYSCALLS || (BPF_CORE_READ(task, thread_info.ROSE_THREAD_FLAGS) & ROSE_COMPAT))
		return 0;
	node = node_of_current(bpf_get_current_pid_tgid() >> 32, NULL);
	if (node < 0)
		return 0;
	key = node * ROSE_SYSCALLS + nr;
	count = bpf_map_lookup_elem(&rose_calls, &key);
	if (count)
		*count += 1;
	return 0;
}

#endif
