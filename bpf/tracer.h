/* The interface between the tracer's BPF programs (tracer.bpf.c) and user space (src/observe). C that C++ also
 * compiles. Every record in the ring begins with struct rose_head. Numbers of kinds and parts are never reused. Nothing
 * here is written to files: dumps have their own format.
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef ROSE_TRACER_H
#define ROSE_TRACER_H

#ifdef __cplusplus
#include <cstdint>
typedef std::uint8_t rose_u8;
typedef std::uint16_t rose_u16;
typedef std::uint32_t rose_u32;
typedef std::uint64_t rose_u64;
typedef std::int8_t rose_s8;
typedef std::int16_t rose_s16;
typedef std::int32_t rose_s32;
typedef std::int64_t rose_s64;
#define ROSE_SIZE(type, bytes) static_assert(sizeof(type) == (bytes), #type)
#else
typedef unsigned char rose_u8;
typedef unsigned short rose_u16;
typedef unsigned int rose_u32;
typedef unsigned long long rose_u64;
typedef signed char rose_s8;
typedef signed short rose_s16;
typedef signed int rose_s32;
typedef signed long long rose_s64;
#define ROSE_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)
#endif

enum {
	ROSE_SYSCALLS = 512,
	ROSE_MOST_NODES = 256,
	ROSE_MOST_LEVELS = 8,
	ROSE_PATH_BYTES = 4096,
	/* A part begins below the limit and is at most as long as a path. */
	ROSE_RECORD_LIMIT = 0x3fff,
	ROSE_RECORD_BYTES = ROSE_RECORD_LIMIT + 1 + ROSE_PATH_BYTES + 512,
	ROSE_SCRATCHES = 2,
	ROSE_CGROUP_PATH = 1024, /* path of a cgroup including NUL, as long as the kernel's tracepoints report */
};

/* ---- records ---- */
enum rose_kind {
	ROSE_FAILED = 1,   /* struct rose_call */
	ROSE_CHANGED = 2,  /* struct rose_call: a state-changing call that succeeded */
	ROSE_ENTERED = 3,  /* struct rose_entered */
	ROSE_SILENT = 4,   /* struct rose_silent */
	ROSE_PROCESS = 5,  /* struct rose_process */
	ROSE_CGROUP = 10,  /* only for user space, never an event */
};

/* Equal events of a storm, reported in one record: the time, process and thread of the last one are in the head. */
enum { ROSE_COUNTED = 16 /* struct rose_counted */ };

/* A requested value; never an event in the window. */
enum { ROSE_VALUE = 17 /* struct rose_value */ };
/* Data sent or received on a connection; never an event in the window. */
enum { ROSE_TRANSFER = 18 /* struct rose_transfer */ };

struct rose_head {
	rose_u32 size; /* of the record, including its parts */
	rose_u16 kind;
	rose_u16 node;
	rose_u64 ts_ns; /* CLOCK_MONOTONIC */
	rose_u32 tgid;
	rose_u32 tid;
};
ROSE_SIZE(struct rose_head, 24);

struct rose_call {
	struct rose_head head;
	rose_s64 result; /* -errno when failed; of ROSE_FAILED with `requested`, the bytes that were moved */
	rose_s32 fd;     /* -1: none */
	rose_u16 nr;
	rose_u8 operation; /* opcode of a failed io_uring operation */
	rose_u8 flags;     /* rose_call_state */
	rose_u32 open_flags; /* of a call that opened something */
	rose_u32 requested;  /* of a read or write that did less than was asked, in bytes */
};
ROSE_SIZE(struct rose_call, 48);
enum rose_call_state {
	ROSE_BUS = 2,   /* no call: an access to a mapped file ended in SIGBUS. `nr` is that of mmap */
	ROSE_DYING = 1, /* a fatal signal was pending, or the process was ending, stopping or freezing: it failed for that */
};

