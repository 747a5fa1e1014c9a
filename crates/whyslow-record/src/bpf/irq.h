/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Interrupt handlers. */

static __always_inline int put_irq(__u16 kind, __u32 irq_kind, __u32 nr, __s32 ret)
{
	struct wire_irq *record = BEGIN(struct wire_irq, kind);

	if (!record)
		return 0;
	record->nr = nr;
	record->ret = ret;
	record->irq_kind = irq_kind;
	record->zero = 0;
	end_record(record);
	return 0;
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(on_irq_enter, int irq)
{
	return put_irq(WIRE_IRQ_ENTER, 0, irq, 0);
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(on_irq_exit, int irq, struct irqaction *action, int ret)
{
	return put_irq(WIRE_IRQ_EXIT, 0, irq, ret);
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(on_softirq_enter, unsigned int nr)
{
	return put_irq(WIRE_IRQ_ENTER, 1, nr, 0);
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(on_softirq_exit, unsigned int nr)
{
	return put_irq(WIRE_IRQ_EXIT, 1, nr, 0);
}

SEC("tp_btf/softirq_raise")
int BPF_PROG(on_softirq_raise, unsigned int nr)
{
	return put_irq(WIRE_SOFTIRQ_RAISE, 1, nr, 0);
}

SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(on_hrtimer_enter)
{
	return put_irq(WIRE_IRQ_ENTER, 2, 0, 0);
}

SEC("tp_btf/hrtimer_expire_exit")
int BPF_PROG(on_hrtimer_exit)
{
	return put_irq(WIRE_IRQ_EXIT, 2, 0, 0);
}
