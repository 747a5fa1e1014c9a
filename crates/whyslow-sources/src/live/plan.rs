use std::collections::BTreeSet;

use whyslow_model::Ns;
use whyslow_record::Topic;

use super::whom::Whom;

/// What to record, and how often to ask.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Who records.
    pub whom: Whom,
    /// What is recorded.
    pub topics: BTreeSet<Topic>,
    /// Calls of these processes are enough; of all if there are none.
    pub pids: Vec<i32>,
    /// Without one there is one answer.
    pub interval: Option<Ns>,
    /// Answers; none is until somebody says stop.
    pub count: Option<i64>,
}

impl Plan {
    /// Of what questions of a kind need.
    pub fn of(whom: Whom, topics: &[Topic]) -> Self {
        Self {
            whom,
            topics: topics.iter().copied().collect(),
            ..Self::default()
        }
    }
}
