//! Unpacks archives: tar, uncompressed or compressed with gzip, xz or zstd, and zip.
//!
//! The format is detected by content, not by name. Archives come from untrusted sources: only files
//! and directories are unpacked, only below a private directory that is deleted afterwards, and
//! only within the limits. Memory use is small whatever the archive declares.

use std::cell::Cell;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use tempfile::TempDir;

/// More files than the largest session with many thousand streams and rotations.
const ENTRIES_MAX: u64 = 200_000;
/// Any archive may unpack to this size, however small it is.
const UNPACKED_BYTES_ALWAYS: u64 = 1 << 30;
/// Above that, the limit is this multiple of its own size.
const RATIO_MAX: u64 = 200;
/// Space that is left free on the disk.
const FREE_BYTES_MIN: u64 = 256 << 20;
/// Limit for names and other extensions of a tar entry.
const TAR_HEADER_BYTES_MAX: u64 = 1 << 20;
/// The highest preset of xz needs 65 MiB.
const XZ_MEMORY_BYTES_MAX: u64 = 256 << 20;
const COPY_BYTES: usize = 128 << 10;

/// Why an archive was not unpacked; no unpacked data is left behind.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The archive cannot be opened or read.
    #[error("cannot open `{}`", path.display())]
    Open {
        /// The archive.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The content is not of a known archive format.
    #[error("cannot unpack `{}`: it is neither a trace nor an archive (tar, tar.gz, tar.xz, tar.zst, zip)", path.display())]
    NotArchive {
        /// The file.
        path: PathBuf,
    },
    /// The archive is damaged, or its content cannot be written.
    #[error("cannot unpack `{}` at entry {entry}", path.display())]
    Unpack {
        /// The archive.
        path: PathBuf,
        /// Number of the entry, from 0.
        entry: u64,
        /// Error of the decompressor or of the operating system.
        source: io::Error,
    },
    /// An absolute path, or a path with `..`.
    #[error("cannot unpack `{}`: entry `{name}` is outside of the archive", path.display())]
    Escapes {
        /// The archive.
        path: PathBuf,
        /// Name of the entry.
        name: String,
    },
    /// A link, a device or a FIFO.
    #[error("cannot unpack `{}`: entry `{name}` is neither a file nor a directory", path.display())]
    Kind {
        /// The archive.
        path: PathBuf,
        /// Name of the entry.
        name: String,
    },
    /// Two entries with the same path.
    #[error("cannot unpack `{}`: duplicate entry `{name}`", path.display())]
    Twice {
        /// The archive.
        path: PathBuf,
        /// Name of the entry.
        name: String,
    },
    /// An encrypted entry of a zip archive.
    #[error("cannot unpack `{}`: entry `{name}` is encrypted", path.display())]
    Encrypted {
        /// The archive.
        path: PathBuf,
        /// Name of the entry.
        name: String,
    },
    /// More entries than any trace contains.
    #[error("cannot unpack `{}`: it has more than {ENTRIES_MAX} entries", path.display())]
    TooManyEntries {
        /// The archive.
        path: PathBuf,
    },
    /// The unpacked size exceeds the limit derived from the archive size or the free disk space.
    #[error("cannot unpack `{}`: its content exceeds {limit} bytes", path.display())]
    TooLarge {
        /// The archive.
        path: PathBuf,
        /// Size limit.
        limit: u64,
    },
    /// A private directory cannot be created in the temporary directory.
    #[error("cannot create a temporary directory for unpacking")]
    Directory {
        /// Error of the operating system.
        source: io::Error,
    },
    /// The [`Watch`] returned `Break`.
    #[error("unpacking `{}` was cancelled", path.display())]
    Cancelled {
        /// The archive.
        path: PathBuf,
    },
}

/// Receives the number of bytes read from an archive, and its size; `Break` stops the unpacking.
pub type Watch<'w> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'w;

/// A private directory with the content of an archive; deleted when dropped.
#[derive(Debug)]
pub struct Unpacked {
    folder: TempDir,
}

impl Unpacked {
    /// The directory; its entries have the names used in the archive.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tar,
    TarGzip,
    TarXz,
    TarZstd,
    Zip,
}

/// Whether the file looks like an archive that [`unpack`] supports.
pub fn is_archive(path: &Path) -> bool {
    File::open(path).is_ok_and(|mut file| kind(&mut file).is_ok_and(|kind| kind.is_some()))
}

/// Unpacks an archive into a temporary directory.
pub fn unpack(path: &Path) -> Result<Unpacked, ArchiveError> {
    unpack_watched(path, &mut |_, _| ControlFlow::Continue(()))
}

