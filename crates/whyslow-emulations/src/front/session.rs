use std::cell::RefCell;
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::sync::OnceLock;

use clap::{Arg, Args, Command};
use whyslow_analysis::{Filter, Kind, Query, Verb, each_row, evaluate, evaluate_streaming};
use whyslow_base::failure::Failure;
use whyslow_base::time::{Calendar, Moment, WindowText, Zone};
use whyslow_model::answer::Answer;
use whyslow_model::tables::MetadataRow;
use whyslow_model::{Ns, Symbols, Window};
use whyslow_sources::recording::Opened;
use whyslow_store::rows;

use super::parts::Parts;
use crate::cells::{Row, rows_of};
use crate::tool::Call;

// Common options of all emulations. A doc comment here would become help text.
#[derive(Debug, Clone, Args)]
pub(crate) struct FrontArgs {
    /// Recording or trace [default: @last], or @live for this machine; an argument that looks like
    /// a number is never a recording
    pub(crate) words: Vec<String>,
    /// Show only WINDOW: A..B, A+437ms, T~200ms or op:ID
    #[arg(
        short,
        long,
        visible_alias = "timerange",
        value_parser = WindowText::parse,
        allow_hyphen_values = true,
        conflicts_with_all = ["begin", "end"],
        help_heading = "Recording",
    )]
    window: Option<WindowText>,
    /// Start the window at TIME
    #[arg(long, value_name = "TIME", value_parser = Moment::parse, allow_hyphen_values = true, help_heading = "Recording")]
    begin: Option<Moment>,
    /// End the window at TIME
    #[arg(long, value_name = "TIME", value_parser = Moment::parse, allow_hyphen_values = true, help_heading = "Recording")]
    end: Option<Moment>,
    /// Print times in UTC
    #[arg(
        long,
        visible_alias = "gmt",
        conflicts_with = "tz",
        help_heading = "Recording"
    )]
    utc: bool,
    /// Print times in ZONE [default: the zone of the recorded host]
    #[arg(long, value_name = "ZONE", value_parser = Zone::parse, help_heading = "Recording")]
    tz: Option<Zone>,
}

/// Adds the options of a tool and the common ones; `shape` is the usage of its positional
/// arguments.
pub(crate) fn with_args<A: Args>(command: Command, shape: &'static str, notes: &str) -> Command {
    A::augment_args(command)
        .mut_arg("words", |words: Arg| words.value_name(shape).num_args(0..))
        .after_help(notes.to_owned())
}

/// A recording, a window of it, and the notes to print at the end.
pub(crate) struct Front<'c> {
    pub(crate) opened: Opened,
    pub(crate) calendar: Calendar,
    /// As requested; `None` is the whole recording.
    window: Option<Window>,
    call: &'c Call<'c>,
    notes: RefCell<Vec<String>>,
    first: OnceLock<Ns>,
    answers: RefCell<Vec<Answer>>,
    out: RefCell<BufWriter<std::io::Stdout>>,
}

impl<'c> Front<'c> {
    pub(crate) fn open(
        call: &'c Call<'c>,
        args: &FrontArgs,
        recording: Option<&str>,
    ) -> Result<Self, Failure> {
        let opened = call.recording(recording)?;
        let zone = if args.utc {
            Some(Zone::utc())
        } else {
            args.tz.clone()
        };
        let calendar = opened.calendar(zone);
        let text = match (&args.window, &args.begin, &args.end) {
            (Some(window), _, _) => Some(window.clone()),
            (None, None, None) => None,
            (None, begin, end) => Some(WindowText::Between(begin.clone(), end.clone())),
        };
        let window = opened.window(text.as_ref(), &calendar)?;
        let notes = opened.note(&calendar, window);
        Ok(Self {
            opened,
            calendar,
            window,
            call,
            notes: RefCell::new(notes.into_iter().collect()),
            first: OnceLock::new(),
            answers: RefCell::default(),
            out: RefCell::new(BufWriter::with_capacity(64 << 10, std::io::stdout())),
        })
    }

    /// The window, clipped to the recording.
    pub(crate) fn span(&self) -> Window {
        let (begin, end) = (self.calendar.begin, self.calendar.end);
        self.window.map_or(Window::new(begin, end), |window| {
            let from = window.begin.clamp(begin, end);
            Window::new(from, window.end.clamp(from, end))
        })
    }

