//! The text format and all trackers: any lines become rows, in whatever order they are.
#![no_main]

use std::fs;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use whyslow_ingest::import_in_memory;

thread_local! {
    static FILE: tempfile::NamedTempFile = {
        let shared = Path::new("/dev/shm");
        if shared.is_dir() { tempfile::NamedTempFile::new_in(shared) } else { tempfile::NamedTempFile::new() }
            .expect("a temporary file")
    };
}

fuzz_target!(|bytes: &[u8]| {
    FILE.with(|file| {
        let text = [b"whyslow-text 1\n".as_slice(), bytes].concat();
        fs::write(file.path(), text).expect("text");
        let Ok(imported) = import_in_memory(&[file.path().to_path_buf()]) else {
            return;
        };
        for row in &imported.rows.syscall {
            assert!(row.dur.is_none_or(|dur| dur >= 0));
        }
        for row in &imported.rows.block_io {
            assert!(row.dur.is_none_or(|dur| dur >= 0));
        }
    });
});
