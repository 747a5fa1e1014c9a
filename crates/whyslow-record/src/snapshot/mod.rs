//! What the machine looks like at a moment: events tell only what changes.

mod devices;
mod host;
mod mounts;
mod processes;
mod resolver;
mod sockets;
mod tree;
mod users;

use std::path::Path;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

pub(crate) use mounts::Mount;
pub(crate) use processes::{any_root, mount_ns, numbers as pids, put_root};
pub(crate) use resolver::Files as ResolverFiles;
use whyslow_model::spool::{Encoder, Kind};

use crate::clock::{self, Clocks};

/// What everything after it is to be understood by.
pub(crate) fn head(encoder: &mut Encoder, now: &Clocks, pids: &[i32], topics: &str) {
    clocks(encoder, now);
    host::facts(encoder, topics);
    users::all(encoder, Path::new("/etc/passwd"));
    mounts::own(encoder, Path::new("/proc"));
    processes::first(encoder, Path::new("/proc"), pids);
}

/// Who a process is; nothing if it has ended.
pub(crate) fn about(encoder: &mut Encoder, proc: &Path, pid: i32, now: &Clocks) {
    processes::about(encoder, &proc.join(pid.to_string()), pid, now);
}

/// Given away when it has so many bytes, or little more.
const PART_BYTES: usize = 256 << 10;
/// Parts that wait to be taken: nobody has to have room for all of a large machine.
const PARTS_MAX: usize = 1;

/// A snapshot that is being taken; what comes is a part of it.
pub(crate) fn start() -> Receiver<Encoder> {
    let (give, parts) = mpsc::sync_channel(PARTS_MAX);
    // One that panics, or that nobody takes any more, ends; events tell nevertheless.
    thread::spawn(move || all(&give));
    parts
}

/// All of `/proc` and `/sys` that answers need. What vanishes meanwhile is left out.
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
