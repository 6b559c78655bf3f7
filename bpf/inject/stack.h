/* Copies the state of a thread when a fault affects it: registers, the top of its stack, and the files whose code the
 * addresses on the stack may belong to. This must happen at once, because a process that is killed is gone before user
 * space can read anything. User space unwinds the stack later.
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_INJECT_STACK_H
#define ROSE_INJECT_STACK_H

#include "paths.h"
#include "inject.h"

/* Sized to the schedule before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rose_stack);
} rose_stacks SEC(".maps");

enum {
	STACK_CHUNK = 1024,
	STACK_PAGE = 4096,
	LOOKUPS = 768,			/* at most this many address lookups; further addresses are skipped */
	BUSY_TRIES = 1 << 15,
	BUSY_LIMIT_NS = 3000000,	/* longest time that copying a stack waits for changes of the memory map */
	FILE_DEPTH = 64,
	VM_EXEC_ = 4,
	/* an address up to this far above the stack pointer is taken to be on the stack itself */
	NEAR_STACK = 1 << 20,
};

struct taking {
	struct rose_stack *stack;
	struct rose_stack_map *map;	/* the mapping that is being filled in */
	struct rose_path path;
	__u64 sp;
	__u64 address;
	__u64 busy_ns;  /* when a lookup first found that the memory map is being changed; 0: none has */
	__u64 wanted;
	__u32 lookups;
	__u32 range;
	__u32 at;
	__s32 err;
};

/* Unrolled, because in a loop each register would have a slot on the stack. Linux 6.1 allows 512 bytes of stack for all
 * functions that call each other. */
static __always_inline void copy_registers(__u64 *to, const struct pt_regs *regs)
{
#pragma unroll
	for (int i = 0; i < ROSE_REGISTERS; i++)
		to[i] = rose_register(regs, i);
}

static long copy_chunk(__u32 i, struct taking *t)
{
	struct rose_stack *stack = t->stack;
	__u32 at = stack->bytes;
	__u64 from = t->sp + at;
	__u32 size = STACK_CHUNK - rose_unknown(from & (STACK_CHUNK - 1));

	if (at > sizeof(stack->words) - STACK_CHUNK || size > STACK_CHUNK)
		return 1;
	if (bpf_probe_read_user((__u8 *)stack->words + at, size, (void *)from))
		return 1;
	stack->bytes = at + size;
	return 0;
}

/* Prepends a name to the path so far. */
static long path_name(__u32 i, struct taking *t)
{
	struct rose_stack *stack = t->stack;
	struct rose_stack_map *map = t->map;
	struct rose_path path = t->path;
	const unsigned char *name;
	__u32 at = t->at, length;
	long n;

	if (!rose_step_up(&path, &name))
		return 1;
	t->path.dentry = path.dentry;
	t->path.mnt = path.mnt;
	if (!name)
		return 0;
	n = bpf_probe_read_kernel_str(stack->name, sizeof(stack->name), name);
	if (n <= 1 || n > (long)sizeof(stack->name))
		return 1;
	length = n - 1;
	if (at < length + 1 || at > ROSE_STACK_PATH) {
		t->at = ROSE_STACK_PATH;
		return 1;
	}
	at = rose_unknown(at - length);
	if (at >= ROSE_STACK_PATH)
		return 1;
	bpf_probe_read_kernel(&map->path[at], length & 255, stack->name);
	at = rose_unknown(at - 1);
	if (at >= ROSE_STACK_PATH)
		return 1;
	map->path[at] = '/';
	t->at = at;
	return 0;
}

