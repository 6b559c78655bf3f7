/* Counts the payload of TCP and UDP that each command of a run exchanges with nodes. The cgroup identifies the command.
 * The programs are attached to the cgroup that holds the run's commands. Handshakes and resets have no payload, so a
 * workload that reached no node exchanged nothing.
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "rose_core.h"
#include "exchanged.h"

char LICENSE[] SEC("license") = "GPL";

/* The addresses of the nodes (IPv4 as ::ffff:a.b.c.d). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ROSE_EXCHANGE_ADDRESSES);
	__type(key, struct rose_node_address);
	__type(value, __u32);
} rose_addresses SEC(".maps");

/* The key is the id of the command's cgroup. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, ROSE_EXCHANGE_COMMANDS);
	__type(key, __u64);
	__type(value, struct rose_exchanged);
} rose_exchanges SEC(".maps");

/* The depth of the commands' cgroups. User space sets it before loading. */
ROSE_FIXED __u32 rose_command_level;

enum { TCP = 6, UDP = 17, UDP_HEADER = 8, IPV6_HEADER = 40 };

static __always_inline void count(struct __sk_buff *skb, int sent)
{
	struct rose_node_address peer = {};
	struct rose_exchanged *known, fresh = {};
	__u32 header, size, at;
	__u64 command;
	__u8 first, protocol = 0, offset = 0;

	if (bpf_skb_load_bytes(skb, 0, &first, 1))
		return;
	if (first >> 4 == 4) {
		header = (first & 15) * 4;
		peer.bytes[10] = peer.bytes[11] = 0xff;
		at = sent ? 16 : 12;
		if (bpf_skb_load_bytes(skb, at, peer.bytes + 12, 4) || bpf_skb_load_bytes(skb, 9, &protocol, 1))
			return;
	} else {
		header = IPV6_HEADER;
		at = sent ? 24 : 8;
		if (bpf_skb_load_bytes(skb, at, peer.bytes, 16) || bpf_skb_load_bytes(skb, 6, &protocol, 1))
			return;
	}
	if (!bpf_map_lookup_elem(&rose_addresses, &peer))
		return;
	if (protocol == TCP) {
		if (bpf_skb_load_bytes(skb, header + 12, &offset, 1))
			return;
		header += (offset >> 4) * 4;
	} else if (protocol == UDP) {
		header += UDP_HEADER;
	}
	if (skb->len <= header)
		return;
	size = skb->len - header;
	command = bpf_skb_ancestor_cgroup_id(skb, rose_command_level);
	if (!command)
		return;
	known = bpf_map_lookup_elem(&rose_exchanges, &command);
	if (!known) {
		bpf_map_update_elem(&rose_exchanges, &command, &fresh, BPF_NOEXIST);
		known = bpf_map_lookup_elem(&rose_exchanges, &command);
		if (!known)
			return;
	}
	__sync_fetch_and_add(sent ? &known->sent : &known->received, size);
}

SEC("cgroup_skb/egress")
int rose_sent(struct __sk_buff *skb)
{
	count(skb, 1);
	return 1;
}

SEC("cgroup_skb/ingress")
int rose_received(struct __sk_buff *skb)
{
	count(skb, 0);
	return 1;
}
