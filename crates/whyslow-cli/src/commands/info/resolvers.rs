//! Resolver configuration by mount namespace of the recorded processes.

use std::collections::BTreeMap;

use whyslow_analysis::{Resolver, resolvers};
use whyslow_model::Symbols;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::tables::ProcessRow;
use whyslow_store::{StoreError, Tables, rows};

/// One row per distinct configuration.
pub(super) fn table(tables: &dyn Tables) -> Result<AnswerTable, StoreError> {
    let mut processes: BTreeMap<i64, i64> = BTreeMap::new();
    let mut symbols = Symbols::new();
    for row in rows::<ProcessRow>(tables, &mut symbols)? {
        if let Some(ns) = row.mount_ns {
            *processes.entry(ns).or_default() += 1;
        }
    }
    let mut columns = vec![
        AnswerColumn::new("mount_ns", "mount namespaces", Measure::Text).priority(3),
        AnswerColumn::new("processes", "processes", Measure::Count),
    ];
    columns.extend(Resolver::columns());
    let mut table = AnswerTable::new("resolvers", "resolver configuration", columns);
    let mut groups: Vec<(Vec<Value>, Vec<i64>)> = Vec::new();
    for (ns, resolver) in resolvers(tables)? {
        let cells = resolver.cells();
        match groups.iter_mut().find(|(known, _)| *known == cells) {
            Some((_, namespaces)) => namespaces.push(ns),
            None => groups.push((cells, vec![ns])),
        }
    }
    for (cells, namespaces) in groups {
        let count = |ns: &i64| processes.get(ns).copied().unwrap_or(0);
        let count: i64 = namespaces.iter().map(count).sum();
        let shown = namespaces.iter().map(|ns| ns.to_string().into());
        let mut row = vec![Value::List(shown.collect()), count.into()];
        row.extend(cells);
        table.rows.push(row);
    }
    Ok(table)
}
