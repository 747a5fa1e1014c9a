//! Memory of an interpreter: any image of it is walked to an end.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    whyslow_record::walk_image(bytes);
});
