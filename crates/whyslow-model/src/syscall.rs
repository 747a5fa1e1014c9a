//! What each system call means: its class of operation and which argument is what.

/// Class of operation of a system call. The text form is the `op` column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// Makes or names a descriptor: open, socket, accept, connect, dup, pipe, eventfd, …
    Open,
    Close,
    Read,
    Write,
    /// Reads one object and writes another: sendfile, splice, copy_file_range.
    ReadWrite,
    /// sync, fsync, fdatasync, msync, syncfs, sync_file_range.
    Sync,
    /// Operations on names and attributes: stat, rename, unlink, mkdir, truncate, fallocate, …
    Metadata,
    /// Waiting for readiness or completion: poll, select, epoll_wait, io_getevents, …
    Wait,
    /// Asynchronous I/O submission: io_submit, io_uring_enter.
    Submit,
    /// mmap, munmap, mprotect, brk, …
    Memory,
    /// futex and relatives.
    Lock,
    /// nanosleep, clock_nanosleep, pause, …
    Sleep,
    /// clone, execve, exit, wait, kill, …
    Process,
    /// Everything else.
    Other,
}

impl Op {
    pub const ALL: [Op; 14] = [
        Op::Open,
        Op::Close,
        Op::Read,
        Op::Write,
        Op::ReadWrite,
        Op::Sync,
        Op::Metadata,
        Op::Wait,
        Op::Submit,
        Op::Memory,
        Op::Lock,
        Op::Sleep,
        Op::Process,
        Op::Other,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Op::Open => "open",
            Op::Close => "close",
            Op::Read => "read",
            Op::Write => "write",
            Op::ReadWrite => "read_write",
            Op::Sync => "sync",
            Op::Metadata => "metadata",
            Op::Wait => "wait",
            Op::Submit => "submit",
            Op::Memory => "memory",
            Op::Lock => "lock",
            Op::Sleep => "sleep",
            Op::Process => "process",
            Op::Other => "other",
        }
    }

    pub fn by_name(name: &str) -> Option<Op> {
        Op::ALL.into_iter().find(|op| op.name() == name)
    }

    /// Whether the `io` kind counts it.
    pub fn is_io(self) -> bool {
        matches!(
            self,
            Op::Open
                | Op::Close
                | Op::Read
                | Op::Write
                | Op::ReadWrite
                | Op::Sync
                | Op::Metadata
                | Op::Submit
        )
    }
}
