/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The same programs for raw tracepoints, for kernels that reject the typed ones. Their arguments
 * cannot be dereferenced directly. The current task and its registers can: they do not come from
 * the tracepoint.
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

/* Only the kernel version shows whether the state is passed. */
SEC("raw_tp/sched_switch")
int BPF_PROG(raw_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int state)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (!switch_has_state)
		state = state_of(task);
	return put_switch(task, preempt ? WIRE_PREEMPTED : state, BPF_CORE_READ(next, pid),
			  BPF_CORE_READ(next, tgid), BPF_CORE_READ(next, prio));
}

SEC("raw_tp/sched_waking")
int BPF_PROG(raw_waking, struct task_struct *task)
{
	return put_wakeup(WIRE_WAKING, BPF_CORE_READ(task, pid), BPF_CORE_READ(task, tgid),
			  BPF_CORE_READ(task, prio));
}

SEC("raw_tp/sched_wakeup_new")
int BPF_PROG(raw_wakeup_new, struct task_struct *task)
{
	return put_wakeup(WIRE_WAKEUP_NEW, BPF_CORE_READ(task, pid), BPF_CORE_READ(task, tgid),
			  BPF_CORE_READ(task, prio));
}

SEC("raw_tp/sched_process_fork")
int BPF_PROG(raw_fork, struct task_struct *parent, struct task_struct *child)
{
	return put_fork((__u64)child, BPF_CORE_READ(child, pid), BPF_CORE_READ(child, tgid),
			child->comm);
}

SEC("raw_tp/sched_process_exec")
int BPF_PROG(raw_exec, struct task_struct *task, int old_tid, struct linux_binprm *program)
{
	return put_exec(old_tid, BPF_CORE_READ(program, filename));
}

SEC("raw_tp/sched_process_exit")
int BPF_PROG(raw_exit, struct task_struct *task)
{
	return put_exit();
}

SEC("raw_tp/sched_process_free")
int BPF_PROG(raw_free, struct task_struct *task)
{
	return put_task(WIRE_FREE, BPF_CORE_READ(task, pid), BPF_CORE_READ(task, tgid),
			task->comm);
}

SEC("raw_tp/task_rename")
int BPF_PROG(raw_rename, struct task_struct *task, const char *comm)
{
	return put_rename(BPF_CORE_READ(task, pid), BPF_CORE_READ(task, tgid), comm);
}

SEC("raw_tp/block_bio_queue")
int BPF_PROG(raw_bio_queue, struct bio *bio)
{
	return put_bio(UNCHECKED, WIRE_BIO_QUEUE, bio);
}

SEC("raw_tp/block_bio_backmerge")
int BPF_PROG(raw_bio_backmerge, struct bio *bio)
{
	return put_bio(UNCHECKED, WIRE_BIO_BACKMERGE, bio);
}

SEC("raw_tp/block_bio_frontmerge")
int BPF_PROG(raw_bio_frontmerge, struct bio *bio)
{
	return put_bio(UNCHECKED, WIRE_BIO_FRONTMERGE, bio);
}

SEC("raw_tp/block_getrq")
int BPF_PROG(raw_getrq, struct bio *bio)
{
	return put_bio(UNCHECKED, WIRE_GETRQ, bio);
}

SEC("raw_tp/block_bio_complete")
int BPF_PROG(raw_bio_complete, struct request_queue *queue, struct bio *bio)
{
	return put_bio_complete(UNCHECKED, bio);
}

SEC("raw_tp/block_bio_remap")
int BPF_PROG(raw_bio_remap, struct bio *bio, __u32 dev, __u64 from)
{
	return put_remap(UNCHECKED, bio, dev, from);
}

SEC("raw_tp/block_split")
int BPF_PROG(raw_split, struct bio *bio, unsigned int new_sector)
{
	return put_split(UNCHECKED, bio, new_sector);
}

SEC("raw_tp/block_rq_insert")
int BPF_PROG(raw_rq_insert, struct request *rq)
{
	return put_rq(UNCHECKED, WIRE_RQ_INSERT, rq, ALL_BYTES, 0);
}

SEC("raw_tp/block_rq_issue")
int BPF_PROG(raw_rq_issue, struct request *rq)
{
	return put_rq(UNCHECKED, WIRE_RQ_ISSUE, rq, ALL_BYTES, 0);
}

SEC("raw_tp/block_rq_merge")
int BPF_PROG(raw_rq_merge, struct request *rq)
{
	return put_rq(UNCHECKED, WIRE_RQ_MERGE, rq, ALL_BYTES, 0);
}

SEC("raw_tp/block_rq_requeue")
int BPF_PROG(raw_rq_requeue, struct request *rq)
{
	return put_rq(UNCHECKED, WIRE_RQ_REQUEUE, rq, ALL_BYTES, 0);
}

SEC("raw_tp/block_rq_complete")
int BPF_PROG(raw_rq_complete, struct request *rq, __u8 error, unsigned int bytes)
{
	return put_rq(UNCHECKED, WIRE_RQ_COMPLETE, rq, bytes, error);
}
