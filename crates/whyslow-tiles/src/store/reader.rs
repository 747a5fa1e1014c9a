//! The file, read piece by piece. Nothing is taken for granted: every piece has a checksum, and room
//! is made for what the file has, not for what it says.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

use crate::TilesError;
use crate::limits;
use crate::store::directory::{Directory, Stretch};
use crate::store::index::Entry;
use crate::store::{FILE_NAME, MAGIC};

/// Bytes of the end: offset, length, checksum, magic.
const END_BYTES: u64 = 8 + 8 + 4 + 8;
/// Before each page: bytes when unpacked, checksum.
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

/// Opens a file in the folder: never through a link, never something else than a file.
pub(crate) fn open_file(
    folder: &OwnedFd,
    path: &Path,
    name: &str,
) -> Result<(File, u64), TilesError> {
    let full = path.join(name);
    // Without waiting: a planted FIFO would never answer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let refused = |reason: &str| TilesError::Unfinished {
        path: full.clone(),
        reason: reason.to_owned(),
    };
    let file = openat(folder, name, flags, Mode::empty())
        .map(File::from)
        .map_err(|error| match error {
            Errno::LOOP => refused("it is a symbolic link"),
            Errno::NOENT => refused("there is no such file"),
            error => TilesError::io("open", &full, error.into()),
        })?;
    let about = file
        .metadata()
        .map_err(|error| TilesError::io("look at", &full, error))?;
    if !about.is_file() {
        return Err(refused("it is not a file"));
    }
    Ok((file, about.len()))
}

/// A small file, whole.
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
            reason: format!("it has {bytes} bytes"),
        });
    }
    let mut content = Vec::new();
    file.take(bytes_max)
        .read_to_end(&mut content)
        .map_err(|error| TilesError::io("read", path.join(name), error))?;
    Ok(content)
}

impl TileFile {
    /// The file of so many bytes, and what it says of itself.
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
            let reason = format!("it has {bytes} bytes, {written} were written");
            return Err(file.damaged("the file", 0, reason));
        }
        let directory = file.directory()?;
        Ok((file, directory))
    }

    /// The folder has another name now.
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
        let magic = Stretch {
            offset: 0,
            bytes: MAGIC.len() as u64,
        };
        let offset = self.bytes.saturating_sub(END_BYTES);
        let end = Stretch {
            offset,
            bytes: END_BYTES,
        };
        let end = self.read("the end", end)?;
        let (ends, rest) = end.split_at(16);
        let (sum, last) = rest.split_at(4);
        if self.read("the begin", magic)? != MAGIC || last != MAGIC {
            return Err(self.damaged("the end", offset, "these are no tiles"));
        }
        if crc32fast::hash(ends).to_le_bytes() != sum {
            return Err(self.damaged("the end", offset, "its checksum differs"));
        }
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&ends[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let at = Stretch {
            offset: word(0),
            bytes: word(8),
        };
        let content = self.summed("the directory", at)?;
        Directory::decode(&content)
            .ok_or_else(|| self.damaged("the directory", at.offset, "it cannot be read"))
    }

    fn read(&self, what: &'static str, at: Stretch) -> Result<Vec<u8>, TilesError> {
        let mut content = Vec::new();
        self.read_into(what, at, &mut content)?;
        Ok(content)
    }

    fn read_into(
        &self,
        what: &'static str,
        at: Stretch,
        content: &mut Vec<u8>,
    ) -> Result<(), TilesError> {
        let Stretch { offset, bytes } = at;
        let is_inside = offset
            .checked_add(bytes)
            .is_some_and(|end| end <= self.bytes);
        if !is_inside || bytes > limits::INDEX_BYTES_MAX {
            let reason = format!("{bytes} bytes are beyond the end at {}", self.bytes);
            return Err(self.damaged(what, offset, reason));
        }
        content.clear();
        content.resize(bytes as usize, 0);
        self.file
            .read_exact_at(content, offset)
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::UnexpectedEof => {
                    self.damaged(what, offset, "the file was cut short")
                }
                _ => TilesError::io("read", &self.path, error),
            })
    }

    /// Something that has its checksum behind it, without that.
    pub(crate) fn summed(&self, what: &'static str, at: Stretch) -> Result<Vec<u8>, TilesError> {
        let mut content = self.read(what, at)?;
        let Some((inner, sum)) = content.split_last_chunk::<4>() else {
            return Err(self.damaged(what, at.offset, "it is too short"));
        };
        if crc32fast::hash(inner).to_le_bytes() != *sum {
            return Err(self.damaged(what, at.offset, "its checksum differs"));
        }
        content.truncate(content.len() - 4);
        Ok(content)
    }
}

/// Unpacks pages, and keeps the last one: lanes of few items share them.
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
            .map_err(|error| TilesError::io("unpack", &file.path, error))?;
        Ok(Self {
            file,
            unpacker,
            packed: Vec::new(),
            page: None,
            plain: Vec::new(),
        })
    }

    /// The blocks of a lane that lie together.
    pub(crate) fn segment(&mut self, entry: &Entry) -> Result<&[u8], TilesError> {
        if self.page != Some(entry.page) {
            self.page = None;
            self.unpack(entry)?;
            self.page = Some(entry.page);
        }
        let (at, bytes) = (entry.at as usize, entry.bytes as usize);
        self.plain.get(at..at.saturating_add(bytes)).ok_or_else(|| {
            let reason = format!("blocks reach beyond its {} bytes", self.plain.len());
            self.file.damaged("a page", entry.page, reason)
        })
    }

    fn unpack(&mut self, entry: &Entry) -> Result<(), TilesError> {
        let damaged = |reason: &str| self.file.damaged("a page", entry.page, reason);
        let stored = entry.stored as usize;
        if stored < PAGE_HEAD || stored > zstd::zstd_safe::compress_bound(limits::PAGE_BYTES_MAX) {
            return Err(damaged("it has an impossible length"));
        }
        let at = Stretch {
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
            return Err(damaged("its checksum differs"));
        }
        word.copy_from_slice(&self.packed[..4]);
        let length = u32::from_le_bytes(word) as usize;
        if length > limits::PAGE_BYTES_MAX {
            return Err(damaged("it is larger than pages are"));
        }
        self.plain.clear();
        self.plain.reserve(length);
        let unpacked = self
            .unpacker
            .decompress_to_buffer(&self.packed[PAGE_HEAD..], &mut self.plain);
        match unpacked {
            Ok(unpacked) if unpacked == length => Ok(()),
            Ok(_) => Err(damaged("it has another length than it says")),
            Err(error) => Err(damaged(&error.to_string())),
        }
    }
}
