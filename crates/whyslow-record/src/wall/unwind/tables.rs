//! The compiler's call frame information, which leads to the caller.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::sync::Arc;

use super::ends;
use crate::libraries::elf::{self, CallFrames};
use crate::plain;

/// Maximum total bytes of tables; then all are dropped. A file that alone exceeds its limit has no
/// table.
const BYTES_MAX: usize = 24 << 20;
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Files without a table are counted as well.
const FILES_MAX: usize = 4096;

/// Bytes shared by several programs.
#[derive(Debug, Clone, Default)]
pub(super) struct Bytes(Arc<Vec<u8>>);

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Tables of a file, with the addresses for which they and the code were linked. They are checked
/// to terminate.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) frames: Bytes,
    pub(super) header: Option<Bytes>,
    pub(super) at: CallFrames,
}

/// A file, by inode and path.
pub(super) type FileKey = (u64, Vec<u8>);

#[derive(Debug, Default)]
pub(super) struct Tables {
    known: HashMap<FileKey, Option<Arc<Table>>>,
    bytes: usize,
}

impl Tables {
    /// Table of the file that a process has mapped at this address range; an error if it is no
    /// longer mapped there, which is not cached: others may have it mapped.
    pub(super) fn of(
        &mut self,
        key: FileKey,
        (pid, range): (i32, &str),
    ) -> io::Result<Option<Arc<Table>>> {
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let table = read(&plain::open_mapped(pid, range)?);
        let bytes = table.as_ref().map_or(0, |table| {
            table.frames.len() + table.header.as_deref().map_or(0, <[u8]>::len)
        });
        if self.bytes + bytes > BYTES_MAX || self.known.len() >= FILES_MAX {
            // Programs that use them hold references.
            self.known.clear();
            self.bytes = 0;
        }
        self.bytes += bytes;
        let table = table.map(Arc::new);
        self.known.insert(key, table.clone());
        Ok(table)
    }
}

fn read(file: &File) -> Option<Table> {
    let at = elf::call_frames(file).ok()??;
    let bytes = |size: u64, offset: u64| {
        if size > FILE_BYTES_MAX {
            return None;
        }
        let mut bytes = vec![0; size as usize];
        let read = elf::read_up_to(file, offset, &mut bytes).ok()?;
        (read == bytes.len()).then(|| Bytes(Arc::new(bytes)))
    };
    let frames = bytes(at.frames.size, at.frames.offset)?;
    let header = at
        .header
        .and_then(|header| bytes(header.size, header.offset))
        .filter(|header| ends::is_usual(header));
    let table = Table { frames, header, at };
    ends::all(&table.frames, table.header.as_deref(), &table.at).then_some(table)
}
