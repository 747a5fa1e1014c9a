//! Output of bcc, libbpf-tools and bpftrace: any text becomes lines of the text format that can all be
//! parsed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use whyslow_fuzz::assert_read_again;
use whyslow_ingest::importers::snoops;

fuzz_target!(|bytes: &[u8]| {
    let log = String::from_utf8_lossy(bytes);
    let _ = (snoops::is_log(&log), snoops::is_histogram(&log));
    let written = Some(1_700_000_000_000_000_000);
    let done = snoops::translate(&log, written, snoops::MadeUp::default(), 4);
    assert!(done.bad_count <= log.lines().count() as u64);
    assert_read_again(&done.text);
});
