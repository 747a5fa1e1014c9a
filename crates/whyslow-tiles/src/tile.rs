//! Reads one tile: the cells of some lanes at one level.

use rayon::prelude::*;
use whyslow_model::sort::IndexSort;

use crate::item::{Interval, Longest, Sum, Times, WHOLE, shares};
use crate::level;
use crate::store::block::{Block, ItemKind};
use crate::store::columns::Cursor;
use crate::store::directory::LaneEntry;
use crate::store::index::Entries;
use crate::store::reader::{PageReader, TileFile};
use crate::{CELLS, LEVEL_MAX, Run, Tiles, TilesError};

/// Lanes per parallel task: neighbours share pages.
const LANES_PER_TASK: usize = 8;

pub(crate) fn tile(
    tiles: &Tiles,
    track: u8,
    (level, index): (u8, u64),
    lanes: &[i32],
) -> Result<Vec<Run>, TilesError> {
    if level > LEVEL_MAX {
        return Err(TilesError::NoLevel {
            level,
            max: LEVEL_MAX,
        });
    }
    let Some(frame) = Frame::of(level, index) else {
        return Ok(Vec::new());
    };
    let known = tiles.lanes(track);
    let find = |id: &i32| known.binary_search_by_key(id, |lane| lane.id).ok();
    let mut wanted: Vec<(usize, &LaneEntry)> = lanes
        .iter()
        .enumerate()
        .filter_map(|(position, id)| Some((position, &known[find(id)?])))
        .collect();
    // Read lanes in the order in which they were written.
    wanted.index_sort_by_key(|(_, lane)| lane.index.offset);
    let read = |lanes: &[(usize, &LaneEntry)]| {
        let mut reader = LaneReader::new(&tiles.file, frame)?;
        let each = lanes
            .iter()
            .map(|(position, lane)| Ok((*position, reader.runs(lane)?)));
        each.collect::<Result<Vec<_>, TilesError>>()
    };
    let mut parts: Vec<Vec<(usize, Vec<Run>)>> = wanted
        .par_chunks(LANES_PER_TASK)
        .map(read)
        .collect::<Result<_, _>>()?;
    let mut all: Vec<(usize, Vec<Run>)> = parts.drain(..).flatten().collect();
    all.sort_unstable_by_key(|(position, _)| *position);
    Ok(all.into_iter().flat_map(|(_, runs)| runs).collect())
}

/// The time range of a tile, in ns since the start of the recording.
#[derive(Debug, Clone, Copy)]
struct Frame {
    level: u8,
    begin: u64,
    end: u64,
}

impl Frame {
    /// `None` if the tile starts beyond 2^64 ns.
    fn of(level: u8, index: u64) -> Option<Self> {
        let length = CELLS << level;
        let begin = index.checked_mul(length)?;
        Some(Self {
            level,
            begin,
            end: begin.saturating_add(length),
        })
    }

    fn meets(self, first: u64, end: u64) -> bool {
        first < self.end && (end > self.begin || (end == first && first >= self.begin))
    }

    /// Whether sums of level `finest` fit into the cells of this tile.
    #[inline]
    fn can_use(self, finest: u8) -> bool {
        2 * u16::from(finest) <= u16::from(self.level)
    }

    #[inline]
    fn cell(self, at: u64) -> usize {
        ((at - self.begin) >> self.level) as usize
    }
}

#[derive(Debug, Clone, Copy)]
struct Cell {
    /// In ns / [`WHOLE`].
    times: Times,
    longest: Longest,
    count: u64,
    is_known: bool,
}

const EMPTY: Cell = Cell {
    times: [0; 4],
    longest: Longest {
        length: 0,
        value: i32::MAX,
    },
    count: 0,
    is_known: false,
};

/// Reads lanes one after another.
struct LaneReader<'f> {
    file: &'f TileFile,
    pages: PageReader<'f>,
    frame: Frame,
    cells: Vec<Cell>,
}

impl<'f> LaneReader<'f> {
    fn new(file: &'f TileFile, frame: Frame) -> Result<Self, TilesError> {
        Ok(Self {
            file,
            pages: PageReader::new(file)?,
            frame,
            cells: vec![EMPTY; CELLS as usize],
        })
    }

