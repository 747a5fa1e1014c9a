use std::sync::atomic::AtomicBool;

use arrow_array::cast::AsArray as _;
use whyslow_fleet::RecordingFacts;
use whyslow_fleet::lake::{Lake, LakeError, PushOptions};
use whyslow_fleet::tables::{ALL, RecordingRow};

use crate::it::made::{self, facts, usual, usual_as};

fn folder() -> (tempfile::TempDir, Lake) {
    let dir = tempfile::tempdir().expect("should succeed");
    let lake = Lake::make(dir.path().join("lake").to_str().expect("should succeed"))
        .expect("should succeed");
    (dir, lake)
}

fn files(dir: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("should succeed") {
            let path = entry.expect("should succeed").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path
                    .strip_prefix(dir)
                    .expect("should succeed")
                    .display()
                    .to_string();
                found.push((name, std::fs::read(&path).expect("should succeed")));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_recording_that_is_there_changes_nothing() {
    let (dir, lake) = folder();
    let go = AtomicBool::new(false);
    let tables = usual("web-1", 0);
    let pushed = lake
        .push(&tables, &facts(&tables), &made::options(), &go)
        .expect("should succeed");
    assert_eq!((pushed.objects, pushed.was_there()), (7, false));
    let before = files(dir.path());
    assert_eq!(before.len(), 7);
    let again = lake
        .push(&tables, &facts(&tables), &made::options(), &go)
        .expect("should succeed");
    assert!(again.was_there());
    assert_eq!(files(dir.path()), before);
    // Built again, it is the same byte for byte.
    let options = PushOptions {
        replace: true,
        ..made::options()
    };
    lake.push(&tables, &facts(&tables), &options, &go)
        .expect("should succeed");
    assert_eq!(files(dir.path()), before);
    let names: Vec<&str> = before.iter().map(|(name, _)| name.as_str()).collect();
    let id = facts(&tables).recording;
    assert!(
        names.contains(
            &format!("lake/v1/rollup/dt=2026-11-27/cluster=eu-1/web-1.{id}.parquet").as_str()
        ),
        "{names:?}"
    );
}

#[test]
fn each_table_has_its_rows_and_says_whose_they_are() {
    let (_dir, lake) = folder();
    let go = AtomicBool::new(false);
    for number in 0..3 {
        let tables = usual("web-1", number);
        lake.push(&tables, &facts(&tables), &made::options(), &go)
            .expect("should succeed");
    }
    assert_eq!(lake.listing().expect("should succeed").recordings(), 3);
    for table in ALL {
        let rows = lake.rows(table).expect("should succeed");
        for batch in &rows {
            let hosts = batch
                .column_by_name("host")
                .expect("should succeed")
                .as_string::<i32>();
            assert!(
                hosts.iter().all(|host| host == Some("web-1")),
                "{}",
                table.name
            );
        }
        let count: usize = rows.iter().map(arrow_array::RecordBatch::num_rows).sum();
        // A recording of uniformly slow reads may have no verdicts.
        assert!(count > 0 || table.name == "finding", "{}", table.name);
    }
    let rows = lake.rows(RecordingRow::TABLE).expect("should succeed");
    let count: usize = rows.iter().map(arrow_array::RecordBatch::num_rows).sum();
    assert_eq!(count, 3);
}

use whyslow_fleet::LakeRow as _;

#[test]
fn raw_tables_come_with_their_owner_and_later_too() {
    let (dir, lake) = folder();
    let go = AtomicBool::new(false);
    let tables = usual("web-1", 0);
    lake.push(&tables, &facts(&tables), &made::options(), &go)
        .expect("should succeed");
    let raw = RecordingFacts {
        raw: true,
        ..facts(&tables)
    };
    let pushed = lake
        .push(&tables, &raw, &made::options(), &go)
        .expect("should succeed");
    // Six tables, two raw ones and the commit.
    assert_eq!(pushed.objects, 9);
    assert!(
        lake.push(&tables, &raw, &made::options(), &go)
            .expect("should succeed")
            .was_there()
    );
    let found = files(dir.path());
    let (_, content) = found
        .iter()
        .find(|(name, _)| name.contains("/block_io/"))
        .expect("should succeed");
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReader::try_new(
        bytes::Bytes::from(content.clone()),
        4096,
    );
    let batches: Vec<_> = reader
        .expect("should succeed")
        .map(Result::unwrap)
        .collect();
    let rows: usize = batches.iter().map(arrow_array::RecordBatch::num_rows).sum();
    assert_eq!(rows, 1000);
    let names: Vec<String> = batches[0]
        .schema()
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect();
    assert_eq!(names[..4], ["recording", "host", "id", "ts"]);
}

#[test]
fn what_is_readable_does_not_pass_for_hidden() {
    let (dir, lake) = folder();
    let go = AtomicBool::new(false);
    let (open, hidden) = (usual("h", 0), usual_as("h", 0, Some("texts")));
    let about = RecordingFacts {
        raw: true,
        ..facts(&open)
    };
    lake.push(&open, &about, &made::options(), &go)
        .expect("should succeed");
    let readable = files(dir.path());
    let about = RecordingFacts {
        raw: false,
        ..about
    };
    let refused = |tables, facts: &RecordingFacts| {
        let error = lake.push(tables, facts, &made::options(), &go).unwrap_err();
        assert!(matches!(error, LakeError::Otherwise { .. }), "{error}");
        assert!(error.hint().expect("should succeed").contains("--replace"));
        assert_eq!(files(dir.path()), readable);
    };
    refused(&hidden, &about);
    // Also under a redacted host name.
    let renamed = RecordingFacts {
        host: "fonabu".into(),
        ..about.clone()
    };
    refused(&hidden, &renamed);
    let options = PushOptions {
        replace: true,
        ..made::options()
    };
    lake.push(&hidden, &about, &options, &go)
        .expect("should succeed");
    // Its raw tables were not redacted.
    let names: Vec<String> = files(dir.path())
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names.len(), 7, "{names:?}");
    assert!(
        !names.iter().any(|name| name.contains("syscall")),
        "{names:?}"
    );
    let found = lake
        .find(&about.recording)
        .expect("should succeed")
        .expect("should succeed");
    assert_eq!(found.commit.redacted.as_deref(), Some("texts"));
    assert!(!found.commit.raw && !found.commit.tables.contains_key("syscall"));
    // The reverse, replacing redacted by unredacted texts, is refused, too.
    assert!(lake.push(&open, &about, &made::options(), &go).is_err());
}

#[test]
fn replace_sends_what_was_damaged_and_forgets_nothing() {
    let (dir, lake) = folder();
    let go = AtomicBool::new(false);
    let tables = usual("web-1", 0);
    let raw = RecordingFacts {
        raw: true,
        ..facts(&tables)
    };
    lake.push(&tables, &raw, &made::options(), &go)
        .expect("should succeed");
    let before = files(dir.path());
    let (name, bytes) = before
        .iter()
        .find(|(name, _)| name.contains("/syscall/"))
        .expect("should succeed");
    let mut damaged = bytes.clone();
    damaged[100] ^= 0xff;
    std::fs::write(dir.path().join(name), damaged).expect("should succeed");
    let options = PushOptions {
        replace: true,
        ..made::options()
    };
    lake.push(&tables, &raw, &options, &go)
        .expect("should succeed");
    assert_eq!(files(dir.path()), before);
    // Without --raw, its raw tables are kept and still listed.
    lake.push(&tables, &facts(&tables), &options, &go)
        .expect("should succeed");
    assert_eq!(files(dir.path()), before);
}

#[test]
fn names_that_would_lead_elsewhere_are_refused() {
    let (dir, lake) = folder();
    let go = AtomicBool::new(false);
    let tables = usual("web-1", 0);
    for host in ["", "../../etc", "a/b", "@x", "a b", ".hidden"] {
        let facts = RecordingFacts {
            host: host.into(),
            ..facts(&tables)
        };
        let error = lake
            .push(&tables, &facts, &made::options(), &go)
            .unwrap_err();
        assert!(
            matches!(error, LakeError::Name { of: "host", .. }),
            "{host}: {error}"
        );
        assert!(error.hint().expect("should succeed").contains("--host"));
    }
    let options = PushOptions {
        cluster: "x=y".into(),
        replace: false,
        whole: None,
    };
    let error = lake
        .push(&tables, &facts(&tables), &options, &go)
        .unwrap_err();
    assert!(matches!(error, LakeError::Name { of: "cluster", .. }));
    assert_eq!(files(dir.path()), []);
}

#[test]
fn ctrl_c_leaves_nothing_that_counts() {
    let (_dir, lake) = folder();
    let tables = usual("web-1", 0);
    let stop = AtomicBool::new(true);
    let error = lake
        .push(&tables, &facts(&tables), &made::options(), &stop)
        .unwrap_err();
    assert!(matches!(error, LakeError::Interrupted));
    assert_eq!(lake.listing().expect("should succeed").recordings(), 0);
}

#[test]
fn what_others_put_there_is_no_recording() {
    let (dir, lake) = folder();
    let go = AtomicBool::new(false);
    let tables = usual("web-1", 0);
    lake.push(&tables, &facts(&tables), &made::options(), &go)
        .expect("should succeed");
    let folder = dir
        .path()
        .join("lake/v1/_commits/dt=2026-11-27/cluster=eu-1");
    std::fs::write(folder.join("web-2.json"), "{}").expect("should succeed");
    std::fs::write(folder.join("README"), "hello").expect("should succeed");
    assert_eq!(lake.listing().expect("should succeed").recordings(), 1);
    // An invalid commit of a compaction is an error, not an empty lake.
    std::fs::write(folder.join("@01ARYZ6S4100000000000000AB.json"), "{").expect("should succeed");
    let error = lake.listing().unwrap_err();
    assert!(matches!(error, LakeError::Damaged { .. }), "{error}");
}
