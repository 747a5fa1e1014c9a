//! Imports sources into a recording: read, sort, track, write, account.

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

/// Options of an import.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// Path of the recording.
    pub output: PathBuf,
    /// What to do if the output exists.
    pub existing: Existing,
    /// Offset added to all times of the n-th source; missing ones are 0.
    pub shifts_ns: Vec<Ns>,
    /// Format of access logs, as in the server's configuration; any text file is then read as an
    /// access log.
    pub log_format: Option<String>,
    /// Parts of a spool to skip.
    pub leave_out: LeaveOut,
    /// Set from a signal handler or another thread: the import stops soon, and leaves nothing
    /// behind.
    pub cancel: Arc<AtomicBool>,
}

impl ImportOptions {
    /// Default options: no shifts, nothing skipped, nothing replaced.
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

/// Stage of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stage {
    /// Unpacking archives.
    Unpacking,
    /// Reading the sources.
    #[default]
    Importing,
}

/// Progress of an import: bytes of the archive being unpacked, or of the traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Current stage.
    pub stage: Stage,
    /// Bytes read so far.
    pub bytes_done: u64,
    /// Bytes of all sources, or of the archive.
    pub bytes_total: u64,
    /// Events read so far; 0 while unpacking.
    pub events: u64,
}

/// One kind of anomaly, with its first occurrence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnomalyReport {
    /// Name of the [`stat`](whyslow_model::stat).
    pub name: &'static str,
    /// Severity.
    pub severity: Severity,
    /// Meaning of one count of it.
    pub doc: &'static str,
    /// Number of occurrences.
    pub count: u64,
    /// File, offset and details of the first occurrence; may be empty.
    pub text: String,
}

/// Numbers of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordCounts {
    /// Records of all sources.
    pub read: u64,
    /// Passed to the trackers, or counted by name because no table holds their kind.
    pub accepted: u64,
    /// Counted under an anomaly.
    pub skipped: u64,
}

/// Result of an import.
#[derive(Debug, Clone)]
pub struct ImportReport {
    /// Manifest of the new recording.
    pub recording: RecordingInfo,
    /// Numbers of records.
    pub records: RecordCounts,
    /// Sorted by severity, highest first, then by name.
    pub anomalies: Vec<AnomalyReport>,
    /// Wall-clock time of the import.
    pub elapsed: Duration,
}

/// Why an import failed; it leaves no recording behind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// No sources.
    #[error("nothing to import")]
    NoSource,
    /// A source that cannot be imported.
    #[error(transparent)]
    Detect(#[from] DetectError),
    /// A CTF trace that cannot be read.
    #[error(transparent)]
    Ctf(#[from] CtfError),
    /// A source, or a file of one, cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A text source that is too large to be held in memory.
    #[error("cannot import `{}`: its {bytes} bytes exceed the limit of {limit} bytes for text files", path.display())]
    TextTooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// Size limit.
        limit: u64,
    },
    /// A profile that is too large to be held in memory.
    #[error("cannot import `{}`: its {bytes} bytes exceed the limit of {limit} bytes for profiles", path.display())]
    ProfileTooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// Size limit.
        limit: u64,
    },
    /// A profile that cannot be read.
    #[error("cannot read `{}`: {reason}", path.display())]
    Samples {
        /// The file.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
    /// Output of a tool without timestamps.
    #[error("cannot import `{}`: {reason}", path.display())]
    Report {
        /// The file.
        path: PathBuf,
        /// The option of the tool that prints timestamps.
        reason: &'static str,
    },
    /// A perf.data file that cannot be read.
    #[error("cannot read `{}`: {reason}", path.display())]
    Perf {
        /// The file.
        path: PathBuf,
        /// Reason.
        reason: &'static str,
    },
    /// A request log or a trace-cmd file that cannot be read.
    #[error("cannot read `{}`: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
    /// A spool without any complete block.
    #[error("cannot import `{}`: it has no complete block, because its recorder ended before writing one", path.display())]
    EmptySpool {
        /// The spool.
        path: PathBuf,
    },
    /// A spool cannot be combined with a trace of another tracer, because both contain the same
    /// events.
    #[error("cannot import a spool together with {other}: both contain kernel events")]
    SpoolCombined {
        /// The other source.
        other: &'static str,
    },
    /// Traces of several hosts, whose ids would collide.
    #[error("cannot import traces of several hosts together: {}", hosts.join(", "))]
    SeveralHosts {
        /// Their names.
        hosts: Vec<String>,
    },
    /// The cache directory for imported traces cannot be used.
    #[error("cannot use the cache of imported traces: {reason}")]
    Cache {
        /// Reason, with the path.
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

/// An import whose rows stay in memory: for tests, and for small traces.
pub struct InMemory {
    /// Rows of every table, in order of completion.
    pub rows: Collected,
    /// Strings of the rows.
    pub symbols: Symbols,
    /// Numbers of records.
    pub records: RecordCounts,
    /// Sorted by severity, highest first, then by name.
    pub anomalies: Vec<AnomalyReport>,
    /// First time, ns since the epoch.
    pub begin_ns: Ns,
    /// Last time, ns since the epoch.
    pub end_ns: Ns,
}

/// Imports into memory, with the defaults of [`ImportOptions`].
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

/// Modification time of a file.
fn written(path: &Path) -> Option<Ns> {
    let modified = std::fs::metadata(path)
        .and_then(|about| about.modified())
        .ok()?;
    let since = modified.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(since.as_nanos() as Ns)
}

/// Sources that were opened, but not yet read.
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
        // A spool is read to its end before other traces, so they cannot be merged.
        if spools.len() > 1 || !spools.is_empty() && !traces.is_empty() {
            let other = if traces.is_empty() {
                "another one"
            } else {
                "a trace"
            };
            return Err(ImportError::SpoolCombined { other });
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

/// Digests are computed in parallel to the import, which rarely waits for the disk.
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
        let digests = self
            .thread
            .join()
            .expect("computing digests does not panic");
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
