//! Imports from archives, including malicious ones.
#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::io::Write;
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use whyslow_ingest::archive::{ArchiveError, is_archive, unpack, unpack_watched};
use whyslow_ingest::{ImportError, ImportOptions, Stage, import};

use crate::support::stream_writer::{Folder, METADATA, Read, file, three_packets};

/// A tar of a session with one trace, and an additional entry.
fn tar(extra: impl Fn(&mut tar::Builder<Vec<u8>>)) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    let stream = file(&three_packets());
    for (name, bytes) in [("metadata", METADATA.as_bytes()), ("channel0_0", &stream)] {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder
            .append_data(&mut header, format!("session/kernel/{name}"), bytes)
            .unwrap();
    }
    extra(&mut builder);
    builder.into_inner().unwrap()
}

fn zip() -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let mut writer = zip::ZipWriter::new(&mut bytes);
    let options = zip::write::SimpleFileOptions::default();
    writer.add_directory("session/kernel", options).unwrap();
    writer
        .start_file("session/kernel/metadata", options)
        .unwrap();
    writer.write_all(METADATA.as_bytes()).unwrap();
    writer
        .start_file("session/kernel/channel0_0", options)
        .unwrap();
    writer.write_all(&file(&three_packets())).unwrap();
    writer.finish().unwrap();
    bytes.into_inner()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn every_kind() -> [(&'static str, Vec<u8>); 5] {
    let plain = tar(|_| {});
    [
        ("plain", plain.clone()),
        ("gzip", gzip(&plain)),
        ("xz", xz(&plain)),
        ("zstd", zstd::encode_all(plain.as_slice(), 1).unwrap()),
        ("zip", zip()),
    ]
}

#[test]
fn every_kind_is_known_by_its_content() {
    for (kind, bytes) in every_kind() {
        let folder = Folder::new();
        let path = folder.add("no-extension", &bytes);
        assert!(is_archive(&path), "{kind}");
        let read = Read::of(&path);
        assert_eq!(read.times(), [1010, 1020, 1110, 1120, 1210, 1220], "{kind}");
        assert_eq!(read.anomalies(), [], "{kind}");
    }
}

#[test]
fn what_was_unpacked_is_private_and_deleted() {
    let folder = Folder::new();
    let unpacked = unpack(&folder.add("a.tar", &tar(|_| {}))).unwrap();
    let place: PathBuf = unpacked.path().to_owned();
    assert_eq!(
        fs::metadata(&place).unwrap().permissions().mode() & 0o777,
        0o700
    );
    assert!(place.join("session/kernel/metadata").is_file());
    drop(unpacked);
    assert!(!place.exists());
}

#[test]
fn unpacking_tells_how_far_it_is_and_can_be_ended() {
    for (kind, bytes) in every_kind() {
        let folder = Folder::new();
        let path = folder.add("archive", &bytes);
        let mut reported = Vec::new();
        let mut watch = |read, of| {
            reported.push((read, of));
            ControlFlow::Continue(())
        };
        unpack_watched(&path, &mut watch).unwrap();
        let all = bytes.len() as u64;
        assert!(reported.is_sorted(), "{kind}: {reported:?}");
        assert!(reported.iter().all(|(read, of)| read <= of && *of == all));
        assert!(reported.last().unwrap().0 > 0, "{kind}: {reported:?}");
        for after in 0..reported.len() {
            let mut left = after;
            let mut watch = |_, _| match left.checked_sub(1) {
                Some(less) => {
                    left = less;
                    ControlFlow::Continue(())
                }
                None => ControlFlow::Break(()),
            };
            let ended = unpack_watched(&path, &mut watch).unwrap_err();
            assert!(matches!(ended, ArchiveError::Cancelled { .. }), "{kind}");
        }
    }
}

#[test]
fn an_import_can_be_cancelled_while_it_unpacks() {
    let folder = Folder::new();
    let path = folder.add("archive", &gzip(&tar(|_| {})));
    let recording = folder.path().join("a.wsl");
    let options = ImportOptions::new(&recording);
    let cancel = Arc::clone(&options.cancel);
    let mut stages = Vec::new();
    let imported = import(&[path], &options, &mut |progress| {
        stages.push(progress.stage);
        cancel.store(true, Ordering::Relaxed);
    });
    assert!(matches!(imported, Err(ImportError::Cancelled)));
    assert_eq!(stages, [Stage::Unpacking]);
    assert!(!recording.exists());
}

fn refusal(bytes: &[u8]) -> ArchiveError {
    let folder = Folder::new();
    unpack(&folder.add("archive", bytes)).unwrap_err()
}

/// The library refuses to write such names, so they are written into the header directly.
fn entry(name: &str, kind: tar::EntryType, link: &str) -> Vec<u8> {
    tar(|builder| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(0);
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_cksum();
        builder.append(&header, std::io::empty()).unwrap();
    })
}

