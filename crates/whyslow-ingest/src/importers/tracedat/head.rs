//! The header of a file in its two versions: a sequence of texts, or sections referenced by
//! options.

use std::fs::File;
use std::io::{BufReader, Cursor, Seek, SeekFrom};

use super::TraceDatError;
use super::field_reader::FieldReader;
use super::meta::{
    Buffer, Compression, Layout, Meta, Options, comms, event_formats, ftrace_events, header_info,
    numbered_spans, option, spans,
};
use super::packed::unpack;

pub(super) const MAGIC: &[u8] = b"\x17\x08\x44tracing";
const VERSION_OLD: u32 = 6;
const VERSION_SECTIONS: u32 = 7;
const SECTION_COMPRESSED: u16 = 1;
/// Maximum size of a decompressed header section.
const SECTION_BYTES_MAX: usize = 256 << 20;
const OPTION_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of chained option lists.
const OPTION_LISTS_MAX: usize = 256;
/// Maximum number of sections referenced by options.
const SECTIONS_MAX: u32 = 256;
const PAGE_BYTES: std::ops::RangeInclusive<usize> = 64..=1 << 24;
const NO_PAGES: &str = "invalid page size";
const TEXT_ONLY: &str = "the file contains the text of a latency tracer, not events; import the \
                         output of `trace-cmd report`";

type HeaderReader = FieldReader<BufReader<File>>;

/// Whether a file starting with `head` is from trace-cmd. Perf's tracing data has the same magic.
pub fn is_trace_dat(head: &[u8]) -> bool {
    head.strip_prefix(MAGIC)
        .is_some_and(|rest| rest.starts_with(b"6\0") || rest.starts_with(b"7\0"))
}

/// Reads a header; `file` can be read at any offset.
pub(super) fn read(file: &File) -> Result<Meta, TraceDatError> {
    let len = file.metadata()?.len();
    let mut begin = BufReader::new(file.try_clone()?);
    begin.seek(SeekFrom::Start(0))?;
    let mut reader = FieldReader::new(begin, false, 0, len);
    reader.expect(MAGIC, "not a trace-cmd file")?;
    let at = reader.at;
    let version = reader.text()?.parse().unwrap_or(0);
    if version != VERSION_OLD && version != VERSION_SECTIONS {
        let what = "unsupported version (supported: 6, 7)";
        return Err(TraceDatError::Strange { at, what });
    }
    reader.is_big_endian = reader.array::<1>()? == [1];
    let _long_size = reader.array::<1>()?;
    let at = reader.at;
    let page_size = reader.u32()? as usize;
    if !PAGE_BYTES.contains(&page_size) {
        return Err(TraceDatError::Strange { at, what: NO_PAGES });
    }
    if version == VERSION_OLD {
        read_old(file, reader, page_size)
    } else {
        Sections::new(file, &mut reader)?.read(reader)
    }
}

