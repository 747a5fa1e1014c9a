//! Tables of iostat, mpstat, pidstat, sar and vmstat.

use std::collections::BTreeSet;

use whyslow_model::Ns;

use super::super::stamp::{self, Stamp};
use super::columns::{self, Role, Scale};
use super::{Of, ReadLine, Teller};

/// Columns of a table; no tool prints more.
const COLUMNS_MAX: usize = 512;

/// Where the time of a row stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timed {
    /// In front of it.
    Before,
    /// On a line before the table.
    Above,
    /// Behind it: vmstat.
    Behind,
    Never,
}

#[derive(Debug)]
struct Table {
    tool: &'static str,
    columns: Vec<(String, Role)>,
    timed: Timed,
    /// What the values of the whole machine are of, where names alone do not say.
    topic: Option<&'static str>,
    /// Time in front of the header: that of the rows before these.
    since: Option<Ns>,
    /// Zone of the times behind the rows.
    zone: Option<Ns>,
}

#[derive(Debug, Default)]
pub(super) struct Tables {
    table: Option<Table>,
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
    current: Option<Ns>,
    before: Option<Ns>,
    /// Rows of vmstat.
    rows: u64,
}

/// `Linux 6.1.0 (web1)  11/25/26  _x86_64_  (2 CPU)`
pub(super) fn is_banner(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().take(8).collect();
    line.starts_with("Linux ")
        && words.get(2).is_some_and(|word| word.starts_with('('))
        && words.iter().any(|word| word.starts_with('_'))
}

pub(super) fn is_vmstat(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.next() == Some("r") && words.next() == Some("b") && words.next() == Some("swpd")
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
            self.vmstat(&words);
            return Ok(());
        }
        if first.starts_with("procs") || first.starts_with("--procs") {
            return Ok(());
        }
        if *first == "#" && words.get(1) == Some(&"Time") {
            return self.header(&words[2..], Timed::Before, None);
        }
        if *first == "avg-cpu:" {
            return self.header(&words[1..], Timed::Above, None);
        }
        let is_device = |word: &&str| matches!(*word, "Device" | "Device:");
        if words.first().is_some_and(|word| is_device(&word))
            || words.last().is_some_and(|word| is_device(&word))
        {
            return self.header(&words, Timed::Above, None);
        }
        if let Some((stamp, taken)) = stamp::stamp(&words, teller.written) {
            return self.timed(&words, (stamp, taken), teller);
        }
        // `Average:`, in any language.
        if first.ends_with(':') {
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
            .find_map(|word| stamp::date(word, teller.written));
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

    fn vmstat(&mut self, words: &[&str]) {
        let is_value = |word: &&str| *word != "timestamp" && !is_zone(word);
        let timed = if words.iter().all(|word| is_value(word)) {
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
        if rest.contains(&"RESTART") {
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

    fn behind(&mut self, words: &[&str], teller: &mut Teller) -> Result<(), String> {
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

impl Table {
    fn row(
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
                Role::Subject => of.subject = Some(text),
                Role::Pid => of.pid = id()?,
                Role::Tid => of.tid = id()?,
                Role::Comm => of.comm = comm(&rest),
                Role::Skip => {}
                Role::Value(scale) => scale.push(&mut values, name, text)?,
            }
        }
        teller.row(&of, when, &values);
        Ok(())
    }
}

/// The name of a thread: `|__` and `(java)__` before it are the process, a path is a command line.
pub(super) fn comm(text: &str) -> Option<&str> {
    let name = text.split_once("__").map_or(text, |(before, name)| {
        let is_mark = before == "|" || before.starts_with('(') && before.ends_with(')');
        if is_mark { name } else { text }
    });
    let is_path = name.starts_with('/');
    let name = if is_path {
        let program = name.split(' ').next().unwrap_or_default();
        program.rsplit('/').next().unwrap_or_default()
    } else {
        name
    };
    let cut = name
        .char_indices()
        .map(|(at, c)| at + c.len_utf8())
        .take_while(|end| *end <= 15)
        .last();
    cut.and_then(|end| name.get(..end))
        .filter(|name| !name.is_empty())
}

/// `CET`, `-03`: what vmstat calls the column of times.
fn is_zone(word: &str) -> bool {
    word.starts_with(['+', '-']) && word.len() > 2
        || word.len() >= 3 && word.bytes().all(|byte| byte.is_ascii_uppercase())
}

fn tool_of(header: &[&str], timed: Timed) -> &'static str {
    let has = |name: &str| header.contains(&name);
    let is_number_of_irq = |name: &&str| {
        name.strip_suffix("/s")
            .is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    if timed == Timed::Above {
        "iostat"
    } else if has("PID") || has("TGID") {
        "pidstat"
    } else if has("NODE")
        || has("%usr") && header.get(5) == Some(&"%irq")
        || has("intr/s")
        || has("NET_RX/s")
        || header.iter().any(|name| is_number_of_irq(&name))
    {
        "mpstat"
    } else {
        "sar"
    }
}

/// Tables whose columns have names that other tables have, too.
fn topic_of(header: &[&str]) -> Option<&'static str> {
    match *header.first()? {
        "call/s" => Some("nfs"),
        "scall/s" => Some("nfsd"),
        "atmptf/s" => Some("tcp"),
        _ => None,
    }
}
