//! A table as lines of text that fit the terminal.
//!
//! On a narrow terminal, the least important columns are dropped first, then paths are shortened in
//! the middle. Files and pipes get everything.

use unicode_width::UnicodeWidthStr;
use whyslow_model::Ns;
use whyslow_model::answer::AnswerTable;

use crate::printed::{self, PrintedColumn};
use crate::style::{Paint, TextStyle};

/// Spaces between columns.
const GAP: usize = 2;
/// Minimum widths of paths: other columns are dropped before paths become shorter than the first,
/// ids before they become shorter than the second. Without columns left to drop, paths shrink
/// further.
const PATH_WIDTH_GOOD: usize = 24;
const PATH_WIDTH_SHORT: usize = 12;
const PATH_WIDTH_MIN: usize = 8;

/// Appends the table; returns the titles of the columns that did not fit.
pub(super) fn render(
    table: &AnswerTable,
    window: Option<(Ns, Ns)>,
    style: &TextStyle,
    out: &mut String,
) -> Vec<String> {
    let marks = Marks::of(table);
    let columns = printed::columns(table, window, style);
    render_columns(columns, &marks, style, out)
}

/// Marks before the rows: `!` is an outlier, `*` is cut.
pub(super) struct Marks {
    rows: Vec<(bool, bool)>,
    /// Width of the marks and a space.
    width: usize,
}

impl Marks {
    pub(super) fn of(table: &AnswerTable) -> Self {
        let mut marks = vec![(false, false); table.rows.len()];
        for &row in &table.outliers {
            if let Some(mark) = marks.get_mut(row) {
                mark.0 = true;
            }
        }
        for &(row, _) in &table.cut {
            if let Some(mark) = marks.get_mut(row) {
                mark.1 = true;
            }
        }
        let signs = usize::from(marks.iter().any(|mark| mark.0))
            + usize::from(marks.iter().any(|mark| mark.1));
        Self {
            rows: marks,
            width: if signs > 0 { signs + 1 } else { 0 },
        }
    }

    pub(super) fn text(&self, row: usize) -> &'static str {
        match self.rows.get(row) {
            Some((true, true)) => "!*",
            Some((true, false)) => "!",
            Some((false, true)) => "*",
            _ => "",
        }
    }

    fn put(&self, row: usize, style: &TextStyle, out: &mut String) {
        let text = self.text(row);
        let paint = if text.starts_with('!') {
            Paint::Outlier
        } else {
            Paint::Cut
        };
        if !text.is_empty() {
            out.push_str(&style.paint(paint, text));
        }
        put_blanks(self.width - text.len(), out);
    }
}

pub(super) fn render_columns(
    mut columns: Vec<PrintedColumn>,
    marks: &Marks,
    style: &TextStyle,
    out: &mut String,
) -> Vec<String> {
    let dropped = match style.width {
        Some(width) => fit(&mut columns, width.saturating_sub(marks.width), style),
        None => Vec::new(),
    };
    let widths: Vec<usize> = columns.iter().map(natural_width).collect();
    let mut header = " ".repeat(marks.width);
    put_line(&columns, &widths, |column| &column.header, &mut header);
    out.push_str(&style.paint(Paint::Header, header.trim_end()));
    out.push('\n');
    let rows = columns.first().map_or(0, |column| column.cells.len());
    for row in 0..rows {
        marks.put(row, style, out);
        put_line(&columns, &widths, |column| &column.cells[row], out);
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    }
    dropped
}

fn put_line<'c>(
    columns: &'c [PrintedColumn],
    widths: &[usize],
    cell: impl Fn(&'c PrintedColumn) -> &'c str,
    out: &mut String,
) {
    let mut gap = 0;
    for (column, width) in columns.iter().zip(widths) {
        let cell = cell(column);
        let padding = width.saturating_sub(text_width(cell));
        let (left, right) = if column.right {
            (padding, 0)
        } else {
            (0, padding)
        };
        put_blanks(gap + left, out);
        out.push_str(cell);
        gap = GAP + right;
    }
}

fn put_blanks(mut count: usize, out: &mut String) {
    const BLANKS: &str = "                                ";
    while count > 0 {
        let some = count.min(BLANKS.len());
        out.push_str(&BLANKS[..some]);
        count -= some;
    }
}

/// Terminal columns of the text, which contains nothing that moves the cursor.
fn text_width(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.width()
    }
}

