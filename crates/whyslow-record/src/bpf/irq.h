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

/* Inter-processor interrupts: requests to reschedule or call a function, and their handlers. */

#define IPI_WORDS_MAX 16

enum ipi_nr {
	IPI_RESCHEDULE = 0,
	IPI_CALL = 1,
	IPI_CALL_SINGLE = 2,
};

struct cpu_words {
	unsigned long bits[IPI_WORDS_MAX];
};

static __always_inline int put_ipi(__u32 nr, __u32 first, __u64 cpus)
{
	struct wire_ipi *record = BEGIN(struct wire_ipi, WIRE_IPI);

	if (!record)
		return 0;
	record->nr = nr;
	record->first = first;
	record->cpus = cpus;
	end_record(record);
	return 0;
}

SEC("tp_btf/ipi_send_cpu")
int BPF_PROG(on_ipi, unsigned int cpu, unsigned long caller, void *callback)
{
	return put_ipi(callback ? IPI_CALL_SINGLE : IPI_RESCHEDULE, cpu & ~63, 1ULL << (cpu & 63));
}

SEC("tp_btf/ipi_send_cpumask")
int BPF_PROG(on_ipis, const struct cpu_words *mask, unsigned long caller, void *callback)
{
	__u32 words = (cpus_possible + 63) / 64;

	for (__u32 word = 0; word < IPI_WORDS_MAX && word < words; word++) {
		__u64 cpus = 0;

		bpf_probe_read_kernel(&cpus, sizeof(cpus), &mask->bits[word]);
		if (cpus)
			put_ipi(callback ? IPI_CALL : IPI_RESCHEDULE, word * 64, cpus);
	}
	return 0;
}

SEC("tp_btf/reschedule_entry")
int BPF_PROG(on_reschedule_enter)
{
	return put_irq(WIRE_IRQ_ENTER, 3, IPI_RESCHEDULE, 0);
}

SEC("tp_btf/reschedule_exit")
int BPF_PROG(on_reschedule_exit)
{
	return put_irq(WIRE_IRQ_EXIT, 3, IPI_RESCHEDULE, 0);
}

SEC("tp_btf/call_function_entry")
int BPF_PROG(on_call_enter)
{
	return put_irq(WIRE_IRQ_ENTER, 3, IPI_CALL, 0);
}

SEC("tp_btf/call_function_exit")
int BPF_PROG(on_call_exit)
{
	return put_irq(WIRE_IRQ_EXIT, 3, IPI_CALL, 0);
}

SEC("tp_btf/call_function_single_entry")
int BPF_PROG(on_call_single_enter)
{
	return put_irq(WIRE_IRQ_ENTER, 3, IPI_CALL_SINGLE, 0);
}

SEC("tp_btf/call_function_single_exit")
int BPF_PROG(on_call_single_exit)
{
	return put_irq(WIRE_IRQ_EXIT, 3, IPI_CALL_SINGLE, 0);
}
