//! Counters of block devices per interval, as in the kernel's diskstats.
//!
//! A request counts when it completes. A request without completion counts nowhere, but is in
//! flight until the end of the recording.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use whyslow_analysis::{Filter, Kind, Verb};
use whyslow_base::failure::Failure;
use whyslow_model::Ns;

use crate::cells::{Row, rows};
use crate::front::{Front, Parts};

/// Requests of one direction.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Way {
    pub(super) requests: i64,
    pub(super) bytes: i64,
    pub(super) merges: i64,
    /// Sum of the times from start to completion.
    pub(super) ticks: Ns,
}

/// A device in one interval.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    pub(super) read: Way,
    pub(super) write: Way,
    pub(super) discard: Way,
    pub(super) flush: Way,
    /// Union of the times in flight.
    pub(super) busy: Ns,
    /// Sum of the times in flight.
    pub(super) in_flight: Ns,
}

impl Sums {
    /// Transfers: everything but flushes.
    pub(super) fn transfers(&self) -> i64 {
        self.read.requests + self.write.requests + self.discard.requests
    }

    pub(super) fn is_idle(&self) -> bool {
        self.transfers() + self.flush.requests == 0
    }
}

struct Disk {
    sums: Vec<Sums>,
    /// Busy time is counted up to here.
    reached: Ns,
}

/// All devices by name, with their partitions if `with_partitions`.
pub(super) fn by_name(
    front: &Front<'_>,
    parts: Parts,
    with_partitions: bool,
) -> Result<BTreeMap<String, Vec<Sums>>, Failure> {
    let mut disks: FxHashMap<String, Disk> = FxHashMap::default();
    let new = || Disk {
        sums: vec![Sums::default(); parts.count()],
        reached: Ns::MIN,
    };
    // A device that is idle in the window is listed if it has a request anywhere in the recording.
    for key in ["dev", "part"]
        .into_iter()
        .take(1 + usize::from(with_partitions))
    {
        let answer = front.query_whole((Kind::Block, Verb::Stats), |query| {
            query.by = vec![key.into()];
        })?;
        for name in rows(&answer, "stats")
            .iter()
            .filter_map(|row| row.text(key))
        {
            disks.insert(name.to_owned(), new());
        }
    }
    let mut unfinished = 0;
    let columns = [
        "ts_ns",
        "ts_end_ns",
        "dur_ns",
        "dev",
        "part",
        "op",
        "bytes",
        "merges",
    ];
    front.each_of(Kind::Block, Filter::default(), &columns, |row| {
        unfinished += i64::from(row.int("ts_end_ns").is_none());
        let partition = row.text("part").filter(|_| with_partitions);
        for name in row.text("dev").into_iter().chain(partition) {
            if !disks.contains_key(name) {
                disks.insert(name.to_owned(), new());
            }
            if let Some(disk) = disks.get_mut(name) {
                disk.add(row, parts, front.calendar.end);
            }
        }
        Ok(())
    })?;
    if unfinished > 0 {
        front.note_cut(format!(
            "completion of {unfinished} requests not recorded: they count only as in flight"
        ));
    }
    let disks = disks.into_iter();
    Ok(disks.map(|(name, disk)| (name, disk.sums)).collect())
}

impl Disk {
    /// Adds a request that starts no earlier than those before.
    fn add(&mut self, row: &Row<'_>, parts: Parts, recording_end: Ns) {
        let Some(begin) = row.int("ts_ns") else {
            return;
        };
        let completed = row.int("ts_end_ns");
        let end = completed.unwrap_or(recording_end);
        let sums = &mut self.sums;
        parts.spread(begin, end, |part, time| sums[part].in_flight += time);
        parts.spread(begin.max(self.reached), end, |part, time| {
            sums[part].busy += time;
        });
        self.reached = self.reached.max(end);
        let Some(part) = completed.and_then(|end| parts.of(end)) else {
            return;
        };
        let sums = &mut sums[part];
        let way = match row.text("op") {
            Some("read") => &mut sums.read,
            Some("write") => &mut sums.write,
            Some("discard") => &mut sums.discard,
            Some("flush") => &mut sums.flush,
            _ => return,
        };
        way.requests += 1;
        way.bytes += row.int("bytes").unwrap_or(0);
        way.merges += row.int("merges").unwrap_or(0);
        way.ticks += row.int("dur_ns").unwrap_or(0);
    }
}
