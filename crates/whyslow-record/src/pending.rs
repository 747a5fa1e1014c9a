//! Records buffered for the second of two spools; those beyond the limit are lost, and reported.

use whyslow_model::spool::{ELSEWHERE, Encoder, Kind};

/// Maximum bytes of held records, part of the program's own memory ([`crate::Memory`]).
pub(crate) const PENDING_BYTES_MAX: usize = 16 << 20;
/// Overhead per record.
pub(crate) const EACH_BYTES: usize = 32;

#[derive(Debug, Default)]
pub(crate) struct Pending {
    pub(crate) from: u64,
    pub(crate) records: Vec<Box<[u8]>>,
    bytes: usize,
    pub(crate) lost: u64,
    /// Times of the first and the last lost record.
    times: (u64, u64),
}

impl Pending {
    pub(crate) fn from(ts: u64) -> Self {
        Self {
            from: ts,
            ..Self::default()
        }
    }

    pub(crate) fn push(&mut self, record: &[u8], ts: u64) {
        let bytes = record.len() + EACH_BYTES;
        if self.bytes + bytes > PENDING_BYTES_MAX {
            let (first, last) = self.times;
            self.times = if self.lost == 0 {
                (ts, ts)
            } else {
                (first.min(ts), last.max(ts))
            };
            self.lost += 1;
            return;
        }
        self.bytes += bytes;
        self.records.push(record.into());
    }

    /// Writes the loss record.
    pub(crate) fn write_lost(&self, encoder: &mut Encoder) {
        let (first, last) = self.times;
        encoder
            .begin_on(Kind::Lost, first, (0, 0), (0, ELSEWHERE))
            .u64(first)
            .u64(last)
            .u64(self.lost)
            .end();
    }
}
