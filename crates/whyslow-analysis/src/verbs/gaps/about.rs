//! Additional information about a gap: the state that its thread was seen in, its relation to the
//! others of its group, its confidence, and for a stop of the whole process the runtime pause that
//! caused it.

use std::ops::ControlFlow;

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::Ns;
use whyslow_model::answer::{AnswerColumn, Measure, Value};

use super::super::stacks::Frames;
use crate::AnalysisError;
use crate::context::Context;
use crate::fold::in_order;
use crate::kinds::{RUNTIME, STACKS, STATES};
use crate::query::Filter;
use crate::wall_samples::{Observed, WallSamples};
use whyslow_model::Window;

/// Recorded states are proof of a gap if they cover this share of it.
const PROVEN: f64 = 0.5;
/// A runtime pause is the cause of a stop if it covers this share of it.
const CAUSE: f64 = 0.5;
const PAUSES: [&str; 3] = ["gc_pause", "safepoint", "vm_operation"];

/// A gap.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) cells: Vec<Value>,
    /// Whether it has a row of its own.
    pub(super) is_listed: bool,
    pub(super) ts: Ns,
    pub(super) ts_end: Ns,
    /// `None` if it affects all threads.
    pub(super) utid: Option<i64>,
    pub(super) group: Option<i64>,
    pub(super) callsite: Option<i64>,
    pub(super) class: String,
    pub(super) function: Option<String>,
}

impl Seen {
    pub(super) fn dur(&self) -> Ns {
        self.ts_end.saturating_sub(self.ts)
    }

    /// Whether it is a gap during a call that blocks signals.
    pub(super) fn is_wait(&self) -> bool {
        self.utid.is_some() && matches!(self.class.as_str(), "kernel_wait" | "page_fault")
    }

    fn shared(&self, begin: Ns, end: Ns) -> Ns {
        end.min(self.ts_end)
            .saturating_sub(begin.max(self.ts))
            .max(0)
    }
}

pub(super) fn columns() -> Vec<AnswerColumn> {
    let column = AnswerColumn::new;
    vec![
        column("code", "caller", Measure::Text)
            .priority(2)
            .sparse(true),
        column("relation", "relation in group", Measure::Text).sparse(true),
        column("state", "state after", Measure::Text)
            .priority(5)
            .sparse(true),
        column("confidence", "confidence", Measure::Text).priority(3),
        column("cause", "cause", Measure::Text).sparse(true),
    ]
}

/// Start and end.
type Span = (Ns, Ns);

pub(super) struct About {
    frames: Frames,
    /// State of the thread in the sample that ended a gap.
    states: FxHashMap<(i64, Ns), String>,
    /// Threads with recorded states, and when they were uninterruptible.
    recorded: FxHashMap<i64, Vec<Span>>,
    /// Samples of the recorder.
    samples: WallSamples,
    pauses: Vec<(Span, String)>,
    /// The longest gap of each group.
    groups: FxHashMap<i64, Span>,
    interval: Ns,
    has_runtime: bool,
}

impl About {
    pub(super) fn read(context: &Context<'_>, gaps: &[Seen]) -> Result<Self, AnalysisError> {
        let mut about = Self {
            frames: Frames::read(context)?,
            states: FxHashMap::default(),
            recorded: FxHashMap::default(),
            samples: WallSamples::default(),
            pauses: Vec::new(),
            groups: FxHashMap::default(),
            interval: context.names.sample_interval.unwrap_or(0),
            has_runtime: context.has(RUNTIME.table.name),
        };
        for gap in gaps {
            let Some(group) = gap.group else { continue };
            let longest = about.groups.entry(group).or_insert((gap.ts, gap.ts_end));
            if gap.dur() > longest.1 - longest.0 {
                *longest = (gap.ts, gap.ts_end);
            }
        }
        let Some(window) = around(gaps) else {
            return Ok(about);
        };
        about.read_ends(context, window, gaps)?;
        let waits = gaps.iter().filter(|gap| gap.is_wait());
        let threads = waits.filter_map(|gap| gap.utid).collect();
        about.samples = WallSamples::read(context.tables, window, &threads)?;
        if context.has(STATES.table.name) {
            about.read_states(context, window, gaps)?;
        }
        if about.has_runtime && gaps.iter().any(|gap| gap.utid.is_none()) {
            about.read_pauses(context, window)?;
        }
        Ok(about)
    }

