//! Reads of old data from a file that other processes append to: its pages are no longer in the
//! page cache, so each read waits for the disk, on some file systems while holding the inode lock.

use std::ops::ControlFlow;

use rustc_hash::FxHashMap;
use whyslow_analysis::AnalysisError;
use whyslow_analysis::read::{Projection, in_order};
use whyslow_model::row::Row;
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::{BlockIoRow, SyscallRow};
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use super::calls::Counted;
use super::{actor, mebibytes, template};
use crate::report::{Observation, Thing};

/// Less device I/O is readahead at the edge of the cached data.
const DEVICE_BYTES_MIN: i64 = 1 << 20;

/// Reads of one file by one process.
#[derive(Debug, Default)]
struct Reads {
    bytes: i64,
    device_bytes: i64,
    requests: u64,
    time: Ns,
    first: Ns,
    last: Ns,
    tid: i32,
    peer: Option<String>,
    /// Smallest offset read from, if known.
    offset: Option<i64>,
    longest: (Ns, i64),
}

/// By file: its known end, and the number of writes by process.
type Writers = FxHashMap<String, (i64, FxHashMap<i32, u64>)>;

/// A read request: thread, time, bytes.
type Read = (i32, Ns, i64);

/// Reads and writes by file.
#[derive(Debug, Default)]
struct Files {
    reads: FxHashMap<(i32, String), Reads>,
    writes: Writers,
}

/// A call on a file.
struct Call<'b> {
    ts: Ns,
    dur: Ns,
    id: i64,
    upid: i32,
    tid: i32,
    bytes: i64,
    offset: Option<i64>,
    path: &'b str,
    path2: Option<&'b str>,
}

