/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * System calls at tracepoints without types, for kernels that refuse the typed ones. The registers
 * that these hand over may not be read directly; those that the thread keeps are the same.
 */

static __always_inline struct pt_regs *own_regs(void)
{
	return (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
}

SEC("raw_tp/sys_enter")
int BPF_PROG(raw_sys_enter, struct pt_regs *regs, long nr)
{
	return begin_call(own_regs(), nr);
}

SEC("raw_tp/sys_exit")
int BPF_PROG(raw_sys_exit, struct pt_regs *regs, long ret)
{
	return end_call(ctx, own_regs(), ret);
}
