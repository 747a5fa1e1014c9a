//! Metadata before the events: page layout, event formats, thread names, options.

use std::collections::HashMap;
use std::io::Read;

use super::TraceDatError;
use super::field_reader::FieldReader;
use crate::importers::tracepoint::format::{Field, Format};

/// Maximum size of an event format, or of any other text in use.
const FORMAT_BYTES_MAX: u64 = 1 << 20;
const CMDLINES_BYTES_MAX: u64 = 16 << 20;
const FORMATS_MAX: usize = 1 << 16;
/// Maximum number of CPUs that a kernel supports.
const CPUS_MAX: u32 = 1 << 13;

/// Location of the data of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) cpu: i32,
    pub(super) offset: u64,
    pub(super) size: u64,
}

/// The events of one tracing instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Buffer {
    pub(super) page_size: usize,
    pub(super) is_compressed: bool,
    pub(super) cpus: Vec<Span>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Compression {
    #[default]
    None,
    Zlib,
    Zstd,
}

/// Layout of the page header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) is_big_endian: bool,
    /// Size of the commit field after the timestamp.
    pub(super) commit_bytes: usize,
    pub(super) data_at: usize,
}

#[derive(Debug)]
pub(super) struct Meta {
    pub(super) version: u32,
    pub(super) layout: Layout,
    pub(super) compression: Compression,
    pub(super) formats: Vec<Format>,
    pub(super) comms: HashMap<i32, Vec<u8>>,
    pub(super) buffers: Vec<Buffer>,
    pub(super) options: Options,
    /// Number of sections that could not be read, and the offset of the first one.
    pub(super) damaged: (u64, Option<u64>),
}

/// Optional metadata.
#[derive(Debug, Default)]
pub(super) struct Options {
    /// Offset from the trace clock to wall-clock time.
    pub(super) date_ns: Option<i64>,
    pub(super) offset_ns: i64,
    pub(super) clock: Option<String>,
    /// Multiplier and shift from TSC ticks to nanoseconds.
    pub(super) tsc: Option<(u32, u32)>,
    pub(super) uname: Option<String>,
    pub(super) version: Option<String>,
    /// Events that the kernel dropped or overwrote.
    pub(super) discarded: u64,
    /// The trace of a guest has a table that converts its timestamps to the host's clock.
    pub(super) has_time_shift: bool,
    /// Additional instances, in version 6.
    pub(super) instances: Vec<u64>,
    /// Number of CPUs, if it differs from the header.
    pub(super) cpus: Option<u32>,
}

/// Option ids, from the header of libtracecmd.
pub(super) mod option {
    pub(in crate::importers::tracedat) const DONE: u16 = 0;
    pub(super) const DATE: u16 = 1;
    pub(super) const CPUSTAT: u16 = 2;
    pub(in crate::importers::tracedat) const BUFFER: u16 = 3;
    pub(super) const TRACECLOCK: u16 = 4;
    pub(super) const UNAME: u16 = 5;
    pub(super) const OFFSET: u16 = 7;
    pub(super) const CPUCOUNT: u16 = 8;
    pub(super) const VERSION: u16 = 9;
    pub(super) const TIME_SHIFT: u16 = 12;
    pub(super) const TSC2NSEC: u16 = 14;
    pub(in crate::importers::tracedat) const HEADER_INFO: u16 = 16;
    pub(in crate::importers::tracedat) const FTRACE_EVENTS: u16 = 17;
    pub(in crate::importers::tracedat) const EVENT_FORMATS: u16 = 18;
    pub(in crate::importers::tracedat) const CMDLINES: u16 = 21;
}

impl Options {
    pub(super) fn add(&mut self, id: u16, data: &[u8], is_big_endian: bool) {
        let word = |at: usize| {
            let bytes: [u8; 4] = data.get(at..at + 4)?.try_into().ok()?;
            Some(if is_big_endian {
                u32::from_be_bytes(bytes)
            } else {
                u32::from_le_bytes(bytes)
            })
        };
        let text = || {
            let end = data.iter().position(|byte| *byte == 0);
            String::from_utf8_lossy(&data[..end.unwrap_or(data.len())]).into_owned()
        };
        match id {
            // In microseconds.
            option::DATE => {
                self.date_ns = signed(&text()).and_then(|us| us.checked_mul(1_000));
            }
            option::OFFSET => self.offset_ns = signed(&text()).unwrap_or(0),
            option::CPUSTAT => self.discarded = self.discarded.saturating_add(discarded(&text())),
            option::TRACECLOCK => self.clock = chosen(&text()).or(self.clock.take()),
            option::UNAME => self.uname = Some(text()),
            option::VERSION => self.version = Some(text()),
            option::CPUCOUNT => self.cpus = word(0),
            option::TIME_SHIFT => self.has_time_shift = true,
            option::TSC2NSEC => self.tsc = word(0).zip(word(4)).filter(|(factor, _)| *factor != 0),
            _ => {}
        }
    }
}

/// `0x12ab`, `-0x12`, `123`.
fn signed(text: &str) -> Option<i64> {
    let text = text.trim();
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()? as i64,
        None => digits.parse().ok()?,
    };
    Some(if is_negative {
        value.wrapping_neg()
    } else {
        value
    })
}

/// Events that were overwritten or dropped according to the statistics of a CPU.
fn discarded(stats: &str) -> u64 {
    let number = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let is_loss = matches!(name.trim(), "overrun" | "dropped events");
        is_loss.then(|| value.trim().parse::<u64>().ok())?
    };
    stats
        .lines()
        .filter_map(number)
        .fold(0, u64::saturating_add)
}

