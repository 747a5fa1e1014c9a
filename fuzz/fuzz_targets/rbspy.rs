//! rbspy profiles: any bytes are read or rejected, and samples have stacks and durations.
#![no_main]

use libfuzzer_sys::fuzz_target;
use whyslow_ingest::importers::samplers::{self, Form};

fuzz_target!(|bytes: &[u8]| {
    let _ = samplers::form_of(bytes);
    let Ok(read) = samplers::read(Form::Rbspy, bytes, Some(1)) else {
        return;
    };
    assert!(read.profile.points.is_sorted_by_key(|point| point.ts));
    for point in &read.profile.points {
        assert!(point.span >= 0 && point.credits > 0);
        assert!((point.stack as usize) < read.profile.stacks.len());
    }
});
