//! What snapshots tell of the machine and its processes.

use crate::Ns;
use crate::counter::{ToldValues, Values};

/// Who a process is. What is absent is as it was, or unknown.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessAbout<'a> {
    /// Kernel process id.
    pub pid: i32,
    /// Process id of the parent.
    pub ppid: Option<i32>,
    /// Path of the executable.
    pub executable: Option<&'a [u8]>,
    /// Words, separated by zero bytes.
    pub command_line: Option<&'a [u8]>,
    /// User id.
    pub uid: Option<i64>,
    /// Name of that user.
    pub user: Option<&'a [u8]>,
    /// Empty if it is in one that is not known.
    pub cgroup: Option<&'a [u8]>,
    /// Id of the container that the cgroup belongs to.
    pub container: Option<&'a [u8]>,
    /// Number of its mount namespace.
    pub mount_ns: Option<i64>,
    /// Its root directory, as its mount namespace names it.
    pub root: Option<&'a [u8]>,
    /// When it was created, which may be long before the recording.
    pub ts_created: Option<Ns>,
}

/// A mount of a mount namespace.
#[derive(Debug, Clone, Copy)]
pub struct StateMount<'a> {
    /// Mount namespace that has it.
    pub mount_ns: i64,
    /// Mount id, unique in the namespace at one time.
    pub id: i32,
    /// Id of the mount that it is mounted on.
    pub parent: i32,
    /// Device of the file system, kernel `dev_t` with 20 minor bits.
    pub dev: i64,
    /// Path in the file system that is visible at the mount point.
    pub root: &'a [u8],
    /// Mount point in its namespace.
    pub point: &'a [u8],
    /// Type of the file system.
    pub fs: &'a [u8],
    /// Device or what else the file system says it is mounted from.
    pub source: &'a [u8],
    /// Mount options, comma-separated.
    pub options: &'a [u8],
}

/// A file that says how names of hosts are looked up, as a mount namespace has it.
#[derive(Debug, Clone, Copy)]
pub struct StateResolverFile<'a> {
    /// Mount namespace that has the file.
    pub mount_ns: i64,
    /// Path in that namespace, such as `/etc/resolv.conf`.
    pub path: &'a [u8],
    /// None if there is no such file.
    pub size: Option<i64>,
    /// As much of it as was kept.
    pub text: &'a [u8],
}

/// What a block device is.
#[derive(Debug, Clone, Copy)]
pub struct StateDevice<'a> {
    /// Kernel `dev_t` with 20 minor bits.
    pub dev: i64,
    /// As the column `device.kind` has it: disk, partition, loop, …
    pub kind: &'a [u8],
    /// Bytes.
    pub size: Option<i64>,
    /// Whether the kernel takes it for a rotating disk.
    pub rotational: Option<bool>,
    /// Name of a device mapping.
    pub label: Option<&'a [u8]>,
    /// File behind a loop device.
    pub backing: Option<&'a [u8]>,
}

/// What counters of the machine, of a process or of a mount count.
#[derive(Debug, Clone, Copy, Default)]
pub struct StateCounters<'a> {
    /// Process that is counted; `None` with `mount` also `None` for the machine.
    pub pid: Option<i32>,
    /// Namespace, id and place.
    pub mount: Option<(i64, i32, &'a [u8])>,
    /// What was counted.
    pub values: Values<'a>,
}

/// What another tool counted, of a process, of a part of the machine, or of all of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct ToldCounters<'a> {
    /// Tool, such as `iostat`.
    pub told_by: &'a str,
    /// Process that is counted.
    pub pid: Option<i32>,
    /// Part of the machine that is counted: a device, a CPU, an interface.
    pub subject: Option<&'a [u8]>,
    /// The time before the event that means and sums are of.
    pub interval: Option<Ns>,
    /// What was counted.
    pub values: ToldValues<'a>,
}
