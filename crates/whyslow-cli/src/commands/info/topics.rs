//! Which kinds have events, and why the others have none.

use whyslow_analysis::{AnalysisError, TOPICS, topic_state};
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_store::Tables;

pub(super) fn table(tables: &dyn Tables) -> Result<AnswerTable, AnalysisError> {
    let columns = vec![
        AnswerColumn::new("kind", "topic", Measure::Text),
        AnswerColumn::new("state", "state", Measure::Text),
        AnswerColumn::new("count", "count", Measure::Count),
        AnswerColumn::new("reason", "reason", Measure::Text)
            .priority(1)
            .sparse(true),
        AnswerColumn::new("record_with", "record with", Measure::Text)
            .priority(2)
            .sparse(true),
    ];
    let mut table = AnswerTable::new("topics", "topics", columns);
    for topic in TOPICS {
        let state = topic_state(tables, topic.kind)?;
        let count = state.count().map(|count| count as i64);
        table.rows.push(vec![
            topic.kind.name().into(),
            state.name().into(),
            count.into(),
            state.reason().into(),
            Value::from(state.record_with()),
        ]);
    }
    Ok(table)
}
