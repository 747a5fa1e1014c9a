//! Reading of integers and byte strings in the byte order of the recording machine. A read past the
//! end gives `None`.

#[derive(Debug, Clone, Copy)]
pub(in crate::importers) struct Bytes<'b> {
    rest: &'b [u8],
    is_big_endian: bool,
}

impl<'b> Bytes<'b> {
    pub(in crate::importers) fn new(rest: &'b [u8], is_big_endian: bool) -> Self {
        Self {
            rest,
            is_big_endian,
        }
    }

    pub(in crate::importers) fn left(&self) -> usize {
        self.rest.len()
    }

    #[inline]
    pub(in crate::importers) fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    pub(in crate::importers) fn skip(&mut self, count: usize) -> Option<()> {
        self.take(count).map(drop)
    }

    pub(in crate::importers) fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    pub(in crate::importers) fn u16(&mut self) -> Option<u16> {
        let bytes = self.take(2)?.try_into().ok()?;
        Some(if self.is_big_endian {
            u16::from_be_bytes(bytes)
        } else {
            u16::from_le_bytes(bytes)
        })
    }

    #[inline]
    pub(in crate::importers) fn u32(&mut self) -> Option<u32> {
        let bytes = self.take(4)?.try_into().ok()?;
        Some(if self.is_big_endian {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        })
    }

    pub(in crate::importers) fn i32(&mut self) -> Option<i32> {
        self.u32().map(|value| value as i32)
    }

    #[inline]
    pub(in crate::importers) fn u64(&mut self) -> Option<u64> {
        let bytes = self.take(8)?.try_into().ok()?;
        Some(if self.is_big_endian {
            u64::from_be_bytes(bytes)
        } else {
            u64::from_le_bytes(bytes)
        })
    }

    /// Characters up to a NUL, or to the end.
    pub(in crate::importers) fn text(&self) -> &'b [u8] {
        let end = self.rest.iter().position(|byte| *byte == 0);
        &self.rest[..end.unwrap_or(self.rest.len())]
    }

    /// A text in a padded buffer with its size in front.
    pub(in crate::importers) fn sized_text(&mut self) -> Option<&'b [u8]> {
        let size = self.u32()? as usize;
        let buffer = Self {
            rest: self.take(size)?,
            ..*self
        };
        Some(buffer.text())
    }
}
