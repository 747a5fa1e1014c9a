//! Totals of a load, in bounded memory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::durations::{Durations, edge_from, octave_of};
use crate::row::{Outcome, Phases, Row};

/// Requests that are kept individually; of more the list has the first, and the spool all.
const KEPT_MAX: usize = 250_000;
/// Endpoints that are counted separately.
const ENDPOINTS_MAX: usize = 1_000;
/// The rest, with any method.
const OTHERS: &str = " (others)";
/// Columns of the heat map while it grows; beyond that, pairs of columns are merged.
const COLUMNS_MAX: u64 = 960;
const COLUMN_NS: u64 = 10_000_000;
/// Without an explicit limit, slow means at least this many times the median.
const SLOW_MEDIANS: u64 = 5;

/// Aggregates the requests of a load.
#[derive(Debug)]
pub struct Summary {
    pub(crate) rows: Vec<Row>,
    pub(crate) count: u64,
    pub(crate) total: Durations,
    /// Latency from the intended start; empty without a schedule.
    pub(crate) response: Durations,
    /// Delay from the intended to the actual start.
    pub(crate) late: Durations,
    pub(crate) phases: [Durations; Phases::NAMES.len()],
    pub(crate) outcomes: BTreeMap<(Outcome, Option<u16>), Ending>,
    /// By method and URL, as in the targets.
    pub(crate) endpoints: BTreeMap<Arc<str>, Group>,
    pub(crate) stages: Vec<(u32, Group)>,
    pub(crate) bytes: (u64, u64),
    pub(crate) connections: u64,
    pub(crate) heat: Heat,
    slow_ns: Option<u64>,
    kept_max: usize,
}

/// Requests with the same outcome and status.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ending {
    pub(crate) count: u64,
    /// The error message of the first.
    pub(crate) error: Option<Box<str>>,
}

/// Requests with a common property.
#[derive(Debug, Clone, Default)]
pub(crate) struct Group {
    pub(crate) total: Durations,
    pub(crate) failed: u64,
    /// Slow by the explicit limit.
    slow: u64,
}

/// Requests by start and duration, in octaves.
#[derive(Debug)]
pub(crate) struct Heat {
    pub(crate) width_ns: u64,
    /// By column and lower edge: count, and sum of durations.
    pub(crate) cells: BTreeMap<(u64, u64), (u64, u64)>,
}

impl Summary {
    /// `slow` is what counts as slow; by default a multiple of the median. Rows are kept for a
    /// list.
    pub fn new(slow: Option<Duration>, has_list: bool) -> Self {
        Self {
            kept_max: if has_list { KEPT_MAX } else { 0 },
            rows: Vec::new(),
            count: 0,
            total: Durations::default(),
            response: Durations::default(),
            late: Durations::default(),
            phases: Default::default(),
            outcomes: BTreeMap::new(),
            endpoints: BTreeMap::new(),
            stages: Vec::new(),
            bytes: (0, 0),
            connections: 0,
            heat: Heat {
                width_ns: COLUMN_NS,
                cells: BTreeMap::new(),
            },
            slow_ns: slow.map(|slow| slow.as_nanos() as u64),
        }
    }

    /// The following requests are sent by this many workers.
    pub fn begin_stage(&mut self, workers: u32) {
        self.stages.push((workers, Group::default()));
    }

    /// Counts a request in the latest stage.
    pub fn add(&mut self, row: Row) {
        let total_ns = row.total_ns();
        self.count += 1;
        self.total.add(total_ns);
        if let Some(intended_ns) = row.intended_ns {
            self.response.add(row.response_ns());
            self.late.add(row.start_ns.saturating_sub(intended_ns));
        }
        for (durations, length) in self.phases.iter_mut().zip(row.phases.all()) {
            if let Some(length) = length {
                durations.add(length);
            }
        }
        let ending = self.outcomes.entry((row.outcome, row.status)).or_default();
        ending.count += 1;
        if ending.error.is_none() {
            ending.error.clone_from(&row.error);
        }
        let slow_ns = self.slow_ns;
        if let Some((_, stage)) = self.stages.last_mut() {
            stage.add(&row, slow_ns);
        }
        self.group_of(&row).add(&row, slow_ns);
        self.bytes.0 += row.bytes_sent;
        self.bytes.1 += row.bytes_received;
        self.connections += u64::from(row.connection.is_some() && !row.is_reused);
        self.heat.add(row.start_ns, row.response_ns());
        if self.rows.len() < self.kept_max {
            self.rows.push(row);
        }
    }

    fn group_of(&mut self, row: &Row) -> &mut Group {
        let mut key = Arc::clone(&row.target.group);
        if self.endpoints.len() >= ENDPOINTS_MAX && !self.endpoints.contains_key(&key) {
            key = OTHERS.into();
        }
        self.endpoints.entry(key).or_default()
    }

    /// Number of requests so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// What counts as slow, in ns; `None` without any request.
    pub fn slow_ns(&self) -> Option<u64> {
        if self.slow_ns.is_some() {
            return self.slow_ns;
        }
        // Of several numbers of workers, requests of the first wait for the fewest others.
        let usual = self
            .stages
            .first()
            .map_or(&self.total, |(_, stage)| &stage.total);
        let median = usual.percentile(0.5)?;
        Some(edge_from(median.saturating_mul(SLOW_MEDIANS)))
    }

    pub(crate) fn slow_of(&self, group: &Group) -> u64 {
        match (self.slow_ns, self.slow_ns()) {
            (Some(_), _) => group.slow,
            (None, Some(edge)) => group.total.from(edge),
            (None, None) => 0,
        }
    }

    /// Requests that are not in the list.
    pub(crate) fn left_out(&self) -> u64 {
        self.count - self.rows.len() as u64
    }

    pub(crate) fn has_schedule(&self) -> bool {
        self.response.count() > 0
    }
}

impl Group {
    fn add(&mut self, row: &Row, slow_ns: Option<u64>) {
        let total_ns = row.total_ns();
        self.total.add(total_ns);
        self.failed += u64::from(row.outcome != Outcome::Ok);
        self.slow += u64::from(slow_ns.is_some_and(|slow_ns| total_ns >= slow_ns));
    }
}

impl Heat {
    fn add(&mut self, start_ns: u64, length_ns: u64) {
        while start_ns / self.width_ns >= COLUMNS_MAX {
            *self = self.coarser(2);
        }
        let cell = (start_ns / self.width_ns, octave_of(length_ns).0);
        let cell = self.cells.entry(cell).or_default();
        cell.0 += 1;
        cell.1 = cell.1.saturating_add(length_ns);
    }

    /// The same with `factor` columns merged into one.
    pub(crate) fn coarser(&self, factor: u64) -> Self {
        let mut coarser = Self {
            width_ns: self.width_ns * factor,
            cells: BTreeMap::new(),
        };
        for ((column, octave), (count, sum)) in &self.cells {
            let cell = coarser.cells.entry((column / factor, *octave)).or_default();
            cell.0 += count;
            cell.1 = cell.1.saturating_add(*sum);
        }
        coarser
    }
}
