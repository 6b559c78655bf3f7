/* The texts that globs are compared with for a call: paths, peer, local address and process. They are determined at
 * most once for a call, when the first condition or fault needs them. The result must be the same as that of
 * NotifiedCall in src/inject/call.cc, so that the two backends do not differ.
 *
 * All texts are in one buffer per CPU. No other call uses it meanwhile, because kprobe programs are not preempted.
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_INJECT_CALL_TEXT_H
#define ROSE_INJECT_CALL_TEXT_H

#include "paths.h"
#include "inject.h"

enum {
	PATH_MAX_ = 4096,
	/* Paths are built from the end: first the relative path, then the folder that it is relative to. */
	PATH_ROOM = 8192,
	NAME_ROOM = 256,
	ADDRESS_ROOM = 128,
	AT_PATH = 0,			/* room for two paths */
	AT_PEER = 2 * PATH_ROOM,
	AT_LOCAL = AT_PEER + ADDRESS_ROOM,
	AT_PROCESS = AT_LOCAL + ADDRESS_ROOM,
	ARENA = AT_PROCESS + ADDRESS_ROOM,
	COMM_BYTES = 16,
};

struct text {
	__u32 at;
	__u32 length;
};

/* One end of a connection. */
struct end {
	__u16 family;
	__u16 port;			/* host order */
	__u32 length;			/* unix: length of the name */
	__u8 bytes[16];
	__u64 name;			/* unix: address of the name */
	__u32 user;			/* unix: not 0 if the name is in the caller's memory */
	__u32 pad;
};

struct call_scratch {
	__u8 bytes[ARENA + NAME_ROOM];
	/* bytes copied from the caller's memory, or the name of a folder before it is added to a path */
	__u8 user[PATH_MAX_ + NAME_ROOM];
	struct text paths[2];
	struct text peer, local, process;
	__u32 path_count;
	__u8 have_paths, have_socket, have_process;
	__u8 unread;  /* not 0: a part of the caller's memory is not present, at the address `missing` */
	__u64 missing;
	__u64 arguments[6];
	struct rose_call_arguments signature;
	/* Used while a path is built: */
	__u32 at;			/* position of the first byte of the path so far */
	__u32 part;			/* end of the component that is being written */
	__u32 up;			/* number of components still to be removed because of ".." */
	__u32 floor;			/* the lowest position that the path may have */
	__u32 size;			/* length of the text in `user` */
	struct rose_path path;
	/* Used while an address is written. They are here because nested calls share the BPF stack, which is small: */
	struct end end;
	__u64 parts[5];
	__u16 words[8];
	__u32 run, best, best_length;
	/* Used while a text is compared with a glob: */
	struct text text;
	__u32 t, p, star, retry;
	/* Used while it is decided what happens to a call. They are here because the BPF stack is small: */
	__u32 conditions, faults;	/* how many of each the call matched */
	__u32 stored;			/* conditions that are stored, in `pending` or already in the map */
	__u32 decision;			/* index of the matching entry of rose_calls, + 1 */
	__u32 fired;			/* not 0: the chain of `decision` fired on this call */
	__u64 matched[ROSE_MAX_CALLS / 64];
	struct rose_pending pending;
};

/* By system call number. User space fills this array before loading. */
ROSE_FIXED struct rose_call_arguments rose_signatures[ROSE_SYSCALLS] = {};

#ifndef ROSE_OLD

static __always_inline void push(struct call_scratch *scratch, __u8 c)
{
	__u32 at = scratch->at;

	if (at <= scratch->floor)
		return;
	at--;
	/* Without this, clang compares before it subtracts, and the verifier of Linux 6.1 does not know the bound of
	 * `at`. */
	barrier_var(at);
	if (at >= ARENA)
		return;
	scratch->at = at;
	scratch->bytes[at] = c;
}

