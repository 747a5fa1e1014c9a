//! Kernel work that threads wait for.

use crate::Ns;

/// Kernel work that threads wait for, or a wait that the kernel imposes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkKind {
    /// A journal (jbd2) commits a transaction.
    JournalCommit,
    /// Dirty pages of a device are written.
    Writeback,
    /// A thread that dirties pages is throttled.
    DirtyThrottle,
    /// A thread waits for space in an XFS log.
    LogWait,
    /// A thread in reclaim is throttled.
    ReclaimThrottle,
    /// A thread waits for a buffer that the journal is writing.
    BufferStall,
}

impl WorkKind {
    /// All kinds, in the order of their numbers in a spool.
    pub const ALL: [Self; 6] = [
        Self::JournalCommit,
        Self::Writeback,
        Self::DirtyThrottle,
        Self::LogWait,
        Self::ReclaimThrottle,
        Self::BufferStall,
    ];

    /// Value of the column `kernel_work.kind`.
    pub fn name(self) -> &'static str {
        match self {
            Self::JournalCommit => "journal_commit",
            Self::Writeback => "writeback",
            Self::DirtyThrottle => "dirty_throttle",
            Self::LogWait => "log_wait",
            Self::ReclaimThrottle => "reclaim_throttle",
            Self::BufferStall => "buffer_stall",
        }
    }
}

/// Phase of kernel work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkPhase {
    /// Start of the work.
    Begin,
    /// End of the work.
    End,
    /// A commit waits for open handles of the transaction, …
    Locking,
    /// … writes file data, …
    Flushing,
    /// … and the journal.
    Logging,
    /// Reported only at its end.
    Done,
}

impl WorkPhase {
    /// All phases, in the order of their numbers in a spool.
    pub const ALL: [Self; 6] = [
        Self::Begin,
        Self::End,
        Self::Locking,
        Self::Flushing,
        Self::Logging,
        Self::Done,
    ];

    /// Name in the text format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Begin => "begin",
            Self::End => "end",
            Self::Locking => "locking",
            Self::Flushing => "flushing",
            Self::Logging => "logging",
            Self::Done => "done",
        }
    }
}

/// One phase of kernel work, on the thread of the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work<'a> {
    /// Kind of work.
    pub kind: WorkKind,
    /// Phase of the work.
    pub phase: WorkPhase,
    /// Device that the work is for, kernel `dev_t` with 20 minor bits.
    pub dev: Option<i64>,
    /// Reason for the work.
    pub reason: Option<&'a str>,
    /// Transaction number.
    pub transaction: Option<i64>,
    /// Pages still to be written.
    pub pages: Option<i64>,
    /// Duration of work that is reported only at its end.
    pub dur: Option<Ns>,
}

/// Phase of a workqueue item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemPhase {
    /// Queued by the thread of the context, or by an interrupt.
    Queued,
    /// Its workqueue has a free slot for it, which it did not have when the item was queued.
    Activated,
    /// A worker calls the function of the item.
    Begin,
    /// The function returns.
    End,
}

impl ItemPhase {
    /// All phases, in the order of their numbers in a spool.
    pub const ALL: [Self; 4] = [Self::Queued, Self::Activated, Self::Begin, Self::End];

    /// Name in the text format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Activated => "activated",
            Self::Begin => "begin",
            Self::End => "end",
        }
    }
}

/// A workqueue item: a function that a kernel thread runs later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkItem<'a> {
    /// Phase of the item.
    pub phase: ItemPhase,
    /// Identifies the item until it starts.
    pub work: u64,
    /// Address of the function, if reported.
    pub address: Option<u64>,
    /// Name of the function, if it was resolved.
    pub function: Option<&'a [u8]>,
    /// Name of the workqueue; empty if it is not reported.
    pub workqueue: &'a [u8],
    /// The thread of the context is a worker.
    pub is_worker: bool,
}
