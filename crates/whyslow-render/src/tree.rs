//! A tree of paths: rows in tree order with a `depth` column; children are indented.

use whyslow_model::Ns;
use whyslow_model::answer::{AnswerTable, Measure, Value};

use crate::printed;
use crate::style::TextStyle;
use crate::table::{Marks, render_columns};

const INDENT: &str = "  ";

pub(super) fn render(
    table: &AnswerTable,
    window: Option<(Ns, Ns)>,
    style: &TextStyle,
    out: &mut String,
) -> Vec<String> {
    let mut columns = printed::columns(table, window, style);
    let is_depth = |name: &str| matches!(name, "depth" | "indent");
    let place = |name: &str| table.columns.iter().position(|column| column.name == name);
    let depth_at = place("indent").or_else(|| place("depth"));
    let is_path = table
        .columns
        .first()
        .is_some_and(|column| column.measure == Measure::Path);
    if let Some(first) = columns.first_mut() {
        let mut above: Vec<String> = Vec::new();
        for (row, cell) in first.cells.iter_mut().enumerate() {
            let depth = depth_at.map_or(0, |at| depth(&table.rows[row][at]));
            above.truncate(depth);
            let name = match above.last().filter(|_| is_path) {
                Some(parent) => cell.strip_prefix(parent.as_str()).unwrap_or(cell),
                None => cell,
            };
            let name = if above.is_empty() || !is_path {
                name
            } else {
                name.trim_start_matches('/')
            };
            let indented = format!("{}{name}", INDENT.repeat(depth));
            above.push(std::mem::replace(cell, indented));
        }
    }
    columns.retain(|column| !is_depth(&column.name));
    render_columns(columns, &Marks::of(table), style, out)
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Int(depth) => usize::try_from(*depth).unwrap_or(0),
        _ => 0,
    }
}
