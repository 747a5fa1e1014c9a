//! Times, lengths of time, sizes and windows as people write and read them.

mod duration;
mod fraction;
mod moment;
mod size;
mod window;
mod zone;

pub(crate) use duration::{parse_duration, parse_seconds_or_duration};
pub(crate) use moment::Moment;
pub(crate) use size::parse_size;
pub(crate) use window::{OperationRef, WindowText};
pub(crate) use zone::Zone;

use whyslow_model::Ns;

/// First and last time of a recording and its zone: what relative and partial times refer to.
#[derive(Debug, Clone)]
pub(crate) struct Calendar {
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    pub(crate) zone: Zone,
}
