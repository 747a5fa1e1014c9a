//! Shared by the commands of lttng-analyses: options, windows, notes, and the conversion of tables
//! to text or LAMI.

use std::cell::RefCell;
use std::collections::HashMap;

use clap::parser::ValueSource;
use clap::{Args, Command, FromArgMatches};
use whyslow_analysis::{Filter, Kind, Query, Verb, evaluate};
use whyslow_base::failure::Failure;
use whyslow_base::time::{Calendar, WindowText, Zone};
use whyslow_model::answer::Answer;
use whyslow_model::{Ns, Window};
use whyslow_sources::recording::Opened;

use super::args::LttngArgs;
use super::lami::{self, Cell, Table, TableClass};
use super::text::Style;
use crate::cells::{Row, rows};
use crate::tool::{Call, Tool};

/// A group of commands that differ only in what they print by default.
pub(super) struct Analysis {
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    pub(super) tags: &'static [&'static str],
    pub(super) classes: &'static [&'static TableClass],
    pub(super) sections: fn(&RangeQuery<'_>) -> Result<Vec<Section>, Failure>,
    /// For answers in parts: the range of each with the rows of its table `total`.
    pub(super) summary: Option<&'static TableClass>,
    /// Table that must not be empty.
    pub(super) needs: &'static str,
    /// Ids of the options that only some commands have.
    pub(super) options: &'static [&'static str],
}

/// A table and its text form.
pub(super) struct Section {
    pub(super) table: Table,
    pub(super) text: fn(&Table, &Style) -> String,
}

/// Which tables to print.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wanted {
    pub(super) usage: bool,
    pub(super) stats: bool,
    pub(super) top: bool,
    pub(super) freq: bool,
    pub(super) log: bool,
}

impl Wanted {
    pub(super) const NONE: Wanted = Wanted {
        usage: false,
        stats: false,
        top: false,
        freq: false,
        log: false,
    };
    pub(super) const USAGE: Wanted = Wanted {
        usage: true,
        ..Self::NONE
    };
    pub(super) const STATS: Wanted = Wanted {
        stats: true,
        ..Self::NONE
    };
    pub(super) const TOP: Wanted = Wanted {
        top: true,
        ..Self::NONE
    };
    pub(super) const FREQ: Wanted = Wanted {
        freq: true,
        ..Self::NONE
    };
    pub(super) const LOG: Wanted = Wanted {
        log: true,
        ..Self::NONE
    };

    /// The tables that options select, if any.
    pub(super) fn of(args: &LttngArgs) -> Option<Self> {
        let wanted = Wanted {
            usage: args.usage,
            stats: args.stats,
            top: args.top,
            freq: args.freq,
            log: args.log,
        };
        let any = wanted.usage || wanted.stats || wanted.top || wanted.freq || wanted.log;
        any.then_some(wanted)
    }
}

/// In the original tools, 0 is the lowest priority above real-time threads.
pub(super) const PRIO_SHIFT: i64 = 100;

/// The queries for one answer about one range of time.
pub(super) struct RangeQuery<'a> {
    pub(super) opened: &'a Opened,
    /// Losses and caveats of the answers used.
    pub(super) notes: &'a RefCell<Answer>,
    /// Whether the range is one of several parts.
    pub(super) is_part: bool,
    pub(super) args: &'a LttngArgs,
    pub(super) wanted: Wanted,
    pub(super) window: Option<Window>,
    /// The range of the tables.
    pub(super) range: (Ns, Ns),
}

