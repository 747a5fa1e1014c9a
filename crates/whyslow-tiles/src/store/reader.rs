//! Reads the tile file piece by piece. The file is not trusted: every piece has a checksum, and
//! allocations are bounded by the actual size of the file, not by sizes stored in it.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

use crate::TilesError;
use crate::limits;
use crate::store::directory::{Directory, Extent};
use crate::store::index::Entry;
use crate::store::{FILE_NAME, MAGIC};

/// Size of the end: offset, size, checksum, magic.
const END_BYTES: u64 = 8 + 8 + 4 + 8;
/// Header of each page: uncompressed size, checksum.
const PAGE_HEAD: usize = 8;

#[derive(Debug)]
pub(crate) struct TileFile {
    path: PathBuf,
    file: File,
    bytes: u64,
}

pub(crate) fn open_folder(path: &Path) -> Result<OwnedFd, TilesError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty())
        .map_err(|error| TilesError::io("open", path, error.into()))
}

/// Opens a regular file in the folder, without following symbolic links.
pub(crate) fn open_file(
    folder: &OwnedFd,
    path: &Path,
    name: &str,
) -> Result<(File, u64), TilesError> {
    let full = path.join(name);
    // O_NONBLOCK: opening a planted FIFO would block forever.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let refused = |reason: &str| TilesError::Unfinished {
        path: full.clone(),
        reason: reason.to_owned(),
    };
    let file = openat(folder, name, flags, Mode::empty())
        .map(File::from)
        .map_err(|error| match error {
            Errno::LOOP => refused("symbolic link"),
            Errno::NOENT => refused("no such file"),
            error => TilesError::io("open", &full, error.into()),
        })?;
    let about = file
        .metadata()
        .map_err(|error| TilesError::io("stat", &full, error))?;
    if !about.is_file() {
        return Err(refused("not a regular file"));
    }
    Ok((file, about.len()))
}

/// Reads a small file as a whole.
pub(crate) fn read_small(
    folder: &OwnedFd,
    path: &Path,
    name: &str,
    bytes_max: u64,
) -> Result<Vec<u8>, TilesError> {
    let (file, bytes) = open_file(folder, path, name)?;
    if bytes > bytes_max {
        return Err(TilesError::Unfinished {
            path: path.join(name),
            reason: format!("{bytes} bytes, expected at most {bytes_max}"),
        });
    }
    let mut content = Vec::new();
    file.take(bytes_max)
        .read_to_end(&mut content)
        .map_err(|error| TilesError::io("read", path.join(name), error))?;
    Ok(content)
}

impl TileFile {
    /// Opens the file, whose size must be `written`, and reads its directory.
    pub(crate) fn open(
        folder: &OwnedFd,
        path: &Path,
        written: u64,
    ) -> Result<(Self, Directory), TilesError> {
        let (file, bytes) = open_file(folder, path, FILE_NAME)?;
        let file = Self {
            path: path.join(FILE_NAME),
            file,
            bytes,
        };
        if bytes != written {
            let reason = format!("{bytes} bytes, expected {written}");
            return Err(file.damaged("the file", 0, reason));
        }
        let directory = file.directory()?;
        Ok((file, directory))
    }

    /// Updates the path after the folder was renamed.
    pub(crate) fn at(&mut self, folder: &Path) {
        self.path = folder.join(FILE_NAME);
    }

    pub(crate) fn damaged(
        &self,
        what: &'static str,
        offset: u64,
        reason: impl Into<String>,
    ) -> TilesError {
        TilesError::Damaged {
            path: self.path.clone(),
            what,
            offset,
            reason: reason.into(),
        }
    }

