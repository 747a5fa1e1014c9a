//! Lakes: the first byte chooses which file has the input, a commit or the file of a table. Listing, reading,
//! finding and compacting return data or an error, and do not touch files outside of the lake.
#![no_main]

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use whyslow_fleet::lake::{CompactOptions, Lake};
use whyslow_fleet::tables::ALL;

const DAY: &str = "dt=2026-11-27/cluster=c";
const RECORDINGS: [&str; 2] = ["01M8EE0VG00000000000000001", "01M8EE0VG00000000000000002"];
const COMPACTION: &str = "@01M8EE0VG00000000000000003";

fn folder() -> tempfile::TempDir {
    let shared = Path::new("/dev/shm");
    if shared.is_dir() {
        tempfile::tempdir_in(shared)
    } else {
        tempfile::tempdir()
    }
    .expect("a temporary folder")
}

fn put(lake: &Path, under: &str, name: &str, bytes: &[u8]) {
    let folder = lake.join("v1").join(under).join(DAY);
    fs::create_dir_all(&folder).expect("a temporary folder takes it");
    fs::write(folder.join(name), bytes).expect("a temporary folder takes it");
}

/// The commit of one recording, with one table.
fn commit(recording: &str, table: &str, bytes: usize) -> String {
    let file = format!("{table}/{DAY}/h.{recording}.parquet");
    format!(
        r#"{{"version": 1, "recording": "{recording}", "host": "h", "cluster": "c", "begin_ns": 1, "end_ns": 2,
            "tables": {{"{table}": {{"file": "{file}", "rows": 1, "bytes": {bytes}}}}}, "written_by": "fuzz"}}"#
    )
}

// The lake catches panics of the Parquet library; a panic that is not caught ends the run.
fuzz_target!(init: std::panic::set_hook(Box::new(|_| {})), |bytes: &[u8]| {
    let Some((which, bytes)) = bytes.split_first() else {
        return;
    };
    let parent = folder();
    let root = parent.path().join("lake");
    let table = ALL[usize::from(*which) % ALL.len()].name;
    for recording in RECORDINGS {
        let name = format!("h.{recording}");
        match which / 32 {
            0 => put(&root, "_commits", &format!("{name}.json"), bytes),
            1 => put(&root, "_commits", &format!("{COMPACTION}.json"), bytes),
            _ => {
                put(&root, table, &format!("{name}.parquet"), bytes);
                let commit = commit(recording, table, bytes.len());
                put(&root, "_commits", &format!("{name}.json"), commit.as_bytes());
            }
        }
    }
    let lake = Lake::make(root.to_str().expect("UTF-8")).expect("a folder");
    let never = AtomicBool::new(false);
    let _ = lake.listing();
    for table in ALL {
        let _ = lake.rows(table);
    }
    if let Ok(Some(found)) = lake.find(RECORDINGS[0]) {
        let _ = lake.fetch(&found, &mut std::io::sink());
    }
    let options = CompactOptions {
        files_min: 2,
        grace: Duration::ZERO,
    };
    let _ = lake.compact(&options, &never);
    let entries = fs::read_dir(parent.path()).expect("readable").count();
    assert_eq!(entries, 1, "a file outside of the lake");
});
