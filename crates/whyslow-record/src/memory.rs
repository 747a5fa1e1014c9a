//! Upper bound of the memory that recording uses, in this process and in the kernel.
//!
//! Kept records count twice: while a window is saved, as much again is kept.

use crate::load;
use crate::options::{BUFFER_BYTES, KEPT_BYTES};

/// The program itself: its code, symbol tables, pending blocks and snapshots, and the BPF maps
/// other than the ring buffers.
pub const PROGRAM_BYTES: u64 = 64 << 20;
/// Smaller values are useless: an idle machine overruns the ring buffers within a second, …
const BUFFER_BYTES_MIN: u64 = 1 << 20;
/// … and a chapter holds little more than its snapshot.
pub(crate) const KEPT_BYTES_MIN: u64 = 4 << 20;

/// Limits set by the user; `None` where the rest decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryWish {
    /// Total.
    pub max: Option<u64>,
    /// Ring buffers of all CPUs together.
    pub buffer: Option<u64>,
    /// Kept records of a flight recorder, compressed.
    pub kept: Option<u64>,
    /// Whether this is a flight recorder, which keeps records in memory.
    pub is_flight: bool,
}

/// Memory budget in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Total: the program, the ring buffers, and twice the kept records.
    pub max: u64,
    /// Ring buffers.
    pub buffer: u64,
    /// Kept records of a flight recorder.
    pub kept: u64,
}

/// The limit is too small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLittleMemory {
    /// Smallest [`MemoryWish::max`] that satisfies the other limits, in bytes.
    pub least: u64,
}

impl Memory {
    /// Divides the total among the parts without a limit of their own.
    pub fn share(wish: &MemoryWish) -> Result<Self, TooLittleMemory> {
        Self::share_on(wish, load::ring_count())
    }

    fn share_on(wish: &MemoryWish, rings: u64) -> Result<Self, TooLittleMemory> {
        let rounded = |buffer: u64| rings * load::ring_bytes(buffer, rings);
        let kept_of = |kept: u64| if wish.is_flight { kept } else { 0 };
        let Some(max) = wish.max else {
            let buffer = rounded(wish.buffer.unwrap_or(BUFFER_BYTES));
            let kept = kept_of(wish.kept.unwrap_or(KEPT_BYTES));
            let max = kept.saturating_mul(2).saturating_add(PROGRAM_BYTES);
            return Ok(Self {
                max: max.saturating_add(buffer),
                buffer,
                kept,
            });
        };
        let buffer_min = rounded(wish.buffer.unwrap_or(BUFFER_BYTES_MIN));
        let kept_min = kept_of(wish.kept.unwrap_or(KEPT_BYTES_MIN));
        let least = kept_min
            .saturating_mul(2)
            .saturating_add(PROGRAM_BYTES + buffer_min);
        if max < least {
            return Err(TooLittleMemory { least });
        }
        // Without kept records all of the rest is for the ring buffers.
        let rest = max - PROGRAM_BYTES - 2 * kept_min;
        let share = if wish.is_flight { rest / 4 } else { rest };
        let mut buffer = buffer_min;
        while wish.buffer.is_none() && buffer * 2 <= share.min(rounded(BUFFER_BYTES)) {
            buffer *= 2;
        }
        let left = (max - PROGRAM_BYTES - buffer) / 2;
        Ok(Self {
            max,
            buffer,
            kept: kept_of(wish.kept.unwrap_or(left)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn share(wish: MemoryWish) -> Result<(u64, u64, u64), u64> {
        let in_mib = |memory: Memory| (memory.max / MIB, memory.buffer / MIB, memory.kept / MIB);
        let shared = Memory::share_on(&wish, 2);
        shared.map(in_mib).map_err(|little| little.least / MIB)
    }

    #[test]
    fn the_parts_make_the_whole() {
        let flight = MemoryWish {
            is_flight: true,
            ..MemoryWish::default()
        };
        assert_eq!(share(MemoryWish::default()), Ok((128, 64, 0)));
        assert_eq!(share(flight), Ok((64 + 64 + 512, 64, 256)));
        let some = MemoryWish {
            buffer: Some(3 * MIB),
            kept: Some(10 * MIB),
            ..flight
        };
        assert_eq!(share(some), Ok((64 + 4 + 20, 4, 10)));
    }

    #[test]
    fn what_there_may_be_is_shared_out() {
        let of = |max: u64, is_flight| MemoryWish {
            max: Some(max * MIB),
            is_flight,
            ..MemoryWish::default()
        };
        assert_eq!(share(of(65, false)), Ok((65, 1, 0)));
        assert_eq!(share(of(86, false)), Ok((86, 16, 0)));
        assert_eq!(share(of(4000, false)), Ok((4000, 64, 0)));
        assert_eq!(share(of(73, true)), Ok((73, 1, 4)));
        assert_eq!(share(of(144, true)), Ok((144, 16, 32)));
        assert_eq!(share(of(1024, true)), Ok((1024, 64, 448)));
        for max in 73..1500 {
            let memory = Memory::share_on(&of(max, true), 2).expect("it is enough");
            assert!(PROGRAM_BYTES + memory.buffer + 2 * memory.kept <= memory.max);
        }
    }

    #[test]
    fn too_little_tells_the_least() {
        let wish = MemoryWish {
            max: Some(20 * MIB),
            ..MemoryWish::default()
        };
        assert_eq!(share(wish), Err(65));
        let is_flight = true;
        assert_eq!(share(MemoryWish { is_flight, ..wish }), Err(73));
        let wish = MemoryWish {
            buffer: Some(30 * MIB),
            kept: Some(u64::MAX),
            is_flight,
            ..wish
        };
        assert_eq!(share(wish), Err(u64::MAX / MIB));
        let wish = MemoryWish {
            kept: Some(100 * MIB),
            ..wish
        };
        assert_eq!(share(wish), Err(64 + 32 + 200));
    }
}
