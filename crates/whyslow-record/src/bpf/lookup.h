/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Lookups of host names by functions of the C library, found where the functions are called and
 * return.
 *
 * These functions call each other. The outermost counts, found by the stack: what it calls has its
 * frame below. So a frame that was left without a return (longjmp) is known as left when the next
 * one is not below it.
 */
#ifndef WHYSLOW_LOOKUP_H
#define WHYSLOW_LOOKUP_H

#include "user.h"

#define HOST_MAX sizeof(((struct wire_lookup *)0)->host)

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

/* The lookup that a thread begins. Nothing inside of another one; and where there is no memory for
 * it, which `lost` tells. */
static __always_inline struct lookup *enter_lookup(struct pt_regs *regs, struct task_struct *task,
						   bool *lost)
{
	__u64 cookie = bpf_get_attach_cookie(regs);
	struct lookup *lookup;

	lookup = bpf_task_storage_get(&lookups, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!lookup) {
		*lost = true;
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
	return lookup;
}

/* The lookup that ends where a function returns. */
static __always_inline struct lookup *leave_lookup(struct pt_regs *regs, struct task_struct *task)
{
	struct lookup *lookup = bpf_task_storage_get(&lookups, task, 0, 0);

	if (!lookup || !lookup->entered || is_below(regs, lookup))
		return 0;
	return lookup;
}

/* Another program has another stack. */
static __always_inline void forget_lookup(struct task_struct *task)
{
	struct lookup *lookup = bpf_task_storage_get(&lookups, task, 0, 0);

	if (lookup)
		lookup->entered = 0;
}

/* How a lookup ended. */
struct outcome {
	__s32 code;
	__u32 scheme; /* what that is */
	__u64 found;  /* the first `struct addrinfo`, or the `struct hostent`; 0 for none */
};

static __always_inline struct outcome outcome_of(struct lookup *lookup, __u64 ret)
{
	struct outcome outcome = {};
	__u64 found;

	switch (lookup->function) {
	case LOOKUP_GETADDRINFO:
		outcome.scheme = SCHEME_EAI;
		outcome.code = ret;
		if (!outcome.code)
			outcome.found = user_pointer(lookup->result);
		return outcome;
	case LOOKUP_GETHOSTBYNAME:
	case LOOKUP_GETHOSTBYNAME2:
		/* The reason is in a variable of the thread that nobody else finds. */
		outcome.scheme = ret ? SCHEME_H_ERRNO : SCHEME_UNTOLD;
		outcome.found = ret;
		return outcome;
	}
	found = user_pointer(lookup->result);
	outcome.scheme = SCHEME_ERRNO;
	outcome.code = ret;
	if (!outcome.code && found) {
		outcome.found = found;
	} else {
		__s32 code = 0;

		bpf_probe_read_user(&code, sizeof(code), (void *)lookup->code);
		/* A buffer too small is no answer of the resolver. */
		if (code > 0 || !outcome.code) {
			outcome.scheme = code ? SCHEME_H_ERRNO : SCHEME_UNTOLD;
			outcome.code = code;
		}
	}
	return outcome;
}

#endif
