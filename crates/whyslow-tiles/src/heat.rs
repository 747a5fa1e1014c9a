//! Reads heat maps from stored cells.

use whyslow_model::Window;
use whyslow_model::syscall::Op;

use crate::build::{UNKNOWN, WIDTHS, bounds};
use crate::kinds::{BLOCK_OPS, HEAT_BLOCK, OPS_OF_DEVICE};
use crate::store::block::{Block, HeatItem, ItemKind};
use crate::store::columns::Cursor;
use crate::store::directory::LaneEntry;
use crate::store::index::Entries;
use crate::store::reader::PageReader;
use crate::{Heat, HeatCell, Tiles, TilesError};

/// All octaves, plus one for rows of unknown duration.
const ROWS: usize = UNKNOWN as usize + 1;

/// Which stored columns are read, and how many make one column of the result.
#[derive(Debug, Clone, Copy)]
struct Grid {
    /// Index of the stored width.
    width: usize,
    /// First stored column, and the one after the last.
    first: u64,
    end: u64,
    /// Stored columns per column of the result.
    factor: u64,
}

pub(crate) fn heat(
    tiles: &Tiles,
    track: u8,
    window: Window,
    columns: usize,
) -> Result<Option<Heat>, TilesError> {
    let directory = &tiles.directory;
    let Some((begin, end)) = directory.clip(window) else {
        return Ok(Some(Heat::default()));
    };
    let stored = (directory.column_bits, tiles.narrowest(track));
    let Some(grid) = Grid::of(stored, (begin, end), columns) else {
        return Ok(None);
    };
    let bits = grid.bits(directory.column_bits);
    let mut heat = Heat {
        begin_ns: directory.timestamp(grid.first << bits),
        width_ns: i64::try_from(u128::from(grid.factor) << bits).unwrap_or(i64::MAX),
        columns: grid.columns(),
        cells: Vec::new(),
        unknown: 0,
    };
    let mut pages = PageReader::new(&tiles.file)?;
    let mut map = vec![[(0, 0); ROWS]; grid.columns()];
    for lane in tiles.lanes(track) {
        map.fill([(0, 0); ROWS]);
        read(tiles, lane, grid, &mut pages, &mut map)?;
        add_cells(&map, track, lane.id, &mut heat);
    }
    Ok(Some(heat))
}

impl Grid {
    fn of(
        (column_bits, narrowest): (u8, usize),
        (begin, end): (u64, u64),
        columns: usize,
    ) -> Option<Self> {
        let wanted = (end - begin).div_ceil(columns.max(1) as u64).max(1);
        let width = (narrowest..WIDTHS).rev().find(|width| {
            Self::bits_of(column_bits, *width) < 64
                && wanted >> Self::bits_of(column_bits, *width) > 0
        })?;
        let bits = Self::bits_of(column_bits, width);
        let factor = wanted.div_ceil(1 << bits);
        let column = |at: u64| at >> bits;
        // Columns are aligned to the start of the recording, also those of several stored columns.
        let first = column(begin) / factor * factor;
        let end = (column(end.max(begin + 1) - 1) / factor + 1) * factor;
        Some(Self {
            width,
            first,
            end,
            factor,
        })
    }

    fn bits_of(column_bits: u8, width: usize) -> u32 {
        u32::from(column_bits) + 2 * width as u32
    }

    fn bits(self, column_bits: u8) -> u32 {
        Self::bits_of(column_bits, self.width)
    }

    fn columns(self) -> usize {
        ((self.end - self.first) / self.factor) as usize
    }
}

/// Count and sum of durations, by column and octave.
type Map = [[(u64, u64); ROWS]];

fn read(
    tiles: &Tiles,
    lane: &LaneEntry,
    grid: Grid,
    pages: &mut PageReader<'_>,
    map: &mut Map,
) -> Result<(), TilesError> {
    if lane.index.bytes == 0 {
        return Ok(());
    }
    let index = tiles
        .file
        .checksummed("the index of a heat map", lane.index)?;
    let damaged = |what, offset| tiles.file.damaged(what, offset, "invalid encoding");
    let mut entries = Entries::new(&index);
    let width = grid.width as u8;
    while let Some(entry) = entries
        .next()
        .map_err(|()| damaged("the index of a heat map", lane.index.offset))?
    {
        let has_width = (entry.marks.0..=entry.marks.1).contains(&width);
        // Column numbers of different widths cannot be compared: skip by time only if there is one
        // width.
        let has_one_width = entry.marks.0 == entry.marks.1;
        if !has_width || (has_one_width && (entry.first >= grid.end || entry.end <= grid.first)) {
            continue;
        }
        let mut rest = Cursor(pages.segment(&entry)?);
        while !rest.0.is_empty() {
            let block = Block::next(&mut rest).filter(|block| block.kind == ItemKind::Heat);
            let block = block.ok_or_else(|| damaged("a page", entry.page))?;
            if block.mark == width {
                block
                    .heat(&mut |item| add(&item, grid, map))
                    .ok_or_else(|| damaged("a page", entry.page))?;
            }
        }
    }
    Ok(())
}

fn add(item: &HeatItem, grid: Grid, map: &mut Map) {
    if item.column < grid.first || item.column >= grid.end {
        return;
    }
    let column = ((item.column - grid.first) / grid.factor) as usize;
    let row = usize::from(item.octave);
    if let Some(cell) = map.get_mut(column).and_then(|column| column.get_mut(row)) {
        cell.0 = cell.0.saturating_add(item.count);
        cell.1 = cell.1.saturating_add(item.intensity);
    }
}

fn add_cells(map: &Map, track: u8, lane: i32, heat: &mut Heat) {
    let op = if track == HEAT_BLOCK {
        let index = lane.rem_euclid(OPS_OF_DEVICE) as usize;
        BLOCK_OPS.get(index).copied()
    } else {
        let op = usize::try_from(lane)
            .ok()
            .and_then(|index| Op::ALL.get(index));
        op.map(|op| op.name())
    };
    let device = (track == HEAT_BLOCK).then(|| lane.div_euclid(OPS_OF_DEVICE));
    for (column, rows) in (0i64..).zip(map) {
        for (octave, (count, intensity)) in (0u8..).zip(rows) {
            if *count == 0 {
                continue;
            }
            if octave == UNKNOWN {
                heat.unknown = heat.unknown.saturating_add(*count);
                continue;
            }
            let (from_ns, to_ns) = bounds(octave);
            heat.cells.push(HeatCell {
                device,
                op: op.unwrap_or("other"),
                time_ns: heat
                    .begin_ns
                    .saturating_add(column.saturating_mul(heat.width_ns)),
                from_ns,
                to_ns,
                count: *count,
                intensity_ns: i64::try_from(*intensity).unwrap_or(i64::MAX),
            });
        }
    }
}
