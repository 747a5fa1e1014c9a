//! Records of what threads did by the clock on the wall, whether they ran or not.

use super::cursor::Cursor;
use super::record::{Kind, Record, RecordError};
use super::stack::{Addresses, addresses};

/// Numbers from here on stand for functions that a [`CodeRecord`] tells: no program has such
/// addresses, nor has the kernel.
pub const NO_ADDRESS: u64 = 1 << 60;
/// Numbers end before this one.
pub const NO_ADDRESS_END: u64 = NO_ADDRESS + (1 << 32);

/// How far the program's part of a stack could be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum WallEnd {
    /// To where it begins.
    Whole = 0,
    /// Not so far.
    Cut = 1,
    /// The thread ran while it was read, so nothing is told.
    Torn = 2,
    /// It could not be read, or not in time.
    Unread = 3,
    /// There is none: a thread of the kernel.
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

/// What the head's thread did up to the head's moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WallRecord<'b> {
    /// Beginning of the time that this is about; the head has its end.
    pub since: u64,
    /// As in a switch; [`Self::ON_CPU`] if it ran.
    pub state: u32,
    /// Looks that found it so.
    pub credits: u32,
    /// System call that it was in, by the table that the head tells.
    pub nr: Option<u32>,
    /// How far the program's part of the stack could be followed.
    pub end: WallEnd,
    /// The head's CPU is that on which it ran.
    pub has_cpu: bool,
    /// Addresses in the kernel.
    pub kernel: Addresses<'b>,
    /// Addresses of the program, and numbers from [`NO_ADDRESS`] on.
    pub user: Addresses<'b>,
}

impl WallRecord<'_> {
    /// Value of `state`: the thread was on a CPU.
    pub const ON_CPU: u32 = 1 << 30;
}

/// A round of looks at all threads, which ended at the head's moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundRecord {
    /// When the round began, CLOCK_MONOTONIC in ns.
    pub begun: u64,
    /// Number of the round; they count up.
    pub number: u32,
    /// Rounds before it that were due, and not made.
    pub missed: u32,
}

/// What a function is of that has no address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum CodeKind {
    /// The kernel: `/proc/PID/stack` shows names of functions without addresses.
    Kernel = 0,
    /// A language with a runtime of its own.
    Managed = 1,
}

/// A function that has a number instead of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeRecord<'b> {
    /// Number that stacks use, from [`NO_ADDRESS`] on.
    pub number: u64,
    /// What kind of code.
    pub kind: CodeKind,
    /// Line in the source file; `None` if it is not known.
    pub line: Option<i32>,
    /// Name of the function.
    pub function: &'b [u8],
    /// Source file; empty if it is not known.
    pub file: &'b [u8],
}

/// A look, a round of them, or frames of a runtime.
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

    fn told() -> Encoder {
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
        let encoder = told();
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
        let whole = told();
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
