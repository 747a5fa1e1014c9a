//! `block outliers` on simulated machines: disks of which one is bad, busy, alone or of another
//! type.

use whyslow_analysis::{Kind, Query, Sort, Verb, evaluate};
use whyslow_model::answer::{Answer, Value};
use whyslow_model::tables::{BlockIoRow, Collected, DeviceLinkRow, DeviceRow, EmitAll};
use whyslow_model::{Symbols, Window};
use whyslow_store::{MemoryTables, RecordingInfo};

use crate::it::duckdb::{Rows, check, written_by};
use crate::it::made::Dice;
use crate::it::shown::{cell, columns, place, table};

const MS: i64 = 1_000_000;
const SECOND: i64 = 1000 * MS;

/// Requests to one device.
#[derive(Clone, Copy)]
struct Disk {
    name: &'static str,
    requests: u64,
    /// A request takes half to one and a half times this.
    usual_ns: i64,
    /// One in this many requests takes twenty times as long.
    slow_one_in: Option<u64>,
    /// Number of simultaneous requests.
    at_once: u64,
    /// Number of sizes, from 8 KiB on.
    sizes: u64,
    op: &'static str,
}

const DISK: Disk = Disk {
    name: "",
    requests: 200,
    usual_ns: 6 * MS,
    slow_one_in: None,
    at_once: 1,
    sizes: 1,
    op: "read",
};

fn machine(disks: &[Disk]) -> MemoryTables {
    let mut symbols = Symbols::new();
    let mut rows = Collected::default();
    let info = record(disks, &mut symbols, &mut rows);
    MemoryTables::new(&rows, &symbols, info)
}

/// Ten seconds of these disks, which process simultaneous requests one after the other.
fn record<S: EmitAll>(disks: &[Disk], symbols: &mut Symbols, sink: &mut S) -> RecordingInfo {
    let mut requests = Vec::new();
    for (number, disk) in disks.iter().enumerate() {
        let dice = &mut Dice::new(number as u64 + 1);
        let arrivals = disk.requests / disk.at_once;
        for arrival in 0..arrivals {
            let mut free = 0;
            let at = arrival as i64 * 10 * SECOND / arrivals as i64;
            for _ in 0..disk.at_once {
                let mut dur = disk.usual_ns / 2 + dice.below(disk.usual_ns as u64) as i64;
                if disk.slow_one_in.is_some_and(|sides| dice.below(sides) == 0) {
                    dur *= 20;
                }
                free = free.max(at) + dur;
                let size = 8192 << dice.below(disk.sizes);
                requests.push((at, free, size, disk));
            }
        }
    }
    requests.sort_by_key(|(at, ..)| *at);
    for (id, (ts, end, bytes, disk)) in (0..).zip(requests) {
        sink.emit(BlockIoRow {
            id,
            ts,
            dur: Some(end - ts),
            ts_end: Some(end),
            ts_issue: Some(ts),
            queue_ns: Some(0),
            device_ns: Some(end - ts),
            dev: 8 << 20,
            dev_name: symbols.intern(disk.name),
            sector: id,
            sectors: bytes / 512,
            bytes,
            op: symbols.intern(disk.op),
            rwbs: symbols.intern("R"),
            layer: symbols.intern("request"),
            merges: 0,
            completions: 1,
            ..BlockIoRow::default()
        });
    }
    RecordingInfo {
        begin_ns: 0,
        end_ns: 12 * SECOND,
        ..RecordingInfo::default()
    }
}

const NAMES: [&str; 8] = ["sda", "sdb", "sdc", "sdd", "sde", "sdf", "sdg", "sdh"];

/// This many disks, the first of which is like this.
fn disks(count: usize, first: Disk) -> Vec<Disk> {
    let named = |(number, name): (usize, &&'static str)| Disk {
        name,
        ..if number == 0 { first } else { DISK }
    };
    NAMES.iter().take(count).enumerate().map(named).collect()
}

fn query() -> Query {
    Query::new(Kind::Block, Verb::Outliers)
}

fn answer_for(disks: &[Disk]) -> Answer {
    evaluate(&machine(disks), &query()).unwrap()
}