/* Called for each byte, from the last one to the first one, and once more to complete the first component. */
static long text_step(__u32 i, struct call_scratch **context)
{
	struct call_scratch *scratch = *context;
	__u32 size = scratch->size, length;
	__u32 at = scratch->at;
	__u8 c = '/';

	if (i < size)
		c = scratch->user[(size - 1 - i) & (PATH_MAX_ - 1)];
	if (c != '/') {
		push(scratch, c);
		return 0;
	}
	length = scratch->part - at;
	if (length == 0 || at >= ARENA)
		return 0;
	if (scratch->bytes[at] == '.' && (length == 1 || (length == 2 && scratch->bytes[at + 1] == '.'))) {
		scratch->up += length - 1;
		scratch->at = scratch->part;
	} else if (scratch->up) {
		scratch->up--;
		scratch->at = scratch->part;
	} else {
		push(scratch, '/');
	}
	scratch->part = scratch->at;
	return 0;
}

static long place_step(__u32 i, struct call_scratch **context)
{
	struct call_scratch *scratch = *context;
	struct rose_path path = scratch->path;
	const unsigned char *name;
	__u32 at = scratch->at, length;
	long n;

	if (!rose_step_up(&path, &name))
		return 1;
	scratch->path.dentry = path.dentry;
	scratch->path.mnt = path.mnt;
	if (!name)
		return 0;
	if (scratch->up) {
		scratch->up--;
		return 0;
	}
	n = bpf_probe_read_kernel_str(scratch->user, NAME_ROOM, name);
	if (n <= 1 || n > NAME_ROOM)
		return 1;
	length = n - 1;
	if (at < scratch->floor + length || at > ARENA)
		return 1;
	at -= length;
	if (at >= ARENA)
		return 1;
	bpf_probe_read_kernel(&scratch->bytes[at], length & (NAME_ROOM - 1), scratch->user);
	scratch->at = at;
	push(scratch, '/');
	return 0;
}

static __always_inline void begin_path(struct call_scratch *scratch, __u32 which)
{
	scratch->floor = which * PATH_ROOM;
	scratch->at = scratch->part = scratch->floor + PATH_ROOM;
	scratch->up = 0;
}

static __always_inline void end_path(struct call_scratch *scratch, __u32 which)
{
	if (scratch->at == scratch->floor + PATH_ROOM)
		push(scratch, '/');
	if (which < 2) {
		scratch->paths[which].at = scratch->at;
		scratch->paths[which].length = scratch->floor + PATH_ROOM - scratch->at;
		scratch->path_count = which + 1;
	}
}

__noinline int rose_walk_up(struct call_scratch *scratch, __u64 mnt, __u64 dentry)
{
	struct call_scratch *context = scratch;

	if (!scratch)
		return 0;
	scratch->path.mnt = (void *)mnt;
	scratch->path.dentry = (void *)dentry;
	rose_path_root(&scratch->path, (void *)bpf_get_current_task());
	bpf_loop(512, place_step, &context, 0);
	return 0;
}

/* Stores the name of a file without a path, such as "pipe:[4711]". */
static __noinline int name_file(struct call_scratch *scratch, struct inode *inode, struct dentry *dentry, __u32 kind)
{
	static const char pipe[] = "pipe:[%lu]", socket[] = "socket:[%lu]", anon[] = "anon_inode:%s";
	__u32 at = scratch->floor;
	__u64 value;
	long n;

	if (at > PATH_ROOM || scratch->path_count > 1)
		return 0;
	value = kind == 3 ? (__u64)BPF_CORE_READ(dentry, d_name.name) : BPF_CORE_READ(inode, i_ino);
	if (kind == 1)
		n = bpf_snprintf((char *)&scratch->bytes[at], 128, pipe, &value, sizeof(value));
	else if (kind == 2)
		n = bpf_snprintf((char *)&scratch->bytes[at], 128, socket, &value, sizeof(value));
	else
		n = bpf_snprintf((char *)&scratch->bytes[at], 128, anon, &value, sizeof(value));
	if (n <= 1 || n > 128)
		return 0;
	scratch->paths[scratch->path_count & 1].at = at;
	scratch->paths[scratch->path_count & 1].length = n - 1;
	scratch->path_count++;
	return 0;
}

