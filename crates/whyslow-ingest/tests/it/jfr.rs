//! Profiles give the results of the JDK's own `jfr`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use whyslow_ingest::{InMemory, import_in_memory};

const NAMES: [&str; 5] = ["each", "batches", "chunks", "both", "jdk"];

fn fixture(name: &str) -> PathBuf {
    whyslow_testkit::fixture("jfr").join(name)
}

fn imported(name: &str) -> InMemory {
    import_in_memory(&[fixture(&format!("{name}.jfr"))]).expect("it can be imported")
}

#[test]
fn events_are_as_many_as_jfr_prints() {
    for name in NAMES {
        let imported = imported(name);
        let counts = fs::read_to_string(fixture(&format!("{name}.counts"))).expect("counts");
        let wanted: BTreeMap<String, i64> = counts
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(event, count)| (event.to_owned(), count.parse().expect("a number")))
            .collect();
        let reported = imported.rows.trace_stat.iter().filter_map(|row| {
            let event = imported.symbols.get(row.name);
            event.contains('.').then(|| (event.to_owned(), row.count))
        });
        assert_eq!(reported.collect::<BTreeMap<_, _>>(), wanted, "{name}");
        let errors: Vec<_> = imported
            .anomalies
            .iter()
            .filter(|one| one.name.starts_with("PROFILE_LOST"))
            .collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
    }
}

/// A line of `*.printed.csv`.
struct Printed {
    event: String,
    start: i64,
    dur: Option<i64>,
    thread: String,
    tid: i32,
    function: String,
    frames: usize,
}

fn printed(name: &str) -> Vec<Printed> {
    let table = fs::read_to_string(fixture(&format!("{name}.printed.csv"))).expect("a table");
    let lines = table.lines().skip(1).map(|line| {
        let mut cells = line.split(',');
        let mut next = || cells.next().expect("a cell").to_owned();
        Printed {
            event: next(),
            start: next().parse().expect("a time"),
            dur: next().parse().ok(),
            thread: next(),
            tid: next().parse().expect("a number"),
            function: next(),
            frames: next().parse().expect("a number"),
        }
    });
    lines.collect()
}

fn depth(imported: &InMemory, callsite: Option<i64>) -> usize {
    let at = callsite.map(|id| imported.rows.callsite.iter().find(|row| row.id == id));
    at.flatten().map_or(0, |row| row.depth as usize + 1)
}

#[test]
fn times_threads_and_stacks_are_those_that_jfr_prints() {
    for name in NAMES {
        let imported = imported(name);
        let text = |sym| imported.symbols.get(sym).to_owned();
        for wanted in printed(name) {
            let kind = match wanted.event.as_str() {
                "jdk.JavaMonitorEnter" => "monitor_enter",
                "jdk.ThreadPark" => "park",
                _ => "",
            };
            if kind.is_empty() {
                // Queued signals are one row with the first of them.
                let at = imported.rows.stack_sample.iter().find(|row| {
                    let end = row.ts_end.expect("an end");
                    row.tid == Some(wanted.tid) && (row.ts..=end).contains(&wanted.start)
                });
                let row = at.unwrap_or_else(|| panic!("{name}: no sample at {}", wanted.start));
                let leaf = row.function.map(text).unwrap_or_default();
                let same = leaf.ends_with(&wanted.function)
                    && depth(&imported, row.callsite_id) == wanted.frames;
                // A sample within the time of the next one, which starts at its end.
                assert!(
                    same || row.ts_end != Some(wanted.start),
                    "{name}: {leaf} is not {}",
                    wanted.function
                );
                continue;
            }
            let at = imported.rows.runtime_event.iter().find(|row| {
                row.ts == wanted.start && row.tid == Some(wanted.tid) && text(row.kind) == kind
            });
            let row = at.unwrap_or_else(|| panic!("{name}: no {kind} at {}", wanted.start));
            let dur = row.dur.expect("a duration");
            assert!(
                (dur - wanted.dur.expect("a duration")).abs() <= 1,
                "{name}: {dur}"
            );
            assert_eq!(
                row.comm.map(text).as_deref(),
                Some(wanted.thread.as_str()),
                "{name}"
            );
            assert_eq!(depth(&imported, row.callsite_id), wanted.frames, "{name}");
        }
    }
}

/// The samples and gaps of each thread fill its lifetime, without overlap.
#[test]
fn the_time_of_samples_and_gaps_is_the_life_of_the_thread() {
    for name in ["each", "batches", "chunks"] {
        let imported = imported(name);
        let mut spans: BTreeMap<i32, Vec<(i64, i64)>> = BTreeMap::new();
        for row in &imported.rows.stack_sample {
            let end = row.ts_end.expect("an end");
            spans
                .entry(row.utid.expect("a thread"))
                .or_default()
                .push((row.ts, end));
        }
        for row in imported
            .rows
            .sample_gap
            .iter()
            .filter(|row| row.utid.is_some())
        {
            let end = row.ts_end.expect("an end");
            spans
                .entry(row.utid.expect("a thread"))
                .or_default()
                .push((row.ts, end));
        }
        for (utid, mut spans) in spans {
            spans.sort_unstable();
            let mut reached = spans[0].1;
            for (begin, end) in &spans {
                assert!(
                    *begin <= reached,
                    "{name}: a hole in {utid} of {} ns",
                    begin - reached
                );
                reached = reached.max(*end);
            }
            let total: i64 = spans.iter().map(|(begin, end)| end - begin).sum();
            let life = spans.iter().map(|(_, end)| *end).max().unwrap_or(0) - spans[0].0;
            let off = (total - life).abs() as f64 / life as f64;
            assert!(off < 0.01, "{name}: {utid} has {total} of {life}");
        }
    }
}
