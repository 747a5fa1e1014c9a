//! The head of a file, in its two versions: one text after the other, or sections that options point at.

use std::fs::File;
use std::io::{BufReader, Cursor, Seek, SeekFrom};

use super::TraceDatError;
use super::meta::{
    Buffer, Compression, Layout, Meta, Options, comms, event_formats, ftrace_events, header_info,
    numbered_spans, option, spans,
};
use super::packed::unpack;
use super::words::Words;

pub(super) const MAGIC: &[u8] = b"\x17\x08\x44tracing";
const VERSION_OLD: u32 = 6;
const VERSION_SECTIONS: u32 = 7;
const SECTION_COMPRESSED: u16 = 1;
/// What a section of the head may become when it is unpacked.
const SECTION_BYTES_MAX: usize = 256 << 20;
const OPTION_BYTES_MAX: u64 = 1 << 20;
/// Lists of options that follow one another.
const OPTION_LISTS_MAX: usize = 256;
/// Sections that options point at.
const SECTIONS_MAX: u32 = 256;
const PAGE_BYTES: std::ops::RangeInclusive<usize> = 64..=1 << 24;
const NO_PAGES: &str = "a size of pages that cannot be";
const TEXT_ONLY: &str = "it holds the text of a latency tracer and no events; import what \
                         `trace-cmd report` prints of it";

type FileWords = Words<BufReader<File>>;

/// Whether a file begins as those of trace-cmd do. Perf's tracing data has the same magic.
pub fn is_trace_dat(head: &[u8]) -> bool {
    head.strip_prefix(MAGIC)
        .is_some_and(|rest| rest.starts_with(b"6\0") || rest.starts_with(b"7\0"))
}

/// Reads a head; `file` can be read at any place.
pub(super) fn read(file: &File) -> Result<Meta, TraceDatError> {
    let len = file.metadata()?.len();
    let mut begin = BufReader::new(file.try_clone()?);
    begin.seek(SeekFrom::Start(0))?;
    let mut words = Words::new(begin, false, 0, len);
    words.expect(MAGIC, "no file of trace-cmd")?;
    let at = words.at;
    let version = words.text()?.parse().unwrap_or(0);
    if version != VERSION_OLD && version != VERSION_SECTIONS {
        let what = "a version other than 6 and 7";
        return Err(TraceDatError::Strange { at, what });
    }
    words.is_big_endian = words.array::<1>()? == [1];
    let _long_size = words.array::<1>()?;
    let at = words.at;
    let page_size = words.u32()? as usize;
    if !PAGE_BYTES.contains(&page_size) {
        return Err(TraceDatError::Strange { at, what: NO_PAGES });
    }
    if version == VERSION_OLD {
        read_old(file, words, page_size)
    } else {
        Sections::new(file, &mut words)?.read(words)
    }
}

fn read_old(file: &File, mut words: FileWords, page_size: usize) -> Result<Meta, TraceDatError> {
    let layout = header_info(&mut words)?;
    let mut formats = Vec::new();
    ftrace_events(&mut words, &mut formats)?;
    event_formats(&mut words, &mut formats)?;
    for _ in ["kallsyms", "printk"] {
        let size = words.u32()?;
        words.skip(size.into())?;
    }
    let comms = comms(&mut words)?;
    let mut cpus = words.u32()?;
    let mut options = Options::default();
    let is_events = old_options(&mut words, &mut options)?;
    if !is_events {
        let (at, what) = (words.at, TEXT_ONLY);
        return Err(TraceDatError::Strange { at, what });
    }
    cpus = options.cpus.unwrap_or(cpus);
    let buffer = |cpus| Buffer {
        page_size,
        is_compressed: false,
        cpus,
    };
    let mut buffers = vec![buffer(spans(&mut words, cpus)?)];
    let mut damaged = (0, None);
    for offset in std::mem::take(&mut options.instances) {
        match old_instance(file, &words, (offset, cpus)) {
            Ok(cpus) => buffers.push(buffer(cpus)),
            Err(TraceDatError::Io(error)) => return Err(error.into()),
            Err(_) => damage(&mut damaged, offset),
        }
    }
    Ok(Meta {
        version: VERSION_OLD,
        layout,
        compression: Compression::None,
        formats,
        comms,
        buffers,
        options,
        damaged,
    })
}

fn damage(damaged: &mut (u64, Option<u64>), offset: u64) {
    damaged.0 += 1;
    damaged.1.get_or_insert(offset);
}

