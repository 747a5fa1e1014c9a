/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Who runs, who wakes whom, and lives of threads. */

static __always_inline void put_switch(bool preempt, struct task_struct *prev,
				       struct task_struct *next, __u32 state)
{
	struct wire_switch *record;

	tell_call(prev, 0, 0, false);
	if (!wants_switches)
		return;
	record = BEGIN(struct wire_switch, WIRE_SWITCH);
	if (!record)
		return;
	record->head.tid = prev->pid;
	record->head.pid = prev->tgid;
	record->next_tid = next->pid;
	record->next_pid = next->tgid;
	record->prev_state = preempt ? WIRE_PREEMPTED : state;
	record->prev_prio = prev->prio;
	record->next_prio = next->prio;
	end_record(record);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int state)
{
	put_switch(preempt, prev, next, state);
	return 0;
}

/* Before 5.18 the state has to be looked up, and may have changed since. */
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch_old, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct task_struct___before_5_14 *old = (void *)prev;
	long state = 0;

	if (bpf_core_field_exists(prev->__state))
		state = prev->__state;
	else
		bpf_core_read(&state, sizeof(state), &old->state);
	put_switch(preempt, prev, next, state);
	return 0;
}

static __always_inline int put_wakeup(__u16 kind, struct task_struct *task)
{
	struct wire_wakeup *record = BEGIN(struct wire_wakeup, kind);

	if (!record)
		return 0;
	record->tid = task->pid;
	record->pid = task->tgid;
	record->prio = task->prio;
	record->target_cpu = 0xffff;
	record->zero = 0;
	end_record(record);
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	return put_wakeup(WIRE_WAKING, task);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_wakeup_new, struct task_struct *task)
{
	return put_wakeup(WIRE_WAKEUP_NEW, task);
}

static __always_inline int put_task(__u16 kind, struct task_struct *task, const char *comm)
{
	struct wire_task *record = BEGIN(struct wire_task, kind);

	if (!record)
		return 0;
	record->tid = task->pid;
	record->pid = task->tgid;
	bpf_probe_read_kernel(record->comm, sizeof(record->comm), comm);
	end_record(record);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	if (only_targets && child->tgid != parent->tgid) {
		__u32 pid = parent->tgid;

		if (bpf_map_lookup_elem(&targets, &pid))
			add_target(child->tgid);
	}
	return put_task(WIRE_FORK, child, child->comm);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_tid, struct linux_binprm *program)
{
	__u32 zero = 0;
	struct scratch *scratch = bpf_map_lookup_elem(&scratches, &zero);
	long size;

	if (!scratch)
		return 0;
	size = bpf_probe_read_kernel_str(scratch->bytes, TEXT_MAX, program->filename);
	put_scratch(scratch, WIRE_EXEC, old_tid, size > 0 ? size - 1 : 0);
	put_program(task, true);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	/* It may have become somebody else since it began. */
	if (task->pid == task->tgid && !(task->flags & PF_KTHREAD))
		put_program(task, false);
	put_io(task);
	/* Now, because the id may be another process's before the last of this one is freed. */
	if (only_targets && task->signal->live.counter == 0) {
		__u32 pid = task->tgid;

		bpf_map_delete_elem(&targets, &pid);
	}
	return put_task(WIRE_EXIT, task, task->comm);
}

SEC("tp_btf/sched_process_free")
int BPF_PROG(on_free, struct task_struct *task)
{
	return put_task(WIRE_FREE, task, task->comm);
}

SEC("tp_btf/task_rename")
int BPF_PROG(on_rename, struct task_struct *task, const char *comm)
{
	if (only_targets)
		add_if_named(task->tgid, comm);
	return put_task(WIRE_COMM, task, comm);
}

/* Calls that have not returned when a spool ends; all of them if another one begins then. */
SEC("iter/task")
int on_end(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;

	if (task)
		tell_call(task, 0, WIRE_ELSEWHERE, is_turning);
	return 0;
}
