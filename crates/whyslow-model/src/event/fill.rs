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
    /// Every cause.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Mapped, Self::Other];

    /// As the column `cache_fill.cause` has it.
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
        /// Device of the file system, kernel `dev_t` with 20 minor bits.
        dev: i64,
        /// Inode number.
        inode: u64,
        /// Path below the root of the file system.
        path: &'a [u8],
    },
}

/// Pages of one file that came into the page cache by one call, or one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilledPages {
    /// When the call began, else when the first of them came.
    pub since: Ns,
    /// When it ended, else when the last of them came.
    pub until: Ns,
    /// Device of the file system, kernel `dev_t` with 20 minor bits.
    pub dev: i64,
    /// 0 for a block device itself.
    pub inode: u64,
    /// Number of pages.
    pub pages: i64,
    /// The same in bytes.
    pub bytes: i64,
    /// What made them come.
    pub cause: FillCause,
    /// The descriptor of the call that leads to the file.
    pub fd: Option<i32>,
}
