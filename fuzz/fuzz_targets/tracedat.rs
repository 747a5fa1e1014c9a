//! Files of trace-cmd: any bytes are read to an end, events have times in order, and what is counted is not more
//! than there is.
#![no_main]

use std::io::Write;

use libfuzzer_sys::fuzz_target;
use whyslow_ingest::importers::streamed::{Item, Streamed};
use whyslow_ingest::importers::tracedat::TraceDatSource;

fuzz_target!(|bytes: &[u8]| {
    let mut file = tempfile::NamedTempFile::new().expect("room");
    file.write_all(bytes).expect("room");
    let Ok(mut source) = TraceDatSource::open(file.path(), Some(0), 0) else {
        return;
    };
    let mut told = 0_u64;
    let mut take = |item: Item<'_>| {
        if let Item::Loss(loss) = item {
            assert!(loss.ts_end.is_none_or(|end| loss.ts <= end));
        } else {
            told += 1;
        }
    };
    while source.next(&mut take).expect("it can be read") {}
    let summary = source.summary();
    assert_eq!(told + summary.skipped, summary.records);
});
