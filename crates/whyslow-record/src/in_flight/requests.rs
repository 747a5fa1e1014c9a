//! Requests to block devices that have not ended: their records are repeated in the next spool.
//!
//! A request is identified only by its location. So records are kept by disk and sector, until a
//! request that covers the location ends. If there are two at one location, the end of the first
//! removes both, and only the end of the second will be known. Rings are drained one after another:
//! records wait until all earlier ones have arrived.

use std::collections::BTreeMap;
use std::fs;

use rustc_hash::FxHashMap;
use whyslow_model::sort::IndexSort;
use whyslow_model::spool::{ELSEWHERE, Encoder, HEAD_BYTES, Kind};

use crate::raw::Raw;

/// Above this number of records everything is dropped: lost completions would leave them forever.
const RECORDS_MAX: usize = 1 << 17;
/// Older requests, on a disk that reports none in flight, ended without a record.
const AGE_MAX_NS: u64 = 1_000_000_000;
const SECTOR_BYTES: u32 = 512;
const RECORD_BYTES: usize = 64;

type RecordBytes = [u8; RECORD_BYTES];
/// Disk and sector.
type Place = (u32, u64);

#[derive(Debug, Default)]
pub(super) struct Requests {
    waiting: Vec<RecordBytes>,
    open: BTreeMap<Place, Vec<RecordBytes>>,
    /// Number of records in `open`.
    count: usize,
    /// Disks of partitions, since the last rotation.
    disks: FxHashMap<u32, u32>,
    /// How often everything was dropped, because there was too much.
    pub(super) forgotten: u64,
}

fn dev(raw: Raw<'_>) -> u32 {
    raw.u32(0)
}

fn sectors(raw: Raw<'_>) -> u64 {
    u64::from(raw.u32(4) / SECTOR_BYTES)
}

fn sector(raw: Raw<'_>) -> u64 {
    raw.u64(8)
}

fn is(raw: Raw<'_>, kinds: &[Kind]) -> bool {
    kinds.iter().any(|kind| *kind as u16 == raw.kind())
}

fn resized(mut record: RecordBytes, sector: u64, sectors: u64) -> RecordBytes {
    let bytes = sectors as u32 * SECTOR_BYTES;
    record[HEAD_BYTES + 4..HEAD_BYTES + 8].copy_from_slice(&bytes.to_le_bytes());
    record[HEAD_BYTES + 8..HEAD_BYTES + 16].copy_from_slice(&sector.to_le_bytes());
    record
}

impl Requests {
    /// A record about a request.
    #[inline]
    pub(super) fn see(&mut self, record: &[u8]) {
        if let Some(record) = record.first_chunk() {
            self.waiting.push(*record);
            self.bound();
        }
    }

    fn bound(&mut self) {
        if self.count + self.waiting.len() > RECORDS_MAX {
            self.forget();
            self.forgotten += 1;
        }
    }

