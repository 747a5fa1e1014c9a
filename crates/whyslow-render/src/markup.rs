//! Markdown and HTML: the cells of the text format, for tickets and mails.

use std::io::{self, Write};

use whyslow_model::Ns;
use whyslow_model::answer::{Answer, AnswerTable, Form};
use whyslow_model::text::shown;

use crate::facts;
use crate::printed;
use crate::style::TextStyle;
use crate::subject::Subject;
use crate::table::{self, Marks};
use crate::text::loss_line;
use crate::timestamps;

/// Columns of a Markdown table: more do not fit into a ticket.
const COLUMNS_MAX: usize = 6;

pub(super) fn write_markdown(
    answer: &Answer,
    subject: &Subject,
    style: &TextStyle,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(
        out,
        "### {}: {}\n",
        markdown(&subject.name),
        markdown(&answer.query)
    )?;
    if let Some(window) = answer.window {
        writeln!(out, "{}\n", window_text(window, style))?;
    }
    let mut dropped: Vec<String> = Vec::new();
    for table in &answer.tables {
        if !table.title.is_empty() {
            writeln!(out, "**{}**\n", markdown(&table.title))?;
        }
        let grid = Grid::of(table, answer, Some(COLUMNS_MAX), style);
        for header in &grid.dropped {
            if !dropped.contains(header) {
                dropped.push(header.clone());
            }
        }
        if !grid.headers.is_empty() {
            let headers: Vec<String> = grid.headers.iter().map(|text| markdown(text)).collect();
            let rules: Vec<&str> = grid
                .right
                .iter()
                .map(|right| if *right { "---:" } else { "---" })
                .collect();
            writeln!(
                out,
                "| {} |\n| {} |",
                headers.join(" | "),
                rules.join(" | ")
            )?;
            for row in &grid.rows {
                let cells: Vec<String> = row.iter().map(|text| markdown(text)).collect();
                writeln!(out, "| {} |", cells.join(" | "))?;
            }
            writeln!(out)?;
        }
        for line in &grid.facts {
            writeln!(out, "{}\n", markdown(line))?;
        }
    }
    for line in notes(answer, style) {
        writeln!(out, "{}\n", markdown(&line))?;
    }
    if !dropped.is_empty() {
        let line = format!("not shown (--wide): {}", dropped.join(", "));
        writeln!(out, "{}\n", markdown(&line))?;
    }
    Ok(())
}

/// `2015-01-15 12:18:37.216 .. 12:18:53.821 -05:00 (16.605 s)`
fn window_text((begin, end): (Ns, Ns), style: &TextStyle) -> String {
    format!(
        "{} ({})",
        timestamps::range((begin, end), style),
        timestamps::length(end.saturating_sub(begin))
    )
}

pub(super) fn write_html(
    answer: &Answer,
    subject: &Subject,
    style: &TextStyle,
    out: &mut dyn Write,
) -> io::Result<()> {
    let title = format!("{}: {}", html(&subject.name), html(&answer.query));
    writeln!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n\
         <style>body{{font:14px sans-serif}}table{{border-collapse:collapse}}\
         th,td{{padding:2px 8px;text-align:left;font-variant-numeric:tabular-nums}}\
         .n{{text-align:right}}tr:nth-child(even){{background:#eee}}</style></head><body>\n<h1>{title}</h1>"
    )?;
    if let Some(window) = answer.window {
        writeln!(out, "<p>{}</p>", html(&window_text(window, style)))?;
    }
    for table in &answer.tables {
        if !table.title.is_empty() {
            writeln!(out, "<h2>{}</h2>", html(&table.title))?;
        }
        let grid = Grid::of(table, answer, None, style);
        if !grid.headers.is_empty() {
            writeln!(out, "<table>")?;
            write_html_row(&grid.headers, &grid.right, "th", out)?;
            for row in &grid.rows {
                write_html_row(row, &grid.right, "td", out)?;
            }
            writeln!(out, "</table>")?;
        }
        for line in &grid.facts {
            writeln!(out, "<p>{}</p>", html(line))?;
        }
    }
    for line in notes(answer, style) {
        writeln!(out, "<p>{}</p>", html(&line))?;
    }
    writeln!(out, "</body></html>")
}

fn write_html_row(
    cells: &[String],
    right: &[bool],
    tag: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    write!(out, "<tr>")?;
    for (cell, right) in cells.iter().zip(right) {
        let class = if *right { " class=\"n\"" } else { "" };
        write!(out, "<{tag}{class}>{}</{tag}>", html(cell))?;
    }
    writeln!(out, "</tr>")
}

/// Headers and cells of a table, with the row marks as last column.
struct Grid {
    headers: Vec<String>,
    right: Vec<bool>,
    rows: Vec<Vec<String>>,
    facts: Vec<String>,
    /// Headers of the columns that are not shown.
    dropped: Vec<String>,
}

impl Grid {
    /// At most `columns_max` columns, unless the user selected columns.
    fn of(
        table: &AnswerTable,
        answer: &Answer,
        columns_max: Option<usize>,
        style: &TextStyle,
    ) -> Self {
        let mut columns = printed::columns(table, answer.window, style);
        let has_marks = !table.outliers.is_empty() || !table.cut.is_empty();
        let max = columns_max.filter(|_| {
            let is_wide = style.details || !matches!(table.form, Form::Table | Form::Tree);
            !is_wide
        });
        let dropped = max.map_or_else(Vec::new, |max| table::limit(&mut columns, max, style));
        let mut headers: Vec<String> = columns.iter().map(|column| column.header.clone()).collect();
        let mut right: Vec<bool> = columns.iter().map(|column| column.right).collect();
        let mut rows: Vec<Vec<String>> = (0..table.rows.len())
            .map(|row| {
                columns
                    .iter()
                    .map(|column| column.cells[row].clone())
                    .collect()
            })
            .collect();
        if has_marks {
            let marks = Marks::of(table);
            if columns_max.is_none() {
                headers.push(String::new());
                right.push(false);
            }
            for (index, row) in rows.iter_mut().enumerate() {
                let mark = marks.text(index);
                match row.first_mut() {
                    // A column of marks would cost one of the few columns.
                    Some(_) if columns_max.is_some() && mark.is_empty() => {}
                    Some(first) if columns_max.is_some() => *first = format!("{mark} {first}"),
                    _ => row.push(mark.into()),
                }
            }
        }
        let mut lines = String::new();
        if table.form == Form::Facts {
            facts::render(table, style, &mut lines);
        } else {
            facts::below(table, style, &mut lines);
        }
        if table.form == Form::Facts {
            headers.clear();
        }
        Self {
            headers,
            right,
            rows,
            facts: lines.lines().map(str::to_owned).collect(),
            dropped,
        }
    }
}

fn notes(answer: &Answer, style: &TextStyle) -> Vec<String> {
    let losses = answer
        .losses
        .iter()
        .map(|loss| loss_line(loss, answer.window, style));
    let caveats = answer
        .caveats
        .iter()
        .map(|caveat| format!("note: {}", shown(caveat, style.ascii)));
    let cut = answer.tables.iter().any(|table| !table.cut.is_empty());
    let footnote = cut.then(|| "* not entirely within the window".to_owned());
    footnote.into_iter().chain(losses).chain(caveats).collect()
}

/// Text with the special characters of Markdown escaped.
fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '~' | '#' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// Text with the special characters of HTML escaped.
pub fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
