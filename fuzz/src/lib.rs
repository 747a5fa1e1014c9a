//! Checks shared by several targets.

use whyslow_ingest::importers::text;

/// Checks that all lines written by a text importer can be parsed.
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
