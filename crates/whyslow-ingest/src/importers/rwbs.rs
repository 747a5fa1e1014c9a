//! Direction and kind of block I/O as in the kernel's `rwbs`, in two encodings.
//!
//! Text, as the kernel prints it: a leading `F` for a preflush, then the operation (`R`, `W`, `D`
//! discard, `DE` secure erase, `F` flush, `N` none), then any of `F` (FUA, forced unit access), `A`
//! (read-ahead), `S` (sync), `M` (metadata).
//!
//! Mask, LTTng's own numbering of the same: the constants below. Before Linux 4.8 a flush was a
//! flag of a write: `WRITE | FLUSH` with sectors is a write with a preflush, without sectors it is
//! a flush.

use whyslow_model::event::{BlockFlags, BlockOp};

const WRITE: u64 = 1;
const DISCARD: u64 = 1 << 1;
const READ: u64 = 1 << 2;
const READ_AHEAD: u64 = 1 << 3;
const SYNC: u64 = 1 << 5;
const META: u64 = 1 << 6;
const SECURE: u64 = 1 << 7;
const FLUSH: u64 = 1 << 8;
const FUA: u64 = 1 << 9;
const PREFLUSH: u64 = 1 << 10;

/// Decodes LTTng's `rwbs` mask. `sectors` distinguishes a flush from a write with a preflush in
/// traces of old kernels.
pub fn from_mask(mask: u64, sectors: i64) -> BlockFlags {
    let has = |bit| mask & bit != 0;
    let flushes = has(FLUSH) || has(PREFLUSH);
    let op = if has(DISCARD) || has(SECURE) {
        BlockOp::Discard
    } else if flushes && (sectors == 0 || !(has(WRITE) || has(READ))) {
        BlockOp::Flush
    } else if has(WRITE) {
        BlockOp::Write
    } else if has(READ) {
        BlockOp::Read
    } else {
        BlockOp::Other
    };
    BlockFlags {
        op,
        sync: has(SYNC),
        meta: has(META),
        ahead: has(READ_AHEAD),
        fua: has(FUA),
        preflush: flushes && op != BlockOp::Flush,
        secure: has(SECURE),
    }
}

/// Unknown letters are ignored: later kernels may add some.
pub fn from_text(text: &[u8], sectors: i64) -> BlockFlags {
    let (flush_before, rest) = match text {
        [b'F', rest @ ..] if rest.first().is_some_and(|op| b"RWDFN".contains(op)) => (true, rest),
        _ => (false, text),
    };
    let (op, flags) = match rest {
        [b'R', flags @ ..] => (BlockOp::Read, flags),
        [b'W', flags @ ..] if flush_before && sectors == 0 => (BlockOp::Flush, flags),
        [b'W', flags @ ..] => (BlockOp::Write, flags),
        [b'D', flags @ ..] => (BlockOp::Discard, flags),
        [b'F', flags @ ..] => (BlockOp::Flush, flags),
        [b'N', flags @ ..] => (BlockOp::Other, flags),
        flags => (BlockOp::Other, flags),
    };
    BlockFlags {
        op,
        sync: flags.contains(&b'S'),
        meta: flags.contains(&b'M'),
        ahead: flags.contains(&b'A'),
        fua: flags.contains(&b'F'),
        preflush: flush_before && op != BlockOp::Flush,
        secure: flags.contains(&b'E'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_read_as_the_kernel_prints_them() {
        let check = |mask, sectors, text| {
            assert_eq!(
                from_mask(mask, sectors).letters(),
                text,
                "{mask} × {sectors}"
            );
        };
        check(1, 8, "W");
        check(4, 8, "R");
        check(12, 256, "RA");
        check(68, 8, "RM");
        check(97, 8, "WSM");
        check(33, 8, "WS");
        // a journal commit block: preflush and FUA
        check(1633, 8, "FWFSM");
        check(801, 8, "FWFS");
        check(1280, 0, "F");
        check(289, 0, "FS");
        check(1057, 0, "FS");
        check(2, 2048, "D");
        check(130, 2048, "DE");
        check(0, 0, "N");
    }

    #[test]
    fn texts_read_back_as_written() {
        for text in [
            "R", "RA", "W", "WS", "WSM", "FWFS", "FWFSM", "D", "DE", "F", "FS", "N", "RM",
        ] {
            assert_eq!(from_text(text.as_bytes(), 8).letters(), text);
        }
        assert_eq!(from_text(b"FF", 0).op, BlockOp::Flush);
        assert_eq!(from_text(b"FWS", 0).op, BlockOp::Flush);
    }
}
