//! Resolver configuration for DNS lookups: name servers, search list and timeouts of the processes
//! that did them, by mount namespace.

use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::sort::IndexSort;

use crate::AnalysisError;
use crate::context::Context;
use crate::keys::{Key, KeyValue};
use crate::pass::Count;
use crate::resolvers::{Resolver, resolvers};
use crate::spec::Spec;

/// `None` if the files were not recorded.
pub(crate) fn table(
    context: &Context<'_>,
    spec: &'static Spec,
) -> Result<Option<AnswerTable>, AnalysisError> {
    let known = resolvers(context.tables)?;
    if known.is_empty() || context.interval.is_some() {
        return Ok(None);
    }
    let pass = context.pass(spec, &[Key::MountNs, Key::Container])?;
    let mut groups: Vec<_> = pass.run(context.tables, &Count)?.into_iter().collect();
    groups.index_sort_by(|(group_a, a), (group_b, b)| b.cmp(a).then_with(|| group_a.cmp(group_b)));
    let column = AnswerColumn::new;
    let mut columns = vec![
        column("mount_ns", "mount namespace", Measure::Count).priority(3),
        column("container", "container", Measure::Text).priority(4),
        column("lookups", "lookups", Measure::Count),
    ];
    columns.extend(Resolver::columns());
    let mut table = AnswerTable::new("resolvers", "resolver configuration", columns);
    for (group, lookups) in groups {
        let mut row: Vec<Value> = Vec::with_capacity(table.columns.len());
        for (key, value) in [Key::MountNs, Key::Container].iter().zip(&group) {
            row.extend(key.cells(value, &context.names));
        }
        row.push((lookups as i64).into());
        let resolver = match group.first() {
            Some(KeyValue::Int(ns)) => known.get(ns),
            _ => None,
        };
        match resolver {
            Some(resolver) => row.extend(resolver.cells()),
            None => row.resize(table.columns.len(), Value::Null),
        }
        if let Some(changed) = resolver.filter(|resolver| resolver.is_changed) {
            context.note(format!(
                "the resolver configuration of mount namespace {} changed during the recording: the \
                 last one is shown",
                changed.mount_ns
            ));
        }
        table.rows.push(row);
    }
    if table
        .rows
        .iter()
        .any(|row| row.last() == Some(&Value::Null) && row[3] == Value::Null)
    {
        context.note(
            "resolver configuration unavailable for some processes: their mount namespace is \
             unknown, or was gone before its files could be read"
                .into(),
        );
    }
    Ok(Some(table))
}
