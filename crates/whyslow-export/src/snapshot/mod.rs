//! Cuts a snapshot out of a recording, to be sent or kept: a recording of its own with the focus on
//! a window.
//!
//! It contains all rows that overlap the window or the time around it, unchanged, and the threads,
//! processes and stacks that these rows refer to or that lived then. Ids stay the same, so queries
//! of the window have the same answers as with the whole recording.

mod named;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use rustc_hash::FxHashSet;
use whyslow_model::row::Emit;
use whyslow_model::tables::{
    self, BlockIoRow, BlockShareRow, CallsiteRow, FrameRow, NetPacketRow, PageCountRow, ProcessRow,
    ProcessViewRow, SyscallRow, ThreadCommRow, ThreadRow,
};
use whyslow_model::{Ns, Row, Shape, Symbols, Table, Window, for_each_table};
use whyslow_store::{
    Cut, Existing, RecordingInfo, RecordingWriter, Scan, StoreError, Tables, each_row, rows,
};

use named::{Counting, Named, RowRefs};

/// Minimum time around the window: explanations use events before the start of an operation.
const AROUND_NS_MIN: Ns = 5_000_000_000;
/// Selected by their owner, not only by time.
const BY_NAME: [&str; 7] = [
    "block_share",
    "thread_comm",
    "process_view",
    "thread",
    "process",
    "callsite",
    "frame",
];
/// Kept whatever their time is: each applies until the next one.
// Of operations that started before, a former loss limits until when they are known to have lasted.
const STANDING: [&str; 2] = ["resolver_file", "lost_events"];
/// Rows between two checks for an interruption.
const ROWS_PER_CHECK: u64 = 1 << 16;
const SECOND: Ns = 1_000_000_000;

/// What to cut out.
#[derive(Debug, Clone)]
pub struct CutQuery {
    /// The focus of the snapshot.
    pub focus: Window,
    /// Time before and after it to keep; by default the length of the window, and at least
    /// five seconds.
    pub around: Option<Ns>,
    /// Digest of the source recording.
    pub digest: String,
}

impl CutQuery {
    /// The time range to keep, including its last nanosecond.
    fn kept(&self) -> Window {
        let around = self
            .around
            .unwrap_or_else(|| self.focus.length().max(AROUND_NS_MIN));
        Window::new(
            self.focus.begin.saturating_sub(around),
            self.focus.end.saturating_add(around).saturating_add(1),
        )
    }
}

/// Writes the snapshot as a recording.
pub fn cut(
    tables: &dyn Tables,
    query: &CutQuery,
    target: &Path,
    cancel: &AtomicBool,
) -> Result<RecordingInfo, StoreError> {
    let mut cutting = Cutting {
        tables,
        kept: query.kept(),
        writer: RecordingWriter::create(target, Existing::Refuse)?,
        symbols: Symbols::new(),
        named: Named::default(),
        crossing: Crossing::default(),
        cancel,
    };
    macro_rules! copy {
        ($($row:ident $field:ident),+) => {
            $(cutting.copy::<tables::$row>()?;)+
        };
    }
    for_each_table!(copy);
    cutting.shares()?;
    cutting.next_calls()?;
    cutting.threads()?;
    cutting.processes()?;
    cutting.stacks()?;
    let info = about(tables, query)?;
    cutting.writer.finish(&cutting.symbols, info)
}

fn about(tables: &dyn Tables, query: &CutQuery) -> Result<RecordingInfo, StoreError> {
    let (info, kept) = (tables.info(), query.kept());
    let whole = info.whole();
    let counted = tables::ALL.iter().map(|table| {
        let rows = info.rows_of_whole(table.name);
        (table.name.to_owned(), rows)
    });
    // A snapshot of a snapshot refers to the original recording.
    let digest = info.cut.as_ref().map(|cut| cut.digest.clone());
    Ok(RecordingInfo {
        begin_ns: kept.begin.clamp(info.begin_ns, info.end_ns),
        end_ns: (kept.end - 1).clamp(info.begin_ns, info.end_ns),
        cut: Some(Cut {
            digest: digest.unwrap_or_else(|| query.digest.clone()),
            begin_ns: whole.begin,
            end_ns: whole.end,
            focus_begin_ns: query.focus.begin,
            focus_end_ns: query.focus.end,
            rows: counted.filter(|(_, rows)| *rows > 0).collect(),
            recorded_words: recorded_words(tables)?,
        }),
        ..info.clone()
    })
}

