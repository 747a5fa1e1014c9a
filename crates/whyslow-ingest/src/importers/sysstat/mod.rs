//! Output of iostat, mpstat, pidstat, sar, sadf, vmstat, `top -b` and Kafka's JmxTool: counters
//! over time.
//!
//! All of them print tables: a header with column names, then rows, with the time before each row,
//! after it, or on a line above the table. Columns are identified by the header, so no tables per
//! version are needed; values of unknown columns are kept as plain numbers. Each row becomes a
//! `counters` line of the text format ([`super::text`]) with the names of the tool.
//!
//! Averages cover the time since the previous row. The averages since boot that most of these tools
//! print first describe no particular time; they are counted but not used.

mod columns;
mod csv;
mod headers;
mod jmx;
mod json;
mod names;
mod table;
mod top;
mod vmstat;

use std::fmt::Write as _;

use whyslow_model::Ns;

use super::Bad;
use super::stamp::{Clock, DateOrder, SECOND_NS, Shift, Stamp};
use super::text;

/// Report formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Tables of iostat, mpstat, pidstat, sar and vmstat.
    Table,
    /// `top -b`.
    Top,
    /// `sadf -d`.
    Csv,
    /// `-o JSON`, `sadf -j`.
    Json,
    /// Kafka's JmxTool.
    Jmx,
}

/// A file in the text format.
#[derive(Debug, Default)]
pub struct Translated {
    /// Its lines, for [`super::text`].
    pub text: String,
    /// Examples of lines that cannot be parsed, the first ones.
    pub bad: Vec<Bad>,
    /// Number of all such lines.
    pub bad_count: u64,
    /// Rows with averages since boot.
    pub since_boot: u64,
    /// Rows of averages at the end, restarts, comments, headings.
    pub sums: u64,
    /// 1 if the zone of its times was guessed.
    pub zones: u64,
    /// 1 if the order of day and month in its dates was guessed.
    pub dates: u64,
    /// Rows that became counters.
    pub rows: u64,
    /// Rows without any time.
    pub untimed: u64,
    /// Values that the tool could not read.
    pub unreadable: u64,
}

/// The format of a file starting with `head`.
pub fn form_of(head: &str) -> Option<Form> {
    let begin: String = head
        .chars()
        .filter(|c| !c.is_whitespace())
        .take(12)
        .collect();
    if begin.starts_with("{\"sysstat\":{") {
        return Some(Form::Json);
    }
    let mut lines = head.lines().filter(|line| !line.trim().is_empty()).take(6);
    lines.find_map(|line| {
        if line.starts_with("# hostname;interval;timestamp;") {
            Some(Form::Csv)
        } else if jmx::is_header(line) {
            Some(Form::Jmx)
        } else if top::is_first_line(line) {
            Some(Form::Top)
        } else if headers::is_banner(line) || vmstat::is_vmstat(line) {
            Some(Form::Table)
        } else {
            None
        }
    })
}

/// `written` is the modification time of the file, used where its timestamps are incomplete.
pub fn translate(form: Form, report: &str, written: Option<Ns>, bad_max: usize) -> Translated {
    // The first pass finds the last time, which determines the zone of all times.
    let (dates, is_guessed) = DateOrder::of(report, written);
    let mut writer = ReportWriter::new(Shift::default(), dates, 0);
    run(form, report, &mut writer);
    let shift = writer.clock.shift(written);
    drop(writer);
    let mut writer = ReportWriter::new(shift, dates, bad_max);
    run(form, report, &mut writer);
    let mut done = writer.done;
    done.zones = u64::from(shift.is_guessed && done.rows > 0);
    done.dates = u64::from(is_guessed && done.rows > 0);
    done
}

fn run(form: Form, report: &str, writer: &mut ReportWriter) {
    match form {
        Form::Json => json::read(report, writer),
        Form::Table => lines(report, writer, &mut table::Tables::default()),
        Form::Top => lines(report, writer, &mut top::Top::default()),
        Form::Csv => lines(report, writer, &mut csv::Csv::default()),
        Form::Jmx => lines(report, writer, &mut jmx::Jmx::default()),
    }
}

/// A line-based report parser.
trait ReadLine {
    /// Longer lines are rejected.
    const BYTES_MAX: usize = text::LINE_BYTES_MAX;