    /// Limits the length of the window to `length`.
    pub(crate) fn shorten(&mut self, length: Ns) {
        // A live window ends on its own.
        if self.call.segment.is_some() {
            return;
        }
        let whole = self.window.unwrap_or(Window::new(
            self.calendar.begin,
            self.calendar.end.saturating_add(1),
        ));
        let end = whole.end.min(whole.begin.saturating_add(length));
        self.window = Some(Window::new(whole.begin, end));
    }

    /// The window split into at most `count` intervals of length `interval`; one part without an
    /// interval.
    pub(crate) fn parts(
        &mut self,
        interval: Option<Ns>,
        count: Option<i64>,
    ) -> Result<Parts, Failure> {
        // A live segment is already one interval.
        let interval = interval.filter(|_| self.call.segment.is_none());
        if let (Some(interval), Some(count)) = (interval, count) {
            self.shorten(interval.saturating_mul(count));
        }
        Parts::new(self.span(), self.calendar.end, interval)
    }

    fn new_query(&self, kind: Kind, verb: Verb) -> Query {
        Query {
            window: self.window,
            // The original tools include them.
            waits: true,
            ..Query::new(kind, verb)
        }
    }

    /// Runs a query on the window.
    pub(crate) fn query(
        &self,
        (kind, verb): (Kind, Verb),
        change: impl FnOnce(&mut Query),
    ) -> Result<Answer, Failure> {
        let mut query = self.new_query(kind, verb);
        query.limit = Some(0);
        change(&mut query);
        let answer = evaluate(&*self.opened.tables, &query)?;
        self.keep(&answer);
        Ok(answer)
    }

    /// Runs a query on the whole recording.
    pub(crate) fn query_whole(
        &self,
        of: (Kind, Verb),
        change: impl FnOnce(&mut Query),
    ) -> Result<Answer, Failure> {
        self.query(of, |query| {
            query.window = None;
            change(query);
        })
    }

    /// Threads of the window, for their names, ids and lifetimes. Caveats about their other columns
    /// are not noted.
    pub(crate) fn threads(&self) -> Result<Answer, Failure> {
        let mut query = self.new_query(Kind::Threads, Verb::List);
        query.limit = Some(0);
        let answer = evaluate(&*self.opened.tables, &query)?;
        self.keep_losses(&answer);
        Ok(answer)
    }

