//! Offsets of functions in executables and libraries (ELF).
//!
//! The files are untrusted: every read is bounded by the file size and by the limits here, sizes in
//! headers are only compared, and nothing is mapped, because truncating a mapped file would kill
//! the recorder.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// More than a linker produces.
const SEGMENTS_MAX: usize = 256;
const SECTIONS_MAX: usize = 16_384;
/// Beyond these sizes, names and symbols are not searched.
pub(super) const NAMES_MAX: u64 = 64 << 20;
pub(super) const SYMBOLS_MAX: u64 = 64 << 20;
/// Section names are short and few.
const SECTION_NAMES_MAX: u64 = 1 << 20;
/// Bytes per read.
const CHUNK: usize = 96 << 10;

const HEADER: usize = 64;
const SEGMENT: usize = 56;
const SECTION: usize = 64;
pub(super) const SYMBOL: usize = 24;

#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = 62;
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = 183;

/// Type of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Elf {
    /// Index of a name, and the file offset of the function.
    Functions(Vec<(usize, u64)>),
    /// A 32-bit program.
    Narrow,
    /// Not a program of this architecture.
    Foreign,
}

/// Number of symbols in a file, according to its headers.
pub(crate) fn symbols(file: &File) -> io::Result<u64> {
    const CLASS_64: [u8; 5] = [0x7f, b'E', b'L', b'F', 2];
    let header = bytes_at(file, 0, HEADER)?;
    let Some(header) = header.filter(|header| header.starts_with(&CLASS_64)) else {
        return Ok(0);
    };
    let sections = table(file, (u64_at(&header, 40), u16_at(&header, 60), SECTION))?;
    let sections = sections.chunks_exact(SECTION).map(Section::parse);
    let tables = sections.filter(|section| [SYMTAB, DYNSYM].contains(&section.kind));
    let bytes = tables.map(|table| table.size).fold(0, u64::saturating_add);
    Ok(bytes / SYMBOL as u64)
}

/// Searches for functions with these names among the exported ones; in a static executable, among
/// all.
pub(crate) fn functions(file: &File, names: &[&str]) -> io::Result<Elf> {
    let program = match Opened::of(file)? {
        Opened::Program(program) => program,
        Opened::Narrow => return Ok(Elf::Narrow),
        Opened::Foreign => return Ok(Elf::Foreign),
    };
    const INTERPRETER: u32 = 3;
    let function = |symbol: &[u8], wanted: &Wanted| program.function(symbol, wanted);
    let mut found = program.among(DYNSYM, names, function)?;
    let mut segments = program.segments.iter();
    let is_static = segments.all(|segment| segment.kind != INTERPRETER);
    if found.is_empty() && is_static {
        found = program.among(SYMTAB, names, function)?;
    }
    found.sort_unstable();
    found.dedup();
    // Aliases count once.
    let mut offsets = Vec::new();
    found.retain(|(_, offset)| {
        let is_new = !offsets.contains(offset);
        offsets.push(*offset);
        is_new
    });
    Ok(Elf::Functions(found))
}

/// Address and size of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) address: u64,
    pub(crate) size: u64,
}

/// Symbols of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named<'n> {
    /// Address of the start of the file; addresses in a process have the same distance from where
    /// that is mapped.
    pub(crate) begin: u64,
    pub(crate) found: Vec<(&'n str, Extent)>,
}

/// Functions and variables with these names; `None` if the file is not a program of this
/// architecture.
pub(crate) fn named<'n>(file: &File, names: &[&'n str]) -> io::Result<Option<Named<'n>>> {
    const PAGE: u64 = 4096;
    let Opened::Program(program) = Opened::of(file)? else {
        return Ok(None);
    };
    let begin = program.segments.iter().find(|segment| segment.is_begin());
    let Some(begin) = begin else {
        return Ok(None);
    };
    let mut found = program.among(DYNSYM, names, extent)?;
    found.extend(program.among(SYMTAB, names, extent)?);
    let found = found.into_iter().map(|(which, at)| (names[which], at));
    Ok(Some(Named {
        begin: begin.address / PAGE * PAGE,
        found: found.collect(),
    }))
}

