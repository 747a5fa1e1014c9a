//! Names in event tables: counts rows by word.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::Instant;

use arrow_array::RecordBatch;
use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};
use serde_json::{Value, json};
use whyslow_analysis::AnalysisError;
use whyslow_analysis::read::{ColumnRef, Projection};
use whyslow_model::tables::{DnsLookupRow, SyscallRow};
use whyslow_model::{Row as _, Table};
use whyslow_store::Tables;

use super::{Hit, Needle, TIME_MAX};
use crate::reply::Refusal;

/// Hits, and whether all rows were searched.
type Matches = (Vec<Hit>, bool);

/// Rows with one word.
#[derive(Debug, Clone, Default)]
struct Rows {
    count: u64,
    first: i64,
    last: i64,
    class: Option<String>,
}

pub(super) fn files(tables: &dyn Tables, needle: &Needle) -> Result<Matches, Refusal> {
    let hits = |path: String, rows: Rows| {
        // The path is a literal, not a pattern.
        let filter = json!({"file": globbed(&path)});
        hit("file", path, rows, filter)
    };
    search(
        tables,
        SyscallRow::TABLE,
        ("path", Some("fd_class")),
        needle,
        hits,
    )
}

pub(super) fn hosts(tables: &dyn Tables, needle: &Needle) -> Result<Matches, Refusal> {
    let hits = |host: String, rows: Rows| hit("host", host, rows, json!({}));
    search(tables, DnsLookupRow::TABLE, ("host", None), needle, hits)
}

fn hit(kind: &'static str, text: String, rows: Rows, filter: Value) -> Hit {
    Hit {
        kind,
        text,
        detail: rows.class,
        count: Some(rows.count),
        begin_ns: Some(rows.first),
        end_ns: Some(rows.last),
        filter,
    }
}

/// The path as a glob that matches only this path.
fn globbed(path: &str) -> String {
    let mut glob = String::new();
    for c in path.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '!' | '\\') {
            glob.push('\\');
        }
        glob.push(c);
    }
    glob
}

fn search(
    tables: &dyn Tables,
    table: &'static Table,
    (column, class): (&'static str, Option<&'static str>),
    needle: &Needle,
    hit: impl Fn(String, Rows) -> Hit,
) -> Result<Matches, Refusal> {
    let none = (Vec::new(), true);
    let rows = tables.info().tables.get(table.name);
    if rows.is_none_or(|rows| rows.rows == 0) {
        return Ok(none);
    }
    // If the dictionary is complete, most searches need not read rows.
    let words = tables.words(table, column)?;
    if words.is_some_and(|words| !words.iter().any(|word| needle.is_in(word))) {
        return Ok(none);
    }
    let (found, is_whole) = count(tables, table, (column, class), needle)?;
    let hits = found.into_iter().map(|(word, rows)| hit(word, rows));
    Ok((hits.collect(), is_whole))
}

fn count(
    tables: &dyn Tables,
    table: &'static Table,
    (column, class): (&'static str, Option<&'static str>),
    needle: &Needle,
) -> Result<(HashMap<String, Rows>, bool), Refusal> {
    let until = Instant::now() + TIME_MAX;
    let mut projection = Projection::new(table);
    let ts = projection.need("ts");
    let name = projection.need(column);
    let class = class.map(|class| projection.need(class));
    let parts = tables.parts(&projection.scan(None))?;
    let counted = parts.par_iter().map(|part| {
        let (mut found, mut is_whole, mut failure) = (HashMap::new(), true, None);
        let read = part.read(&mut |batch| {
            if Instant::now() > until {
                is_whole = false;
                return Ok(ControlFlow::Break(()));
            }
            match add(&mut found, batch, (ts, name, class), needle) {
                Ok(()) => Ok(ControlFlow::Continue(())),
                Err(error) => {
                    failure = Some(error);
                    Ok(ControlFlow::Break(()))
                }
            }
        });
        read.map_err(AnalysisError::from)?;
        failure.map_or(Ok((found, is_whole)), Err)
    });
    let counted: Vec<_> = counted.collect::<Result<_, AnalysisError>>()?;
    let mut whole: HashMap<String, Rows> = HashMap::new();
    let mut is_whole = true;
    for (found, is_all) in counted {
        is_whole &= is_all;
        for (word, rows) in found {
            let known = whole.entry(word).or_insert_with(|| Rows {
                count: 0,
                ..rows.clone()
            });
            known.count += rows.count;
            known.first = known.first.min(rows.first);
            known.last = known.last.max(rows.last);
        }
    }
    Ok((whole, is_whole))
}

fn add(
    found: &mut HashMap<String, Rows>,
    batch: &RecordBatch,
    (ts, name, class): (ColumnRef, ColumnRef, Option<ColumnRef>),
    needle: &Needle,
) -> Result<(), AnalysisError> {
    let (ts, names) = (ts.ints(batch)?, name.texts(batch)?);
    let classes = class.map(|class| class.texts(batch)).transpose()?;
    // Each word is matched once.
    let mut by_key: HashMap<usize, Option<Rows>> = HashMap::new();
    for row in 0..batch.num_rows() as u32 {
        let Some(key) = names.key(row) else {
            continue;
        };
        let rows = by_key.entry(key).or_insert_with(|| {
            let is_hit = names.get(row).is_some_and(|name| needle.is_in(name));
            let class = classes.as_ref().and_then(|classes| classes.get(row));
            is_hit.then(|| Rows {
                count: 0,
                first: ts.at(row),
                last: ts.at(row),
                class: class.map(str::to_owned),
            })
        });
        if let Some(rows) = rows {
            rows.count += 1;
            rows.first = rows.first.min(ts.at(row));
            rows.last = rows.last.max(ts.at(row));
        }
    }
    for row in 0..batch.num_rows() as u32 {
        let taken = names.key(row).and_then(|key| by_key.remove(&key)).flatten();
        if let (Some(rows), Some(name)) = (taken, names.get(row)) {
            let known = found.entry(name.to_owned()).or_insert_with(|| Rows {
                count: 0,
                ..rows.clone()
            });
            known.count += rows.count;
            known.first = known.first.min(rows.first);
            known.last = known.last.max(rows.last);
        }
        if by_key.is_empty() {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_becomes_a_glob_of_itself() {
        assert_eq!(globbed("/a/b c"), "/a/b c");
        assert_eq!(globbed("/a[1]*?"), "/a\\[1\\]\\*\\?");
        assert_eq!(globbed("{a,\\}"), "\\{a,\\\\\\}");
    }
}
