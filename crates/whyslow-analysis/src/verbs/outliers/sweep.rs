//! Requests with the concurrent load of their device.
//!
//! All requests of a device count as load, whatever the filter; those of the query are compared. A
//! request without a recorded completion counts until the next loss of events, or until the kernel
//! would have timed it out; otherwise a single lost event would make a device busy forever. A
//! completion without a start does not show how long the device had it, and does not count, nor does
//! one that may belong to another request.

use std::collections::BTreeSet;

use arrow_array::RecordBatch;
use rustc_hash::FxHashMap;
use whyslow_model::{Ns, Window};

use super::figures::{UNKNOWN, any_length};
use crate::AnalysisError;
use crate::context::Context;
use crate::filter::Verdicts;
use crate::fold::in_order_by_all;
use crate::kinds::BLOCK;
use crate::lost_ends::LostEnds;
use crate::outlier_baseline::{Completed, InFlight, Issued, Stratum};
use crate::scan::{ColumnRef, Projection, per_word};
use crate::uncertain::Uncertain;

/// Default command timeout of SCSI and NVMe disks.
const GIVEN_UP_AFTER: Ns = 30_000_000_000;

/// The data of a request that the comparison uses.
#[derive(Debug, Clone, Copy)]
pub(super) struct What {
    /// First event of the request, which determines its interval.
    pub(super) ts: Ns,
    op: u8,
    bytes: i64,
    /// Device time; `None` for a request that is not compared.
    device_ns: Option<Ns>,
    /// Whether it was issued inside the window.
    is_inside: bool,
}

/// Devices of a query, by number.
pub(super) struct Disks {
    places: FxHashMap<String, usize>,
    /// How long before a request other requests count as just before it.
    lately: Vec<Ns>,
}

impl Disks {
    pub(super) fn new(disks: impl Iterator<Item = (String, Ns)>) -> Self {
        let (names, lately): (Vec<String>, Vec<Ns>) = disks.unzip();
        let places = names.into_iter().enumerate();
        Self {
            places: places.map(|(place, name)| (name, place)).collect(),
            lately,
        }
    }

    pub(super) fn place_of(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    pub(super) fn count(&self) -> usize {
        self.lately.len()
    }
}

/// Some of the devices, and their results.
struct Worker<S> {
    /// By device; `None` for those of other workers, or of none.
    in_flight: Vec<Option<InFlight<What>>>,
    verdicts: Verdicts,
    rows: Vec<u32>,
    found: S,
}

/// Passes every request that was issued inside the window to `each`, at its end. Devices are
/// divided among threads, each of which fills its own `init()`.
pub(super) fn each<S: Send>(
    context: &Context<'_>,
    (disks, wanted): (&Disks, &BTreeSet<usize>),
    init: impl Fn() -> S,
    each: impl Fn(&mut S, usize, Completed<What>) + Sync,
) -> Result<Vec<S>, AnalysisError> {
    let filter = any_length(&context.query.filter);
    let mut pass = context.pass_with_cut(&BLOCK, &[], &filter)?;
    let columns = Columns::new(context, &mut pass.projection)?;
    let (window, ends) = (context.selected(), &*context.lost_ends);
    let each = |found: &mut S, disk: usize, completed: Completed<What>| {
        if completed.request.what.is_inside {
            each(found, disk, completed);
        }
    };
    let threads = rayon::current_num_threads().min(wanted.len()).max(1);
    let worker = |number: usize| {
        let mut in_flight: Vec<Option<InFlight<What>>> = Vec::new();
        in_flight.resize_with(disks.count(), || None);
        for disk in wanted.iter().skip(number).step_by(threads) {
            in_flight[*disk] = Some(InFlight::new(disks.lately[*disk]));
        }
        Worker {
            in_flight,
            verdicts: pass.selector.verdicts(),
            rows: Vec::new(),
            found: init(),
        }
    };
    let scan = pass.projection.scan(pass.selected);
    let workers = (0..threads).map(worker).collect();
    let workers = in_order_by_all(context.tables, &scan, workers, |worker, batch| {
        let Worker {
            in_flight,
            verdicts,
            rows,
            found,
        } = worker;
        pass.selector.select(verdicts, batch, rows)?;
        let places = (rows.as_slice(), disks);
        columns.each(
            batch,
            places,
            (window, ends),
            in_flight,
            |disk, completed| {
                each(found, disk, completed);
            },
        )
    })?;
    let finish = |worker: Worker<S>| {
        let mut found = worker.found;
        for (disk, in_flight) in worker.in_flight.into_iter().enumerate() {
            if let Some(in_flight) = in_flight {
                in_flight.finish(&mut |completed| each(&mut found, disk, completed));
            }
        }
        found
    };
    Ok(workers.into_iter().map(finish).collect())
}

/// The stratum and device time of a request that is compared.
pub(super) fn sampled(completed: &Completed<What>) -> Option<(Stratum, Ns)> {
    let what = completed.request.what;
    let stratum = Stratum::new(what.op, what.bytes, completed.depth);
    Some((stratum, what.device_ns?))
}

struct Columns {
    dev: ColumnRef,
    op: ColumnRef,
    id: ColumnRef,
    ts: ColumnRef,
    ts_issue: ColumnRef,
    ts_end: ColumnRef,
    dur: ColumnRef,
    device: ColumnRef,
    bytes: ColumnRef,
    uncertain: Uncertain,
}

impl Columns {
    fn new(context: &Context<'_>, projection: &mut Projection) -> Result<Self, AnalysisError> {
        Ok(Self {
            uncertain: Uncertain::new(context.tables, BLOCK.table, projection)?,
            dev: projection.need("dev_name"),
            op: projection.need("op"),
            id: projection.need("id"),
            ts: projection.need("ts"),
            ts_issue: projection.need("ts_issue"),
            ts_end: projection.need("ts_end"),
            dur: projection.need("dur"),
            device: projection.need("device_ns"),
            bytes: projection.need("bytes"),
        })
    }

