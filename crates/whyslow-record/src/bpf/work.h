/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Workqueues: work that the kernel defers to its own threads.
 *
 * Usually the kernel activates an item when it is queued, on the same CPU and with interrupts off.
 * That is not reported: only the activation of items that had to wait for a free slot is.
 */

#define PF_WQ_WORKER 0x20

/* The item queued last on this CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} just_queued SEC(".maps");

static __always_inline void fill_item(struct wire_work_item *record, struct work_struct *work,
				      __u32 phase)
{
	struct task_struct *task = bpf_get_current_task_btf();

	record->work = (__u64)work;
	record->function = 0;
	record->phase = phase;
	record->is_worker = !!(task->flags & PF_WQ_WORKER);
}

SEC("tp_btf/workqueue_queue_work")
int BPF_PROG(on_work_queue, int cpu, struct pool_workqueue *pool, struct work_struct *work)
{
	__u32 zero = 0;
	__u64 *queued = bpf_map_lookup_elem(&just_queued, &zero);
	struct wire_work_queued *record;

	/* First, because verifiers before 6.2 check a record once. */
	if (queued)
		*queued = (__u64)work;
	record = BEGIN(struct wire_work_queued, WIRE_WORK_ITEM);
	if (!record)
		return 0;
	fill_item(&record->item, work, ITEM_QUEUED);
	record->item.head.flags = context_here();
	record->item.function = (__u64)work->func;
	__builtin_memset(record->queue, 0, sizeof(record->queue));
	bpf_probe_read_kernel_str(record->queue, sizeof(record->queue), pool->wq->name);
	end_record(record);
	return 0;
}

SEC("tp_btf/workqueue_activate_work")
int BPF_PROG(on_work_activate, struct work_struct *work)
{
	__u32 zero = 0;
	__u64 *queued = bpf_map_lookup_elem(&just_queued, &zero);
	struct wire_work_item *record;

	if (queued && *queued == (__u64)work) {
		*queued = 0;
		return 0;
	}
	record = BEGIN(struct wire_work_item, WIRE_WORK_ITEM);
	if (!record)
		return 0;
	fill_item(record, work, ITEM_ACTIVATED);
	end_record(record);
	return 0;
}

SEC("tp_btf/workqueue_execute_start")
int BPF_PROG(on_work_begin, struct work_struct *work)
{
	struct wire_work_item *record = BEGIN(struct wire_work_item, WIRE_WORK_ITEM);

	if (!record)
		return 0;
	fill_item(record, work, ITEM_BEGIN);
	record->function = (__u64)work->func;
	end_record(record);
	return 0;
}

/* The function may have freed its item: only its address is used. */
SEC("tp_btf/workqueue_execute_end")
int BPF_PROG(on_work_end, struct work_struct *work)
{
	struct wire_work_item *record = BEGIN(struct wire_work_item, WIRE_WORK_ITEM);

	if (!record)
		return 0;
	fill_item(record, work, ITEM_END);
	end_record(record);
	return 0;
}
