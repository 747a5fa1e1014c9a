//! Findings of groups of slow calls. All calls of a group are walked, as far as the rows to read
//! allow it, and the cause of most of their time is the headline: the longest call may be the only
//! one that is different.

use rustc_hash::FxHashMap;
use whyslow_analysis::AnalysisError;
use whyslow_model::sort::IndexSort;
use whyslow_model::{Ns, Window};

use super::Explainer;
use crate::finding::{Subject, finding, findings};
use crate::group_excess::{self, WALKED};
use crate::report::{ActorKind, Baseline, Finding, Followed, Group, Part};
use crate::several::{self, Budget};
use crate::slow::{self, Slow, SlowGroup};
use crate::versus::{Per, versus};

/// A cause: a culprit, or what a thread did itself.
type Cause<'f> = (ActorKind, &'f str, Option<i32>);

/// Parts with these roots name no cause.
const UNEXPLAINED: [&str; 3] = ["unknown", "lost", "still_blocked"];
/// What a wait for the completion of a disk request leads to.
const BY_DISK: [&str; 4] = ["block_service", "block_queue", "block_held", "device_held"];

impl Explainer<'_> {
    pub(super) fn of_group(
        &self,
        group: &SlowGroup,
        budget: &mut Budget,
    ) -> Result<Option<Finding>, AnalysisError> {
        let subjects = self.subjects(&group.longest, group.baseline.as_ref())?;
        if subjects.is_empty() {
            return Ok(None);
        }
        let mut walked = several::walked(self.tables, &subjects, budget)?;
        // They may as well have waited for work.
        if slow::is_for_completions(&group.like.call) && self.query.calls.is_empty() {
            walked.retain(|(_, finding)| is_by_disk(finding));
        }
        let Some(place) = headline(&walked) else {
            return Ok(None);
        };
        let (subject, first) = &walked[place];
        let mut finding = match walked.len() {
            1 => first.clone(),
            // As for the call alone: several may be walked in one slice.
            _ => finding(self.tables, &subjects[*subject])?,
        };
        let of_walked = walked.iter().map(|(_, finding)| finding);
        let others = others(of_walked.clone(), place, &finding);
        finding.group = Some(Group {
            operation: group.like.operation(),
            count: group.count,
            dur_ns_total: group.total,
            dur_ns_max: group.longest[0].dur,
            walked: walked.len() as u64,
            threads: group.threads(),
            processes: group.processes(),
            others,
            ..Group::default()
        });
        if !self.query.calls.is_empty() || self.other.is_some() {
            let walked: Vec<Finding> = of_walked.cloned().collect();
            self.compare(group, &walked, &mut finding)?;
        }
        Ok(Some(finding))
    }

    /// The longest calls as subjects.
    fn subjects(
        &self,
        calls: &[Slow],
        baseline: Option<&Baseline>,
    ) -> Result<Vec<Subject>, AnalysisError> {
        let mut subjects = Vec::new();
        for one in calls.iter().take(WALKED) {
            let window = Window::new(one.ts, one.ts + one.dur.max(1));
            if let Some(call) = self.call(one.id, window)? {
                subjects.push(self.subject(one.id, &call, baseline.cloned()));
            }
        }
        Ok(subjects)
    }

    /// Findings of calls that were not slow.
    pub(super) fn usual(
        &self,
        calls: &[Slow],
        baseline: Option<&Baseline>,
    ) -> Result<Vec<Finding>, AnalysisError> {
        findings(self.tables, &self.subjects(calls, baseline)?)
    }

    /// What slow calls of a group spend more time on than others.
    fn compare(
        &self,
        group: &SlowGroup,
        slow: &[Finding],
        finding: &mut Finding,
    ) -> Result<(), AnalysisError> {
        let usual = match self.other {
            Some(other) => self.there(other).usual(&group.usual, None)?,
            None => self.usual(&group.usual, group.baseline.as_ref())?,
        };
        if let Some(other) = self.other {
            finding.versus = Some(versus(slow, &usual, Per::Call, other));
            if group.elsewhere == Some(0) {
                let (operation, recording) = (group.like.operation(), other.recording);
                finding.caveats.push(format!(
                    "comparison unavailable: {recording} has no {operation}"
                ));
            }
        }
        if let Some(of_group) = &mut finding.group
            && slow.len() > 1
        {
            of_group.compared = usual.len() as u64;
            of_group.excess = group_excess::excess(slow, &usual);
        }
        Ok(())
    }
}

/// The causes that the walked operations of a group name.
struct Causes<'f> {
    /// What the others call a thread of the group that is their culprit. Its own slow operation has
    /// the same cause as the waits for it.
    by_thread: FxHashMap<(Option<i32>, Option<i32>), Cause<'f>>,
}

impl<'f> Causes<'f> {
    fn of(walked: impl Iterator<Item = &'f Finding>) -> Self {
        let mut by_thread = FxHashMap::default();
        for finding in walked {
            let Some(part) = finding.culprit.map(|place| &finding.parts[place]) else {
                continue;
            };
            let actor = &part.culprit;
            if actor.kind == ActorKind::Process && actor.tid.is_some() {
                let (kind, name, pid, _) = actor.culprit_key(finding.target.actor.pid);
                let cause = (kind, name, pid);
                by_thread.entry((actor.pid, actor.tid)).or_insert(cause);
            }
        }
        Self { by_thread }
    }

