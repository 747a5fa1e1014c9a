//! Block I/O, as the BPF programs record it.

use super::record::{Cursor, RecordError};

/// Payload of the kinds from `BioQueue` to `RqComplete`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockIo {
    /// The kernel's `dev_t`, with 20 bits for the minor number.
    pub dev: u32,
    /// Length in bytes; 0 for a flush.
    pub bytes: u32,
    /// First 512-byte sector on `dev`.
    pub sector: u64,
    /// Operation and flags: the constants of this type.
    pub rwbs: u32,
    /// Result of a completion, in the kernel's form: see [`BlockIo::errno`].
    pub error: i32,
    /// For a remap the original sector; for a split the first sector of the rest.
    pub old_sector: u64,
    /// For a remap the original device, in the form of `dev`.
    pub old_dev: u32,
}

impl BlockIo {
    /// Mask of the operation: 0 read, 1 write, 2 flush, 3 discard, 4 other.
    pub const OP: u32 = 0xff;
    /// `REQ_SYNC`.
    pub const SYNC: u32 = 1 << 8;
    /// `REQ_META`.
    pub const META: u32 = 1 << 9;
    /// `REQ_RAHEAD`.
    pub const AHEAD: u32 = 1 << 10;
    /// `REQ_FUA`.
    pub const FUA: u32 = 1 << 11;
    /// `REQ_PREFLUSH`.
    pub const PREFLUSH: u32 = 1 << 12;
    /// The discard is a secure erase.
    pub const SECURE: u32 = 1 << 13;

    /// Converts a `blk_status_t` to an errno; older kernels report a negative errno.
    pub fn errno(status: i32) -> i32 {
        match status {
            0 => 0,
            1 => 95,
            2 => 110,
            3 => 28,
            4 => 67,
            5 => 121,
            6 => 52,
            7 => 61,
            8 => 84,
            9 => 12,
            status if status < 0 => -status,
            _ => 5,
        }
    }

    pub(super) fn take(at: &mut Cursor<'_>) -> Result<Self, RecordError> {
        Ok(Self {
            dev: at.u32()?,
            bytes: at.u32()?,
            sector: at.u64()?,
            rwbs: at.u32()?,
            error: at.i32()?,
            old_sector: at.u64()?,
            old_dev: at.u32()?,
        })
    }
}
