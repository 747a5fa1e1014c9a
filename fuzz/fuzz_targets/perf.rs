//! Files of perf: any bytes are read to an end, events have times in order, and what is counted is not more than
//! there is.
#![no_main]

use std::io::Write;

use libfuzzer_sys::fuzz_target;
use whyslow_ingest::importers::perf::{Item, PerfSource};

fuzz_target!(|bytes: &[u8]| {
    let mut file = tempfile::NamedTempFile::new().expect("room");
    file.write_all(bytes).expect("room");
    let Ok(source) = PerfSource::open(file.path(), Some(0), 0) else {
        return;
    };
    // What files of this machine are called is of no matter here.
    let mut source = source.without_names();
    let mut told = 0_u64;
    let mut take = |item: Item<'_>| {
        told += 1;
        if let Item::Loss(loss) = item {
            assert!(loss.ts_end.is_none_or(|end| loss.ts <= end));
        }
    };
    while source.next(&mut take).expect("it can be read") {}
    // A record tells two things at most: a switch, and the stack of who comes back.
    assert!(told <= 2 * source.records());
    assert!(source.lacks().damaged.0 <= bytes.len() as u64 + (256 << 20));
});
