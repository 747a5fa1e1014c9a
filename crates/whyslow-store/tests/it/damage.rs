//! Damaged or planted recordings: an error that locates the damage, or the right rows.

use std::ops::ControlFlow;
use std::path::Path;

use whyslow_model::{Window, tables};
use whyslow_store::{Recording, Scan, StoreError, Tables};

use crate::it::support::{self, Random, SMALL};

fn written(parent: &Path) -> std::path::PathBuf {
    let symbols = support::symbols();
    let rows = support::any_rows(&mut Random(11), &symbols, 900);
    let target = parent.join("a.wsl");
    support::write(&rows, &symbols, &target, SMALL).expect("written");
    target
}

/// Reads a table with each method; returns the number of rows from `scan`.
fn read(target: &Path, name: &str) -> Result<u64, StoreError> {
    let recording = Recording::open(target)?;
    let table = tables::by_name(name).expect("declared");
    let mut scan = Scan {
        table,
        columns: table.columns.iter().map(|column| column.name).collect(),
        window: None,
    };
    let mut rows = 0;
    recording.scan(&scan, &mut |batch| {
        rows += batch.num_rows() as u64;
        Ok(ControlFlow::Continue(()))
    })?;
    scan.window = Some(Window::new(100, 200));
    for part in recording.parts(&scan)? {
        part.read(&mut |_| Ok(ControlFlow::Continue(())))?;
    }
    Ok(rows)
}

fn read_all(target: &Path) -> Result<(), StoreError> {
    for table in tables::ALL {
        read(target, table.name)?;
    }
    Ok(())
}

#[test]
fn a_cut_or_changed_parquet_file_is_an_error_or_still_readable() {
    let parent = tempfile::tempdir().expect("tempdir");
    let target = written(parent.path());
    let mut random = Random(99);
    for name in ["syscall", "block_io", "thread", "syscall_long"] {
        let path = target.join(format!("{name}.parquet"));
        let good = std::fs::read(&path).expect("readable");
        let table = name.trim_end_matches("_long");
        let rows = read(&target, table).expect("whole");
        for round in 0..150 {
            let mut bad = good.clone();
            // Damage in the footer has the widest effects: half of the changes hit it.
            let at = if round % 2 == 0 {
                random.below(good.len() as u64) as usize
            } else {
                good.len() - 1 - random.below(good.len().min(6_000) as u64) as usize
            };
            if round % 3 == 0 {
                bad.truncate(at);
            } else {
                bad[at] ^= 1 << random.below(8);
            }
            std::fs::write(&path, &bad).expect("written");
            match read(&target, table) {
                Ok(read) => assert_eq!(read, rows, "{name}, byte {at}"),
                Err(error) => assert!(
                    matches!(&error, StoreError::Damaged { table: named, .. } if named == table),
                    "{name}, byte {at}: {error:?}"
                ),
            }
        }
        std::fs::write(&path, &good).expect("written");
    }
}

#[test]
fn a_cut_or_changed_manifest_is_an_error_or_still_readable() {
    let parent = tempfile::tempdir().expect("tempdir");
    let target = written(parent.path());
    let path = target.join("manifest.json");
    let good = std::fs::read(&path).expect("readable");
    let mut random = Random(7);
    for round in 0..120 {
        let mut bad = good.clone();
        let at = random.below(good.len() as u64) as usize;
        if round % 2 == 0 {
            bad.truncate(at);
        } else {
            bad[at] = random.below(256) as u8;
        }
        std::fs::write(&path, &bad).expect("written");
        // A changed letter in a file name leads to a missing file.
        match read_all(&target) {
            Ok(()) | Err(StoreError::NotARecording { .. } | StoreError::Damaged { .. }) => {}
            Err(StoreError::TooNew { found, .. }) => assert!(found > 2),
            Err(StoreError::TooOld { found, .. }) => assert!(found < 2),
            Err(StoreError::Io { source, .. }) => {
                assert_eq!(source.kind(), std::io::ErrorKind::NotFound, "byte {at}");
            }
            Err(other) => panic!("byte {at}: {other:?}"),
        }
    }
}

fn replaced(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).expect("readable");
    assert!(text.contains(from), "{from}");
    std::fs::write(path, text.replace(from, to)).expect("written");
}

