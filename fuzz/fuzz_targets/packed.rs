//! Packed recordings: any bytes unpack to a valid recording in one private folder or return an error.
//! The input is used as the compressed stream and as the content of one, so that the fuzzer also changes archives.
#![no_main]

use std::path::Path;
use std::sync::atomic::AtomicBool;

use libfuzzer_sys::fuzz_target;
use whyslow_store::packed::{Unpacking, unpack};
use whyslow_store::{Recording, Tables};

const BYTES_MAX: u64 = 64 << 20;

fn folder() -> tempfile::TempDir {
    let shared = Path::new("/dev/shm");
    if shared.is_dir() {
        tempfile::tempdir_in(shared)
    } else {
        tempfile::tempdir()
    }
    .expect("a temporary folder")
}

fn check(packed: &[u8]) {
    let (parent, never) = (folder(), AtomicBool::new(false));
    let inside = parent.path().join("inside");
    std::fs::create_dir(&inside).expect("a temporary folder takes it");
    let limits = Unpacking {
        bytes_max: BYTES_MAX,
        cancel: &never,
    };
    let done = unpack(packed, Path::new("fuzz"), &inside, &limits);
    let entries = std::fs::read_dir(parent.path()).expect("readable").count();
    assert_eq!(entries, 1, "a file outside of the folder");
    if done.is_ok() {
        let recording = Recording::open(&inside).expect("what was unpacked opens");
        assert!(recording.info().format_version > 0);
    }
}

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    check(&zstd::encode_all(bytes, 1).expect("memory"));
});
