//! How a command fails: one `error:` line, its causes, and one `hint:` with the most useful remedy.
//! The errors of all crates are converted to a [`Failure`] here; its kind determines the exit code.

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

/// Why a command failed, as reported to the user: `error:`, causes, `hint:`.
#[derive(Debug)]
pub struct Failure {
    message: String,
    causes: Vec<String>,
    hint: Option<String>,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// An operation failed.
    Failed,
    /// The command line is invalid.
    Usage,
    /// `--strict` and the data is incomplete.
    Incomplete,
    /// An assertion does not hold.
    Asserted,
    /// The reader of standard output closed it, which is no failure.
    ReaderGone,
    /// Ctrl-C, SIGTERM or a hangup.
    Interrupted,
    /// A command cannot be executed: the exit code that shells use.
    NotExecuted(u8),
}

impl Failure {
    /// An operation failed: exit code 1.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            causes: Vec::new(),
            hint: None,
            kind: Kind::Failed,
        }
    }

    /// The command line is invalid: exit code 2.
    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            kind: Kind::Usage,
            ..Self::new(message)
        }
    }

    /// The data is incomplete, and `--strict` was given or nothing can be answered: exit code 3.
    pub fn incomplete(message: impl Into<String>) -> Self {
        Self {
            kind: Kind::Incomplete,
            ..Self::new(message)
        }
    }

    /// An assertion does not hold: exit code 4.
    pub fn asserted(message: impl Into<String>) -> Self {
        Self {
            kind: Kind::Asserted,
            ..Self::new(message)
        }
    }

    /// A command of the user cannot be executed: exit code 127 if it does not exist, else 126, as in
    /// shells.
    pub fn not_executed(name: &str, error: &io::Error) -> Self {
        let code = match error.kind() {
            io::ErrorKind::NotFound => 127,
            _ => 126,
        };
        let name = whyslow_model::text::shown(name, false);
        Self {
            kind: Kind::NotExecuted(code),
            ..Self::new(format!("cannot run `{name}`"))
        }
        .caused_by(error)
    }

    /// Ended by a signal; nothing is reported.
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

    /// Whether a different command line or request would succeed.
    pub fn is_usage(&self) -> bool {
        self.kind == Kind::Usage
    }

    /// Whether a signal ended it.
    pub fn is_interrupted(&self) -> bool {
        self.kind == Kind::Interrupted
    }

    /// Message, causes and hint.
    pub fn into_parts(self) -> (String, Vec<String>, Option<String>) {
        (self.message, self.causes, self.hint)
    }

    /// Adds the most useful remedy.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// Adds the causes of an error that is itself the message.
    pub fn caused_by_chain(mut self, error: &dyn Error) -> Self {
        self.causes.extend(chain(error.source()));
        self
    }

    /// Adds an error and its sources as causes.
    pub fn caused_by(mut self, error: &dyn Error) -> Self {
        self.causes.extend(chain(Some(error)));
        self
    }

    /// A file could not be read.
    pub fn reading(path: &Path, error: io::Error) -> Self {
        Self::new(format!("cannot read `{}`", crate::talk::path(path))).caused_by(&error)
    }

    /// This user is not permitted to read a recording or trace.
    pub fn denied(path: &Path, error: &io::Error) -> Self {
        let name = whyslow_model::text::shown(&path.display().to_string(), false).into_owned();
        Self::new(format!("cannot open `{name}`"))
            .caused_by(error)
            .hint(format!("take ownership: sudo chown -R \"$USER\" {name}"))
    }

    /// An import cannot write its recording.
    fn creating(path: &Path, action: &str, error: &io::Error) -> Self {
        let failure =
            Self::new(format!("cannot {action} `{}`", crate::talk::path(path))).caused_by(error);
        match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => failure
                .hint("write to another directory: whyslow import TRACE -o /other/dir/NAME.wsl"),
            io::ErrorKind::NotFound => {
                let parent = path.parent().unwrap_or(path).display();
                failure.hint(format!("create the directory: mkdir -p {parent}"))
            }
            _ => failure.hint_for(error),
        }
    }

    /// A file could not be written.
    pub fn writing(path: &Path, error: io::Error) -> Self {
        Self::new(format!("cannot write `{}`", crate::talk::path(path))).caused_by(&error)
    }

    /// Attributes a write failure to this file.
    pub fn while_writing(mut self, path: &Path) -> Self {
        if self.kind == Kind::ReaderGone {
            self.kind = Kind::Failed;
        }
        if self.kind == Kind::Failed {
            self.causes.insert(0, self.message);
            self.message = format!("cannot write `{}`", crate::talk::path(path));
        }
        self
    }

    /// Reports the failure on stderr, if it is one, and returns the exit code.
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
            Kind::NotExecuted(code) => ExitCode::from(code),
            Kind::ReaderGone => ExitCode::SUCCESS,
        }
    }
}

