//! Queries: from flags to a query, from its result to output.

mod counted;

use std::io::IsTerminal;

use whyslow_analysis::{
    AnalysisError, Bins, Filter, HostPaths, KeyFilter, Kind, Query, Sort, TOPICS, Verb, Weight,
};
use whyslow_base::args::{Format, OutputArgs, TalkArgs};
use whyslow_base::failure::Failure;
use whyslow_base::time::{Calendar, Moment, WindowText, Zone, parse_seconds_or_duration};
use whyslow_model::answer::Answer;
use whyslow_model::{Ns, Window};
use whyslow_record::Topic;
use whyslow_sources::live::{self, Plan, RecorderChoice, Segment};
use whyslow_sources::recording::Opened;
use whyslow_store::Tables;

use super::filter::{device, filter_of};
use super::flame;
use crate::cli::{GraphArgs, QueryArgs, QueryCommand, ViewArgs};

/// Buckets of `--uniform` without `--linear`, as in lttng-analyses.
const BINS_DEFAULT: usize = 20;

/// A query as typed.
pub(crate) struct RecordingQuery {
    kind: Kind,
    verb: Verb,
    args: QueryArgs,
    bins: Bins,
    stage: Option<String>,
    weight: Weight,
    versus: Option<String>,
    /// Filters on keys of requests.
    values: Vec<KeyFilter>,
    baseline: Option<WindowText>,
    at: Option<Moment>,
    graph: Option<GraphArgs>,
    /// Interval and total duration of dumps to be taken of a running JVM.
    dumping: Option<(Ns, Option<Ns>)>,
}

impl RecordingQuery {
    pub(crate) fn new(command: QueryCommand) -> Self {
        let (mut bins, mut weight, mut at) = (Bins::default(), Weight::default(), None);
        let (mut stage, mut baseline) = (None, None);
        let (mut graph, mut dumping) = (None, None);
        let args = match command.args {
            ViewArgs::Plain(args) => args,
            ViewArgs::Hist(args) => {
                if args.linear.is_some() || args.uniform {
                    bins = Bins::Linear {
                        count: args.linear.map_or(BINS_DEFAULT, usize::from),
                        uniform: args.uniform,
                    };
                }
                stage = args.stage.stage;
                args.query
            }
            ViewArgs::Heat(args) => {
                weight = args.weight.into();
                stage = args.stage.stage;
                args.query
            }
            ViewArgs::Open(args) => {
                at = args.at;
                args.query
            }
            ViewArgs::Dump(args) => {
                at = args.open.at;
                dumping = args.every.map(|every| (every, args.lasting));
                args.open.query
            }
            ViewArgs::Flame(args) => {
                graph = Some(args.graph);
                args.query
            }
            ViewArgs::Differs(args) => {
                baseline = args.baseline;
                args.query
            }
        };
        Self {
            kind: command.kind,
            verb: command.verb,
            args,
            bins,
            stage,
            weight,
            versus: command.versus,
            values: command
                .requests
                .map(|args| args.values())
                .unwrap_or_default(),
            baseline,
            at,
            graph,
            dumping,
        }
    }

    pub(crate) fn run(&self, talk: &TalkArgs) -> Result<(), Failure> {
        if let Some((every, lasting)) = self.dumping {
            return super::dumps::run(&self.args, (every, lasting), talk);
        }
        let target = Target::parse(&self.args.positional)?;
        let Some(choice) = target.recording.as_deref().and_then(RecorderChoice::of) else {
            self.refuse_counting()?;
            let opened = Opened::find(target.recording.as_deref(), talk)?;
            return self.answer(&opened, &target, &self.args.output, talk);
        };
        self.refuse_windows()?;
        if self.is_counted_live() {
            return self.watch(choice, &target, talk);
        }
        if self.args.output.chosen_format() == Format::Openmetrics {
            return self.count_lookups(choice, &target, talk);
        }
        self.run_live(choice, &target, talk)
    }

