//! Sends requests, writes the phases of each to a file, and prints a summary.

use std::fs;
use std::io::{self, BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Duration;

use whyslow_analysis::Weight;
use whyslow_base::args::{Format, OutputArgs, TalkArgs};
use whyslow_base::failure::Failure;
use whyslow_base::time::Zone;
use whyslow_base::{interrupt, talk};
use whyslow_ingest::ImportOptions;
use whyslow_load::{
    Ended, Header, List, LoadError, Model, Plan, Progress, Reason, Row, Run, Sink, Spool, Summary,
};
use whyslow_model::text::shown;
use whyslow_render::Subject;
use whyslow_sources::recording;

use super::failed::failed;
use super::plan;
use super::progress::ProgressLine;
use crate::cli::{ListArg, LoadArgs};

/// Text output lists at most this many requests individually unless --list is given.
const LISTED_MAX: u64 = 1_000;
/// More requests per second, or at a time, to another machine need confirmation.
const CONFIRM_ABOVE: f64 = 100.0;

pub(super) fn run(args: &LoadArgs, talk: &TalkArgs) -> Result<(), Failure> {
    let plan = plan::of(args)?;
    confirm(&plan, args.yes)?;
    let places = Places::of(args.output.output.as_deref());
    if let Some(recording) = places.recording.as_deref().filter(|path| path.exists()) {
        let name = shown(&recording.display().to_string(), false).into_owned();
        return Err(Failure::usage(format!("cannot write `{name}`: it exists"))
            .hint("choose another name with -o, or delete the recording"));
    }
    let cancel = interrupt::flag()?;
    let (model, workers) = (plan.model, plan.workers.iter().copied().max().unwrap_or(1));
    let run = Run::new(plan).map_err(failed)?;
    let begin_ns = run.begin_ns();
    let host = host();
    let spool = Spool::create(
        &places.spool,
        &Header {
            whyslow_load: whyslow_load::VERSION,
            begin_ns,
            host: host.clone(),
            arguments: arguments(),
            model: match model {
                Model::Closed(_) => "closed",
                Model::Open { .. } => "open",
            },
            threads: workers,
            zone: zone(),
        },
    )
    .map_err(failed)?;
    let mut keeper = Keeper {
        spool,
        summary: Summary::new(
            args.slow.or(args.amount.until_slow),
            args.list != Some(ListArg::None),
        ),
        progress: ProgressLine::new(talk),
    };
    let ended = run.go(&cancel, &mut keeper);
    keeper.progress.end();
    let ended = ended.map_err(failed)?;
    let end_ns = begin_ns.saturating_add(ended.end_ns as i64);
    keeper.spool.end(end_ns, ended.reason).map_err(failed)?;
    keep(&places, talk)?;
    print_summary(args, (&keeper.summary, &ended, begin_ns), host, talk)?;
    match ended.reason {
        Reason::Interrupted => Err(Failure::interrupted()),
        Reason::Done | Reason::UntilSlow => Ok(()),
    }
}

/// Writes each finished request to the file first, then counts it.
struct Keeper {
    spool: Spool,
    summary: Summary,
    progress: ProgressLine,
}

impl Sink for Keeper {
    fn stage(&mut self, workers: u32) {
        self.summary.begin_stage(workers);
    }

    fn take(&mut self, rows: &mut dyn Iterator<Item = Row>) -> Result<(), LoadError> {
        for row in rows {
            self.spool.write(&row)?;
            self.progress.count(&row);
            self.summary.add(row);
        }
        self.spool.flush()
    }

    fn look(&mut self, progress: Progress) {
        self.progress.show(progress);
    }
}

/// Where the requests are written.
struct Places {
    spool: PathBuf,
    /// The recording that the spool is imported into.
    recording: Option<PathBuf>,
}

impl Places {
    fn of(output: Option<&Path>) -> Self {
        match output {
            None => {
                let name = format!("load-{}", jiff::Zoned::now().strftime("%Y%m%d-%H%M%S"));
                let mut spool = PathBuf::from(format!("{name}.ndjson"));
                let mut others = 2..;
                while spool.exists()
                    && let Some(number) = others.next()
                {
                    spool = format!("{name}-{number}.ndjson").into();
                }
                Self {
                    spool,
                    recording: None,
                }
            }
            Some(path) if path.extension().is_some_and(|ending| ending == "wsl") => Self {
                spool: path.with_extension("ndjson"),
                recording: Some(path.to_owned()),
            },
            Some(path) => Self {
                spool: path.to_owned(),
                recording: None,
            },
        }
    }
}

/// Imports the spool into the requested recording and deletes it; without one the spool is kept. An
/// interrupted load is kept, too.
fn keep(places: &Places, talk: &TalkArgs) -> Result<(), Failure> {
    let name = |path: &Path| shown(&path.display().to_string(), false).into_owned();
    let spool = name(&places.spool);
    let Some(recording) = &places.recording else {
        if !talk.quiet {
            talk::line(&format!("requests: {spool}"));
        }
        return Ok(());
    };
    let sources = [places.spool.clone()];
    let mut progress = whyslow_base::progress::ProgressReporter::new(talk);
    let options = ImportOptions::new(recording);
    let imported = whyslow_ingest::import(&sources, &options, &mut |at| progress.show(at));
    progress.end();
    let hint = format!("import the requests again: whyslow import {spool}");
    imported.map_err(|error| Failure::from(error).hint(hint))?;
    recording::remember(recording);
    fs::remove_file(&places.spool)?;
    if !talk.quiet {
        talk::line(&format!("requests: {}", name(recording)));
    }
    Ok(())
}

fn print_summary(
    args: &LoadArgs,
    (summary, ended, begin_ns): (&Summary, &Ended, i64),
    host: String,
    talk: &TalkArgs,
) -> Result<(), Failure> {
    let format = args.output.chosen_format();
    let is_human_readable = matches!(format, Format::Text | Format::Md | Format::Html);
    let list = match args.list {
        Some(ListArg::None) => List::None,
        Some(ListArg::Slow) => List::Slow,
        Some(ListArg::All) => List::All,
        None if is_human_readable && summary.count() > LISTED_MAX => List::Slow,
        None => List::All,
    };
    let mut output = OutputArgs {
        output: None,
        ..args.output.clone()
    };
    // Formats with a single table contain the requests, unless another table is named.
    if !whyslow_render::has_room_for_notes(format) && output.table.is_none() && list != List::None {
        output.table = Some("requests".to_owned());
    }
    let zone = match (&output.tz, output.utc) {
        (Some(zone), _) => zone.clone(),
        (None, true) => Zone::utc(),
        (None, false) => Zone::local(),
    };
    let subject = Subject {
        name: "load".to_owned(),
        host: Some(host),
        zone: Some(zone.offset(begin_ns)),
        ..Subject::default()
    };
    let answer = summary.answer(ended, begin_ns, list);
    whyslow_render::write(answer, &subject, zone, Weight::Count, &output, talk)
}

/// Requests confirmation of a high load on another machine.
fn confirm(plan: &Plan, is_confirmed: bool) -> Result<(), Failure> {
    let others = plan.targets.iter().filter(|target| !target.is_loopback());
    let Some(other) = others.map(whyslow_load::Target::host).next() else {
        return Ok(());
    };
    let workers = plan.workers.iter().copied().max().unwrap_or(1);
    let (what, rate) = match plan.model {
        Model::Open { per_second, .. } => (format!("{per_second} requests per second"), per_second),
        Model::Closed(_) => (
            format!("a closed loop of {workers} concurrent requests"),
            closed_rate(workers, plan.pause),
        ),
    };
    if is_confirmed || rate <= CONFIRM_ABOVE {
        return Ok(());
    }
    let host = shown(other, false);
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Failure::usage(format!(
            "cannot send {what} to another machine, `{host}`: not confirmed"
        ))
        .hint("confirm with -y if the owner of the machine agrees"));
    }
    talk::raw(&format!(
        "This sends {what} to another machine, `{host}`. Continue? [y/N] "
    ));
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    match line.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::usage("cannot send requests: not confirmed")),
    }
}

/// Estimated rate of a closed loop in requests per second: one request per thread and pause, where
/// pauses shorter than 1 s count as 1 s.
fn closed_rate(workers: u32, pause: Duration) -> f64 {
    f64::from(workers) / pause.as_secs_f64().max(1.0)
}

fn arguments() -> Vec<String> {
    let words = std::env::args_os().skip(1);
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

fn host() -> String {
    let system = rustix::system::uname();
    system.nodename().to_string_lossy().into_owned()
}

/// Time zone of this machine, by name if it has one.
fn zone() -> Option<String> {
    let zone = jiff::tz::TimeZone::try_system().ok()?;
    let offset = || zone.to_offset(jiff::Timestamp::now()).to_string();
    Some(zone.iana_name().map_or_else(offset, str::to_owned))
}