/* Parts that follow a call, each aligned to 8 bytes. */
enum rose_piece_kind {
	ROSE_PATH = 1,   /* text as given by the caller */
	ROSE_BASE = 2,   /* fragments: the folder that it is relative to */
	ROSE_PATH2 = 3,
	ROSE_BASE2 = 4,
	ROSE_FILE = 5,   /* fragments: the path of the descriptor's file */
	ROSE_PEER = 6,   /* struct rose_address */
	ROSE_UNIX = 7,   /* text of a unix socket's address */
	ROSE_PIPE = 8,   /* u64 inode number */
	ROSE_ANON = 9,   /* text: "[eventpoll]" */
	ROSE_NETLINK = 10, /* u64 protocol: identifies the kernel's end */
	ROSE_NAME = 11,  /* text: the method that was entered */
};
/* The last part of a call, or of a process, that belongs to a storm: struct rose_storm_mark. */
enum { ROSE_STORM = 16 };
enum rose_piece_flag {
	ROSE_CUT = 1,      /* the beginning is missing */
	ROSE_UNLINKED = 2, /* the file has been unlinked */
};
struct rose_piece {
	rose_u16 length; /* of what follows */
	rose_u8 kind;
	rose_u8 flags;
	rose_u32 pad;
};
ROSE_SIZE(struct rose_piece, 8);
/* Fragments are names in reverse order, each terminated by NUL: "snapshot.0\0x\0lib\0var\0". */

struct rose_address {
	rose_u16 family;
	rose_u16 port; /* host order */
	rose_u8 bytes[16];
	rose_u32 pad;
};
ROSE_SIZE(struct rose_address, 24);

/* ---- storms: many equal failures, changes, or starts and ends of processes on one CPU ---- */

/* This many per second are recorded individually; further ones are counted. */
enum { ROSE_STORM_FEW = 32 };
#define ROSE_STORM_NS 1000000000ull

struct rose_storm_mark {
	rose_u64 key;      /* ROSE_COUNTED refers to later ones by this key alone */
	rose_u64 first_ns; /* of the first event that this record represents; the last one is in the head */
	rose_u32 count;
	rose_u32 pad;
};
ROSE_SIZE(struct rose_storm_mark, 24);

struct rose_counted {
	struct rose_head head;
	struct rose_storm_mark mark;
};
ROSE_SIZE(struct rose_counted, 48);

/* An entry in the table of a CPU. Only the holder of `busy` may access the rest (it is taken by exchange, in the kernel
 * or in the tracer's process, which maps the table). BPF programs do not wait for it. */
struct rose_storm {
	rose_u64 key;      /* 0: unused */
	rose_u64 begin_ns; /* start of the second that is being counted */
	rose_u64 first_ns; /* of the events in `pending` */
	rose_u64 last_ns;
	rose_u64 busy;
	rose_u32 seen;     /* in this second */
	rose_u32 pending;  /* counted but not reported yet */
	rose_u32 reported; /* a record with this key has been sent */
	rose_u32 node, tgid, tid;
};
ROSE_SIZE(struct rose_storm, 64);

struct rose_entered {
	struct rose_head head;
	rose_u32 function;
	rose_u32 link; /* number of the link; for a short time, two links may report the same entry */
};
ROSE_SIZE(struct rose_entered, 32);
/* In `function`: a Java method, whose name follows as a part. `link` 1: its entries are no longer reported. */
#define ROSE_NAMED 0xffffffffu

/* ---- requested values: the location of each is data ---- */

enum {
	ROSE_CHAIN_STEPS = 8,
	ROSE_TEXT_BYTES = 64,	/* longest part of a text that is recorded */
	ROSE_MOST_FETCHES = 1024,
	ROSE_FETCHES_AT_ONCE = 16, /* at one location */
	ROSE_NO_REGISTER = 0xff,
};

/* A register (by DWARF number, psABI) plus the first offset; then, `reads` times, the word at that address plus the
 * next offset. All sums are modulo 2^64. */
