/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Operation and flags of a request or bio. */
#ifndef WHYSLOW_RWBS_H
#define WHYSLOW_RWBS_H

static __always_inline __u32 rwbs_of(__u32 flags)
{
	static const __u8 ops[] = {0, 1, 2, 3, 4, 3};
	__u32 op = flags & 0xff;
	__u32 rwbs = op < sizeof(ops) ? ops[op] : 4;

	if (op == 5)
		rwbs |= RWBS_SECURE;
#define FLAG(bit, ours)                                                                            \
	if (flags & (1u << bpf_core_enum_value(enum req_flag_bits, bit)))                          \
		rwbs |= ours
	FLAG(__REQ_SYNC, RWBS_SYNC);
	FLAG(__REQ_META, RWBS_META);
	FLAG(__REQ_RAHEAD, RWBS_AHEAD);
	FLAG(__REQ_FUA, RWBS_FUA);
	FLAG(__REQ_PREFLUSH, RWBS_PREFLUSH);
#undef FLAG
	return rwbs;
}

#endif
