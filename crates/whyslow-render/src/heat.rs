//! A heat map: time on the x axis, latency on the y axis, weight as shade.
//!
//! The rows of the table are the non-empty cells. The column with the measure `Time` is the start
//! of a cell in time, the first column with the measure `Duration` its lower latency edge; `count`
//! and `intensity` are its weights. The columns before the time split the table into several maps,
//! which share both axes and the shade scale, so that they can be compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use whyslow_analysis::Weight;
use whyslow_model::Ns;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};

use crate::printed;
use crate::quantity::duration_alone;
use crate::style::{Paint, TextStyle};
use crate::timestamps::beside;

/// Maximum number of cells across; a larger map is drawn with coarser cells.
const ACROSS_MAX: usize = 200;
const ACROSS_MIN: usize = 10;
const ACROSS_DEFAULT: usize = 80;

pub(super) fn render(
    table: &AnswerTable,
    window: Option<(Ns, Ns)>,
    style: &TextStyle,
    out: &mut String,
) {
    let Some(parts) = Parts::of(table, style.weight) else {
        return;
    };
    let Some(axis) = Axis::of(table, parts.time, window) else {
        return;
    };
    let mut names: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    let mut maps: Vec<(String, Vec<Cell>)> = Vec::new();
    for row in &table.rows {
        let (Some(x), Some(y)) = (int(row, parts.time), int(row, parts.latency)) else {
            continue;
        };
        let named = table.columns.iter().zip(row).take(parts.time);
        let name: Vec<String> = named
            .map(|(column, value)| printed::single(column, value, style))
            .collect();
        let title = name.join(" ");
        let map = *names.entry(name).or_insert_with(|| {
            maps.push((title, Vec::new()));
            maps.len() - 1
        });
        let weight = number(row, parts.weight);
        maps[map].1.push(Cell { x, y, weight });
    }
    let scale = Scale::of(table, &parts, style);
    let grid = Grid::of(&axis, &scale, style);
    let drawn: Vec<(String, Rows)> = maps
        .into_iter()
        .map(|(title, cells)| (title, grid.fill(&cells)))
        .collect();
    let cells = drawn.iter().flat_map(|(_, rows)| rows.values().flatten());
    let greatest = cells.copied().fold(0.0_f64, f64::max);
    for (title, rows) in &drawn {
        if !title.is_empty() {
            out.push_str(&style.paint(Paint::Header, title));
            out.push('\n');
        }
        draw(rows, greatest, (&grid, &scale), style, out);
    }
    legend(greatest, &table.columns[parts.weight], style, out);
}

/// The x axis: start of the first and the last column, and the distance of columns.
struct Axis {
    begin: Ns,
    end: Ns,
    step: Ns,
    /// Start of the window: times on its day are shown without date.
    day: Ns,
}

impl Axis {
    /// From the facts of the table if present, otherwise from the cells.
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
        let distances = times.iter().zip(times.iter().skip(1));
        let distances = distances.map(|(a, b)| b.saturating_sub(*a));
        let step = fact("width_ns").or(distances.min()).unwrap_or(1).max(1);
        let (&first, &last) = (times.first()?, times.last()?);
        let begin = fact("begin_ns").map_or(first, |begin| begin.min(first));
        // Up to the end of the window, even if nothing happened there.
        let end = window.map_or(last, |(_, end)| last.max(end.saturating_sub(1)));
        let day = window.map_or(begin, |(begin, _)| begin);
        Some(Self {
            begin,
            end,
            step,
            day,
        })
    }
}

struct Cell {
    x: Ns,
    y: i64,
    weight: f64,
}

/// Positions of the columns.
struct Parts {
    time: usize,
    latency: usize,
    weight: usize,
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
        })
    }
}

/// The y axis of all maps: every power of two from the lowest to the highest latency, with long
/// empty ranges folded.
struct Scale {
    /// Lower edges in ascending order; `None` where some are folded.
    edges: Vec<Option<i64>>,
    labels: BTreeMap<i64, String>,
    width: usize,
}

/// Maximum number of consecutive empty lines; more are folded into one.
const EMPTY_MAX: usize = 3;

