/* Connections that fall silent: packets counted where they reach a node's sockets, or on whole interfaces.
 *
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_TRACER_NETWORK_H
#define ROSE_TRACER_NETWORK_H

#include "tracer/maps.h"

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
	return port >= rose_network.ephemeral_low && port <= rose_network.ephemeral_high;
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
	if (gap >= rose_network.delay_ns) {
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
		__u64 usual = state->usual_ns - state->usual_ns / 8 * (gap >> 10) / ((rose_network.delay_ns >> 10) + 1);

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
	if (rose_network.has_addresses) {
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

#endif
