/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Records that the kernel sends to the recorder. `whyslow-model/src/spool` reads and documents the
 * same layout; tests compare kinds, heads and flags.
 *
 * Each record starts with a head, and its length is a multiple of 8 bytes.
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
	WIRE_SIGNAL = 24,
	WIRE_SIGNAL_DELIVERED = 25,

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
	WIRE_IPI = 51,

	WIRE_LOOKUP_BEGIN = 64,
	WIRE_LOOKUP = 65,
	WIRE_FUNCTION_BEGIN = 66,
	WIRE_FUNCTION_END = 67,
	WIRE_USDT = 68,
	WIRE_STACK = 56,
	WIRE_USER_STACK = 57,
	WIRE_SAMPLE = 58,
	WIRE_LOCK = 59,

	WIRE_RECLAIM_BEGIN = 72,
	WIRE_RECLAIM_END = 73,
	WIRE_MEMORY = 74,
	WIRE_FILL = 75,
	WIRE_INODE = 76,
	WIRE_WORK = 80,
	WIRE_WORK_ITEM = 81,
	WIRE_NET = 96,
	WIRE_TCP = 97,
	WIRE_PROGRAM = 139,
	WIRE_COUNTERS = 144,
};

/* Flags of a head. */
#define WIRE_COMPAT 1 /* a system call through the 32-bit table */
#define WIRE_ENTRY_RECORDED 2   /* the entry of the call was reported before */
#define WIRE_ELSEWHERE 4 /* the thread is not the current one of the CPU */
#define WIRE_SLEPT 8 /* the user stack follows at the call's return: it blocked for long */
#define WIRE_TAIL 16 /* the function was entered by a tail call */
/* One of these is set in records of programs that report their context. */
#define WIRE_IN_TASK 256
#define WIRE_IN_SOFTIRQ 512
#define WIRE_IN_HARDIRQ 1024

struct wire_head {
	__u16 kind;
	__u16 len; /* bytes, including this head */
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
	__s64 ret; /* 0 for an entry */
	__u32 nr;
	__u32 argc;
	__u64 args[];
};

/* What an argument of the current call points at: a string without its terminator, or bytes. */
struct wire_text {
	struct wire_head head;
	__u32 arg;
	__u32 size;
	char bytes[];
};

#define WIRE_PREEMPTED (1u << 31)

struct wire_switch {
	struct wire_head head; /* the thread that leaves the CPU */
	__u32 next_tid;
	__u32 next_pid;
	__u32 prev_state; /* kernel task state, or WIRE_PREEMPTED */
	__u16 prev_prio;
	__u16 next_prio;
};

