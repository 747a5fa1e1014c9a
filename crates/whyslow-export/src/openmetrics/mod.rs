//! Metrics for alerts and dashboards, in the text format of OpenMetrics 1.0
//! (<https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md>).
//!
//! An operation is counted once, when it ends; time in states is counted as it passes. So a growing
//! or rolling recording can be added part by part, and counters cover all of it.

mod families;
mod lookups;
mod text;

pub use lookups::{LookupFigures, LookupMetrics};
pub use text::MEDIA_TYPE;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use rustc_hash::FxHashMap;
use whyslow_analysis::{Filter, Kind};
use whyslow_model::answer::LossNote;
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use crate::ExportError;
use crate::logged::each_logged;
use families::{BUCKETS, MEASURED, Measured};

/// Maximum number of series in a family; further ones are counted together, since the number of
/// commands is unbounded.
const SERIES_MAX: usize = 1_000;
const OTHERS: &str = "(others)";

/// Counters of everything added so far.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    measured: Vec<Series<Operations>>,
    states: Series<u64>,
    /// Metadata from the manifest.
    about: BTreeMap<&'static str, String>,
    begin: Option<Ns>,
    end: Ns,
    /// Time between parts that was not recorded.
    unseen_ns: u64,
    lost_events: BTreeMap<String, u64>,
    losses: BTreeMap<String, u64>,
}

/// By label values, joined by a character that no value ends with.
#[derive(Debug, Clone)]
struct Series<T>(FxHashMap<String, T>);

impl<T> Default for Series<T> {
    fn default() -> Self {
        Self(FxHashMap::default())
    }
}

/// Calls are reported up to a tenth of a second after they were made: more recent ones are counted
/// with the next part.
const SETTLED: Ns = 200_000_000;

const BETWEEN: char = '\0';

#[derive(Debug, Clone, Default)]
struct Operations {
    /// Completed operations with a duration.
    count: u64,
    sum_ns: u64,
    /// Counts per bucket, not cumulative; the last bucket has no upper bound.
    buckets: [u64; BUCKETS.len() + 1],
    bytes: u64,
    errors: u64,
}

impl<T: Default> Series<T> {
    fn of<'t>(&mut self, key: &mut String, values: impl Iterator<Item = &'t str>) -> &mut T {
        key.clear();
        let mut labels = 0;
        for value in values {
            if labels > 0 {
                key.push(BETWEEN);
            }
            key.extend(value.chars().filter(|c| *c != BETWEEN));
            labels += 1;
        }
        if self.0.len() >= SERIES_MAX && !self.0.contains_key(key.as_str()) {
            *key = vec![OTHERS; labels].join(&String::from(BETWEEN));
        }
        if !self.0.contains_key(key.as_str()) {
            self.0.insert(key.clone(), T::default());
        }
        self.0.get_mut(key.as_str()).expect("it is there now")
    }
}

impl Operations {
    fn add(&mut self, dur: Ns) {
        let seconds = dur as f64 / 1e9;
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(dur.max(0) as u64);
        self.buckets[BUCKETS.partition_point(|end| *end < seconds)] += 1;
    }
}

impl Metrics {
    /// Adds operations that ended within the window, or within the whole recording.
    pub fn add(
        &mut self,
        tables: &dyn Tables,
        window: Option<Window>,
        filter: &Filter,
    ) -> Result<(), ExportError> {
        let info = tables.info();
        let kept = info.focus().unwrap_or_else(|| info.whole());
        // The end is inclusive.
        let whole = Window::new(kept.begin, kept.end.saturating_add(1));
        let span = window.unwrap_or(whole);
        self.measured.resize_with(MEASURED.len(), Series::default);
        for (number, measured) in MEASURED.iter().enumerate() {
            self.operations(tables, span, filter, (number, measured))?;
        }
        // Nothing is known after the last event.
        let seen = Window::new(span.begin, span.end.min(kept.end));
        self.states(tables, seen, filter)?;
        self.add_metadata(tables, span);
        Ok(())
    }

