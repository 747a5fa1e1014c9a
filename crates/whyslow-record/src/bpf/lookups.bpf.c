// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * Counts DNS lookups where they end, by host and mount namespace, as the resolver configuration is
 * per namespace. No record leaves the kernel for a lookup, and memory is bounded: hosts beyond the
 * limit are counted together.
 */
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "wire.h"

#include "lookup.h"

/* Settings, written before the programs are loaded. */
#define EDGES_MAX 24
const volatile __u32 own_pid = 0; /* the recorder's own lookups are not counted */
const volatile __u32 edge_count = 0;
const volatile __u64 edges[EDGES_MAX] = {}; /* upper bound of each bucket in ns, ascending */
const volatile __u64 patience_ns = 0; /* default query timeout */

#define HOSTS_MAX 4096
/*
 * Results by index: 0 success; then errors of getaddrinfo, negated; h_errno from -1 on; known
 * errors of the functions with _r; unknown; any other.
 */
#define RESULT_EAI 0
#define EAI_KINDS 12
#define RESULT_H_ERRNO (RESULT_EAI + EAI_KINDS + 1)
#define H_ERRNO_KINDS 6
#define RESULT_ENOENT (RESULT_H_ERRNO + H_ERRNO_KINDS)
#define RESULT_EAGAIN (RESULT_ENOENT + 1)
#define RESULT_ENOMEM (RESULT_ENOENT + 2)
#define RESULT_EINVAL (RESULT_ENOENT + 3)
#define RESULT_ERANGE (RESULT_ENOENT + 4)
#define RESULT_UNKNOWN (RESULT_ENOENT + 5)
#define RESULT_OTHER (RESULT_ENOENT + 6)
#define RESULTS (RESULT_OTHER + 1)

struct host {
	__u32 mount_ns;
	__u32 zero;
	char name[HOST_MAX];
};

struct counts {
	__u64 sum;
	__u64 timeouts; /* lookups of at least the query timeout */
	__u64 results[RESULTS];
	__u64 buckets[EDGES_MAX + 1];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HOSTS_MAX);
	__type(key, struct host);
	__type(value, struct counts);
} hosts SEC(".maps");

/* Counts of hosts beyond the limit. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counts);
} others SEC(".maps");

/* Zeros, too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counts);
} blank SEC(".maps");

/* Query timeout in ns, by mount namespace. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u64);
} patience SEC(".maps");

/* Processes that called exec, and may have mapped other libraries, since the last poll. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u8);
} begun SEC(".maps");

/* Lookups that were not counted for lack of memory. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} uncounted SEC(".maps");

static __always_inline void miss(void)
{
	__u32 zero = 0;
	__u64 *count = bpf_map_lookup_elem(&uncounted, &zero);

	if (count)
		__sync_fetch_and_add(count, 1);
}

static __always_inline __u32 result_of(struct outcome *outcome)
{
	__s32 code = outcome->code;

	switch (outcome->scheme) {
	case SCHEME_EAI:
		return code <= 0 && code >= -EAI_KINDS ? RESULT_EAI - code : RESULT_OTHER;
	case SCHEME_H_ERRNO:
		if (!code)
			return RESULT_EAI;
		return code >= -1 && code < H_ERRNO_KINDS - 1 ? RESULT_H_ERRNO + 1 + code
							      : RESULT_OTHER;
	case SCHEME_ERRNO:
		switch (code) {
		case 0: return RESULT_EAI;
		case 2: return RESULT_ENOENT;
		case 11: return RESULT_EAGAIN;
		case 12: return RESULT_ENOMEM;
		case 22: return RESULT_EINVAL;
		case 34: return RESULT_ERANGE;
		default: return RESULT_OTHER;
		}
	case SCHEME_UNKNOWN:
		return RESULT_UNKNOWN;
	}
	return RESULT_OTHER;
}

static __always_inline struct counts *counts_of(struct host *host)
{
	struct counts *counts = bpf_map_lookup_elem(&hosts, host);
	__u32 zero = 0;
	struct counts *empty;

	if (counts)
		return counts;
	empty = bpf_map_lookup_elem(&blank, &zero);
	/* Another CPU may have been faster: its entry is used. */
	if (empty)
		bpf_map_update_elem(&hosts, host, empty, BPF_NOEXIST);
	counts = bpf_map_lookup_elem(&hosts, host);
	return counts ? counts : bpf_map_lookup_elem(&others, &zero);
}

static __always_inline void count(struct counts *counts, __u32 mount_ns, __u32 result, __u64 ns)
{
	__u64 *known = bpf_map_lookup_elem(&patience, &mount_ns);
	__u32 bucket = 0;

	for (int i = 0; i < EDGES_MAX; i++)
		if (i < edge_count && ns > edges[i])
			bucket = i + 1;
	__sync_fetch_and_add(&counts->sum, ns);
	if (ns >= (known ? *known : patience_ns))
		__sync_fetch_and_add(&counts->timeouts, 1);
	if (result < RESULTS)
		__sync_fetch_and_add(&counts->results[result], 1);
	if (bucket <= EDGES_MAX)
		__sync_fetch_and_add(&counts->buckets[bucket], 1);
}

SEC("uprobe")
int on_lookup(struct pt_regs *regs)
{
	struct task_struct *task = bpf_get_current_task_btf();
	bool lost = false;

	if (task->tgid == own_pid)
		return 0;
	enter_lookup(regs, task, &lost);
	if (lost)
		miss();
	return 0;
}

SEC("uretprobe")
int on_lookup_end(struct pt_regs *regs)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct lookup *lookup = leave_lookup(regs, task);
	struct host host = {};
	struct outcome outcome;
	struct counts *counts;
	__u64 now, ns;

	if (!lookup)
		return 0;
	now = bpf_ktime_get_ns();
	ns = now > lookup->entered ? now - lookup->entered : 0;
	lookup->entered = 0;
	host.mount_ns = BPF_CORE_READ(task, nsproxy, mnt_ns, ns.inum);
	if (lookup->host)
		bpf_probe_read_user_str(host.name, sizeof(host.name), (void *)lookup->host);
	outcome = outcome_of(lookup, user_ret(regs));
	counts = counts_of(&host);
	if (counts)
		count(counts, host.mount_ns, result_of(&outcome), ns);
	else
		miss();
	return 0;
}

SEC("tp_btf/sched_process_exec")
int on_exec(void *context)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 pid = task->tgid;
	__u8 one = 1;

	forget_lookup(task);
	bpf_map_update_elem(&begun, &pid, &one, BPF_ANY);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