pub(super) const fn tool(
    name: &'static str,
    machine_name: &'static str,
    about: &'static str,
    args: fn(Command) -> Command,
    run: fn(&Call<'_>) -> Result<(), Failure>,
) -> Tool {
    Tool {
        name,
        machine_name: Some(machine_name),
        about,
        args,
        run,
    }
}

/// Options that only some commands have.
pub(super) const SPECIAL: [&str; 19] = [
    "procname",
    "tid",
    "limit",
    "min",
    "max",
    "minsize",
    "maxsize",
    "freq_resolution",
    "freq_uniform",
    "usage",
    "stats",
    "top",
    "freq",
    "log",
    "total",
    "per_tid",
    "per_prio",
    "irq",
    "softirq",
];

pub(super) fn with_args(command: Command, analysis: &Analysis) -> Command {
    let command = LttngArgs::augment_args(command);
    let foreign = SPECIAL.iter().filter(|id| !analysis.options.contains(id));
    foreign.fold(command, |command, id| {
        command.mut_arg(id, |arg| arg.hide(true))
    })
}

/// Rejects options that the command does not have instead of ignoring them.
pub(super) fn check_options(call: &Call<'_>, analysis: &Analysis) -> Result<(), Failure> {
    let is_given = |id: &&&str| call.matches.value_source(id) == Some(ValueSource::CommandLine);
    let mut foreign = SPECIAL.iter().filter(|id| !analysis.options.contains(id));
    match foreign.find(is_given) {
        Some(id) => Err(Failure::usage(format!(
            "cannot use --{}: it is not supported",
            id.replace('_', "-")
        ))),
        None => Ok(()),
    }
}

/// Runs a command that prints `wanted` unless options select something else.
pub(super) fn run(call: &Call<'_>, analysis: &Analysis, wanted: Wanted) -> Result<(), Failure> {
    let args = LttngArgs::from_arg_matches(call.matches)
        .map_err(|error| Failure::usage(error.to_string()))?;
    check_options(call, analysis)?;
    if args.periods.are_given() {
        return Err(Failure::usage("cannot use periods: they are not supported")
            .hint("select a window with --timerange, or with `whyslow io top -w BEGIN..END`"));
    }
    if args.freq_series {
        return Err(
            Failure::usage("cannot use --freq-series: it is not supported")
                .hint("use --freq-uniform to print the distributions with the same bins"),
        );
    }
    let machine = &args.machine;
    if machine.mi_version {
        return whyslow_render::to_stdout(&format!("{}.{}\n", lami::VERSION.0, lami::VERSION.1));
    }
    if machine.metadata {
        let metadata = lami::metadata(
            analysis.title,
            analysis.about,
            analysis.tags,
            analysis.classes,
        );
        return whyslow_render::to_stdout(&format!("{metadata}\n"));
    }
    let is_machine = call.machine || machine.mi;
    let result = answer(call, &args, analysis, wanted, is_machine);
    match result {
        Err(failure) if is_machine && !machine.test_compatibility => {
            whyslow_render::to_stdout(&format!("{}\n", lami::error(failure.message())))?;
            Err(failure)
        }
        result => result,
    }
}

/// Whether the recording has data for the analysis.
pub(super) fn check_compatibility(opened: &Opened, analysis: &Analysis) -> Result<(), Failure> {
    let table = opened.tables.info().tables.get(analysis.needs);
    if table.is_some_and(|table| table.rows > 0) {
        return Ok(());
    }
    Err(Failure::new(
        "cannot analyse this trace: it has no events for this analysis",
    ))
}

/// The part of the recording within the window.
pub(super) fn clip_to_recording(window: Option<Window>, calendar: &Calendar) -> (Ns, Ns) {
    let (begin, end) = (calendar.begin, calendar.end);
    window.map_or((begin, end), |window| {
        (window.begin.max(begin), window.end.min(end))
    })
}

pub(super) fn answer(
    call: &Call<'_>,
    args: &LttngArgs,
    analysis: &Analysis,
    wanted: Wanted,
    is_machine: bool,
) -> Result<(), Failure> {
    let opened = call.recording(args.trace.as_deref())?;
    if args.machine.test_compatibility {
        return check_compatibility(&opened, analysis);
    }
    let calendar = opened.calendar(args.gmt.then(Zone::utc));
    let wanted = Wanted::of(args).unwrap_or(wanted);
    let mut tables: Vec<Table> = Vec::new();
    let window = requested_window(args, &opened, &calendar)?;
    let windows = windows(args, analysis, (window, &calendar))?;
    let count = windows.len();
    let notes = RefCell::new(Answer {
        caveats: opened.note(&calendar, window).into_iter().collect(),
        ..Answer::default()
    });
    let progress = |done: usize, what: &str| {
        if !(is_machine && args.machine.output_progress) {
            return Ok(());
        }
        let share = done as f64 / count.max(1) as f64;
        whyslow_render::to_stdout(&format!("{share} {what}\n"))
    };
    progress(0, "Starting")?;
    let style = Style {
        zone: calendar.zone.clone(),
    };
    for (number, window) in windows.into_iter().enumerate() {
        let range = clip_to_recording(window, &calendar);
        let ranged = RangeQuery {
            opened: &opened,
            notes: &notes,
            is_part: count > 1,
            args,
            wanted,
            window,
            range,
        };
        let sections = (analysis.sections)(&ranged)?;
        if is_machine {
            tables.extend(sections.into_iter().map(|section| section.table));
        } else {
            whyslow_render::to_stdout(&style.range(range))?;
            for section in &sections {
                whyslow_render::to_stdout(&(section.text)(&section.table, &style))?;
            }
        }
        progress(number + 1, "of the range done")?;
    }
    if let Some(class) = analysis.summary
        && count > 1
    {
        let summary = lami::summary(class, &tables);
        tables.push(summary);
    }
    if is_machine {
        whyslow_render::stdout_by(|out| lami::write_results(&tables, out))?;
    }
    if !call.talk.quiet {
        whyslow_render::print_messages(&notes.into_inner(), calendar.zone);
    }
    Ok(())
}

/// The requested range; `None` for the whole recording.
pub(super) fn requested_window(
    args: &LttngArgs,
    opened: &Opened,
    calendar: &Calendar,
) -> Result<Option<Window>, Failure> {
    let text = match (&args.timerange, &args.begin, &args.end) {
        (Some(range), _, _) => Some(range.clone()),
        (None, None, None) => None,
        (None, begin, end) => Some(WindowText::Between(begin.clone(), end.clone())),
    };
    if let Some(WindowText::Operation(_)) = text {
        return Err(Failure::usage(
            "cannot use an operation id as range: a begin and an end time are required",
        ));
    }
    opened.window(text.as_ref(), calendar)
}

/// The range, split into parts if a refresh interval is set.
pub(super) fn windows(
    args: &LttngArgs,
    analysis: &Analysis,
    (whole, calendar): (Option<Window>, &Calendar),
) -> Result<Vec<Option<Window>>, Failure> {
    let Some(length) = args.refresh else {
        return Ok(vec![whole]);
    };
    /// More parts than this indicate a wrong unit.
    const PARTS_MAX: i64 = 10_000;
    let whole = whole.unwrap_or(Window::new(calendar.begin, calendar.end.saturating_add(1)));
    if length <= 0 || whole.length() / length > PARTS_MAX {
        return Err(Failure::usage(format!(
            "cannot print more than {PARTS_MAX} parts of the range"
        ))
        .hint("use a longer --refresh, such as 1s"));
    }
    let mut parts = Vec::new();
    let mut begin = whole.begin;
    if analysis.needs == "page_count" {
        const SECOND: Ns = 1_000_000_000;
        if length % SECOND != 0 {
            return Err(Failure::usage(
                "cannot refresh more often than once a second: pages are counted per second",
            )
            .hint("use whole seconds for --refresh"));
        }
        begin -= begin.rem_euclid(SECOND);
    }
    while begin < whole.end {
        let end = whole.end.min(begin.saturating_add(length));
        parts.push(Some(Window::new(begin, end)));
        begin = end;
    }
    Ok(parts)
}

/// Process ids of threads, by thread id and name.
pub(super) struct Pids(HashMap<(i64, String), i64>);

impl Pids {
    pub(super) fn of(ranged: &RangeQuery<'_>) -> Result<Self, Failure> {
        let query = Query {
            limit: Some(0),
            ..Query::new(Kind::Threads, Verb::List)
        };
        let answer = evaluate(&*ranged.opened.tables, &query)?;
        let pid = |row: &Row<'_>| {
            let comm = row.text("comm").unwrap_or("");
            Some(((row.int("tid")?, comm.to_owned()), row.int("pid")?))
        };
        Ok(Self(rows(&answer, "").iter().filter_map(pid).collect()))
    }

    /// The process of a row with a thread.
    pub(super) fn process(&self, row: &Row<'_>) -> Cell {
        let (name, tid) = (row.text("comm"), row.int("tid"));
        let key = tid.map(|tid| (tid, name.unwrap_or("").to_owned()));
        Cell::Process {
            name: name.map(String::from),
            pid: key.and_then(|key| self.0.get(&key).copied()),
            tid,
        }
    }
}

impl RangeQuery<'_> {
    /// Runs a query with the filters of the command.
    pub(super) fn run(
        &self,
        kind: Kind,
        verb: Verb,
        change: impl FnOnce(&mut Query),
    ) -> Result<Answer, Failure> {
        let us = |us: f64| (us * 1e3).round() as Ns;
        let args = self.args;
        let mut query = Query {
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
            // The original tools include them.
            waits: true,
            ..Query::new(kind, verb)
        };
        change(&mut query);
        // CPU time and packets have a point in time; an operation counts where it ends.
        let is_operation = matches!(
            kind,
            Kind::Io | Kind::Block | Kind::Sched | Kind::Irq | Kind::Syscalls
        );
        if self.is_part && is_operation {
            query.filter.ended_in = self.window;
        }
        let answer = evaluate(&*self.opened.tables, &query)?;
        let mut notes = self.notes.borrow_mut();
        for caveat in &answer.caveats {
            if !notes.caveats.contains(caveat) {
                notes.caveats.push(caveat.clone());
            }
        }
        for loss in &answer.losses {
            if !notes.losses.contains(loss) {
                notes.losses.push(loss.clone());
            }
        }
        drop(notes);
        Ok(answer)
    }

    pub(super) fn section(
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