    fn directory(&self) -> Result<Directory, TilesError> {
        let magic = Extent {
            offset: 0,
            bytes: MAGIC.len() as u64,
        };
        let offset = self.bytes.saturating_sub(END_BYTES);
        let end = Extent {
            offset,
            bytes: END_BYTES,
        };
        let end = self.read("the end", end)?;
        let (ends, rest) = end.split_at(16);
        let (sum, last) = rest.split_at(4);
        if self.read("the start", magic)? != MAGIC || last != MAGIC {
            return Err(self.damaged("the end", offset, "not a tile file"));
        }
        if crc32fast::hash(ends).to_le_bytes() != sum {
            return Err(self.damaged("the end", offset, "checksum mismatch"));
        }
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&ends[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let at = Extent {
            offset: word(0),
            bytes: word(8),
        };
        let content = self.checksummed("the directory", at)?;
        Directory::decode(&content)
            .ok_or_else(|| self.damaged("the directory", at.offset, "invalid encoding"))
    }

    fn read(&self, what: &'static str, at: Extent) -> Result<Vec<u8>, TilesError> {
        let mut content = Vec::new();
        self.read_into(what, at, &mut content)?;
        Ok(content)
    }

    fn read_into(
        &self,
        what: &'static str,
        at: Extent,
        content: &mut Vec<u8>,
    ) -> Result<(), TilesError> {
        let Extent { offset, bytes } = at;
        let is_inside = offset
            .checked_add(bytes)
            .is_some_and(|end| end <= self.bytes);
        if !is_inside || bytes > limits::INDEX_BYTES_MAX {
            let reason = format!("{bytes} bytes exceed the size of the file, {}", self.bytes);
            return Err(self.damaged(what, offset, reason));
        }
        content.clear();
        content.resize(bytes as usize, 0);
        self.file
            .read_exact_at(content, offset)
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::UnexpectedEof => {
                    self.damaged(what, offset, "the file was truncated")
                }
                _ => TilesError::io("read", &self.path, error),
            })
    }

    /// Reads a piece that is followed by its checksum, and verifies it.
    pub(crate) fn checksummed(
        &self,
        what: &'static str,
        at: Extent,
    ) -> Result<Vec<u8>, TilesError> {
        let mut content = self.read(what, at)?;
        let Some((inner, sum)) = content.split_last_chunk::<4>() else {
            return Err(self.damaged(what, at.offset, "too short"));
        };
        if crc32fast::hash(inner).to_le_bytes() != *sum {
            return Err(self.damaged(what, at.offset, "checksum mismatch"));
        }
        content.truncate(content.len() - 4);
        Ok(content)
    }
}

/// Decompresses pages, and keeps the last one: lanes with few items share pages.
pub(crate) struct PageReader<'f> {
    file: &'f TileFile,
    unpacker: zstd::bulk::Decompressor<'static>,
    packed: Vec<u8>,
    page: Option<u64>,
    plain: Vec<u8>,
}

impl<'f> PageReader<'f> {
    pub(crate) fn new(file: &'f TileFile) -> Result<Self, TilesError> {
        let unpacker = zstd::bulk::Decompressor::new()
            .map_err(|error| TilesError::io("decompress", &file.path, error))?;
        Ok(Self {
            file,
            unpacker,
            packed: Vec::new(),
            page: None,
            plain: Vec::new(),
        })
    }

    /// The blocks of an index entry.
    pub(crate) fn segment(&mut self, entry: &Entry) -> Result<&[u8], TilesError> {
        if self.page != Some(entry.page) {
            self.page = None;
            self.unpack(entry)?;
            self.page = Some(entry.page);
        }
        let (at, bytes) = (entry.at as usize, entry.bytes as usize);
        self.plain.get(at..at.saturating_add(bytes)).ok_or_else(|| {
            let reason = format!("blocks exceed its {} bytes", self.plain.len());
            self.file.damaged("a page", entry.page, reason)
        })
    }

    fn unpack(&mut self, entry: &Entry) -> Result<(), TilesError> {
        let damaged = |reason: &str| self.file.damaged("a page", entry.page, reason);
        let stored = entry.stored as usize;
        if stored < PAGE_HEAD || stored > zstd::zstd_safe::compress_bound(limits::PAGE_BYTES_MAX) {
            return Err(damaged("invalid size"));
        }
        let at = Extent {
            offset: entry.page,
            bytes: u64::from(entry.stored),
        };
        self.file.read_into("a page", at, &mut self.packed)?;
        let mut word = [0; 4];
        word.copy_from_slice(&self.packed[4..PAGE_HEAD]);
        let mut sum = crc32fast::Hasher::new();
        sum.update(&self.packed[..4]);
        sum.update(&self.packed[PAGE_HEAD..]);
        if sum.finalize() != u32::from_le_bytes(word) {
            return Err(damaged("checksum mismatch"));
        }
        word.copy_from_slice(&self.packed[..4]);
        let length = u32::from_le_bytes(word) as usize;
        if length > limits::PAGE_BYTES_MAX {
            return Err(damaged("uncompressed size exceeds the limit"));
        }
        self.plain.clear();
        self.plain.reserve(length);
        let unpacked = self
            .unpacker
            .decompress_to_buffer(&self.packed[PAGE_HEAD..], &mut self.plain);
        match unpacked {
            Ok(unpacked) if unpacked == length => Ok(()),
            Ok(_) => Err(damaged("uncompressed size differs from its header")),
            Err(error) => Err(damaged(&error.to_string())),
        }
    }
}
