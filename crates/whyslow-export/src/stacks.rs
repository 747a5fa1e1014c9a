//! Stacks with their time: the data of all exported profiles.

mod covered;
mod frames;
mod gaps;
mod lives;
mod stops;

use std::ops::ControlFlow;

use whyslow_analysis::{Counts, Filter, Kind, LogRow, Query, StackSum, Verb, each_row, sum_stacks};
use whyslow_model::answer::{Answer, LossNote};
use whyslow_model::tables::{MetadataRow, TraceStatRow};
use whyslow_model::topic_state::TopicState;
use whyslow_model::{Ns, Symbols, Window, stat};
use whyslow_store::{Tables, rows};

use crate::ExportError;

use covered::CoveredThreads;
pub use frames::{Callsites, Frame, FrameKind};
pub use lives::Lives;
use lives::LivesOf;

/// Sampler name of the recorder's own samples (`wall`), taken from outside.
const RECORDER: &str = "recorder";

/// The measure of stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weight {
    /// Off-CPU time; in a wall-clock profile, time asleep and in gaps.
    #[default]
    OffCpu,
    /// Samples as the sampler counted them, each for one of its intervals.
    Samples,
    /// All time of a wall-clock profile: samples, and gaps between them.
    Time,
}

impl Weight {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::OffCpu => "offcpu",
            Self::Samples => "samples",
            Self::Time => "time",
        }
    }

    /// Description of what is counted.
    pub fn about(self) -> &'static str {
        match self {
            Self::OffCpu => "off-CPU time",
            Self::Samples => "samples, each for one sampling interval",
            Self::Time => "time, including sampling gaps",
        }
    }

    /// The default for a recording: all time if all threads were sampled, otherwise off-CPU time.
    pub fn of(tables: &dyn Tables) -> Self {
        let has = |name: &str| {
            let info = tables.info().tables.get(name);
            info.is_some_and(|table| table.rows > 0)
        };
        // Only wall-clock profiles have gaps; profiles without gaps hide nothing.
        match interval(tables) {
            Some(_) if has("stack_sample") && !has("thread_state") => Self::Time,
            _ if without_times(tables) => Self::Samples,
            _ => Self::OffCpu,
        }
    }

    /// Values of the column `kind`.
    fn kinds(self) -> &'static [&'static str] {
        match self {
            Self::OffCpu => &["offcpu", "wall"],
            Self::Samples => &["sample", "wall", "execution", "native"],
            Self::Time => &["wall"],
        }
    }
}

/// Why there is a stack without a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mark {
    /// The thread waited in the kernel, where signals do not reach it, in the call of the next
    /// sample.
    Blocked,
    /// It was not sampled for another reason.
    NotSampled,
    /// The process or the sampler was stopped.
    Stopped,
}

impl Mark {
    const ALL: [Self; 3] = [Self::Blocked, Self::NotSampled, Self::Stopped];

    fn text(self) -> &'static str {
        match self {
            Self::Blocked => "[blocked, not sampled]",
            Self::NotSampled => "[not sampled]",
            Self::Stopped => "[process stopped]",
        }
    }
}

/// The sampling interval of the profiler.
fn interval(tables: &dyn Tables) -> Option<Ns> {
    let mut symbols = Symbols::new();
    let facts = rows::<MetadataRow>(tables, &mut symbols).ok()?;
    let of = |row: &&MetadataRow| symbols.get(row.key) == "sample_interval_ns";
    facts
        .iter()
        .find(of)
        .and_then(|row| symbols.get(row.value).parse().ok())
}

/// Whether samples have no timestamps, as in collapsed stacks: then only counts are available.
fn without_times(tables: &dyn Tables) -> bool {
    let mut symbols = Symbols::new();
    rows::<TraceStatRow>(tables, &mut symbols).is_ok_and(|stats| {
        let of = |row: &TraceStatRow| symbols.get(row.name) == stat::SAMPLES_NO_TIMES.name;
        stats.iter().any(of)
    })
}

/// Selects and weights stacks.
#[derive(Debug, Clone, Default)]
pub struct StackQuery {
    /// `None` for the whole recording.
    pub window: Option<Window>,
    /// Filter of threads, stacks and durations.
    pub filter: Filter,
    /// The measure of a stack.
    pub weight: Weight,
    /// Only threads in these states: `uninterruptible`, …
    pub states: Vec<String>,
    /// Root frames of a graph.
    pub roots: Roots,
}

/// How stacks are grouped in a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Roots {
    /// By thread name.
    #[default]
    Comm,
    /// By thread name without numbers.
    Pool,
    /// Not at all.
    Nothing,
}