    /// Passes the complete rows of a log in start order, for rows that are printed.
    pub(crate) fn each(
        &self,
        kind: Kind,
        filter: Filter,
        mut each: impl FnMut(&Row<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let query = Query {
            filter,
            ..self.new_query(kind, Verb::Log)
        };
        let mut failure = None;
        let answer = evaluate_streaming(&*self.opened.tables, &query, &mut |_, table| {
            for row in rows_of(&table) {
                if let Err(error) = each(&row) {
                    failure = Some(error);
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        })?;
        if let Some(failure) = failure {
            return Err(failure);
        }
        self.keep(&answer);
        Ok(())
    }

    /// The same with only these columns, for rows that are aggregated.
    pub(crate) fn each_of(
        &self,
        kind: Kind,
        filter: Filter,
        columns: &[&'static str],
        mut each: impl FnMut(&Row<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let window = self.window;
        self.each_within(window, (kind, filter), columns, &mut each)
    }

    /// The same for the whole recording.
    pub(crate) fn each_of_whole(
        &self,
        kind: Kind,
        filter: Filter,
        columns: &[&'static str],
        mut each: impl FnMut(&Row<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.each_within(None, (kind, filter), columns, &mut each)
    }

    fn each_within(
        &self,
        window: Option<Window>,
        (kind, filter): (Kind, Filter),
        columns: &[&'static str],
        each: &mut dyn FnMut(&Row<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let query = Query {
            filter,
            window,
            ..self.new_query(kind, Verb::Log)
        };
        let mut failure = None;
        let tables = &*self.opened.tables;
        let answer = each_row(
            tables,
            &query,
            columns,
            &mut |row| match each(&Row::Log(row)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failure = Some(error);
                    ControlFlow::Break(())
                }
            },
        )?;
        if let Some(failure) = failure {
            return Err(failure);
        }
        self.keep(&answer);
        Ok(())
    }

    /// Keeps the caveats and losses of an answer.
    fn keep(&self, answer: &Answer) {
        self.keep_losses(answer);
        // An idle machine is not worth a note at every interval.
        for caveat in answer.limitations() {
            // The emulated tools do not have this option.
            let caveat = caveat.trim_end_matches(" (exclude them with --no-tracer)");
            self.note(caveat);
        }
    }

    fn keep_losses(&self, answer: &Answer) {
        let noted_losses = Answer {
            window: answer.window,
            losses: answer.losses.clone(),
            ..Answer::default()
        };
        let mut answers = self.answers.borrow_mut();
        if answers.is_empty() {
            answers.push(noted_losses);
        }
    }

    /// Whether nothing has been printed yet.
    pub(crate) fn is_first(&self) -> bool {
        self.call.segment.is_none_or(|segment| segment.number == 0)
    }

    /// Prints text at the top of the output.
    pub(crate) fn put_first(&self, text: &str) -> Result<(), Failure> {
        if self.is_first() {
            self.put(text)
        } else {
            Ok(())
        }
    }

    /// Time since the first timestamp passed.
    pub(crate) fn since_first(&self, ts: Ns) -> Ns {
        let first = match self.call.segment {
            Some(segment) => &segment.shared.first,
            None => &self.first,
        };
        ts - *first.get_or_init(|| ts)
    }

    /// Whether this machine is the source and has such a disk, which may be idle.
    pub(crate) fn is_on_this_machine(&self, disk: &str) -> bool {
        self.call.segment.is_some() && whyslow_record::device_by_name(disk).is_some()
    }

    /// Notes that something is not shown because the recording ends; a live source continues.
    pub(crate) fn note_cut(&self, note: String) {
        if self.call.segment.is_none() {
            self.note(note);
        }
    }

    /// Adds a note for the reader, which is printed to standard error at the end.
    pub(crate) fn note(&self, note: impl Into<String>) {
        let note = note.into();
        // A note of the last interval is not repeated in this one.
        if let Some(segment) = self.call.segment
            && let Ok(mut noted) = segment.shared.noted.lock()
            && !noted.insert(note.clone())
        {
            return;
        }
        let mut notes = self.notes.borrow_mut();
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// Prints text to standard output.
    pub(crate) fn put(&self, text: &str) -> Result<(), Failure> {
        Ok(self.out.borrow_mut().write_all(text.as_bytes())?)
    }

    /// Flushes the output, then prints the notes.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        self.out.borrow_mut().flush()?;
        let mut answer = self.answers.into_inner().pop().unwrap_or_default();
        answer.caveats = self.notes.into_inner();
        if self.call.talk.quiet {
            answer.caveats.clear();
        }
        whyslow_render::print_messages(&answer, self.calendar.zone);
        Ok(())
    }

    /// Whether the recording has any row of the table.
    pub(crate) fn has(&self, table: &str) -> bool {
        let tables = &self.opened.tables.info().tables;
        tables.get(table).is_some_and(|table| table.rows > 0)
    }

    /// Time of day, whole seconds.
    pub(crate) fn clock(&self, ts: Ns) -> String {
        let civil = self.calendar.zone.civil(ts);
        format!(
            "{:02}:{:02}:{:02}",
            civil.hour(),
            civil.minute(),
            civil.second()
        )
    }

    /// Date and time of day with the zone, as in ISO 8601.
    pub(crate) fn stamp(&self, ts: Ns) -> String {
        let offset = self.calendar.zone.offset(ts).replace(':', "");
        format!(
            "{}T{}{offset}",
            self.calendar.zone.civil(ts).date(),
            self.clock(ts)
        )
    }

    /// A metadata value of the recorded machine.
    pub(crate) fn fact(&self, key: &str) -> Result<Option<String>, Failure> {
        let mut symbols = Symbols::new();
        let facts = rows::<MetadataRow>(&*self.opened.tables, &mut symbols)?;
        let found = facts.iter().find(|row| symbols.get(row.key) == key);
        Ok(found.map(|row| symbols.get(row.value).to_owned()))
    }

    /// Number of recorded CPUs.
    pub(crate) fn cpus(&self) -> u64 {
        let tables = &self.opened.tables.info().tables;
        tables.get("cpu").map_or(0, |table| table.rows)
    }
}

/// A name from the recorded machine, safe for terminals and without line ends.
pub(crate) fn shown(name: &str) -> String {
    whyslow_model::text::shown(name, false).into_owned()
}
