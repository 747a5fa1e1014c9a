//! Duration of block I/O, from submission to completion.

use rustc_hash::FxHashMap;
use whyslow_model::spool::{BlockIo, Kind};

use crate::raw::Raw;

/// More entries than this are leftovers of lost events, not I/O in flight.
const REQUESTS_MAX: usize = 1 << 16;

/// Submitter and time of submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Submitted {
    pub(super) ts: u64,
    pub(super) pid: i32,
    pub(super) tid: i32,
}

/// I/O in flight, by device and sector.
#[derive(Debug, Default)]
pub(super) struct Requests {
    in_flight: FxHashMap<(u32, u64), Submitted>,
}

/// Fields of a block I/O record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Io {
    pub(super) dev: u32,
    pub(super) bytes: u32,
    pub(super) sector: u64,
    rwbs: u32,
}

impl Io {
    fn of(raw: Raw<'_>) -> Self {
        Self {
            dev: raw.u32(0),
            bytes: raw.u32(4),
            sector: raw.u64(8),
            rwbs: raw.u32(16),
        }
    }

    pub(super) fn op(&self) -> &'static str {
        match self.rwbs & BlockIo::OP {
            0 => "read",
            1 => "write",
            2 => "flush",
            3 => "discard",
            _ => "operation",
        }
    }
}

impl Requests {
    /// Processes a record of block I/O; returns the I/O that it completes, if any.
    pub(super) fn see(&mut self, raw: Raw<'_>) -> Option<(Io, Submitted)> {
        const BIO_QUEUE: u16 = Kind::BioQueue as u16;
        const BACKMERGE: u16 = Kind::BioBackmerge as u16;
        const BIO_COMPLETE: u16 = Kind::BioComplete as u16;
        const REMAP: u16 = Kind::BioRemap as u16;
        const INSERT: u16 = Kind::RqInsert as u16;
        const ISSUE: u16 = Kind::RqIssue as u16;
        const COMPLETE: u16 = Kind::RqComplete as u16;
        let io = Io::of(raw);
        // Flushes have no sector and cannot be distinguished.
        if io.sector == u64::MAX {
            return None;
        }
        let place = (io.dev, io.sector);
        let submitted = Submitted {
            ts: raw.ts(),
            pid: raw.pid(),
            tid: raw.tid(),
        };
        match raw.kind() {
            BIO_QUEUE => {
                if self.in_flight.len() >= REQUESTS_MAX {
                    self.in_flight.clear();
                }
                self.in_flight.insert(place, submitted);
            }
            REMAP => {
                let old = (raw.u32(32), raw.u64(24));
                if let Some(submitted) = self.in_flight.remove(&old) {
                    self.in_flight.insert(place, submitted);
                }
            }
            // Part of a request that has its own entry.
            BACKMERGE => {
                self.in_flight.remove(&place);
            }
            INSERT | ISSUE if self.in_flight.len() < REQUESTS_MAX => {
                self.in_flight.entry(place).or_insert(submitted);
            }
            COMPLETE | BIO_COMPLETE => {
                let in_flight = self.in_flight.remove(&place)?;
                return (in_flight.ts < raw.ts()).then_some((io, in_flight));
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyslow_model::spool::Encoder;

    fn record(kind: Kind, ts: u64, (dev, sector): (u32, u64), old: (u32, u64)) -> Vec<u8> {
        let mut encoder = Encoder::default();
        let record = encoder.begin(kind, ts, (7, 8));
        record.u32(dev).u32(4096).u64(sector).u32(1).u32(0);
        record.u64(old.1).u32(old.0).u32(0).end();
        encoder.payload().to_vec()
    }

    #[test]
    fn the_time_is_from_the_first_submission_whatever_it_passes() {
        let mut requests = Requests::default();
        let mut see = |kind, ts, place, old| {
            let record = record(kind, ts, place, old);
            let done = requests.see(Raw(&record));
            done.map(|(io, submitted)| (io.op(), submitted.ts))
        };
        let none = (0, 0);
        assert_eq!(see(Kind::BioQueue, 10, (1, 5), none), None);
        assert_eq!(see(Kind::BioRemap, 11, (9, 105), (1, 5)), None);
        assert_eq!(see(Kind::RqIssue, 50, (9, 105), none), None);
        assert_eq!(
            see(Kind::RqComplete, 60, (9, 105), none),
            Some(("write", 10))
        );
        assert_eq!(see(Kind::RqComplete, 61, (9, 105), none), None);
        assert_eq!(see(Kind::RqInsert, 70, (9, 1), none), None);
        assert_eq!(see(Kind::RqIssue, 71, (9, 1), none), None);
        assert_eq!(see(Kind::RqComplete, 75, (9, 1), none), Some(("write", 70)));
    }
}
