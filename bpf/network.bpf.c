/* Partitions and bad links. In netns deployments, a classifier on the nodes' bridge ports, in the client namespace,
 * drops packets, so the kernels of both sides do not notice. In host deployments, nodes may share an address. There,
 * cgroup programs record which node uses which address and port, and drop packets where they arrive.
 *
 * A rule is in effect while now < until_ns of its fault. The step that fires the fault writes until_ns, so a partition
 * begins at that moment, and ends on time even if user space is busy. The programs disappear with the process that
 * holds them, wherever they are attached (see rose_gate).
 *
 * ARP and IPv6 neighbour discovery are never dropped, so that nodes can reach each other as soon as the partition ends.
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "rose_core.h"
#include "inject.h"

char LICENSE[] SEC("license") = "GPL";

/* Also defined in inject.bpf.c. User space makes both objects use the same map when it loads them. */
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

/* This map and the next are sized to the schedule before loading. */
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

/* netns: the node of each interface in the client namespace. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ROSE_MAX_NODES);
	__type(key, __u32);
	__type(value, __u32);
} rose_ports SEC(".maps");

/* netns: the node of each MAC address. The MAC address identifies the other end of a packet, whatever IP addresses the
 * packet has. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ROSE_MAX_NODES);
	__type(key, struct rose_mac);
	__type(value, __u32);
} rose_macs SEC(".maps");

/* host: the node that uses an address and port. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct rose_endpoint);
	__type(value, __u32);
} rose_endpoints SEC(".maps");

/* A clsact filter survives the process that created it. The actual classifier is therefore in a program array, which
 * the kernel clears when its last descriptor is closed. Without the classifier, the filter of a rose that was killed
 * passes everything. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} rose_gate SEC(".maps");

/* The effects of each rule's bad link, at the index that the rule has in rose_rules. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, ROSE_MAX_RULES);
	__type(key, __u32);
	__type(value, struct rose_link);
} rose_links SEC(".maps");
/* True if there are bad links. User space sets it before loading, so that the verifier skips their code if there are
 * none. */
ROSE_FIXED bool rose_has_links;

/* The connections that a rule has numbered. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct rose_flow);
	__type(value, struct rose_numbered);
} rose_flows SEC(".maps");

/* host: the interface on which a delayed packet continues, by the number of the way. way_of() finds the number of an
 * interface. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ROSE_MAX_WAYS);
	__type(key, __u32);
	__type(value, struct rose_way);
} rose_ways SEC(".maps");

#include "network/packet.h"
#include "network/answer.h"
#include "network/link.h"

static long try_rule(__u32 i, void *data)
{
	struct packet *packet = data;
	struct rose_rule *rule = bpf_map_lookup_elem(&rose_rules, &i);
	struct rose_chain *chain;
	__u32 key;

	if (!rule)
		return 1;
	if (rule->flags & ROSE_RULE_LINK)
		return 0;
	key = rule->chain;
	chain = bpf_map_lookup_elem(&rose_chains, &key);
	if (!chain || packet->now >= ROSE_READ(chain->until_ns))
		return 0;
	if ((packet->looks_at & ONLY_REJECT) && !(rule->flags & ROSE_RULE_REJECT))
		return 0;
	if ((packet->looks_at & NOT_REJECT_LOSS) && (rule->flags & ROSE_RULE_REJECT) && rule->threshold != ~0U)
		return 0;
	if ((packet->looks_at & NOT_LOSS) && rule->threshold != ~0U)
		return 0;
	if (!is_meant(rule, chain, i, packet))
		return 0;
	if (rule->threshold != ~0U && bpf_get_prandom_u32() > rule->threshold)
		return 0;
	__sync_fetch_and_add(&rule->stopped, 1);
	packet->stop = rule->flags & ROSE_RULE_REJECT ? 2 : 1;
	packet->rule = i;
	return 1;
}

#ifdef ROSE_OLD
__noinline int rose_try_rule(__u32 slot, __u32 i)
{
	struct rose_room *room = bpf_map_lookup_elem(&rose_rooms, &slot);

	return !room || try_rule(i, &room->packet);
}
#endif

/* Tries all rules. First reads *packet into itself, so that the verifier assumes that its fields may have any value.
 * The reason is that before Linux 6.7, the verifier considers states of the caller equal even if they differ in
 * constants on the stack. It then checks the callback for the first of these states only, and removes code that this
 * state cannot reach. (Without this read, packets that a node sent were never dropped on 6.1.) */
