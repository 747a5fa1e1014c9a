//! Heat maps: rows by the time at which they begin and the power of two of their length, in columns
//! of several widths.

use rustc_hash::FxHashMap;

use crate::LeftOut;
use crate::build::waiting::{Holder, Store, Waiting};
use crate::limits;
use crate::store::block::{HeatItem, Sort};
use crate::store::directory::{LaneAt, Lanes};

/// Widths of columns, each four times the one before.
pub(crate) const WIDTHS: usize = 6;
/// In place of an octave: rows whose length is not known.
pub(crate) const UNKNOWN: u8 = 64;

/// 0 for nothing at all, else 1 + the power of two, as in `whyslow KIND heat`.
#[inline]
fn octave_of(dur: i64) -> u8 {
    if dur > 0 { dur.ilog2() as u8 + 1 } else { 0 }
}

/// Bounds of the lengths of an octave.
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
    waiting: Waiting,
}

/// The maps of one kind, each of a device and an operation.
pub(crate) struct HeatBuilder<'p> {
    column_bits: u8,
    /// The narrowest columns that are written.
    narrowest: usize,
    store: Store<'p>,
    maps: Vec<Map>,
    by_id: FxHashMap<i32, u32>,
    last: Option<(i32, u32)>,
}

impl<'p> HeatBuilder<'p> {
    /// Of so many rows.
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

    /// A row of the map `id` that begins so many ns after the recording does.
    #[inline]
    pub(crate) fn add(&mut self, id: i32, begin: u64, dur: Option<i64>) {
        let slot = self.slot(id);
        let map = &mut self.maps[slot as usize];
        map.rows += 1;
        let item = HeatItem {
            // Nothing goes back, even if rows should.
            column: (begin >> self.column_bits).max(map.columns[0].at),
            octave: dur.map_or(UNKNOWN, octave_of),
            count: 1,
            intensity: dur.map_or(0, |dur| dur.max(0) as u64),
        };
        map.turn_to(item.column, (slot, self.narrowest), &mut self.store);
        map.columns[0].add(item);
        self.store.relieve(&mut self.maps);
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

    /// Writes what is left. `name` tells the id that a map has in the end.
    pub(crate) fn finish(mut self, name: impl Fn(i32) -> i32) -> (Lanes, usize) {
        for (slot, map) in (0..).zip(&mut self.maps) {
            for width in 0..WIDTHS {
                map.end_column(width, (slot, self.narrowest), &mut self.store);
            }
            map.waiting.flush(slot, &mut self.store);
        }
        let lanes = self.maps.iter().map(|map| LaneAt {
            id: name(map.id),
            intervals: map.rows,
            ..LaneAt::default()
        });
        let lanes = Lanes {
            narrowest: self.narrowest as u8,
            ..self.store.finish(LeftOut::default(), lanes.collect())
        };
        (lanes, self.store.most_held())
    }
}

impl Holder for Map {
    fn bytes(&self) -> usize {
        self.waiting.bytes()
    }

    fn write(&mut self, slot: u32, store: &mut Store<'_>) {
        self.waiting.flush(slot, store);
    }
}

impl Map {
    /// Ends columns that are over.
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

    /// Its cells wait to be written, and count in the wider column.
    fn end_column(&mut self, width: usize, (slot, narrowest): (u32, usize), store: &mut Store<'_>) {
        let Self {
            columns, waiting, ..
        } = self;
        let (narrow, wide) = columns.split_at_mut(width + 1);
        let narrow = &mut narrow[width];
        narrow.cells.sort_unstable_by_key(|cell| cell.octave);
        let kind = (width as u8, Sort::Heat);
        for cell in narrow.cells.drain(..) {
            if width >= narrowest {
                waiting.put(slot, kind, store, |pending| pending.heat(&cell));
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

/// The narrowest columns that are worth it: of few rows each would have a cell of its own, and these
/// are soon read.
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