fn read_old(
    file: &File,
    mut reader: HeaderReader,
    page_size: usize,
) -> Result<Meta, TraceDatError> {
    let layout = header_info(&mut reader)?;
    let mut formats = Vec::new();
    ftrace_events(&mut reader, &mut formats)?;
    event_formats(&mut reader, &mut formats)?;
    for _ in ["kallsyms", "printk"] {
        let size = reader.u32()?;
        reader.skip(size.into())?;
    }
    let comms = comms(&mut reader)?;
    let mut cpus = reader.u32()?;
    let mut options = Options::default();
    let is_events = old_options(&mut reader, &mut options)?;
    if !is_events {
        let (at, what) = (reader.at, TEXT_ONLY);
        return Err(TraceDatError::Strange { at, what });
    }
    cpus = options.cpus.unwrap_or(cpus);
    let buffer = |cpus| Buffer {
        page_size,
        is_compressed: false,
        cpus,
    };
    let mut buffers = vec![buffer(spans(&mut reader, cpus)?)];
    let mut damaged = (0, None);
    for offset in std::mem::take(&mut options.instances) {
        match old_instance(file, &reader, (offset, cpus)) {
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

/// Whether events follow the options, rather than a text.
fn old_options(reader: &mut HeaderReader, options: &mut Options) -> Result<bool, TraceDatError> {
    loop {
        let at = reader.at;
        match &reader.array::<10>()? {
            b"options  \0" => loop {
                let id = reader.u16()?;
                if id == option::DONE {
                    break;
                }
                let size = reader.u32()?.into();
                let data = reader.bytes_up_to(size, OPTION_BYTES_MAX)?;
                if id == option::BUFFER {
                    let offset = data.get(..8).and_then(|bytes| bytes.try_into().ok());
                    let offset = offset.map(|bytes| number(bytes, reader.is_big_endian));
                    options.instances.extend(offset);
                } else {
                    options.add(id, &data, reader.is_big_endian);
                }
            },
            b"flyrecord\0" => return Ok(true),
            b"latency  \0" => return Ok(false),
            _ => {
                let what = "missing options and events";
                return Err(TraceDatError::Strange { at, what });
            }
        }
    }
}

fn old_instance(
    file: &File,
    head: &HeaderReader,
    (offset, cpus): (u64, u32),
) -> Result<Vec<super::meta::Span>, TraceDatError> {
    let mut reader = reader_at(file, head.is_big_endian, offset)?;
    // Its options repeat those of the file.
    let mut own = Options::default();
    if !old_options(&mut reader, &mut own)? {
        let what = TEXT_ONLY;
        return Err(TraceDatError::Strange { at: offset, what });
    }
    spans(&mut reader, own.cpus.unwrap_or(cpus))
}

fn reader_at(file: &File, is_big_endian: bool, at: u64) -> Result<HeaderReader, TraceDatError> {
    let len = file.metadata()?.len();
    let mut from = BufReader::new(file.try_clone()?);
    from.seek(SeekFrom::Start(at))?;
    Ok(FieldReader::new(from, is_big_endian, at, len))
}

fn number(bytes: [u8; 8], is_big_endian: bool) -> u64 {
    if is_big_endian {
        u64::from_be_bytes(bytes)
    } else {
        u64::from_le_bytes(bytes)
    }
}

/// A file of sections (version 7).
struct Sections<'f> {
    file: &'f File,
    is_big_endian: bool,
    layout: Option<Layout>,
    read_count: u32,
    meta: Meta,
}

impl<'f> Sections<'f> {
    fn new(file: &'f File, reader: &mut HeaderReader) -> Result<Self, TraceDatError> {
        let at = reader.at;
        let compression = match reader.text()?.as_str() {
            "none" | "" => Compression::None,
            "zlib" => Compression::Zlib,
            "zstd" => Compression::Zstd,
            _ => {
                let what = "unsupported compression (supported: zlib, zstd; convert with trace-cmd convert --compression zstd)";
                return Err(TraceDatError::Strange { at, what });
            }
        };
        let _its_version = reader.text()?;
        let is_big_endian = reader.is_big_endian;
        Ok(Self {
            file,
            is_big_endian,
            layout: None,
            read_count: 0,
            meta: Meta {
                version: VERSION_SECTIONS,
                // Replaced when the header section is read.
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

    fn read(mut self, mut reader: HeaderReader) -> Result<Meta, TraceDatError> {
        let mut next = reader.u64()?;
        let mut lists = 0;
        let mut texts = 0;
        while next != 0 {
            let at = next;
            lists += 1;
            if lists > OPTION_LISTS_MAX {
                let what = "too many option lists";
                return Err(TraceDatError::Strange { at, what });
            }
            next = match self.options(at, &mut texts) {
                Ok(next) => next,
                Err(TraceDatError::Io(error)) => return Err(error.into()),
                // The lists read so far are enough, if there are any.
                Err(_) if lists > 1 => {
                    damage(&mut self.meta.damaged, at);
                    0
                }
                Err(error) => return Err(error),
            };
        }
        let Some(layout) = self.layout else {
            let what = "missing page format";
            return Err(TraceDatError::Strange { at: 0, what });
        };
        if self.meta.buffers.is_empty() && texts > 0 {
            let what = TEXT_ONLY;
            return Err(TraceDatError::Strange { at: 0, what });
        }
        self.meta.layout = layout;
        Ok(self.meta)
    }

    /// Reads one list; returns the offset of the next.
    fn options(&mut self, at: u64, texts: &mut u32) -> Result<u64, TraceDatError> {
        const BUFFER_TEXT: u16 = 22;
        let (id, list) = self.section(at)?;
        if id != option::DONE {
            let what = "missing option section";
            return Err(TraceDatError::Strange { at, what });
        }
        let mut reader =
            FieldReader::new(Cursor::new(&list), self.is_big_endian, 0, list.len() as u64);
        loop {
            let id = reader.u16()?;
            let size = reader.u32()?.into();
            let data = reader.bytes_up_to(size, OPTION_BYTES_MAX)?;
            let offset = data.get(..8).and_then(|bytes| bytes.try_into().ok());
            let offset = offset.map(|bytes| number(bytes, self.is_big_endian));
            match (id, offset) {
                (option::DONE, offset) => return Ok(offset.unwrap_or(0)),
                (option::BUFFER, Some(offset)) => {
                    self.try_section(offset, |sections| sections.buffer(&data, offset))?;
                }
                (BUFFER_TEXT, _) => *texts += 1,
                (
                    option::HEADER_INFO
                    | option::FTRACE_EVENTS
                    | option::EVENT_FORMATS
                    | option::CMDLINES,
                    Some(offset),
                ) => self.try_section(offset, |sections| sections.part(id, offset))?,
                _ => self.meta.options.add(id, &data, self.is_big_endian),
            }
        }
    }

    /// A section that cannot be read is noted; the others may be sufficient.
    fn try_section(
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
        let mut reader =
            FieldReader::new(Cursor::new(&part), self.is_big_endian, 0, part.len() as u64);
        match id {
            option::HEADER_INFO => self.layout = Some(header_info(&mut reader)?),
            option::FTRACE_EVENTS => ftrace_events(&mut reader, &mut self.meta.formats)?,
            option::EVENT_FORMATS => event_formats(&mut reader, &mut self.meta.formats)?,
            _ => self.meta.comms = comms(&mut reader)?,
        }
        Ok(())
    }

    fn buffer(&mut self, data: &[u8], offset: u64) -> Result<(), TraceDatError> {
        let mut reader =
            FieldReader::new(Cursor::new(data), self.is_big_endian, 0, data.len() as u64);
        let _offset = reader.u64()?;
        let name = reader.text()?;
        let clock = reader.text()?;
        if name.is_empty() && !clock.is_empty() && self.meta.options.clock.is_none() {
            self.meta.options.clock = Some(clock);
        }
        let page_size = reader.u32()? as usize;
        if !PAGE_BYTES.contains(&page_size) {
            let what = NO_PAGES;
            return Err(TraceDatError::Strange { at: offset, what });
        }
        let cpus = numbered_spans(&mut reader)?;
        let mut head = reader_at(self.file, self.is_big_endian, offset)?;
        let _id = head.u16()?;
        self.meta.buffers.push(Buffer {
            page_size,
            is_compressed: head.u16()? & SECTION_COMPRESSED != 0,
            cpus,
        });
        Ok(())
    }

    /// Kind and content of the section at `at`.
    fn section(&mut self, at: u64) -> Result<(u16, Vec<u8>), TraceDatError> {
        let mut reader = reader_at(self.file, self.is_big_endian, at)?;
        let (id, flags) = (reader.u16()?, reader.u16()?);
        let _description = reader.u32()?;
        let size = reader.u64()?;
        self.read_count += 1;
        if size > SECTION_BYTES_MAX as u64 || self.read_count > SECTIONS_MAX {
            let what = "too many sections, or a section that is too large";
            return Err(TraceDatError::Strange { at, what });
        }
        if flags & SECTION_COMPRESSED == 0 {
            return Ok((id, reader.bytes(size)?));
        }
        let (packed, unpacked) = (reader.u32()?, reader.u32()? as usize);
        let at = reader.at;
        let packed = reader.bytes(packed.into())?;
        let limit = unpacked.min(SECTION_BYTES_MAX);
        let content = unpack(self.meta.compression, &packed, limit);
        let what = "a section cannot be decompressed";
        Ok((id, content.ok_or(TraceDatError::Strange { at, what })?))
    }
}
