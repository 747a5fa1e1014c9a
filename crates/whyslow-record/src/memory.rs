//! How much memory recording takes at most, in this program and in the kernel, and what for.
//!
//! What is kept counts twice: while it is being saved, as much again is kept beside it.

use crate::load;
use crate::options::{BUFFER_BYTES, KEPT_BYTES};

/// The program itself: its code, tables of names of functions, blocks and snapshots on their way, and
/// what its programs in the kernel keep beside the buffer.
pub const PROGRAM_BYTES: u64 = 64 << 20;
/// Less is of no use: the kernel's buffer is overrun by a second of a quiet machine, …
const BUFFER_BYTES_MIN: u64 = 1 << 20;
/// … and what is kept holds little more than the snapshot it begins with.
pub(crate) const KEPT_BYTES_MIN: u64 = 4 << 20;

/// What somebody asks for; nothing where the rest decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryWish {
    /// For everything.
    pub max: Option<u64>,
    /// For events on their way, all CPUs together.
    pub buffer: Option<u64>,
    /// For what a flight recorder keeps, compressed.
    pub kept: Option<u64>,
    /// A flight recorder keeps something at all.
    pub is_flight: bool,
}

/// In bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Everything together: the program, the buffer, and twice what is kept.
    pub max: u64,
    /// For events on their way.
    pub buffer: u64,
    /// For what a flight recorder keeps.
    pub kept: u64,
}

/// It takes so much at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLittleMemory {
    /// Least [`MemoryWish::max`] that goes with the rest of the wish, in bytes.
    pub least: u64,
}

impl Memory {
    /// What there may be is shared out among what was not asked for.
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
        // A recorder that keeps nothing has no other use for what is left.
        let room = max - PROGRAM_BYTES - 2 * kept_min;
        let share = if wish.is_flight { room / 4 } else { room };
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
