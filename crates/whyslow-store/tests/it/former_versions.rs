//! Recordings of former format versions are read with the names of today.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use whyslow_model::tables::{CounterRow, LockWaitRow, RequestThreadRow, TraceStatRow};
use whyslow_model::{Row, Sym, Symbols, Table};
use whyslow_store::packed::{self, Unpacking};
use whyslow_store::{Recording, Tables, rows};

fn recording_2(parent: &Path) -> Recording {
    let fixture = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/former-versions/recording-2.wsl.tar.zst");
    let go = AtomicBool::new(false);
    let target = parent.join("a.wsl");
    std::fs::create_dir(&target).expect("created");
    let limits = Unpacking::into(parent, &go).expect("a disk");
    let packed = File::open(&fixture).expect("the fixture is part of the repository");
    packed::unpack(packed, &fixture, &target, &limits).expect("a packed recording");
    Recording::open(&target).expect("version 2 is read")
}

fn words<R: Row>(recording: &Recording, pick: impl Fn(&R) -> Option<Sym>) -> BTreeSet<String> {
    let mut symbols = Symbols::new();
    let found: Vec<R> = rows(recording, &mut symbols).expect("rows");
    assert!(!found.is_empty());
    let texts = found.iter().filter_map(pick);
    texts.map(|sym| symbols.get(sym).to_owned()).collect()
}

fn listed(recording: &Recording, table: &'static Table, column: &str) -> BTreeSet<String> {
    let words = recording.words(table, column).expect("words");
    words.expect("dictionaries")
}

fn set(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn a_recording_of_version_2_has_the_columns_of_today() {
    let parent = tempfile::tempdir().expect("tempdir");
    let recording = recording_2(parent.path());
    assert_eq!(recording.info().format_version, 2);
    assert!(
        recording.info().cut.is_some(),
        "`told` of the manifest is known"
    );
    recording.verify().expect("nothing is damaged");
    assert_eq!(
        words(&recording, |row: &CounterRow| row.reported_by),
        set(&["iostat", "runqslower"])
    );
    assert_eq!(
        words(&recording, |row: &LockWaitRow| row.reported_by),
        set(&["dump"])
    );
    assert!(words(&recording, |row: &RequestThreadRow| Some(row.received_by)).contains("read"));
    assert_eq!(
        listed(&recording, CounterRow::TABLE, "reported_by"),
        set(&["iostat", "runqslower"])
    );
}

#[test]
fn anomalies_of_version_2_have_the_names_of_today() {
    let parent = tempfile::tempdir().expect("tempdir");
    let recording = recording_2(parent.path());
    let names = words(&recording, |row: &TraceStatRow| Some(row.name));
    assert!(names.contains("REQUEST_NOT_HTTP") && names.contains("SNOOP_STATUS_LINE"));
    assert!(!names.contains("REQUEST_NOT_ASKED") && !names.contains("SNOOP_TALK"));
    assert_eq!(listed(&recording, TraceStatRow::TABLE, "name"), names);
}
