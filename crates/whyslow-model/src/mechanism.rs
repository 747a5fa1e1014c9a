//! Mechanisms of slowness: one list of ids that explanations, SQL, Python and tests use.

/// Id (lower snake case), meaning.
pub static MECHANISMS: &[(&str, &str)] = &[
    ("cpu_running", "the thread ran on a CPU"),
    ("cpu_runqueue", "the thread was runnable and others ran"),
    (
        "cpu_throttled",
        "the thread's control group had used up its CPU quota",
    ),
    ("block_service", "a device served the thread's own request"),
    (
        "block_queue",
        "a request waited behind other requests for the device",
    ),
    (
        "block_held",
        "I/O was held before the block layer (throttling, tags)",
    ),
    (
        "journal_wait",
        "a file system journal commit held a block or a transaction",
    ),
    ("writeback_wait", "dirty pages had to be written first"),
    (
        "sync_storm",
        "somebody's sync flooded the device or the journal",
    ),
    ("reclaim", "memory had to be reclaimed"),
    ("swap_in", "a page came back from swap"),
    ("page_fault_io", "a page of a file had to be read"),
    ("lock_futex", "a user-space lock was held by another thread"),
    (
        "lock_program",
        "another thread held a lock of the program or its runtime, as a profile shows",
    ),
    (
        "unseen_wait",
        "a sampler's signals did not reach the thread: it waited in the kernel",
    ),
    ("lock_kernel", "a kernel lock was held by another thread"),
    ("lock_inode", "the lock of a file's inode was held"),
    ("pipe_wait", "the other end of a pipe was slow"),
    ("local_ipc", "another local process had not answered yet"),
    ("network_remote", "a remote host had not answered yet"),
    ("network_retransmit", "packets were lost and sent again"),
    (
        "send_delayed",
        "what it had sent left later: the kernel waited for an acknowledgement or for room",
    ),
    ("dns_lookup", "a name was being resolved"),
    (
        "timer_sleep",
        "the thread slept for a time it had asked for",
    ),
    ("irq_stolen", "interrupt handlers took the CPU"),
    ("child_wait", "the thread waited for a child process"),
    (
        "signal_stop",
        "the thread was stopped by a signal or debugger",
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
        "the call waited for I/O of its own, as far as calls tell",
    ),
    (
        "memory_throttle",
        "the thread was held back because memory was short",
    ),
    (
        "dirty_throttle",
        "the thread was held back because it dirtied pages faster than they are written",
    ),
    (
        "cpu_idle_delay",
        "the thread was runnable while its CPU was idle",
    ),
    ("device_irq", "an interrupt of a device had not come yet"),
    (
        "kernel_wait",
        "a thread of the kernel had not done its part yet",
    ),
    ("producer_idle", "who was waited for had not begun yet"),
    (
        "woken_by",
        "another thread woke it; what it waited for is not known",
    ),
    (
        "still_blocked",
        "it waited until the recording ended; what for is not in it",
    ),
    ("lost", "events of that time were lost"),
    ("unknown", "cannot tell from what was recorded"),
];
