//! Writes and reads recordings: round trips, partial reads, and damage.

mod damage;
mod former_versions;
mod less_read;
mod other_readers;
mod round_trip;
mod single_rows;
mod support;
mod write;
