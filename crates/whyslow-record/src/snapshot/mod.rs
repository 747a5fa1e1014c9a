//! What the machine looks like at a moment: events tell only what changes.

mod devices;
mod host;
mod mounts;
mod processes;
mod tree;
mod users;

use std::path::Path;

pub(crate) use mounts::Mount;
pub(crate) use processes::{mount_ns, numbers as pids};
use whyslow_model::spool::{Encoder, Kind};

use crate::clock::{self, Clocks};

/// What everything after it is to be understood by.
pub(crate) fn head(encoder: &mut Encoder, pids: &[i32], topics: &str) {
    clocks(encoder);
    host::facts(encoder, topics);
    users::all(encoder, Path::new("/etc/passwd"));
    processes::first(encoder, Path::new("/proc"), pids);
}

/// Who a process is; nothing if it has ended.
pub(crate) fn about(encoder: &mut Encoder, proc: &Path, pid: i32, now: &Clocks) {
    processes::about(encoder, &proc.join(pid.to_string()), pid, now);
}

/// All of `/proc` and `/sys` that answers need. What vanishes meanwhile is left out.
pub(crate) fn all(encoder: &mut Encoder) {
    devices::block(encoder, Path::new("/sys/class/block"));
    tree::all(encoder, Path::new("/sys/class/block"));
    mounts::all(encoder, Path::new("/proc"));
    devices::net(encoder, Path::new("/sys/class/net"));
    devices::irqs(encoder, Path::new("/proc/irq"));
    processes::all(encoder, Path::new("/proc"));
    encoder
        .begin(Kind::SnapshotEnd, clock::monotonic(), (0, 0))
        .end();
}

pub(crate) fn clocks(encoder: &mut Encoder) {
    let Clocks {
        monotonic,
        boot,
        real,
    } = clock::clocks();
    encoder
        .begin(Kind::Clock, monotonic, (0, 0))
        .u64(boot)
        .u64(real as u64)
        .end();
}
