//! The bars of the drawing: the culprit, the thread between it and the victim, and the victims.

use whyslow_model::Ns;
use whyslow_model::tables::CUT_UNCERTAIN;

use super::Drawn;
use super::model::{Role, TimelineRow};
use super::names::{call, call_of};
use crate::report::{Activity, Hop};

/// Most bars of a drawing.
pub const ROWS_MAX: usize = 4;

impl Drawn<'_> {
    pub(super) fn timeline(&self) -> Vec<TimelineRow> {
        let mut rows: Vec<TimelineRow> = self.culprit_row().into_iter().collect();
        rows.extend(self.between_row());
        let mut victims = vec![self.target_row()];
        let left = ROWS_MAX.saturating_sub(rows.len() + 1);
        victims.extend(self.further_rows().into_iter().take(left));
        victims.sort_by_key(|row| row.begin_ns);
        rows.extend(victims);
        rows
    }

    fn culprit_row(&self) -> Option<TimelineRow> {
        let part = self.other()?;
        let label = self.names.label(&part.culprit).to_owned();
        if let Some(activity) = self.activity() {
            return Some(self.row(Role::Culprit, label, activity));
        }
        // Otherwise what the longest interval of the part shows.
        let hop = self.finding.chain.last()?;
        let what = part.activity.as_ref().map(call_of).unwrap_or_default();
        Some(of_hop(Role::Culprit, label, what, hop))
    }

    fn between_row(&self) -> Option<TimelineRow> {
        let direct = self.between()?;
        let hop = self.finding.chain.get(1)?;
        let what = hop.activity.as_ref().map(call_of).unwrap_or_default();
        let label = self.names.label(direct).to_owned();
        Some(of_hop(Role::Between, label, what, hop))
    }

    fn target_row(&self) -> TimelineRow {
        let target = &self.finding.target;
        let what = match target.kind.as_str() {
            "operation" if !target.what.contains('(') => call(&target.what),
            _ => target.what.clone(),
        };
        TimelineRow {
            role: Role::Victim,
            label: self.names.label(&target.actor).to_owned(),
            what,
            begin_ns: target.begin_ns,
            end_ns: target.end_ns,
            cut: match target.cut.as_deref() {
                Some("begin") => Some("begin"),
                Some("end" | CUT_UNCERTAIN) => Some("end"),
                Some(_) => Some("both"),
                None => None,
            },
            id: target.id.clone(),
        }
    }

    /// Other slow operations with the same culprit, the longest first.
    fn further_rows(&self) -> Vec<TimelineRow> {
        let group = self.finding.group.as_ref();
        let others = group.map_or(&[][..], |group| group.others.as_slice());
        let victim = |label: &str, what: &str, (begin_ns, end_ns): (Ns, Ns), id| TimelineRow {
            role: Role::Victim,
            label: label.to_owned(),
            what: what.to_owned(),
            begin_ns,
            end_ns,
            cut: None,
            id,
        };
        let same = others.iter().filter(|other| other.is_same).map(|other| {
            let label = self.names.label(&other.actor);
            let times = (other.begin_ns, other.end_ns);
            victim(label, &other.what, times, Some(other.id.clone()))
        });
        let culprit = self.culprit.map(|part| &part.culprit);
        let also = self.finding.also.iter();
        let also = also.filter(|also| culprit.is_none_or(|it| it.pid != also.actor.pid));
        let also = also.map(|also| {
            let label = self.names.label(&also.actor);
            let times = (also.begin_ns, also.begin_ns + also.dur_ns);
            victim(label, &also.what, times, also.id.clone())
        });
        let mut rows: Vec<TimelineRow> = same.chain(also).collect();
        rows.sort_by_key(|row| row.begin_ns - row.end_ns);
        rows
    }

    fn row(&self, role: Role, label: String, activity: &Activity) -> TimelineRow {
        let is_before = activity.begin_ns <= self.recorded.begin;
        let cut = match (is_before, activity.end_ns) {
            (true, None) => Some("both"),
            (true, Some(_)) => Some("begin"),
            (false, None) => Some("end"),
            (false, Some(_)) => None,
        };
        TimelineRow {
            role,
            label,
            what: call_of(activity),
            begin_ns: activity.begin_ns,
            end_ns: activity.end_ns.unwrap_or(self.recorded.end),
            cut,
            id: activity.id.clone(),
        }
    }
}

fn of_hop(role: Role, label: String, what: String, hop: &Hop) -> TimelineRow {
    TimelineRow {
        role,
        label,
        what,
        begin_ns: hop.begin_ns,
        end_ns: hop.end_ns,
        cut: None,
        id: None,
    }
}
