//! Page-cache fills.

use super::RecordError;
use super::record::{Cursor, Kind};

/// Payload of the kinds `Fill` and `Inode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FillRecord<'b> {
    /// Pages of a file added for the head's thread.
    Pages {
        /// Start of the call, otherwise the time of the first page.
        since: u64,
        /// End of the call, otherwise the time of the last page.
        until: u64,
        /// 0 for a block device itself.
        inode: u64,
        /// Number of pages.
        pages: u64,
        /// Size in bytes.
        bytes: u64,
        /// The kernel's `dev_t`, with 20 bits for the minor number.
        dev: u32,
        /// Cause of the fill.
        by: FillBy,
    },
    /// Path of a file in its file system: path components from the last one up, each with a zero
    /// byte.
    Place {
        /// Inode number.
        inode: u64,
        /// Device of its file system, in the form of `Pages::dev`.
        dev: u32,
        /// Path components, without slashes.
        names: &'b [u8],
    },
}

/// Cause of a page-cache fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FillBy {
    /// A system call of the thread.
    Call {
        /// Number of the call.
        nr: u32,
        /// Number of the argument that refers to the file, starting at 1, and the descriptor;
        /// negative if the calls of the process are not recorded.
        fd: Option<(u32, i32)>,
    },
    /// A page fault in user mode.
    Fault,
    /// A kernel thread.
    Kernel,
}

impl<'b> FillRecord<'b> {
    pub(super) fn take(kind: Kind, at: &mut Cursor<'b>) -> Result<Self, RecordError> {
        if kind == Kind::Inode {
            let (inode, dev, size) = (at.u64()?, at.u32()?, at.u32()?);
            let names = at.take(size as usize)?;
            return Ok(Self::Place { inode, dev, names });
        }
        let (since, until, inode) = (at.u64()?, at.u64()?, at.u64()?);
        let (pages, bytes, dev) = (at.u64()?, at.u64()?, at.u32()?);
        let (by, arg) = (at.u16()?, at.u16()?);
        let (nr, fd) = (at.u32()?, at.i32()?);
        Ok(Self::Pages {
            since,
            until,
            inode,
            pages,
            bytes,
            dev,
            by: match by {
                0 => FillBy::Call {
                    nr,
                    fd: (arg > 0).then_some((arg.into(), fd)),
                },
                1 => FillBy::Fault,
                _ => FillBy::Kernel,
            },
        })
    }
}
