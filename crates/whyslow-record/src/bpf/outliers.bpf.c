// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * Block requests, aggregated where they complete: a histogram per device, and a record only of slow
 * requests. Memory does not grow with time, so this may run for weeks.
 *
 * A request is identified by its address, which the kernel gives to one request at a time: one
 * without an end is overwritten by the next one at its address, and cannot accumulate.
 */
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "wire.h"

#include "rwbs.h"

#include "outliers.h"

static __always_inline void miss(__u32 kind)
{
	__u64 *count = bpf_map_lookup_elem(&missed, &kind);

	if (count)
		__sync_fetch_and_add(count, 1);
}

static __always_inline __u32 dev_of(struct request *rq)
{
	struct gendisk *disk = rq->q->disk;

	return disk ? disk->major << 20 | disk->first_minor : 0;
}

static __always_inline bool is_wanted(__u32 dev)
{
	return dev && (!only_wanted || bpf_map_lookup_elem(&wanted, &dev));
}

static __always_inline void describe(struct started *started, struct request *rq)
{
	started->sector = rq->__sector;
	started->bytes = rq->__data_len;
	started->rwbs = rwbs_of(rq->cmd_flags);
}

static __always_inline void begin(struct request *rq, __u64 now, bool is_submitter)
{
	struct started started = {.begun = now, .dev = dev_of(rq)};
	__u64 key = (__u64)rq;

	if (!is_wanted(started.dev))
		return;
	if (is_submitter) {
		__u64 ids = bpf_get_current_pid_tgid();

		started.tid = ids;
		started.pid = ids >> 32;
		bpf_get_current_comm(started.comm, sizeof(started.comm));
	} else {
		started.issued = now;
	}
	describe(&started, rq);
	if (bpf_map_update_elem(&requests, &key, &started, BPF_ANY))
		miss(MISSED_BEGIN);
}

/* Created by the submitting thread. */
SEC("tp_btf/block_io_start")
int BPF_PROG(on_start, struct request *rq)
{
	begin(rq, bpf_ktime_get_ns(), true);
	return 0;
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_issue, struct request *rq)
{
	__u64 now = bpf_ktime_get_ns(), key = (__u64)rq;
	struct started *started = bpf_map_lookup_elem(&requests, &key);

	if (started && !started->issued) {
		/* Merges made it larger. */
		describe(started, rq);
		started->issued = now;
	} else {
		/* Created before attaching, or a flush, which has no submitter. */
		begin(rq, now, false);
	}
	return 0;
}

SEC("tp_btf/block_rq_requeue")
int BPF_PROG(on_requeue, struct request *rq)
{
	__u64 key = (__u64)rq;
	struct started *started = bpf_map_lookup_elem(&requests, &key);

	if (started)
		started->issued = 0;
	return 0;
}

/* Merged into another request; it does not complete itself. */
SEC("tp_btf/block_rq_merge")
int BPF_PROG(on_merge, struct request *rq)
{
	__u64 key = (__u64)rq;

	bpf_map_delete_elem(&requests, &key);
	return 0;
}

static __always_inline __u32 bucket_of(__u64 ns)
{
	__u32 power = 0, bucket;
	__u64 rest = ns;

#define HALVE(bits)                                                                                \
	if (rest >> bits) {                                                                        \
		rest >>= bits;                                                                     \
		power += bits;                                                                     \
	}
	HALVE(32);
	HALVE(16);
	HALVE(8);
	HALVE(4);
	HALVE(2);
	HALVE(1);
#undef HALVE
	if (power < SUB_BITS)
		return ns & ((1 << SUB_BITS) - 1);
	bucket = (power - SUB_BITS + 1) << SUB_BITS;
	bucket += (ns >> (power - SUB_BITS)) & ((1 << SUB_BITS) - 1);
	return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

/* Other CPUs may interfere: then their value must be exceeded. */
static __always_inline void raise(__u64 *greatest, __u64 epoch, __u64 value)
{
	const __u64 now = epoch << EPOCH_SHIFT | value;
	__u64 old = *(volatile __u64 *)greatest;

	for (int tries = 0; tries < 64; tries++) {
		__u64 found;

		if (old >> EPOCH_SHIFT == now >> EPOCH_SHIFT && old >= now)
			return;
		found = __sync_val_compare_and_swap(greatest, old, now);
		if (found == old)
			return;
		old = found;
	}
}

static __always_inline struct device *device_of(__u32 dev)
{
	struct device *device = bpf_map_lookup_elem(&devices, &dev);
	__u32 zero = 0;
	struct device *empty;

	if (device)
		return device;
	empty = bpf_map_lookup_elem(&blank, &zero);
	if (!empty)
		return 0;
	/* Another CPU may have been faster: its entry is used. */
	bpf_map_update_elem(&devices, &dev, empty, BPF_NOEXIST);
	return bpf_map_lookup_elem(&devices, &dev);
}

static __always_inline void count(struct started *started, __u64 ns)
{
	struct device *device = device_of(started->dev);
	__u32 zero = 0, bucket = bucket_of(ns);
	__u64 *number = bpf_map_lookup_elem(&epoch, &zero);

	if (!device || !number) {
		miss(MISSED_DEVICE);
		return;
	}
	if (bucket < BUCKETS)
		__sync_fetch_and_add(&device->counts[bucket], 1);
	__sync_fetch_and_add(&device->sum, ns);
	if (ns >= slow_min_ns)
		__sync_fetch_and_add(&device->slow, 1);
	__u64 now = *number, half = now & 1;
	__u64 value = ns < VALUE_MASK ? ns : VALUE_MASK;

	raise(&device->max[half], now, value);
	raise(&device->min[half], now, VALUE_MASK - value);
}

static __always_inline void report(struct started *started, __u64 now, __s32 error)
{
	struct slow *slow = bpf_ringbuf_reserve(&slow_requests, sizeof(*slow), 0);

	if (!slow) {
		miss(MISSED_LINE);
		return;
	}
	slow->request = *started;
	slow->ended = now;
	slow->error = error;
	slow->zero = 0;
	bpf_ringbuf_submit(slow, 0);
}

static __always_inline bool matches(struct started *started)
{
	__u32 op = started->rwbs & RWBS_OP;

	return (!ops_wanted || ops_wanted >> op & 1) && started->bytes >= bytes_min &&
	       started->bytes <= bytes_max;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_complete, struct request *rq, __u8 error, unsigned int bytes)
{
	__u64 now = bpf_ktime_get_ns(), key = (__u64)rq;
	struct started *started;

	/* Partial completion: the rest is still in flight. */
	if (!error && bytes < rq->__data_len)
		return 0;
	started = bpf_map_lookup_elem(&requests, &key);
	if (!started)
		return 0;
	if (matches(started)) {
		__u64 ns = now > started->begun ? now - started->begun : 0;

		count(started, ns);
		if (ns >= slow_min_ns)
			report(started, now, error);
	}
	bpf_map_delete_elem(&requests, &key);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
