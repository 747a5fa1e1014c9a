//! The tile file.
//!
//! | part | content |
//! |---|---|
//! | magic | the eight bytes `WSLTILE1` |
//! | pages | each: uncompressed size (4), CRC-32 of size and data (4), data: zstd-compressed blocks of items |
//! | index of each lane | where its blocks are stored, coarsest level first; CRC-32 (4) |
//! | series | compressed columns of each series; CRC-32 (4) |
//! | directory | tracks, their lanes, and the location of each index; CRC-32 (4) |
//! | end | offset (8) and size (8) of the directory, CRC-32 of both (4), magic |
//!
//! Fixed-size integers are little-endian; most integers are varints ([`columns`]). Pages are
//! written once they are full, so that a build only needs memory for unfinished ones. A reader
//! keeps the directory in memory; it reads the index and the blocks of a lane for every tile, and
//! relies on the page cache.

pub(crate) mod block;
pub(crate) mod columns;
pub(crate) mod directory;
pub(crate) mod index;
pub(crate) mod pages;
pub(crate) mod reader;

pub(crate) const MAGIC: &[u8; 8] = b"WSLTILE1";
pub(crate) const FILE_NAME: &str = "tiles";
