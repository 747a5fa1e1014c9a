//! When CPUs, memory and devices were at their limits, and the longest single wait of each call:
//! input for the tests of [`crate::patterns`] in addition to the calls themselves.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use rustc_hash::FxHashMap;
use whyslow_analysis::AnalysisError;
use whyslow_analysis::read::{Projection, Uncertain, in_order};
use whyslow_model::row::Row;
use whyslow_model::tables::{BlockIoRow, ReclaimRow, ThreadStateRow};
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use crate::patterns::{Item, Resource};

/// Shorter run-queue waits do not indicate CPU saturation.
const RUNNABLE_MIN_NS: Ns = 1_000_000;
/// Shorter waits are not kept: all known constants are longer.
const WAIT_MIN_NS: Ns = 500_000;

type Range = (Ns, Ns);

/// Waits by thread, in order of start.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    of: FxHashMap<i32, Vec<Range>>,
    is_known: bool,
}

impl Waits {
    /// The longest wait of a thread within a call; `None` if waits were not recorded.
    pub(crate) fn longest(&self, utid: i32, (begin, end): Range) -> Option<Ns> {
        if !self.is_known {
            return None;
        }
        let waits = self.of.get(&utid).map_or(&[][..], Vec::as_slice);
        // States of a thread are consecutive, so their ends are in order, too.
        let first = waits.partition_point(|wait| wait.1 <= begin);
        let inside = waits[first..].iter().take_while(|wait| wait.0 < end);
        let lengths = inside.map(|wait| wait.1.min(end) - wait.0.max(begin));
        Some(lengths.max().unwrap_or(0))
    }
}

/// The saturated resources, and the waits of all threads.
pub(crate) fn read(
    tables: &dyn Tables,
    window: Option<Window>,
) -> Result<(Vec<Resource>, Waits), AnalysisError> {
    let (waiting, waits) = states(tables, window)?;
    let mut found = Vec::new();
    let mut add = |name: String, ranges: Vec<Range>| {
        let saturated = union(ranges);
        if !saturated.is_empty() {
            found.push(Resource {
                name,
                saturated,
                baseline_share: None,
            });
        }
    };
    add("CPUs".into(), waiting);
    add("memory".into(), reclaims(tables, window)?);
    for (device, requests) in requests(tables, window)? {
        add(format!("disk {device}"), queued(requests));
    }
    Ok((found, waits))
}

