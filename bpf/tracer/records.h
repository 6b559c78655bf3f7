/* Records of calls and their parts: paths, peers, descriptors. They are built in a buffer per CPU, because a path does
 * not fit on the BPF stack.
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_TRACER_RECORDS_H
#define ROSE_TRACER_RECORDS_H

#include "paths.h"
#include "tracer/maps.h"

static __always_inline struct scratch *try_scratch(__u32 i)
{
	struct scratch *s = bpf_map_lookup_elem(&rose_scratch, &i);

	return s && rose_try(&s->busy) ? s : NULL;
}

/* Claims one of the CPU's buffers, because programs may interrupt one another on a CPU, and some kernels preempt them.
 * There is no loop, because before Linux 6.4 the verifier considers a loop endless if it only changes the stack. */
static __always_inline struct scratch *take_scratch(__u32 node)
{
	struct scratch *s = try_scratch(0);

	_Static_assert(ROSE_SCRATCHES == 2, "each is tried");
	if (!s)
		s = try_scratch(1);
	if (s)
		return s;
	struct rose_stats *stats = stats_of(node);

	if (stats)
		__sync_fetch_and_add(&stats->lost, 1);
	return NULL;
}

static __always_inline void give_back(struct scratch *s)
{
	rose_leave(&s->busy);
}

static __always_inline void put_head(struct scratch *s, __u32 off, __u8 kind, __u8 flags, __u32 length)
{
	struct rose_piece *piece = (void *)&s->record[off & ROSE_RECORD_LIMIT];
	__u64 end = rose_unknown(off + sizeof(*piece) + length);

	/* The part is filled with zeros up to a multiple of 8, so that equal records have equal bytes. */
	if (end <= ROSE_RECORD_BYTES - 8) {
		void *tail = &s->record[end];

		*(__u64 *)tail = 0;
	}

	piece->length = length;
	piece->kind = kind;
	piece->flags = flags;
	piece->pad = 0;
	s->size = (end + 7) & ~7u;
}

/* Finds the end of a text that may be longer than a path. The end is recorded, because it distinguishes files. */
struct tail_search {
	__u64 address;
	__u64 length;
	struct scratch *s;
	__u32 off;
};
static long tail_step(__u32 i, struct tail_search *search)
{
	struct scratch *s = search->s;
	__u32 off = search->off;
	long n;

	if (off > ROSE_RECORD_LIMIT - sizeof(struct rose_piece))
		return 1;
	n = rose_read_user_text(&s->record[off + sizeof(struct rose_piece)], ROSE_PATH_BYTES,
				search->address + search->length);
	if (n <= 0)
		return 1;
	search->length += n - 1;
	return n < ROSE_PATH_BYTES;
}

/* Adds a path as the caller gave it. Returns its first character, 0 if it is empty, and -1 if it cannot be read. */
static __noinline int put_user_path(struct scratch *s, __u64 address, __u8 kind)
{
	__u32 off = s->size;
	__u8 flags = 0;
	long n;
	int first;

	if (off > ROSE_RECORD_LIMIT - sizeof(struct rose_piece) || !address)
		return -1;
	n = rose_read_user_text(&s->record[off + sizeof(struct rose_piece)], ROSE_PATH_BYTES, address);
	if (n < 0 || n > ROSE_PATH_BYTES)
		return -1;
	first = s->record[off + sizeof(struct rose_piece)];
	if (n == ROSE_PATH_BYTES) {
		struct tail_search search = {.address = address, .length = ROSE_PATH_BYTES - 1, .s = s, .off = off};

		rose_loop(16, 16, tail_step, &search);
		if (search.length > ROSE_PATH_BYTES - 1)
			flags = ROSE_CUT;
		n = rose_read_user_text(&s->record[off + sizeof(struct rose_piece)], ROSE_PATH_BYTES,
					address + search.length - (ROSE_PATH_BYTES - 1));
		if (n <= 0 || n > ROSE_PATH_BYTES)
			return -1;
	}
	put_head(s, off, kind, flags, n - 1);
	return first;
}

