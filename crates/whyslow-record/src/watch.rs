//! Attaches uprobes in every file that contains the functions: the DNS lookup functions, and the
//! requested functions and USDT probes.

use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use libbpf_rs::{Link, UprobeOpts};
use whyslow_model::spool::{Encoder, Kind};

use crate::clock;
use crate::drop;
use crate::error::RecordError;
use crate::libraries::{Finder, Found, Library, Wanted};
use crate::load::Loaded;
use crate::options::Options;
use crate::probe_links::ProbeLinks;
use crate::programs::{Off, Topic};

/// Maximum number of files with uprobes.
const FILES_MAX: usize = 32;
/// Time for the first search, after which recording starts without it …
const FIRST_MAX: Duration = Duration::from_secs(3);
/// … unless functions were requested, which must be found.
const PROBES_SEARCH_MAX: Duration = Duration::from_mins(1);
/// When to examine a process after exec: it maps its libraries first, which may take a while.
const EXEC_DELAYS: [Duration; 2] = [Duration::from_millis(30), Duration::from_millis(700)];
/// Processes waiting to be examined; beyond this number some are not.
const WAITING_MAX: usize = 4096;

/// The attached uprobes, detached when this is dropped.
pub(crate) struct Watch {
    finder: Finder,
    links: Vec<Link>,
    /// Paths of files with DNS lookup probes.
    files: Vec<String>,
    /// Requested functions and USDT probes.
    probes: ProbeLinks,
    /// Files beyond the limit.
    over: u64,
    /// 32-bit programs.
    narrow: u64,
    /// Processes not examined.
    unseen: u64,
    waiting: Vec<(Instant, i32)>,
    is_searching: bool,
}

impl Watch {
    /// Attaches all probes; `None` if there are none or they are unavailable. Requested probes must
    /// be found.
    pub(crate) fn start(
        loaded: &mut Loaded<'_>,
        options: &Options,
    ) -> Result<Option<Self>, RecordError> {
        let probes = ProbeLinks::new(loaded, &options.probes)?;
        let wanted = Wanted {
            lookups: loaded.watches,
            probes: probes.specs(),
        };
        let has_probes = !wanted.probes.is_empty();
        let Some(finder) = (wanted.lookups || has_probes)
            .then(|| Finder::start(wanted).ok())
            .flatten()
        else {
            return Ok(None);
        };
        let mut watch = Self {
            finder,
            links: Vec::new(),
            files: Vec::new(),
            probes,
            over: 0,
            narrow: 0,
            unseen: 0,
            waiting: Vec::new(),
            is_searching: true,
        };
        let until = Instant::now()
            + if has_probes {
                PROBES_SEARCH_MAX
            } else {
                FIRST_MAX
            };
        while watch.is_searching {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(found) = watch.finder.found.recv_timeout(left) else {
                break;
            };
            watch.take(found, loaded);
        }
        watch.probes.check()?;
        Ok(Some(watch))
    }

    /// These processes called exec.
    pub(crate) fn execed(&mut self, pids: &[i32]) {
        let now = Instant::now();
        for pid in pids {
            if self.waiting.len() + EXEC_DELAYS.len() > WAITING_MAX {
                self.unseen += 1;
                continue;
            }
            self.waiting
                .extend(EXEC_DELAYS.map(|after| (now + after, *pid)));
        }
    }

    /// Attaches what was found, and examines the processes that are due.
    pub(crate) fn poll(&mut self, loaded: &mut Loaded<'_>, encoder: &mut Encoder) {
        let known = self.probes.count();
        while let Ok(found) = self.finder.found.try_recv() {
            self.take(found, loaded);
        }
        self.probes.write(known, encoder);
        if self.is_searching || self.waiting.is_empty() {
            return;
        }
        let now = Instant::now();
        let mut due = Vec::new();
        self.waiting.retain(|(when, pid)| {
            let is_due = *when <= now;
            if is_due {
                due.push(*pid);
            }
            !is_due
        });
        due.sort_unstable();
        due.dedup();
        if !due.is_empty() {
            self.is_searching = true;
            self.finder.scan(due);
        }
    }

