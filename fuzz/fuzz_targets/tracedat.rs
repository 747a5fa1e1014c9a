//! trace.dat files: reading any bytes terminates, events are in time order, and no more records are counted than the
//! file has.
#![no_main]

use std::io::Write;

use libfuzzer_sys::fuzz_target;
use whyslow_ingest::importers::streamed::{Item, Streamed};
use whyslow_ingest::importers::tracedat::TraceDatSource;

fuzz_target!(|bytes: &[u8]| {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("a temporary file");
    let Ok(mut source) = TraceDatSource::open(file.path(), Some(0), 0) else {
        return;
    };
    let mut counted = 0_u64;
    let mut take = |item: Item<'_>| {
        if let Item::Loss(loss) = item {
            assert!(loss.ts_end.is_none_or(|end| loss.ts <= end));
        } else {
            counted += 1;
        }
    };
    while source.next(&mut take).expect("it can be read") {}
    let summary = source.summary();
    assert_eq!(counted + summary.skipped, summary.records);
});
