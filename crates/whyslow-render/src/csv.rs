//! CSV (RFC 4180) and TSV: columns are the keys of the JSON rows.
//!
//! Spreadsheets evaluate a cell that starts with `=`, `+`, `-`, `@`, tab or carriage return as a
//! formula, and file names of a recorded machine are untrusted: such texts get a leading
//! apostrophe. JSON, Arrow and Parquet have them unchanged. TSV escapes tab, line ends and
//! backslash as `\t`, `\n`, `\r`, `\\`.

use std::borrow::Cow;
use std::io::{self, Write};

use whyslow_model::answer::{AnswerTable, Value};
use whyslow_model::text::shown;

use crate::marks::Marks;

/// Separator of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Separator {
    Comma,
    Tab,
}

/// Writes tables one after the other, separated by an empty line.
pub(super) fn write(
    tables: &[AnswerTable],
    separator: Separator,
    to_terminal: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (i, table) in tables.iter().enumerate() {
        if i > 0 {
            out.write_all(b"\n")?;
        }
        write_table(table, separator, to_terminal, out)?;
    }
    Ok(())
}

fn write_table(
    table: &AnswerTable,
    separator: Separator,
    to_terminal: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    write_header(table, separator, to_terminal, out)?;
    write_rows(table, separator, to_terminal, out)
}

pub(super) fn write_header(
    table: &AnswerTable,
    separator: Separator,
    to_terminal: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut header: Vec<&str> = table
        .columns
        .iter()
        .map(|column| column.name.as_str())
        .collect();
    if Marks::of(table).exist() {
        header.extend(["outlier", "overlap"]);
    }
    let header = header.into_iter().map(Cow::Borrowed);
    write_record(header, separator, to_terminal, out)
}

pub(super) fn write_rows(
    table: &AnswerTable,
    separator: Separator,
    to_terminal: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let marks = Marks::of(table);
    for (index, row) in table.rows.iter().enumerate() {
        let mut cells: Vec<Cow<'_, str>> = row.iter().map(cell).collect();
        if let Some(mark) = marks.get(index) {
            cells.push(mark.outlier.to_string().into());
            cells.push(mark.overlap.unwrap_or_default().into());
        }
        write_record(cells.into_iter(), separator, to_terminal, out)?;
    }
    Ok(())
}

fn cell(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => "".into(),
        Value::Int(number) => number.to_string().into(),
        Value::Float(number) if number.is_finite() => number.to_string().into(),
        Value::Float(_) => "".into(),
        Value::Bool(flag) => flag.to_string().into(),
        Value::Text(text) => harmless(text),
        Value::List(items) => {
            let items: Vec<Cow<'_, str>> = items.iter().map(cell).collect();
            items.join(", ").into()
        }
    }
}

/// The text, escaped so that spreadsheets do not evaluate it as a formula.
fn harmless(text: &str) -> Cow<'_, str> {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        format!("'{text}").into()
    } else {
        text.into()
    }
}

fn write_record<'c>(
    cells: impl Iterator<Item = Cow<'c, str>>,
    separator: Separator,
    to_terminal: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (i, cell) in cells.enumerate() {
        // A file gets every character; a terminal must not interpret them.
        let cell = if to_terminal {
            shown(&cell, false).into_owned().into()
        } else {
            cell
        };
        match separator {
            Separator::Comma => {
                out.write_all(if i > 0 { b"," } else { b"" })?;
                write_comma_cell(&cell, out)?;
            }
            Separator::Tab => {
                out.write_all(if i > 0 { b"\t" } else { b"" })?;
                write_tab_cell(&cell, out)?;
            }
        }
    }
    out.write_all(b"\n")
}

fn write_comma_cell(cell: &str, out: &mut dyn Write) -> io::Result<()> {
    if !cell.contains([',', '"', '\n', '\r']) {
        return out.write_all(cell.as_bytes());
    }
    write!(out, "\"{}\"", cell.replace('"', "\"\""))
}

fn write_tab_cell(cell: &str, out: &mut dyn Write) -> io::Result<()> {
    for c in cell.chars() {
        match c {
            '\t' => out.write_all(b"\\t")?,
            '\n' => out.write_all(b"\\n")?,
            '\r' => out.write_all(b"\\r")?,
            '\\' => out.write_all(b"\\\\")?,
            c => write!(out, "{c}")?,
        }
    }
    Ok(())
}
