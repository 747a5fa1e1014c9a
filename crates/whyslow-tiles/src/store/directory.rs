//! The directory: all tracks and their lanes.

use whyslow_model::Window;

use crate::store::columns::{Cursor, put, zigzag};
use crate::{LeftOut, limits};

/// The root of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Directory {
    /// Start of the recording, ns since the epoch, and its length.
    pub(crate) begin: i64,
    pub(crate) length: u64,
    /// Extent of the series, and the width of their columns as a power of two.
    pub(crate) series: Extent,
    pub(crate) column_bits: u8,
    pub(crate) cpus: u64,
    pub(crate) tracks: Vec<Lanes>,
}

/// Location of a part of the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// The lanes of one track, in order of their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Lanes {
    /// Number of the track.
    pub(crate) track: u8,
    pub(crate) left_out: LeftOut,
    /// For heat maps: index of the narrowest stored column width.
    pub(crate) narrowest: u8,
    pub(crate) all: Vec<LaneEntry>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LaneEntry {
    pub(crate) id: i32,
    pub(crate) device: Option<(i64, String)>,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) intervals: u64,
    pub(crate) times_ns: [u64; 4],
    pub(crate) index: Extent,
}

impl Directory {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put(&mut bytes, zigzag(self.begin));
        put(&mut bytes, self.length);
        put_extent(&mut bytes, self.series);
        bytes.push(self.column_bits);
        put(&mut bytes, self.cpus);
        put(&mut bytes, self.tracks.len() as u64);
        for track in &self.tracks {
            bytes.extend([track.track, track.narrowest]);
            let left_out = track.left_out;
            for number in [
                left_out.cut,
                left_out.hidden,
                left_out.outside,
                left_out.without_lane,
            ] {
                put(&mut bytes, number);
            }
            put(&mut bytes, track.all.len() as u64);
            for lane in &track.all {
                lane.encode(&mut bytes);
            }
        }
        bytes
    }

    /// `None` if the bytes are damaged.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = Cursor(bytes);
        let mut directory = Self {
            begin: rest.signed()?,
            length: rest.number()?,
            series: extent(&mut rest)?,
            column_bits: rest.byte()?,
            cpus: rest.number()?,
            tracks: Vec::new(),
        };
        if directory.column_bits > 63 {
            return None;
        }
        for _ in 0..rest.number()? {
            let mut track = Lanes {
                track: rest.byte()?,
                narrowest: rest.byte()?,
                left_out: LeftOut {
                    cut: rest.number()?,
                    hidden: rest.number()?,
                    outside: rest.number()?,
                    without_lane: rest.number()?,
                },
                all: Vec::new(),
            };
            // Not reserved in advance: a wrong number must not allocate more than the bytes there
            // are.
            for _ in 0..rest.number()? {
                track.all.push(LaneEntry::decode(&mut rest)?);
            }
            directory.tracks.push(track);
        }
        let columns = directory.length >> directory.column_bits;
        (rest.0.is_empty() && columns < limits::COLUMNS).then_some(directory)
    }
}

impl LaneEntry {
    fn encode(&self, bytes: &mut Vec<u8>) {
        put(bytes, zigzag(i64::from(self.id)));
        match &self.device {
            None => bytes.push(0),
            Some((number, name)) => {
                bytes.push(1);
                put(bytes, zigzag(*number));
                put(bytes, name.len() as u64);
                bytes.extend_from_slice(name.as_bytes());
            }
        }
        put(bytes, self.first);
        put(bytes, self.last - self.first);
        put(bytes, self.intervals);
        for time in self.times_ns {
            put(bytes, time);
        }
        put_extent(bytes, self.index);
    }

    fn decode(rest: &mut Cursor<'_>) -> Option<Self> {
        let id = i32::try_from(rest.signed()?).ok()?;
        let device = match rest.byte()? {
            0 => None,
            1 => {
                let number = rest.signed()?;
                let length = usize::try_from(rest.number()?).ok()?;
                let name = std::str::from_utf8(rest.take(length)?).ok()?;
                Some((number, name.to_owned()))
            }
            _ => return None,
        };
        let first = rest.number()?;
        let last = first.checked_add(rest.number()?)?;
        let intervals = rest.number()?;
        let mut times_ns = [0; 4];
        for time in &mut times_ns {
            *time = rest.number()?;
        }
        Some(Self {
            id,
            device,
            first,
            last,
            intervals,
            times_ns,
            index: extent(rest)?,
        })
    }
}

fn put_extent(bytes: &mut Vec<u8>, extent: Extent) {
    put(bytes, extent.offset);
    put(bytes, extent.bytes);
}

fn extent(rest: &mut Cursor<'_>) -> Option<Extent> {
    Some(Extent {
        offset: rest.number()?,
        bytes: rest.number()?,
    })
}

impl Directory {
    /// Timestamp of an offset in ns from the start of the recording.
    pub(crate) fn timestamp(&self, offset: u64) -> i64 {
        let end = i128::from(self.begin) + i128::from(offset);
        i64::try_from(end).unwrap_or(i64::MAX)
    }

    /// The part of a window inside the recording, in ns since its start.
    pub(crate) fn clip(&self, window: Window) -> Option<(u64, u64)> {
        let offset = |ts: i64| {
            let offset = i128::from(ts) - i128::from(self.begin);
            offset.clamp(0, i128::from(self.length)) as u64
        };
        let (begin, end) = (offset(window.begin), offset(window.end));
        let is_inside = window.begin < window.end
            && window.end > self.begin
            && i128::from(window.begin) <= i128::from(self.begin) + i128::from(self.length);
        is_inside.then_some((begin, end))
    }
}
