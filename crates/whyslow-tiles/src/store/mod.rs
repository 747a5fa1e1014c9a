//! The file that tiles lie in.
//!
//! | part | content |
//! |---|---|
//! | magic | the eight bytes `WSLTILE1` |
//! | pages | each: bytes when unpacked (4), CRC-32 of what follows (4), zstd; unpacked, blocks of items |
//! | index of each lane | where its blocks lie, those of the coarsest scale first; CRC-32 (4) |
//! | series | |
//! | directory | tracks, their lanes, and where their indexes lie; CRC-32 (4) |
//! | end | where the directory begins (8) and its length (8), CRC-32 of both (4), magic |
//!
//! Integers are little-endian; most are of seven bits a byte ([`columns`]). Pages come as they are
//! full, so that a build needs no more memory than what is not full yet. A reader holds the
//! directory; it reads the index of a lane and the blocks it needs with every tile, and leaves it
//! to the system to keep what is used often.

pub(crate) mod block;
pub(crate) mod columns;
pub(crate) mod directory;
pub(crate) mod index;
pub(crate) mod pages;
pub(crate) mod reader;

pub(crate) const MAGIC: &[u8; 8] = b"WSLTILE1";
pub(crate) const FILE_NAME: &str = "tiles";
