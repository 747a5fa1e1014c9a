/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * DNS lookups by functions of the C library, with uprobes at their entry and return.
 *
 * These functions call each other. Only the outermost counts, identified by the stack: its callees
 * have frames below. So a frame that was left without a return (longjmp) is detected when the next
 * one is not below it.
 */
#ifndef WHYSLOW_LOOKUP_H
#define WHYSLOW_LOOKUP_H

#include "user.h"

#define HOST_MAX sizeof(((struct wire_lookup *)0)->host)

/* The current lookup of a thread. */
struct lookup {
	__u64 entered; /* 0 outside */
	__u64 sp;
	__u64 host;
	__u64 service;
	__u64 result; /* address of the result pointer */
	__u64 code;   /* address of h_errno */
	__u32 file;   /* number of the file with the function */
	__u8 function;
	__u8 is_recorded;
	__u8 zero[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct lookup);
} lookups SEC(".maps");

/* Whether the returning function has its frame below that of the lookup. */
static __always_inline bool is_below(struct pt_regs *regs, struct lookup *lookup)
{
#if defined(__TARGET_ARCH_x86)
	/* Its return address was already popped. */
	return regs->sp <= lookup->sp;
#else
	return regs->sp < lookup->sp;
#endif
}

/*
 * Starts a lookup. NULL within another one, and if there is no memory for it, in which case `lost`
 * is set.
 */
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
	/*
	 * Entered already: by a jump from another function, or because the same file was found
	 * twice.
	 */
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

/* The lookup that ends at the return of a function. */
static __always_inline struct lookup *leave_lookup(struct pt_regs *regs, struct task_struct *task)
{
	struct lookup *lookup = bpf_task_storage_get(&lookups, task, 0, 0);

	if (!lookup || !lookup->entered || is_below(regs, lookup))
		return 0;
	return lookup;
}

/* A new program has a new stack. */
static __always_inline void forget_lookup(struct task_struct *task)
{
	struct lookup *lookup = bpf_task_storage_get(&lookups, task, 0, 0);

	if (lookup)
		lookup->entered = 0;
}

/* Result of a lookup. */
struct outcome {
	__s32 code;
	__u32 scheme; /* type of the code */
	__u64 found;  /* first `struct addrinfo`, or `struct hostent`; 0 for none */
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
		/* The reason is in a thread-local variable whose address is unknown. */
		outcome.scheme = ret ? SCHEME_H_ERRNO : SCHEME_UNKNOWN;
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
		/* A buffer that is too small is not a reply of the resolver. */
		if (code > 0 || !outcome.code) {
			outcome.scheme = code ? SCHEME_H_ERRNO : SCHEME_UNKNOWN;
			outcome.code = code;
		}
	}
	return outcome;
}

#endif