    /// Adds the part of a recording after the end of the parts added before. If it starts later,
    /// the time in between is counted as unseen.
    pub fn follow(&mut self, tables: &dyn Tables) -> Result<(), ExportError> {
        let info = tables.info();
        let end = info.end_ns.saturating_sub(SETTLED);
        let begin = if self.begin.is_some() {
            self.unseen_ns += info.begin_ns.saturating_sub(self.end).max(0) as u64;
            self.end.max(info.begin_ns)
        } else {
            info.begin_ns
        };
        if begin >= end {
            return Ok(());
        }
        self.add(tables, Some(Window::new(begin, end)), &Filter::default())
    }

    /// Whether events were lost that affect any metric.
    pub fn has_losses(&self) -> bool {
        self.losses.values().any(|count| *count > 0)
    }

    fn operations(
        &mut self,
        tables: &dyn Tables,
        span: Window,
        filter: &Filter,
        (number, measured): (usize, &Measured),
    ) -> Result<(), ExportError> {
        let columns = measured.columns();
        let series = &mut self.measured[number];
        let mut key = String::new();
        let of = (measured.table, measured.kind, Some(span), filter);
        let losses = each_logged(tables, of, &columns, &mut |row| {
            let (Some(ts), Some(dur)) = (row.int("ts_ns"), row.int(measured.dur)) else {
                return ControlFlow::Continue(());
            };
            let end = ts.saturating_add(dur);
            if end < span.begin || end >= span.end {
                return ControlFlow::Continue(());
            }
            let labels = measured.labels.iter();
            let values = labels.map(|(_, column)| row.text(column).unwrap_or(""));
            let operations = series.of(&mut key, values);
            operations.add(dur);
            if let Some(bytes) = measured.bytes.and_then(|column| row.int(column)) {
                let bytes = bytes.max(0) as u64;
                operations.bytes = operations.bytes.saturating_add(bytes);
            }
            let error = measured.error.and_then(|column| row.int(column));
            operations.errors += u64::from(error.is_some_and(|error| error != 0));
            ControlFlow::Continue(())
        })?;
        if let Some(losses) = losses {
            self.losses_of(measured.name, &losses);
        }
        Ok(())
    }

    /// Any operation that depends on these events may have been lost.
    fn losses_of(&mut self, name: &str, losses: &[LossNote]) {
        *self.losses.entry(name.to_owned()).or_default() += losses.len() as u64;
        let counted = losses.iter().filter_map(|loss| loss.count);
        let counted: u64 = counted.map(|count| count.max(0) as u64).sum();
        *self.lost_events.entry(name.to_owned()).or_default() += counted;
    }

    fn states(
        &mut self,
        tables: &dyn Tables,
        span: Window,
        filter: &Filter,
    ) -> Result<(), ExportError> {
        let columns = ["ts_ns", "ts_end_ns", "comm", "state"];
        let mut key = String::new();
        let states = &mut self.states;
        let of = ("thread_state", Kind::States, Some(span), filter);
        each_logged(tables, of, &columns, &mut |row| {
            let ts = row.int("ts_ns").unwrap_or(span.begin);
            // A state without an end extends to the end of the window.
            let end = row.int("ts_end_ns").unwrap_or(span.end);
            let inside = end.min(span.end).saturating_sub(ts.max(span.begin));
            if inside > 0 {
                let values = ["comm", "state"].map(|column| row.text(column).unwrap_or(""));
                *states.of(&mut key, values.into_iter()) += inside as u64;
            }
            ControlFlow::Continue(())
        })?;
        Ok(())
    }

    fn add_metadata(&mut self, tables: &dyn Tables, span: Window) {
        let info = tables.info();
        self.begin = Some(self.begin.map_or(span.begin, |begin| begin.min(span.begin)));
        self.end = self.end.max(span.end);
        let sources: Vec<&str> = info.sources.iter().map(|one| one.kind.as_str()).collect();
        self.about.insert("source", sources.join(","));
        if let Some(host) = &info.host {
            self.about.insert("host", host.clone());
        }
        self.about
            .insert("version", env!("CARGO_PKG_VERSION").to_owned());
    }
}
