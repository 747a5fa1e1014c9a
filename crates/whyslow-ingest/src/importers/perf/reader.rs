//! Reads the records of a file in time order.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use super::attr::{Attr, IDENTIFIER};
use super::head::{FileInfo, Head, PerfError};
use super::order::{Order, Pending};
use super::record::{HEADER_BYTES, Header, kind};
use crate::importers::bytes::Bytes;

const BUFFER_BYTES: usize = 1 << 20;
/// Maximum size of a decompressed record: a thousand times the largest compressed one.
const INFLATED_BYTES_MAX: usize = 64 << 20;
const TRACING_DATA_BYTES_MAX: u64 = 64 << 20;

/// Unreadable parts of a file, and where the first starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Damage {
    /// Bytes that are not records, or that are missing from a compressed record.
    pub(super) bytes: u64,
    pub(super) offset: Option<u64>,
}

impl Damage {
    fn add(&mut self, bytes: u64, offset: u64) {
        self.bytes += bytes;
        self.offset.get_or_insert(offset);
    }
}

pub(super) struct Reader {
    file: BufReader<File>,
    pub(super) is_big_endian: bool,
    pub(super) is_finished: bool,
    pub(super) info: FileInfo,
    /// File offset of the next record, and of the end of the records.
    at: u64,
    end: u64,
    len: u64,
    order: Order,
    by_id: HashMap<u64, usize>,
    decoder: Option<Decoder<'static>>,
    inflated: Vec<u8>,
    is_over: bool,
    pub(super) damage: Damage,
    pub(super) records: u64,
    /// Samples without matching attributes.
    pub(super) strange: u64,
}

impl Reader {
    pub(super) fn open(path: &Path) -> Result<Self, PerfError> {
        let mut file = File::open(path)?;
        let head = Head::read(&mut file)?;
        let len = file.metadata()?.len();
        let (at, data_len) = head.data;
        let end = data_len.map_or(len, |data_len| at.saturating_add(data_len).min(len));
        let is_cut = data_len.is_some_and(|data_len| at.saturating_add(data_len) > len);
        let mut reader = Self {
            file: BufReader::with_capacity(BUFFER_BYTES, file),
            is_big_endian: head.is_big_endian,
            is_finished: (data_len.is_some() || head.is_pipe) && !is_cut && !head.info.is_cut,
            info: head.info,
            at,
            end,
            len,
            order: Order::default(),
            by_id: HashMap::new(),
            decoder: None,
            inflated: Vec::new(),
            is_over: false,
            damage: Damage::default(),
            records: 0,
            strange: 0,
        };
        reader.index();
        if head.is_pipe {
            // The file's metadata comes first.
            reader.fill()?;
        }
        Ok(reader)
    }

    /// Records that were passed on before it was certain that none of the following ones is
    /// earlier.
    pub(super) fn sorted_early(&self) -> u64 {
        self.order.sorted_early
    }

    /// Bytes read, and bytes of the file.
    pub(super) fn progress(&self) -> (u64, u64) {
        (self.at, self.len)
    }

    fn index(&mut self) {
        self.by_id.clear();
        for (place, attr) in self.info.attrs.iter().enumerate() {
            self.by_id.extend(attr.ids.iter().map(|id| (*id, place)));
        }
    }

    /// Timestamp of the next record, in the clock of the records.
    pub(super) fn next_ts(&mut self) -> io::Result<Option<u64>> {
        self.fill()?;
        Ok(self.order.ready())
    }

    pub(super) fn next(&mut self) -> io::Result<Option<Pending>> {
        self.fill()?;
        Ok(self.order.next())
    }

    /// Reads on until a record is in order.
    fn fill(&mut self) -> io::Result<()> {
        while self.order.ready().is_none() && !self.is_over {
            if !self.read()? {
                self.order.end();
                self.is_over = true;
            }
        }
        Ok(())
    }

