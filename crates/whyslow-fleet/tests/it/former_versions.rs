//! Lakes that former versions wrote are read with the names of today.

use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray as _;
use whyslow_fleet::lake::Lake;
use whyslow_fleet::tables::ALL;

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("created");
    for entry in std::fs::read_dir(from).expect("the fixture is part of the repository") {
        let entry = entry.expect("readable");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("copied");
        }
    }
}

fn sources(lake: &Lake) -> Vec<String> {
    let finding = ALL.into_iter().find(|table| table.name == "finding");
    let batches = lake.rows(finding.expect("a table")).expect("rows");
    let words = batches.iter().flat_map(|batch| {
        let column = batch.column_by_name("source").expect("a column");
        column.as_string::<i32>().iter().flatten()
    });
    words.map(str::to_owned).collect()
}

#[test]
fn findings_of_commit_version_1_are_read_with_the_names_of_today() {
    let fixture =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/former-versions/lake-1");
    let dir = tempfile::tempdir().expect("tempdir");
    copy(&fixture, dir.path());
    let lake = Lake::open(dir.path().to_str().expect("UTF-8")).expect("a lake");
    assert_eq!(sources(&lake), ["finding"], "it was `story`");
}
