//! Thread dumps compared with the program's own log: which thread waited for which lock holder.

use std::fs;
use std::path::PathBuf;

use whyslow_ingest::{InMemory, import_in_memory};

const MS: i64 = 1_000_000;
/// Maximum delay of a dump after the time at which it was requested, which is in its file name.
const LATE: i64 = 1_000 * MS;

fn folder() -> PathBuf {
    whyslow_testkit::fixture("jstack")
}

/// A line of the program's log.
struct Took {
    lock: String,
    thread: String,
    requested: i64,
    entered: i64,
    left: i64,
}

fn truth() -> Vec<Took> {
    let text = fs::read_to_string(folder().join("truth.csv")).expect("the program's log");
    let lines = text.lines().skip(1).map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        let time = |at: usize| cells[at].parse().expect("a time");
        Took {
            lock: cells[0].to_owned(),
            thread: cells[1].to_owned(),
            requested: time(2),
            entered: time(3),
            left: time(4),
        }
    });
    lines.collect()
}

fn imported() -> InMemory {
    let files = fs::read_dir(folder()).expect("dumps");
    let paths = files.map(|file| file.expect("a file").path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "txt"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 5);
    import_in_memory(&paths).expect("they can be imported")
}

#[test]
fn holders_are_those_that_the_program_wrote_down() {
    let (imported, truth) = (imported(), truth());
    let word = |sym| imported.symbols.get(sym).to_owned();
    let mut checked = 0;
    for row in &imported.rows.lock_wait {
        assert_eq!(row.reported_by.map(word).as_deref(), Some("dump"));
        let waiter = row.comm.map(word).expect("a name");
        let holder = row.holder_comm.map(word).expect("dumps show the holder");
        assert_eq!(row.confidence.map(word).as_deref(), Some("high"));
        let lock = match word(row.kind).as_str() {
            "monitor" => "ledger",
            _ => "index",
        };
        let of = |thread: &str| {
            let thread = thread.to_owned();
            truth
                .iter()
                .filter(move |one| one.lock == lock && one.thread == thread)
        };
        // At some time while the dump was taken, one thread waited while the other held the lock.
        let is_so = of(&waiter).any(|wait| {
            of(&holder).any(|held| {
                let begin = wait.requested.max(held.entered).max(row.ts);
                let end = wait.entered.min(held.left).min(row.ts + LATE);
                begin < end
            })
        });
        assert!(is_so, "{waiter} {holder} {lock} {}", row.ts);
        checked += 1;
    }
    assert!(checked >= 5, "{checked}");
}

#[test]
fn all_threads_are_in_each_dump() {
    let imported = imported();
    let rows = &imported.rows.stack_sample;
    let kind = |sym| imported.symbols.get(sym);
    assert!(rows.iter().all(|row| kind(row.kind) == "dump"));
    for number in 0..8 {
        let name = format!("request-handler-{number}");
        let of = rows
            .iter()
            .filter(|row| row.comm.map(kind) == Some(name.as_str()));
        assert!(of.count() >= 5, "{name}");
    }
}