    /// Reads one record; false at the end.
    fn read(&mut self) -> io::Result<bool> {
        let begin = self.at;
        let mut head = [0; HEADER_BYTES];
        if self.end.saturating_sub(self.at) < HEADER_BYTES as u64 {
            if self.at < self.end {
                self.damage.add(self.end - self.at, begin);
            }
            return Ok(false);
        }
        if !read_all(&mut self.file, &mut head)? {
            return Ok(false);
        }
        self.at += HEADER_BYTES as u64;
        let Some(header) = Header::parse(head, self.is_big_endian) else {
            return Ok(false);
        };
        let Some(size) = usize::from(header.size).checked_sub(HEADER_BYTES) else {
            // The start of the next record is unknown; a file whose writer was killed ends with
            // zeros.
            self.damage.add(self.end - begin, begin);
            return Ok(false);
        };
        if size as u64 > self.end - self.at {
            self.damage.add(self.end - begin, begin);
            return Ok(false);
        }
        let mut body = vec![0; size].into_boxed_slice();
        if !read_all(&mut self.file, &mut body)? {
            return Ok(false);
        }
        self.at += size as u64;
        self.take(header, body, begin)?;
        Ok(true)
    }

    fn take(&mut self, header: Header, body: Box<[u8]>, begin: u64) -> io::Result<()> {
        self.records += 1;
        if header.kind < kind::USER {
            self.place(header, body);
            return Ok(());
        }
        let mut bytes = Bytes::new(&body, self.is_big_endian);
        match header.kind {
            kind::FINISHED_ROUND => self.order.end_round(),
            kind::ATTR => self.attr(&body),
            kind::FEATURE => {
                if let Some(number) = bytes.u64() {
                    let part = bytes.take(bytes.left()).unwrap_or_default();
                    self.info.feature(number as u32, part, self.is_big_endian);
                    self.index();
                }
            }
            kind::BUILD_ID => self.info.build_id((header.misc, &body), self.is_big_endian),
            kind::TRACING_DATA => {
                let size = u64::from(bytes.u32().unwrap_or(0));
                self.tracing_data(size, begin)?;
            }
            kind::AUXTRACE => {
                // AUX data of the processor follows the record.
                let size = bytes.u64().unwrap_or(0);
                self.skip(size)?;
            }
            kind::COMPRESSED => self.inflate(&body, begin),
            kind::COMPRESSED2 => {
                let size = bytes.u64().unwrap_or(0);
                let size = usize::try_from(size).unwrap_or(usize::MAX);
                let data = bytes.take(size.min(bytes.left())).unwrap_or_default();
                self.inflate(data, begin);
            }
            _ => {}
        }
        Ok(())
    }

    /// An attribute record with its ids.
    fn attr(&mut self, body: &[u8]) {
        const SIZE_AT: usize = 4;
        let size = body.get(SIZE_AT..).and_then(|rest| {
            let mut bytes = Bytes::new(rest, self.is_big_endian);
            bytes.u32()
        });
        let size = (size.unwrap_or(0) as usize).min(body.len());
        let Some(mut attr) = Attr::parse(&body[..size], self.is_big_endian) else {
            return;
        };
        let mut ids = Bytes::new(&body[size..], self.is_big_endian);
        while let Some(id) = ids.u64() {
            attr.ids.push(id);
        }
        self.info.attrs.push(attr);
        self.index();
    }

