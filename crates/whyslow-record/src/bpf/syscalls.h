/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * System calls: one record each, at the return. A call that blocks or takes long is also reported
 * when that happens. So no record refers to a start long ago, and a call that never returns is
 * known nevertheless.
 *
 * Arguments are read from the registers saved at the entry. What they point at is read at the
 * entry, before the call or another thread changes it.
 */

#define CALLS_MAX 512
#define TEXT_MAX 4096
#define ADDRESS_MAX 128

/* Arguments of a system call, by position from 1 on, 0 for none. */
struct call_spec {
	__u8 argc;
	__u8 text;
	__u8 text2;
	__u8 address;     /* socket address, its length in the next argument */
	__u8 address_out; /* address written by the call, the next argument points at its length */
	__u8 fds_out;     /* two descriptors written by the call */
	__u8 zero[2];
};

const volatile struct call_spec call_specs[CALLS_MAX] = {};
const volatile struct call_spec compat_specs[CALLS_MAX] = {};

/* The current call of a thread. */
struct call {
	__u64 entered; /* 0 outside */
	__u32 nr;
	__u16 flags; /* flags of the record */
	__u8 has_fills; /* it has filled the page cache */
	__u8 unread; /* strings not resident at the entry, by bit */
};

/*
 * Most threads have a slot by thread id: a task storage lookup takes a tenth of the time budget of
 * a record. A slot belongs to its owner until that leaves the CPU for the last time; threads task
 * slot is taken use task storage.
 */
struct slot {
	__u64 owner; /* address of the task, 0 for none */
	struct call call;
	__u64 zero;
};

#define SLOTS_MAX (1 << 16)

/* Writes the page-cache fills of a thread that are not written yet (`fills.h`). */
static __always_inline void end_fills(struct task_struct *task);

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS_MAX);
	__type(key, __u32);
	__type(value, struct slot);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct call);
} calls SEC(".maps");

static __always_inline struct slot *slot_of(__u32 tid)
{
	__u32 place = tid & (SLOTS_MAX - 1);

	return bpf_map_lookup_elem(&slots, &place);
}

/* NULL if the thread is in no call that was seen. */
static __always_inline struct call *call_of(struct task_struct *task)
{
	struct slot *slot = slot_of(task->pid);

	if (slot && slot->owner == (__u64)task)
		return &slot->call;
	return bpf_task_storage_get(&calls, task, 0, 0);
}

