//! Unpacks a packed recording from an untrusted stream.
//!
//! The stream is read sequentially. Manifest and checksums come first, so names and sizes of all
//! other entries are known before anything is written, and each file is verified against its
//! checksums while it is written. Memory use does not depend on the size of the archive.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::Ordering;

use rustix::fs::{Mode, OFlags, openat};

use super::header::{BLOCK, Header};
use super::writer::padding;
use super::{Unpacking, broken};
use crate::checksums::{self, ByFile, Summing};
use crate::{StoreError, limits, manifest, staging};

const COPY_BYTES: usize = 128 << 10;
/// Checksums have four bytes per this many bytes of a recording.
const BYTES_PER_SUM: u64 = 4096;
/// Allowance for file names and headers in checksums.
const CHECKSUMS_BYTES_MIN: u64 = 1 << 20;
/// tar pads the end with zeros.
const FILL_BYTES_MAX: u64 = 1 << 20;

/// Unpacks a recording into an empty directory, which should be private. `named` is its name in
/// errors.
pub fn unpack(
    packed: impl Read,
    named: &Path,
    folder: &Path,
    limits: &Unpacking<'_>,
) -> Result<(), StoreError> {
    let decoder = zstd::stream::read::Decoder::new(packed)
        .map_err(|error| broken(named, 0, error.to_string()))?;
    let archive = Archive {
        stream: BufReader::with_capacity(COPY_BYTES, decoder),
        at: 0,
        named,
        limits: *limits,
    };
    archive.unpack(&staging::open_directory(folder)?, folder)
}

struct Archive<'a, R: Read> {
    stream: R,
    /// Bytes of the unpacked stream read so far.
    at: u64,
    named: &'a Path,
    limits: Unpacking<'a>,
}