/// Names of the marked devices, and the first device's verdict.
fn found(answer: &Answer) -> (Vec<String>, String) {
    let devices = table(answer, "devices");
    let (dev, words) = (place(devices, "dev"), place(devices, "vs_peers"));
    let marked = devices.outliers.iter();
    let marked = marked.map(|row| cell(&devices.rows[*row][dev])).collect();
    let first = devices.rows.iter().find(|row| row[dev] == "sda".into());
    (
        marked,
        first.map_or_else(String::new, |row| cell(&row[words])),
    )
}

#[test]
fn a_bad_disk_is_told_from_its_peers() {
    let bad = Disk {
        slow_one_in: Some(5),
        ..DISK
    };
    let answer = answer_for(&disks(8, bad));
    let (marked, words) = found(&answer);
    assert_eq!(marked, ["sda"]);
    assert!(words.starts_with("slow reads: "), "{words}");
    assert!(words.contains(" % beyond its peers' p99 ("), "{words}");
    // It is the first row.
    assert_eq!(table(&answer, "devices").outliers, [0]);
    let next = answer.next.unwrap();
    assert!(
        next.starts_with("whyslow block hist --dev sda --vs sd"),
        "{next}"
    );
}

#[test]
fn a_disk_that_takes_twice_as_long_is_slow_throughout() {
    let slow = Disk {
        usual_ns: 12 * MS,
        ..DISK
    };
    let (marked, words) = found(&answer_for(&disks(8, slow)));
    assert_eq!(marked, ["sda"]);
    assert!(
        words.contains("reads take 2.") && words.contains(" times as long throughout (q "),
        "{words}"
    );
}

#[test]
fn disks_that_are_alike_are_as_their_peers() {
    let (marked, words) = found(&answer_for(&disks(8, DISK)));
    assert!(marked.is_empty());
    assert_eq!(words, "like its peers");
}

#[test]
fn a_busy_disk_is_compared_where_its_peers_were_as_busy() {
    let check = |at_once, expected: &str| {
        let busy = Disk {
            requests: 1600,
            at_once,
            ..DISK
        };
        let (marked, words) = found(&answer_for(&disks(8, busy)));
        assert!(marked.is_empty());
        assert!(words.starts_with(expected), "{words}");
    };
    check(
        40,
        "only 33 of 1600 requests are comparable with peers under the same load: inconclusive for 33 \
         reads: 5 more are needed to detect one slow in five",
    );
    check(800, "cannot compare: no peer is as busy (");
}

#[test]
fn what_cannot_be_compared_says_why() {
    let check = |disks: &[Disk], expected: &str| {
        let (marked, words) = found(&answer_for(disks));
        assert!(marked.is_empty());
        assert_eq!(words, expected);
    };
    let bad = Disk {
        slow_one_in: Some(5),
        ..DISK
    };
    check(
        &disks(3, bad),
        "cannot compare: only 3 devices of its driver, 4 are needed",
    );
    check(
        &disks(
            8,
            Disk {
                requests: 19,
                ..bad
            },
        ),
        "cannot compare: 19 requests, 20 are needed",
    );
    check(
        &disks(8, Disk { op: "write", ..bad }),
        "cannot compare: its peers have 0 requests comparable with its commonest ones, on 0 devices; \
         100 on 3 are needed",
    );
}

/// An answer without findings is not meaningful if nothing could have been found.
#[test]
fn few_requests_tell_how_many_more_would_suffice() {
    let check = |requests, expected: &str| {
        let answer = answer_for(&disks(8, Disk { requests, ..DISK }));
        let (marked, words) = found(&answer);
        assert!(marked.is_empty());
        assert_eq!(words, expected);
    };
    check(
        30,
        "inconclusive for 30 reads: 8 more are needed to detect one slow in five",
    );
    check(
        38,
        "no slow tail of reads: 62 more are needed to detect a shift",
    );
    check(100, "like its peers");
}

/// Edge cases: no device, one device, and equal times.
#[test]
fn nothing_and_equal_times_deviate_from_nothing() {
    let answer = answer_for(&[]);
    assert!(answer.tables.iter().all(|table| table.rows.is_empty()));
    let (_, words) = found(&answer_for(&disks(1, DISK)));
    assert_eq!(
        words,
        "cannot compare: only 1 devices of its driver, 4 are needed"
    );
    let mut equal = disks(8, DISK);
    for disk in &mut equal {
        disk.usual_ns = 1;
    }
    let answer = answer_for(&equal);
    let (marked, words) = found(&answer);
    assert!(marked.is_empty());
    assert_eq!(words, "like its peers");
    let tests = table(&answer, "comparisons");
    let figures = columns(tests, &["tail_over", "median_ratio", "delta", "shift_q"]);
    let expected = "0 | 1.000000e0 | 0 | 1.000000e0";
    assert!(figures.lines().all(|line| line == expected), "{figures}");
}

