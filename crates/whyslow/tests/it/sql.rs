//! `whyslow sql`: DuckDB reads all of a recording and nothing else, and writes nothing.

use std::path::Path;

use whyslow_testkit::{Need, skip};

use crate::common::{self, Place, recorded};

/// Whether duckdb is installed; skips the test otherwise.
fn has_duckdb() -> bool {
    let output = recorded()
        .whyslow()
        .args(["sql", "t.wsl", "SELECT 1"])
        .output();
    let output = output.expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("not installed") {
        skip(Need::DuckDb, "the duckdb command line is not installed");
        return false;
    }
    true
}

#[test]
fn a_missing_duckdb_is_told_with_the_command_that_installs_it() {
    let output = recorded()
        .whyslow()
        .env("PATH", "/nonexistent")
        .args(["sql", "t.wsl", "SELECT 1"])
        .assert()
        .code(1);
    let said = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(
        said.contains("error: ") && said.contains("hint: pip install duckdb-cli"),
        "{said}"
    );
}

#[test]
fn tables_and_views_are_described() {
    let text = recorded().stdout(&["sql", "--tables"]);
    for name in ["syscall: ", "block_io: ", "io: ", "disk_latency: "] {
        assert!(text.contains(name), "{name}");
    }
}

#[test]
fn every_table_and_view_can_be_read() {
    if !has_duckdb() {
        return;
    }
    let place = recorded();
    let names = place.stdout(&[
        "sql",
        "t.wsl",
        "--csv",
        "SELECT table_name FROM information_schema.tables ORDER BY table_name",
    ]);
    let names: Vec<&str> = names.lines().skip(1).collect();
    assert!(names.len() >= 30, "{names:?}");
    for name in names {
        place.stdout(&[
            "sql",
            "t.wsl",
            "--csv",
            &format!("SELECT COUNT(*) FROM {name}"),
        ]);
    }
    let slow = "SELECT path, dur FROM io WHERE op = 'open' ORDER BY dur DESC LIMIT 1";
    let text = place.stdout(&["sql", "t.wsl", "--csv", slow]);
    assert_eq!(text, "path,dur\n/var/lib/php5/sess_1,100000000\n");
    let file = place.write("query.sql", "SELECT 6 * 7 AS answer;\n");
    let file = file.to_str().expect("UTF-8");
    let text = place.stdout(&["sql", "t.wsl", "--json", "--query-file", file]);
    assert_eq!(text.trim(), "[{\"answer\":42}]");
}

#[test]
fn a_wrong_query_fails() {
    if !has_duckdb() {
        return;
    }
    let output = recorded()
        .whyslow()
        .args(["sql", "t.wsl", "SELECT nonsense"])
        .assert();
    let output = output.failure();
    assert!(String::from_utf8_lossy(&output.get_output().stderr).contains("nonsense"));
}

/// Files below a directory with the lengths of their contents.
fn listing(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).expect("ours") {
        let path = entry.expect("ours").path();
        if path.is_dir() {
            files.extend(listing(&path));
        } else {
            let bytes = std::fs::read(&path).expect("ours");
            files.push((path.display().to_string(), bytes));
        }
    }
    files.sort();
    files
}

#[test]
fn nothing_outside_can_be_read_and_nothing_written() {
    if !has_duckdb() {
        return;
    }
    // A name with a quote and with characters that are a pattern for duckdb.
    let place = Place::new();
    place.write("t.txt", common::TRACE);
    place.write("secret.csv", "a\n1\n");
    let recording = "o'[1]*.wsl";
    place
        .whyslow()
        .args(["import", "t.txt", "-o", recording])
        .assert()
        .success();
    let table = place.join(recording).join("syscall.parquet");
    let (table, folder) = (
        table.display().to_string().replace('\'', "''"),
        place.path().display(),
    );
    let before = listing(place.path());
    for statement in [
        format!("COPY (SELECT 1) TO '{folder}/out.csv'"),
        format!("COPY (SELECT 1) TO '{table}'"),
        format!("COPY (SELECT 1 AS a) TO '{table}' (FORMAT parquet, USE_TMP_FILE false)"),
        format!("COPY (SELECT 1) TO '{folder}/o''[1]*.wsl/new.parquet'"),
        "COPY (SELECT 1) TO '/dev/stdout'".to_owned(),
        format!("ATTACH '{folder}/x.db'"),
        format!("ATTACH '{table}' AS x"),
        format!("EXPORT DATABASE '{folder}/dump'"),
        "INSTALL httpfs".to_owned(),
        "LOAD httpfs".to_owned(),
        "LOAD '/tmp/x.duckdb_extension'".to_owned(),
        format!("SELECT a FROM read_csv('{folder}/secret.csv')"),
        "SELECT content FROM read_text('/etc/passwd')".to_owned(),
        "SELECT content FROM read_text('/proc/self/environ')".to_owned(),
        "SELECT file FROM glob('/etc/*')".to_owned(),
        "SELECT a FROM read_csv('http://127.0.0.1:9/x.csv')".to_owned(),
        "SET enable_external_access = true".to_owned(),
        "SET allowed_paths = ['/etc/passwd']".to_owned(),
        "SET lock_configuration = false".to_owned(),
        "SET memory_limit = '1TB'".to_owned(),
        ".shell touch out".to_owned(),
        ".system touch out".to_owned(),
        format!(".output {folder}/out"),
        format!(".once {folder}/out"),
        format!(".log {folder}/out"),
        format!(".open {folder}/x.db"),
        format!(".read {folder}/secret.csv"),
        format!(".import {folder}/secret.csv t"),
        format!(".cd {folder}"),
    ] {
        let output = place
            .whyslow()
            .args(["sql", recording, &statement])
            .output();
        let output = output.expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let answered = String::from_utf8_lossy(&output.stdout).into_owned();
        let refused = !output.status.success() || said.contains("safe mode");
        assert!(
            refused || answered.trim().is_empty(),
            "{statement}: {answered}{said}"
        );
        for secret in ["root:", "PATH=", "│ 1 │", "/etc/"] {
            assert!(!answered.contains(secret), "{statement}: {answered}");
        }
        let same = listing(place.path()) == before;
        assert!(same, "{statement} changed a file");
    }
    let text = place.stdout(&[
        "sql",
        recording,
        "--csv",
        "SELECT COUNT(*) AS n FROM syscall",
    ]);
    assert_eq!(text, "n\n6\n");
}

#[test]
fn a_packed_part_is_asked_like_a_recording_and_goes() {
    if !has_duckdb() {
        return;
    }
    let place = Place::new();
    place.write("t.txt", common::TRACE);
    std::fs::create_dir(place.join("tmp")).expect("a temporary folder takes it");
    let run = |args: &[&str]| {
        let mut command = place.whyslow();
        command.env("TMPDIR", place.join("tmp")).args(args);
        let done = command.assert().success();
        String::from_utf8(done.get_output().stdout.clone()).expect("UTF-8")
    };
    let window = "2015-01-15 12:18:37+900ms";
    run(&[
        "export",
        "snapshot",
        "t.txt",
        "-w",
        window,
        "-o",
        "t.wsl.tar.zst",
    ]);
    let count = "SELECT count(*) AS calls FROM syscall WHERE name = 'openat'";
    let csv = run(&["sql", "t.wsl.tar.zst", count, "--csv"]);
    assert_eq!(csv, "calls\n3\n");
    let left = std::fs::read_dir(place.join("tmp")).expect("it is there");
    assert_eq!(left.count(), 0);
}
