/* The kernel's types and fields that rose's BPF programs use. libbpf relocates them at load time to the running kernel
 * (CO-RE). They replace a generated vmlinux.h of a megabyte, so that programs cannot depend on other fields by
 * accident.
 *
 * Kernel structs may omit fields and have them in any order, but names and types must match the kernel's. Structs that
 * are ABI (sockaddr, __sk_buff) are outside the relocated part, with their exact layout. Include this file first. It
 * includes libbpf's helpers.
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_CORE_H
#define ROSE_CORE_H

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef signed short __s16;
typedef unsigned int __u32;
typedef signed int __s32;
typedef unsigned long long __u64;
typedef signed long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef int pid_t;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

/* ---- the ABI of bpf(2): the constants that the programs use ---- */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_LPM_TRIE = 11,
	BPF_MAP_TYPE_CGROUP_STORAGE = 19,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_EXIST = 2,
};
enum {
	BPF_F_NO_PREALLOC = 1,
	BPF_F_CLONE = 1 << 9,
	BPF_F_MMAPABLE = 1 << 10,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
};
enum {
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
	BPF_RB_AVAIL_DATA = 0,
	BPF_RB_RING_SIZE = 1,
};
enum { BPF_F_INVALIDATE_HASH = 2, BPF_F_INGRESS = 1 };
enum { XDP_DROP = 1, XDP_PASS = 2 };
enum { TC_ACT_OK = 0, TC_ACT_SHOT = 2, TCX_NEXT = -1 };

/* The context of socket buffer programs, up to the last field that the programs read, at the offsets of the ABI. */
struct __sk_buff {
	__u32 len;
	__u32 pkt_type;
	__u32 mark;
	__u32 queue_mapping;
	__u32 protocol;
	__u32 vlan_present;
	__u32 vlan_tci;
	__u32 vlan_proto;
	__u32 priority;
	__u32 ingress_ifindex;
	__u32 ifindex;
	__u32 tc_index;
	__u32 cb[5];
	__u32 hash;
	__u32 tc_classid;
	__u32 data;
	__u32 data_end;
	__u32 napi_id;
	__u32 family;
	__u32 remote_ip4;
	__u32 local_ip4;
	__u32 remote_ip6[4];
	__u32 local_ip6[4];
	__u32 remote_port;
	__u32 local_port;
	__u32 data_meta;
	__u64 flow_keys __attribute__((aligned(8)));
	__u64 tstamp;
	__u32 wire_len;
	__u32 gso_segs;
	struct bpf_sock *sk __attribute__((aligned(8)));
};
/* The context of programs that run at bind. Its port is in host order. */
struct bpf_sock {
	__u32 bound_dev_if;
	__u32 family;
	__u32 type;
	__u32 protocol;
	__u32 mark;
	__u32 priority;
	__u32 src_ip4;
	__u32 src_ip6[4];
	__u32 src_port;
};
struct xdp_md {
	__u32 data;
	__u32 data_end;
	__u32 data_meta;
	__u32 ingress_ifindex;
};
struct bpf_raw_tracepoint_args {
	__u64 args[0];
};

/* ---- user space ABI ---- */
struct in6_addr {
	__u8 bytes[16];
};
struct rose_sockaddr_in {
	__u16 family;
	__be16 port;
	__be32 addr;
	__u8 pad[8];
};
struct rose_sockaddr_in6 {
	__u16 family;
	__be16 port;
	__be32 flowinfo;
	__u8 addr[16];
	__u32 scope;
};
struct rose_user_msghdr {
	__u64 name;
	__u32 namelen;
	__u32 pad;
	__u64 iov, iovlen, control, controllen;
	__u32 flags;
	__u32 pad2;
};

enum {
	AF_UNIX = 1,
	AF_INET = 2,
	AF_INET6 = 10,
	AF_NETLINK = 16,
	ETH_P_IP = 0x0800,
	ETH_P_IPV6 = 0x86dd,
	ETH_P_8021Q = 0x8100,
	IPPROTO_ICMP = 1,
	IPPROTO_TCP = 6,
	IPPROTO_UDP = 17,
	IPPROTO_ICMPV6 = 58,
	AT_FDCWD = -100,
	TCP_ESTABLISHED = 1, /* sock_common.skc_state */
	TCP_SYN_SENT = 2,
	TCP_FIN_WAIT1 = 4,
	TCP_CLOSE = 7,
	TCP_CLOSE_WAIT = 8,
	TCP_LAST_ACK = 9,
	TCP_LISTEN = 10,
	MAX_ERRNO = 4095,
	SIGNAL_GROUP_EXIT = 4, /* signal_struct.flags */
	SIGNAL_GROUP_COREDUMP = 8, /* signal_struct.flags before Linux 5.17: the process ends and its core is dumped */
	JOBCTL_STOP_PENDING = 1 << 17, /* task_struct.jobctl */
	JOBCTL_TRAP_FREEZE = 1 << 23,
	SIGNAL_CLD_MASK = 0x30, /* signal_struct.flags: SIGCONT has just ended a stop */
	TASK_UNINTERRUPTIBLE = 2, /* task_struct.__state */
	TASK_STOPPED_BIT = 4,
	TASK_NOLOAD = 0x400, /* a kernel thread that is idle */
	TASK_FROZEN = 0x8000, /* in the freezer of cgroup v1, since Linux 6.1 */
	/* task_struct.flags: in the freezer of cgroup v1; since Linux 6.1 only for kernel threads */
	PF_FROZEN = 0x00010000,
	PF_KTHREAD = 0x00200000, /* task_struct.flags */
	CGRP_FREEZE_BIT = 1 << 2, /* cgroup.flags: frozen, itself or through an ancestor */
	PF_FORKNOEXEC = 0x40,  /* task_struct.flags */
	PIPEFS_MAGIC = 0x50495045,
	ANON_INODE_FS_MAGIC = 0x09041934,
	SOCKFS_MAGIC = 0x534f434b,
	S_IFMT = 0170000,
	S_IFSOCK = 0140000,
	S_IFREG = 0100000,
	SB_I_NOEXEC = 2, /* super_block.s_iflags: a file system of the kernel's own, such as proc and sysfs */
	S_IFIFO = 0010000,
	O_NONBLOCK = 04000,
};

