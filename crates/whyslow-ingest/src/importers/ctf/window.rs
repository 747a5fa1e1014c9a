//! The part of a stream file that is in memory.
//!
//! Files are read by `pread` in blocks: a file that is truncated meanwhile ends early instead of
//! raising a signal. The file is opened for each block, so that a trace of thousands of streams
//! does not need thousands of open files; a block is large enough to make this negligible.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::decode::PADDING_BYTES;
use super::plan::MAX_ALIGNMENT_BITS;

/// Larger events are not decoded.
pub(super) const WINDOW_BYTES_MAX: usize = 16 << 20;

/// Bytes `begin..begin + len` of a file, and padding.
#[derive(Debug)]
pub(super) struct Window {
    path: PathBuf,
    begin: u64,
    len: usize,
    /// Never shrinks: bytes after the window are left over from before.
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

    /// Switches to another file.
    pub(super) fn open(&mut self, path: &Path) {
        path.clone_into(&mut self.path);
        self.len = 0;
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// File offset of the window.
    pub(super) fn begin(&self) -> u64 {
        self.begin
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Including the padding.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len + PADDING_BYTES]
    }

    /// Fills the window with `len` bytes from `begin`, fewer if the file ends there.
    pub(super) fn fill(&mut self, begin: u64, len: usize) -> io::Result<()> {
        let file = File::open(&self.path)?;
        if self.bytes.len() < len + PADDING_BYTES {
            // Fresh zero pages cost less than a copy of the old bytes.
            self.bytes = vec![0; len + PADDING_BYTES];
        }
        self.begin = begin;
        self.len = 0;
        while self.len < len {
            let free = &mut self.bytes[self.len..len];
            match file.read_at(free, begin + self.len as u64) {
                Ok(0) => break,
                Ok(read) => self.len += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.bytes[self.len..self.len + PADDING_BYTES].fill(0);
        Ok(())
    }

    /// Frees the memory.
    pub(super) fn release(&mut self) {
        self.bytes = vec![0; PADDING_BYTES];
        self.len = 0;
    }
}

/// Start of a window that preserves alignments inside the packet.
pub(super) fn aligned_down(bytes_in_packet: u64) -> u64 {
    let unit = u64::from(MAX_ALIGNMENT_BITS / 8);
    bytes_in_packet / unit * unit
}
