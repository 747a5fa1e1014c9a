//! Bounds-checked reading of bytes: anything that cannot be read is `None`.

/// Maximum length of most texts; longer ones are truncated.
pub(super) const TEXT_BYTES_MAX: usize = 64 << 10;
/// For names of types, fields, threads and settings, which a few bytes can repeat.
pub(super) const NAME_BYTES_MAX: usize = 512;

#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'b> {
    bytes: &'b [u8],
    at: usize,
}

/// The low seven bits of each byte, concatenated.
#[inline]
fn sevens(word: u64) -> u64 {
    let word = word & 0x7f7f_7f7f_7f7f_7f7f;
    let word = (word & 0x7f00_7f00_7f00_7f00) >> 1 | word & 0x007f_007f_007f_007f;
    let word = (word & 0x3fff_0000_3fff_0000) >> 2 | word & 0x0000_3fff_0000_3fff;
    (word & 0x0fff_ffff_0000_0000) >> 4 | word & 0x0000_0000_0fff_ffff
}

/// Result of [`Cursor::text`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Text {
    Null,
    Plain(String),
    /// A key of the string pool.
    Pooled(i64),
}

impl<'b> Cursor<'b> {
    pub(super) fn new(bytes: &'b [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// LEB128 with seven bits per byte, lowest first; the ninth byte has eight.
    #[inline]
    pub(super) fn varint(&mut self) -> Option<i64> {
        let first = *self.bytes.get(self.at)?;
        if first < 0x80 {
            self.at += 1;
            return Some(i64::from(first));
        }
        let second = *self.bytes.get(self.at + 1)?;
        if second < 0x80 {
            self.at += 2;
            return Some(i64::from(first & 0x7f) | i64::from(second) << 7);
        }
        if let Some(word) = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk) {
            let word = u64::from_le_bytes(*word);
            // The highest bit of the last byte is clear.
            let ends = !word & 0x8080_8080_8080_8080;
            if ends != 0 {
                let bits = ends.trailing_zeros() + 1;
                self.at += bits as usize / 8;
                return Some(sevens(word & (u64::MAX >> (64 - bits))) as i64);
            }
        }
        self.varint_slow()
    }

    /// For nine bytes, or near the end.
    fn varint_slow(&mut self) -> Option<i64> {
        let mut value = 0;
        for shift in (0..56).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value as i64);
            }
        }
        let last = self.byte()?;
        Some((value | u64::from(last) << 56) as i64)
    }

    /// A count of items of at least one byte each, limited by the bytes left.
    pub(super) fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.varint()?).ok()?;
        (count <= self.left()).then_some(count)
    }

    #[inline]
    pub(super) fn skip(&mut self, bytes: usize) -> Option<()> {
        if bytes > self.left() {
            return None;
        }
        self.at += bytes;
        Some(())
    }

    fn take(&mut self, bytes: usize) -> Option<&'b [u8]> {
        let begin = self.at;
        self.skip(bytes)?;
        Some(&self.bytes[begin..self.at])
    }

    /// Strings have several encodings; invalid UTF-8 is replaced, because one bad string must not
    /// invalidate the others. Texts longer than `bytes_max` are truncated.
    pub(super) fn text(&mut self, bytes_max: usize) -> Option<Text> {
        Some(match self.byte()? {
            0 => Text::Null,
            1 => Text::Plain(String::new()),
            2 => Text::Pooled(self.varint()?),
            3 => {
                let length = self.count()?;
                let bytes = self.take(length)?;
                let shown = &bytes[..length.min(bytes_max)];
                Text::Plain(String::from_utf8_lossy(shown).into_owned())
            }
            4 => {
                let mut units = Vec::new();
                for _ in 0..self.count()? {
                    let unit = self.varint()? as u16;
                    if units.len() < bytes_max {
                        units.push(unit);
                    }
                }
                Text::Plain(String::from_utf16_lossy(&units))
            }
            5 => {
                let length = self.count()?;
                let bytes = self.take(length)?;
                let shown = &bytes[..length.min(bytes_max)];
                Text::Plain(shown.iter().copied().map(char::from).collect())
            }
            _ => return None,
        })
    }

    /// The key of a string, if it is in the pool.
    pub(super) fn pooled(&mut self) -> Option<i64> {
        match self.byte()? {
            2 => self.varint(),
            _ => None,
        }
    }

    /// Skips a string without decoding it.
    pub(super) fn skip_text(&mut self) -> Option<()> {
        match self.byte()? {
            0 | 1 => Some(()),
            2 => self.varint().map(|_| ()),
            3 | 5 => {
                let length = self.count()?;
                self.skip(length)
            }
            4 => {
                for _ in 0..self.count()? {
                    self.varint()?;
                }
                Some(())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..8 {
            if value < 0x80 {
                bytes.push(value as u8);
                return bytes;
            }
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    proptest! {
        #[test]
        fn numbers_come_back(value: i64, bits in 0..64) {
            let value = value >> bits;
            let bytes = written(value as u64);
            let mut cursor = Cursor::new(&bytes, 0);
            prop_assert_eq!(cursor.varint(), Some(value));
            prop_assert_eq!(cursor.left(), 0);
            for end in 0..bytes.len() {
                prop_assert_eq!(Cursor::new(&bytes[..end], 0).varint(), None);
            }
            // Independent of the following bytes.
            let followed = [&bytes[..], &[0xff; 9]].concat();
            let mut cursor = Cursor::new(&followed, 0);
            prop_assert_eq!(cursor.varint(), Some(value));
            prop_assert_eq!(cursor.at(), bytes.len());
        }

        #[test]
        fn texts_are_skipped_as_they_are_read(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let (mut read, mut skipped) = (Cursor::new(&bytes, 0), Cursor::new(&bytes, 0));
            let text = read.text(TEXT_BYTES_MAX);
            prop_assert_eq!(text.is_some(), skipped.skip_text().is_some());
            if text.is_some() {
                prop_assert_eq!(read.at(), skipped.at());
            }
        }
    }

    #[test]
    fn texts_of_each_kind() {
        let of = |bytes: &[u8]| Cursor::new(bytes, 0).text(TEXT_BYTES_MAX);
        let plain = |text: &str| Some(Text::Plain(text.to_owned()));
        assert_eq!(of(&[0]), Some(Text::Null));
        assert_eq!(of(&[1]), plain(""));
        assert_eq!(of(&[2, 0x81, 0x01]), Some(Text::Pooled(129)));
        assert_eq!(of(&[3, 2, 0xc3, 0xa9]), plain("é"));
        assert_eq!(of(&[3, 2, 0xc3, 0x28]), plain("\u{fffd}("));
        assert_eq!(of(&[4, 2, 0x41, 0xe9, 0x01]), plain("Aé"));
        assert_eq!(of(&[5, 1, 0xe9]), plain("é"));
        assert_eq!(of(&[6]), None);
        assert_eq!(of(&[3, 3, 0x41]), None);
        let cut = Cursor::new(&[3, 3, 0x41, 0x42, 0x43], 0).text(2);
        assert_eq!(cut, plain("AB"));
        assert_eq!(Cursor::new(&[2, 0x81, 0x01], 0).pooled(), Some(129));
        assert_eq!(Cursor::new(&[1], 0).pooled(), None);
    }
}
