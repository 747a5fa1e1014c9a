//! Mechanisms of slowness: one list of ids for explanations, SQL, Python and tests.

/// Id (lower snake case) and meaning.
pub static MECHANISMS: &[(&str, &str)] = &[
    ("cpu_running", "the thread ran on a CPU"),
    (
        "cpu_runqueue",
        "the thread was runnable while other threads ran",
    ),
    (
        "cpu_throttled",
        "the thread's cgroup had used up its CPU quota",
    ),
    (
        "cpu_stalled",
        "the CPU stood still: hypervisor steal, an SMI, or interrupts off",
    ),
    (
        "block_service",
        "a device was serving the thread's own request",
    ),
    (
        "block_queue",
        "a request was queued behind other requests for the device",
    ),
    (
        "block_held",
        "I/O was throttled before the block layer (cgroup I/O limit or tag exhaustion)",
    ),
    (
        "device_held",
        "a stacked device (device-mapper, md, …) held the request before a disk below had it",
    ),
    (
        "journal_wait",
        "a journal commit of the file system held a block or a transaction",
    ),
    ("writeback_wait", "dirty pages had to be written back first"),
    (
        "sync_storm",
        "a sync of another thread flooded the device or the journal",
    ),
    ("reclaim", "memory had to be reclaimed"),
    ("swap_in", "a page had to be read from swap"),
    (
        "page_fault_io",
        "a file page had to be read from the device",
    ),
    ("lock_futex", "a user-space lock was held by another thread"),
    (
        "lock_program",
        "a lock of the program or its runtime was held by another thread, according to a profile",
    ),
    (
        "unseen_wait",
        "a sampler's signals did not reach the thread: it waited in the kernel",
    ),
    ("lock_kernel", "a kernel lock was held by another thread"),
    ("lock_inode", "the inode lock of a file was held"),
    ("lock_file", "a lock on a file was held by another process"),
    ("pipe_wait", "the other end of a pipe was slow"),
    ("local_ipc", "another local process had not replied"),
    ("network_remote", "a remote host had not replied"),
    ("network_retransmit", "packets were lost and retransmitted"),
    (
        "send_delayed",
        "sending was delayed: the kernel waited for an acknowledgement or for window space",
    ),
    (
        "send_buffer",
        "the send buffer was full: the peer had not read or acknowledged the data",
    ),
    ("dns_lookup", "a DNS lookup was in progress"),
    ("timer_sleep", "the thread slept by its own timer"),
    (
        "polling",
        "the thread polled: it slept between attempts for something that was not there yet",
    ),
    ("irq_stolen", "interrupt handlers took the CPU"),
    ("child_wait", "the thread waited for a child process"),
    (
        "signal_stop",
        "the thread was stopped by a signal or a debugger",
    ),
    ("frozen", "the cgroup of the thread was frozen"),
    (
        "fs_frozen",
        "the file system was frozen, as it is for a snapshot",
    ),
    (
        "runtime_pause",
        "the runtime paused all threads of the program: garbage collection or a safepoint",
    ),
    (
        "fuse_wait",
        "the daemon of a FUSE file system had not replied",
    ),
    (
        "temporary_files",
        "files were written, read once and deleted",
    ),
    (
        "misbehaving_disk",
        "one device deviates from its peers under the same load",
    ),
    (
        "io_wait",
        "the call waited for its own I/O, as far as system calls show",
    ),
    (
        "memory_throttle",
        "the thread was throttled because memory was short",
    ),
    (
        "dirty_throttle",
        "the thread was throttled because it dirtied pages faster than they were written",
    ),
    (
        "cpu_idle_delay",
        "the thread was runnable while its CPU was idle",
    ),
    ("device_irq", "a device interrupt had not arrived"),
    (
        "kernel_wait",
        "the thread waited in the kernel for another thread, usually a kernel thread",
    ),
    (
        "producer_idle",
        "the thread that was waited for had not started yet",
    ),
    (
        "woken_by",
        "woken by another thread; what it waited for is unknown",
    ),
    (
        "still_blocked",
        "still waiting at the end of the recording; the reason was not recorded",
    ),
    ("lost", "events were lost during that time"),
    ("unknown", "no recorded event shows the cause"),
];