__noinline int rose_add_descriptor(struct call_scratch *scratch, __s32 fd, __u32 which)
{
	struct file *file = rose_file_of((void *)bpf_get_current_task(), fd);
	struct dentry *dentry;
	struct inode *inode;
	unsigned long magic;
	__u16 mode;

	if (!scratch || !file || which > 1)
		return 0;
	inode = BPF_CORE_READ(file, f_inode);
	dentry = BPF_CORE_READ(file, f_path.dentry);
	mode = BPF_CORE_READ(inode, i_mode);
	magic = BPF_CORE_READ(inode, i_sb, s_magic);
	begin_path(scratch, which);
	if ((mode & S_IFMT) == S_IFSOCK && BPF_CORE_READ(file, private_data) && magic == SOCKFS_MAGIC)
		return name_file(scratch, inode, dentry, 2);
	if (magic == PIPEFS_MAGIC)
		return name_file(scratch, inode, dentry, 1);
	if (magic == ANON_INODE_FS_MAGIC)
		return name_file(scratch, inode, dentry, 3);
	rose_walk_up(scratch, (__u64)BPF_CORE_READ(file, f_path.mnt), (__u64)dentry);
	end_path(scratch, which);
	return 0;
}

/* Stores the path of an argument, which is relative to a descriptor or the working directory. */
__noinline int rose_add_path(struct call_scratch *scratch, __u64 address, __s32 dirfd)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct call_scratch *context = scratch;
	__u32 which;
	long n = 1;

	if (!scratch)
		return 0;
	which = scratch->path_count;
	if (which > 1)
		return 0;
	if (address) {
		n = rose_read_user_text(scratch->user, PATH_MAX_, address);
		if (n < 0 || n > PATH_MAX_) {
			scratch->unread = 1;
			scratch->missing = address;
			return 0;
		}
	}
	if (n <= 1) {
		/* An empty path stands for the descriptor itself (AT_EMPTY_PATH and similar flags). */
		if (dirfd >= 0)
			rose_add_descriptor(scratch, dirfd, which);
		return 0;
	}
	begin_path(scratch, which);
	scratch->size = n - 1;
	bpf_loop(n, text_step, &context, 0);
	if (scratch->user[0] != '/') {
		if (dirfd >= 0) {
			struct file *file = rose_file_of(task, dirfd);

			if (!file)
				return 0;
			rose_walk_up(scratch, (__u64)BPF_CORE_READ(file, f_path.mnt), (__u64)BPF_CORE_READ(file, f_path.dentry));
		} else {
			rose_walk_up(scratch, (__u64)BPF_CORE_READ(task, fs, pwd.mnt), (__u64)BPF_CORE_READ(task, fs, pwd.dentry));
		}
	}
	end_path(scratch, which);
	return 0;
}

static __always_inline __u64 argument_of(const struct call_scratch *scratch, __s8 n)
{
	return n >= 0 && n < 6 ? scratch->arguments[n] : 0;
}

__noinline int rose_read_paths(struct call_scratch *scratch)
{
	if (!scratch || scratch->have_paths)
		return 0;
	scratch->have_paths = 1;
	if (scratch->signature.path >= 0)
		rose_add_path(scratch, argument_of(scratch, scratch->signature.path),
			 scratch->signature.dirfd >= 0 ? (__s32)argument_of(scratch, scratch->signature.dirfd) : AT_FDCWD);
	if (scratch->signature.path2 >= 0)
		rose_add_path(scratch, argument_of(scratch, scratch->signature.path2),
			 scratch->signature.dirfd2 >= 0 ? (__s32)argument_of(scratch, scratch->signature.dirfd2) : AT_FDCWD);
	if (scratch->signature.path < 0 && scratch->signature.path2 < 0 && scratch->signature.fd >= 0)
		rose_add_descriptor(scratch, (__s32)argument_of(scratch, scratch->signature.fd), 0);
	return 0;
}