    /// The answer for other programs, from `tables`, which are those of `opened` with limits.
    pub(crate) fn answer_from(
        &self,
        opened: &Opened,
        tables: &dyn Tables,
        rows_max: usize,
    ) -> Result<(Answer, Zone), Failure> {
        let target = Target::parse(&self.args.positional)?;
        let calendar = opened.calendar(wanted_zone(&self.args.output));
        let mut query = self.query(&target, opened, &calendar)?;
        let is_more = |limit: usize| limit == 0 || limit > rows_max;
        if query.limit.is_some_and(is_more) {
            query.limit = Some(rows_max);
        }
        let host_paths = self.host_paths(tables)?;
        let tables: &dyn Tables = match &host_paths {
            Some(paths) => paths,
            None => tables,
        };
        let mut answer = match &self.graph {
            Some(graph) => flame::answer(tables, &query, (graph, opened, &calendar))?,
            None => whyslow_analysis::evaluate(tables, &query)?,
        };
        let caveat = host_paths.as_ref().and_then(HostPaths::caveat);
        let cut = opened.note(&calendar, query.window);
        answer.caveats.extend(cut.into_iter().chain(caveat));
        Ok((answer, calendar.zone))
    }

    pub(crate) fn output_args(&self) -> &OutputArgs {
        &self.args.output
    }

    pub(crate) fn heat_weight(&self) -> Weight {
        self.weight
    }

    fn answer(
        &self,
        opened: &Opened,
        target: &Target,
        output: &OutputArgs,
        talk: &TalkArgs,
    ) -> Result<(), Failure> {
        let calendar = opened.calendar(wanted_zone(output));
        let query = self.query(target, opened, &calendar)?;
        let host_paths = self.host_paths(&*opened.tables)?;
        let tables: &dyn Tables = match &host_paths {
            Some(paths) => paths,
            None => &*opened.tables,
        };
        if let Some(graph) = &self.graph
            && flame::is_picture(graph, output)
        {
            return flame::draw(tables, &query, (graph, opened, &calendar), (output, talk));
        }
        let cut = opened.note(&calendar, query.window);
        let caveat = || host_paths.as_ref().and_then(HostPaths::caveat);
        let notes = || cut.into_iter().chain(caveat());
        // Rows in order of time are streamed; rows to be sorted are collected first.
        let streams = query.verb == Verb::Log && query.sort.is_none();
        let (lost, next) = if streams && whyslow_render::streams(output) {
            let place = (&opened.subject(), calendar.zone);
            let answer = whyslow_render::write_streamed(place, output, talk, |each| {
                Ok(whyslow_analysis::evaluate_streaming(tables, &query, each)?)
            })?;
            for note in notes().filter(|_| !talk.quiet) {
                whyslow_base::talk::line(&format!("note: {note}"));
            }
            (!answer.losses.is_empty(), answer.next)
        } else {
            let mut answer = match &self.graph {
                Some(graph) => flame::answer(tables, &query, (graph, opened, &calendar))?,
                None => whyslow_analysis::evaluate(tables, &query)?,
            };
            answer.caveats.extend(notes());
            let (lost, next) = (!answer.losses.is_empty(), answer.next.clone());
            whyslow_render::write(
                answer,
                &opened.subject(),
                calendar.zone,
                self.weight,
                output,
                talk,
            )?;
            (lost, next)
        };
        if let Some(next) = next
            && !opened.is_live
            && !talk.quiet
            && std::io::stderr().is_terminal()
        {
            whyslow_base::talk::line(&format!(
                "next: {}",
                whyslow_model::text::shown(&next, false)
            ));
        }
        if lost && output.strict {
            return Err(Failure::incomplete("events were lost in the window"));
        }
        Ok(())
    }

