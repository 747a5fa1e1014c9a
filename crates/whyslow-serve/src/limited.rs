//! Limits of a query: its time, the memory of the process, and whether the client is still
//! connected.
//!
//! Queries read tables batch by batch. [`Limited`] wraps the tables and checks the limits before
//! each batch. Processing a batch takes milliseconds, so a query ends soon after it should.

use std::collections::BTreeSet;
use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use whyslow_model::Table;
use whyslow_store::{Part, RecordingInfo, Scan, StoreError, Tables, Visit};

/// Batches between two checks of the memory.
const BATCHES_PER_CHECK: u64 = 16;

/// Reason for stopping a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The client disconnected, or the server is shutting down.
    Unwanted,
    Time,
    Memory,
}

/// Resident memory of this process, in bytes. The file stays open, because it must be readable when
/// file descriptors are exhausted.
#[derive(Debug)]
pub(crate) struct Resident {
    file: Option<File>,
    page_bytes: u64,
}

impl Resident {
    pub(crate) fn new() -> Self {
        Self {
            file: File::open("/proc/self/statm").ok(),
            page_bytes: rustix::param::page_size() as u64,
        }
    }

    /// 0 if unknown.
    pub(crate) fn bytes(&self) -> u64 {
        let mut text = [0_u8; 128];
        let read = |file: &File| file.read_at(&mut text, 0).ok();
        let length = self.file.as_ref().and_then(read).unwrap_or(0);
        let text = std::str::from_utf8(&text[..length]).unwrap_or("");
        let pages = text.split_whitespace().nth(1);
        let pages = pages.and_then(|pages| pages.parse::<u64>().ok());
        pages.unwrap_or(0).saturating_mul(self.page_bytes)
    }
}

/// Decides when a query has to stop, and counts its progress.
#[derive(Debug)]
pub(crate) struct Gauge {
    deadline: Instant,
    memory_max: u64,
    resident: Arc<Resident>,
    /// Set when the client disconnects.
    is_unwanted: AtomicBool,
    /// Set when the server shuts down.
    is_over: Arc<AtomicBool>,
    batches: AtomicU64,
    rows: AtomicU64,
    /// Non-zero if it was stopped by a limit.
    verdict: AtomicU64,
}

const BY_TIME: u64 = 1;
const BY_MEMORY: u64 = 2;

impl Gauge {
    pub(crate) fn new(
        time: Duration,
        memory_max: u64,
        resident: Arc<Resident>,
        is_over: Arc<AtomicBool>,
    ) -> Self {
        Self {
            deadline: Instant::now() + time,
            memory_max,
            resident,
            is_unwanted: AtomicBool::new(false),
            is_over,
            batches: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            verdict: AtomicU64::new(0),
        }
    }

    /// The client is gone.
    pub(crate) fn abandon(&self) {
        self.is_unwanted.store(true, Ordering::Relaxed);
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    pub(crate) fn verdict(&self) -> Option<Stop> {
        if self.is_unwanted.load(Ordering::Relaxed) || self.is_over.load(Ordering::Relaxed) {
            return Some(Stop::Unwanted);
        }
        match self.verdict.load(Ordering::Relaxed) {
            BY_TIME => Some(Stop::Time),
            BY_MEMORY => Some(Stop::Memory),
            _ => None,
        }
    }

    /// Fails if the query has to stop.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let count = self.batches.fetch_add(1, Ordering::Relaxed);
        if self.verdict().is_none() {
            if Instant::now() >= self.deadline {
                self.verdict.store(BY_TIME, Ordering::Relaxed);
            } else if count.is_multiple_of(BATCHES_PER_CHECK)
                && self.resident.bytes() > self.memory_max
            {
                self.verdict.store(BY_MEMORY, Ordering::Relaxed);
            }
        }
        match self.verdict() {
            None => Ok(()),
            Some(_) => Err(StoreError::Stopped),
        }
    }

    fn take(&self, batch: &RecordBatch) -> Result<(), StoreError> {
        let rows = batch.num_rows() as u64;
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.check()
    }
}

/// Tables whose reads are checked by a gauge.
pub(crate) struct Limited<'t> {
    tables: &'t dyn Tables,
    gauge: &'t Gauge,
}

impl<'t> Limited<'t> {
    pub(crate) fn new(tables: &'t dyn Tables, gauge: &'t Gauge) -> Self {
        Self { tables, gauge }
    }
}

impl Tables for Limited<'_> {
    fn info(&self) -> &RecordingInfo {
        self.tables.info()
    }

    fn parts<'t>(&'t self, scan: &Scan) -> Result<Vec<Box<dyn Part + 't>>, StoreError> {
        self.gauge.check()?;
        let parts = self.tables.parts(scan)?.into_iter();
        let limited = parts.map(|part| {
            let gauge = self.gauge;
            Box::new(LimitedPart { part, gauge }) as Box<dyn Part>
        });
        Ok(limited.collect())
    }

    fn words(
        &self,
        table: &'static Table,
        column: &str,
    ) -> Result<Option<BTreeSet<String>>, StoreError> {
        self.gauge.check()?;
        self.tables.words(table, column)
    }

    fn scan(&self, scan: &Scan, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        self.gauge.check()?;
        self.tables.scan(scan, &mut watched(self.gauge, visit))
    }
}

struct LimitedPart<'t> {
    part: Box<dyn Part + 't>,
    gauge: &'t Gauge,
}

impl Part for LimitedPart<'_> {
    fn rows(&self) -> u64 {
        self.part.rows()
    }

    fn read(&self, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        self.gauge.check()?;
        self.part.read(&mut watched(self.gauge, visit))
    }

    fn read_rows(&self, numbers: &[u64], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        self.gauge.check()?;
        self.part
            .read_rows(numbers, &mut watched(self.gauge, visit))
    }
}

fn watched<'v>(
    gauge: &'v Gauge,
    visit: &'v mut Visit<'_>,
) -> impl FnMut(&RecordBatch) -> Result<ControlFlow<()>, StoreError> + 'v {
    move |batch| {
        gauge.take(batch)?;
        visit(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gauge(time: Duration, memory_max: u64) -> Gauge {
        Gauge::new(time, memory_max, Arc::new(Resident::new()), Arc::default())
    }

    const LONG: Duration = Duration::from_hours(1);

    #[test]
    fn a_question_stops_for_one_reason() {
        let free = gauge(LONG, u64::MAX);
        assert!(free.check().is_ok());
        free.abandon();
        assert!(free.check().is_err());
        assert_eq!(free.verdict(), Some(Stop::Unwanted));

        let late = gauge(Duration::ZERO, u64::MAX);
        assert!(late.check().is_err());
        assert_eq!(late.verdict(), Some(Stop::Time));

        let large = gauge(LONG, 1);
        assert!(large.check().is_err());
        assert_eq!(large.verdict(), Some(Stop::Memory));
    }

    #[test]
    fn the_memory_of_this_process_is_known() {
        let resident = Resident::new();
        let before = resident.bytes();
        assert!(before > 100_000, "{before}");
        let kept = vec![1_u8; 64 << 20];
        let after = resident.bytes();
        assert!(after > before + (32 << 20), "{before} {after}");
        drop(kept);
    }
}
