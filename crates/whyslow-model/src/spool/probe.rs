//! Hits of user-defined probes (function calls and USDT probes), as the BPF programs record them,
//! and the recorder's declaration of each probe.

use super::record::{Cursor, RecordError};
use crate::probe::{ArgType, FUNCTION_ARGS, TEXTS, USDT_ARGS};

/// Maximum size of a recorded text, including its zero byte.
pub const TEXT_BYTES: usize = 256;

/// Entry to a probed function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionRecord<'b> {
    /// Stack pointer at entry.
    pub sp: u64,
    /// Number of the probe.
    pub probe: u32,
    /// Argument registers; the types of its [`ProbeRecord`] define which of them are used.
    pub args: [u64; FUNCTION_ARGS],
    /// Texts that arguments point to; `None` if none was requested or it could not be read.
    pub texts: [Option<&'b [u8]>; TEXTS],
}

/// Return from a probed function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionEndRecord {
    /// Stack pointer at entry.
    pub sp: u64,
    /// Number of the probe.
    pub probe: u32,
    /// Register of the return value.
    pub ret: u64,
}

/// Hit of a USDT probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsdtRecord<'b> {
    /// Number of the probe.
    pub probe: u32,
    /// Argument values; the types of its [`ProbeRecord`] define which of them are used.
    pub args: [u64; USDT_ARGS],
    /// Texts that arguments point to; `None` if none was requested or it could not be read.
    pub texts: [Option<&'b [u8]>; TEXTS],
}

/// Declaration of a probe. It precedes all hits of the probe, and is repeated in each spool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeRecord<'b> {
    /// Number of the probe.
    pub probe: u32,
    /// Provider of a USDT probe; empty for a function.
    pub provider: &'b [u8],
    /// Name of the function or of the USDT probe.
    pub name: &'b [u8],
    /// File that contains it.
    pub module: &'b [u8],
    /// Type numbers ([`ArgType`]): of the return value (0 without one), then of the arguments.
    pub types: &'b [u8],
}

impl ProbeRecord<'_> {
    /// Type of the return value; `None` if it is not recorded.
    pub fn returns(&self) -> Option<ArgType> {
        self.types.first().copied().and_then(ArgType::by_number)
    }

    /// Types of the arguments in order; `None` for types of a later version.
    pub fn args(&self) -> impl Iterator<Item = Option<ArgType>> {
        let types = self.types.iter().skip(1);
        types.map(|number| ArgType::by_number(*number))
    }
}

impl<'b> FunctionRecord<'b> {
    pub(super) fn take(at: &mut Cursor<'b>) -> Result<Self, RecordError> {
        let (sp, probe, has) = (at.u64()?, at.u32()?, at.u32()?);
        Ok(Self {
            sp,
            probe,
            args: numbers(at)?,
            texts: texts(at, has)?,
        })
    }
}

impl FunctionEndRecord {
    pub(super) fn take(at: &mut Cursor<'_>) -> Result<Self, RecordError> {
        let (sp, probe, _) = (at.u64()?, at.u32()?, at.u32()?);
        Ok(Self {
            sp,
            probe,
            ret: at.u64()?,
        })
    }
}

impl<'b> UsdtRecord<'b> {
    pub(super) fn take(at: &mut Cursor<'b>) -> Result<Self, RecordError> {
        let (probe, has) = (at.u32()?, at.u32()?);
        Ok(Self {
            probe,
            args: numbers(at)?,
            texts: texts(at, has)?,
        })
    }
}

impl<'b> ProbeRecord<'b> {
    pub(super) fn take(at: &mut Cursor<'b>) -> Result<Self, RecordError> {
        Ok(Self {
            probe: at.u32()?,
            provider: at.text()?,
            name: at.text()?,
            module: at.text()?,
            types: at.text()?,
        })
    }
}

fn numbers<const N: usize>(at: &mut Cursor<'_>) -> Result<[u64; N], RecordError> {
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = at.u64()?;
    }
    Ok(numbers)
}

/// Each text has its own field if any were requested; `has` flags those that could be read.
fn texts<'b>(at: &mut Cursor<'b>, has: u32) -> Result<[Option<&'b [u8]>; TEXTS], RecordError> {
    let mut texts = [None; TEXTS];
    for (place, text) in texts.iter_mut().enumerate() {
        if has >> place & 1 == 1 {
            let rest = at.rest.get(place * TEXT_BYTES..);
            let room = rest.and_then(|rest| rest.get(..TEXT_BYTES));
            let room = room.ok_or(RecordError::Short(at.kind))?;
            let end = room.iter().position(|byte| *byte == 0);
            *text = Some(&room[..end.unwrap_or(TEXT_BYTES)]);
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::super::{Encoder, Kind, Record, records};
    use super::*;

    #[test]
    fn calls_are_read_as_they_were_written() {
        let mut encoder = Encoder::default();
        let record = encoder.begin(Kind::FunctionBegin, 5, (10, 11));
        record.u64(0x7ff0).u32(3).u32(0b10);
        for arg in 1..=6 {
            record.u64(arg);
        }
        let mut room = [b'x'; 2 * TEXT_BYTES];
        room[TEXT_BYTES..TEXT_BYTES + 5].copy_from_slice(b"path\0");
        for word in room.chunks_exact(8) {
            record.u64(u64::from_le_bytes(word.try_into().unwrap()));
        }
        record.end();
        encoder
            .begin(Kind::FunctionEnd, 6, (10, 11))
            .u64(0x7ff0)
            .u32(3)
            .u32(0)
            .u64(u64::MAX)
            .end();
        let found: Vec<_> = records(encoder.payload()).collect();
        let [
            (0, Ok((_, Record::Function(call)))),
            (_, Ok((_, Record::FunctionEnd(end)))),
        ] = found.as_slice()
        else {
            panic!("{found:?}");
        };
        let expected = FunctionRecord {
            sp: 0x7ff0,
            probe: 3,
            args: [1, 2, 3, 4, 5, 6],
            texts: [None, Some(b"path")],
        };
        assert_eq!(*call, expected);
        assert_eq!((end.sp, end.probe, end.ret), (0x7ff0, 3, u64::MAX));
    }

    #[test]
    fn a_text_that_is_not_there_is_damage() {
        let mut encoder = Encoder::default();
        let record = encoder.begin(Kind::Usdt, 5, (10, 11));
        record.u32(3).u32(1);
        for arg in 0..USDT_ARGS as u64 {
            record.u64(arg);
        }
        record.end();
        let found: Vec<_> = records(encoder.payload()).collect();
        assert!(
            matches!(found.as_slice(), [(0, Err(RecordError::Short(_)))]),
            "{found:?}"
        );
    }

    #[test]
    fn types_that_are_not_known_are_none() {
        let probe = ProbeRecord {
            probe: 0,
            provider: b"",
            name: b"f",
            module: b"/bin/x",
            types: &[0, 5, 200, 10],
        };
        let args: Vec<_> = probe.args().collect();
        assert_eq!(probe.returns(), None);
        assert_eq!(args, [Some(ArgType::I32), None, Some(ArgType::Text)]);
    }
}
