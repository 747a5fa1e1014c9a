//! Writing: what becomes visible, and what does not.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use whyslow_model::Symbols;
use whyslow_model::row::Emit;
use whyslow_model::tables::{CpuRow, MarkerRow};
use whyslow_store::{Existing, RecordingInfo, RecordingWriter, StoreError};

fn write_small(target: &Path, existing: Existing) -> Result<RecordingInfo, StoreError> {
    let symbols = Symbols::new();
    let mut writer = RecordingWriter::create(target, existing)?;
    for cpu in [1, 0] {
        writer.emit(CpuRow {
            cpu,
            ts_first: 1,
            ts_last: 2,
            events: 3,
            lost: 0,
            busy_ns: Some(0),
        });
        writer.flush_ready(&symbols)?;
    }
    writer.finish(&symbols, RecordingInfo::default())
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .expect("readable")
        .map(|entry| {
            entry
                .expect("entry")
                .file_name()
                .into_string()
                .expect("UTF-8")
        })
        .collect();
    names.sort();
    names
}

#[test]
fn a_recording_holds_every_table_for_its_user_only() {
    let parent = tempfile::tempdir().expect("tempdir");
    let target = parent.path().join("a.wsl");
    let info = write_small(&target, Existing::Refuse).expect("written");
    assert_eq!(names(parent.path()), ["a.wsl"]);
    assert_eq!(info.tables.len(), whyslow_model::tables::ALL.len());
    assert_eq!(info.tables["cpu"].rows, 2);
    for table in whyslow_model::tables::ALL {
        let file = target.join(format!("{}.parquet", table.name));
        let mode = file.metadata().expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
    let mode = target.metadata().expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn what_is_there_is_replaced_only_when_told_and_only_a_recording() {
    let parent = tempfile::tempdir().expect("tempdir");
    let target = parent.path().join("a.wsl");
    write_small(&target, Existing::Replace).expect("nothing there yet");
    let refused = write_small(&target, Existing::Refuse);
    assert!(matches!(refused, Err(StoreError::Exists { .. })));
    std::fs::write(target.join("extra"), "").expect("written");
    write_small(&target, Existing::Replace).expect("replaced");
    assert!(!target.join("extra").exists());

    let home = parent.path().join("home");
    std::fs::create_dir(&home).expect("created");
    std::fs::write(home.join("letter"), "dear").expect("written");
    let refused = write_small(&home, Existing::Replace);
    assert!(matches!(refused, Err(StoreError::NotARecording { .. })));
    assert_eq!(names(&home), ["letter"]);
    assert_eq!(names(parent.path()), ["a.wsl", "home"]);
}

#[test]
fn a_writer_given_up_leaves_nothing() {
    let parent = tempfile::tempdir().expect("tempdir");
    let target = parent.path().join("a.wsl");
    let symbols = Symbols::new();
    let mut writer = RecordingWriter::create(&target, Existing::Refuse).expect("created");
    assert_eq!(names(parent.path()).len(), 1);
    // Enough rows that threads are writing when it is dropped.
    for id in 0..1_500_000 {
        writer.emit(MarkerRow {
            id,
            ts: id,
            name: whyslow_model::Sym::EMPTY,
            text: whyslow_model::Sym::EMPTY,
            ..MarkerRow::default()
        });
        writer.flush_ready(&symbols).expect("flushed");
    }
    drop(writer);
    assert!(names(parent.path()).is_empty());
}
