/* What differs between processors: registers, and the numbers of the system calls that the programs refer to. The
 * registers are fields of the kernel's types in rose_core.h, so libbpf relocates them, too.
 *
 * arm64: x0 holds the first argument at a call's start and its result at the end; the kernel keeps the argument in
 * orig_x0. When a signal interrupts a call, the kernel restores the registers and forgets the call's number before it
 * reports that a handler will run. Therefore, rose_interrupted() is always 0 there.
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_ARCH_H
#define ROSE_ARCH_H

#ifdef __TARGET_ARCH_arm64

enum {
	NR_DUP3 = 24,
	NR_FCNTL = 25,
	NR_MKNODAT = 33,
	NR_MKDIRAT = 34,
	NR_SYMLINKAT = 36,
	NR_LINKAT = 37,
	NR_RENAMEAT = 38,
	NR_TRUNCATE = 45,
	NR_FTRUNCATE = 46,
	NR_FALLOCATE = 47,
	NR_OPENAT = 56,
	NR_READ = 63,
	NR_WRITE = 64,
	NR_READV = 65,
	NR_WRITEV = 66,
	NR_PREAD64 = 67,
	NR_PWRITE64 = 68,
	NR_PWRITEV = 70,
	NR_SENDFILE = 71,
	NR_PPOLL = 73,
	NR_SPLICE = 76,
	NR_FSYNC = 82,
	NR_FDATASYNC = 83,
	NR_SYNC_FILE_RANGE = 84,
	NR_SETXATTR = 5,
	NR_LSETXATTR = 6,
	NR_FSETXATTR = 7,
	NR_RESTART_SYSCALL = 128,
	NR_SENDTO = 206,
	NR_RECVFROM = 207,
	NR_SENDMSG = 211,
	NR_RECVMSG = 212,
	NR_EXECVE = 221,
	NR_MMAP = 222,
	NR_RECVMMSG = 243,
	NR_SENDMMSG = 269,
	NR_RENAMEAT2 = 276,
	NR_COPY_FILE_RANGE = 285,
	NR_PWRITEV2 = 287,
};
#define ROSE_THREAD_FLAGS flags
enum { ROSE_COMPAT = 1 << 22 /* thread_info.flags: the thread runs 32-bit code */ };

#define rose_number_of(regs) ((regs)->syscallno)
#define rose_read_number(regs) BPF_CORE_READ(regs, syscallno)
#define rose_read_ip(regs) BPF_CORE_READ(regs, pc)
/* The first and the third argument of a system call, for programs that may read the kernel's types directly. */
#define rose_first_of(regs) ((regs)->orig_x0)
#define rose_third_of(regs) ((regs)->regs[2])
/* The result of a call that a signal interrupts. 0: unknown. */
#define rose_interrupted(regs) 0L
/* The first parameter of a function that a kprobe has reached. */
#define rose_entered_with(context) ((context)->regs[0])

#else /* x86-64 */

enum {
	NR_READ = 0,
	NR_WRITE = 1,
	NR_OPEN = 2,
	NR_POLL = 7,
	NR_MMAP = 9,
	NR_PREAD64 = 17,
	NR_PWRITE64 = 18,
	NR_READV = 19,
	NR_WRITEV = 20,
	NR_DUP2 = 33,
	NR_SENDFILE = 40,
	NR_SENDTO = 44,
	NR_RECVFROM = 45,
	NR_SENDMSG = 46,
	NR_RECVMSG = 47,
	NR_EXECVE = 59,
	NR_FCNTL = 72,
	NR_FSYNC = 74,
	NR_FDATASYNC = 75,
	NR_TRUNCATE = 76,
	NR_FTRUNCATE = 77,
	NR_RENAME = 82,
	NR_MKDIR = 83,
	NR_CREAT = 85,
	NR_LINK = 86,
	NR_SYMLINK = 88,
	NR_MKNOD = 133,
	NR_SETXATTR = 188,
	NR_LSETXATTR = 189,
	NR_FSETXATTR = 190,
	NR_RESTART_SYSCALL = 219,
	NR_OPENAT = 257,
	NR_MKDIRAT = 258,
	NR_MKNODAT = 259,
	NR_RENAMEAT = 264,
	NR_LINKAT = 265,
	NR_SYMLINKAT = 266,
	NR_PPOLL = 271,
	NR_SPLICE = 275,
	NR_SYNC_FILE_RANGE = 277,
	NR_FALLOCATE = 285,
	NR_DUP3 = 292,
	NR_PWRITEV = 296,
	NR_RECVMMSG = 299,
	NR_SENDMMSG = 307,
	NR_RENAMEAT2 = 316,
	NR_COPY_FILE_RANGE = 326,
	NR_PWRITEV2 = 328,
};
#define ROSE_THREAD_FLAGS status
enum { ROSE_COMPAT = 2 /* thread_info.status: 32-bit code made the call */ };

