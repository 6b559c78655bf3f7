/* Network delays. Counts packets at the nodes' sockets or on whole interfaces, and detects silences.
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_TRACER_NETWORK_H
#define ROSE_TRACER_NETWORK_H

#include "tracer/maps.h"

enum {
	TCP_FIN = 1,
	TCP_SYN = 2,
	TCP_RST = 4,
	TCP_ACK = 16,
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

/* True if the remote port identifies the pair, false if the local port does. The other port is usually ephemeral and
 * changes when the client reconnects. */
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
	bool remote = tcp_flags & TCP_ACK; /* SYN and ACK together are the response of a service */
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

/* The parts of a packet that the programs read. */
struct packet {
	struct rose_connection conn;
	__u32 protocol;
	__u32 tcp_flags;
	__u32 seq, ack; /* TCP only */
};

static __always_inline bool is_over(struct rose_connection *conn)
{
	return bpf_map_lookup_elem(&rose_over, conn);
}

/* When a pair has been moved from rose_fresh to rose_pairs, `open` of the old entry is this number plus later changes.
 */
#define ROSE_MOVED (-(1ll << 40))

static __always_inline bool has_moved(const struct rose_pair_state *state)
{
	return state->open < ROSE_MOVED / 2;
}

/* Adds to the new entry the connections that were counted on the old one after the move. Each of them is added once: a
 * program that still counts on the old entry adds its own, and the program that moved the pair adds those that were
 * counted before. */
static __always_inline void carry_open(struct rose_pair_state *from, struct rose_pair_state *to)
{
	__s64 open = from->open;

	if (open < ROSE_MOVED / 2 && open != ROSE_MOVED &&
	    rose_replace(&from->open, open, ROSE_MOVED) == open)
		__sync_fetch_and_add(&to->open, open - ROSE_MOVED);
}

static __noinline int count_open(struct rose_connection *conn, struct rose_pair_state *state, __u32 node, int change)
{
	struct rose_pair_state *settled;
	struct rose_pair pair = {};

	if (rose_add(&state->open, change) >= ROSE_MOVED / 2)
		return 0;
	make_pair(&pair, conn, node, IPPROTO_TCP);
	settled = bpf_map_lookup_elem(&rose_pairs, &pair);
	if (settled)
		carry_open(state, settled);
	return 0;
}

static __always_inline void end_connection(struct rose_connection *conn, struct rose_pair_state *pair, __u32 node)
{
	__u8 one = 1;

	/* If two packets end the connection, only one of them counts. */
	if (!bpf_map_delete_elem(&rose_conns, conn)) {
		count_open(conn, pair, node, -1);
		__sync_fetch_and_add(&rose_network_counts.ended, 1);
	}
	bpf_map_update_elem(&rose_over, conn, &one, BPF_ANY);
}

/* Tracks the connections of a pair, so that silence after the end of the last one is not reported. */
static __noinline int follow_connection(struct rose_connection *conn, struct rose_pair_state *pair, __u32 node,
					__u32 tcp_flags)
{
	struct rose_connection_state fresh = {.node = node};

	if (tcp_flags & (TCP_FIN | TCP_RST)) {
		end_connection(conn, pair, node);
		return 0;
	}
	if (bpf_map_lookup_elem(&rose_conns, conn)) {
		__s64 open = pair->open;

		if (open <= 0 && !has_moved(pair)) /* the pair was evicted and has been created again */
			rose_replace(&pair->open, open, 1);
		return 0;
	}
	/* A late packet of a connection that has ended does not reopen it, but a SYN does. */
	if (tcp_flags & TCP_SYN)
		bpf_map_delete_elem(&rose_over, conn);
	else if (is_over(conn))
		return 0;
	/* Count the connection before inserting it, so that every program that finds the entry can rely on the count.
	 */
	count_open(conn, pair, node, 1);
	if (!bpf_map_update_elem(&rose_conns, conn, &fresh, BPF_NOEXIST))
		__sync_fetch_and_add(&rose_network_counts.connections, 1);
	else
		count_open(conn, pair, node, -1);
	return 0;
}

