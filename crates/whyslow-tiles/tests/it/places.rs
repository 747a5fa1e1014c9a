//! Location and permissions of tiles.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use whyslow_model::Symbols;
use whyslow_store::{Existing, Recording, RecordingWriter};
use whyslow_tiles::{Place, Tiles};

use crate::it::support::info;

/// An empty recording of `length` ns.
fn recording(path: &Path, length: i64) -> Recording {
    let mut writer = RecordingWriter::create(path, Existing::Replace).expect("a folder");
    let symbols = Symbols::new();
    writer.flush_ready(&symbols).expect("nothing to write");
    writer
        .finish(&symbols, info(0, length))
        .expect("a recording");
    Recording::open(path).expect("just written")
}

fn build(place: &Place, recording: &Recording) -> Tiles {
    place
        .build(recording, &|_| (), &AtomicBool::new(false))
        .expect("a place")
}

fn mode(path: &Path) -> u32 {
    let about = fs::metadata(path).expect("it is there");
    about.permissions().mode() & 0o777
}

#[test]
fn tiles_lie_in_their_recording_and_are_found_again() {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("a.wsl");
    let source = recording(&path, 100);
    let cache = home.path().join("cache");
    let place = Place::of(&path, Some(&cache)).expect("a recording");
    assert!(place.open().is_none());
    let built = build(&place, &source);
    assert_eq!(built.recording(), place.digest());
    let inside = path.join("derived/tiles-v3");
    assert_eq!([mode(&path.join("derived")), mode(&inside)], [0o700; 2]);
    assert!(!cache.exists());
    assert_eq!(place.open().expect("built").span(), built.span());
    // No other file is left, and the recording is still valid.
    let left = fs::read_dir(path.join("derived"))
        .expect("a folder")
        .count();
    assert_eq!(left, 1);
    Recording::open(&path)
        .expect("a recording")
        .verify()
        .expect("whole");
    // A recording that replaces it has another digest and does not use its tiles.
    drop(source);
    let other = recording(&path, 200);
    let place = Place::of(&path, Some(&cache)).expect("a recording");
    assert!(place.open().is_none());
    fs::create_dir_all(&inside).expect("a folder");
    build(&place, &other);
    assert_eq!(place.open().expect("built").span().end, 200);
}

#[test]
fn tiles_of_another_recording_are_not_taken() {
    let home = tempfile::tempdir().expect("a folder");
    let [a, b] = ["a.wsl", "b.wsl"].map(|name| home.path().join(name));
    let (first, second) = (recording(&a, 100), recording(&b, 200));
    let of = |path: &Path| Place::of(path, None).expect("a recording");
    build(&of(&a), &first);
    fs::create_dir(b.join("derived")).expect("a folder");
    fs::rename(a.join("derived/tiles-v3"), b.join("derived/tiles-v3")).expect("a folder");
    assert!(of(&b).open().is_none());
    assert_eq!(build(&of(&b), &second).span().end, 200);
    assert!(of(&b).open().is_some());
}

#[test]
fn where_a_recording_cannot_be_written_there_is_the_cache() {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("a.wsl");
    let source = recording(&path, 100);
    // A file in place of the folder stops root, too.
    fs::write(path.join("derived"), "").expect("a file");
    let place = Place::of(&path, None).expect("a recording");
    let refused = place.build(&source, &|_| (), &AtomicBool::new(false));
    let refused = refused.map(drop).unwrap_err().to_string();
    assert!(refused.starts_with("cannot store chart tiles"), "{refused}");
    let cache = home.path().join("cache");
    let place = Place::of(&path, Some(&cache)).expect("a recording");
    build(&place, &source);
    let cached = cache.join("tiles-v3").join(place.digest());
    assert_eq!([mode(&cache.join("tiles-v3")), mode(&cached)], [0o700; 2]);
    assert!(place.open().is_some());
}

#[test]
fn a_link_is_no_place() {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("a.wsl");
    let source = recording(&path, 100);
    let elsewhere = home.path().join("elsewhere");
    fs::create_dir(&elsewhere).expect("a folder");
    std::os::unix::fs::symlink(&elsewhere, path.join("derived")).expect("a link");
    let place = Place::of(&path, None).expect("a recording");
    assert!(
        place
            .build(&source, &|_| (), &AtomicBool::new(false))
            .is_err()
    );
    assert_eq!(fs::read_dir(&elsewhere).expect("a folder").count(), 0);
}

#[test]
fn what_is_not_finished_is_built_again() {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("a.wsl");
    let source = recording(&path, 100);
    let place = Place::of(&path, None).expect("a recording");
    build(&place, &source);
    fs::remove_file(path.join("derived/tiles-v3/about.json")).expect("it is there");
    assert!(place.open().is_none());
    build(&place, &source);
    assert!(place.open().is_some());
    // Building into an empty place works, a missing recording is an error.
    fs::remove_dir_all(path.join("derived")).expect("it is there");
    let rebuilt = place.build(
        &crate::it::support::states(&[], 0, 0),
        &|_| (),
        &AtomicBool::new(false),
    );
    assert!(rebuilt.is_ok());
    let missing = Place::of(&home.path().join("nothing"), None);
    assert!(missing.is_err());
}

#[test]
fn two_who_build_at_once_both_have_tiles() {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("a.wsl");
    let source = recording(&path, 100);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let place = Place::of(&path, None).expect("a recording");
                    for _ in 0..5 {
                        let built = build(&place, &source);
                        assert_eq!(built.tile("states", 3, 0, &[1]).expect("whole"), []);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("no panic");
        }
    });
    let left = fs::read_dir(path.join("derived"))
        .expect("a folder")
        .count();
    assert_eq!(left, 1);
}
