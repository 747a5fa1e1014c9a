//! JDK Flight Recorder files: any bytes are read, points are in time order, and samples and gaps cover no more time
//! than the recording.
#![no_main]

use libfuzzer_sys::fuzz_target;
use whyslow_ingest::importers::jfr;
use whyslow_ingest::profile::gaps;
use whyslow_ingest::profile::locks;

fuzz_target!(|bytes: &[u8]| {
    let mut profile = jfr::read(bytes).profile;
    assert!(profile.points.is_sorted_by_key(|point| point.ts));
    for point in &profile.points {
        assert!((point.thread as usize) < profile.threads.len());
        assert!(point.span >= 0 && point.credits > 0);
    }
    let found = gaps::find(&mut profile).unwrap_or_default();
    for gap in &found.gaps {
        assert!(gap.ts <= gap.ts_end);
    }
    for wait in locks::find(&profile, &found) {
        assert!(wait.ts <= wait.ts_end);
        if let Some(holder) = wait.holder {
            assert!(holder.thread != wait.thread && holder.held <= wait.dur());
            assert!(
                holder
                    .gap
                    .is_none_or(|gap| (gap as usize) < found.gaps.len())
            );
        }
    }
});
