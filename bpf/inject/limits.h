/* Detects when a node meets a limit: calls that fail because the process may have no further descriptor, or because a
 * disk that a fault filled is full, and threads that need a page beyond the memory limit. The programs are attached
 * only while a schedule has such faults. For descriptors and disks, there is no other way to know whether the limit had
 * an effect, because the kernel does not count such failures.
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_INJECT_LIMITS_H
#define ROSE_INJECT_LIMITS_H

/* The disks that faults fill. The key is the kernel's device number. The value counts calls on open files that failed
 * because the disk is full. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ROSE_MAX_FULL_DISKS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, __u64);
} rose_full_disks SEC(".maps");

enum {
	LACKS_ROOM = -28,		/* ENOSPC */
	LACKS_DESCRIPTOR = -24,		/* EMFILE */
	NO_SUCH_DESCRIPTOR = -9,	/* EBADF; dup2 to a number beyond the limit returns it, too */
	IS_INVALID = -22,		/* EINVAL; F_DUPFD and poll beyond the limit return it, too */
	DUPLICATE = 0,			/* F_DUPFD */
	DUPLICATE_CLOEXEC = 1030,
	BUS_ERROR = 7,
	KILL = 9,
	OF_KERNEL = 1,			/* SEND_SIG_PRIV */
	DESCRIPTORS = 7,		/* RLIMIT_NOFILE */
};

/* Records that the current thread has met the limit that a fault has set. The stack is copied here and not when the
 * fault fires, because the limit affects only the threads that need the resource later. */
static __always_inline void limit_met(__u64 *count, __u32 chain)
{
	if (count)
		__sync_fetch_and_add(count, 1);
	if (chain)
		rose_take_stack(chain - 1);
}

/* Which argument is the descriptor of the file that needs space. ON_PATH: the call names a path instead. ELSEWHERE: the
 * call writes no file, so the error means that something else is lacking. */
enum { ON_PATH = 6, ELSEWHERE = 7 };

static __always_inline int room_of(__u32 number)
{
	switch (number) {
	case NR_WRITE: case NR_PWRITE64: case NR_WRITEV: case NR_PWRITEV: case NR_PWRITEV2:
	case NR_FTRUNCATE: case NR_FALLOCATE:
	case NR_FSYNC: case NR_FDATASYNC: case NR_SYNC_FILE_RANGE:
	case NR_SENDFILE: case NR_FSETXATTR:
		return 0;
	case NR_SPLICE: case NR_COPY_FILE_RANGE:
		return 2;
	case NR_OPENAT: case NR_OPENAT2: case NR_MKDIRAT: case NR_MKNODAT: case NR_SYMLINKAT: case NR_LINKAT:
	case NR_RENAMEAT: case NR_RENAMEAT2: case NR_TRUNCATE: case NR_SETXATTR: case NR_LSETXATTR:
#ifdef __TARGET_ARCH_x86
	case NR_OPEN: case NR_CREAT: case NR_MKDIR: case NR_MKNOD: case NR_SYMLINK: case NR_LINK: case NR_RENAME:
#endif
		return ON_PATH;
	}
	return ELSEWHERE;
}

static __always_inline struct rose_node_state *current_state(void)
{
	struct rose_settings *set = settings();
	long node = set ? current_node(set) : -1;
	__u32 key = node;

	return node < 0 ? 0 : bpf_map_lookup_elem(&rose_nodes, &key);
}

/* The counter of the disk that contains an open file of the current task. 0 if no fault fills the disk. */
static __always_inline __u64 *disk_of(__s32 fd)
{
	struct file *file = rose_file_of((void *)bpf_get_current_task(), fd);
	__u32 device;

	if (!file)
		return 0;
	device = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
	return bpf_map_lookup_elem(&rose_full_disks, &device);
}

static __always_inline int is_beyond_limit(const struct pt_regs *regs, __u32 number, long result)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u64 most = BPF_CORE_READ(task, signal, rlim[DESCRIPTORS].rlim_cur);
	__u32 second = (__u32)rose_argument(regs, 1);