#[test]
fn the_evidence_adds_up() {
    let mut disks = disks(
        8,
        Disk {
            slow_one_in: Some(5),
            ..DISK
        },
    );
    for disk in &mut disks {
        disk.sizes = 2;
    }
    let answer = answer_for(&disks);
    let strata = table(&answer, "strata");
    let tests = table(&answer, "comparisons");
    let sums = |name: &str| -> f64 {
        let place = place(strata, name);
        let number = |row: &Vec<Value>| match row[place] {
            Value::Int(value) => value as f64,
            Value::Float(value) => value,
            _ => panic!("{row:?}"),
        };
        strata.rows.iter().map(number).sum()
    };
    let row = tests.outliers[0];
    for (of_tests, of_strata) in [
        ("compared", "count"),
        ("tail_over", "over"),
        ("tail_expected", "expected"),
    ] {
        let total = match &tests.rows[row][place(tests, of_tests)] {
            Value::Int(value) => *value as f64,
            Value::Float(value) => *value,
            other => panic!("{other:?}"),
        };
        assert!((total - sums(of_strata)).abs() < 1e-9, "{of_tests}");
    }
    assert_eq!(
        cell(&tests.rows[row][place(tests, "strata")]),
        strata.rows.len().to_string()
    );
    // Machine-readable formats have these column names.
    for table in &answer.tables {
        let mut names: Vec<&str> = table.columns.iter().map(|one| one.name.as_str()).collect();
        names.extend(["outlier", "overlap"]);
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{}", table.name);
    }
}

/// Loop devices in memory are faster than disks, which does not make the disks outliers.
#[test]
fn devices_of_another_driver_are_no_peers() {
    let mut disks = disks(3, DISK);
    for name in ["loop0", "loop1", "loop2", "loop3", "loop4"] {
        disks.push(Disk {
            name,
            usual_ns: MS / 10,
            ..DISK
        });
    }
    let (marked, words) = found(&answer_for(&disks));
    assert!(marked.is_empty());
    assert!(
        words.starts_with("cannot compare: only 3 devices of its driver"),
        "{words}"
    );
}

#[test]
fn one_fast_disk_among_four_makes_no_outliers_of_the_others() {
    let fast = Disk {
        usual_ns: MS / 10,
        requests: 4000,
        ..DISK
    };
    let (marked, _) = found(&answer_for(&disks(4, fast)));
    assert!(marked.is_empty(), "{marked:?}");
}

#[test]
fn only_devices_of_the_question_are_compared() {
    let bad = Disk {
        slow_one_in: Some(5),
        ..DISK
    };
    let mut query = query();
    let tables = machine(&disks(8, bad));
    query.filter.devices = ["sda", "sdb", "sdc"]
        .map(|name| whyslow_analysis::DeviceRef::Name(name.into()))
        .to_vec();
    let (marked, words) = found(&evaluate(&tables, &query).unwrap());
    assert!(marked.is_empty());
    assert!(
        words.starts_with("cannot compare: only 3 devices of its driver"),
        "{words}"
    );
}

#[test]
fn requests_over_the_threshold_are_listed_in_order_of_time() {
    let bad = Disk {
        slow_one_in: Some(5),
        ..DISK
    };
    let tables = machine(&disks(8, bad));
    let mut query = query();
    query.limit = Some(3);
    let answer = evaluate(&tables, &query).unwrap();
    let requests = table(&answer, "requests");
    assert_eq!(requests.title, "requests of at least 100 ms");
    assert_eq!(requests.rows.len(), 3);
    let (ts, dur) = (place(requests, "ts_ns"), place(requests, "dur_ns"));
    let int = |value: &Value| match value {
        Value::Int(value) => *value,
        _ => panic!("{value:?}"),
    };
    assert!(requests.rows.is_sorted_by_key(|row| int(&row[ts])));
    assert!(requests.rows.iter().all(|row| int(&row[dur]) >= 100 * MS));
    let has_caveat = |text: &str| answer.caveats.iter().any(|caveat| caveat.starts_with(text));
    assert!(has_caveat("only the first 3 of "), "{:?}", answer.caveats);
    assert!(has_caveat(
        "the threshold is 100 ms (set another with --min)"
    ));

    query.filter.dur_min = Some(SECOND);
    let answer = evaluate(&tables, &query).unwrap();
    assert_eq!(table(&answer, "requests").title, "requests of at least 1 s");
    assert!(table(&answer, "requests").rows.is_empty());
    let has_caveat = |text: &str| answer.caveats.iter().any(|caveat| caveat.starts_with(text));
    assert!(!has_caveat("only the first") && !has_caveat("the threshold"));
    // The threshold selects what is listed, not what is compared.
    assert_eq!(found(&answer).0, ["sda"]);
}

