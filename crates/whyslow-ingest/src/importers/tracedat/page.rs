//! Pages of the kernel's ring buffer.
//!
//! A page starts with its timestamp and the number of bytes in use, with flags for events lost
//! before it. Events follow, each with a header word: five bits of type or length, and 27 bits of
//! nanoseconds since the previous event. Larger values have entries of their own.

use super::meta::Layout;

const COMMIT_MASK: u64 = (1 << 27) - 1;
/// Events were lost before this page; their number may follow its events.
const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;

const DELTA_BITS: u32 = 27;
const TYPE_LONG: u32 = 0;
const TYPE_PADDING: u32 = 29;
const TYPE_TIME_EXTEND: u32 = 30;
const TYPE_TIME_STAMP: u32 = 31;
/// High bits that an absolute timestamp does not contain.
const TIME_HIGH: u64 = 0xf8 << 56;

/// Read position in a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    at: usize,
    end: usize,
    /// Time of the previous event.
    ts: u64,
    /// Events lost before the first one.
    pub(super) missed: Option<Missed>,
}

/// Number of lost events, if known to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Missed(pub(super) Option<u64>);

/// Location of an event in its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) ts: u64,
    pub(super) begin: usize,
    pub(super) end: usize,
}

/// The rest of the page is invalid.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken;

impl Cursor {
    pub(super) fn new(page: &[u8], layout: Layout) -> Result<Self, Broken> {
        let ts = long(page, 0, 8, layout).ok_or(Broken)?;
        let commit = long(page, 8, layout.commit_bytes, layout).ok_or(Broken)?;
        let used = (commit & COMMIT_MASK) as usize;
        let end = layout.data_at + used;
        if end > page.len() {
            return Err(Broken);
        }
        let missed = (commit & MISSED != 0).then(|| {
            let stored = long(page, end, layout.commit_bytes, layout);
            Missed(stored.filter(|_| commit & MISSED_STORED != 0))
        });
        Ok(Self {
            at: layout.data_at,
            end,
            ts,
            missed,
        })
    }

    /// None at the end of the page.
    pub(super) fn next(&mut self, page: &[u8], layout: Layout) -> Result<Option<Record>, Broken> {
        while self.at < self.end {
            let word = word(page, self.at, layout).ok_or(Broken)?;
            let (kind, delta) = if layout.is_big_endian {
                (word >> DELTA_BITS, word & ((1 << DELTA_BITS) - 1))
            } else {
                (word & 31, word >> 5)
            };
            let delta = u64::from(delta);
            let begin = self.at + 4;
            let extra = |cursor: &Self| {
                let extra = self::word(page, begin, layout).ok_or(Broken)?;
                (begin + 4 <= cursor.end).then_some(extra).ok_or(Broken)
            };
            let (begin, size) = match kind {
                // Padding without a time delta: the rest of the page is empty.
                TYPE_PADDING if delta == 0 => {
                    self.at = self.end;
                    return Ok(None);
                }
                TYPE_PADDING => {
                    let size = extra(self)? as usize;
                    self.ts = self.ts.wrapping_add(delta);
                    self.at = begin.checked_add(size).ok_or(Broken)?;
                    continue;
                }
                TYPE_TIME_EXTEND => {
                    let more = u64::from(extra(self)?) << DELTA_BITS;
                    self.ts = self.ts.wrapping_add(more + delta);
                    self.at = begin + 4;
                    continue;
                }
                TYPE_TIME_STAMP => {
                    let high = u64::from(extra(self)?) << DELTA_BITS;
                    self.ts = self.ts & TIME_HIGH | high | delta;
                    self.at = begin + 4;
                    continue;
                }
                TYPE_LONG => {
                    // The length includes itself.
                    let size = (extra(self)? as usize).checked_sub(4).ok_or(Broken)?;
                    (begin + 4, size.checked_next_multiple_of(4).ok_or(Broken)?)
                }
                words => (begin, words as usize * 4),
            };
            let end = begin.checked_add(size).ok_or(Broken)?;
            if end > self.end {
                return Err(Broken);
            }
            self.ts = self.ts.wrapping_add(delta);
            self.at = end;
            let ts = self.ts;
            return Ok(Some(Record { ts, begin, end }));
        }
        Ok(None)
    }
}

#[inline]
fn word(page: &[u8], at: usize, layout: Layout) -> Option<u32> {
    let bytes = page.get(at..at + 4)?.try_into().ok()?;
    Some(if layout.is_big_endian {
        u32::from_be_bytes(bytes)
    } else {
        u32::from_le_bytes(bytes)
    })
}

