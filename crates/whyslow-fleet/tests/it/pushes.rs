use std::sync::atomic::AtomicBool;

use arrow_array::cast::AsArray as _;
use whyslow_fleet::Told;
use whyslow_fleet::lake::{Lake, LakeError, PushOptions};
use whyslow_fleet::tables::{ALL, RecordingRow};

use crate::it::made::{self, told, usual, usual_as};

fn folder() -> (tempfile::TempDir, Lake) {
    let room = tempfile::tempdir().expect("it is so");
    let lake = Lake::make(room.path().join("lake").to_str().expect("it is so")).expect("it is so");
    (room, lake)
}

fn files(room: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![room.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("it is so") {
            let path = entry.expect("it is so").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path
                    .strip_prefix(room)
                    .expect("it is so")
                    .display()
                    .to_string();
                found.push((name, std::fs::read(&path).expect("it is so")));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_recording_that_is_there_changes_nothing() {
    let (room, lake) = folder();
    let go = AtomicBool::new(false);
    let tables = usual("web-1", 0);
    let pushed = lake
        .push(&tables, &told(&tables), &made::options(), &go)
        .expect("it is so");
    assert_eq!((pushed.objects, pushed.was_there()), (7, false));
    let before = files(room.path());
    assert_eq!(before.len(), 7);
    let again = lake
        .push(&tables, &told(&tables), &made::options(), &go)
        .expect("it is so");
    assert!(again.was_there());
    assert_eq!(files(room.path()), before);
    // Made anew it is the same to the byte.
    let options = PushOptions {
        replace: true,
        ..made::options()
    };
    lake.push(&tables, &told(&tables), &options, &go)
        .expect("it is so");
    assert_eq!(files(room.path()), before);
    let names: Vec<&str> = before.iter().map(|(name, _)| name.as_str()).collect();
    let id = told(&tables).recording;
    assert!(
        names.contains(
            &format!("lake/v1/rollup/dt=2026-11-27/cluster=eu-1/web-1.{id}.parquet").as_str()
        ),
        "{names:?}"
    );
}

#[test]
fn each_table_has_its_rows_and_says_whose_they_are() {
    let (_room, lake) = folder();
    let go = AtomicBool::new(false);
    for number in 0..3 {
        let tables = usual("web-1", number);
        lake.push(&tables, &told(&tables), &made::options(), &go)
            .expect("it is so");
    }
    assert_eq!(lake.listing().expect("it is so").recordings(), 3);
    for table in ALL {
        let rows = lake.rows(table).expect("it is so");
        for batch in &rows {
            let hosts = batch
                .column_by_name("host")
                .expect("it is so")
                .as_string::<i32>();
            assert!(
                hosts.iter().all(|host| host == Some("web-1")),
                "{}",
                table.name
            );
        }
        let count: usize = rows.iter().map(arrow_array::RecordBatch::num_rows).sum();
        // A recording of reads that are as slow as ever gives no verdicts, perhaps.
        assert!(count > 0 || table.name == "finding", "{}", table.name);
    }
    let rows = lake.rows(RecordingRow::TABLE).expect("it is so");
    let count: usize = rows.iter().map(arrow_array::RecordBatch::num_rows).sum();
    assert_eq!(count, 3);
}

use whyslow_fleet::LakeRow as _;

#[test]
fn raw_tables_come_with_their_owner_and_later_too() {
    let (room, lake) = folder();
    let go = AtomicBool::new(false);
    let tables = usual("web-1", 0);
    lake.push(&tables, &told(&tables), &made::options(), &go)
        .expect("it is so");
    let raw = Told {
        raw: true,
        ..told(&tables)
    };
    let pushed = lake
        .push(&tables, &raw, &made::options(), &go)
        .expect("it is so");
    // Six tables, two raw ones and the commit.
    assert_eq!(pushed.objects, 9);
    assert!(
        lake.push(&tables, &raw, &made::options(), &go)
            .expect("it is so")
            .was_there()
    );
    let found = files(room.path());
    let (_, content) = found
        .iter()
        .find(|(name, _)| name.contains("/block_io/"))
        .expect("it is so");
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReader::try_new(
        bytes::Bytes::from(content.clone()),
        4096,
    );
    let batches: Vec<_> = reader.expect("it is so").map(Result::unwrap).collect();
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
    let (room, lake) = folder();
    let go = AtomicBool::new(false);
    let (open, hidden) = (usual("h", 0), usual_as("h", 0, Some("texts")));
    let about = Told {
        raw: true,
        ..told(&open)
    };
    lake.push(&open, &about, &made::options(), &go)
        .expect("it is so");
    let readable = files(room.path());
    let about = Told {
        raw: false,
        ..about
    };
    let refused = |tables, told: &Told| {
        let error = lake.push(tables, told, &made::options(), &go).unwrap_err();
        assert!(matches!(error, LakeError::Otherwise { .. }), "{error}");
        assert!(error.hint().expect("it is so").contains("--replace"));
        assert_eq!(files(room.path()), readable);
    };
    refused(&hidden, &about);
    // Of a host whose name is hidden, too.
    let renamed = Told {
        host: "fonabu".into(),
        ..about.clone()
    };
    refused(&hidden, &renamed);
    let options = PushOptions {
        replace: true,
        ..made::options()
    };
    lake.push(&hidden, &about, &options, &go).expect("it is so");
    // Its raw tables were readable.
    let names: Vec<String> = files(room.path())
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
        .expect("it is so")
        .expect("it is so");
    assert_eq!(found.commit.redacted.as_deref(), Some("texts"));
    assert!(!found.commit.raw && !found.commit.tables.contains_key("syscall"));
    // And the other way round it is not made readable by chance.
    assert!(lake.push(&open, &about, &made::options(), &go).is_err());
}

#[test]
fn replace_sends_what_was_damaged_and_forgets_nothing() {
    let (room, lake) = folder();
    let go = AtomicBool::new(false);
    let tables = usual("web-1", 0);
    let raw = Told {
        raw: true,
        ..told(&tables)
    };
    lake.push(&tables, &raw, &made::options(), &go)
        .expect("it is so");
    let before = files(room.path());
    let (name, bytes) = before
        .iter()
        .find(|(name, _)| name.contains("/syscall/"))
        .expect("it is so");
    let mut damaged = bytes.clone();
    damaged[100] ^= 0xff;
    std::fs::write(room.path().join(name), damaged).expect("it is so");
    let options = PushOptions {
        replace: true,
        ..made::options()
    };
    lake.push(&tables, &raw, &options, &go).expect("it is so");
    assert_eq!(files(room.path()), before);
    // Without --raw its tables stay, and are still known to be there.
    lake.push(&tables, &told(&tables), &options, &go)
        .expect("it is so");
    assert_eq!(files(room.path()), before);
}

#[test]
fn names_that_would_lead_elsewhere_are_refused() {
    let (room, lake) = folder();
    let go = AtomicBool::new(false);
    let tables = usual("web-1", 0);
    for host in ["", "../../etc", "a/b", "@x", "a b", ".hidden"] {
        let told = Told {
            host: host.into(),
            ..told(&tables)
        };
        let error = lake
            .push(&tables, &told, &made::options(), &go)
            .unwrap_err();
        assert!(
            matches!(error, LakeError::Name { of: "host", .. }),
            "{host}: {error}"
        );
        assert!(error.hint().expect("it is so").contains("--host"));
    }
    let options = PushOptions {
        cluster: "x=y".into(),
        replace: false,
        whole: None,
    };
    let error = lake
        .push(&tables, &told(&tables), &options, &go)
        .unwrap_err();
    assert!(matches!(error, LakeError::Name { of: "cluster", .. }));
    assert_eq!(files(room.path()), []);
}

#[test]
fn ctrl_c_leaves_nothing_that_counts() {
    let (_room, lake) = folder();
    let tables = usual("web-1", 0);
    let stop = AtomicBool::new(true);
    let error = lake
        .push(&tables, &told(&tables), &made::options(), &stop)
        .unwrap_err();
    assert!(matches!(error, LakeError::Interrupted));
    assert_eq!(lake.listing().expect("it is so").recordings(), 0);
}

#[test]
fn what_others_put_there_is_no_recording() {
    let (room, lake) = folder();
    let go = AtomicBool::new(false);
    let tables = usual("web-1", 0);
    lake.push(&tables, &told(&tables), &made::options(), &go)
        .expect("it is so");
    let folder = room
        .path()
        .join("lake/v1/_commits/dt=2026-11-27/cluster=eu-1");
    std::fs::write(folder.join("web-2.json"), "{}").expect("it is so");
    std::fs::write(folder.join("README"), "hello").expect("it is so");
    assert_eq!(lake.listing().expect("it is so").recordings(), 1);
    // A commit of many that is none is an error, not an empty lake.
    std::fs::write(folder.join("@01ARYZ6S4100000000000000AB.json"), "{").expect("it is so");
    let error = lake.listing().unwrap_err();
    assert!(matches!(error, LakeError::Damaged { .. }), "{error}");
}
