//! Reads the rows of a table for a window.

use std::ops::{ControlFlow, Range};

use rustc_hash::FxHashMap;
use whyslow_analysis::AnalysisError;
use whyslow_analysis::read::{ColumnRef, Ints, Projection, Texts, in_order};
use whyslow_model::{Table, Window};
use whyslow_store::Tables;

use super::{Interner, TextId};

pub(crate) type Result<T> = std::result::Result<T, AnalysisError>;

/// Columns of one batch, in the requested order.
pub(crate) struct Cells<'b> {
    pub(crate) ints: Vec<Ints<'b>>,
    texts: Vec<Texts<'b>>,
}

impl Cells<'_> {
    pub(crate) fn int(&self, place: usize, row: u32) -> Option<i64> {
        self.ints[place].get(row)
    }

    pub(crate) fn small(&self, place: usize, row: u32) -> Option<i32> {
        self.int(place, row).map(|value| value as i32)
    }

    pub(crate) fn text_id(
        &self,
        place: usize,
        row: u32,
        interner: &mut Interner,
    ) -> Option<TextId> {
        self.texts[place].get(row).map(|text| interner.intern(text))
    }

    pub(crate) fn text(&self, place: usize, row: u32) -> &str {
        self.texts[place].get(row).unwrap_or("")
    }
}

/// Calls `each` for every row of a table that overlaps the window. The first two integer columns
/// must be `ts` and `ts_end` for intervals, and the first one `ts` for points.
pub(crate) fn rows(
    tables: &dyn Tables,
    table: &'static Table,
    (ints, texts): (&[&'static str], &[&'static str]),
    window: Option<Window>,
    mut each: impl FnMut(&Cells<'_>, u32),
) -> Result<()> {
    let is_there = tables.info().tables.get(table.name);
    if is_there.is_none_or(|table| table.rows == 0) {
        return Ok(());
    }
    let mut projection = Projection::new(table);
    let ints: Vec<ColumnRef> = ints.iter().map(|name| projection.need(name)).collect();
    let texts: Vec<ColumnRef> = texts.iter().map(|name| projection.need(name)).collect();
    let has_end = projection.has("ts_end");
    in_order(tables, &projection.scan(window), |batch| {
        let cells = Cells {
            ints: ints
                .iter()
                .map(|column| column.ints(batch))
                .collect::<Result<_>>()?,
            texts: texts
                .iter()
                .map(|column| column.texts(batch))
                .collect::<Result<_>>()?,
        };
        for row in 0..batch.num_rows() as u32 {
            let is_inside = window.is_none_or(|window| {
                let ts = cells.ints[0].at(row);
                if has_end {
                    window.overlaps(ts, cells.int(1, row))
                } else {
                    window.contains(ts)
                }
            });
            if is_inside {
                each(&cells, row);
            }
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// The index range of each group of ordered rows.
pub(super) fn ranges<T, K: std::hash::Hash + Eq + Copy>(
    rows: &[T],
    key: impl Fn(&T) -> K,
) -> FxHashMap<K, Range<usize>> {
    let mut found = FxHashMap::default();
    let mut begin = 0;
    for group in rows.chunk_by(|a, b| key(a) == key(b)) {
        found.insert(key(&group[0]), begin..begin + group.len());
        begin += group.len();
    }
    found
}