struct rose_chain {
	rose_u64 offsets[ROSE_CHAIN_STEPS];
	rose_u8 base;  /* ROSE_NO_REGISTER: only the first offset */
	rose_u8 reads; /* less than ROSE_CHAIN_STEPS */
	rose_u8 pad[6];
};
ROSE_SIZE(struct rose_chain, 72);

enum rose_fetch_kind {
	ROSE_FETCH_WORD = 1,    /* the result of the chain */
	ROSE_FETCH_MEMORY = 2,  /* `size` bytes at that address */
	ROSE_FETCH_TEXT = 3,    /* the NUL-terminated text at that address */
	ROSE_FETCH_COUNTED = 4, /* the text at that address, with the length that `length` yields */
	ROSE_FETCH_CODE = 5,    /* the address there, relative to the instruction that reads it */
};
struct rose_fetch {
	struct rose_chain at;
	struct rose_chain length;
	rose_u8 kind;
	rose_u8 size; /* 1, 2, 4 or 8 */
	rose_u8 pad[6];
};
ROSE_SIZE(struct rose_fetch, 152);

enum rose_fetch_failure {
	ROSE_UNREADABLE = 1, /* an address on the way is not in memory */
	ROSE_NULL = 2,       /* a text whose pointer is null */
	ROSE_TOO_MANY = 3,   /* reported by an agent: further values are dropped */
};
/* The type of a value reported by a JVM's agent; 0: defined by the fetch. */
enum rose_value_form {
	ROSE_FORM_INTEGER = 1,
	ROSE_FORM_BOOLEAN = 2,
	ROSE_FORM_CHARACTER = 3,
	ROSE_FORM_FLOAT = 4,
	ROSE_FORM_DOUBLE = 5,
	ROSE_FORM_TEXT = 6,    /* `word`: its whole length */
	ROSE_FORM_OBJECT = 7,  /* the text is the name of its class */
	ROSE_FORM_CONSTANT = 8, /* of an enumeration: the text is its name */
	ROSE_FORM_CALLER = 9,   /* the end of a method's name; `word`: the line, 0 if unknown */
};
struct rose_value {
	struct rose_head head;
	rose_u32 fetch;
	rose_u8 failed;     /* 0 or rose_fetch_failure */
	rose_u8 length;     /* of the text */
	rose_u8 form;       /* rose_value_form */
	rose_u8 pad;
	rose_u64 word;      /* for a counted text, its whole length */
	rose_u8 text[ROSE_TEXT_BYTES];
};
ROSE_SIZE(struct rose_value, 104);
/* The cookie of a location: its number, the index of its first fetch from bit 16, and their number from bit 32. */

/* io_uring_complete: (ring, request, completion) since Linux 6.11; (ring, request, user data, result, ...) since 5.19;
 * (ring, user data, result, ...) before, which does not identify the request. */
enum rose_uring_form { ROSE_URING_COMPLETION = 0, ROSE_URING_RESULT = 1, ROSE_URING_DATA = 2 };

enum rose_process_flag {
	ROSE_MAIN = 1,
	ROSE_PLANNED = 2,
	ROSE_CORE = 4,
	ROSE_OUT_OF_MEMORY = 8,
	ROSE_IN_FREEZER = 16, /* of a wait: the freezer of cgroup v1 holds it */
};
/* States have the numbers of trace::ProcessState. */
enum rose_process_state { ROSE_CRASHED = 1, ROSE_EXITED = 2, ROSE_PAUSED = 3, ROSE_STARTED = 4 };
/* Where the signal that ended a process came from. */
enum rose_signal_origin { ROSE_BY_UNKNOWN = 0, ROSE_BY_PROCESS = 1, ROSE_BY_KERNEL = 2, ROSE_BY_ITSELF = 3 };
enum { ROSE_COMM_BYTES = 16 };
struct rose_process {
	struct rose_head head;
	rose_u64 duration_ns; /* of a pause; of an end: since the signal was generated */
	rose_s32 exit_code; /* -1: none */
	rose_u8 state;
	rose_u8 signal;
	rose_u8 flags;
	rose_u8 origin;  /* rose_signal_origin; 0: duration_ns of an end is unknown as well */
	rose_u32 by; /* the process that sent the signal */
	rose_u32 pad;
	rose_u8 by_name[ROSE_COMM_BYTES];
};
ROSE_SIZE(struct rose_process, 64);