struct wire_wakeup {
	struct wire_head head; /* the waking thread */
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

/* The head's thread, or an interrupt on top of it, sends a signal; or it receives one. */
struct wire_signal {
	struct wire_head head;
	__u32 number;
	__s32 code; /* si_code: the sender */
	__u32 tid;
	__u32 pid;
	__u32 result; /* result of sending, as numbered by the kernel */
	__u32 is_group;
	__u32 has_handler;
	__u32 zero;
};

/*
 * Describes the head's process, at exec or exit. The arguments of its command line follow, each
 * null-terminated; none at the exit.
 */
struct wire_program {
	struct wire_head head;
	__u64 cgroup; /* id in cgroup v2 */
	__u32 uid;
	__u32 mount_ns;
	__u32 is_end;
	__u32 size;
};

/* Numbers of counters (`model::counter`). */
#define WIRE_IO_READ 49
#define WIRE_IO_WRITTEN 50
#define WIRE_IO_CANCELLED 51

/* I/O counters of the head's process at its exit, in the form of other counters. */
struct wire_io {
	struct wire_head head;
	__u32 mount_ns;
	__u32 mount_id;
	__u32 place_size;
	__u32 values_size;
	__u32 values[9]; /* number, low and high half of each */
	__u32 zero;
};

struct wire_block {
	struct wire_head head;
	__u32 dev;
	__u32 bytes;
	__u64 sector;
	__u32 rwbs;
	__s32 error;
	__u64 old_sector; /* remap: original sector; split: start of the rest */
	__u32 old_dev;
	__u32 zero;
};

struct wire_irq {
	struct wire_head head;
	__u32 nr;
	__s32 ret;
	__u32 irq_kind; /* 0 hard, 1 soft, 2 high-resolution timer, 3 inter-processor */
	__u32 zero;
};

/* The head's CPU sends an interrupt to other CPUs. */
struct wire_ipi {
	struct wire_head head;
	__u32 nr; /* 0 reschedule, 1 call a function, 2 the same for one CPU */
	__u32 first;
	__u64 cpus; /* bit mask, from the first on */
};

/* Functions for DNS lookups. */
enum wire_function {
	LOOKUP_GETADDRINFO = 1,
	LOOKUP_GETHOSTBYNAME = 2,
	LOOKUP_GETHOSTBYNAME2 = 3,
	LOOKUP_GETHOSTBYNAME_R = 4,
	LOOKUP_GETHOSTBYNAME2_R = 5,
};

/* Type of `ret`. */
enum wire_scheme {
	SCHEME_NO_OUTCOME = 0,
	SCHEME_EAI = 1,
	SCHEME_H_ERRNO = 2,
	SCHEME_ERRNO = 3,
	SCHEME_UNKNOWN = 4, /* it failed for an unknown reason */
};

#define WIRE_HAS_HOST 1
#define WIRE_HAS_SERVICE 2

/* Start and end of a DNS lookup. */
struct wire_lookup {
	struct wire_head head;
	__u64 entered;
	__s32 ret;
	__u8 function;
	__u8 family; /* first address: 2 IPv4, 10 IPv6, 0 none */
	__u8 scheme;
	__u8 has;
	__u8 address[16];
	char host[256]; /* null-terminated */
	char service[32];
};

#define WIRE_CALL_ARGS 6
#define WIRE_TEXTS 2

/* Strings that arguments point at, null-terminated. */
struct wire_texts {
	char text[WIRE_TEXTS][256];
};

/* Entry of a requested function. */
struct wire_call {
	struct wire_head head;
	__u64 sp;
	__u32 probe; /* probe number */
	__u32 has;   /* bit mask of the strings that were read */
	__u64 args[WIRE_CALL_ARGS];
};

/* The same, with strings. */
struct wire_call_texts {
	struct wire_call call;
	struct wire_texts texts;
};

struct wire_call_end {
	struct wire_head head;
	__u64 sp; /* stack pointer at the entry */
	__u32 probe;
	__u32 zero;
	__u64 ret;
};

#define WIRE_USDT_ARGS 12

/* Hit of a requested USDT probe. */
struct wire_usdt {
	struct wire_head head;
	__u32 probe; /* probe number */
	__u32 has;   /* bit mask of the strings that were read */
	__u64 args[WIRE_USDT_ARGS];
};

/* The same, with strings. */
struct wire_usdt_texts {
	struct wire_usdt hit;
	struct wire_texts texts;
};

/* Followed by addresses, innermost first: kernel, then user. */
struct wire_stack {
	struct wire_head head; /* the thread that was scheduled again, or is running */
	__u64 since; /* when it left the CPU or entered the call; for a sample, one period ago */
	__u32 state; /* state in which it left the CPU, as in a switch */
	__u16 kernel; /* number of addresses */
	__u16 user;
};

/* End of a lock wait, followed by kernel addresses. */
struct wire_lock {
	struct wire_head head;
	__u64 since;
	__u64 lock;
	__u32 flags; /* the kernel's flags at the start of the wait */
	__s32 ret;
	__u32 kernel; /* number of addresses */
	__u32 zero;
};

struct wire_reclaim {
	struct wire_head head;
	__u32 what; /* 0 direct, 1 cgroup, 2 soft limit of a cgroup, 3 node, 4 kswapd */
	__s32 order; /* at the start, if reported; else -1 */
	__s32 node;  /* if reported; else -1 */
	__u32 zero;
	__s64 pages; /* at the end, if reported; else -1 */
};

struct wire_memory {
	struct wire_head head;
	__u32 what; /* 0 user fault, 1 kernel fault, 2 page-cache add, 3 page-cache remove,
		       4 written by reclaim, 5 kswapd wakeup */
	__u32 order;
};

enum wire_fill_by {
	FILL_CALL = 0,	/* a system call */
	FILL_FAULT = 1, /* a user page fault */
	FILL_KERNEL = 2, /* a kernel thread */
};

/* Consecutive pages of a file that the head's thread added to the page cache. */
struct wire_fill {
	struct wire_head head;
	__u64 since; /* start of the call, else time of the first page */
	__u64 until; /* end of the call, else time of the last page */
	__u64 ino; /* 0 for a block device */
	__u64 pages;
	__u64 bytes;
	__u32 dev;
	__u16 by;
	__u16 arg; /* argument of the call with the file, from 1 on; 0 for none */
	__u32 nr; /* number of the call */
	__s32 fd; /* value of the argument; -1 if calls of its process are not recorded */
};

/* Path of an inode within its file system: names from the last one on, null-terminated. */
struct wire_inode {
	struct wire_head head;
	__u64 ino;
	__u32 dev;
	__u32 size;
};

enum wire_work_kind {
	WORK_JOURNAL_COMMIT = 0,
	WORK_WRITEBACK = 1,
	WORK_DIRTY_THROTTLE = 2,
	WORK_LOG_WAIT = 3,
	WORK_RECLAIM_THROTTLE = 4,
	WORK_BUFFER_STALL = 5,
};

enum wire_work_phase {
	WORK_BEGIN = 0,
	WORK_END = 1,
	/* phases of a commit */
	WORK_LOCKING = 2,
	WORK_FLUSHING = 3,
	WORK_LOGGING = 4,
	/* reported at the end: `dur` is the duration */
	WORK_DONE = 5,
};

struct wire_work {
	struct wire_head head;
	__u32 what;
	__u32 phase;
	__u32 dev; /* 0 if unknown */
	__s32 reason; /* -1 if none */
	__u64 id;    /* transaction; 0 for none */
	__s64 pages; /* pages left to write; -1 if unknown */
	__u64 dur;   /* ns */
	char bdi[16]; /* name of the device if its number is unknown */
};

enum wire_item_phase {
	ITEM_QUEUED = 0,
	/* its workqueue has a free slot, and had none when it was queued */
	ITEM_ACTIVATED = 1,
	ITEM_BEGIN = 2,
	ITEM_END = 3,
};

/* A workqueue item: a function called later, by a kernel thread. */
struct wire_work_item {
	struct wire_head head;
	__u64 work;	/* identifies items until they start */
	__u64 function; /* 0 if not repeated */
	__u32 phase;
	__u32 is_worker; /* the head's thread is a kworker */
};

/* When it is queued. */
struct wire_work_queued {
	struct wire_work_item item;
	char queue[32];
};

enum wire_net_kind {
	NET_RECEIVE = 0,
	NET_QUEUE = 1,
	NET_TRANSMIT = 2,
	NET_RETRANSMIT = 3,
	NET_RETRANSMIT_SYNACK = 4,
	NET_DROP = 5,
};

struct wire_net {
	struct wire_head head;
	__u64 skb;
	__u32 what;
	__u32 bytes;
	__s32 ret; /* result of the driver; reason of a drop */
	__u32 seq;
	__u16 ethertype; /* 0 if unknown */
	__u8 family;	 /* 4, 6, or 0: headers not read */
	__u8 protocol;
	__u16 source_port; /* 0 for none */
	__u16 destination_port;
	__u8 source[16];
	__u8 destination[16];
	char netif[16];
};

/* State change of a TCP connection, with the kernel's state numbers. */
struct wire_tcp {
	struct wire_head head;
	__u64 sock;
	__u64 acked; /* bytes acknowledged by the peer */
	__u64 received;
	__u32 from;
	__u32 to;
	__u32 retransmits;
	__u32 rtt_us;
	__s32 error;
	__u16 local_port; /* 0 for none */
	__u16 peer_port;
	__u8 family; /* 4, 6, or 0: neither */
	__u8 zero[7];
	__u8 local[16];
	__u8 peer[16];
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
