//! Text tables of lttng-analyses: fixed columns, microseconds with three decimals, bars of 80
//! characters.

use std::fmt::Write as _;

use whyslow_base::time::Zone;
use whyslow_model::Ns;
use whyslow_model::text::shown;

use super::lami::{Cell, Table};

/// Length of the bar for the largest value of a frequency distribution.
const BAR: usize = 72;
pub(super) const RULER: &str =
    "################################################################################\n";

pub(super) struct Style {
    pub(super) zone: Zone,
}

impl Style {
    /// Time of day with nine decimals.
    pub(super) fn time(&self, ts: Ns) -> String {
        let civil = self.zone.civil(ts);
        let (h, m, s) = (civil.hour(), civil.minute(), civil.second());
        format!("{h:02}:{m:02}:{s:02}.{:09}", ts.rem_euclid(1_000_000_000))
    }

    pub(super) fn range(&self, (begin, end): (Ns, Ns)) -> String {
        let at = |ts: Ns| format!("{} {}", self.zone.civil(ts).date(), self.time(ts));
        format!("Timerange: [{}, {}]\n", at(begin), at(end))
    }
}

/// Microseconds with three decimals; `?` if unknown.
pub(super) fn us(cell: &Cell) -> String {
    match cell {
        Cell::Duration(ns) => format!("{:.3}", ns / 1e3),
        _ => "?".into(),
    }
}

pub(super) fn number(cell: &Cell) -> String {
    match cell {
        Cell::Number(number) => number.to_string(),
        _ => "?".into(),
    }
}

pub(super) fn plain(cell: &Cell) -> String {
    match cell {
        Cell::Text(text)
        | Cell::Path(text)
        | Cell::Syscall(text)
        | Cell::Disk(text)
        | Cell::Netif(text) => shown(text, false).into_owned(),
        Cell::Number(number) | Cell::Cpu(number) => number.to_string(),
        _ => "N/A".into(),
    }
}

/// `comm (tid)`
pub(super) fn process(cell: &Cell) -> String {
    match cell {
        Cell::Process { name, tid, .. } => {
            let name = name.as_deref().unwrap_or("Unknown");
            let tid = tid.map_or_else(|| "N/A".into(), |tid| tid.to_string());
            format!("{} ({tid})", shown(name, false))
        }
        _ => "Unknown (N/A)".into(),
    }
}

/// `comm (pid)`, with the thread id if the process is unknown.
pub(super) fn owner(cell: &Cell) -> String {
    let Cell::Process { name, pid, tid } = cell else {
        return process(cell);
    };
    process(&Cell::Process {
        name: name.clone(),
        pid: None,
        tid: pid.or(*tid),
    })
}

/// `1.00 MiB`, `84   B`, `N/A`.
pub(super) fn size(cell: &Cell) -> String {
    const UNITS: [&str; 5] = ["  B", "KiB", "MiB", "GiB", "TiB"];
    let Cell::Size(bytes) = cell else {
        return "N/A".into();
    };
    let mut value = *bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{bytes} {}", UNITS[0])
    } else {
        format!("{value:.2} {}", UNITS[unit])
    }
}

pub(super) fn percent(cell: &Cell) -> String {
    match cell {
        Cell::Ratio(ratio) => format!("{:.2} %", ratio * 100.0),
        _ => "?".into(),
    }
}

/// A row of a bar graph.
#[derive(Debug, Default)]
pub(super) struct Bar {
    pub(super) amount: f64,
    pub(super) value: String,
    pub(super) label: String,
}

/// Bars of proportional length, with value and label.
pub(super) fn graph(title: &str, heading: &str, bars: impl Iterator<Item = Bar>) -> String {
    const WIDTH: usize = 80;
    let bars: Vec<Bar> = bars.collect();
    let most = bars.iter().map(|bar| bar.amount).fold(0.0, f64::max);
    let values = bars.iter().map(|bar| bar.value.chars().count());
    let value_width = values.max().unwrap_or(0);
    let indent = WIDTH + value_width + 2;
    let mut text = format!("\n{title:<indent$}{heading}\n{RULER}");
    for bar in &bars {
        let share = if most > 0.0 { bar.amount / most } else { 0.0 };
        let drawn = "█".repeat((share.clamp(0.0, 1.0) * WIDTH as f64) as usize);
        let line = format!("{drawn:<WIDTH$} {:>value_width$} {}", bar.value, bar.label);
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// A frequency distribution: lower bounds, bars, counts.
pub(super) fn distribution(table: &Table, _: &Style) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    let title = table.class.title;
    let subtitle = shown(table.subtitle.as_deref().unwrap_or(""), false);
    let mut text = format!("{title} {subtitle} (µs)\n{RULER}");
    let count = |row: &[Cell]| match row.get(2) {
        Some(Cell::Number(count)) => *count,
        _ => 0,
    };
    let most = table
        .rows
        .iter()
        .map(|row| count(row))
        .max()
        .unwrap_or(0)
        .max(1);
    for row in &table.rows {
        let count = count(row);
        let length = (count as f64 / most as f64 * BAR as f64).round() as usize;
        let bar = "█".repeat(length.max(usize::from(count > 0)));
        let from = row.first().map_or_else(String::new, us);
        let _ = writeln!(text, "{from:>7} {bar:<BAR$} {count}");
    }
    text + "\n"
}
