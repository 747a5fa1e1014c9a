//! Profiles as text in any form: each is read or refused, and samples stand for no time before the begin.
#![no_main]

use libfuzzer_sys::fuzz_target;
use whyslow_ingest::importers::samplers::{self, Form};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let _ = samplers::form_of(&text);
    for form in [Form::Collapsed, Form::Speedscope, Form::Chrome] {
        let Ok(read) = samplers::read(form, &text, None) else {
            continue;
        };
        assert!(read.profile.points.is_sorted_by_key(|point| point.ts));
        for point in &read.profile.points {
            assert!(point.span >= 0 && point.credits > 0);
            assert!((point.stack as usize) < read.profile.stacks.len());
        }
    }
});
