use std::sync::atomic::AtomicBool;
use std::time::Duration;

use arrow_array::Array as _;
use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_schema::DataType;
use whyslow_fleet::lake::{CompactOptions, ExpireOptions, Lake, LakeError, PushOptions};
use whyslow_fleet::tables::ALL;

use crate::it::made::{self, facts, usual};
use crate::it::store::Store;

fn filled(hosts: usize) -> (tempfile::TempDir, Lake) {
    let dir = tempfile::tempdir().expect("should succeed");
    let lake = Lake::make(dir.path().to_str().expect("should succeed")).expect("should succeed");
    let go = AtomicBool::new(false);
    for number in 0..hosts {
        let tables = usual(&format!("web-{number}"), number as i64 % 2);
        lake.push(&tables, &facts(&tables), &made::options(), &go)
            .expect("should succeed");
    }
    (dir, lake)
}

fn count(lake: &Lake) -> Vec<usize> {
    let rows = |table| {
        lake.rows(table)
            .expect("should succeed")
            .iter()
            .map(arrow_array::RecordBatch::num_rows)
            .sum()
    };
    ALL.into_iter().map(rows).collect()
}

fn objects(dir: &tempfile::TempDir) -> usize {
    let mut found = 0;
    let mut folders = vec![dir.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("should succeed") {
            let path = entry.expect("should succeed").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found += 1;
            }
        }
    }
    found
}

#[test]
fn compacted_files_are_few_sorted_and_have_the_same_rows() {
    let (dir, lake) = filled(12);
    let go = AtomicBool::new(false);
    let before = count(&lake);
    assert_eq!(objects(&dir), 12 * 7);
    let options = CompactOptions {
        files_min: 8,
        grace: Duration::from_hours(1),
    };
    let done = lake.compact(&options, &go).expect("should succeed");
    assert_eq!(
        (done.recordings, done.compactions, done.deleted),
        (12, 1, 0)
    );
    assert!(done.bytes_after * 2 < done.bytes_before, "{done:?}");
    assert_eq!(count(&lake), before);
    // The original files stay for readers that listed them before.
    assert_eq!(objects(&dir), 12 * 7 + 7);
    let rollups = lake.rows(ALL[3]).expect("should succeed");
    let rollups =
        arrow_select::concat::concat_batches(&ALL[3].schema(), &rollups).expect("should succeed");
    let keys: Vec<String> = (0..rollups.num_rows())
        .map(|row| {
            let cell = |name: &str| {
                let column = rollups.column_by_name(name).expect("should succeed");
                match column.data_type() {
                    _ if column.is_null(row) => String::new(),
                    DataType::Utf8 => column.as_string::<i32>().value(row).to_owned(),
                    _ => column.as_primitive::<Int64Type>().value(row).to_string(),
                }
            };
            ["kind", "dimension", "op", "key", "host", "ts"]
                .map(cell)
                .join("\u{1}")
        })
        .collect();
    assert!(keys.is_sorted());

    let none = lake.compact(&options, &go).expect("should succeed");
    assert_eq!((none.recordings, none.deleted), (0, 0));
    let options = CompactOptions {
        grace: Duration::ZERO,
        ..options
    };
    assert_eq!(
        lake.compact(&options, &go).expect("should succeed").deleted,
        12 * 6
    );
    assert_eq!(count(&lake), before);
    // Six tables and the commit, and a commit for each recording, for repeated pushes.
    assert_eq!(objects(&dir), 7 + 12);
}

#[test]
fn what_comes_later_is_there_beside_what_was_put_together() {
    let (_dir, lake) = filled(8);
    let go = AtomicBool::new(false);
    let options = CompactOptions {
        files_min: 8,
        grace: Duration::ZERO,
    };
    lake.compact(&options, &go).expect("should succeed");
    let before = count(&lake);
    let tables = usual("late", 0);
    lake.push(&tables, &facts(&tables), &made::options(), &go)
        .expect("should succeed");
    let one = count(&lake)[0] - before[0];
    assert_eq!(one, 1);
    // A recording in a compacted file is not sent again.
    let tables = usual("web-3", 1);
    assert!(
        lake.push(&tables, &facts(&tables), &made::options(), &go)
            .expect("should succeed")
            .was_there()
    );
}

