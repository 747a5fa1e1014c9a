//! Records of the wall-clock sampler, which samples threads on and off CPU.

use super::cursor::Cursor;
use super::record::{Kind, Record, RecordError};
use super::stack::{Addresses, addresses};

/// Numbers from here on stand for functions declared by a [`CodeRecord`]: neither programs nor the
/// kernel use such addresses.
pub const NO_ADDRESS: u64 = 1 << 60;
/// End of these numbers, exclusive.
pub const NO_ADDRESS_END: u64 = NO_ADDRESS + (1 << 32);

/// How far the user stack was unwound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum WallEnd {
    /// To its outermost frame.
    Whole = 0,
    /// Not to its outermost frame.
    Cut = 1,
    /// The thread ran while its stack was read, so the stack is omitted.
    Torn = 2,
    /// It could not be read, or not in time.
    Unread = 3,
    /// There is none: a kernel thread.
    None = 4,
}

impl WallEnd {
    fn of(number: u16) -> Self {
        match number {
            0 => Self::Whole,
            1 => Self::Cut,
            2 => Self::Torn,
            4 => Self::None,
            _ => Self::Unread,
        }
    }
}

/// Activity of the head's thread up to the time in the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WallRecord<'b> {
    /// Start of the period; the head contains its end.
    pub since: u64,
    /// State as in a switch record; [`Self::ON_CPU`] if it ran.
    pub state: u32,
    /// Samples that found this state.
    pub credits: u32,
    /// System call of the thread, in the table selected by the head.
    pub nr: Option<u32>,
    /// How far the user stack was unwound.
    pub end: WallEnd,
    /// The head's CPU is the one that the thread ran on.
    pub has_cpu: bool,
    /// Kernel addresses.
    pub kernel: Addresses<'b>,
    /// User addresses, and numbers from [`NO_ADDRESS`] upwards.
    pub user: Addresses<'b>,
}

impl WallRecord<'_> {
    /// Value of `state`: the thread was on a CPU.
    pub const ON_CPU: u32 = 1 << 30;
}

/// A round of samples of all threads, which ended at the time in the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundRecord {
    /// Start of the round, CLOCK_MONOTONIC in ns.
    pub begun: u64,
    /// Number of the round, ascending.
    pub number: u32,
    /// Preceding rounds that were due but skipped.
    pub missed: u32,
}

/// Kinds of functions without an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum CodeKind {
    /// Kernel: `/proc/PID/stack` shows function names without addresses.
    Kernel = 0,
    /// Code of a language with its own runtime.
    Managed = 1,
}

/// A function that has a number instead of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeRecord<'b> {
    /// Number used in stacks, from [`NO_ADDRESS`] upwards.
    pub number: u64,
    /// Kind of code.
    pub kind: CodeKind,
    /// Line in the source file; `None` if unknown.
    pub line: Option<i32>,
    /// Name of the function.
    pub function: &'b [u8],
    /// Source file; empty if unknown.
    pub file: &'b [u8],
}

/// Parses a sample, the end of a round, or the declaration of a function without an address.
pub(super) fn record<'b>(kind: Kind, at: &mut Cursor<'b>) -> Result<Record<'b>, RecordError> {
    Ok(match kind {
        Kind::Round => Record::Round(round(at)?),
        Kind::Code => Record::Code(code(at)?),
        _ => Record::Wall(wall(at)?),
    })
}

pub(super) fn wall<'b>(at: &mut Cursor<'b>) -> Result<WallRecord<'b>, RecordError> {
    let (since, state, credits, nr) = (at.u64()?, at.u32()?, at.u32()?, at.i32()?);
    let (end, has_cpu) = (at.u16()?, at.u16()?);
    let (kernel, user) = (at.u16()?, at.u16()?);
    at.u32()?;
    Ok(WallRecord {
        since,
        state,
        credits,
        nr: u32::try_from(nr).ok(),
        end: WallEnd::of(end),
        has_cpu: has_cpu != 0,
        kernel: addresses(at, kernel.into())?,
        user: addresses(at, user.into())?,
    })
}

pub(super) fn round(at: &mut Cursor<'_>) -> Result<RoundRecord, RecordError> {
    Ok(RoundRecord {
        begun: at.u64()?,
        number: at.u32()?,
        missed: at.u32()?,
    })
}

pub(super) fn code<'b>(at: &mut Cursor<'b>) -> Result<CodeRecord<'b>, RecordError> {
    let number = at.u64()?;
    let kind = match at.u32()? {
        0 => CodeKind::Kernel,
        1 => CodeKind::Managed,
        _ => return Err(RecordError::Short(Kind::Code)),
    };
    let line = at.i32()?;
    Ok(CodeRecord {
        number,
        kind,
        line: (line >= 0).then_some(line),
        function: at.text()?,
        file: at.text()?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Encoder, Record, records};
    use super::*;

    fn encoded() -> Encoder {
        let mut encoder = Encoder::default();
        let record = encoder.begin_on(Kind::Wall, 90, (3, 4), (1, 0));
        record.u64(40).u32(2).u32(5).u32(-1_i32 as u32);
        record.u16(1).u16(0).u16(2).u16(1).u32(0);
        record.u64(7).u64(8).u64(NO_ADDRESS + 1).end();
        encoder
            .begin(Kind::Round, 91, (0, 0))
            .u64(90)
            .u32(6)
            .u32(7)
            .end();
        let code = encoder.begin(Kind::Code, 0, (0, 0)).u64(NO_ADDRESS + 1);
        code.u32(1).u32(12).text(b"f").text(b"a.py").end();
        encoder
    }

    #[test]
    fn what_was_told_is_read() {
        let encoder = encoded();
        let found: Vec<_> = records(encoder.payload()).map(|(_, found)| found).collect();
        let [
            Ok((head, Record::Wall(wall))),
            Ok((_, Record::Round(round))),
            Ok((_, Record::Code(code))),
        ] = found.as_slice()
        else {
            panic!("{found:?}");
        };
        assert_eq!(
            (head.ts, wall.since, wall.state, wall.credits),
            (90, 40, 2, 5)
        );
        assert_eq!(
            (wall.nr, wall.end, wall.has_cpu),
            (None, WallEnd::Cut, false)
        );
        assert_eq!(wall.kernel.iter().collect::<Vec<_>>(), [7, 8]);
        assert_eq!(wall.user.iter().collect::<Vec<_>>(), [NO_ADDRESS + 1]);
        assert_eq!((round.begun, round.number, round.missed), (90, 6, 7));
        assert_eq!(
            (code.kind, code.line, code.function),
            (CodeKind::Managed, Some(12), &b"f"[..])
        );
    }

    #[test]
    fn records_that_are_damaged_are_told_or_read_otherwise() {
        let whole = encoded();
        let whole = whole.payload();
        for length in 0..whole.len() {
            assert!(records(&whole[..length]).count() <= 3);
        }
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            for (_, record) in records(&bytes) {
                if let Ok((_, Record::Wall(wall))) = record {
                    assert!(wall.kernel.iter().count() + wall.user.iter().count() <= 3);
                }
            }
        }
    }
}
