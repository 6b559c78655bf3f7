/* Bad links: the effects that these programs have on packets, and how they pass packets that must wait on to user
 * space.
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_NETWORK_LINK_H
#define ROSE_NETWORK_LINK_H

enum {
	DO_LOSE = 1,
	DO_DUPLICATE = 2,
	DO_CORRUPT = 4,
	DO_HOLD = 8,
	MOST_PAYLOAD = 65535,
	CHUNK = 1024,
	TCP_FLAGS = 13,		/* offset of the flags in the TCP header */
};

struct over {
	struct __sk_buff *skb;
	struct packet *packet;
	__u32 from;		/* the first rule to try */
	__u32 rule;		/* the rule that delays the packet */
	__u32 to_side;		/* not 0: the packet goes to the rule's side; 0: it comes from there */
	__u32 acts;
	__u32 where;		/* random number that selects the bit to invert */
	__u32 slot, index;  /* only on old kernels: number of the element of rose_rooms, and the rule that is tried */
};

struct look {
	__u8 bytes[CHUNK + ROSE_PAYLOAD_BYTES];
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct look);
} rose_payload SEC(".maps");

struct search {
	struct __sk_buff *skb;
	const struct rose_link *link;
	__u32 at;		/* offset of the first chunk in the packet */
	__u32 size;		/* remaining bytes */
	__u32 found;
	__u32 slot;
};

#ifdef ROSE_OLD
struct rose_room {
	__u64 busy;
	struct packet packet;
	struct over over;	/* all but its pointers, which are not set */
	struct {
		__u32 rule, at, size, found;
	} searching;
};
/* Each processor has several elements, because an interrupt that handles another packet may interrupt the program that
 * uses one of them. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 3);
	__type(key, __u32);
	__type(value, struct rose_room);
} rose_rooms SEC(".maps");

static __always_inline struct rose_room *try_room(__u32 slot)
{
	struct rose_room *room = bpf_map_lookup_elem(&rose_rooms, &slot);

	return room && rose_try(&room->busy) ? room : 0;
}

static __always_inline struct rose_room *take_room(__u32 *slot)
{
	struct rose_room *room = try_room(0);

	*slot = 0;
	if (!room) {
		*slot = 1;
		room = try_room(1);
	}
	if (!room) {
		*slot = 2;
		room = try_room(2);
	}
	return room;
}
#endif

static long look_here(__u32 i, void *data)
{
	struct search *search = data;
	const struct rose_link *link = search->link;
	__u32 zero = 0, k;
	struct look *look = bpf_map_lookup_elem(&rose_payload, &zero);

	if (!look || i >= CHUNK)
		return 1;
#ifdef ROSE_OLD
	i = rose_unknown(i) & (CHUNK - 1);
#endif
	for (k = 0; k < ROSE_PAYLOAD_BYTES; k++) {
		if (k >= link->payload_length)
			break;
		if (look->bytes[i + k] != link->payload[k])
			return 0;
	}
	search->found = 1;
	return 1;
}

#ifdef ROSE_OLD
/* Old verifiers check a function once if its only arguments are numbers and the packet. All other state of these
 * functions is in rose_rooms. */
__noinline int rose_look_here(__u32 slot, __u32 i)
{
	struct rose_room *room = bpf_map_lookup_elem(&rose_rooms, &slot);
	struct search search = {};
	int done;

	if (!room)
		return 1;
	search.link = bpf_map_lookup_elem(&rose_links, &room->searching.rule);
	if (!search.link)
		return 1;
	done = look_here(i, &search);
	room->searching.found = search.found;
	return done;
}
#endif

static long look_in_chunk(__u32 i, void *data)
{
	struct search *search = data;
	__u32 zero = 0, length = search->link->payload_length, size, at = search->at + i * CHUNK, more, starts;
#ifdef ROSE_OLD
	__u32 k;
#endif
	struct look *look = bpf_map_lookup_elem(&rose_payload, &zero);

	if (!look || i * CHUNK >= search->size || length == 0 || length > ROSE_PAYLOAD_BYTES)
		return 1;
	size = search->size - i * CHUNK;
	if (size < length)
		return 1;
	/* The size is written as `more + 1`, because the verifier of Linux 6.1 knows that such a sum is not 0, but
	 * learns nothing from a test of the size. */
	more = size - 1;
	if (more >= CHUNK + ROSE_PAYLOAD_BYTES)
		more = CHUNK + ROSE_PAYLOAD_BYTES - 1;
	barrier_var(more);
	if (bpf_skb_load_bytes(search->skb, at, look->bytes, more + 1))
		return 1;
	starts = more + 1 - length + 1;
#ifdef ROSE_OLD
	for (k = 0; k < CHUNK; k++) {
		if (k >= starts || rose_look_here(search->slot, k))
			break;
	}
#else
	bpf_loop(starts < CHUNK ? starts : CHUNK, look_here, search, 0);
#endif
	return search->found;
}

