//! Scripts of short lines, compared with rows as text.
//!
//! A line is `ts tid event`, with `pid/tid` if they differ, `?/tid` if the process is unknown, `-`
//! without a thread. `> name arguments` enters a call, `< name arguments` returns, `= name ret
//! arguments` does both at the same time, `lost` loses events; anything else is an event of the
//! text format.

mod calls;
mod fds;
mod files;
mod mappings;
mod model;

use whyslow_model::tables::Collected;
use whyslow_model::{Sym, Symbols};

use crate::importers::text::{EventBuffers, Item, Line, parse};
use crate::trackers::Trackers;

pub(super) struct Machine {
    pub(super) trackers: Trackers,
    pub(super) rows: Collected,
    symbols: Symbols,
}

impl Machine {
    pub(super) fn run(script: &str) -> Self {
        let mut symbols = Symbols::new();
        let mut machine = Machine {
            trackers: Trackers::new(&mut symbols),
            rows: Collected::default(),
            symbols,
        };
        for line in script
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
        {
            machine.line(line);
        }
        machine.finish();
        machine
    }

    /// Runs lines of the text format.
    pub(super) fn of_text(text: &str) -> Self {
        let mut symbols = Symbols::new();
        let mut machine = Machine {
            trackers: Trackers::new(&mut symbols),
            rows: Collected::default(),
            symbols,
        };
        text.lines().for_each(|line| machine.text(line.trim()));
        machine.finish();
        machine
    }

    fn line(&mut self, line: &str) {
        let mut words = line.splitn(3, ' ');
        let mut word = || words.next().unwrap();
        let (ts, thread, event) = (word().parse().unwrap(), word(), word());
        let at = |event: &str| at(ts, thread, event);
        if let Some(entry) = event.strip_prefix("> ") {
            self.text(&at(&format!("syscall_enter name={entry}")));
        } else if let Some(exit) = event.strip_prefix("< ") {
            self.text(&at(&format!("syscall_exit name={exit}")));
        } else if let Some(both) = event.strip_prefix("= ") {
            let mut parts = both.splitn(3, ' ');
            let (name, ret) = (parts.next().unwrap(), parts.next().unwrap());
            let args = parts.next().unwrap_or("");
            self.text(&at(&format!("syscall_enter name={name} {args}")));
            self.text(&at(&format!("syscall_exit name={name} ret={ret} {args}")));
        } else {
            self.text(&at(event));
        }
    }

    fn text(&mut self, text: &str) {
        let mut line = Line::default();
        let (trackers, symbols, rows) = (&mut self.trackers, &mut self.symbols, &mut self.rows);
        match parse(text, &mut line, &mut EventBuffers::default())
            .unwrap_or_else(|error| panic!("{text}: {error}"))
        {
            Item::Event { event, .. } => trackers.event(&event, symbols, rows),
            Item::Loss(loss) => trackers.loss(&loss, symbols, rows),
            _ => panic!("{text}: no event"),
        }
    }

    fn finish(&mut self) {
        self.trackers
            .finish(1_000_000, &mut self.symbols, &mut self.rows);
        self.rows.syscall.sort_by_key(|row| row.id);
        self.rows.fd_life.sort_by_key(|row| row.id);
        self.rows.file_life.sort_by_key(|row| row.id);
        self.rows.mapping.sort_by_key(|row| row.id);
    }

    pub(super) fn name(&self, sym: Sym) -> &str {
        self.symbols.get(sym)
    }

    pub(super) fn count(&self, stat: &'static whyslow_model::stat::Stat) -> u64 {
        self.trackers.anomalies().get(stat)
    }
}

fn at(ts: i64, thread: &str, event: &str) -> String {
    let context = match thread.split_once('/') {
        _ if thread == "-" => String::new(),
        Some(("?", tid)) => format!("(tid={tid}) "),
        Some((pid, tid)) => format!("(tid={tid} pid={pid}) "),
        None => format!("(tid={thread} pid={thread}) "),
    };
    format!("0.{ts:09} [0] {context}{event}")
}

/// Optional parts of a row as text.
#[derive(Default)]
pub(super) struct Words(Vec<String>);

impl Words {
    pub(super) fn span(ts: i64, ts_end: Option<i64>) -> Self {
        let end = ts_end.map_or("?".to_string(), |end| end.to_string());
        Words(vec![format!("{ts}-{end}")])
    }

    pub(super) fn put(&mut self, word: impl ToString) {
        self.0.push(word.to_string());
    }

    pub(super) fn field(&mut self, key: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.0.push(format!("{key}={}", value.to_string()));
        }
    }

    pub(super) fn mark(&mut self, word: &str, is_set: bool) {
        if is_set {
            self.put(word);
        }
    }

    pub(super) fn line(self) -> String {
        self.0.join(" ")
    }
}

/// Compares complete lines; the message shows both sides as lines.
#[track_caller]
pub(super) fn assert_lines(got: &[String], expected: &[&str]) {
    assert_eq!(got.join("\n"), expected.join("\n"));
}
