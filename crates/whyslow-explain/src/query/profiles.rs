//! Stories from profiles, in addition to those from kernel events.

use whyslow_analysis::AnalysisError;
use whyslow_model::Window;

use super::Explainer;
use crate::report::Story;
use crate::sampled;
use crate::story::{Subject, story};

impl Explainer<'_> {
    /// Stories that profiles give for these threads, or for all.
    pub(super) fn sampled(&self, utids: &[i32]) -> Result<Vec<Story>, AnalysisError> {
        if !sampled::is_there(self.tables) {
            return Ok(Vec::new());
        }
        let query = sampled::ProfileQuery {
            window: self.question.window,
            utids: utids.to_vec(),
            calls: self.question.calls.clone(),
            min: self.question.min,
            recording: &self.question.recording,
        };
        let stories = sampled::stories(self.tables, &query)?;
        stories
            .into_iter()
            .map(|story| self.proven(story))
            .collect()
    }

    /// The same story proven by kernel events of that time, where they were recorded.
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
            .push(format!("from the profile alone: {}", sampled.verdict));
        proven.group = sampled.group;
        Ok(proven)
    }
}
