//! Records about the machine: processes, mounts, the stacking of devices, and counters. All but
//! [`Kind::Program`] come from the recorder's snapshots of `/proc` and `/sys`.

use super::cursor::Cursor;
use super::record::{Kind, RecordError};
use crate::counter::Values;

/// Properties of the head's process, from a BPF program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program<'b> {
    /// Id of its cgroup in the unified hierarchy.
    pub cgroup: u64,
    /// User id.
    pub uid: u32,
    /// Mount namespace number.
    pub mount_ns: u32,
    /// Recorded at the end of the process, rather than at exec.
    pub is_end: bool,
    /// Arguments, each terminated by a zero byte; possibly truncated.
    pub command_line: &'b [u8],
}

/// A mount in a mount namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MountRecord<'b> {
    /// Mount namespace number.
    pub mount_ns: u32,
    /// Mount id, as in `/proc/PID/mountinfo`.
    pub id: u32,
    /// Mount id of the parent.
    pub parent: u32,
    /// Kernel `dev_t` with 20 minor bits.
    pub dev: u32,
    /// Directory of the file system that is visible at the mount point.
    pub root: &'b [u8],
    /// Mount point in its namespace.
    pub point: &'b [u8],
    /// File system type.
    pub kind: &'b [u8],
    /// Source of the mount, such as `/dev/sda1`.
    pub source: &'b [u8],
    /// Mount options, comma-separated.
    pub options: &'b [u8],
}

/// Properties of a block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceAbout<'b> {
    /// Kernel `dev_t` with 20 minor bits.
    pub dev: u32,
    /// Whether the kernel considers it a rotating disk; `None` if it is not reported.
    pub rotational: Option<bool>,
    /// Size in bytes.
    pub size: Option<i64>,
    /// Type, as in the column `device.kind`: disk, part, loop, …
    pub kind: &'b [u8],
    /// Name of a mapping.
    pub label: &'b [u8],
    /// Backing file of a loop device.
    pub backing: &'b [u8],
}

/// Counters of the head's process, of a mount, or of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountersRecord<'b> {
    /// Mount namespace of the mount; 0 without a mount.
    pub mount_ns: u32,
    /// Mount id; 0 without a mount.
    pub mount_id: u32,
    /// Mount point; empty without a mount.
    pub place: &'b [u8],
    /// Values.
    pub values: Values<'b>,
}

/// A file that configures name resolution in a mount namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResolverFileRecord<'b> {
    /// Mount namespace number.
    pub mount_ns: u32,
    /// Size of the whole file in bytes; `None` if the file does not exist.
    pub size: Option<i64>,
    /// Path in that namespace.
    pub path: &'b [u8],
    /// First bytes of its content.
    pub text: &'b [u8],
}

/// Payload of the kinds that describe the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostRecord<'b> {
    /// Kind `Program`: a process executes a program, or ends.
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
    /// Kind `Root`: root directory of the head's process.
    Root {
        /// Path in its mount namespace.
        path: &'b [u8],
    },
    /// Kind `Cgroup`: a cgroup of the unified hierarchy, if it is the only one.
    Cgroup {
        /// Id of the cgroup: the inode number of its directory.
        id: u64,
        /// Path in the hierarchy.
        path: &'b [u8],
    },
    /// Kind `DeviceLink`: a device is stacked on another one.
    DeviceLink {
        /// Upper device, kernel `dev_t` with 20 minor bits.
        dev: u32,
        /// Underlying device, in the same form.
        below: u32,
        /// Relation, as in the column `device_link.kind`.
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