    /// The tables with paths of the host, if requested.
    fn host_paths<'o>(&self, tables: &'o dyn Tables) -> Result<Option<HostPaths<'o>>, Failure> {
        if !self.args.host_paths {
            return Ok(None);
        }
        let paths = HostPaths::new(tables).map_err(AnalysisError::from)?;
        match paths {
            Some(paths) => Ok(Some(paths)),
            None => Err(
                Failure::usage("cannot print host paths: mounts not recorded")
                    .hint("remove --host-paths, or record again: sudo whyslow record"),
            ),
        }
    }

    /// A live query has no window.
    fn refuse_windows(&self) -> Result<(), Failure> {
        let window = &self.args.window;
        if window.text().is_none() && window.overlaps.is_none() && self.at.is_none() {
            return Ok(());
        }
        Err(
            Failure::usage("cannot use a window with @live: it shows the present")
                .hint("record, then query the recording: sudo whyslow record -o NAME.wsl"),
        )
    }

    fn run_live(
        &self,
        choice: RecorderChoice,
        target: &Target,
        talk: &TalkArgs,
    ) -> Result<(), Failure> {
        let has_parts = target.interval.is_some();
        let output = if has_parts {
            whyslow_render::args_of_many(&self.args.output)?
        } else {
            self.args.output.clone()
        };
        if matches!(self.kind, Kind::Functions | Kind::Usdt) {
            return Err(Failure::usage(
                "cannot probe functions with @live: probes are set by `record`",
            )
            .hint("record them: sudo whyslow record --function FILE:NAME -o NAME.wsl"));
        }
        // Report an invalid query before anything is recorded.
        filter(&self.args)?;
        self.args.shape.sort.as_deref().map(sort).transpose()?;
        let plan = Plan {
            interval: target.interval,
            count: target.count,
            pids: self.args.filter.pid.clone(),
            ..Plan::of(choice, topics(self.kind))
        };
        live::run(&plan, talk, &mut |segment: &Segment<'_>| {
            let output = OutputArgs {
                part: has_parts.then_some(segment.number),
                ..output.clone()
            };
            let takes_interval = has_parts && takes_interval(self.kind, self.verb);
            let part = Target {
                recording: None,
                interval: takes_interval.then_some(ALL_OF_IT),
                count: None,
            };
            self.answer(&Opened::live(segment)?, &part, &output, talk)
        })
    }

    fn query(
        &self,
        target: &Target,
        opened: &Opened,
        calendar: &Calendar,
    ) -> Result<Query, Failure> {
        let args = &self.args;
        let window = self.window(target, opened, calendar)?;
        let resolve = |text: &WindowText| {
            let text = text.clone();
            text.resolve(calendar, |operation| opened.window_of(operation))
        };
        let baseline = self.baseline.as_ref().map(resolve).transpose()?;
        let overlaps = args
            .window
            .overlaps
            .as_ref()
            .map(|operation| (operation.table.to_owned(), operation.id));
        let request = match args.window.text() {
            Some(WindowText::Operation(operation)) if operation.table == "request" => {
                Some(operation.id)
            }
            _ => None,
        };
        let at = match &self.at {
            Some(moment) => Some(moment.resolve(calendar, None)?),
            None => None,
        };
        Ok(Query {
            window,
            filter: Filter {
                stage: self.stage.clone(),
                values: self.values.clone(),
                ..filter(args)?
            },
            by: args.shape.by.clone(),
            sort: args.shape.sort.as_deref().map(sort).transpose()?,
            limit: args.shape.limit,
            interval: target.interval,
            weight: self.weight,
            bins: self.bins,
            versus: self.versus.as_deref().map(device),
            baseline,
            overlaps,
            request,
            at,
            wide: args.output.wide,
            waits: args.filter.waits,
            counts_ended: opened.is_part,
            ..Query::new(self.kind, self.verb)
        })
    }

    /// The requested window, limited to COUNT intervals; it must overlap the recording.
    fn window(
        &self,
        target: &Target,
        opened: &Opened,
        calendar: &Calendar,
    ) -> Result<Option<Window>, Failure> {
        let window = opened.window(self.args.window.text().as_ref(), calendar)?;
        let (Some(interval), Some(count)) = (target.interval, target.count) else {
            return Ok(window);
        };
        let begin = window.map_or(calendar.begin, |window| window.begin);
        let end = window.map_or(calendar.end.saturating_add(1), |window| window.end);
        let length = interval.saturating_mul(count);
        Ok(Some(Window::new(
            begin,
            end.min(begin.saturating_add(length)),
        )))
    }
}

fn wanted_zone(output: &OutputArgs) -> Option<Zone> {
    if output.utc {
        Some(Zone::utc())
    } else {
        output.tz.clone()
    }
}

/// Topics that a live query of a kind records; the default topics for kinds not listed.
#[allow(clippy::match_wildcard_for_single_variants)] // there will be more
fn topics(kind: Kind) -> &'static [Topic] {
    match kind {
        Kind::Io => &[Topic::Syscalls, Topic::Block],
        Kind::Files | Kind::Syscalls => &[Topic::Syscalls],
        Kind::Block => &[Topic::Block],
        Kind::Sched => &[Topic::Sched],
        Kind::States => &[Topic::Sched, Topic::Syscalls],
        Kind::Cpu => &[Topic::Sched, Topic::Syscalls, Topic::Irq],
        Kind::Irq => &[Topic::Irq, Topic::Sched],
        Kind::Mem => &[Topic::Mem, Topic::Sched],
        Kind::Net => &[Topic::Net, Topic::Syscalls],
        Kind::Fs => &[Topic::Fs, Topic::Sched],
        Kind::Work => &[Topic::Work, Topic::Sched],
        Kind::Tcp => &[Topic::Tcp],
        Kind::Requests => &[Topic::Tcp, Topic::Syscalls, Topic::Sched],
        Kind::Signals => &[Topic::Sched],
        Kind::Use => Topic::ALL,
        _ => Topic::DEFAULT,
    }
}

