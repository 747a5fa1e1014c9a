//! How a command fails: one `error:` line, its causes, and one `hint:` with what helps most. The
//! errors of all crates become a [`Failure`] here, and its kind the exit code.

use std::error::Error;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use whyslow_analysis::AnalysisError;
use whyslow_export::ExportError;
use whyslow_ingest::ImportError;
use whyslow_ingest::detect::DetectError;
use whyslow_record::RecordError;
use whyslow_store::StoreError;
use whyslow_tiles::TilesError;

/// Why a command did not do what was asked, as it is told: `error:`, causes, `hint:`.
#[derive(Debug)]
pub struct Failure {
    message: String,
    causes: Vec<String>,
    hint: Option<String>,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Something went wrong.
    Failed,
    /// Asked in a way that cannot be answered.
    Usage,
    /// `--strict` and the data is incomplete.
    Incomplete,
    /// What was asserted does not hold.
    Asserted,
    /// The reader of standard output left: no failure at all.
    ReaderGone,
    /// Ctrl-C, or a request to end.
    Interrupted,
}

impl Failure {
    /// Something went wrong: exit code 1.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            causes: Vec::new(),
            hint: None,
            kind: Kind::Failed,
        }
    }

    /// It was asked for in a way that cannot be answered: exit code 2.
    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            kind: Kind::Usage,
            ..Self::new(message)
        }
    }

    /// `--strict`, and the data is incomplete: exit code 3.
    pub fn incomplete(message: impl Into<String>) -> Self {
        Self {
            kind: Kind::Incomplete,
            ..Self::new(message)
        }
    }

    /// What was asserted does not hold: exit code 4.
    pub fn asserted(message: impl Into<String>) -> Self {
        Self {
            kind: Kind::Asserted,
            ..Self::new(message)
        }
    }

    /// A signal ended it: nothing is reported.
    pub fn interrupted() -> Self {
        Self {
            kind: Kind::Interrupted,
            ..Self::new("interrupted")
        }
    }

    /// The line after `error:`.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the asker can mend it by asking otherwise.
    pub fn is_usage(&self) -> bool {
        self.kind == Kind::Usage
    }

    /// Whether somebody ended it.
    pub fn is_interrupted(&self) -> bool {
        self.kind == Kind::Interrupted
    }

    /// Message, causes and hint.
    pub fn into_parts(self) -> (String, Vec<String>, Option<String>) {
        (self.message, self.causes, self.hint)
    }

    /// With the one thing that helps most.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// The causes of an error whose own words are the message.
    pub fn caused_by_chain(mut self, error: &dyn Error) -> Self {
        self.causes.extend(chain(error.source()));
        self
    }

    /// With an error, and those behind it, as causes.
    pub fn caused_by(mut self, error: &dyn Error) -> Self {
        self.causes.extend(chain(Some(error)));
        self
    }

    /// A file could not be read.
    pub fn reading(path: &Path, error: io::Error) -> Self {
        Self::new(format!("failed to read `{}`", path.display())).caused_by(&error)
    }

    /// The operating system does not let this user look at a recording or trace.
    pub fn denied(path: &Path, error: &io::Error) -> Self {
        let name = whyslow_model::text::shown(&path.display().to_string(), false).into_owned();
        Self::new(format!("failed to open `{name}`"))
            .caused_by(error)
            .hint(format!(
                "it belongs to another user: sudo chown -R \"$USER\" {name}, or ask as root: sudo whyslow ..."
            ))
    }

    /// The recording that an import makes cannot be written there.
    fn making(path: &Path, action: &str, error: &io::Error) -> Self {
        let failure =
            Self::new(format!("failed to {action} `{}`", path.display())).caused_by(error);
        match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                failure.hint("write where you may: whyslow import TRACE -o /other/place/NAME.wsl")
            }
            io::ErrorKind::NotFound => failure.hint("make the directory first: mkdir -p"),
            _ => failure.hint_for(error),
        }
    }

    /// A file could not be written.
    pub fn writing(path: &Path, error: io::Error) -> Self {
        Self::new(format!("failed to write `{}`", path.display())).caused_by(&error)
    }

    /// A failure to write, known to be one to this file.
    pub fn while_writing(mut self, path: &Path) -> Self {
        if self.kind == Kind::ReaderGone {
            self.kind = Kind::Failed;
        }
        if self.kind == Kind::Failed {
            self.causes.insert(0, self.message);
            self.message = format!("failed to write `{}`", path.display());
        }
        self
    }

    /// Tells the failure on stderr, if there is one to tell, and says how to exit.
    pub fn report(self) -> ExitCode {
        if !matches!(self.kind, Kind::ReaderGone | Kind::Interrupted) {
            crate::talk::line(&format!("error: {}", escaped(&self.message)));
            for cause in &self.causes {
                crate::talk::line(&format!("  cause: {}", escaped(cause)));
            }
            if let Some(hint) = &self.hint {
                crate::talk::line(&format!("\nhint: {}", escaped(hint)));
            }
        }
        match self.kind {
            Kind::Failed => ExitCode::from(1),
            Kind::Usage => ExitCode::from(2),
            Kind::Incomplete => ExitCode::from(3),
            Kind::Asserted => ExitCode::from(4),
            Kind::Interrupted => ExitCode::from(crate::signal::exit_code()),
            Kind::ReaderGone => ExitCode::SUCCESS,
        }
    }
}