    fn runs(&mut self, lane: &LaneEntry) -> Result<Vec<Run>, TilesError> {
        if !self.frame.meets(lane.first, lane.last) || lane.index.bytes == 0 {
            return Ok(Vec::new());
        }
        self.cells.fill(EMPTY);
        let index = self.file.checksummed("the index of a lane", lane.index)?;
        let mut entries = Entries::new(&index);
        loop {
            let entry = entries.next().map_err(|()| {
                let offset = lane.index.offset;
                self.file
                    .damaged("the index of a lane", offset, "invalid encoding")
            })?;
            // Entries are sorted by their greatest mark, descending.
            let Some(entry) = entry.filter(|entry| is_needed(entry.marks.1, self.frame.level))
            else {
                break;
            };
            if self.frame.can_use(entry.finest) && self.frame.meets(entry.first, entry.end) {
                let segment = self.pages.segment(&entry)?;
                if add_segment(segment, self.frame, &mut self.cells).is_none() {
                    let reason = "a block has an invalid encoding";
                    return Err(self.file.damaged("a page", entry.page, reason));
                }
            }
        }
        Ok(self.to_runs(lane.id))
    }

    fn to_runs(&self, lane: i32) -> Vec<Run> {
        let cell_ns = 1u64 << self.frame.level;
        let mut runs: Vec<Run> = Vec::new();
        for (x, cell) in (0u16..).zip(&self.cells) {
            if !cell.is_known {
                continue;
            }
            let run = Run {
                lane,
                x,
                n: 1,
                value: cell.longest.value,
                shares: shares(&cell.times, cell_ns),
                count: u32::try_from(cell.count).unwrap_or(u32::MAX),
                longest_ns: i64::try_from(cell.longest.length).unwrap_or(i64::MAX),
            };
            match runs.last_mut() {
                Some(last)
                    if last.x + last.n == x
                        && run.count == 0
                        && (last.value, last.shares, last.longest_ns)
                            == (run.value, run.shares, run.longest_ns) =>
                {
                    last.n += 1;
                }
                _ => runs.push(run),
            }
        }
        runs
    }
}

/// Whether a tile of `level` needs items with this mark.
#[inline]
fn is_needed(mark: u8, level: u8) -> bool {
    2 * u16::from(mark) > u16::from(level)
}

/// `None` if the segment is damaged.
fn add_segment(segment: &[u8], frame: Frame, cells: &mut [Cell]) -> Option<()> {
    let mut rest = Cursor(segment);
    while !rest.0.is_empty() {
        let block = Block::next(&mut rest)?;
        let is_used = is_needed(block.mark, frame.level) && frame.can_use(block.finest);
        if !is_used || !frame.meets(block.first, block.end) {
            continue;
        }
        match block.kind {
            ItemKind::Interval => {
                block.intervals(frame.end, &mut |interval| {
                    add_interval(interval, frame, cells);
                })?;
            }
            ItemKind::Sum => block.sums(frame.end, &mut |sum| add_sum(sum, frame, cells))?,
            ItemKind::Heat => return None,
        }
    }
    Some(())
}

#[inline]
fn add_interval(interval: &Interval, frame: Frame, cells: &mut [Cell]) {
    if !frame.meets(interval.begin, interval.end) {
        return;
    }
    let longest = interval.longest();
    let from = interval.begin.max(frame.begin);
    let to = interval.end.min(frame.end);
    let first = frame.cell(from);
    let last = frame.cell(to.saturating_sub(1).max(from));
    let Some(touched) = cells.get_mut(first..=last) else {
        return;
    };
    let count = touched.len();
    for (number, cell) in touched.iter_mut().enumerate() {
        let begin = frame.begin + ((first + number) as u64) * (1 << frame.level);
        let length = if number > 0 && number + 1 < count {
            1 << frame.level
        } else {
            let end = begin.saturating_add(1 << frame.level);
            to.min(end) - from.max(begin)
        };
        interval.mix.add(length, &mut cell.times);
        cell.longest.update(longest);
        cell.is_known = true;
    }
    if interval.begin >= frame.begin {
        touched[0].count = touched[0].count.saturating_add(1);
    }
}

/// Adds a sum. It lies within one cell: tiles with smaller cells use its parts instead.
#[inline]
fn add_sum(sum: &Sum, frame: Frame, cells: &mut [Cell]) {
    let begin = level::begin_of(sum.cell, sum.level);
    if !frame.can_use(sum.level) || begin < frame.begin || begin >= frame.end {
        return;
    }
    let Some(cell) = cells.get_mut(frame.cell(begin)) else {
        return;
    };
    for (time, more) in cell.times.iter_mut().zip(sum.times) {
        *time = time.saturating_add(more);
    }
    cell.longest.update(sum.longest);
    cell.count = cell.count.saturating_add(sum.count);
    cell.is_known = true;
}

const _: () = assert!(WHOLE == 255);