/// An interval longer than any window covers all of it.
const ALL_OF_IT: Ns = 1_000_000_000_000_000;

fn takes_interval(kind: Kind, verb: Verb) -> bool {
    let topic = TOPICS.iter().find(|topic| topic.kind == kind);
    let views = topic.into_iter().flat_map(|topic| topic.views);
    let mut of_verb = views.filter(|view| view.verb == verb);
    of_verb.next().is_some_and(|view| view.by_time)
}

/// `[RECORDING] [INTERVAL [COUNT]]`
#[derive(Debug, PartialEq, Eq)]
struct Target {
    recording: Option<String>,
    interval: Option<Ns>,
    count: Option<i64>,
}

impl Target {
    fn parse(words: &[String]) -> Result<Self, Failure> {
        // The first word is an interval if it reads as one and there is no such file.
        let names_recording = words.first().is_some_and(|word| {
            parse_seconds_or_duration(word).is_err() || std::path::Path::new(word).exists()
        });
        let (recording, rest) = match words.split_first() {
            Some((first, rest)) if names_recording => (Some(first.clone()), rest),
            _ => (None, words),
        };
        let (interval, count) = match rest {
            [] => (None, None),
            [interval] => (Some(interval), None),
            [interval, count] => (Some(interval), Some(count)),
            [.., extra] => {
                return Err(Failure::usage(format!("unexpected argument `{extra}`"))
                    .hint("write RECORDING INTERVAL COUNT: web.wsl 1 5"));
            }
        };
        let interval = interval
            .map(|text| parse_seconds_or_duration(text))
            .transpose()
            .map_err(|message| {
                Failure::usage(message).hint("write RECORDING INTERVAL: web.wsl 1, web.wsl 100ms")
            })?;
        let count = match count {
            None => None,
            Some(text) => match text.parse() {
                Ok(count) if count > 0 => Some(count),
                _ => {
                    return Err(Failure::usage(format!(
                        "cannot use `{text}` as the count of intervals: not a positive number"
                    ))
                    .hint("write RECORDING INTERVAL COUNT: web.wsl 1 5"));
                }
            },
        };
        Ok(Self {
            recording,
            interval,
            count,
        })
    }
}

fn filter(args: &QueryArgs) -> Result<Filter, Failure> {
    filter_of(&args.filter)
}

fn sort(text: &str) -> Result<Sort, Failure> {
    let (column, ascending) = match text.rsplit_once(':') {
        None => (text, false),
        Some((column, "asc")) => (column, true),
        Some((column, "desc")) => (column, false),
        Some((_, order)) => {
            return Err(Failure::usage(format!(
                "unknown sort order `{order}` in --sort {text}: write asc or desc"
            )));
        }
    };
    Ok(Sort {
        column: column.to_owned(),
        ascending,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_after_the_flags_are_recording_interval_and_count() {
        let check = |words: &[&str], want: Option<(Option<&str>, Option<Ns>, Option<i64>)>| {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            let got = Target::parse(&words).ok();
            let want = want.map(|(recording, interval, count)| Target {
                recording: recording.map(str::to_owned),
                interval,
                count,
            });
            assert_eq!(got, want, "{words:?}");
        };
        let second = 1_000_000_000;
        check(&[], Some((None, None, None)));
        check(&["web.wsl"], Some((Some("web.wsl"), None, None)));
        check(
            &["web.wsl", "1"],
            Some((Some("web.wsl"), Some(second), None)),
        );
        check(
            &["web.wsl", "100ms", "5"],
            Some((Some("web.wsl"), Some(second / 10), Some(5))),
        );
        check(&["1"], Some((None, Some(second), None)));
        check(&["1", "5"], Some((None, Some(second), Some(5))));
        check(&["web.wsl", "x"], None);
        check(&["web.wsl", "1", "0"], None);
        check(&["1", "2", "3"], None);
    }
}
