//! What is particular to a mount namespace: how names are looked up there, and what is mounted in one
//! that came while this records.
//!
//! Looked at by a thread of its own, for which nobody waits: files of containers may lie on file
//! systems of programs or of the network, and these may answer late or never. Who comes into a new
//! namespace runs a program there mostly, and often mounts things afterwards: so a new one is looked
//! at again when more programs begin in it.

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

/// Namespaces beyond these are not looked at.
const NAMESPACES_MAX: usize = 256;
/// Looks at one because a program began in it.
const LOOKS_MAX: u32 = 8;
/// Mounts of one that are told.
const MOUNTS_MAX: usize = 5_000;
/// So long the end of a recording waits for what is being looked at.
const END_MAX: Duration = Duration::from_millis(500);

/// The thread, and what it was asked.
pub(crate) struct Namespaces {
    /// Where no thread can be had nothing is told.
    line: Option<(Sender<Asked>, Receiver<Answer>)>,
    /// Looks at each by what ran there.
    looks: HashMap<u32, u32>,
    /// Questions without an answer.
    open: u64,
    unread: u64,
}

enum Asked {
    /// Every namespace that a process is in.
    All,
    /// Those of these processes, with what is mounted there.
    Of(Vec<i32>),
}

#[derive(Default)]
struct Answer {
    found: Vec<Found>,
    /// Root directories of processes that began to run programs.
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
        let (ask, asked) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        let named = thread::Builder::new().name("namespaces".into());
        let thread = named.spawn(move || run(&asked, &tell));
        Self {
            line: thread.is_ok().then_some((ask, told)),
            looks: HashMap::new(),
            open: 0,
            unread: 0,
        }
    }

    /// A spool begins, which has to be told of all of them.
    pub(crate) fn begin_spool(&mut self) {
        self.looks.clear();
        self.unread = 0;
        self.ask(Asked::All);
    }

    /// These processes run another program, each in a namespace.
    pub(crate) fn execed(&mut self, execed: &[(i32, u32)]) {
        let mut pids = Vec::new();
        for (pid, ns) in execed {
            if self.looks.len() >= NAMESPACES_MAX && !self.looks.contains_key(ns) {
                continue;
            }
            let looks = self.looks.entry(*ns).or_default();
            if *looks < LOOKS_MAX {
                *looks += 1;
                pids.push(*pid);
            }
        }
        if !pids.is_empty() {
            self.ask(Asked::Of(pids));
        }
    }

    fn ask(&mut self, asked: Asked) {
        if let Some((ask, _)) = &self.line
            && ask.send(asked).is_ok()
        {
            self.open += 1;
        }
    }

    /// Tells what was found since.
    pub(crate) fn take(&mut self, encoder: &mut Encoder) {
        let Some((_, told)) = &self.line else { return };
        while let Ok(answer) = told.try_recv() {
            self.open -= 1;
            self.unread += answer.unread;
            answer.put(encoder);
        }
    }

    /// The same at the end of a recording, with what is being looked at if that is over soon; and what
    /// could not be read.
    pub(crate) fn finish(&mut self, encoder: &mut Encoder) {
        let until = Instant::now() + END_MAX;
        while let (Some((_, told)), true) = (&self.line, self.open > 0) {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(answer) = told.recv_timeout(left) else {
                break;
            };
            self.open -= 1;
            self.unread += answer.unread;
            answer.put(encoder);
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

impl Answer {
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

fn run(asked: &Receiver<Asked>, tell: &Sender<Answer>) {
    // It reads files of others.
    drop::privileges(false);
    let proc = Path::new("/proc");
    while let Ok(asked) = asked.recv() {
        let mut answer = Answer::default();
        let (folders, with_mounts) = match asked {
            Asked::All => (snapshot::pids(proc), false),
            Asked::Of(pids) => (pids, true),
        };
        let folders = folders.into_iter().map(|pid| proc.join(pid.to_string()));
        let with_roots = folders.map(|folder| (snapshot::any_root(&folder), folder));
        let mut processes: Vec<_> = with_roots.collect();
        // Whose root is the namespace's sees all of it.
        processes.index_sort_by_key(|(root, _)| root.as_deref() != Some(b"/"));
        let mut seen = HashSet::new();
        for (root, folder) in processes {
            let Some(root) = root else { continue };
            if seen.len() < NAMESPACES_MAX {
                look((&folder, &root), with_mounts, &mut seen, &mut answer);
            }
            let pid = folder
                .file_name()
                .and_then(|name| name.to_str()?.parse().ok());
            if let (true, Some(pid)) = (with_mounts, pid) {
                answer.roots.push((pid, root));
            }
        }
        if tell.send(answer).is_err() {
            return;
        }
    }
}

/// A process that has ended tells nothing, and one that changed its root meanwhile nothing of mounts.
fn look(
    (folder, root): (&Path, &[u8]),
    with_mounts: bool,
    seen: &mut HashSet<u32>,
    answer: &mut Answer,
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
    answer.unread += files.unread;
    answer.found.push(Found { ns, mounts, files });
}