/// Like [`unpack`]; `watch` receives the progress, and may stop it.
pub fn unpack_watched(path: &Path, watch: &mut Watch<'_>) -> Result<Unpacked, ArchiveError> {
    let open = |source| ArchiveError::Open {
        path: path.to_owned(),
        source,
    };
    let mut file = File::open(path).map_err(open)?;
    let kind = kind(&mut file).map_err(open)?;
    let kind = kind.ok_or_else(|| ArchiveError::NotArchive {
        path: path.to_owned(),
    })?;
    let archive_bytes = file.metadata().map_err(open)?.len();
    let folder = tempfile::Builder::new()
        .prefix("whyslow-")
        .permissions(<fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o700))
        .tempdir()
        .map_err(|source| ArchiveError::Directory { source })?;
    let limit = bytes_max(folder.path(), archive_bytes)
        .map_err(|source| ArchiveError::Directory { source })?;
    let read = Rc::new(Cell::new(0));
    // Parts of a zip file are read twice.
    let mut pulse = || watch(read.get().min(archive_bytes), archive_bytes);
    let mut unpacking = Unpacking::new(path, folder.path(), limit, &mut pulse);
    let file = Counted {
        file,
        read: Rc::clone(&read),
    };
    match kind {
        Kind::Tar => unpacking.tar(file)?,
        Kind::TarGzip => {
            unpacking.tar(flate2::read::MultiGzDecoder::new(BufReader::new(file)))?;
        }
        Kind::TarXz => {
            let flags = liblzma::stream::CONCATENATED;
            let stream = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY_BYTES_MAX, flags)
                .map_err(|error| open(error.into()))?;
            unpacking.tar(liblzma::read::XzDecoder::new_stream(file, stream))?;
        }
        Kind::TarZstd => {
            let decoder = zstd::stream::read::Decoder::new(file).map_err(open)?;
            unpacking.tar(decoder)?;
        }
        Kind::Zip => unpacking.zip(file)?,
    }
    Ok(Unpacked { folder })
}

fn bytes_max(folder: &Path, archive_bytes: u64) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(folder)?;
    let free = disk
        .f_bavail
        .saturating_mul(disk.f_frsize)
        .saturating_sub(FREE_BYTES_MIN);
    Ok(archive_bytes
        .saturating_mul(RATIO_MAX)
        .max(UNPACKED_BYTES_ALWAYS)
        .min(free))
}

/// Detects the format by the first bytes; rewinds the file.
fn kind(file: &mut File) -> io::Result<Option<Kind>> {
    let mut head = Vec::with_capacity(512);
    Read::by_ref(file).take(512).read_to_end(&mut head)?;
    file.seek(SeekFrom::Start(0))?;
    let kind = if head.starts_with(&[0x1f, 0x8b]) {
        Kind::TarGzip
    } else if head.starts_with(b"\xfd7zXZ\0") {
        Kind::TarXz
    } else if head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        Kind::TarZstd
    } else if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
        Kind::Zip
    } else if is_tar_header(&head) {
        Kind::Tar
    } else {
        return Ok(None);
    };
    Ok(Some(kind))
}

/// The octal number at byte 148 is the sum of all bytes, with its own eight counted as blanks.
fn is_tar_header(block: &[u8]) -> bool {
    if block.len() < 512 || block[0] == 0 {
        return false;
    }
    let digits = block[148..156].iter().skip_while(|&&byte| byte == b' ');
    let stored = digits
        .take_while(|byte| byte.is_ascii_digit())
        .fold(0_u32, |sum, &digit| {
            sum.wrapping_mul(8).wrapping_add(u32::from(digit - b'0'))
        });
    let sum: u32 = block
        .iter()
        .enumerate()
        .map(|(place, &byte)| {
            if (148..156).contains(&place) {
                32
            } else {
                u32::from(byte)
            }
        })
        .sum();
    stored == sum
}

struct Unpacking<'a> {
    archive: &'a Path,
    folder: &'a Path,
    limit: u64,
    left: u64,
    entries: u64,
    buffer: Vec<u8>,
    /// Reports the progress; returns whether to continue.
    pulse: &'a mut dyn FnMut() -> ControlFlow<()>,
}

