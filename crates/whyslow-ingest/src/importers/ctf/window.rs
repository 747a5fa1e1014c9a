//! The part of a stream file that is in memory.
//!
//! Files are read by `pread` in blocks: a file that is cut short under us is an early end, not a
//! signal. The file is opened for each block, so that a trace of thousands of streams needs no
//! thousands of open files; a block is large enough that this costs nothing.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::decode::PADDING_BYTES;
use super::plan::MAX_ALIGNMENT_BITS;

/// An event larger than this is not decoded.
pub(super) const WINDOW_BYTES_MAX: usize = 16 << 20;

/// Bytes `begin..begin + len` of a file, and padding.
#[derive(Debug)]
pub(super) struct Window {
    path: PathBuf,
    begin: u64,
    len: usize,
    /// Not made smaller: what the window does not hold of it is left over from before.
    bytes: Vec<u8>,
}

impl Window {
    pub(super) fn new(path: &Path) -> Window {
        Window {
            path: path.to_owned(),
            begin: 0,
            len: 0,
            bytes: vec![0; PADDING_BYTES],
        }
    }

    /// From now on of this file.
    pub(super) fn open(&mut self, path: &Path) {
        path.clone_into(&mut self.path);
        self.len = 0;
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Byte of the file where the window begins.
    pub(super) fn begin(&self) -> u64 {
        self.begin
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// With the padding.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len + PADDING_BYTES]
    }

    /// Fills the window with `len` bytes from `begin`, fewer if the file ends there.
    pub(super) fn fill(&mut self, begin: u64, len: usize) -> io::Result<()> {
        let file = File::open(&self.path)?;
        if self.bytes.len() < len + PADDING_BYTES {
            // Fresh zeros cost less than a copy of the old bytes and zeros behind.
            self.bytes = vec![0; len + PADDING_BYTES];
        }
        self.begin = begin;
        self.len = 0;
        while self.len < len {
            let room = &mut self.bytes[self.len..len];
            match file.read_at(room, begin + self.len as u64) {
                Ok(0) => break,
                Ok(read) => self.len += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.bytes[self.len..self.len + PADDING_BYTES].fill(0);
        Ok(())
    }

    /// Gives the memory back.
    pub(super) fn release(&mut self) {
        self.bytes = vec![0; PADDING_BYTES];
        self.len = 0;
    }
}

/// Where a window may begin so that alignments inside the packet stay what they are.
pub(super) fn aligned_down(bytes_in_packet: u64) -> u64 {
    let unit = u64::from(MAX_ALIGNMENT_BITS / 8);
    bytes_in_packet / unit * unit
}
