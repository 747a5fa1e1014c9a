//! What each device did: requests, their times in the device, and those over the threshold.

use arrow_array::RecordBatch;
use whyslow_model::{Ns, Window};

use crate::AnalysisError;
use crate::context::Context;
use crate::fold::Spot;
use crate::histogram::Histogram;
use crate::keys::{Key, KeyValue};
use crate::kinds::BLOCK;
use crate::pass::{Pass, Summing};
use crate::query::Filter;
use crate::scan::{ColumnRef, Ints};
use std::collections::BTreeMap;

/// A device that the recording does not name.
pub(super) const UNKNOWN: &str = "unknown";

/// A device in an interval: the begin of that, and the name.
pub(super) type Where = (Ns, String);

/// What is summed up of a device.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) count: i64,
    /// As long as the threshold, or known to be.
    pub(super) over: i64,
    pub(super) unfinished: i64,
    /// From issue to completion.
    pub(super) device: Histogram,
}

/// The question's filter without its bounds on durations: those choose what is shown, while a device
/// is judged by all of its requests.
pub(super) fn any_length(filter: &Filter) -> Filter {
    Filter {
        dur_min: None,
        dur_max: None,
        ..filter.clone()
    }
}

pub(super) fn by_device(
    context: &Context<'_>,
    threshold: Ns,
) -> Result<BTreeMap<Where, Figures>, AnalysisError> {
    let filter = &context.question.filter;
    let mut pass = context.pass_of(&BLOCK, &[Key::Dev], &any_length(filter))?;
    if let Some(width) = context.interval {
        pass.group_by_time(context.span, width);
    }
    let longest = filter.dur_max.unwrap_or(Ns::MAX);
    let adding = Adding::new((threshold, longest), context.recording_end(), &mut pass);
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

struct Adding {
    bounds: Window,
    recording_end: Ns,
    ts: ColumnRef,
    dur: ColumnRef,
    ts_end: ColumnRef,
    device: ColumnRef,
}

impl Adding {
    fn new((least, most): (Ns, Ns), recording_end: Ns, pass: &mut Pass) -> Self {
        let projection = &mut pass.projection;
        Self {
            bounds: Window::new(least, most),
            recording_end,
            ts: projection.need("ts"),
            dur: projection.need("dur"),
            ts_end: projection.need("ts_end"),
            device: projection.need("device_ns"),
        }
    }
}

impl Summing for Adding {
    type Columns<'b> = [Ints<'b>; 4];
    type Sum = Figures;

    fn columns<'b>(&self, batch: &'b RecordBatch, _: Spot) -> Result<[Ints<'b>; 4], AnalysisError> {
        Ok([
            self.ts.ints(batch)?,
            self.dur.ints(batch)?,
            self.ts_end.ints(batch)?,
            self.device.ints(batch)?,
        ])
    }

    fn add(&self, sum: &mut Figures, [ts, dur, ts_end, device]: &[Ints<'_>; 4], row: u32) {
        let Window {
            begin: least,
            end: most,
        } = self.bounds;
        sum.count += 1;
        let is_over = if let Some(dur) = dur.get(row) {
            least <= dur && dur <= most
        } else {
            sum.unfinished += 1;
            let known = ts_end.get(row).unwrap_or(self.recording_end) - ts.at(row);
            most == Ns::MAX && least <= known
        };
        sum.over += i64::from(is_over);
        if let Some(ns) = device.get(row) {
            sum.device.add(ns);
        }
    }

    fn merge(&self, sum: &mut Figures, other: Figures) {
        sum.count += other.count;
        sum.over += other.over;
        sum.unfinished += other.unfinished;
        sum.device.merge(&other.device);
    }
}
