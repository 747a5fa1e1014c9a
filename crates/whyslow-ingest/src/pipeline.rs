//! From sources to a recording: read, order, track, write, account.

mod account;
mod ctf_source;
mod profile_source;
mod request_source;
mod session;
mod spool_source;
mod stream_source;
mod text_source;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use whyslow_model::stat::Severity;
use whyslow_model::tables::Collected;
use whyslow_model::{Ns, Symbols};
use whyslow_store::{Existing, RecordingInfo, RecordingWriter, SourceInfo, StoreError};

use self::profile_source::ProfileQueue;
use self::request_source::RequestQueue;
use self::session::{Outcome, Session};
use self::spool_source::SpoolSource;
use self::stream_source::StreamQueue;
use self::text_source::TextQueue;
use crate::archive::ArchiveError;
use crate::detect::{DetectError, SourceKind, detect};
use crate::digest;
use crate::importers::ctf::error::CtfError;
use crate::importers::ctf::reader::CtfReader;
use crate::importers::requests;
use crate::importers::spool::LeaveOut;

/// How to import.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// Where the recording will be.
    pub output: PathBuf,
    /// What happens if the output exists.
    pub existing: Existing,
    /// Added to all times of the n-th source; missing ones are 0.
    pub shifts_ns: Vec<Ns>,
    /// Of access logs, as their server's configuration has it; other texts are taken for such, too.
    pub log_format: Option<String>,
    /// What of a spool is passed over.
    pub leave_out: LeaveOut,
    /// Set from a signal handler or another thread: the import ends soon, and leaves nothing.
    pub cancel: Arc<AtomicBool>,
}

impl ImportOptions {
    /// Everything else at its default: no shifts, nothing left out, nothing replaced.
    pub fn new(output: impl Into<PathBuf>) -> ImportOptions {
        ImportOptions {
            output: output.into(),
            existing: Existing::Refuse,
            shifts_ns: Vec::new(),
            log_format: None,
            leave_out: LeaveOut::default(),
            cancel: Arc::default(),
        }
    }
}

/// What an import is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stage {
    /// Unpacking archives.
    Unpacking,
    /// Reading the sources.
    #[default]
    Importing,
}

/// How far an import is: bytes of the archive that is unpacked, or of the traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// What is being done.
    pub stage: Stage,
    /// Read so far.
    pub bytes_done: u64,
    /// Bytes of all sources, or of the archive.
    pub bytes_total: u64,
    /// Events read so far; 0 while unpacking.
    pub events: u64,
}

/// One kind of anomaly, with the first place it was met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnomalyReport {
    /// Name of the [`stat`](whyslow_model::stat).
    pub name: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// Meaning of one count of it.
    pub doc: &'static str,
    /// How often it occurred.
    pub count: u64,
    /// File, offset and details of the first one; may be empty.
    pub text: String,
}

/// What became of all records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordCounts {
    /// Records of all sources.
    pub read: u64,
    /// Delivered to the trackers, or counted by name because no table holds their kind.
    pub accepted: u64,
    /// Each of them is counted under an anomaly.
    pub skipped: u64,
}

/// What an import did.
#[derive(Debug, Clone)]
pub struct ImportReport {
    /// Manifest of the new recording.
    pub recording: RecordingInfo,
    /// What became of the records.
    pub records: RecordCounts,
    /// By severity, the worst first, then by name.
    pub anomalies: Vec<AnomalyReport>,
    /// Wall-clock time that the import took.
    pub elapsed: Duration,
}

/// Why an import failed; it leaves no recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// No source was given.
    #[error("nothing to import")]
    NoSource,
    /// A source that cannot be imported.
    #[error(transparent)]
    Detect(#[from] DetectError),
    /// A CTF trace that cannot be read.
    #[error(transparent)]
    Ctf(#[from] CtfError),
    /// A source, or a file of one, cannot be read.
    #[error("failed to read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A text source that is held in memory, and too large for that.
    #[error("`{}` has {bytes} bytes; a text source may have {limit}", path.display())]
    TextTooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// Size that is allowed.
        limit: u64,
    },
    /// A profile that is held in memory, and too large for that.
    #[error("`{}` has {bytes} bytes; a profile may have {limit}", path.display())]
    ProfileTooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// Size that is allowed.
        limit: u64,
    },
    /// A profile that cannot be read.
    #[error("failed to read `{}`: {reason}", path.display())]
    Samples {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The output of a tool in which no row has a time.
    #[error("`{}` cannot be put on a time line: {reason}", path.display())]
    Report {
        /// The file.
        path: PathBuf,
        /// Option of the tool that prints times.
        reason: &'static str,
    },
    /// A perf.data file that cannot be read.
    #[error("failed to read `{}`: {reason}", path.display())]
    Perf {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A file of requests or of trace-cmd that cannot be read.
    #[error("failed to read `{}`: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A spool without any complete block.
    #[error("`{}` has no whole block: its recorder ended before it wrote one", path.display())]
    EmptySpool {
        /// The spool.
        path: PathBuf,
    },
    /// A spool goes with no trace of another tracer, because both record the same events.
    #[error(
        "a spool and {other} in one import; files of profilers, perf, strace and texts go with it"
    )]
    SpoolBeside {
        /// What the other source is.
        other: &'static str,
    },
    /// Traces of several hosts; their ids would collide.
    #[error("traces of several hosts in one import: {}", hosts.join(", "))]
    SeveralHosts {
        /// Their names.
        hosts: Vec<String>,
    },
    /// The folder for imported traces cannot be used.
    #[error("cannot prepare the cache of imported traces: {reason}")]
    Cache {
        /// Why not, with the path.
        reason: String,
    },
    /// The recording cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// [`ImportOptions::cancel`] was set.
    #[error("cancelled")]
    Cancelled,
}

