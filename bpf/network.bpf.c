/*
 * Partitions. In netns deployments a classifier on the bridge ports of the nodes that are cut off, in the client namespace,
 * stops packets where neither side's kernel notices. In host deployments nodes may share one address: there cgroup programs learn
 * which node uses which address and port, and stop packets where they arrive. A rule is in force while now < its fault's until_ns,
 * which the step that fires the fault writes: a cut begins at that very moment and heals at its exact time, also when nobody is
 * there to heal it; and with the process that holds these programs they go, wherever they are attached (see rose_gate).
 *
 * Left alone: ARP and IPv6's neighbour discovery, so that nodes know each other when the cut heals.
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "rose_core.h"
#include "inject.h"

char LICENSE[] SEC("license") = "GPL";

/* inject.bpf.c's, shared when loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, ROSE_MAX_CHAINS);
	__type(key, __u32);
	__type(value, struct rose_chain);
} rose_chains SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rose_settings);
} rose_settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ROSE_MAX_NODES);
	__type(key, __u64);
	__type(value, __u32);
} rose_cgroups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, ROSE_MAX_RULES);
	__type(key, __u32);
	__type(value, struct rose_rule);
} rose_rules SEC(".maps");

/* These two are sized to the schedule before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct rose_rule_port);
	__type(value, __u32);
} rose_rule_ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct rose_net);
	__type(value, __u32);
} rose_nets SEC(".maps");

/* netns: interface in the client namespace -> node. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ROSE_MAX_NODES);
	__type(key, __u32);
	__type(value, __u32);
} rose_ports SEC(".maps");

/* netns: the other end of a packet, whatever addresses it uses. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ROSE_MAX_NODES);
	__type(key, struct rose_mac);
	__type(value, __u32);
} rose_macs SEC(".maps");

/* host: who uses an address and port. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct rose_endpoint);
	__type(value, __u32);
} rose_endpoints SEC(".maps");

/*
 * A clsact filter outlives the process that made it. The real classifier therefore stands in a table of programs, which the kernel
 * empties when the last descriptor of it is closed: what is left of a rose that was killed lets everything pass.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} rose_gate SEC(".maps");

enum {
	NOBODY = -1,
	OURS = 0x726f7365,	/* mark of our answers: they pass */
	LOOPBACK = 1,		/* its number in every network namespace */
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
	__s32 source, target;	/* nodes, or NOBODY */
	__u64 now;
	__u32 transport;	/* where its header begins */
	__u32 l2;		/* bytes ahead of the IP header */
	__u32 looks_at;		/* LOOK_*: which part of the decision falls here */
	__u32 stop;		/* 1 dropped, 2 rejected */
	__u32 rule;
	__u16 ethertype;
	__u8 has_ports;
	__u8 pad;
};
enum {
	LOOK_OUT = 1,		/* what sides send */
	LOOK_IN = 2,		/* what sides receive */
	LOOK_NODES = 4,		/* between nodes */
	LOOK_NETS = 8,		/* between nodes and addresses */
	ONLY_REJECT = 16,
	NOT_REJECT_LOSS = 32,	/* those were tossed for on their way here */
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

/* Is the end of a packet, a node or an address, one of the rule's peers? */
static __always_inline int is_peer(const struct rose_rule *rule, const struct rose_chain *chain, __u32 index, __s32 node,
				   const __u8 *ip, __u32 looks_at)
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

static long try_rule(__u32 i, void *data)
{
	struct packet *packet = data;
	struct rose_rule *rule = bpf_map_lookup_elem(&rose_rules, &i);
	struct rose_chain *chain;
	int meant = 0;
	__u32 key;

	if (!rule)
		return 1;
	key = rule->chain;
	chain = bpf_map_lookup_elem(&rose_chains, &key);
	if (!chain || packet->now >= ROSE_READ(chain->until_ns))
		return 0;
	if ((packet->looks_at & ONLY_REJECT) && !(rule->flags & ROSE_RULE_REJECT))
		return 0;
	if ((packet->looks_at & NOT_REJECT_LOSS) && (rule->flags & ROSE_RULE_REJECT) && rule->threshold != ~0U)
		return 0;
	if ((packet->looks_at & LOOK_OUT) && rule->direction != ROSE_IN && is_side(rule, chain, packet->source))
		meant = is_peer(rule, chain, i, packet->target, packet->to.ip, packet->looks_at);
	if (!meant && (packet->looks_at & LOOK_IN) && rule->direction != ROSE_OUT && is_side(rule, chain, packet->target))
		meant = is_peer(rule, chain, i, packet->source, packet->from.ip, packet->looks_at);
	if (!meant)
		return 0;
	if (rule->protocol && rule->protocol != packet->from.protocol)
		return 0;
	if (rule->flags & ROSE_RULE_PORTS) {
		struct rose_rule_port from = { i, packet->from.port }, to = { i, packet->to.port };

		if (!packet->has_ports)
			return 0;
		if (!bpf_map_lookup_elem(&rose_rule_ports, &from) && !bpf_map_lookup_elem(&rose_rule_ports, &to))
			return 0;
	}
	if (rule->threshold != ~0U && bpf_get_prandom_u32() > rule->threshold)
		return 0;
	__sync_fetch_and_add(&rule->stopped, 1);
	packet->stop = rule->flags & ROSE_RULE_REJECT ? 2 : 1;
	packet->rule = i;
	return 1;
}

/*
 * Tries all rules. First the packet is made unknown to the verifier: kernels before Linux 6.7 look at a callback once a caller's state,
 * take states that differ in constants on the stack for equal, and remove what the first one could not reach (seen on 6.1: nothing that
 * a node sent was stopped).
 */
static __always_inline void try_rules(const struct rose_settings *set, struct packet *packet)
{
	packet->now = bpf_ktime_get_ns();
	if (!bpf_probe_read_kernel(packet, sizeof(*packet), packet))
		bpf_loop(set->rules, try_rule, packet, 0);
}

static __always_inline struct rose_settings *settings(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&rose_settings, &zero);
}