    /// The cause that a part names; none if it is not known.
    fn cause<'a>(&self, part: &'a Part, finding: &'a Finding) -> Option<Cause<'a>>
    where
        'f: 'a,
    {
        let actor = &part.culprit;
        let is_known =
            actor.kind != ActorKind::Unknown && !UNEXPLAINED.contains(&part.root.as_str());
        is_known.then(|| {
            let target = &finding.target.actor;
            if actor.kind == ActorKind::Own {
                let of_others = self.by_thread.get(&(target.pid, target.tid));
                let own = (ActorKind::Own, part.root.as_str(), None);
                return of_others.copied().unwrap_or(own);
            }
            let (kind, name, pid, _) = actor.culprit_key(target.pid);
            (kind, name, pid)
        })
    }

    /// The cause that a finding names.
    fn named<'a>(&self, finding: &'a Finding) -> Option<Cause<'a>>
    where
        'f: 'a,
    {
        self.cause(finding.parts.get(finding.culprit?)?, finding)
    }
}

/// The longest operation whose culprit takes most of the time of all, rather one that waited for it
/// than its own; if none has one, the longest operation.
fn headline(walked: &[(usize, Finding)]) -> Option<usize> {
    let causes = Causes::of(walked.iter().map(|(_, finding)| finding));
    let mut sums: FxHashMap<Cause<'_>, Ns> = FxHashMap::default();
    for (_, finding) in walked {
        for part in &finding.parts {
            if let Some(cause) = causes.cause(part, finding) {
                *sums.entry(cause).or_default() += part.dur_ns;
            }
        }
    }
    let is_own = |finding: &Finding| {
        let part = finding.culprit.map(|place| &finding.parts[place]);
        part.is_some_and(|part| part.culprit.kind == ActorKind::Own)
    };
    let mut places: Vec<usize> = (0..walked.len()).collect();
    places.index_sort_by_key(|place| {
        let finding = &walked[*place].1;
        let sum = causes.named(finding).and_then(|cause| sums.get(&cause));
        let sum = std::cmp::Reverse(sum.copied().unwrap_or(-1));
        (sum, is_own(finding), *place)
    });
    places.first().copied()
}

/// The other walked operations, the longest first.
fn others<'f>(
    walked: impl Iterator<Item = &'f Finding> + Clone,
    headline: usize,
    finding: &Finding,
) -> Vec<Followed> {
    let causes = Causes::of(walked.clone());
    let wanted = causes.named(finding);
    let others = walked.enumerate().filter(|(place, _)| *place != headline);
    others
        .map(|(_, other)| Followed {
            actor: other.target.actor.clone(),
            what: other.target.what.clone(),
            id: other.target.id.clone().unwrap_or_default(),
            begin_ns: other.target.begin_ns,
            end_ns: other.target.end_ns,
            is_same: wanted.is_some() && causes.named(other) == wanted,
        })
        .collect()
}

/// Whether most of the time was a wait for requests to disks.
fn is_by_disk(finding: &Finding) -> bool {
    let target = &finding.target;
    let parts = finding.parts.iter();
    let by_disk = parts.filter(|part| BY_DISK.contains(&part.root.as_str()));
    let sum: Ns = by_disk.map(|part| part.dur_ns).sum();
    sum * 2 >= target.end_ns - target.begin_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Actor, Target};

    /// A finding of an operation of one thread with a part that names another, or its own thread.
    fn finding(tid: i32, (culprit, dur): (i32, Ns)) -> (usize, Finding) {
        let actor = |kind, tid: i32| Actor {
            kind,
            name: format!("t{tid}"),
            pid: Some(1),
            tid: Some(tid),
            host: None,
        };
        let kind = if culprit == tid {
            ActorKind::Own
        } else {
            ActorKind::Process
        };
        let finding = Finding {
            target: Target {
                actor: actor(ActorKind::Own, tid),
                end_ns: dur,
                ..Target::default()
            },
            parts: vec![Part {
                culprit: actor(kind, culprit),
                dur_ns: dur,
                ..Part::default()
            }],
            culprit: Some(0),
            ..Finding::default()
        };
        (0, finding)
    }

    /// A thread's own long call, and shorter waits of another thread for it, are one cause.
    #[test]
    fn a_wait_for_a_thread_represents_the_call_of_that_thread() {
        let of_group = |findings: &[(i32, (i32, Ns))]| {
            let walked: Vec<_> = findings
                .iter()
                .map(|(tid, rest)| finding(*tid, *rest))
                .collect();
            headline(&walked)
        };
        assert_eq!(
            of_group(&[(2, (2, 100)), (3, (2, 90)), (2, (2, 80))]),
            Some(1)
        );
        // A cause of its own that takes more time comes first.
        assert_eq!(
            of_group(&[(2, (2, 100)), (3, (4, 90)), (2, (2, 80))]),
            Some(0)
        );
        assert_eq!(of_group(&[(3, (4, 90)), (2, (2, 50))]), Some(0));
    }
}
