/* Replacements for what kernels before 5.17 lack. Each source is compiled twice: as it is, and with ROSE_OLD for
 * kernels from 5.10 on (cmake/make-skeletons.sh). One object that tests the kernel at load time cannot serve both,
 * because old verifiers also check code that is never reached: before 5.13 they refuse the address of a callback, and
 * before 5.12 an atomic operation that returns a value and a global function whose argument is a pointer to memory.
 * Both objects have the same programs, the same constants and the maps that user space uses, so that one skeleton opens
 * both (src/kernel/old_kernel.h).
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_OLD_H
#define ROSE_OLD_H

/* A constant that user space sets before loading. The attribute `used` and an initial value keep the constants in the
 * order of their definitions, so that both objects have the same order. */
#define ROSE_FIXED const volatile __attribute__((used))

#ifndef ROSE_OLD

/* Not static, so that the verifier checks the function once instead of along each path through its callers. */
#define ROSE_ONCE __noinline
/* `most` limits the steps on old kernels only; here it has no effect. */
#define rose_loop(count, most, step, context) bpf_loop(count, step, context, 0)
/* A lock. Programs do not wait for it: rose_try() returns false if the lock is taken. */
#define rose_try(word) (__sync_lock_test_and_set(word, 1) == 0)
#define rose_leave(word) ((void)__sync_lock_test_and_set(word, 0))
#define rose_exchange(pointer, value) __sync_lock_test_and_set(pointer, value)
#define rose_replace(pointer, before, after) __sync_val_compare_and_swap(pointer, before, after)
#define rose_add(pointer, change) __sync_fetch_and_add(pointer, change)
#define rose_cookie(ctx) bpf_get_attach_cookie(ctx)
#define rose_current_btf() bpf_get_current_task_btf()
#define rose_task_regs(task) ((struct pt_regs *)bpf_task_pt_regs(task))
#define rose_state_of(task) ((task)->__state)
/* Calls step(task, area, context) for the mapping that contains the address. `task` must be the current task. */
#define rose_find_area(task, address, step, context) bpf_find_vma(task, address, step, context, 0)

static __always_inline struct sock *rose_sock_of(struct file *file)
{
	struct socket *socket = bpf_sock_from_file(file);

	return socket ? socket->sk : NULL;
}

#else

#define ROSE_ONCE static __noinline

/* The verifier follows the steps one by one and accepts at most a million instructions. So `most` limits the steps. */
#define rose_loop(count, most, step, context)                                        \
	({                                                                           \
		__u32 taken_ = 0, wanted_ = (count);                                 \
		_Pragma("clang loop unroll(disable)") while (taken_ < (most))        \
		{                                                                    \
			if (taken_ >= wanted_)                                       \
				break;                                               \
			if (step(taken_++, context))                                 \
				break;                                               \
		}                                                                    \
		(long)taken_;                                                        \
	})

/* For a long loop. `step` is a global function, which the verifier checks only once. It also gets `count`, and returns
 * true if `count` is reached, so that the loop needs fewer jumps: the verifier follows at most 8,192. */
#define rose_long_loop(count, most, step)                                            \
	do {                                                                         \
		__u32 taken_ = 0, wanted_ = (count);                                 \
		_Pragma("clang loop unroll(disable)") while (taken_ < (most))        \
		{                                                                    \
			if (step(taken_++, wanted_))                                 \
				break;                                               \
		}                                                                    \
	} while (0)

/* A lock. Atomic additions return nothing on these kernels, so a program holds the lock if it reads 1 after its
 * addition. If two programs try at the same time, both may fail. User space takes the lock by exchanging 0 for 1, and
 * releases it by subtracting 1. */
static __always_inline bool rose_try(__u64 *word)
{
	__sync_fetch_and_add(word, 1);
	if (*(volatile __u64 *)word == 1)
		return true;
	__sync_fetch_and_add(word, -1);
	return false;
}
#define rose_leave(word) ((void)__sync_fetch_and_add(word, -1))

