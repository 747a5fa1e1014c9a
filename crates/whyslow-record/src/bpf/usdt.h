/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Requested USDT probes: a no-op instruction, and an ELF note that describes its arguments, in
 * registers and memory.
 */
#include "functions.h"

/* Location of an argument. */
enum usdt_how {
	USDT_NONE = 0,
	USDT_CONSTANT = 1,
	USDT_REGISTER = 2,
	USDT_MEMORY = 3,
	USDT_INDEXED = 4,
};

/* Written by `probes/arguments.rs`. */
struct usdt_arg {
	__s64 distance; /* or the constant */
	__u16 base;	/* registers are offsets in pt_regs */
	__u16 index;
	__u8 how;
	__u8 shift;
	__u8 size; /* bytes in memory */
	__u8 zero;
};

struct usdt_spec {
	struct usdt_arg args[WIRE_USDT_ARGS];
};

/* By probe number. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct usdt_spec);
} usdt_specs SEC(".maps");

static __always_inline __u64 saved(struct pt_regs *regs, __u16 place)
{
	__u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), (void *)regs + place);
	return value;
}

static __always_inline __u64 usdt_value(struct pt_regs *regs, struct usdt_arg *arg)
{
	__u64 base, values[2] = {};

	if (arg->how == USDT_NONE)
		return 0;
	if (arg->how == USDT_CONSTANT)
		return arg->distance;
	base = saved(regs, arg->base);
	if (arg->how == USDT_REGISTER)
		return base;
	if (arg->how == USDT_INDEXED)
		base += saved(regs, arg->index) << (arg->shift & 3);
	bpf_probe_read_user(values, arg->size & 0xf, (void *)(base + arg->distance));
	return values[0];
}

static __always_inline void fill_usdt(struct wire_usdt *record, struct pt_regs *regs,
				      struct usdt_spec *spec, __u64 cookie)
{
	record->probe = cookie;
	record->has = 0;
	for (int place = 0; place < WIRE_USDT_ARGS; place++)
		record->args[place] = usdt_value(regs, &spec->args[place]);
}

SEC("uprobe")
int on_usdt(struct pt_regs *regs)
{
	__u64 cookie = bpf_get_attach_cookie(regs);
	__u32 probe = cookie;
	struct wire_usdt_texts *with;
	struct wire_usdt *record;
	struct usdt_spec *spec;

	if (!is_target(bpf_get_current_pid_tgid() >> 32))
		return 0;
	spec = bpf_map_lookup_elem(&usdt_specs, &probe);
	if (!spec)
		return 0;
	if (!PROBE_HAS_TEXTS(cookie)) {
		record = BEGIN(struct wire_usdt, WIRE_USDT);
		if (record) {
			fill_usdt(record, regs, spec, cookie);
			end_record(record);
		}
		return 0;
	}
	with = BEGIN(struct wire_usdt_texts, WIRE_USDT);
	if (!with)
		return 0;
	fill_usdt(&with->hit, regs, spec, cookie);
	for (__u32 place = 0; place < WIRE_TEXTS; place++) {
		__u32 arg = PROBE_TEXT(cookie, place) - 1;

		barrier_var(arg);
		if (arg < WIRE_USDT_ARGS)
			read_text(&with->texts, place, with->hit.args[arg], &with->hit.has);
	}
	end_record(with);
	return 0;
}