#define rose_number_of(regs) ((regs)->orig_ax)
#define rose_read_number(regs) BPF_CORE_READ(regs, orig_ax)
#define rose_read_ip(regs) BPF_CORE_READ(regs, ip)
#define rose_first_of(regs) ((regs)->di)
#define rose_third_of(regs) ((regs)->dx)
#define rose_interrupted(regs) ((long)BPF_CORE_READ(regs, ax))
#define rose_entered_with(context) ((context)->di)

#endif

/* These numbers are the same on all processors. */
enum { NR_IO_URING_ENTER = 426, NR_OPENAT2 = 437 };

/* Argument `n` of the system call with these registers; also valid at its exit. */
static __always_inline __u64 rose_argument(const struct pt_regs *regs, int n)
{
	switch (n) {
#ifdef __TARGET_ARCH_arm64
	case 0: return BPF_CORE_READ(regs, orig_x0);
	case 1: return BPF_CORE_READ(regs, regs[1]);
	case 2: return BPF_CORE_READ(regs, regs[2]);
	case 3: return BPF_CORE_READ(regs, regs[3]);
	case 4: return BPF_CORE_READ(regs, regs[4]);
	case 5: return BPF_CORE_READ(regs, regs[5]);
#else
	case 0: return BPF_CORE_READ(regs, di);
	case 1: return BPF_CORE_READ(regs, si);
	case 2: return BPF_CORE_READ(regs, dx);
	case 3: return BPF_CORE_READ(regs, r10);
	case 4: return BPF_CORE_READ(regs, r8);
	case 5: return BPF_CORE_READ(regs, r9);
#endif
	}
	return 0;
}

/* Parameter `n` of a C function of a program, at its entry. */
static __always_inline __u64 rose_parameter(const struct pt_regs *regs, int n)
{
	switch (n) {
#ifdef __TARGET_ARCH_arm64
	case 0: return BPF_CORE_READ(regs, regs[0]);
	case 1: return BPF_CORE_READ(regs, regs[1]);
	case 2: return BPF_CORE_READ(regs, regs[2]);
#else
	case 0: return BPF_CORE_READ(regs, di);
	case 1: return BPF_CORE_READ(regs, si);
	case 2: return BPF_CORE_READ(regs, dx);
#endif
	}
	return 0;
}

/* Determines the return address of a function that has just been entered. On arm64, `at` is the content of the link
 * register, whose upper bits may contain a pointer authentication code. On x86-64, `at` is the address of the stack
 * slot that holds the return address. */
static __always_inline bool rose_code_at(__u64 at, __u64 *to)
{
#ifdef __TARGET_ARCH_arm64
	*to = at & ((1ULL << 48) - 1);
	return true;
#else
	return !bpf_probe_read_user(to, sizeof(*to), (void *)at);
#endif
}

/* The register with this DWARF number. The largest number is the instruction pointer (ROSE_REGISTERS in inject.h). */
static __always_inline __u64 rose_register(const struct pt_regs *regs, __u32 number)
{
#ifdef __TARGET_ARCH_arm64
	__u64 value = 0;

	if (number == 31)
		return BPF_CORE_READ(regs, sp);
	if (number == 32)
		return BPF_CORE_READ(regs, pc);
	if (number < 31)
		bpf_probe_read_kernel(&value, sizeof(value), (const __u64 *)regs + number);
	return value;
#else
	switch (number) {
	case 0: return BPF_CORE_READ(regs, ax);
	case 1: return BPF_CORE_READ(regs, dx);
	case 2: return BPF_CORE_READ(regs, cx);
	case 3: return BPF_CORE_READ(regs, bx);
	case 4: return BPF_CORE_READ(regs, si);
	case 5: return BPF_CORE_READ(regs, di);
	case 6: return BPF_CORE_READ(regs, bp);
	case 7: return BPF_CORE_READ(regs, sp);
	case 8: return BPF_CORE_READ(regs, r8);
	case 9: return BPF_CORE_READ(regs, r9);
	case 10: return BPF_CORE_READ(regs, r10);
	case 11: return BPF_CORE_READ(regs, r11);
	case 12: return BPF_CORE_READ(regs, r12);
	case 13: return BPF_CORE_READ(regs, r13);
	case 14: return BPF_CORE_READ(regs, r14);
	case 15: return BPF_CORE_READ(regs, r15);
	case 16: return BPF_CORE_READ(regs, ip);
	}
	return 0;
#endif
}

#endif
