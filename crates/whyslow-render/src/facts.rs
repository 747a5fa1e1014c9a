//! Facts: keys and values, as a whole table or as lines below one.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Value};

use crate::printed;
use crate::style::{Paint, TextStyle};

/// Width of a line with several facts in files and pipes.
const WIDTH_DEFAULT: usize = 100;

/// A table of keys and values, one per line.
pub(super) fn render(table: &AnswerTable, style: &TextStyle, out: &mut String) {
    let columns = printed::columns(table, None, style);
    let mut lines: Vec<(String, String)> = Vec::new();
    if let [keys, values, ..] = columns.as_slice() {
        lines.extend(keys.cells.iter().cloned().zip(values.cells.iter().cloned()));
    }
    lines.extend(
        table.facts.iter().map(|(_, column, value)| {
            (column.title.clone(), printed::single(column, value, style))
        }),
    );
    let width = lines.iter().map(|(key, _)| key.width()).max().unwrap_or(0);
    for (key, value) in lines {
        let padding = " ".repeat(width - key.width());
        out.push_str(&style.paint(Paint::Header, &key));
        let _ = writeln!(out, "{padding}  {value}");
    }
}

/// The facts about a table in as few lines as possible, grouped by label.
pub(super) fn below(table: &AnswerTable, style: &TextStyle, out: &mut String) {
    let width = style.width.unwrap_or(WIDTH_DEFAULT);
    let mut line = String::new();
    let mut label_before: Option<&str> = None;
    let says_something = |value: &Value| *value != Value::Null && *value != Value::from("");
    for (label, column, value) in table.facts.iter().filter(|fact| says_something(&fact.2)) {
        let label = series_label(label, column);
        if label_before.is_some_and(|before| before != label) {
            flush(&mut line, style, out);
        }
        let mut text = fact(column, value, style);
        if !label.is_empty() && line.is_empty() {
            text = format!("{label}: {text}");
        }
        if !line.is_empty() && line.width() + 3 + text.width() > width {
            flush(&mut line, style, out);
        }
        if !line.is_empty() {
            line.push_str("   ");
        }
        line.push_str(&text);
        label_before = Some(label);
    }
    flush(&mut line, style, out);
}

fn flush(line: &mut String, style: &TextStyle, out: &mut String) {
    if !line.is_empty() {
        out.push_str(&style.paint(Paint::Aside, line));
        out.push('\n');
        line.clear();
    }
}

fn fact(column: &AnswerColumn, value: &Value, style: &TextStyle) -> String {
    format!("{} {}", column.title, printed::single(column, value, style))
}

/// The label of a fact, unless it equals its name.
pub(super) fn series_label<'f>(label: &'f str, column: &AnswerColumn) -> &'f str {
    if label == column.name || label == column.title {
        ""
    } else {
        label
    }
}
