//! Records about the machine: who its processes are, what is mounted where, which devices lie on
//! which, and counters. All but [`Kind::Program`] come from the recorder's looks at `/proc` and
//! `/sys`.

use super::cursor::Cursor;
use super::record::{Kind, RecordError};
use crate::counter::Values;

/// Who the head's process is, as a program in the kernel saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program<'b> {
    /// In the unified hierarchy.
    pub cgroup: u64,
    /// User id.
    pub uid: u32,
    /// Number of the mount namespace.
    pub mount_ns: u32,
    /// Told when the process ends, rather than when it begins to run a program.
    pub is_end: bool,
    /// Words end with a zero byte; as much as there was room for.
    pub command_line: &'b [u8],
}

/// A mount of a mount namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MountRecord<'b> {
    /// Number of the mount namespace.
    pub mount_ns: u32,
    /// Mount id, as in `/proc/PID/mountinfo`.
    pub id: u32,
    /// Mount id of the parent.
    pub parent: u32,
    /// Kernel `dev_t` with 20 minor bits.
    pub dev: u32,
    /// What of the file system is seen there.
    pub root: &'b [u8],
    /// Mount point in its namespace.
    pub point: &'b [u8],
    /// Of the file system.
    pub kind: &'b [u8],
    /// Source of the mount, such as `/dev/sda1`.
    pub source: &'b [u8],
    /// Mount options, comma-separated.
    pub options: &'b [u8],
}

/// What a block device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceAbout<'b> {
    /// Kernel `dev_t` with 20 minor bits.
    pub dev: u32,
    /// Whether the kernel takes it for a rotating disk; `None` where it does not say.
    pub rotational: Option<bool>,
    /// Bytes.
    pub size: Option<i64>,
    /// As the column `device.kind` has it: disk, partition, loop, …
    pub kind: &'b [u8],
    /// Name of a mapping.
    pub label: &'b [u8],
    /// File of a loop device.
    pub backing: &'b [u8],
}

/// Counters of the head's process, or of a mount, or of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountersRecord<'b> {
    /// Mount namespace of the mount; 0 without a mount.
    pub mount_ns: u32,
    /// 0 for none.
    pub mount_id: u32,
    /// Mount point; empty without a mount.
    pub place: &'b [u8],
    /// What was counted.
    pub values: Values<'b>,
}

/// A file that says how names of hosts are looked up, as a mount namespace has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResolverFileRecord<'b> {
    /// Number of the mount namespace.
    pub mount_ns: u32,
    /// Bytes of the whole file; none if there is no such file.
    pub size: Option<i64>,
    /// Path in that namespace.
    pub path: &'b [u8],
    /// Its first bytes.
    pub text: &'b [u8],
}

/// Payload of the kinds that describe the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostRecord<'b> {
    /// Kind `Program`: a process begins to run a program, or ends.
    Program(Program<'b>),
    /// Kind `User`: the name of a user id.
    User {
        /// User id.
        uid: u32,
        /// Name of the user.
        name: &'b [u8],
    },
    /// Kind `Mount`.
    Mount(MountRecord<'b>),
    /// Kind `DeviceAbout`.
    DeviceAbout(DeviceAbout<'b>),
    /// Kind `Counters`.
    Counters(CountersRecord<'b>),
    /// Kind `ResolverFile`.
    ResolverFile(ResolverFileRecord<'b>),
    /// Root directory of the head's process.
    Root {
        /// Path in its mount namespace.
        path: &'b [u8],
    },
    /// A control group of the unified hierarchy, where there is no other.
    Cgroup {
        /// Id of the control group: the inode number of its directory.
        id: u64,
        /// Path in the hierarchy.
        path: &'b [u8],
    },
    /// A device lies on another one.
    DeviceLink {
        /// Device above, kernel `dev_t` with 20 minor bits.
        dev: u32,
        /// Device below, in the same form.
        below: u32,
        /// As the column `device_link.kind` has it.
        kind: &'b [u8],
    },
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
        Kind::Mount => HostRecord::Mount(MountRecord {
            mount_ns: at.u32()?,
            id: at.u32()?,
            parent: at.u32()?,
            dev: at.u32()?,
            root: at.text()?,
            point: at.text()?,
            kind: at.text()?,
            source: at.text()?,
            options: at.text()?,
        }),
        Kind::DeviceAbout => HostRecord::DeviceAbout(DeviceAbout {
            dev: at.u32()?,
            rotational: match at.u32()? {
                0 => Some(false),
                1 => Some(true),
                _ => None,
            },
            size: i64::try_from(at.u64()?).ok(),
            kind: at.text()?,
            label: at.text()?,
            backing: at.text()?,
        }),
        Kind::Counters => HostRecord::Counters(CountersRecord {
            mount_ns: at.u32()?,
            mount_id: at.u32()?,
            place: at.text()?,
            values: Values(at.text()?),
        }),
        Kind::Cgroup => HostRecord::Cgroup {
            id: at.u64()?,
            path: at.text()?,
        },
        Kind::ResolverFile => HostRecord::ResolverFile(ResolverFileRecord {
            mount_ns: at.u32()?,
            size: i64::try_from(at.u64()?).ok(),
            path: at.text()?,
            text: at.text()?,
        }),
        Kind::Root => HostRecord::Root { path: at.text()? },
        Kind::DeviceLink => HostRecord::DeviceLink {
            dev: at.u32()?,
            below: at.u32()?,
            kind: at.text()?,
        },
        _ => HostRecord::User {
            uid: at.u32()?,
            name: at.text()?,
        },
    })
}
