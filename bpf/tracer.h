/* The interface between the tracer's BPF programs (tracer.bpf.c) and user space (src/observe). C++ compiles it as well.
 * Every record in the ring begins with struct rose_head. Numbers of kinds and parts are never reused. None of this is
 * written to files, because dumps have their own format.
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
	/* A part of a record begins below this limit, and is at most as long as a path. */
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

/* One record that represents equal events of a storm. The head has the time, process and thread of the last event. */
enum { ROSE_COUNTED = 16 /* struct rose_counted */ };

/* A requested value. It is never an event of the window. */
enum { ROSE_VALUE = 17 /* struct rose_value */ };
/* Data that was sent or received on a connection. It is never an event of the window. */
enum { ROSE_TRANSFER = 18 /* struct rose_transfer */ };

struct rose_head {
	rose_u32 size; /* of the whole record, including its parts */
	rose_u16 kind;
	rose_u16 node;
	rose_u64 ts_ns; /* CLOCK_MONOTONIC */
	rose_u32 tgid;
	rose_u32 tid;
};
ROSE_SIZE(struct rose_head, 24);

struct rose_call {
	struct rose_head head;
	/* -errno if the call failed; if `requested` is set in a ROSE_FAILED, the number of bytes that were moved */
	rose_s64 result;
	rose_s32 fd;     /* -1: none */
	rose_u16 nr;
	rose_u8 operation; /* opcode of the io_uring operation that failed */
	rose_u8 flags;     /* rose_call_state */
	rose_u32 open_flags; /* the flags of a call that opened something */
	rose_u32 requested;  /* number of bytes that were asked for, if a read or write moved fewer */
};
ROSE_SIZE(struct rose_call, 48);
enum rose_call_state {
	ROSE_BUS = 2,   /* not a call: an access to a mapped file ended in SIGBUS; `nr` is that of mmap */
	/* the call failed while a fatal signal was pending, or while the process was ending, stopping or freezing */
	ROSE_DYING = 1,
};

