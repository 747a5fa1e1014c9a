//! Sequential decoding of a record's fields.

use super::record::{Kind, RecordError};

/// Reads the numbers and texts of a record in sequence.
pub(super) struct Cursor<'b> {
    pub(super) kind: Kind,
    pub(super) rest: &'b [u8],
}

impl<'b> Cursor<'b> {
    pub(super) fn take(&mut self, count: usize) -> Result<&'b [u8], RecordError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or(RecordError::Short(self.kind))?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], RecordError> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N)?);
        Ok(bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, RecordError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32, RecordError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn i32(&mut self) -> Result<i32, RecordError> {
        Ok(i32::from_le_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, RecordError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(super) fn i64(&mut self) -> Result<i64, RecordError> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    /// Length-prefixed text.
    pub(super) fn text(&mut self) -> Result<&'b [u8], RecordError> {
        let length = self.u32()?;
        self.take(length as usize)
    }

    pub(super) fn comm(&mut self) -> Result<&'b [u8], RecordError> {
        self.name(16)
    }

    /// Text in a field of this size, up to its zero byte.
    pub(super) fn name(&mut self, bytes: usize) -> Result<&'b [u8], RecordError> {
        let name = self.take(bytes)?;
        let end = name.iter().position(|byte| *byte == 0);
        Ok(&name[..end.unwrap_or(name.len())])
    }
}
