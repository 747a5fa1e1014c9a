//! Queries on random recordings compared with a simple evaluation of the same rows.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use whyslow_analysis::{Filter, Kind, Query, Verb, evaluate};
use whyslow_model::answer::Value;
use whyslow_model::syscall::Op;
use whyslow_model::tables::Collected;
use whyslow_model::{Sym, Symbols, Window};
use whyslow_store::{Existing, Limits, MemoryTables, Recording, RecordingWriter};

use crate::it::made::{self, Amount};
use crate::it::shown::{cell, columns, place, table};

/// A simplified operation of any kind.
#[derive(Debug, Clone)]
struct Plain {
    id: i64,
    ts: i64,
    ts_end: Option<i64>,
    dur: Option<i64>,
    group: String,
    pid: Option<i32>,
    bytes: Option<i64>,
    failed: bool,
    /// Whether a loss may have hidden its end.
    is_paired: bool,
    is_uncertain: bool,
}

struct Case {
    kind: Kind,
    window: Option<Window>,
    filter: Filter,
}

fn plain(case: &Case, rows: &Collected, symbols: &Symbols, end: i64) -> Vec<Plain> {
    let name = |sym: Sym| symbols.get(sym).to_owned();
    let is_uncertain = |cut: Option<Sym>| cut.is_some_and(|cut| symbols.get(cut) == "lost");
    let all: Vec<Plain> = match case.kind {
        Kind::Block => {
            let plain = rows.block_io.iter().map(|row| Plain {
                id: row.id,
                ts: row.ts,
                ts_end: row.ts_end,
                dur: row.dur,
                group: format!("{} {}", name(row.dev_name), name(row.op)),
                pid: row.pid,
                bytes: Some(row.bytes),
                failed: row.error.is_some(),
                is_paired: true,
                is_uncertain: is_uncertain(row.cut),
            });
            plain.collect()
        }
        Kind::States => {
            let plain = rows.thread_state.iter().map(|row| Plain {
                id: row.id,
                ts: row.ts,
                ts_end: row.ts_end,
                dur: row.dur,
                group: name(row.state),
                pid: row.pid,
                bytes: None,
                failed: false,
                is_paired: false,
                is_uncertain: false,
            });
            plain.collect()
        }
        _ => {
            let is_io = |op: &str| Op::by_name(op).is_some_and(Op::is_io);
            let rows = rows.syscall.iter().filter(|row| is_io(symbols.get(row.op)));
            let plain = rows.map(|row| Plain {
                id: row.id,
                ts: row.ts,
                ts_end: row.ts_end,
                dur: row.dur,
                group: name(row.op),
                pid: row.pid,
                bytes: row.bytes,
                failed: row.errno.is_some(),
                is_paired: true,
                is_uncertain: is_uncertain(row.cut),
            });
            plain.collect()
        }
    };
    all.into_iter()
        .filter(|row| passes(row, case, rows, end))
        .collect()
}

/// Whether an operation touches the window and passes the filter.
fn passes(row: &Plain, case: &Case, rows: &Collected, end: i64) -> bool {
    let filter = &case.filter;
    let touches = case.window.is_none_or(|window| {
        let stop = row.ts_end.unwrap_or(i64::MAX);
        let inside = stop > window.begin || (stop == row.ts && row.ts >= window.begin);
        row.ts < window.end && inside
    });
    let losses = rows.lost_events.iter();
    let ends = losses.filter(|loss| loss.ts_end.unwrap_or(loss.ts) > row.ts);
    let until = ends.map(|loss| loss.ts.max(row.ts)).min();
    let known = match (row.dur, row.ts_end) {
        (Some(dur), _) => dur,
        (None, Some(_)) if row.is_paired => 0,
        (None, Some(ts_end)) => ts_end - row.ts,
        (None, None) if row.is_paired => until.unwrap_or(end).min(end) - row.ts,
        (None, None) => end - row.ts,
    };
    let of_pid = |pid: i32| row.pid == Some(pid);
    touches
        && filter.dur_min.is_none_or(|min| known >= min)
        && filter
            .size_min
            .is_none_or(|min| row.bytes.is_none_or(|size| size >= min))
        && (filter.pids.is_empty() || filter.pids.iter().any(|pid| of_pid(*pid)))
        && (!filter.errors_only || row.failed)
}