impl<R: Read> Archive<'_, R> {
    fn unpack(mut self, directory: &OwnedFd, folder: &Path) -> Result<(), StoreError> {
        let manifest = self.small(manifest::FILE_NAME, limits::MANIFEST_BYTES)?;
        let info = manifest::parse(&manifest, self.named)?;
        let sums_max = (self.limits.bytes_max / BYTES_PER_SUM).min(limits::CHECKSUMS_BYTES);
        let sums = self.small(checksums::FILE_NAME, sums_max + CHECKSUMS_BYTES_MIN)?;
        let by_file = checksums::decode(&sums)
            .ok_or_else(|| self.broken(format!("`{}` is damaged", checksums::FILE_NAME)))?;
        let tables = info.tables.values();
        let files = tables.flat_map(|table| table.files.iter().chain(&table.long_files));
        let mut wanted: BTreeSet<&str> = files.map(String::as_str).collect();
        self.check_room(&by_file, &wanted)?;
        while let Some(header) = self.header()? {
            if !wanted.remove(header.name.as_str()) {
                let reason = format!("unexpected or duplicate file `{}`", header.name);
                return Err(self.broken(reason));
            }
            self.table(&header, &by_file, (directory, folder))?;
        }
        if let Some(name) = wanted.first() {
            return Err(self.broken(format!("missing file `{name}`")));
        }
        self.end()?;
        create(directory, folder, checksums::FILE_NAME)?
            .write_all(&sums)
            .map_err(|error| StoreError::io("unpack into", folder, error))?;
        // Last, as always: without it there is no recording.
        create(directory, folder, manifest::FILE_NAME)?
            .write_all(&manifest)
            .map_err(|error| StoreError::io("unpack into", folder, error))
    }

    fn broken(&self, reason: impl Into<String>) -> StoreError {
        broken(self.named, self.at, reason)
    }

    /// Sizes are known before any table is unpacked.
    fn check_room(&self, by_file: &ByFile, wanted: &BTreeSet<&str>) -> Result<(), StoreError> {
        let own = [manifest::FILE_NAME, checksums::FILE_NAME];
        let mut bytes = 0_u64;
        for name in wanted {
            let Some(sums) = by_file.get(*name).filter(|_| !own.contains(name)) else {
                return Err(self.broken(format!("missing checksums of `{name}`")));
            };
            bytes = bytes.saturating_add(sums.bytes);
        }
        let bytes_max = self.limits.bytes_max;
        if bytes > bytes_max {
            return Err(StoreError::TooLarge {
                path: self.named.to_path_buf(),
                bytes,
                bytes_max,
            });
        }
        Ok(())
    }

    fn read_exact(&mut self, buffer: &mut [u8]) -> Result<(), StoreError> {
        let read = self.stream.read_exact(buffer);
        read.map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => self.broken("unexpected end of file"),
            _ => self.broken(error.to_string()),
        })?;
        self.at += buffer.len() as u64;
        Ok(())
    }

    fn header(&mut self) -> Result<Option<Header>, StoreError> {
        let mut block = [0; BLOCK];
        self.read_exact(&mut block)?;
        let begin = self.at - BLOCK as u64;
        Header::parse(&block).map_err(|reason| broken(self.named, begin, reason))
    }

    /// The complete content of the next entry, which must have this name.
    fn small(&mut self, name: &str, bytes_max: u64) -> Result<Vec<u8>, StoreError> {
        let header = self.header()?;
        let Some(header) = header.filter(|header| header.name == name) else {
            return Err(self.broken(format!("expected `{name}` here")));
        };
        if header.bytes > bytes_max {
            return Err(self.broken(format!(
                "size {} of `{name}` exceeds the limit",
                header.bytes
            )));
        }
        let mut content = Vec::new();
        self.copy(header.bytes, |piece| {
            content.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(content)
    }

    fn table(
        &mut self,
        header: &Header,
        by_file: &ByFile,
        (directory, folder): (&OwnedFd, &Path),
    ) -> Result<(), StoreError> {
        let name = header.name.as_str();
        let sums = by_file.get(name).expect("checked before");
        if header.bytes != sums.bytes {
            let (has, written) = (header.bytes, sums.bytes);
            return Err(self.broken(format!("`{name}` has {has} bytes, expected {written}")));
        }
        let mut out = Summing::new(create(directory, folder, name)?);
        let path = folder.join(name);
        self.copy(header.bytes, |piece| {
            out.write_all(piece)
                .map_err(|error| StoreError::io("unpack into", &path, error))
        })?;
        let (_, found) = out.finish();
        if found != **sums {
            return Err(self.broken(format!("checksum mismatch in `{name}`")));
        }
        Ok(())
    }

    /// Passes on the content of an entry in pieces.
    fn copy(
        &mut self,
        bytes: u64,
        mut each: impl FnMut(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut buffer = vec![0; COPY_BYTES.min(bytes as usize)];
        let mut left = bytes;
        while left > 0 {
            if self.limits.cancel.load(Ordering::Relaxed) {
                return Err(StoreError::Stopped);
            }
            let count = left.min(buffer.len() as u64) as usize;
            self.read_exact(&mut buffer[..count])?;
            each(&buffer[..count])?;
            left -= count as u64;
        }
        let mut fill = [0; BLOCK];
        self.read_exact(&mut fill[..padding(bytes)])
    }

    /// Only zeros may follow.
    fn end(&mut self) -> Result<(), StoreError> {
        let mut buffer = [0; BLOCK];
        let begin = self.at;
        loop {
            let read = self.stream.read(&mut buffer);
            let count = read.map_err(|error| self.broken(error.to_string()))?;
            if count == 0 {
                return Ok(());
            }
            let is_fill = buffer[..count].iter().all(|byte| *byte == 0);
            if !is_fill || self.at - begin > FILL_BYTES_MAX {
                return Err(self.broken("trailing data"));
            }
            self.at += count as u64;
        }
    }
}

/// Never overwrites a file, never follows a link.
fn create(directory: &OwnedFd, folder: &Path, name: &str) -> Result<File, StoreError> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(directory, name, flags, Mode::RUSR | Mode::WUSR)
        .map(File::from)
        .map_err(|error| StoreError::io("create", folder.join(name), error.into()))
}
