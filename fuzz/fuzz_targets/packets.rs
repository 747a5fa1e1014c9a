//! Stream files: reading any bytes with valid metadata terminates, and every record is accounted for.
//!
//! The first byte chooses the metadata, the rest is the stream file.
#![no_main]

use std::cell::RefCell;
use std::fs;
use std::ops::ControlFlow;

use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;
use whyslow_ingest::importers::ctf::consumer::{ClassRef, Consumer, Want};
use whyslow_ingest::importers::ctf::decoded::DecodedEvent;
use whyslow_ingest::importers::ctf::reader::CtfReader;

const METADATA: [&[u8]; 3] = [
    include_bytes!("../corpus/metadata/tsdl"),
    include_bytes!("../corpus/metadata/packet-be"),
    include_bytes!("../corpus/metadata2/json"),
];

#[derive(Default)]
struct Count(u64);

impl Consumer for Count {
    fn wants(&mut self, _class: &ClassRef<'_>) -> Want {
        Want::Everything
    }

    fn event(&mut self, event: &DecodedEvent<'_>) -> ControlFlow<()> {
        self.0 += 1;
        for value in event.values() {
            std::hint::black_box(value);
        }
        ControlFlow::Continue(())
    }
}

thread_local! {
    static FOLDERS: RefCell<Vec<TempDir>> = RefCell::new(METADATA.iter().map(|metadata| {
        let shared = std::path::Path::new("/dev/shm");
        let folder = if shared.is_dir() { TempDir::new_in(shared) } else { TempDir::new() };
        let folder = folder.expect("a temporary folder");
        fs::write(folder.path().join("metadata"), metadata).expect("metadata");
        folder
    }).collect());
}

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, stream)) = bytes.split_first() else {
        return;
    };
    FOLDERS.with_borrow(|folders| {
        let folder = folders[usize::from(*choice) % folders.len()].path();
        fs::write(folder.join("stream_0"), stream).expect("stream");
        let Ok(mut reader) = CtfReader::open(folder) else {
            return;
        };
        let mut count = Count::default();
        if let Ok(summary) = reader.read(&mut count) {
            assert_eq!(summary.events_delivered, count.0);
            assert_eq!(
                summary.events_read,
                summary.events_delivered + summary.events_unwanted + summary.events_skipped
            );
        }
    });
});