#[test]
fn entries_that_lead_out_are_refused() {
    for name in [
        "../outside",
        "/outside",
        "session/../../outside",
        "a/./../..",
    ] {
        let error = refusal(&entry(name, tar::EntryType::Regular, ""));
        assert!(
            matches!(error, ArchiveError::Escapes { .. }),
            "{name}: {error}"
        );
    }
}

#[test]
fn links_and_devices_are_refused() {
    for kind in [
        tar::EntryType::Symlink,
        tar::EntryType::Link,
        tar::EntryType::Char,
        tar::EntryType::Block,
        tar::EntryType::Fifo,
    ] {
        let error = refusal(&entry("session/odd", kind, "/etc/passwd"));
        assert!(
            matches!(error, ArchiveError::Kind { .. }),
            "{kind:?}: {error}"
        );
    }
}

#[test]
fn links_in_a_zip_are_refused() {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let mut writer = zip::ZipWriter::new(&mut bytes);
    let options = zip::write::SimpleFileOptions::default();
    writer
        .add_symlink("session/metadata", "/etc/passwd", options)
        .unwrap();
    writer.finish().unwrap();
    let error = refusal(&bytes.into_inner());
    assert!(matches!(error, ArchiveError::Kind { .. }), "{error}");
}

#[test]
fn the_same_name_twice_is_refused() {
    let error = refusal(&entry(
        "session/kernel/metadata",
        tar::EntryType::Regular,
        "",
    ));
    assert!(matches!(error, ArchiveError::Twice { .. }), "{error}");
}

#[test]
fn an_archive_that_unpacks_to_very_much_is_refused() {
    let folder = Folder::new();
    let path = folder.path().join("bomb.tar.zst");
    let mut encoder = zstd::Encoder::new(File::create(&path).unwrap(), 1).unwrap();
    let mut header = tar::Header::new_gnu();
    header.set_path("zeros").unwrap();
    header.set_size(3 << 30);
    header.set_cksum();
    encoder.write_all(header.as_bytes()).unwrap();
    let zeros = vec![0; 1 << 20];
    for _ in 0..3 << 10 {
        encoder.write_all(&zeros).unwrap();
    }
    encoder.finish().unwrap();
    let error = unpack(&path).unwrap_err();
    assert!(matches!(error, ArchiveError::TooLarge { .. }), "{error}");
}

#[test]
fn a_name_of_many_megabytes_is_refused() {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::GNULongName);
    header.as_old_mut().name[..13].copy_from_slice(b"././@LongLink");
    header.set_size(64 << 20);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.resize(bytes.len() + (64 << 20), b'a');
    let error = refusal(&bytes);
    assert!(matches!(error, ArchiveError::Unpack { .. }), "{error}");
}

#[test]
fn damaged_archives_and_other_files_are_errors() {
    let whole = gzip(&tar(|_| {}));
    let error = refusal(&whole[..whole.len() / 2]);
    assert!(matches!(error, ArchiveError::Unpack { .. }), "{error}");
    for other in [b"".as_slice(), b"#!/bin/sh\n", &[0; 1024]] {
        let error = refusal(other);
        assert!(matches!(error, ArchiveError::NotArchive { .. }), "{error}");
    }
    assert!(!is_archive(Path::new("/no such file")));
}
