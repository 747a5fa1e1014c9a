//! Recordings of the Java Flight Recorder: any bytes are read, points are in order of time, and samples and gaps
//! stand for no more than there is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use whyslow_ingest::importers::jfr;
use whyslow_ingest::profile::gaps;

fuzz_target!(|bytes: &[u8]| {
    let mut profile = jfr::read(bytes).profile;
    assert!(profile.points.is_sorted_by_key(|point| point.ts));
    for point in &profile.points {
        assert!((point.thread as usize) < profile.threads.len());
        assert!(point.span >= 0 && point.credits > 0);
    }
    if let Ok(found) = gaps::find(&mut profile) {
        for gap in &found.gaps {
            assert!(gap.ts <= gap.ts_end);
        }
    }
});
