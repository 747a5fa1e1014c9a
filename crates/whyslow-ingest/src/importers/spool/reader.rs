//! Reads the blocks of a spool, file by file. A recorder that was killed leaves a truncated last
//! block, or none; other damage is skipped up to the next valid block.
//!
//! A directory may contain several spools of one recording, in the order of their names, like the
//! chapters of the flight recorder. The initial state of a spool (block 0: facts, system calls and
//! requests in flight) is needed from the first one only, and the recording ends at the end of the
//! last one.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use whyslow_model::sort::IndexSort;
use whyslow_model::spool::{BLOCK_BYTES, Block, FILE_SUFFIX, MAGIC};
use whyslow_model::stat::{self, Stat};

/// A damaged part.
#[derive(Debug)]
pub(crate) struct Damage {
    pub(crate) stat: &'static Stat,
    pub(crate) count: u64,
    pub(crate) file: String,
    pub(crate) offset: u64,
    pub(crate) text: String,
}

/// Reads blocks in order.
#[derive(Debug)]
pub(crate) struct SpoolReader {
    files: Vec<PathBuf>,
    /// Index of the file being read, and the file.
    at: usize,
    open: Option<BufReader<File>>,
    offset: u64,
    next_number: u64,
    names_only: bool,
    pub(crate) damages: Vec<Damage>,
    pub(crate) bytes_done: u64,
    pub(crate) bytes_total: u64,
}

/// Whether the path is a spool, or a file of one.
pub(crate) fn is_spool(path: &Path) -> bool {
    if path.is_dir() {
        return files(path).is_ok_and(|files| !files.is_empty());
    }
    let mut magic = [0; MAGIC.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == MAGIC
}

fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if name.is_some_and(|name| name.ends_with(FILE_SUFFIX)) {
            files.push(path);
        }
    }
    files.index_sort();
    Ok(files)
}

