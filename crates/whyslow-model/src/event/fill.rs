//! Page-cache fills.

use crate::Ns;

/// Cause of a page-cache fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FillCause {
    /// A call that reads the file, including readahead.
    Read,
    /// A call that writes the file: pages for the data, which need not be read.
    Write,
    /// Access to a mapping of the file, or a request to populate it.
    Mapped,
    /// Anything else: a readahead call, program execution, a kernel thread.
    Other,
}

impl FillCause {
    /// All causes.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Mapped, Self::Other];

    /// Value of the column `cache_fill.cause`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Mapped => "mapped",
            Self::Other => "other",
        }
    }
}

/// Files, identified by inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheFill<'a> {
    /// Pages of a file were added for the thread of the context.
    Pages(FilledPages),
    /// Path of a file in its file system.
    Place {
        /// Device of the file system, kernel `dev_t` with 20 minor bits.
        dev: i64,
        /// Inode number.
        inode: u64,
        /// Path below the root of the file system.
        path: &'a [u8],
    },
}

/// Pages of one file added to the page cache by one call, or in succession.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilledPages {
    /// Start of the call, otherwise the time of the first page.
    pub since: Ns,
    /// End of the call, otherwise the time of the last page.
    pub until: Ns,
    /// Device of the file system, kernel `dev_t` with 20 minor bits.
    pub dev: i64,
    /// 0 for a block device itself.
    pub inode: u64,
    /// Number of pages.
    pub pages: i64,
    /// Size in bytes.
    pub bytes: i64,
    /// Cause of the fill.
    pub cause: FillCause,
    /// Descriptor of the file in the call.
    pub fd: Option<i32>,
}
