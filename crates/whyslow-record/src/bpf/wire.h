/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Records on their way from the kernel to the spool. `whyslow-model/src/spool` reads the same bytes
 * and documents them; tests compare kinds, heads and flags of the two.
 *
 * Each begins with a head and is a multiple of 8 bytes long.
 */
#ifndef WHYSLOW_WIRE_H
#define WHYSLOW_WIRE_H

enum wire_kind {
	WIRE_SYSCALL = 1,
	WIRE_SYSCALL_ENTER = 2,
	WIRE_TEXT = 3,
	WIRE_BYTES = 4,

	WIRE_SWITCH = 16,
	WIRE_WAKING = 17,
	WIRE_WAKEUP_NEW = 18,
	WIRE_FORK = 19,
	WIRE_EXEC = 20,
	WIRE_EXIT = 21,
	WIRE_FREE = 22,
	WIRE_COMM = 23,

	WIRE_BIO_QUEUE = 32,
	WIRE_BIO_BACKMERGE = 33,
	WIRE_BIO_FRONTMERGE = 34,
	WIRE_BIO_COMPLETE = 35,
	WIRE_BIO_REMAP = 36,
	WIRE_BIO_SPLIT = 37,
	WIRE_GETRQ = 38,
	WIRE_RQ_INSERT = 39,
	WIRE_RQ_ISSUE = 40,
	WIRE_RQ_MERGE = 41,
	WIRE_RQ_REQUEUE = 42,
	WIRE_RQ_COMPLETE = 43,

	WIRE_IRQ_ENTER = 48,
	WIRE_IRQ_EXIT = 49,
	WIRE_SOFTIRQ_RAISE = 50,

	WIRE_LOOKUP_BEGIN = 64,
	WIRE_LOOKUP = 65,
};

/* Flags of a head. */
#define WIRE_COMPAT 1 /* a system call through the 32-bit table */
#define WIRE_TOLD 2   /* the entry of the call was told before */
#define WIRE_ELSEWHERE 4 /* the thread is not the one that ran on the CPU */

struct wire_head {
	__u16 kind;
	__u16 len; /* bytes, this head included */
	__u16 cpu;
	__u16 flags;
	__u64 ts; /* CLOCK_MONOTONIC, ns */
	__u32 tid;
	__u32 pid;
};

#define WIRE_ARGS_FEW 3
#define WIRE_ARGS_ALL 6

struct wire_syscall {
	struct wire_head head;
	__u64 entered;
	__s64 ret; /* of an entry: 0 */
	__u32 nr;
	__u32 argc;
	__u64 args[];
};

/* What an argument of the running call points at: a text without its end, or bytes. */
struct wire_text {
	struct wire_head head;
	__u32 arg;
	__u32 size;
	char bytes[];
};

#define WIRE_PREEMPTED (1u << 31)

struct wire_switch {
	struct wire_head head; /* whose thread is the one that goes */
	__u32 next_tid;
	__u32 next_pid;
	__u32 prev_state; /* as the kernel has it, or WIRE_PREEMPTED */
	__u16 prev_prio;
	__u16 next_prio;
};

struct wire_wakeup {
	struct wire_head head; /* whose thread is the one at work */
	__u32 tid;
	__u32 pid;
	__u16 prio;
	__u16 target_cpu;
	__u32 zero;
};

struct wire_task {
	struct wire_head head;
	__u32 tid;
	__u32 pid;
	char comm[16];
};

struct wire_block {
	struct wire_head head;
	__u32 dev;
	__u32 bytes;
	__u64 sector;
	__u32 rwbs;
	__s32 error;
	__u64 old_sector; /* remap: where it came from; split: where the rest begins */
	__u32 old_dev;
	__u32 zero;
};

struct wire_irq {
	struct wire_head head;
	__u32 nr;
	__s32 ret;
	__u32 irq_kind; /* 0 hard, 1 soft */
	__u32 zero;
};

/* Functions that look up names. */
enum wire_function {
	LOOKUP_GETADDRINFO = 1,
	LOOKUP_GETHOSTBYNAME = 2,
	LOOKUP_GETHOSTBYNAME2 = 3,
	LOOKUP_GETHOSTBYNAME_R = 4,
	LOOKUP_GETHOSTBYNAME2_R = 5,
};

/* What `ret` is. */
enum wire_scheme {
	SCHEME_NO_OUTCOME = 0,
	SCHEME_EAI = 1,
	SCHEME_H_ERRNO = 2,
	SCHEME_ERRNO = 3,
	SCHEME_UNTOLD = 4, /* it failed, and did not say why */
};

#define WIRE_HAS_HOST 1
#define WIRE_HAS_SERVICE 2

/* A lookup of a name, when it begins and when it ends. */
struct wire_lookup {
	struct wire_head head;
	__u64 entered;
	__s32 ret;
	__u8 function;
	__u8 family; /* of the first address: 2 IPv4, 10 IPv6, 0 none */
	__u8 scheme;
	__u8 has;
	__u8 address[16];
	char host[256]; /* each ends with a zero byte */
	char service[32];
};

/* `rwbs` */
enum wire_rwbs {
	RWBS_OP = 0xff, /* 0 read, 1 write, 2 flush, 3 discard, 4 other */
	RWBS_SYNC = 1 << 8,
	RWBS_META = 1 << 9,
	RWBS_AHEAD = 1 << 10,
	RWBS_FUA = 1 << 11,
	RWBS_PREFLUSH = 1 << 12,
	RWBS_SECURE = 1 << 13,
};

#endif