    /// Adds all requests of a batch that were at the device inside the window; `rows` are those of
    /// the query.
    fn each(
        &self,
        batch: &RecordBatch,
        (rows, disks): (&[u32], &Disks),
        (window, ends): (Option<Window>, &LostEnds),
        in_flight: &mut [Option<InFlight<What>>],
        mut each: impl FnMut(usize, Completed<What>),
    ) -> Result<(), AnalysisError> {
        let (dev, op) = (self.dev.texts(batch)?, self.op.texts(batch)?);
        let ops = per_word(&op, number_of);
        let places = per_word(&dev, |name| disks.place_of(name));
        let unknown = disks.place_of(UNKNOWN);
        let (id, ts, dur) = (
            self.id.ints(batch)?,
            self.ts.ints(batch)?,
            self.dur.ints(batch)?,
        );
        let (ts_issue, ts_end) = (self.ts_issue.ints(batch)?, self.ts_end.ints(batch)?);
        let (device, bytes) = (self.device.ints(batch)?, self.bytes.ints(batch)?);
        let uncertain = self.uncertain.of(batch)?;
        let mut selected = rows.iter().copied().peekable();
        for row in 0..batch.num_rows() as u32 {
            let is_selected = selected.next_if_eq(&row).is_some();
            let Some(disk) = dev.key(row).map_or(unknown, |word| places[word]) else {
                continue;
            };
            let Some(in_flight) = &mut in_flight[disk] else {
                continue;
            };
            let interval = (ts.at(row), ts_end.get(row));
            // How far a scan reads beyond the window depends on the pages of the table.
            if window.is_some_and(|window| !window.overlaps(interval.0, interval.1)) {
                continue;
            }
            let times = Times {
                ts: interval.0,
                ts_end: interval.1,
                ts_issue: ts_issue.get(row),
                device_ns: device.get(row),
                is_whole: dur.get(row).is_some() && !uncertain.has(row),
            };
            let Some((issue, end)) = times.in_device(ends) else {
                continue;
            };
            let is_inside =
                times.ts_issue.is_some() && window.is_none_or(|window| window.contains(issue));
            let what = What {
                ts: times.ts,
                op: op.key(row).map_or(OTHER, |word| ops[word]),
                bytes: bytes.at(row),
                device_ns: times.device_ns.filter(|_| is_selected),
                is_inside,
            };
            let request = Issued {
                issue,
                id: id.at(row),
                end,
                what,
            };
            in_flight.add(times.ts, request, &mut |completed| each(disk, completed));
        }
        Ok(())
    }
}

/// Operation classes are numbered by index.
const OTHER: u8 = BLOCK.classes.len() as u8 - 1;

fn number_of(op: &str) -> u8 {
    let place = BLOCK.classes.iter().position(|class| *class == op);
    place.map_or(OTHER, |place| place as u8)
}

/// Known timestamps of a request.
#[derive(Debug, Clone, Copy)]
struct Times {
    ts: Ns,
    ts_end: Option<Ns>,
    ts_issue: Option<Ns>,
    device_ns: Option<Ns>,
    /// Whether start and end were recorded.
    is_whole: bool,
}

impl Times {
    /// From issue to completion; `None` if it was never issued, or at an unknown time.
    fn in_device(self, ends: &LostEnds) -> Option<(Ns, Ns)> {
        // Without an issue: a stacked device passes its requests on, and some are never issued;
        // others were already in flight when the recording started, since when is unknown.
        let issue = self.ts_issue?;
        if self.is_whole {
            let known = self.device_ns.map(|ns| issue + ns).or(self.ts_end);
            return Some((issue, known?));
        }
        let given_up = issue.saturating_add(GIVEN_UP_AFTER);
        let end = self.ts_end.unwrap_or(Ns::MAX);
        Some((issue, ends.known_until(issue).min(given_up).min(end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_a_request_from_issue_to_completion() {
        let ends = LostEnds::of(vec![(500, 600)], 1_000);
        let check = |ts_issue, device_ns, ts_end, is_whole, expected| {
            let times = Times {
                ts: 100,
                ts_end,
                ts_issue,
                device_ns,
                is_whole,
            };
            assert_eq!(times.in_device(&ends), expected, "{times:?}");
        };
        check(Some(110), Some(50), Some(160), true, Some((110, 160)));
        // A flush follows the data.
        check(Some(110), Some(50), Some(190), true, Some((110, 160)));
        // The completion may be among the lost events, or belong to another request.
        check(Some(110), None, None, false, Some((110, 500)));
        check(Some(110), None, Some(900), false, Some((110, 500)));
        check(Some(700), None, None, false, Some((700, 1_000)));
        // Since when the device had it is unknown.
        check(None, None, Some(130), false, None);
        check(None, None, Some(130), true, None);
        check(None, None, None, false, None);
        let times = Times {
            ts: 0,
            ts_end: None,
            ts_issue: Some(0),
            device_ns: None,
            is_whole: false,
        };
        let ends = LostEnds::of(Vec::new(), Ns::MAX);
        assert_eq!(times.in_device(&ends), Some((0, GIVEN_UP_AFTER)));
    }
}