/* ---- the kernel, relocated ---- */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

#ifdef __TARGET_ARCH_arm64
struct pt_regs {
	unsigned long long regs[31], sp, pc, pstate;
	unsigned long long orig_x0;
	int syscallno;
};
#else
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long orig_ax;
	unsigned long ip;
	unsigned long sp;
};
#endif

struct hlist_bl_node {
	struct hlist_bl_node *next, **pprev;
};
struct qstr {
	const unsigned char *name;
};
struct super_block {
	unsigned int s_dev;
	unsigned long s_magic;
	unsigned long s_iflags;
};
struct inode {
	unsigned short i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	unsigned int i_nlink;
	long long i_size;
};
/* Where an inode has its time of the last change: since Linux 6.11, since 6.7 (commit 13bc24457850), and before. */
struct inode___seconds {
	long long i_mtime_sec;
};
struct rose_timespec {
	long long tv_sec;
};
struct inode___hidden {
	struct rose_timespec __i_mtime;
};
struct inode___old {
	struct rose_timespec i_mtime;
};
struct dentry {
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
};
struct vfsmount {
	struct dentry *mnt_root;
};
struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};
struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};
struct file {
	unsigned int f_flags;
	struct inode *f_inode;
	struct path f_path;
	void *private_data;
	long long f_pos;
};
struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	unsigned long vm_flags;
	unsigned long vm_pgoff;
	struct file *vm_file;
};
/* The tree of a process's memory mappings before commit 763ecb035029 (Linux 6.1). */
struct rb_node {
	struct rb_node *rb_right, *rb_left;
};
struct rb_root {
	struct rb_node *rb_node;
};
struct vm_area_struct___tree {
	struct rb_node vm_rb;
};
struct mm_struct___tree {
	struct rb_root mm_rb;
};
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};
struct files_struct {
	struct fdtable *fdt;
};
struct fs_struct {
	struct path root;
	struct path pwd;
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num; /* host order */
	unsigned short skc_family;
	volatile unsigned char skc_state;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};
struct sock {
	struct sock_common __sk_common;
	__u16 sk_protocol;
	int sk_err;
};
struct inet_sock {
	__be16 inet_sport;
};
struct inet_connection_sock {
	__u8 icsk_retransmits; /* retransmissions of unacknowledged data */
	__u8 icsk_probes_out; /* unanswered keep-alives and window probes */
	struct {
		__u32 lrcvtime; /* when the last data arrived, in jiffies */
	} icsk_ack;
};
struct tcp_sock {
	__u32 snd_nxt;
	__u32 snd_una;
	__u32 lsndtime; /* when data was last sent, the first time or again, in jiffies */
	__u32 rcv_tstamp; /* when the last acknowledgement arrived, in jiffies */
	__u32 segs_in;
	__u32 write_seq, copied_seq; /* sequence numbers after the last byte that the program wrote and read */
};
struct socket {
	struct sock *sk;
};
struct sockaddr_un {
	unsigned short sun_family;
	char sun_path[108];
};
struct unix_address {
	int len;
	struct sockaddr_un name[0];
};
struct unix_sock {
	struct sock sk;
	struct unix_address *addr;
	struct sock *peer;
};

struct kernfs_node {
	__u64 id;
};
struct cgroup;
struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};
struct cgroup_root {
	int hierarchy_id; /* 0: the hierarchy of cgroup v2 */
};
struct cgroup {
	struct cgroup_subsys_state self;
	unsigned long flags;
	int level;
	struct kernfs_node *kn;
	struct cgroup_root *root;
	struct cgroup *ancestors[0]; /* by level, up to the cgroup itself; since Linux 6.1 */
};
/* Before commit 7f203bc89eb6, a cgroup had only the ids of its ancestors. */
struct cgroup___ids {
	__u64 ancestor_ids[0];
};
struct css_set {
	struct cgroup *dfl_cgrp;
};

