//! The header of a perf.data file, and the feature sections after its data.
//!
//! A file starts with the offsets of its sections; pipe-mode output contains the same data as
//! records.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::attr::Attr;
use crate::importers::bytes::Bytes;

const MAGIC: &[u8; 8] = b"PERFILE2";
const MAGIC_SWAPPED: &[u8; 8] = b"2ELIFREP";
const HEAD_BYTES: usize = 104;
/// Size of a header without offsets: records follow.
const HEAD_BYTES_PIPE: u64 = 16;
/// Larger sections are not read.
const PART_BYTES_MAX: u64 = 64 << 20;
const ATTRS_MAX: usize = 1 << 16;
const IDS_MAX: usize = 1 << 20;

/// Numbers of the feature sections after the data.
pub(super) mod feature {
    pub(in crate::importers::perf) const TRACING_DATA: u32 = 1;
    pub(in crate::importers::perf) const BUILD_ID: u32 = 2;
    pub(in crate::importers::perf) const HOSTNAME: u32 = 3;
    pub(in crate::importers::perf) const RELEASE: u32 = 4;
    pub(in crate::importers::perf) const VERSION: u32 = 5;
    pub(in crate::importers::perf) const ARCH: u32 = 6;
    pub(in crate::importers::perf) const COMMAND_LINE: u32 = 11;
    pub(in crate::importers::perf) const EVENTS: u32 = 12;
    pub(in crate::importers::perf) const SAMPLE_TIME: u32 = 21;
    pub(in crate::importers::perf) const CLOCK_DATA: u32 = 29;
    pub(in crate::importers::perf) const COUNT: u32 = 256;
}

/// Whether the first bytes of a file are the magic of perf.data, in either byte order.
pub fn is_perf(head: &[u8]) -> bool {
    head.starts_with(MAGIC) || head.starts_with(MAGIC_SWAPPED)
}

/// Metadata of a file.
#[derive(Debug, Default)]
pub(super) struct FileInfo {
    pub(super) attrs: Vec<Attr>,
    pub(super) hostname: Option<String>,
    pub(super) release: Option<String>,
    pub(super) version: Option<String>,
    pub(super) arch: Option<String>,
    pub(super) command_line: Option<String>,
    /// Nanoseconds since 1970, and the record clock at the same time.
    pub(super) clock: Option<(i64, i64)>,
    /// Of the first and the last sample.
    pub(super) sample_time: Option<(u64, u64)>,
    pub(super) build_ids: HashMap<Vec<u8>, Vec<u8>>,
    pub(super) tracing_data: Vec<u8>,
    /// The feature sections are truncated.
    pub(super) is_cut: bool,
}

#[derive(Debug)]
pub(super) struct Head {
    pub(super) is_big_endian: bool,
    pub(super) is_pipe: bool,
    /// Offset and size of the records; no size if perf did not finish the file.
    pub(super) data: (u64, Option<u64>),
    pub(super) info: FileInfo,
}

/// Reason why a file cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum PerfError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The header is inconsistent or of an unknown form.
    #[error("{0}")]
    Format(&'static str),
}

