/* Parses the headers of a packet, and determines whether a rule applies to it. The callers determine the nodes that
 * send and receive the packet.
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_NETWORK_PACKET_H
#define ROSE_NETWORK_PACKET_H

enum {
	NOBODY = -1,
	OURS = 0x726f7365,	/* mark of the responses that these programs send; such packets always pass */
	/* mark of packets that a bad link has delayed or duplicated: no further link applies to them */
	COPY = 0x726f7366,
	LOOPBACK = 1,		/* interface number of loopback in every network namespace */
};

struct ethernet {
	__u8 to[6], from[6];
	__u16 protocol;
};
struct ipv4 {
	__u8 version_length, tos;
	__u16 length, id, fragment;
	__u8 ttl, protocol;
	__u16 checksum;
	__u32 source, target;
};
struct ipv6 {
	__u32 version_flow;
	__u16 length;
	__u8 next, hops;
	__u8 source[16], target[16];
};
struct tcp {
	__u16 source, target;
	__u32 sequence, acknowledged;
	__u8 offset, flags;
	__u16 window, checksum, urgent;
};
struct icmp {
	__u8 type, code;
	__u16 checksum;
	__u32 unused;
};
enum { TCP_FIN = 1, TCP_SYN = 2, TCP_RST = 4, TCP_ACK = 16 };

struct packet {
	struct rose_endpoint from, to;
	__s32 source, target;	/* index of the node, or NOBODY */
	__u64 now;
	__u32 transport;	/* offset of the transport header */
	__u32 l2;		/* number of bytes before the IP header */
	__u32 looks_at;		/* LOOK_*: which rules, and which part of them, the program applies */
	__u32 stop;		/* 1: drop the packet, 2: drop it and send a response */
	__u32 rule;
	__u16 ethertype;
	__u8 has_ports;
	__u8 pad;
};
enum {
	LOOK_OUT = 1,		/* packets that nodes of a side send */
	LOOK_IN = 2,		/* packets that nodes of a side receive */
	LOOK_NODES = 4,		/* packets between nodes */
	LOOK_NETS = 8,		/* packets between nodes and addresses that belong to no node */
	ONLY_REJECT = 16,
	NOT_REJECT_LOSS = 32,  /* skip rules that reject at random: they were applied earlier on the packet's way */
	NOT_LOSS = 64,		/* apply only rules that stop every packet */
};

static __always_inline int read_packet(struct __sk_buff *skb, __u32 l2, struct packet *packet)
{
	__u16 ports[2], protocol;
	int has_ports = 1;

	packet->l2 = l2;
	packet->source = packet->target = NOBODY;
	packet->ethertype = skb->protocol;
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		struct ipv4 ip;

		if (bpf_skb_load_bytes(skb, l2, &ip, sizeof(ip)))
			return 0;
		packet->from.ip[10] = packet->from.ip[11] = 0xff;
		packet->to.ip[10] = packet->to.ip[11] = 0xff;
		__builtin_memcpy(packet->from.ip + 12, &ip.source, 4);
		__builtin_memcpy(packet->to.ip + 12, &ip.target, 4);
		protocol = ip.protocol;
		packet->transport = l2 + (ip.version_length & 15) * 4;
		if (ip.fragment & bpf_htons(0x1fff))	/* later fragments have no ports */
			has_ports = 0;
	} else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		struct ipv6 ip;

		if (bpf_skb_load_bytes(skb, l2, &ip, sizeof(ip)))
			return 0;
		__builtin_memcpy(packet->from.ip, ip.source, 16);
		__builtin_memcpy(packet->to.ip, ip.target, 16);
		protocol = ip.next;
		packet->transport = l2 + sizeof(ip);
		if (protocol == IPPROTO_ICMPV6) {
			__u8 type = 0;

			bpf_skb_load_bytes(skb, packet->transport, &type, 1);
			if (type >= 133 && type <= 137)	/* neighbour discovery */
				return 0;
		}
	} else {
		return 0;
	}
	packet->from.protocol = packet->to.protocol = protocol;
	if (has_ports && (protocol == IPPROTO_TCP || protocol == IPPROTO_UDP) &&
	    !bpf_skb_load_bytes(skb, packet->transport, ports, sizeof(ports))) {
		packet->from.port = bpf_ntohs(ports[0]);
		packet->to.port = bpf_ntohs(ports[1]);
		packet->has_ports = 1;
	}
	return 1;
}

static __always_inline int has_node(const __u64 *set, __s32 node)
{
	__u32 index = node;

	return index < ROSE_MAX_NODES && (set[(index / 64) & (ROSE_NODE_WORDS - 1)] >> (index & 63)) & 1;
}

static __always_inline int is_side(const struct rose_rule *rule, const struct rose_chain *chain, __s32 node)
{
	if (rule->flags & ROSE_RULE_BOUND)
		return node >= 0 && rose_chain_node(chain) == (__u32)node + 1;
	return has_node(rule->side, node);
}

/* True if one end of a packet, given by its node and address, is one of the rule's peers. */
static __always_inline int is_peer(const struct rose_rule *rule, const struct rose_chain *chain, __u32 index,
				   __s32 node, const __u8 *ip, __u32 looks_at)
{
	struct rose_net net;

	if (is_side(rule, chain, node))
		return 0;
	if ((looks_at & LOOK_NODES) && node >= 0) {
		if (rule->flags & ROSE_RULE_OTHERS)
			return 1;
		if (has_node(rule->peers, node))
			return 1;
	}
	if (!(rule->flags & ROSE_RULE_NETS) || !(looks_at & LOOK_NETS))
		return 0;
	net.prefix = 32 + 128;
	net.rule = index;
	__builtin_memcpy(net.ip, ip, 16);
	return bpf_map_lookup_elem(&rose_nets, &net) != 0;
}

/* Determines whether a rule applies to a packet by its protocol, ports and direction. Returns 1 if the packet goes from
 * the rule's side to a peer, 2 if it goes from a peer to the side, and 0 if the rule does not apply. */
static __always_inline int is_meant(const struct rose_rule *rule, const struct rose_chain *chain, __u32 index,
				    const struct packet *packet)
{
	int meant = 0;

	if ((packet->looks_at & LOOK_OUT) && rule->direction != ROSE_IN && is_side(rule, chain, packet->source))
		meant = is_peer(rule, chain, index, packet->target, packet->to.ip, packet->looks_at);
	if (!meant && (packet->looks_at & LOOK_IN) && rule->direction != ROSE_OUT && is_side(rule, chain, packet->target))
		meant = is_peer(rule, chain, index, packet->source, packet->from.ip, packet->looks_at) ? 2 : 0;
	if (!meant)
		return 0;
	if (rule->protocol && rule->protocol != packet->from.protocol)
		return 0;
	if (rule->flags & ROSE_RULE_PORTS) {
		struct rose_rule_port from = { index, packet->from.port }, to = { index, packet->to.port };

		if (!packet->has_ports)
			return 0;
		if (!bpf_map_lookup_elem(&rose_rule_ports, &from) && !bpf_map_lookup_elem(&rose_rule_ports, &to))
			return 0;
	}
	return meant;
}

static __always_inline struct rose_settings *settings(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&rose_settings, &zero);
}

#endif
