//! Utilisation of block devices, for the whole window or per interval, with the columns of `iostat
//! -x`.
//!
//! A request counts in the interval in which it completes, as in iostat; one that completes after
//! the window, or never, counts in the last interval. Utilisation is the union of the times from
//! the first event of each request to its completion; the average queue size is their sum; both are
//! divided by the length of the interval. A completion without a start shows no such time, nor does
//! one that may belong to another request; a request without a completion does until the next loss.

use std::collections::BTreeMap;

use arrow_array::{Array as _, RecordBatch};
use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::sort::IndexSort;

use crate::AnalysisError;
use crate::context::Context;
use crate::filter::Verdicts;
use crate::fold::fold_in_turn;
use crate::keys::{Key, KeyValue};
use crate::kinds::BLOCK;
use crate::lost_ends::{Length, LostEnds};
use crate::scan::{ColumnRef, Projection, per_row, per_word};
use crate::sweep::{InFlight, Parts};
use crate::uncertain::{self, Uncertain};
use whyslow_model::histogram::Histogram;

/// Level of detail of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    Whole,
    /// For `use`: without sectors and writers, but with the number of failed requests.
    Brief,
}

pub(crate) fn table(context: &Context<'_>, detail: Detail) -> Result<AnswerTable, AnalysisError> {
    let parts = Parts::of_query(context);
    let devices = sweep(context, parts, detail)?;
    let by_time = context.interval.is_some();
    let mut table = AnswerTable::new("devices", "block devices", columns(by_time, detail));
    let mut rows = Vec::new();
    for (name, device) in devices {
        let (in_flight, sums) = device.into_parts();
        let (busy, total) = in_flight.into_sums();
        for part in 0..parts.count() {
            let sum = sums.get(&part);
            if sum.is_none() && total[part] == 0 && by_time {
                continue;
            }
            let none = PartSum::default();
            let sum = sum.unwrap_or(&none);
            let order = if by_time {
                (part, 0)
            } else {
                (0, -(sum.ways[READ].bytes + sum.ways[WRITE].bytes))
            };
            let mut row = Vec::with_capacity(table.columns.len());
            if by_time {
                row.push(parts.begin(part).into());
            }
            row.push(name.as_str().into());
            let seconds = parts.length(part) as f64 / 1e9;
            sum.cells(detail, (seconds, busy[part], total[part]), &mut row);
            row.push(match detail {
                Detail::Whole => sum.top_writer(context).into(),
                Detail::Brief => sum.more.into(),
            });
            rows.push((order, row));
        }
    }
    // Stable: devices of one time, or with equal bytes, are in order of name.
    rows.index_sort_by_key(|(order, _)| *order);
    table.rows = rows.into_iter().map(|(_, row)| row).collect();
    context.finish_blocks(&mut table, context.limit(0));
    Ok(table)
}

fn columns(by_time: bool, detail: Detail) -> Vec<AnswerColumn> {
    let column = AnswerColumn::new;
    let mut columns = Vec::new();
    if by_time {
        columns.push(column("ts_ns", "time", Measure::Time));
    }
    columns.extend([
        column("dev", "dev", Measure::Text),
        column("requests", "requests", Measure::Count).priority(3),
    ]);
    if detail == Detail::Whole {
        columns.push(column("sectors", "sectors", Measure::Count).priority(7));
    }
    columns.extend([
        column("read_bytes", "read", Measure::Bytes).priority(4),
        column("write_bytes", "written", Measure::Bytes).priority(4),
        column("r_per_s", "r/s", Measure::Rate),
        column("w_per_s", "w/s", Measure::Rate),
        column("read_bytes_per_s", "rkB/s", Measure::ByteRate),
        column("write_bytes_per_s", "wkB/s", Measure::ByteRate),
        column("r_await_ns", "r_await", Measure::Duration).priority(2),
        column("w_await_ns", "w_await", Measure::Duration).priority(2),
        column("await_ns", "await", Measure::Duration).priority(1),
        column("p99_ns", "p99", Measure::Duration).priority(1),
        column("aqu_sz", "aqu-sz", Measure::Number),
        column("busy_ns", "busy", Measure::Duration).priority(6),
        column("util_ratio", "%util", Measure::Ratio),
    ]);
    columns.push(match detail {
        Detail::Whole => column("top_writer", "top writer", Measure::Text).priority(2),
        Detail::Brief => column("errors", "errors", Measure::Count),
    });
    columns
}

