/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Wall-clock samples of all threads: the recorder reads an iterator each interval, which reports
 * the state of every thread, and the stacks of those off-CPU. Where a running thread is, only its
 * own CPU knows, so ticks of the CPUs take its stack at the same rate.
 *
 * None of these records goes to the spool unchanged: the recorder adds the user frames
 * (`src/wall`).
 */

/* Kind of a record for the recorder itself. */
#define WALL_RUNS 61

/* Flags of a sample. */
#define SAMPLE_ON_CPU 1
#define SAMPLE_SAME 2	   /* it has not run since the last sample, which has the rest */
#define SAMPLE_KERNEL_THREAD 4   /* a kernel thread */
#define SAMPLE_COMPAT 8

struct thread_sample_head {
	__u64 ts;
	__u64 switches; /* number of times it left the CPU */
	__u64 ran;	/* CPU time in ns, up to the last update */
	__u32 tid;
	__u32 pid;
	__u32 state;
	__u16 len; /* bytes, including this */
	__u16 flags;
};

/* Sample of an off-CPU thread, followed by kernel addresses. */
struct thread_sample {
	struct thread_sample_head head;
	__u64 runs; /* number of times it got a CPU; 0 if not counted */
	__u64 ip, sp, bp, lr; /* user registers */
	__s32 nr; /* system call, -1 if none */
	__u32 kernel; /* number of addresses */
};

struct sample_buffer {
	struct thread_sample sample;
	__u64 frames[FRAMES_MAX];
};

#define SAMPLE_STACK_BYTES (16 << 10)

/* Sample of a running thread, followed by kernel addresses and bytes of its user stack. */
struct wall_run {
	struct wire_head head;
	__u64 ip, sp, bp, lr;
	__u64 runs; /* as in a sample */
	__s32 nr;
	__u16 kernel; /* number of addresses */
	__u16 bytes;
};

struct run_buffer {
	struct wall_run run;
	char rest[FRAMES_BYTES + SAMPLE_STACK_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sample_buffer);
} sample_buffers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct run_buffer);
} run_buffers SEC(".maps");

/* State at the previous sample. */
struct last_sample {
	__u64 switches;
	__u64 is_reported;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct last_sample);
} last_samples SEC(".maps");

#define KERNEL_THREAD 0x200000

#if defined(__TARGET_ARCH_x86)
#define FILL_REGISTERS(to, from)                                                                   \
	({                                                                                         \
		(to)->ip = BPF_CORE_READ(from, ip);                                                \
		(to)->sp = BPF_CORE_READ(from, sp);                                                \
		(to)->bp = BPF_CORE_READ(from, bp);                                                \
		(to)->lr = 0;                                                                      \
		(to)->nr = BPF_CORE_READ(from, orig_ax);                                           \
	})
#elif defined(__TARGET_ARCH_arm64)
#define FILL_REGISTERS(to, from)                                                                   \
	({                                                                                         \
		(to)->ip = BPF_CORE_READ(from, pc);                                                \
		(to)->sp = BPF_CORE_READ(from, sp);                                                \
		(to)->bp = BPF_CORE_READ(from, regs[29]);                                          \
		(to)->lr = BPF_CORE_READ(from, regs[30]);                                          \
		(to)->nr = BPF_CORE_READ(from, syscallno);                                         \
	})
#endif

static __always_inline __u32 state_now(struct task_struct *task)
{
	struct task_struct___before_5_14 *old = (void *)task;

	if (bpf_core_field_exists(task->__state))
		return BPF_CORE_READ(task, __state);
	return BPF_CORE_READ(old, state);
}

static __always_inline bool is_on_cpu(struct task_struct *task)
{
	/* On a machine with one CPU, the recorder itself is running. */
	return bpf_core_field_exists(task->on_cpu) && BPF_CORE_READ(task, on_cpu);
}

static __always_inline __u64 runs_of(struct task_struct *task)
{
	if (!bpf_core_field_exists(task->sched_info.pcount))
		return 0;
	return BPF_CORE_READ(task, sched_info.pcount);
}

