//! Selects the rows of a row group that may overlap a window, by the statistics of its pages.
//!
//! Both ends of intervals have statistics, so a page is skipped if all of its rows start after the
//! window or end before it; a page with an unfinished row has no upper bound. The result is a
//! superset: readers still filter row by row.

use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::statistics::Statistics;
use whyslow_model::{Shape, Table, Window};

use crate::table_file::TableFile;

/// Minimum and maximum of some rows, as far as known, and whether there are nulls.
#[derive(Debug, Clone, Copy)]
struct Range {
    min: Option<i64>,
    max: Option<i64>,
    nulls: bool,
}

/// One of the two conditions of an overlap; both have to hold.
#[derive(Debug, Clone, Copy)]
enum Condition {
    BeginsBefore(i64),
    ReachesTo(i64),
}

impl Condition {
    fn may_hold(self, range: Range) -> bool {
        match self {
            Condition::BeginsBefore(end) => range.min.is_none_or(|min| min < end),
            Condition::ReachesTo(begin) => range.nulls || range.max.is_none_or(|max| max >= begin),
        }
    }
}

/// What to read of a row group.
pub(crate) enum Selected {
    Nothing,
    All,
    Some(RowSelection),
}

fn conditions(table: &Table, window: Window) -> Vec<(&'static str, Condition)> {
    let begins = ("ts", Condition::BeginsBefore(window.end));
    match table.shape {
        Shape::Interval => vec![begins, ("ts_end", Condition::ReachesTo(window.begin))],
        Shape::Point => vec![begins, ("ts", Condition::ReachesTo(window.begin))],
        Shape::Entity => Vec::new(),
    }
}

pub(crate) fn select(file: &TableFile, table: &Table, group: usize, window: Window) -> Selected {
    let rows = file.row_group_rows(group);
    let mut selected: Option<RowSelection> = None;
    for (name, condition) in conditions(table, window) {
        let Some(leaf) = file.leaf(name) else {
            continue;
        };
        if !condition.may_hold(chunk_range(file.metadata().row_group(group).column(leaf))) {
            return Selected::Nothing;
        }
        if let Some(pages) = page_selection(file, group, leaf, condition) {
            selected = Some(match selected {
                Some(before) => before.intersection(&pages),
                None => pages,
            });
        }
    }
    match selected {
        None => Selected::All,
        Some(selection) if selection.row_count() == rows => Selected::All,
        Some(selection) if !selection.selects_any() => Selected::Nothing,
        Some(selection) => Selected::Some(selection),
    }
}

fn chunk_range(chunk: &ColumnChunkMetaData) -> Range {
    match chunk.statistics() {
        Some(Statistics::Int64(values)) => Range {
            min: values.min_opt().copied(),
            max: values.max_opt().copied(),
            nulls: values.null_count_opt() != Some(0),
        },
        _ => Range {
            min: None,
            max: None,
            nulls: true,
        },
    }
}

/// `None` if the file has no usable page statistics.
fn page_selection(
    file: &TableFile,
    group: usize,
    leaf: usize,
    condition: Condition,
) -> Option<RowSelection> {
    let index = file.metadata().page_index()?;
    let pages = index.offset_index(group, leaf)?.page_locations();
    let Some(ColumnIndexMetaData::INT64(values)) = index.column_index(group, leaf) else {
        return None;
    };
    if values.num_pages() != pages.len() as u64 {
        return None;
    }
    let rows = file.row_group_rows(group);
    let mut selectors = Vec::with_capacity(pages.len());
    let mut at = 0;
    for page in 0..pages.len() {
        let end = pages.get(page + 1).map_or(Some(rows), |next| {
            usize::try_from(next.first_row_index).ok()
        })?;
        let length = end.checked_sub(at).filter(|_| end <= rows)?;
        let range = Range {
            min: values.min_value(page).copied(),
            max: values.max_value(page).copied(),
            nulls: values.null_count(page) != Some(0),
        };
        selectors.push(if condition.may_hold(range) {
            RowSelector::select(length)
        } else {
            RowSelector::skip(length)
        });
        at = end;
    }
    Some(RowSelection::from(selectors))
}
