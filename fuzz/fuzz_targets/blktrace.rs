//! blktrace files: reading any bytes terminates, events are in time order, and each byte is in a record or counted as
//! lost.
#![no_main]

use std::io::Write;

use libfuzzer_sys::fuzz_target;
use whyslow_ingest::importers::blktrace::BlktraceSource;
use whyslow_ingest::importers::streamed::{Item, Streamed};

fuzz_target!(|bytes: &[u8]| {
    // Two files: the input before and after a chosen offset.
    let Some((place, bytes)) = bytes.split_first() else {
        return;
    };
    let (one, two) = bytes.split_at(bytes.len() * usize::from(*place) / 256);
    let mut files = Vec::new();
    for part in [one, two] {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(part).expect("a temporary file");
        files.push(file);
    }
    let paths: Vec<_> = files.iter().map(|file| file.path().to_owned()).collect();
    let mut source = BlktraceSource::open(&paths, Some(0), 0).expect("they can be read");
    let mut before = i64::MIN;
    let mut take = |item: Item<'_>| match item {
        Item::Loss(loss) => assert!(loss.ts_end.is_none_or(|end| loss.ts <= end)),
        Item::Event(event) => {
            assert!(event.ts >= before);
            before = event.ts;
        }
        Item::Before(_) => {}
    };
    while source.next(&mut take).expect("it can be read") {}
    let (read, all) = source.progress();
    let lost = source.summary().notes[0].count;
    assert_eq!(read + lost, all);
});