/* Walks from a file to the task's root directory and appends the names, beginning with the file's own. */
#ifdef ROSE_OLD
enum { ROSE_STEPS_UP = 64 };
#else
enum { ROSE_STEPS_UP = 511 };
#endif
struct walk {
	struct scratch *s;
	struct rose_path path;
	__u32 begin;
	__u32 cut;
};
static long walk_step(__u32 i, struct walk *walk)
{
	struct rose_path path = walk->path;
	struct scratch *s = walk->s;
	const unsigned char *name;
	__u32 off;
	long n;

	if (!rose_step_up(&path, &name))
		return 1;
	if (name) {
		off = s->size;
		if (off > ROSE_RECORD_LIMIT || off - walk->begin > ROSE_PATH_BYTES - 256) {
			walk->cut = 1;
			return 1;
		}
		n = bpf_probe_read_kernel_str(&s->record[off], 256, name);
		if (n <= 0)
			return 1;
		s->size = off + n;
		if (i == ROSE_STEPS_UP - 1)
			walk->cut = 1;
	}
	walk->path.dentry = path.dentry;
	walk->path.mnt = path.mnt;
	return 0;
}

static __noinline int put_fragments(struct scratch *s, struct vfsmount *mnt, struct dentry *dentry, __u32 kind_flags)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct walk walk = {.s = s, .path = {.dentry = dentry, .mnt = mnt}};
	__u32 off = s->size;

	if (off > ROSE_RECORD_LIMIT - sizeof(struct rose_piece))
		return 0;
	walk.begin = off + sizeof(struct rose_piece);
	rose_path_root(&walk.path, task);
	s->size = walk.begin;
	rose_loop(ROSE_STEPS_UP, ROSE_STEPS_UP, walk_step, &walk);
	put_head(s, off, kind_flags & 0xff, (kind_flags >> 8) | (walk.cut ? ROSE_CUT : 0), s->size - walk.begin);
	return 0;
}

static __always_inline void put_address(struct scratch *s, __u16 family, __u16 port, const void *bytes, __u32 length)
{
	__u32 off = s->size;
	struct rose_address *address;

	if (off > ROSE_RECORD_LIMIT - sizeof(struct rose_piece))
		return;
	address = (void *)&s->record[off + sizeof(struct rose_piece)];
	address->family = family;
	address->port = port;
	__builtin_memset(address->bytes, 0, sizeof(address->bytes));
	__builtin_memcpy(address->bytes, bytes, length);
	address->pad = 0;
	put_head(s, off, ROSE_PEER, 0, sizeof(*address));
}

/* Adds a text of at most 108 bytes, from the kernel's or (`user`) the caller's memory. */
static __always_inline bool put_unix(struct scratch *s, const void *text, __u32 length, bool user)
{
	__u32 off = s->size;
	long failed;

	if (off > ROSE_RECORD_LIMIT - sizeof(struct rose_piece) || length == 0)
		return false;
	if (length > 108)
		length = 108;
	if (user)
		failed = bpf_probe_read_user(&s->record[off + sizeof(struct rose_piece)], length, text);
	else
		failed = bpf_probe_read_kernel(&s->record[off + sizeof(struct rose_piece)], length, text);
	if (failed)
		return false;
	put_head(s, off, ROSE_UNIX, 0, length);
	return true;
}

static __always_inline bool put_unix_sock(struct scratch *s, struct unix_sock *sock)
{
	struct unix_address *address = BPF_CORE_READ(sock, addr);
	int length = address ? BPF_CORE_READ(address, len) : 0;

	if (length <= 2)
		return false;
	return put_unix(s, (void *)address + bpf_core_field_offset(struct unix_address, name) + 2, length - 2, false);
}

/* Adds the peer of a socket, or the own address of a listening socket. */
static __noinline int put_socket(struct scratch *s, struct socket *socket)
{
	struct sock *sk = BPF_CORE_READ(socket, sk);
	__u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	bool listening = BPF_CORE_READ(sk, __sk_common.skc_state) == TCP_LISTEN;
	__u16 port = listening ? BPF_CORE_READ(sk, __sk_common.skc_num)
			       : bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));

	if (family == AF_INET && port) {
		__be32 address = listening ? BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr)
					   : BPF_CORE_READ(sk, __sk_common.skc_daddr);

		put_address(s, family, port, &address, 4);
	} else if (family == AF_INET6 && port) {
		struct in6_addr address;

		if (listening)
			BPF_CORE_READ_INTO(&address, sk, __sk_common.skc_v6_rcv_saddr);
		else
			BPF_CORE_READ_INTO(&address, sk, __sk_common.skc_v6_daddr);
		put_address(s, family, port, &address, 16);
	} else if (family == AF_UNIX) {
		struct unix_sock *sock = (void *)sk;
		struct unix_sock *peer = (void *)BPF_CORE_READ(sock, peer);

		/* Clients rarely have a name. A connection without a peer's name therefore gets the name of its own
		 * socket, which is the server's if the connection was accepted. */
		if (!peer || !put_unix_sock(s, peer))
			put_unix_sock(s, sock);
	} else if (family == AF_NETLINK) {
		__u32 off = s->size;

		if (off > ROSE_RECORD_LIMIT - sizeof(struct rose_piece))
			return 0;
		*(__u64 *)&s->record[off + sizeof(struct rose_piece)] = BPF_CORE_READ(sk, sk_protocol);
		put_head(s, off, ROSE_NETLINK, 0, 8);
	}
	return 0;
}