static __always_inline bool same_address(const __u8 *a, const __u8 *b)
{
	const __u64 *x = (const void *)a, *y = (const void *)b;

	return x[0] == y[0] && x[1] == y[1];
}

static __always_inline void keep_handshake(const struct packet *p, __u32 isn, bool client, __u64 first_ns,
					   __u64 last_ns)
{
	struct rose_handshakes *known;
	struct rose_handshake *slot;
	struct rose_hosts hosts;
	__u32 chance, n = 0;

	__builtin_memcpy(hosts.remote, p->conn.remote, 16);
	__builtin_memcpy(hosts.local, p->conn.local, 16);
	known = bpf_map_lookup_elem(&rose_handshakes, &hosts);
	if (!known) {
		static const struct rose_handshakes none;

		bpf_map_update_elem(&rose_handshakes, &hosts, (void *)&none, BPF_NOEXIST);
		known = bpf_map_lookup_elem(&rose_handshakes, &hosts);
		if (!known)
			return;
	}
	chance = isn * 2654435761u;
	chance ^= chance >> 16;
	while (n < ROSE_HANDSHAKES - 1 && !(chance & 1)) {
		chance >>= 1;
		n++;
	}
	slot = &known->slots[n & 15];
	if (n >= ROSE_HANDSHAKES)
		return;
	slot->first_ns = 0; /* the slot is being written */
	slot->last_ns = last_ns;
	slot->isn = isn;
	slot->remote_port = p->conn.remote_port;
	slot->local_port = p->conn.local_port;
	slot->client = client;
	slot->first_ns = first_ns;
}

/* `awaited` is when the last SYN arrived whose ACK has not arrived yet, or 0 if there is none. */
static __noinline int see_handshake(struct packet *p, __u64 *awaited, __u64 now)
{
	struct rose_syn *pending;

	/* If both ends are on one host, there are no two clocks to relate. */
	if (same_address(p->conn.remote, p->conn.local))
		return 0;
	if (p->tcp_flags & TCP_SYN) {
		if (p->tcp_flags & TCP_ACK) {
			keep_handshake(p, p->ack - 1, true, now, 0);
		} else {
			struct rose_syn fresh = {.syn_ns = now, .isn = p->seq};

			/* Of several equal SYNs, keep the first. It may have been lost on the way to the listener, and
			 * the response may answer any of them. But only the first one is certainly earlier than the
			 * response. */
			pending = bpf_map_lookup_elem(&rose_syns, &p->conn);
			if (!pending || pending->isn != p->seq)
				bpf_map_update_elem(&rose_syns, &p->conn, &fresh, BPF_ANY);
			*awaited = now;
		}
		return 0;
	}
	pending = bpf_map_lookup_elem(&rose_syns, &p->conn);
	if (pending) {
		if (p->seq == pending->isn + 1 && !(p->tcp_flags & TCP_RST))
			keep_handshake(p, pending->isn, false, pending->syn_ns, now);
		bpf_map_delete_elem(&rose_syns, &p->conn);
	} else if (now - *awaited > 3000000000ull) {
		*awaited = 0; /* the ACK never arrived */
	}
	return 0;
}