fn extent(symbol: &[u8], wanted: &Wanted) -> Option<(usize, Extent)> {
    const KINDS: [u8; 2] = [1, 2];
    let name = u64::from(u32_at(symbol, 0));
    let (_, which) = wanted.iter().find(|(place, _)| *place == name)?;
    let is_defined = u16_at(symbol, 6) != 0;
    let extent = Extent {
        address: u64_at(symbol, 8),
        size: u64_at(symbol, 16),
    };
    (KINDS.contains(&(symbol[4] & 0xf)) && is_defined).then_some((*which, extent))
}

/// File offset of the entry point.
pub(crate) fn entry(file: &File) -> io::Result<Option<u64>> {
    let Opened::Program(program) = Opened::of(file)? else {
        return Ok(None);
    };
    let header = bytes_at(file, 0, HEADER)?;
    let mut segments = program.segments.iter();
    Ok(header.and_then(|header| {
        let address = u64_at(&header, 24);
        segments.find_map(|segment| segment.offset_of(address))
    }))
}

/// A part of a file, with its address in the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) address: u64,
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

/// Call frame information: how functions save their callers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallFrames {
    pub(crate) frames: Placed,
    /// Its index.
    pub(crate) header: Option<Placed>,
    segments: Vec<Placed>,
}

impl CallFrames {
    #[cfg(test)]
    pub(crate) fn of(frames: Placed, header: Option<Placed>) -> Self {
        Self {
            frames,
            header,
            segments: Vec::new(),
        }
    }

    /// Load bias of a file of which this offset is mapped at this address.
    pub(crate) fn base(&self, mapped: u64, offset: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| {
            let page = segment.offset & !0xfff;
            let within = offset
                .checked_sub(page)
                .filter(|within| *within < segment.size.saturating_add(0x1000));
            let address = segment.address.checked_sub(segment.offset - page)?;
            mapped.checked_sub(address.checked_add(within?)?)
        })
    }
}

/// `None` if the file has none.
pub(crate) fn call_frames(file: &File) -> io::Result<Option<CallFrames>> {
    const EXECUTABLE: u32 = 1;
    const LOAD: u32 = 1;
    let Opened::Program(program) = Opened::of(file)? else {
        return Ok(None);
    };
    let header = bytes_at(file, 0, HEADER)?;
    let names = header.and_then(|header| program.sections.get(usize::from(u16_at(&header, 62))));
    let Some(names) = names else {
        return Ok(None);
    };
    let mut texts = vec![0; names.size.min(SECTION_NAMES_MAX) as usize];
    let read = read_up_to(file, names.offset, &mut texts)?;
    texts.truncate(read);
    let named = |name: &[u8]| {
        let mut sections = program.sections.iter();
        let found = sections.find(|section| {
            let text = texts.get(section.name as usize..);
            text.is_some_and(|text| text.starts_with(name))
        });
        found.map(|section| Placed {
            address: section.address,
            offset: section.offset,
            size: section.size,
        })
    };
    let code = |segment: &&Segment| segment.kind == LOAD && segment.flags & EXECUTABLE != 0;
    let segments = program.segments.iter().filter(code).map(|segment| Placed {
        address: segment.address,
        offset: segment.offset,
        size: segment.size,
    });
    Ok(named(b".eh_frame\0").map(|frames| CallFrames {
        frames,
        header: named(b".eh_frame_hdr\0"),
        segments: segments.collect(),
    }))
}

/// Exported and imported symbols, …
pub(super) const DYNSYM: u32 = 11;
/// … and all symbols left by the linker.
pub(super) const SYMTAB: u32 = 2;

/// Offsets of names in a string table, and the index of each name.
type Wanted = [(u64, usize)];