/// `local [global] counter`
fn chosen(clocks: &str) -> Option<String> {
    let (_, rest) = clocks.split_once('[')?;
    let (clock, _) = rest.split_once(']')?;
    Some(clock.to_owned())
}

impl Layout {
    /// From the text of `header_page`.
    pub(super) fn parse(text: &str, is_big_endian: bool) -> Option<Self> {
        let fields = text.lines().filter_map(|line| {
            let rest = line.trim_start().strip_prefix("field:")?;
            Field::parse(rest.trim_start())
        });
        let fields: Vec<Field> = fields.collect();
        let field = |name: &str| fields.iter().find(|field| field.name == name);
        let (time, commit, data) = (field("timestamp")?, field("commit")?, field("data")?);
        let is_known = time.offset == 0
            && time.size == 8
            && commit.offset == 8
            && matches!(commit.size, 4 | 8)
            && data.offset == 8 + commit.size;
        is_known.then_some(Self {
            is_big_endian,
            commit_bytes: commit.size,
            data_at: data.offset,
        })
    }
}

/// The texts `header_page` and `header_event`.
pub(super) fn header_info<R: Read>(reader: &mut FieldReader<R>) -> Result<Layout, TraceDatError> {
    const WHAT: &str = "missing page format";
    let at = reader.at;
    reader.expect(b"header_page\0", WHAT)?;
    let size = reader.u64()?;
    let page = reader.bytes_up_to(size, FORMAT_BYTES_MAX)?;
    reader.expect(b"header_event\0", "missing event header format")?;
    let size = reader.u64()?;
    reader.skip(size)?;
    let page = String::from_utf8_lossy(&page);
    Layout::parse(&page, reader.is_big_endian).ok_or(TraceDatError::Strange { at, what: WHAT })
}

pub(super) fn ftrace_events<R: Read>(
    reader: &mut FieldReader<R>,
    formats: &mut Vec<Format>,
) -> Result<(), TraceDatError> {
    for _ in 0..reader.u32()? {
        format(reader, "ftrace", formats)?;
    }
    Ok(())
}

pub(super) fn event_formats<R: Read>(
    reader: &mut FieldReader<R>,
    formats: &mut Vec<Format>,
) -> Result<(), TraceDatError> {
    for _ in 0..reader.u32()? {
        let system = reader.text()?;
        for _ in 0..reader.u32()? {
            format(reader, &system, formats)?;
        }
    }
    Ok(())
}

fn format<R: Read>(
    reader: &mut FieldReader<R>,
    system: &str,
    formats: &mut Vec<Format>,
) -> Result<(), TraceDatError> {
    let size = reader.u64()?;
    let text = reader.bytes_up_to(size, FORMAT_BYTES_MAX)?;
    if formats.len() < FORMATS_MAX {
        formats.extend(Format::parse(system, &String::from_utf8_lossy(&text)));
    }
    Ok(())
}

/// Thread names by tid, one per line.
pub(super) fn comms<R: Read>(
    reader: &mut FieldReader<R>,
) -> Result<HashMap<i32, Vec<u8>>, TraceDatError> {
    let size = reader.u64()?;
    let text = reader.bytes_up_to(size, CMDLINES_BYTES_MAX)?;
    let line = |line: &[u8]| {
        let space = line.iter().position(|byte| *byte == b' ')?;
        let tid = std::str::from_utf8(&line[..space]).ok()?.parse().ok()?;
        // The kernel's placeholder for unknown names.
        let comm = &line[space + 1..];
        (tid > 0 && comm != b"<...>").then(|| (tid, comm.to_vec()))
    };
    Ok(text.split(|byte| *byte == b'\n').filter_map(line).collect())
}

/// Offset and size of the data of each CPU.
pub(super) fn spans<R: Read>(
    reader: &mut FieldReader<R>,
    count: u32,
) -> Result<Vec<Span>, TraceDatError> {
    let mut spans = Vec::new();
    for cpu in 0..count.min(CPUS_MAX) {
        spans.push(Span {
            cpu: cpu as i32,
            offset: reader.u64()?,
            size: reader.u64()?,
        });
    }
    Ok(spans)
}

/// The same including the CPU number, as in version 7.
pub(super) fn numbered_spans<R: Read>(
    reader: &mut FieldReader<R>,
) -> Result<Vec<Span>, TraceDatError> {
    let mut spans = Vec::new();
    for _ in 0..reader.u32()?.min(CPUS_MAX) {
        spans.push(Span {
            cpu: reader.u32()? as i32,
            offset: reader.u64()?,
            size: reader.u64()?,
        });
    }
    Ok(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_options_are_numbers() {
        assert_eq!(signed("0x10"), Some(16));
        assert_eq!(signed("-0x10"), Some(-16));
        assert_eq!(signed("-5\n"), Some(-5));
        assert_eq!(signed("0xffffffffffffffff"), Some(-1));
        assert_eq!(signed("x"), None);
        assert_eq!(chosen("local [mono] boot").as_deref(), Some("mono"));
        assert_eq!(chosen("local"), None);
        let stats = "CPU: 0\nentries: 5\noverrun: 12\ndropped events: 3\nread events: 7\n";
        assert_eq!(discarded(stats), 15);
    }

    #[test]
    fn pages_begin_as_the_kernel_says() {
        let text = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
            \tfield: local_t commit;\toffset:8;\tsize:4;\tsigned:1;\n\
            \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
            \tfield: char data;\toffset:12;\tsize:4084;\tsigned:1;\n";
        let layout = Layout::parse(text, true).expect("a layout");
        assert_eq!((layout.commit_bytes, layout.data_at), (4, 12));
        assert_eq!(
            Layout::parse(&text.replace("offset:12", "offset:16"), true),
            None
        );
        assert_eq!(Layout::parse("", true), None);
    }
}
