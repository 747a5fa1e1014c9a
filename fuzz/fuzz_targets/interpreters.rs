//! Memory of an interpreter: walking any image of it terminates.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    whyslow_record::walk_image(bytes);
});