fn natural_width(column: &PrintedColumn) -> usize {
    let cells = column
        .cells
        .iter()
        .map(|cell| text_width(cell))
        .max()
        .unwrap_or(0);
    cells.max(text_width(&column.header))
}

/// Drops and shortens columns until they fit; returns the headers of the dropped ones.
///
/// Ids are dropped last, after paths are as short as possible: the user needs them for the next
/// command.
fn fit(columns: &mut Vec<PrintedColumn>, width: usize, style: &TextStyle) -> Vec<String> {
    let mut dropped = Vec::new();
    for (path_width, ids_too) in [(PATH_WIDTH_GOOD, false), (PATH_WIDTH_SHORT, true)] {
        while least_total(columns, path_width) > width {
            let droppable = columns
                .iter()
                .enumerate()
                .filter(|(_, column)| column.priority > 0 && !style.keep.contains(&column.name))
                .filter(|(_, column)| ids_too || column.name != "id")
                .max_by_key(|(i, column)| (column.priority, *i));
            let Some((at, _)) = droppable else {
                break;
            };
            dropped.insert(0, columns.remove(at).header);
        }
    }
    shorten_paths(columns, width, style);
    dropped
}

/// Drops the least important columns until at most `max` are left; returns the headers of the
/// dropped ones. Of equally important ones, names stay: they identify the rows.
pub(super) fn limit(
    columns: &mut Vec<PrintedColumn>,
    max: usize,
    style: &TextStyle,
) -> Vec<String> {
    let mut dropped = Vec::new();
    while columns.len() > max {
        let droppable = columns
            .iter()
            .enumerate()
            .filter(|(_, column)| !style.keep.contains(&column.name))
            // The user needs ids for the next command.
            .max_by_key(|(i, column)| (column.name != "id", column.priority, column.right, *i));
        let Some((at, _)) = droppable else {
            break;
        };
        dropped.insert(0, columns.remove(at).header);
    }
    dropped
}

/// Width of all columns and gaps, with paths of at most `path_width`.
fn least_total(columns: &[PrintedColumn], path_width: usize) -> usize {
    let widths = columns.iter().map(|column| least_width(column, path_width));
    widths.sum::<usize>() + GAP * columns.len().saturating_sub(1)
}

fn least_width(column: &PrintedColumn, path_width: usize) -> usize {
    let natural = natural_width(column);
    if column.is_path {
        natural.min(path_width)
    } else {
        natural
    }
}

/// Distributes the remaining width among the path columns: each keeps its minimum, then the first
/// ones get what they need.
fn shorten_paths(columns: &mut [PrintedColumn], width: usize, style: &TextStyle) {
    let mut spare = width.saturating_sub(least_total(columns, PATH_WIDTH_MIN));
    for column in columns.iter_mut().filter(|column| column.is_path) {
        let (least, natural) = (least_width(column, PATH_WIDTH_MIN), natural_width(column));
        let room = least + spare.min(natural - least);
        spare -= room - least;
        for cell in &mut column.cells {
            *cell = middle_cut(cell, room, style.ascii);
        }
    }
}

/// The text without its middle if it is wider than `width`. The end of a path is more specific than
/// its start and gets two thirds.
pub(super) fn middle_cut(text: &str, width: usize, ascii: bool) -> String {
    if text_width(text) <= width {
        return text.to_owned();
    }
    let dots = if ascii { "..." } else { "…" };
    let room = width.saturating_sub(dots.width());
    let tail = take_width(text.chars().rev(), room - room / 3);
    let head = take_width(text.chars(), room / 3);
    let tail: String = tail.chars().rev().collect();
    format!("{head}{dots}{tail}")
}

fn take_width(chars: impl Iterator<Item = char>, width: usize) -> String {
    let mut taken = String::new();
    let mut used = 0;
    for c in chars {
        used += unicode_width::UnicodeWidthChar::width(c).unwrap_or(0);
        if used > width {
            break;
        }
        taken.push(c);
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_loses_its_middle() {
        let check = |text: &str, width: usize, want: &str| {
            let got = middle_cut(text, width, false);
            assert_eq!(got, want);
            assert!(got.width() <= width.max(1));
        };
        check("/var/lib", 8, "/var/lib");
        check(
            "/var/lib/php5/sess_0ifir2",
            13,
            "/var…_0ifir2"
                .split_at(0)
                .1
                .replace("_0ifir2", "s_0ifir2")
                .as_str(),
        );
        check(
            "日本日本日本日本",
            7,
            "日…本本".replace("本本", "日本").as_str(),
        );
        check("abc", 1, "…");
    }
}
