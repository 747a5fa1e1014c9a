//! The commands of lttng-analyses: their options, their tables as text, and LAMI 1.0 for Trace
//! Compass. Numbers are those of our own questions; where they differ from the originals',
//! `docs/lttng-analyses-differences.md` says why.

mod args;
mod io;
mod irq;
mod lami;
mod sched;
mod text;

use clap::{Args, Command, FromArgMatches};
use whyslow_analysis::{Filter, Kind, Question, Verb, ask};
use whyslow_model::answer::Answer;
use whyslow_model::{Ns, Window};

use super::{Call, Tool};
use crate::failure::Failure;
use crate::output;
use crate::recording::Opened;
use crate::time::{Calendar, WindowText, Zone};
use args::LttngArgs;
use lami::{Table, TableClass};
use text::Style;

pub(super) static TOOLS: &[&Tool] = &[
    &io::STATS,
    &io::TOP,
    &io::FREQ,
    &io::LOG,
    &sched::STATS,
    &sched::TOP,
    &sched::FREQ,
    &sched::LOG,
    &irq::STATS,
    &irq::FREQ,
    &irq::LOG,
];

/// A group of commands that differ in what they print unless told.
struct Analysis {
    title: &'static str,
    about: &'static str,
    tags: &'static [&'static str],
    classes: &'static [&'static TableClass],
    sections: fn(&Asking<'_>) -> Result<Vec<Section>, Failure>,
    /// What the recording must hold.
    needs: &'static str,
}

/// A table and how it looks as text.
struct Section {
    table: Table,
    text: fn(&Table, &Style) -> String,
}

/// Which tables are wanted.
#[derive(Debug, Clone, Copy, Default)]
struct Wanted {
    stats: bool,
    top: bool,
    freq: bool,
    log: bool,
}

/// One answer being made, for one range of time.
struct Asking<'a> {
    opened: &'a Opened,
    args: &'a LttngArgs,
    wanted: Wanted,
    window: Option<Window>,
    /// The time that the tables are about.
    range: (Ns, Ns),
}

fn with_args(command: Command) -> Command {
    LttngArgs::augment_args(command)
}

/// Runs a command that prints `wanted` unless options say otherwise.
fn run(call: &Call<'_>, analysis: &Analysis, wanted: Wanted) -> Result<(), Failure> {
    let args = LttngArgs::from_arg_matches(call.matches)
        .map_err(|error| Failure::usage(error.to_string()))?;
    if args.periods.are_given() {
        return Err(Failure::usage("periods are not supported")
            .hint("ask for a window: --timerange, or `whyslow io top -w BEGIN..END`"));
    }
    let machine = &args.machine;
    if machine.mi_version {
        return output::to_stdout(&format!("{}.{}\n", lami::VERSION.0, lami::VERSION.1));
    }
    if machine.metadata {
        let metadata = lami::metadata(
            analysis.title,
            analysis.about,
            analysis.tags,
            analysis.classes,
        );
        return output::to_stdout(&format!("{metadata}\n"));
    }
    let is_machine = call.machine || machine.mi;
    let told = answer(call, &args, analysis, wanted, is_machine);
    match told {
        Err(failure) if is_machine && !machine.test_compatibility => {
            output::to_stdout(&format!("{}\n", lami::error(failure.message())))?;
            Err(failure)
        }
        told => told,
    }
}

fn answer(
    call: &Call<'_>,
    args: &LttngArgs,
    analysis: &Analysis,
    wanted: Wanted,
    is_machine: bool,
) -> Result<(), Failure> {
    let opened = Opened::find(args.trace.as_deref(), call.talk)?;
    let has = |table: &str| {
        let tables = &opened.tables.info().tables;
        tables.get(table).is_some_and(|table| table.rows > 0)
    };
    if args.machine.test_compatibility {
        return if has(analysis.needs) {
            Ok(())
        } else {
            Err(Failure::new(
                "the trace holds nothing that this analysis is about",
            ))
        };
    }
    let calendar = opened.calendar(args.gmt.then(Zone::utc));
    let asked = Wanted {
        stats: args.stats,
        top: args.top,
        freq: args.freq,
        log: args.log,
    };
    let any = asked.stats || asked.top || asked.freq || asked.log;
    let wanted = if any { asked } else { wanted };
    let mut tables = Vec::new();
    let mut text = String::new();
    let style = Style {
        zone: calendar.zone.clone(),
    };
    for window in windows(args, &calendar)? {
        let range = window.map_or((calendar.begin, calendar.end), |window| {
            (
                window.begin.max(calendar.begin),
                window.end.min(calendar.end),
            )
        });
        let asking = Asking {
            opened: &opened,
            args,
            wanted,
            window,
            range,
        };
        let sections = (analysis.sections)(&asking)?;
        text += &style.range(range);
        for section in &sections {
            text += &(section.text)(&section.table, &style);
        }
        tables.extend(sections.into_iter().map(|section| section.table));
    }
    if is_machine {
        return output::to_stdout(&format!("{}\n", lami::results(&tables)));
    }
    output::to_stdout(&text)
}

/// The range asked for, in parts where a refresh is wanted.
fn windows(args: &LttngArgs, calendar: &Calendar) -> Result<Vec<Option<Window>>, Failure> {
    let text = match (&args.timerange, &args.begin, &args.end) {
        (Some(range), _, _) => Some(range.clone()),
        (None, None, None) => None,
        (None, begin, end) => Some(WindowText::Between(begin.clone(), end.clone())),
    };
    let whole = text
        .map(|text| {
            text.resolve(calendar, |_| {
                Err(Failure::usage("a range is made of two times here"))
            })
        })
        .transpose()?;
    let Some(length) = args.refresh else {
        return Ok(vec![whole]);
    };
    /// More parts than anybody reads are a slip of the unit.
    const PARTS_MAX: i64 = 10_000;
    let whole = whole.unwrap_or(Window::new(calendar.begin, calendar.end.saturating_add(1)));
    if length <= 0 || whole.length() / length > PARTS_MAX {
        return Err(Failure::usage(format!(
            "--refresh makes more than {PARTS_MAX} parts of the range"
        ))
        .hint("give a longer one, such as 1s"));
    }
    let mut parts = Vec::new();
    let mut begin = whole.begin;
    while begin < whole.end {
        let end = whole.end.min(begin.saturating_add(length));
        parts.push(Some(Window::new(begin, end)));
        begin = end;
    }
    Ok(parts)
}

impl Asking<'_> {
    /// Asks one of our questions with the filters of the command.
    fn ask(
        &self,
        kind: Kind,
        verb: Verb,
        change: impl FnOnce(&mut Question),
    ) -> Result<Answer, Failure> {
        let us = |us: f64| (us * 1e3).round() as Ns;
        let args = self.args;
        let mut question = Question {
            window: self.window,
            filter: Filter {
                tids: args.tid.clone(),
                comms: args.procname.clone(),
                cpus: args.cpu.clone(),
                dur_min: args.min.map(us),
                dur_max: args.max.map(us),
                ..Filter::default()
            },
            limit: Some(0),
            ..Question::new(kind, verb)
        };
        change(&mut question);
        Ok(ask(&*self.opened.tables, &question)?)
    }

    fn section(
        &self,
        class: &'static TableClass,
        subtitle: Option<String>,
        rows: Vec<Vec<lami::Cell>>,
        text: fn(&Table, &Style) -> String,
    ) -> Section {
        Section {
            table: Table {
                class,
                subtitle,
                range: self.range,
                rows,
            },
            text,
        }
    }
}