#ifdef ROSE_OLD
__noinline int rose_look_in_chunk(struct __sk_buff *skb, __u32 slot, __u32 i)
{
	struct rose_room *room = bpf_map_lookup_elem(&rose_rooms, &slot);
	struct search search = { .skb = skb, .slot = slot };

	if (!room)
		return 1;
	search.link = bpf_map_lookup_elem(&rose_links, &room->searching.rule);
	if (!search.link)
		return 1;
	search.at = room->searching.at;
	search.size = room->searching.size;
	return look_in_chunk(i, &search) || room->searching.found;
}
#endif

/* True if the packet's payload contains the link's bytes. */
static __always_inline int has_payload(const struct over *over, const struct rose_link *link)
{
	struct __sk_buff *skb = over->skb;
	const struct packet *packet = over->packet;
	struct search search = { .skb = skb, .link = link };
	__u32 header = 8;
	__u8 offset = 0;

	if (!packet->has_ports)
		return 0;
	if (packet->from.protocol == IPPROTO_TCP) {
		if (bpf_skb_load_bytes(skb, packet->transport + 12, &offset, 1))
			return 0;
		header = (offset >> 4) * 4;
	}
	search.at = packet->transport + header;
	if (skb->len <= search.at)
		return 0;
	search.size = skb->len - search.at;
#ifdef ROSE_OLD
	struct rose_room *room = bpf_map_lookup_elem(&rose_rooms, &over->slot);

	if (!room)
		return 0;
	room->searching.rule = over->index;
	room->searching.at = search.at;
	room->searching.size = search.size;
	room->searching.found = 0;
	for (__u32 i = 0; i < MOST_PAYLOAD / CHUNK + 1; i++) {
		if (rose_look_in_chunk(skb, over->slot, i))
			break;
	}
	return room->searching.found;
#else
	bpf_loop(MOST_PAYLOAD / CHUNK + 1, look_in_chunk, &search, 0);
	return search.found;
#endif
}

/* Reverses the flow in place, because two flows would exceed the BPF stack. */
static __always_inline void turn(struct rose_flow *flow)
{
	__u32 *from = (__u32 *)flow->from, *to = (__u32 *)flow->to, word;
	__u16 port = flow->from_port;
	int i;

	for (i = 0; i < 4; i++) {
		word = from[i];
		from[i] = to[i];
		to[i] = word;
	}
	flow->from_port = flow->to_port;
	flow->to_port = port;
}

/* The number of this packet's connection, counted from when the link became bad. 0 if the connection is older. */
static __always_inline __u64 connection_of(struct __sk_buff *skb, const struct packet *packet,
					   struct rose_link *link, __u32 rule)
{
	struct rose_flow flow = { .rule = rule, .protocol = packet->from.protocol };
	struct rose_numbered *known, fresh = {};
	__u8 flags = TCP_SYN;

	if (!packet->has_ports)
		return 0;
	__builtin_memcpy(flow.from, packet->from.ip, 16);
	__builtin_memcpy(flow.to, packet->to.ip, 16);
	flow.from_port = packet->from.port;
	flow.to_port = packet->to.port;
	if (flow.protocol == IPPROTO_TCP &&
	    (bpf_skb_load_bytes(skb, packet->transport + TCP_FLAGS, &flags, 1) ||
	     bpf_skb_load_bytes(skb, packet->transport + 4, &fresh.sequence, 4)))
		return 0;
	known = bpf_map_lookup_elem(&rose_flows, &flow);
	if ((flags & (TCP_SYN | TCP_ACK)) == TCP_SYN && (flow.protocol == IPPROTO_TCP || !known)) {
		if (known && known->sequence == fresh.sequence)
			return known->number;
		if (flow.protocol != IPPROTO_TCP) {
			/* Datagrams in the opposite direction belong to the same flow. */
			turn(&flow);
			known = bpf_map_lookup_elem(&rose_flows, &flow);
			if (known)
				return known->number;
			turn(&flow);
		}
		fresh.number = rose_add(&link->opened, 1) + 1;
		bpf_map_update_elem(&rose_flows, &flow, &fresh, BPF_ANY);
		return fresh.number;
	}
	if (!known) {
		turn(&flow);
		known = bpf_map_lookup_elem(&rose_flows, &flow);
	}
	return known ? known->number : 0;
}

static __always_inline int happens(__u64 chance, const struct rose_link *link, __u64 n, __u32 draw)
{
	return chance && rose_draw(link->seed, n, draw) < chance;
}