/* Parts that follow a call, each aligned to 8 bytes. */
enum rose_piece_kind {
	ROSE_PATH = 1,   /* text as given by the caller */
	ROSE_BASE = 2,   /* fragments: the folder that ROSE_PATH is relative to */
	ROSE_PATH2 = 3,
	ROSE_BASE2 = 4,
	ROSE_FILE = 5,   /* fragments: the path of the descriptor's file */
	ROSE_PEER = 6,   /* struct rose_address of the other end */
	ROSE_UNIX = 7,   /* text of a unix socket's address */
	ROSE_PIPE = 8,   /* u64 inode number */
	ROSE_ANON = 9,   /* text: the kind of a file without a path, such as "[eventpoll]" */
	ROSE_NETLINK = 10, /* u64: the protocol, which identifies the kernel's end */
	ROSE_NAME = 11,  /* text: the function that was entered (ROSE_NAMED) */
};
/* The last part of a call or process that belongs to a storm: struct rose_storm_mark. */
enum { ROSE_STORM = 16 };
enum rose_piece_flag {
	ROSE_CUT = 1,      /* the beginning of the text is missing */
	ROSE_UNLINKED = 2, /* the file has been unlinked */
};
struct rose_piece {
	rose_u16 length; /* of the content that follows */
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

/* This many equal events per second are recorded individually. Further ones are counted. */
enum { ROSE_STORM_FEW = 32 };
#define ROSE_STORM_NS 1000000000ull

struct rose_storm_mark {
	rose_u64 key;      /* a later ROSE_COUNTED identifies its events by this key alone */
	/* the time of the first event that this record represents; the head has the time of the last */
	rose_u64 first_ns;
	rose_u32 count;
	rose_u32 pad;
};
ROSE_SIZE(struct rose_storm_mark, 24);

struct rose_counted {
	struct rose_head head;
	struct rose_storm_mark mark;
};
ROSE_SIZE(struct rose_counted, 48);

/* An entry in the table of a CPU. Only the holder of the lock `busy` may change the other fields. BPF programs and the
 * tracer's process, which maps the table, take the lock by an atomic operation. BPF programs do not wait for it. */
struct rose_storm {
	rose_u64 key;      /* 0: unused */
	rose_u64 begin_ns; /* start of the second in which `seen` is counted */
	rose_u64 first_ns; /* the time of the first event in `pending` */
	rose_u64 last_ns;
	rose_u64 busy;
	rose_u32 seen;     /* events in this second */
	rose_u32 pending;  /* events that were counted but are not reported yet */
	rose_u32 reported; /* not 0: a record with this key has been sent */
	rose_u32 node, tgid, tid;
};
ROSE_SIZE(struct rose_storm, 64);

struct rose_entered {
	struct rose_head head;
	rose_u32 function;
	rose_u32 link; /* number of the BPF link; for a short time, two links may report the same entry */
};
ROSE_SIZE(struct rose_entered, 32);
/* A value of `function`: a function of Java, Python or JavaScript, whose name follows as a part. If `link` is 1, the
 * next entries of the function are not reported. */
#define ROSE_NAMED 0xffffffffu

/* ---- requested values: user space describes the location of each value to the programs ---- */

enum {
	ROSE_CHAIN_STEPS = 8,
	ROSE_TEXT_BYTES = 64,	/* at most this many bytes of a text are recorded */
	ROSE_MOST_FETCHES = 1024,
	ROSE_FETCHES_AT_ONCE = 16, /* at most this many values are read at one location */
	ROSE_NO_REGISTER = 0xff,
};

/* Determines an address or a value. Starts with a register (by DWARF number, psABI) plus the first offset. Then,
 * `reads` times, takes the sum as an address and replaces it by the word at this address plus the next offset. All sums
 * are modulo 2^64. */
struct rose_chain {
	rose_u64 offsets[ROSE_CHAIN_STEPS];
	rose_u8 base;  /* ROSE_NO_REGISTER: starts with the first offset alone */
	rose_u8 reads; /* less than ROSE_CHAIN_STEPS */
	rose_u8 pad[6];
};
ROSE_SIZE(struct rose_chain, 72);

enum rose_fetch_kind {
	ROSE_FETCH_WORD = 1,    /* the result of the chain itself */
	ROSE_FETCH_MEMORY = 2,  /* `size` bytes at the address that the chain yields */
	ROSE_FETCH_TEXT = 3,    /* the NUL-terminated text at that address */
	ROSE_FETCH_COUNTED = 4, /* the text at that address, whose length the chain `length` yields */
	ROSE_FETCH_CODE = 5,    /* rose_code_at() of that address, relative to the current instruction */
};
struct rose_fetch {
	struct rose_chain at;
	struct rose_chain length;
	rose_u8 kind;
	rose_u8 size; /* number of bytes: 1, 2, 4 or 8 */
	rose_u8 pad[6];
};
ROSE_SIZE(struct rose_fetch, 152);

enum rose_fetch_failure {
	ROSE_UNREADABLE = 1, /* an address that the chain reads is not in memory */
	ROSE_NULL = 2,       /* the pointer to a text is null */
	ROSE_TOO_MANY = 3,   /* an agent reports that it drops further values */
};
/* The type of a value that a JVM's agent reports. 0: the fetch defines it. */
enum rose_value_form {
	ROSE_FORM_INTEGER = 1,
	ROSE_FORM_BOOLEAN = 2,
	ROSE_FORM_CHARACTER = 3,
	ROSE_FORM_FLOAT = 4,
	ROSE_FORM_DOUBLE = 5,
	ROSE_FORM_TEXT = 6,    /* `word` is the length of the whole text */
	ROSE_FORM_OBJECT = 7,  /* the text is the name of the object's class */
	ROSE_FORM_CONSTANT = 8, /* a constant of an enumeration, whose name is the text */
	ROSE_FORM_CALLER = 9,   /* the text is the end of a method's name; `word` is the line, or 0 if it is unknown */
};
struct rose_value {
	struct rose_head head;
	rose_u32 fetch;
	rose_u8 failed;     /* 0 or rose_fetch_failure */
	rose_u8 length;     /* length of `text` */
	rose_u8 form;       /* rose_value_form */
	rose_u8 pad;
	rose_u64 word;      /* of a counted text, the length of the whole text */
	rose_u8 text[ROSE_TEXT_BYTES];
};
ROSE_SIZE(struct rose_value, 104);
/* The cookie of a location: bits 0 to 15 are its number, bits 16 to 31 the index of its first fetch, and the higher
 * bits the number of its fetches. */

/* The form of io_uring_complete's arguments. ROSE_URING_COMPLETION: (ring, request, completion), since Linux 6.11.
 * ROSE_URING_RESULT: (ring, request, user data, result, ...), since 5.19. ROSE_URING_DATA: (ring, user data, result,
 * ...), before 5.19; these do not identify the request. */
enum rose_uring_form { ROSE_URING_COMPLETION = 0, ROSE_URING_RESULT = 1, ROSE_URING_DATA = 2 };

enum rose_process_flag {
	ROSE_MAIN = 1,
	ROSE_PLANNED = 2,
	ROSE_CORE = 4,
	ROSE_OUT_OF_MEMORY = 8,
	ROSE_IN_FREEZER = 16, /* of a wait: the thread is in the freezer of cgroup v1 */
};
/* The numbers are those of trace::ProcessState. */
enum rose_process_state { ROSE_CRASHED = 1, ROSE_EXITED = 2, ROSE_PAUSED = 3, ROSE_STARTED = 4 };
/* The origin of the signal that ended a process. */
enum rose_signal_origin { ROSE_BY_UNKNOWN = 0, ROSE_BY_PROCESS = 1, ROSE_BY_KERNEL = 2, ROSE_BY_ITSELF = 3 };
enum { ROSE_COMM_BYTES = 16 };
struct rose_process {
	struct rose_head head;
	rose_u64 duration_ns; /* a pause: its length; an end: the time since the signal was generated */
	rose_s32 exit_code; /* -1: none, for example because a signal ended the process */
	rose_u8 state;
	rose_u8 signal;
	rose_u8 flags;
	rose_u8 origin;  /* rose_signal_origin; if 0, duration_ns of an end is unknown as well */
	rose_u32 by; /* the process that sent the signal */
	rose_u32 pad;
	rose_u8 by_name[ROSE_COMM_BYTES];
};
ROSE_SIZE(struct rose_process, 64);

/* For each process, the latest signal that was generated and that ends the process or asks it to end. */
struct rose_signalled {
	rose_u64 ts_ns;
	rose_u64 start_ns; /* start of the process, because ids are reused */
	rose_u32 by;
	rose_u8 signal;
	rose_u8 origin;
	rose_u8 fatal; /* not 0: the signal ends the process, because the process does not catch it */
	rose_u8 pad;
	rose_u8 by_name[ROSE_COMM_BYTES];
};
ROSE_SIZE(struct rose_signalled, 40);
/* If a process catches a signal that asks it to end, but ends later than this, it ended for another reason. */
#define ROSE_ASKED_NS 60000000000ull

/* Reported by the iterator over all tasks for each thread of a node that waits uninterruptibly or in the freezer. */
struct rose_blocked {
	rose_u64 start_ns;  /* start of the thread, because ids are reused */
	rose_u64 switches;  /* if this does not change, the thread is still in the same wait */
	rose_u32 tgid;
	rose_u32 tid;
	rose_u32 node;
	rose_u32 flags; /* rose_process_flag */
};
ROSE_SIZE(struct rose_blocked, 32);

/* Counts of events that must not be missed, but for which the ring had no space. The reader checks the counts and acts
 * as if it had received the records. */
struct rose_missed {
	rose_u64 cgroups; /* target cgroups that were created or removed */
	rose_u64 ends;    /* abnormal ends of processes; the fields below describe the last one */
	rose_u32 node;
	rose_u32 tgid;
	rose_s32 exit_code; /* -1: none, for example because a signal ended the process */
	rose_u32 signal;
	rose_u32 flags; /* rose_process_flag */
	rose_u32 pad;
};
ROSE_SIZE(struct rose_missed, 40);

/* A target cgroup was created or removed. A cgroup that is created again has another id. When this record arrives, the
 * BPF programs already trace the new cgroup, and user space still has to attach programs to its sockets. */
struct rose_cgroup {
	struct rose_head head;
	rose_u64 id;
	rose_u32 place;
	rose_u32 gone;
};
ROSE_SIZE(struct rose_cgroup, 40);

/* A value of rose_places. The key is the cgroup's path from the root of the hierarchy, padded with NUL. */
struct rose_place {
	rose_u32 node;
	rose_u32 place;
};
ROSE_SIZE(struct rose_place, 8);

/* The key of rose_places before Linux 5.16 (commit c86216bc96aa), where a key has at most 512 bytes: two hashes of the
 * path. */
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

/* ---- network: the packets between two hosts in one direction, for one port of a service ---- */
struct rose_pair {
	rose_u32 node;
	rose_u16 port;     /* port of the service, in host order */
	rose_u8 protocol;
	rose_u8 from_service; /* not 0: the service is at `src`; 0: it is at `dst` */
	rose_u8 src[16];   /* IPv4 as ::ffff:a.b.c.d */
	rose_u8 dst[16];
};
ROSE_SIZE(struct rose_pair, 40);

struct rose_pair_state {
	rose_u64 first_ns;
	rose_u64 last_ns;
	rose_u64 usual_ns; /* the longest recent gap that is usual for the pair; decays */
	/* TCP: when this side closed a connection during the current silence; 0: it closed none */
	rose_u64 given_up_ns;
	rose_u64 asked_ns; /* TCP: when this side began to retransmit unacknowledged data; 0: it does not */
	rose_u64 handshake_ns; /* when the last SYN arrived whose ACK has not arrived yet; 0: none */
	rose_s64 open;     /* TCP: number of open connections that are known; far below 0: see ROSE_MOVED */
	rose_u32 packets;
	/* Packets that arrived after a pause: those that answer data of this side, and the others. Counted if the
	 * socket is known. */
	rose_u32 answers, unasked;
	rose_u32 pad;
};
ROSE_SIZE(struct rose_pair_state, 72);

/* The silence of a pair is reported if the pair has at least ROSE_PACKETS_LEAST packets and the silence is longer than
 * ROSE_GAP_FACTOR times the usual gap. If a remote side sent at least ROSE_ANSWERS_LEAST answers, and at most one other
 * packet for every ROSE_ANSWERS_FACTOR answers, it is taken to send nothing but answers. It then counts as silent only
 * while an answer is overdue. */
enum { ROSE_PACKETS_LEAST = 5, ROSE_GAP_FACTOR = 3, ROSE_ANSWERS_LEAST = 4, ROSE_ANSWERS_FACTOR = 8 };
/* A reachable peer answers within this time when an idle connection is closed. */
#define ROSE_ANSWER_NS 500000000ull
/* Packets that are further apart than this belong to different exchanges. */
#define ROSE_EXCHANGE_NS 8000000ull

/* True if an answer of the peer is overdue: this side retransmits data, or has closed a connection, and the peer has
 * not answered. */
static inline int rose_unanswered(const struct rose_pair_state *state, rose_u64 now)
{
	return state->asked_ns || (state->given_up_ns && now - state->given_up_ns >= ROSE_ANSWER_NS);
}

/* The length of the silence to report, where `gap` is the time up to `now` without a packet. 0 if there is nothing to
 * report. `tcp`: the pair's protocol is TCP. `delay`: shorter silences are not reported. */
static inline rose_u64 rose_reported_ns(const struct rose_pair_state *state, int tcp, rose_u64 now, rose_u64 gap,
				    rose_u64 delay)
{
	int asked = rose_unanswered(state, now);

	if (gap < delay || state->packets < ROSE_PACKETS_LEAST)
		return 0;
	if (gap > state->usual_ns * ROSE_GAP_FACTOR) {
		if (asked)
			return gap;
		/* No answer is overdue. It is still a silence if the peer used to send on its own for a while, and if a
		 * connection is still open. */
		if ((!tcp || state->open > 0) && now - gap - state->first_ns >= delay / 2 &&
		    (state->answers < ROSE_ANSWERS_LEAST || state->unasked * ROSE_ANSWERS_FACTOR > state->answers))
			return gap;
	}
	/* The gap is not unusual, because the pair is rarely used. But this side has retransmitted data without an
	 * answer for at least `delay`. */
	if (state->asked_ns && now - state->asked_ns >= delay)
		return now - state->asked_ns;
	return 0;
}

/* User space sets these before loading. */
struct rose_network_settings {
	rose_u64 delay_ns;
	rose_u64 tick_ns; /* length of a jiffy */
	rose_u16 ephemeral_low, ephemeral_high; /* the range of ports that the kernel assigns to clients */
	rose_u8 has_addresses; /* not 0: whole interfaces are traced, and rose_addresses identifies the nodes */
	rose_u8 by_iterator; /* not 0: rose_connections finds silences of TCP, and packet programs do not */
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

/* ---- the kernel's state of each TCP connection, which the iterator over files reports ---- */
struct rose_tcp {
	rose_u64 socket; /* identifies the socket while it exists */
	rose_u64 ts_ns;
	struct rose_connection conn;
	rose_u32 node;
	rose_u32 tgid;
	rose_u32 received;   /* jiffies since a packet arrived */
	rose_u32 sent;       /* jiffies since data was sent, the first time or again */
	rose_u32 unanswered; /* bytes that the program wrote and that are not acknowledged */
	rose_u32 segments;   /* segments that arrived, modulo 2^32 */
	rose_u8 state;       /* the state as in sock_common */
	rose_u8 resent;      /* retransmissions of unacknowledged data */
	rose_u8 probes;      /* unanswered keep-alives and window probes */
	rose_u8 pad[5];
};
ROSE_SIZE(struct rose_tcp, 88);

/* A connection that this side closed after it had been quiet, and whose end the peer has not answered. The iterator
 * does not find it, because no file refers to it any more. */
struct rose_closing {
	struct rose_connection conn;
	rose_u64 closed_ns;
};
ROSE_SIZE(struct rose_closing, 48);
/* A connection is quiet if nothing has arrived on it for this long. */
#define ROSE_QUIET_NS 200000000ull

/* ---- messages between nodes: bytes that a call sent to or received from a connection ---- */
enum {
	ROSE_TRANSFER_BYTES = 64,   /* at most this many bytes of a message are recorded */
	ROSE_TRANSFER_RATE = 4000,  /* messages per node and second; further ones are counted but not recorded */
	ROSE_TRANSFER_AT_ONCE = 8,  /* datagrams that are recorded per call */
};
struct rose_transfer {
	struct rose_head head;
	struct rose_connection conn;
	rose_u32 end;      /* TCP: sequence number after the last byte, which is the same on both sides */
	rose_u32 bytes;
	rose_u8 protocol;
	rose_u8 taken;     /* not 0: received; 0: sent */
	rose_u8 length;    /* number of bytes in `data` */
	rose_u8 pad;
	rose_u32 pad2;
	rose_u8 data[ROSE_TRANSFER_BYTES];
};
ROSE_SIZE(struct rose_transfer, 144);
/* Limits the messages that are recorded of a node. */
struct rose_transfer_gate {
	rose_u64 begin_ns; /* start of the second in which `count` is counted */
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

/* How many entries were created, and how many connections ended normally. Created entries that neither ended nor are
 * still in their map were evicted. */
struct rose_network_counts {
	rose_u64 pairs;
	rose_u64 connections, ended;
};
ROSE_SIZE(struct rose_network_counts, 24);

/* ---- handshakes: they relate the clocks of two hosts ---- */
/* Only arrivals are recorded: at the server, those of the SYN and the ACK; at the client, that of the SYN-ACK. */
struct rose_handshake {
	rose_u64 first_ns; /* when the SYN (at the client: the SYN-ACK) arrived; 0: the slot is empty */
	rose_u64 last_ns;  /* when the ACK arrived; 0 at the client */
	rose_u32 isn;      /* the client's initial sequence number */
	rose_u16 remote_port, local_port;
	rose_u8 client;    /* not 0: this side is the client */
	rose_u8 pad[7];
};
ROSE_SIZE(struct rose_handshake, 32);
/* Two dumps are comparable only if they contain the same handshakes. Each handshake has a number that both sides see,
 * which selects its slot: slot n keeps the latest of about one in 2^(n+1) handshakes. Two dumps that are taken at
 * different times therefore have the same handshakes in the higher slots, however many connections there are. */
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

/* A value of rose_attached: the node + 1, or 0 if the cgroup stands for no single node; and flags that say how the node
 * of a packet is determined. */
#define ROSE_ATTACHED_NODE 0xffffull
#define ROSE_BY_SOCKET (1ull << 32) /* processes of several nodes share the cgroup: rose_sockets has the node */
#define ROSE_BY_LEVEL (1ull << 33)  /* the cgroup contains the cgroups of nodes: the deepest one determines the node */

struct rose_silent {
	struct rose_head head;
	rose_u64 duration_ns;
	rose_u32 packets;
	rose_u32 pad;
	struct rose_pair pair;
};
ROSE_SIZE(struct rose_silent, 80);

/* ---- tables ---- */

/* The meaning of a call's success. 0: none. */
enum rose_call_class {
	ROSE_CHANGES = 1, /* it changes state */
	ROSE_SIZED = 2,   /* it moves at most as many bytes as its third argument */
};
/* The size of a table of descriptors that are not regular files, by thread and descriptor. Reads from them often return
 * less than was asked for. The reader regularly empties the table, because descriptors are reused. */
enum { ROSE_STREAMS = 1024, ROSE_MOST_AT_ONCE = 0x7ffff000 /* one call moves at most this many bytes */ };
enum rose_call_flag {
	ROSE_TEXT2 = 1,      /* path2 is not a path (but the target of a symlink) and is recorded as it is */
	ROSE_FLAGS_1 = 2,    /* argument 1 has open flags: a success is recorded if O_CREAT or O_TRUNC is set,
			      * see also rose_reads_since */
	ROSE_FLAGS_2 = 4,    /* like ROSE_FLAGS_1, for argument 2 */
	ROSE_FLAGS_HOW = 8,  /* like ROSE_FLAGS_1, for the struct open_how that argument 2 points to */
	ROSE_NEW_SOCKET = 16, /* returns a descriptor whose peer is recorded */
	ROSE_MESSAGE = 32,   /* argument 1 points to a struct msghdr, which may have an address */
	ROSE_AGAIN_NONBLOCK = 64, /* EAGAIN is expected on non-blocking descriptors; on others, it is a timeout */
};
/* For each call, expected failures: one bit for each errno. */
enum { ROSE_NOISE_ERRNOS = 256, ROSE_NOISE_WORDS = 4 };
/* For each kind of argument, the position at which a system call has it; -1: nowhere. User space sets this before
 * loading, from kernel::SyscallInfo. */
struct rose_call_signature {
	rose_s8 path, dirfd, path2, dirfd2;
	rose_s8 fd, sockaddr;
	rose_s8 message_flags; /* the argument that may have MSG_DONTWAIT */
	rose_u8 pad0;
	rose_u16 flags;
	rose_u16 pad[3];
};
ROSE_SIZE(struct rose_call_signature, 16);

/* A value of rose_procs is the node, or ROSE_PROC_NODE if the process belongs to no node although its cgroup does.
 * ROSE_PROC_MAIN is set for a main process. */
enum { ROSE_PROC_MAIN = 0x80000000u, ROSE_PROC_NODE = 0x7fffffffu };

/* A socket that existed before tracing began. */
struct rose_found_socket {
	rose_u32 owner; /* node + 1 */
	rose_u32 port;  /* its local port, or 0 if it had none */
};

struct rose_node {
	rose_u32 main_tgid;
	rose_u32 planned;
};
ROSE_SIZE(struct rose_node, 8);

/* Counters for each CPU and node. */
struct rose_stats {
	rose_u64 recorded;
	rose_u64 lost;       /* events that were lost because the ring was full */
	rose_u64 suppressed; /* expected failures */
	rose_u64 foreign;    /* failed calls of the i386 and x32 tables, whose numbers have no names here */
};
ROSE_SIZE(struct rose_stats, 32);

/* Identifies a process uniquely. The pid alone does not, because pids are reused. */
struct rose_identity {
	rose_u64 start_ns;
	rose_u32 tgid;
	rose_u32 pad;
};
ROSE_SIZE(struct rose_identity, 16);

/* A pause that has not ended. The key of rose_paused is the tgid, or ROSE_FROZEN | the cgroup's id. */
#define ROSE_FROZEN (1ull << 63)
struct rose_pause {
	rose_u64 since_ns;
	rose_u32 node;
	rose_u32 tgid; /* 0: the cgroup is frozen */
	rose_u32 signal;
	rose_u32 flags; /* rose_process_flag when the pause began */
};
ROSE_SIZE(struct rose_pause, 24);

#endif
