//! Findings from profiles, in addition to those from kernel events.

use whyslow_analysis::AnalysisError;
use whyslow_model::Window;

use super::Explainer;
use crate::finding::{Subject, finding};
use crate::report::Finding;
use crate::sampled;

impl Explainer<'_> {
    /// Findings that profiles give for these threads, or for all.
    pub(super) fn sampled(&self, utids: &[i32]) -> Result<Vec<Finding>, AnalysisError> {
        if !sampled::is_there(self.tables) {
            return Ok(Vec::new());
        }
        let query = sampled::ProfileQuery {
            window: self.query.window,
            utids: utids.to_vec(),
            calls: self.query.calls.clone(),
            min: self.query.min,
            recording: &self.query.recording,
        };
        let findings = sampled::findings(self.tables, &query)?;
        findings
            .into_iter()
            .map(|finding| self.proven(finding))
            .collect()
    }

    /// The same finding proven by kernel events of that time, where they were recorded.
    pub(super) fn proven(&self, (utid, sampled): (i32, Finding)) -> Result<Finding, AnalysisError> {
        let (target, recording) = (&sampled.target, &self.query.recording);
        let window = Window::new(target.begin_ns, target.end_ns);
        if !sampled::has_states(self.tables, utid, window)? {
            return Ok(sampled);
        }
        let mut proven = finding(
            self.tables,
            &Subject {
                utid,
                begin: target.begin_ns,
                end: target.end_ns,
                kind: "operation",
                id: target.id.clone(),
                what: target.what.clone(),
                cut: None,
                only_waits: false,
                baseline: None,
                reproduce: sampled.reproduce.clone(),
                recording: recording.clone(),
            },
        )?;
        if proven.culprit.is_none() {
            return Ok(sampled);
        }
        proven
            .caveats
            .push(format!("from the profile alone: {}", sampled.verdict));
        proven.group = sampled.group;
        Ok(proven)
    }
}
