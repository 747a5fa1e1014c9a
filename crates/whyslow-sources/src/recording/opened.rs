//! Opens the recording that is specified on the command line.

use std::io;
use std::path::{Path, PathBuf};

use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::progress::ProgressReporter;
use whyslow_base::time::{Calendar, OperationRef, WindowText, Zone};
use whyslow_base::{interrupt, normalised, talk};
use whyslow_ingest::{ImportOptions, cache};
use whyslow_model::Window;
use whyslow_model::text::shown;
use whyslow_render::Subject;
use whyslow_store::{Recording, RecordingInfo, StoreError, Tables, packed};

use super::flight::{self, FlightChoice};
use super::last::{recall, remember, state_folder};
use super::unpacked::Unpacked;
use crate::live::{RecorderChoice, Segment};

/// Refers to the recording written or used last.
const LAST: &str = "@last";
/// Marks a directory as a recording.
pub(super) const MANIFEST: &str = "manifest.json";

/// An opened recording.
pub struct Opened {
    /// Its tables.
    pub tables: Box<dyn Tables>,
    pub(super) path: PathBuf,
    /// Name for display.
    pub(super) name: String,
    /// It is deleted after the query.
    pub is_live: bool,
    /// One of several consecutive intervals.
    pub is_part: bool,
    /// Directory of a packed recording, deleted on drop.
    pub(super) unpacked: Option<Unpacked>,
}

impl Opened {
    /// Opens a recording, a trace (imported into the cache), @last, or @flight.
    pub fn find(argument: Option<&str>, args: &TalkArgs) -> Result<Self, Failure> {
        let (opened, named) = Self::named(argument, args)?;
        remember(&named);
        Ok(opened)
    }

    /// Opens a second recording, for a comparison, without remembering it as the last one.
    pub fn beside(argument: &str, args: &TalkArgs) -> Result<Self, Failure> {
        Ok(Self::named(Some(argument), args)?.0)
    }

    fn named(argument: Option<&str>, args: &TalkArgs) -> Result<(Self, PathBuf), Failure> {
        if let Some(choice) = argument.and_then(FlightChoice::of) {
            let (mut opened, named) = Self::at(flight::save(choice, args)?, args)?;
            // Commands of the answer need the directory, which the user did not type.
            opened.name = named.display().to_string();
            return Ok((opened, named));
        }
        let (mut opened, named) = Self::at(place(argument)?, args)?;
        // Commands of the answer are typed elsewhere.
        if state_folder().is_some_and(|folder| named.starts_with(folder)) {
            opened.name = named.display().to_string();
        }
        if matches!(argument, None | Some(LAST)) && !args.quiet {
            talk::line(&opened.used_text(&named));
        }
        Ok((opened, named))
    }

    /// Which recording is used, if it was not specified by name.
    fn used_text(&self, named: &Path) -> String {
        let info = self.tables.info();
        let begin = self.calendar(None).zone.civil(info.begin_ns);
        let seconds = info.end_ns.saturating_sub(info.begin_ns) as f64 / 1e9;
        let directory = std::env::current_dir().unwrap_or_default();
        let path = named.strip_prefix(&directory).unwrap_or(named);
        format!(
            "using {} (recorded {}, {seconds:.1} s)",
            shown(&path.display().to_string(), false),
            begin.strftime("%Y-%m-%d %H:%M:%S")
        )
    }

