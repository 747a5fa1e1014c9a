use std::collections::BTreeSet;

use whyslow_model::Ns;
use whyslow_record::Topic;

use super::recorder_choice::RecorderChoice;

/// What to record, and how often to query it.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// The recorder.
    pub choice: RecorderChoice,
    /// The topics to record.
    pub topics: BTreeSet<Topic>,
    /// Processes whose calls are recorded; all if empty.
    pub pids: Vec<i32>,
    /// `None` for a single answer.
    pub interval: Option<Ns>,
    /// Number of answers; `None` to run until interrupted.
    pub count: Option<i64>,
}

impl Plan {
    /// A plan for queries that need these topics.
    pub fn of(choice: RecorderChoice, topics: &[Topic]) -> Self {
        Self {
            choice,
            topics: topics.iter().copied().collect(),
            ..Self::default()
        }
    }
}