static long try_link(__u32 i, void *data)
{
	struct over *over = data;
	struct packet *packet = over->packet;
	__u32 index = over->from + i, key;
	struct rose_rule *rule = bpf_map_lookup_elem(&rose_rules, &index);
	struct rose_link *link = bpf_map_lookup_elem(&rose_links, &index);
	struct rose_chain *chain;
	__u64 n, number;
	int meant;

	if (!rule || !link)
		return 1;
	if (!(rule->flags & ROSE_RULE_LINK))
		return 0;
	key = rule->chain;
	chain = bpf_map_lookup_elem(&rose_chains, &key);
	if (!chain || packet->now >= ROSE_READ(chain->until_ns))
		return 0;
	meant = is_meant(rule, chain, index, packet);
	if (!meant)
		return 0;
	if (link->payload_length && !has_payload(over, link))
		return 0;
	number = link->connections ? connection_of(over->skb, packet, link, index) : 0;
	n = rose_add(&link->matched, 1) + 1;
	if (!link->connections)
		number = n;
	if (number < link->count || (link->times >= 0 && number >= link->count + link->times))
		return 0;
	if (happens(link->lose, link, n, ROSE_DRAW_LOSE)) {
		__sync_fetch_and_add(&link->lost, 1);
		__sync_fetch_and_add(&link->touched, 1);
		over->acts = DO_LOSE;
		return 1;
	}
	key = 0;
	if (happens(link->duplicate, link, n, ROSE_DRAW_DUPLICATE)) {
		__sync_fetch_and_add(&link->duplicated, 1);
		key |= DO_DUPLICATE;
	}
	if (happens(link->corrupt, link, n, ROSE_DRAW_CORRUPT)) {
		__sync_fetch_and_add(&link->corrupted, 1);
		over->where = rose_draw(link->seed, n, ROSE_DRAW_WHERE);
		key |= DO_CORRUPT;
	}
	if (link->hold) {
		__sync_fetch_and_add(&link->held, 1);
		over->rule = index;
		over->to_side = meant == 2;
		key |= DO_HOLD;
	}
	if (key)
		__sync_fetch_and_add(&link->touched, 1);
	over->acts |= key;
	return !!link->hold;
}

#ifdef ROSE_OLD
__noinline int rose_try_link(struct __sk_buff *skb, __u32 slot, __u32 i)
{
	struct rose_room *room = bpf_map_lookup_elem(&rose_rooms, &slot);
	struct over over = { .skb = skb, .slot = slot };
	int done;

	if (!room)
		return 1;
	over.packet = &room->packet;
	over.from = room->over.from;
	over.index = over.from + i;
	over.acts = room->over.acts;
	over.rule = room->over.rule;
	over.to_side = room->over.to_side;
	over.where = room->over.where;
	done = try_link(i, &over);
	room->over.acts = over.acts;
	room->over.rule = over.rule;
	room->over.to_side = over.to_side;
	room->over.where = over.where;
	return done;
}
#endif

/* Inverts a bit after the IP header, where the checksum of the transport protocol detects it. */
static __always_inline void turn_a_bit(struct __sk_buff *skb, const struct packet *packet, __u32 where)
{
	__u32 at = packet->transport;
	__u8 byte;

	if (skb->len <= at)
		return;
	at += (where >> 3) % (skb->len - at);
	if (bpf_skb_load_bytes(skb, at, &byte, 1))
		return;
	byte ^= 1 << (where & 7);
	bpf_skb_store_bytes(skb, at, &byte, 1, 0);
}

/* Applies the bad links whose rules match a packet, beginning with rule `first`. Returns TCX_NEXT if the packet
 * continues. `back`: how to redirect a duplicate to the same place. `way`: the way on which the packet continues after
 * a delay. */
static __always_inline int over_links(struct __sk_buff *skb, const struct rose_settings *set, struct packet *packet,
				      __u32 first, __u64 back, __u32 way)
{
	struct over over = { .skb = skb, .packet = packet, .from = first };

	if (skb->mark == COPY)
		return TCX_NEXT;
	packet->now = bpf_ktime_get_ns();
#ifdef ROSE_OLD
	__u32 slot, i, rules = set->rules;
	struct rose_room *room = take_room(&slot);

	if (!room)
		return TCX_NEXT;
	room->packet = *packet;
	room->over.from = first;
	room->over.acts = 0;
	for (i = 0; i < ROSE_MAX_RULES; i++) {
		if (i >= rules || rose_try_link(skb, slot, i))
			break;
	}
	over.acts = room->over.acts;
	over.rule = room->over.rule;
	over.to_side = room->over.to_side;
	over.where = room->over.where;
	rose_leave(&room->busy);
#else
	/* Makes the verifier assume that the fields of *packet may have any value. try_rules() gives the reason. */
	if (bpf_probe_read_kernel(packet, sizeof(*packet), packet))
		return TCX_NEXT;
	bpf_loop(set->rules, try_link, &over, 0);
#endif
	if (over.acts & DO_LOSE)
		return TC_ACT_SHOT;
	if (over.acts & DO_CORRUPT)
		turn_a_bit(skb, packet, over.where);
	if (over.acts & DO_HOLD) {
		if (!set->hold || bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), ROSE_TAG(over.rule, over.to_side, way)))
			return TCX_NEXT;
		if (over.acts & DO_DUPLICATE)
			bpf_clone_redirect(skb, set->hold, 0);
		return bpf_redirect(set->hold, 0);
	}
	if (over.acts & DO_DUPLICATE) {
		skb->mark = COPY;
		bpf_clone_redirect(skb, skb->ifindex, back);
		skb->mark = 0;
	}
	return TCX_NEXT;
}

#endif
