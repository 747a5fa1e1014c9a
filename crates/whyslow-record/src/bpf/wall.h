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
#define LOOK_ON_CPU 1
#define LOOK_SAME 2	   /* it has not run since the last sample, which has the rest */
#define LOOK_OF_KERNEL 4   /* a kernel thread */
#define LOOK_COMPAT 8

struct look_head {
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
struct look {
	struct look_head head;
	__u64 runs; /* number of times it got a CPU; 0 if not counted */
	__u64 ip, sp, bp, lr; /* user registers */
	__s32 nr; /* system call, -1 if none */
	__u32 kernel; /* number of addresses */
};

struct look_room {
	struct look look;
	__u64 frames[FRAMES_MAX];
};

#define LOOK_STACK_BYTES (16 << 10)

/* Sample of a running thread, followed by kernel addresses and bytes of its user stack. */
struct wall_run {
	struct wire_head head;
	__u64 ip, sp, bp, lr;
	__u64 runs; /* as in a sample */
	__s32 nr;
	__u16 kernel; /* number of addresses */
	__u16 bytes;
};

struct run_room {
	struct wall_run run;
	char rest[FRAMES_BYTES + LOOK_STACK_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct look_room);
} look_rooms SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct run_room);
} run_rooms SEC(".maps");

/* State at the previous sample. */
struct looked {
	__u64 switches;
	__u64 is_told;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct looked);
} looked SEC(".maps");

#define THREAD_OF_KERNEL 0x200000

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
	struct look_room *room;
	struct looked *before;
	struct pt_regs *regs;
	__u32 zero = 0;
	__u64 bytes;
	long got;

	if (!task || !is_target(task->tgid))
		return 0;
	room = bpf_map_lookup_elem(&look_rooms, &zero);
	if (!room)
		return 0;
	room->look.head.ts = bpf_ktime_get_ns();
	room->look.head.switches = BPF_CORE_READ(task, nvcsw) + BPF_CORE_READ(task, nivcsw);
	room->look.head.ran = BPF_CORE_READ(task, se.sum_exec_runtime);
	room->look.head.tid = task->pid;
	room->look.head.pid = task->tgid;
	room->look.head.state = state_now(task);
	room->look.head.flags = is_on_cpu(task) ? LOOK_ON_CPU : 0;
	if (room->look.head.state & STATE_DEAD)
		return 0;
	before = bpf_task_storage_get(&looked, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (room->look.head.flags & LOOK_ON_CPU) {
		room->look.head.len = sizeof(struct look_head);
		if (before)
			before->is_told = 0;
		bpf_seq_write(to, room, sizeof(struct look_head));
		return 0;
	}
	if (before && before->is_told && before->switches == room->look.head.switches) {
		room->look.head.flags |= LOOK_SAME;
		room->look.head.len = sizeof(struct look_head);
		bpf_seq_write(to, room, sizeof(struct look_head));
		return 0;
	}
	room->look.runs = runs_of(task);
	if (BPF_CORE_READ(task, flags) & THREAD_OF_KERNEL) {
		room->look.head.flags |= LOOK_OF_KERNEL;
		room->look.ip = room->look.sp = room->look.bp = room->look.lr = 0;
		room->look.nr = -1;
	} else {
		regs = (struct pt_regs *)bpf_task_pt_regs(task);
		FILL_REGISTERS(&room->look, regs);
		if (is_compat(task))
			room->look.head.flags |= LOOK_COMPAT;
	}
	got = stack_bytes(bpf_get_task_stack(task, room->frames, FRAMES_BYTES, 0));
	bytes = got;
	barrier_var(bytes);
	if (bytes > FRAMES_BYTES)
		return 0;
	room->look.kernel = bytes / sizeof(__u64);
	room->look.head.len = sizeof(struct look) + bytes;
	/* A sample that does not fit into the reader's buffer is requested again. */
	if (!bpf_seq_write(to, room, sizeof(struct look) + bytes) && before) {
		before->switches = room->look.head.switches;
		before->is_told = 1;
	}
	return 0;
}

/* As much of the stack as can be read without page faults. */
static __always_inline __u32 copy_stack(char *to, __u64 sp)
{
	if (!bpf_probe_read_user(to, LOOK_STACK_BYTES, (void *)sp))
		return LOOK_STACK_BYTES;
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
	struct run_room *room;
	struct pt_regs *regs;
	__u32 zero = 0;
	__u64 kernel, all;
	void *ring;

	if (!task->pid || !is_target(task->tgid))
		return 0;
	room = bpf_map_lookup_elem(&run_rooms, &zero);
	if (!room)
		return 0;
	fill_head(&room->run.head, WALL_RUNS, 0, bpf_get_smp_processor_id(), bpf_ktime_get_ns());
	room->run.bytes = 0;
	room->run.ip = room->run.sp = room->run.bp = room->run.lr = 0;
	room->run.nr = -1;
	room->run.runs = runs_of(task);
	kernel = stack_bytes(bpf_get_stack(context, room->rest, FRAMES_BYTES, 0));
	barrier_var(kernel);
	if (kernel > FRAMES_BYTES)
		return 0;
	room->run.kernel = kernel / sizeof(__u64);
	all = kernel;
	if (!(task->flags & THREAD_OF_KERNEL)) {
		regs = (struct pt_regs *)bpf_task_pt_regs(task);
		FILL_REGISTERS(&room->run, regs);
		if (is_compat(task)) {
			room->run.head.flags |= WIRE_COMPAT;
		} else {
			room->run.bytes = copy_stack(room->rest + kernel, room->run.sp);
			all += room->run.bytes;
		}
		/* A thread in user mode is in no call. */
		if (!kernel)
			room->run.nr = -1;
	}
	ring = ring_here(room->run.head.cpu);
	if (!ring)
		return 0;
	barrier_var(all);
	if (all > FRAMES_BYTES + LOOK_STACK_BYTES)
		return 0;
	room->run.head.len = sizeof(room->run) + all;
	if (bpf_ringbuf_output(ring, room, sizeof(room->run) + all, BPF_RB_NO_WAKEUP))
		lose(room->run.head.ts);
	return 0;
}
