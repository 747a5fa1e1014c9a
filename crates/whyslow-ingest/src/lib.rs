//! From the files of other tools to a recording: detect, read, order, track, write.

pub mod archive;
pub mod importers;
pub mod trackers;
