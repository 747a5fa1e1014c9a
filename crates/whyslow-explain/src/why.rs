//! What each mechanism is: how the kernel does it, how it is recognised here, what it is mistaken for,
//! and what helps.

/// One mechanism, for people who want to know why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mechanism {
    /// Id of [`whyslow_model::mechanism::MECHANISMS`].
    pub id: &'static str,
    /// What happens, with the functions of the kernel that do it, and the versions that differ.
    pub what: &'static str,
    /// Which events tell, and of what else they could come.
    pub recognised: &'static str,
    /// What to do about it; each a sentence.
    pub advice: &'static [&'static str],
    /// Where it can be read up.
    pub reference: &'static str,
}

/// The mechanism of this id.
pub fn why(id: &str) -> Option<&'static Mechanism> {
    ALL.iter().find(|mechanism| mechanism.id == id)
}

const fn of(
    id: &'static str,
    what: &'static str,
    recognised: &'static str,
    advice: &'static [&'static str],
    reference: &'static str,
) -> Mechanism {
    Mechanism {
        id,
        what,
        recognised,
        advice,
        reference,
    }
}

/// In the order of the vocabulary.
pub static ALL: &[Mechanism] = &[
    of(
        "cpu_running",
        "The thread had a CPU, in user space or in a system call. Time of interrupt handlers on that CPU is taken off, but for softirqs that its own sending causes.",
        "sched_switch. Waiting in a loop (spin locks, polling) is running, too.",
        &["profile it: whyslow record --sample 99"],
        "man 2 perf_event_open; Documentation/scheduler",
    ),
    of(
        "cpu_runqueue",
        "The thread could run and its CPU ran others: __schedule() picked a thread of higher priority, an earlier deadline or a smaller virtual time (CFS; EEVDF since Linux 6.6). Real-time threads (SCHED_FIFO, SCHED_RR) go before all normal ones and give back only what sched_rt_runtime_us leaves.",
        "A switch away with prev_state R or R+, or a wakeup, until the switch to it; those who ran on that CPU meanwhile are named. Time in which that CPU idled is cpu_idle_delay.",
        &[
            "give the others a lower weight (nice, cpu.weight), or CPUs of their own",
            "look for real-time threads: chrt -p PID",
        ],
        "Documentation/scheduler/sched-eevdf.rst; man 7 sched",
    ),
    of(
        "cpu_throttled",
        "The control group had used up cpu.max (cpu.cfs_quota_us) of this period, 100 ms as a rule, and all its threads wait for the next one. Since Linux 6.18 threads leave on their way to user space, in throttle_cfs_rq_work(), before that where they stood.",
        "A switch away with prev_state R+ whose stack has task_work_run below exit to user space. Without stacks, or before 6.18, it looks like waiting for a CPU, or like an idle CPU; nr_throttled in cpu.stat tells.",
        &[
            "raise the quota (cpu.max), or spread the burst over time",
            "fewer threads use up a quota more evenly: set the number of workers to the quota",
        ],
        "Documentation/scheduler/sched-bwc.rst",
    ),
    of(
        "block_service",
        "A device worked on a request: from block_rq_issue to block_rq_complete, with nothing else in front of it. Whose request it is comes from block_bio_queue or block_getrq; the thread at the issue is often a worker. A thread may wait for a request of somebody else: a buffer of the journal, a page that is being written.",
        "The wakeup happens within the completion of the request. What a device does inside (its own cache, garbage collection) cannot be seen from here.",
        &[
            "fewer or larger requests, read ahead, keep the data in memory",
            "compare the device with its peers: whyslow block outliers",
        ],
        "Documentation/block/stat.rst; block/blk-mq.c",
    ),
    of(
        "block_queue",
        "The request waited for those in front of it: in the software queue (blk_mq_insert_request, the I/O scheduler) or in the device. A device that serves one after another makes each wait for all before it; one that serves many slows each down by what the others ask for.",
        "Requests of the same device that ended before, each put down to its owner. For devices that serve many at once it is a share by overlap and bytes, hence at most grade B.",
        &[
            "limit or move the neighbour: io.max, io.weight, ionice",
            "an I/O scheduler that favours reads (mq-deadline, kyber, bfq)",
        ],
        "Documentation/block/; Documentation/admin-guide/cgroup-v2.rst, IO",
    ),
    of(
        "block_held",
        "The I/O existed, and the block layer did not know of it yet: blk-throttle (io.max, blkio.throttle) keeps it, rq-qos (wbt, iolatency, iocost) makes its thread wait, or there was no tag left.",
        "From the begin of the sleep to the begin of the request that ended it, of reads that a worker let go. No event of the block layer tells of that time, so that iostat and biolatency show a fast disk.",
        &[
            "raise the limit of the control group: io.max, or blkio.throttle.* of version 1",
            "spread what it reads over time",
        ],
        "Documentation/admin-guide/cgroup-v2.rst, IO; block/blk-throttle.c",
    ),
    of(
        "journal_wait",
        "A handle of ext4 waits for its transaction: start_this_handle() while it is locked, do_get_write_access() for a buffer that the commit writes, jbd2_log_wait_commit() for its end; with XFS for room in the log, xlog_grant_head_wait().",
        "Stack of the wait, then what the thread of the journal waits for itself. Its requests are put down to who synchronises then (grade B). A wait for a metadata block that ends with the request is a block wait.",
        &[
            "who synchronises: less often, or on a file system of its own",
            "a journal on another device; fast_commit (Linux 5.10)",
        ],
        "Documentation/filesystems/ext4/journal.rst; fs/jbd2",
    ),
    of(
        "writeback_wait",
        "Pages had to be written by somebody before this could go on: wb_wait_for_completion() of a sync, folio_wait_writeback() of a page that is written just now (stable pages), or the worker had not begun.",
        "Stack of the wait, and the worker that writes; the bytes are those of who wrote to files of that device in the last 30 s.",
        &[
            "write in smaller portions: sync_file_range, smaller vm.dirty_background_bytes",
            "do not rewrite what is being written",
        ],
        "Documentation/admin-guide/sysctl/vm.rst; mm/page-writeback.c",
    ),
    of(
        "sync_storm",
        "sync, syncfs or a large fsync makes the kernel write everything that is dirty, and commits the journal. Whoever needs a block that is being written, a place in the journal or the disk waits until that is done.",
        "Requests that the thread waited for, or stood behind, made by the one in sync or by workers on its behalf.",
        &[
            "limit or move who synchronises: ionice, io.max, another time",
            "keep less dirty: vm.dirty_background_bytes, vm.dirty_bytes",
        ],
        "man 2 sync; fs/sync.c; fs/fs-writeback.c",
    ),
    of(
        "reclaim",
        "The thread asked for memory and had to free some first: try_to_free_pages(), or try_to_free_mem_cgroup_pages() where its control group is at its limit. It scans, waits for pages to be written, and may write to swap.",
        "mm_vmscan_direct_reclaim_begin to end, or that of the control group, whether the thread ran or slept.",
        &[
            "raise memory.max or memory.high, or use less",
            "keep more free: vm.min_free_kbytes, vm.watermark_scale_factor",
        ],
        "Documentation/admin-guide/mm/concepts.rst; mm/vmscan.c",
    ),
    of(
        "memory_throttle",
        "Reclaim made no progress and holds its threads back: reclaim_throttle() (Linux 5.16), congestion_wait() before that; and memory.high in mem_cgroup_handle_over_high().",
        "mm_vmscan_throttled with its reason and length.",
        &[
            "raise memory.high",
            "find who takes the memory: whyslow mem usage",
        ],
        "Documentation/admin-guide/cgroup-v2.rst, Memory; mm/vmscan.c",
    ),
    of(
        "swap_in",
        "A page of the program was on a swap device and had to be read: do_swap_page(). With zram there is no request: that is CPU time in a page fault.",
        "Stack of the wait with a request that ended it.",
        &[
            "more memory, or a limit that keeps others from taking it",
            "lock what must not leave: mlock, memory.min",
        ],
        "Documentation/admin-guide/blockdev/zram.rst; mm/memory.c",
    ),
    of(
        "page_fault_io",
        "A page of a mapped file was not in memory: filemap_fault() reads it while the program stands still, outside of any system call.",
        "A wait for a request of its own outside of system calls.",
        &["read ahead: madvise(MADV_WILLNEED), vmtouch; keep others from pushing it out"],
        "man 2 madvise; mm/filemap.c",
    ),
    of(
        "lock_futex",
        "Another thread of the program had the lock. Threads wait in futex_wait(); who unlocks and sees that somebody waits calls futex(FUTEX_WAKE). A mutex may be taken by a thread that never waited before the one that was woken gets it (barging).",
        "Calls at the same address. Each release that was seen cuts the wait; the piece before it belongs to who released. Condition variables look the same: then it is who signals.",
        &[
            "make the critical section shorter: no I/O and no sleep in it",
            "more, smaller locks; a fair lock where barging starves",
        ],
        "man 2 futex; Documentation/locking; kernel/futex",
    ),
    of(
        "lock_program",
        "The thread waited for a monitor (synchronized), a lock of java.util.concurrent, or a mutex, and another thread of the program had it. With async-profiler the wait is told by JavaMonitorEnter and ThreadPark events (--lock), else seen in stacks that end in the code of the lock.",
        "Who held it is inferred: another thread was in code of the class that the waiter wanted to enter, or the runtime told that it had got the lock. Waits for conditions, queues and permits are none of it.",
        &[
            "look at what the holder did: whyslow threads dump --at TIME",
            "hold it for shorter: no I/O below a lock",
        ],
        "docs/imports.md",
    ),
    of(
        "unseen_wait",
        "A sampler that sends signals to all threads got no sample of this one, round after round: it waited where signals are delivered late (TASK_UNINTERRUPTIBLE), and the sample after that shows the call which it returned from.",
        "Four rounds of the sampler missed, and the sample after lies in a call about files or memory. A sampler that is late misses all threads; that is not taken for it. Where the recorder looked at the thread from outside at the same time, that proves or refutes it.",
        &[
            "see it from outside: whyslow record --stacks wall:10ms -p PID",
            "record what the kernel does meanwhile: whyslow record --what sched,syscalls,block,locks --stacks 1ms",
        ],
        "docs/imports.md",
    ),
    of(
        "lock_kernel",
        "A lock of the kernel (mutex, rwsem, semaphore) was held: __mutex_lock_slowpath(), rwsem_down_read_slowpath(), rwsem_down_write_slowpath().",
        "lock:contention_begin and _end (Linux 5.19) with address and stack; the holder is who woke those that waited. Readers share a lock: then the one whose release woke it is named.",
        &["look at the stack: what is shared there (mmap_lock, a directory, a mount)?"],
        "Documentation/locking; include/trace/events/lock.h",
    ),
    of(
        "lock_inode",
        "The lock of a file was held: inode->i_rwsem, of XFS the IOLOCK in xfs_ilock(). XFS takes it for reading also in sendfile and splice (xfs_file_splice_read), so that a reader who waits for the disk makes writers of the file wait; ext4 does not.",
        "A wait for a lock with such a function in its stack, and the holder's own call on the file.",
        &[
            "separate files for readers of old data and for writers: smaller segments",
            "newer kernels, or ext4, where only reads of a file meet its writes",
        ],
        "Documentation/filesystems/locking.rst; fs/xfs/xfs_file.c",
    ),
    of(
        "pipe_wait",
        "The other end of a pipe had not written, or not read: pipe_read(), pipe_write().",
        "Woken by a thread in a call on a pipe, of the same number where that was recorded.",
        &["look at the other end: that is what the time is put down to"],
        "man 7 pipe; fs/pipe.c",
    ),
    of(
        "local_ipc",
        "Another thread of this machine had not answered: a socket (unix, or TCP over loopback), an eventfd. What is sent over loopback arrives inside of the sender's own call.",
        "Woken by a thread in a call on such an object, or in a softirq that runs within the sender's call; with packets recorded, by the packet that it sent.",
        &["look at the other side: that is what the time is put down to"],
        "man 7 unix; net/core/dev.c",
    ),
    of(
        "network_remote",
        "A packet from another host ended the wait: the answer of a server, or the time on the way.",
        "Woken in NET_RX with a known connection. What the host did is not in this recording.",
        &[
            "record there, too",
            "whyslow tcp top: round-trip times of the connection",
        ],
        "man 7 tcp",
    ),
    of(
        "network_retransmit",
        "A segment was not acknowledged and sent again: after 200 ms at least, then after twice as long each time, a SYN after 1 s (since Linux 6.5 four times at that distance, tcp_syn_linear_timeouts).",
        "tcp_retransmit_skb for the connection within the wait.",
        &[
            "look for loss on the way: whyslow net log --op drop,retransmit",
            "the listener's queue may be full: nstat TcpExtListenOverflows",
        ],
        "Documentation/networking/ip-sysctl.rst; net/ipv4/tcp_timer.c",
    ),
    of(
        "send_delayed",
        "The thread had sent something, but the kernel held it back: Nagle's algorithm waits for the acknowledgement of what was sent before, which the other side delays by up to 40 ms and more; or the other side's window was full.",
        "Both sides waited, and the packet that woke the other side on the same connection left in no call of any thread.",
        &[
            "send what belongs together in one call (writev, MSG_MORE, TCP_CORK), or set TCP_NODELAY",
            "whyslow net log shows the packets of that time",
        ],
        "RFC 896; RFC 9293, 3.7.4 and 3.8.6.3",
    ),
    of(
        "dns_lookup",
        "A name was looked up. The resolver of glibc waits 5 s for each server before it asks the next (options timeout, attempts); musl asks all at once and 2.5 s each.",
        "The function that looked it up was recorded, or a wait for port 53 that ran out.",
        &[
            "remember lookups (nscd, systemd-resolved), or mend the resolver",
            "options timeout:1 attempts:3 single-request-reopen in resolv.conf",
        ],
        "man 5 resolv.conf",
    ),
    of(
        "timer_sleep",
        "The thread asked for that time: nanosleep, a poll or a lock with a limit, and nobody came before.",
        "The call says that its time ran out, and a timer woke it.",
        &["wait for the event instead of for a time"],
        "man 2 nanosleep; man 2 poll",
    ),
    of(
        "irq_stolen",
        "Interrupt handlers and softirqs took the CPU from the thread: they run before any thread.",
        "Handlers on its CPU while it ran, recorded with --what irq; without that the time counts as running.",
        &[
            "spread interrupts: irqbalance, /proc/irq/N/smp_affinity, RPS",
            "interrupt moderation of the device: ethtool -C",
        ],
        "Documentation/core-api/irq; Documentation/networking/scaling.rst",
    ),
    of(
        "child_wait",
        "The thread waited for a child process: do_wait().",
        "In wait4 or waitid, woken by the child.",
        &["look at the child: that is what the time is put down to"],
        "man 2 wait",
    ),
    of(
        "signal_stop",
        "A signal (SIGSTOP, SIGTSTP) or a debugger stopped all threads of the process: do_signal_stop(), ptrace_stop().",
        "State T or t, and who sent the signal.",
        &["find who stops it: whyslow signals log"],
        "man 7 signal; man 2 ptrace",
    ),
    of(
        "temporary_files",
        "A program writes data to files, reads it back once and deletes them: the page cache writes what nobody needs any more.",
        "Files of one pattern that are made, written and deleted within the recording.",
        &["keep the data in memory, or put these files on a tmpfs"],
        "Documentation/filesystems/tmpfs.rst",
    ),
    of(
        "misbehaving_disk",
        "One disk is slower than others of its kind for like requests at the same number in flight: bad sectors and retries, a link that drops, a controller without cache.",
        "Tests against its peers: docs/outliers.md. A disk that is only asked for more is not called bad.",
        &["look at its health (smartctl, nvme smart-log), its link and its controller; replace it"],
        "docs/outliers.md",
    ),
    of(
        "io_wait",
        "A request was on its way through file system and block layer, or the call waited for I/O of its own as far as calls tell.",
        "Less than a millisecond before a request begins; or, without scheduling events, the call's own requests.",
        &[],
        "Documentation/block/",
    ),
    of(
        "dirty_throttle",
        "Programs make pages dirty faster than the disk takes them, and balance_dirty_pages() makes each writer sleep, up to 200 ms at a time; all writers of the device, not only those that write most.",
        "writeback:balance_dirty_pages with its pause. Most of the bytes written to files of that device in the last 30 s decide whom it is put down to.",
        &[
            "write less, or directly: O_DIRECT, sync_file_range",
            "limit the writer: io.max with memory.high, so that it is held back alone",
            "smaller vm.dirty_bytes make the stalls shorter, larger ones rarer",
        ],
        "Documentation/admin-guide/sysctl/vm.rst; mm/page-writeback.c",
    ),
    of(
        "cpu_idle_delay",
        "The thread was runnable, and the CPU on which it then ran was idle: the wakeup's interrupt had to wake the CPU from deep idle, a virtual machine had lost its CPU to others (steal), or it was throttled and no stack tells.",
        "No other thread on that CPU meanwhile. Less than 0.1 ms is usual.",
        &[
            "idle states: cpupower idle-set; steal: the host",
            "with a CPU quota: look at cpu.stat",
        ],
        "Documentation/admin-guide/pm/cpuidle.rst",
    ),
    of(
        "device_irq",
        "A device's interrupt ended the wait: a driver that is no block device, as far as was recorded.",
        "Woken in the handler of that interrupt, without a request or packet that ended there.",
        &[],
        "Documentation/core-api/genericirq.rst",
    ),
    of(
        "kernel_wait",
        "A thread of the kernel, or another one, had to do its part: wait_for_completion(), synchronize_rcu(), flush_work().",
        "The function in which it slept, by its stack, and who woke it.",
        &[],
        "Documentation/scheduler/completion.rst; Documentation/RCU",
    ),
    of(
        "producer_idle",
        "Who was waited for had not begun: when the wait began it was itself waiting for something to do.",
        "Its own wait had begun before, in a call that waits for work.",
        &["look at how the work reached it: queue, scheduler, number of workers"],
        "docs/guide.md",
    ),
    of(
        "woken_by",
        "Another thread woke it. What it waited for is not known.",
        "Nothing but the wakeup: no stack, no lock, no call that tells.",
        &["record with stacks and locks, as `whyslow record` does unless told otherwise"],
        "docs/guide.md",
    ),
    of(
        "still_blocked",
        "It still waited when the recording ended: what would have ended the wait is not in it.",
        "A wait without wakeup at the end of the recording.",
        &["record for longer; `whyslow threads list` shows who waits like it, its stack where"],
        "docs/guide.md",
    ),
    of(
        "lost",
        "Events of that time were lost.",
        "The recorder says so; nothing is concluded from what is left.",
        &["a larger buffer (--buffer), or less: --what, -p, --min"],
        "docs/guide.md",
    ),
    of(
        "unknown",
        "Cannot tell from what was recorded.",
        "Begin, end or wakeup are not there.",
        &["see what was not recorded, below each story"],
        "docs/guide.md",
    ),
];

#[cfg(test)]
mod tests {
    use whyslow_model::mechanism::MECHANISMS;

    use super::{ALL, why};

    #[test]
    fn every_mechanism_is_told_and_no_other() {
        for (id, _) in MECHANISMS {
            assert!(why(id).is_some(), "{id}");
        }
        assert_eq!(ALL.len(), MECHANISMS.len());
        for mechanism in ALL {
            assert!(!mechanism.what.is_empty() && !mechanism.reference.is_empty());
        }
    }
}