fn sweep(
    context: &Context<'_>,
    parts: Parts,
    detail: Detail,
) -> Result<BTreeMap<String, Device>, AnalysisError> {
    let mut pass = context.pass_with_cut(&BLOCK, &[], &context.query.filter)?;
    let columns = Columns::new(context, detail, &mut pass.projection)?;
    uncertain::note(context, &BLOCK)?;
    let ends = &*context.lost_ends;
    let counts_ended = context.query.counts_ended;
    let piece = || Piece {
        verdicts: pass.selector.verdicts(),
        rows: Vec::new(),
        devices: Vec::new(),
    };
    let each = |piece: &mut Piece, batch: &RecordBatch| {
        let Piece {
            verdicts,
            rows,
            devices,
        } = piece;
        pass.selector.select(verdicts, batch, rows)?;
        let mut place_of = |name: &str| {
            let known = devices.iter().position(|(known, _)| known == name);
            known.unwrap_or_else(|| {
                devices.push((name.to_owned(), Device::new(parts)));
                devices.len() - 1
            })
        };
        let places = columns.places(batch, rows, &mut place_of)?;
        columns.each(batch, rows, &places, ends, |place, request| {
            let device = &mut devices[place].1;
            device.in_flight.add(request.ts, request.known_until);
            if request.is_ended || !counts_ended {
                device.count(parts, request, detail);
            }
        })
    };
    let mut all: BTreeMap<String, Device> = BTreeMap::new();
    let scan = pass.projection.scan(pass.selected);
    fold_in_turn(context.tables, &scan, piece, each, |piece| {
        for (name, device) in piece.devices {
            all.entry(name)
                .or_insert_with(|| Device::new(parts))
                .append(device);
        }
    })?;
    Ok(all)
}

/// Result of a piece of the table, by device.
struct Piece {
    verdicts: Verdicts,
    rows: Vec<u32>,
    devices: Vec<(String, Device)>,
}

struct Columns {
    dev: ColumnRef,
    op: ColumnRef,
    ts: ColumnRef,
    dur: ColumnRef,
    ts_end: ColumnRef,
    bytes: ColumnRef,
    uncertain: Uncertain,
    more: More,
}

/// Columns that only some answers need.
enum More {
    Whole { upid: ColumnRef, sectors: ColumnRef },
    Brief { error: ColumnRef },
}

/// Index of an operation in a sum.
fn way_of(op: &str) -> u8 {
    match op {
        "read" => READ as u8,
        "write" => WRITE as u8,
        _ => OTHER as u8,
    }
}

const READ: usize = 0;
const WRITE: usize = 1;
const OTHER: usize = 2;

/// Stands for an unknown number.
const NONE: i64 = i64::MIN;

struct Request {
    way: usize,
    /// Only if the answer needs the writers.
    upid: i64,
    ts: Ns,
    dur: Ns,
    end: Ns,
    /// Otherwise `end` is the end of the recording.
    is_ended: bool,
    /// Until when it is known to have been in flight.
    known_until: Ns,
    bytes: i64,
    /// Sectors, or 1 for a failed request.
    more: i64,
}

impl Columns {
    fn new(
        context: &Context<'_>,
        detail: Detail,
        projection: &mut Projection,
    ) -> Result<Self, AnalysisError> {
        Ok(Self {
            uncertain: Uncertain::new(context.tables, BLOCK.table, projection)?,
            dev: projection.need("dev_name"),
            op: projection.need("op"),
            ts: projection.need("ts"),
            dur: projection.need("dur"),
            ts_end: projection.need("ts_end"),
            bytes: projection.need("bytes"),
            more: match detail {
                Detail::Whole => More::Whole {
                    upid: projection.need("upid"),
                    sectors: projection.need("sectors"),
                },
                Detail::Brief => More::Brief {
                    error: projection.need("error"),
                },
            },
        })
    }