static __always_inline void try_rules(const struct rose_settings *set, struct packet *packet)
{
	packet->now = bpf_ktime_get_ns();
#ifdef ROSE_OLD
	__u32 slot, i, rules = set->rules;
	struct rose_room *room = take_room(&slot);

	if (!room)
		return;
	room->packet = *packet;
	for (i = 0; i < ROSE_MAX_RULES; i++) {
		if (i >= rules || rose_try_rule(slot, i))
			break;
	}
	packet->stop = room->packet.stop;
	packet->rule = room->packet.rule;
	rose_leave(&room->busy);
#else
	if (!bpf_probe_read_kernel(packet, sizeof(*packet), packet))
		bpf_loop(set->rules, try_rule, packet, 0);
#endif
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

/* Runs at a node's bridge port. Handles packets that this node sends or receives, but applies only rules that have the
 * node on their side. */
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
	if (packet.stop)
		return stop(skb, &packet, from_node ? 0 : BPF_F_INGRESS);
	/* Each packet passes bad links only once: at the sender's port, or at the receiver's port if it comes from no
	 * port. */
	if (!rose_has_links || (!from_node && skb->ingress_ifindex))
		return TCX_NEXT;
	packet.looks_at = LOOK_NODES | LOOK_NETS | LOOK_OUT | LOOK_IN;
	return over_links(skb, set, &packet, 0, from_node ? BPF_F_INGRESS : 0, 0);
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

/* Finds the node that uses an endpoint. On this host (`here`), also searches by port alone, because sockets that are
 * bound to all addresses are entered without an address. */
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

/* Determines the node that owns a packet's socket. A socket stays with the cgroup in which it was created, even if its
 * process is moved to its node's cgroup (this happens to systems that `setup` started). Such sockets are known only by
 * their addresses, which user space reads when it finds the process. `left` means that the program is attached to the
 * cgroup in which they stayed. */
static __always_inline __s32 owner(struct __sk_buff *skb, struct rose_settings *set,
				   const struct rose_endpoint *endpoint, int left)
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
	/* Packets to a known node are dropped where they arrive. Packets to other hosts are dropped here, because no
	 * program of rose handles them there. */
	if (packet.target >= 0)
		return 1;
	packet.looks_at = LOOK_NETS | LOOK_OUT;
	try_rules(set, &packet);
	/* 2 drops the packet without an error. With 0, the sender would get EPERM. */
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

/* Sends responses to rejected packets, which cgroup programs cannot do. Packets between nodes of one host pass its
 * loopback interface, where a classifier can send responses. Attached only if a schedule has a fault that rejects. A
 * packet whose receiver is not known here is dropped by the cgroup program of the receiver. */
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
	/* Send the response out instead of injecting it as received. This keeps its route. Without the route, the
	 * kernel refuses an address in 127.0.0.0/8 as a martian. */
	return stop(skb, &packet, 0);
}

/* Bad links between nodes of one host, and between this host and others. On the loopback interface, this runs only for
 * packets that leave, because each of them also arrives on the same interface, but must be handled once. On other
 * interfaces, it runs in both directions. */
static __always_inline int on_host(struct __sk_buff *skb, __u32 way, int arrives)
{
	struct rose_settings *set = settings();
	struct packet packet = {};
	int here = skb->ifindex == LOOPBACK;

	if (!set || skb->mark == OURS || skb->mark == COPY || !read_packet(skb, sizeof(struct ethernet), &packet) ||
	    !packet.has_ports)
		return TCX_NEXT;
	packet.source = arrives ? NOBODY : node_of(skb, set);
	if (packet.source < 0)
		packet.source = user_of(&packet.from, here);
	packet.target = user_of(&packet.to, here || arrives);
	packet.looks_at = LOOK_NODES | LOOK_NETS | LOOK_OUT | LOOK_IN;
	return over_links(skb, set, &packet, 0, arrives ? BPF_F_INGRESS : 0, way);
}

#ifdef ROSE_OLD /* global, so that the verifier does not follow the callers for each possible result */
#define way_of rose_way_of
__noinline
#else
static __always_inline
#endif
__u32 way_of(__u32 ifindex, __u32 received)
{
	__u32 i;

	for (i = 1; i < ROSE_MAX_WAYS; i++) {
		__u32 key = i;
		struct rose_way *way = bpf_map_lookup_elem(&rose_ways, &key);

		if (way && way->ifindex == ifindex && (ifindex == LOOPBACK || way->received == received))
			return i;
	}
	return 0;
}

