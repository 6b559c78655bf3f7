/* Responses to packets that a partition rejects. The sender sees a closed port.
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_NETWORK_ANSWER_H
#define ROSE_NETWORK_ANSWER_H

static __always_inline __u16 fold(__s64 sum)
{
	sum = (sum & 0xffff) + ((sum >> 16) & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* The checksum of a transport header of `size` bytes and its pseudo header. */
static __always_inline __u16 checksum4(const struct ipv4 *ip, void *data, __u32 size)
{
	__u32 pseudo[3] = { ip->source, ip->target, bpf_htonl(((__u32)ip->protocol << 16) | size) };
	__s64 sum = bpf_csum_diff(0, 0, pseudo, sizeof(pseudo), 0);

	return fold(bpf_csum_diff(0, 0, data, size, sum));
}

static __always_inline __u16 checksum6(const struct ipv6 *ip, void *data, __u32 size)
{
	__u32 tail[2] = { bpf_htonl(size), bpf_htonl(ip->next) };
	__s64 sum = bpf_csum_diff(0, 0, (void *)ip->source, 32, 0);

	sum = bpf_csum_diff(0, 0, tail, sizeof(tail), sum);
	return fold(bpf_csum_diff(0, 0, data, size, sum));
}

static __always_inline void turn_ethernet(struct ethernet *ether)
{
	__u8 from[6];

	__builtin_memcpy(from, ether->from, 6);
	__builtin_memcpy(ether->from, ether->to, 6);
	__builtin_memcpy(ether->to, from, 6);
}

/* Turns a TCP header into the response that the kernel sends for a closed port. `length`: number of bytes after the
 * header. */
static __always_inline void turn_tcp(struct tcp *tcp, __u32 length)
{
	struct tcp old = *tcp;

	tcp->source = old.target;
	tcp->target = old.source;
	tcp->sequence = old.flags & TCP_ACK ? old.acknowledged : 0;
	tcp->acknowledged = 0;
	tcp->flags = TCP_RST;
	if (!(old.flags & TCP_ACK)) {
		tcp->acknowledged = bpf_htonl(bpf_ntohl(old.sequence) + length + !!(old.flags & TCP_SYN) +
					      !!(old.flags & TCP_FIN));
		tcp->flags = TCP_RST | TCP_ACK;
	}
	tcp->offset = 5 << 4;
	tcp->window = tcp->checksum = tcp->urgent = 0;
}

struct answer4 {
	__u8 pad[2];		/* aligns the headers after the Ethernet header of 14 bytes */
	struct ethernet ether;
	struct ipv4 ip;
	union {
		struct tcp tcp;
		struct {
			struct icmp icmp;
			__u8 cause[28];
		};
	};
};

struct answer6 {
	__u8 pad[2];
	struct ethernet ether;
	struct ipv6 ip;
	union {
		struct tcp tcp;
		struct {
			struct icmp icmp;
			__u8 cause[48];
		};
	};
};

/* Turns a packet into the response to it. Returns 0 if there is no response. */
static __always_inline int answer4(struct __sk_buff *skb, struct packet *packet)
{
	int is_tcp = packet->from.protocol == IPPROTO_TCP;
	struct answer4 out = {};
	struct ipv4 old;
	__u32 size;

	if (packet->transport != sizeof(out.ether) + sizeof(out.ip))
		return 0;
	if (bpf_skb_load_bytes(skb, 0, &out.ether, sizeof(out.ether) + sizeof(out.ip)))
		return 0;
	old = out.ip;
	if (is_tcp) {
		size = sizeof(out.tcp);
		if (bpf_skb_load_bytes(skb, packet->transport, &out.tcp, sizeof(out.tcp)) || (out.tcp.flags & TCP_RST))
			return 0;
		turn_tcp(&out.tcp, bpf_ntohs(old.length) - sizeof(old) - (out.tcp.offset >> 4) * 4);
	} else {
		size = sizeof(out.icmp) + sizeof(out.cause);
		if (bpf_skb_load_bytes(skb, sizeof(out.ether), out.cause, sizeof(out.cause)))
			return 0;
		out.icmp.type = 3;
		out.icmp.code = 3;
	}
	turn_ethernet(&out.ether);
	out.ip.version_length = 0x45;
	out.ip.tos = 0;
	out.ip.id = 0;
	out.ip.fragment = bpf_htons(0x4000);
	out.ip.ttl = 64;
	out.ip.protocol = is_tcp ? IPPROTO_TCP : IPPROTO_ICMP;
	out.ip.length = bpf_htons(sizeof(out.ip) + size);
	out.ip.source = old.target;
	out.ip.target = old.source;
	out.ip.checksum = 0;
	out.ip.checksum = fold(bpf_csum_diff(0, 0, (void *)&out.ip, sizeof(out.ip), 0));
	if (is_tcp) {
		out.tcp.checksum = checksum4(&out.ip, &out.tcp, sizeof(out.tcp));
		if (bpf_skb_change_tail(skb, 54, 0) || bpf_skb_store_bytes(skb, 0, &out.ether, 54, BPF_F_INVALIDATE_HASH))
			return 0;
	} else {
		out.icmp.checksum = fold(bpf_csum_diff(0, 0, (void *)&out.icmp, 36, 0));
		if (bpf_skb_change_tail(skb, 70, 0) || bpf_skb_store_bytes(skb, 0, &out.ether, 70, BPF_F_INVALIDATE_HASH))
			return 0;
	}
	return 1;
}