/// A four- or eight-byte integer.
fn long(page: &[u8], at: usize, size: usize, layout: Layout) -> Option<u64> {
    if size == 4 {
        return word(page, at, layout).map(u64::from);
    }
    let bytes = page.get(at..at + 8)?.try_into().ok()?;
    Some(if layout.is_big_endian {
        u64::from_be_bytes(bytes)
    } else {
        u64::from_le_bytes(bytes)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUTS: [Layout; 4] = [
        layout(false, 8),
        layout(false, 4),
        layout(true, 8),
        layout(true, 4),
    ];

    const fn layout(is_big_endian: bool, commit_bytes: usize) -> Layout {
        Layout {
            is_big_endian,
            commit_bytes,
            data_at: 8 + commit_bytes,
        }
    }

    struct PageBuilder {
        layout: Layout,
        bytes: Vec<u8>,
    }

    impl PageBuilder {
        fn word(&mut self, word: u32) {
            self.bytes.extend(if self.layout.is_big_endian {
                word.to_be_bytes()
            } else {
                word.to_le_bytes()
            });
        }

        fn entry(&mut self, kind: u32, delta: u32) {
            self.word(if self.layout.is_big_endian {
                kind << DELTA_BITS | delta
            } else {
                delta << 5 | kind
            });
        }

        /// A page with these events, and the words after them.
        fn page(&self, ts: u64, flags: u64, behind: Option<u64>) -> Vec<u8> {
            let mut out = PageBuilder {
                layout: self.layout,
                bytes: Vec::new(),
            };
            out.long(ts, 8);
            out.long(self.bytes.len() as u64 | flags, self.layout.commit_bytes);
            out.bytes.extend(&self.bytes);
            if let Some(behind) = behind {
                out.long(behind, self.layout.commit_bytes);
            }
            out.bytes.resize(256, 0);
            out.bytes
        }

        fn long(&mut self, long: u64, size: usize) {
            let wide = long.to_be_bytes();
            let bytes = &wide[8 - size..];
            if self.layout.is_big_endian {
                self.bytes.extend(bytes);
            } else {
                self.bytes.extend(bytes.iter().rev());
            }
        }
    }

    fn read(page: &[u8], layout: Layout) -> Result<Vec<(u64, usize)>, Broken> {
        let mut cursor = Cursor::new(page, layout)?;
        let mut out = Vec::new();
        while let Some(record) = cursor.next(page, layout)? {
            out.push((record.ts, record.end - record.begin));
        }
        Ok(out)
    }

    #[test]
    fn times_and_lengths_of_all_kinds_of_entries() {
        for layout in LAYOUTS {
            let bytes = Vec::new();
            let mut page_builder = PageBuilder { layout, bytes };
            page_builder.entry(2, 5);
            page_builder.bytes.extend([0; 8]);
            // A long time delta, and an event with an explicit length.
            page_builder.entry(TYPE_TIME_EXTEND, 7);
            page_builder.word(3);
            page_builder.entry(TYPE_LONG, 0);
            page_builder.word(4 + 10);
            page_builder.bytes.extend([0; 12]);
            // A discarded event, whose time delta counts.
            page_builder.entry(TYPE_PADDING, 9);
            page_builder.word(8);
            page_builder.bytes.extend([0; 4]);
            page_builder.entry(1, 1);
            page_builder.bytes.extend([0; 4]);
            page_builder.entry(TYPE_TIME_STAMP, 11);
            page_builder.word(1 << 20);
            page_builder.entry(1, 2);
            page_builder.bytes.extend([0; 4]);
            page_builder.entry(TYPE_PADDING, 0);
            page_builder.word(0);
            let page = page_builder.page(TIME_HIGH + 1_000, 0, None);
            let second = TIME_HIGH | (1_000 + 5 + (3 << DELTA_BITS) + 7);
            let wanted = vec![
                (TIME_HIGH + 1_005, 8),
                (second, 12),
                (second + 10, 4),
                (TIME_HIGH | ((1 << 47) + 11 + 2), 4),
            ];
            assert_eq!(read(&page, layout), Ok(wanted), "{layout:?}");
        }
    }

    #[test]
    fn what_was_lost_stands_behind_the_events() {
        for layout in LAYOUTS {
            let bytes = Vec::new();
            let mut page_builder = PageBuilder { layout, bytes };
            page_builder.entry(1, 5);
            page_builder.bytes.extend([0; 4]);
            let missed = |flags, behind| {
                let page = page_builder.page(0, flags, behind);
                Cursor::new(&page, layout).map(|cursor| cursor.missed)
            };
            assert_eq!(missed(0, Some(9)), Ok(None));
            assert_eq!(missed(MISSED, Some(9)), Ok(Some(Missed(None))));
            assert_eq!(
                missed(MISSED | MISSED_STORED, Some(9)),
                Ok(Some(Missed(Some(9))))
            );
        }
    }

    #[test]
    fn entries_that_go_beyond_the_page_are_broken() {
        for layout in LAYOUTS {
            for (kind, extra) in [
                (TYPE_LONG, 400),
                (TYPE_LONG, 3),
                (TYPE_LONG, u32::MAX),
                (28, 0),
            ] {
                let bytes = Vec::new();
                let mut page_builder = PageBuilder { layout, bytes };
                page_builder.entry(kind, 5);
                page_builder.word(extra);
                assert_eq!(read(&page_builder.page(0, 0, None), layout), Err(Broken));
            }
            let bytes = vec![0; 300];
            let page_builder = PageBuilder { layout, bytes };
            let page = &page_builder.page(0, 0, None)[..256];
            assert_eq!(read(page, layout), Err(Broken));
        }
    }
}