/* The latest signal that ends a process, or asks it to end, and has been generated; by process. */
struct rose_signalled {
	rose_u64 ts_ns;
	rose_u64 start_ns; /* of the process, because ids are reused */
	rose_u32 by;
	rose_u8 signal;
	rose_u8 origin;
	rose_u8 fatal; /* it ends the process, which does not catch it */
	rose_u8 pad;
	rose_u8 by_name[ROSE_COMM_BYTES];
};
ROSE_SIZE(struct rose_signalled, 40);
/* A process that catches a request to end, and ends later than this, ended for another reason. */
#define ROSE_ASKED_NS 60000000000ull

/* Reported by the iterator over all tasks for each thread of a node that waits uninterruptibly or in the freezer. */
struct rose_blocked {
	rose_u64 start_ns;  /* of the thread, because ids are reused */
	rose_u64 switches;  /* if unchanged, it is still the same wait */
	rose_u32 tgid;
	rose_u32 tid;
	rose_u32 node;
	rose_u32 flags; /* rose_process_flag */
};
ROSE_SIZE(struct rose_blocked, 32);

/* Events for which the ring had no space although they must not be missed. The reader checks the counts and acts as if
 * it had received the records. */
struct rose_missed {
	rose_u64 cgroups; /* made or removed */
	rose_u64 ends;    /* abnormal ends of processes; the last one: */
	rose_u32 node;
	rose_u32 tgid;
	rose_s32 exit_code; /* -1: none */
	rose_u32 signal;
	rose_u32 flags; /* rose_process_flag */
	rose_u32 pad;
};
ROSE_SIZE(struct rose_missed, 40);

/* A target cgroup was created or removed. If it is created again, it has another id: the BPF programs already trace it,
 * and user space attaches to its sockets. */
struct rose_cgroup {
	struct rose_head head;
	rose_u64 id;
	rose_u32 place;
	rose_u32 gone;
};
ROSE_SIZE(struct rose_cgroup, 40);

/* Value of rose_places, whose key is the path from the root of the hierarchy, padded with NUL. */
struct rose_place {
	rose_u32 node;
	rose_u32 place;
};
ROSE_SIZE(struct rose_place, 8);

/* Before Linux 5.16 (commit c86216bc96aa) a key has at most 512 bytes: two sums stand for the path. */
struct rose_place_sums {
	rose_u64 words[2];
};
ROSE_SIZE(struct rose_place_sums, 16);
static inline struct rose_place_sums rose_sums_of(const rose_u64 *padded)
{
	struct rose_place_sums sums = {{0, 0}};

	for (int i = 0; i < ROSE_CGROUP_PATH / 8; i++) {
		sums.words[0] = (sums.words[0] ^ padded[i]) * 0x9e3779b97f4a7c15ull;
		sums.words[0] ^= sums.words[0] >> 32;
		sums.words[1] = (sums.words[1] + padded[i]) * 0xff51afd7ed558ccdull;
		sums.words[1] ^= sums.words[1] >> 29;
	}
	return sums;
}

/* ---- network: one direction between two hosts, for one service port ---- */
struct rose_pair {
	rose_u32 node;
	rose_u16 port;     /* of the service, host order */
	rose_u8 protocol;
	rose_u8 from_service; /* the service is at src */
	rose_u8 src[16];   /* IPv4 as ::ffff:a.b.c.d */
	rose_u8 dst[16];
};
ROSE_SIZE(struct rose_pair, 40);

