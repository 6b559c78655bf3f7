/* Messages between nodes: each call by which a thread of a node sends bytes to a TCP or UDP socket whose peer has a
 * node's address, or receives bytes from one. A receiving call that reports the end of a TCP connection is recorded as
 * a message of 0 bytes. Loaded only on request. Does not see data that io_uring, splice and similar calls move.
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_TRACER_TRANSFERS_H
#define ROSE_TRACER_TRANSFERS_H

#include "tracer/records.h"

enum {
	MSG_PEEK_ = 2,
	ECONNRESET_ = 104,
	ETIMEDOUT_ = 110,
	ROSE_MMSGHDR = 64, /* struct mmsghdr: the message's header and its length */
	ROSE_MMSG_LENGTH = 56,
};

struct rose_user_iovec {
	__u64 base, length;
};

struct transfer_call {
	struct pt_regs *regs;
	struct sock *sk;
	__u64 headers; /* address of the headers, if the call has several messages */
	struct rose_connection conn; /* the connection as the socket has it */
	__u32 count;
	__s32 node;
	__u16 nr;
	__u8 protocol;
	__u8 taken;
};

static __always_inline bool transfers_bytes(unsigned long nr)
{
	switch (nr) {
	case NR_READ: case NR_WRITE: case NR_READV: case NR_WRITEV: case NR_SENDFILE: case NR_SENDTO: case NR_RECVFROM:
	case NR_SENDMSG: case NR_RECVMSG: case NR_RECVMMSG: case NR_SENDMMSG:
		return true;
	}
	return false;
}

static __always_inline bool receives(unsigned long nr)
{
	return nr == NR_READ || nr == NR_READV || nr == NR_RECVFROM || nr == NR_RECVMSG || nr == NR_RECVMMSG;
}

static __always_inline void put_ipv4(__u8 *to, __be32 address)
{
	to[10] = to[11] = 0xff;
	__builtin_memcpy(to + 12, &address, 4);
}

/* Returns false if it is not an internet socket. */
static __always_inline bool socket_connection(struct sock *sk, struct rose_connection *conn)
{
	__u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);

	conn->remote_port = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
	conn->local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	if (family == AF_INET) {
		put_ipv4(conn->remote, BPF_CORE_READ(sk, __sk_common.skc_daddr));
		put_ipv4(conn->local, BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr));
	} else if (family == AF_INET6) {
		BPF_CORE_READ_INTO(&conn->remote, sk, __sk_common.skc_v6_daddr);
		BPF_CORE_READ_INTO(&conn->local, sk, __sk_common.skc_v6_rcv_saddr);
	} else {
		return false;
	}
	return true;
}

/* Sets the remote end of a datagram, from the address that the program passed or received. */
static __always_inline void other_end(struct rose_connection *conn, __u64 at)
{
	struct rose_sockaddr_in6 address = {};

	if (!at || bpf_probe_read_user(&address, 16, (void *)at))
		return;
	if (address.family == AF_INET) {
		struct rose_sockaddr_in in;

		__builtin_memcpy(&in, &address, sizeof(in));
		__builtin_memset(conn->remote, 0, 10);
		put_ipv4(conn->remote, in.addr);
	} else if (address.family == AF_INET6 && !bpf_probe_read_user(&address, sizeof(address), (void *)at)) {
		__builtin_memcpy(conn->remote, address.addr, 16);
	} else {
		return;
	}
	conn->remote_port = bpf_ntohs(address.port);
}

/* Adds the first bytes of a buffer to the record, as many as still fit. */
static __always_inline void put_bytes(struct scratch *s, __u64 from, __u64 length)
{
	struct rose_transfer *record = (void *)s->record;
	__u32 have = record->length;

	if (have >= ROSE_TRANSFER_BYTES || !from)
		return;
	if (length > ROSE_TRANSFER_BYTES - have)
		length = ROSE_TRANSFER_BYTES - have;
	length = rose_unknown(length);
	if (length == 0 || length > ROSE_TRANSFER_BYTES)
		return;
	have = rose_unknown(have) & (ROSE_TRANSFER_BYTES - 1);
	if (bpf_probe_read_user(&s->record[__builtin_offsetof(struct rose_transfer, data) + have], length, (void *)from))
		return;
	record->length = have + length;
}

static __always_inline void put_parts(struct scratch *s, __u64 parts, __u64 count, __u32 bytes)
{
	struct rose_user_iovec part;

	for (__u32 i = 0; i < 4; i++) {
		if (i >= count || bpf_probe_read_user(&part, sizeof(part), (void *)(parts + i * sizeof(part))))
			return;
		if (part.length > bytes)
			part.length = bytes;
		put_bytes(s, part.base, part.length);
		bytes -= part.length;
	}
}

/* True if another message of this node may be recorded. */
static __always_inline bool may_be_recorded(__u32 node, __u64 now)
{
	struct rose_transfer_gate *gate = bpf_map_lookup_elem(&rose_gates, &node);

	if (!gate)
		return false;
	if (now - gate->begin_ns > 1000000000ull) {
		gate->begin_ns = now;
		gate->count = 0;
	}
	/* Messages may fill only a part of the ring, because other records need space, too. */
	__sync_fetch_and_add(&gate->count, 1);
	if (gate->count <= ROSE_TRANSFER_RATE && bpf_ringbuf_query(&rose_ring, BPF_RB_AVAIL_DATA) < rose_ring_limit / 2)
		return true;
	__sync_fetch_and_add(&gate->left_out, 1);
	return false;
}

static __always_inline void left_out(__u32 node)
{
	struct rose_transfer_gate *gate = bpf_map_lookup_elem(&rose_gates, &node);

	if (gate)
		__sync_fetch_and_add(&gate->left_out, 1);
}