/* ---- addresses ---- */


/* The functions below keep their counters in `scratch`, because the verifier does not track the values there. Otherwise
 * it would check every path through each function. */

static long zeros_step(__u32 i, struct call_scratch **context)
{
	struct call_scratch *scratch = *context;
	__u32 run = scratch->words[i & 7] ? 0 : scratch->run + 1;

	scratch->run = run;
	if (run > scratch->best_length) {
		scratch->best_length = run;
		scratch->best = i + 1 - run;
	}
	return 0;
}

static __always_inline void put(struct call_scratch *scratch, __u8 c)
{
	__u32 at = scratch->at;

	if (at >= ARENA)
		return;
	scratch->bytes[at] = c;
	scratch->at = at + 1;
}

static long word_step(__u32 i, struct call_scratch **context)
{
	struct call_scratch *scratch = *context;
	__u32 best = scratch->best, word = scratch->words[i & 7];

	if (i >= best && i < best + scratch->best_length) {
		if (i == best)
			put(scratch, ':');
		return 0;
	}
	if (i)
		put(scratch, ':');
	for (int shift = 12; shift >= 0; shift -= 4) {
		__u8 digit = word >> shift & 15;

		if (shift && !(word >> shift))
			continue;
		put(scratch, digit < 10 ? '0' + digit : 'a' + digit - 10);
	}
	return 0;
}

/* Writes an IPv6 address as inet_ntop does: without leading zeros, and with "::" for the longest run of zeros. */
__noinline int rose_put_ipv6(struct call_scratch *scratch, __u32 at)
{
	struct call_scratch *context = scratch;

	if (!scratch)
		return 0;
	for (__u32 i = 0; i < 8; i++)
		scratch->words[i] = scratch->end.bytes[2 * i] << 8 | scratch->end.bytes[2 * i + 1];
	scratch->run = 0;
	scratch->best = 8;
	scratch->best_length = 1;
	bpf_loop(8, zeros_step, &context, 0);
	scratch->at = at;
	put(scratch, '[');
	bpf_loop(8, word_step, &context, 0);
	if (scratch->best < 8 && scratch->best + scratch->best_length == 8)
		put(scratch, ':');
	put(scratch, ']');
	return scratch->at - at;
}

struct name_search {
	struct call_scratch *scratch;
	__u32 at, size;
};
static long name_step(__u32 i, struct name_search *search)
{
	__u32 at = search->at + i;

	if (at >= ARENA || i >= search->size || !search->scratch->bytes[at])
		return 1;
	return 0;
}

__noinline int rose_put_end(struct call_scratch *scratch, __u32 at)
{
	static const char ipv4[] = "%u.%u.%u.%u:%u", port[] = ":%u";
	struct text *text;
	struct end *end;
	__u32 length = 0;
	long n;

	if (!scratch || at > AT_LOCAL)
		return 0;
	end = &scratch->end;
	text = at == AT_PEER ? &scratch->peer : &scratch->local;
	text->at = at;
	text->length = 0;
	if (end->family == AF_INET) {
		for (__u32 i = 0; i < 4; i++)
			scratch->parts[i] = end->bytes[i];
		scratch->parts[4] = end->port;
		n = bpf_snprintf((char *)&scratch->bytes[at], 32, ipv4, scratch->parts, sizeof(scratch->parts));
		if (n > 1)
			text->length = n - 1;
	} else if (end->family == AF_INET6) {
		length = rose_put_ipv6(scratch, at);
		if (length > 64)
			return 0;
		scratch->parts[0] = end->port;
		n = bpf_snprintf((char *)&scratch->bytes[at + length], 16, port, scratch->parts, sizeof(scratch->parts[0]));
		if (n > 1)
			text->length = length + n - 1;
	} else if (end->family == AF_UNIX && end->length && end->name) {
		__u32 size = end->length > 108 ? 108 : end->length;
		__u8 *to = &scratch->bytes[at + 5];

		scratch->bytes[at] = 'u', scratch->bytes[at + 1] = 'n', scratch->bytes[at + 2] = 'i', scratch->bytes[at + 3] = 'x';
		scratch->bytes[at + 4] = ':';
		if (end->user ? bpf_probe_read_user(to, size, (void *)end->name)
			      : bpf_probe_read_kernel(to, size, (void *)end->name)) {
			if (end->user) {
				scratch->unread = 1;
				scratch->missing = end->name;
			}
			return 0;
		}
		if (*to == 0)
			*to = '@';
		/* The name ends at a NUL, because the bytes after it are padding. It has no NUL if it fills all of
		 * sun_path. */
		struct name_search search = {.scratch = scratch, .at = at + 5, .size = size};

		n = bpf_loop(109, name_step, &search, 0);
		size = n > 0 && n - 1 < size ? n - 1 : size;
		text->length = 5 + size;
	}
	return 0;
}

