/* The tracer in the kernel. What successful calls pay stands first in rose_sys_exit: a compare, a
 * load and a bit test. Everything else happens only when something failed or changed.
 *
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "rose_core.h"

#include "tracer.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* ---- set before loading ---- */
const volatile __u64 rose_changing[ROSE_SYSCALLS / 64]; /* calls whose success can be an event */
const volatile struct rose_call_shape rose_shapes[ROSE_SYSCALLS];
const volatile __u32 rose_levels[ROSE_MOST_LEVELS]; /* depths of the target cgroups, deepest first */
const volatile __u32 rose_level_count;
const volatile __u32 rose_node_count;
const volatile __u64 rose_pause_ns;
const volatile __u64 rose_delay_ns;
const volatile __u64 rose_wakeup_bytes; /* wake the reader when this much waits */
const volatile __u32 rose_ephemeral_low, rose_ephemeral_high;
const volatile __u32 rose_has_addresses;
const volatile __u32 rose_uring_result; /* the tracepoint passes the result, not the completion (before Linux 6.11) */

/* ---- maps ---- */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} rose_ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, __u32);
} rose_procs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, __u32);
} rose_cgroups SEC(".maps");

/* Cgroups whose freezing pauses a node, by id. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, __u32);
} rose_freezable SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 8192);
	__type(key, __u64);
	__type(value, struct rose_pause);
} rose_paused SEC(".maps");

/* Processes whose end was told. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct rose_identity);
	__type(value, __u8);
} rose_ended SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rose_node);
} rose_nodes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rose_stats);
} rose_stats SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} rose_calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} rose_entries SEC(".maps");

struct scratch {
	__u32 busy;
	__u32 size;
	__u8 record[ROSE_RECORD_BYTES];
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ROSE_SCRATCHES);
	__type(key, __u32);
	__type(value, struct scratch);
} rose_scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct rose_pair);
	__type(value, struct rose_pair_state);
} rose_pairs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct rose_connection);
	__type(value, struct rose_connection_state);
} rose_conns SEC(".maps");

/* Addresses and ports that accept connections, learnt from handshakes: needed where both ports of a
 * connection look like a client's. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct rose_service);
	__type(value, __u8);
} rose_services SEC(".maps");

/* Interface mode: node of a local address. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct in6_addr);
	__type(value, __u32);
} rose_addresses SEC(".maps");

struct cgroup_storage_key {
	__u64 cgroup;
	__u32 attach_type;
	__u32 pad;
};
/* Node + 1 of the cgroup a packet program is attached to. */
struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_STORAGE);
	/* Sizes, not types: this kind of map takes no BTF. */
	__uint(key_size, sizeof(struct cgroup_storage_key));
	__uint(value_size, sizeof(__u64));
} rose_attached SEC(".maps");

/* ---- nodes, counters, the ring ---- */

/* The node the current task belongs to, or -1. */
static __always_inline __s32 node_of_current(__u32 tgid, bool *is_main)
{
	__u32 *value = bpf_map_lookup_elem(&rose_procs, &tgid);

	if (value) {
		if (is_main)
			*is_main = *value & ROSE_PROC_MAIN;
		return *value & ROSE_PROC_NODE;
	}
	for (__u32 i = 0; i < ROSE_MOST_LEVELS; i++) {
		if (i >= rose_level_count)
			break;
		__u64 id = bpf_get_current_ancestor_cgroup_id(rose_levels[i]);

		if (id && (value = bpf_map_lookup_elem(&rose_cgroups, &id)))
			return *value;
	}
	return -1;
}

static __always_inline struct rose_stats *stats_of(__u32 node)
{
	return bpf_map_lookup_elem(&rose_stats, &node);
}

static __always_inline void emit(__u32 node, void *record, __u64 size)
{
	struct rose_stats *stats = stats_of(node);
	/* The reader looks every now and then; it is woken only when much waits. */
	__u64 flags = bpf_ringbuf_query(&rose_ring, BPF_RB_AVAIL_DATA) >= rose_wakeup_bytes
			      ? BPF_RB_FORCE_WAKEUP
			      : BPF_RB_NO_WAKEUP;
	long failed = bpf_ringbuf_output(&rose_ring, record, size, flags);

	if (!stats)
		return;
	if (failed)
		__sync_fetch_and_add(&stats->lost, 1);
	else
		__sync_fetch_and_add(&stats->recorded, 1);
}

static __always_inline void fill_head(struct rose_head *head, __u16 kind, __u32 size, __u32 node)
{
	__u64 both = bpf_get_current_pid_tgid();

	head->size = size;
	head->kind = kind;
	head->node = node;
	head->ts_ns = bpf_ktime_get_ns();
	head->tgid = both >> 32;
	head->tid = (__u32)both;
}

/* ---- records with pieces, built in a buffer of this CPU ---- */

