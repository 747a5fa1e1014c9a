//! Operations whose end may be among the lost events: how long they are known to have lasted.

use std::ops::ControlFlow;

use whyslow_model::event::Hidden;
use whyslow_model::row::Row;
use whyslow_model::tables::LostEventsRow;
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use crate::AnalysisError;
use crate::fold::in_order;
use crate::scan::Projection;

/// When ends of operations may have been lost, in the whole recording.
#[derive(Debug, Clone)]
pub struct LostEnds {
    /// Disjoint, in time order.
    ranges: Vec<(Ns, Ns)>,
    recording_end: Ns,
}

impl LostEnds {
    /// Reads all losses that may hide the end of a call or request.
    pub fn read(tables: &dyn Tables) -> Result<Self, AnalysisError> {
        let mut ranges: Vec<(Ns, Ns)> = Vec::new();
        let info = tables.info();
        if info.rows_of_whole(LostEventsRow::TABLE.name) > 0 {
            let mut projection = Projection::new(LostEventsRow::TABLE);
            let [ts, ts_end] = ["ts", "ts_end"].map(|name| projection.need(name));
            let stream = projection.need("stream");
            in_order(tables, &projection.scan(None), |batch| {
                let (ts, ts_end) = (ts.ints(batch)?, ts_end.ints(batch)?);
                let stream = stream.texts(batch)?;
                for row in 0..batch.num_rows() as u32 {
                    let hidden = Hidden::of_stream(stream.get(row).unwrap_or(""));
                    if !matches!(hidden, Hidden::Others | Hidden::Threads) {
                        let end = ts_end.get(row).unwrap_or(ts.at(row));
                        push(&mut ranges, (ts.at(row), end));
                    }
                }
                Ok(ControlFlow::Continue(()))
            })?;
        }
        Ok(Self {
            ranges,
            recording_end: info.whole().end,
        })
    }

    #[cfg(test)]
    pub(crate) fn of(ranges: Vec<(Ns, Ns)>, recording_end: Ns) -> Self {
        Self {
            ranges,
            recording_end,
        }
    }

    /// Whether something was lost in a window; without one, in the whole recording.
    pub(crate) fn overlaps(&self, window: Option<Window>) -> bool {
        let is_in = |range: &(Ns, Ns)| {
            window.is_none_or(|window| range.0 < window.end && range.1 > window.begin)
        };
        self.ranges.iter().any(is_in)
    }

    /// The end of the recording.
    pub fn recording_end(&self) -> Ns {
        self.recording_end
    }

    /// Until when an operation without a recorded end is known to have been in progress: its end may
    /// be among the events lost first after its start.
    pub fn known_until(&self, ts: Ns) -> Ns {
        let next = self.ranges.partition_point(|(_, end)| *end <= ts);
        match self.ranges.get(next) {
            Some((begin, _)) => (*begin).max(ts).min(self.recording_end),
            None => self.recording_end,
        }
    }
}

impl LostEnds {
    /// Until when an operation is known to have been in progress. Only one with a duration is known
    /// to have lasted until its end: without a start, nothing shows when it started, and an uncertain
    /// end may belong to another operation.
    pub fn known_end(&self, (ts, ts_end): (Ns, Option<Ns>), length: Length) -> Ns {
        match (ts_end, length) {
            (Some(end), Length::Known) => end,
            (Some(_), Length::Unknown) => ts,
            (Some(end), Length::Uncertain) => self.known_until(ts).min(end),
            (None, _) => self.known_until(ts),
        }
    }
}

/// What a row shows about the duration of its operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Start and end were recorded.
    Known,
    /// Start or end was not recorded.
    Unknown,
    /// Start and end may belong to different operations.
    Uncertain,
}

impl Length {
    /// From the column `dur`, and the mark of uncertain rows.
    pub fn of(dur: Option<Ns>, is_uncertain: bool) -> Self {
        match dur {
            _ if is_uncertain => Self::Uncertain,
            Some(_) => Self::Known,
            None => Self::Unknown,
        }
    }
}

/// Adds a range that starts no earlier than those before.
fn push(ranges: &mut Vec<(Ns, Ns)>, (begin, end): (Ns, Ns)) {
    match ranges.last_mut() {
        Some((_, last)) if begin <= *last => *last = end.max(*last),
        _ => ranges.push((begin, end)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_without_end_is_known_until_the_next_loss() {
        let mut ranges = Vec::new();
        for range in [(10, 20), (15, 18), (19, 25), (40, 40)] {
            push(&mut ranges, range);
        }
        assert_eq!(ranges, [(10, 25), (40, 40)]);
        let ends = LostEnds::of(ranges, 90);
        let until = [5, 10, 22, 25, 40].map(|ts| ends.known_until(ts));
        assert_eq!(until, [10, 10, 22, 40, 90]);
        let end = |ts_end, length| ends.known_end((5, ts_end), length);
        assert_eq!(end(Some(70), Length::Known), 70);
        assert_eq!(end(Some(70), Length::Unknown), 5);
        assert_eq!(end(Some(70), Length::Uncertain), 10);
        assert_eq!(end(None, Length::Unknown), 10);
    }
}
