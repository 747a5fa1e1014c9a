//! Tables of iostat, mpstat, pidstat and sar; those of vmstat are handed on.

use std::collections::BTreeSet;

use whyslow_model::Ns;

use super::super::stamp::{self, Stamp};
use super::columns::{self, Role, Scale};
use super::headers::{comm, is_banner, tool_of, topic_of};
use super::vmstat::{Run, is_vmstat};
use super::{Of, ReadLine, Teller};

/// Columns of a table; no tool prints more.
const COLUMNS_MAX: usize = 512;

/// Where the time of a row stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timed {
    /// In front of it.
    Before,
    /// On a line before the table.
    Above,
    /// Behind it: vmstat.
    Behind,
    Never,
}

#[derive(Debug)]
pub(super) struct Table {
    pub(super) tool: &'static str,
    pub(super) columns: Vec<(String, Role)>,
    pub(super) timed: Timed,
    /// What the values of the whole machine are of, where names alone do not say.
    pub(super) topic: Option<&'static str>,
    /// Time in front of the header: that of the rows before these.
    pub(super) since: Option<Ns>,
    /// Zone of the times behind the rows.
    pub(super) zone: Option<Ns>,
}

#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) table: Option<Table>,
    /// Headers met since the banner.
    seen: BTreeSet<String>,
    /// Empty lines since the banner.
    blanks: u64,
    /// Of lines of their own: the last one and the one before.
    above: Option<Ns>,
    above_before: Option<Ns>,
    /// What stands there is since the machine was started.
    is_since_boot: bool,
    /// Of the rows of this table.
    pub(super) current: Option<Ns>,
    before: Option<Ns>,
    pub(super) vmstat: Run,
}

impl ReadLine for Tables {
    fn line(&mut self, line: &str, teller: &mut Teller) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(first) = words.first() else {
            self.blanks += 1;
            return Ok(());
        };
        if is_banner(line) {
            self.banner(&words, teller);
            return Ok(());
        }
        if is_vmstat(line) {
            self.vmstat_header(&words);
            return Ok(());
        }
        // What vmstat prints above its header, in any language: `procs ---memory--- ---swap--`.
        if line.contains("---") && words.iter().all(|word| columns::number(word).is_none()) {
            return Ok(());
        }
        if *first == "#" && words.get(1) == Some(&"Time") {
            return self.header(&words[2..], Timed::Before, None);
        }
        if *first == "avg-cpu:" {
            return self.header(&words[1..], Timed::Above, None);
        }
        let is_device = |word: &&str| matches!(*word, "Device" | "Device:");
        if words.first().is_some_and(is_device) || words.last().is_some_and(is_device) {
            return self.header(&words, Timed::Above, None);
        }
        if let Some((stamp, taken)) = stamp::stamp(&words, teller.dates) {
            return self.timed(&words, (stamp, taken), teller);
        }
        // `Average:`, in any language, some of which have a blank before the colon.
        if first.ends_with(':') || words.get(1) == Some(&":") {
            teller.done.sums += 1;
            return Ok(());
        }
        let timed = self.table.as_ref().map(|table| table.timed);
        match timed {
            Some(Timed::Behind) => self.behind(&words, teller),
            Some(Timed::Above) => self.above(&words, teller),
            Some(Timed::Never) => {
                teller.done.untimed += 1;
                Ok(())
            }
            _ => Err("this is no row of a table".to_owned()),
        }
    }
}

impl Tables {
    fn banner(&mut self, words: &[&str], teller: &mut Teller) {
        *self = Self::default();
        let dates = words
            .iter()
            .find_map(|word| stamp::date(word, teller.dates));
        if let Some(date) = dates {
            teller.clock.set_date(date);
        }
        if let Some(release) = words.get(1) {
            teller.fact("kernel_release", release);
        }
        if let Some(host) = words.get(2) {
            teller.fact("hostname", host.trim_matches(['(', ')']));
        }
    }

    fn header(&mut self, words: &[&str], timed: Timed, since: Option<Ns>) -> Result<(), String> {
        if words.len() > COLUMNS_MAX {
            return Err(format!("{} columns, more than {COLUMNS_MAX}", words.len()));
        }
        let has_process = words.contains(&"PID") || words.contains(&"TGID");
        let tool = tool_of(words, timed);
        let is_irq = words.first() == Some(&"INTR");
        let columns = words.iter().map(|word| {
            let role = columns::role(word, has_process);
            match role {
                // Each column is a CPU: all are interrupts a second.
                Role::Value(_) if is_irq => ((*word).to_owned(), Role::Value(Scale::of("intr/s"))),
                role => ((*word).to_owned(), role),
            }
        });
        let columns = columns.collect();
        self.table = Some(Table {
            tool,
            columns,
            timed,
            topic: topic_of(words),
            since,
            zone: None,
        });
        // pidstat -h and iostat have no time before their headers, and go on.
        if since.is_some() {
            self.current = None;
            self.before = since;
        }
        Ok(())
    }