#ifdef ROSE_OLD
/* The state that the functions below share. Their arguments are only numbers, so that old verifiers check each function
 * once. `at` is the index of the stack in rose_stacks. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct taking);
} rose_takings SEC(".maps");

static __always_inline struct taking *taking(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&rose_takings, &zero);
}

__noinline int rose_name_map(__u32 n, __u64 mnt, __u64 dentry)
{
	struct taking *room = taking();
	struct taking t = {.at = ROSE_STACK_PATH};

	if (!room || n >= ROSE_STACK_MAPS)
		return 0;
	t.stack = bpf_map_lookup_elem(&rose_stacks, &room->at);
	if (!t.stack)
		return 0;
	t.map = &t.stack->maps[n];
	t.path = room->path;
	t.path.mnt = (void *)mnt;
	t.path.dentry = (void *)dentry;
	rose_loop(FILE_DEPTH, FILE_DEPTH, path_name, &t);
	t.map->at = t.at;
	return 0;
}
#endif

/* Sets t->address to 0 if a recorded mapping starts at that address. */
static long same_area(__u32 i, struct taking *t)
{
	struct rose_stack *stack = t->stack;

	if (i >= stack->map_count || i >= ROSE_STACK_MAPS)
		return 1;
	if (stack->maps[i].start != t->address)
		return 0;
	t->address = 0;
	return 1;
}

static long note_area(struct task_struct *task, struct vm_area_struct *area, struct taking *t)
{
	struct rose_stack *stack = t->stack;
	struct rose_stack_map *map;
	struct file *file;
	__u64 start = BPF_CORE_READ(area, vm_start), end = BPF_CORE_READ(area, vm_end);
	__u32 n;

	stack->ranges[t->range & (ROSE_STACK_RANGES - 1)].start = start;
	stack->ranges[t->range & (ROSE_STACK_RANGES - 1)].end = end;
	if (!(BPF_CORE_READ(area, vm_flags) & VM_EXEC_))
		return 0;
	t->address = start;
	rose_loop(ROSE_STACK_MAPS, ROSE_STACK_MAPS, same_area, t);
	if (!t->address)
		return 0;
	n = rose_unknown(stack->map_count);
	if (n >= ROSE_STACK_MAPS) {
		stack->more_maps++;
		return 0;
	}
	stack->map_count = n + 1;
	map = &stack->maps[n];
	map->start = start;
	map->end = end;
	map->offset = (__u64)BPF_CORE_READ(area, vm_pgoff) * STACK_PAGE;
	map->inode = 0;
	map->at = ROSE_STACK_PATH;
	file = BPF_CORE_READ(area, vm_file);
	if (!file)
		return 0;
	map->inode = BPF_CORE_READ(file, f_inode, i_ino);
	t->map = map;
	t->at = ROSE_STACK_PATH;
	t->path.mnt = BPF_CORE_READ(file, f_path.mnt);
	t->path.dentry = BPF_CORE_READ(file, f_path.dentry);
#ifdef ROSE_OLD
	rose_name_map(n, (__u64)t->path.mnt, (__u64)t->path.dentry);
#else
	bpf_loop(FILE_DEPTH, path_name, t, 0);
	map->at = t->at;
#endif
	return 0;
}

/* Looks up t->wanted. Called again while another thread is changing the memory map (for example to start a thread),
 * which takes microseconds. */
static long try_find(__u32 i, struct taking *t)
{
	t->err = rose_find_area(rose_current_btf(), t->wanted, note_area, t);
	if (t->err != -16)		/* EBUSY */
		return 1;
	if (!t->busy_ns)
		t->busy_ns = bpf_ktime_get_ns();
	return bpf_ktime_get_ns() - t->busy_ns > BUSY_LIMIT_NS;
}

/* Looks up the mapping of an address. Returns 1 if the limit of lookups is reached. */
static __always_inline long look_up(struct taking *t, __u64 address)
{
	struct rose_stack *stack = t->stack;
	struct rose_stack_range *range;

	if (address < STACK_PAGE || address >= 1ULL << ROSE_ADDRESS_BITS || address - t->sp < NEAR_STACK)
		return 0;
	t->range = (address >> 18) & (ROSE_STACK_RANGES - 1);
	range = &stack->ranges[t->range & (ROSE_STACK_RANGES - 1)];
	if (address >= range->start && address < range->end)
		return 0;
	if (++t->lookups > LOOKUPS)
		return 1;
	/* Assume that the page belongs to no mapping, unless the lookup finds one. */
	range->start = address & ~(STACK_PAGE - 1ULL);
	range->end = range->start + STACK_PAGE;
	t->wanted = address;
	rose_loop(BUSY_TRIES, 1, try_find, t); /* only once on old kernels, where no lock is taken */
	if (t->err == -16) {
		stack->unknown++;
		range->end = 0;
	}
	return 0;
}

