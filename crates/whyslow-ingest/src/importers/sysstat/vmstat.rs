//! Tables of vmstat: times stand behind the rows, and the zone in the header.

use super::super::stamp::{self, Stamp};
use super::columns::{self, Role, Scale};
use super::table::{Table, Tables, Timed};
use super::{Of, Teller};

pub(super) fn is_vmstat(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.next() == Some("r") && words.next() == Some("b") && words.next() == Some("swpd")
}

impl Tables {
    pub(super) fn vmstat(&mut self, words: &[&str]) {
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

    pub(super) fn behind(&mut self, words: &[&str], teller: &mut Teller) -> Result<(), String> {
        let Some(table) = &self.table else {
            return Ok(());
        };
        let (values, time) = words
            .split_at_checked(table.columns.len())
            .ok_or_else(|| format!("{} fields, fewer than the header has", words.len()))?;
        let read = stamp::stamp(time, teller.written).filter(|(_, taken)| *taken == time.len());
        let (at, _) = read.ok_or_else(|| "no date and time stand behind the values".to_owned())?;
        let at = match (at, table.zone) {
            (Stamp::Wall(at), Some(zone)) => Stamp::Epoch(at.saturating_sub(zone)),
            (at, _) => at,
        };
        let at = teller.at(at);
        let interval = self.current.map(|before| at.saturating_sub(before));
        self.current = Some(at);
        self.rows += 1;
        if self.rows > 1 {
            return table.row(values, (at, interval), teller);
        }
        teller.done.since_boot += 1;
        let mut told = String::new();
        for ((name, role), text) in table.columns.iter().zip(values) {
            if let Role::Value(scale) = role
                && columns::is_of_moment(name)
            {
                scale.push(&mut told, name, text)?;
            }
        }
        let of = Of {
            tool: table.tool,
            ..Of::default()
        };
        teller.row(&of, (at, None), &told);
        Ok(())
    }
}

/// `CET`, `-03`: what vmstat calls the column of times.
fn is_zone(word: &str) -> bool {
    word.starts_with(['+', '-']) && word.len() > 2
        || word.len() >= 3 && word.bytes().all(|byte| byte.is_ascii_uppercase())
}
