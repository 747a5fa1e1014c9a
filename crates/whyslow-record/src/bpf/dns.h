/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * DNS lookups: arguments and results of libc functions. One record when a lookup starts and one
 * when it ends: they are rare, and a lookup that never ends is still known.
 */

#include "lookup.h"

#define SERVICE_MAX sizeof(((struct wire_lookup *)0)->service)
#define AF_INET 2
#define AF_INET6 10

static __always_inline struct wire_lookup *begin_lookup(__u16 kind, struct lookup *lookup)
{
	struct wire_lookup *record = BEGIN(struct wire_lookup, kind);

	if (!record)
		return 0;
	record->ret = 0;
	record->function = lookup->function;
	record->family = 0;
	record->scheme = SCHEME_NO_OUTCOME;
	record->has = 0;
	__builtin_memset(record->address, 0, sizeof(record->address));
	/* Pages not resident at the entry are at the return. */
	if (lookup->host &&
	    bpf_probe_read_user_str(record->host, HOST_MAX, (void *)lookup->host) >= 0)
		record->has |= WIRE_HAS_HOST;
	if (lookup->service &&
	    bpf_probe_read_user_str(record->service, SERVICE_MAX, (void *)lookup->service) >= 0)
		record->has |= WIRE_HAS_SERVICE;
	return record;
}

SEC("uprobe")
int on_lookup(struct pt_regs *regs)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct wire_lookup *record;
	struct lookup *lookup;
	bool lost = false;

	if (!is_target(task->tgid))
		return 0;
	lookup = enter_lookup(regs, task, &lost);
	if (lost)
		lose(bpf_ktime_get_ns());
	if (!lookup)
		return 0;
	record = begin_lookup(WIRE_LOOKUP_BEGIN, lookup);
	lookup->is_recorded = record != 0;
	if (record) {
		lookup->entered = record->head.ts;
		record->entered = lookup->entered;
		end_record(record);
	}
	return 0;
}

/* Offsets in `struct addrinfo` and `struct hostent` of 64-bit programs. */
#define ADDRINFO_FAMILY 4
#define ADDRINFO_ADDRESS 24
#define HOSTENT_FAMILY 16
#define HOSTENT_ADDRESSES 24
/* Offsets in `struct sockaddr_in` and `struct sockaddr_in6`. */
#define SOCKADDR_ADDRESS 4
#define SOCKADDR_ADDRESS6 8

static __always_inline void read_address(struct wire_lookup *record, __u32 family, __u64 place)
{
	long failed = -1;

	if (family == AF_INET)
		failed = bpf_probe_read_user(record->address, 4, (void *)place);
	else if (family == AF_INET6)
		failed = bpf_probe_read_user(record->address, 16, (void *)place);
	record->family = failed ? 0 : family;
}

static __always_inline void read_addrinfo(struct wire_lookup *record, __u64 info)
{
	__u32 family = 0;
	__u64 address = user_pointer(info + ADDRINFO_ADDRESS);

	bpf_probe_read_user(&family, sizeof(family), (void *)(info + ADDRINFO_FAMILY));
	address += family == AF_INET6 ? SOCKADDR_ADDRESS6 : SOCKADDR_ADDRESS;
	read_address(record, family, address);
}

static __always_inline void read_hostent(struct wire_lookup *record, __u64 host)
{
	__u32 family = 0;
	__u64 list = user_pointer(host + HOSTENT_ADDRESSES);

	bpf_probe_read_user(&family, sizeof(family), (void *)(host + HOSTENT_FAMILY));
	if (list)
		read_address(record, family, user_pointer(list));
}

static __always_inline void read_outcome(struct wire_lookup *record, struct lookup *lookup,
					 __u64 ret)
{
	struct outcome outcome = outcome_of(lookup, ret);

	record->scheme = outcome.scheme;
	record->ret = outcome.code;
	if (!outcome.found)
		return;
	if (lookup->function == LOOKUP_GETADDRINFO)
		read_addrinfo(record, outcome.found);
	else
		read_hostent(record, outcome.found);
}

SEC("uretprobe")
int on_lookup_end(struct pt_regs *regs)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct lookup *lookup = leave_lookup(regs, task);
	struct wire_lookup *record;

	if (!lookup)
		return 0;
	record = begin_lookup(WIRE_LOOKUP, lookup);
	if (record) {
		record->entered = lookup->entered;
		record->head.flags = lookup->is_recorded ? WIRE_ENTRY_RECORDED : 0;
		read_outcome(record, lookup, user_ret(regs));
		end_record(record);
	}
	lookup->entered = 0;
	return 0;
}

SEC("tp_btf/sched_process_exec")
int on_lookup_exec(void *context)
{
	forget_lookup(bpf_get_current_task_btf());
	return 0;
}
