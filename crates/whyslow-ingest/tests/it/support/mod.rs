//! Shared by tests of several formats.

pub(crate) mod ctf2;
pub(crate) mod show;
pub(crate) mod stream_writer;
pub(crate) mod traces;
pub(crate) mod zlib_dat;
