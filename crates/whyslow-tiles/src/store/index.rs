//! The index of a lane: where its blocks are stored.

use crate::store::columns::{Cursor, put, zigzag};
use crate::store::directory::{Extent, LaneEntry};
use crate::store::pages::PageWriter;

/// Blocks of one lane in one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) track: u8,
    /// Slot of the lane in its track.
    pub(crate) lane: u32,
    /// Lowest and highest mark of the blocks.
    pub(crate) marks: (u8, u8),
    /// Lowest level of the sums; 0 if there are other items than sums.
    pub(crate) finest: u8,
    /// Start of the first item, and end of the last one.
    pub(crate) first: u64,
    pub(crate) end: u64,
    /// Offset and size of the page in the file, and offset and size of the blocks in the
    /// uncompressed page.
    pub(crate) page: u64,
    pub(crate) stored: u32,
    pub(crate) at: u32,
    pub(crate) bytes: u32,
}

/// Encodes the entries of one lane, highest marks first.
pub(crate) fn encode(entries: &[Entry]) -> Vec<u8> {
    let mut encoded = Vec::new();
    let (mut page, mut first) = (0, 0);
    for entry in entries {
        encoded.extend([entry.marks.1, entry.marks.0, entry.finest]);
        put(&mut encoded, zigzag(entry.page.wrapping_sub(page) as i64));
        put(&mut encoded, u64::from(entry.stored));
        put(&mut encoded, u64::from(entry.at));
        put(&mut encoded, u64::from(entry.bytes));
        put(&mut encoded, zigzag(entry.first.wrapping_sub(first) as i64));
        put(&mut encoded, entry.end - entry.first);
        (page, first) = (entry.page, entry.first);
    }
    encoded
}

/// Sorts entries into the order in which they are written.
pub(crate) fn sort(entries: &mut [Entry]) {
    entries.sort_unstable_by_key(|entry| {
        (
            entry.lane,
            u8::MAX - entry.marks.1,
            entry.first,
            entry.page,
            entry.at,
        )
    });
}

/// Reads entries one by one.
pub(crate) struct Entries<'b> {
    rest: Cursor<'b>,
    page: u64,
    first: u64,
}

impl<'b> Entries<'b> {
    pub(crate) fn new(encoded: &'b [u8]) -> Self {
        Self {
            rest: Cursor(encoded),
            page: 0,
            first: 0,
        }
    }

    /// `Err` if the rest is not a valid entry.
    pub(crate) fn next(&mut self) -> Result<Option<Entry>, ()> {
        if self.rest.0.is_empty() {
            return Ok(None);
        }
        self.entry().map(Some).ok_or(())
    }

    fn entry(&mut self) -> Option<Entry> {
        let rest = &mut self.rest;
        let (most, least, finest) = (rest.byte()?, rest.byte()?, rest.byte()?);
        self.page = self.page.wrapping_add(rest.signed()? as u64);
        let stored = u32::try_from(rest.number()?).ok()?;
        let at = u32::try_from(rest.number()?).ok()?;
        let bytes = u32::try_from(rest.number()?).ok()?;
        self.first = self.first.wrapping_add(rest.signed()? as u64);
        Some(Entry {
            track: 0,
            lane: 0,
            marks: (least, most),
            finest,
            first: self.first,
            end: self.first.checked_add(rest.number()?)?,
            page: self.page,
            stored,
            at,
            bytes,
        })
    }
}

/// Writes the index of each lane of a track.
pub(crate) fn write(pages: &mut PageWriter, track: u8, lanes: &mut [LaneEntry]) {
    let mut entries = pages.take_entries(track);
    sort(&mut entries);
    for entries in entries.chunk_by(|a, b| a.lane == b.lane) {
        let (offset, bytes) = pages.checksummed(&encode(entries));
        lanes[entries[0].lane as usize].index = Extent { offset, bytes };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry() -> impl Strategy<Value = Entry> {
        let place = (any::<u64>(), any::<u32>(), any::<u32>(), any::<u32>());
        let about = ((any::<u8>(), any::<u8>(), any::<u8>()), any::<(u64, u64)>());
        (place, about).prop_map(
            |((page, stored, at, bytes), ((a, b, finest), (x, y)))| Entry {
                track: 0,
                lane: 0,
                marks: (a.min(b), a.max(b)),
                finest,
                first: x.min(y),
                end: x.max(y),
                page,
                stored,
                at,
                bytes,
            },
        )
    }

    proptest! {
        #[test]
        fn entries_come_back(entries in proptest::collection::vec(entry(), 0..20)) {
            let bytes = encode(&entries);
            let mut read = Entries::new(&bytes);
            for entry in &entries {
                prop_assert_eq!(read.next(), Ok(Some(*entry)));
            }
            prop_assert_eq!(read.next(), Ok(None));
        }

        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            let mut entries = Entries::new(&bytes);
            while let Ok(Some(_)) = entries.next() {}
        }
    }
}