static __always_inline struct call *make_call(struct task_struct *task)
{
	struct slot *slot = slot_of(task->pid);

	if (slot) {
		if (slot->owner == (__u64)task)
			return &slot->call;
		if (!slot->owner && !__sync_val_compare_and_swap(&slot->owner, 0, (__u64)task))
			return &slot->call;
	}
	return bpf_task_storage_get(&calls, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* Also before a thread starts: an earlier task may have had the same address. */
static __always_inline void give_up_slot(__u64 task, __u32 tid)
{
	struct slot *slot = slot_of(tid);

	if (slot && task && slot->owner == task) {
		slot->call.entered = 0;
		slot->owner = 0;
	}
}

/* A thread that calls exec takes the id of its process. */
static __always_inline void move_call(struct task_struct *task, __u32 old_tid)
{
	struct slot *old = slot_of(old_tid);
	struct call *call;

	if (old_tid == task->pid || !old || old->owner != (__u64)task)
		return;
	call = make_call(task);
	if (call)
		*call = old->call;
	old->call.entered = 0;
	old->owner = 0;
}

/* A string or bytes, under construction. */
struct scratch {
	struct wire_head head;
	__u32 arg;
	__u32 size;
	char bytes[TEXT_MAX + 8];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

#define TS_COMPAT 2

static __always_inline bool is_compat(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return task->thread_info.status & TS_COMPAT;
#else
	return false;
#endif
}

static __always_inline const volatile struct call_spec *spec_of(__u32 nr, bool compat)
{
	static const volatile struct call_spec unknown = {.argc = WIRE_ARGS_ALL};

	if (nr >= CALLS_MAX)
		return &unknown;
	return compat ? &compat_specs[nr] : &call_specs[nr];
}

static __always_inline __u64 arg_of(struct pt_regs *regs, bool compat, int place)
{
#if defined(__TARGET_ARCH_x86)
	if (compat)
		switch (place) {
		case 1: return (__u32)regs->bx;
		case 2: return (__u32)regs->cx;
		case 3: return (__u32)regs->dx;
		case 4: return (__u32)regs->si;
		case 5: return (__u32)regs->di;
		case 6: return (__u32)regs->bp;
		default: return 0;
		}
	switch (place) {
	case 1: return regs->di;
	case 2: return regs->si;
	case 3: return regs->dx;
	case 4: return regs->r10;
	case 5: return regs->r8;
	case 6: return regs->r9;
	default: return 0;
	}
#else
	if (place == 1)
		return regs->orig_x0;
	return place > 1 && place <= 6 ? regs->regs[place - 1] : 0;
#endif
}

/* Passes on `size` bytes of the scratch buffer. */
static __always_inline void put_scratch(struct scratch *scratch, __u16 kind, __u32 arg, __u32 size)
{
	__u32 cpu = bpf_get_smp_processor_id();
	__u64 now = bpf_ktime_get_ns();
	void *ring = ring_here(cpu);
	__u64 bytes = size, len;

	/* The compiler knows the bound and removes the comparison; verifiers before 6.2 do not. */
	barrier_var(bytes);
	if (!ring || bytes > TEXT_MAX)
		return;
	len = (sizeof(struct wire_text) + bytes + 7) & ~7ULL;
	fill_head(&scratch->head, kind, len, cpu, now);
	scratch->arg = arg;
	scratch->size = size;
	if (bpf_ringbuf_output(ring, scratch, len, BPF_RB_NO_WAKEUP))
		lose(now);
}

static __always_inline bool put_text(__u32 arg, const void *text)
{
	__u32 zero = 0;
	struct scratch *scratch = bpf_map_lookup_elem(&scratches, &zero);
	long size;

	if (!scratch)
		return true;
	size = bpf_probe_read_user_str(scratch->bytes, TEXT_MAX, text);
	if (size < 0)
		return false;
	put_scratch(scratch, WIRE_TEXT, arg, size > 0 ? size - 1 : 0);
	return true;
}

static __always_inline void put_bytes(__u32 arg, const void *bytes, __u32 size)
{
	__u32 zero = 0;
	struct scratch *scratch = bpf_map_lookup_elem(&scratches, &zero);

	if (!scratch)
		return;
	if (size >= ADDRESS_MAX)
		size = ADDRESS_MAX - 1;
	/* For the verifier: the compiler would remove the bound. */
	barrier_var(size);
	size &= ADDRESS_MAX - 1;
	if (bpf_probe_read_user(scratch->bytes, size, bytes) == 0)
		put_scratch(scratch, WIRE_BYTES, arg, size);
}

static __always_inline void put_texts(const volatile struct call_spec *spec, struct pt_regs *regs,
				      struct call *call, bool compat)
{
	if (spec->text && !put_text(spec->text, (void *)arg_of(regs, compat, spec->text)))
		call->unread |= 1;
	if (spec->text2 && !put_text(spec->text2, (void *)arg_of(regs, compat, spec->text2)))
		call->unread |= 2;
	if (spec->address)
		put_bytes(spec->address, (void *)arg_of(regs, compat, spec->address),
			  arg_of(regs, compat, spec->address + 1));
}

static __always_inline void fill_call(struct wire_syscall *record, struct call *call,
				      struct pt_regs *regs, bool compat, __u32 argc)
{
	record->entered = call->entered;
	record->nr = call->nr;
	record->argc = argc;
	record->head.flags = call->flags;
	record->args[0] = arg_of(regs, compat, 1);
	record->args[1] = arg_of(regs, compat, 2);
	record->args[2] = arg_of(regs, compat, 3);
	if (argc <= WIRE_ARGS_FEW)
		return;
	record->args[3] = arg_of(regs, compat, 4);
	record->args[4] = arg_of(regs, compat, 5);
	record->args[5] = arg_of(regs, compat, 6);
}

#define SYSCALL_BYTES(argc) (sizeof(struct wire_syscall) + (argc) * sizeof(__u64))

/* `ret` only at the return. Returns whether it fit into the ring. */
static __always_inline bool put_call(__u16 kind, struct call *call, struct pt_regs *regs,
				     bool compat, __s64 ret, struct task_struct *task)
{
	struct wire_syscall *record;

	if (spec_of(call->nr, compat)->argc <= WIRE_ARGS_FEW) {
		record = begin_record_of(kind, SYSCALL_BYTES(WIRE_ARGS_FEW), task);
		if (!record)
			return false;
		fill_call(record, call, regs, compat, WIRE_ARGS_FEW);
	} else {
		record = begin_record_of(kind, SYSCALL_BYTES(WIRE_ARGS_ALL), task);
		if (!record)
			return false;
		fill_call(record, call, regs, compat, WIRE_ARGS_ALL);
	}
	record->ret = ret;
	end_record(record);
	return true;
}

/* Reports the current call of a thread, unless that was done before for the same spool. */
static __always_inline void report_call(struct task_struct *task, __u64 longer_than, __u16 flags,
				      bool again)
{
	struct call *call = call_of(task);
	bool reported;

	if (!call || !call->entered || (call->flags & WIRE_ENTRY_RECORDED && !again))
		return;
	if (longer_than && bpf_ktime_get_ns() - call->entered < longer_than)
		return;
	call->flags |= flags;
	reported = put_call(WIRE_SYSCALL_ENTER, call, (struct pt_regs *)bpf_task_pt_regs(task),
			call->flags & WIRE_COMPAT, 0, task);
	/* A record that did not fit was not reported: then the return has to report the entry. */
	call->flags = (call->flags & ~flags) | (reported ? WIRE_ENTRY_RECORDED : 0);
}

static __always_inline int begin_call(struct pt_regs *regs, long nr)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const volatile struct call_spec *spec;
	struct call *call;
	bool compat;

	if (!is_target(task->tgid))
		return 0;
	call = make_call(task);
	if (!call) {
		lose(bpf_ktime_get_ns());
		return 0;
	}
	compat = is_compat(task);
	call->nr = nr;
	call->flags = compat ? WIRE_COMPAT : 0;
	call->unread = 0;
	call->has_fills = 0;
	call->entered = bpf_ktime_get_ns();
	spec = spec_of(nr, compat);
	if (spec->text || spec->address)
		put_texts(spec, regs, call, compat);
	return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_sys_enter, struct pt_regs *regs, long nr)
{
	return begin_call(regs, nr);
}

static __always_inline void put_outcome(const volatile struct call_spec *spec,
					struct pt_regs *regs, bool compat)
{
	if (spec->address_out) {
		__u32 size = 0;
		void *place = (void *)arg_of(regs, compat, spec->address_out + 1);

		if (bpf_probe_read_user(&size, sizeof(size), place) == 0)
			put_bytes(spec->address_out,
				  (void *)arg_of(regs, compat, spec->address_out), size);
	}
	if (spec->fds_out)
		put_bytes(spec->fds_out, (void *)arg_of(regs, compat, spec->fds_out),
			  2 * sizeof(__s32));
}

static __always_inline int end_call(void *context, struct pt_regs *regs, long ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct call *call = call_of(task);
	const volatile struct call_spec *spec;
	bool compat, reported;

	if (!call || !call->entered)
		return 0;
	if (wants_fills && call->has_fills)
		end_fills(task);
	/* As at the entry: exec may change between 32 and 64 bits. */
	compat = call->flags & WIRE_COMPAT;
	reported = call->flags & WIRE_ENTRY_RECORDED;
	if (call_min_ns && !reported && bpf_ktime_get_ns() - call->entered < call_min_ns) {
		call->entered = 0;
		return 0;
	}
	spec = spec_of(call->nr, compat);
	if (call->unread & 1)
		put_text(spec->text, (void *)arg_of(regs, compat, spec->text));
	if (call->unread & 2)
		put_text(spec->text2, (void *)arg_of(regs, compat, spec->text2));
	if (ret >= 0 && (spec->address_out || spec->fds_out))
		put_outcome(spec, regs, compat);
	if (call->flags & WIRE_SLEPT)
		put_user_stack(context, call->entered);
	put_call(WIRE_SYSCALL, call, regs, compat, ret, task);
	call->entered = 0;
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long ret)
{
	return end_call(ctx, regs, ret);
}

/* Long calls are reported before they end, even if no other thread needs the CPU. */
#define LONG_CALL_NS (20 * 1000 * 1000)

SEC("perf_event")
int on_tick(void *context)
{
	report_call(bpf_get_current_task_btf(), LONG_CALL_NS, 0, false);
	return 0;
}
