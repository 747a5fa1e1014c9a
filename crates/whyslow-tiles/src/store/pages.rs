//! Writes blocks into pages.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::TilesError;
use crate::limits;
use crate::store::index::Entry;
use crate::store::{FILE_NAME, MAGIC};

/// Segments of at least this size, in bytes, get a page of their own.
const OWN_PAGE_BYTES: usize = 2 << 10;

/// Writer of the tile file.
pub(crate) struct PageWriter {
    path: PathBuf,
    file: BufWriter<File>,
    offset: u64,
    compressor: zstd::bulk::Compressor<'static>,
    packed: Vec<u8>,
    /// Small segments of the current page, and the indices of their entries.
    plain: Vec<u8>,
    open: Vec<usize>,
    entries: Vec<Entry>,
    /// The first failure. Blocks fill up in places that cannot return an error.
    failure: Option<TilesError>,
}

/// What a segment contains.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentInfo {
    pub(crate) track: u8,
    pub(crate) lane: u32,
    pub(crate) marks: (u8, u8),
    pub(crate) finest: u8,
    pub(crate) first: u64,
    pub(crate) end: u64,
}

impl PageWriter {
    /// `folder` must be accessible to the current user only.
    pub(crate) fn create(folder: &Path) -> Result<Self, TilesError> {
        let path = folder.join(FILE_NAME);
        let failed = |source| TilesError::io("create", &path, source);
        let file = File::create_new(&path).map_err(failed)?;
        let compressor = zstd::bulk::Compressor::new(limits::ZSTD_LEVEL).map_err(failed)?;
        let mut writer = Self {
            file: BufWriter::with_capacity(1 << 18, file),
            path,
            offset: 0,
            compressor,
            packed: Vec::new(),
            plain: Vec::new(),
            entries: Vec::new(),
            open: Vec::new(),
            failure: None,
        };
        writer.write(MAGIC);
        Ok(writer)
    }

    /// Writes blocks of one lane that are read together.
    pub(crate) fn segment(&mut self, info: SegmentInfo, blocks: &[u8]) {
        if blocks.is_empty() || self.failure.is_some() {
            return;
        }
        let mut entry = Entry {
            track: info.track,
            lane: info.lane,
            marks: info.marks,
            finest: info.finest,
            first: info.first,
            end: info.end,
            page: 0,
            stored: 0,
            at: 0,
            bytes: blocks.len() as u32,
        };
        if blocks.len() >= OWN_PAGE_BYTES {
            (entry.page, entry.stored) = self.page(blocks);
            self.entries.push(entry);
            return;
        }
        entry.at = self.plain.len() as u32;
        self.plain.extend_from_slice(blocks);
        self.open.push(self.entries.len());
        self.entries.push(entry);
        if self.plain.len() >= limits::PAGE_BYTES {
            self.end_page();
        }
    }

    fn end_page(&mut self) {
        let plain = std::mem::take(&mut self.plain);
        if !plain.is_empty() {
            let (page, stored) = self.page(&plain);
            for entry in self.open.drain(..) {
                let entry = &mut self.entries[entry];
                (entry.page, entry.stored) = (page, stored);
            }
        }
        self.plain = plain;
        self.plain.clear();
    }

    /// Writes a page; returns its offset and size in the file.
    pub(crate) fn page(&mut self, plain: &[u8]) -> (u64, u32) {
        let mut packed = std::mem::take(&mut self.packed);
        packed.clear();
        packed.reserve(zstd::zstd_safe::compress_bound(plain.len()));
        let done = self.compressor.compress_to_buffer(plain, &mut packed);
        if let Err(source) = done {
            self.fail(source);
        }
        let begin = self.offset;
        let length = (plain.len() as u32).to_le_bytes();
        let mut sum = crc32fast::Hasher::new();
        sum.update(&length);
        sum.update(&packed);
        self.write(&length);
        self.write(&sum.finalize().to_le_bytes());
        self.write(&packed);
        self.packed = packed;
        (begin, (self.offset - begin) as u32)
    }

    /// Writes content and its checksum; returns the offset and the size, checksum included.
    pub(crate) fn checksummed(&mut self, content: &[u8]) -> (u64, u64) {
        let begin = self.offset;
        self.write(content);
        self.write(&crc32fast::hash(content).to_le_bytes());
        (begin, self.offset - begin)
    }

    pub(crate) fn write(&mut self, content: &[u8]) {
        if self.failure.is_none() {
            match self.file.write_all(content) {
                Ok(()) => self.offset += content.len() as u64,
                Err(source) => self.fail(source),
            }
        }
    }

    fn fail(&mut self, source: std::io::Error) {
        self.failure
            .get_or_insert(TilesError::io("write", &self.path, source));
    }

    /// Returns the failure, if any, since the last call.
    pub(crate) fn check(&mut self) -> Result<(), TilesError> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Index entries of the segments of a track.
    pub(crate) fn take_entries(&mut self, track: u8) -> Vec<Entry> {
        self.end_page();
        let all = std::mem::take(&mut self.entries);
        let (taken, rest) = all.into_iter().partition(|entry| entry.track == track);
        self.entries = rest;
        taken
    }

    pub(crate) fn finish(mut self) -> Result<u64, TilesError> {
        self.check()?;
        let failed = |source| TilesError::io("write", &self.path, source);
        let file = self
            .file
            .into_inner()
            .map_err(|error| failed(error.into_error()))?;
        file.sync_all().map_err(failed)?;
        Ok(self.offset)
    }
}
