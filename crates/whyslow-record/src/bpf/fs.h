/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * File system work that other threads wait for: journal commits, writeback, throttled writers,
 * waits for log space. All of it is rare.
 */

static __always_inline struct wire_work *begin_work(__u32 what, __u32 phase, __u32 dev)
{
	struct wire_work *record = BEGIN(struct wire_work, WIRE_WORK);

	if (!record)
		return 0;
	record->what = what;
	record->phase = phase;
	record->dev = dev;
	record->reason = -1;
	record->id = 0;
	record->pages = -1;
	record->dur = 0;
	__builtin_memset(record->bdi, 0, sizeof(record->bdi));
	return record;
}

static __always_inline int put_commit(__u32 phase, struct journal_s *journal,
				      struct transaction_s *transaction)
{
	struct block_device *device = journal->j_fs_dev;
	struct wire_work *record =
		begin_work(WORK_JOURNAL_COMMIT, phase, device ? device->bd_dev : 0);

	if (!record)
		return 0;
	record->id = transaction->t_tid;
	end_record(record);
	return 0;
}

SEC("tp_btf/jbd2_start_commit")
int BPF_PROG(on_commit_begin, struct journal_s *journal, struct transaction_s *transaction)
{
	return put_commit(WORK_BEGIN, journal, transaction);
}

SEC("tp_btf/jbd2_commit_locking")
int BPF_PROG(on_commit_locking, struct journal_s *journal, struct transaction_s *transaction)
{
	return put_commit(WORK_LOCKING, journal, transaction);
}

SEC("tp_btf/jbd2_commit_flushing")
int BPF_PROG(on_commit_flushing, struct journal_s *journal, struct transaction_s *transaction)
{
	return put_commit(WORK_FLUSHING, journal, transaction);
}

SEC("tp_btf/jbd2_commit_logging")
int BPF_PROG(on_commit_logging, struct journal_s *journal, struct transaction_s *transaction)
{
	return put_commit(WORK_LOGGING, journal, transaction);
}

SEC("tp_btf/jbd2_end_commit")
int BPF_PROG(on_commit_end, struct journal_s *journal, struct transaction_s *transaction)
{
	return put_commit(WORK_END, journal, transaction);
}

SEC("tp_btf/jbd2_lock_buffer_stall")
int BPF_PROG(on_buffer_stall, __u32 dev, unsigned long stall_ms)
{
	struct wire_work *record = begin_work(WORK_BUFFER_STALL, WORK_DONE, dev);

	if (!record)
		return 0;
	record->dur = (__u64)stall_ms * 1000000;
	end_record(record);
	return 0;
}

static __always_inline int put_writeback(__u32 phase, struct bdi_writeback *wb,
					 struct wb_writeback_work *work)
{
	struct wire_work *record = begin_work(WORK_WRITEBACK, phase, 0);

	if (!record)
		return 0;
	bpf_probe_read_kernel_str(record->bdi, sizeof(record->bdi), wb->bdi->dev_name);
	record->reason = work->reason;
	record->pages = work->nr_pages;
	end_record(record);
	return 0;
}

SEC("tp_btf/writeback_start")
int BPF_PROG(on_writeback_begin, struct bdi_writeback *wb, struct wb_writeback_work *work)
{
	return put_writeback(WORK_BEGIN, wb, work);
}

SEC("tp_btf/writeback_written")
int BPF_PROG(on_writeback_end, struct bdi_writeback *wb, struct wb_writeback_work *work)
{
	return put_writeback(WORK_END, wb, work);
}

/* The thread sleeps next; the throttling ends when it runs again. */
static __always_inline int put_throttle(struct bdi_writeback *wb, long pause)
{
	struct wire_work *record;

	if (pause <= 0)
		return 0;
	record = begin_work(WORK_DIRTY_THROTTLE, WORK_BEGIN, 0);
	if (!record)
		return 0;
	bpf_probe_read_kernel_str(record->bdi, sizeof(record->bdi), wb->bdi->dev_name);
	end_record(record);
	return 0;
}

/* Since 6.16 the thresholds are in a structure. */
SEC("tp_btf/balance_dirty_pages")
int BPF_PROG(on_dirty_throttle, struct bdi_writeback *wb, void *control, unsigned long rate,
	     unsigned long task_rate, unsigned long dirtied, unsigned long period, long pause)
{
	return put_throttle(wb, pause);
}

SEC("tp_btf/balance_dirty_pages")
int BPF_PROG(on_dirty_throttle_old, struct bdi_writeback *wb, unsigned long limit,
	     unsigned long background, unsigned long dirty, unsigned long wb_limit,
	     unsigned long wb_dirty, unsigned long rate, unsigned long task_rate,
	     unsigned long dirtied, unsigned long period, long pause, unsigned long start)
{
	return put_throttle(wb, pause);
}

static __always_inline int put_log_wait(__u32 phase, struct xlog *log)
{
	struct super_block *file_system = log->l_mp->m_super;
	struct wire_work *record =
		begin_work(WORK_LOG_WAIT, phase, file_system ? file_system->s_dev : 0);

	if (record)
		end_record(record);
	return 0;
}

SEC("tp_btf/xfs_log_grant_sleep")
int BPF_PROG(on_log_wait_begin, struct xlog *log)
{
	return put_log_wait(WORK_BEGIN, log);
}

SEC("tp_btf/xfs_log_grant_wake")
int BPF_PROG(on_log_wait_end, struct xlog *log)
{
	return put_log_wait(WORK_END, log);
}

SEC("tp_btf/mm_vmscan_throttled")
int BPF_PROG(on_reclaim_throttled, int node, int timeout_us, int delayed_us, int reason)
{
	struct wire_work *record = begin_work(WORK_RECLAIM_THROTTLE, WORK_DONE, 0);

	if (!record)
		return 0;
	record->reason = reason;
	record->dur = delayed_us > 0 ? (__u64)delayed_us * 1000 : 0;
	end_record(record);
	return 0;
}