/// A stack at a point in time.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'r> {
    /// Start of its time, ns since the epoch.
    pub begin: Ns,
    /// Time within the window.
    pub dur: Ns,
    /// Name of the thread.
    pub comm: Option<&'r str>,
    /// Kernel process id.
    pub pid: Option<i64>,
    /// Kernel thread id.
    pub tid: Option<i64>,
    /// Value of `stack_sample.state`.
    pub state: Option<&'r str>,
    /// Id in the table `callsite`; `None` if no stack was taken.
    pub callsite: Option<i64>,
    /// Why there is no sample; `None` for a sample.
    pub mark: Option<Mark>,
}

impl Sample<'_> {
    /// Whether its thread was off the CPU; samplers do not distinguish running from runnable
    /// threads.
    pub fn is_off_cpu(&self) -> bool {
        match (self.mark, self.state) {
            (Some(Mark::Blocked), _) => true,
            (Some(_), _) | (None, None) => false,
            (None, Some(state)) => state != "running",
        }
    }

    /// The argument of [`Callsites::stack`].
    pub fn place(&self) -> (Option<i64>, Option<Mark>) {
        (self.callsite, self.mark)
    }
}

/// Context of all samples.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// Start of the window, clipped to the recording.
    pub begin: Ns,
    /// End of the window, clipped to the recording.
    pub end: Ns,
    /// Losses that overlap the window.
    pub losses: Vec<LossNote>,
    /// Caveats of the answer.
    pub caveats: Vec<String>,
    /// If all time of threads is requested: whether it adds up to their lifetimes.
    pub lives: Option<Lives>,
    /// Whether stacks were recorded.
    pub state: Option<TopicState>,
}

/// Passes on the samples of a query and the gaps between them, in start order.
pub fn each_sample(
    tables: &dyn Tables,
    query: &StackQuery,
    each: &mut dyn FnMut(&Sample<'_>),
) -> Result<About, ExportError> {
    let counting = Counting::of(tables, query)?;
    let (stops, gaps) = counting.stops_and_gaps(tables)?;
    let mut lives = LivesOf::new(query);
    let mut each = |sample: &Sample<'_>| {
        stops.cut(sample, &mut |piece| {
            lives.add(piece);
            each(piece);
        });
    };
    let mut gaps = gaps.into_iter().peekable();
    let query = counting.log_query(Kind::Stacks, query.weight.kinds());
    let header = each_row(tables, &query, &COLUMNS, &mut |row| {
        if let Some(sample) = counting.sample(row) {
            while let Some(gap) = gaps.next_if(|gap| gap.begin <= sample.begin) {
                each(&gap.sample());
            }
            each(&sample);
        }
        ControlFlow::Continue(())
    })?;
    gaps.for_each(|gap| each(&gap.sample()));
    Ok(about(tables, header, lives.sum()))
}

/// The same with equal samples merged, if single samples are not needed. If all threads were
/// stopped, samples have to be cut and are visited one by one.
pub(crate) fn each_sum(
    tables: &dyn Tables,
    query: &StackQuery,
    each: &mut dyn FnMut(&Sample<'_>, i64),
) -> Result<About, ExportError> {
    let counting = Counting::of(tables, query)?;
    let (stops, gaps) = counting.stops_and_gaps(tables)?;
    if !stops.is_empty() {
        return each_sample(tables, query, &mut |sample| each(sample, 1));
    }
    let mut lives = LivesOf::new(query);
    let query = counting.log_query(Kind::Stacks, query.weight.kinds());
    let (header, sums) = sum_stacks(tables, &query, &counting)?;
    let mut gaps = gaps.into_iter().peekable();
    let mut each = |sample: &Sample<'_>, (count, end): (i64, Ns)| {
        lives.add_until(sample, end);
        each(sample, count);
    };
    for sum in &sums {
        let begin = sum.first.max(counting.window.begin);
        while let Some(gap) = gaps.next_if(|gap| gap.begin <= begin) {
            each(&gap.sample(), (1, gap.end()));
        }
        let end = sum.last.min(counting.window.end);
        each(&of_sum(sum, begin), (sum.count, end));
    }
    gaps.for_each(|gap| each(&gap.sample(), (1, gap.end())));
    Ok(about(tables, header, lives.sum()))
}

fn of_sum(sum: &StackSum, begin: Ns) -> Sample<'_> {
    Sample {
        begin,
        dur: sum.time,
        comm: sum.comm.as_deref(),
        pid: sum.pid,
        tid: sum.tid,
        state: sum.state.as_deref(),
        callsite: sum.callsite,
        mark: None,
    }
}

