/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The same programs for classic tracepoints, as in tracefs: their arguments are the printed fields,
 * which are fewer. Processes of other threads are not reported, so they are 0, and the process of a
 * new thread follows from the clone flags.
 */

/* The context may only be read at constant offsets, which compilers do not preserve. */
#define SHOWS(event, field) BPF_CORE_READ(event, field)

#define CLONE_THREAD 0x10000
#define SECTOR 512
/* Kernels before 6.13 have eight bytes. */
#define RWBS_LETTERS 8
#define RWBS_OTHER 4

SEC("tp/raw_syscalls/sys_enter")
int tp_sys_enter(struct trace_event_raw_sys_enter *event)
{
	return begin_call(own_regs(), SHOWS(event, id));
}

SEC("tp/raw_syscalls/sys_exit")
int tp_sys_exit(struct trace_event_raw_sys_exit *event)
{
	return end_call(event, own_regs(), SHOWS(event, ret));
}

/* Maps the letters of task states, by bit, to the kernel's state values. */
#define SHOWN_DEAD 0x10
#define SHOWN_ZOMBIE 0x20
#define SHOWN_IDLE 0x80
#define SHOWN_PREEMPTED 0x100
#define STATE_IDLE_WAIT 0x402

static __always_inline __u32 state_shown(__u64 shown)
{
	if (shown & SHOWN_PREEMPTED)
		return WIRE_PREEMPTED;
	if (shown & (SHOWN_DEAD | SHOWN_ZOMBIE))
		return STATE_DEAD;
	return shown & SHOWN_IDLE ? STATE_IDLE_WAIT : shown;
}

SEC("tp/sched/sched_switch")
int tp_switch(struct trace_event_raw_sched_switch *event)
{
	__u32 state = state_shown(SHOWS(event, prev_state));

	return put_switch(bpf_get_current_task_btf(), state, SHOWS(event, next_pid), 0,
			  SHOWS(event, next_prio));
}

SEC("tp/sched/sched_waking")
int tp_waking(struct trace_event_raw_sched_wakeup_template *event)
{
	return put_wakeup(WIRE_WAKING, SHOWS(event, pid), 0, SHOWS(event, prio));
}

SEC("tp/sched/sched_wakeup_new")
int tp_wakeup_new(struct trace_event_raw_sched_wakeup_template *event)
{
	return put_wakeup(WIRE_WAKEUP_NEW, SHOWS(event, pid), 0, SHOWS(event, prio));
}

SEC("tp/task/task_newtask")
int tp_fork(struct trace_event_raw_task_newtask *event)
{
	__u32 pid = SHOWS(event, pid);

	if (SHOWS(event, clone_flags) & CLONE_THREAD)
		pid = bpf_get_current_pid_tgid() >> 32;
	return put_fork(0, SHOWS(event, pid), pid, event->comm);
}

SEC("tp/sched/sched_process_exec")
int tp_exec(struct trace_event_raw_sched_process_exec *event)
{
	const char *program = (const char *)event + (SHOWS(event, __data_loc_filename) & 0xffff);

	return put_exec(SHOWS(event, old_pid), program);
}

SEC("tp/sched/sched_process_exit")
int tp_exit(void *event)
{
	return put_exit();
}

SEC("tp/sched/sched_process_free")
int tp_free(struct trace_event_raw_sched_process_template *event)
{
	return put_task(WIRE_FREE, SHOWS(event, pid), 0, 0);
}

SEC("tp/task/task_rename")
int tp_rename(struct trace_event_raw_task_rename *event)
{
	return put_rename(SHOWS(event, pid), 0, event->newcomm);
}

/* `F` before the operation, its letter, and letters of flags. */
static __always_inline __u32 rwbs_shown(const char *letters)
{
	__u32 rwbs = 0, op = RWBS_OTHER, at = 0;

	if (letters[0] == 'F' && (letters[1] == 'R' || letters[1] == 'W' || letters[1] == 'D' ||
				  letters[1] == 'N' || letters[1] == 'F')) {
		rwbs |= RWBS_PREFLUSH;
		at = 1;
	}
	switch (letters[at]) {
	case 'R': op = 0; break;
	case 'W': op = 1; break;
	case 'F': op = 2; break;
	case 'D': op = 3; break;
	}
#pragma unroll
	for (int place = 1; place < RWBS_LETTERS; place++) {
		if (place <= at)
			continue;
		switch (letters[place]) {
		case 'F': rwbs |= RWBS_FUA; break;
		case 'A': rwbs |= RWBS_AHEAD; break;
		case 'S': rwbs |= RWBS_SYNC; break;
		case 'M': rwbs |= RWBS_META; break;
		case 'E': rwbs |= RWBS_SECURE; break;
		}
	}
	return rwbs | op;
}

