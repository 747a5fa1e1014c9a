/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Calls of the requested functions: one record at the entry and one at the return. Returns are
 * matched to entries by the stack pointer; nothing is stored here, so calls may be nested to any
 * depth.
 */
#ifndef WHYSLOW_FUNCTIONS_H
#define WHYSLOW_FUNCTIONS_H

#include "user.h"

/* BPF cookie of a probe: its number, and which arguments are strings, from 1 on (0 for none). */
#define PROBE_TEXT(cookie, place) ((__u32)((cookie) >> (32 + 4 * (place))) & 0xf)
#define PROBE_HAS_TEXTS(cookie) ((cookie) >> 32)

static __always_inline __u64 entry_sp(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	/* The return address was already popped. */
	return regs->sp - 8;
#else
	return regs->sp;
#endif
}

/*
 * Whether this function was entered by a tail call from a probed function. A return probe replaces
 * the return address by one at the start of a page, which no other return address has.
 */
static __always_inline bool is_tail(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	__u64 back = user_pointer(regs->sp);
#else
	__u64 back = regs->regs[30];
#endif
	return back && !(back & 0xfff);
}

static __always_inline void read_text(struct wire_texts *texts, __u32 place, __u64 pointer,
				      __u32 *has)
{
	if (pointer && bpf_probe_read_user_str(texts->text[place], sizeof(texts->text[place]),
					       (void *)pointer) >= 0)
		*has |= 1u << place;
}

static __always_inline void fill_entry(struct wire_call *record, struct pt_regs *regs,
					  __u64 cookie)
{
	record->sp = regs->sp;
	record->probe = cookie;
	record->has = 0;
	if (is_tail(regs))
		record->head.flags = WIRE_TAIL;
	for (int place = 0; place < WIRE_CALL_ARGS; place++)
		record->args[place] = user_arg(regs, place + 1);
}

SEC("uprobe")
int on_function(struct pt_regs *regs)
{
	__u64 cookie = bpf_get_attach_cookie(regs);
	struct wire_call_texts *with;
	struct wire_call *record;

	if (!is_target(bpf_get_current_pid_tgid() >> 32))
		return 0;
	if (!PROBE_HAS_TEXTS(cookie)) {
		record = BEGIN(struct wire_call, WIRE_FUNCTION_BEGIN);
		if (record) {
			fill_entry(record, regs, cookie);
			end_record(record);
		}
		return 0;
	}
	with = BEGIN(struct wire_call_texts, WIRE_FUNCTION_BEGIN);
	if (!with)
		return 0;
	fill_entry(&with->call, regs, cookie);
	for (__u32 place = 0; place < WIRE_TEXTS; place++) {
		__u32 arg = PROBE_TEXT(cookie, place) - 1;

		barrier_var(arg);
		if (arg < WIRE_CALL_ARGS)
			read_text(&with->texts, place, with->call.args[arg], &with->call.has);
	}
	end_record(with);
	return 0;
}

SEC("uretprobe")
int on_function_end(struct pt_regs *regs)
{
	struct wire_call_end *record;

	if (!is_target(bpf_get_current_pid_tgid() >> 32))
		return 0;
	record = BEGIN(struct wire_call_end, WIRE_FUNCTION_END);
	if (record) {
		record->sp = entry_sp(regs);
		record->probe = bpf_get_attach_cookie(regs);
		record->zero = 0;
		record->ret = user_ret(regs);
		end_record(record);
	}
	return 0;
}

#endif