SEC("tc")
int rose_leaves(struct __sk_buff *skb)
{
	__u32 way = way_of(skb->ifindex, 0);

	return way ? on_host(skb, way, 0) : TCX_NEXT;
}

SEC("tc")
int rose_arrives(struct __sk_buff *skb)
{
	__u32 way = way_of(skb->ifindex, 1);

	return way ? on_host(skb, way, 1) : TCX_NEXT;
}

/* Records the owner of a port before anything is sent to the port. */
static __always_inline int bound(struct bpf_sock *ctx, const struct rose_endpoint *endpoint)
{
	struct rose_settings *set = settings();
	__u64 id = bpf_get_current_cgroup_id();
	__u32 *node = bpf_map_lookup_elem(&rose_cgroups, &id);
	int i;

	for (i = 0; set && !node && i < 4; i++) {
		if (!set->levels[i])
			break;
		id = bpf_get_current_ancestor_cgroup_id(set->levels[i]);
		if (id)
			node = bpf_map_lookup_elem(&rose_cgroups, &id);
	}
	if (node)
		learn(endpoint, *node);
	return 1;
}

SEC("cgroup/post_bind4")
int rose_bound4(struct bpf_sock *ctx)
{
	struct rose_endpoint endpoint = { .port = ctx->src_port, .protocol = ctx->protocol };
	__u32 ip = ctx->src_ip4;

	if (ip) {
		endpoint.ip[10] = endpoint.ip[11] = 0xff;
		__builtin_memcpy(endpoint.ip + 12, &ip, 4);
	}
	return bound(ctx, &endpoint);
}

SEC("cgroup/post_bind6")
int rose_bound6(struct bpf_sock *ctx)
{
	struct rose_endpoint endpoint = { .port = ctx->src_port, .protocol = ctx->protocol };
	__u32 ip[4] = { ctx->src_ip6[0], ctx->src_ip6[1], ctx->src_ip6[2], ctx->src_ip6[3] };

	__builtin_memcpy(endpoint.ip, ip, 16);
	return bound(ctx, &endpoint);
}

/* Runs on the interface that delays packets, when rose has written a packet to it because its delay is over. */
SEC("tc")
int rose_let_go(struct __sk_buff *skb)
{
	struct rose_settings *set = settings();
	struct packet packet = {};
	struct ethernet ether;
	struct rose_way *way;
	__u32 key, tag;
	int action;

	if (!set || !skb->vlan_present)
		return TCX_NEXT;
	tag = skb->vlan_tci;
	if (bpf_skb_vlan_pop(skb))
		return TC_ACT_SHOT;
	if (bpf_skb_load_bytes(skb, 0, &ether, sizeof(ether)) || !read_packet(skb, sizeof(ether), &packet))
		return TC_ACT_SHOT;
	key = ROSE_TAG_WAY(tag);
	way = 0;
	if (!key) {	/* netns: the bridge forwards the packet */
		packet.source = node_with(ether.from);
		packet.target = node_with(ether.to);
	} else {
		way = bpf_map_lookup_elem(&rose_ways, &key);
		if (!way || !way->ifindex)
			return TC_ACT_SHOT;
		packet.source = user_of(&packet.from, way->ifindex == LOOPBACK);
		packet.target = user_of(&packet.to, way->ifindex == LOOPBACK);
	}
	/* A packet that was delayed when a partition began must not cross the partition. */
	packet.looks_at = LOOK_NODES | LOOK_NETS | LOOK_OUT | LOOK_IN | NOT_LOSS;
	try_rules(set, &packet);
	if (packet.stop)
		return TC_ACT_SHOT;
	packet.looks_at = LOOK_NODES | LOOK_NETS | LOOK_OUT | LOOK_IN;
	action = over_links(skb, set, &packet, ROSE_TAG_RULE(tag) + 1, BPF_F_INGRESS, key);
	if (!way || action != TCX_NEXT)
		return action;
	skb->mark = way->received ? 0 : COPY;
	return bpf_redirect(way->ifindex, way->received ? BPF_F_INGRESS : 0);
}
