/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Waits for contended kernel locks: one record each, at its end and if it was long.
 *
 * A thread can wait for a spin lock while it waits for another lock, and so can an interrupt
 * meanwhile; waits are therefore kept on a stack. An end that was never reported (the kernel does
 * not run a program recursively) leaves its start behind, which the next end below it removes.
 */

#define DEPTH_MAX 4
#define LCB_F_SPIN 1

struct wait {
	__u64 lock;
	__u64 since;
	__u32 flags;
	__u32 zero;
};

struct waits {
	__u32 depth;
	__u32 zero;
	struct wait of[DEPTH_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct waits);
} lock_waits SEC(".maps");

/* Index of the wait for a lock, from the top; DEPTH_MAX if there is none. */
static __always_inline __u32 place_of(struct waits *waits, __u64 lock)
{
#pragma unroll
	for (int place = DEPTH_MAX - 1; place >= 0; place--)
		if (place < waits->depth && waits->of[place].lock == lock)
			return place;
	return DEPTH_MAX;
}

SEC("tp_btf/contention_begin")
int BPF_PROG(on_lock_wait, void *lock, unsigned int flags)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct waits *waits;
	__u32 place;

	if ((skip_spins && flags & LCB_F_SPIN) || !is_target(task->tgid))
		return 0;
	waits = bpf_task_storage_get(&lock_waits, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!waits) {
		lose_wait(bpf_ktime_get_ns());
		return 0;
	}
	place = place_of(waits, (__u64)lock);
	/* A thread that spins for a mutex in vain goes to sleep: that is one wait. */
	if (place < DEPTH_MAX) {
		waits->depth = place + 1;
		waits->of[place].flags = flags;
		return 0;
	}
	place = waits->depth;
	if (place >= DEPTH_MAX) {
		lose_wait(bpf_ktime_get_ns());
		place = 0;
	}
	/* For verifiers before 6.2, which do not track the comparison. */
	barrier_var(place);
	place &= DEPTH_MAX - 1;
	waits->of[place].lock = (__u64)lock;
	waits->of[place].flags = flags;
	waits->of[place].since = bpf_ktime_get_ns();
	waits->depth = place + 1;
	return 0;
}

SEC("tp_btf/contention_end")
int BPF_PROG(on_lock_end, void *lock, int ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct waits *waits = bpf_task_storage_get(&lock_waits, task, 0, 0);
	struct stack_buffer *buffer;
	struct wire_lock *record;
	__u64 now, since;
	__u32 place, bytes = 0;

	if (!waits)
		return 0;
	place = place_of(waits, (__u64)lock);
	if (place >= DEPTH_MAX)
		return 0;
	waits->depth = place;
	now = bpf_ktime_get_ns();
	since = waits->of[place].since;
	if (now - since < lock_min_ns)
		return 0;
	buffer = stack_buffer(PLACE_LOCK);
	if (!buffer)
		return 0;
	if (now - since >= lock_stack_min_ns)
		bytes = stack_bytes(bpf_get_stack(ctx, buffer->frames, FRAMES_BYTES, 0));
	record = &buffer->lock;
	fill_head(&record->head, WIRE_LOCK, 0, bpf_get_smp_processor_id(), now);
	record->since = since;
	record->lock = (__u64)lock;
	record->flags = waits->of[place].flags;
	record->ret = ret;
	record->kernel = bytes / sizeof(__u64);
	record->zero = 0;
	put_buffer(&record->head, sizeof(*record), bytes);
	return 0;
}
