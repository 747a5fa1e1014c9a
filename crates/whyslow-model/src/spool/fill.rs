//! What comes into the page cache.

use super::RecordError;
use super::record::{Cursor, Kind};

/// Payload of the kinds `Fill` and `Inode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FillRecord<'b> {
    /// Pages of a file that came for the head's thread.
    Pages {
        /// When its call began, else when the first of them came.
        since: u64,
        /// When it ended, else when the last of them came.
        until: u64,
        /// 0 for a block device itself.
        inode: u64,
        /// Number of pages.
        pages: u64,
        /// The same in bytes.
        bytes: u64,
        /// The kernel's `dev_t`, with 20 bits for the minor number.
        dev: u32,
        /// What made them come.
        by: FillBy,
    },
    /// Where a file lies in its file system: names from the last one on, each with a zero byte.
    Place {
        /// Number of the inode.
        inode: u64,
        /// Device of its file system, in the form of `Pages::dev`.
        dev: u32,
        /// Names without slashes.
        names: &'b [u8],
    },
}

/// Who has pages of a file come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FillBy {
    /// A system call of the thread.
    Call {
        /// Number of the call.
        nr: u32,
        /// Which argument leads to the file, counted from 1, and the descriptor that it is; less than
        /// 0 where the calls of the process are not told.
        fd: Option<(u32, i32)>,
    },
    /// A page fault of the program.
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
