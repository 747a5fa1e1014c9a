//! A heat map: time to the right, latency upwards, darkness for how much.
//!
//! Rows of the table are the cells that are not empty. The column measured as `Time` is where a
//! cell begins in time, the first one measured as `Duration` where it begins in latency, `count`
//! and `intensity` its weights; text columns part the table into several maps.

use std::fmt::Write as _;

use std::collections::{BTreeMap, BTreeSet};

use whyslow_analysis::Weight;
use whyslow_model::Ns;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};

use super::look::{Look, Paint};
use super::moments::clock_face;
use super::printed;

/// Cells across at most; a map with more is drawn coarser.
const ACROSS_MAX: usize = 200;
const ACROSS_DEFAULT: usize = 80;

pub(super) fn render(table: &AnswerTable, look: &Look, out: &mut String) {
    let Some(parts) = Parts::of(table, look.weight) else {
        return;
    };
    let mut maps: BTreeMap<Vec<String>, Vec<Cell>> = BTreeMap::new();
    for row in &table.rows {
        let (Some(x), Some(y)) = (int(row, parts.time), int(row, parts.latency)) else {
            continue;
        };
        let name = parts
            .names
            .iter()
            .map(|&at| printed::single(&table.columns[at], &row[at], look))
            .collect();
        let weight = number(row, parts.weight);
        maps.entry(name).or_default().push(Cell { x, y, weight });
    }
    let greatest = maps
        .values()
        .flatten()
        .map(|cell| cell.weight)
        .fold(0.0_f64, f64::max);
    for (name, cells) in &maps {
        if !name.is_empty() {
            out.push_str(&look.paint(Paint::Header, &name.join(" ")));
            out.push('\n');
        }
        draw(cells, greatest, &table.columns[parts.latency], look, out);
    }
    legend(greatest, &table.columns[parts.weight], look, out);
}

struct Cell {
    x: Ns,
    y: i64,
    weight: f64,
}

/// Which column is what.
struct Parts {
    time: usize,
    latency: usize,
    weight: usize,
    names: Vec<usize>,
}

impl Parts {
    fn of(table: &AnswerTable, weight: Weight) -> Option<Self> {
        let at = |measure: Measure| table.columns.iter().position(|c| c.measure == measure);
        let named = |name: &str| table.columns.iter().position(|c| c.name == name);
        let weight = match weight {
            Weight::Count => named("count"),
            Weight::Intensity => named("intensity").or_else(|| named("intensity_ns")),
        };
        Some(Self {
            time: at(Measure::Time)?,
            latency: at(Measure::Duration)?,
            weight: weight.or_else(|| named("count"))?,
            names: (0..table.columns.len())
                .filter(|&i| matches!(table.columns[i].measure, Measure::Text | Measure::Path))
                .collect(),
        })
    }
}

fn draw(cells: &[Cell], greatest: f64, latency: &AnswerColumn, look: &Look, out: &mut String) {
    let times: BTreeSet<Ns> = cells.iter().map(|cell| cell.x).collect();
    let (Some(&first), Some(&last)) = (times.first(), times.last()) else {
        return;
    };
    let step = times
        .iter()
        .zip(times.iter().skip(1))
        .map(|(a, b)| b - a)
        .min()
        .unwrap_or(1);
    let labels = latency_labels(cells, latency, look);
    let label_width = labels.values().map(String::len).max().unwrap_or(0);
    let room = look.width.unwrap_or(ACROSS_DEFAULT + label_width + 2);
    let across_max = room.saturating_sub(label_width + 2).clamp(10, ACROSS_MAX) as i64;
    let steps = (last - first) / step + 1;
    let per_column = steps.div_euclid(across_max) + i64::from(steps % across_max != 0);
    let across = ((steps + per_column - 1) / per_column) as usize;

    let mut rows: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    for cell in cells {
        let column = ((cell.x - first) / step / per_column) as usize;
        let row = rows.entry(cell.y).or_insert_with(|| vec![0.0; across]);
        row[column] += cell.weight;
    }
    for (y, weights) in rows.iter().rev() {
        let shades: String = weights
            .iter()
            .map(|w| shade(*w, greatest, look.ascii))
            .collect();
        let line = format!(
            "{:>label_width$}  {}",
            labels[y],
            look.paint(Paint::Bar, &shades)
        );
        out.push_str(line.trim_end());
        out.push('\n');
    }
    let begin = clock_face(first, look, 3, false);
    let end = clock_face(last + step, look, 3, false);
    let gap = across.saturating_sub(begin.len() + end.len()).max(1);
    let _ = writeln!(out, "{:label_width$}  {begin}{}{end}", "", " ".repeat(gap));
}

/// Lower edges of the latency buckets, in one unit.
fn latency_labels(cells: &[Cell], latency: &AnswerColumn, look: &Look) -> BTreeMap<i64, String> {
    let edges: BTreeSet<i64> = cells.iter().map(|cell| cell.y).collect();
    let mut table = AnswerTable::new("", "", vec![latency.clone()]);
    table.rows = edges.iter().map(|edge| vec![Value::Int(*edge)]).collect();
    let column = printed::columns(&table, None, look).remove(0);
    let unit = column.header.rsplit(' ').next().unwrap_or_default();
    edges
        .iter()
        .zip(&column.cells)
        .map(|(edge, text)| (*edge, format!(">= {text} {unit}")))
        .collect()
}

/// Logarithmic: one slow operation among thousands of fast ones must not be invisible.
fn shade(weight: f64, greatest: f64, ascii: bool) -> char {
    const BLOCKS: [char; 5] = [' ', '░', '▒', '▓', '█'];
    const LETTERS: [char; 10] = [' ', '.', ':', '-', '=', '+', '*', '#', '%', '@'];
    let ramp: &[char] = if ascii { &LETTERS } else { &BLOCKS };
    if weight <= 0.0 || greatest <= 0.0 {
        return ramp[0];
    }
    let darkest = ramp.len() - 1;
    let share = (1.0 + weight).ln() / (1.0 + greatest).ln();
    ramp[((share * darkest as f64).ceil() as usize).clamp(1, darkest)]
}

fn legend(greatest: f64, weight: &AnswerColumn, look: &Look, out: &mut String) {
    let ramp = if look.ascii {
        ".:-=+*#%@"
    } else {
        "░▒▓█"
    };
    let value = match weight.measure {
        Measure::Count | Measure::Duration => Value::Int(greatest as i64),
        _ => Value::Float(greatest),
    };
    let text = format!(
        "{ramp}  {} per cell, up to {}",
        weight.title,
        printed::single(weight, &value, look)
    );
    out.push_str(&look.paint(Paint::Aside, &text));
    out.push('\n');
}

fn int(row: &[Value], at: usize) -> Option<i64> {
    match row.get(at) {
        Some(Value::Int(value)) => Some(*value),
        _ => None,
    }
}

fn number(row: &[Value], at: usize) -> f64 {
    match row.get(at) {
        Some(Value::Int(value)) => *value as f64,
        Some(Value::Float(value)) => *value,
        _ => 0.0,
    }
}