    /// The device number of each row: a device is looked up once per batch, not per row.
    fn places(
        &self,
        batch: &RecordBatch,
        rows: &[u32],
        place_of: &mut impl FnMut(&str) -> usize,
    ) -> Result<Vec<u32>, AnalysisError> {
        const UNSET: u32 = u32::MAX;
        let dev = self.dev.texts(batch)?;
        let mut known = vec![UNSET; dev.words.len()];
        let mut place = |row: &u32| {
            let Some(word) = dev.key(*row) else {
                return place_of("unknown") as u32;
            };
            if known[word] == UNSET {
                known[word] = place_of(dev.words.value(word)) as u32;
            }
            known[word]
        };
        Ok(rows.iter().map(&mut place).collect())
    }

    fn each(
        &self,
        batch: &RecordBatch,
        rows: &[u32],
        places: &[u32],
        ends: &LostEnds,
        mut each: impl FnMut(usize, &Request),
    ) -> Result<(), AnalysisError> {
        let op = self.op.texts(batch)?;
        let ways = per_row(&op, &per_word(&op, way_of), OTHER as u8);
        let of = |column: ColumnRef, none: i64| -> Result<_, AnalysisError> {
            Ok(column.ints(batch)?.or(none))
        };
        let (ts, dur) = (of(self.ts, 0)?, of(self.dur, NONE)?);
        let (ts_end, bytes) = (of(self.ts_end, NONE)?, of(self.bytes, 0)?);
        let (upid, more) = match self.more {
            More::Whole { upid, sectors } => (Some(of(upid, NONE)?), of(sectors, 0)?),
            More::Brief { error } => {
                let errors = of(error, 0)?;
                let failed = errors.iter().map(|error| i64::from(*error > 0));
                (None, failed.collect())
            }
        };
        let uncertain = self.uncertain.of(batch)?;
        for (row, place) in rows.iter().zip(places) {
            let is_uncertain = uncertain.has(*row);
            let row = *row as usize;
            let is_ended = ts_end[row] != NONE;
            let dur = if is_uncertain { NONE } else { dur[row] };
            let request = Request {
                way: usize::from(ways[row]),
                upid: upid.as_ref().map_or(NONE, |upid| upid[row]),
                ts: ts[row],
                dur,
                end: if is_ended {
                    ts_end[row]
                } else {
                    ends.recording_end()
                },
                is_ended,
                known_until: ends.known_end(
                    (ts[row], is_ended.then_some(ts_end[row])),
                    Length::of((dur != NONE).then_some(dur), is_uncertain),
                ),
                bytes: bytes[row],
                more: more[row],
            };
            each(*place as usize, &request);
        }
        Ok(())
    }
}

struct Device {
    in_flight: InFlight,
    /// The part in which requests currently arrive; the others are in `parts`.
    current: (usize, PartSum),
    parts: BTreeMap<usize, PartSum>,
}

/// Branch-free, because what a request does is unpredictable: a misprediction costs more than all
/// of the additions.
#[derive(Default)]
struct Way {
    count: i64,
    bytes: i64,
    waited: i128,
    completed: i64,
}

#[derive(Default)]
struct PartSum {
    /// For reads, writes and others.
    ways: [Way; 3],
    more: i64,
    durations: Histogram,
    writers: Writers,
}

/// Smaller process numbers are looked up in a table, larger ones in a hash map.
const SMALL: usize = 1 << 12;

/// Bytes written by process.
#[derive(Default)]
struct Writers {
    /// Of the current part: empty in those put aside.
    small: Vec<i64>,
    others: FxHashMap<Option<i64>, i64>,
}

impl Writers {
    /// Only counts the bytes of writes.
    #[inline]
    fn add(&mut self, upid: i64, bytes: i64, writes: bool) {
        let place = usize::try_from(upid).unwrap_or(usize::MAX);
        match self.small.get_mut(place) {
            Some(sum) => *sum += bytes & -i64::from(writes),
            None if writes => self.add_new(upid, bytes),
            None => {}
        }
    }

    #[inline(never)]
    fn add_new(&mut self, upid: i64, bytes: i64) {
        match usize::try_from(upid) {
            Ok(place) if place < SMALL => {
                self.small.resize(place + 1, 0);
                self.small[place] += bytes;
            }
            _ => {
                let upid = (upid != NONE).then_some(upid);
                *self.others.entry(upid).or_default() += bytes;
            }
        }
    }