/* Programs may interrupt one another on a CPU (and be preempted on some kernels), so a buffer is
 * taken, not assumed. */
static __always_inline struct scratch *take_scratch(__u32 node)
{
	for (__u32 i = 0; i < ROSE_SCRATCHES; i++) {
		struct scratch *s = bpf_map_lookup_elem(&rose_scratch, &i);

		if (s && __sync_lock_test_and_set(&s->busy, 1) == 0)
			return s;
	}
	struct rose_stats *stats = stats_of(node);

	if (stats)
		__sync_fetch_and_add(&stats->lost, 1);
	return NULL;
}

static __always_inline void give_back(struct scratch *s)
{
	__sync_lock_test_and_set(&s->busy, 0);
}

static __always_inline void put_head(struct scratch *s, __u32 off, __u8 kind, __u8 flags, __u32 length)
{
	struct rose_piece *piece = (void *)&s->record[off & ROSE_RECORD_LIMIT];

	piece->length = length;
	piece->kind = kind;
	piece->flags = flags;
	piece->pad = 0;
	s->size = (off + sizeof(*piece) + length + 7) & ~7u;
}

/* Finds the end of a text longer than a path may be: its tail is what tells files apart. */
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
	n = bpf_probe_read_user_str(&s->record[off + sizeof(struct rose_piece)], ROSE_PATH_BYTES,
				    (void *)(search->address + search->length));
	if (n <= 0)
		return 1;
	search->length += n - 1;
	return n < ROSE_PATH_BYTES;
}

/* A path as the caller gave it. Returns its first character, 0 when empty, -1 when unreadable. */
static __noinline int put_user_path(struct scratch *s, __u64 address, __u8 kind)
{
	__u32 off = s->size;
	__u8 flags = 0;
	long n;
	int first;

	if (off > ROSE_RECORD_LIMIT - sizeof(struct rose_piece) || !address)
		return -1;
	n = bpf_probe_read_user_str(&s->record[off + sizeof(struct rose_piece)], ROSE_PATH_BYTES,
				    (void *)address);
	if (n <= 0 || n > ROSE_PATH_BYTES)
		return -1;
	first = s->record[off + sizeof(struct rose_piece)];
	if (n == ROSE_PATH_BYTES) {
		struct tail_search search = {.address = address, .length = ROSE_PATH_BYTES - 1, .s = s, .off = off};

		bpf_loop(16, tail_step, &search, 0);
		if (search.length > ROSE_PATH_BYTES - 1)
			flags = ROSE_CUT;
		n = bpf_probe_read_user_str(&s->record[off + sizeof(struct rose_piece)], ROSE_PATH_BYTES,
					    (void *)(address + search.length - (ROSE_PATH_BYTES - 1)));
		if (n <= 0 || n > ROSE_PATH_BYTES)
			return -1;
	}
	put_head(s, off, kind, flags, n - 1);
	return first;
}

/* Walks from a file to the root its task sees, appending names leaf first. */
struct walk {
	struct scratch *s;
	struct dentry *dentry, *root_dentry;
	struct vfsmount *mnt, *root_mnt;
	__u32 begin;
	__u32 cut;
};
static long walk_step(__u32 i, struct walk *walk)
{
	struct dentry *dentry = walk->dentry, *parent;
	struct vfsmount *mnt = walk->mnt;
	struct scratch *s = walk->s;
	const unsigned char *name;
	bool last = false;
	__u32 off;
	long n;

	if (!dentry || !mnt || (dentry == walk->root_dentry && mnt == walk->root_mnt))
		return 1;
	if (dentry == BPF_CORE_READ(mnt, mnt_root)) {
		struct mount *mount = (void *)mnt - bpf_core_field_offset(struct mount, mnt);
		struct mount *up = BPF_CORE_READ(mount, mnt_parent);

		if (!up || up == mount)
			return 1;
		walk->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
		walk->mnt = (void *)up + bpf_core_field_offset(struct mount, mnt);
		return 0;
	}
	parent = BPF_CORE_READ(dentry, d_parent);
	last = parent == dentry; /* detached: a memfd, or a mount taken away */
	off = s->size;
	if (off > ROSE_RECORD_LIMIT || off - walk->begin > ROSE_PATH_BYTES - 256) {
		walk->cut = 1;
		return 1;
	}
	name = BPF_CORE_READ(dentry, d_name.name);
	n = bpf_probe_read_kernel_str(&s->record[off], 256, name);
	if (n <= 0)
		return 1;
	s->size = off + n;
	walk->dentry = parent;
	if (i == 510)
		walk->cut = 1;
	return last;
}