impl Head {
    /// Leaves the file positioned at the first record.
    pub(super) fn read(file: &mut File) -> Result<Self, PerfError> {
        let len = file.metadata()?.len();
        let mut bytes = [0; HEAD_BYTES];
        let got = read_up_to(file, &mut bytes)?;
        let bytes = &bytes[..got];
        if !is_perf(bytes) {
            return Err(PerfError::Format("the file does not start with PERFILE2"));
        }
        let is_big_endian = bytes.starts_with(MAGIC_SWAPPED);
        let mut numbers = Bytes::new(&bytes[8..], is_big_endian);
        let cut = PerfError::Format("the header is truncated, nothing can be recovered");
        let Some(size) = numbers.u64() else {
            return Err(cut);
        };
        if size == HEAD_BYTES_PIPE {
            file.seek(SeekFrom::Start(HEAD_BYTES_PIPE))?;
            return Ok(Self {
                is_big_endian,
                is_pipe: true,
                data: (HEAD_BYTES_PIPE, None),
                info: FileInfo::default(),
            });
        }
        let mut places = [0; 7];
        for place in &mut places {
            match numbers.u64() {
                Some(number) => *place = number,
                None => return Err(cut),
            }
        }
        let [attr_bytes, attrs_at, attrs_len, data_at, data_len, ..] = places;
        let mut features = [0; 4];
        for word in &mut features {
            *word = numbers.u64().unwrap_or(0);
        }
        let mut info = FileInfo::default();
        let mut parts = Parts {
            file,
            len,
            is_big_endian,
        };
        parts.attrs((attr_bytes, attrs_at, attrs_len), &mut info)?;
        if info.attrs.is_empty() {
            return Err(PerfError::Format(
                "the recorded events are missing from the header",
            ));
        }
        let is_finished = data_len > 0;
        if is_finished {
            parts.features(data_at.saturating_add(data_len), features, &mut info)?;
        }
        file.seek(SeekFrom::Start(data_at))?;
        Ok(Self {
            is_big_endian,
            is_pipe: false,
            data: (data_at, is_finished.then_some(data_len)),
            info,
        })
    }
}

fn read_up_to(file: &mut File, bytes: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < bytes.len() {
        match file.read(&mut bytes[got..])? {
            0 => break,
            more => got += more,
        }
    }
    Ok(got)
}

struct Parts<'f> {
    file: &'f mut File,
    len: u64,
    is_big_endian: bool,
}

impl Parts<'_> {
    /// As much of a section as is present.
    fn part(&mut self, at: u64, len: u64) -> io::Result<Vec<u8>> {
        let left = self.len.saturating_sub(at);
        if len > PART_BYTES_MAX || left == 0 {
            return Ok(Vec::new());
        }
        self.file.seek(SeekFrom::Start(at))?;
        let mut bytes = Vec::new();
        (&mut *self.file)
            .take(len.min(left))
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn bytes<'b>(&self, bytes: &'b [u8]) -> Bytes<'b> {
        Bytes::new(bytes, self.is_big_endian)
    }

    fn attrs(
        &mut self,
        (each, at, len): (u64, u64, u64),
        info: &mut FileInfo,
    ) -> Result<(), PerfError> {
        const IDS_PLACE: usize = 16;
        let each = usize::try_from(each).unwrap_or(usize::MAX);
        if each <= IDS_PLACE || each > 4096 {
            return Err(PerfError::Format("the header has inconsistent sizes"));
        }
        let all = self.part(at, len)?;
        for one in all.chunks_exact(each).take(ATTRS_MAX) {
            let (attr, place) = one.split_at(each - IDS_PLACE);
            let Some(mut attr) = Attr::parse(attr, self.is_big_endian) else {
                continue;
            };
            let mut place = self.bytes(place);
            if let (Some(at), Some(len)) = (place.u64(), place.u64()) {
                let ids = self.part(at, len.min(8 * IDS_MAX as u64))?;
                let mut ids = self.bytes(&ids);
                while let Some(id) = ids.u64() {
                    attr.ids.push(id);
                }
            }
            info.attrs.push(attr);
        }
        Ok(())
    }

    /// The section table follows the data, in the order of the feature numbers.
    fn features(&mut self, at: u64, bits: [u64; 4], info: &mut FileInfo) -> io::Result<()> {
        let is_there = |number: &u32| bits[*number as usize / 64] >> (number % 64) & 1 == 1;
        let numbers: Vec<u32> = (0..feature::COUNT).filter(is_there).collect();
        let places = self.part(at, 16 * numbers.len() as u64)?;
        info.is_cut |= places.len() < 16 * numbers.len();
        let mut places = self.bytes(&places);
        for number in numbers {
            let (Some(at), Some(len)) = (places.u64(), places.u64()) else {
                break;
            };
            let part = self.part(at, len)?;
            info.is_cut |= at.saturating_add(len) > self.len;
            info.feature(number, &part, self.is_big_endian);
        }
        Ok(())
    }
}

