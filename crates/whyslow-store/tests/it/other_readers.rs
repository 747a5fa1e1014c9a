//! Other programs read the same content from the files.

use std::path::Path;
use std::process::Command;

use whyslow_model::Row;
use whyslow_model::tables::{Collected, SyscallRow};
use whyslow_testkit::{Need, skip};

use crate::it::support::{self, Random, SMALL};

/// Rows of every table; the ids of system calls are small, so that their sum fits everywhere.
fn rows() -> Collected {
    let mut rows = support::any_rows(&mut Random(21), &support::symbols(), 2000);
    for (id, row) in (0..).zip(&mut rows.syscall) {
        row.id = id;
    }
    rows
}

/// Output of the program; `None` (and a skip) if it is not available.
fn output(need: Need, program: &str, arguments: &[&str], needs: &str) -> Option<String> {
    let probe = Command::new(program).args(["-c", needs]).output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        skip(
            need,
            format!("`{program} -c '{needs}'` does not run on this machine"),
        );
        return None;
    }
    let run = Command::new(program)
        .args(arguments)
        .output()
        .expect("started before");
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{program}: {errors}");
    Some(
        String::from_utf8(run.stdout)
            .expect("UTF-8")
            .trim()
            .to_owned(),
    )
}

/// `files` as a list in brackets, and the content of the rows: count, sum of ids, calls with a
/// path, characters of names.
fn written(parent: &Path) -> (String, String) {
    let (rows, symbols) = (rows(), support::symbols());
    let target = parent.join("a.wsl");
    let info = support::write(&rows, &symbols, &target, SMALL).expect("written");
    let table = &info.tables[SyscallRow::TABLE.name];
    assert!(!table.long_files.is_empty());
    let files = table.files.iter().chain(&table.long_files);
    let quoted: Vec<_> = files
        .map(|file| format!("'{}'", target.join(file).display()))
        .collect();
    let calls = &rows.syscall;
    let ids: i64 = calls.iter().map(|row| row.id).sum();
    let paths = calls.iter().filter(|row| row.path.is_some()).count();
    let name = |row: &SyscallRow| symbols.get(row.name).chars().count();
    let characters: usize = calls.iter().map(name).sum();
    let expected = format!("{},{ids},{paths},{characters}", calls.len());
    (format!("[{}]", quoted.join(", ")), expected)
}

#[test]
fn duckdb_reads_what_was_written() {
    let parent = tempfile::tempdir().expect("tempdir");
    let (files, expected) = written(parent.path());
    let query = format!(
        "SELECT count(*) AS calls, sum(id) AS ids, count(path) AS paths, \
         sum(length(name)) AS characters FROM read_parquet({files})"
    );
    let arguments = ["-noheader", "-csv", "-c", &query];
    if let Some(printed) = output(Need::DuckDb, "duckdb", &arguments, "SELECT 1") {
        assert_eq!(printed, expected);
    }
}

#[test]
fn pyarrow_reads_what_was_written() {
    let parent = tempfile::tempdir().expect("tempdir");
    let (files, expected) = written(parent.path());
    let script = format!(
        "import pyarrow.parquet as parquet\n\
         tables = [parquet.read_table(file) for file in {files}]\n\
         calls = [call for table in tables for call in table.to_pylist()]\n\
         assert all(table.schema.field('name').type == 'string' for table in tables)\n\
         print(len(calls), sum(call['id'] for call in calls),\n\
         \x20     sum(call['path'] is not None for call in calls),\n\
         \x20     sum(len(call['name']) for call in calls), sep=',')"
    );
    if let Some(printed) = output(
        Need::Python,
        "python3",
        &["-c", &script],
        "import pyarrow.parquet",
    ) {
        assert_eq!(printed, expected);
    }
}
