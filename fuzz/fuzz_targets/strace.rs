//! strace logs: for any line, calls have rows, and times do not run backwards.
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

/// Makes any input count as a log: all but one of the first lines must be strace lines.
const BEFORE: &str = "7 1.000000 getppid() = 1 <0.000001>\n";

fuzz_target!(|bytes: &[u8]| {
    FILE.with(|file| {
        let log = [BEFORE.repeat(8).as_bytes(), bytes].concat();
        fs::write(file.path(), log).expect("a file");
        let Ok(imported) = import_in_memory(&[file.path().to_path_buf()]) else {
            return;
        };
        assert!(imported.rows.syscall.len() >= 8);
        for row in &imported.rows.syscall {
            assert!(row.dur.is_none_or(|dur| dur >= 0));
            assert!(row.ts_end.is_none_or(|end| end >= row.ts));
        }
    });
});