/// Words that show, in addition to the rows, what was recorded at all.
fn recorded_words(tables: &dyn Tables) -> Result<BTreeMap<String, BTreeSet<String>>, StoreError> {
    let mut words = match &tables.info().cut {
        Some(cut) => cut.recorded_words.clone(),
        None => BTreeMap::new(),
    };
    if let Some(kinds) = tables.words(NetPacketRow::TABLE, "kind")? {
        words.insert(format!("{}.kind", NetPacketRow::TABLE.name), kinds);
    }
    let counts = words
        .entry(PageCountRow::TABLE.name.to_owned())
        .or_default();
    let mut counting = Counting::new(PageCountRow::TABLE);
    each_row::<PageCountRow>(tables, None, &mut Symbols::new(), |row, _| {
        row.put(&mut counting);
        Ok(())
    })?;
    counts.extend(counting.columns());
    words.retain(|_, words| !words.is_empty());
    Ok(words)
}

struct Cutting<'t> {
    tables: &'t dyn Tables,
    kept: Window,
    writer: RecordingWriter,
    symbols: Symbols,
    named: Named,
    crossing: Crossing,
    cancel: &'t AtomicBool,
}

/// Requests that extend beyond the kept time: requests merged into them may be outside, too.
#[derive(Default)]
struct Crossing {
    ids: FxHashSet<i64>,
    range: Option<Window>,
}

impl Crossing {
    fn add(&mut self, id: i64, ts: Ns, ts_end: Option<Ns>) {
        self.ids.insert(id);
        let end = ts_end.unwrap_or(Ns::MAX).saturating_add(1);
        let before = self.range.unwrap_or(Window::new(ts, end));
        self.range = Some(Window::new(before.begin.min(ts), before.end.max(end)));
    }
}

