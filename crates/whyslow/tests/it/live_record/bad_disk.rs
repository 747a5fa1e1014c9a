//! One bad disk among healthy ones under fio: the recording equals fio's own report.

use serde_json::Value;

use super::incidents::{incident, number, timed};
use super::{can_record, rows};
use crate::common::Place;

/// fio's report for a disk, by direction: operations and bytes.
fn of_fio(disk: &Value) -> [(i64, i64); 2] {
    let pair = |count: &str, bytes: &str| (number(&disk[count]), number(&disk[bytes]));
    [pair("reads", "bytes_read"), pair("writes", "bytes_written")]
}

/// The time of the load: before and after it, another device may have had that name.
fn window(truth: &Value) -> String {
    let (begin, end) = timed(&truth["load"]);
    format!("{begin}..{end}")
}

/// Whether a row is about a disk, by its name or number.
fn is_of(row: &Value, disk: &Value) -> bool {
    row["dev"] == disk["dev"] || row["dev"] == disk["number"]
}

fn equals_fio(place: &Place, truth: &Value) {
    let query = ["block", "stats", "rec.wsl", "-c", "fio", "--by", "dev,op"];
    let window = window(truth);
    let found = rows(place, &[&query[..], &["-w", &window]].concat());
    for disk in truth["disks"].as_array().expect("disks") {
        let ours = ["read", "write"].map(|op| {
            let row = found.iter().find(|row| is_of(row, disk) && row["op"] == op);
            row.map_or((0, 0), |row| (number(&row["count"]), number(&row["bytes"])))
        });
        let rows_found: Vec<_> = found
            .iter()
            .map(|row| (&row["dev"], &row["op"], &row["count"], &row["bytes"]))
            .collect();
        assert_eq!(ours, of_fio(disk), "{disk} in {rows_found:?}");
    }
}

/// Long requests of each disk, and whether it is reported as an outlier.
fn outliers(place: &Place, truth: &Value) -> Vec<(i64, bool)> {
    let query = [
        "block", "outliers", "rec.wsl", "-c", "fio", "--min", "150ms", "--json", "-n", "0", "-w",
    ];
    let window = window(truth);
    let answer = place.stdout(&[&query[..], &[&window]].concat());
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    let tables = answer["tables"].as_array().expect("tables");
    let rows_of = |name: &str| {
        let table = tables.iter().find(|table| table["name"] == name);
        let rows = table.and_then(|table| table["rows"].as_array());
        rows.unwrap_or_else(|| panic!("{name} in {tables:?}"))
    };
    let devices = rows_of("devices");
    delays_reads_of_its_own(rows_of("delayed"), truth);
    let disks = truth["disks"].as_array().expect("disks").iter();
    disks
        .map(|disk| {
            let row = devices.iter().find(|row| is_of(row, disk));
            let row = row.unwrap_or_else(|| panic!("{disk} in {devices:?}"));
            (number(&row["over"]), row["outlier"] == true)
        })
        .collect()
}

/// Each reader reads one block at a time: the file delayed by slow requests is the disk that it
/// reads, and each slow request delays one call.
fn delays_reads_of_its_own(delayed: &[Value], truth: &Value) {
    let disks = truth["disks"].as_array().expect("disks").iter();
    for disk in disks.filter(|disk| number(&disk["slow"]) > 0) {
        let of_disk = delayed.iter().filter(|row| is_of(row, disk));
        let known: Vec<&Value> = of_disk.filter(|row| number(&row["calls"]) > 0).collect();
        let [row] = known.as_slice() else {
            panic!("{disk}: {delayed:?}");
        };
        let name = disk["dev"].as_str().expect("a name");
        assert_eq!(row["file"], format!("/dev/{name}"), "{row}");
        assert!(
            number(&row["calls"]) >= number(&disk["slow"]),
            "{row} {disk}"
        );
        assert!(number(&row["time_ns"]) >= number(&row["max_ns"]), "{row}");
        let by = row["by"].to_string();
        assert!(by.contains("fio"), "{row}");
    }
}

#[test]
fn one_bad_disk_of_six_is_the_one_that_deviates_and_counts_are_those_of_fio() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let mut found = Vec::new();
    // On a busy machine a healthy disk can be slow, too, and reporting it is correct.
    for _ in 0..3 {
        let Some(truth) = incident(&place, "bad_disk", &[]) else {
            return;
        };
        equals_fio(&place, &truth);
        let slow = |disk: &Value| number(&disk["slow"]);
        let disks = truth["disks"].as_array().expect("disks");
        let of_truth: Vec<_> = disks
            .iter()
            .map(|disk| (slow(disk), disk["dev"] == truth["guilty"]))
            .collect();
        found = outliers(&place, &truth);
        for (ours, theirs) in found.iter().zip(&of_truth) {
            assert!(ours.0 >= theirs.0, "{found:?} {of_truth:?}");
            assert!(ours.1 || !theirs.1, "{found:?} {of_truth:?}");
        }
        if found == of_truth {
            return;
        }
    }
    panic!("others deviate: {found:?}");
}

#[test]
fn counts_are_those_of_fio_with_many_readers_and_many_requests_in_flight() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    // Without slow requests, which another test covers.
    let readers = |count, each| {
        [
            format!("readers={count}"),
            format!("operations_of_a_reader_per_disk={each}"),
        ]
    };
    let ways = [
        (readers(32, 13), "psync", "1"),
        (readers(7, 61), "libaio", "4"),
        (readers(3, 101), "io_uring", "8"),
    ];
    for ([readers, each], engine, depth) in ways {
        let options = [
            "--set",
            &readers,
            "--set",
            &each,
            "--set",
            "slow_every=0",
            "--set",
            &format!("engine={engine}"),
            "--set",
            &format!("depth={depth}"),
        ];
        // If one I/O engine is not permitted, another may be.
        if let Some(truth) = incident(&place, "bad_disk", &options) {
            equals_fio(&place, &truth);
        }
    }
}