struct rose_pair_state {
	rose_u64 first_ns;
	rose_u64 last_ns;
	rose_u64 usual_ns; /* longest of its usual gaps, decaying */
	rose_u64 given_up_ns; /* TCP: this side closed a connection during this silence; 0: it did not */
	rose_u64 asked_ns; /* TCP: start of retransmissions of unacknowledged data; 0: none */
	rose_u64 handshake_ns; /* when the last SYN arrived whose ACK is awaited; 0: none */
	rose_s64 open;     /* TCP: number of known open connections; far below 0: ROSE_MOVED */
	rose_u32 packets;
	/* Packets after a pause, if the socket is known: while own data was unacknowledged, or otherwise. */
	rose_u32 answers, unasked;
	rose_u32 pad;
};
ROSE_SIZE(struct rose_pair_state, 72);

/* What distinguishes a used pair from a rarely used one: number of packets, and silence relative to the usual gap. A
 * pair whose remote side only answers is silent only if it was asked. */
enum { ROSE_PACKETS_LEAST = 5, ROSE_GAP_FACTOR = 3, ROSE_ANSWERS_LEAST = 4, ROSE_ANSWERS_FACTOR = 8 };
/* A reachable peer answers the end of an idle connection within this time. */
#define ROSE_ANSWER_NS 500000000ull
/* Packets with a larger distance belong to another exchange. */
#define ROSE_EXCHANGE_NS 8000000ull

/* This side closed a connection, and the peer did not even answer that, or answers nothing at all. */
static inline int rose_unanswered(const struct rose_pair_state *state, rose_u64 now)
{
	return state->asked_ns || (state->given_up_ns && now - state->given_up_ns >= ROSE_ANSWER_NS);
}

/* The length of a silence of `gap` up to `now` to be reported; 0: none. `tcp` and `delay` belong to the pair. */
static inline rose_u64 rose_reported_ns(const struct rose_pair_state *state, int tcp, rose_u64 now, rose_u64 gap,
				    rose_u64 delay)
{
	int asked = rose_unanswered(state, now);

	if (gap < delay || state->packets < ROSE_PACKETS_LEAST)
		return 0;
	if (gap > state->usual_ns * ROSE_GAP_FACTOR) {
		if (asked)
			return gap;
		/* Nothing was asked. It is a silence if the peer used to send on its own for a while and a connection
		 * is still open. */
		if ((!tcp || state->open > 0) && now - gap - state->first_ns >= delay / 2 &&
		    (state->answers < ROSE_ANSWERS_LEAST || state->unasked * ROSE_ANSWERS_FACTOR > state->answers))
			return gap;
	}
	/* Rarely used, and interrupted when it was used. */
	if (state->asked_ns && now - state->asked_ns >= delay)
		return now - state->asked_ns;
	return 0;
}

/* Set before loading. */
struct rose_network_settings {
	rose_u64 delay_ns;
	rose_u64 tick_ns; /* of a jiffy */
	rose_u16 ephemeral_low, ephemeral_high; /* ports assigned to clients */
	rose_u8 has_addresses; /* whole interfaces: nodes are identified by rose_addresses */
	rose_u8 by_iterator; /* silences of TCP are found by rose_connections; packet programs leave them out */
	rose_u8 pad[2];
};
ROSE_SIZE(struct rose_network_settings, 24);

struct rose_connection {
	rose_u8 remote[16];
	rose_u8 local[16];
	rose_u16 remote_port;
	rose_u16 local_port;
	rose_u32 pad;
};
ROSE_SIZE(struct rose_connection, 40);