#[test]
fn each_interval_is_compared_by_itself() {
    let bad = Disk {
        slow_one_in: Some(5),
        ..DISK
    };
    let mut all = disks(8, bad);
    for disk in &mut all {
        disk.requests = 600;
    }
    let mut query = query();
    query.interval = Some(6 * SECOND);
    let answer = evaluate(&machine(&all), &query).unwrap();
    let devices = table(&answer, "devices");
    assert_eq!(devices.rows.len(), 16);
    assert_eq!(devices.outliers, [0, 8]);
    let begins = columns(devices, &["ts_ns"]);
    assert!(begins.starts_with("0\n") && begins.ends_with("\n6000000000"));
    // A window of the same length gives the same result.
    query.interval = None;
    query.window = Some(Window::new(6 * SECOND, 12 * SECOND));
    assert_eq!(found(&evaluate(&machine(&all), &query).unwrap()).0, ["sda"]);
}

#[test]
fn other_questions_have_no_such_view() {
    let error = evaluate(&machine(&[]), &Query::new(Kind::Io, Verb::Outliers)).unwrap_err();
    assert_eq!(error.to_string(), "unknown view `outliers` of io");
    let mut query = query();
    query.by = vec!["comm".into()];
    let error = evaluate(&machine(&disks(4, DISK)), &query).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("`block outliers` only groups by device")
    );
}

/// Disks with different loads and sizes, one of them bad, one with several requests in flight.
#[test]
fn comparisons_equal_sql() {
    let bad = Disk {
        slow_one_in: Some(5),
        ..DISK
    };
    let mut disks = disks(8, bad);
    for (number, disk) in disks.iter_mut().enumerate() {
        disk.sizes = 2;
        disk.requests = 300 + 100 * number as u64;
        disk.at_once = if number > 4 { 4 } else { 1 };
    }
    let Some(written) = written_by(|symbols, writer| record(&disks, symbols, writer)) else {
        return;
    };
    let query = Query {
        sort: Some(Sort {
            column: "dev".into(),
            ascending: true,
        }),
        ..query()
    };
    let tests = Rows::Table("comparisons");
    check(&written, &query, tests, "outliers_peers.sql", &[]);
}

/// Eight disks, the first four of which are of a slower type, and members of an array.
fn with_array(first: Disk, has_links: bool) -> MemoryTables {
    let slower = 24 * MS;
    let mut disks = disks(8, first);
    for disk in &mut disks[..4] {
        disk.usual_ns = slower;
    }
    let mut symbols = Symbols::new();
    let mut rows = Collected::default();
    let info = record(&disks, &mut symbols, &mut rows);
    let (array, member) = (9 << 20, symbols.intern("member"));
    for (number, disk) in (0..).zip(&disks) {
        let dev = (8 << 20) + number;
        rows.device.push(DeviceRow {
            dev,
            name: symbols.intern(disk.name),
            ..DeviceRow::default()
        });
        if has_links && number < 4 {
            rows.device_link.push(DeviceLinkRow {
                id: number,
                dev: array,
                below: dev,
                kind: member,
            });
        }
    }
    MemoryTables::new(&rows, &symbols, info)
}

#[test]
fn disks_of_an_array_are_compared_with_each_other() {
    let marked = |first: Disk, has_links| {
        let tables = with_array(first, has_links);
        found(&evaluate(&tables, &query()).unwrap()).0
    };
    // Otherwise slower disks differ from the rest.
    assert!(marked(DISK, false).len() > 1);
    assert_eq!(marked(DISK, true), Vec::<String>::new());
    let bad = Disk {
        slow_one_in: Some(5),
        ..DISK
    };
    assert_eq!(marked(bad, true), ["sda"]);
}
