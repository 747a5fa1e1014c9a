//! Findings of threads that waited for CPU or memory.

use whyslow_analysis::AnalysisError;
use whyslow_model::Ns;

use super::Explainer;
use crate::finding::{Subject, finding};
use crate::report::{Confidence, Finding, Group};
use crate::sentence;
use crate::starved::{self, Starved};

/// Starved threads that are explained.
const STARVED: usize = 3;

impl Explainer<'_> {
    /// Threads that could not run, or waited for memory.
    pub(super) fn starved(
        &self,
        known: &[Finding],
        utids: &[i32],
    ) -> Result<Vec<Finding>, AnalysisError> {
        let query = self.query;
        // If slow calls explain most of a thread's waits, it already has a finding.
        let is_known = |thread: &Starved| {
            let of_thread = known
                .iter()
                .filter(|finding| finding.target.actor.tid == Some(thread.tid));
            let groups = of_thread.filter_map(|finding| finding.group.as_ref());
            groups.map(|group| group.dur_ns_total).sum::<Ns>() * 2 >= thread.total
        };
        let found = starved::threads(self.tables, query.window)?;
        let is_wanted = |thread: &&Starved| utids.is_empty() || utids.contains(&thread.utid);
        let mut findings = Vec::new();
        let wanted = found
            .iter()
            .filter(is_wanted)
            .filter(|thread| !is_known(thread));
        for thread in wanted.take(STARVED) {
            let (begin, end, tid) = (thread.begin, thread.end, thread.tid);
            let mut finding = finding(
                self.tables,
                &Subject {
                    utid: thread.utid,
                    begin,
                    end,
                    kind: "thread",
                    id: None,
                    what: format!(
                        "a window with {} wait{} for CPU or memory ({} in total)",
                        thread.waits,
                        if thread.waits == 1 { "" } else { "s" },
                        sentence::length(thread.total)
                    ),
                    cut: None,
                    only_waits: true,
                    baseline: None,
                    reproduce: self
                        .command(&format!("-w {} -t {tid}", sentence::window(begin, end))),
                    recording: query.recording.clone(),
                },
            )?;
            finding.group = Some(Group {
                operation: "waits for CPU or memory".into(),
                count: thread.waits,
                dur_ns_total: thread.total,
                dur_ns_max: thread.total,
                walked: 1,
                ..Group::default()
            });
            // On a busy machine all threads wait for each other: only one that stands out is a
            // finding.
            if finding.confidence >= Confidence::Medium {
                findings.push(finding);
            }
        }
        Ok(findings)
    }
}