    fn line(&mut self, line: &str, writer: &mut ReportWriter) -> Result<(), String>;
}

fn lines<R: ReadLine>(report: &str, writer: &mut ReportWriter, reader: &mut R) {
    let mut offset = 0;
    for (number, line) in report.split_inclusive('\n').enumerate() {
        let text = line.trim_end();
        let read = if text.len() > R::BYTES_MAX {
            Err(format!("longer than {} bytes", R::BYTES_MAX))
        } else {
            reader.line(text, writer)
        };
        if let Err(what) = read {
            writer.bad(number + 1, offset, what);
        }
        offset += line.len();
    }
}

/// Subject of a row.
#[derive(Debug, Clone, Copy, Default)]
struct Of<'a> {
    tool: &'a str,
    subject: Option<&'a str>,
    pid: Option<i32>,
    tid: Option<i32>,
    comm: Option<&'a str>,
}

/// Converts rows to lines of the text format.
struct ReportWriter {
    clock: Clock,
    shift: Shift,
    dates: Option<DateOrder>,
    bad_max: usize,
    done: Translated,
}

impl ReportWriter {
    fn new(shift: Shift, dates: DateOrder, bad_max: usize) -> Self {
        Self {
            clock: Clock::default(),
            shift,
            dates: Some(dates),
            bad_max,
            done: Translated {
                text: format!("{}\n", text::MAGIC),
                ..Translated::default()
            },
        }
    }

    fn at(&mut self, stamp: Stamp) -> Ns {
        self.clock.read(stamp).saturating_add(self.shift.by)
    }

    fn bad(&mut self, line: usize, offset: usize, what: String) {
        self.done.bad_count += 1;
        if self.done.bad.len() < self.bad_max {
            self.done.bad.push(Bad { line, offset, what });
        }
    }

    /// The line number is computed only for examples that are kept.
    fn bad_at(&mut self, report: &str, offset: usize, what: String) {
        let is_kept = self.done.bad.len() < self.bad_max;
        let before = &report.as_bytes()[..if is_kept { offset } else { 0 }];
        let line = 1 + memchr::memchr_iter(b'\n', before).count();
        self.bad(line, offset, what);
    }

    fn fact(&mut self, key: &str, value: &str) {
        text::write_metadata(key, value, &mut self.done.text);
    }

    /// `values` is in the form of [`whyslow_model::counter::push_reported`].
    fn row(&mut self, of: &Of<'_>, (at, interval): (Ns, Option<Ns>), values: &str) {
        if values.is_empty() {
            return;
        }
        self.done.rows += 1;
        let out = &mut self.done.text;
        let (sign, size) = (if at < 0 { "-" } else { "" }, at.unsigned_abs());
        let (seconds, rest) = (size / 1_000_000_000, size % 1_000_000_000);
        let _ = write!(out, "{sign}{seconds}.{rest:09} [-]");
        let tid = of.tid.or(of.pid);
        if let Some(tid) = tid.filter(|tid| *tid > 0) {
            let _ = write!(out, " (tid={tid}");
            if let Some(pid) = of.pid {
                let _ = write!(out, " pid={pid}");
            }
            if let Some(comm) = of.comm {
                let _ = write!(out, " comm={}", quoted(comm));
            }
            out.push(')');
        }
        let _ = write!(out, " counters reported_by={}", of.tool);
        if let Some(pid) = of.pid {
            let _ = write!(out, " pid={pid}");
        }
        if let Some(subject) = of.subject {
            let _ = write!(out, " subject={}", quoted(subject));
        }
        if let Some(interval) = interval.filter(|interval| *interval > 0) {
            let _ = write!(out, " interval={interval}");
        }
        let _ = writeln!(out, " values={}", quoted(values));
    }
}

/// Whether a sample at this distance from the previous one may be of the same run, whose samples
/// are `step` apart within the rounding of their clock. A much later or too early sample is the
/// first of another run.
fn goes_on((step, rounding): (Ns, Ns), distance: Ns) -> bool {
    let least = step.saturating_sub(rounding).max(0);
    (least..=step.saturating_mul(2).saturating_add(SECOND_NS)).contains(&distance)
}

/// A value of the text format.
pub(super) fn quoted(value: &str) -> String {
    let mut out = String::with_capacity(value.len() + 2);
    out.push('"');
    for c in value.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_ascii_control() => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