static __noinline int put_fragments(struct scratch *s, struct vfsmount *mnt, struct dentry *dentry, __u32 kind_flags)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct walk walk = {.s = s, .dentry = dentry, .mnt = mnt};
	__u32 off = s->size;

	if (off > ROSE_RECORD_LIMIT - sizeof(struct rose_piece))
		return 0;
	walk.begin = off + sizeof(struct rose_piece);
	walk.root_dentry = BPF_CORE_READ(task, fs, root.dentry);
	walk.root_mnt = BPF_CORE_READ(task, fs, root.mnt);
	s->size = walk.begin;
	bpf_loop(511, walk_step, &walk, 0);
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

/* Text of at most 108 bytes, from the kernel or the caller. */
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

/* Who is at the other end; of a listening socket, the address it listens on. */
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

		/* Clients rarely have a name: an accepted connection is told by the server's. */
		if (!peer || !put_unix_sock(s, peer))
			put_unix_sock(s, sock);
	}
	return 0;
}

/* An address the caller passed. */
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

/* Path, peer or kind of what a descriptor stands for. */
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
	if (BPF_CORE_READ(inode, i_nlink) == 0 ||
	    (!BPF_CORE_READ(dentry, d_hash.pprev) && BPF_CORE_READ(dentry, d_parent) != dentry))
		flags = ROSE_UNLINKED;
	return put_fragments(s, BPF_CORE_READ(file, f_path.mnt), dentry, ROSE_FILE | flags << 8);
}

/* A path argument with the folder it is relative to in front. */
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
	put_fragments(s, mnt, dentry, kind + 1); /* ROSE_BASE, ROSE_BASE2 */
}

/* ---- system calls ---- */

enum {
	EINTR_ = 4,
	EAGAIN_ = 11,
	ETIMEDOUT_ = 110,
	EALREADY_ = 114,
	EINPROGRESS_ = 115,
	O_CREAT_OR_TRUNC = 0100 | 01000,
	MSG_DONTWAIT_ = 0x40,
};

static __always_inline bool is_noise(const volatile struct rose_call_shape *shape, struct task_struct *task,
				     const struct pt_regs *regs, int err)
{
	__u8 noise = shape->noise;

	if (!noise)
		return false;
	switch (err) {
	case EAGAIN_:
		if (noise & ROSE_NOISE_AGAIN)
			return true;
		if (!(noise & ROSE_NOISE_AGAIN_NONBLOCK))
			return false;
		if (shape->message_flags >= 0 && (rose_argument(regs, shape->message_flags) & MSG_DONTWAIT_))
			return true;
		if (shape->fd >= 0) {
			struct file *file = rose_file_of(task, (__s32)rose_argument(regs, shape->fd));

			return file && (BPF_CORE_READ(file, f_flags) & O_NONBLOCK);
		}
		return false;
	case EINTR_:
		return noise & ROSE_NOISE_INTR;
	case ETIMEDOUT_:
		return noise & ROSE_NOISE_TIMEOUT;
	case EALREADY_:
	case EINPROGRESS_:
		return noise & ROSE_NOISE_PROGRESS;
	}
	return false;
}

static __always_inline bool opens_anew(const volatile struct rose_call_shape *shape, const struct pt_regs *regs)
{
	__u64 flags = 0;

	if (shape->flags & ROSE_FLAGS_1)
		flags = rose_argument(regs, 1);
	else if (shape->flags & ROSE_FLAGS_2)
		flags = rose_argument(regs, 2);
	else if (shape->flags & ROSE_FLAGS_HOW)
		bpf_probe_read_user(&flags, sizeof(flags), (void *)rose_argument(regs, 2));
	else
		return true;
	return flags & O_CREAT_OR_TRUNC;
}