/// Whether events follow the options, and not a text.
fn old_options(words: &mut FileWords, options: &mut Options) -> Result<bool, TraceDatError> {
    loop {
        let at = words.at;
        match &words.array::<10>()? {
            b"options  \0" => loop {
                let id = words.u16()?;
                if id == option::DONE {
                    break;
                }
                let size = words.u32()?.into();
                let data = words.bytes_up_to(size, OPTION_BYTES_MAX)?;
                if id == option::BUFFER {
                    let offset = data.get(..8).and_then(|bytes| bytes.try_into().ok());
                    let offset = offset.map(|bytes| number(bytes, words.is_big_endian));
                    options.instances.extend(offset);
                } else {
                    options.add(id, &data, words.is_big_endian);
                }
            },
            b"flyrecord\0" => return Ok(true),
            b"latency  \0" => return Ok(false),
            _ => {
                let what = "neither options nor events where they must be";
                return Err(TraceDatError::Strange { at, what });
            }
        }
    }
}

fn old_instance(
    file: &File,
    head: &FileWords,
    (offset, cpus): (u64, u32),
) -> Result<Vec<super::meta::Span>, TraceDatError> {
    let mut words = words_at(file, head.is_big_endian, offset)?;
    // Its options say again what those of the file say.
    let mut own = Options::default();
    if !old_options(&mut words, &mut own)? {
        let what = TEXT_ONLY;
        return Err(TraceDatError::Strange { at: offset, what });
    }
    spans(&mut words, own.cpus.unwrap_or(cpus))
}

fn words_at(file: &File, is_big_endian: bool, at: u64) -> Result<FileWords, TraceDatError> {
    let len = file.metadata()?.len();
    let mut from = BufReader::new(file.try_clone()?);
    from.seek(SeekFrom::Start(at))?;
    Ok(Words::new(from, is_big_endian, at, len))
}

fn number(bytes: [u8; 8], is_big_endian: bool) -> u64 {
    if is_big_endian {
        u64::from_be_bytes(bytes)
    } else {
        u64::from_le_bytes(bytes)
    }
}

/// A file of sections.
struct Sections<'f> {
    file: &'f File,
    is_big_endian: bool,
    layout: Option<Layout>,
    read_count: u32,
    meta: Meta,
}

impl<'f> Sections<'f> {
    fn new(file: &'f File, words: &mut FileWords) -> Result<Self, TraceDatError> {
        let at = words.at;
        let compression = match words.text()?.as_str() {
            "none" | "" => Compression::None,
            "zlib" => Compression::Zlib,
            "zstd" => Compression::Zstd,
            _ => {
                let what = "a compression other than zlib and zstd (trace-cmd convert --compression zstd makes one of these)";
                return Err(TraceDatError::Strange { at, what });
            }
        };
        let _its_version = words.text()?;
        let is_big_endian = words.is_big_endian;
        Ok(Self {
            file,
            is_big_endian,
            layout: None,
            read_count: 0,
            meta: Meta {
                version: VERSION_SECTIONS,
                // Until the section is read that tells.
                layout: Layout {
                    is_big_endian,
                    commit_bytes: 8,
                    data_at: 16,
                },
                compression,
                formats: Vec::new(),
                comms: std::collections::HashMap::new(),
                buffers: Vec::new(),
                options: Options::default(),
                damaged: (0, None),
            },
        })
    }

    fn read(mut self, mut words: FileWords) -> Result<Meta, TraceDatError> {
        let mut next = words.u64()?;
        let mut lists = 0;
        let mut texts = 0;
        while next != 0 {
            let at = next;
            lists += 1;
            if lists > OPTION_LISTS_MAX {
                let what = "lists of options that never end";
                return Err(TraceDatError::Strange { at, what });
            }
            next = match self.options(at, &mut texts) {
                Ok(next) => next,
                Err(TraceDatError::Io(error)) => return Err(error.into()),
                // What the lists before it say is enough, if they say anything.
                Err(_) if lists > 1 => {
                    damage(&mut self.meta.damaged, at);
                    0
                }
                Err(error) => return Err(error),
            };
        }
        let Some(layout) = self.layout else {
            let what = "no description of pages";
            return Err(TraceDatError::Strange { at: 0, what });
        };
        if self.meta.buffers.is_empty() && texts > 0 {
            let what = TEXT_ONLY;
            return Err(TraceDatError::Strange { at: 0, what });
        }
        self.meta.layout = layout;
        Ok(self.meta)
    }

