//! Heat maps: rows by start time and by power of two of their duration, in columns of several
//! widths.

use rustc_hash::FxHashMap;

use crate::LeftOut;
use crate::build::buffer::{Buffered, LaneBuffer, Store};
use crate::limits;
use crate::store::block::{HeatItem, ItemKind};
use crate::store::directory::{LaneEntry, Lanes};

/// Number of column widths, each four times the previous one.
pub(crate) const WIDTHS: usize = 6;
/// Pseudo-octave of rows of unknown duration.
pub(crate) const UNKNOWN: u8 = 64;

/// 0 for a duration of 0, else 1 + floor(log2), as in `whyslow KIND heat`.
#[inline]
fn octave_of(dur: i64) -> u8 {
    if dur > 0 { dur.ilog2() as u8 + 1 } else { 0 }
}

/// Bounds of the durations of an octave.
pub(crate) fn bounds(octave: u8) -> (i64, i64) {
    let edge = |octave: u8| match octave {
        0 => 0,
        64.. => i64::MAX,
        octave => 1 << (octave - 1),
    };
    (edge(octave), edge(octave + 1))
}

/// Rows of one column, by octave.
#[derive(Debug, Default)]
struct Column {
    at: u64,
    cells: Vec<HeatItem>,
}

impl Column {
    #[inline]
    fn add(&mut self, more: HeatItem) {
        let found = self
            .cells
            .iter_mut()
            .find(|cell| cell.octave == more.octave);
        if let Some(cell) = found {
            cell.count = cell.count.saturating_add(more.count);
            cell.intensity = cell.intensity.saturating_add(more.intensity);
        } else {
            self.cells.push(more);
        }
    }
}

#[derive(Debug, Default)]
struct Map {
    id: i32,
    rows: u64,
    columns: [Column; WIDTHS],
    buffer: LaneBuffer,
}

/// The maps of one kind: one for each operation, of kind `block` also for each device.
pub(crate) struct HeatBuilder<'p> {
    column_bits: u8,
    /// Index of the narrowest column width that is written.
    narrowest: usize,
    store: Store<'p>,
    maps: Vec<Map>,
    by_id: FxHashMap<i32, u32>,
    last: Option<(i32, u32)>,
}

impl<'p> HeatBuilder<'p> {
    /// `rows` is the number of rows to expect.
    pub(crate) fn new(column_bits: u8, rows: u64, store: Store<'p>) -> Self {
        Self {
            column_bits,
            narrowest: narrowest(rows),
            store,
            maps: Vec::new(),
            by_id: FxHashMap::default(),
            last: None,
        }
    }

    /// Adds a row to map `id`; `begin` is in ns since the start of the recording.
    #[inline]
    pub(crate) fn add(&mut self, id: i32, begin: u64, dur: Option<i64>) {
        let slot = self.slot(id);
        let map = &mut self.maps[slot as usize];
        map.rows += 1;
        let item = HeatItem {
            // Columns never go back, even if rows are out of order.
            column: (begin >> self.column_bits).max(map.columns[0].at),
            octave: dur.map_or(UNKNOWN, octave_of),
            count: 1,
            intensity: dur.map_or(0, |dur| dur.max(0) as u64),
        };
        map.turn_to(item.column, (slot, self.narrowest), &mut self.store);
        map.columns[0].add(item);
        self.store.enforce_limit(&mut self.maps);
    }

    #[inline]
    fn slot(&mut self, id: i32) -> u32 {
        if let Some((last, slot)) = self.last
            && last == id
        {
            return slot;
        }
        let slot = *self.by_id.entry(id).or_insert_with(|| {
            self.maps.push(Map {
                id,
                ..Map::default()
            });
            self.maps.len() as u32 - 1
        });
        self.last = Some((id, slot));
        slot
    }

    /// Writes what is left. `name` maps an id to its final one.
    pub(crate) fn finish(mut self, name: impl Fn(i32) -> i32) -> (Lanes, usize) {
        for (slot, map) in (0..).zip(&mut self.maps) {
            for width in 0..WIDTHS {
                map.end_column(width, (slot, self.narrowest), &mut self.store);
            }
            map.buffer.flush(slot, &mut self.store);
        }
        let lanes = self.maps.iter().map(|map| LaneEntry {
            id: name(map.id),
            intervals: map.rows,
            ..LaneEntry::default()
        });
        let lanes = Lanes {
            narrowest: self.narrowest as u8,
            ..self.store.finish(LeftOut::default(), lanes.collect())
        };
        (lanes, self.store.buffered_peak())
    }
}

impl Buffered for Map {
    fn bytes(&self) -> usize {
        self.buffer.bytes()
    }

    fn write(&mut self, slot: u32, store: &mut Store<'_>) {
        self.buffer.flush(slot, store);
    }
}

impl Map {
    /// Ends the columns before `column`.
    #[inline]
    fn turn_to(&mut self, column: u64, place: (u32, usize), store: &mut Store<'_>) {
        for width in 0..WIDTHS {
            let at = column >> (2 * width);
            if self.columns[width].at == at {
                return;
            }
            self.end_column(width, place, store);
            self.columns[width].at = at;
        }
    }

    /// Buffers the cells for writing, and adds them to the next wider column.
    fn end_column(&mut self, width: usize, (slot, narrowest): (u32, usize), store: &mut Store<'_>) {
        let Self {
            columns, buffer, ..
        } = self;
        let (narrow, wide) = columns.split_at_mut(width + 1);
        let narrow = &mut narrow[width];
        narrow.cells.sort_unstable_by_key(|cell| cell.octave);
        let kind = (width as u8, ItemKind::Heat);
        for cell in narrow.cells.drain(..) {
            if width >= narrowest {
                buffer.put(slot, kind, store, |pending| pending.heat(&cell));
            }
            if let Some(wide) = wide.first_mut() {
                wide.add(HeatItem {
                    column: cell.column >> 2,
                    ..cell
                });
            }
        }
    }
}

/// Index of the narrowest column width worth storing: with few rows, each row would get a cell of
/// its own, and the rows themselves are quick to read.
fn narrowest(rows: u64) -> usize {
    let columns = (rows / limits::ROWS_OF_COLUMN).max(limits::COLUMNS_LEAST);
    (0..WIDTHS)
        .find(|width| limits::COLUMNS >> (2 * width) <= columns)
        .unwrap_or(WIDTHS - 1)
}

/// Width of the narrowest columns, as a power of two.
pub(crate) fn column_bits(length: u64) -> u8 {
    (0..64)
        .find(|bits| length >> bits < limits::COLUMNS)
        .unwrap_or(63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_no_more_than_they_may() {
        for length in [0, 1, 65_535, 65_536, 1 << 40, u64::MAX] {
            let bits = column_bits(length);
            assert!(length >> bits < limits::COLUMNS);
            assert!(bits == 0 || length >> (bits - 1) >= limits::COLUMNS);
        }
    }

    #[test]
    fn few_rows_have_few_columns() {
        let check = |rows, columns| assert_eq!(limits::COLUMNS >> (2 * narrowest(rows)), columns);
        check(0, 1024);
        check(500_000, 1024);
        check(600_000, 4096);
        check(5_000_000, 16_384);
        check(50_000_000, 65_536);
    }

    #[test]
    fn a_length_lies_within_its_octave() {
        for dur in [0, 1, 2, 3, 4, 1023, 1024, i64::MAX] {
            let (from, to) = bounds(octave_of(dur));
            assert!(from <= dur && (dur < to || to == i64::MAX), "{dur}");
        }
    }
}