/// Messages quote names from traces.
fn escaped(text: &str) -> String {
    text.split('\n')
        .map(|line| whyslow_model::text::shown(line, false))
        .collect::<Vec<_>>()
        .join("\n")
}

/// What the error says, and what it says was behind it.
fn chain(first: Option<&dyn Error>) -> Vec<String> {
    let mut messages = Vec::new();
    let mut next = first;
    while let Some(error) = next {
        messages.push(error.to_string());
        next = error.source();
    }
    messages
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self {
                kind: Kind::ReaderGone,
                ..Self::new("the reader of standard output left")
            };
        }
        Self::new("failed to write the answer").caused_by(&error)
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::usage(message)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let failure = Self {
            causes: chain(error.source()),
            ..Self::new(error.to_string())
        };
        match &error {
            StoreError::Exists { .. } => failure.hint("--force replaces it"),
            StoreError::Io { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => failure.hint(
                    "it belongs to another user: sudo chown -R \"$USER\" NAME.wsl, or ask as root: sudo whyslow ...",
                ),
                _ => failure.hint_for(source),
            },
            StoreError::TooNew { .. } => {
                failure.hint("use a newer whyslow, or import the trace again")
            }
            StoreError::Packed { .. } => {
                failure.hint("send or copy it again; `zstd -t FILE` tells whether it is whole")
            }
            StoreError::TooLarge { .. } => failure.hint("TMPDIR names a place with more room"),
            StoreError::Write { source } if source.kind() == io::ErrorKind::BrokenPipe => Self {
                kind: Kind::ReaderGone,
                ..failure
            },
            StoreError::Stopped => Self::interrupted(),
            StoreError::TooOld { .. } => failure.hint("import the trace again"),
            StoreError::Damaged { .. } => failure.hint("import the trace again, with --force"),
            _ => failure,
        }
    }
}

impl From<TilesError> for Failure {
    fn from(error: TilesError) -> Self {
        match error {
            TilesError::Store(error) => error.into(),
            TilesError::Tables(error) => error.into(),
            TilesError::Cancelled => Self::interrupted(),
            error @ (TilesError::NoTrack { .. }
            | TilesError::NoLevel { .. }
            | TilesError::NoHeat { .. }) => Self::usage(error.to_string()),
            error @ TilesError::NoPlace { .. } => {
                Self::new(error.to_string()).hint("set XDG_CACHE_HOME or HOME")
            }
            error => Self::new(error.to_string()).caused_by_chain(&error),
        }
    }
}