/// Rows of each group, by key.
fn by_group<'r>(rows: impl Iterator<Item = &'r Plain>) -> BTreeMap<&'r str, Vec<&'r Plain>> {
    let mut groups: BTreeMap<&str, Vec<&Plain>> = BTreeMap::new();
    for row in rows {
        groups.entry(&row.group).or_default().push(row);
    }
    groups
}

fn ids(prefix: &str, rows: &[&Plain]) -> Vec<String> {
    rows.iter()
        .map(|row| format!("{prefix}:{}", row.id))
        .collect()
}

fn prefix(kind: Kind) -> &'static str {
    match kind {
        Kind::Block => "block",
        Kind::States => "state",
        _ => "op",
    }
}

// tidy: long because it runs every verb once
fn check(case: &Case, tables: &MemoryTables, rows: &[Plain]) -> Result<(), TestCaseError> {
    let query = |verb| Query {
        window: case.window,
        filter: case.filter.clone(),
        // Every row counts.
        waits: true,
        ..Query::new(case.kind, verb)
    };
    let groups = by_group(rows.iter());
    let certain = || rows.iter().filter(|row| !row.is_uncertain);
    let measured = by_group(certain());
    let prefix = prefix(case.kind);

    let answer = evaluate(tables, &query(Verb::Log)).unwrap();
    let mut in_order: Vec<&Plain> = rows.iter().collect();
    in_order.sort_by_key(|row| (row.ts, row.id));
    let found = columns(table(&answer, "log"), &["id"]);
    prop_assert_eq!(found, ids(prefix, &in_order).join("\n"));

    let answer = evaluate(tables, &query(Verb::Stats)).unwrap();
    let stats = table(&answer, "stats");
    prop_assert_eq!(stats.rows.len(), measured.len());
    for row in &stats.rows {
        let get = |name: &str| cell(&row[place(stats, name)]);
        let group = match case.kind {
            Kind::Block => format!("{} {}", get("dev"), get("op")),
            Kind::States => get("state"),
            _ => get("op"),
        };
        let rows = &measured[&*group];
        let mut durations: Vec<i64> = rows.iter().filter_map(|row| row.dur).collect();
        durations.sort_unstable();
        prop_assert_eq!(get("count"), rows.len().to_string());
        prop_assert_eq!(get("total_ns"), durations.iter().sum::<i64>().to_string());
        let ends = [durations.first(), durations.last()];
        let [min, max] = ends.map(|end| end.map_or("NULL".into(), ToString::to_string));
        prop_assert_eq!((get("min_ns"), get("max_ns")), (min, max));
        prop_assert_eq!(
            get("unfinished"),
            (rows.len() - durations.len()).to_string()
        );
    }

    let answer = evaluate(tables, &query(Verb::Top)).unwrap();
    let tops = answer
        .tables
        .iter()
        .filter(|table| table.name != "unfinished");
    let mut shown = BTreeSet::new();
    for top in tops {
        let mut longest: Vec<&Plain> = groups[&*top.title].clone();
        longest.retain(|row| row.dur.is_some());
        longest.sort_by_key(|row| (std::cmp::Reverse(row.dur), row.ts, row.id));
        longest.truncate(10);
        prop_assert_eq!(columns(top, &["id"]), ids(prefix, &longest).join("\n"));
        shown.insert(top.title.clone());
    }
    let timed = |rows: &[&Plain]| rows.iter().any(|row| row.dur.is_some());
    let expected = groups.iter().filter(|(_, rows)| timed(rows));
    prop_assert_eq!(shown.len(), expected.count());

    for verb in [Verb::Hist, Verb::Heat] {
        let answer = evaluate(tables, &query(verb)).unwrap();
        let counts = answer.tables.iter().flat_map(|table| {
            let count = place(table, "count");
            table.rows.iter().map(move |row| match row[count] {
                Value::Int(count) => count as usize,
                _ => 0,
            })
        });
        let known = certain().filter(|row| row.dur.is_some()).count();
        prop_assert_eq!(counts.sum::<usize>(), known);
    }
    Ok(())
}

