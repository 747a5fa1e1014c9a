/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Describes a process when it calls exec and when it exits, because many are too short-lived to be
 * read from /proc.
 */

#define WORDS_MAX 4096
#define PF_KTHREAD 0x00200000

/* A record under construction. */
struct program_scratch {
	struct wire_program record;
	char bytes[WORDS_MAX + 8];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct program_scratch);
} program_scratches SEC(".maps");

static __always_inline void put_program(struct task_struct *task, bool with_words)
{
	__u32 zero = 0, cpu = bpf_get_smp_processor_id();
	struct program_scratch *scratch = bpf_map_lookup_elem(&program_scratches, &zero);
	__u64 now = bpf_ktime_get_ns(), begin, size = 0, len;
	void *ring = ring_here(cpu);

	if (!scratch || !ring)
		return;
	if (with_words) {
		begin = BPF_CORE_READ(task, mm, arg_start);
		size = BPF_CORE_READ(task, mm, arg_end) - begin;
		if (size > WORDS_MAX)
			size = WORDS_MAX;
		/* For the verifier: the compiler would remove the bound. */
		barrier_var(size);
		if (size > WORDS_MAX ||
		    bpf_probe_read_user(scratch->bytes, size, (const void *)begin))
			size = 0;
	}
	scratch->record.cgroup = bpf_get_current_cgroup_id();
	scratch->record.uid = bpf_get_current_uid_gid();
	scratch->record.mount_ns = BPF_CORE_READ(task, nsproxy, mnt_ns, ns.inum);
	scratch->record.is_end = !with_words;
	scratch->record.size = size;
	len = (sizeof(struct wire_program) + size + 7) & ~7ULL;
	if (len > sizeof(*scratch))
		return;
	fill_head(&scratch->record.head, WIRE_PROGRAM, len, cpu, now);
	if (bpf_ringbuf_output(ring, scratch, len, BPF_RB_NO_WAKEUP))
		lose(now);
}

static __always_inline void put_value(__u32 *values, __u32 place, __u64 count)
{
	values[0] = place;
	values[1] = count;
	values[2] = count >> 32;
}

/* I/O counters of a process, recorded when its last thread exits. */
static __always_inline void put_io(struct task_struct *task)
{
	struct task_struct *leader = task->group_leader;
	__u64 read, written, cancelled;
	struct wire_io *record;

	if (!bpf_core_field_exists(task->ioac) || task->flags & PF_KTHREAD ||
	    BPF_CORE_READ(task, signal, live.counter) > 0)
		return;
	read = task->ioac.read_bytes + BPF_CORE_READ(task, signal, ioac.read_bytes);
	written = task->ioac.write_bytes + BPF_CORE_READ(task, signal, ioac.write_bytes);
	cancelled = task->ioac.cancelled_write_bytes +
		    BPF_CORE_READ(task, signal, ioac.cancelled_write_bytes);
	/* The leader's counters are added after all other threads are gone. */
	if (leader != task) {
		read += BPF_CORE_READ(leader, ioac.read_bytes);
		written += BPF_CORE_READ(leader, ioac.write_bytes);
		cancelled += BPF_CORE_READ(leader, ioac.cancelled_write_bytes);
	}
	if (!(read | written | cancelled))
		return;
	record = BEGIN(struct wire_io, WIRE_COUNTERS);
	if (!record)
		return;
	record->mount_ns = 0;
	record->mount_id = 0;
	record->place_size = 0;
	record->values_size = sizeof(record->values);
	put_value(record->values, WIRE_IO_READ, read);
	put_value(record->values + 3, WIRE_IO_WRITTEN, written);
	put_value(record->values + 6, WIRE_IO_CANCELLED, cancelled);
	record->zero = 0;
	end_record(record);
}
