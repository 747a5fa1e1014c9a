//! What several targets check.

use whyslow_ingest::importers::text;

/// Lines that an importer of texts writes are all read again.
pub fn assert_read_again(written: &str) {
    let mut line = text::Line::default();
    for written in written.lines() {
        let mut room = text::Room::default();
        if written.len() <= text::LINE_BYTES_MAX {
            let read = text::parse(written, &mut line, &mut room);
            assert!(read.is_ok(), "{written}: {:?}", read.err());
        }
    }
}