    /// One list; gives where the next one is.
    fn options(&mut self, at: u64, texts: &mut u32) -> Result<u64, TraceDatError> {
        const BUFFER_TEXT: u16 = 22;
        let (id, list) = self.section(at)?;
        if id != option::DONE {
            let what = "no options where they must be";
            return Err(TraceDatError::Strange { at, what });
        }
        let mut words = Words::new(Cursor::new(&list), self.is_big_endian, 0, list.len() as u64);
        loop {
            let id = words.u16()?;
            let size = words.u32()?.into();
            let data = words.bytes_up_to(size, OPTION_BYTES_MAX)?;
            let offset = data.get(..8).and_then(|bytes| bytes.try_into().ok());
            let offset = offset.map(|bytes| number(bytes, self.is_big_endian));
            match (id, offset) {
                (option::DONE, offset) => return Ok(offset.unwrap_or(0)),
                (option::BUFFER, Some(offset)) => {
                    self.tried(offset, |sections| sections.buffer(&data, offset))?;
                }
                (BUFFER_TEXT, _) => *texts += 1,
                (
                    option::HEADER_INFO
                    | option::FTRACE_EVENTS
                    | option::EVENT_FORMATS
                    | option::CMDLINES,
                    Some(offset),
                ) => self.tried(offset, |sections| sections.part(id, offset))?,
                _ => self.meta.options.add(id, &data, self.is_big_endian),
            }
        }
    }

    /// A part that cannot be read is noted; the others may do.
    fn tried(
        &mut self,
        offset: u64,
        read: impl FnOnce(&mut Self) -> Result<(), TraceDatError>,
    ) -> Result<(), TraceDatError> {
        match read(self) {
            Ok(()) => Ok(()),
            Err(TraceDatError::Io(error)) => Err(error.into()),
            Err(_) => {
                damage(&mut self.meta.damaged, offset);
                Ok(())
            }
        }
    }

    fn part(&mut self, id: u16, offset: u64) -> Result<(), TraceDatError> {
        let (_, part) = self.section(offset)?;
        let mut words = Words::new(Cursor::new(&part), self.is_big_endian, 0, part.len() as u64);
        match id {
            option::HEADER_INFO => self.layout = Some(header_info(&mut words)?),
            option::FTRACE_EVENTS => ftrace_events(&mut words, &mut self.meta.formats)?,
            option::EVENT_FORMATS => event_formats(&mut words, &mut self.meta.formats)?,
            _ => self.meta.comms = comms(&mut words)?,
        }
        Ok(())
    }

    fn buffer(&mut self, data: &[u8], offset: u64) -> Result<(), TraceDatError> {
        let mut words = Words::new(Cursor::new(data), self.is_big_endian, 0, data.len() as u64);
        let _offset = words.u64()?;
        let name = words.text()?;
        let clock = words.text()?;
        if name.is_empty() && !clock.is_empty() && self.meta.options.clock.is_none() {
            self.meta.options.clock = Some(clock);
        }
        let page_size = words.u32()? as usize;
        if !PAGE_BYTES.contains(&page_size) {
            let what = NO_PAGES;
            return Err(TraceDatError::Strange { at: offset, what });
        }
        let cpus = numbered_spans(&mut words)?;
        let mut head = words_at(self.file, self.is_big_endian, offset)?;
        let _id = head.u16()?;
        self.meta.buffers.push(Buffer {
            page_size,
            is_compressed: head.u16()? & SECTION_COMPRESSED != 0,
            cpus,
        });
        Ok(())
    }

    /// Kind and content of the section there.
    fn section(&mut self, at: u64) -> Result<(u16, Vec<u8>), TraceDatError> {
        let mut words = words_at(self.file, self.is_big_endian, at)?;
        let (id, flags) = (words.u16()?, words.u16()?);
        let _description = words.u32()?;
        let size = words.u64()?;
        self.read_count += 1;
        if size > SECTION_BYTES_MAX as u64 || self.read_count > SECTIONS_MAX {
            let what = "more or larger sections than there can be";
            return Err(TraceDatError::Strange { at, what });
        }
        if flags & SECTION_COMPRESSED == 0 {
            return Ok((id, words.bytes(size)?));
        }
        let (packed, unpacked) = (words.u32()?, words.u32()? as usize);
        let at = words.at;
        let packed = words.bytes(packed.into())?;
        let limit = unpacked.min(SECTION_BYTES_MAX);
        let content = unpack(self.meta.compression, &packed, limit);
        let what = "a section that cannot be unpacked";
        Ok((id, content.ok_or(TraceDatError::Strange { at, what })?))
    }
}
