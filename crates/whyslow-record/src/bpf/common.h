/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Shared by all programs: settings, rings, loss counters. */
#ifndef WHYSLOW_COMMON_H
#define WHYSLOW_COMMON_H

#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "wire.h"

/* Settings, written before the programs are loaded. */
const volatile __u32 own_pid = 0;      /* the recorder's own calls are not recorded */
const volatile __u32 ring_mask = 0;    /* number of rings (a power of two) minus one */
const volatile __u64 call_min_ns = 0;  /* shorter calls are left out */
const volatile bool only_targets = false;
const volatile bool wants_switches = true; /* else switches are only used for calls */
const volatile __u64 stack_min_ns = 0;      /* shorter off-CPU times have no stack */
const volatile __u64 sample_ns = 0;         /* interval of on-CPU samples */
const volatile __u64 lock_min_ns = 0;       /* shorter lock waits are left out */
const volatile __u64 lock_stack_min_ns = 0; /* shorter ones have no stack */
const volatile bool switch_has_state = false; /* since 5.18 */
const volatile __u32 cpus_possible = 1;
const volatile __s64 preempt_count_distance = 0; /* from a CPU's run queue; 0: unknown */
const volatile bool wants_fills = false;    /* page-cache fills by file */
const volatile __u32 page_bytes = 4096;
const volatile bool skip_spins = false;     /* where the lock may be that of a ring */

/* Set while one spool ends and another one starts. */
volatile bool is_rotating = false;

struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 64);
	__type(key, __u32);
	__array(values, struct ring);
} rings SEC(".maps");

/* Processes to record, unless all are recorded. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 16);
	__type(key, __u32);
	__type(value, __u8);
} targets SEC(".maps");

/*
 * Records that did not fit into their ring, and the time of the last one; waits task start could
 * not be stored, because task storage was being allocated on this CPU.
 */
struct lost {
	__u64 count;
	__u64 last;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct lost);
} losses SEC(".maps");

static __always_inline void *ring_here(__u32 cpu)
{
	__u32 place = cpu & ring_mask;

	return bpf_map_lookup_elem(&rings, &place);
}

static __always_inline void lose_as(__u32 what, __u64 now)
{
	struct lost *lost = bpf_map_lookup_elem(&losses, &what);

	if (lost) {
		lost->count++;
		lost->last = now;
	}
}

static __always_inline void lose(__u64 now)
{
	lose_as(0, now);
}

static __always_inline void lose_wait(__u64 now)
{
	lose_as(1, now);
}

static __always_inline void fill_head_of(struct wire_head *head, __u16 kind, __u16 len, __u32 cpu,
					 __u64 now, __u32 tid, __u32 pid)
{
	head->kind = kind;
	head->len = len;
	head->cpu = cpu;
	head->flags = 0;
	head->ts = now;
	head->tid = tid;
	head->pid = pid;
}

static __always_inline void fill_head(struct wire_head *head, __u16 kind, __u16 len, __u32 cpu,
				      __u64 now)
{
	__u64 ids = bpf_get_current_pid_tgid();

	fill_head_of(head, kind, len, cpu, now, ids, ids >> 32);
}

/* The context of this CPU (task, softirq, hardirq), as a flag; 0 if unknown. */
static __always_inline __u16 context_here(void)
{
	const __u32 softirq = 1u << 8, hardirq = 0xffu << 16; /* with NMIs */
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 place;
	__u32 count;

	if (!preempt_count_distance || !bpf_core_field_exists(struct cfs_rq, rq))
		return 0;
	place = (__u64)BPF_CORE_READ(task, se.cfs_rq, rq);
	if (bpf_probe_read_kernel(&count, sizeof(count), (void *)(place + preempt_count_distance)))
		return 0;
	if (count & hardirq)
		return WIRE_IN_HARDIRQ;
	return count & softirq ? WIRE_IN_SOFTIRQ : WIRE_IN_TASK;
}

/* Reserves a record of the type, with its head filled; NULL if the ring is full. */
#define BEGIN(type, kind) ((type *)begin_record(kind, sizeof(type)))

static __always_inline struct wire_head *reserve(__u32 cpu, const __u32 len, __u64 now)
{
	void *ring = ring_here(cpu);
	struct wire_head *head;

	if (!ring)
		return 0;
	head = bpf_ringbuf_reserve(ring, len, 0);
	if (!head)
		lose(now);
	return head;
}

static __always_inline void *begin_record(__u16 kind, const __u32 len)
{
	__u32 cpu = bpf_get_smp_processor_id();
	__u64 now = bpf_ktime_get_ns();
	struct wire_head *head = reserve(cpu, len, now);

	if (head)
		fill_head(head, kind, len, cpu, now);
	return head;
}

/* For a known thread, which saves the helper call. */
static __always_inline void *begin_record_of(__u16 kind, const __u32 len, struct task_struct *task)
{
	__u32 cpu = bpf_get_smp_processor_id();
	__u64 now = bpf_ktime_get_ns();
	struct wire_head *head = reserve(cpu, len, now);

	if (head)
		fill_head_of(head, kind, len, cpu, now, task->pid, task->tgid);
	return head;
}

static __always_inline void end_record(void *record)
{
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* Followers of the recording count as part of the recorder; 0 is an empty slot. */
#define FOLLOWERS_MAX 4
volatile bool has_followers;
volatile __u32 followers[FOLLOWERS_MAX];

static __always_inline bool is_follower(__u32 pid)
{
	return pid == followers[0] || pid == followers[1] || pid == followers[2] ||
	       pid == followers[3];
}

static __always_inline bool is_target(__u32 pid)
{
	if (pid == own_pid || (has_followers && is_follower(pid)))
		return false;
	return !only_targets || bpf_map_lookup_elem(&targets, &pid);
}

#endif
