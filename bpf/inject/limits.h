/* Limits that a node met: calls that failed because its process may have no further descriptor, or because a disk that
 * a fault filled has no room. Attached only while a schedule has such faults. Whether a limit had an effect is known
 * from nothing else: the kernel counts neither.
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_INJECT_LIMITS_H
#define ROSE_INJECT_LIMITS_H

/* Disks that faults fill, by the kernel's number of the device: calls on their open files that found no room. */
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
	NO_SUCH_DESCRIPTOR = -9,	/* EBADF: of dup2 beyond the limit, too */
	IS_INVALID = -22,		/* EINVAL: of F_DUPFD and poll beyond the limit, too */
	DUPLICATE = 0,			/* F_DUPFD */
	DUPLICATE_CLOEXEC = 1030,
	BUS_ERROR = 7,
	DESCRIPTORS = 7,		/* RLIMIT_NOFILE */
};

/* Which argument is the descriptor of the file that needs room; ON_PATH: the call names a path; ELSEWHERE: it needs
 * none, and lacks something else when it says so. */
enum { ON_PATH = 6, ELSEWHERE = 7 };

static __always_inline int room_of(__u32 number)
{
	switch (number) {
	case 1: case 18: case 20: case 296: case 328:	/* write, pwrite64, writev, pwritev, pwritev2 */
	case 77: case 285:				/* ftruncate, fallocate */
	case 74: case 75: case 277:			/* fsync, fdatasync, sync_file_range */
	case 40: case 190:				/* sendfile, fsetxattr */
		return 0;
	case 275: case 326:				/* splice, copy_file_range */
		return 2;
	case 2: case 85: case 257: case 437:		/* open, creat, openat, openat2 */
	case 83: case 258: case 133: case 259:		/* mkdir, mkdirat, mknod, mknodat */
	case 88: case 266: case 86: case 265:		/* symlink, symlinkat, link, linkat */
	case 82: case 264: case 316:			/* rename, renameat, renameat2 */
	case 76: case 188: case 189:			/* truncate, setxattr, lsetxattr */
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

/* The counter of the disk that an open file of the current task lies on; none when no fault fills it. */
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

	if (result == NO_SUCH_DESCRIPTOR)
		return (number == 33 || number == 292) && second >= most;	/* dup2, dup3 */
	if (number == 72)							/* fcntl */
		return (second == DUPLICATE || second == DUPLICATE_CLOEXEC) && (__u32)rose_argument(regs, 2) >= most;
	return (number == 7 || number == 271) && second > most;			/* poll, ppoll */
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
	number = BPF_CORE_READ(regs, orig_ax);
	/* A write that ended where the room did. */
	if (result >= 0 && ((number != 1 && number != 18) || (__u64)result >= rose_argument(regs, 2)))
		return 0;
	state = current_state();
	if (!state)
		return 0;
	if (result == LACKS_DESCRIPTOR) {
		__sync_fetch_and_add(&state->descriptors_lacked, 1);
		return 0;
	}
	if (result == NO_SUCH_DESCRIPTOR || result == IS_INVALID) {
		if (is_beyond_limit(regs, number, result))
			__sync_fetch_and_add(&state->descriptors_lacked, 1);
		return 0;
	}
	room = room_of(number);
	if (room == ON_PATH) {
		__sync_fetch_and_add(&state->room_lacked, 1);
	} else if (room != ELSEWHERE) {
		disk = disk_of((__s32)(room ? rose_argument(regs, 2) : rose_argument(regs, 0)));
		if (disk)
			__sync_fetch_and_add(disk, 1);
	}
	return 0;
}

/* What a ring does fails in its completion. */
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

/* Memory that is mapped from a full disk cannot be written. */
SEC("raw_tp/signal_generate")
int rose_bus_error(struct bpf_raw_tracepoint_args *ctx)
{
	struct rose_node_state *state;

	if ((int)ctx->args[0] != BUS_ERROR || ctx->args[2] != bpf_get_current_task())
		return 0;
	state = current_state();
	if (state)
		__sync_fetch_and_add(&state->room_lacked, 1);
	return 0;
}

#endif
