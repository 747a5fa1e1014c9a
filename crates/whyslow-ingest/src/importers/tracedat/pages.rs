//! The pages of one CPU in sequence: uncompressed, or compressed in chunks of several pages.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::meta::{Buffer, Compression, Span};
use super::packed::unpack;

/// Pages per chunk as written by trace-cmd, which is the minimum size of a decompressed chunk.
const CHUNK_PAGES: usize = 10;
/// Memory limit for the chunks of all CPUs.
const CHUNKS_BYTES_MAX: usize = 1 << 30;
const CHUNK_BYTES_MAX: usize = 64 << 20;

const WORD_BYTES: u64 = 4;

/// Bytes that could not be read, and the offset of the first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Damage {
    pub(super) bytes: u64,
    pub(super) offset: Option<u64>,
}

impl Damage {
    pub(super) fn add(&mut self, bytes: u64, offset: u64) {
        if bytes > 0 {
            self.bytes += bytes;
            self.offset.get_or_insert(offset);
        }
    }
}

/// Compression of a file, and its number of page lists.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packing {
    pub(super) compression: Compression,
    pub(super) is_big_endian: bool,
    pub(super) cpus: usize,
}

pub(super) struct Pages {
    page_size: usize,
    chunk_bytes_max: usize,
    /// Offset of the next read, and of the end of this CPU's data.
    at: u64,
    end: u64,
    chunks: Option<Chunks>,
    pub(super) page: Vec<u8>,
    /// File offset of the page, or of its chunk if compressed.
    pub(super) page_at: u64,
    pub(super) damage: Damage,
}

struct Chunks {
    compression: Compression,
    is_big_endian: bool,
    left: u32,
    unpacked: Vec<u8>,
    used: usize,
    at: u64,
}

impl Pages {
    pub(super) fn new(
        file: &File,
        buffer: &Buffer,
        span: Span,
        packing: Packing,
    ) -> io::Result<Self> {
        let len = file.metadata()?.len();
        // The number of chunks precedes them and is not included in the size.
        let before = if buffer.is_compressed { WORD_BYTES } else { 0 };
        let end = span.offset.saturating_add(span.size).saturating_add(before);
        let mut pages = Self {
            page_size: buffer.page_size,
            chunk_bytes_max: (CHUNKS_BYTES_MAX / packing.cpus.max(1)).clamp(
                CHUNK_PAGES * buffer.page_size,
                CHUNK_BYTES_MAX.max(CHUNK_PAGES * buffer.page_size),
            ),
            at: span.offset.min(len),
            end: end.min(len),
            chunks: None,
            page: Vec::new(),
            page_at: span.offset,
            damage: Damage::default(),
        };
        // The file is truncated.
        pages
            .damage
            .add(end - end.min(len).max(span.offset.min(end)), len.min(end));
        if buffer.is_compressed && span.size > 0 {
            let left = pages.word(file, packing.is_big_endian)?.unwrap_or(0);
            pages.chunks = Some(Chunks {
                compression: packing.compression,
                is_big_endian: packing.is_big_endian,
                left,
                unpacked: Vec::new(),
                used: 0,
                at: span.offset,
            });
        }
        Ok(pages)
    }

    /// Number of bytes left in the file.
    pub(super) fn left(&self) -> u64 {
        self.end.saturating_sub(self.at)
    }

    fn word(&mut self, file: &File, is_big_endian: bool) -> io::Result<Option<u32>> {
        if self.left() < 4 {
            self.lose_rest();
            return Ok(None);
        }
        let mut bytes = [0; 4];
        file.read_exact_at(&mut bytes, self.at)?;
        self.at += 4;
        Ok(Some(if is_big_endian {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        }))
    }

    fn lose_rest(&mut self) {
        self.damage.add(self.left(), self.at);
        self.at = self.end;
    }

    /// Reads the next page into `page`; false at the end.
    pub(super) fn next(&mut self, file: &File) -> io::Result<bool> {
        if let Some(chunks) = self.chunks.take() {
            return self.next_packed(file, chunks);
        }
        if self.left() < self.page_size as u64 {
            self.lose_rest();
            return Ok(false);
        }
        self.page.resize(self.page_size, 0);
        file.read_exact_at(&mut self.page, self.at)?;
        self.page_at = self.at;
        self.at += self.page_size as u64;
        Ok(true)
    }

    fn next_packed(&mut self, file: &File, mut chunks: Chunks) -> io::Result<bool> {
        let size = self.page_size;
        while chunks.unpacked.len() - chunks.used < size {
            let rest = (chunks.unpacked.len() - chunks.used) as u64;
            self.damage.add(rest, chunks.at);
            if chunks.left == 0 || !self.chunk(file, &mut chunks)? {
                chunks.unpacked.clear();
                (chunks.used, chunks.left) = (0, 0);
                self.chunks = Some(chunks);
                return Ok(false);
            }
        }
        self.page.clear();
        let begin = chunks.used;
        self.page
            .extend_from_slice(&chunks.unpacked[begin..begin + size]);
        chunks.used += size;
        self.page_at = chunks.at;
        self.chunks = Some(chunks);
        Ok(true)
    }

    /// Decompresses the next chunk; a damaged one is lost, and the next may be intact. False if
    /// there is none.
    fn chunk(&mut self, file: &File, chunks: &mut Chunks) -> io::Result<bool> {
        chunks.left -= 1;
        chunks.at = self.at;
        chunks.used = 0;
        chunks.unpacked.clear();
        let is_big_endian = chunks.is_big_endian;
        let (Some(packed_size), Some(size)) = (
            self.word(file, is_big_endian)?,
            self.word(file, is_big_endian)?,
        ) else {
            return Ok(false);
        };
        if u64::from(packed_size) > self.left() {
            self.lose_rest();
            return Ok(false);
        }
        let mut packed = vec![0; packed_size as usize];
        file.read_exact_at(&mut packed, self.at)?;
        self.at += u64::from(packed_size);
        let limit = (size as usize).min(self.chunk_bytes_max);
        match unpack(chunks.compression, &packed, limit) {
            Some(content) => chunks.unpacked = content,
            None => self.damage.add(u64::from(packed_size), chunks.at),
        }
        Ok(true)
    }

    /// Seeks to the last pages to find the end time. `back` counts pages, or chunks.
    pub(super) fn seek_last(&mut self, file: &File, back: u64) -> io::Result<()> {
        let Some(mut chunks) = self.chunks.take() else {
            let size = self.page_size as u64;
            let pages = self.left() / size;
            self.at += pages.saturating_sub(back) * size;
            return Ok(());
        };
        while u64::from(chunks.left) > back {
            let begin = self.at;
            let Some(packed_size) = self.word(file, chunks.is_big_endian)? else {
                break;
            };
            let next = self.at.saturating_add(4 + u64::from(packed_size));
            if next > self.end {
                self.at = begin;
                break;
            }
            chunks.left -= 1;
            self.at = next;
        }
        self.chunks = Some(chunks);
        Ok(())
    }
}