static __always_inline int answer6(struct __sk_buff *skb, struct packet *packet)
{
	int is_tcp = packet->from.protocol == IPPROTO_TCP;
	struct answer6 out = {};
	struct ipv6 old;
	__u32 size;

	if (packet->transport != sizeof(out.ether) + sizeof(out.ip))
		return 0;
	if (bpf_skb_load_bytes(skb, 0, &out.ether, sizeof(out.ether) + sizeof(out.ip)))
		return 0;
	old = out.ip;
	if (is_tcp) {
		size = sizeof(out.tcp);
		if (bpf_skb_load_bytes(skb, packet->transport, &out.tcp, sizeof(out.tcp)) || (out.tcp.flags & TCP_RST))
			return 0;
		turn_tcp(&out.tcp, bpf_ntohs(old.length) - (out.tcp.offset >> 4) * 4);
	} else {
		size = sizeof(out.icmp) + sizeof(out.cause);
		if (bpf_skb_load_bytes(skb, sizeof(out.ether), out.cause, sizeof(out.cause)))
			return 0;
		out.icmp.type = 1;
		out.icmp.code = 4;
	}
	turn_ethernet(&out.ether);
	out.ip.length = bpf_htons(size);
	out.ip.next = is_tcp ? IPPROTO_TCP : IPPROTO_ICMPV6;
	out.ip.hops = 64;
	__builtin_memcpy(out.ip.source, old.target, 16);
	__builtin_memcpy(out.ip.target, old.source, 16);
	if (is_tcp) {
		out.tcp.checksum = checksum6(&out.ip, &out.tcp, sizeof(out.tcp));
		if (bpf_skb_change_tail(skb, 74, 0) || bpf_skb_store_bytes(skb, 0, &out.ether, 74, BPF_F_INVALIDATE_HASH))
			return 0;
	} else {
		out.icmp.checksum = checksum6(&out.ip, &out.icmp, 56);
		if (bpf_skb_change_tail(skb, 110, 0) || bpf_skb_store_bytes(skb, 0, &out.ether, 110, BPF_F_INVALIDATE_HASH))
			return 0;
	}
	return 1;
}

/* Drops a packet that a rule stops, or turns it into a response. `back`: how to redirect the response to the sender. */
#ifdef ROSE_OLD /* inlined into rose_cut, it would exceed the stack together with the function that tries links */
static __noinline
#else
static __always_inline
#endif
int stop(struct __sk_buff *skb, struct packet *packet, __u64 back)
{
	__u32 key = packet->rule;
	struct rose_rule *rule;
	int answered;

	if (packet->stop != 2 || !packet->has_ports)
		return TC_ACT_SHOT;
	answered = packet->ethertype == bpf_htons(ETH_P_IP) ? answer4(skb, packet) : answer6(skb, packet);
	if (!answered)
		return TC_ACT_SHOT;
	rule = bpf_map_lookup_elem(&rose_rules, &key);
	if (rule)
		__sync_fetch_and_add(&rule->rejected, 1);
	skb->mark = OURS;
	return bpf_redirect(skb->ifindex, back);
}

#endif
