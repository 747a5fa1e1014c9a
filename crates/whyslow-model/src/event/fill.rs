//! What comes into the page cache.

use crate::Ns;

/// Why pages of a file come into the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FillCause {
    /// A call that reads the file: what it wants, and what is read ahead with it.
    Read,
    /// A call that writes to the file: pages for what is written, which need not be read.
    Write,
    /// A mapping of the file that is touched, or whose pages are asked for.
    Mapped,
    /// Anything else: a call that reads ahead or runs a program, a thread of the kernel.
    Other,
}

impl FillCause {
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Mapped, Self::Other];

    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Mapped => "mapped",
            Self::Other => "other",
        }
    }
}

/// Files by their inodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheFill<'a> {
    /// Pages of a file came for the thread of the context.
    Pages(FilledPages),
    /// Where a file lies in its file system.
    Place {
        dev: i64,
        inode: u64,
        path: &'a [u8],
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilledPages {
    /// When the call began, else when the first of them came.
    pub since: Ns,
    /// When it ended, else when the last of them came.
    pub until: Ns,
    pub dev: i64,
    /// 0 for a block device itself.
    pub inode: u64,
    pub pages: i64,
    pub bytes: i64,
    pub cause: FillCause,
    /// The descriptor of the call that leads to the file.
    pub fd: Option<i32>,
}
