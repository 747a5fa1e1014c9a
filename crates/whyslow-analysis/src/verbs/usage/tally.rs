//! Counts calls by their effect, per group.

use arrow_array::RecordBatch;
use whyslow_model::syscall::Op;

use crate::AnalysisError;
use crate::fold::Spot;
use crate::grouping::Object;
use crate::pass::{Pass, Summing};
use crate::scan::{ColumnRef, per_row, per_word};

/// Counts calls and their bytes.
pub(super) struct Usage {
    op: ColumnRef,
    bytes: ColumnRef,
}

#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct UsageSum {
    pub(crate) read: i64,
    pub(crate) written: i64,
    pub(crate) reads: i64,
    pub(crate) writes: i64,
    pub(crate) others: i64,
    /// Calls, each once.
    pub(crate) calls: i64,
    /// Those of them with a second object.
    pub(super) with_second: i64,
}

impl UsageSum {
    pub(crate) fn bytes(&self) -> i64 {
        self.read + self.written
    }

    /// Sort weight: a call that reads and writes counts twice.
    pub(super) fn weight(&self) -> i64 {
        self.reads + self.writes + self.others
    }

    pub(super) fn merge(&mut self, other: UsageSum) {
        self.read += other.read;
        self.written += other.written;
        self.reads += other.reads;
        self.writes += other.writes;
        self.others += other.others;
        self.calls += other.calls;
        self.with_second += other.with_second;
    }
}

/// The effect of a call on its objects; the number is its index in a tally.
#[derive(Debug, Clone, Copy)]
enum Way {
    Read = 0,
    Write = 1,
    Both = 2,
    Other = 3,
}

impl Way {
    fn of(op: Option<Op>) -> Self {
        match op {
            Some(Op::Read) => Way::Read,
            Some(Op::Write) => Way::Write,
            Some(Op::ReadWrite) => Way::Both,
            _ => Way::Other,
        }
    }
}

/// Calls and bytes by direction. Branch-free, because whether the next call reads or writes is
/// unpredictable, and a misprediction costs more than all of the additions. It is one cache line:
/// with many groups, memory accesses dominate.
#[derive(Debug, Default, Clone, Copy)]
#[repr(align(64))]
pub(super) struct Tally([WayTally; 4]);

#[derive(Debug, Default, Clone, Copy)]
struct WayTally {
    calls: i64,
    bytes: i64,
}

impl Tally {
    /// The effect of calls on their first object, or writes to their second one.
    pub(super) fn sum(self, object: Object) -> UsageSum {
        let [reads, writes, both, others] = self.0.map(|way| way.calls);
        let [read, written, moved, _] = self.0.map(|way| way.bytes);
        match object {
            Object::First => UsageSum {
                read: read + moved,
                written,
                reads: reads + both,
                writes,
                others,
                calls: reads + writes + both + others,
                with_second: both,
            },
            Object::Second => UsageSum {
                written: moved,
                writes: both,
                ..UsageSum::default()
            },
        }
    }
}

/// For each row of a batch: the index in a tally, and the bytes.
pub(super) struct UsageColumns {
    ways: Vec<u8>,
    bytes: Vec<i64>,
}

impl Usage {
    pub(super) fn new(pass: &mut Pass) -> Self {
        let projection = &mut pass.projection;
        Self {
            op: projection.need("op"),
            bytes: projection.need("bytes"),
        }
    }
}

impl Summing for Usage {
    type Columns<'b> = UsageColumns;
    type Sum = Tally;

    fn columns(&self, batch: &RecordBatch, _: Spot) -> Result<UsageColumns, AnalysisError> {
        let op = self.op.texts(batch)?;
        let bytes = self.bytes.ints(batch)?;
        let way_of = |word: &str| Way::of(Op::by_name(word)) as u8;
        Ok(UsageColumns {
            ways: per_row(&op, &per_word(&op, way_of), Way::Other as u8),
            bytes: (0..batch.num_rows() as u32)
                .map(|row| bytes.or_zero(row))
                .collect(),
        })
    }

    #[inline]
    fn add(&self, tally: &mut Tally, columns: &UsageColumns, row: u32) {
        let row = row as usize;
        let way = &mut tally.0[usize::from(columns.ways[row] % 4)];
        way.calls += 1;
        way.bytes += columns.bytes[row];
    }

    fn merge(&self, tally: &mut Tally, other: Tally) {
        for (way, more) in tally.0.iter_mut().zip(other.0) {
            way.calls += more.calls;
            way.bytes += more.bytes;
        }
    }
}
