//! Late rows on their way to the `_long` file: sorted runs in one unnamed temporary file.
//!
//! Goal: rows that arrive after their position was written still end up in one sorted file, with
//! bounded memory however many there are. Runs in Parquet would have to be decoded and merged batch
//! by batch, which is slow if rows of many runs interleave; and rows cannot be rebuilt from bytes.
//! So a run has fixed-width records per table, and merging copies cells from the record with the
//! lowest key into columns.
//!
//! Record: key (`ts` and id, 8 bytes each), then for every column one byte (1 = present) and the
//! value: 8 bytes for `I64` and `F64`, 4 for `I32` and text (its symbol), 1 for `Bool`; all
//! little-endian.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use whyslow_model::{ColumnType, Ns, Sink, Sym, Table};

use crate::limits;

type Key = (Ns, i64);

const KEY_BYTES: usize = 16;

fn width(kind: ColumnType) -> usize {
    match kind {
        ColumnType::I64 | ColumnType::F64 => 8,
        ColumnType::I32 | ColumnType::Utf8 => 4,
        ColumnType::Bool => 1,
    }
}

fn record_bytes(table: &Table) -> usize {
    KEY_BYTES
        + table
            .columns
            .iter()
            .map(|column| 1 + width(column.kind))
            .sum::<usize>()
}

/// A record that receives the cells of a row.
pub(crate) struct Record<'b>(&'b mut Vec<u8>);

impl Record<'_> {
    fn cell<const N: usize>(&mut self, value: Option<[u8; N]>) {
        self.0.push(u8::from(value.is_some()));
        self.0.extend_from_slice(&value.unwrap_or([0; N]));
    }
}

impl Sink for Record<'_> {
    fn i64(&mut self, _: usize, value: Option<i64>) {
        self.cell(value.map(i64::to_le_bytes));
    }
    fn i32(&mut self, _: usize, value: Option<i32>) {
        self.cell(value.map(i32::to_le_bytes));
    }
    fn f64(&mut self, _: usize, value: Option<f64>) {
        self.cell(value.map(f64::to_le_bytes));
    }
    fn bool(&mut self, _: usize, value: Option<bool>) {
        self.cell(value.map(|value| [u8::from(value)]));
    }
    fn sym(&mut self, _: usize, value: Option<Sym>) {
        self.cell(value.map(|value| value.0.to_le_bytes()));
    }
}

/// Puts the cells of the next row and returns its key; `None` after the last one.
pub(crate) type PutNext<'n> = dyn FnMut(&mut Record<'_>) -> Option<Key> + 'n;

/// Sorted runs of one table.
pub(crate) struct Spill {
    file: File,
    table: &'static Table,
    runs: Vec<std::ops::Range<u64>>,
    end: u64,
}

impl Spill {
    pub(crate) fn new(file: File, table: &'static Table) -> Self {
        Self {
            file,
            table,
            runs: Vec::new(),
            end: 0,
        }
    }

    /// Writes rows, in the given order, as one run.
    pub(crate) fn write_run(&mut self, next: &mut PutNext<'_>) -> io::Result<()> {
        const CHUNK_BYTES: usize = 1 << 20;
        let begin = self.end;
        let mut bytes = Vec::with_capacity(CHUNK_BYTES + record_bytes(self.table));
        loop {
            let record = bytes.len();
            bytes.extend_from_slice(&[0; KEY_BYTES]);
            let Some((ts, id)) = next(&mut Record(&mut bytes)) else {
                bytes.truncate(record);
                break;
            };
            bytes[record..record + 8].copy_from_slice(&ts.to_le_bytes());
            bytes[record + 8..record + KEY_BYTES].copy_from_slice(&id.to_le_bytes());
            if bytes.len() >= CHUNK_BYTES {
                self.append(&mut bytes)?;
            }
        }
        self.append(&mut bytes)?;
        self.runs.push(begin..self.end);
        Ok(())
    }

    fn append(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        self.file.write_all_at(bytes, self.end)?;
        self.end += bytes.len() as u64;
        bytes.clear();
        Ok(())
    }

    /// Reads all runs back as one sorted sequence.
    pub(crate) fn merge(self) -> io::Result<Merge> {
        let record = record_bytes(self.table);
        let buffer = (limits::MERGE_BYTES / self.runs.len().max(1))
            .max(limits::MERGE_RUN_BYTES_MIN)
            .max(record);
        let records_buffered = buffer / record;
        let mut merge = Merge {
            file: self.file,
            table: self.table,
            record,
            buffer: records_buffered * record,
            runs: Vec::with_capacity(self.runs.len()),
            heads: BinaryHeap::new(),
        };
        for range in self.runs {
            merge.runs.push(Run {
                next: range.start,
                end: range.end,
                bytes: Vec::new(),
                at: 0,
            });
            merge.refill(merge.runs.len() - 1)?;
        }
        Ok(merge)
    }
}

struct Run {
    next: u64,
    end: u64,
    bytes: Vec<u8>,
    at: usize,
}

/// All runs of a table, read in key order.
pub(crate) struct Merge {
    file: File,
    table: &'static Table,
    record: usize,
    buffer: usize,
    runs: Vec<Run>,
    heads: BinaryHeap<Reverse<(Key, usize)>>,
}

fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("a slice of length N")
}

impl Merge {
    /// Puts the next row into the sink; returns false at the end.
    pub(crate) fn next<S: Sink>(&mut self, sink: &mut S) -> io::Result<bool> {
        let Some(Reverse((_, index))) = self.heads.pop() else {
            return Ok(false);
        };
        let run = &mut self.runs[index];
        let record = &run.bytes[run.at..run.at + self.record];
        let mut at = KEY_BYTES;
        for (column, declared) in self.table.columns.iter().enumerate() {
            let present = record[at] == 1;
            at += 1;
            match declared.kind {
                ColumnType::I64 => sink.i64(
                    column,
                    present.then(|| i64::from_le_bytes(bytes_at(record, at))),
                ),
                ColumnType::I32 => sink.i32(
                    column,
                    present.then(|| i32::from_le_bytes(bytes_at(record, at))),
                ),
                ColumnType::F64 => sink.f64(
                    column,
                    present.then(|| f64::from_le_bytes(bytes_at(record, at))),
                ),
                ColumnType::Bool => sink.bool(column, present.then(|| record[at] == 1)),
                ColumnType::Utf8 => sink.sym(
                    column,
                    present.then(|| Sym(u32::from_le_bytes(bytes_at(record, at)))),
                ),
            }
            at += width(declared.kind);
        }
        run.at += self.record;
        self.refill(index)?;
        Ok(true)
    }

    /// Reads the next record of a run and adds it to the heap.
    fn refill(&mut self, index: usize) -> io::Result<()> {
        let run = &mut self.runs[index];
        if run.at == run.bytes.len() {
            let length = (run.end - run.next).min(self.buffer as u64) as usize;
            run.bytes.resize(length, 0);
            run.at = 0;
            self.file.read_exact_at(&mut run.bytes, run.next)?;
            run.next += length as u64;
        }
        if run.at < run.bytes.len() {
            let ts = i64::from_le_bytes(bytes_at(&run.bytes, run.at));
            let id = i64::from_le_bytes(bytes_at(&run.bytes, run.at + 8));
            self.heads.push(Reverse(((ts, id), index)));
        }
        Ok(())
    }
}