    fn read_ends(
        &mut self,
        context: &Context<'_>,
        window: Window,
        gaps: &[Seen],
    ) -> Result<(), AnalysisError> {
        let ends: FxHashSet<(i64, Ns)> = gaps
            .iter()
            .filter_map(|gap| Some((gap.utid?, gap.ts_end)))
            .collect();
        let mut pass = context.pass_in(&STACKS, &[], &Filter::default(), Some(window))?;
        let [ts, utid, state] = ["ts", "utid", "state"].map(|name| pass.projection.need(name));
        in_order(
            context.tables,
            &pass.projection.scan(Some(window)),
            |batch| {
                let (ts, utid, state) = (ts.ints(batch)?, utid.ints(batch)?, state.texts(batch)?);
                for row in 0..batch.num_rows() as u32 {
                    let Some(key) = utid.get(row).map(|utid| (utid, ts.at(row))) else {
                        continue;
                    };
                    if let (true, Some(state)) = (ends.contains(&key), state.get(row)) {
                        self.states.insert(key, state.to_owned());
                    }
                }
                Ok(ControlFlow::Continue(()))
            },
        )
    }

    fn read_states(
        &mut self,
        context: &Context<'_>,
        window: Window,
        gaps: &[Seen],
    ) -> Result<(), AnalysisError> {
        let threads: FxHashSet<i64> = gaps.iter().filter_map(|gap| gap.utid).collect();
        let end = context.recording_end();
        let mut pass = context.pass_in(&STATES, &[], &Filter::default(), Some(window))?;
        let [ts, ts_end, utid, state] =
            ["ts", "ts_end", "utid", "state"].map(|name| pass.projection.need(name));
        in_order(
            context.tables,
            &pass.projection.scan(Some(window)),
            |batch| {
                let (ts, ts_end) = (ts.ints(batch)?, ts_end.ints(batch)?);
                let (utid, state) = (utid.ints(batch)?, state.texts(batch)?);
                for row in 0..batch.num_rows() as u32 {
                    let Some(thread) = utid.get(row).filter(|utid| threads.contains(utid)) else {
                        continue;
                    };
                    let spans = self.recorded.entry(thread).or_default();
                    if state.get(row) == Some("uninterruptible") {
                        spans.push((ts.at(row), ts_end.get(row).unwrap_or(end)));
                    }
                }
                Ok(ControlFlow::Continue(()))
            },
        )
    }

    fn read_pauses(&mut self, context: &Context<'_>, window: Window) -> Result<(), AnalysisError> {
        let mut pass = context.pass_in(&RUNTIME, &[], &Filter::default(), Some(window))?;
        let [ts, ts_end, kind, object] =
            ["ts", "ts_end", "kind", "object"].map(|name| pass.projection.need(name));
        in_order(
            context.tables,
            &pass.projection.scan(Some(window)),
            |batch| {
                let (ts, ts_end) = (ts.ints(batch)?, ts_end.ints(batch)?);
                let (kind, object) = (kind.texts(batch)?, object.texts(batch)?);
                for row in 0..batch.num_rows() as u32 {
                    let kind = kind.get(row).unwrap_or_default();
                    let Some(end) = ts_end.get(row).filter(|_| PAUSES.contains(&kind)) else {
                        continue;
                    };
                    let object = object.get(row).unwrap_or_default();
                    let what = format!("{} {object}", kind.replace('_', " "));
                    self.pauses
                        .push(((ts.at(row), end), what.trim_end().to_owned()));
                }
                Ok(ControlFlow::Continue(()))
            },
        )
    }

    pub(super) fn cells(&self, gap: &Seen) -> [Value; 5] {
        let state = gap
            .utid
            .and_then(|utid| self.states.get(&(utid, gap.ts_end)));
        [
            self.code(gap).into(),
            self.relation(gap).into(),
            state.cloned().into(),
            self.confidence(gap, state.map(String::as_str)).into(),
            self.cause(gap).into(),
        ]
    }

    /// The innermost function of a managed language that made the call.
    fn code(&self, gap: &Seen) -> Option<String> {
        let lines = self.frames.stack(gap.callsite?);
        let managed =
            |line: &&[Value; 3]| matches!(&line[1], Value::Text(kind) if kind == "managed");
        match lines.iter().find(managed)? {
            [Value::Text(name), ..] if Some(name) != gap.function.as_ref() => Some(name.clone()),
            _ => None,
        }
    }