    fn at(named: PathBuf, args: &TalkArgs) -> Result<(Self, PathBuf), Failure> {
        let mut unpacked = None;
        let path = match named.join(MANIFEST).metadata() {
            Ok(_) => named.clone(),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(Failure::denied(&named, &error));
            }
            Err(_) if packed::is_packed(&named) => unpacked.insert(Unpacked::new(&named)?).path(),
            Err(_) => import_into_cache(&named, args)?,
        };
        let recording = Recording::open(&path).map_err(|error| cannot_open(&path, error))?;
        let name = named.file_name().map_or_else(
            || named.display().to_string(),
            |name| name.to_string_lossy().into_owned(),
        );
        let opened = Self {
            tables: Box::new(recording),
            path,
            name,
            is_live: false,
            is_part: false,
            unpacked,
        };
        Ok((opened, named))
    }

    /// Opens the recording of a live interval.
    pub fn live(segment: &Segment<'_>) -> Result<Self, Failure> {
        Ok(Self {
            is_part: segment.is_part,
            ..Self::unremembered(segment.recording)?
        })
    }

    /// Opens a live recording by its path.
    pub fn unremembered(path: impl AsRef<Path>) -> Result<Self, Failure> {
        let path = path.as_ref();
        Ok(Self {
            tables: Box::new(Recording::open(path)?),
            path: path.to_owned(),
            name: "@live".to_owned(),
            is_live: true,
            is_part: false,
            unpacked: None,
        })
    }

    /// Name, host and zone, for the header of an answer.
    pub fn subject(&self) -> Subject {
        let info = self.tables.info();
        Subject {
            name: self.name.clone(),
            host: info.host.clone(),
            zone: info.zone.clone(),
            ..Subject::default()
        }
    }

    /// Name for display.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Directory of the recording.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is a packed recording: the path of the unpacked one is temporary.
    pub fn is_unpacked(&self) -> bool {
        self.unpacked.is_some()
    }

    /// The window of a query: the specified one, otherwise the focus of a snapshot; `None` for the
    /// whole recording.
    pub fn window(
        &self,
        text: Option<&WindowText>,
        calendar: &Calendar,
    ) -> Result<Option<Window>, Failure> {
        let info = self.tables.info();
        let Some(text) = text else {
            return Ok(info.focus());
        };
        let window = text.resolve(calendar, |operation| self.window_of(operation))?;
        if window.begin > info.end_ns || window.end <= info.begin_ns {
            return Err(outside(window, info, calendar));
        }
        Ok(Some(within_kept(window, info)))
    }

    /// The caveat for answers about a snapshot.
    pub fn note(&self, calendar: &Calendar, window: Option<Window>) -> Option<String> {
        let info = self.tables.info();
        info.cut.as_ref()?;
        let local_time = |ts: i64| {
            let civil = calendar.zone.civil(ts);
            format!("{} {}", civil.date(), civil.time())
        };
        let range =
            |window: Window| format!("{} .. {}", local_time(window.begin), local_time(window.end));
        let kept = Window::new(info.begin_ns, info.end_ns);
        let shown = window.unwrap_or(kept);
        Some(format!(
            "snapshot of a recording of {}; contains {}; showing {}",
            range(info.whole()),
            range(kept),
            range(shown),
        ))
    }

    /// From start to end of an operation.
    pub fn window_of(&self, operation: &OperationRef) -> Result<Window, Failure> {
        let (_, window) =
            whyslow_analysis::interval_of(&*self.tables, operation.table, operation.id)?;
        Ok(window)
    }

    /// Range and zone of the recording; an unknown zone (such as an abbreviation) is ignored.
    pub fn calendar(&self, wanted: Option<Zone>) -> Calendar {
        let info = self.tables.info();
        let recorded = || info.zone.as_deref().and_then(|zone| Zone::parse(zone).ok());
        Calendar {
            begin: info.begin_ns,
            end: info.end_ns,
            zone: wanted.or_else(recorded).unwrap_or_else(Zone::unknown),
        }
    }
}

/// Clips the window to the kept range: outside of it, no data does not mean no activity.
fn within_kept(window: Window, info: &RecordingInfo) -> Window {
    let whole = info.whole();
    let begin = if info.begin_ns > whole.begin {
        window.begin.max(info.begin_ns)
    } else {
        window.begin
    };
    let end = if info.end_ns < whole.end {
        window.end.min(info.end_ns.saturating_add(1))
    } else {
        window.end
    };
    Window::new(begin, end)
}

fn outside(window: Window, info: &RecordingInfo, calendar: &Calendar) -> Failure {
    let local_time = |ts: i64| {
        let civil = calendar.zone.civil(ts);
        format!("{} {}", civil.date(), civil.time())
    };
    let (begin, end) = (info.begin_ns, info.end_ns);
    let failure = Failure::usage(format!(
        "cannot use the window {} .. {}: it is outside of the recording",
        local_time(window.begin),
        local_time(window.end)
    ));
    let of_what = if info.cut.is_some() {
        " (a snapshot of a longer recording)"
    } else {
        ""
    };
    failure.hint(format!(
        "choose a window from {} to {} {}{of_what}",
        local_time(begin),
        local_time(end),
        calendar.zone.offset(begin)
    ))
}

/// Path of the recording or trace with this name.
pub fn place(argument: Option<&str>) -> Result<PathBuf, Failure> {
    match argument {
        Some(word) if RecorderChoice::of(word).is_some() => {
            Err(Failure::usage("cannot use @live here")
                .hint("make a recording first: sudo whyslow record -o NAME.wsl"))
        }
        Some(word) if FlightChoice::of(word).is_some() => {
            Err(Failure::usage("cannot use @flight here")
                .hint("save and explain it first: whyslow explain @flight"))
        }
        None | Some(LAST) => recall(),
        Some(path) => Ok(normalised(Path::new(path))),
    }
}

fn cannot_open(path: &Path, error: StoreError) -> Failure {
    match error {
        StoreError::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
            Failure::denied(path, &source)
        }
        error => error.into(),
    }
}

/// The recording imported from a trace, now or at an earlier use.
fn import_into_cache(trace: &Path, args: &TalkArgs) -> Result<PathBuf, Failure> {
    let shown_name = shown(&trace.display().to_string(), false).into_owned();
    if !trace.exists() {
        return Err(Failure::new(format!(
            "cannot open `{shown_name}`: no such recording or trace"
        ))
        .hint("make one: whyslow import TRACE -o NAME.wsl"));
    }
    let folder = cache::default_folder()?;
    // The cache chooses the place of the output.
    let options = ImportOptions {
        cancel: interrupt::flag()?,
        ..ImportOptions::new("")
    };
    let mut progress = ProgressReporter::new(args);
    let sources = [trace.to_path_buf()];
    let result = cache::open(&folder, &sources, &options, &mut |at| progress.show(at));
    progress.end();
    let cached = result?;
    if let Some(report) = &cached.report
        && !args.quiet
    {
        talk::line(&format!(
            "note: imported `{shown_name}` into the cache ({} events, {:.1} s); \
             to keep it, run whyslow import {shown_name}",
            report.records.read,
            report.elapsed.as_secs_f64()
        ));
    }
    Ok(cached.path)
}