impl Scale {
    fn of(table: &AnswerTable, parts: &Parts, style: &TextStyle) -> Self {
        let mut found: BTreeMap<i64, i64> = BTreeMap::new();
        for row in &table.rows {
            if let (Some(from), Some(to)) = (int(row, parts.latency), int(row, parts.latency + 1)) {
                found.insert(from, to);
            }
        }
        let mut edges = Vec::new();
        let mut reached: Option<i64> = None;
        for (from, to) in found {
            let mut between = Vec::new();
            while let Some(edge) = reached
                && edge < from
                && between.len() <= EMPTY_MAX
            {
                between.push(Some(edge));
                reached = Some(edge.max(1).saturating_mul(2));
            }
            if between.len() > EMPTY_MAX || reached.is_some_and(|reached| reached != from) {
                edges.push(None);
            } else {
                edges.extend(between);
            }
            edges.push(Some(from));
            reached = Some(to);
        }
        let label = |edge: i64| format!(">= {}", duration_alone(edge as f64, style.unit));
        let labels: BTreeMap<i64, String> = edges
            .iter()
            .flatten()
            .map(|edge| (*edge, label(*edge)))
            .collect();
        let width = labels.values().map(String::len).max().unwrap_or(0);
        Self {
            edges,
            labels,
            width,
        }
    }
}

/// Columns of all maps, each of which covers the same number of time steps of the table.
struct Grid {
    first: Ns,
    step: Ns,
    steps: i64,
    per_column: i64,
    across: usize,
    /// As in [`Axis`].
    day: Ns,
}

/// Weights of the columns by lower latency edge.
type Rows = BTreeMap<i64, Vec<f64>>;

impl Grid {
    fn of(axis: &Axis, scale: &Scale, style: &TextStyle) -> Self {
        let room = style.width.unwrap_or(ACROSS_DEFAULT + scale.width + 2);
        let across_max = room
            .saturating_sub(scale.width + 2)
            .clamp(ACROSS_MIN, ACROSS_MAX) as i64;
        let length = axis.end.saturating_sub(axis.begin);
        let steps = length.div_euclid(axis.step).saturating_add(1);
        let columns = |steps: i64, each: i64| (steps.max(1) - 1) / each + 1;
        let per_column = columns(steps, across_max);
        Self {
            first: axis.begin,
            step: axis.step,
            steps,
            per_column,
            across: columns(steps, per_column) as usize,
            day: axis.day,
        }
    }

    fn fill(&self, cells: &[Cell]) -> Rows {
        let mut rows = Rows::new();
        for cell in cells {
            let column = cell.x.saturating_sub(self.first).div_euclid(self.step) / self.per_column;
            let row = rows.entry(cell.y).or_insert_with(|| vec![0.0; self.across]);
            if let Some(weight) = usize::try_from(column).ok().and_then(|at| row.get_mut(at)) {
                *weight += cell.weight;
            }
        }
        rows
    }
}

fn draw(
    rows: &Rows,
    greatest: f64,
    (grid, scale): (&Grid, &Scale),
    style: &TextStyle,
    out: &mut String,
) {
    let width = scale.width;
    for edge in scale.edges.iter().rev() {
        let Some(edge) = edge else {
            let _ = writeln!(out, "{:>width$}", "...");
            continue;
        };
        let weights = rows.get(edge).map_or(&[][..], Vec::as_slice);
        let shades: String = weights
            .iter()
            .map(|w| shade(*w, greatest, style.ascii))
            .collect();
        let label = &scale.labels[edge];
        let line = format!("{label:>width$}  {}", style.paint(Paint::Bar, &shades));
        out.push_str(line.trim_end());
        out.push('\n');
    }
    // A single column may extend past the end.
    let end = grid
        .first
        .saturating_add(grid.steps.saturating_mul(grid.step));
    let [begin, end] = [grid.first, end].map(|ts| beside(ts, grid.day, style, 3));
    let gap = grid.across.saturating_sub(begin.len() + end.len()).max(1);
    let _ = writeln!(out, "{:width$}  {begin}{}{end}", "", " ".repeat(gap));
}

/// Logarithmic: one slow operation among thousands of fast ones must be visible.
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

fn legend(greatest: f64, weight: &AnswerColumn, style: &TextStyle, out: &mut String) {
    let ramp = if style.ascii {
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
        printed::single(weight, &value, style)
    );
    out.push_str(&style.paint(Paint::Aside, &text));
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