/* The fields that all block I/O events have, except for bytes that are no sectors. */
#define SHOWN(record, event)                                                                       \
	({                                                                                         \
		char letters[RWBS_LETTERS + 1] = {};                                               \
		bpf_probe_read_kernel(letters, RWBS_LETTERS, (event)->rwbs);                       \
		(record)->dev = SHOWS(event, dev);                                                 \
		(record)->sector = SHOWS(event, sector);                                           \
		(record)->rwbs = rwbs_shown(letters);                                              \
	})

static __always_inline int put_shown(__u16 kind, struct trace_event_raw_block_bio *event)
{
	struct wire_block *record = begin_block(kind);

	if (!record)
		return 0;
	SHOWN(record, event);
	record->bytes = SHOWS(event, nr_sector) * SECTOR;
	end_record(record);
	return 0;
}

static __always_inline int put_rq_shown(__u16 kind, struct trace_event_raw_block_rq *event)
{
	struct wire_block *record = begin_block(kind);

	if (!record)
		return 0;
	SHOWN(record, event);
	record->bytes = SHOWS(event, nr_sector) * SECTOR;
	end_record(record);
	return 0;
}

SEC("tp/block/block_bio_queue")
int tp_bio_queue(struct trace_event_raw_block_bio *event)
{
	return put_shown(WIRE_BIO_QUEUE, event);
}

SEC("tp/block/block_bio_backmerge")
int tp_bio_backmerge(struct trace_event_raw_block_bio *event)
{
	return put_shown(WIRE_BIO_BACKMERGE, event);
}

SEC("tp/block/block_bio_frontmerge")
int tp_bio_frontmerge(struct trace_event_raw_block_bio *event)
{
	return put_shown(WIRE_BIO_FRONTMERGE, event);
}

SEC("tp/block/block_getrq")
int tp_getrq(struct trace_event_raw_block_bio *event)
{
	return put_shown(WIRE_GETRQ, event);
}

SEC("tp/block/block_bio_complete")
int tp_bio_complete(struct trace_event_raw_block_bio_complete *event)
{
	struct wire_block *record = begin_block(WIRE_BIO_COMPLETE);

	if (!record)
		return 0;
	SHOWN(record, event);
	record->bytes = SHOWS(event, nr_sector) * SECTOR;
	record->error = SHOWS(event, error);
	end_record(record);
	return 0;
}

SEC("tp/block/block_bio_remap")
int tp_bio_remap(struct trace_event_raw_block_bio_remap *event)
{
	struct wire_block *record = begin_block(WIRE_BIO_REMAP);

	if (!record)
		return 0;
	SHOWN(record, event);
	record->bytes = SHOWS(event, nr_sector) * SECTOR;
	record->old_dev = SHOWS(event, old_dev);
	record->old_sector = SHOWS(event, old_sector);
	end_record(record);
	return 0;
}

SEC("tp/block/block_split")
int tp_split(struct trace_event_raw_block_split *event)
{
	struct wire_block *record = begin_block(WIRE_BIO_SPLIT);

	if (!record)
		return 0;
	SHOWN(record, event);
	/* The length is not shown. */
	record->bytes = 0;
	record->old_sector = SHOWS(event, new_sector);
	end_record(record);
	return 0;
}

SEC("tp/block/block_rq_insert")
int tp_rq_insert(struct trace_event_raw_block_rq *event)
{
	return put_rq_shown(WIRE_RQ_INSERT, event);
}

SEC("tp/block/block_rq_issue")
int tp_rq_issue(struct trace_event_raw_block_rq *event)
{
	return put_rq_shown(WIRE_RQ_ISSUE, event);
}

SEC("tp/block/block_rq_merge")
int tp_rq_merge(struct trace_event_raw_block_rq *event)
{
	return put_rq_shown(WIRE_RQ_MERGE, event);
}

SEC("tp/block/block_rq_requeue")
int tp_rq_requeue(struct trace_event_raw_block_rq_requeue *event)
{
	struct wire_block *record = begin_block(WIRE_RQ_REQUEUE);

	if (!record)
		return 0;
	SHOWN(record, event);
	record->bytes = SHOWS(event, nr_sector) * SECTOR;
	end_record(record);
	return 0;
}

SEC("tp/block/block_rq_complete")
int tp_rq_complete(struct trace_event_raw_block_rq_completion *event)
{
	struct wire_block *record = begin_block(WIRE_RQ_COMPLETE);

	if (!record)
		return 0;
	SHOWN(record, event);
	record->bytes = SHOWS(event, nr_sector) * SECTOR;
	record->error = SHOWS(event, error);
	end_record(record);
	return 0;
}
