//! Further slow operations of a finding: whether they have the same culprit.

use whyslow_analysis::AnalysisError;
use whyslow_model::Window;

use super::Explainer;
use crate::finding::finding;
use crate::report::{Actor, ActorKind, Finding, Followed};
use crate::slow::SlowGroup;

/// Operations of a finding that are followed besides the longest.
const OTHERS: usize = 2;
/// Findings whose other operations are followed.
const FINDINGS: usize = 5;

/// The longest operations of a group after the first, not followed yet.
pub(super) fn candidates(group: &SlowGroup) -> Vec<Followed> {
    let others = group.longest.iter().skip(1).take(OTHERS);
    others
        .map(|slow| Followed {
            actor: Actor::default(),
            what: String::new(),
            id: format!("op:{}", slow.id),
            begin_ns: slow.ts,
            end_ns: slow.ts + slow.dur.max(1),
            is_same: false,
        })
        .collect()
}

impl Explainer<'_> {
    /// Follows the wait chains of further slow operations with another culprit than the thread
    /// itself, and drops those that cannot be followed.
    pub(super) fn follow_others(&self, findings: &mut [Finding]) -> Result<(), AnalysisError> {
        for (place, finding) in findings.iter_mut().enumerate() {
            let culprit = finding
                .culprit
                .map(|place| finding.parts[place].culprit.clone());
            let Some(group) = &mut finding.group else {
                continue;
            };
            let others = std::mem::take(&mut group.others);
            let is_other = |culprit: &Actor| culprit.kind != ActorKind::Own;
            let Some(culprit) = culprit.filter(is_other).filter(|_| place < FINDINGS) else {
                continue;
            };
            let baseline = finding.baseline.clone();
            for other in others {
                group
                    .others
                    .extend(self.followed(other, baseline.clone(), &culprit)?);
            }
            group.walked = group.walked.max(1 + group.others.len() as u64);
        }
        Ok(())
    }

    fn followed(
        &self,
        mut other: Followed,
        baseline: Option<crate::report::Baseline>,
        culprit: &Actor,
    ) -> Result<Option<Followed>, AnalysisError> {
        let window = Window::new(other.begin_ns, other.end_ns);
        let id = other.id.strip_prefix("op:").and_then(|id| id.parse().ok());
        let Some(id) = id else {
            return Ok(None);
        };
        let Some(call) = self.call(id, window)? else {
            return Ok(None);
        };
        let found = finding(self.tables, &self.subject(id, &call, baseline))?;
        let theirs = found.culprit.map(|place| &found.parts[place].culprit);
        other.is_same =
            theirs.is_some_and(|theirs| theirs.is_culprit_with(culprit, found.target.actor.pid));
        other.what = found.target.what;
        other.actor = found.target.actor;
        Ok(Some(other))
    }
}
