//! Archives of every kind: any bytes unpack into one private folder or return an error.
#![no_main]

use std::fs;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use whyslow_ingest::archive;

thread_local! {
    static FILE: tempfile::NamedTempFile = {
        let shared = Path::new("/dev/shm");
        if shared.is_dir() { tempfile::NamedTempFile::new_in(shared) } else { tempfile::NamedTempFile::new() }
            .expect("a temporary file")
    };
}

fuzz_target!(|bytes: &[u8]| {
    FILE.with(|file| {
        fs::write(file.path(), bytes).expect("archive");
        if archive::is_archive(file.path())
            && let Ok(unpacked) = archive::unpack(file.path())
        {
            assert!(unpacked.path().is_dir());
        }
    });
});
