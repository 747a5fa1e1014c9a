/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* State of requests and devices. */
#ifndef WHYSLOW_OUTLIERS_H
#define WHYSLOW_OUTLIERS_H

/* Settings, written before the programs are loaded. */
const volatile __u64 slow_min_ns = 0;
const volatile bool only_wanted = false;
const volatile __u32 ops_wanted = 0; /* bit mask of RWBS_OP; 0 is all */
const volatile __u32 bytes_min = 0;
const volatile __u32 bytes_max = 0xffffffff;

/* A request in flight. */
struct started {
	__u64 begun;  /* creation time */
	__u64 issued; /* issue time; 0 before */
	__u64 sector;
	__u32 dev;
	__u32 bytes;
	__u32 rwbs;
	__u32 tid; /* submitter; 0 if not seen */
	__u32 pid;
	__u32 zero;
	char comm[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, __u64);
	__type(value, struct started);
} requests SEC(".maps");

/*
 * Buckets: one per ns up to 2^SUB_BITS ns, then 2^SUB_BITS of equal width for every power of two,
 * the last for everything above.
 */
#define SUB_BITS 4
#define BUCKETS ((41 - SUB_BITS + 1) << SUB_BITS)

/* The extremes of consecutive intervals are kept apart: each value contains its interval. */
#define EPOCH_SHIFT 44
#define VALUE_MASK ((1ull << EPOCH_SHIFT) - 1)

struct device {
	__u64 sum;
	__u64 slow;
	__u64 max[2];
	__u64 min[2]; /* maximum of VALUE_MASK - ns, so that empty is 0 */
	__u64 counts[BUCKETS];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 10);
	__type(key, __u32);
	__type(value, struct device);
} devices SEC(".maps");

/* A device of zeros, too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct device);
} blank SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 10);
	__type(key, __u32);
	__type(value, __u8);
} wanted SEC(".maps");

/* Number of the current interval. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} epoch SEC(".maps");

enum missed_kind {
	MISSED_BEGIN,  /* no memory for a request: it is not counted */
	MISSED_DEVICE, /* too many devices */
	MISSED_LINE,   /* counted, but not reported individually */
	MISSED_KINDS,
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MISSED_KINDS);
	__type(key, __u32);
	__type(value, __u64);
} missed SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} slow_requests SEC(".maps");

/* Record of a slow request. */
struct slow {
	struct started request;
	__u64 ended;
	__s32 error;
	__u32 zero;
};

/* Types must be named here or in a map to be exported to user space. */
const struct slow unused_slow = {};
const enum missed_kind unused_missed = 0;

#endif
