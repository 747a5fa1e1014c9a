/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Lookups of host names: what libc functions were asked for, and what they answered. One record
 * when a lookup begins and one when it ends: they are few, and one that never ends is known then.
 *
 * These functions call each other. The outermost counts, found by the stack: what it calls has its
 * frame below. So a frame that was left without a return (longjmp) is known as left when the next
 * one is not below it.
 */

#include "user.h"

#define HOST_MAX sizeof(((struct wire_lookup *)0)->host)
#define SERVICE_MAX sizeof(((struct wire_lookup *)0)->service)
#define AF_INET 2
#define AF_INET6 10

/* The lookup that a thread is in. */
struct lookup {
	__u64 entered; /* 0 outside */
	__u64 sp;
	__u64 host;
	__u64 service;
	__u64 result; /* where the pointer to the result will be */
	__u64 code;   /* where h_errno will be */
	__u32 file;   /* number of the file that the function is of */
	__u8 function;
	__u8 told;
	__u8 zero[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct lookup);
} lookups SEC(".maps");

/* Whether the function that returns has its frame below that of the lookup. */
static __always_inline bool is_below(struct pt_regs *regs, struct lookup *lookup)
{
#if defined(__TARGET_ARCH_x86)
	/* Its return address was taken from the stack. */
	return regs->sp <= lookup->sp;
#else
	return regs->sp < lookup->sp;
#endif
}

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
	/* What is not in memory at the entry is so at the return. */
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
	__u64 cookie = bpf_get_attach_cookie(regs);
	struct wire_lookup *record;
	struct lookup *lookup;

	if (!is_target(task->tgid))
		return 0;
	lookup = bpf_task_storage_get(&lookups, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!lookup) {
		lose(bpf_ktime_get_ns());
		return 0;
	}
	if (lookup->entered && regs->sp < lookup->sp)
		return 0;
	/* Here already: by a jump from another function, or by the same file found twice. */
	if (lookup->entered && regs->sp == lookup->sp &&
	    (lookup->function != (__u8)cookie || lookup->file != cookie >> 8))
		return 0;
	lookup->function = cookie;
	lookup->file = cookie >> 8;
	lookup->sp = regs->sp;
	lookup->host = user_arg(regs, 1);
	lookup->service = 0;
	lookup->result = 0;
	lookup->code = 0;
	switch (lookup->function) {
	case LOOKUP_GETADDRINFO:
		lookup->service = user_arg(regs, 2);
		lookup->result = user_arg(regs, 4);
		break;
	case LOOKUP_GETHOSTBYNAME_R:
		lookup->result = user_arg(regs, 5);
		lookup->code = user_arg(regs, 6);
		break;
	case LOOKUP_GETHOSTBYNAME2_R:
		lookup->result = user_arg(regs, 6);
		lookup->code = user_arg(regs, 7);
		break;
	}
	lookup->entered = bpf_ktime_get_ns();
	record = begin_lookup(WIRE_LOOKUP_BEGIN, lookup);
	lookup->told = record != 0;
	if (record) {
		lookup->entered = record->head.ts;
		record->entered = lookup->entered;
		end_record(record);
	}
	return 0;
}

/* Members of `struct addrinfo` and `struct hostent` of 64-bit programs. */
#define ADDRINFO_FAMILY 4
#define ADDRINFO_ADDRESS 24
#define HOSTENT_FAMILY 16
#define HOSTENT_ADDRESSES 24
/* Of `struct sockaddr_in` and `struct sockaddr_in6`. */
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
	__u64 found;

	switch (lookup->function) {
	case LOOKUP_GETADDRINFO:
		record->scheme = SCHEME_EAI;
		record->ret = ret;
		if (!record->ret)
			read_addrinfo(record, user_pointer(lookup->result));
		return;
	case LOOKUP_GETHOSTBYNAME:
	case LOOKUP_GETHOSTBYNAME2:
		/* The reason is in a variable of the thread that nobody else finds. */
		record->scheme = ret ? SCHEME_H_ERRNO : SCHEME_UNTOLD;
		if (ret)
			read_hostent(record, ret);
		return;
	}
	found = user_pointer(lookup->result);
	record->scheme = SCHEME_ERRNO;
	record->ret = ret;
	if (!record->ret && found) {
		read_hostent(record, found);
	} else if (!found || record->ret) {
		__s32 code = 0;

		bpf_probe_read_user(&code, sizeof(code), (void *)lookup->code);
		/* A buffer too small is no answer of the resolver. */
		if (code > 0 || !record->ret) {
			record->scheme = code ? SCHEME_H_ERRNO : SCHEME_UNTOLD;
			record->ret = code;
		}
	}
}

SEC("uretprobe")
int on_lookup_end(struct pt_regs *regs)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct lookup *lookup = bpf_task_storage_get(&lookups, task, 0, 0);
	struct wire_lookup *record;

	if (!lookup || !lookup->entered || is_below(regs, lookup))
		return 0;
	record = begin_lookup(WIRE_LOOKUP, lookup);
	if (record) {
		record->entered = lookup->entered;
		record->head.flags = lookup->told ? WIRE_TOLD : 0;
		read_outcome(record, lookup, user_ret(regs));
		end_record(record);
	}
	lookup->entered = 0;
	return 0;
}

/* Another program has another stack. */
SEC("tp_btf/sched_process_exec")
int on_lookup_exec(void *context)
{
	struct lookup *lookup = bpf_task_storage_get(&lookups, bpf_get_current_task_btf(), 0, 0);

	if (lookup)
		lookup->entered = 0;
	return 0;
}
