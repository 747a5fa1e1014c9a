//! Tracepoints as text: any text becomes lines of the text format that can all be parsed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use whyslow_fuzz::assert_read_again;
use whyslow_ingest::importers::ftrace;

fuzz_target!(|bytes: &[u8]| {
    let trace = String::from_utf8_lossy(bytes);
    let _ = ftrace::is_trace(&trace);
    let done = ftrace::translate(&trace, Some(1_700_000_000_000_000_000), 4);
    assert!(done.bad_count <= trace.lines().count() as u64);
    assert_read_again(&done.text);
});
