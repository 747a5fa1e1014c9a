/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Stack records: only as many addresses as there are. */
#ifndef WHYSLOW_STACKS_H
#define WHYSLOW_STACKS_H

#define FRAMES_MAX 127
#define FRAMES_BYTES (FRAMES_MAX * sizeof(__u64))

/* A stack under construction. The programs that build them can interrupt each other. */
enum stack_place { PLACE_AWAY, PLACE_USER, PLACE_SAMPLE, PLACE_LOCK, PLACES };

struct stack_buffer {
	/* Either ends where the addresses start. */
	union {
		struct wire_lock lock;
		struct {
			__u64 before[2];
			struct wire_stack stack;
		};
	};
	__u64 frames[2 * FRAMES_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PLACES);
	__type(key, __u32);
	__type(value, struct stack_buffer);
} stack_buffers SEC(".maps");

static __always_inline struct stack_buffer *stack_buffer(__u32 place)
{
	return bpf_map_lookup_elem(&stack_buffers, &place);
}

/* Bytes of a stack; 0 if it could not be taken. */
static __always_inline __u32 stack_bytes(long got)
{
	return got > 0 && got <= FRAMES_BYTES ? got : 0;
}

_Static_assert(sizeof(struct wire_lock) == sizeof(struct wire_stack) + 16, "no gap");

/* Passes on a record: a head of `size` bytes, followed by the addresses. */
static __always_inline void put_buffer(struct wire_head *head, const __u32 size, __u32 bytes)
{
	void *ring = ring_here(head->cpu);
	__u64 all;

	if (!ring)
		return;
	/* For the verifier: the compiler would remove the bound. */
	all = bytes;
	barrier_var(all);
	if (all > 2 * FRAMES_BYTES)
		return;
	head->len = size + all;
	if (bpf_ringbuf_output(ring, head, size + all, BPF_RB_NO_WAKEUP))
		lose(head->ts);
}

/* User stack of a thread in a system call: only the thread itself can take it. */
static __always_inline void put_user_stack(void *context, __u64 entered)
{
	struct stack_buffer *buffer = stack_buffer(PLACE_USER);
	__u32 bytes;

	if (!buffer)
		return;
	bytes = stack_bytes(bpf_get_stack(context, buffer->frames, FRAMES_BYTES, BPF_F_USER_STACK));
	fill_head(&buffer->stack.head, WIRE_USER_STACK, 0, bpf_get_smp_processor_id(),
		  bpf_ktime_get_ns());
	buffer->stack.since = entered;
	buffer->stack.state = 0;
	buffer->stack.kernel = 0;
	buffer->stack.user = bytes / sizeof(__u64);
	put_buffer(&buffer->stack.head, sizeof(buffer->stack), bytes);
}

#endif
