/* What exchange.bpf.c shares with user space. C++ compiles it as well. Include <linux/types.h> or similar before it.
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_EXCHANGED_H
#define ROSE_EXCHANGED_H

enum {
	ROSE_EXCHANGE_ADDRESSES = 1024,
	ROSE_EXCHANGE_COMMANDS = 1024,
};

/* IPv4 as ::ffff:a.b.c.d */
struct rose_node_address {
	__u8 bytes[16];
};

/* Bytes of payload, that is, without the headers. */
struct rose_exchanged {
	__u64 sent;
	__u64 received;
};

#ifdef __cplusplus
static_assert(sizeof(struct rose_node_address) == 16 && sizeof(struct rose_exchanged) == 16, "as the program has them");
#else
_Static_assert(sizeof(struct rose_node_address) == 16 && sizeof(struct rose_exchanged) == 16, "as userspace has them");
#endif

#endif