/* ---- what the kernel keeps for each TCP connection, reported by the iterator over files; times are ages ---- */
struct rose_tcp {
	rose_u64 socket; /* identifies it while it exists */
	rose_u64 ts_ns;
	struct rose_connection conn;
	rose_u32 node;
	rose_u32 tgid;
	rose_u32 received;   /* jiffies since something arrived */
	rose_u32 sent;       /* jiffies since data was sent, the first time or again */
	rose_u32 unanswered; /* bytes that were written and are not acknowledged */
	rose_u32 segments;   /* that arrived, modulo 2^32 */
	rose_u8 state;       /* as in sock_common */
	rose_u8 resent;      /* retransmissions of what is not acknowledged */
	rose_u8 probes;      /* keep-alives and window probes that are not answered */
	rose_u8 pad[5];
};
ROSE_SIZE(struct rose_tcp, 88);

/* A connection that was closed after it had been quiet, and whose end the peer has not answered. No file refers to it
 * any more, so the iterator does not see it. */
struct rose_closing {
	struct rose_connection conn;
	rose_u64 closed_ns;
};
ROSE_SIZE(struct rose_closing, 48);
#define ROSE_QUIET_NS 200000000ull

/* ---- messages between nodes: bytes that a call sent to or received from a connection ---- */
enum {
	ROSE_TRANSFER_BYTES = 64,   /* this many bytes of a message are recorded */
	ROSE_TRANSFER_RATE = 4000,  /* messages per node and second; further ones are counted as dropped */
	ROSE_TRANSFER_AT_ONCE = 8,  /* datagrams per call */
};
struct rose_transfer {
	struct rose_head head;
	struct rose_connection conn;
	rose_u32 end;      /* TCP: sequence number after the last byte, equal on both sides */
	rose_u32 bytes;
	rose_u8 protocol;
	rose_u8 taken;     /* received instead of sent */
	rose_u8 length;    /* recorded bytes */
	rose_u8 pad;
	rose_u32 pad2;
	rose_u8 data[ROSE_TRANSFER_BYTES];
};
ROSE_SIZE(struct rose_transfer, 144);
/* By node. */
struct rose_transfer_gate {
	rose_u64 begin_ns; /* start of the second that is being counted */
	rose_u64 left_out;
	rose_u32 count;
	rose_u32 pad;
};
ROSE_SIZE(struct rose_transfer_gate, 24);

struct rose_service {
	rose_u8 address[16];
	rose_u16 port;
	rose_u16 pad;
};
ROSE_SIZE(struct rose_service, 20);

struct rose_connection_state {
	rose_u32 node;
	rose_u32 pad;
};
ROSE_SIZE(struct rose_connection_state, 8);

/* Entries that were created and those removed normally: the difference was evicted. */
struct rose_network_counts {
	rose_u64 pairs;
	rose_u64 connections, ended;
};
ROSE_SIZE(struct rose_network_counts, 24);

/* ---- handshakes: they relate the clocks of two hosts ---- */
/* Arrivals only: at the server, of the SYN and the ACK; at the client, of the SYN-ACK. */
struct rose_handshake {
	rose_u64 first_ns; /* 0: the slot is empty */
	rose_u64 last_ns;  /* 0 at the client */
	rose_u32 isn;      /* of the client */
	rose_u16 remote_port, local_port;
	rose_u8 client;    /* this side is the client */
	rose_u8 pad[7];
};
ROSE_SIZE(struct rose_handshake, 32);
/* Two dumps are comparable only if they contain the same handshakes. Slot n keeps the latest of about one in 2^(n+1)
 * handshakes, selected by the number that both sides see. Dumps taken at different times therefore agree in the higher
 * slots, however many connections there are. */
enum { ROSE_HANDSHAKES = 12 };
struct rose_handshakes {
	struct rose_handshake slots[ROSE_HANDSHAKES];
};
ROSE_SIZE(struct rose_handshakes, 384);
struct rose_hosts {
	rose_u8 remote[16];
	rose_u8 local[16];
};
ROSE_SIZE(struct rose_hosts, 32);
struct rose_syn {
	rose_u64 syn_ns;
	rose_u32 isn;
	rose_u32 pad;
};
ROSE_SIZE(struct rose_syn, 16);