#ifdef __TARGET_ARCH_x86
	if (number == NR_DUP2)
		number = NR_DUP3;
	if (number == NR_POLL)
		number = NR_PPOLL;
#endif
	if (result == NO_SUCH_DESCRIPTOR)
		return number == NR_DUP3 && second >= most;
	if (number == NR_FCNTL)
		return (second == DUPLICATE || second == DUPLICATE_CLOEXEC) && (__u32)rose_argument(regs, 2) >= most;
	return number == NR_PPOLL && second > most;
}

SEC("raw_tp/sys_exit")
int rose_limit_met(struct bpf_raw_tracepoint_args *ctx)
{
	struct pt_regs *regs = (void *)ctx->args[0];
	long result = (long)ctx->args[1];
	struct rose_node_state *state;
	__u64 *disk = 0;
	__u32 number;
	int room;

	if (result < 0 && result != LACKS_ROOM && result != LACKS_DESCRIPTOR && result != NO_SUCH_DESCRIPTOR &&
	    result != IS_INVALID)
		return 0;
	number = rose_read_number(regs);
	/* A write that wrote less than was asked also shows that the disk is full. */
	if (result >= 0 && ((number != NR_WRITE && number != NR_PWRITE64) || (__u64)result >= rose_argument(regs, 2)))
		return 0;
	state = current_state();
	if (!state)
		return 0;
	if (result == LACKS_DESCRIPTOR) {
		limit_met(&state->descriptors_lacked, state->descriptors_chain);
		return 0;
	}
	if (result == NO_SUCH_DESCRIPTOR || result == IS_INVALID) {
		if (is_beyond_limit(regs, number, result))
			limit_met(&state->descriptors_lacked, state->descriptors_chain);
		return 0;
	}
	room = room_of(number);
	if (room == ON_PATH) {
		limit_met(&state->room_lacked, state->room_chain);
	} else if (room != ELSEWHERE) {
		disk = disk_of((__s32)(room ? rose_argument(regs, 2) : rose_argument(regs, 0)));
		if (disk)
			limit_met(disk, state->room_chain);
	}
	return 0;
}

/* An operation of io_uring fails on completion, not at the exit of a call. */
SEC("raw_tp/io_uring_complete")
int rose_ring_met(struct bpf_raw_tracepoint_args *ctx)
{
	struct io_kiocb *request = (void *)ctx->args[1];
	struct rose_node_state *state;
	struct file *file;
	__u64 *disk;
	__u32 device;
	__s32 result;

	if (rose_uring_form == 2)
		result = (__s32)ctx->args[2];
	else if (rose_uring_form)
		result = (__s32)ctx->args[3];
	else
		result = BPF_CORE_READ((struct io_uring_cqe *)ctx->args[2], res);
	if (result != LACKS_ROOM && result != LACKS_DESCRIPTOR)
		return 0;
	state = current_state();
	if (!state)
		return 0;
	if (result == LACKS_DESCRIPTOR) {
		__sync_fetch_and_add(&state->descriptors_lacked, 1);
		return 0;
	}
	file = rose_uring_form == 2 ? 0 : BPF_CORE_READ(request, file);
	if (!file) {
		__sync_fetch_and_add(&state->room_lacked, 1);
		return 0;
	}
	device = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
	disk = bpf_map_lookup_elem(&rose_full_disks, &device);
	if (disk)
		__sync_fetch_and_add(disk, 1);
	return 0;
}

/* A write to memory that is mapped from a full disk ends in SIGBUS. If a node may have no further page, the kernel
 * kills one of its processes; this program then runs on the thread that needed the page. */
SEC("raw_tp/signal_generate")
int rose_signalled(struct bpf_raw_tracepoint_args *ctx)
{
	int number = (int)ctx->args[0];
	struct rose_node_state *state;

	if (number != KILL && (number != BUS_ERROR || ctx->args[2] != bpf_get_current_task()))
		return 0;
	state = current_state();
	if (!state)
		return 0;
	if (number == BUS_ERROR)
		limit_met(&state->room_lacked, state->room_chain);
	else if (ctx->args[1] == OF_KERNEL)
		limit_met(0, state->memory_chain);
	return 0;
}

#endif