impl From<DetectError> for Failure {
    fn from(error: DetectError) -> Self {
        let failure = Self {
            causes: chain(error.source()),
            ..Self::new(error.to_string())
        };
        match &error {
            DetectError::Recording { path } => {
                failure.hint(format!("ask it: whyslow info {}", path.display()))
            }
            DetectError::Open { source, .. } => failure.hint_for(source),
            DetectError::Unsupported { .. } => failure,
        }
    }
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::Cancelled => Self::interrupted(),
            ImportError::Store(StoreError::Io {
                action,
                path,
                source,
            }) => Self::making(&path, action, &source),
            ImportError::Store(error) => error.into(),
            error @ ImportError::EmptySpool { .. } => Self::new(error.to_string())
                .hint("nothing was recorded: delete it, and record again"),
            error @ ImportError::Cache { .. } => Self::new(error.to_string())
                .hint("import it to a place of yours: whyslow import TRACE -o NAME.wsl"),
            ImportError::Detect(error) => error.into(),
            other => {
                let failure = Self {
                    causes: chain(other.source()),
                    ..Self::new(other.to_string())
                };
                match io_error_of(&other) {
                    Some(io_error) => failure.hint_for(io_error),
                    None => failure,
                }
            }
        }
    }
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        let failure = Failure::new(error.to_string());
        match &error {
            RecordError::NotPermitted => {
                failure.hint("run it as root: sudo whyslow …")
            }
            RecordError::NoTypes => failure.hint(
                "the kernel was built without CONFIG_DEBUG_INFO_BTF: record with LTTng, `whyslow doctor` tells how",
            ),
            RecordError::Container => {
                failure.hint("record on the host, or start the container with --pid=host")
            }
            RecordError::Probe { hint, .. } => failure.hint(hint.clone()),
            RecordError::AllRefused { off } => {
                let reasons = off.iter().map(|off| format!("{}: {}", off.program, off.reason));
                failure.hint(reasons.collect::<Vec<_>>().join("; "))
            }
            RecordError::SpoolRoom { .. } => failure.hint("give it more with --max-size"),
            RecordError::Spool { path, source } => {
                let failure = failure.caused_by_chain(&error);
                if path.exists() {
                    let elsewhere = match source.kind() {
                        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                            " -o /other/disk/NAME.wsl"
                        }
                        _ => "",
                    };
                    failure.hint(format!(
                        "what was written until then is kept: whyslow import {}{elsewhere}",
                        path.display()
                    ))
                } else {
                    failure
                }
            }
            error => failure.caused_by_chain(error),
        }
    }
}

/// The operating system's word behind an error, if there is one.
fn io_error_of<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e io::Error> {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

impl From<AnalysisError> for Failure {
    fn from(error: AnalysisError) -> Self {
        match error {
            AnalysisError::Store(error) => error.into(),
            AnalysisError::Query { message, hint } => Self {
                hint,
                ..Self::usage(message)
            },
            other => Self::new(other.to_string()).caused_by_source(&other),
        }
    }
}

impl Failure {
    /// What helps against a refusal of the operating system.
    fn hint_for(self, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => self.hint(
                "traces of the kernel often belong to root: sudo chown -R \"$USER\" TRACE, or import as root",
            ),
            io::ErrorKind::NotFound => self.hint("look at the path: ls -d TRACE"),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                self.hint("make room, or write elsewhere: -o /other/disk/NAME.wsl")
            }
            _ => self,
        }
    }

    fn caused_by_source(mut self, error: &dyn Error) -> Self {
        self.causes.extend(chain(error.source()));
        self
    }
}

impl From<arrow_schema::ArrowError> for Failure {
    fn from(error: arrow_schema::ArrowError) -> Self {
        match error {
            arrow_schema::ArrowError::IoError(_, error) => error.into(),
            other => Self::new("failed to write Arrow").caused_by(&other),
        }
    }
}

impl From<parquet::errors::ParquetError> for Failure {
    fn from(error: parquet::errors::ParquetError) -> Self {
        if let parquet::errors::ParquetError::External(inner) = &error
            && let Some(io_error) = inner.downcast_ref::<io::Error>()
        {
            return io::Error::new(io_error.kind(), io_error.to_string()).into();
        }
        Self::new("failed to write Parquet").caused_by(&error)
    }
}

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Analysis(error) => error.into(),
            ExportError::Store(error) => error.into(),
            ExportError::Write(error) => error.into(),
            ExportError::Json(error) if error.is_io() => io::Error::from(error).into(),
            other => Failure::new(other.to_string()).caused_by_chain(&other),
        }
    }
}