/* Adds an address that the caller passed. */
static __noinline int put_user_address(struct scratch *s, __u64 at, __u32 length)
{
	union {
		struct rose_sockaddr_in in;
		struct rose_sockaddr_in6 in6;
		__u16 family;
	} address = {};

	if (!at || length < 2 || bpf_probe_read_user(&address.family, 2, (void *)at))
		return 0;
	if (address.family == AF_INET && length >= 8) {
		if (bpf_probe_read_user(&address.in, 8, (void *)at))
			return 0;
		put_address(s, AF_INET, bpf_ntohs(address.in.port), &address.in.addr, 4);
		return 1;
	}
	if (address.family == AF_INET6 && length >= 24) {
		if (bpf_probe_read_user(&address.in6, 24, (void *)at))
			return 0;
		put_address(s, AF_INET6, bpf_ntohs(address.in6.port), &address.in6.addr, 16);
		return 1;
	}
	if (address.family == AF_UNIX && length > 2)
		return put_unix(s, (void *)(at + 2), length - 2, true);
	return 0;
}

static __always_inline bool is_unlinked(struct dentry *dentry)
{
	return BPF_CORE_READ(dentry, d_inode, i_nlink) == 0 ||
	       (!BPF_CORE_READ(dentry, d_hash.pprev) && BPF_CORE_READ(dentry, d_parent) != dentry);
}

/* Adds the path, peer or kind of a descriptor's file. */
static __noinline int put_file(struct scratch *s, struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	__u16 mode = BPF_CORE_READ(inode, i_mode);
	unsigned long magic = BPF_CORE_READ(inode, i_sb, s_magic);
	struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry);
	__u32 flags = 0;
	__u32 off = s->size;

	if (off > ROSE_RECORD_LIMIT - sizeof(struct rose_piece))
		return 0;
	if ((mode & S_IFMT) == S_IFSOCK)
		return put_socket(s, BPF_CORE_READ(file, private_data));
	if (magic == PIPEFS_MAGIC) {
		*(__u64 *)&s->record[off + sizeof(struct rose_piece)] = BPF_CORE_READ(inode, i_ino);
		put_head(s, off, ROSE_PIPE, 0, 8);
		return 0;
	}
	if (magic == ANON_INODE_FS_MAGIC) {
		long n = bpf_probe_read_kernel_str(&s->record[off + sizeof(struct rose_piece)], 64,
						   BPF_CORE_READ(dentry, d_name.name));
		if (n > 0)
			put_head(s, off, ROSE_ANON, 0, n - 1);
		return 0;
	}
	if (is_unlinked(dentry))
		flags = ROSE_UNLINKED;
	return put_fragments(s, BPF_CORE_READ(file, f_path.mnt), dentry, ROSE_FILE | flags << 8);
}

/* Adds a path argument, and then the folder that it is relative to. */
static __always_inline void put_path(struct scratch *s, struct task_struct *task, __u64 text, __s32 dirfd, __u8 kind,
				     bool is_text)
{
	int first = put_user_path(s, text, kind);
	struct vfsmount *mnt;
	struct dentry *dentry;

	if (first < 0 || first == '/' || is_text)
		return;
	if (dirfd == AT_FDCWD) {
		mnt = BPF_CORE_READ(task, fs, pwd.mnt);
		dentry = BPF_CORE_READ(task, fs, pwd.dentry);
	} else {
		struct file *file = rose_file_of(task, dirfd);

		if (!file)
			return;
		mnt = BPF_CORE_READ(file, f_path.mnt);
		dentry = BPF_CORE_READ(file, f_path.dentry);
	}
	/* `kind` + 1 is ROSE_BASE or ROSE_BASE2. */
	put_fragments(s, mnt, dentry, (kind + 1) | (is_unlinked(dentry) ? ROSE_UNLINKED << 8 : 0));
}

#endif
