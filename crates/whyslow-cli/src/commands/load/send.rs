//! Sends requests, keeps what each spent its time with, and sums it up.

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
use super::progress::Teller;
use crate::cli::{ListArg, LoadArgs};

/// Requests that a text lists one by one unless it is asked for.
const LISTED_MAX: u64 = 1_000;
/// More in a second, or at a time, at another machine has to be meant.
const MEANT_MIN: f64 = 100.0;

pub(super) fn run(args: &LoadArgs, talk: &TalkArgs) -> Result<(), Failure> {
    let plan = plan::of(args)?;
    confirm(&plan, args.yes)?;
    let places = Places::of(args.output.output.as_deref());
    if let Some(recording) = places.recording.as_deref().filter(|path| path.exists()) {
        let name = shown(&recording.display().to_string(), false).into_owned();
        return Err(Failure::usage(format!("`{name}` exists"))
            .hint("name another one with -o, or remove it"));
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
        teller: Teller::new(talk),
    };
    let ended = run.go(&cancel, &mut keeper);
    keeper.teller.end();
    let ended = ended.map_err(failed)?;
    let end_ns = begin_ns.saturating_add(ended.end_ns as i64);
    keeper.spool.end(end_ns, ended.reason).map_err(failed)?;
    keep(&places, talk)?;
    tell(args, (&keeper.summary, &ended, begin_ns), host, talk)?;
    match ended.reason {
        Reason::Interrupted => Err(Failure::interrupted()),
        Reason::Done | Reason::UntilSlow => Ok(()),
    }
}

/// What ends goes into the file first.
struct Keeper {
    spool: Spool,
    summary: Summary,
    teller: Teller,
}

impl Sink for Keeper {
    fn stage(&mut self, workers: u32) {
        self.summary.begin_stage(workers);
    }

    fn take(&mut self, rows: &mut dyn Iterator<Item = Row>) -> Result<(), LoadError> {
        for row in rows {
            self.spool.write(&row)?;
            self.teller.count(&row);
            self.summary.add(row);
        }
        self.spool.flush()
    }

    fn look(&mut self, progress: Progress) {
        self.teller.tell(progress);
    }
}

/// Where a load is kept.
struct Places {
    spool: PathBuf,
    /// What the spool is to become.
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

/// Makes the recording that was asked for of the lines, which go then; without one they are what is
/// kept. A load that was stopped is kept, too.
fn keep(places: &Places, talk: &TalkArgs) -> Result<(), Failure> {
    let name = |path: &Path| shown(&path.display().to_string(), false).into_owned();
    let spool = name(&places.spool);
    let Some(recording) = &places.recording else {
        if !talk.quiet {
            talk::line(&format!("every request: {spool}"));
        }
        return Ok(());
    };
    let sources = [places.spool.clone()];
    let mut teller = whyslow_base::progress::Teller::new(talk);
    let options = ImportOptions::new(recording);
    let imported = whyslow_ingest::import(&sources, &options, &mut |at| teller.tell(at));
    teller.end();
    let again = format!("every request is in {spool}: whyslow import {spool}");
    imported.map_err(|error| Failure::from(error).hint(again))?;
    recording::remember(recording);
    fs::remove_file(&places.spool)?;
    if !talk.quiet {
        talk::line(&format!("every request: {}", name(recording)));
    }
    Ok(())
}

fn tell(
    args: &LoadArgs,
    (summary, ended, begin_ns): (&Summary, &Ended, i64),
    host: String,
    talk: &TalkArgs,
) -> Result<(), Failure> {
    let format = args.output.chosen_format();
    let is_for_people = matches!(format, Format::Text | Format::Md | Format::Html);
    let list = match args.list {
        Some(ListArg::None) => List::None,
        Some(ListArg::Slow) => List::Slow,
        Some(ListArg::All) => List::All,
        None if is_for_people && summary.count() > LISTED_MAX => List::Slow,
        None => List::All,
    };
    let mut output = OutputArgs {
        output: None,
        ..args.output.clone()
    };
    // Forms for one table have the requests, unless another one is named.
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

/// Asks whether a high load is meant for other machines.
fn confirm(plan: &Plan, is_meant: bool) -> Result<(), Failure> {
    let others = plan.targets.iter().filter(|target| !target.is_loopback());
    let Some(other) = others.map(whyslow_load::Target::host).next() else {
        return Ok(());
    };
    let workers = plan.workers.iter().copied().max().unwrap_or(1);
    let (what, much) = match plan.model {
        Model::Open { per_second, .. } => (format!("{per_second} requests a second"), per_second),
        Model::Closed(_) => (
            format!("requests as fast as they are answered, {workers} at a time"),
            closed_rate(workers, plan.pause),
        ),
    };
    if is_meant || much <= MEANT_MIN {
        return Ok(());
    }
    let host = shown(other, false);
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(
            Failure::usage(format!("{what} for `{host}`, which is not this machine"))
                .hint("add -y if that is meant and its owner agrees"),
        );
    }
    talk::raw(&format!(
        "{what} for `{host}`, which is not this machine. Go on? [y/N] "
    ));
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    match line.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::usage("nothing was sent")),
    }
}

/// What so many threads cannot exceed for sure, requests a second: that of their pauses, and as many as
/// there are threads where these are short.
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

/// Of this machine, by name if it has one.
fn zone() -> Option<String> {
    let zone = jiff::tz::TimeZone::try_system().ok()?;
    let offset = || zone.to_offset(jiff::Timestamp::now()).to_string();
    Some(zone.iana_name().map_or_else(offset, str::to_owned))
}
