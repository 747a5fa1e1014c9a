//! Contents of snapshots: the machine and its processes.

use crate::Ns;
use crate::counter::{ReportedValues, Values};

/// Properties of a process. `None` means unchanged or unknown.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessAbout<'a> {
    /// Kernel process id.
    pub pid: i32,
    /// Process id of the parent.
    pub ppid: Option<i32>,
    /// Path of the executable.
    pub executable: Option<&'a [u8]>,
    /// Arguments, separated by zero bytes.
    pub command_line: Option<&'a [u8]>,
    /// User id.
    pub uid: Option<i64>,
    /// Name of that user.
    pub user: Option<&'a [u8]>,
    /// Empty if the process is in an unknown cgroup.
    pub cgroup: Option<&'a [u8]>,
    /// Id of the container that the cgroup belongs to.
    pub container: Option<&'a [u8]>,
    /// Number of its mount namespace.
    pub mount_ns: Option<i64>,
    /// Root directory, relative to its mount namespace.
    pub root: Option<&'a [u8]>,
    /// Creation time, which may be long before the recording.
    pub ts_created: Option<Ns>,
}

/// A mount in a mount namespace.
#[derive(Debug, Clone, Copy)]
pub struct StateMount<'a> {
    /// Mount namespace that contains it.
    pub mount_ns: i64,
    /// Mount id, unique in the namespace at any time.
    pub id: i32,
    /// Id of the mount that it is mounted on.
    pub parent: i32,
    /// Device of the file system, kernel `dev_t` with 20 minor bits.
    pub dev: i64,
    /// Directory of the file system that is visible at the mount point.
    pub root: &'a [u8],
    /// Mount point in its namespace.
    pub point: &'a [u8],
    /// File system type.
    pub fs: &'a [u8],
    /// Device, or another source reported by the file system.
    pub source: &'a [u8],
    /// Mount options, comma-separated.
    pub options: &'a [u8],
}

/// A file that configures name resolution in a mount namespace.
#[derive(Debug, Clone, Copy)]
pub struct StateResolverFile<'a> {
    /// Mount namespace that contains the file.
    pub mount_ns: i64,
    /// Path in that namespace, such as `/etc/resolv.conf`.
    pub path: &'a [u8],
    /// `None` if the file does not exist.
    pub size: Option<i64>,
    /// Content, possibly truncated.
    pub text: &'a [u8],
}

/// Properties of a block device.
#[derive(Debug, Clone, Copy)]
pub struct StateDevice<'a> {
    /// Kernel `dev_t` with 20 minor bits.
    pub dev: i64,
    /// Type, as in the column `device.kind`: disk, part, loop, …
    pub kind: &'a [u8],
    /// Size in bytes.
    pub size: Option<i64>,
    /// Whether the kernel considers it a rotating disk.
    pub rotational: Option<bool>,
    /// Name of a device mapping.
    pub label: Option<&'a [u8]>,
    /// Backing file of a loop device.
    pub backing: Option<&'a [u8]>,
}

/// Counters of the machine, of a process or of a mount.
#[derive(Debug, Clone, Copy, Default)]
pub struct StateCounters<'a> {
    /// Process of the counters; `None` with `mount` also `None` for the machine.
    pub pid: Option<i32>,
    /// Mount namespace, mount id and mount point.
    pub mount: Option<(i64, i32, &'a [u8])>,
    /// Values.
    pub values: Values<'a>,
}

/// Counters reported by another tool: of a process, of a part of the machine, or of all of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReportedCounters<'a> {
    /// Tool, such as `iostat`.
    pub reported_by: &'a str,
    /// Process of the counters.
    pub pid: Option<i32>,
    /// Part of the machine: a device, a CPU, an interface.
    pub subject: Option<&'a [u8]>,
    /// Interval before the event that means and sums refer to.
    pub interval: Option<Ns>,
    /// Values.
    pub values: ReportedValues<'a>,
}
