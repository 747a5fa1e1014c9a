//! Work of the kernel that others wait for.

use crate::Ns;

/// Work of the kernel that others wait for, or a wait that it imposes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkKind {
    /// A transaction of a journal (jbd2) becomes permanent.
    JournalCommit,
    /// Dirty pages of a device are written.
    Writeback,
    /// A thread that dirties pages is held back.
    DirtyThrottle,
    /// A thread waits for room in the log of an XFS.
    LogWait,
    /// A thread that reclaims memory is held back.
    ReclaimThrottle,
    /// A thread waits for a buffer that the journal writes.
    BufferStall,
}

impl WorkKind {
    /// Every kind, in the order of the numbers that a spool uses.
    pub const ALL: [Self; 6] = [
        Self::JournalCommit,
        Self::Writeback,
        Self::DirtyThrottle,
        Self::LogWait,
        Self::ReclaimThrottle,
        Self::BufferStall,
    ];

    /// As the column `kernel_work.kind` has it.
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

/// How far a piece of work is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkPhase {
    /// The work begins.
    Begin,
    /// The work ends.
    End,
    /// A commit waits for those who change the transaction, …
    Locking,
    /// … writes the data of files, …
    Flushing,
    /// … and the journal.
    Logging,
    /// Told when it was over.
    Done,
}

impl WorkPhase {
    /// Every phase, in the order of the numbers that a spool uses.
    pub const ALL: [Self; 6] = [
        Self::Begin,
        Self::End,
        Self::Locking,
        Self::Flushing,
        Self::Logging,
        Self::Done,
    ];

    /// As the text format has it.
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

/// One step of a piece of work, on the thread of the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work<'a> {
    /// What kind of work.
    pub kind: WorkKind,
    /// How far it is.
    pub phase: WorkPhase,
    /// Device that it is for, kernel `dev_t` with 20 minor bits.
    pub dev: Option<i64>,
    /// Why it is done.
    pub reason: Option<&'a str>,
    /// Number of the transaction.
    pub transaction: Option<i64>,
    /// Pages still to be written.
    pub pages: Option<i64>,
    /// Of work that is told when it is over.
    pub dur: Option<Ns>,
}

/// How far a function that is called later is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemPhase {
    /// It is queued, by the thread of the context or an interrupt.
    Queued,
    /// Its workqueue has room for it, and had none when it was queued.
    Activated,
    /// A worker calls the function.
    Begin,
    /// The function returns.
    End,
}

impl ItemPhase {
    /// Every phase, in the order of the numbers that a spool uses.
    pub const ALL: [Self; 4] = [Self::Queued, Self::Activated, Self::Begin, Self::End];

    /// As the text format has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Activated => "activated",
            Self::Begin => "begin",
            Self::End => "end",
        }
    }
}

/// A function that the kernel calls later, by one of its own threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkItem<'a> {
    /// How far it is.
    pub phase: ItemPhase,
    /// Tells items apart until they begin.
    pub work: u64,
    /// Address of the function, where it is told.
    pub address: Option<u64>,
    /// Its name, where that was found.
    pub function: Option<&'a [u8]>,
    /// Name of the workqueue; empty where it is not told.
    pub workqueue: &'a [u8],
    /// The thread of the context does nothing else.
    pub is_worker: bool,
}
