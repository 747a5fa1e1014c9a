//! Untrusted packed recordings.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use super::header::{BLOCK, Header};
use super::{Unpacking, is_packed, pack, unpack};
use crate::hostile_tests::written;
use crate::{Recording, StoreError};

static NEVER: AtomicBool = AtomicBool::new(false);

/// Entries of a packed recording, unpacked and in order.
fn entries() -> Vec<(String, Vec<u8>)> {
    static MADE: OnceLock<Vec<(String, Vec<u8>)>> = OnceLock::new();
    MADE.get_or_init(made).clone()
}

fn made() -> Vec<(String, Vec<u8>)> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let target = folder.path().join("a.wsl");
    written(&target);
    let mut packed = Vec::new();
    let bytes = pack(&target, &mut packed).expect("packed");
    let archive = zstd::decode_all(&*packed).expect("zstd");
    assert_eq!(archive.len() as u64, bytes);
    let (mut rest, mut entries) = (&archive[..], Vec::new());
    while let Some((block, after)) = rest.split_first_chunk::<BLOCK>() {
        let Some(header) = Header::parse(block).expect("a header") else {
            break;
        };
        let length = header.bytes as usize;
        entries.push((header.name, after[..length].to_vec()));
        rest = &after[length.next_multiple_of(BLOCK)..];
    }
    entries
}

fn archive(entries: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, content) in entries {
        let header = Header {
            name: name.clone(),
            bytes: content.len() as u64,
        };
        archive.extend(header.to_block().expect("a short name"));
        archive.extend(content);
        archive.resize(archive.len().next_multiple_of(BLOCK), 0);
    }
    archive.extend([0; 2 * BLOCK]);
    archive
}

fn compressed(archive: &[u8]) -> Vec<u8> {
    zstd::encode_all(archive, 1).expect("memory")
}

/// Unpacks and returns the error, if any. In either case, nothing is created elsewhere, and there
/// is a complete recording or none.
fn try_unpack(packed: &[u8], bytes_max: u64) -> Result<(), String> {
    let parent = tempfile::tempdir().expect("a temporary folder");
    let folder = parent.path().join("inside");
    std::fs::create_dir(&folder).expect("a temporary directory");
    let limits = Unpacking {
        bytes_max,
        cancel: &NEVER,
    };
    let done = unpack(packed, Path::new("x.wsl.tar.zst"), &folder, &limits);
    let entries = std::fs::read_dir(parent.path()).expect("readable").count();
    assert_eq!(entries, 1, "a file outside of the directory");
    for entry in std::fs::read_dir(&folder).expect("readable") {
        let about = entry.expect("an entry").metadata().expect("a file");
        assert!(about.is_file());
    }
    match done {
        Ok(()) => {
            let recording = Recording::open(&folder).expect("a recording");
            recording.verify().expect("intact");
            Ok(())
        }
        Err(error) => {
            assert!(Recording::open(&folder).is_err());
            Err(error.to_string())
        }
    }
}

const ROOM: u64 = 64 << 20;

fn refused(archive: &[u8], because: &str) {
    let error = try_unpack(&compressed(archive), ROOM).expect_err(because);
    assert!(error.contains(because), "{error}");
    assert!(error.contains("x.wsl.tar.zst"), "{error}");
}

#[test]
fn what_is_packed_is_unpacked() {
    try_unpack(&compressed(&archive(&entries())), ROOM).expect("valid");
}

#[test]
fn names_that_lead_elsewhere_and_files_nobody_knows_are_refused() {
    let good = entries();
    for name in ["../x", "/etc/passwd", "a/b", "..", ".", "", "surprise"] {
        let mut bad = good.clone();
        bad.push((name.to_owned(), vec![1; 100]));
        refused(&archive(&bad), "unexpected or duplicate file");
    }
    // Even if the manifest lists them.
    let mut bad = good.clone();
    let text = String::from_utf8(bad[0].1.clone()).expect("JSON");
    bad[0].1 = text.replace("marker.parquet", "../marker.parquet").into();
    refused(&archive(&bad), "lists a file outside of the recording");
}

#[test]
fn a_file_that_comes_twice_is_refused() {
    let good = entries();
    for entry in &good {
        let mut bad = good.clone();
        bad.push(entry.clone());
        refused(&archive(&bad), "duplicate file");
    }
}

#[test]
fn what_is_missing_or_out_of_order_is_told() {
    let good = entries();
    refused(&archive(&good[..good.len() - 1]), "missing file");
    refused(&archive(&good[1..]), "expected `manifest.json` here");
    let mut swapped = good.clone();
    swapped.swap(1, 2);
    refused(&archive(&swapped), "expected `checksums` here");
    refused(&[], "unexpected end of file");
}