/* Not atomic: if two processors change a value at the same moment, a change may count twice or be lost. */
#define rose_exchange(pointer, value)                                                \
	({                                                                           \
		__typeof__(*(pointer)) before_ = *(volatile __typeof__(pointer))(pointer); \
		*(volatile __typeof__(pointer))(pointer) = (value);                  \
		before_;                                                             \
	})
#define rose_replace(pointer, before, after)                                         \
	({                                                                           \
		__typeof__(*(pointer)) before_ = *(volatile __typeof__(pointer))(pointer); \
		if (before_ == (before))                                             \
			*(volatile __typeof__(pointer))(pointer) = (after);          \
		before_;                                                             \
	})
#define rose_add(pointer, change)                                                    \
	({                                                                           \
		__typeof__(*(pointer)) before_ = *(volatile __typeof__(pointer))(pointer); \
		__sync_fetch_and_add(pointer, change);                               \
		before_;                                                             \
	})

/* The cookie is encoded in the path by which the probe was attached (src/kernel/attach.cc). Each bit is two characters,
 * the lowest bit first: "/." is 1 and "//" is 0. */
static __noinline __attribute__((unused)) __u64 rose_cookie_of(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct uprobe_dispatch_data *running = (void *)BPF_CORE_READ(task, utask, vaddr);
	const char *path = BPF_CORE_READ(running, tu, filename);
	__u64 cookie = 0;
	char bits[128];

	if (bpf_probe_read_kernel(bits, sizeof(bits), path))
		return 0;
	for (int i = 0; i < 64; i++)
		cookie |= (__u64)(~bits[2 * i + 1] & 1) << i; /* '.' is even and '/' is odd, so this needs no branch */
	return cookie;
}
#define rose_cookie(ctx) ((void)(ctx), rose_cookie_of())

#define rose_current_btf() ((struct task_struct *)bpf_get_current_task())

/* The registers are at the end of the thread's kernel stack (x86-64). */
static __always_inline struct pt_regs *rose_task_regs(struct task_struct *task)
{
	return (void *)BPF_CORE_READ(task, stack) + 16384 - bpf_core_type_size(struct pt_regs);
}

static __always_inline __u32 rose_state_of(struct task_struct *task)
{
	if (bpf_core_field_exists(task->__state))
		return BPF_CORE_READ(task, __state);
	return BPF_CORE_READ((struct task_struct___state *)task, state);
}

/* Works without bpf_sock_from_file, which needs Linux 5.11. The result can be read only by BPF_CORE_READ. */
static __always_inline struct sock *rose_sock_of(struct file *file)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);

	if ((BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) != S_IFSOCK ||
	    BPF_CORE_READ(file, f_inode, i_sb, s_magic) != SOCKFS_MAGIC)
		return NULL;
	return BPF_CORE_READ(socket, sk);
}

/* Searches the tree without the lock that bpf_find_vma (5.17) takes, so a mapping may be missed while another thread
 * changes the tree. Global, so that the verifier does not follow its callers for each possible number of steps. */
__noinline __u64 rose_area_at(__u64 address)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct mm_struct___tree *mm = (void *)BPF_CORE_READ(task, mm);
	struct rb_node *node;

	if (!bpf_core_field_exists(mm->mm_rb))
		return 0;
	barrier_var(mm);
	node = BPF_CORE_READ(mm, mm_rb.rb_node);
	for (int i = 0; i < 40 && node; i++) {
		struct vm_area_struct *area = (void *)node - bpf_core_field_offset(struct vm_area_struct___tree, vm_rb);

		if (address < BPF_CORE_READ(area, vm_start))
			node = BPF_CORE_READ(node, rb_left);
		else if (address >= BPF_CORE_READ(area, vm_end))
			node = BPF_CORE_READ(node, rb_right);
		else
			return (__u64)area;
	}
	return 0;
}
#define rose_find_area(task, address, step, context)                                 \
	({                                                                           \
		struct vm_area_struct *area_ = (void *)rose_area_at(address);        \
		area_ ? step(task, area_, context) : -2; /* ENOENT */                \
	})

#endif

#endif