    /// Drops processes that wrote nothing.
    fn put_aside(&mut self) {
        let small = (0..).zip(std::mem::take(&mut self.small));
        for (upid, bytes) in small.filter(|(_, bytes)| *bytes > 0) {
            *self.others.entry(Some(upid)).or_default() += bytes;
        }
    }

    /// The process that wrote most; the one with the lowest number on a tie.
    fn top(&self) -> Option<i64> {
        let all = self.others.iter().filter(|(_, bytes)| **bytes > 0);
        let (upid, _) = all.max_by_key(|(upid, bytes)| (**bytes, std::cmp::Reverse(**upid)))?;
        *upid
    }
}

impl Device {
    fn new(parts: Parts) -> Self {
        Self {
            in_flight: InFlight::new(parts),
            current: (0, PartSum::default()),
            parts: BTreeMap::new(),
        }
    }

    /// All parts in which requests completed.
    fn into_parts(mut self) -> (InFlight, BTreeMap<usize, PartSum>) {
        self.put_aside();
        (self.in_flight, self.parts)
    }

    /// Appends the next piece of the device.
    fn append(&mut self, later: Device) {
        let (in_flight, parts) = later.into_parts();
        self.in_flight.append(in_flight);
        for (part, sum) in parts {
            self.parts.entry(part).or_default().merge(sum);
        }
    }

    fn put_aside(&mut self) {
        let (part, mut sum) = std::mem::take(&mut self.current);
        sum.writers.put_aside();
        if sum.count() > 0 {
            self.parts.insert(part, sum);
        }
    }

    #[inline(never)]
    fn change_to(&mut self, part: usize) {
        self.put_aside();
        self.current = (part, self.parts.remove(&part).unwrap_or_default());
    }

    /// Counts a completed request; its time in flight is added separately.
    fn count(&mut self, parts: Parts, request: &Request, detail: Detail) {
        let part = parts.of(request.end);
        if part != self.current.0 {
            self.change_to(part);
        }
        let sum = &mut self.current.1;
        sum.more += request.more;
        let is_known = request.dur != NONE;
        if is_known {
            sum.durations.add(request.dur);
        }
        let way = &mut sum.ways[request.way.min(OTHER)];
        way.count += 1;
        way.bytes += request.bytes;
        way.waited += i128::from(request.dur & -i64::from(is_known));
        way.completed += i64::from(is_known);
        if detail == Detail::Whole {
            let writes = request.way == WRITE;
            sum.writers.add(request.upid, request.bytes, writes);
        }
    }
}

impl Way {
    fn merge(&mut self, other: &Way) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.waited += other.waited;
        self.completed += other.completed;
    }
}

impl PartSum {
    /// Merges those put aside.
    fn merge(&mut self, other: PartSum) {
        for (way, more) in self.ways.iter_mut().zip(&other.ways) {
            way.merge(more);
        }
        self.more += other.more;
        self.durations.merge(&other.durations);
        for (upid, bytes) in other.writers.others {
            *self.writers.others.entry(upid).or_default() += bytes;
        }
    }

    fn count(&self) -> i64 {
        self.ways.iter().map(|way| way.count).sum()
    }

    /// Cells from `requests` to the utilisation; for an interval of `seconds`, the time busy, and
    /// the total time in flight.
    fn cells(&self, detail: Detail, (seconds, busy, total): (f64, Ns, Ns), row: &mut Vec<Value>) {
        let per_second = |amount: f64| Value::from((seconds > 0.0).then(|| amount / seconds));
        let average =
            |way: &Way| (way.completed > 0).then(|| way.waited as f64 / way.completed as f64);
        let [read, write, _] = &self.ways;
        row.push(self.count().into());
        if detail == Detail::Whole {
            row.push(self.more.into());
        }
        row.extend([
            read.bytes.into(),
            write.bytes.into(),
            per_second(read.count as f64),
            per_second(write.count as f64),
            per_second(read.bytes as f64),
            per_second(write.bytes as f64),
            average(read).into(),
            average(write).into(),
            self.durations.sums().mean().into(),
            self.durations.percentile(990).into(),
            per_second(total as f64 / 1e9),
            busy.into(),
            per_second(busy as f64 / 1e9),
        ]);
    }

    fn top_writer(&self, context: &Context<'_>) -> Option<String> {
        let upid = self.writers.top()?;
        Some(Key::Process.label(&KeyValue::Int(upid), &context.names))
    }
}
