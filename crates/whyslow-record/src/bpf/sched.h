/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Context switches, wakeups, and lifetimes of threads. */

/* `prev` is still current, so its task storage may be used; of the next one only ids are known. */
static __always_inline int put_switch(struct task_struct *prev, __u32 state, __u32 next_tid,
				      __u32 next_pid, __u16 next_prio)
{
	struct wire_switch *record;

	report_call(prev, 0, 0, false);
	if (state != WIRE_PREEMPTED && state & STATE_DEAD)
		give_up_slot((__u64)prev, prev->pid);
	if (!wants_switches)
		return 0;
	record = begin_record_of(WIRE_SWITCH, sizeof(*record), prev);
	if (!record)
		return 0;
	record->next_tid = next_tid;
	record->next_pid = next_pid;
	record->prev_state = state;
	record->prev_prio = prev->prio;
	record->next_prio = next_prio;
	end_record(record);
	return 0;
}

/* Read from the task itself: it may have changed since. */
static __always_inline __u32 state_of(struct task_struct *task)
{
	struct task_struct___before_5_14 *old = (void *)task;

	if (bpf_core_field_exists(task->__state))
		return task->__state;
	return BPF_CORE_READ(old, state);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int state)
{
	return put_switch(prev, preempt ? WIRE_PREEMPTED : state, next->pid, next->tgid,
			  next->prio);
}

/* Before 5.18 the state is not an argument. */
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch_old, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	return put_switch(prev, preempt ? WIRE_PREEMPTED : state_of(prev), next->pid, next->tgid,
			  next->prio);
}

static __always_inline int put_wakeup(__u16 kind, __u32 tid, __u32 pid, __u16 prio)
{
	struct wire_wakeup *record = BEGIN(struct wire_wakeup, kind);

	if (!record)
		return 0;
	record->tid = tid;
	record->pid = pid;
	record->prio = prio;
	record->head.flags = context_here();
	record->target_cpu = 0xffff;
	record->zero = 0;
	end_record(record);
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	return put_wakeup(WIRE_WAKING, task->pid, task->tgid, task->prio);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_wakeup_new, struct task_struct *task)
{
	return put_wakeup(WIRE_WAKEUP_NEW, task->pid, task->tgid, task->prio);
}

/* `comm` may be NULL: then there is no name. */
static __always_inline int put_task(__u16 kind, __u32 tid, __u32 pid, const char *comm)
{
	struct wire_task *record = BEGIN(struct wire_task, kind);

	if (!record)
		return 0;
	record->tid = tid;
	record->pid = pid;
	bpf_probe_read_kernel(record->comm, sizeof(record->comm), comm);
	end_record(record);
	return 0;
}

/* Child of the current process. `task` is the address of the new one, 0 if unknown. */
static __always_inline int put_fork(__u64 task, __u32 tid, __u32 pid, const char *comm)
{
	__u32 parent = bpf_get_current_pid_tgid() >> 32;

	give_up_slot(task, tid);
	if (only_targets && pid != parent && bpf_map_lookup_elem(&targets, &parent))
		add_target(pid);
	return put_task(WIRE_FORK, tid, pid, comm);
}

static __always_inline int put_exec(__u32 old_tid, const char *program)
{
	__u32 zero = 0;
	struct scratch *scratch = bpf_map_lookup_elem(&scratches, &zero);
	long size;

	move_call(bpf_get_current_task_btf(), old_tid);
	if (!scratch)
		return 0;
	size = bpf_probe_read_kernel_str(scratch->bytes, TEXT_MAX, program);
	put_scratch(scratch, WIRE_EXEC, old_tid, size > 0 ? size - 1 : 0);
	put_program(bpf_get_current_task_btf(), true);
	return 0;
}

/* Exit of the current thread. */
static __always_inline int put_exit(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	/* Its credentials may have changed since it started. */
	if (task->pid == task->tgid && !(task->flags & PF_KTHREAD))
		put_program(task, false);
	put_io(task);
	if (wants_fills)
		end_fills(task);
	/* Now, because the pid may be reused before the last thread of this process is freed. */
	if (only_targets && BPF_CORE_READ(task, signal, live.counter) == 0) {
		__u32 pid = task->tgid;

		bpf_map_delete_elem(&targets, &pid);
	}
	return put_task(WIRE_EXIT, task->pid, task->tgid, task->comm);
}

static __always_inline int put_rename(__u32 tid, __u32 pid, const char *comm)
{
	if (only_targets)
		add_if_named(pid, comm);
	return put_task(WIRE_COMM, tid, pid, comm);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	return put_fork((__u64)child, child->pid, child->tgid, child->comm);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_tid, struct linux_binprm *program)
{
	return put_exec(old_tid, program->filename);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	return put_exit();
}

SEC("tp_btf/sched_process_free")
int BPF_PROG(on_free, struct task_struct *task)
{
	return put_task(WIRE_FREE, task->pid, task->tgid, task->comm);
}

SEC("tp_btf/task_rename")
int BPF_PROG(on_rename, struct task_struct *task, const char *comm)
{
	return put_rename(task->pid, task->tgid, comm);
}

/*
 * Calls that have not returned, and page-cache fills, when a spool ends; calls reported before as
 * well if another spool starts then.
 */
SEC("iter/task")
int on_end(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;

	if (!task)
		return 0;
	if (wants_fills)
		end_fills(task);
	report_call(task, 0, WIRE_ELSEWHERE, is_rotating);
	return 0;
}