/// Run-queue waits, and all sleeps.
fn states(
    tables: &dyn Tables,
    window: Option<Window>,
) -> Result<(Vec<Range>, Waits), AnalysisError> {
    let mut projection = Projection::new(ThreadStateRow::TABLE);
    let [ts, dur, utid] = ["ts", "dur", "utid"].map(|name| projection.need(name));
    let state = projection.need("state");
    let (mut runnable, mut waits) = (Vec::new(), Waits::default());
    in_order(tables, &projection.scan(window), |batch| {
        waits.is_known = true;
        let (ts, dur, utid) = (ts.ints(batch)?, dur.ints(batch)?, utid.ints(batch)?);
        let state = state.texts(batch)?;
        for row in 0..batch.num_rows() as u32 {
            let Some(dur) = dur.get(row).filter(|dur| *dur >= WAIT_MIN_NS) else {
                continue;
            };
            let range = (ts.at(row), ts.at(row) + dur);
            match state.get(row) {
                Some("runnable") if dur >= RUNNABLE_MIN_NS => runnable.push(range),
                Some("sleeping" | "uninterruptible") => {
                    let of = waits.of.entry(utid.at(row) as i32).or_default();
                    of.push(range);
                }
                _ => {}
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok((runnable, waits))
}

fn reclaims(tables: &dyn Tables, window: Option<Window>) -> Result<Vec<Range>, AnalysisError> {
    let mut projection = Projection::new(ReclaimRow::TABLE);
    let [ts, dur] = ["ts", "dur"].map(|name| projection.need(name));
    let kind = projection.need("kind");
    let mut found = Vec::new();
    in_order(tables, &projection.scan(window), |batch| {
        let (ts, dur, kind) = (ts.ints(batch)?, dur.ints(batch)?, kind.texts(batch)?);
        for row in 0..batch.num_rows() as u32 {
            // kswapd reclaims ahead of need.
            if let (Some(dur), Some(kind)) = (dur.get(row), kind.get(row))
                && kind != "kswapd"
            {
                found.push((ts.at(row), ts.at(row) + dur));
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

fn requests(
    tables: &dyn Tables,
    window: Option<Window>,
) -> Result<BTreeMap<String, Vec<Range>>, AnalysisError> {
    let mut projection = Projection::new(BlockIoRow::TABLE);
    let [ts, dur] = ["ts", "dur"].map(|name| projection.need(name));
    let [dev, layer] = ["dev_name", "layer"].map(|name| projection.need(name));
    let uncertain = Uncertain::new(tables, BlockIoRow::TABLE, &mut projection)?;
    let mut found: BTreeMap<String, Vec<Range>> = BTreeMap::new();
    in_order(tables, &projection.scan(window), |batch| {
        let uncertain = uncertain.of(batch)?;
        let (ts, dur) = (ts.ints(batch)?, dur.ints(batch)?);
        let (dev, layer) = (dev.texts(batch)?, layer.texts(batch)?);
        for row in 0..batch.num_rows() as u32 {
            let (Some(dur), Some(dev)) = (dur.get(row), dev.get(row)) else {
                continue;
            };
            // Stacked devices wait for the devices below them.
            if layer.get(row) == Some("bio") || uncertain.has(row) {
                continue;
            }
            let range = (ts.at(row), ts.at(row) + dur);
            match found.get_mut(dev) {
                Some(ranges) => ranges.push(range),
                None => {
                    found.insert(dev.to_owned(), vec![range]);
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// Times with at least two requests in flight.
fn queued(requests: Vec<Range>) -> Vec<Range> {
    let mut borders: Vec<(Ns, i32)> = Vec::with_capacity(requests.len() * 2);
    for (begin, end) in requests {
        borders.push((begin, 1));
        borders.push((end, -1));
    }
    // At the same time, ends come before starts.
    borders.sort_unstable();
    let (mut in_flight, mut since, mut found) = (0, None, Vec::new());
    for (at, change) in borders {
        in_flight += change;
        match since {
            None if in_flight >= 2 => since = Some(at),
            Some(begin) if in_flight < 2 => {
                found.push((begin, at));
                since = None;
            }
            _ => {}
        }
    }
    found
}

/// Merged, in order and without overlap.
fn union(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.sort_unstable();
    let mut found: Vec<Range> = Vec::new();
    for (begin, end) in ranges {
        match found.last_mut() {
            Some(last) if begin <= last.1 => last.1 = last.1.max(end),
            _ => found.push((begin, end)),
        }
    }
    found
}

/// Sets the longest wait of each item, from the waits of the threads that did them.
pub(crate) fn put_waits(items: &mut [Item], utids: &[i32], waits: &Waits) {
    for (item, utid) in items.iter_mut().zip(utids) {
        item.wait_ns_max = waits.longest(*utid, (item.ts, item.end()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_alone_is_no_queue() {
        assert_eq!(queued(vec![(0, 10), (10, 20), (30, 40)]), []);
        assert_eq!(
            queued(vec![(0, 10), (5, 20), (15, 17)]),
            [(5, 10), (15, 17)]
        );
    }

    #[test]
    fn what_touches_is_one() {
        assert_eq!(
            union(vec![(5, 7), (0, 2), (2, 3), (6, 9)]),
            [(0, 3), (5, 9)]
        );
    }

    #[test]
    fn the_longest_wait_is_that_inside() {
        let mut waits = Waits::default();
        assert_eq!(waits.longest(1, (0, 100)), None);
        waits.is_known = true;
        waits.of.insert(1, vec![(0, 30), (40, 45), (50, 90)]);
        assert_eq!(waits.longest(1, (20, 60)), Some(10));
        assert_eq!(waits.longest(1, (90, 95)), Some(0));
        assert_eq!(waits.longest(2, (0, 100)), Some(0));
    }
}
