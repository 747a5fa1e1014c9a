//! The list of tracks and their lanes.

use whyslow_model::Window;

use crate::store::columns::{Cursor, folded, put};
use crate::{LeftOut, limits};

/// What the whole file is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Directory {
    /// Begin of the recording, ns since the epoch, and its length.
    pub(crate) begin: i64,
    pub(crate) length: u64,
    /// Where the series lie, and the width of their columns as a power of two.
    pub(crate) series: Stretch,
    pub(crate) column_bits: u8,
    pub(crate) cpus: u64,
    pub(crate) tracks: Vec<Lanes>,
}

/// Where something lies in the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// The lanes of one track, in order of their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Lanes {
    /// Number of the track.
    pub(crate) track: u8,
    pub(crate) left_out: LeftOut,
    /// Of heat maps: the narrowest columns that are there.
    pub(crate) narrowest: u8,
    pub(crate) all: Vec<LaneAt>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LaneAt {
    pub(crate) id: i32,
    pub(crate) device: Option<(i64, String)>,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) intervals: u64,
    pub(crate) times_ns: [u64; 4],
    pub(crate) index: Stretch,
}

impl Directory {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put(&mut bytes, folded(self.begin));
        put(&mut bytes, self.length);
        put_stretch(&mut bytes, self.series);
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

    /// `None` if it is damaged.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = Cursor(bytes);
        let mut directory = Self {
            begin: rest.signed()?,
            length: rest.number()?,
            series: stretch(&mut rest)?,
            column_bits: rest.taken()?,
            cpus: rest.number()?,
            tracks: Vec::new(),
        };
        if directory.column_bits > 63 {
            return None;
        }
        for _ in 0..rest.number()? {
            let mut track = Lanes {
                track: rest.taken()?,
                narrowest: rest.taken()?,
                left_out: LeftOut {
                    cut: rest.number()?,
                    hidden: rest.number()?,
                    outside: rest.number()?,
                    without_lane: rest.number()?,
                },
                all: Vec::new(),
            };
            // No more room than there are bytes: a lane takes several.
            for _ in 0..rest.number()? {
                track.all.push(LaneAt::decode(&mut rest)?);
            }
            directory.tracks.push(track);
        }
        let columns = directory.length >> directory.column_bits;
        (rest.0.is_empty() && columns < limits::COLUMNS).then_some(directory)
    }
}

impl LaneAt {
    fn encode(&self, bytes: &mut Vec<u8>) {
        put(bytes, folded(i64::from(self.id)));
        match &self.device {
            None => bytes.push(0),
            Some((number, name)) => {
                bytes.push(1);
                put(bytes, folded(*number));
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
        put_stretch(bytes, self.index);
    }

    fn decode(rest: &mut Cursor<'_>) -> Option<Self> {
        let id = i32::try_from(rest.signed()?).ok()?;
        let device = match rest.taken()? {
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
            index: stretch(rest)?,
        })
    }
}

fn put_stretch(bytes: &mut Vec<u8>, stretch: Stretch) {
    put(bytes, stretch.offset);
    put(bytes, stretch.bytes);
}

fn stretch(rest: &mut Cursor<'_>) -> Option<Stretch> {
    Some(Stretch {
        offset: rest.number()?,
        bytes: rest.number()?,
    })
}

impl Directory {
    /// What lies so many ns after the begin.
    pub(crate) fn moment(&self, offset: u64) -> i64 {
        let end = i128::from(self.begin) + i128::from(offset);
        i64::try_from(end).unwrap_or(i64::MAX)
    }

    /// What of a window lies in the recording, in ns since its begin.
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