/* Value of rose_attached: the node + 1, or 0 for none, and flags for how to determine it. */
#define ROSE_ATTACHED_NODE 0xffffull
#define ROSE_BY_SOCKET (1ull << 32) /* processes share the cgroup: see rose_sockets */
#define ROSE_BY_LEVEL (1ull << 33)  /* it contains cgroups of nodes: the deepest one counts */

struct rose_silent {
	struct rose_head head;
	rose_u64 duration_ns;
	rose_u32 packets;
	rose_u32 pad;
	struct rose_pair pair;
};
ROSE_SIZE(struct rose_silent, 80);

/* ---- tables ---- */

/* The arguments of a system call; set before loading from kernel::SyscallInfo. -1: none. */
/* What the success of a call means: 0: nothing. */
enum rose_call_class {
	ROSE_CHANGES = 1, /* it changes state */
	ROSE_SIZED = 2,   /* it moves at most as many bytes as its third argument */
};
/* Descriptors that are not regular files, by thread and descriptor: there, reads are short all the time. Emptied by the
 * reader, because descriptors are reused. */
enum { ROSE_STREAMS = 1024, ROSE_MOST_AT_ONCE = 0x7ffff000 /* bytes that one call moves at most */ };
enum rose_call_flag {
	ROSE_TEXT2 = 1,      /* path2 is not a path (target of a symlink) and stays as it is */
	ROSE_FLAGS_1 = 2,    /* open flags in argument 1: a success counts if O_CREAT or O_TRUNC is set */
	ROSE_FLAGS_2 = 4,    /* ... in argument 2 */
	ROSE_FLAGS_HOW = 8,  /* ... in the struct open_how of argument 2 */
	ROSE_NEW_SOCKET = 16, /* returns a descriptor whose peer matters */
	ROSE_MESSAGE = 32,   /* argument 1 is a struct msghdr that may hold an address */
	ROSE_AGAIN_NONBLOCK = 64, /* EAGAIN is noise on non-blocking descriptors; otherwise it is a timeout */
};
/* Expected failures: one bit per errno for each call. */
enum { ROSE_NOISE_ERRNOS = 256, ROSE_NOISE_WORDS = 4 };
struct rose_call_signature {
	rose_s8 path, dirfd, path2, dirfd2;
	rose_s8 fd, sockaddr;
	rose_s8 message_flags; /* argument that may hold MSG_DONTWAIT */
	rose_u8 pad0;
	rose_u16 flags;
	rose_u16 pad[3];
};
ROSE_SIZE(struct rose_call_signature, 16);

/* Value of rose_procs: the node; ROSE_PROC_NODE if the process belongs to no node although its cgroup does. */
enum { ROSE_PROC_MAIN = 0x80000000u, ROSE_PROC_NODE = 0x7fffffffu };

struct rose_node {
	rose_u32 main_tgid;
	rose_u32 planned;
};
ROSE_SIZE(struct rose_node, 8);

/* Per CPU and node. */
struct rose_stats {
	rose_u64 recorded;
	rose_u64 lost;       /* the ring was full */
	rose_u64 suppressed; /* expected noise */
	rose_u64 foreign;    /* failed calls of the i386 and x32 tables, whose numbers are unknown */
};
ROSE_SIZE(struct rose_stats, 32);

/* Identifies a process uniquely, because pids are reused. */
struct rose_identity {
	rose_u64 start_ns;
	rose_u32 tgid;
	rose_u32 pad;
};
ROSE_SIZE(struct rose_identity, 16);

/* A pause that has not ended: the key of rose_paused is the tgid, or ROSE_FROZEN | cgroup id. */
#define ROSE_FROZEN (1ull << 63)
struct rose_pause {
	rose_u64 since_ns;
	rose_u32 node;
	rose_u32 tgid; /* 0: a frozen cgroup */
	rose_u32 signal;
	rose_u32 flags; /* rose_process_flag at its beginning */
};
ROSE_SIZE(struct rose_pause, 24);

#endif
