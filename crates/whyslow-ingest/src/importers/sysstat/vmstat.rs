//! Tables of vmstat: the time follows the values of a row, and the zone is in the header.
//!
//! The first row of a run contains averages since boot. A file may contain several runs
//! (`vmstat -t 1 60 >> f`), and a run repeats its header after each screen (21 rows in files): the
//! first row after a header is of another run if it is not at the time when the next row of the
//! same run is due.

use whyslow_model::Ns;

use super::super::stamp::{self, Stamp};
use super::columns::{self, Role, Scale};
use super::table::{Table, Tables, Timed};
use super::{Of, ReportWriter, goes_on};

#[derive(Debug, Default)]
pub(super) struct Run {
    is_behind_header: bool,
    /// Rows since the last header, and between two headers.
    rows: u64,
    screen: Option<u64>,
    /// Shortest interval between rows.
    step: Option<Ns>,
}

impl Run {
    /// Whether the row is the first of a run, by its distance from the previous one.
    fn starts_run(&mut self, distance: Option<Ns>) -> bool {
        let is_behind_header = std::mem::take(&mut self.is_behind_header);
        let is_whole_screen = self.screen.is_none_or(|rows| rows == self.rows);
        let next = distance.filter(|distance| {
            !is_behind_header
                || is_whole_screen && self.step.is_some_and(|step| goes_on((step, 0), *distance))
        });
        let Some(distance) = next else {
            *self = Self {
                rows: 1,
                ..Self::default()
            };
            return true;
        };
        if is_behind_header {
            self.screen = Some(std::mem::take(&mut self.rows));
        }
        self.rows += 1;
        self.step = Some(self.step.map_or(distance, |step| step.min(distance)));
        false
    }
}

pub(super) fn is_vmstat(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.next() == Some("r") && words.next() == Some("b") && words.next() == Some("swpd")
}

impl Tables {
    pub(super) fn vmstat_header(&mut self, words: &[&str]) {
        self.vmstat.is_behind_header = true;
        let is_value = |word: &&str| *word != "timestamp" && !is_zone(word);
        let timed = if words.iter().all(is_value) {
            Timed::Never
        } else {
            Timed::Behind
        };
        let zone = words.last().and_then(|word| stamp::named_zone(word));
        let columns = words.iter().filter(|word| is_value(word));
        self.table = Some(Table {
            tool: "vmstat",
            columns: columns
                .map(|word| ((*word).to_owned(), Role::Value(Scale::of_vmstat(word))))
                .collect(),
            timed,
            topic: None,
            since: None,
            zone,
        });
    }

    pub(super) fn behind(
        &mut self,
        words: &[&str],
        writer: &mut ReportWriter,
    ) -> Result<(), String> {
        let Some(table) = &self.table else {
            return Ok(());
        };
        let (values, time) = words
            .split_at_checked(table.columns.len())
            .ok_or_else(|| format!("{} fields, fewer than in the header", words.len()))?;
        let read = stamp::stamp(time, writer.dates).filter(|(_, taken)| *taken == time.len());
        let (at, _) = read.ok_or_else(|| "missing date and time after the values".to_owned())?;
        let at = match (at, table.zone) {
            (Stamp::Wall(at), Some(zone)) => Stamp::Epoch(at.saturating_sub(zone)),
            (at, _) => at,
        };
        let at = writer.at(at);
        let interval = self.current.map(|before| at.saturating_sub(before));
        self.current = Some(at);
        if !self.vmstat.starts_run(interval) {
            return table.row(values, (at, interval), writer);
        }
        writer.done.since_boot += 1;
        let mut current = String::new();
        for ((name, role), text) in table.columns.iter().zip(values) {
            if let Role::Value(scale) = role
                && columns::is_current(name)
            {
                scale.push(&mut current, name, text)?;
            }
        }
        let of = Of {
            tool: table.tool,
            ..Of::default()
        };
        writer.row(&of, (at, None), &current);
        Ok(())
    }
}

/// `CET`, `-03`: vmstat's heading of the time column.
fn is_zone(word: &str) -> bool {
    word.starts_with(['+', '-']) && word.len() > 2
        || word.len() >= 3 && word.bytes().all(|byte| byte.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::super::{Form, translate};

    const HEADER: &str =
        "procs -----------memory---------- -----timestamp-----\n r  b   swpd   us UTC\n";

    /// Rows at intervals of `step` seconds, with a header before each screen.
    fn run(begin: u32, step: u32, rows: u32) -> String {
        let row = |number: u32| {
            let at = begin + number * step;
            let time = format!("{:02}:{:02}:{:02}", at / 3600, at / 60 % 60, at % 60);
            let header = if number.is_multiple_of(21) {
                HEADER
            } else {
                ""
            };
            format!("{header} 1  0  0  7 2026-11-25 {time}\n")
        };
        (0..rows).map(row).collect()
    }

    #[test]
    fn the_first_row_of_each_run_is_since_boot() {
        let check = |runs: &[String], since_boot: u64, rows: u64| {
            let done = translate(Form::Table, &runs.concat(), None, 5);
            assert_eq!(done.bad, []);
            assert_eq!((done.since_boot, done.rows), (since_boot, rows), "{runs:?}");
        };
        check(&[run(0, 1, 50)], 1, 50);
        // One minute each hour; one after another; once each hour; the next one when a row is due.
        check(&[run(0, 1, 60), run(3600, 1, 60)], 2, 120);
        check(&[run(0, 1, 5), run(4, 1, 5)], 2, 10);
        check(&[run(0, 1, 1), run(3600, 1, 1), run(7200, 1, 1)], 3, 3);
        check(&[run(0, 60, 60), run(3600, 60, 60)], 2, 120);
    }
}