impl Files {
    fn read(
        tables: &dyn Tables,
        window: Option<Window>,
        requests: &[Read],
    ) -> Result<Self, AnalysisError> {
        let mut files = Self::default();
        let mut projection = Projection::new(SyscallRow::TABLE);
        let [ts, dur, id, upid, utid, tid, bytes, offset] = [
            "ts",
            "dur",
            "id",
            "upid",
            "utid",
            "tid",
            "bytes",
            "file_offset",
        ]
        .map(|name| projection.need(name));
        let [op, path, path2, class] =
            ["op", "path", "path2", "fd_class"].map(|name| projection.need(name));
        in_order(tables, &projection.scan(window), |batch| {
            let (ts, dur, id) = (ts.ints(batch)?, dur.ints(batch)?, id.ints(batch)?);
            let (upid, utid, tid) = (upid.ints(batch)?, utid.ints(batch)?, tid.ints(batch)?);
            let (bytes, offset) = (bytes.ints(batch)?, offset.ints(batch)?);
            let (op, path, path2) = (op.texts(batch)?, path.texts(batch)?, path2.texts(batch)?);
            let class = class.texts(batch)?;
            for row in 0..batch.num_rows() as u32 {
                let (Some(path), Some("file"), Some(upid)) =
                    (path.get(row), class.get(row), upid.get(row))
                else {
                    continue;
                };
                let call = Call {
                    ts: ts.at(row),
                    dur: dur.get(row).unwrap_or(0),
                    id: id.at(row),
                    upid: upid as i32,
                    tid: tid.or_zero(row) as i32,
                    bytes: bytes.get(row).unwrap_or(0),
                    offset: offset.get(row),
                    path,
                    path2: path2.get(row),
                };
                match op.get(row) {
                    Some("write") if call.bytes > 0 => files.write(&call),
                    Some("read" | "read_write") => {
                        let span = (call.ts, call.ts + call.dur);
                        files.add(&call, in_call(requests, utid.or_zero(row) as i32, span));
                    }
                    _ => {}
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(files)
    }

    fn write(&mut self, call: &Call<'_>) {
        let (end, by) = self.writes.entry(call.path.to_owned()).or_default();
        *end = (*end).max(call.offset.map_or(0, |at| at + call.bytes));
        *by.entry(call.upid).or_default() += 1;
    }

    /// Adds a read call, with the bytes and number of device requests within it.
    fn add(&mut self, call: &Call<'_>, (device_bytes, requests): (i64, u64)) {
        let key = (call.upid, call.path.to_owned());
        // Most reads touch no device.
        if requests == 0 && !self.reads.contains_key(&key) {
            return;
        }
        let sum = self.reads.entry(key).or_insert(Reads {
            first: call.ts,
            ..Reads::default()
        });
        sum.bytes += call.bytes;
        sum.device_bytes += device_bytes;
        sum.requests += requests;
        sum.time += call.dur;
        sum.last = call.ts + call.dur;
        sum.tid = call.tid;
        sum.longest = sum.longest.max((call.dur, call.id));
        if sum.peer.is_none() {
            sum.peer = call.path2.map(str::to_owned);
        }
        sum.offset = match (sum.offset, call.offset) {
            (Some(least), Some(offset)) => Some(least.min(offset)),
            (known, offset) => known.or(offset),
        };
    }
}

pub(super) fn find(
    tables: &dyn Tables,
    window: Option<Window>,
    counted: &Counted,
    recording: &str,
) -> Result<Vec<Observation>, AnalysisError> {
    let requests = device_reads(tables, window)?;
    if requests.iter().map(|(_, _, bytes)| bytes).sum::<i64>() < DEVICE_BYTES_MIN {
        return Ok(Vec::new());
    }
    let Files { reads, writes } = Files::read(tables, window, &requests)?;
    let mut found: Vec<((i32, String), Reads)> = reads.into_iter().collect();
    found.index_sort_by_key(|((upid, path), reads)| {
        (std::cmp::Reverse(reads.device_bytes), *upid, path.clone())
    });
    let observations = found.into_iter().filter_map(|((upid, path), reads)| {
        if reads.device_bytes < DEVICE_BYTES_MIN || counted.process(upid).is_tracer {
            return None;
        }
        let (writer, newer) = writer_of(&path, upid, &writes)?;
        Some(observation(
            (upid, &path),
            &reads,
            (writer, newer),
            counted,
            recording,
        ))
    });
    Ok(observations.collect())
}

/// The process that writes most to the file, or to a newer file of its pattern; and the end of the
/// file.
fn writer_of<'w>(path: &str, reader: i32, writes: &'w Writers) -> Option<((i32, &'w str), i64)> {
    let most = |by: &FxHashMap<i32, u64>| {
        let others = by.iter().filter(|(writer, _)| **writer != reader);
        others
            .max_by_key(|(writer, count)| (**count, -**writer))
            .map(|(writer, _)| *writer)
    };
    if let Some((name, (end, by))) = writes.get_key_value(path) {
        return Some(((most(by)?, name), *end));
    }
    let pattern = template::of_path(path);
    if !pattern.contains('*') {
        return None;
    }
    let is_newer = |name: &str| name > path && template::of_path(name) == pattern;
    let newer = writes.iter().filter(|(name, _)| is_newer(name));
    let (name, (_, by)) = newer.max_by_key(|(name, _)| name.as_str())?;
    Some(((most(by)?, name), 0))
}

fn observation(
    (upid, path): (i32, &str),
    reads: &Reads,
    ((writer, written), end): ((i32, &str), i64),
    counted: &Counted,
    recording: &str,
) -> Observation {
    let (process, other) = (counted.process(upid), counted.process(writer));
    let pid = |pid: Option<i32>| pid.map_or_else(String::new, |pid| format!("[{pid}]"));
    let peer = reads
        .peer
        .as_ref()
        .map_or_else(String::new, |peer| format!(" for {peer}"));
    let distance = match reads.offset {
        Some(offset) if end > offset => format!(", {} before its end", mebibytes(end - offset)),
        _ => String::new(),
    };
    let meanwhile = if written == path {
        format!(
            "while {}{} was writing to the same file",
            other.comm,
            pid(other.pid)
        )
    } else {
        format!(
            "while {}{} was writing to {written}",
            other.comm,
            pid(other.pid)
        )
    };
    let summary = format!(
        "{}{} read old data of {path}{peer}{distance}: {} of {} came from disk in {} requests, {} in total, {meanwhile}",
        process.comm,
        pid(process.pid),
        mebibytes(reads.device_bytes),
        mebibytes(reads.bytes),
        reads.requests,
        crate::sentence::length(reads.time),
    );
    let mut numbers = vec![
        ("bytes_read".to_owned(), reads.bytes as f64),
        ("bytes_from_device".to_owned(), reads.device_bytes as f64),
        ("device_reads".to_owned(), reads.requests as f64),
        ("time_ns".to_owned(), reads.time as f64),
    ];
    if let Some(offset) = reads.offset.filter(|offset| end > *offset) {
        numbers.push(("distance_bytes".to_owned(), (end - offset) as f64));
    }
    Observation {
        kind: "old_data".into(),
        culprit: actor(&process.comm, process.pid, Some(reads.tid)),
        object: Some(Thing {
            kind: "file".into(),
            name: path.to_owned(),
        }),
        begin_ns: reads.first,
        end_ns: reads.last,
        summary,
        numbers,
        evidence: vec![format!("op:{}", reads.longest.1)],
        shown_by: Some(format!("whyslow block top {recording} -w op:{}", reads.longest.1)),
        suggestions: vec![
            "use smaller files (segments), so that readers of old data and writers do not share one".into(),
            "let lagging readers use a replica, or run at another time".into(),
        ],
    }
}

/// Bytes and number of requests of a thread in a range.
fn in_call(requests: &[Read], utid: i32, (begin, end): (Ns, Ns)) -> (i64, u64) {
    let from = requests.partition_point(|(of, at, _)| (*of, *at) < (utid, begin));
    let inside = requests[from..]
        .iter()
        .take_while(|(of, at, _)| *of == utid && *at < end);
    inside.fold((0, 0), |(bytes, number), (_, _, more)| {
        (bytes + more, number + 1)
    })
}

/// Device reads, by thread and start.
fn device_reads(tables: &dyn Tables, window: Option<Window>) -> Result<Vec<Read>, AnalysisError> {
    let mut projection = Projection::new(BlockIoRow::TABLE);
    let [ts, utid, bytes] = ["ts", "utid", "bytes"].map(|name| projection.need(name));
    let op = projection.need("op");
    let mut found = Vec::new();
    in_order(tables, &projection.scan(window), |batch| {
        let (ts, utid, bytes) = (ts.ints(batch)?, utid.ints(batch)?, bytes.ints(batch)?);
        let op = op.texts(batch)?;
        for row in 0..batch.num_rows() as u32 {
            if let (Some("read"), Some(utid)) = (op.get(row), utid.get(row)) {
                found.push((utid as i32, ts.at(row), bytes.at(row)));
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    found.sort_unstable();
    Ok(found)
}
