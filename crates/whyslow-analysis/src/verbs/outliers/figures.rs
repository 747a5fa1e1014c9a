//! Statistics of each device: requests, device times, and requests over the threshold.

use std::collections::{BTreeMap, BinaryHeap};

use arrow_array::RecordBatch;
use whyslow_model::{Ns, Window};

use crate::AnalysisError;
use crate::context::Context;
use crate::fold::Spot;
use crate::keys::{Key, KeyValue};
use crate::kinds::BLOCK;
use crate::lost_ends::LostEnds;
use crate::pass::{Pass, Summing};
use crate::query::Filter;
use crate::rows::Place;
use crate::scan::{ColumnRef, Ints};
use whyslow_model::histogram::Histogram;

/// A device without a name in the recording.
pub(super) const UNKNOWN: &str = "unknown";

/// A device in an interval: the start of the interval, and the name of the device.
pub(super) type Where = (Ns, String);

/// Statistics of a device.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) count: i64,
    /// At least as long as the threshold, or known to be.
    pub(super) over: i64,
    pub(super) unfinished: i64,
    /// The first requests over the threshold.
    pub(super) first: First,
    /// From issue to completion.
    pub(super) device: Histogram,
}

/// The first rows in table order.
#[derive(Debug, Default)]
pub(super) struct First(BinaryHeap<Place>);

impl First {
    fn offer(&mut self, place: Place, limit: usize) {
        if self.0.len() < limit {
            self.0.push(place);
        } else if let Some(mut last) = self.0.peek_mut()
            && place < *last
        {
            *last = place;
        }
    }

    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
        self.0.iter().copied()
    }
}

/// The query's filter without its limits on duration: those select what is shown, but a device is
/// judged by all of its requests.
pub(super) fn any_length(filter: &Filter) -> Filter {
    Filter {
        dur_min: None,
        dur_max: None,
        ..filter.clone()
    }
}

/// Keeps the first `limit` requests over the threshold.
pub(super) fn by_device(
    context: &Context<'_>,
    threshold: Ns,
    limit: usize,
) -> Result<BTreeMap<Where, Figures>, AnalysisError> {
    let filter = &context.query.filter;
    let mut pass = context.pass_of(&BLOCK, &[Key::Dev], &any_length(filter))?;
    if let Some(width) = context.interval {
        pass.group_by_time(context.span, width);
    }
    let longest = filter.dur_max.unwrap_or(Ns::MAX);
    let bounds = Window::new(threshold, longest);
    let adding = Adding::new((bounds, limit), &context.lost_ends, &mut pass);
    let groups = pass.run(context.tables, &adding)?;
    let place = |group: &[KeyValue]| match group {
        [device, KeyValue::Int(begin)] => (*begin, name(device)),
        [device, ..] => (context.span.begin, name(device)),
        [] => (context.span.begin, String::new()),
    };
    let groups = groups.into_iter();
    Ok(groups
        .map(|(group, figures)| (place(&group), figures))
        .collect())
}

fn name(device: &KeyValue) -> String {
    match device {
        KeyValue::Text(name) => name.to_string(),
        _ => UNKNOWN.into(),
    }
}

struct Adding<'c> {
    bounds: Window,
    limit: usize,
    ends: &'c LostEnds,
    id: ColumnRef,
    ts: ColumnRef,
    dur: ColumnRef,
    ts_end: ColumnRef,
    device: ColumnRef,
}

impl<'c> Adding<'c> {
    fn new((bounds, limit): (Window, usize), ends: &'c LostEnds, pass: &mut Pass) -> Self {
        let projection = &mut pass.projection;
        Self {
            bounds,
            limit,
            ends,
            id: projection.need("id"),
            ts: projection.need("ts"),
            dur: projection.need("dur"),
            ts_end: projection.need("ts_end"),
            device: projection.need("device_ns"),
        }
    }
}

impl Summing for Adding<'_> {
    type Columns<'b> = ([Ints<'b>; 5], Spot);
    type Sum = Figures;

    fn columns<'b>(
        &self,
        batch: &'b RecordBatch,
        first: Spot,
    ) -> Result<Self::Columns<'b>, AnalysisError> {
        let columns = [
            self.id.ints(batch)?,
            self.ts.ints(batch)?,
            self.dur.ints(batch)?,
            self.ts_end.ints(batch)?,
            self.device.ints(batch)?,
        ];
        Ok((columns, first))
    }

    fn add(&self, sum: &mut Figures, (columns, first): &Self::Columns<'_>, row: u32) {
        let [id, ts, dur, ts_end, device] = columns;
        let Window {
            begin: least,
            end: most,
        } = self.bounds;
        sum.count += 1;
        let is_over = if let Some(dur) = dur.get(row) {
            least <= dur && dur <= most
        } else {
            sum.unfinished += 1;
            // An end without a start does not show how long the request took.
            let known = match ts_end.get(row) {
                Some(_) => 0,
                None => self.ends.known_until(ts.at(row)) - ts.at(row),
            };
            most == Ns::MAX && least <= known
        };
        if is_over {
            sum.over += 1;
            let place = Place {
                ts: ts.at(row),
                id: id.at(row),
                spot: first.row(row),
            };
            sum.first.offer(place, self.limit);
        }
        if let Some(ns) = device.get(row) {
            sum.device.add(ns);
        }
    }

    fn merge(&self, sum: &mut Figures, other: Figures) {
        sum.count += other.count;
        sum.over += other.over;
        sum.unfinished += other.unfinished;
        for place in other.first.places() {
            sum.first.offer(place, self.limit);
        }
        sum.device.merge(&other.device);
    }
}
