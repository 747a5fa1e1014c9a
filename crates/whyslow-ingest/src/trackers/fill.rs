//! Page-cache fills, with file names.
//!
//! **Goal.** A file has the same name as in the calls that use it, so that reads of a file and its
//! page-cache fills can be compared.
//!
//! **Options.** The kernel reports an inode. Rejected: finding it in the file systems afterwards,
//! because it may have been deleted or reused. Rejected: identifying inodes only by open
//! descriptors, because programs and libraries are mapped by descriptors that were closed long ago.
//! Chosen, in this order: the descriptor of the call, according to its descriptor table; the name
//! under which a call last read or wrote the inode; the path that the kernel itself keeps for it,
//! below a mount that is visible to the process. Otherwise the row contains the inode number, and
//! is marked as unnamed.

use rustc_hash::FxHashMap;
use whyslow_model::event::{Body, CacheFill, FilledPages};
use whyslow_model::tables::{CacheFillRow, EmitAll};
use whyslow_model::{Sym, stat};

use super::fd::Owner;
use super::identity::{Here, Output, ThreadRef};
use super::process::Processes;
use super::syscall::SyscallTracker;

/// Maximum number of known inodes and mounts; other files are named only by descriptors.
const KNOWN_MAX: usize = 1 << 18;

/// Device and inode number.
type Inode = (i64, u64);

#[derive(Debug, Default)]
pub(super) struct FillTracker {
    /// By the descriptor of the last call that read or wrote it, as named by a process of that
    /// namespace.
    by_call: FxHashMap<Inode, (Option<i64>, Sym)>,
    /// Path within its file system.
    places: FxHashMap<Inode, Sym>,
    mounts: FxHashMap<(i64, i64), Vec<Mount>>,
    /// Mount namespace of the recorder, which is reported first.
    own_ns: Option<i64>,
    count: usize,
    devices: FxHashMap<i64, Sym>,
    next_id: i64,
}

#[derive(Debug, PartialEq, Eq)]
struct Mount {
    root: Sym,
    point: Sym,
}

impl FillTracker {
    pub(super) fn event<S: EmitAll>(
        &mut self,
        body: &Body<'_>,
        here: &Here,
        about: (&Processes, &SyscallTracker),
        out: &mut Output<'_, S>,
    ) {
        match *body {
            Body::CacheFill(CacheFill::Place { dev, inode, path }) => {
                let path = out.intern(path);
                if self.has_room(here, out) && self.places.insert((dev, inode), path).is_none() {
                    self.count += 1;
                }
            }
            Body::CacheFill(CacheFill::Pages(ref pages)) => self.pages(pages, here, about, out),
            Body::StateMount(ref mount) => {
                self.own_ns.get_or_insert(mount.mount_ns);
                let (root, point) = (out.intern(mount.root), out.intern(mount.point));
                let known = self.mounts.entry((mount.mount_ns, mount.dev)).or_default();
                let mount = Mount { root, point };
                if self.count < KNOWN_MAX && !known.contains(&mount) {
                    known.push(mount);
                    self.count += 1;
                }
            }
            Body::StateBlockDevice { dev, name } if self.count < KNOWN_MAX => {
                let path = [b"/dev/", name].concat();
                self.devices.insert(dev, out.intern(&path));
                self.count += 1;
            }
            _ => {}
        }
    }

    fn pages<S: EmitAll>(
        &mut self,
        pages: &FilledPages,
        here: &Here,
        (processes, calls): (&Processes, &SyscallTracker),
        out: &mut Output<'_, S>,
    ) {
        let (thread, file) = (here.thread, (pages.dev, pages.inode));
        let ns = thread.and_then(|thread| processes.mount_ns(thread));
        let named = pages.fd.and_then(|fd| path_of(calls, &thread?, fd));
        if let Some(path) = named
            && self.has_room(here, out)
            && self.by_call.insert(file, (ns, path)).is_none()
        {
            self.count += 1;
        }
        let found = named.or_else(|| self.name(file, ns, out));
        let path = found.unwrap_or_else(|| number(file, out));
        let ts = pages.since.min(pages.until);
        out.sink.emit(CacheFillRow {
            id: self.next_id,
            ts,
            dur: Some(pages.until.saturating_sub(ts)),
            ts_end: Some(pages.until),
            utid: thread.map(|thread| thread.utid),
            upid: thread.and_then(|thread| thread.upid),
            tid: thread.map(|thread| thread.tid),
            pid: thread.and_then(|thread| thread.pid),
            comm: thread.and_then(|thread| thread.comm),
            path,
            has_name: found.is_some(),
            dev: pages.dev,
            inode: (pages.inode != 0).then_some(pages.inode as i64),
            cause: out.symbols.intern_static(pages.cause.name()),
            bytes: pages.bytes,
        });
        self.next_id += 1;
    }

    fn has_room<S: EmitAll>(&self, here: &Here, out: &mut Output<'_, S>) -> bool {
        if self.count >= KNOWN_MAX {
            out.anomalies.count(&stat::MAP_LIMIT, here.ts);
        }
        self.count < KNOWN_MAX
    }

    /// Name of a file in the mount namespace of a process.
    fn name<S: EmitAll>(
        &self,
        file: Inode,
        ns: Option<i64>,
        out: &mut Output<'_, S>,
    ) -> Option<Sym> {
        let (dev, inode) = file;
        if inode == 0 {
            return self.devices.get(&dev).copied();
        }
        if let Some((there, path)) = self.by_call.get(&file)
            && *there == ns
        {
            return Some(*path);
        }
        let place = out.symbols.get(*self.places.get(&file)?);
        let own = self.own_ns;
        let namespaces = [ns, own.filter(|_| ns != own)].into_iter().flatten();
        let mut paths = namespaces.filter_map(|ns| {
            let mounts = self.mounts.get(&(ns, dev))?.iter();
            let paths = mounts.filter_map(|mount| {
                let (root, point) = (out.symbols.get(mount.root), out.symbols.get(mount.point));
                let rest = place.strip_prefix(root.trim_end_matches('/'))?;
                let is_below = rest.is_empty() || rest.starts_with('/');
                is_below.then(|| format!("{}{rest}", point.trim_end_matches('/')))
            });
            paths.min_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)))
        });
        let path = paths.next()?;
        Some(out.symbols.intern(&path))
    }
}

fn path_of(calls: &SyscallTracker, thread: &ThreadRef, fd: i32) -> Option<Sym> {
    let object = calls.object(Owner::of(thread), fd)?;
    object.path.filter(|_| object.reason.is_none())
}

/// Text for a file without a name.
fn number<S: EmitAll>((dev, inode): Inode, out: &mut Output<'_, S>) -> Sym {
    let (major, minor) = (dev >> 20, dev & 0xf_ffff);
    let text = match inode {
        0 => format!("device:[{major}:{minor}]"),
        inode => format!("inode:[{major}:{minor}/{inode}]"),
    };
    out.symbols.intern(&text)
}
