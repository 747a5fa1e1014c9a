//! An object store that fails, stalls, truncates and reorders. The reference is a lake in a
//! directory into which the same recordings were pushed without faults.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use whyslow_fleet::RecordingFacts;
use whyslow_fleet::lake::{CompactOptions, Lake, LakeError, Listing};
use whyslow_fleet::tables::ALL;
use whyslow_store::MemoryTables;

use crate::it::made::{self, facts, usual};
use crate::it::store::Store;

const HOSTS: [&str; 3] = ["web-1", "web-2", "db.example.org"];
/// More attempts than anyone would make: each sends what is missing.
const ATTEMPTS: usize = 60;
const FAULTS: [&str; 6] = ["error", "lost", "stall", "cut_write", "cut_read", "shuffle"];

fn recordings() -> Vec<(MemoryTables, RecordingFacts)> {
    let of = |host: &'static str| (0..2).map(move |number| usual(host, number));
    let tables = HOSTS.into_iter().flat_map(of);
    let with_told = |(number, tables): (usize, MemoryTables)| {
        let facts = RecordingFacts {
            raw: number % 2 == 0,
            ..facts(&tables)
        };
        (tables, facts)
    };
    tables.enumerate().map(with_told).collect()
}

/// Rows of every table as text, in any order of files.
fn rows(lake: &Lake) -> BTreeMap<&'static str, Vec<String>> {
    let of = |table: &'static whyslow_fleet::LakeTable| {
        let mut rows = Vec::new();
        for batch in lake.rows(table).expect("it can be read") {
            for row in 0..batch.num_rows() {
                rows.push(format!("{:?}", batch.slice(row, 1).columns()));
            }
        }
        rows.sort();
        (table.name, rows)
    };
    ALL.into_iter().map(of).collect()
}

/// A lake without faults: its rows, and its objects by name.
fn truth(
    recordings: &[(MemoryTables, RecordingFacts)],
) -> (BTreeMap<&'static str, Vec<String>>, Store) {
    let store = Store::start(&[]);
    let lake = store.lake();
    push_all(&lake, recordings).expect("nothing fails");
    (rows(&lake), store)
}

fn push_all(lake: &Lake, recordings: &[(MemoryTables, RecordingFacts)]) -> Result<u64, LakeError> {
    let go = AtomicBool::new(false);
    let mut sent = 0;
    let mut failed = None;
    for (tables, facts) in recordings {
        match lake.push(tables, facts, &made::options(), &go) {
            Ok(pushed) => sent += pushed.objects,
            Err(error) => failed = Some(error),
        }
    }
    failed.map_or(Ok(sent), Err)
}

fn until_done<T>(
    mut attempt: impl FnMut() -> Result<T, LakeError>,
    mut after_each: impl FnMut(),
) -> (T, usize) {
    let mut last = None;
    for number in 0..ATTEMPTS {
        match attempt() {
            Ok(done) => return (done, number),
            Err(error) => last = Some(error),
        }
        after_each();
    }
    panic!("it never succeeds: {last:?}");
}

#[test]
fn whatever_the_store_does_all_is_there_once() {
    let recordings = recordings();
    let (expected, whole) = truth(&recordings);
    let expected_objects = whole.state().objects;
    let mut failures = 0;
    for (seed, faults) in (1..).zip(
        FAULTS
            .iter()
            .map(|fault| format!("{fault}=0.2"))
            .chain(["all".to_owned()]),
    ) {
        let seed = format!("{seed}");
        let mut arguments = vec!["--seed", &seed, "--page", "5", "--stall", "0.7"];
        let one = [faults.as_str()];
        let all: Vec<String> = FAULTS.iter().map(|fault| format!("{fault}=0.06")).collect();
        let faults: Vec<&str> = if faults == "all" {
            all.iter().map(String::as_str).collect()
        } else {
            one.to_vec()
        };
        for fault in &faults {
            arguments.extend(["--fault", fault]);
        }
        let store = Store::start(&arguments);
        let lake = store.lake();
        let partly = || {
            // Concurrent readers see complete recordings only.
            store.fail("{}");
            let found = rows(&store.lake());
            for (table, found) in &found {
                let expected = &expected[table];
                let is_there = |row: &String| expected.binary_search(row).is_ok();
                assert!(found.iter().all(is_there), "{faults:?}: {table}");
                let mut once = found.clone();
                once.dedup();
                assert_eq!(
                    once.len(),
                    found.len(),
                    "{faults:?}: {table} has a row twice"
                );
            }
            let rates: Vec<String> = faults
                .iter()
                .map(|fault| {
                    let (name, rate) = fault.split_once('=').expect("a rate");
                    format!("\"{name}\": {rate}")
                })
                .collect();
            store.fail(&format!("{{{}}}", rates.join(", ")));
        };
        let (_, attempts) = until_done(|| push_all(&lake, &recordings), partly);
        failures += attempts;
        store.fail("{}");
        // Stalled requests are executed after all.
        std::thread::sleep(std::time::Duration::from_millis(900));
        let lake = store.lake();
        assert_eq!(rows(&lake), expected, "{faults:?}");
        assert_eq!(
            push_all(&lake, &recordings).expect("nothing fails"),
            0,
            "{faults:?}"
        );
        let state = store.state();
        assert_eq!(state.objects, expected_objects, "{faults:?}");
        assert!(state.requests.values().sum::<u64>() > 100, "{faults:?}");
    }
    assert!(failures > 0, "no fault was noticed: the test tests nothing");
}

#[test]
fn compaction_under_faults_changes_no_row() {
    let recordings = recordings();
    let (expected, _whole) = truth(&recordings);
    let options = CompactOptions {
        files_min: 2,
        grace: std::time::Duration::ZERO,
    };
    let go = AtomicBool::new(false);
    for seed in ["11", "12", "13"] {
        let store = Store::start(&["--seed", seed, "--page", "5", "--stall", "0.7"]);
        let lake = store.lake();
        push_all(&lake, &recordings).expect("nothing fails");
        let faults =
            r#"{"error": 0.1, "lost": 0.1, "cut_write": 0.05, "cut_read": 0.1, "shuffle": 0.3}"#;
        store.fail(faults);
        let unlock = || {
            store.fail("{}");
            assert_eq!(rows(&store.lake()), expected, "seed {seed}");
            store.fail(faults);
        };
        let compact = || match lake.compact(&options, &go) {
            // A lock whose response was lost has no owner; it would expire in an hour.
            Err(LakeError::Busy { .. }) => {
                store.forget("some/where/v1/_lock.json");
                lake.compact(&options, &go)
            }
            done => done,
        };
        until_done(compact, unlock);
        store.fail("{}");
        let lake = store.lake();
        assert_eq!(rows(&lake), expected, "seed {seed}");
        lake.compact(&options, &go).expect("nothing fails");
        let Listing { days } = lake.listing().expect("it can be read");
        let day = days.values().next().expect("a day");
        assert_eq!((day.ones.len(), day.many.len()), (0, 1), "seed {seed}");
        assert_eq!(rows(&lake), expected, "seed {seed}");
        assert_eq!(
            push_all(&lake, &recordings).expect("nothing fails"),
            0,
            "what was merged is known"
        );
    }
}
