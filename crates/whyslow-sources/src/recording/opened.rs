//! A recording, as the word on the command line names it.

use std::io;
use std::path::{Path, PathBuf};

use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::progress::Teller;
use whyslow_base::time::{Calendar, OperationRef, WindowText, Zone};
use whyslow_base::{interrupt, talk};
use whyslow_ingest::{ImportOptions, cache};
use whyslow_model::Window;
use whyslow_model::text::shown;
use whyslow_render::Subject;
use whyslow_store::{Recording, RecordingInfo, StoreError, Tables, packed};

use super::last::{recall, remember};
use super::unpacked::Unpacked;
use crate::live::{Segment, Whom};

/// Name that stands for the recording written or used last.
const LAST: &str = "@last";
/// What makes a directory a recording.
const MANIFEST: &str = "manifest.json";

/// An opened recording.
pub struct Opened {
    /// Its tables.
    pub tables: Box<dyn Tables>,
    pub(super) path: PathBuf,
    /// As the user would name it.
    pub(super) name: String,
    /// It goes when it has been asked.
    pub is_live: bool,
    /// One of several intervals: the next begins where it ends.
    pub is_part: bool,
    /// Of a packed recording: goes after what reads it.
    pub(super) unpacked: Option<Unpacked>,
}

impl Opened {
    /// Opens what the argument names: a recording, a trace (imported into the cache), or @last.
    pub fn find(argument: Option<&str>, args: &TalkArgs) -> Result<Self, Failure> {
        let (opened, named) = Self::named(argument, args)?;
        remember(&named);
        Ok(opened)
    }

    /// Opens what another one is compared with: that is not the last one after it.
    pub fn beside(argument: &str, args: &TalkArgs) -> Result<Self, Failure> {
        Ok(Self::named(Some(argument), args)?.0)
    }

    fn named(argument: Option<&str>, args: &TalkArgs) -> Result<(Self, PathBuf), Failure> {
        let named = place(argument)?;
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

    /// Opens what was recorded of this machine a moment ago.
    pub fn live(segment: &Segment<'_>) -> Result<Self, Failure> {
        Ok(Self {
            is_part: segment.is_part,
            ..Self::unremembered(segment.recording)?
        })
    }

    /// The same by its path.
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

    /// Name, host and zone, for the head of an answer.
    pub fn subject(&self) -> Subject {
        let info = self.tables.info();
        Subject {
            name: self.name.clone(),
            host: info.host.clone(),
            zone: info.zone.clone(),
            ..Subject::default()
        }
    }

    /// As the user would name it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Directory of the recording.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is a packed one: where it lies now is nothing to remember.
    pub fn is_unpacked(&self) -> bool {
        self.unpacked.is_some()
    }

    /// The window that is meant, of whoever names one or none: the one place that knows what a part of
    /// a recording is about. None for all of it.
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

    /// What a reader must know of an answer about this window, if it is a part of a recording.
    pub fn note(&self, calendar: &Calendar, window: Option<Window>) -> Option<String> {
        let info = self.tables.info();
        info.cut.as_ref()?;
        let face = |ts: i64| {
            let civil = calendar.zone.civil(ts);
            format!("{} {}", civil.date(), civil.time())
        };
        let range = |window: Window| format!("{} .. {}", face(window.begin), face(window.end));
        let kept = Window::new(info.begin_ns, info.end_ns);
        let looked_at = window.unwrap_or(kept);
        Some(format!(
            "cut from a recording of {}, of which it has {}; looks at {}",
            range(info.whole()),
            range(kept),
            range(looked_at),
        ))
    }

    /// From begin to end of an operation.
    pub fn window_of(&self, operation: &OperationRef) -> Result<Window, Failure> {
        let (_, window) =
            whyslow_analysis::interval_of(&*self.tables, operation.table, operation.id)?;
        Ok(window)
    }

    /// Range and zone of the recording; a zone nobody knows (an abbreviation, say) counts as none.
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

/// Without what was cut away: there one could not tell nothing happening from nothing known.
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
    let face = |ts: i64| {
        let civil = calendar.zone.civil(ts);
        format!("{} {}", civil.date(), civil.time())
    };
    let (begin, end) = (info.begin_ns, info.end_ns);
    let failure = Failure::usage(format!(
        "the window {} .. {} lies outside of the recording",
        face(window.begin),
        face(window.end)
    ));
    let of_what = if info.cut.is_some() {
        ", cut from a longer one"
    } else {
        ""
    };
    failure.hint(format!(
        "it reaches from {} to {} {}{of_what}",
        face(begin),
        face(end),
        calendar.zone.offset(begin)
    ))
}

/// Where a recording or trace lies that is named so.
pub fn place(argument: Option<&str>) -> Result<PathBuf, Failure> {
    match argument {
        Some(word) if Whom::of(word).is_some() => {
            Err(Failure::usage("this machine cannot be asked live here")
                .hint("record, and ask the recording: sudo whyslow record -o NAME.wsl"))
        }
        None | Some(LAST) => recall(),
        Some(path) => Ok(PathBuf::from(path)),
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

/// The recording made from a trace, now or at an earlier use of it.
fn import_into_cache(trace: &Path, args: &TalkArgs) -> Result<PathBuf, Failure> {
    let shown_name = shown(&trace.display().to_string(), false).into_owned();
    if !trace.exists() {
        return Err(
            Failure::new(format!("there is no recording or trace `{shown_name}`"))
                .hint("make one: whyslow import TRACE -o NAME.wsl"),
        );
    }
    let folder = cache::default_folder()?;
    // The place of the output is the cache's choice.
    let options = ImportOptions {
        cancel: interrupt::flag()?,
        ..ImportOptions::new("")
    };
    let mut teller = Teller::new(args);
    let sources = [trace.to_path_buf()];
    let result = cache::open(&folder, &sources, &options, &mut |at| teller.tell(at));
    teller.end();
    let cached = result?;
    if let Some(report) = &cached.report
        && !args.quiet
    {
        talk::line(&format!(
            "note: `{shown_name}` was imported into the cache ({} events, {:.1} s); \
             to keep it: whyslow import {shown_name}",
            report.records.read,
            report.elapsed.as_secs_f64()
        ));
    }
    Ok(cached.path)
}
