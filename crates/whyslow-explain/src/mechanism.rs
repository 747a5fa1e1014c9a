//! Reference of the mechanisms: how the kernel works, how `explain` recognises them, what they can
//! be mistaken for, and what helps.

use crate::advice::{AdviceRule, any, bfq, disk, other_host, peers, unscheduled, v1, v2};

/// Description of one mechanism.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mechanism {
    /// Id of [`whyslow_model::mechanism::MECHANISMS`].
    pub id: &'static str,
    /// What happens, with the kernel functions involved, and differences between kernel versions.
    pub what: &'static str,
    /// Which events indicate it, and what else could cause them.
    pub recognised: &'static str,
    /// What to do about it.
    pub advice: &'static [AdviceRule],
    /// Where to read more.
    pub reference: &'static str,
}

/// The mechanism with this id.
pub fn mechanism(id: &str) -> Option<&'static Mechanism> {
    ALL.iter().find(|mechanism| mechanism.id == id)
}

const fn of(
    id: &'static str,
    what: &'static str,
    recognised: &'static str,
    advice: &'static [AdviceRule],
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
        "The thread was on CPU, in user space or in a system call. Time of interrupt handlers on that CPU is subtracted, except for softirqs caused by the thread's own sending.",
        "sched_switch. Busy waiting (spin locks, polling) also counts as running.",
        &[any("profile the thread: whyslow record --sample 99")],
        "man 2 perf_event_open; Documentation/scheduler",
    ),
    of(
        "cpu_runqueue",
        "The thread was runnable while its CPU ran other threads: __schedule() picked a thread with a higher priority, an earlier deadline or a smaller virtual runtime (CFS; EEVDF since Linux 6.6). Real-time threads (SCHED_FIFO, SCHED_RR) run before all normal ones and leave them only what sched_rt_runtime_us reserves.",
        "From a switch away with prev_state R or R+, or a wakeup, to the switch to the thread; the threads that ran on that CPU in between are named. Time in which that CPU was idle is cpu_idle_delay.",
        &[
            any(
                "lower the priority of the other threads (renice), or move them to other CPUs (taskset)",
            ),
            v2("lower cpu.weight of their cgroup"),
            v1("lower cpu.shares of their cgroup"),
            any("check for real-time threads: chrt -p PID"),
        ],
        "Documentation/scheduler/sched-eevdf.rst; man 7 sched",
    ),
    of(
        "cpu_throttled",
        "The cgroup had used up cpu.max (cpu.cfs_quota_us) for this period, 100 ms by default, and all its threads wait for the next period. Since Linux 6.18 threads are throttled on return to user space, in throttle_cfs_rq_work(); before that, immediately.",
        "A switch away with prev_state R+ and a stack with task_work_run below the exit to user space. Without stacks, or before 6.18, it looks like a run-queue wait or an idle CPU; nr_throttled in cpu.stat shows it.",
        &[
            any("spread the load over time"),
            v2("raise the quota of the cgroup: cpu.max"),
            v1("raise the quota of the cgroup: cpu.cfs_quota_us"),
            any("match the number of workers to the quota: fewer threads use it up more evenly"),
        ],
        "Documentation/scheduler/sched-bwc.rst",
    ),
    of(
        "cpu_stalled",
        "A thread had the CPU, but the CPU executed nothing, not even its timer tick: the hypervisor ran other guests (steal), the firmware was in system management mode (SMI), or the kernel ran with interrupts disabled.",
        "No event of that CPU for more than three of its own ticks, which the events of the same CPU show at other times. The recording does not distinguish the three causes; the counter of stolen time indicates steal. With fewer recorded ticks nothing is claimed.",
        &[
            any("on a virtual machine, check the steal time (%st in top) and the load of the host"),
            any("check for SMIs (turbostat), and trace the time with interrupts off (irqsoff)"),
        ],
        "Documentation/virt/kvm/x86/msr.rst (steal time); Documentation/trace/hwlat_detector.rst",
    ),
    of(
        "block_service",
        "A device served a request: from block_rq_issue to block_rq_complete, with no other request ahead of it. The owner of a request is taken from block_bio_queue or block_getrq, because the thread at the issue is often a worker. A thread may wait for another thread's request: for a journal buffer, or a page under writeback.",
        "The wakeup happens within the completion of the request. What happens inside the device (its cache, garbage collection) is not visible to the kernel.",
        &[
            any("issue fewer or larger requests, read ahead, or keep the data in memory"),
            peers("compare the device with its peers: whyslow block outliers"),
        ],
        "Documentation/block/stat.rst; block/blk-mq.c",
    ),
    of(
        "block_queue",
        "The request waited for requests ahead of it: in the software queue (blk_mq_insert_request, the I/O scheduler) or in the device. In a device that serves one request at a time, each waits for all before it; in one that serves many, each is slowed down by the others.",
        "Requests of the same device that completed before, each attributed to its owner. For devices that serve many requests at once, shares are computed from overlap and bytes, so the grade is B at most.",
        &[
            any("move the other process to another device, or run it at another time"),
            v2("limit the other process: io.max or io.weight of its cgroup"),
            v1("limit the other process: blkio.throttle.* of its cgroup"),
            bfq("lower the I/O priority of the other process: ionice -c 3 -p PID"),
            unscheduled("use an I/O scheduler that favours reads: mq-deadline, kyber or bfq"),
        ],
        "Documentation/block/; Documentation/admin-guide/cgroup-v2.rst, IO",
    ),
    of(
        "block_held",
        "The I/O was submitted but had not reached the block layer's queue: blk-throttle (io.max, blkio.throttle) held it, rq-qos (wbt, iolatency, iocost) made the thread wait, or no tag was free.",
        "From the start of the sleep to the start of the request that ended it, for reads that a worker submitted. No block-layer event covers this time, so iostat and biolatency show a fast disk.",
        &[
            v2("raise the I/O limit of the cgroup: io.max"),
            v1("raise the I/O limit of the cgroup: blkio.throttle.*"),
            any("spread the reads over time"),
        ],
        "Documentation/admin-guide/cgroup-v2.rst, IO; block/blk-throttle.c",
    ),
    of(
        "device_held",
        "A stacked device held the I/O: device-mapper (crypt, thin, delay, snapshot, cache), md or bcache had accepted the bio, and no device below it was serving a part of it. The time is spent in the target's queues and worker threads, for example on encryption or on metadata.",
        "The time of the bio on the upper device that no request to another device covers. Without recorded requests of the devices below, all of its time counts.",
        &[
            any("check the target of the device: dmsetup table, dmsetup status, /proc/mdstat"),
            any("compare with the device below: whyslow block stats"),
        ],
        "Documentation/admin-guide/device-mapper; Documentation/admin-guide/md.rst",
    ),
    of(
        "journal_wait",
        "An ext4 handle waits for its transaction: in start_this_handle() while the transaction is locked, in do_get_write_access() for a buffer that the commit writes, in jbd2_log_wait_commit() for the end of the commit. On XFS: for log space, in xlog_grant_head_wait().",
        "The stack of the wait, then what the journal thread waits for. Its requests are attributed to the thread in a sync call at that time (grade B). A wait for a metadata block that ends with a request is a block wait.",
        &[
            any("call sync or fsync less often, or move the caller to a separate file system"),
            any("put the journal on another device; enable fast_commit (Linux 5.10)"),
        ],
        "Documentation/filesystems/ext4/journal.rst; fs/jbd2",
    ),
    of(
        "writeback_wait",
        "Dirty pages had to be written back before the thread could continue: wb_wait_for_completion() in a sync, folio_wait_writeback() for a page under writeback (stable pages), or the worker had not started yet.",
        "The stack of the wait, and the worker that writes. The pages are attributed to the process that wrote most to files of that device in the last 30 s.",
        &[
            any("write smaller amounts: sync_file_range, smaller vm.dirty_background_bytes"),
            any("do not rewrite pages that are under writeback"),
        ],
        "Documentation/admin-guide/sysctl/vm.rst; mm/page-writeback.c",
    ),
    of(
        "sync_storm",
        "sync, syncfs or a large fsync makes the kernel flush all dirty pages and commit the journal. Threads that need a block under writeback, journal space or the disk wait until that is done.",
        "The thread waited for requests, or behind requests, of the thread in sync or of the workers that flushed for it.",
        &[
            any("run the process that calls sync at another time, or on another file system"),
            v2("limit the process that calls sync: io.max of its cgroup"),
            bfq("lower its I/O priority: ionice -c 3 -p PID"),
            any("keep fewer dirty pages: vm.dirty_background_bytes, vm.dirty_bytes"),
        ],
        "man 2 sync; fs/sync.c; fs/fs-writeback.c",
    ),
    of(
        "reclaim",
        "The thread allocated memory and had to reclaim some first: try_to_free_pages(), or try_to_free_mem_cgroup_pages() if its cgroup is at its limit. It scans pages, waits for writeback, and may swap out.",
        "mm_vmscan_direct_reclaim_begin to end, or the events of the cgroup, whether the thread ran or slept.",
        &[
            any("use less memory, or add memory"),
            v2("raise memory.max or memory.high of the cgroup, if it is at its limit"),
            v1("raise memory.limit_in_bytes of the cgroup, if it is at its limit"),
            any("keep more memory free: vm.min_free_kbytes, vm.watermark_scale_factor"),
        ],
        "Documentation/admin-guide/mm/concepts.rst; mm/vmscan.c",
    ),
    of(
        "memory_throttle",
        "Reclaim made no progress and throttled the thread: reclaim_throttle() (Linux 5.16), congestion_wait() before that; or memory.high did, in mem_cgroup_handle_over_high().",
        "mm_vmscan_throttled with its reason and duration.",
        &[
            v2("raise memory.high of the cgroup"),
            any("find the process that uses the memory: whyslow mem usage"),
        ],
        "Documentation/admin-guide/cgroup-v2.rst, Memory; mm/vmscan.c",
    ),
    of(
        "swap_in",
        "A page of the program was on a swap device and had to be read: do_swap_page(). With zram there is no request; the time is CPU time in a page fault.",
        "The stack of the wait, and the request that ended it.",
        &[
            any("add memory, or limit the memory of other processes"),
            any("protect the pages that must stay in memory: mlock"),
            v2("protect the memory of the cgroup: memory.min"),
        ],
        "Documentation/admin-guide/blockdev/zram.rst; mm/memory.c",
    ),
    of(
        "page_fault_io",
        "A page of a mapped file was not in the page cache: filemap_fault() reads it while the thread waits, outside of any system call.",
        "A wait for the thread's own request outside of system calls.",
        &[any(
            "read ahead: madvise(MADV_WILLNEED), vmtouch; protect the page cache from other processes",
        )],
        "man 2 madvise; mm/filemap.c",
    ),
    of(
        "lock_futex",
        "Another thread of the program held the lock. Threads wait in futex_wait(); a thread that unlocks a contended lock calls futex(FUTEX_WAKE). A running thread may acquire the mutex before the woken thread gets it (barging).",
        "Futex calls at the same address. Each recorded release splits the wait; the piece before it is attributed to the thread that released. Condition variables look the same: then it is the thread that signals.",
        &[
            any("shorten the critical section: no I/O and no sleep in it"),
            any("use more, finer-grained locks, or a fair lock if barging starves waiters"),
        ],
        "man 2 futex; Documentation/locking; kernel/futex",
    ),
    of(
        "lock_program",
        "The thread waited for a monitor (synchronized), a lock of java.util.concurrent, or a mutex that another thread of the program held. With async-profiler, JavaMonitorEnter and ThreadPark events (--lock) report the wait; otherwise it is inferred from stacks that end in the code of the lock.",
        "The holder is inferred: another thread was in code of the class that the waiter wanted to enter, or the runtime reported that it had acquired the lock. Waits for conditions, queues and permits are not included.",
        &[
            any("see what the holder did: whyslow threads dump --at TIME"),
            any("hold the lock for a shorter time: no I/O while holding it"),
        ],
        "docs/imports.md",
    ),
    of(
        "unseen_wait",
        "A sampler that sends signals to all threads got no sample of this one for several rounds: the thread was in an uninterruptible wait (TASK_UNINTERRUPTIBLE), which delays signals. The next sample shows the system call that it returned from.",
        "At least four sampling rounds were missed, and the next sample is in a file or memory call. A late sampler misses all threads, which is not counted. If the recorder sampled the thread from outside at the same time, that confirms or refutes the wait.",
        &[
            any("sample the thread from outside: whyslow record --stacks wall:10ms -p PID"),
            any("record kernel events of that time: whyslow record"),
        ],
        "docs/imports.md",
    ),
    of(
        "lock_kernel",
        "Another thread held a kernel lock (mutex, rwsem, semaphore): __mutex_lock_slowpath(), rwsem_down_read_slowpath(), rwsem_down_write_slowpath().",
        "lock:contention_begin and _end (Linux 5.19) with address and stack; the holder is the thread that woke the waiters. Readers share a lock: then the reader that woke the waiter on release is named.",
        &[any(
            "check the stack for what is shared: mmap_lock, a directory, a mount",
        )],
        "Documentation/locking; include/trace/events/lock.h",
    ),
    of(
        "lock_inode",
        "Another thread held the inode lock of a file: inode->i_rwsem, or on XFS the IOLOCK in xfs_ilock(). XFS also takes it in shared mode in sendfile and splice (xfs_file_splice_read), so a reader that waits for the disk blocks writers of the file; ext4 does not.",
        "A lock wait with such a function in its stack, and the holder's own call on the file.",
        &[
            any(
                "separate the files of writers from those of readers of old data: use smaller segments",
            ),
            any("use a newer kernel, or ext4, where only reads of a file block its writes"),
        ],
        "Documentation/filesystems/locking.rst; fs/xfs/xfs_file.c",
    ),
    of(
        "lock_file",
        "Another process held a lock on a file: fcntl(F_SETLKW), flock(), or a program that is refused the lock (EAGAIN) and tries again after a sleep, such as SQLite with a busy timeout.",
        "Blocking calls: the thread that woke the waiter, with the same path on both sides. Refused calls: the process that locked the file before, was not refused itself, and whose next call on the file precedes the successful attempt; at most grade B.",
        &[
            any(
                "hold the lock for a shorter time: keep transactions short, and do no other work in them",
            ),
            any("SQLite: use WAL mode, in which readers do not wait for the writer"),
            any("list file locks: cat /proc/locks"),
        ],
        "man 2 fcntl, Advisory record locking; man 2 flock; fs/locks.c",
    ),
    of(
        "pipe_wait",
        "The other end of a pipe had not written, or not read: pipe_read(), pipe_write().",
        "Woken by a thread in a call on a pipe, on the same pipe if its number was recorded.",
        &[any(
            "check the process at the other end: the time is attributed to it",
        )],
        "man 7 pipe; fs/pipe.c",
    ),
    of(
        "local_ipc",
        "Another thread on this machine had not replied, over a socket (unix, or TCP over loopback) or an eventfd. Data sent over loopback arrives within the sender's own call.",
        "Woken by a thread in a call on such an object, or in a softirq within the sender's call; if packets were recorded, by the packet that it sent.",
        &[any("check the other process: the time is attributed to it")],
        "man 7 unix; net/core/dev.c",
    ),
    of(
        "network_remote",
        "A packet from another host ended the wait: the time is that of the server and of the network.",
        "Woken in NET_RX with a known connection. What the other host did is not in this recording.",
        &[
            other_host(
                "record on the other host, too, and pass both recordings: whyslow explain --across",
            ),
            any("check the round-trip times of the connection: whyslow tcp top"),
        ],
        "man 7 tcp",
    ),
    of(
        "network_retransmit",
        "A segment was not acknowledged and was retransmitted: after at least 200 ms, doubling each time; a SYN after 1 s (since Linux 6.5 four times at that interval, tcp_syn_linear_timeouts).",
        "tcp_retransmit_skb for the connection within the wait.",
        &[
            any("check for packet loss: whyslow net log --op drop,retransmit"),
            any("check for a full listen queue: nstat TcpExtListenOverflows"),
        ],
        "Documentation/networking/ip-sysctl.rst; net/ipv4/tcp_timer.c",
    ),
    of(
        "send_delayed",
        "The thread had sent data, but the kernel delayed it: Nagle's algorithm waits for the acknowledgement of earlier data, which the peer delays by 40 ms or more; or the receive window of the peer was full.",
        "Both sides waited, and the packet that woke the peer on the same connection was not sent within any thread's call.",
        &[
            any("send related data in one call (writev, MSG_MORE, TCP_CORK), or set TCP_NODELAY"),
            any("list the packets of that time: whyslow net log"),
        ],
        "RFC 896; RFC 9293, 3.7.4 and 3.8.6.3",
    ),
    of(
        "send_buffer",
        "The send buffer of a socket was full: sk_stream_wait_memory(). The peer had not read or not acknowledged earlier data, or the network was slow.",
        "The stack or the call of the wait, and a wakeup while packets were processed. What the peer did is not in this recording.",
        &[
            other_host(
                "record on the other host, too, and pass both recordings: whyslow explain --across",
            ),
            any("check the connection: ss -tinm, whyslow tcp top"),
        ],
        "man 7 tcp; net/core/stream.c",
    ),
    of(
        "dns_lookup",
        "A DNS lookup. The resolver of glibc waits 5 s for each name server before it queries the next (options timeout, attempts); musl queries all at once, for 2.5 s per attempt.",
        "The lookup function was recorded, or a wait for port 53 that timed out.",
        &[
            any("cache lookups (nscd, systemd-resolved), or fix the name server"),
            any("set `options timeout:1 attempts:3 single-request-reopen` in resolv.conf"),
        ],
        "man 5 resolv.conf",
    ),
    of(
        "timer_sleep",
        "The thread slept by its own timer: nanosleep, or a poll or lock with a timeout that expired.",
        "The return value of the call indicates a timeout, and a timer woke the thread.",
        &[
            any(
                "wait for the event instead of sleeping, and hold no lock or transaction meanwhile",
            ),
            any("record what it does between sleeps: whyslow record --what +syscalls --stacks 1ms"),
        ],
        "man 2 nanosleep; man 2 poll",
    ),
    of(
        "polling",
        "The thread polled: it tried, slept for a short time, and tried again. What it polled for is the cause, not the timer.",
        "A refused call (EAGAIN, EEXIST, ENOENT, ECONNREFUSED) before the sleep and the same call after it; or at least three short sleeps in a row with nothing in between.",
        &[
            any("wait for the event instead of polling"),
            any(
                "record the program's stacks to see what it polls for: whyslow record --stacks 1ms",
            ),
        ],
        "man 2 nanosleep",
    ),
    of(
        "irq_stolen",
        "Interrupt handlers and softirqs ran on the CPU of the thread: they take precedence over all threads.",
        "Handlers on the CPU while the thread ran, recorded with --what +irq; without that the time counts as running.",
        &[
            any("spread interrupts over CPUs: irqbalance, /proc/irq/N/smp_affinity, RPS"),
            any("enable interrupt moderation of the device: ethtool -C"),
        ],
        "Documentation/core-api/irq; Documentation/networking/scaling.rst",
    ),
    of(
        "child_wait",
        "The thread waited for a child process: do_wait().",
        "In wait4 or waitid, woken by the child.",
        &[any("check the child process: the time is attributed to it")],
        "man 2 wait",
    ),
    of(
        "signal_stop",
        "A signal (SIGSTOP, SIGTSTP) or a debugger stopped all threads of the process: do_signal_stop(), ptrace_stop().",
        "State T or t, and the sender of the signal.",
        &[any("find the sender of the signal: whyslow signals log")],
        "man 7 signal; man 2 ptrace",
    ),
    of(
        "frozen",
        "The freezer stopped all threads of the cgroup: do_freezer_trap() with cgroup.freeze (cgroup v2), __refrigerator() with freezer.state (v1) and during a suspend. Container runtimes do this for pause and for checkpoints.",
        "The stack of the wait. The culprit is the thread that wrote to cgroup.freeze of this cgroup or of one above it; without that call, the thread that thawed it.",
        &[
            any("list frozen cgroups: grep -l 1 /sys/fs/cgroup/**/cgroup.freeze"),
            any("check the container runtime: pause, checkpoint, snapshot"),
        ],
        "Documentation/admin-guide/cgroup-v2.rst, Core Interface Files; kernel/cgroup/freezer.c",
    ),
    of(
        "fs_frozen",
        "A process froze the file system: ioctl FIFREEZE, as fsfreeze, LVM and backup agents do for a consistent snapshot. It waits until pages are written, then all writers wait in sb_start_write() until FITHAW.",
        "The stack of the wait (the lock that writers share with the freezing) and the call that froze a file system with the file. The culprit is the thread that froze it; usually another one thaws it.",
        &[
            any(
                "keep the file system frozen only while the snapshot is created: check the hooks of the backup agent",
            ),
            any("list snapshots and their times: journalctl, lvs -o +lv_time"),
        ],
        "man 8 fsfreeze; fs/super.c, freeze_super",
    ),
    of(
        "runtime_pause",
        "The runtime of the program paused all its threads: a garbage collection, or another operation at a safepoint (deoptimization, thread dump, heap dump).",
        "The thread waited at a futex for the thread of the runtime that stops the others (VM Thread of HotSpot).",
        &[
            any("check the log of the collector: -Xlog:gc*,safepoint"),
            any("use a concurrent collector (ZGC, Shenandoah), or allocate less"),
        ],
        "docs/imports.md",
    ),
    of(
        "fuse_wait",
        "The file system is in user space, and its daemon had not replied: request_wait_answer().",
        "The stack of the wait, and the thread that woke it.",
        &[any("check the daemon: the time is attributed to it")],
        "Documentation/filesystems/fuse.rst; fs/fuse/dev.c",
    ),
    of(
        "temporary_files",
        "A program writes data to files, reads it back once and deletes the files: the kernel writes back data that is no longer needed.",
        "Files of one pattern that are created, written and deleted within the recording.",
        &[any(
            "keep the data in memory, or put these files on a tmpfs",
        )],
        "Documentation/filesystems/tmpfs.rst",
    ),
    of(
        "misbehaving_disk",
        "One disk is slower than others of its kind for similar requests at the same number in flight: bad sectors and retries, a faulty link, a controller without cache.",
        "Tests against its peers: docs/outliers.md. A disk that merely gets more requests is not reported.",
        &[disk(
            "check its health (smartctl, nvme smart-log), its link and its controller; replace it",
        )],
        "docs/outliers.md",
    ),
    of(
        "io_wait",
        "The I/O of the call had not reached the disk yet, or, without scheduling events, the call waited for its own I/O.",
        "Less than a millisecond before a request starts; or, without scheduling events, the call's own requests.",
        &[],
        "Documentation/block/",
    ),
    of(
        "dirty_throttle",
        "Programs dirty pages faster than the disk writes them, and balance_dirty_pages() makes each writer sleep, up to 200 ms at a time: all writers of the device, not only the heaviest.",
        "writeback:balance_dirty_pages with its pause. It is attributed to the process that wrote most of the bytes to files of that device in the last 30 s.",
        &[
            any(
                "write less, start writeback early (sync_file_range), or bypass the page cache (O_DIRECT)",
            ),
            v2(
                "limit the writer with io.max and memory.high of its cgroup, so that only it is throttled",
            ),
            any("lower vm.dirty_bytes for shorter stalls, or raise it for fewer"),
        ],
        "Documentation/admin-guide/sysctl/vm.rst; mm/page-writeback.c",
    ),
    of(
        "cpu_idle_delay",
        "The thread was runnable, and the CPU on which it then ran was idle: the wakeup interrupt had to wake the CPU from a deep idle state, a virtual machine had lost its CPU to others (steal), or the thread was throttled and no stack shows it.",
        "No other thread on that CPU during the delay. Less than 0.1 ms is usual.",
        &[
            any("limit deep idle states (cpupower idle-set); for steal time, check the host"),
            any("with a CPU quota, check cpu.stat"),
        ],
        "Documentation/admin-guide/pm/cpuidle.rst",
    ),
    of(
        "device_irq",
        "A device interrupt ended the wait; as far as recorded, it is not a block device.",
        "Woken in the handler of that interrupt, in which no recorded request or packet ended.",
        &[any(
            "record block requests, packets and interrupts: whyslow record --what +block,net,irq",
        )],
        "Documentation/core-api/genericirq.rst",
    ),
    of(
        "kernel_wait",
        "The thread waited in the kernel for another thread, usually a kernel thread: wait_for_completion(), synchronize_rcu(), flush_work().",
        "The kernel function in which it slept, from its stack, and the thread that woke it.",
        &[any(
            "record workqueue items and kernel locks: whyslow record --what +work,locks",
        )],
        "Documentation/scheduler/completion.rst; Documentation/RCU",
    ),
    of(
        "producer_idle",
        "The thread that should do the work had not started on it: at the start of the wait it was itself waiting for work.",
        "Its own wait had started before, in a call that waits for work.",
        &[any(
            "check what delays that thread: its queue, scheduling, the number of workers",
        )],
        "docs/guide.md",
    ),
    of(
        "woken_by",
        "Another thread woke the thread. What it had waited for is unknown.",
        "Only the wakeup was recorded: no stack, lock or system call shows the reason.",
        &[any(
            "record stacks and locks (default topics): whyslow record",
        )],
        "docs/guide.md",
    ),
    of(
        "still_blocked",
        "The thread was still blocked when the recording ended, so what ended the wait is not recorded.",
        "A wait without a wakeup at the end of the recording.",
        &[any(
            "record for longer; find other blocked threads with `whyslow threads list`",
        )],
        "docs/guide.md",
    ),
    of(
        "lost",
        "Events of that time were lost.",
        "The recorder reports the loss; nothing is concluded from the remaining events.",
        &[any(
            "enlarge the buffer (--buffer), or record less: --what -TOPIC, -p, --min",
        )],
        "docs/guide.md",
    ),
    of(
        "unknown",
        "No recorded event shows the cause.",
        "The start, the end or the wakeup is missing.",
        &[any(
            "record the missing events, which each finding lists under `not recorded`",
        )],
        "docs/guide.md",
    ),
];

#[cfg(test)]
mod tests {
    use whyslow_model::mechanism::MECHANISMS;

    use super::{ALL, mechanism};

    #[test]
    fn every_mechanism_is_told_and_no_other() {
        for (id, _) in MECHANISMS {
            assert!(mechanism(id).is_some(), "{id}");
        }
        assert_eq!(ALL.len(), MECHANISMS.len());
        for mechanism in ALL {
            assert!(!mechanism.what.is_empty() && !mechanism.reference.is_empty());
        }
    }
}
