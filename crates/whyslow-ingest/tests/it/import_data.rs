//! Real traces from `WHYSLOW_DATA`: nothing is missing after the import.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use whyslow_ingest::archive::{self, Unpacked};
use whyslow_ingest::{ImportError, InMemory, import_in_memory};

use crate::common::{data, import};

fn unpack(archive: &Path) -> Unpacked {
    archive::unpack(archive).expect("the archive unpacks")
}

/// Events by name, as counted by another tool.
fn counts(path: &Path) -> BTreeMap<String, i64> {
    let text = fs::read_to_string(path).expect("counts");
    let lines = text.lines().filter_map(|line| line.split_once('\t'));
    lines
        .map(|(name, count)| (name.to_owned(), count.parse().expect("a count")))
        .collect()
}

fn counted(import: &InMemory) -> BTreeMap<String, i64> {
    let mut counted = BTreeMap::new();
    for row in &import.rows.trace_stat {
        if import.symbols.get(row.kind) == "event" {
            *counted
                .entry(import.symbols.get(row.name).to_owned())
                .or_default() += row.count;
        }
    }
    counted
}

fn check_counts(import: &InMemory, expected: &Path) {
    assert_eq!(counted(import), counts(expected), "{}", expected.display());
    let records = import.records;
    assert_eq!(records.read, records.accepted + records.skipped);
    assert_eq!(records.skipped, 0, "{:?}", import.anomalies);
}

#[test]
fn events_by_name_are_those_that_babeltrace_counts() {
    let Some(data) = data() else { return };
    for name in [
        "arm-old-syscalls-3.10",
        "basic-kernel-4.4",
        "big-endian-3.14",
        "many-threads-4.4",
        "no-thread-6.2",
        "perfctx-6.2",
        "tidctx-only-6.2",
    ] {
        let import = import(data.join(format!("{name}.tar.xz")));
        check_counts(&import, &data.join(format!("counts/{name}.tsv")));
    }
    let incident = import(data.join("ours-web-incident/trace.tar.zst"));
    check_counts(&incident, &data.join("counts/ours-web-incident.tsv"));
}

#[test]
fn two_hosts_are_whole_one_by_one_and_refused_together() {
    let Some(data) = data() else { return };
    let archive = data.join("two-hosts-scp-3.6.tar.xz");
    let unpacked = unpack(&archive);
    let folder = unpacked.path().join("two-hosts-scp-3.6");
    for (host, events) in [("scp_src", 110_771), ("scp_dest", 85_729)] {
        let import = import(folder.join(host));
        let expected = format!("counts/two-hosts-scp-3.6.{host}.tsv");
        check_counts(&import, &data.join(expected));
        assert_eq!(import.records.read, events);
    }
    let together = import_in_memory(&[archive]).err();
    assert!(matches!(
        together,
        Some(ImportError::SeveralHosts { hosts }) if hosts == ["VM1", "VM3"]
    ));
}
