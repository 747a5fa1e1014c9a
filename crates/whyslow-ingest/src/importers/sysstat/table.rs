//! Tables of iostat, mpstat, pidstat and sar; those of vmstat are passed on.

use std::collections::BTreeSet;

use whyslow_model::Ns;

use super::super::stamp::{self, Stamp};
use super::columns::{self, Role, Scale};
use super::headers::{comm, is_banner, tool_of, topic_of};
use super::vmstat::{Run, is_vmstat};
use super::{Of, ReadLine, ReportWriter};

/// Maximum number of columns; no tool prints more.
const COLUMNS_MAX: usize = 512;

/// Position of the time of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timed {
    /// Before the row.
    Before,
    /// On a line above the table.
    Above,
    /// After the row (vmstat).
    Behind,
    Never,
}

#[derive(Debug)]
pub(super) struct Table {
    pub(super) tool: &'static str,
    pub(super) columns: Vec<(String, Role)>,
    pub(super) timed: Timed,
    /// Subject of machine-wide values whose names are ambiguous.
    pub(super) topic: Option<&'static str>,
    /// Time before the header: that of the previous rows.
    pub(super) since: Option<Ns>,
    /// Zone of the times after the rows.
    pub(super) zone: Option<Ns>,
}

#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) table: Option<Table>,
    /// Headers since the banner.
    seen: BTreeSet<String>,
    /// Empty lines since the banner.
    blanks: u64,
    /// Times on lines of their own: the last one and the previous one.
    above: Option<Ns>,
    above_before: Option<Ns>,
    /// The current table contains averages since boot.
    is_since_boot: bool,
    /// Time of the rows of this table.
    pub(super) current: Option<Ns>,
    before: Option<Ns>,
    pub(super) vmstat: Run,
}

impl ReadLine for Tables {
    fn line(&mut self, line: &str, writer: &mut ReportWriter) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(first) = words.first() else {
            self.blanks += 1;
            return Ok(());
        };
        if is_banner(line) {
            self.banner(&words, writer);
            return Ok(());
        }
        if is_vmstat(line) {
            self.vmstat_header(&words);
            return Ok(());
        }
        // The line above the header of vmstat, in any language: `procs ---memory--- ---swap--`.
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
        if let Some((stamp, taken)) = stamp::stamp(&words, writer.dates) {
            return self.timed(&words, (stamp, taken), writer);
        }
        // `Average:`, in any language; some have a space before the colon.
        if first.ends_with(':') || words.get(1) == Some(&":") {
            writer.done.sums += 1;
            return Ok(());
        }
        let timed = self.table.as_ref().map(|table| table.timed);
        match timed {
            Some(Timed::Behind) => self.behind(&words, writer),
            Some(Timed::Above) => self.above(&words, writer),
            Some(Timed::Never) => {
                writer.done.untimed += 1;
                Ok(())
            }
            _ => Err("not a table row".to_owned()),
        }
    }
}

impl Tables {
    fn banner(&mut self, words: &[&str], writer: &mut ReportWriter) {
        *self = Self::default();
        let dates = words
            .iter()
            .find_map(|word| stamp::date(word, writer.dates));
        if let Some(date) = dates {
            writer.clock.set_date(date);
        }
        if let Some(release) = words.get(1) {
            writer.fact("kernel_release", release);
        }
        if let Some(host) = words.get(2) {
            writer.fact("hostname", host.trim_matches(['(', ')']));
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
                // Each column is a CPU with interrupts per second.
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
        // pidstat -h and iostat have no time before their headers, and do not restart.
        if since.is_some() {
            self.current = None;
            self.before = since;
        }
        Ok(())
    }

    /// A line that starts with a time: a header, a row, or the time only.
    fn timed(
        &mut self,
        words: &[&str],
        (at, taken): (Stamp, usize),
        writer: &mut ReportWriter,
    ) -> Result<(), String> {
        let rest = &words[taken..];
        if rest.is_empty() {
            let at = writer.at(at);
            // Without `-y` the first table is since boot; with `-y` there is an additional empty
            // line.
            self.is_since_boot = self.above.is_none() && self.blanks <= 1;
            self.above_before = self.above;
            self.above = Some(at);
            return Ok(());
        }
        // `LINUX RESTART (2 CPU)`, and comments of `sar -C`.
        if rest.contains(&"RESTART") || rest.first() == Some(&"COM") {
            writer.done.sums += 1;
            return Ok(());
        }
        if rest.iter().all(|word| columns::number(word).is_none()) {
            let header = rest.join(" ");
            // sar prints the tables one after another for the whole day, or all of them repeatedly.
            if tool_of(rest, Timed::Before) == "sar" && self.seen.insert(header) {
                writer.clock.restart();
            }
            let since = writer.at(at);
            return self.header(rest, Timed::Before, Some(since));
        }
        let at = writer.at(at);
        if self.current != Some(at) {
            self.before = self.current.or(self.before);
            self.current = Some(at);
        }
        let Some(table) = self
            .table
            .as_ref()
            .filter(|table| table.timed == Timed::Before)
        else {
            return Err("row without a header".to_owned());
        };
        // A single report of totals since boot has no preceding time.
        if table.since == Some(at) && table.tool != "sar" {
            writer.done.since_boot += 1;
            return Ok(());
        }
        let interval = self.before.map(|before| at.saturating_sub(before));
        table.row(rest, (at, interval), writer)
    }

    fn above(&mut self, words: &[&str], writer: &mut ReportWriter) -> Result<(), String> {
        let Some(at) = self.above else {
            writer.done.untimed += 1;
            return Ok(());
        };
        if self.is_since_boot {
            writer.done.since_boot += 1;
            return Ok(());
        }
        let interval = self.above_before.map(|before| at.saturating_sub(before));
        let Some(table) = &self.table else {
            return Ok(());
        };
        table.row(words, (at, interval), writer)
    }
}

impl Table {
    pub(super) fn row(
        &self,
        words: &[&str],
        when: (Ns, Option<Ns>),
        writer: &mut ReportWriter,
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
                    .ok_or_else(|| format!("invalid pid `{text}`"))
            };
            match role {
                Role::Subject if name == "NODE" => of.subject = Some(&node),
                Role::Subject => of.subject = Some(text),
                Role::Pid => of.pid = id()?,
                Role::Tid => of.tid = id()?,
                Role::Comm => of.comm = comm(&rest),
                Role::Skip => {}
                Role::Value(_) if self.tool == "pidstat" && columns::is_unreadable(text) => {
                    writer.done.unreadable += 1;
                }
                Role::Value(scale) => scale.push(&mut values, name, text)?,
            }
        }
        writer.row(&of, when, &values);
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
