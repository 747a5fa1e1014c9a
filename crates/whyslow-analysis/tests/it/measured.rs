//! Windows: intervals of any width, and the interval of an operation as the window.

use whyslow_analysis::{AnalysisError, Kind, Query, TOPICS, Verb, View, evaluate, interval_of};
use whyslow_model::answer::Answer;
use whyslow_store::{MemoryTables, Tables};

use crate::it::made::{self, Amount};

const SECOND: i64 = 1_000_000_000;

fn made() -> MemoryTables {
    let (rows, symbols, info) = made::collected(Amount::small(3));
    MemoryTables::new(&rows, &symbols, info)
}

/// A query for every view.
fn views() -> Vec<Query> {
    let mut views = Vec::new();
    for topic in TOPICS {
        let of_view = |view: &View| Query::new(topic.kind, view.verb);
        views.extend(topic.views.iter().map(of_view));
    }
    views
}

fn rows(answer: Result<Answer, AnalysisError>) -> Vec<(String, String)> {
    let answer = answer.unwrap();
    let tables = answer.tables.into_iter();
    tables
        .map(|table| (table.name, format!("{:?} {:?}", table.rows, table.facts)))
        .collect()
}

#[test]
fn an_interval_longer_than_the_recording_is_all_of_it() {
    let tables = made();
    let info = tables.info();
    let length = info.end_ns - info.begin_ns;
    let mut compared = 0;
    for query in views() {
        let [whole, longer] = [length, i64::MAX].map(|width| Query {
            // Pages are counted per second.
            interval: Some(match query.kind {
                Kind::Mem => (width / SECOND).max(1) * SECOND,
                _ => width,
            }),
            ..query.clone()
        });
        let whole = match evaluate(&tables, &whole) {
            Err(error) if error.to_string().contains("takes no interval") => continue,
            whole => rows(whole),
        };
        let longer = rows(evaluate(&tables, &longer));
        assert_eq!(longer, whole, "{:?} {:?}", query.kind, query.verb);
        compared += 1;
    }
    assert!(compared > 15, "{compared} views");
}

#[test]
fn what_overlaps_an_operation_is_measured_over_its_interval() {
    let tables = made();
    let id = (0..900).find(|id| {
        let (_, interval) = interval_of(&tables, "syscall", *id).unwrap();
        interval.length() > 500_000
    });
    let id = id.unwrap();
    let (_, interval) = interval_of(&tables, "syscall", id).unwrap();
    for query in views() {
        // Among calls, the operation itself is excluded; rows of a log are marked at the edges of
        // an explicit window, with the same cells.
        let of_calls = matches!(
            query.kind,
            Kind::Io | Kind::Files | Kind::Syscalls | Kind::Threads
        ) || query.kind == Kind::Net && query.verb == Verb::Usage;
        if of_calls {
            continue;
        }
        let overlapping = Query {
            overlaps: Some(("syscall".into(), id)),
            ..query.clone()
        };
        let inside = Query {
            window: Some(interval),
            ..query.clone()
        };
        assert_eq!(
            rows(evaluate(&tables, &overlapping)),
            rows(evaluate(&tables, &inside)),
            "{:?} {:?}",
            query.kind,
            query.verb
        );
    }
}