/// Imports the sources, merged on one clock, into one recording.
pub fn import(
    sources: &[PathBuf],
    options: &ImportOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<ImportReport, ImportError> {
    let begin = Instant::now();
    let mut opened = Opened::open(
        sources,
        (&options.shifts_ns, options.log_format.as_deref()),
        &options.cancel,
        progress,
    )?;
    for spool in &mut opened.spools {
        spool.leave_out = options.leave_out.clone();
    }
    let writer = RecordingWriter::create(&options.output, options.existing)?;
    let digests = Digests::start(sources, &options.cancel);
    let outcome = opened.run(writer, &options.cancel, progress)?;
    let sources = digests.finish(sources, &outcome)?;
    if options.cancel.load(Ordering::Relaxed) {
        return Err(ImportError::Cancelled);
    }
    let recording = RecordingInfo {
        sources,
        host: outcome.host.clone(),
        zone: outcome.zone.clone(),
        begin_ns: outcome.begin_ns,
        end_ns: outcome.end_ns,
        ..RecordingInfo::default()
    };
    let recording = outcome.sink.finish(&outcome.symbols, recording)?;
    Ok(ImportReport {
        recording,
        records: outcome.records,
        anomalies: outcome.anomalies,
        elapsed: begin.elapsed(),
    })
}

/// An import whose rows stay in memory: for tests, and for traces known to be small.
pub struct InMemory {
    /// Rows of every table, in the order in which they were finished.
    pub rows: Collected,
    /// What the texts in the rows stand for.
    pub symbols: Symbols,
    /// What became of the records.
    pub records: RecordCounts,
    /// By severity, the worst first, then by name.
    pub anomalies: Vec<AnomalyReport>,
    /// First time, ns since the epoch.
    pub begin_ns: Ns,
    /// Last time, ns since the epoch.
    pub end_ns: Ns,
}

/// Imports without writing anything, with the defaults of [`ImportOptions`].
pub fn import_in_memory(sources: &[PathBuf]) -> Result<InMemory, ImportError> {
    let never = AtomicBool::new(false);
    let opened = Opened::open(sources, (&[], None), &never, &mut |_| {})?;
    let outcome = opened.run(Collected::default(), &never, &mut |_| {})?;
    Ok(InMemory {
        rows: outcome.sink,
        symbols: outcome.symbols,
        records: outcome.records,
        anomalies: outcome.anomalies,
        begin_ns: outcome.begin_ns,
        end_ns: outcome.end_ns,
    })
}

/// When a file was written last.
fn written(path: &Path) -> Option<Ns> {
    let modified = std::fs::metadata(path)
        .and_then(|about| about.modified())
        .ok()?;
    let since = modified.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(since.as_nanos() as Ns)
}

/// Sources that could be opened, not yet read.
struct Opened {
    /// All traces together: its reader merges them.
    traces: Option<CtfReader>,
    spools: Vec<SpoolSource>,
    texts: TextQueue,
    profiles: ProfileQueue,
    streams: StreamQueue,
    requests: RequestQueue,
    kinds: Vec<SourceKind>,
}

impl Opened {
    fn open(
        sources: &[PathBuf],
        (shifts_ns, log_format): (&[Ns], Option<&str>),
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Opened, ImportError> {
        if sources.is_empty() {
            return Err(ImportError::NoSource);
        }
        let shift = |index: usize| shifts_ns.get(index).copied().unwrap_or(0);
        let mut traces: Vec<(usize, &Path, Ns)> = Vec::new();
        let (mut texts, mut kinds) = (TextQueue::default(), Vec::new());
        let mut spools: Vec<SpoolSource> = Vec::new();
        let mut profiles = ProfileQueue::default();
        let mut streams = StreamQueue::default();
        let mut logs = RequestQueue::default();
        for (index, path) in sources.iter().enumerate() {
            let kind = match (detect(path), log_format) {
                (Err(DetectError::Unsupported { .. }), Some(_)) => {
                    SourceKind::Requests(requests::Form::Access)
                }
                (detected, _) => detected?,
            };
            match kind {
                SourceKind::Ctf => traces.push((index, path, shift(index))),
                SourceKind::Spool => spools.push(SpoolSource {
                    path: path.clone(),
                    shift_ns: shift(index),
                    leave_out: LeaveOut::default(),
                }),
                SourceKind::Text => texts.add(index, path, shift(index))?,
                SourceKind::Ftrace => texts.add_ftrace(index, path, shift(index))?,
                SourceKind::Strace => texts.add_strace(index, path, shift(index))?,
                SourceKind::Jfr => profiles.add_jfr(index, path, shift(index))?,
                SourceKind::Samples(form) => {
                    profiles.add_samples((index, form), path, shift(index))?;
                }
                SourceKind::Jstack => profiles.add_jstack(index, path, shift(index))?,
                SourceKind::PySpy => profiles.add_pyspy(index, path, shift(index))?,
                SourceKind::Requests(form) => {
                    logs.add((index, form), path, (shift(index), log_format))?;
                }
                SourceKind::Perf => streams.add_perf(index, path, shift(index))?,
                SourceKind::TraceDat => streams.add_trace_dat(index, path, shift(index))?,
                SourceKind::Blktrace => streams.add_blktrace(index, path, shift(index)),
                SourceKind::Report(form) => {
                    texts.add_report((index, form), path, shift(index))?;
                }
                SourceKind::Markers => texts.add_markers(index, path, shift(index))?,
                SourceKind::Snoop => texts.add_snoop(index, path, shift(index))?,
                SourceKind::Blkparse => texts.add_blkparse(index, path, shift(index))?,
            }
            kinds.push(kind);
        }
        profiles.seal()?;
        streams.seal()?;
        // What is read to its end before the next is begun cannot be merged.
        if spools.len() > 1 || !spools.is_empty() && !traces.is_empty() {
            let other = if traces.is_empty() {
                "another"
            } else {
                "a trace"
            };
            return Err(ImportError::SpoolBeside { other });
        }
        let traces = if traces.is_empty() {
            None
        } else {
            let mut watch = |bytes_done, bytes_total| {
                progress(Progress {
                    stage: Stage::Unpacking,
                    bytes_done,
                    bytes_total,
                    events: 0,
                });
                if cancel.load(Ordering::Relaxed) {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            };
            let opened = CtfReader::open_sources(&traces, &mut watch);
            Some(opened.map_err(|error| match error {
                CtfError::Archive(ArchiveError::Cancelled { .. }) => ImportError::Cancelled,
                error => error.into(),
            })?)
        };
        Ok(Opened {
            traces,
            spools,
            texts,
            profiles,
            streams,
            requests: logs,
            kinds,
        })
    }

    fn run<S: session::RowSink>(
        self,
        sink: S,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome<S>, ImportError> {
        let mut session = Session::new(
            sink,
            (self.texts, self.profiles, self.streams, self.requests),
            cancel,
            progress,
        );
        session.name_sources(&self.kinds);
        if let Some(mut reader) = self.traces {
            ctf_source::read(&mut reader, &mut session)?;
        }
        for spool in self.spools {
            spool.read(&mut session)?;
        }
        session.finish()
    }
}

/// Digest and size; `None` when stopped.
type Digested = std::io::Result<Option<(String, u64)>>;

/// Digests are made beside the import, which seldom waits for the disk.
struct Digests {
    thread: JoinHandle<Vec<Digested>>,
}

impl Digests {
    fn start(sources: &[PathBuf], cancel: &Arc<AtomicBool>) -> Digests {
        let (sources, cancel) = (sources.to_vec(), Arc::clone(cancel));
        let digests = move || {
            let digests = sources.iter().map(|path| digest::digest(path, &cancel));
            digests.collect()
        };
        Digests {
            thread: std::thread::spawn(digests),
        }
    }

    fn finish<S>(
        self,
        sources: &[PathBuf],
        outcome: &Outcome<S>,
    ) -> Result<Vec<SourceInfo>, ImportError> {
        let digests = self.thread.join().expect("digesting does not panic");
        let described = sources.iter().zip(&outcome.source_kinds).zip(digests);
        described
            .map(|((path, kind), digest)| {
                let read = |source| ImportError::Read {
                    path: path.clone(),
                    source,
                };
                let (digest, bytes) = digest.map_err(read)?.ok_or(ImportError::Cancelled)?;
                Ok(SourceInfo {
                    path: path.display().to_string(),
                    kind: kind.clone(),
                    bytes,
                    digest,
                })
            })
            .collect()
    }
}
