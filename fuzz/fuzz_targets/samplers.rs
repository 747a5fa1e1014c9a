//! Profiles in any format: each is read or rejected, and samples cover no time before the start.
#![no_main]

use libfuzzer_sys::fuzz_target;
use whyslow_ingest::importers::jstack::DumpFile;
use whyslow_ingest::importers::pyspy;
use whyslow_ingest::importers::samplers::{self, Form};
use whyslow_ingest::profile::Profile;

fn check(profile: &Profile) {
    assert!(profile.points.is_sorted_by_key(|point| point.ts));
    for point in &profile.points {
        assert!(point.span >= 0 && point.credits > 0);
        assert!((point.stack as usize) < profile.stacks.len());
    }
}

fuzz_target!(|bytes: &[u8]| {
    let _ = samplers::form_of(bytes);
    for form in Form::ALL {
        if let Ok(read) = samplers::read(form, bytes, None) {
            check(&read.profile);
        }
    }
    let text = String::from_utf8_lossy(bytes);
    let _ = pyspy::is_dump(&text);
    let file = DumpFile {
        text: &text,
        ..DumpFile::default()
    };
    if let Ok(read) = pyspy::read(&[file, file]) {
        read.profiles.iter().for_each(check);
    }
});