impl SpoolReader {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let files = if path.is_dir() {
            files(path)?
        } else {
            vec![path.to_owned()]
        };
        let sizes = files.iter().map(|file| Ok(fs::metadata(file)?.len()));
        Ok(Self {
            bytes_total: sizes.sum::<io::Result<u64>>()?,
            files,
            at: 0,
            open: None,
            offset: 0,
            next_number: 0,
            names_only: false,
            damages: Vec::new(),
            bytes_done: 0,
        })
    }

    /// Name of the file being read, and the offset of the last block in it.
    pub(crate) fn file(&self) -> String {
        let file = self.files.get(self.at).and_then(|path| path.file_name());
        file.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }

    /// The next valid block with its records.
    pub(crate) fn next(&mut self) -> io::Result<Option<(Block, Vec<u8>)>> {
        while self.at < self.files.len() {
            if self.open.is_none() {
                let path = &self.files[self.at];
                let options = File::options().read(true).open(path)?;
                self.open = Some(BufReader::with_capacity(1 << 20, options));
                self.offset = 0;
            }
            match self.block()? {
                Found::Block(mut block, payload) => {
                    if self.begins_another(&block) {
                        self.next_number = 1;
                        continue;
                    }
                    self.check_number(&block);
                    if block.complete_until == u64::MAX && self.at + 1 < self.files.len() {
                        // The recording continues in the next spool; the limits of earlier blocks
                        // still apply.
                        block.complete_until = 0;
                    }
                    return Ok(Some((block, payload)));
                }
                Found::Other => {}
                Found::End => {
                    self.open = None;
                    self.at += 1;
                }
                Found::Damaged(text) => {
                    self.damage(&stat::SPOOL_BLOCK_DAMAGED, 1, text);
                    self.resync()?;
                }
            }
        }
        Ok(None)
    }

    /// The records of the next valid block with symbols; other blocks are skipped unread.
    pub(super) fn next_with_names(&mut self) -> io::Result<Option<Vec<u8>>> {
        self.names_only = true;
        let found = self.next()?;
        Ok(found.map(|(_, payload)| payload))
    }

    fn block(&mut self) -> io::Result<Found> {
        let Some(file) = &mut self.open else {
            return Ok(Found::End);
        };
        let mut head = [0; BLOCK_BYTES];
        match read_up_to(file, &mut head)? {
            0 => return Ok(Found::End),
            BLOCK_BYTES => {}
            count => {
                let text =
                    format!("{count} bytes at the end of the file are shorter than a block header");
                return Ok(Found::Damaged(text));
            }
        }
        let block = match Block::parse(&head) {
            Ok(block) => block,
            Err(error) => return Ok(Found::Damaged(error.to_string())),
        };
        let mut stored = Vec::new();
        let wanted = u64::from(block.payload_bytes);
        if self.names_only && !block.has_names {
            file.seek_relative(wanted as i64)?;
            self.offset += BLOCK_BYTES as u64 + wanted;
            return Ok(Found::Other);
        }
        // Allocates by what is present, not by what the header claims.
        file.by_ref().take(wanted).read_to_end(&mut stored)?;
        if stored.len() as u64 != wanted {
            let text = format!("the payload has {} bytes instead of {wanted}", stored.len());
            return Ok(Found::Damaged(text));
        }
        let mut crc = crc32fast::Hasher::new();
        crc.update(&head[..BLOCK_BYTES - 4]);
        crc.update(&stored);
        if crc.finalize() != block.crc {
            return Ok(Found::Damaged("the checksum differs".into()));
        }
        let payload = if block.is_compressed {
            match zstd::bulk::decompress(&stored, block.record_bytes as usize) {
                Ok(payload) => payload,
                Err(error) => return Ok(Found::Damaged(error.to_string())),
            }
        } else {
            stored
        };
        if payload.len() != block.record_bytes as usize {
            return Ok(Found::Damaged(
                "the payload size differs from the block header".into(),
            ));
        }
        let bytes = BLOCK_BYTES as u64 + wanted;
        self.offset += bytes;
        self.bytes_done += bytes;
        Ok(Found::Block(block, payload))
    }

    /// Continues where the next block may start.
    fn resync(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.open else {
            return Ok(());
        };
        let mut from = self.offset + 1;
        let mut window = vec![0; 64 << 10];
        loop {
            file.seek(SeekFrom::Start(from))?;
            let count = read_up_to(file, &mut window)?;
            if count < MAGIC.len() {
                self.bytes_done += from + count as u64 - self.offset;
                self.open = None;
                self.at += 1;
                return Ok(());
            }
            let mut windows = window[..count].windows(MAGIC.len());
            if let Some(place) = windows.position(|bytes| bytes == MAGIC) {
                let found = from + place as u64;
                file.seek(SeekFrom::Start(found))?;
                self.bytes_done += found - self.offset;
                self.offset = found;
                return Ok(());
            }
            from += (count - (MAGIC.len() - 1)) as u64;
        }
    }

    fn begins_another(&self, block: &Block) -> bool {
        let end = BLOCK_BYTES as u64 + u64::from(block.payload_bytes);
        self.at > 0 && block.number == 0 && self.offset == end
    }

    fn check_number(&mut self, block: &Block) {
        if block.number > self.next_number {
            let missing = block.number - self.next_number;
            let text = format!("{missing} before block {}", block.number);
            self.damage(&stat::SPOOL_BLOCK_MISSING, missing, text);
        }
        self.next_number = block.number.saturating_add(1);
    }

    fn damage(&mut self, stat: &'static Stat, count: u64, text: String) {
        const KEPT: usize = 64;
        let are_enough = self.damages.len() >= KEPT;
        let mut damages = self.damages.iter_mut();
        if let Some(known) = damages.find(|known| are_enough && std::ptr::eq(known.stat, stat)) {
            known.count += count;
            return;
        }
        let damage = Damage {
            stat,
            count,
            file: self.file(),
            offset: self.offset,
            text,
        };
        self.damages.push(damage);
    }
}

enum Found {
    Block(Block, Vec<u8>),
    /// A block that is not wanted.
    Other,
    End,
    Damaged(String),
}

fn read_up_to(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut count = 0;
    while count < buffer.len() {
        match file.read(&mut buffer[count..]) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}
