//! perf.data files: reading any bytes terminates, events are in time order, and no more records are counted than
//! the file has.
#![no_main]

use std::io::Write;

use libfuzzer_sys::fuzz_target;
use whyslow_ingest::importers::perf::{Item, PerfSource};

fuzz_target!(|bytes: &[u8]| {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("a temporary file");
    let Ok(source) = PerfSource::open(file.path(), Some(0), 0) else {
        return;
    };
    // Names of files on this machine are irrelevant here.
    let mut source = source.without_names();
    let mut counted = 0_u64;
    let mut take = |item: Item<'_>| {
        counted += 1;
        if let Item::Loss(loss) = item {
            assert!(loss.ts_end.is_none_or(|end| loss.ts <= end));
        }
    };
    while source.next(&mut take).expect("it can be read") {}
    // A record yields at most two items: a switch, and the stack of the thread that resumes.
    assert!(counted <= 2 * source.records());
    assert!(source.lacks().damaged.0 <= bytes.len() as u64 + (256 << 20));
});
