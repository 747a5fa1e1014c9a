/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Stacks of threads that were off-CPU for long, and of running ones.
 *
 * A thread's kernel stack is taken when it is scheduled again: it is still the one with which it
 * blocked, and only then is the duration known. A user stack can only be taken by the thread
 * itself, so that is done when its system call returns.
 */

struct absence {
	__u64 since; /* 0 if it is on CPU, or the wait is not recorded */
	__u32 state;
	__u32 zero;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct absence);
} absences SEC(".maps");

#define STATE_DEAD 0x80
/* An idle kernel thread, which does not wait for anything. */
#define STATE_IDLE 0x400

static __always_inline void leave(struct task_struct *prev, __u32 state, __u64 now)
{
	struct absence *absence;

	if (!prev->pid || state & STATE_DEAD || !is_target(prev->tgid))
		return;
	absence = bpf_task_storage_get(&absences, prev, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!absence) {
		lose_wait(now);
		return;
	}
	absence->since = state != WIRE_PREEMPTED && state & STATE_IDLE ? 0 : now;
	absence->state = state;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_back, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int state)
{
	__u64 now = bpf_ktime_get_ns(), since;
	struct absence *absence;
	struct stack_buffer *buffer;
	struct call *call;
	__u32 bytes;

	leave(prev, preempt ? WIRE_PREEMPTED : state, now);
	absence = bpf_task_storage_get(&absences, next, 0, 0);
	if (!absence || !absence->since)
		return 0;
	since = absence->since;
	absence->since = 0;
	if (now - since < stack_min_ns)
		return 0;
	buffer = stack_buffer(PLACE_AWAY);
	if (!buffer)
		return 0;
	bytes = stack_bytes(bpf_get_task_stack(next, buffer->frames, FRAMES_BYTES, 0));
	fill_head(&buffer->stack.head, WIRE_STACK, 0, bpf_get_smp_processor_id(), now);
	buffer->stack.head.tid = next->pid;
	buffer->stack.head.pid = next->tgid;
	buffer->stack.since = since;
	buffer->stack.state = absence->state;
	buffer->stack.kernel = bytes / sizeof(__u64);
	buffer->stack.user = 0;
	call = call_of(next);
	if (call && call->entered) {
		call->flags |= WIRE_SLEPT;
		buffer->stack.head.flags = WIRE_SLEPT;
	}
	put_buffer(&buffer->stack.head, sizeof(buffer->stack), bytes);
	return 0;
}

SEC("perf_event")
int on_sample(void *context)
{
	__u64 ids = bpf_get_current_pid_tgid();
	struct stack_buffer *buffer;
	__u32 kernel, user;

	if (!(__u32)ids || !is_target(ids >> 32))
		return 0;
	buffer = stack_buffer(PLACE_SAMPLE);
	if (!buffer)
		return 0;
	kernel = stack_bytes(bpf_get_stack(context, buffer->frames, FRAMES_BYTES, 0));
	barrier_var(kernel);
	if (kernel > FRAMES_BYTES)
		return 0;
	user = stack_bytes(bpf_get_stack(context, (char *)buffer->frames + kernel, FRAMES_BYTES,
					 BPF_F_USER_STACK));
	fill_head(&buffer->stack.head, WIRE_SAMPLE, 0, bpf_get_smp_processor_id(),
		  bpf_ktime_get_ns());
	buffer->stack.since = buffer->stack.head.ts - sample_ns;
	buffer->stack.state = 0;
	buffer->stack.kernel = kernel / sizeof(__u64);
	buffer->stack.user = user / sizeof(__u64);
	put_buffer(&buffer->stack.head, sizeof(buffer->stack), kernel + user);
	return 0;
}