/// A file that may be a program of this architecture.
pub(super) enum Opened<'f> {
    Program(Program<'f>),
    Narrow,
    Foreign,
}

impl<'f> Opened<'f> {
    pub(super) fn of(file: &'f File) -> io::Result<Self> {
        let Some(header) = bytes_at(file, 0, HEADER)? else {
            return Ok(Self::Foreign);
        };
        match header[..6] {
            [0x7f, b'E', b'L', b'F', 2, 1] if u16_at(&header, 18) == MACHINE => {}
            [0x7f, b'E', b'L', b'F', 1, _] => return Ok(Self::Narrow),
            _ => return Ok(Self::Foreign),
        }
        let segments = table(file, (u64_at(&header, 32), u16_at(&header, 56), SEGMENT))?;
        let sections = table(file, (u64_at(&header, 40), u16_at(&header, 60), SECTION))?;
        Ok(Self::Program(Program {
            file,
            segments: segments.chunks_exact(SEGMENT).map(Segment::parse).collect(),
            sections: sections.chunks_exact(SECTION).map(Section::parse).collect(),
        }))
    }
}

pub(super) struct Segment {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    size: u64,
}

impl Segment {
    fn parse(bytes: &[u8]) -> Self {
        Self {
            kind: u32_at(bytes, 0),
            flags: u32_at(bytes, 4),
            offset: u64_at(bytes, 8),
            address: u64_at(bytes, 16),
            size: u64_at(bytes, 32),
        }
    }

    /// File offset of the code at an address.
    pub(super) fn offset_of(&self, address: u64) -> Option<u64> {
        const EXECUTABLE: u32 = 1;
        let is_code = self.flags & EXECUTABLE != 0;
        self.place_of(address).filter(|_| is_code)
    }

    /// Whether it contains the first page of the file.
    fn is_begin(&self) -> bool {
        const LOAD: u32 = 1;
        self.kind == LOAD && self.offset == 0
    }

    /// File offset of an address.
    pub(super) fn place_of(&self, address: u64) -> Option<u64> {
        const LOAD: u32 = 1;
        let within = address.checked_sub(self.address)?;
        let is_there = self.kind == LOAD && within < self.size;
        self.offset.checked_add(within).filter(|_| is_there)
    }
}

pub(super) struct Section {
    name: u32,
    pub(super) kind: u32,
    address: u64,
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) link: u32,
}

impl Section {
    fn parse(bytes: &[u8]) -> Self {
        Self {
            name: u32_at(bytes, 0),
            kind: u32_at(bytes, 4),
            address: u64_at(bytes, 16),
            offset: u64_at(bytes, 24),
            size: u64_at(bytes, 32),
            link: u32_at(bytes, 40),
        }
    }
}

pub(super) struct Program<'f> {
    pub(super) file: &'f File,
    pub(super) segments: Vec<Segment>,
    pub(super) sections: Vec<Section>,
}

