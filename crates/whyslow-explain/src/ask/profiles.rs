//! What profiles answer, beside what the kernel's events do.

use whyslow_analysis::AnalysisError;
use whyslow_model::Window;

use super::Asker;
use crate::report::Story;
use crate::sampled;
use crate::story::{Subject, story};

impl Asker<'_> {
    /// What profiles tell of these threads, or of all.
    pub(super) fn sampled(&self, utids: &[i32]) -> Result<Vec<Story>, AnalysisError> {
        if !sampled::is_there(self.tables) {
            return Ok(Vec::new());
        }
        let asked = sampled::Asked {
            window: self.question.window,
            utids: utids.to_vec(),
            calls: self.question.calls.clone(),
            min: self.question.min,
            recording: &self.question.recording,
        };
        let told = sampled::stories(self.tables, &asked)?;
        told.into_iter().map(|told| self.proven(told)).collect()
    }

    /// The same story with the proof, where the kernel's events of that time are there.
    pub(super) fn proven(&self, (utid, sampled): (i32, Story)) -> Result<Story, AnalysisError> {
        let (target, recording) = (&sampled.target, &self.question.recording);
        let window = Window::new(target.begin_ns, target.end_ns);
        if !sampled::has_states(self.tables, utid, window)? {
            return Ok(sampled);
        }
        let mut proven = story(
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
            .push(format!("by the profile alone: {}", sampled.verdict));
        proven.group = sampled.group;
        Ok(proven)
    }
}
