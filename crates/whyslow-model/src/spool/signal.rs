//! Signals and interrupts.

use super::record::{Cursor, Kind, Record, RecordError};
use crate::event::Signal;

pub(super) fn signal(at: &mut Cursor<'_>) -> Result<Signal, RecordError> {
    Ok(Signal {
        number: at.i32()?,
        code: at.i32()?,
        tid: at.i32()?,
        pid: at.i32()?,
        result: at.u32()?,
        is_group: at.u32()? != 0,
        has_handler: at.u32()? != 0,
    })
}

pub(super) fn irq<'b>(kind: Kind, at: &mut Cursor<'b>) -> Result<Record<'b>, RecordError> {
    let (nr, ret, irq_kind) = (at.u32()?, at.i32()?, at.u32()?);
    Ok(match kind {
        Kind::IrqEnter => Record::IrqEnter { kind: irq_kind, nr },
        Kind::IrqExit => Record::IrqExit {
            kind: irq_kind,
            nr,
            ret,
        },
        _ => Record::SoftirqRaise { nr },
    })
}