impl Cutting<'_> {
    /// Copies the rows that overlap the kept time, or all rows of tables without time.
    fn copy<R: Row>(&mut self) -> Result<(), StoreError>
    where
        RecordingWriter: Emit<R>,
    {
        let table = R::TABLE;
        if BY_NAME.contains(&table.name) {
            return Ok(());
        }
        let stands = table.shape == Shape::Entity || STANDING.contains(&table.name);
        let kept = of_table(table, self.kept);
        let window = (!stands).then_some(kept);
        let is_call = table.name == SyscallRow::TABLE.name;
        let is_request = table.name == BlockIoRow::TABLE.name;
        let mut refs = RowRefs::new(table);
        let (named, crossing) = (&mut self.named, &mut self.crossing);
        let keep = |row: &R| {
            refs.read(row);
            let (ts, id) = row.key();
            if !stands && !refs.overlaps(ts, kept) {
                return false;
            }
            named.take(&refs);
            if is_call {
                named.note_end(&refs, (ts, id));
            }
            if is_request && !refs.lies_in(ts, kept) {
                crossing.add(id, ts, refs.ts_end());
            }
            true
        };
        let sink = (&mut self.writer, &mut self.symbols, self.cancel);
        filtered(self.tables, window, sink, keep)
    }

    fn shares(&mut self) -> Result<(), StoreError> {
        let (kept, crossing) = (self.kept, &self.crossing);
        let window = crossing.range.map_or(kept, |range| {
            Window::new(kept.begin.min(range.begin), kept.end.max(range.end))
        });
        let (named, mut refs) = (&mut self.named, RowRefs::new(BlockShareRow::TABLE));
        let keep = |row: &BlockShareRow| {
            let keeps = kept.contains(row.ts) || crossing.ids.contains(&row.block_io_id);
            if keeps {
                refs.read(row);
                named.take(&refs);
            }
            keeps
        };
        let sink = (&mut self.writer, &mut self.symbols, self.cancel);
        filtered(self.tables, Some(window), sink, keep)
    }

    /// For threads whose last kept call has no end, also keeps the next call: its existence shows
    /// whether the thread was in the call until the end. The next call may start after the kept
    /// time, or before it if the call started even earlier.
    fn next_calls(&mut self) -> Result<(), StoreError> {
        let mut wanted = std::mem::take(&mut self.named.unfinished);
        let Some(first) = wanted.values().map(|(ts, _)| *ts).min() else {
            return Ok(());
        };
        let mut found = Vec::new();
        let after = Window::new(first, Ns::MAX);
        let scan = Scan {
            table: SyscallRow::TABLE,
            columns: vec!["ts", "id", "utid"],
            window: Some(after),
        };
        self.tables.scan(&scan, &mut |batch| {
            let (ts, id) = (batch.column(0), batch.column(1));
            let (ts, id) = (
                ts.as_primitive::<Int64Type>(),
                id.as_primitive::<Int64Type>(),
            );
            let utids = batch.column(2).as_primitive::<Int32Type>();
            for row in (0..batch.num_rows()).filter(|row| utids.is_valid(*row)) {
                let (utid, key) = (utids.value(row), (ts.value(row), id.value(row)));
                if wanted.get(&utid).is_some_and(|call| *call < key) {
                    wanted.remove(&utid);
                    found.push(key);
                }
            }
            let is_over = wanted.is_empty() || self.cancel.load(Ordering::Relaxed);
            Ok(if is_over {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            })
        })?;
        for (ts, id) in found {
            let sink = (&mut self.writer, &mut self.symbols, self.cancel);
            let here = Some(Window::new(ts, ts.saturating_add(1)));
            filtered(self.tables, here, sink, |row: &SyscallRow| row.id == id)?;
        }
        Ok(())
    }

    fn threads(&mut self) -> Result<(), StoreError> {
        let (kept, named) = (self.kept, &mut self.named);
        let keep = |row: &ThreadRow| {
            let keeps = row.is_tracer
                || named.threads.contains(&row.utid)
                || lived(kept, row.ts_start, row.ts_exit);
            if keeps {
                named.threads.insert(row.utid);
                named.processes.extend(row.upid);
            }
            keeps
        };
        let sink = (&mut self.writer, &mut self.symbols, self.cancel);
        filtered::<ThreadRow>(self.tables, None, sink, keep)?;
        let keep = |row: &ThreadCommRow| {
            named.threads.contains(&row.utid) && kept.overlaps(row.ts, row.ts_end)
        };
        let sink = (&mut self.writer, &mut self.symbols, self.cancel);
        filtered::<ThreadCommRow>(self.tables, Some(kept), sink, keep)
    }

    /// With their ancestors.
    fn processes(&mut self) -> Result<(), StoreError> {
        let all = rows::<ProcessRow>(self.tables, &mut self.symbols)?;
        let (kept, named) = (self.kept, &mut self.named);
        for row in &all {
            if row.is_tracer || lived(kept, row.ts_start, row.ts_exit) {
                named.processes.insert(row.upid);
            }
        }
        named.add_parents(all.iter().map(|row| (row.upid, row.parent_upid)));
        let keep = |row: &ProcessRow| named.processes.contains(&row.upid);
        for row in all.into_iter().filter(keep) {
            self.writer.emit(row);
            self.writer.flush_ready(&self.symbols)?;
        }
        let keep = |row: &ProcessViewRow| named.processes.contains(&row.upid) && row.ts < kept.end;
        let sink = (&mut self.writer, &mut self.symbols, self.cancel);
        filtered::<ProcessViewRow>(self.tables, None, sink, keep)
    }

    /// With all their callers.
    fn stacks(&mut self) -> Result<(), StoreError> {
        let all = rows::<CallsiteRow>(self.tables, &mut self.symbols)?;
        let named = &mut self.named;
        // A caller has a lower id than its callees.
        for row in all.iter().rev() {
            if named.callsites.contains(&row.id) {
                named.callsites.extend(row.parent_id);
            }
        }
        let mut frames = FxHashSet::default();
        for row in all {
            if named.callsites.contains(&row.id) {
                frames.insert(row.frame_id);
                self.writer.emit(row);
                self.writer.flush_ready(&self.symbols)?;
            }
        }
        let sink = (&mut self.writer, &mut self.symbols, self.cancel);
        filtered(self.tables, None, sink, |row: &FrameRow| {
            frames.contains(&row.id)
        })
    }
}

/// Pages are counted per second, at the start of the second.
fn of_table(table: &Table, kept: Window) -> Window {
    if table.name != PageCountRow::TABLE.name {
        return kept;
    }
    Window::new(kept.begin.saturating_sub(SECOND), kept.end)
}

/// The same rule as in queries of threads.
fn lived(kept: Window, start: Option<Ns>, exit: Option<Ns>) -> bool {
    start.is_none_or(|start| start < kept.end) && exit.is_none_or(|exit| exit > kept.begin)
}

type Into<'s> = (&'s mut RecordingWriter, &'s mut Symbols, &'s AtomicBool);

/// Copies the rows to keep.
fn filtered<R: Row>(
    tables: &dyn Tables,
    window: Option<Window>,
    (writer, symbols, cancel): Into<'_>,
    mut keep: impl FnMut(&R) -> bool,
) -> Result<(), StoreError>
where
    RecordingWriter: Emit<R>,
{
    let mut seen = 0_u64;
    each_row::<R>(tables, window, symbols, |row, symbols| {
        seen += 1;
        if seen.is_multiple_of(ROWS_PER_CHECK) && cancel.load(Ordering::Relaxed) {
            return Err(StoreError::Stopped);
        }
        if !keep(&row) {
            return Ok(());
        }
        writer.emit(row);
        writer.flush_ready(symbols)
    })
}