/* ---- answers ---- */

static __always_inline __u16 fold(__s64 sum)
{
	sum = (sum & 0xffff) + ((sum >> 16) & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* Of a transport header `size` bytes long, with its pseudo header. */
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

/* What the kernel says on a port where nobody listens. `length`: bytes behind the header. */
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
	__u8 pad[2];		/* aligns what follows the 14 bytes */
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

/* Turns the packet into the answer to it; its sender will see a closed port. 0: it cannot be answered. */
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

/* What becomes of a packet that a rule stops. `back`: how to redirect to its sender. */
static __always_inline int stop(struct __sk_buff *skb, struct packet *packet, __u64 back)
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

/* ---- netns deployments ---- */

static __always_inline __s32 node_with(const __u8 *bytes)
{
	struct rose_mac mac = {};
	__u32 *node;

	__builtin_memcpy(mac.bytes, bytes, 6);
	node = bpf_map_lookup_elem(&rose_macs, &mac);
	return node ? (__s32)*node : NOBODY;
}

/* On a node's bridge port: only what this node, as a member of a side, sends or receives is decided here. */
SEC("tc")
int rose_cut(struct __sk_buff *skb)
{
	struct rose_settings *set = settings();
	struct packet packet = {};
	__u32 port = skb->ifindex;
	struct ethernet ether;
	int from_node;
	__u32 *node;

	if (!set || skb->mark == OURS)
		return TCX_NEXT;
	node = bpf_map_lookup_elem(&rose_ports, &port);
	if (!node || bpf_skb_load_bytes(skb, 0, &ether, sizeof(ether)) || !read_packet(skb, sizeof(ether), &packet))
		return TCX_NEXT;
	from_node = skb->ingress_ifindex == port;
	packet.source = from_node ? (__s32)*node : node_with(ether.from);
	packet.target = from_node ? node_with(ether.to) : (__s32)*node;
	packet.looks_at = LOOK_NODES | LOOK_NETS | (from_node ? LOOK_OUT : LOOK_IN);
	try_rules(set, &packet);
	if (!packet.stop)
		return TCX_NEXT;
	return stop(skb, &packet, from_node ? 0 : BPF_F_INGRESS);
}

SEC("tc")
int rose_port(struct __sk_buff *skb)
{
	bpf_tail_call(skb, &rose_gate, 0);
	return TCX_NEXT;
}

/* ---- host deployments ---- */

static __always_inline __s32 node_of(struct __sk_buff *skb, struct rose_settings *set)
{
	__u64 id = bpf_skb_cgroup_id(skb);
	__u32 *node = id ? bpf_map_lookup_elem(&rose_cgroups, &id) : 0;
	int i;

	for (i = 0; !node && i < 4; i++) {
		if (!set->levels[i])
			break;
		id = bpf_skb_ancestor_cgroup_id(skb, set->levels[i]);
		if (id)
			node = bpf_map_lookup_elem(&rose_cgroups, &id);
	}
	return node ? (__s32)*node : NOBODY;
}

/* On this host (`here`) also by port alone: sockets that are bound to every address stand there with none. */
static __always_inline __s32 user_of(const struct rose_endpoint *endpoint, int here)
{
	struct rose_endpoint any = { .port = endpoint->port, .protocol = endpoint->protocol };
	__u32 *node = bpf_map_lookup_elem(&rose_endpoints, endpoint);

	if (!node && here)
		node = bpf_map_lookup_elem(&rose_endpoints, &any);
	return node ? (__s32)*node : NOBODY;
}

static __always_inline void learn(const struct rose_endpoint *endpoint, __s32 node)
{
	__u32 index = node;

	if (user_of(endpoint, 0) != node)
		bpf_map_update_elem(&rose_endpoints, endpoint, &index, BPF_ANY);
}

/*
 * A socket stays with the cgroup it was made in, also when its process is moved to its node's (systems that setup started). Those are
 * known by their addresses only, which userspace reads when it finds the process; `left` is for the cgroup they stayed in.
 */
static __always_inline __s32 owner(struct __sk_buff *skb, struct rose_settings *set, const struct rose_endpoint *endpoint, int left)
{
	__s32 node = node_of(skb, set);

	if (!left)
		return node;
	return node < 0 ? user_of(endpoint, skb->ifindex == LOOPBACK) : NOBODY;
}

static __always_inline int send(struct __sk_buff *skb, int left)
{
	struct rose_settings *set = settings();
	struct packet packet = {};

	if (!set || !read_packet(skb, 0, &packet))
		return 1;
	packet.source = owner(skb, set, &packet.from, left);
	if (packet.source < 0)
		return 1;
	if (packet.has_ports) {
		learn(&packet.from, packet.source);
		packet.target = user_of(&packet.to, skb->ifindex == LOOPBACK);
	}
	/* To nodes it is stopped where it arrives. Others have no program of ours: here. */
	if (packet.target >= 0)
		return 1;
	packet.looks_at = LOOK_NETS | LOOK_OUT;
	try_rules(set, &packet);
	/* 2: dropped, and the sender is not told (0 would give it EPERM). */
	return packet.stop ? 2 : 1;
}

static __always_inline int receive(struct __sk_buff *skb, int left)
{
	struct rose_settings *set = settings();
	struct packet packet = {};
	__s32 known;

	if (!set || skb->mark == OURS || !read_packet(skb, 0, &packet))
		return 1;
	packet.target = owner(skb, set, &packet.to, left);
	if (packet.target < 0)
		return 1;
	packet.looks_at = LOOK_NODES | LOOK_NETS | LOOK_OUT | LOOK_IN;
	if (packet.has_ports) {
		packet.source = user_of(&packet.from, skb->ifindex == LOOPBACK);
		known = user_of(&packet.to, skb->ifindex == LOOPBACK);
		if (skb->ifindex == LOOPBACK && known == packet.target)
			packet.looks_at |= NOT_REJECT_LOSS;
		learn(&packet.to, packet.target);
	}
	try_rules(set, &packet);
	return !packet.stop;
}

SEC("cgroup_skb/egress")
int rose_egress(struct __sk_buff *skb)
{
	return send(skb, 0);
}

SEC("cgroup_skb/ingress")
int rose_ingress(struct __sk_buff *skb)
{
	return receive(skb, 0);
}

SEC("cgroup_skb/egress")
int rose_left_egress(struct __sk_buff *skb)
{
	return send(skb, 1);
}

SEC("cgroup_skb/ingress")
int rose_left_ingress(struct __sk_buff *skb)
{
	return receive(skb, 1);
}

/*
 * Cgroup programs cannot answer; what nodes of one host say to each other comes over its loopback interface, where a classifier
 * can. Attached only while a schedule has a fault that rejects. What it cannot tell (a receiver that was never heard of) the
 * receiver's cgroup program still stops.
 */
SEC("tc")
int rose_loopback(struct __sk_buff *skb)
{
	struct rose_settings *set = settings();
	struct packet packet = {};

	if (!set || skb->mark == OURS || !read_packet(skb, sizeof(struct ethernet), &packet) || !packet.has_ports)
		return TCX_NEXT;
	packet.source = user_of(&packet.from, 1);
	packet.target = user_of(&packet.to, 1);
	packet.looks_at = LOOK_NODES | LOOK_NETS | LOOK_OUT | LOOK_IN | ONLY_REJECT;
	try_rules(set, &packet);
	if (!packet.stop)
		return TCX_NEXT;
	/* Out again and not straight in: that keeps the route, without which an address of 127.0.0.0/8 is refused as a martian. */
	return stop(skb, &packet, 0);
}