impl FileInfo {
    /// Parses a feature section; a damaged one is ignored.
    pub(super) fn feature(&mut self, number: u32, part: &[u8], is_big_endian: bool) {
        let _ = self.read_feature(number, part, is_big_endian);
    }

    fn read_feature(&mut self, number: u32, part: &[u8], is_big_endian: bool) -> Option<()> {
        let mut bytes = Bytes::new(part, is_big_endian);
        let text = |bytes: &mut Bytes<'_>| {
            let text = bytes.sized_text()?;
            Some(String::from_utf8_lossy(text).into_owned())
        };
        match number {
            feature::TRACING_DATA => self.tracing_data = part.to_vec(),
            feature::BUILD_ID => self.build_ids(bytes, is_big_endian),
            feature::HOSTNAME => self.hostname = text(&mut bytes),
            feature::RELEASE => self.release = text(&mut bytes),
            feature::VERSION => self.version = text(&mut bytes),
            feature::ARCH => self.arch = text(&mut bytes),
            feature::COMMAND_LINE => {
                let count = bytes.u32()?.min(1 << 12);
                let words = (0..count).map_while(|_| text(&mut bytes));
                self.command_line = Some(words.collect::<Vec<_>>().join(" "));
            }
            feature::EVENTS => self.events(bytes, is_big_endian)?,
            feature::SAMPLE_TIME => self.sample_time = Some((bytes.u64()?, bytes.u64()?)),
            feature::CLOCK_DATA => {
                let _version = bytes.u32()?;
                let _clock = bytes.u32()?;
                let (wall, clock) = (bytes.u64()? as i64, bytes.u64()? as i64);
                self.clock = Some((wall, clock));
            }
            _ => {}
        }
        Some(())
    }

    /// Names of the events, whose order and ids are those of the attributes.
    fn events(&mut self, mut bytes: Bytes<'_>, is_big_endian: bool) -> Option<()> {
        let (count, each) = (bytes.u32()?, bytes.u32()? as usize);
        for number in 0..count as usize {
            let attr = Attr::parse(bytes.take(each)?, is_big_endian);
            let ids = bytes.u32()? as usize;
            let name = String::from_utf8_lossy(bytes.sized_text()?).into_owned();
            let mut ids = Bytes::new(bytes.take(ids.checked_mul(8)?)?, is_big_endian);
            if let Some(known) = self.attrs.get_mut(number) {
                known.name = name;
            } else {
                // In pipe mode, this record may come before the attributes.
                let mut attr = attr?;
                attr.name = name;
                while let Some(id) = ids.u64() {
                    attr.ids.push(id);
                }
                self.attrs.push(attr);
            }
            if number >= ATTRS_MAX {
                return None;
            }
        }
        Some(())
    }

    fn build_ids(&mut self, mut bytes: Bytes<'_>, is_big_endian: bool) {
        while let Some(body) = record_body(&mut bytes) {
            self.build_id(body, is_big_endian);
        }
    }

    /// Of a mapped file: the pid (unused), the build id with its length, the path.
    pub(super) fn build_id(&mut self, (misc, body): (u16, &[u8]), is_big_endian: bool) {
        const MISC_SIZE: u16 = 1 << 15;
        const ROOM: usize = 24;
        let mut bytes = Bytes::new(body, is_big_endian);
        let _ = bytes.skip(4);
        let Some(id) = bytes.take(ROOM) else { return };
        let size = if misc & MISC_SIZE != 0 {
            usize::from(id[20]).min(20)
        } else {
            20
        };
        self.build_ids
            .insert(bytes.text().to_vec(), id[..size].to_vec());
    }
}

/// Misc and body of the next record in a section.
fn record_body<'b>(bytes: &mut Bytes<'b>) -> Option<(u16, &'b [u8])> {
    let _kind = bytes.u32()?;
    let (misc, size) = (bytes.u16()?, usize::from(bytes.u16()?));
    let body = bytes.take(size.checked_sub(super::record::HEADER_BYTES)?)?;
    Some((misc, body))
}