static __noinline int record_call(struct pt_regs *regs, __s64 result)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	const volatile struct rose_call_shape *shape;
	__u64 nr = BPF_CORE_READ(regs, orig_ax);
	bool failed = result < 0;
	struct rose_call *call;
	struct scratch *s;
	__u32 size;
	__s32 node;

	node = node_of_current(tgid, NULL);
	if (node < 0)
		return 0;
	if (nr >= ROSE_SYSCALLS || (BPF_CORE_READ(task, thread_info.status) & TS_COMPAT)) {
		struct rose_stats *stats = failed ? stats_of(node) : NULL;

		/* Not the 64-bit table: a name would be a wrong one. (-1 is a call that was
		 * skipped, by ptrace or seccomp; its failure is not the kernel's.) */
		if (stats && nr != (__u64)-1)
			__sync_fetch_and_add(&stats->foreign, 1);
		return 0;
	}
	shape = &rose_shapes[nr & (ROSE_SYSCALLS - 1)];
	if (failed) {
		if (is_noise(shape, task, regs, -result)) {
			struct rose_stats *stats = stats_of(node);

			if (stats)
				__sync_fetch_and_add(&stats->suppressed, 1);
			return 0;
		}
	} else if (!opens_anew(shape, regs)) {
		return 0;
	}

	s = take_scratch(node);
	if (!s)
		return 0;
	call = (void *)s->record;
	fill_head(&call->head, failed ? ROSE_FAILED : ROSE_CHANGED, 0, node);
	call->result = result;
	call->nr = nr;
	call->pad = 0;
	call->fd = -1;
	s->size = sizeof(*call);
	if (shape->path >= 0) {
		__s32 dirfd = shape->dirfd >= 0 ? (__s32)rose_argument(regs, shape->dirfd) : AT_FDCWD;

		put_path(s, task, rose_argument(regs, shape->path), dirfd, ROSE_PATH, false);
	}
	if (shape->path2 >= 0) {
		__s32 dirfd = shape->dirfd2 >= 0 ? (__s32)rose_argument(regs, shape->dirfd2) : AT_FDCWD;

		put_path(s, task, rose_argument(regs, shape->path2), dirfd, ROSE_PATH2, shape->flags & ROSE_TEXT2);
	}
	if (shape->fd >= 0) {
		__s32 fd = rose_argument(regs, shape->fd);
		int have = 0;

		call->fd = fd;
		if (!failed && (shape->flags & ROSE_NEW_SOCKET)) {
			fd = result;
		} else if (shape->sockaddr >= 0 && shape->sockaddr < 5) {
			have = put_user_address(s, rose_argument(regs, shape->sockaddr),
						rose_argument(regs, shape->sockaddr + 1));
		} else if (shape->flags & ROSE_MESSAGE) {
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
	size = s->size;
	if (size > sizeof(s->record))
		size = sizeof(s->record);
	call->head.size = size;
	emit(node, s->record, size);
	give_back(s);
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(rose_sys_exit, struct pt_regs *regs, long ret)
{
	if ((unsigned long)ret < -(unsigned long)MAX_ERRNO) {
		unsigned long nr = regs->orig_ax;

		if (nr >= ROSE_SYSCALLS || !((rose_changing[nr / 64] >> (nr % 64)) & 1))
			return 0;
	} else if (ret <= -512 && ret >= -516) {
		return 0; /* ERESTART*: the kernel's own, the program never sees it */
	}
	return record_call(regs, ret);
}

/* Operations of io_uring fail in their completion, not at a call's exit. What was asked for is gone
 * by then except its file; told as failures of io_uring_enter. */
SEC("raw_tp/io_uring_complete")
int rose_uring(struct bpf_raw_tracepoint_args *ctx)
{
	enum { ETIME_ = 62, ECANCELED_ = 125, IO_URING_ENTER = 426 };
	struct io_kiocb *request = (void *)ctx->args[1];
	struct rose_call *call;
	struct scratch *s;
	struct file *file;
	__s32 result, node;
	__u32 size;

	if (rose_uring_result)
		result = (__s32)ctx->args[3];
	else
		result = BPF_CORE_READ((struct io_uring_cqe *)ctx->args[2], res);
	if (result >= 0 || result < -MAX_ERRNO)
		return 0;
	node = node_of_current(bpf_get_current_pid_tgid() >> 32, NULL);
	if (node < 0)
		return 0;
	/* Timeouts that ran out, cancelled waits, and "not yet": how a ring is used. */
	if (result == -ETIME_ || result == -ECANCELED_ || result == -EAGAIN_ || result == -EINPROGRESS_ ||
	    result == -EALREADY_) {
		struct rose_stats *stats = stats_of(node);

		if (stats)
			__sync_fetch_and_add(&stats->suppressed, 1);
		return 0;
	}
	s = take_scratch(node);
	if (!s)
		return 0;
	call = (void *)s->record;
	fill_head(&call->head, ROSE_FAILED, 0, node);
	call->result = result;
	call->nr = IO_URING_ENTER;
	call->pad = 0;
	call->fd = -1;
	s->size = sizeof(*call);
	file = BPF_CORE_READ(request, file);
	if (file)
		put_file(s, file);
	size = s->size;
	if (size > sizeof(s->record))
		size = sizeof(s->record);
	call->head.size = size;
	emit(node, s->record, size);
	give_back(s);
	return 0;
}

/* Profile mode only: counts every call by node and number. */
SEC("tp_btf/sys_exit")
int BPF_PROG(rose_sys_count, struct pt_regs *regs, long ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	unsigned long nr = regs->orig_ax;
	__s32 node;
	__u64 *count;
	__u32 key;

	if (nr >= ROSE_SYSCALLS || (task->thread_info.status & TS_COMPAT))
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

/* ---- application functions ---- */

SEC("uprobe")
int rose_function(void *ctx)
{
	__s32 node = node_of_current(bpf_get_current_pid_tgid() >> 32, NULL);
	struct rose_entered record = {};

	if (node < 0)
		return 0;
	fill_head(&record.head, ROSE_ENTERED, sizeof(record), node);
	record.function = bpf_get_attach_cookie(ctx);
	emit(node, &record, sizeof(record));
	return 0;
}

SEC("uprobe")
int rose_function_count(void *ctx)
{
	__s32 node = node_of_current(bpf_get_current_pid_tgid() >> 32, NULL);
	__u64 *count;
	__u32 key;

	if (node < 0)
		return 0;
	key = (__u32)bpf_get_attach_cookie(ctx) * rose_node_count + node;
	count = bpf_map_lookup_elem(&rose_entries, &key);
	if (count)
		*count += 1;
	return 0;
}

/* ---- processes ---- */

static __always_inline __u8 process_flags(__u32 node, __u32 tgid, bool is_main)
{
	struct rose_node *state = bpf_map_lookup_elem(&rose_nodes, &node);
	__u8 flags = is_main ? ROSE_MAIN : 0;

	if (!state)
		return flags;
	if (state->main_tgid == tgid)
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

SEC("tp_btf/sched_process_exec")
int BPF_PROG(rose_exec, struct task_struct *task, pid_t old_pid, struct linux_binprm *bprm)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct rose_process process = {};
	struct rose_call *call;
	struct pt_regs *regs;
	struct scratch *s;
	bool is_main = false;
	__s32 node = node_of_current(tgid, &is_main);
	__u32 off, size;
	long n;

	if (node < 0)
		return 0;
	fill_head(&process.head, ROSE_PROCESS, sizeof(process), node);
	process.state = ROSE_STARTED;
	process.exit_code = -1;
	process.flags = process_flags(node, tgid, is_main);
	emit(node, &process, sizeof(process));

	/* The call itself: at its exit the arguments are gone with the old program. */
	s = take_scratch(node);
	if (!s)
		return 0;
	call = (void *)s->record;
	fill_head(&call->head, ROSE_CHANGED, 0, node);
	regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	call->nr = BPF_CORE_READ(regs, orig_ax);
	call->result = 0;
	call->fd = -1;
	call->pad = 0;
	s->size = off = sizeof(*call);
	n = bpf_probe_read_kernel_str(&s->record[off + sizeof(struct rose_piece)], ROSE_PATH_BYTES,
				      BPF_CORE_READ(bprm, filename));
	if (n > 0 && n <= ROSE_PATH_BYTES) {
		__u8 first = s->record[off + sizeof(struct rose_piece)];

		put_head(s, off, ROSE_PATH, 0, n - 1);
		if (first != '/')
			put_fragments(s, BPF_CORE_READ(task, fs, pwd.mnt), BPF_CORE_READ(task, fs, pwd.dentry), ROSE_BASE);
	}
	size = s->size;
	if (size > sizeof(s->record))
		size = sizeof(s->record);
	call->head.size = size;
	emit(node, s->record, size);
	give_back(s);
	return 0;
}

static __always_inline void end_pause(__u64 key, __u64 now)
{
	struct rose_pause *pause = bpf_map_lookup_elem(&rose_paused, &key);
	struct rose_process process = {};
	__u64 since;
	__u32 node;

	if (!pause)
		return;
	/* Taken by one: a second SIGCONT at once must not tell it twice. */
	since = __sync_lock_test_and_set(&pause->since_ns, 0);
	node = pause->node;
	if (since && now - since >= rose_pause_ns) {
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
		emit(node, &process, sizeof(process));
	}
	bpf_map_delete_elem(&rose_paused, &key);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(rose_exit, struct task_struct *task)
{
	struct signal_struct *signal = task->signal;
	struct rose_process process = {};
	struct rose_identity identity = {};
	bool is_main = false;
	__s32 code, node;
	__u32 tgid;
	__u8 one = 1;

	if (signal->live.counter != 0)
		return 0; /* other threads go on */
	tgid = task->tgid;
	node = node_of_current(tgid, &is_main);
	if (node < 0)
		return 0;
	/* Of threads that end at once on several CPUs, each may see that none is left: one tells it. */
	identity.start_ns = task->group_leader->start_time;
	identity.tgid = tgid;
	if (bpf_map_update_elem(&rose_ended, &identity, &one, BPF_NOEXIST))
		return 0;
	code = signal->flags & SIGNAL_GROUP_EXIT ? signal->group_exit_code : task->exit_code;
	fill_head(&process.head, ROSE_PROCESS, sizeof(process), node);
	end_pause(tgid, process.head.ts_ns);
	process.signal = code & 0x7f;
	process.state = process.signal ? ROSE_CRASHED : ROSE_EXITED;
	process.exit_code = process.signal ? -1 : (code >> 8) & 0xff;
	process.flags = process_flags(node, tgid, is_main);
	if (process.signal && (code & 0x80))
		process.flags |= ROSE_CORE;
	emit(node, &process, sizeof(process));
	bpf_map_delete_elem(&rose_procs, &tgid);
	return 0;
}

enum { SIGCONT_ = 18, SIGSTOP_ = 19, SIGTSTP_ = 20, SIGTTIN_ = 21, SIGTTOU_ = 22 };

/* A stop begins when a thread takes the signal ... */
SEC("tp_btf/signal_deliver")
int BPF_PROG(rose_stopped, int sig, struct kernel_siginfo *info, struct k_sigaction *action)
{
	struct rose_pause pause = {};
	bool is_main = false;
	__s32 node;
	__u64 key;

	if (sig < SIGSTOP_ || sig > SIGTTOU_)
		return 0;
	if (sig != SIGSTOP_ && action->sa.sa_handler)
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
	/* A process that is stopped already stays stopped since then. */
	bpf_map_update_elem(&rose_paused, &key, &pause, BPF_NOEXIST);
	return 0;
}

/* ... and ends when SIGCONT is sent, whether or not it is caught or blocked. */
SEC("tp_btf/signal_generate")
int BPF_PROG(rose_continued, int sig, struct kernel_siginfo *info, struct task_struct *task)
{
	if (sig != SIGCONT_)
		return 0;
	end_pause(task->tgid, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/cgroup_notify_frozen")
int BPF_PROG(rose_frozen, struct cgroup *cgroup, const char *path, int frozen)
{
	__u64 id = cgroup->kn->id, key = id | ROSE_FROZEN;
	struct rose_pause pause = {};
	__u32 *node = bpf_map_lookup_elem(&rose_freezable, &id);

	if (!node)
		return 0;
	if (!frozen) {
		end_pause(key, bpf_ktime_get_ns());
		return 0;
	}
	pause.since_ns = bpf_ktime_get_ns();
	pause.node = *node;
	pause.flags = process_flags(*node, 0, true);
	bpf_map_update_elem(&rose_paused, &key, &pause, BPF_NOEXIST);
	return 0;
}

/* ---- network ---- */

enum {
	TCP_FIN = 1,
	TCP_SYN = 2,
	TCP_RST = 4,
	TCP_ACK = 16,
	TCP_FIN_WAIT1_ = 4,
	TCP_CLOSE_ = 7,
	TCP_LAST_ACK_ = 9,
};

static __always_inline bool is_ephemeral(__u16 port)
{
	return port >= rose_ephemeral_low && port <= rose_ephemeral_high;
}

static __always_inline bool is_service(const __u8 *address, __u16 port)
{
	struct rose_service key = {.port = port};

	__builtin_memcpy(key.address, address, 16);
	return bpf_map_lookup_elem(&rose_services, &key);
}

/* The side whose port names the pair: reconnects take a new ephemeral port on the other. */
static __always_inline bool remote_is_service(const struct rose_connection *conn)
{
	bool remote = is_ephemeral(conn->remote_port), local = is_ephemeral(conn->local_port);

	if (remote != local)
		return local;
	if (is_service(conn->remote, conn->remote_port))
		return true;
	if (is_service(conn->local, conn->local_port))
		return false;
	return conn->remote_port <= conn->local_port;
}

static __always_inline void learn_service(const struct rose_connection *conn, __u32 tcp_flags)
{
	bool remote = tcp_flags & TCP_ACK; /* SYN and ACK: it answers */
	struct rose_service key = {.port = remote ? conn->remote_port : conn->local_port};
	__u8 one = 1;

	__builtin_memcpy(key.address, remote ? conn->remote : conn->local, 16);
	bpf_map_update_elem(&rose_services, &key, &one, BPF_ANY);
}

static __always_inline void make_pair(struct rose_pair *pair, const struct rose_connection *conn, __u32 node,
				      __u8 protocol)
{
	pair->node = node;
	pair->protocol = protocol;
	pair->from_service = remote_is_service(conn);
	pair->port = pair->from_service ? conn->remote_port : conn->local_port;
	__builtin_memcpy(pair->src, conn->remote, 16);
	__builtin_memcpy(pair->dst, conn->local, 16);
}

/* Follows the connections of a pair, so that a silence after the last one ended is none. */
static __noinline int follow_connection(struct rose_connection *conn, struct rose_pair_state *pair, __u32 node,
					__u32 tcp_flags)
{
	struct rose_connection_state *known = bpf_map_lookup_elem(&rose_conns, conn);
	struct rose_connection_state fresh = {.node = node, .open = 0};

	if (tcp_flags & (TCP_FIN | TCP_RST)) {
		if (known && __sync_lock_test_and_set(&known->open, 0))
			__sync_fetch_and_add(&pair->open, -1);
		else if (!known)
			bpf_map_update_elem(&rose_conns, conn, &fresh, BPF_NOEXIST);
		return 0;
	}
	if (known) {
		/* Late packets of an ended connection don't open it again, a SYN does. */
		if ((tcp_flags & TCP_SYN) && !__sync_lock_test_and_set(&known->open, 1))
			__sync_fetch_and_add(&pair->open, 1);
		return 0;
	}
	fresh.open = 1;
	if (!bpf_map_update_elem(&rose_conns, conn, &fresh, BPF_NOEXIST))
		__sync_fetch_and_add(&pair->open, 1);
	return 0;
}

/* A connection was ended on this side, and the peer did not even answer that. */
static __always_inline bool unanswered(const struct rose_pair_state *state, __u64 now)
{
	return state->given_up_ns && now - state->given_up_ns >= ROSE_ANSWER_NS;
}

static __noinline int saw_packet(struct rose_connection *conn, __u32 node, __u32 protocol, __u32 tcp_flags)
{
	__u64 now = bpf_ktime_get_ns(), last, gap;
	struct rose_pair_state *state;
	struct rose_pair pair = {};

	if (protocol == IPPROTO_TCP && (tcp_flags & TCP_SYN))
		learn_service(conn, tcp_flags);
	make_pair(&pair, conn, node, protocol);
	state = bpf_map_lookup_elem(&rose_pairs, &pair);
	if (!state) {
		struct rose_pair_state fresh = {.last_ns = now};

		bpf_map_update_elem(&rose_pairs, &pair, &fresh, BPF_NOEXIST);
		state = bpf_map_lookup_elem(&rose_pairs, &pair);
		if (!state)
			return 0;
	}
	last = state->last_ns;
	gap = now > last ? now - last : 0;
	if (gap > 1000000) {
		/* Of two packets that end a silence on two CPUs, one tells it. */
		last = __sync_lock_test_and_set(&state->last_ns, now);
		gap = now > last ? now - last : 0;
	}
	if (gap >= rose_delay_ns) {
		__u64 usual = state->usual_ns;

		if (state->packets >= ROSE_PACKETS_LEAST && gap > usual * ROSE_GAP_FACTOR &&
		    (protocol != IPPROTO_TCP || state->open > 0 || unanswered(state, now))) {
			struct rose_silent record = {};

			record.head.size = sizeof(record);
			record.head.kind = ROSE_SILENT;
			record.head.node = node;
			record.head.ts_ns = now;
			record.duration_ns = gap;
			record.packets = state->packets;
			record.pair = pair;
			emit(node, &record, sizeof(record));
			/* Silences that come again and again are how this pair is used. */
			state->usual_ns = usual + (gap - usual) / 4;
		} else if (gap > usual) {
			state->usual_ns = usual + (gap - usual) / 2;
		}
	} else if (gap > 1000000) {
		/* What was usual fades over eight thresholds. */
		__u64 usual = state->usual_ns - state->usual_ns / 8 * (gap >> 10) / ((rose_delay_ns >> 10) + 1);

		state->usual_ns = gap > usual ? gap : usual;
	}
	if (state->given_up_ns)
		state->given_up_ns = 0;
	state->packets++;
	if (protocol == IPPROTO_TCP && (state->open <= 0 || (tcp_flags & (TCP_FIN | TCP_SYN | TCP_RST))))
		follow_connection(conn, state, node, tcp_flags);
	return 0;
}

static __always_inline long load(void *ctx, __u32 off, void *to, __u32 size, bool xdp)
{
	return xdp ? bpf_xdp_load_bytes(ctx, off, to, size) : bpf_skb_load_bytes(ctx, off, to, size);
}

/* Reads addresses and ports of the packet whose IP header is at `off`. False: none of ours. */
static __always_inline bool parse(void *ctx, __u32 off, bool xdp, struct rose_connection *conn, __u32 *protocol,
				  __u32 *tcp_flags)
{
	__u8 head[40];
	__be16 ports[2];
	__u8 next;

	if (load(ctx, off, head, 20, xdp))
		return false;
	if (head[0] >> 4 == 4) {
		if (((head[6] & 0x1f) | head[7]) != 0)
			return false; /* a later fragment has no ports */
		next = head[9];
		conn->remote[10] = conn->remote[11] = conn->local[10] = conn->local[11] = 0xff;
		__builtin_memcpy(&conn->remote[12], &head[12], 4);
		__builtin_memcpy(&conn->local[12], &head[16], 4);
		off += (head[0] & 15) * 4;
	} else if (head[0] >> 4 == 6) {
		if (load(ctx, off, head, 40, xdp))
			return false;
		__builtin_memcpy(conn->remote, &head[8], 16);
		__builtin_memcpy(conn->local, &head[24], 16);
		next = head[6];
		off += 40;
		for (int i = 0; i < 4; i++) { /* hop-by-hop, routing, destination options */
			__u8 extension[2];

			if (next != 0 && next != 43 && next != 60)
				break;
			if (load(ctx, off, extension, 2, xdp))
				return false;
			next = extension[0];
			off += (extension[1] + 1) * 8;
		}
	} else {
		return false;
	}
	if (next != IPPROTO_TCP && next != IPPROTO_UDP)
		return false;
	if (load(ctx, off, ports, 4, xdp))
		return false;
	conn->remote_port = bpf_ntohs(ports[0]);
	conn->local_port = bpf_ntohs(ports[1]);
	*protocol = next;
	if (next == IPPROTO_TCP) {
		__u8 flags = 0;

		load(ctx, off + 13, &flags, 1, xdp);
		*tcp_flags = flags;
	}
	return true;
}

SEC("cgroup_skb/ingress")
int rose_ingress(struct __sk_buff *skb)
{
	__u64 *node = bpf_get_local_storage(&rose_attached, 0);
	struct rose_connection conn = {};
	__u32 protocol = 0, tcp_flags = 0;

	if (*node && parse(skb, 0, false, &conn, &protocol, &tcp_flags))
		saw_packet(&conn, *node - 1, protocol, tcp_flags);
	return 1;
}

/* Whole interfaces: nodes are told apart by their addresses. */
static __always_inline void saw_frame(void *ctx, bool xdp)
{
	struct rose_connection conn = {};
	__u32 protocol = 0, tcp_flags = 0, off = 14, node = 0;
	__be16 type = 0;

	if (load(ctx, 12, &type, 2, xdp))
		return;
	if (type == bpf_htons(0x8100)) {
		if (load(ctx, 16, &type, 2, xdp))
			return;
		off = 18;
	}
	if (type != bpf_htons(ETH_P_IP) && type != bpf_htons(ETH_P_IPV6))
		return;
	if (!parse(ctx, off, xdp, &conn, &protocol, &tcp_flags))
		return;
	if (rose_has_addresses) {
		__u32 *owner = bpf_map_lookup_elem(&rose_addresses, conn.local);

		if (owner)
			node = *owner;
		else if (rose_node_count > 1)
			return;
	}
	saw_packet(&conn, node, protocol, tcp_flags);
}

SEC("tc")
int rose_tc(struct __sk_buff *skb)
{
	saw_frame(skb, false);
	return TCX_NEXT;
}

SEC("xdp")
int rose_xdp(struct xdp_md *ctx)
{
	saw_frame(ctx, true);
	return XDP_PASS;
}

/* Connections that this side ends are over too. When the peer had been silent for long, it either had
 * nothing to say, and answers our FIN at once, or is cut off: its silence goes on, and counts when it
 * ends. A reset asks for no answer; it tells of a cut only with data on its way or after a timeout.
 * Looked up by addresses and ports alone, so an equal connection in another network namespace can end
 * one of ours; we accept that. */
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(rose_closed, struct sock *sk, int before, int after)
{
	struct rose_connection_state *known;
	struct rose_connection conn = {};
	struct rose_pair_state *state;
	struct rose_pair pair = {};
	__u16 family;
	__u64 now;

	if (after != TCP_FIN_WAIT1_ && after != TCP_LAST_ACK_ && after != TCP_CLOSE_)
		return 0;
	family = sk->__sk_common.skc_family;
	conn.remote_port = bpf_ntohs(sk->__sk_common.skc_dport);
	conn.local_port = sk->__sk_common.skc_num;
	if (family == AF_INET) {
		__be32 remote = sk->__sk_common.skc_daddr, local = sk->__sk_common.skc_rcv_saddr;

		conn.remote[10] = conn.remote[11] = conn.local[10] = conn.local[11] = 0xff;
		__builtin_memcpy(&conn.remote[12], &remote, 4);
		__builtin_memcpy(&conn.local[12], &local, 4);
	} else if (family == AF_INET6) {
		BPF_CORE_READ_INTO(&conn.remote, sk, __sk_common.skc_v6_daddr);
		BPF_CORE_READ_INTO(&conn.local, sk, __sk_common.skc_v6_rcv_saddr);
	} else {
		return 0;
	}
	known = bpf_map_lookup_elem(&rose_conns, &conn);
	if (!known || !known->open)
		return 0;
	make_pair(&pair, &conn, known->node, IPPROTO_TCP);
	state = bpf_map_lookup_elem(&rose_pairs, &pair);
	if (!state)
		return 0;
	now = bpf_ktime_get_ns();
	if (!state->given_up_ns && now - state->last_ns > state->usual_ns * ROSE_GAP_FACTOR + 200000000 &&
	    (after != TCP_CLOSE_ || sk->sk_err || BPF_CORE_READ((struct tcp_sock *)sk, packets_out) > 0))
		state->given_up_ns = now;
	if (__sync_lock_test_and_set(&known->open, 0))
		__sync_fetch_and_add(&state->open, -1);
	return 0;
}
