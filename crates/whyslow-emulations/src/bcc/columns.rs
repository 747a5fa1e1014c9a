use crate::cells::Row;
use crate::front::shown;

/// A name truncated to the width of its column, as in the original tools.
pub(super) fn fit(name: &str, width: usize) -> String {
    shown(name).chars().take(width).collect()
}

/// Contents of the path column of a log; `?` if unknown.
pub(super) fn path(row: &Row<'_>, column: &str) -> String {
    row.text(column).map_or_else(|| "?".into(), shown)
}
