//! Metadata of CTF 2 (a sequence of JSON fragments): any bytes return a trace or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use whyslow_ingest::importers::ctf::metadata::parse_metadata;

/// Start of each fragment; without it, the text would be read as CTF 1.8.
const RECORD_SEPARATOR: u8 = 0x1e;

fuzz_target!(|bytes: &[u8]| {
    let text = if bytes.first() == Some(&RECORD_SEPARATOR) {
        bytes.to_vec()
    } else {
        [&[RECORD_SEPARATOR], bytes].concat()
    };
    if let Ok(parsed) = parse_metadata(&text) {
        for anomaly in parsed.anomalies {
            assert!(anomaly.byte_offset <= text.len() as u64);
        }
    }
});