SEC("iter/task")
int on_look(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	struct seq_file *to = context->meta->seq;
	struct sample_buffer *buffer;
	struct last_sample *before;
	struct pt_regs *regs;
	__u32 zero = 0;
	__u64 bytes;
	long got;

	if (!task || !is_target(task->tgid))
		return 0;
	buffer = bpf_map_lookup_elem(&sample_buffers, &zero);
	if (!buffer)
		return 0;
	buffer->sample.head.ts = bpf_ktime_get_ns();
	buffer->sample.head.switches = BPF_CORE_READ(task, nvcsw) + BPF_CORE_READ(task, nivcsw);
	buffer->sample.head.ran = BPF_CORE_READ(task, se.sum_exec_runtime);
	buffer->sample.head.tid = task->pid;
	buffer->sample.head.pid = task->tgid;
	buffer->sample.head.state = state_now(task);
	buffer->sample.head.flags = is_on_cpu(task) ? SAMPLE_ON_CPU : 0;
	if (buffer->sample.head.state & STATE_DEAD)
		return 0;
	before = bpf_task_storage_get(&last_samples, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (buffer->sample.head.flags & SAMPLE_ON_CPU) {
		buffer->sample.head.len = sizeof(struct thread_sample_head);
		if (before)
			before->is_reported = 0;
		bpf_seq_write(to, buffer, sizeof(struct thread_sample_head));
		return 0;
	}
	if (before && before->is_reported && before->switches == buffer->sample.head.switches) {
		buffer->sample.head.flags |= SAMPLE_SAME;
		buffer->sample.head.len = sizeof(struct thread_sample_head);
		bpf_seq_write(to, buffer, sizeof(struct thread_sample_head));
		return 0;
	}
	buffer->sample.runs = runs_of(task);
	if (BPF_CORE_READ(task, flags) & KERNEL_THREAD) {
		buffer->sample.head.flags |= SAMPLE_KERNEL_THREAD;
		buffer->sample.ip = buffer->sample.sp = buffer->sample.bp = buffer->sample.lr = 0;
		buffer->sample.nr = -1;
	} else {
		regs = (struct pt_regs *)bpf_task_pt_regs(task);
		FILL_REGISTERS(&buffer->sample, regs);
		if (is_compat(task))
			buffer->sample.head.flags |= SAMPLE_COMPAT;
	}
	got = stack_bytes(bpf_get_task_stack(task, buffer->frames, FRAMES_BYTES, 0));
	bytes = got;
	barrier_var(bytes);
	if (bytes > FRAMES_BYTES)
		return 0;
	buffer->sample.kernel = bytes / sizeof(__u64);
	buffer->sample.head.len = sizeof(struct thread_sample) + bytes;
	/* A sample that does not fit into the reader's buffer is requested again. */
	if (!bpf_seq_write(to, buffer, sizeof(struct thread_sample) + bytes) && before) {
		before->switches = buffer->sample.head.switches;
		before->is_reported = 1;
	}
	return 0;
}

/* As much of the stack as can be read without page faults. */
static __always_inline __u32 copy_stack(char *to, __u64 sp)
{
	if (!bpf_probe_read_user(to, SAMPLE_STACK_BYTES, (void *)sp))
		return SAMPLE_STACK_BYTES;
	if (!bpf_probe_read_user(to, 4096, (void *)sp))
		return 4096;
	if (!bpf_probe_read_user(to, 1024, (void *)sp))
		return 1024;
	return bpf_probe_read_user(to, 256, (void *)sp) ? 0 : 256;
}

SEC("perf_event")
int on_wall(void *context)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct run_buffer *buffer;
	struct pt_regs *regs;
	__u32 zero = 0;
	__u64 kernel, all;
	void *ring;

	if (!task->pid || !is_target(task->tgid))
		return 0;
	buffer = bpf_map_lookup_elem(&run_buffers, &zero);
	if (!buffer)
		return 0;
	fill_head(&buffer->run.head, WALL_RUNS, 0, bpf_get_smp_processor_id(), bpf_ktime_get_ns());
	buffer->run.bytes = 0;
	buffer->run.ip = buffer->run.sp = buffer->run.bp = buffer->run.lr = 0;
	buffer->run.nr = -1;
	buffer->run.runs = runs_of(task);
	kernel = stack_bytes(bpf_get_stack(context, buffer->rest, FRAMES_BYTES, 0));
	barrier_var(kernel);
	if (kernel > FRAMES_BYTES)
		return 0;
	buffer->run.kernel = kernel / sizeof(__u64);
	all = kernel;
	if (!(task->flags & KERNEL_THREAD)) {
		regs = (struct pt_regs *)bpf_task_pt_regs(task);
		FILL_REGISTERS(&buffer->run, regs);
		if (is_compat(task)) {
			buffer->run.head.flags |= WIRE_COMPAT;
		} else {
			buffer->run.bytes = copy_stack(buffer->rest + kernel, buffer->run.sp);
			all += buffer->run.bytes;
		}
		/* A thread in user mode is in no call. */
		if (!kernel)
			buffer->run.nr = -1;
	}
	ring = ring_here(buffer->run.head.cpu);
	if (!ring)
		return 0;
	barrier_var(all);
	if (all > FRAMES_BYTES + SAMPLE_STACK_BYTES)
		return 0;
	buffer->run.head.len = sizeof(buffer->run) + all;
	if (bpf_ringbuf_output(ring, buffer, sizeof(buffer->run) + all, BPF_RB_NO_WAKEUP))
		lose(buffer->run.head.ts);
	return 0;
}
