//! Hostile recordings: wrong content with valid checksums.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use whyslow_model::row::Emit;
use whyslow_model::tables::{CpuRow, MarkerRow, WakeupRow};
use whyslow_model::{Row, Symbols, Table, Window};

use crate::checksums::{self, ByFile, Summing};
use crate::{
    Existing, Limits, Recording, RecordingInfo, RecordingWriter, Scan, StoreError, Tables,
};

pub(crate) fn written(target: &Path) {
    let mut symbols = Symbols::new();
    let limits = Limits {
        row_group_rows_small: 500,
        page_rows: 64,
        ..Limits::default()
    };
    let mut writer =
        RecordingWriter::create_within(target, Existing::Refuse, limits).expect("created");
    for id in 0..2000 {
        let text = symbols.intern(&format!("text {}", id % 300));
        writer.emit(MarkerRow {
            id,
            ts: id * 10,
            cpu: (id % 3 == 0).then_some(1),
            utid: None,
            upid: Some(id as i32 % 7),
            tid: None,
            pid: None,
            comm: (id % 2 == 0).then_some(text),
            name: text,
            text,
        });
    }
    writer
        .finish(&symbols, RecordingInfo::default())
        .expect("finished");
}

/// Recomputes the checksums of the files.
fn sign(target: &Path) {
    let mut files = ByFile::new();
    for entry in std::fs::read_dir(target).expect("readable") {
        let path = entry.expect("entry").path();
        let mut summing = Summing::new(std::io::sink());
        let mut file = std::fs::File::open(&path).expect("readable");
        std::io::copy(&mut file, &mut summing).expect("summed");
        let name = path.file_name().expect("a name").to_string_lossy();
        files.insert(name.into_owned(), Arc::new(summing.finish().1));
    }
    let path = target.join(checksums::FILE_NAME);
    std::fs::write(path, checksums::encode(&files)).expect("written");
}

fn read(target: &Path, table: &'static Table) -> Result<u64, StoreError> {
    let recording = Recording::open(target)?;
    let mut scan = Scan {
        table,
        columns: table.columns.iter().map(|column| column.name).collect(),
        window: Some(Window::new(3000, 4000)),
    };
    for part in recording.parts(&scan)? {
        part.read(&mut |_| Ok(ControlFlow::Continue(())))?;
    }
    scan.window = None;
    let mut rows = 0;
    recording.scan(&scan, &mut |batch| {
        rows += batch.num_rows() as u64;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(rows)
}

#[test]
fn no_content_of_a_table_stops_the_program() {
    let parent = tempfile::tempdir().expect("tempdir");
    let target = parent.path().join("a.wsl");
    written(&target);
    let path = target.join("marker.parquet");
    let good = std::fs::read(&path).expect("readable");
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut damaged = 0;
    for _ in 0..1500 {
        let mut bad = good.clone();
        for _ in 0..2 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let at = state as usize % bad.len();
            bad[at] = (state >> 40) as u8;
        }
        std::fs::write(&path, &bad).expect("written");
        sign(&target);
        match read(&target, MarkerRow::TABLE) {
            Ok(_) => {}
            Err(StoreError::Damaged { table, .. }) => {
                assert_eq!(table, "marker");
                damaged += 1;
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(damaged > 300, "only {damaged} of the changes were detected");
}

#[test]
fn a_file_of_another_table_is_not_taken_for_it() {
    let parent = tempfile::tempdir().expect("tempdir");
    let target = parent.path().join("a.wsl");
    written(&target);
    for table in [CpuRow::TABLE, WakeupRow::TABLE] {
        let path = target.join(format!("{}.parquet", table.name));
        std::fs::copy(target.join("marker.parquet"), path).expect("copied");
    }
    sign(&target);
    for (table, column) in [(CpuRow::TABLE, "cpu"), (WakeupRow::TABLE, "kind")] {
        let error = read(&target, table).expect_err("refused").to_string();
        assert!(error.contains("is damaged: "), "{column}: {error}");
    }
    assert_eq!(read(&target, MarkerRow::TABLE).expect("whole"), 2000);
}