    fn tracing_data(&mut self, size: u64, begin: u64) -> io::Result<()> {
        const ALIGNED: u64 = 8;
        let left = self.end.saturating_sub(self.at);
        let padded = size.next_multiple_of(ALIGNED).min(left);
        if size > TRACING_DATA_BYTES_MAX.min(left) {
            self.damage.add(padded, begin);
            return self.skip(padded);
        }
        let mut data = Vec::new();
        (&mut self.file).take(padded).read_to_end(&mut data)?;
        self.at += data.len() as u64;
        data.truncate(size as usize);
        self.info.tracing_data = data;
        Ok(())
    }

    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        let bytes = bytes.min(self.end.saturating_sub(self.at));
        // Less than the file size, so it fits a relative offset.
        self.file.seek_relative(bytes.cast_signed())?;
        self.at += bytes;
        Ok(())
    }

    fn inflate(&mut self, data: &[u8], begin: u64) {
        let decoder = match &mut self.decoder {
            Some(decoder) => decoder,
            None => match Decoder::new() {
                Ok(decoder) => self.decoder.insert(decoder),
                Err(_) => return self.damage.add(data.len() as u64, begin),
            },
        };
        let from = self.inflated.len();
        let mut input = InBuffer::around(data);
        let mut piece = vec![0; 128 << 10];
        loop {
            let mut output = OutBuffer::around(&mut piece[..]);
            let Ok(_) = decoder.run(&mut input, &mut output) else {
                self.damage.add((data.len() - input.pos) as u64, begin);
                break;
            };
            let got = output.pos();
            self.inflated.extend_from_slice(&piece[..got]);
            if input.pos == data.len() && got < piece.len() {
                break;
            }
            if self.inflated.len() - from > INFLATED_BYTES_MAX {
                // The rest may be in the decoder only.
                let left = (data.len() - input.pos).max(1);
                self.damage.add(left as u64, begin);
                break;
            }
        }
        self.take_inflated(begin);
    }

    /// Records may continue in the next compressed one.
    fn take_inflated(&mut self, begin: u64) {
        let all = std::mem::take(&mut self.inflated);
        let mut at = 0;
        while let Some(head) = all[at..].first_chunk::<HEADER_BYTES>() {
            let header = Header::parse(*head, self.is_big_endian);
            let size = header.map_or(0, |header| usize::from(header.size));
            let Some(header) = header.filter(|_| size >= HEADER_BYTES) else {
                self.damage.add((all.len() - at) as u64, begin);
                return;
            };
            let Some(body) = all.get(at + HEADER_BYTES..at + size) else {
                break;
            };
            self.records += 1;
            // perf's own records are never compressed.
            if header.kind < kind::USER {
                self.place(header, body.into());
            }
            at += size;
        }
        self.inflated = all[at..].to_vec();
    }

    /// Queues a kernel record in time order.
    fn place(&mut self, header: Header, body: Box<[u8]>) {
        let Some(attr) = self.attr_of(header.kind, &body) else {
            self.strange += 1;
            return;
        };
        let of = &self.info.attrs[attr];
        let at = if header.kind == kind::SAMPLE {
            of.time_in_sample()
        } else {
            of.time_from_end()
                .and_then(|from_end| body.len().checked_sub(from_end))
        };
        let ts = at.and_then(|at| Bytes::new(body.get(at..)?, self.is_big_endian).u64());
        // Records synthesised by perf at the start have no time, or zero.
        self.order.add(ts.unwrap_or(0), header, attr, body);
    }

    fn attr_of(&self, kind: u32, body: &[u8]) -> Option<usize> {
        let first = self.info.attrs.first()?;
        if self.info.attrs.len() == 1 {
            return Some(0);
        }
        let at = match (kind, first.has(IDENTIFIER)) {
            (kind::SAMPLE, true) => Some(0),
            (kind::SAMPLE, false) => first.id_in_sample(),
            (_, true) => body.len().checked_sub(8),
            (_, false) => None,
        };
        let id = at.and_then(|at| Bytes::new(body.get(at..)?, self.is_big_endian).u64());
        match id.and_then(|id| self.by_id.get(&id)) {
            Some(attr) => Some(*attr),
            // Records without an event of their own have the layout of the first one.
            None if kind != kind::SAMPLE || id.is_none() => Some(0),
            None => None,
        }
    }
}

/// False if the file ends early.
fn read_all(file: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