fn about(tables: &dyn Tables, header: Answer, lives: Option<Lives>) -> About {
    let info = tables.info();
    let (begin, end) = header.window.unwrap_or((info.begin_ns, info.end_ns));
    let mut caveats = header.caveats;
    if without_times(tables) {
        caveats.push("timestamps unavailable: values are sample counts, not time".into());
    }
    About {
        begin,
        end,
        losses: header.losses,
        caveats,
        lives,
        state: header.state,
    }
}

const COLUMNS: [&str; 10] = [
    "sampler",
    "ts_ns",
    "dur_ns",
    "comm",
    "pid",
    "tid",
    "state",
    "callsite_id",
    "kind",
    "credits",
];
/// Selects and weights rows.
struct Counting<'q> {
    query: &'q StackQuery,
    window: Window,
    interval: Ns,
    covered: CoveredThreads,
}

/// The weight of a sample.
#[derive(Clone, Copy)]
pub(crate) enum Rule {
    /// Its duration.
    Time,
    /// Its duration, unless another source covers that thread.
    Own,
    /// Its number of intervals.
    Number,
    /// Its number of intervals if it has no duration.
    NumberWithoutTime,
}

impl Counts for Counting<'_> {
    type Rule = Rule;

    fn rule(&self, kind: &str, state: Option<&str>, sampler: Option<&str>) -> Option<Rule> {
        let is_own = sampler == Some(RECORDER);
        let states = &self.query.states;
        if !states.is_empty() && !state.is_some_and(|state| states.iter().any(|of| of == state)) {
            return None;
        }
        match self.query.weight {
            // The sampler reports the thread as running, so it is not off the CPU as far as known.
            Weight::OffCpu if kind == "wall" && state == Some("running") => None,
            // The recorder's own samples have a duration.
            _ if is_own => Some(Rule::Own),
            Weight::Samples if kind == "sample" => Some(Rule::NumberWithoutTime),
            Weight::Samples => Some(Rule::Number),
            Weight::OffCpu | Weight::Time => Some(Rule::Time),
        }
    }

    #[inline]
    fn time(
        &self,
        rule: Rule,
        tid: Option<i64>,
        (ts, length, credits): (Ns, Ns, Option<i64>),
    ) -> Option<Ns> {
        let (_, dur) = self.inside(ts, length);
        let is_number = match rule {
            Rule::Own if self.covered.has(tid) => return None,
            Rule::Time | Rule::Own => false,
            Rule::Number => true,
            Rule::NumberWithoutTime => length == 0,
        };
        if !is_number {
            return Some(dur);
        }
        // If the window cuts the sample, its count is scaled like its time.
        // Without an interval there is no time, only a count.
        let counted = self.interval.max(1).saturating_mul(credits.unwrap_or(1));
        Some(match length {
            0 => counted,
            _ => (counted as f64 * dur as f64 / length as f64) as Ns,
        })
    }
}

impl<'q> Counting<'q> {
    fn of(tables: &dyn Tables, query: &'q StackQuery) -> Result<Self, ExportError> {
        // The first sample of a thread covers time before it.
        let whole = Window::new(Ns::MIN, Ns::MAX);
        Ok(Self {
            query,
            window: query.window.unwrap_or(whole),
            interval: interval(tables).unwrap_or(0),
            covered: CoveredThreads::of(tables, query.weight)?,
        })
    }

    fn log_query(&self, kind: Kind, ops: &[&str]) -> Query {
        Query {
            window: self.query.window,
            filter: Filter {
                ops: ops.iter().map(|op| (*op).to_owned()).collect(),
                ..self.query.filter.clone()
            },
            ..Query::new(kind, Verb::Log)
        }
    }

    /// The part of this time within the window: its start and length.
    fn inside(&self, begin: Ns, dur: Ns) -> (Ns, Ns) {
        let end = begin.saturating_add(dur).min(self.window.end);
        let begin = begin.max(self.window.begin);
        (begin, end.saturating_sub(begin).max(0))
    }

    fn sample<'r>(&self, row: &'r LogRow<'_>) -> Option<Sample<'r>> {
        let state = row.text("state");
        let kind = row.text("kind").unwrap_or_default();
        let rule = self.rule(kind, state, row.text("sampler"))?;
        let (ts, length) = (row.int("ts_ns")?, row.int("dur_ns").unwrap_or(0));
        let (begin, _) = self.inside(ts, length);
        let tid = row.int("tid");
        let dur = self.time(rule, tid, (ts, length, row.int("credits")))?;
        Some(Sample {
            begin,
            dur,
            comm: row.text("comm"),
            pid: row.int("pid"),
            tid,
            state,
            callsite: row.int("callsite_id"),
            mark: None,
        })
    }
}
