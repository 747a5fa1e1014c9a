//! Reads fields of a kernel record without parsing the rest.

use whyslow_model::spool::HEAD_BYTES;

/// Missing fields are 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Raw<'r>(pub(crate) &'r [u8]);

impl Raw<'_> {
    fn number<const N: usize>(self, at: usize) -> [u8; N] {
        let bytes = self.0.get(at..at + N);
        bytes
            .and_then(|bytes| bytes.try_into().ok())
            .unwrap_or([0; N])
    }

    pub(crate) fn kind(self) -> u16 {
        u16::from_le_bytes(self.number(0))
    }

    pub(crate) fn flags(self) -> u16 {
        u16::from_le_bytes(self.number(6))
    }

    pub(crate) fn ts(self) -> u64 {
        u64::from_le_bytes(self.number(8))
    }

    pub(crate) fn tid(self) -> i32 {
        i32::from_le_bytes(self.number(16))
    }

    pub(crate) fn pid(self) -> i32 {
        i32::from_le_bytes(self.number(20))
    }

    /// A field after the head.
    pub(crate) fn u32(self, at: usize) -> u32 {
        u32::from_le_bytes(self.number(HEAD_BYTES + at))
    }

    pub(crate) fn u64(self, at: usize) -> u64 {
        u64::from_le_bytes(self.number(HEAD_BYTES + at))
    }

    pub(crate) fn i32(self, at: usize) -> i32 {
        self.u32(at) as i32
    }

    /// Entry time of a call.
    pub(crate) fn entered(self) -> u64 {
        self.u64(0)
    }

    /// Host of a DNS lookup.
    pub(crate) fn host(&self) -> &[u8] {
        let host = self.0.get(HEAD_BYTES + 32..).unwrap_or(&[]);
        let end = host.iter().take(256).position(|byte| *byte == 0);
        &host[..end.unwrap_or(host.len().min(256))]
    }

    /// Name in a record of a thread that starts, exits or is renamed.
    pub(crate) fn comm(&self) -> &[u8] {
        let comm = self.0.get(HEAD_BYTES + 8..HEAD_BYTES + 24).unwrap_or(&[]);
        let end = comm.iter().position(|byte| *byte == 0);
        &comm[..end.unwrap_or(comm.len())]
    }
}
