//! Thread dumps: any text is read, and holders are threads of the dump.
#![no_main]

use libfuzzer_sys::fuzz_target;
use whyslow_ingest::importers::jstack::{self, DumpFile};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let _ = jstack::is_dump(&text);
    let (one, other) = text.split_at(text.floor_char_boundary(text.len() / 2));
    let file = |text| DumpFile {
        text,
        ..DumpFile::default()
    };
    let read = jstack::read(&[file(one), file(other)]);
    for wait in &read.waits {
        assert!(wait.ts <= wait.ts_end);
        assert!((wait.frame as usize) < read.profile.frames.len());
        assert!(wait.holder.is_none_or(|holder| holder.held <= wait.dur()));
    }
    assert!(read.profile.points.is_sorted_by_key(|point| point.ts));
});