    /// All records before this time have arrived.
    pub(super) fn settle(&mut self, until: u64) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.index_sort_by_key(|record| Raw(record).ts());
        let due = waiting.partition_point(|record| Raw(record).ts() < until);
        for record in waiting.drain(..due) {
            self.apply(record);
        }
        self.waiting = waiting;
        self.bound();
    }

    pub(super) fn forget(&mut self) {
        self.waiting.clear();
        self.open.clear();
        self.count = 0;
    }

    fn apply(&mut self, record: RecordBytes) {
        let raw = Raw(&record);
        let disk = self.disk_of(dev(raw));
        let (begin, length) = (sector(raw), sectors(raw));
        let end = begin.saturating_add(length);
        if is(raw, &[Kind::BioComplete]) {
            self.end_bio(disk, (begin, end));
        } else if length == 0 || begin == u64::MAX {
            // Flushes have no sector.
        } else if is(raw, &[Kind::RqComplete]) {
            self.end_request(disk, (begin, end), record);
        } else if is(raw, &[Kind::BioSplit]) {
            self.split(disk, (begin, end), raw.u64(24));
        } else {
            self.open.entry((disk, begin)).or_default().push(record);
            self.count += 1;
        }
    }

    /// The rest of a split bio starts at a sector, as if it had been queued like that.
    fn split(&mut self, disk: u32, (begin, end): (u64, u64), from: u64) {
        let Some(front) = self.open.get_mut(&(disk, begin)) else {
            return;
        };
        if !(begin..end).contains(&from) || from == begin {
            return;
        }
        let mut queued = front.iter().rev();
        let queued = queued.find(|record| is(Raw(*record), &[Kind::BioQueue]));
        let rest = queued.map(|record| resized(*record, from, end - from));
        for record in front {
            *record = resized(*record, begin, from - begin);
        }
        if let Some(rest) = rest {
            self.open.entry((disk, from)).or_default().push(rest);
            self.count += 1;
        }
    }

    /// A bio that became no request. Most kernels report it with the sector after its end.
    fn end_bio(&mut self, disk: u32, (begin, end): (u64, u64)) {
        let mut before = self.open.range((disk, 0)..(disk, end.max(begin + 1)));
        let Some((place, records)) = before.next_back() else {
            return;
        };
        let requested = [Kind::GetRq, Kind::RqInsert, Kind::RqIssue];
        let is_request = records.iter().any(|record| is(Raw(record), &requested));
        let last = records.last().map_or(0, |record| sectors(Raw(record)));
        let is_it = place.1 == begin || begin == end && place.1 + last == end;
        if is_it && !is_request {
            let place = *place;
            self.count -= self.open.remove(&place).map_or(0, |records| records.len());
        }
    }

    /// Completion of a request, or of its first part: then the records move to the start of the
    /// rest.
    fn end_request(&mut self, disk: u32, (begin, end): (u64, u64), record: RecordBytes) {
        let whole = self.open.get(&(disk, begin)).and_then(|records| {
            let mut sized = records.iter().rev().map(|record| Raw(record));
            sized.find(|raw| is(*raw, &[Kind::RqInsert, Kind::RqIssue]))
        });
        let goes_on = whole.is_some_and(|raw| sector(raw) + sectors(raw) > end);
        if goes_on && let Some(mut before) = self.open.remove(&(disk, begin)) {
            before.push(record);
            self.count += 1;
            self.open
                .entry((disk, end))
                .or_default()
                .splice(0..0, before);
        }
        let ended = self.open.range((disk, begin)..(disk, end));
        let ended: Vec<Place> = ended.map(|(place, _)| *place).collect();
        for place in ended {
            self.count -= self.open.remove(&place).map_or(0, |records| records.len());
        }
    }

    fn disk_of(&mut self, dev: u32) -> u32 {
        *self
            .disks
            .entry(dev)
            .or_insert_with(|| disk(dev).unwrap_or(dev))
    }

    /// Writes what has not ended to the next spool, which starts at `now`.
    pub(super) fn write(&mut self, now: u64, encoder: &mut Encoder) {
        self.settle(u64::MAX);
        let mut idle = FxHashMap::default();
        let mut is_idle = |disk| *idle.entry(disk).or_insert_with(|| is_idle(disk));
        self.open.retain(|(disk, _), records| {
            let last = records.last().map_or(0, |record| Raw(record).ts());
            let is_there = last.saturating_add(AGE_MAX_NS) > now || !is_idle(*disk);
            self.count -= if is_there { 0 } else { records.len() };
            is_there
        });
        for record in self.open.values().flatten() {
            let mut record = *record;
            // These records must not be taken as evidence of what runs on that CPU now.
            let flags = (Raw(&record).flags() | ELSEWHERE).to_le_bytes();
            record[6..8].copy_from_slice(&flags);
            encoder.copy(&record);
        }
        self.disks.clear();
    }
}

fn folder(dev: u32) -> String {
    format!("/sys/dev/block/{}:{}", dev >> 20, dev & 0xf_ffff)
}

/// The disk of a partition.
fn disk(dev: u32) -> Option<u32> {
    let folder = folder(dev);
    fs::metadata(format!("{folder}/partition")).ok()?;
    let text = fs::read_to_string(format!("{folder}/../dev")).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    Some(major.parse::<u32>().ok()? << 20 | minor.parse::<u32>().ok()?)
}

