//! Truncated and damaged logs.

use whyslow_ingest::import_in_memory;

use super::documented::DOCUMENTED;
use super::{is_whole, rows};
use crate::live_texts::{Report, damaged, fixture, import, met};

fn logs() -> Vec<(String, String)> {
    let fixtures = [
        "execsnoop.txt",
        "exitsnoop.txt",
        "gethostlatency.txt",
        "opensnoop.txt",
        "runqslower.txt",
        "sigsnoop.txt",
        "tcplife.txt",
    ];
    let fixtures = fixtures
        .iter()
        .map(|name| ((*name).to_owned(), fixture(name)));
    let documented = DOCUMENTED
        .iter()
        .map(|(name, _, log)| ((*name).to_owned(), (*log).to_owned()));
    fixtures.chain(documented).collect()
}

#[test]
fn logs_that_are_cut_have_what_is_whole() {
    for (name, log) in logs() {
        let whole = rows(&import(&log));
        for (end, _) in log.match_indices('\n') {
            let cut = Report::new(&log[..=end]);
            let Ok(import) = import_in_memory(std::slice::from_ref(&cut.path)) else {
                continue;
            };
            is_whole(&import);
            let found = rows(&import);
            assert!(
                found
                    .iter()
                    .zip(&whole)
                    .all(|(found, whole)| found <= whole),
                "{name} cut at {end}: {found:?} of {whole:?}"
            );
        }
    }
}

#[test]
fn damaged_logs_lose_what_is_damaged() {
    for (name, log) in logs() {
        for (number, bytes) in damaged(log.as_bytes()).into_iter().enumerate() {
            let file = Report::new(&bytes);
            let Ok(import) = import_in_memory(std::slice::from_ref(&file.path)) else {
                continue;
            };
            let records = import.records;
            assert_eq!(
                records.read,
                records.accepted + records.skipped,
                "{name} {number}"
            );
            let counts = met(&import, "SNOOP_LINE_BAD")
                + met(&import, "REPORT_LINE_BAD")
                + met(&import, "TEXT_LINE_BAD");
            assert_eq!(
                records.skipped, counts,
                "{name} {number}: {:?}",
                import.anomalies
            );
        }
    }
}

#[test]
fn a_line_whose_number_is_none_is_a_bad_one() {
    let import = import(
        "TIME(ms)     DISK COMM              PID    LAT(ms)\n\
         611          nvme0n1 bash          4179        10\n\
         612          nvme0n1 cat           4179         x\n",
    );
    let counts = ["SNOOP_LINE_BAD", "TEXT_LINE_BAD"].map(|name| met(&import, name));
    assert_eq!(counts, [1, 0], "{:?}", import.anomalies);
}