impl Program<'_> {
    fn among<T>(
        &self,
        kind: u32,
        names: &[&str],
        pick: impl Fn(&[u8], &Wanted) -> Option<(usize, T)>,
    ) -> io::Result<Vec<(usize, T)>> {
        const STRTAB: u32 = 3;
        let Some(symbols) = self.sections.iter().find(|section| section.kind == kind) else {
            return Ok(Vec::new());
        };
        let texts = self.sections.get(symbols.link as usize);
        let Some(texts) = texts.filter(|texts| texts.kind == STRTAB) else {
            return Ok(Vec::new());
        };
        let wanted = self.places(texts, names)?;
        let mut found = Vec::new();
        if wanted.is_empty() {
            return Ok(found);
        }
        let size = symbols.size.min(SYMBOLS_MAX);
        let mut chunk = vec![0; CHUNK / SYMBOL * SYMBOL];
        let mut done = 0;
        while done < size {
            let count = self.chunk(symbols.offset, (done, size), &mut chunk)?;
            for symbol in chunk[..count].chunks_exact(SYMBOL) {
                found.extend(pick(symbol, &wanted));
            }
            if count < SYMBOL || found.len() > 4 * names.len() {
                break;
            }
            done += (count / SYMBOL * SYMBOL) as u64;
        }
        Ok(found)
    }

    fn function(&self, symbol: &[u8], wanted: &Wanted) -> Option<(usize, u64)> {
        const FUNCTION: u8 = 2;
        let name = u64::from(u32_at(symbol, 0));
        let (_, which) = wanted.iter().find(|(place, _)| *place == name)?;
        let is_defined = u16_at(symbol, 6) != 0;
        if symbol[4] & 0xf != FUNCTION || !is_defined {
            return None;
        }
        let address = u64_at(symbol, 8);
        let mut segments = self.segments.iter();
        segments.find_map(|segment| Some((*which, segment.offset_of(address)?)))
    }

    /// Offsets of these names in a string table. A name may be the suffix of a longer one.
    fn places(&self, texts: &Section, names: &[&str]) -> io::Result<Vec<(u64, usize)>> {
        const PLACES_MAX: usize = 64;
        let longest = names.iter().map(|name| name.len() + 1).max().unwrap_or(0);
        let size = texts.size.min(NAMES_MAX);
        let mut chunk = vec![0; CHUNK];
        let mut places = Vec::new();
        let mut done = 0;
        while done < size {
            let count = self.chunk(texts.offset, (done, size), &mut chunk)?;
            for (end, _) in chunk[..count].iter().enumerate().filter(|(_, b)| **b == 0) {
                for (which, name) in names.iter().enumerate() {
                    if chunk[..end].ends_with(name.as_bytes()) && places.len() < PLACES_MAX {
                        places.push((done + (end - name.len()) as u64, which));
                    }
                }
            }
            if count <= longest {
                break;
            }
            // A name cut at the end of a chunk is at the start of the next.
            done += (count - longest) as u64;
        }
        places.sort_unstable();
        places.dedup();
        Ok(places)
    }

    /// As much of a part as exists; 0 at its end.
    fn chunk(&self, from: u64, (done, size): (u64, u64), chunk: &mut [u8]) -> io::Result<usize> {
        let wanted = (size - done).min(chunk.len() as u64) as usize;
        match from.checked_add(done) {
            Some(from) => read_up_to(self.file, from, &mut chunk[..wanted]),
            None => Ok(0),
        }
    }
}

/// Entries of a program or section header table, as many as exist.
fn table(file: &File, (from, count, entry): (u64, u16, usize)) -> io::Result<Vec<u8>> {
    let limit = if entry == SEGMENT {
        SEGMENTS_MAX
    } else {
        SECTIONS_MAX
    };
    if from == 0 || usize::from(count) > limit {
        return Ok(Vec::new());
    }
    let mut bytes = vec![0; usize::from(count) * entry];
    let read = read_up_to(file, from, &mut bytes)?;
    bytes.truncate(read);
    Ok(bytes)
}

fn bytes_at(file: &File, from: u64, count: usize) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = vec![0; count];
    let read = read_up_to(file, from, &mut bytes)?;
    Ok((read == count).then_some(bytes))
}

pub(crate) fn read_up_to(file: &File, from: u64, bytes: &mut [u8]) -> io::Result<usize> {
    let mut count = 0;
    // The kernel rejects offsets beyond the maximum file size.
    if from > i64::MAX as u64 - bytes.len() as u64 {
        return Ok(0);
    }
    while count < bytes.len() {
        match file.read_at(&mut bytes[count..], from + count as u64) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

/// Header fields, of the width in the name.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([0, 1].map(|i| bytes[at + i]))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([0, 1, 2, 3].map(|i| bytes[at + i]))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|i| bytes[at + i]))
}

#[cfg(test)]
#[path = "elf_tests.rs"]
mod tests;
