/*
 * Partitions. Packets between a node and its peers are dropped where neither side's kernel notices: in netns deployments by a
 * classifier on the node's bridge port in the client namespace, in host deployments (nodes may share one
 * address) by cgroup programs, of which the egress one learns which node sends from which address and port and the ingress one
 * drops. A rule is in force while now < its fault's until_ns, which the step that fires the fault writes: a cut begins at that
 * very moment and heals at its exact time, also when nobody is there to heal it.
 *
 * Left alone: ARP, and in netns deployments IPv6 (their nodes have IPv4 addresses only).
 */
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

/* Interface in the client namespace -> its node's part of rose_rules. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ROSE_MAX_NODES);
	__type(key, __u32);
	__type(value, struct rose_site);
} rose_ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct rose_endpoint);
	__type(value, __u32);
} rose_senders SEC(".maps");

struct packet {
	struct rose_endpoint from;	/* host */
	__u32 source;			/* netns: addresses; host: nodes */
	__u32 target;
	__u32 first;
	__u32 drop;
	__u16 source_port;
	__u16 target_port;
	__u8 protocol;
	__u8 has_ports;
	__u8 host;
	__u8 pad;
	__u64 now;
};

static __always_inline void read_ports(struct __sk_buff *skb, __u32 offset, struct packet *packet)
{
	__u16 ports[2];

	if (packet->protocol != IPPROTO_TCP && packet->protocol != IPPROTO_UDP)
		return;
	if (bpf_skb_load_bytes(skb, offset, ports, sizeof(ports)))
		return;
	packet->source_port = bpf_ntohs(ports[0]);
	packet->target_port = bpf_ntohs(ports[1]);
	packet->has_ports = 1;
}

struct ipv4 {
	__u8 version_length, tos;
	__u16 length, id, fragment;
	__u8 ttl, protocol;
	__u16 checksum;
	__u32 source, target;
};

/* `offset`: where the IP header begins. */
static __always_inline int read_ipv4(struct __sk_buff *skb, __u32 offset, struct packet *packet)
{
	struct ipv4 ip;

	if (bpf_skb_load_bytes(skb, offset, &ip, sizeof(ip)))
		return 0;
	packet->source = ip.source;
	packet->target = ip.target;
	packet->protocol = ip.protocol;
	if (!(ip.fragment & bpf_htons(0x1fff)))	/* later fragments have no ports */
		read_ports(skb, offset + (ip.version_length & 15) * 4, packet);
	return 1;
}

static long try_rule(__u32 i, void *data)
{
	struct packet *packet = data;
	__u32 key = packet->first + i, node, peer;
	struct rose_rule *rule = bpf_map_lookup_elem(&rose_rules, &key);
	struct rose_chain *chain;
	int out, in, j;

	if (!rule)
		return 1;
	node = packet->host ? rule->node : rule->node_ip;
	peer = packet->host ? rule->peer : rule->peer_ip;
	out = packet->source == node && packet->target == peer && rule->direction != ROSE_IN;
	in = packet->source == peer && packet->target == node && rule->direction != ROSE_OUT;
	if (!out && !in)
		return 0;
	if (rule->protocol && rule->protocol != packet->protocol)
		return 0;
	if (rule->port_count) {
		int found = 0;

		for (j = 0; j < ROSE_MAX_RULE_PORTS; j++) {
			if (j >= rule->port_count)
				break;
			if (rule->ports[j] == packet->source_port || rule->ports[j] == packet->target_port)
				found = 1;
		}
		if (!packet->has_ports || !found)
			return 0;
	}
	key = rule->chain;
	chain = bpf_map_lookup_elem(&rose_chains, &key);
	if (!chain || packet->now >= ROSE_READ(chain->until_ns))
		return 0;
	if (rule->threshold != ~0U && bpf_get_prandom_u32() > rule->threshold)
		return 0;
	__sync_fetch_and_add(&rule->dropped, 1);
	packet->drop = 1;
	return 1;
}

static __always_inline struct rose_settings *settings(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&rose_settings, &zero);
}

/* On bridge ports, both ways: a packet says itself which way it goes. */
static __always_inline int classify(struct __sk_buff *skb)
{
	struct packet packet = {};
	__u32 port = skb->ifindex;
	struct rose_site *part;

	if (skb->protocol != bpf_htons(ETH_P_IP))
		return 0;
	part = bpf_map_lookup_elem(&rose_ports, &port);
	if (!part || !read_ipv4(skb, 14, &packet))
		return 0;
	packet.first = part->first;
	packet.now = bpf_ktime_get_ns();
	bpf_loop(part->count, try_rule, &packet, 0);
	return packet.drop;
}

SEC("tc")
int rose_port(struct __sk_buff *skb)
{
	return classify(skb) ? TC_ACT_SHOT : TCX_NEXT;
}

static __always_inline long node_of(struct __sk_buff *skb, struct rose_settings *set)
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
	return node ? (long)*node : -1;
}

/* The sender's end of a packet, whose network header is at 0; the rest of `packet` too. */
static __always_inline int read_sender(struct __sk_buff *skb, struct packet *packet)
{
	struct rose_endpoint *from = &packet->from;

	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		if (!read_ipv4(skb, 0, packet))
			return 0;
		from->ip[10] = from->ip[11] = 0xff;
		__builtin_memcpy(from->ip + 12, &packet->source, 4);
	} else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		__u8 head[40];

		if (bpf_skb_load_bytes(skb, 0, head, sizeof(head)))
			return 0;
		packet->protocol = head[6];
		__builtin_memcpy(from->ip, head + 8, 16);
		read_ports(skb, 40, packet);
	} else {
		return 0;
	}
	from->port = packet->source_port;
	from->protocol = packet->protocol;
	return packet->has_ports;
}

SEC("cgroup_skb/egress")
int rose_egress(struct __sk_buff *skb)
{
	struct rose_settings *set = settings();
	struct packet packet = {};
	__u32 *known, node;
	long mine;

	if (!set || !read_sender(skb, &packet))
		return 1;
	mine = node_of(skb, set);
	if (mine < 0)
		return 1;
	node = mine;
	known = bpf_map_lookup_elem(&rose_senders, &packet.from);
	if (!known || *known != node)
		bpf_map_update_elem(&rose_senders, &packet.from, &node, BPF_ANY);
	return 1;
}

SEC("cgroup_skb/ingress")
int rose_ingress(struct __sk_buff *skb)
{
	struct rose_settings *set = settings();
	struct packet packet = {};
	__u32 *sender;
	long mine;

	if (!set || !read_sender(skb, &packet))
		return 1;
	sender = bpf_map_lookup_elem(&rose_senders, &packet.from);
	if (!sender)
		return 1;
	mine = node_of(skb, set);
	if (mine < 0)
		return 1;
	packet.host = 1;
	packet.source = *sender;
	packet.target = mine;
	packet.now = bpf_ktime_get_ns();
	bpf_loop(set->rules, try_rule, &packet, 0);
	return !packet.drop;
}