/* Looks up the instruction pointer first, then the words of the stack. */
static long scan_word(__u32 i, struct taking *t)
{
	struct rose_stack *stack = t->stack;
	__u64 word = stack->registers[ROSE_REGISTERS - 1];

	if (i) {
		i--;
		if (i >= ROSE_STACK_WORDS || (i + 1) * 8 > stack->bytes)
			return 1;
		word = stack->words[i];
	}
	return look_up(t, word);
}

#ifdef ROSE_OLD
/* Old verifiers check this function once, because its argument is a number. The other state is in rose_takings. */
__noinline int rose_scan_word(__u32 i)
{
	struct taking *room = taking();
	struct taking t = {};
	long done;

	if (!room)
		return 1;
	t.stack = bpf_map_lookup_elem(&rose_stacks, &room->at);
	if (!t.stack)
		return 1;
	t.path = room->path;
	t.sp = room->sp;
	t.lookups = room->lookups;
	done = scan_word(i, &t);
	room->lookups = t.lookups;
	return done;
}
#define scan_word(i, t) rose_scan_word(i)
#endif

/* The id of the current thread in its own PID namespace; 0: unknown. */
static __always_inline __u32 own_number(void)
{
	struct pid *pid = BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), thread_pid);
	__u32 level = BPF_CORE_READ(pid, level), number = 0;

	bpf_core_read(&number, sizeof(number),
		      (void *)pid + bpf_core_field_offset(struct pid, numbers) + level * bpf_core_type_size(struct upid) +
			      bpf_core_field_offset(struct upid, nr));
	return number;
}

/* Copies the current thread's stack for a chain that fires on it. Does so only the first few times. */
__noinline int rose_take_stack(__u32 index)
{
	struct rose_settings *set = settings();
	struct rose_chain *chain = bpf_map_lookup_elem(&rose_chains, &index);
	struct taking here = {}, *t = &here;
	struct pt_regs *regs;
	__u64 id = bpf_get_current_pid_tgid();
	__u32 n, key;

	if (!set || !chain || chain->stacks >= set->stacks)
		return 0;
	n = rose_add(&chain->stacks, 1);
	key = index * set->stacks + n;
	if (n >= set->stacks || key >= set->stack_slots)
		return 0;
	t->stack = bpf_map_lookup_elem(&rose_stacks, &key);
	if (!t->stack)
		return 0;
	regs = rose_task_regs(rose_current_btf());
	copy_registers(t->stack->registers, regs);
	t->sp = t->stack->registers[ROSE_STACK_POINTER];
	t->stack->at_ns = bpf_ktime_get_ns();
	t->stack->pid = id >> 32;
	t->stack->tid = (__u32)id;
	t->stack->own_tid = own_number();
	bpf_get_current_comm(t->stack->thread, sizeof(t->stack->thread));
	rose_loop(sizeof(t->stack->words) / STACK_CHUNK + 1, sizeof(t->stack->words) / STACK_CHUNK + 1, copy_chunk, t);
	rose_path_root(&t->path, (void *)bpf_get_current_task());
#ifdef ROSE_OLD
	struct taking *room = taking();

	if (!room)
		return 0;
	*room = *t;
	room->at = key;
#endif
	rose_loop(ROSE_STACK_WORDS + 1, ROSE_STACK_WORDS + 1, scan_word, t);
	ROSE_WRITE(t->stack->ready, 1);
	return 0;
}

/* Reports the registers of a thread that is held in a call. */
SEC("iter/task")
int rose_registers(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	__u64 registers[ROSE_REGISTERS];

	if (!task)
		return 0;
#ifdef ROSE_OLD /* before Linux 6.1 (commit f0d74c4da1f0) an iterator visits all threads */
	struct rose_settings *set = settings();

	if (!set || (__u32)task->pid != ROSE_READ(set->wanted))
		return 0;
#endif
	copy_registers(registers, rose_task_regs(task));
	bpf_seq_write(ctx->meta->seq, registers, sizeof(registers));
	return 0;
}

#endif