/// The bytes of processes and the bytes of files have the same total.
fn check_sums(case: &Case, tables: &MemoryTables) -> Result<(), TestCaseError> {
    let sum = |by: &str| {
        let query = Query {
            window: case.window,
            by: vec![by.into()],
            limit: Some(0),
            ..Query::new(Kind::Io, Verb::Usage)
        };
        let answer = evaluate(tables, &query).unwrap();
        let table = table(&answer, "usage");
        let of_calls = |name: &str| name.ends_with("_bytes") && !name.starts_with("block_");
        let places = table
            .columns
            .iter()
            .enumerate()
            .filter(|(_, column)| of_calls(&column.name));
        let places: Vec<usize> = places.map(|(place, _)| place).collect();
        let cells = table
            .rows
            .iter()
            .flat_map(|row| places.iter().map(|place| row[*place].clone()));
        cells
            .map(|cell| match cell {
                Value::Int(bytes) => bytes,
                _ => 0,
            })
            .sum::<i64>()
    };
    prop_assert_eq!(sum("process"), sum("file"));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_verb_and_kind_agrees_with_a_plain_reading(
        seed in 0u64..10_000,
        window in prop::option::of((0i64..900_000_000, 1i64..400_000_000)),
        dur_min in prop::option::of(0i64..100_000),
        size_min in prop::option::of(0i64..65_536),
        pid in prop::option::of(1000i32..1006),
        errors_only in prop::bool::weighted(0.1),
    ) {
        let (rows, symbols, info) = made::collected(Amount::small(seed));
        let end = info.end_ns;
        let tables = MemoryTables::new(&rows, &symbols, info);
        for kind in [Kind::Io, Kind::Block, Kind::States] {
            let sized = kind != Kind::States;
            let case = Case {
                kind,
                window: window.map(|(begin, length)| {
                    Window::new(made::BEGIN + begin, made::BEGIN + begin + length)
                }),
                filter: Filter {
                    dur_min,
                    size_min: size_min.filter(|_| sized),
                    pids: pid.into_iter().collect(),
                    errors_only: errors_only && sized,
                    ..Filter::default()
                },
            };
            check(&case, &tables, &plain(&case, &rows, &symbols, end))?;
            check_sums(&case, &tables)?;
        }
    }
}

#[test]
fn files_and_memory_give_the_same_answers() {
    let limits = Limits {
        reorder_bytes: 9000,
        late_bytes: 5000,
        row_group_rows: 200,
        row_group_rows_small: 90,
        small_file_rows: 300,
        page_rows: 32,
        page_bytes: 4096,
        dictionary_bytes: 2048,
        file_rows: 500,
    };
    let amount = Amount {
        syscalls: 25_000,
        ..Amount::small(3)
    };
    let guard = tempfile::tempdir().unwrap();
    let path = guard.path().join("made.wsl");
    let mut symbols = Symbols::new();
    let mut writer = RecordingWriter::create_within(&path, Existing::Refuse, limits).unwrap();
    let info = made::make(amount, &mut symbols, &mut writer, |writer, symbols| {
        writer.flush_ready(symbols).unwrap();
    });
    writer.finish(&symbols, info).unwrap();
    let files = Recording::open(&path).unwrap();
    let (rows, symbols, info) = made::collected(amount);
    let memory = MemoryTables::new(&rows, &symbols, info);
    for kind in [
        Kind::Io,
        Kind::Block,
        Kind::States,
        Kind::Files,
        Kind::Threads,
    ] {
        for verb in [
            Verb::Usage,
            Verb::Stats,
            Verb::Hist,
            Verb::Top,
            Verb::Log,
            Verb::Heat,
            Verb::Syscalls,
            Verb::Tree,
            Verb::Open,
            Verb::List,
            Verb::Outliers,
        ] {
            let query = Query::new(kind, verb);
            match (evaluate(&files, &query), evaluate(&memory, &query)) {
                (Ok(of_files), Ok(of_memory)) => {
                    assert_eq!(of_files, of_memory, "{kind:?} {verb:?}");
                }
                (Err(of_files), Err(of_memory)) => {
                    assert_eq!(of_files.to_string(), of_memory.to_string());
                }
                (of_files, of_memory) => panic!("{of_files:?} but {of_memory:?}"),
            }
        }
    }
}