    fn take(&mut self, found: Found, loaded: &mut Loaded<'_>) {
        match found {
            Found::Done => self.is_searching = false,
            Found::Narrow => self.narrow += 1,
            Found::Lacking {
                number,
                path,
                lacking,
            } => self.probes.lacks(number, path, lacking),
            Found::NoFile { number, near } => self.probes.has_no_file(number, near),
            Found::Library(library) => {
                self.probes.watch(&library, loaded);
                self.watch_lookups(&library, loaded);
            }
        }
    }

    fn watch_lookups(&mut self, library: &Library, loaded: &mut Loaded<'_>) {
        if library.functions.is_empty() {
            return;
        }
        if self.files.len() >= FILES_MAX {
            self.over += 1;
            return;
        }
        let is_reported = loaded.off.iter().any(|off| off.program == "on_lookup");
        if let (Err(error), false) = (self.attach(library, loaded), is_reported) {
            loaded.off.push(Off {
                program: "on_lookup",
                topic: Some(Topic::Dns),
                provides: "DNS lookups",
                reason: format!("{}: {error}", library.path),
            });
        }
    }

    fn attach(
        &mut self,
        library: &Library,
        loaded: &mut Loaded<'_>,
    ) -> Result<(), libbpf_rs::Error> {
        // The file that was examined, even if its path now leads to another one.
        let place = format!("/proc/self/fd/{}", library.file.as_raw_fd());
        let number = self.files.len() as u64;
        self.files.push(library.path.clone());
        let programs = &loaded.skeleton.progs;
        // Returns first, so that no lookup is recorded without its end.
        for retprobe in [true, false] {
            for (function, offset) in &library.functions {
                let options = UprobeOpts {
                    cookie: number << 8 | *function as u64,
                    retprobe,
                    ..UprobeOpts::default()
                };
                let program = if retprobe {
                    &programs.on_lookup_end
                } else {
                    &programs.on_lookup
                };
                let offset = *offset as usize;
                let attach = || program.attach_uprobe_with_opts(-1, &place, offset, options);
                let link = drop::raised(attach)?;
                self.links.push(link);
            }
        }
        Ok(())
    }

    /// Records at the start of a spool, to which others refer.
    pub(crate) fn write_probes(&self, encoder: &mut Encoder) {
        self.probes.write(0, encoder);
    }

    /// Records which files and probes are attached.
    pub(crate) fn write_facts(&self, encoder: &mut Encoder) {
        let mut fact = |name: &str, value: &str| {
            encoder
                .begin(Kind::Fact, clock::monotonic(), (0, 0))
                .text(name.as_bytes())
                .text(value.as_bytes())
                .end();
        };
        for file in &self.files {
            fact("lookup_file", file);
        }
        let counts = [
            ("lookup_files_over", self.over),
            ("lookup_files_32bit", self.narrow),
            ("lookup_processes_unseen", self.unseen),
            ("probes_watched", self.probes.count() as u64),
            ("probes_over", self.probes.over),
        ];
        for (name, count) in counts.iter().filter(|(_, count)| *count > 0) {
            fact(name, &count.to_string());
        }
    }

    pub(crate) fn end(mut self) {
        self.links.append(&mut self.probes.links);
        close(self.links);
    }
}

/// For each link the kernel waits until no CPU can still run its program, a tenth of a second or
/// two. In parallel they take no longer than one, and the recorder does not wait for them.
fn close(links: Vec<Link>) {
    const THREADS_MAX: usize = 32;
    let fds = links.iter().map(|link| link.as_fd().try_clone_to_owned());
    let mut fds: Vec<OwnedFd> = fds.filter_map(Result::ok).collect();
    drop(links);
    let share = fds.len().div_ceil(THREADS_MAX).max(1);
    while !fds.is_empty() {
        let part = fds.split_off(fds.len().saturating_sub(share));
        thread::spawn(move || drop(part));
    }
}
