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
#define WIRE_TOLD 2   /* the entry of the call was told before */
#define WIRE_ELSEWHERE 4 /* the thread is not the one that ran on the CPU */
#define WIRE_SLEPT 8 /* the call's user stack is told when it returns: its thread was away for long */
#define WIRE_TAIL 16 /* the function was not called but jumped to, at the end of another one */

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

/* The head's thread, or an interrupt that hit it, sends a signal; or it gets one. */
struct wire_signal {
	struct wire_head head;
	__u32 number;
	__s32 code; /* who sent it and how, as the kernel has it */
	__u32 tid;
	__u32 pid;
	__u32 result; /* of sending, as the kernel numbers them */
	__u32 is_group;
	__u32 has_handler;
	__u32 zero;
};

/*
 * Who the head's process is, when it begins to run a program or ends. The words of its command line
 * follow, each with its zero byte; none at the end.
 */
struct wire_program {
	struct wire_head head;
	__u64 cgroup; /* id in the unified hierarchy */
	__u32 uid;
	__u32 mount_ns;
	__u32 is_end;
	__u32 size;
};

/* Places of counters (`model::counter`). */
#define WIRE_IO_READ 49
#define WIRE_IO_WRITTEN 50
#define WIRE_IO_CANCELLED 51

/* What the head's process had read and written when it ended, as other counters are told. */
struct wire_io {
	struct wire_head head;
	__u32 mount_ns;
	__u32 mount_id;
	__u32 place_size;
	__u32 values_size;
	__u32 values[9]; /* place, low and high half of each */
	__u32 zero;
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
	__u32 irq_kind; /* 0 hard, 1 soft, 2 high-resolution timer, 3 sent by a CPU */
	__u32 zero;
};

/* The head's CPU sends others an interrupt. */
struct wire_ipi {
	struct wire_head head;
	__u32 nr; /* 0 reschedule, 1 call a function, 2 the same for one CPU */
	__u32 first;
	__u64 cpus; /* by bit, from the first on */
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

#define WIRE_CALL_ARGS 6
#define WIRE_TEXTS 2

/* Texts that arguments point at, each with a zero byte at its end. */
struct wire_texts {
	char text[WIRE_TEXTS][256];
};

/* A function that was asked for is entered. */
struct wire_call {
	struct wire_head head;
	__u64 sp;
	__u32 probe; /* its number */
	__u32 has;   /* texts that could be read, a bit each */
	__u64 args[WIRE_CALL_ARGS];
};

/* The same, where texts were asked for. */
struct wire_call_texts {
	struct wire_call call;
	struct wire_texts texts;
};

struct wire_call_end {
	struct wire_head head;
	__u64 sp; /* at the entry */
	__u32 probe;
	__u32 zero;
	__u64 ret;
};

#define WIRE_USDT_ARGS 12

/* A static probe that was asked for is passed. */
struct wire_usdt {
	struct wire_head head;
	__u32 probe; /* its number */
	__u32 has;   /* texts that could be read, a bit each */
	__u64 args[WIRE_USDT_ARGS];
};

/* The same, where texts were asked for. */
struct wire_usdt_texts {
	struct wire_usdt hit;
	struct wire_texts texts;
};

/* Followed by addresses, innermost first: those in the kernel, then those of the program. */
struct wire_stack {
	struct wire_head head; /* whose thread came back, or runs */
	__u64 since; /* when it left the CPU, or entered the call; of a sample, one period ago */
	__u32 state; /* that it was left in, as in a switch */
	__u16 kernel; /* addresses */
	__u16 user;
};

/* A wait for a lock that is over, followed by addresses in the kernel. */
struct wire_lock {
	struct wire_head head;
	__u64 since;
	__u64 lock;
	__u32 flags; /* as the kernel tells them where the wait begins */
	__s32 ret;
	__u32 kernel; /* addresses */
	__u32 zero;
};

struct wire_reclaim {
	struct wire_head head;
	__u32 what; /* 0 direct, 1 cgroup, 2 soft limit of a cgroup, 3 node, 4 kswapd */
	__s32 order; /* of a begin, where it is told; else -1 */
	__s32 node;  /* where it is told; else -1 */
	__u32 zero;
	__s64 pages; /* of an end, where it is told; else -1 */
};

struct wire_memory {
	struct wire_head head;
	__u32 what; /* 0 and 1 fault of a program, of the kernel; 2 and 3 into and out of the page
		       cache; 4 written by reclaim; 5 kswapd is called */
	__u32 order;
};

enum wire_fill_by {
	FILL_CALL = 0,	/* a system call */
	FILL_FAULT = 1, /* a page fault of a program */
	FILL_KERNEL = 2, /* a thread of the kernel */
};

/* Pages of a file that came into the page cache one after another, by the head's thread. */
struct wire_fill {
	struct wire_head head;
	__u64 since; /* when the call began, else when the first of them came */
	__u64 until; /* when it ended, else when the last of them came */
	__u64 ino; /* 0 for a device itself */
	__u64 pages;
	__u64 bytes;
	__u32 dev;
	__u16 by;
	__u16 arg; /* of the call, that leads to the file, from 1 on; 0 for none */
	__u32 nr; /* of the call */
	__s32 fd; /* what the argument is; -1 where the calls of its process are not told */
};

/* Where the file of an inode lies in its file system: names from the last one on, with a zero byte
 * each. */
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
	/* of a commit */
	WORK_LOCKING = 2,
	WORK_FLUSHING = 3,
	WORK_LOGGING = 4,
	/* told when it was over: `dur` has how long it took */
	WORK_DONE = 5,
};

struct wire_work {
	struct wire_head head;
	__u32 what;
	__u32 phase;
	__u32 dev; /* 0 where it is not known */
	__s32 reason; /* -1 where there is none */
	__u64 id;    /* of the transaction; 0 for none */
	__s64 pages; /* that are still to be written; -1 where it is not known */
	__u64 dur;   /* ns */
	char bdi[16]; /* name of the device where its number is not known */
};

enum wire_item_phase {
	ITEM_QUEUED = 0,
	/* its workqueue has room for it, and had none when it was queued */
	ITEM_ACTIVATED = 1,
	ITEM_BEGIN = 2,
	ITEM_END = 3,
};

/* A function that is called later, by a thread of the kernel. */
struct wire_work_item {
	struct wire_head head;
	__u64 work;	/* tells items apart until they begin */
	__u64 function; /* 0 where it is not told again */
	__u32 phase;
	__u32 is_worker; /* the head's thread is one that does nothing else */
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
	__s32 ret; /* of the driver; why it was dropped */
	__u32 seq;
	__u16 ethertype; /* 0 where it is not known */
	__u8 family;	 /* 4, 6, or 0: no headers were read */
	__u8 protocol;
	__u16 source_port; /* 0 for none */
	__u16 destination_port;
	__u8 source[16];
	__u8 destination[16];
	char netif[16];
};

/* A TCP connection goes from one state to another, as the kernel numbers them. */
struct wire_tcp {
	struct wire_head head;
	__u64 sock;
	__u64 acked; /* bytes sent that the peer has */
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
