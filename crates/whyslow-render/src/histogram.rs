//! A histogram with bars of eighth blocks, several series side by side.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr;
use whyslow_model::answer::{AnswerTable, Measure, Value};

use crate::printed::{self, PrintedColumn};
use crate::quantity::duration_alone;
use crate::style::{Paint, TextStyle};
use crate::table::Marks;

const BAR_WIDTH_MAX: usize = 60;
const BAR_WIDTH_MIN: usize = 8;
/// Width in files and pipes.
const WIDTH_DEFAULT: usize = 100;
/// This many consecutive empty buckets are folded into one line.
const EMPTY_RUN: usize = 3;

pub(super) fn render(table: &AnswerTable, style: &TextStyle, out: &mut String) {
    let columns = printed::columns(table, None, style);
    // `from`, `to`, then one column of counts per series.
    let [from, _, series @ ..] = columns.as_slice() else {
        return;
    };
    let counts: Vec<Vec<i64>> = (0..series.len())
        .map(|at| table.rows.iter().map(|row| count_at(row, at + 2)).collect())
        .collect();
    let greatest = counts.iter().flatten().copied().max().unwrap_or(0);
    let frame = Frame::new(edges(table, from, style), series, style);
    frame.header(series, style, out);

    let marks = Marks::of(table);
    let is_empty = |row: usize| counts.iter().all(|counts| counts[row] == 0);
    let mut row = 0;
    while row < table.rows.len() {
        let run = (row..table.rows.len())
            .take_while(|&at| is_empty(at))
            .count();
        if run >= EMPTY_RUN {
            let _ = writeln!(
                out,
                "{:>width$}  ({run} empty buckets)",
                "...",
                width = frame.label
            );
            row += run;
            continue;
        }
        let mut text = format!("{:>width$}", frame.labels[row], width = frame.label);
        for (series, counts) in series.iter().zip(&counts) {
            let bar = bar(counts[row], greatest, frame.bar, style.ascii);
            let padding = " ".repeat(frame.bar - bar.width());
            let count = &series.cells[row];
            let _ = write!(
                text,
                "  {}{padding} {count:>width$}",
                style.paint(Paint::Bar, &bar),
                width = frame.count
            );
        }
        let mark = marks.text(row);
        if !mark.is_empty() {
            text.push_str("  ");
            text.push_str(&style.paint(Paint::Outlier, mark));
        }
        out.push_str(text.trim_end());
        out.push('\n');
        row += 1;
    }
}

/// Widths of the parts of a line.
struct Frame {
    labels: Vec<String>,
    label: usize,
    bar: usize,
    count: usize,
}

impl Frame {
    fn new(labels: Vec<String>, series: &[PrintedColumn], style: &TextStyle) -> Self {
        let widest = |cells: &[String]| cells.iter().map(|cell| cell.width()).max().unwrap_or(0);
        let label = widest(&labels);
        let count = series
            .iter()
            .map(|series| widest(&series.cells))
            .max()
            .unwrap_or(0);
        let width = style.width.unwrap_or(WIDTH_DEFAULT);
        // Each series: two spaces, bar, space, count; up to two marks follow.
        let left = width.saturating_sub(label + 4) / series.len().max(1);
        Self {
            labels,
            label,
            bar: left
                .saturating_sub(count + 3)
                .clamp(BAR_WIDTH_MIN, BAR_WIDTH_MAX),
            count,
        }
    }

    /// Names of the series; a single series has the title of its table.
    fn header(&self, series: &[PrintedColumn], style: &TextStyle, out: &mut String) {
        if series.len() < 2 {
            return;
        }
        let mut text = " ".repeat(self.label);
        for column in series {
            let width = self.bar + 1 + self.count;
            let _ = write!(text, "  {:<width$}", column.header);
        }
        out.push_str(&style.paint(Paint::Header, text.trim_end()));
        out.push('\n');
    }
}

/// Lower edges of the buckets, each with its own unit: they span many orders of magnitude.
fn edges(table: &AnswerTable, from: &PrintedColumn, style: &TextStyle) -> Vec<String> {
    let is_duration = table.columns[0].measure == Measure::Duration;
    table
        .rows
        .iter()
        .zip(&from.cells)
        .map(|(row, cell)| match row.first() {
            Some(Value::Int(ns)) if is_duration => {
                format!(">= {}", duration_alone(*ns as f64, style.unit))
            }
            _ => format!(">= {cell}"),
        })
        .collect()
}

fn count_at(row: &[Value], at: usize) -> i64 {
    match row.get(at) {
        Some(Value::Int(count)) => *count,
        Some(Value::Float(count)) => *count as i64,
        _ => 0,
    }
}

/// A bar in eighths; a non-zero count shows at least the smallest block.
fn bar(count: i64, greatest: i64, width: usize, ascii: bool) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if count <= 0 || greatest <= 0 {
        return String::new();
    }
    let share = count as f64 / greatest as f64 * width as f64;
    if ascii {
        let full = share.round() as usize;
        return if full == 0 {
            ".".into()
        } else {
            "#".repeat(full)
        };
    }
    let eighths = ((share * 8.0).round() as usize).max(1);
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_eighths_and_never_hides_a_count() {
        let check = |count: i64, unicode: &str, ascii: &str| {
            assert_eq!(bar(count, 100, 10, false), unicode, "{count}");
            assert_eq!(bar(count, 100, 10, true), ascii, "{count}");
        };
        check(0, "", "");
        check(1, "▏", ".");
        check(50, "█████", "#####");
        check(54, "█████▍", "#####");
        check(100, "██████████", "##########");
    }
}