/// As left by a compaction that was killed after its commit: the commit of one recording has not
/// been moved.
#[test]
fn what_a_killed_compaction_left_is_finished_by_the_next_one() {
    let (dir, lake) = filled(8);
    let go = AtomicBool::new(false);
    lake.compact(&CompactOptions::default(), &go)
        .expect("should succeed");
    let before = count(&lake);
    let tables = usual("web-3", 1);
    let facts = facts(&tables);
    let found = lake.find(&facts.recording).expect("should succeed");
    let day = found.expect("should succeed").day;
    let file = format!("dt={day}/cluster=eu-1/web-3.{}.json", facts.recording);
    let [merged, own] = ["_merged", "_commits"].map(|folder| dir.path().join("v1").join(folder));
    std::fs::rename(merged.join(&file), own.join(&file)).expect("should succeed");
    assert_eq!(count(&lake), before);

    let again = PushOptions {
        replace: true,
        ..made::options()
    };
    let error = lake.push(&tables, &facts, &again, &go).unwrap_err();
    assert!(matches!(error, LakeError::Merged { .. }), "{error}");
    let done = lake
        .compact(&CompactOptions::default(), &go)
        .expect("should succeed");
    assert_eq!(done.recordings, 0);
    assert!(merged.join(&file).exists() && !own.join(&file).exists());
    assert_eq!(count(&lake), before);
}

#[test]
fn two_at_once_are_one_too_many() {
    let (dir, lake) = filled(8);
    let go = AtomicBool::new(false);
    let lock = dir.path().join("v1/_lock.json");
    let now = jiff::Timestamp::now();
    std::fs::write(&lock, format!(r#"{{"at": "{now}", "id": "x"}}"#)).expect("should succeed");
    let error = lake.compact(&CompactOptions::default(), &go).unwrap_err();
    assert!(matches!(error, LakeError::Busy { .. }), "{error}");
    assert!(error.hint().expect("should succeed").contains("hour"));
    // A killed owner does not block forever.
    let long_ago = now - jiff::SignedDuration::from_hours(2);
    std::fs::write(&lock, format!(r#"{{"at": "{long_ago}", "id": "x"}}"#)).expect("should succeed");
    assert_eq!(
        lake.compact(&CompactOptions::default(), &go)
            .expect("should succeed")
            .recordings,
        8
    );
    assert!(!lock.exists());
}

#[test]
fn old_days_go_and_the_oldest_first() {
    let store = Store::start(&[]);
    let lake = store.lake();
    let go = AtomicBool::new(false);
    // A day has 1,440 recordings of one minute.
    for number in [0, 1_440, 2_880, 2_881] {
        let tables = usual("web-1", number);
        lake.push(&tables, &facts(&tables), &made::options(), &go)
            .expect("should succeed");
    }
    let all = store.state().objects;
    let bytes: u64 = all.values().map(|object| object.size).sum();
    let keep = |keep| ExpireOptions {
        keep: Some(keep),
        ..ExpireOptions::default()
    };
    let forever = lake
        .expire(&keep(Duration::from_hours(100 * 365 * 24)), &go)
        .expect("should succeed");
    assert_eq!((forever.recordings, forever.bytes_left), (0, bytes));
    let most = ExpireOptions {
        // The last day has half of the recordings.
        bytes_max: Some(bytes * 6 / 10),
        dry_run: true,
        ..ExpireOptions::default()
    };
    let planned = lake.expire(&most, &go).expect("should succeed");
    assert_eq!((planned.recordings, planned.days.len()), (2, 2));
    assert_eq!(store.state().objects, all);
    // Not even a lock.
    assert!(
        !store
            .state()
            .objects
            .keys()
            .any(|name| name.contains("_lock"))
    );
    let most = ExpireOptions {
        dry_run: false,
        ..most
    };
    assert_eq!(lake.expire(&most, &go).expect("should succeed"), planned);
    assert_eq!(lake.listing().expect("should succeed").recordings(), 2);
    assert!(
        store
            .state()
            .objects
            .keys()
            .all(|name| name.contains("dt=2026-11-29"))
    );
    let left: u64 = store
        .state()
        .objects
        .values()
        .map(|object| object.size)
        .sum();
    assert_eq!(left, planned.bytes_left);
}
