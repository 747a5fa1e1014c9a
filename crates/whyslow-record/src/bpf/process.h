/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Who a process is: told when it runs a program and when it ends, because many live shorter than
 * anybody needs to look into /proc.
 */

#define WORDS_MAX 4096
#define PF_KTHREAD 0x00200000

/* One being put together. */
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
		/* For the verifier, which the compiler would deprive of the bound. */
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
