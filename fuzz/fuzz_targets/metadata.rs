//! Metadata of CTF 1.8, plain and packetised: any bytes return a trace or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use whyslow_ingest::importers::ctf::metadata::parse_metadata;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(parsed) = parse_metadata(bytes) {
        for anomaly in parsed.anomalies {
            assert!(anomaly.byte_offset <= bytes.len() as u64);
        }
    }
});