fn message(target: &Path, table: &str) -> String {
    match read(target, table) {
        Ok(rows) => panic!("{rows} rows were read"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn names_in_the_manifest_never_lead_out_of_the_recording() {
    let parent = tempfile::tempdir().expect("tempdir");
    let target = written(parent.path());
    for planted in ["../b.parquet", "/etc/passwd", "..", "a/b", "", "a\\u0000"] {
        let manifest = target.join("manifest.json");
        let good = std::fs::read(&manifest).expect("readable");
        replaced(&manifest, "\"cpu.parquet\"", &format!("\"{planted}\""));
        let text = message(&target, "cpu");
        assert!(
            text.contains("lists a file outside of the recording"),
            "{planted}: {text}"
        );
        std::fs::write(&manifest, good).expect("written");
    }
}

#[test]
fn links_and_pipes_in_a_recording_are_refused() {
    let parent = tempfile::tempdir().expect("tempdir");
    let target = written(parent.path());
    let other = written(&tempfile::tempdir_in(parent.path()).expect("tempdir").keep());

    std::fs::remove_file(target.join("cpu.parquet")).expect("removed");
    std::os::unix::fs::symlink(other.join("cpu.parquet"), target.join("cpu.parquet"))
        .expect("linked");
    assert!(message(&target, "cpu").ends_with("`cpu.parquet` is a symbolic link"));

    std::fs::remove_file(target.join("irq.parquet")).expect("removed");
    let fifo = rustix::fs::CWD;
    rustix::fs::mknodat(
        fifo,
        target.join("irq.parquet"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .expect("made");
    assert!(message(&target, "irq").ends_with("`irq.parquet` is not a file"));

    std::fs::remove_file(target.join("manifest.json")).expect("removed");
    std::os::unix::fs::symlink(other.join("manifest.json"), target.join("manifest.json"))
        .expect("linked");
    assert!(message(&target, "mapping").ends_with("`manifest.json` is a symbolic link"));
}

#[test]
fn what_is_no_recording_or_a_later_one_is_told_apart() {
    let parent = tempfile::tempdir().expect("tempdir");
    let empty = parent.path().join("empty");
    std::fs::create_dir(&empty).expect("created");
    assert!(message(&empty, "cpu").ends_with("it has no `manifest.json`"));
    let file = parent.path().join("file");
    std::fs::write(&file, "x").expect("written");
    assert!(message(&file, "cpu").ends_with("it is not a directory"));
    let absent = read(&parent.path().join("absent"), "cpu");
    assert!(matches!(absent, Err(StoreError::Io { .. })));

    let target = written(parent.path());
    let manifest = target.join("manifest.json");
    replaced(&manifest, "\"format_version\": 3", "\"format_version\": 4");
    assert!(message(&target, "cpu").ends_with("has format version 4; this program reads up to 3"));
    replaced(&manifest, "\"format_version\": 4", "\"format_version\": 1");
    let message = message(&target, "cpu");
    assert!(message.ends_with("has format version 1; this program reads 2 and later"));
}

#[test]
fn no_changed_byte_of_a_table_goes_unnoticed() {
    let parent = tempfile::tempdir().expect("tempdir");
    let target = written(parent.path());
    let path = target.join("wakeup.parquet");
    let good = std::fs::read(&path).expect("readable");
    for at in (0..good.len()).step_by(97) {
        let mut bad = good.clone();
        bad[at] ^= 0x40;
        std::fs::write(&path, &bad).expect("written");
        let text = message(&target, "wakeup");
        assert!(text.contains("checksum mismatch in "), "byte {at}: {text}");
    }
}

#[test]
fn files_of_another_table_or_recording_are_noticed() {
    let parent = tempfile::tempdir().expect("tempdir");
    let target = written(parent.path());
    std::fs::copy(target.join("cpu.parquet"), target.join("device.parquet")).expect("copied");
    assert!(message(&target, "device").contains("expected "));
    std::fs::remove_file(target.join("device.parquet")).expect("removed");
    assert!(message(&target, "device").starts_with("cannot open"));

    replaced(
        &target.join("manifest.json"),
        "\"rows\": 900",
        "\"rows\": 901",
    );
    assert!(message(&target, "cpu").contains("its files have 900 rows, the manifest states 901"));
}
