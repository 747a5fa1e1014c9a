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
use super::quantity::duration_alone;

/// Cells across at most; a map with more is drawn coarser.
const ACROSS_MAX: usize = 200;
const ACROSS_MIN: usize = 10;
const ACROSS_DEFAULT: usize = 80;

pub(super) fn render(table: &AnswerTable, window: Option<(Ns, Ns)>, look: &Look, out: &mut String) {
    let Some(parts) = Parts::of(table, look.weight) else {
        return;
    };
    let Some(axis) = Axis::of(table, parts.time, window) else {
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
        draw(cells, greatest, &axis, look, out);
    }
    legend(greatest, &table.columns[parts.weight], look, out);
}

/// What lies to the right: the begins of the first and last column, and their distance.
struct Axis {
    begin: Ns,
    end: Ns,
    step: Ns,
}

impl Axis {
    /// From the facts of the table where it says, else from the cells there are.
    fn of(table: &AnswerTable, time: usize, window: Option<(Ns, Ns)>) -> Option<Self> {
        let times: BTreeSet<Ns> = table.rows.iter().filter_map(|row| int(row, time)).collect();
        let fact = |name: &str| {
            let found = table
                .facts
                .iter()
                .find(|(_, column, _)| column.name == name);
            match found {
                Some((_, _, Value::Int(value))) => Some(*value),
                _ => None,
            }
        };
        let distances = times.iter().zip(times.iter().skip(1)).map(|(a, b)| b - a);
        let step = fact("width_ns").or(distances.min()).unwrap_or(1).max(1);
        let (&first, &last) = (times.first()?, times.last()?);
        let begin = fact("begin_ns").map_or(first, |begin| begin.min(first));
        // The last column with the window in it, even if nothing happened there.
        let end = window.map_or(last, |(_, end)| last.max(end.saturating_sub(1)));
        Some(Self { begin, end, step })
    }
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

fn draw(cells: &[Cell], greatest: f64, axis: &Axis, look: &Look, out: &mut String) {
    let labels = latency_labels(cells, look);
    let label_width = labels.values().map(String::len).max().unwrap_or(0);
    let room = look.width.unwrap_or(ACROSS_DEFAULT + label_width + 2);
    let across_max = room
        .saturating_sub(label_width + 2)
        .clamp(ACROSS_MIN, ACROSS_MAX) as i64;
    let (first, step) = (axis.begin, axis.step);
    let steps = (axis.end - first).div_euclid(step) + 1;
    let per_column = (steps + across_max - 1) / across_max;
    let across = ((steps + per_column - 1) / per_column) as usize;

    let mut rows: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    for cell in cells {
        let column = (cell.x - first).div_euclid(step) / per_column;
        let row = rows.entry(cell.y).or_insert_with(|| vec![0.0; across]);
        if let Some(weight) = usize::try_from(column).ok().and_then(|at| row.get_mut(at)) {
            *weight += cell.weight;
        }
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
    let end = clock_face(first + steps * step, look, 3, false);
    let gap = across.saturating_sub(begin.len() + end.len()).max(1);
    let _ = writeln!(out, "{:label_width$}  {begin}{}{end}", "", " ".repeat(gap));
}

/// Lower edges of the latency buckets.
fn latency_labels(cells: &[Cell], look: &Look) -> BTreeMap<i64, String> {
    let edges = cells.iter().map(|cell| cell.y);
    edges
        .map(|edge| {
            (
                edge,
                format!(">= {}", duration_alone(edge as f64, look.unit)),
            )
        })
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
