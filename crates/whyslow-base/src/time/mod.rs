//! Times, durations, sizes and windows as users write and read them.

mod calendar;
mod duration;
mod fraction;
mod moment;
mod size;
mod window;
mod zone;

pub use calendar::Calendar;
pub use duration::{parse_duration, parse_seconds_or_duration};
pub use moment::Moment;
pub use size::parse_size;
pub use window::{OperationRef, WindowText, parse_length};
pub use zone::Zone;
