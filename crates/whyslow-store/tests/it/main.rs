//! Recordings written and read: what comes back, what is read of it, and what damage does.

mod damage;
mod less_read;
mod other_readers;
mod round_trip;
mod single_rows;
mod support;
mod write;
