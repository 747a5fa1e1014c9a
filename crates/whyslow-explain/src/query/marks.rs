//! The first slow operation near each marker that a user added: what a deployment or another change
//! may have caused.

use whyslow_analysis::AnalysisError;
use whyslow_model::row::Row;
use whyslow_model::tables::MarkerRow;
use whyslow_model::{Ns, Symbols, Window};
use whyslow_store::each_row;

use super::Explainer;
use crate::report::{MarkNote, Report};
use crate::sentence;
use crate::slow::{self, Wanted};
use crate::trigger::{self, MARK};

/// An operation that starts later than this after a marker is not near it.
const NEAR: Ns = 60_000_000_000;
/// Maximum number of markers, the first of the window.
const MARKS_MAX: usize = 10;

/// A slow request or system call.
struct SlowOne {
    ts: Ns,
    dur: Ns,
    id: String,
    what: String,
}

impl Explainer<'_> {
    /// Adds a note for each marker of a user.
    pub(super) fn add_marks(&self, report: &mut Report) -> Result<(), AnalysisError> {
        let marks = self.marks()?;
        if marks.is_empty() {
            return Ok(());
        }
        let slow = self.slow_ones()?;
        for (ts, text) in marks {
            let mut near = slow.iter();
            let first = near.find(|one| one.ts.saturating_add(one.dur) > ts);
            let first = first.filter(|one| one.ts <= ts.saturating_add(NEAR));
            let summary = match first {
                Some(one) => {
                    let length = sentence::length(one.dur);
                    let when = match one.ts - ts {
                        later if later >= 0 => {
                            format!("started {} after it", sentence::length(later))
                        }
                        _ => "was in progress".to_owned(),
                    };
                    format!(
                        "first slow operation near it: {} ({}) took {length} and {when}",
                        one.what, one.id
                    )
                }
                None => "no slow request or system call in the minute after it".to_owned(),
            };
            report.marks.push(MarkNote {
                ts_ns: ts,
                text,
                id: first.map(|one| one.id.clone()),
                summary,
            });
        }
        Ok(())
    }

    /// Time and text of the markers, without that of the trigger.
    fn marks(&self) -> Result<Vec<(Ns, String)>, AnalysisError> {
        let is_there = self.tables.info().tables.get(MarkerRow::TABLE.name);
        if is_there.is_some_and(|table| table.rows == 0) {
            return Ok(Vec::new());
        }
        let trigger = trigger::facts(self.tables)?.map(|facts| facts.text);
        let mut found = Vec::new();
        let window = self.query.window;
        each_row::<MarkerRow>(self.tables, window, &mut Symbols::new(), |row, symbols| {
            let text = symbols.get(row.text);
            let is_inside = window.is_none_or(|window| window.contains(row.ts));
            let is_users = symbols.get(row.name) == MARK && trigger.as_deref() != Some(text);
            if is_inside && is_users && found.len() < MARKS_MAX {
                found.push((row.ts, text.to_owned()));
            }
            Ok(())
        })?;
        found.sort();
        Ok(found)
    }

    /// Slow requests and system calls in order of their start.
    fn slow_ones(&self) -> Result<Vec<SlowOne>, AnalysisError> {
        let mut found = Vec::new();
        for one in crate::requests::slow_ones(self.tables, None)? {
            found.push(SlowOne {
                ts: one.ts,
                dur: one.dur,
                id: format!("request:{}", one.id),
                what: format!("request {}", one.what).trim_end().to_owned(),
            });
        }
        let groups = slow::groups(self.tables, &Wanted::default(), None)?;
        // What is always slow is not slow because of something near a marker.
        let at_times = groups.iter().filter(|group| group.always.is_none());
        for call in at_times.flat_map(|group| &group.longest) {
            let window = Window::new(call.ts, call.ts + call.dur.max(1));
            if let Some(called) = self.call(call.id, window)? {
                found.push(SlowOne {
                    ts: call.ts,
                    dur: call.dur,
                    id: format!("op:{}", call.id),
                    what: match called.path {
                        Some(path) => format!("{}({path})", called.name),
                        None => called.name,
                    },
                });
            }
        }
        found.sort_by(|one, other| (one.ts, &one.id).cmp(&(other.ts, &other.id)));
        Ok(found)
    }
}
