//! Data per mount namespace: the resolver configuration, and the mounts of namespaces created
//! during the recording.
//!
//! Read by a separate thread that nothing waits for: files of containers may be on FUSE or network
//! file systems, which may reply late or never. A process that enters a new namespace usually calls
//! exec there, and often mounts things afterwards: so a new namespace is read again at later execs
//! in it.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use whyslow_model::sort::IndexSort;
use whyslow_model::spool::{Encoder, Kind};

use crate::clock;
use crate::drop;
use crate::snapshot::{self, Mount, ResolverFiles};

/// Maximum number of namespaces read.
const NAMESPACES_MAX: usize = 256;
/// Maximum reads of a namespace because of execs in it.
const SCANS_MAX: u32 = 8;
/// Maximum number of mounts recorded per namespace.
const MOUNTS_MAX: usize = 5_000;
/// How long the end of a recording waits for pending reads.
const END_MAX: Duration = Duration::from_millis(500);

/// The reader thread and its pending requests.
pub(crate) struct Namespaces {
    /// `None` if the thread could not be started; nothing is recorded then.
    channels: Option<(Sender<Request>, Receiver<Reply>)>,
    /// Number of reads per namespace because of execs.
    scans: HashMap<u32, u32>,
    /// Requests without a reply.
    open: u64,
    unread: u64,
}

enum Request {
    /// Every namespace of a process.
    All,
    /// The namespaces of these processes, with their mounts.
    Of(Vec<i32>),
}

#[derive(Default)]
struct Reply {
    found: Vec<Found>,
    /// Root directories of processes that called exec.
    roots: Vec<(i32, Vec<u8>)>,
    unread: u64,
}

struct Found {
    ns: u32,
    mounts: Vec<Mount>,
    files: ResolverFiles,
}

impl Namespaces {
    pub(crate) fn start() -> Self {
        let (request_tx, request_rx) = mpsc::channel();
        let (reply_tx, reply_rx) = mpsc::channel();
        let named = thread::Builder::new().name("namespaces".into());
        let thread = named.spawn(move || run(&request_rx, &reply_tx));
        Self {
            channels: thread.is_ok().then_some((request_tx, reply_rx)),
            scans: HashMap::new(),
            open: 0,
            unread: 0,
        }
    }

    /// Starts a spool, which needs all namespaces.
    pub(crate) fn begin_spool(&mut self) {
        self.scans.clear();
        self.unread = 0;
        self.send(Request::All);
    }

    /// These processes called exec, each in a namespace.
    pub(crate) fn execed(&mut self, execed: &[(i32, u32)]) {
        let mut pids = Vec::new();
        for (pid, ns) in execed {
            if self.scans.len() >= NAMESPACES_MAX && !self.scans.contains_key(ns) {
                continue;
            }
            let scans = self.scans.entry(*ns).or_default();
            if *scans < SCANS_MAX {
                *scans += 1;
                pids.push(*pid);
            }
        }
        if !pids.is_empty() {
            self.send(Request::Of(pids));
        }
    }

    fn send(&mut self, request: Request) {
        if let Some((request_tx, _)) = &self.channels
            && request_tx.send(request).is_ok()
        {
            self.open += 1;
        }
    }

    /// Writes what was found since the last call.
    pub(crate) fn take(&mut self, encoder: &mut Encoder) {
        let Some((_, reply_rx)) = &self.channels else {
            return;
        };
        while let Ok(reply) = reply_rx.try_recv() {
            self.open -= 1;
            self.unread += reply.unread;
            reply.put(encoder);
        }
    }

    /// The same at the end of a recording, waiting for pending reads for a limited time; also
    /// writes the counts of unreadable files.
    pub(crate) fn finish(&mut self, encoder: &mut Encoder) {
        let until = Instant::now() + END_MAX;
        while let (Some((_, reply_rx)), true) = (&self.channels, self.open > 0) {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(reply) = reply_rx.recv_timeout(left) else {
                break;
            };
            self.open -= 1;
            self.unread += reply.unread;
            reply.put(encoder);
        }
        for (name, count) in [
            ("resolver_files_unread", self.unread),
            ("namespaces_unseen", self.open),
        ] {
            if count > 0 {
                encoder
                    .begin(Kind::Fact, clock::monotonic(), (0, 0))
                    .text(name.as_bytes())
                    .text(count.to_string().as_bytes())
                    .end();
            }
        }
    }
}

impl Reply {
    fn put(&self, encoder: &mut Encoder) {
        for found in &self.found {
            for mount in &found.mounts {
                mount.put(encoder, found.ns);
            }
            found.files.put(encoder, found.ns);
        }
        for (pid, root) in &self.roots {
            snapshot::put_root(encoder, clock::monotonic(), (*pid, root));
        }
    }
}

fn run(requests: &Receiver<Request>, replies: &Sender<Reply>) {
    // It reads other users' files.
    drop::privileges(false);
    let proc = Path::new("/proc");
    while let Ok(request) = requests.recv() {
        let mut reply = Reply::default();
        let (folders, with_mounts) = match request {
            Request::All => (snapshot::pids(proc), false),
            Request::Of(pids) => (pids, true),
        };
        let folders = folders.into_iter().map(|pid| proc.join(pid.to_string()));
        let with_roots = folders.map(|folder| (snapshot::any_root(&folder), folder));
        let mut processes: Vec<_> = with_roots.collect();
        // Processes with the root of the namespace see all of it.
        processes.index_sort_by_key(|(root, _)| root.as_deref() != Some(b"/"));
        let mut seen = HashSet::new();
        for (root, folder) in processes {
            let Some(root) = root else { continue };
            if seen.len() < NAMESPACES_MAX {
                scan((&folder, &root), with_mounts, &mut seen, &mut reply);
            }
            let pid = folder
                .file_name()
                .and_then(|name| name.to_str()?.parse().ok());
            if let (true, Some(pid)) = (with_mounts, pid) {
                reply.roots.push((pid, root));
            }
        }
        if replies.send(reply).is_err() {
            return;
        }
    }
}

/// Nothing is read of an exited process, and no mounts of one that changed its root meanwhile.
fn scan(
    (folder, root): (&Path, &[u8]),
    with_mounts: bool,
    seen: &mut HashSet<u32>,
    reply: &mut Reply,
) {
    let Some(ns) = snapshot::mount_ns(folder).filter(|ns| !seen.contains(ns)) else {
        return;
    };
    let Ok(files) = ResolverFiles::of(&folder.join("root")) else {
        return;
    };
    let mounts = if with_mounts {
        let text = fs::read(folder.join("mountinfo")).unwrap_or_default();
        if snapshot::any_root(folder).as_deref() != Some(root) {
            return;
        }
        Mount::all(&text, root).take(MOUNTS_MAX).collect()
    } else {
        Vec::new()
    };
    seen.insert(ns);
    reply.unread += files.unread;
    reply.found.push(Found { ns, mounts, files });
}
