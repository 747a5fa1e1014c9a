//! Loads the BPF programs that count DNS lookups, and attaches them to every file with the
//! functions.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::time::{Duration, Instant};

use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use libbpf_rs::{ErrorKind, Link, OpenObject, PrintLevel, UprobeOpts};

use super::LOOKUP_EDGES;
use crate::error::RecordError;
use crate::libraries::{Finder, Found, Library, Wanted};
use crate::preflight;
use crate::probe_links::allow_descriptors;
use crate::programs::{Off, Topic};
use crate::skeletons::lookups::{LookupsSkel, LookupsSkelBuilder};

/// Maximum number of files with uprobes: containers have C libraries of their own.
const FILES_MAX: usize = 256;
/// Time for the first search, after which counting starts without it.
const FIRST_MAX: Duration = Duration::from_secs(10);
/// Number of scans of a new process, one second apart: it maps its libraries first.
const SCANS: u8 = 2;
/// Maximum number of processes waiting for a scan.
const WAITING_MAX: usize = 8192;

/// The loaded programs, detached when this is dropped.
pub(super) struct Loaded<'o> {
    pub(super) skeleton: LookupsSkel<'o>,
    pub(super) off: Vec<Off>,
    pub(super) files: usize,
    pub(super) files_over: u64,
    pub(super) narrow: u64,
    finder: Finder,
    is_searching: bool,
    waiting: HashMap<i32, u8>,
    links: Vec<Link>,
}

pub(super) fn load(
    patience: Duration,
    storage: &mut MaybeUninit<OpenObject>,
) -> Result<Loaded<'_>, RecordError> {
    if !Path::new(preflight::TYPES).exists() {
        return Err(RecordError::NoTypes);
    }
    libbpf_rs::set_print(Some((PrintLevel::Warn, |_, _| {})));
    let failed = |error: libbpf_rs::Error| match error.kind() {
        ErrorKind::PermissionDenied => RecordError::NotPermitted,
        _ => RecordError::Load(error),
    };
    let mut open = LookupsSkelBuilder::default()
        .open(storage)
        .map_err(failed)?;
    let Some(settings) = open.maps.rodata_data.as_mut() else {
        return Err(RecordError::Settings);
    };
    settings.own_pid = std::process::id();
    settings.edge_count = LOOKUP_EDGES.len() as u32;
    settings.edges[..LOOKUP_EDGES.len()].copy_from_slice(&LOOKUP_EDGES);
    settings.patience_ns = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
    let skeleton = open.load().map_err(failed)?;
    let exec = skeleton.progs.on_exec.attach().map_err(failed)?;
    allow_descriptors();
    let wanted = Wanted {
        lookups: true,
        ..Wanted::default()
    };
    let mut loaded = Loaded {
        skeleton,
        off: Vec::new(),
        files: 0,
        files_over: 0,
        narrow: 0,
        finder: Finder::start(wanted).map_err(RecordError::Search)?,
        is_searching: true,
        waiting: HashMap::new(),
        links: vec![exec],
    };
    let until = Instant::now() + FIRST_MAX;
    while loaded.is_searching {
        let left = until.saturating_duration_since(Instant::now());
        let Ok(found) = loaded.finder.found.recv_timeout(left) else {
            break;
        };
        loaded.take(found);
    }
    Ok(loaded)
}

impl Loaded<'_> {
    /// These processes called exec since the last call.
    pub(super) fn begun(&mut self, pids: &[i32]) {
        for pid in pids {
            if self.waiting.len() < WAITING_MAX {
                self.waiting.insert(*pid, SCANS);
            }
        }
    }

    /// Attaches probes to what was found, and has new processes scanned.
    pub(super) fn poll(&mut self) {
        while let Ok(found) = self.finder.found.try_recv() {
            self.take(found);
        }
        if self.is_searching || self.waiting.is_empty() {
            return;
        }
        self.is_searching = true;
        let mut pids: Vec<i32> = self.waiting.keys().copied().collect();
        pids.sort_unstable();
        self.finder.scan(pids);
        self.waiting.retain(|_, scans| {
            *scans -= 1;
            *scans > 0
        });
    }

    fn take(&mut self, found: Found) {
        match found {
            Found::Done => self.is_searching = false,
            Found::Narrow => self.narrow += 1,
            Found::Library(library) if self.files >= FILES_MAX => {
                drop(library);
                self.files_over += 1;
            }
            Found::Library(library) => {
                if let (Err(error), true) = (self.attach(&library), self.off.is_empty()) {
                    self.off.push(Off {
                        program: "on_lookup",
                        topic: Some(Topic::Dns),
                        provides: "DNS lookups",
                        reason: format!("{}: {error}", library.path),
                    });
                }
            }
            // No functions were requested by name.
            Found::Lacking { .. } | Found::NoFile { .. } => {}
        }
    }

    fn attach(&mut self, library: &Library) -> Result<(), libbpf_rs::Error> {
        // The file that was examined, even if its path now leads to another one.
        let place = format!("/proc/self/fd/{}", library.file.as_raw_fd());
        let number = self.files as u64;
        self.files += 1;
        let programs = &self.skeleton.progs;
        // Returns first, so that no lookup is seen without its end.
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
                let link =
                    program.attach_uprobe_with_opts(-1, &place, *offset as usize, options)?;
                self.links.push(link);
            }
        }
        Ok(())
    }
}
