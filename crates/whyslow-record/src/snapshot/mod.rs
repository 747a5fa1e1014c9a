//! Snapshot of the machine's state: events only report changes.

mod devices;
mod host;
mod mounts;
mod processes;
mod resolver;
mod sockets;
mod tree;
mod unix_peers;
mod users;

use std::path::Path;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

pub(crate) use mounts::Mount;
pub(crate) use processes::{any_root, mount_ns, numbers as pids, put_root};
pub(crate) use resolver::Files as ResolverFiles;
use whyslow_model::spool::{Encoder, Kind};

use crate::clock::{self, Clocks};

/// Data that all later records depend on.
pub(crate) fn head(encoder: &mut Encoder, now: &Clocks, pids: &[i32], topics: &str) {
    clocks(encoder, now);
    host::facts(encoder, topics);
    users::all(encoder, Path::new("/etc/passwd"));
    mounts::own(encoder, Path::new("/proc"));
    processes::first(encoder, Path::new("/proc"), pids);
}

/// Describes a process; nothing if it has exited.
pub(crate) fn about(encoder: &mut Encoder, proc: &Path, pid: i32, now: &Clocks) {
    processes::about(encoder, &proc.join(pid.to_string()), pid, now);
}

/// A part is sent when it reaches this size.
const PART_BYTES: usize = 256 << 10;
/// Maximum number of queued parts, so that the snapshot of a large machine is never in memory as a
/// whole.
const PARTS_MAX: usize = 1;

/// Starts a snapshot, which is received in parts.
pub(crate) fn start() -> Receiver<Encoder> {
    let (give, parts) = mpsc::sync_channel(PARTS_MAX);
    // If it panics, or the receiver is gone, it ends; events are recorded nevertheless.
    thread::spawn(move || all(&give));
    parts
}

/// All data of `/proc` and `/sys` that queries need. What vanishes meanwhile is left out.
fn all(parts: &SyncSender<Encoder>) -> Option<()> {
    let encoder = &mut Encoder::default();
    devices::block(encoder, Path::new("/sys/class/block"));
    tree::all(encoder, Path::new("/sys/class/block"));
    mounts::others(encoder, Path::new("/proc"));
    devices::net(encoder, Path::new("/sys/class/net"));
    devices::irqs(encoder, Path::new("/proc/irq"));
    let begin = clock::clocks();
    let sockets = &mut sockets::Sockets::default();
    for pid in pids(Path::new("/proc")) {
        processes::one(encoder, (Path::new("/proc"), pid), &begin, sockets);
        if encoder.payload().len() >= PART_BYTES {
            parts.send(std::mem::take(encoder)).ok()?;
        }
    }
    encoder
        .begin(Kind::SnapshotEnd, clock::monotonic(), (0, 0))
        .end();
    parts.send(std::mem::take(encoder)).ok()
}

pub(crate) fn clocks(encoder: &mut Encoder, now: &Clocks) {
    encoder
        .begin(Kind::Clock, now.monotonic, (0, 0))
        .u64(now.boot)
        .u64(now.real as u64)
        .end();
}