/* Records one message of a call, which moved `bytes` bytes. Its address and buffers are in the header at `header`, or,
 * if that is 0, in the arguments. */
static __noinline int record_transfer(struct transfer_call *call, __u64 header, __u32 bytes)
{
	struct rose_user_msghdr message = {};
	struct rose_connection conn = call->conn;
	struct rose_transfer *record;
	__u64 now = bpf_ktime_get_ns();
	struct scratch *s;

	if (header && bpf_probe_read_user(&message, sizeof(message), (void *)header))
		return 0;
	if (call->protocol == IPPROTO_UDP) {
		if (header)
			other_end(&conn, message.name);
		else if (call->nr == NR_SENDTO || call->nr == NR_RECVFROM)
			other_end(&conn, rose_argument(call->regs, 4));
	}
	/* A receiver of a datagram need not ask for the sender. If it did not, record the datagram anyway, because any
	 * node may have sent it. */
	if (!(call->taken && call->protocol == IPPROTO_UDP && conn.remote_port == 0) &&
	    !bpf_map_lookup_elem(&rose_node_addrs, conn.remote))
		return 0;
	if (!may_be_recorded(call->node, now))
		return 0;
	s = take_scratch(call->node);
	if (!s) {
		left_out(call->node);
		return 0;
	}
	record = (void *)s->record;
	fill_head(&record->head, ROSE_TRANSFER, sizeof(*record), call->node);
	record->conn = conn;
	record->end = 0;
	record->bytes = bytes;
	record->protocol = call->protocol;
	record->taken = call->taken;
	record->length = 0;
	record->pad = 0;
	record->pad2 = 0;
	__builtin_memset(record->data, 0, sizeof(record->data));
	if (call->protocol == IPPROTO_TCP) {
		struct tcp_sock *tcp = (void *)call->sk;

		record->end = call->taken ? BPF_CORE_READ(tcp, copied_seq) : BPF_CORE_READ(tcp, write_seq);
	}
	if (header)
		put_parts(s, message.iov, message.iovlen, bytes);
	else if (call->nr == NR_READV || call->nr == NR_WRITEV)
		put_parts(s, rose_argument(call->regs, 1), rose_argument(call->regs, 2), bytes);
	else if (call->nr != NR_SENDFILE)
		put_bytes(s, rose_argument(call->regs, 1), bytes);
	if (bpf_ringbuf_output(&rose_ring, record, sizeof(*record), BPF_RB_NO_WAKEUP))
		left_out(call->node);
	give_back(s);
	return 0;
}

static long record_one_of(__u32 i, struct transfer_call *call)
{
	__u64 header = call->headers + i * ROSE_MMSGHDR;
	__u32 bytes = 0;

	if (i >= call->count || bpf_probe_read_user(&bytes, sizeof(bytes), (void *)(header + ROSE_MMSG_LENGTH)))
		return 1;
	if (bytes)
		record_transfer(call, header, bytes);
	return 0;
}

static __noinline int examine_call(struct pt_regs *regs, __u64 nr, __u64 count)
{
	struct transfer_call call = {.regs = regs, .nr = nr, .count = count};
	struct task_struct *task = (void *)bpf_get_current_task();
	struct socket *socket;
	struct file *file;
	struct sock *sk;
	__u16 mode;

	call.node = node_of_current(bpf_get_current_pid_tgid() >> 32, NULL);
	if (call.node < 0 || (BPF_CORE_READ(task, thread_info.ROSE_THREAD_FLAGS) & ROSE_COMPAT))
		return 0;
	file = rose_file_of(task, (__s32)rose_argument(regs, 0));
	if (!file)
		return 0;
	mode = BPF_CORE_READ(file, f_inode, i_mode);
	if ((mode & S_IFMT) != S_IFSOCK)
		return 0;
	socket = BPF_CORE_READ(file, private_data);
	sk = BPF_CORE_READ(socket, sk);
	if (!sk || !socket_connection(sk, &call.conn))
		return 0;
	call.sk = sk;
	call.protocol = BPF_CORE_READ(sk, sk_protocol);
	if (call.protocol != IPPROTO_TCP && (call.protocol != IPPROTO_UDP || !count))
		return 0;
	/* A call that asks for 0 bytes returns 0, too. */
	if (!count && (nr == NR_READ || nr == NR_RECVFROM) && !rose_argument(regs, 2))
		return 0;
	call.taken = receives(nr);
	/* A call that only peeks at data does not count, because another call receives the data later. */
	if ((nr == NR_RECVFROM && (rose_argument(regs, 3) & MSG_PEEK_)) ||
	    (nr == NR_RECVMSG && (rose_argument(regs, 2) & MSG_PEEK_)) ||
	    (nr == NR_RECVMMSG && (rose_argument(regs, 3) & MSG_PEEK_)))
		return 0;
	if (nr == NR_SENDMMSG || nr == NR_RECVMMSG) {
		call.headers = rose_argument(regs, 1);
		if (call.count > ROSE_TRANSFER_AT_ONCE)
			left_out(call.node);
		rose_loop(ROSE_TRANSFER_AT_ONCE, ROSE_TRANSFER_AT_ONCE, record_one_of, &call);
	} else {
		record_transfer(&call, nr == NR_SENDMSG || nr == NR_RECVMSG ? rose_argument(regs, 1) : 0, count);
	}
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(rose_transfers, struct pt_regs *regs, long ret)
{
	unsigned long nr = rose_number_of(regs);

	if (!transfers_bytes(nr))
		return 0;
	if (ret > 0)
		return examine_call(regs, nr, ret);
	if (receives(nr) && nr != NR_RECVMMSG && (!ret || ret == -ECONNRESET_ || ret == -ETIMEDOUT_))
		return examine_call(regs, nr, 0);
	return 0;
}

#endif
