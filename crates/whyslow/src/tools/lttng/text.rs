//! Tables as the commands of lttng-analyses print them: fixed columns, microseconds with three
//! decimals, bars of 80 characters.

use std::fmt::Write as _;

use whyslow_model::Ns;

use super::lami::{Cell, Table};
use crate::output::shown;
use crate::time::Zone;

/// Characters of a bar that stands for the greatest value of a frequency distribution.
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

/// Microseconds with three decimals; `?` where there is none.
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
        Cell::Text(text) | Cell::Path(text) | Cell::Syscall(text) | Cell::Disk(text) => {
            shown(text, false).into_owned()
        }
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

/// A frequency distribution: lower bounds, bars, counts.
pub(super) fn distribution(table: &Table, _: &Style) -> String {
    let title = table.class.title;
    let subtitle = table.subtitle.as_deref().unwrap_or("");
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
