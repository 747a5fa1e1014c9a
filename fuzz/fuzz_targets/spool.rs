//! Records of a spool: any bytes in a block with a valid checksum become rows or are counted.
#![no_main]

use std::fs;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use whyslow_ingest::import_in_memory;
use whyslow_model::spool::{Block, Encoder, Kind};

thread_local! {
    static FILE: tempfile::NamedTempFile = {
        let shared = Path::new("/dev/shm");
        if shared.is_dir() { tempfile::NamedTempFile::new_in(shared) } else { tempfile::NamedTempFile::new() }
            .expect("a temporary file")
    };
}

fn block(number: u64, payload: &[u8], records: u32) -> Vec<u8> {
    let mut block = Block {
        number,
        complete_until: number * 1_000_000_000,
        payload_bytes: payload.len() as u32,
        record_bytes: payload.len() as u32,
        records,
        is_compressed: false,
        has_names: false,
        crc: 0,
    };
    let mut crc = crc32fast::Hasher::new();
    crc.update(&block.head());
    crc.update(payload);
    block.crc = crc.finalize();
    let mut bytes = block.head().to_vec();
    bytes.extend(block.crc.to_le_bytes());
    bytes.extend(payload);
    bytes
}

fuzz_target!(|bytes: &[u8]| {
    let mut first = Encoder::default();
    first
        .begin(Kind::Clock, 5, (0, 0))
        .u64(5)
        .u64(1_700_000_000_000_000_000)
        .end();
    first
        .begin(Kind::Fact, 5, (0, 0))
        .text(b"architecture")
        .text(b"x86_64")
        .end();
    let mut spool = block(0, first.payload(), first.records());
    for (number, payload) in (1..).zip(bytes.chunks(4096)) {
        spool.extend(block(number, payload, 0));
    }
    FILE.with(|file| {
        fs::write(file.path(), &spool).expect("a spool");
        let imported =
            import_in_memory(&[file.path().to_owned()]).expect("a spool is always readable");
        let records = imported.records;
        assert_eq!(records.read, records.accepted + records.skipped);
    });
});
