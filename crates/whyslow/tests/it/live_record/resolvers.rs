//! Resolver configuration of processes, against the files that the test creates.

use std::fs;

use serde_json::Value;
use whyslow_testkit::{Need, skip};

use super::{can_record, record};
use crate::common::Place;

/// Rows of a table of an answer.
fn table(place: &Place, query: &[&str], name: &str) -> Vec<Value> {
    let output = place.whyslow().args(query).arg("--json").output();
    let output = output.expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let tables = answer["tables"].as_array().expect("tables");
    let found = tables.iter().find(|table| table["name"] == name);
    let rows = found.and_then(|table| table["rows"].as_array());
    rows.cloned().unwrap_or_default()
}

#[test]
fn what_applies_in_a_new_mount_namespace_is_told_beside_its_lookups() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    place.write(
        "resolv.conf",
        "nameserver 192.0.2.7\nnameserver 192.0.2.8\nsearch a.test b.test\n\
         options timeout:3 attempts:4 rotate\n",
    );
    place.write("nsswitch.conf", "passwd: files\nhosts: files dns\n");
    // Numeric addresses need no queries. The first process has the machine's own configuration.
    let script = "\
        getent ahosts 127.0.0.71 >/dev/null || exit 3
        exec unshare -m sh -c '
            for file in resolv.conf nsswitch.conf; do
                mount --bind $PWD/$file /etc/$file || exit 4
            done
            getent ahosts 127.0.0.72 >/dev/null; sleep 0.2'";
    let output = place
        .whyslow()
        .args([
            "-q", "record", "-o", "rec.wsl", "--", "/bin/sh", "-c", script,
        ])
        .output()
        .expect("it starts");
    if matches!(output.status.code(), Some(3 | 4)) {
        return skip(
            Need::Isolation,
            "getent is not installed, or nothing can be mounted here",
        );
    }
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let hosts = table(
        &place,
        &["dns", "stats", "rec.wsl", "--by", "mount_ns,host"],
        "stats",
    );
    let ns_of = |host: &str| {
        let row = hosts.iter().find(|row| row["host"] == host);
        row.unwrap_or_else(|| panic!("{host} among {hosts:?}"))["mount_ns"].clone()
    };
    let resolvers = table(&place, &["dns", "usage", "rec.wsl"], "resolvers");
    let of = |host: &str| {
        let ns = ns_of(host);
        let row = resolvers.iter().find(|row| row["mount_ns"] == ns);
        row.unwrap_or_else(|| panic!("{ns} among {resolvers:?}"))
    };
    let there = of("127.0.0.72");
    assert_eq!(
        there["nameservers"],
        serde_json::json!(["192.0.2.7", "192.0.2.8"])
    );
    assert_eq!(there["search"], serde_json::json!(["a.test", "b.test"]));
    assert_eq!(there["timeout_ns"], 3_000_000_000_i64);
    assert_eq!(there["attempts"], 4);
    assert_eq!(there["options"], serde_json::json!(["rotate"]));
    assert_eq!(there["hosts"], "files dns");
    let here = of("127.0.0.71");
    assert_ne!(here["nameservers"], there["nameservers"]);
    // Other processes of the machine have the machine's own configuration.
    let own = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let mut servers = own
        .lines()
        .filter_map(|line| line.strip_prefix("nameserver "));
    if let Some(server) = servers.next() {
        assert_eq!(here["nameservers"][0], server.trim());
    }
    let listed = table(&place, &["info", "rec.wsl"], "resolvers");
    let is_there = |row: &&Value| row["nameservers"] == there["nameservers"];
    assert_eq!(listed.iter().filter(is_there).count(), 1, "{listed:?}");
}

#[test]
fn a_recording_of_a_moment_has_the_files_of_the_machine() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    record(&place, &[], "true");
    for name in ["/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/hosts"] {
        let Ok(text) = fs::read_to_string(name) else {
            continue;
        };
        let query = format!("SELECT text, size FROM resolver_file WHERE path = '{name}'");
        let output = place
            .whyslow()
            .args(["sql", "rec.wsl", &query, "--json"])
            .output();
        let output = output.expect("it starts");
        if String::from_utf8_lossy(&output.stderr).contains("not installed") {
            return skip(Need::DuckDb, "the duckdb command line is not installed");
        }
        let rows: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let rows = rows.as_array().expect("rows");
        let is_it = |row: &&Value| row["text"] == text.as_str() && row["size"] == text.len();
        assert!(rows.iter().any(|row| is_it(&row)), "{name}: {rows:?}");
    }
}
