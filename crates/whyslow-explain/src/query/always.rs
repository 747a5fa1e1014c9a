//! Findings of calls that are always slow.

use whyslow_analysis::AnalysisError;

use super::Explainer;
use crate::finding::NO_BASELINE;
use crate::report::{Confidence, Finding};
use crate::sentence;
use crate::several::Budget;
use crate::slow::SlowGroup;

/// Kinds of calls that are always slow, with a finding.
const ALWAYS: usize = 2;

impl Explainer<'_> {
    /// Adds those of the groups, as far as the limit allows. What is always slow is no incident, so
    /// it comes last.
    pub(super) fn add_always(
        &self,
        groups: &[SlowGroup],
        limit: usize,
        findings: &mut Vec<Finding>,
    ) -> Result<(), AnalysisError> {
        let free = limit.saturating_sub(findings.len()).min(ALWAYS);
        for group in groups.iter().take(free) {
            findings.extend(self.of_always(group)?);
        }
        Ok(())
    }

    /// The finding of calls that are always slow, by the longest of them.
    fn of_always(&self, group: &SlowGroup) -> Result<Option<Finding>, AnalysisError> {
        let Some(mut finding) = self.of_group(group, &mut Budget::none())? else {
            return Ok(None);
        };
        let operation = group.like.operation();
        let (count, median) = (group.count, sentence::length(group.always.unwrap_or(0)));
        finding.verdict = format!(
            "{count} {operation} are always slow: {} in total, median {median}. The longest: {}",
            sentence::length(group.total),
            finding.verdict
        );
        if let Some(of_finding) = &mut finding.group {
            of_finding.all = Some(count);
            of_finding.is_always = true;
            of_finding.others.clear();
        }
        finding.caveats.retain(|caveat| caveat != NO_BASELINE);
        finding.caveats.push(format!(
            "always slow, not only at times: the median of {count} {operation} is {median}; it may be the usual behaviour of this program"
        ));
        finding.confidence = finding.confidence.min(Confidence::Low);
        Ok(Some(finding))
    }
}