static __always_inline void end_of_v6(struct end *end)
{
	const __u32 *words = (const void *)end->bytes;

	/* IPv4-mapped IPv6 addresses are shown as IPv4. */
	if (words[0] == 0 && words[1] == 0 && words[2] == bpf_htonl(0xffff)) {
		__builtin_memcpy(end->bytes, end->bytes + 12, 4);
		end->family = AF_INET;
	}
}

static __always_inline void unix_end(struct end *end, struct unix_sock *sock)
{
	struct unix_address *address = sock ? BPF_CORE_READ(sock, addr) : NULL;
	int length = address ? BPF_CORE_READ(address, len) : 0;

	end->length = length > 2 ? length - 2 : 0;
	end->name = (__u64)((void *)address + bpf_core_field_offset(struct unix_address, name) + 2);
}

/* Writes the addresses as put_socket() in bpf/tracer/records.h does. */
static __noinline int read_open_socket(struct call_scratch *scratch, struct sock *sk)
{
	static const char netlink[] = "netlink:%u";
	__u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	__u8 state = BPF_CORE_READ(sk, __sk_common.skc_state);
	struct end *end = &scratch->end;
	long n;

	__builtin_memset(end, 0, sizeof(*end));
	end->family = family;
	if (family == AF_UNIX) {
		unix_end(end, (void *)sk);
		rose_put_end(scratch, AT_LOCAL);
		unix_end(end, (void *)BPF_CORE_READ((struct unix_sock *)sk, peer));
		/* If the peer has no name, it has connected to this socket, so the name of this socket is used. */
		if (!end->length)
			unix_end(end, (void *)sk);
		rose_put_end(scratch, AT_PEER);
		return 0;
	}
	if (family == AF_NETLINK) {
		/* The peer is the kernel, identified by its protocol. */
		scratch->parts[0] = BPF_CORE_READ(sk, sk_protocol);
		n = bpf_snprintf((char *)&scratch->bytes[AT_PEER], 32, netlink, scratch->parts, sizeof(scratch->parts[0]));
		scratch->peer.at = AT_PEER;
		scratch->peer.length = n > 1 ? n - 1 : 0;
		return 0;
	}
	if (family != AF_INET && family != AF_INET6)
		return 0;
	end->port = BPF_CORE_READ(sk, __sk_common.skc_num);
	if (family == AF_INET) {
		BPF_CORE_READ_INTO((__be32 *)end->bytes, sk, __sk_common.skc_rcv_saddr);
	} else {
		BPF_CORE_READ_INTO((struct in6_addr *)end->bytes, sk, __sk_common.skc_v6_rcv_saddr);
		end_of_v6(end);
	}
	rose_put_end(scratch, AT_LOCAL);
	end->family = family;
	end->port = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
	/* A socket that is not connected (yet) has no peer. */
	if (!end->port || state == TCP_CLOSE || state == TCP_SYN_SENT)
		return 0;
	if (family == AF_INET) {
		BPF_CORE_READ_INTO((__be32 *)end->bytes, sk, __sk_common.skc_daddr);
	} else {
		BPF_CORE_READ_INTO((struct in6_addr *)end->bytes, sk, __sk_common.skc_v6_daddr);
		end_of_v6(end);
	}
	rose_put_end(scratch, AT_PEER);
	return 0;
}

