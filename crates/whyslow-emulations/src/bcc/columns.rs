use crate::cells::Row;
use crate::front::shown;

/// A name in a column of so many characters: longer ones are cut, as the tools do.
pub(super) fn fit(name: &str, width: usize) -> String {
    shown(name).chars().take(width).collect()
}

/// What the path column of a log says; `?` where there is nothing.
pub(super) fn path(row: &Row<'_>, column: &str) -> String {
    row.text(column).map_or_else(|| "?".into(), shown)
}