static __noinline struct rose_pair_state *new_pair(struct rose_pair *pair, __u64 now)
{
	struct rose_pair_state fresh = {.first_ns = now, .last_ns = now};

	bpf_map_update_elem(&rose_fresh, pair, &fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(&rose_fresh, pair);
}

/* Moves a pair to rose_pairs, because it has been seen often enough. Another CPU may be using the old entry. It
 * therefore stays, unused, until it is evicted. If it were deleted, its memory could be reused immediately for another
 * pair. */
static __noinline int settle_pair(struct rose_pair *pair, struct rose_pair_state *state)
{
	struct rose_pair_state settled = *state, *there;
	__s64 open;

	if (!has_moved(state))
		/* from here on, first_ns of the old entry is when the pair moved */
		state->first_ns = bpf_ktime_get_ns();
	open = rose_exchange(&state->open, ROSE_MOVED);
	if (open < ROSE_MOVED / 2) {
		/* The pair had already moved. Restore what was counted on the old entry after that, so that
		 * carry_open() adds it. */
		__sync_fetch_and_add(&state->open, open - ROSE_MOVED);
	} else {
		settled.open = open;
		if (!bpf_map_update_elem(&rose_pairs, pair, &settled, BPF_NOEXIST))
			__sync_fetch_and_add(&rose_network_counts.pairs, 1);
		else
			__sync_fetch_and_add(&state->open, open);
	}
	there = bpf_map_lookup_elem(&rose_pairs, pair);
	if (there)
		carry_open(state, there);
	return 0;
}

static __noinline int end_silence(struct rose_pair *pair, struct rose_pair_state *state, __u64 now, __u64 gap)
{
	__u64 usual = state->usual_ns;
	__u64 reported_ns = rose_reported_ns(state, pair->protocol == IPPROTO_TCP, now, gap, rose_network.delay_ns);

	if (reported_ns) {
		struct rose_silent record = {};

		record.head.size = sizeof(record);
		record.head.kind = ROSE_SILENT;
		record.head.node = pair->node;
		record.head.ts_ns = now;
		record.duration_ns = reported_ns;
		record.packets = state->packets;
		record.pair = *pair;
		emit(pair->node, &record, sizeof(record), false);
	}
	/* Raise the usual gap, because repeated silences are normal for this pair. Do not raise it if an answer of the
	 * peer is overdue. */
	if (gap > usual && !rose_unanswered(state, now))
		state->usual_ns = usual + (gap - usual) / (reported_ns ? 4 : 2);
	return 0;
}

/* Determines whether a packet answers data that this side sent during the pause of length `gap` before the packet.
 * Returns 1 if so, 0 if not, and -1 if this is unknown. Data that this side sent in the first half of the pause does
 * not count, because it was itself an answer, which the peer's next request acknowledges. */
static __always_inline int is_answer(struct __sk_buff *skb, __u64 gap)
{
	struct bpf_sock *sk = skb ? skb->sk : NULL;
	struct tcp_sock *tcp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;

	if (!tcp)
		return -1;
	if (tcp->snd_nxt == tcp->snd_una)
		return 0;
	return (__u64)((__u32)bpf_jiffies64() - tcp->lsndtime) * rose_network.tick_ns < gap / 2;
}

/* Updates the state of the pair to which an arriving packet belongs. `skb` is NULL if the packet's socket is not known.
 */
static __noinline int saw_packet(struct packet *p, __u32 node, struct __sk_buff *skb)
{
	__u64 now = bpf_ktime_get_ns(), last, gap;
	struct rose_pair_state *state;
	struct rose_pair pair = {};
	bool settled = true;

	if (p->protocol == IPPROTO_TCP && (p->tcp_flags & TCP_SYN))
		learn_service(&p->conn, p->tcp_flags);
	make_pair(&pair, &p->conn, node, p->protocol);
	state = bpf_map_lookup_elem(&rose_pairs, &pair);
	if (!state) {
		settled = false;
		state = bpf_map_lookup_elem(&rose_fresh, &pair);
		/* If the pair was moved more than a second ago, this entry is left over, because the entry in
		 * rose_pairs has been evicted since. If the pair was moved more recently, the move may be unfinished.
		 */
		if (state && has_moved(state) && now > state->first_ns + 1000000000) {
			bpf_map_delete_elem(&rose_fresh, &pair);
			state = NULL;
		}
		if (!state)
			state = new_pair(&pair, now);
		if (!state)
			return 0;
	}
	last = state->last_ns;
	gap = now > last ? now - last : 0;
	if (gap > 1000000) {
		/* If packets on two CPUs end a silence at the same time, only one of them reports it. */
		gap = rose_replace(&state->last_ns, last, now) == last ? gap : 0;
		if (gap >= rose_network.delay_ns) {
			end_silence(&pair, state, now, gap);
		} else if (gap) {
			/* The usual gap decays over eight times the threshold of silences. */
			__u64 usual = state->usual_ns -
				      state->usual_ns / 8 * (gap >> 10) / ((rose_network.delay_ns >> 10) + 1);

			state->usual_ns = gap > usual ? gap : usual;
		}
		if (gap > ROSE_EXCHANGE_NS && p->protocol == IPPROTO_TCP && !(p->tcp_flags & (TCP_SYN | TCP_FIN | TCP_RST))) {
			int answer = is_answer(skb, gap);

			if (answer > 0)
				state->answers++;
			else if (!answer)
				state->unasked++;
		}
		if (state->given_up_ns)
			state->given_up_ns = 0;
		if (state->asked_ns)
			state->asked_ns = 0;
	}
	state->packets++;
	if (!settled && state->packets >= ROSE_PACKETS_LEAST) {
		struct rose_pair_state *there;

		settle_pair(&pair, state);
		there = bpf_map_lookup_elem(&rose_pairs, &pair);
		if (there)
			/* otherwise, the program that moves the pair carries over what is counted here */
			state = there;
	}
	if (p->protocol == IPPROTO_TCP) {
		if (state->handshake_ns || (p->tcp_flags & TCP_SYN))
			see_handshake(p, &state->handshake_ns, now);
		if (state->open <= 0 || (p->tcp_flags & (TCP_FIN | TCP_SYN | TCP_RST)))
			follow_connection(&p->conn, state, node, p->tcp_flags);
	}
	return 0;
}

static __always_inline long load(void *ctx, __u32 off, void *to, __u32 size, bool xdp)
{
#ifdef ROSE_OLD /* bpf_xdp_load_bytes needs Linux 5.18; xdp_reads_packets() in src/kernel tests for it */
	return xdp ? -1 : bpf_skb_load_bytes(ctx, off, to, size);
#endif
	return xdp ? bpf_xdp_load_bytes(ctx, off, to, size) : bpf_skb_load_bytes(ctx, off, to, size);
}

static __always_inline bool parse(void *ctx, __u32 off, bool xdp, struct packet *p)
{
	struct rose_connection *conn = &p->conn;
	union {
		__u8 bytes[40];
		__be32 words[10];
	} head;
	/* The transport header, which begins with the ports. */
	union {
		__u8 bytes[16];
		__be16 ports[2];
		__be32 words[4];
	} upper;
	__u8 next;

	/* Most packets are IPv4 without options, so one read gets both headers. */
	if (load(ctx, off, head.bytes, 36, xdp)) {
		if (load(ctx, off, head.bytes, 28, xdp))
			return false;
		head.words[7] = head.words[8] = 0;
	}
	if (head.bytes[0] >> 4 == 4) {
		__u32 length = (head.bytes[0] & 15) * 4;

		if (((head.bytes[6] & 0x1f) | head.bytes[7]) != 0)
			return false; /* a later fragment has no ports */
		next = head.bytes[9];
		if (next != IPPROTO_TCP && next != IPPROTO_UDP)
			return false;
		conn->remote[10] = conn->remote[11] = conn->local[10] = conn->local[11] = 0xff;
		__builtin_memcpy(&conn->remote[12], &head.bytes[12], 4);
		__builtin_memcpy(&conn->local[12], &head.bytes[16], 4);
		if (length == 20)
			__builtin_memcpy(upper.bytes, &head.bytes[20], 16);
		else if (load(ctx, off + length, upper.bytes, next == IPPROTO_TCP ? 16 : 8, xdp))
			return false;
	} else if (head.bytes[0] >> 4 == 6) {
		if (load(ctx, off, head.bytes, 40, xdp))
			return false;
		__builtin_memcpy(conn->remote, &head.bytes[8], 16);
		__builtin_memcpy(conn->local, &head.bytes[24], 16);
		next = head.bytes[6];
		off += 40;
		/* extension headers: hop-by-hop, routing, fragment, authentication, destination options */
		for (int i = 0; i < 6; i++) {
			__u8 extension[4];

			if (next != 0 && next != 43 && next != 44 && next != 51 && next != 60)
				break;
			if (load(ctx, off, extension, 4, xdp))
				return false;
			if (next == 44) {
				if (extension[2] | (extension[3] & 0xf8))
					return false; /* a later fragment */
				off += 8;
			} else if (next == 51) {
				off += (extension[1] + 2) * 4;
			} else {
				off += (extension[1] + 1) * 8;
			}
			next = extension[0];
		}
		if (next != IPPROTO_TCP && next != IPPROTO_UDP)
			return false;
		if (load(ctx, off, upper.bytes, next == IPPROTO_TCP ? 16 : 8, xdp))
			return false;
	} else {
		return false;
	}
	conn->remote_port = bpf_ntohs(upper.ports[0]);
	conn->local_port = bpf_ntohs(upper.ports[1]);
	p->protocol = next;
	if (next == IPPROTO_TCP) {
		p->seq = bpf_ntohl(upper.words[1]);
		p->ack = bpf_ntohl(upper.words[2]);
		p->tcp_flags = upper.bytes[13];
	}
	return true;
}

/* Reads addresses and ports of the packet whose IP header is at `off` into *p, which the caller has set to zero.
 * Returns 0 if the packet is not relevant. Not static, so that the verifier checks callers once instead of along each
 * path through this function. */
ROSE_ONCE int rose_parse(struct __sk_buff *skb, __u32 off, struct packet *p)
{
	return p && parse(skb, off, false, p);
}

ROSE_ONCE int rose_parse_xdp(struct xdp_md *ctx, __u32 off, struct packet *p)
{
	return p && parse(ctx, off, true, p);
}

/* The lower half of a pointer, which is a number for the verifier. It refuses whole pointers as keys of maps. */
static __always_inline __u32 lower_half(const void *pointer)
{
	__u64 low;

	asm volatile("r1 = %1; w1 = w1; %0 = r1" : "=r"(low) : "r"(pointer) : "r1");
	return low;
}

/* The node + 1 of a socket that existed before tracing began, or NULL. Stores it in the socket, so that the sockets
 * that it accepts inherit it. The port must be the same, because the address may be that of a newer socket. */
static __always_inline __u32 *owner_of_found(struct bpf_sock *sk)
{
	__u32 key = lower_half(sk), owner;
	struct rose_found_socket *found;

	found = bpf_map_lookup_elem(&rose_found, &key);
	sk = found ? bpf_sk_fullsock(sk) : NULL;
	if (!sk || (found->port && found->port != sk->src_port))
		return NULL;
	owner = found->owner;
	bpf_map_delete_elem(&rose_found, &key);
	return bpf_sk_storage_get(&rose_sockets, sk, &owner, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* The node + 1 of a packet's socket. Called if the cgroup alone does not determine the node. */
static __noinline __u32 node_of_socket(struct __sk_buff *skb, __u64 attached)
{
	if (attached & ROSE_BY_SOCKET) {
		struct bpf_sock *sk = skb->sk;
		__u32 *owner = sk ? bpf_sk_storage_get(&rose_sockets, sk, NULL, 0) : NULL;

		if (!owner && sk)
			owner = owner_of_found(sk);
		if (owner)
			return *owner;
	}
	if (attached & ROSE_BY_LEVEL) {
		for (__u32 i = 0; i < ROSE_MOST_LEVELS; i++) {
			__u64 id;
			__u32 *node;

			if (i >= rose_level_count)
				break;
			id = bpf_skb_ancestor_cgroup_id(skb, rose_levels[i]);
			node = id ? bpf_map_lookup_elem(&rose_cgroups, &id) : NULL;
			if (node)
				return *node + 1;
		}
	}
	return attached & ROSE_ATTACHED_NODE;
}

/* If an iterator finds silences, TCP packets serve only to relate clocks, and only few packets are needed for that. */
__u64 rose_syn_ns SEC(".bss"); /* when the last SYN arrived whose ACK has not arrived yet */

/* True if this is a TCP packet that belongs to no handshake, which is true of most packets. Calls no function, so that
 * it costs little. */
static __always_inline bool is_in_stream(struct __sk_buff *skb)
{
	const __u8 *head = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;

	if (rose_syn_ns || head + 34 > end)
		return false;
	if (head[0] == 0x45)
		return head[9] == IPPROTO_TCP && !(head[33] & TCP_SYN);
	return head[0] >> 4 == 6 && head[6] == IPPROTO_TCP && head + 54 <= end && !(head[53] & TCP_SYN);
}

SEC("cgroup_skb/ingress")
int rose_ingress(struct __sk_buff *skb)
{
	__u64 attached;
	__u32 node;
	struct packet p = {};

	if (rose_network.by_iterator && is_in_stream(skb))
		return 1;
	attached = *(__u64 *)bpf_get_local_storage(&rose_attached, 0);
	node = attached;
	if (!attached)
		return 1;
	if (rose_network.by_iterator) {
		if (!rose_parse(skb, 0, &p))
			return 1;
		if (p.protocol == IPPROTO_TCP) {
			if (rose_syn_ns || (p.tcp_flags & TCP_SYN))
				see_handshake(&p, &rose_syn_ns, bpf_ktime_get_ns());
			return 1;
		}
	}
	if (attached >> 32) {
		node = node_of_socket(skb, attached);
		if (!node)
			return 1;
	}
	if (!rose_network.by_iterator && !rose_parse(skb, 0, &p))
		return 1;
	saw_packet(&p, node - 1, skb);
	return 1;
}

/* If several nodes share a cgroup, stores in a new socket the node that created it. */
SEC("cgroup/sock_create")
int rose_socket(struct bpf_sock *sk)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	__u32 *value = bpf_map_lookup_elem(&rose_procs, &tgid);
	__s32 node = value ? node_of_value(*value) : -1;
	__u32 owner = node + 1;

	if (node >= 0)
		bpf_sk_storage_get(&rose_sockets, sk, &owner, BPF_LOCAL_STORAGE_GET_F_CREATE);
	return 1;
}

/* Finds the sockets that were created before tracing began. node_of_socket() stores the node in them. */
SEC("iter/task_file")
int rose_socket_scan(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct rose_found_socket found = {};
	__u32 *value, tgid, key;
	__s32 node;
	struct sock *sk;

	if (!task || !file)
		return 0;
	tgid = task->tgid;
	value = bpf_map_lookup_elem(&rose_procs, &tgid);
	node = value ? node_of_value(*value) : -1;
	sk = node >= 0 ? rose_sock_of(file) : NULL;
	if (!sk)
		return 0;
	key = lower_half(sk);
	found.owner = node + 1;
	found.port = BPF_CORE_READ(sk, __sk_common.skc_num);
	bpf_map_update_elem(&rose_found, &key, &found, BPF_ANY);
	return 0;
}

static __always_inline __u32 jiffies_since_received(struct sock *sk, __u32 now)
{
	__u32 data = now - BPF_CORE_READ((struct inet_connection_sock *)sk, icsk_ack.lrcvtime);
	__u32 ack = now - BPF_CORE_READ((struct tcp_sock *)sk, rcv_tstamp);

	return data < ack ? data : ack;
}

static __always_inline bool connection_of(const struct sock *sk, struct rose_connection *conn);

/* The reader runs this iterator a few times per second. It reports what the kernel knows of the TCP connections of the
 * nodes' processes. This costs nothing per packet and does not depend on network namespaces. */
SEC("iter/task_file")
int rose_connections(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct rose_tcp tcp = {};
	bool is_main = false;
	__u32 now, tgid;
	struct sock *sk;
	__s32 node;

	if (!task || !file)
		return 0;
	sk = rose_sock_of(file);
	if (!sk || BPF_CORE_READ(sk, sk_protocol) != IPPROTO_TCP)
		return 0;
	tcp.state = BPF_CORE_READ(sk, __sk_common.skc_state);
	if (tcp.state != TCP_ESTABLISHED && tcp.state != TCP_SYN_SENT && tcp.state != TCP_CLOSE_WAIT &&
	    tcp.state != TCP_LISTEN)
		return 0;
	tgid = task->tgid;
	node = node_of_task(task, tgid, &is_main);
	if (node < 0 || (__u32)node >= rose_node_count || !connection_of(sk, &tcp.conn))
		return 0;
	now = (__u32)bpf_jiffies64();
	tcp.socket = (__u64)sk;
	tcp.ts_ns = bpf_ktime_get_ns();
	tcp.node = node;
	tcp.tgid = tgid;
	if (tcp.state != TCP_LISTEN) {
		tcp.received = jiffies_since_received(sk, now);
		tcp.sent = now - BPF_CORE_READ((struct tcp_sock *)sk, lsndtime);
		tcp.unanswered = BPF_CORE_READ((struct tcp_sock *)sk, write_seq) - BPF_CORE_READ((struct tcp_sock *)sk, snd_una);
		tcp.segments = BPF_CORE_READ((struct tcp_sock *)sk, segs_in);
		tcp.resent = BPF_CORE_READ((struct inet_connection_sock *)sk, icsk_retransmits);
		tcp.probes = BPF_CORE_READ((struct inet_connection_sock *)sk, icsk_probes_out);
	}
	bpf_seq_write(ctx->meta->seq, &tcp, sizeof(tcp));
	return 0;
}

/* Handles a packet if whole interfaces are traced. Its local address identifies the node. */
static __always_inline void saw_frame(void *ctx, bool xdp)
{
	struct packet p = {};
	__u32 off = 14, node = 0;
	__be16 type = 0;

	if (load(ctx, 12, &type, 2, xdp))
		return;
	for (int i = 0; i < 2; i++) { /* a VLAN tag, or two that are nested */
		if (type != bpf_htons(0x8100) && type != bpf_htons(0x88a8))
			break;
		if (load(ctx, off + 2, &type, 2, xdp))
			return;
		off += 4;
	}
	if (type != bpf_htons(ETH_P_IP) && type != bpf_htons(ETH_P_IPV6))
		return;
	if (!(xdp ? rose_parse_xdp(ctx, off, &p) : rose_parse(ctx, off, &p)))
		return;
	if (rose_network.has_addresses) {
		__u32 *owner = bpf_map_lookup_elem(&rose_addresses, p.conn.local);

		if (owner)
			node = *owner;
		else if (rose_node_count > 1)
			return;
	}
	saw_packet(&p, node, NULL);
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

#ifdef ROSE_OLD
#define rose_read_sock(sk, field) BPF_CORE_READ(sk, __sk_common.field)
#else
#define rose_read_sock(sk, field) ((sk)->__sk_common.field)
#endif

static __always_inline bool connection_of(const struct sock *sk, struct rose_connection *conn)
{
	__u16 family = rose_read_sock(sk, skc_family);

	conn->remote_port = bpf_ntohs(rose_read_sock(sk, skc_dport));
	conn->local_port = rose_read_sock(sk, skc_num);
	/* skc_num is 0 if the kernel chose the port, because it releases such a port when the socket closes, before
	 * this program runs. */
	if (!conn->local_port)
		conn->local_port = bpf_ntohs(BPF_CORE_READ((struct inet_sock *)sk, inet_sport));
	if (family == AF_INET) {
		__be32 remote = rose_read_sock(sk, skc_daddr), local = rose_read_sock(sk, skc_rcv_saddr);

		conn->remote[10] = conn->remote[11] = conn->local[10] = conn->local[11] = 0xff;
		__builtin_memcpy(&conn->remote[12], &remote, 4);
		__builtin_memcpy(&conn->local[12], &local, 4);
	} else if (family == AF_INET6) {
		BPF_CORE_READ_INTO(&conn->remote, sk, __sk_common.skc_v6_daddr);
		BPF_CORE_READ_INTO(&conn->local, sk, __sk_common.skc_v6_rcv_saddr);
	} else {
		return false;
	}
	return true;
}

static __always_inline struct rose_pair_state *pair_of(const struct rose_connection *conn, __u32 node)
{
	struct rose_pair_state *state;
	struct rose_pair pair = {};

	make_pair(&pair, conn, node, IPPROTO_TCP);
	state = bpf_map_lookup_elem(&rose_pairs, &pair);
	return state ? state : bpf_map_lookup_elem(&rose_fresh, &pair);
}

/* Called when this side retransmits unacknowledged data, which is the clearest sign of a partition. */
SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(rose_resent, const struct sock *sk)
{
	struct rose_connection_state *known;
	struct rose_connection conn = {};
	struct rose_pair_state *state;
	__u64 now = bpf_ktime_get_ns();

	if (!connection_of(sk, &conn))
		return 0;
	known = bpf_map_lookup_elem(&rose_conns, &conn);
	if (!known)
		return 0;
	state = pair_of(&conn, known->node);
	/* If packets have arrived recently, the retransmission repairs the loss of a packet and does not count. */
	if (state && !state->asked_ns && now - state->last_ns > 100000000)
		state->asked_ns = now;
	return 0;
}

/* Records a connection that this side closes after it was quiet. The peer answers the FIN at once, unless it is
 * partitioned. */
static __noinline int note_closing(struct sock *sk, int before, int after)
{
	enum { ENETUNREACH_ = 101, ETIMEDOUT_ = 110, EHOSTUNREACH_ = 113 };
	struct rose_closing closing = {};
	__u64 key = (__u64)sk;
	int error = BPF_CORE_READ(sk, sk_err);
	bool timed_out = error == ETIMEDOUT_ || error == EHOSTUNREACH_ || error == ENETUNREACH_;

	if (before == TCP_FIN_WAIT1 || before == TCP_LAST_ACK) {
		if (!timed_out)
			bpf_map_delete_elem(&rose_closing, &key);
		return 0;
	}
	if (before == TCP_SYN_SENT) {
		if (after != TCP_CLOSE || !BPF_CORE_READ((struct inet_connection_sock *)sk, icsk_retransmits) ||
		    (error && !timed_out))
			return 0;
	} else if (after == TCP_CLOSE) {
		/* A reset asks for no answer. It indicates a partition only if data was not acknowledged, or after a
		 * timeout. */
		if (before == TCP_LISTEN ||
		    (error ? !timed_out :
			     BPF_CORE_READ((struct tcp_sock *)sk, write_seq) == BPF_CORE_READ((struct tcp_sock *)sk, snd_una)))
			return 0;
	} else if (after != TCP_FIN_WAIT1 && after != TCP_LAST_ACK) {
		return 0;
	}
	if (before != TCP_SYN_SENT &&
	    jiffies_since_received(sk, (__u32)bpf_jiffies64()) * rose_network.tick_ns < ROSE_QUIET_NS)
		return 0;
	if (!connection_of(sk, &closing.conn))
		return 0;
	closing.closed_ns = bpf_ktime_get_ns();
	bpf_map_update_elem(&rose_closing, &key, &closing, BPF_ANY);
	return 0;
}

/* Ends connections that this side closes. If the peer had been silent for long, there are two cases: it had nothing to
 * send and answers the FIN immediately, or it is partitioned, so that its silence continues and is reported when it
 * ends. A reset asks for no answer. It indicates a partition only if data was not acknowledged (sent or not, because a
 * filter or route of this host may have dropped it), or after a timeout.
 *
 * The pair is found by addresses and ports alone, so an equal connection in another network namespace can end a
 * connection here. This is accepted. */
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(rose_closed, struct sock *sk, int before, int after)
{
	struct rose_connection_state *known;
	struct tcp_sock *tcp = (struct tcp_sock *)sk;
	struct rose_connection conn = {};
	struct rose_pair_state *state;
	__u64 now;

	if (rose_network.by_iterator)
		return BPF_CORE_READ(sk, sk_protocol) == IPPROTO_TCP ? note_closing(sk, before, after) : 0;
	if (after != TCP_FIN_WAIT1 && after != TCP_LAST_ACK && after != TCP_CLOSE)
		return 0;
	if (!connection_of(sk, &conn))
		return 0;
	known = bpf_map_lookup_elem(&rose_conns, &conn);
	if (!known)
		return 0;
	state = pair_of(&conn, known->node);
	if (!state)
		return 0;
	now = bpf_ktime_get_ns();
	if (!state->given_up_ns && now - state->last_ns > state->usual_ns * ROSE_GAP_FACTOR + 200000000 &&
	    (after != TCP_CLOSE || sk->sk_err || BPF_CORE_READ(tcp, write_seq) != BPF_CORE_READ(tcp, snd_una)))
		state->given_up_ns = now;
	end_connection(&conn, state, known->node);
	return 0;
}

#endif
