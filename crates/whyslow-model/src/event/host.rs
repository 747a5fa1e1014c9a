//! What snapshots tell of the machine and its processes.

use crate::Ns;
use crate::counter::{ToldValues, Values};

/// Who a process is. What is absent is as it was, or unknown.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessAbout<'a> {
    pub pid: i32,
    pub ppid: Option<i32>,
    pub executable: Option<&'a [u8]>,
    pub command_line: Option<&'a [u8]>,
    pub uid: Option<i64>,
    pub user: Option<&'a [u8]>,
    /// Empty if it is in one that is not known.
    pub cgroup: Option<&'a [u8]>,
    pub container: Option<&'a [u8]>,
    pub mount_ns: Option<i64>,
    /// Its root directory, as its mount namespace names it.
    pub root: Option<&'a [u8]>,
    pub ts_created: Option<Ns>,
}

/// A mount of a mount namespace.
#[derive(Debug, Clone, Copy)]
pub struct StateMount<'a> {
    pub mount_ns: i64,
    pub id: i32,
    pub parent: i32,
    pub dev: i64,
    pub root: &'a [u8],
    pub point: &'a [u8],
    pub fs: &'a [u8],
    pub source: &'a [u8],
    pub options: &'a [u8],
}

/// A file that says how names of hosts are looked up, as a mount namespace has it.
#[derive(Debug, Clone, Copy)]
pub struct StateResolverFile<'a> {
    pub mount_ns: i64,
    pub path: &'a [u8],
    /// None if there is no such file.
    pub size: Option<i64>,
    /// As much of it as was kept.
    pub text: &'a [u8],
}

/// What a block device is.
#[derive(Debug, Clone, Copy)]
pub struct StateDevice<'a> {
    pub dev: i64,
    pub kind: &'a [u8],
    pub size: Option<i64>,
    pub rotational: Option<bool>,
    pub label: Option<&'a [u8]>,
    pub backing: Option<&'a [u8]>,
}

/// What counters of the machine, of a process or of a mount count.
#[derive(Debug, Clone, Copy, Default)]
pub struct StateCounters<'a> {
    pub pid: Option<i32>,
    /// Namespace, id and place.
    pub mount: Option<(i64, i32, &'a [u8])>,
    pub values: Values<'a>,
}

/// What another tool counted, of a process, of a part of the machine, or of all of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct ToldCounters<'a> {
    pub told_by: &'a str,
    pub pid: Option<i32>,
    pub subject: Option<&'a [u8]>,
    /// The time before the event that means and sums are of.
    pub interval: Option<Ns>,
    pub values: ToldValues<'a>,
}