#[test]
fn links_and_folders_are_refused() {
    let good = archive(&entries());
    let second = BLOCK + entries()[0].1.len().next_multiple_of(BLOCK);
    for kind in *b"1256xgLK" {
        let mut bad = good.clone();
        let block = &mut bad[second..second + BLOCK];
        let sum = |block: &[u8]| -> u64 {
            let all: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
            let own: u64 = block[148..156].iter().map(|byte| u64::from(*byte)).sum();
            all - own + 8 * u64::from(b' ')
        };
        block[156] = kind;
        let digits = format!("{:06o}\0 ", sum(block));
        block[148..156].copy_from_slice(digits.as_bytes());
        refused(&bad, "an entry is not a regular file");
    }
}

#[test]
fn claimed_sizes_are_not_believed() {
    let good = entries();
    // A header that claims more data than there is.
    let mut bad = archive(&good);
    let huge = Header {
        name: "manifest.json".into(),
        bytes: u64::MAX >> 1,
    };
    bad[..BLOCK].copy_from_slice(&huge.to_block().expect("a short name"));
    refused(&bad, "size 9223372036854775807 of `manifest.json`");
    let mut bad = archive(&good);
    let wrong = Header {
        name: "manifest.json".into(),
        bytes: 8 << 20,
    };
    bad[..BLOCK].copy_from_slice(&wrong.to_block().expect("a short name"));
    refused(&bad, "unexpected end of file");
    // A table that is larger than its checksums state.
    let mut bad = good.clone();
    bad[2].1.extend([0; 4096]);
    refused(&archive(&bad), "expected");
    let mut bad = good;
    bad[2].1[10] ^= 1;
    refused(&archive(&bad), "checksum mismatch");
}

#[test]
fn more_than_there_is_room_for_is_refused_before_it_is_unpacked() {
    let error = try_unpack(&compressed(&archive(&entries())), 1000).expect_err("too large");
    assert!(error.contains("the limit is 1000"), "{error}");
}

#[test]
fn bombs_are_cut_off() {
    let mut bomb = archive(&entries());
    bomb.resize(bomb.len() + (32 << 20), 0);
    refused(&bomb, "trailing data");
    let mut bomb = archive(&entries());
    bomb.extend([7; BLOCK]);
    refused(&bomb, "trailing data");
    let zeros = vec![0; 32 << 20];
    refused(&zeros, "expected `manifest.json` here");
}

#[test]
fn who_says_stop_is_heard() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let limits = Unpacking {
        bytes_max: ROOM,
        cancel: &AtomicBool::new(true),
    };
    let packed = compressed(&archive(&entries()));
    let stopped = unpack(&*packed, Path::new("x"), folder.path(), &limits);
    assert!(matches!(stopped, Err(StoreError::Stopped)));
}

#[test]
fn a_file_in_the_way_is_not_written_over() {
    let (folder, elsewhere) = (tempfile::tempdir(), tempfile::NamedTempFile::new());
    let (folder, elsewhere) = (folder.expect("a folder"), elsewhere.expect("a file"));
    let link = folder.path().join("marker.parquet");
    std::os::unix::fs::symlink(elsewhere.path(), link).expect("a link");
    let limits = Unpacking {
        bytes_max: ROOM,
        cancel: &NEVER,
    };
    let packed = compressed(&archive(&entries()));
    let refused = unpack(&*packed, Path::new("x"), folder.path(), &limits);
    assert!(matches!(refused, Err(StoreError::Io { .. })), "{refused:?}");
    assert_eq!(
        elsewhere.path().metadata().map(|about| about.len()).ok(),
        Some(0)
    );
}

#[test]
fn packed_recordings_are_known_by_content_or_name() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let check = |name: &str, content: &[u8], want: bool| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).expect("a temporary directory");
        assert_eq!(is_packed(&path), want, "{name}");
    };
    let good = compressed(&archive(&entries()));
    check("a.wsl.tar.zst", &good, true);
    check("anything", &good, true);
    check("cut.wsl.tar.zst", &good[..20], true);
    check("cut", &good[..20], false);
    check(
        "trace.tar.zst",
        &compressed(&archive(&entries()[1..])),
        false,
    );
    check("text.wsl.tar.zst", b"hello", false);
    check("empty", b"", false);
    assert!(!is_packed(folder.path()));
    assert!(!is_packed(Path::new("/dev/zero")));
    assert!(!is_packed(&folder.path().join("nothing")));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_is_cut_short_is_told(share in 0.0..1.0) {
        let good = compressed(&archive(&entries()));
        let at = (good.len() as f64 * share) as usize;
        let error = try_unpack(&good[..at], ROOM).expect_err("truncated");
        prop_assert!(error.contains("byte"), "{}", error);
    }

    #[test]
    fn no_change_stops_the_program(at in 0.0..1.0, byte: u8, inside: bool) {
        let archive = archive(&entries());
        let mut bad = if inside { archive } else { compressed(&archive) };
        let at = (bad.len() as f64 * at) as usize;
        bad[at] = byte;
        let _ = try_unpack(&if inside { compressed(&bad) } else { bad }, ROOM);
    }
}