/* Reads an address that the caller passes. */
static __noinline int read_address(struct call_scratch *scratch, __u64 address, __u32 length, __u32 at)
{
	union {
		struct rose_sockaddr_in in;
		struct rose_sockaddr_in6 in6;
		__u16 family;
	} given = {};
	struct end *end = &scratch->end;

	if (!address || length < 2 || length > 128)
		return 0;
	__builtin_memset(end, 0, sizeof(*end));
	end->user = 1;
	if (bpf_probe_read_user(&given.family, 2, (void *)address)) {
		scratch->unread = 1;
		scratch->missing = address;
		return 0;
	}
	end->family = given.family;
	if (end->family == AF_INET && length >= 16) {
		if (bpf_probe_read_user(&given.in, 8, (void *)address))
			goto unread;
		end->port = bpf_ntohs(given.in.port);
		__builtin_memcpy(end->bytes, &given.in.addr, 4);
	} else if (end->family == AF_INET6 && length >= 24) {
		if (bpf_probe_read_user(&given.in6, 24, (void *)address))
			goto unread;
		end->port = bpf_ntohs(given.in6.port);
		__builtin_memcpy(end->bytes, given.in6.addr, 16);
		end_of_v6(end);
	} else if (end->family == AF_UNIX && length > 2) {
		end->length = length - 2;
		end->name = address + 2;
	} else {
		return 0;
	}
	rose_put_end(scratch, at);
	return 0;
unread:
	scratch->unread = 1;
	scratch->missing = address;
	return 0;
}

__noinline int rose_read_socket(struct call_scratch *scratch)
{
	__u64 address = 0, length = 0;
	struct file *file;

	if (!scratch || scratch->have_socket)
		return 0;
	scratch->have_socket = 1;
	if (scratch->signature.fd < 0)
		return 0;
	file = rose_file_of((void *)bpf_get_current_task(), (__s32)argument_of(scratch, scratch->signature.fd));
	if (file && (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) == S_IFSOCK &&
	    BPF_CORE_READ(file, f_inode, i_sb, s_magic) == SOCKFS_MAGIC) {
		struct socket *socket = BPF_CORE_READ(file, private_data);

		read_open_socket(scratch, BPF_CORE_READ(socket, sk));
	}
	if (scratch->signature.sockaddr >= 0) {
		address = argument_of(scratch, scratch->signature.sockaddr);
		length = scratch->signature.sockaddr < 5 ? argument_of(scratch, scratch->signature.sockaddr + 1) : 0;
	} else if (scratch->signature.message) {
		struct {
			__u64 name;
			__u32 namelen, pad;
		} message = {};

		if (bpf_probe_read_user(&message, sizeof(message), (void *)argument_of(scratch, 1))) {
			scratch->unread = 1;
			scratch->missing = argument_of(scratch, 1);
			return 0;
		}
		address = message.name;
		length = message.namelen;
	}
	if (!address)
		return 0;
	if (scratch->signature.binds)
		read_address(scratch, address, length, AT_LOCAL);
	else
		read_address(scratch, address, length, AT_PEER);
	return 0;
}

/* Reads the name of the process, which is the name of its first thread. */
static __always_inline void read_process(struct call_scratch *scratch)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	long n;

	if (scratch->have_process)
		return;
	scratch->have_process = 1;
	n = bpf_probe_read_kernel_str(&scratch->bytes[AT_PROCESS], COMM_BYTES, &leader->comm);
	scratch->process.at = AT_PROCESS;
	scratch->process.length = n > 1 ? n - 1 : 0;
}

#endif

#endif
