//! Explains a row by its id: a block request, or what a thread did during another interval.

use std::ops::ControlFlow;

use whyslow_analysis::AnalysisError;
use whyslow_analysis::read::{Projection, in_order};
use whyslow_model::Window;
use whyslow_model::row::{Row, Table};
use whyslow_model::tables::{self, BlockIoRow, RequestPhaseRow};

use super::Explainer;
use crate::finding::{Subject, finding, of_block_request};
use crate::report::Finding;

/// Intervals of one thread.
struct OfThread {
    table: &'static str,
    /// Prefix of its ids.
    prefix: &'static str,
    /// Kind of the target.
    kind: &'static str,
    /// Column that describes a row.
    text: &'static str,
}

const OF_THREADS: &[OfThread] = &[
    OfThread {
        table: "thread_state",
        prefix: "state",
        kind: "thread",
        text: "state",
    },
    OfThread {
        table: "sched_slice",
        prefix: "slice",
        kind: "thread",
        text: "comm",
    },
    OfThread {
        table: "lock_wait",
        prefix: "lock",
        kind: "lock",
        text: "kind",
    },
    OfThread {
        table: "function_call",
        prefix: "function",
        kind: "call",
        text: "function",
    },
    OfThread {
        table: "dns_query",
        prefix: "query",
        kind: "lookup",
        text: "host",
    },
    OfThread {
        table: "reclaim",
        prefix: "reclaim",
        kind: "reclaim",
        text: "comm",
    },
];

/// Values of a row.
struct Found {
    numbers: Vec<Option<i64>>,
    texts: Vec<Option<String>>,
}

impl Found {
    fn number(&self, place: usize) -> Option<i64> {
        self.numbers.get(place).copied().flatten()
    }

    fn text(&self, place: usize) -> &str {
        let text = self.texts.get(place).and_then(Option::as_deref);
        text.unwrap_or_default()
    }
}

impl Explainer<'_> {
    /// The finding of a row of a table other than system calls; none if rows of this table, or
    /// without a known thread, cannot be explained.
    pub(super) fn row(
        &self,
        table: &str,
        id: i64,
        window: Window,
    ) -> Result<Option<Finding>, AnalysisError> {
        if table == BlockIoRow::TABLE.name {
            return self.block_request(id, window);
        }
        if table == RequestPhaseRow::TABLE.name {
            let found = self.find(RequestPhaseRow::TABLE, (id, window), &["request"], &[])?;
            let request = found.and_then(|found| found.number(0));
            let one = |id| crate::requests::one(self.tables, id, &self.query.recording);
            return request.map(one).transpose();
        }
        let of = OF_THREADS.iter().find(|of| of.table == table);
        let Some((of, table)) = of.zip(tables::by_name(table)) else {
            return Ok(None);
        };
        let found = self.find(table, (id, window), &["utid"], &[of.text])?;
        let Some((found, utid)) = found.and_then(|found| {
            let utid = found.number(0)?;
            Some((found, utid as i32))
        }) else {
            return Ok(None);
        };
        let target = (of.kind, format!("{}:{id}", of.prefix));
        let subject = self.subject_of_row(utid, target, what(of, found.text(0)), window);
        finding(self.tables, &subject).map(Some)
    }

    /// Where the time of a block request went: behind others in the queue and in the device, and
    /// its own.
    fn block_request(&self, id: i64, window: Window) -> Result<Option<Finding>, AnalysisError> {
        let columns = (&["utid", "bytes"], &["op", "dev_name"]);
        let found = self.find(BlockIoRow::TABLE, (id, window), columns.0, columns.1)?;
        let Some((found, utid)) = found.and_then(|found| {
            let utid = found.number(0)?;
            Some((found, utid as i32))
        }) else {
            return Ok(None);
        };
        let (op, dev) = (found.text(0), found.text(1));
        let what = match found.number(1) {
            None | Some(0) => format!("{op} on {dev}"),
            Some(bytes) => format!("{op} of {} on {dev}", size(bytes)),
        };
        let target = ("block", format!("block:{id}"));
        let subject = self.subject_of_row(utid, target, what, window);
        of_block_request(self.tables, &subject, id)
    }

    fn subject_of_row(
        &self,
        utid: i32,
        (kind, id): (&'static str, String),
        what: String,
        window: Window,
    ) -> Subject {
        Subject {
            utid,
            begin: window.begin,
            end: window.end,
            kind,
            reproduce: self.command(&format!("-w {id}")),
            id: Some(id),
            what,
            cut: None,
            only_waits: false,
            baseline: None,
            recording: self.query.recording.clone(),
        }
    }

    /// Numbers and texts of the row with this id in the window.
    fn find(
        &self,
        table: &'static Table,
        (id, window): (i64, Window),
        numbers: &[&'static str],
        texts: &[&'static str],
    ) -> Result<Option<Found>, AnalysisError> {
        let mut projection = Projection::new(table);
        let ids = projection.need("id");
        let numbers: Vec<_> = numbers.iter().map(|name| projection.need(name)).collect();
        let texts: Vec<_> = texts.iter().map(|name| projection.need(name)).collect();
        let mut found = None;
        in_order(self.tables, &projection.scan(Some(window)), |batch| {
            let ids = ids.ints(batch)?;
            let Some(row) = (0..batch.num_rows() as u32).find(|row| ids.at(*row) == id) else {
                return Ok(ControlFlow::Continue(()));
            };
            let mut values = Found {
                numbers: Vec::new(),
                texts: Vec::new(),
            };
            for column in &numbers {
                values.numbers.push(column.ints(batch)?.get(row));
            }
            for column in &texts {
                let text = column.texts(batch)?.get(row).map(str::to_owned);
                values.texts.push(text);
            }
            found = Some(values);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }
}

/// Description of a row, as the subject of a sentence: the name of the thread follows.
fn what(of: &OfThread, text: &str) -> String {
    match (of.table, text) {
        ("thread_state", "running") => "time on a CPU".into(),
        ("thread_state", "runnable") => "wait for a CPU".into(),
        ("thread_state", "sleeping") => "sleep".into(),
        ("thread_state", "uninterruptible") => "uninterruptible sleep".into(),
        ("thread_state", state) => format!("{state} state"),
        ("sched_slice", _) => "time slice".into(),
        ("lock_wait", kind) => format!("wait for a {kind} lock").replace("lock lock", "lock"),
        ("function_call", function) => format!("{function}()"),
        ("dns_query", "") => "DNS query".into(),
        ("dns_query", host) => format!("DNS query for {host}"),
        _ => "memory reclaim".into(),
    }
}

/// `4 KiB`, `1.5 MiB`.
fn size(bytes: i64) -> String {
    match bytes {
        ..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes.div_euclid(1024)),
        _ => format!("{:.1} MiB", bytes as f64 / (1 << 20) as f64),
    }
}