impl<'a> Unpacking<'a> {
    fn new(
        archive: &'a Path,
        folder: &'a Path,
        limit: u64,
        pulse: &'a mut dyn FnMut() -> ControlFlow<()>,
    ) -> Unpacking<'a> {
        let buffer = vec![0; COPY_BYTES];
        Unpacking {
            archive,
            folder,
            limit,
            left: limit,
            entries: 0,
            buffer,
            pulse,
        }
    }

    fn tar(&mut self, input: impl Read) -> Result<(), ArchiveError> {
        let allowance = Rc::new(Cell::new(TAR_HEADER_BYTES_MAX));
        let input = Rationed {
            input,
            allowance: Rc::clone(&allowance),
        };
        let mut archive = tar::Archive::new(input);
        let mut entries = archive.entries().map_err(|source| self.failed(source))?;
        loop {
            // Long names and other extensions are held in memory, so their limit is low; files get
            // the full limit.
            allowance.set(TAR_HEADER_BYTES_MAX);
            let Some(entry) = entries.next() else {
                return Ok(());
            };
            let mut entry = entry.map_err(|source| self.failed(source))?;
            self.count_entry()?;
            let name = PathBuf::from(String::from_utf8_lossy(&entry.path_bytes()).into_owned());
            let name = entry.path().map_or(name, std::borrow::Cow::into_owned);
            let kind = entry.header().entry_type();
            if kind.is_dir() {
                let place = self.place(&name)?;
                self.make_folder(&place)?;
            } else if kind.is_file() || kind.is_contiguous() || kind.is_gnu_sparse() {
                allowance.set(u64::MAX);
                self.file(&name, &mut entry)?;
            } else if !kind.is_pax_global_extensions() {
                return Err(ArchiveError::Kind {
                    path: self.archive.to_owned(),
                    name: text(&name),
                });
            }
        }
    }

    fn zip(&mut self, file: impl Read + Seek) -> Result<(), ArchiveError> {
        let failed = |error: zip::result::ZipError| io::Error::other(error);
        let mut archive =
            zip::ZipArchive::new(BufReader::new(file)).map_err(|e| self.failed(failed(e)))?;
        for index in 0..archive.len() {
            self.count_entry()?;
            let path = self.archive.to_owned();
            let raw = archive
                .by_index_raw(index)
                .map_err(|e| self.failed(failed(e)))?;
            let name = raw.name().map_err(|e| self.failed(failed(e)))?;
            let (name, mode) = (
                PathBuf::from(name.into_owned()),
                raw.unix_mode().unwrap_or(0),
            );
            let (is_encrypted, is_folder) = (raw.encrypted(), raw.is_dir());
            drop(raw);
            if is_encrypted {
                return Err(ArchiveError::Encrypted {
                    path,
                    name: text(&name),
                });
            }
            // The upper bits are the file type if the archive was created on Unix.
            if !matches!(mode >> 12, 0 | 0o4 | 0o10) {
                return Err(ArchiveError::Kind {
                    path,
                    name: text(&name),
                });
            }
            if is_folder {
                let place = self.place(&name)?;
                self.make_folder(&place)?;
            } else {
                let mut entry = archive
                    .by_index(index)
                    .map_err(|e| self.failed(failed(e)))?;
                self.file(&name, &mut entry)?;
            }
        }
        Ok(())
    }

    fn count_entry(&mut self) -> Result<(), ArchiveError> {
        self.entries += 1;
        self.go_on()?;
        if self.entries > ENTRIES_MAX {
            return Err(ArchiveError::TooManyEntries {
                path: self.archive.to_owned(),
            });
        }
        Ok(())
    }

    /// Path of an entry below the directory, or an error.
    fn place(&self, name: &Path) -> Result<PathBuf, ArchiveError> {
        let mut place = self.folder.to_owned();
        for component in name.components() {
            match component {
                Component::Normal(part) => place.push(part),
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    let (path, name) = (self.archive.to_owned(), text(name));
                    return Err(ArchiveError::Escapes { path, name });
                }
            }
        }
        Ok(place)
    }

    fn make_folder(&self, place: &Path) -> Result<(), ArchiveError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(place);
        made.map_err(|source| self.failed(source))
    }

    fn file(&mut self, name: &Path, content: &mut impl Read) -> Result<(), ArchiveError> {
        let place = self.place(name)?;
        if let Some(folder) = place.parent() {
            self.make_folder(folder)?;
        }
        let made = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&place);
        let mut file = made.map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => ArchiveError::Twice {
                path: self.archive.to_owned(),
                name: text(name),
            },
            _ => self.failed(source),
        })?;
        loop {
            self.go_on()?;
            let read = match content.read(&mut self.buffer) {
                Ok(0) => return Ok(()),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(self.failed(source)),
            };
            self.left =
                self.left
                    .checked_sub(read as u64)
                    .ok_or_else(|| ArchiveError::TooLarge {
                        path: self.archive.to_owned(),
                        limit: self.limit,
                    })?;
            file.write_all(&self.buffer[..read])
                .map_err(|source| self.failed(source))?;
        }
    }

    fn go_on(&mut self) -> Result<(), ArchiveError> {
        match (self.pulse)() {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(ArchiveError::Cancelled {
                path: self.archive.to_owned(),
            }),
        }
    }

    fn failed(&self, source: io::Error) -> ArchiveError {
        ArchiveError::Unpack {
            path: self.archive.to_owned(),
            entry: self.entries,
            source,
        }
    }
}

/// Counts the bytes read from an archive.
struct Counted {
    file: File,
    read: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.read.set(self.read.get() + read as u64);
        Ok(read)
    }
}

impl Seek for Counted {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// Reads up to a limit.
struct Rationed<R> {
    input: R,
    allowance: Rc<Cell<u64>>,
}

impl<R: Read> Read for Rationed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let allowed = self.allowance.get();
        if allowed == 0 {
            return Err(io::Error::other("entry header too large"));
        }
        let len = buffer
            .len()
            .min(usize::try_from(allowed).unwrap_or(usize::MAX));
        let read = self.input.read(&mut buffer[..len])?;
        self.allowance.set(allowed - read as u64);
        Ok(read)
    }
}

fn text(name: &Path) -> String {
    name.to_string_lossy().into_owned()
}
