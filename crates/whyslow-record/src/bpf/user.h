/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Arguments and results of user-space functions. */
#ifndef WHYSLOW_USER_H
#define WHYSLOW_USER_H

static __always_inline __u64 user_pointer(__u64 place)
{
	__u64 value = 0;

	bpf_probe_read_user(&value, sizeof(value), (void *)place);
	return value;
}

/* Arguments of 64-bit functions, counted from 1. */
static __always_inline __u64 user_arg(struct pt_regs *regs, int place)
{
#if defined(__TARGET_ARCH_x86)
	__u64 value = 0;

	switch (place) {
	case 1: return regs->di;
	case 2: return regs->si;
	case 3: return regs->dx;
	case 4: return regs->cx;
	case 5: return regs->r8;
	case 6: return regs->r9;
	case 7: /* above the return address */
		bpf_probe_read_user(&value, sizeof(value), (void *)(regs->sp + 8));
		return value;
	default: return 0;
	}
#else
	switch (place) {
	case 1: return regs->regs[0];
	case 2: return regs->regs[1];
	case 3: return regs->regs[2];
	case 4: return regs->regs[3];
	case 5: return regs->regs[4];
	case 6: return regs->regs[5];
	case 7: return regs->regs[6];
	default: return 0;
	}
#endif
}

static __always_inline __u64 user_ret(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->ax;
#else
	return regs->regs[0];
#endif
}

#endif