/// Whether a disk reports no requests in flight.
fn is_idle(dev: u32) -> bool {
    let text = fs::read_to_string(format!("{}/inflight", folder(dev)));
    text.is_ok_and(|text| text.split_whitespace().all(|count| count == "0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No such device, so it does not report that it is idle.
    const DEV: u32 = 4095 << 20;

    fn block_record(kind: Kind, ts: u64, (sector, sectors): (u64, u32)) -> Vec<u8> {
        let mut encoder = Encoder::default();
        let record = encoder.begin_on(kind, ts, (7, 7), (3, 0));
        record.u32(DEV).u32(sectors * SECTOR_BYTES).u64(sector);
        record.u32(1).u32(0).u64(0).u32(0).u32(0).end();
        assert_eq!(encoder.payload().len(), RECORD_BYTES);
        encoder.payload().to_vec()
    }

    /// Kinds and times of the repeated records, for records in order of arrival.
    fn rewritten(records: &[(Kind, u64, (u64, u32))]) -> Vec<(u16, u64)> {
        let mut requests = Requests::default();
        for (kind, ts, range) in records {
            requests.see(&block_record(*kind, *ts, *range));
        }
        let mut encoder = Encoder::default();
        requests.write(1_000, &mut encoder);
        assert_eq!(requests.count, encoder.records() as usize);
        let found = encoder.payload().chunks(RECORD_BYTES).map(|record| {
            assert_eq!(Raw(record).flags(), ELSEWHERE);
            (Raw(record).kind(), Raw(record).ts())
        });
        let mut found: Vec<_> = found.collect();
        found.sort_by_key(|(_, ts)| *ts);
        found
    }

    #[test]
    fn what_has_not_ended_is_told_again_whichever_ring_it_came_through() {
        use Kind::{BioQueue, GetRq, RqComplete, RqIssue};
        let records = [
            (RqComplete, 14, (800, 8)),
            (BioQueue, 11, (800, 8)),
            (RqIssue, 13, (800, 8)),
            (GetRq, 12, (800, 8)),
            // Same location, later.
            (RqIssue, 22, (800, 8)),
            (BioQueue, 21, (800, 8)),
            (BioQueue, 31, (900, 8)),
        ];
        let expected = [(BioQueue, 21), (RqIssue, 22), (BioQueue, 31)];
        assert_eq!(
            rewritten(&records),
            expected.map(|(kind, ts)| (kind as u16, ts))
        );
    }

    #[test]
    fn what_was_merged_ends_with_the_request_that_it_became_part_of() {
        use Kind::{BioBackmerge, BioFrontmerge, BioQueue, GetRq, RqComplete, RqIssue};
        let mut records = vec![
            (BioQueue, 11, (800, 8)),
            (GetRq, 12, (800, 8)),
            (BioQueue, 13, (808, 8)),
            (BioBackmerge, 14, (808, 8)),
            (BioQueue, 15, (792, 8)),
            (BioFrontmerge, 16, (792, 8)),
            (RqIssue, 17, (792, 24)),
            (BioQueue, 18, (816, 8)),
        ];
        assert_eq!(rewritten(&records).len(), 8);
        records.push((RqComplete, 19, (792, 24)));
        assert_eq!(rewritten(&records), [(BioQueue as u16, 18)]);
    }

    #[test]
    fn parts_of_what_was_split_end_one_by_one() {
        use Kind::{BioQueue, BioSplit, RqComplete, RqIssue};
        let mut requests = Requests::default();
        requests.see(&block_record(BioQueue, 11, (800, 24)));
        let mut split = block_record(BioSplit, 12, (800, 24));
        split[HEAD_BYTES + 24..HEAD_BYTES + 32].copy_from_slice(&808u64.to_le_bytes());
        requests.see(&split);
        requests.see(&block_record(RqIssue, 13, (808, 16)));
        requests.settle(u64::MAX);
        let sizes = |requests: &Requests| {
            let record = requests.open.values().flatten();
            let mut sizes: Vec<_> = record
                .map(|record| (sector(Raw(record)), sectors(Raw(record))))
                .collect();
            sizes.sort_unstable();
            sizes
        };
        assert_eq!(sizes(&requests), [(800, 8), (808, 16), (808, 16)]);
        requests.see(&block_record(RqComplete, 14, (808, 16)));
        requests.settle(u64::MAX);
        assert_eq!((sizes(&requests), requests.count), (vec![(800, 8)], 1));
    }

    #[test]
    fn of_a_request_that_ended_in_part_all_is_told() {
        use Kind::{RqComplete, RqInsert, RqIssue};
        let mut records = vec![
            (RqInsert, 11, (800, 24)),
            (RqIssue, 12, (800, 24)),
            (RqComplete, 13, (800, 8)),
        ];
        assert_eq!(rewritten(&records).len(), 3);
        records.push((RqComplete, 14, (808, 16)));
        assert_eq!(rewritten(&records), []);
    }

    #[test]
    fn a_bio_that_never_is_a_request_ends_by_its_begin_or_its_end() {
        use Kind::{BioComplete, BioQueue, RqIssue};
        let queued = (BioQueue, 11, (800, 8));
        assert_eq!(rewritten(&[queued, (BioComplete, 12, (800, 8))]), []);
        assert_eq!(rewritten(&[queued, (BioComplete, 12, (808, 0))]), []);
        assert_eq!(rewritten(&[queued, (BioComplete, 12, (816, 0))]).len(), 1);
        // The bio of a request, of which only a part has ended.
        let issued = (RqIssue, 12, (800, 16));
        let record = rewritten(&[queued, issued, (BioComplete, 13, (808, 0))]);
        assert_eq!(record.len(), 2);
    }

    #[test]
    fn ends_that_were_lost_take_no_memory_for_ever() {
        let mut requests = Requests::default();
        for number in 0..5 * RECORDS_MAX as u64 {
            requests.see(&block_record(Kind::RqIssue, number, (number * 8, 8)));
            // From some point on the rings are never found empty.
            if number % 1000 == 0 && number < 2 * RECORDS_MAX as u64 {
                requests.settle(number);
            }
            assert!(requests.count + requests.waiting.len() <= RECORDS_MAX);
        }
        assert!(requests.forgotten > 3, "{}", requests.forgotten);
        requests.see(&[0; 9]);
    }
}
