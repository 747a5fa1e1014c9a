//! A trace gives the same result whether its metadata is CTF 1.8 or CTF 2: the tables are
//! identical.

// A test prints to stdout why it was skipped.
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use whyslow_ingest::importers::ctf::metadata::parse_metadata;
use whyslow_ingest::{ImportOptions, import};

use crate::support::{ctf2, traces};

#[test]
fn tables_do_not_depend_on_the_version_of_the_metadata() {
    let mut compared = 0;
    for archive in traces::archives() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let unpacked = traces::open(&archive).unpack(folder.path());
        unpacked.expect("the archive can be unpacked");
        let mut found = Vec::new();
        collect_traces(folder.path(), &mut found);
        found.sort();
        for trace in found {
            let first = tables_of(&trace, &folder.path().join("first.wsl"));
            let odd = rewrite_metadata(&trace);
            let second = tables_of(&trace, &folder.path().join("second.wsl"));
            let name = trace.display();
            assert_eq!(first.is_some(), second.is_some(), "{name}");
            let (Some(first), Some(second)) = (first, second) else {
                continue;
            };
            assert!(first.keys().eq(second.keys()), "{name}");
            for (table, bytes) in &first {
                // Unknown attributes are counted there, and are not written again.
                if odd && ["import_log.parquet", "trace_stat.parquet"].contains(&table.as_str()) {
                    continue;
                }
                assert!(bytes == &second[table], "{name}: {table} differs");
            }
            compared += 1;
        }
    }
    println!("{compared} traces have the same tables in both versions");
}

fn collect_traces(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            collect_traces(&path, found);
        } else if path.file_name().is_some_and(|name| name == "metadata") {
            found.push(folder.to_owned());
        }
    }
}

/// Whether the CTF 1.8 metadata had any anomalies.
fn rewrite_metadata(trace: &Path) -> bool {
    let path = trace.join("metadata");
    let bytes = fs::read(&path).expect("metadata can be read");
    let parsed = parse_metadata(&bytes).expect("metadata can be parsed");
    // Files of an archive may be read-only.
    fs::remove_file(&path).expect("metadata can be removed");
    fs::write(&path, ctf2::to_ctf2(&parsed.trace)).expect("metadata can be written");
    !parsed.anomalies.is_empty()
}

/// The table files of a recording, by name; `None` if the trace cannot be imported.
fn tables_of(trace: &Path, recording: &Path) -> Option<BTreeMap<String, Vec<u8>>> {
    if recording.exists() {
        fs::remove_dir_all(recording).expect("the last recording can be removed");
    }
    let options = ImportOptions::new(recording);
    import(&[trace.to_owned()], &options, &mut |_| {}).ok()?;
    let mut tables = BTreeMap::new();
    for entry in fs::read_dir(recording).expect("the recording can be read") {
        let path = entry.expect("the recording can be read").path();
        if path.extension().is_some_and(|kind| kind == "parquet") {
            let name = path.file_name().expect("a file has a name");
            let bytes = fs::read(&path).expect("a table can be read");
            tables.insert(name.to_string_lossy().into_owned(), bytes);
        }
    }
    assert!(!tables.is_empty(), "{}", recording.display());
    Some(tables)
}