struct thread_info {
#ifdef __TARGET_ARCH_arm64
	unsigned long flags;
#else
	__u32 status;
#endif
};
struct list_head {
	struct list_head *next, *prev;
};
struct completion;
struct trace_uprobe {
	const char *filename;
};
struct uprobe_dispatch_data {
	struct trace_uprobe *tu;
};
struct uprobe_task {
	unsigned long vaddr;
};
struct mm_struct {
	struct file *exe_file;
};
struct rlimit {
	unsigned long rlim_cur;
};
struct signal_struct {
	atomic_t live;
	int group_exit_code;
	unsigned int flags;
	struct rlimit rlim[16];
};
typedef struct {
	unsigned long sig[1];
} sigset_t;
struct sigpending {
	sigset_t signal;
};
union __sifields {
	struct {
		void *_addr;
	} _sigfault;
};
struct kernel_siginfo {
	int si_code;
	union __sifields _sifields;
};
typedef void (*__sighandler_t)(int);
struct sigaction {
	__sighandler_t sa_handler;
	unsigned long sa_flags;
};
struct k_sigaction {
	struct sigaction sa;
};
struct sighand_struct {
	struct k_sigaction action[64];
};
struct upid {
	int nr;
	void *ns;
};
struct pid {
	unsigned int level;
	struct upid numbers[1];
};
struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	unsigned int flags;
	char comm[16];
	struct mm_struct *mm;
	struct sighand_struct *sighand;
	int exit_code;
	pid_t pid;
	pid_t tgid;
	struct pid *thread_pid;
	struct task_struct *real_parent;
	struct task_struct *parent;
	unsigned int ptrace;
	unsigned long jobctl;
	struct sigpending pending;
	struct list_head children;
	struct list_head sibling;
	struct task_struct *group_leader;
	struct completion *vfork_done;
	unsigned long nvcsw, nivcsw;
	__u64 start_time;
	struct fs_struct *fs;
	struct files_struct *files;
	struct signal_struct *signal;
	struct css_set *cgroups;
	void *stack;
	struct uprobe_task *utask;
};
/* The field with a task's state before commit 2f064a59a11f (Linux 5.14). */
struct task_struct___state {
	volatile long state;
};

struct io_kiocb {
	struct file *file;
	__u8 opcode;
};
struct io_uring_cqe {
	__u64 user_data;
	__s32 res;
};

struct seq_file;
struct bpf_iter_meta {
	struct seq_file *seq;
};
struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	struct file *file;
};
struct linux_binprm {
	const char *filename;
	struct file *file;
};
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>

/* Returns `value`, but clang forgets what it knows about the value. So clang does not remove a mask or comparison that
 * follows as redundant. The verifiers of older kernels need it, because they know less about the value than clang. */
static __always_inline __u64 rose_unknown(__u64 value)
{
	asm volatile("" : "+r"(value));
	return value;
}

/* Reads a string from the memory of the current process, truncated to `room` bytes. Returns its length including the
 * NUL, or a negative error. */
static __always_inline long rose_read_user_text(void *to, __u32 room, __u64 address)
{
	long n = bpf_probe_read_user_str(to, room, (const void *)address);

	if (n == 0) { /* before Linux 6.13, an empty string returns 0 and nothing is written */
		*(char *)to = 0;
		n = 1;
	}
	return n;
}

#include "rose_old.h"

#include "arch.h"

/* The id of the cgroup's ancestor at a level. At the cgroup's own level, that is its own id. 0 if the cgroup is above
 * the level. */
static __always_inline __u64 rose_ancestor_id(struct cgroup *cgroup, __u32 level)
{
	__u64 id = 0;

	if (!cgroup || (__s32)level > BPF_CORE_READ(cgroup, level))
		return 0;
	if (bpf_core_field_exists(cgroup->ancestors)) {
		struct cgroup *ancestor = NULL;

#ifdef ROSE_OLD
		barrier_var(cgroup);
#endif
		bpf_probe_read_kernel(&ancestor, sizeof(ancestor),
				      (void *)cgroup + bpf_core_field_offset(struct cgroup, ancestors) + level * 8);
		return ancestor ? BPF_CORE_READ(ancestor, kn, id) : 0;
	}
	/* Without this, the compiler computes both addresses before the condition. */
	barrier_var(cgroup);
	bpf_probe_read_kernel(&id, sizeof(id),
			      (void *)cgroup + bpf_core_field_offset(struct cgroup___ids, ancestor_ids) + level * 8);
	return id;
}

/* The open file of a descriptor of the current task, or NULL. The table cannot shrink. This runs in an RCU section, so
 * the file may have just been closed, but its memory is not freed. */
static __always_inline struct file *rose_file_of(struct task_struct *task, __s64 fd)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **slots, *file = NULL;

	if (!table || fd < 0 || fd >= BPF_CORE_READ(table, max_fds))
		return NULL;
	slots = BPF_CORE_READ(table, fd);
	if (bpf_core_read(&file, sizeof(file), slots + fd))
		return NULL;
	return file;
}

#endif
