//! Records about the machine: who its processes are, what is mounted where, which devices lie on
//! which, and counters. All but [`Kind::Program`] come from the recorder's looks at `/proc` and
//! `/sys`.

use super::record::{Cursor, Kind, RecordError};

/// Who the head's process is, as a program in the kernel saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program<'b> {
    /// In the unified hierarchy.
    pub cgroup: u64,
    pub uid: u32,
    /// Number of the mount namespace.
    pub mount_ns: u32,
    /// Told when the process ends, rather than when it begins to run a program.
    pub is_end: bool,
    /// Words end with a zero byte; as much as there was room for.
    pub command_line: &'b [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostRecord<'b> {
    Program(Program<'b>),
    User { uid: u32, name: &'b [u8] },
}

pub(super) fn host<'b>(kind: Kind, at: &mut Cursor<'b>) -> Result<HostRecord<'b>, RecordError> {
    Ok(match kind {
        Kind::Program => HostRecord::Program(Program {
            cgroup: at.u64()?,
            uid: at.u32()?,
            mount_ns: at.u32()?,
            is_end: at.u32()? != 0,
            command_line: at.text()?,
        }),
        _ => HostRecord::User {
            uid: at.u32()?,
            name: at.text()?,
        },
    })
}