    /// Its relation to the longest gap of its group.
    fn relation(&self, gap: &Seen) -> Option<String> {
        let (ts, ts_end) = *self.groups.get(&gap.group?)?;
        if (ts, ts_end) == (gap.ts, gap.ts_end) {
            return Some("the longest".to_owned());
        }
        let near = self.interval.saturating_mul(2);
        let (begins, ends) = ((gap.ts - ts).abs(), (gap.ts_end - ts_end).abs());
        let ms = |ns: Ns| format!("{:.0} ms", ns as f64 / 1e6);
        Some(match (begins <= near, ends <= near) {
            (true, true) => format!("same time, {} and {}", ms(begins), ms(ends)),
            // One waited for the other.
            (false, true) => format!("same end, {}", ms(ends)),
            (true, false) => format!("same start, {}", ms(begins)),
            (false, false) => {
                let shorter = gap.dur().min(ts_end - ts).max(1);
                let share = gap.shared(ts, ts_end) as f64 / shorter as f64 * 100.0;
                format!("{share:.0} % overlap")
            }
        })
    }

    /// Recorded states are proof. A call that returned was not interrupted; one that was ended by a
    /// signal may have been.
    fn confidence(&self, gap: &Seen, state: Option<&str>) -> Option<&'static str> {
        if !gap.is_wait() {
            return None;
        }
        if let Some(spans) = gap.utid.and_then(|utid| self.recorded.get(&utid)) {
            let known: Ns = spans
                .iter()
                .map(|(begin, end)| gap.shared(*begin, *end))
                .sum();
            if known as f64 >= PROVEN * gap.dur() as f64 {
                return Some("high");
            }
            return Some("low");
        }
        match (self.observed(gap), gap.class.as_str(), state) {
            (Some(Observed::Uninterruptible { .. }), ..) => Some("high"),
            (None, "kernel_wait", Some("running")) => Some("medium"),
            _ => Some("low"),
        }
    }

    fn observed(&self, gap: &Seen) -> Option<Observed> {
        let utid = gap.utid.filter(|_| gap.is_wait())?;
        self.samples.of(utid, (gap.ts, gap.ts_end))
    }

    /// Cause of a stop of all threads, or of a gap in which the recorder sampled the thread.
    fn cause(&self, gap: &Seen) -> Option<String> {
        if gap.utid.is_some() {
            let (function, syscall) = match self.observed(gap)? {
                Observed::Uninterruptible { function, syscall } => (function, syscall),
                Observed::Otherwise => {
                    return Some("not in uninterruptible sleep (recorder samples)".to_owned());
                }
            };
            let function = function.as_deref().unwrap_or("an unknown function");
            let call = syscall.map_or_else(String::new, |call| format!(", {call}"));
            return Some(format!(
                "in uninterruptible sleep in {function}{call} (recorder samples)"
            ));
        }
        let shared = |span: &Span| gap.shared(span.0, span.1);
        let longest = self.pauses.iter().max_by_key(|(span, _)| shared(span));
        match longest {
            Some((span, what)) if shared(span) as f64 >= CAUSE * gap.dur() as f64 => {
                Some(what.clone())
            }
            _ if self.has_runtime => {
                Some("no runtime pause: stopped from outside, or no CPU".to_owned())
            }
            _ => Some("unknown: the profile has no pauses".to_owned()),
        }
    }
}

/// From the start of the first to the end of the last.
fn around(gaps: &[Seen]) -> Option<Window> {
    let begin = gaps.iter().map(|gap| gap.ts).min()?;
    let end = gaps.iter().map(|gap| gap.ts_end).max()?;
    Some(Window::new(begin, end.saturating_add(1)))
}

/// Total time of all threads in the samples and gaps of the query.
pub(super) fn lived(context: &Context<'_>) -> Result<Ns, AnalysisError> {
    let mut sum: Ns = 0;
    let filter = Filter {
        ops: Vec::new(),
        dur_min: None,
        dur_max: None,
        ..context.query.filter.clone()
    };
    let span = context.span;
    for spec in [&STACKS, &crate::kinds::GAPS] {
        if !context.has(spec.table.name) {
            continue;
        }
        let mut pass = context.pass_with_cut(spec, &[], &filter)?;
        let [ts, ts_end, utid] = ["ts", "ts_end", "utid"].map(|name| pass.projection.need(name));
        let mut verdicts = pass.selector.verdicts();
        let mut rows = Vec::new();
        in_order(
            context.tables,
            &pass.projection.scan(pass.selected),
            |batch| {
                pass.selector.select(&mut verdicts, batch, &mut rows)?;
                let (ts, ts_end, utid) = (ts.ints(batch)?, ts_end.ints(batch)?, utid.ints(batch)?);
                for row in rows.iter().copied().filter(|row| utid.get(*row).is_some()) {
                    let end = ts_end.get(row).unwrap_or_else(|| ts.at(row)).min(span.end);
                    let time = end.saturating_sub(ts.at(row).max(span.begin)).max(0);
                    sum = sum.saturating_add(time);
                }
                Ok(ControlFlow::Continue(()))
            },
        )?;
    }
    Ok(sum)
}
