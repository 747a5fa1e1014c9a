//! Truncated and damaged reports.

use std::path::Path;

use whyslow_ingest::import_in_memory;

use super::counters;
use crate::live_texts::{Report, damaged, fixture, import, met};

const FIXTURES: [&str; 12] = [
    "iostat.txt",
    "iostat-iso.txt",
    "iostat.json",
    "mpstat.txt",
    "pidstat.txt",
    "pidstat-h.txt",
    "sar.txt",
    "sadf.csv",
    "sadf.json",
    "vmstat.txt",
    "top.txt",
    "jmx.csv",
];

#[test]
fn reports_that_are_cut_have_what_is_whole() {
    for name in FIXTURES {
        let report = fixture(name);
        let whole = counters(&import(&report));
        let places: Vec<usize> = report.match_indices('\n').map(|(at, _)| at + 1).collect();
        for end in places.iter().rev().step_by(7) {
            let cut = Report::new(&report[..*end]);
            let Ok(import) = std::panic::catch_unwind(|| cut.import()) else {
                // Too short to be recognized.
                assert!(*end < 200, "{name} cut at {end}");
                continue;
            };
            let counters = counters(&import);
            assert!(
                counters.iter().all(|one| whole.contains(one)),
                "{name} cut at {end}"
            );
            let last = whole.iter().map(|counter| counter.0).max();
            if *end == report.len() {
                assert_eq!(
                    counters.iter().map(|counter| counter.0).max(),
                    last,
                    "{name}"
                );
            }
            // JSON samples have an end marker; so has a file.
            if Path::new(name).extension().is_some_and(|end| end == "json") {
                let is_whole = counters.len() == whole.len();
                assert!(
                    is_whole || met(&import, "REPORT_LINE_BAD") == 1,
                    "{name} cut at {end}"
                );
            }
        }
    }
}

#[test]
fn damaged_reports_lose_what_is_damaged() {
    for name in FIXTURES {
        let report = fixture(name);
        for (number, bytes) in damaged(report.as_bytes()).into_iter().enumerate() {
            let file = Report::new(&bytes);
            let Ok(import) = import_in_memory(std::slice::from_ref(&file.path)) else {
                continue;
            };
            // Every line is a counter, a header, or counted.
            let records = import.records;
            assert_eq!(
                records.read,
                records.accepted + records.skipped,
                "{name} {number}"
            );
            assert_eq!(
                records.skipped,
                met(&import, "REPORT_LINE_BAD"),
                "{name} {number}: {:?}",
                import.anomalies
            );
        }
    }
}