    /// A line with a time in front: a header, a row, or nothing else.
    fn timed(
        &mut self,
        words: &[&str],
        (at, taken): (Stamp, usize),
        teller: &mut Teller,
    ) -> Result<(), String> {
        let rest = &words[taken..];
        if rest.is_empty() {
            let at = teller.at(at);
            // Without `-y` the first is since the machine was started; with it an empty line more stands there.
            self.is_since_boot = self.above.is_none() && self.blanks <= 1;
            self.above_before = self.above;
            self.above = Some(at);
            return Ok(());
        }
        // `LINUX RESTART (2 CPU)`, and comments of `sar -C`.
        if rest.contains(&"RESTART") || rest.first() == Some(&"COM") {
            teller.done.sums += 1;
            return Ok(());
        }
        if rest.iter().all(|word| columns::number(word).is_none()) {
            let header = rest.join(" ");
            // sar prints one table after another, each of the whole day, or all again and again.
            if tool_of(rest, Timed::Before) == "sar" && self.seen.insert(header) {
                teller.clock.restart();
            }
            let since = teller.at(at);
            return self.header(rest, Timed::Before, Some(since));
        }
        let at = teller.at(at);
        if self.current != Some(at) {
            self.before = self.current.or(self.before);
            self.current = Some(at);
        }
        let Some(table) = self
            .table
            .as_ref()
            .filter(|table| table.timed == Timed::Before)
        else {
            return Err("a row without a header".to_owned());
        };
        // One look at what was counted since the start has no time before it.
        if table.since == Some(at) && table.tool != "sar" {
            teller.done.since_boot += 1;
            return Ok(());
        }
        let interval = self.before.map(|before| at.saturating_sub(before));
        table.row(rest, (at, interval), teller)
    }

    fn above(&mut self, words: &[&str], teller: &mut Teller) -> Result<(), String> {
        let Some(at) = self.above else {
            teller.done.untimed += 1;
            return Ok(());
        };
        if self.is_since_boot {
            teller.done.since_boot += 1;
            return Ok(());
        }
        let interval = self.above_before.map(|before| at.saturating_sub(before));
        let Some(table) = &self.table else {
            return Ok(());
        };
        table.row(words, (at, interval), teller)
    }
}

impl Table {
    pub(super) fn row(
        &self,
        words: &[&str],
        when: (Ns, Option<Ns>),
        teller: &mut Teller,
    ) -> Result<(), String> {
        let has_rest = matches!(self.columns.last(), Some((_, Role::Comm)));
        let count = self.columns.len();
        if words.len() < count || words.len() > count && !has_rest {
            return Err(format!("{} fields, the header has {count}", words.len()));
        }
        let rest = words[count.saturating_sub(1)..].join(" ");
        let mut of = Of {
            tool: self.tool,
            subject: self.topic,
            ..Of::default()
        };
        // CPUs have the same numbers.
        let node = format!("node {}", words.first().copied().unwrap_or_default());
        let mut values = String::new();
        for ((name, role), text) in self.columns.iter().zip(words) {
            let id = || -> Result<Option<i32>, String> {
                if *text == "-" {
                    return Ok(None);
                }
                let number = text.parse().ok().filter(|number| *number >= 0);
                number
                    .map(Some)
                    .ok_or_else(|| format!("`{text}` is no number of a process"))
            };
            match role {
                Role::Subject if name == "NODE" => of.subject = Some(&node),
                Role::Subject => of.subject = Some(text),
                Role::Pid => of.pid = id()?,
                Role::Tid => of.tid = id()?,
                Role::Comm => of.comm = comm(&rest),
                Role::Skip => {}
                Role::Value(_) if self.tool == "pidstat" && columns::is_unreadable(text) => {
                    teller.done.unreadable += 1;
                }
                Role::Value(scale) => scale.push(&mut values, name, text)?,
            }
        }
        teller.row(&of, when, &values);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Form, translate};

    #[test]
    fn what_pidstat_could_not_read_is_no_value() {
        let report = "Linux 6.1.0 (web1) \t11/25/26 \t_x86_64_\t(2 CPU)\n\n\
            04:13:32      UID       PID   kB_rd/s   kB_wr/s kB_ccwr/s iodelay  Command\n\
            04:13:33        0         2     -1.00     -1,00     -1.00       0  kthreadd\n\
            04:13:33     1000      1339      4.00      8.00      0.00       0  python3\n";
        let done = translate(Form::Table, report, None, 5);
        assert_eq!((done.bad, done.unreadable, done.rows), (Vec::new(), 3, 2));
        assert!(!done.text.contains("-1024"), "{}", done.text);
    }
}