/// Messages quote names from traces, which may contain control characters.
fn escaped(text: &str) -> String {
    text.split('\n')
        .map(|line| whyslow_model::text::shown(line, false))
        .collect::<Vec<_>>()
        .join("\n")
}

/// The messages of an error and of its sources.
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
                ..Self::new("standard output was closed")
            };
        }
        Self::new("cannot write the result").caused_by(&error)
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
            StoreError::Exists { .. } => failure.hint("replace it: --force"),
            StoreError::Io { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => {
                    failure.hint("take ownership: sudo chown -R \"$USER\" NAME.wsl")
                }
                _ => failure.hint_for(source),
            },
            StoreError::TooNew { .. } => {
                failure.hint("use a newer whyslow, or import the trace again")
            }
            StoreError::Packed { .. } => {
                failure.hint("copy the file again; check it with: zstd -t FILE")
            }
            StoreError::TooLarge { .. } => {
                failure.hint("set TMPDIR to a file system with more space: export TMPDIR=/var/tmp")
            }
            StoreError::Write { source } if source.kind() == io::ErrorKind::BrokenPipe => Self {
                kind: Kind::ReaderGone,
                ..failure
            },
            StoreError::Stopped => Self::interrupted(),
            StoreError::TooOld { .. } => failure.hint("import the trace again"),
            StoreError::Damaged { .. } => {
                failure.hint("import the trace again: whyslow import --force TRACE")
            }
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
            DetectError::Recording { path } => failure.hint(format!(
                "query it: whyslow info {}",
                crate::quoted(&path.to_string_lossy())
            )),
            DetectError::Open { source, .. } => failure.hint_for(source),
            DetectError::Unsupported { .. } => {
                failure.hint("list the formats that can be imported: whyslow import --formats")
            }
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
            }) => Self::creating(&path, action, &source),
            ImportError::Store(error) => error.into(),
            error @ ImportError::EmptySpool { .. } => {
                Self::new(error.to_string()).hint("delete the spool and record again")
            }
            error @ ImportError::Cache { .. } => Self::new(error.to_string())
                .hint("import it explicitly: whyslow import TRACE -o NAME.wsl"),
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
                failure.hint(format!("run it as root: {}", as_root(std::env::args_os())))
            }
            RecordError::NoTypes => failure.hint(
                "record with LTTng (`whyslow doctor` prints the commands), or use a kernel with CONFIG_DEBUG_INFO_BTF=y",
            ),
            RecordError::Container => {
                failure.hint("record on the host, or start the container with --pid=host")
            }
            RecordError::Probe { hint, .. } => failure.hint(hint.clone()),
            RecordError::AllRefused { off } => {
                let reasons = off.iter().map(|off| format!("{}: {}", off.program, off.reason));
                Self {
                    causes: reasons.collect(),
                    ..failure
                }
                .hint("check what this kernel supports: whyslow doctor")
            }
            RecordError::SpoolRoom { .. } => failure.hint("raise the limit with --max-size"),
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
                        "import what was written so far: whyslow import {}{elsewhere}",
                        crate::quoted(&path.to_string_lossy())
                    ))
                } else {
                    failure
                }
            }
            error => failure.caused_by_chain(error),
        }
    }
}

/// The command line of this program, to be pasted.
fn as_root(args: impl Iterator<Item = std::ffi::OsString>) -> String {
    let words = args.map(|word| crate::quoted(&word.to_string_lossy()));
    let words = std::iter::once("sudo".to_owned()).chain(words);
    words.collect::<Vec<_>>().join(" ")
}

/// The I/O error among the sources of an error, if there is one.
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
    /// Adds the remedy for an error of the operating system.
    fn hint_for(self, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => {
                self.hint("take ownership: sudo chown -R \"$USER\" TRACE")
            }
            io::ErrorKind::NotFound => self.hint("check the path: ls -d TRACE"),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                self.hint("free disk space, or write to another disk: -o /other/disk/NAME.wsl")
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
            other => Self::new("cannot write Arrow").caused_by(&other),
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
        Self::new("cannot write Parquet").caused_by(&error)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_for_root_can_be_pasted() {
        let words = ["whyslow", "record", "--when", "open>1s | block>1s"];
        let words = words.into_iter().map(std::ffi::OsString::from);
        assert_eq!(
            as_root(words),
            "sudo whyslow record --when 'open>1s | block>1s'"
        );
    }
}
