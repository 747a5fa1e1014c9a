//! Output of bcc, libbpf-tools and bpftrace tools: one line per event.
//!
//! The header line identifies the tool by its columns, for all families and flags
//! (`columns::Tool`). Each line becomes lines of the text format ([`super::text`]): calls with
//! start and end, block requests, DNS lookups, connections.
//!
//! Most of these tools report the process and not the thread. Their events are attributed to
//! placeholder threads of the process, whose ids no kernel uses ([`FIRST_TID`] and up): as many as
//! the process had concurrent calls.
//!
//! Timestamps are those of the end of an event. For times of day and times since the start of the
//! tool see `super::stamp`.

mod columns;
mod emit;

use whyslow_model::Ns;

use self::columns::{Field, Header, Tool};
use super::Bad;
use super::stamp::{self, Clock, Shift, Stamp};
use super::text;

/// Greater than any thread id.
pub const FIRST_TID: i32 = 5_000_000;
/// Lines before the header, such as attached probes and how to stop.
const LINES_BEFORE_MAX: usize = 12;

/// Number of placeholder ids in use: files that are imported together must not share one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MadeUp {
    /// Thread ids for threads that the tool does not identify.
    pub threads: i32,
    /// Socket addresses for connections that the tool does not identify.
    pub sockets: u64,
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
    /// Lines that became events.
    pub rows: u64,
    /// 1 if the zone or the zero of its times was guessed.
    pub zones: u64,
    /// Lines with a process but no thread.
    pub no_thread: u64,
    /// Lines of tables without times.
    pub untimed: u64,
    /// Messages of the tool itself.
    pub status_lines: u64,
    /// Name of the tool.
    pub tool: &'static str,
    /// Including those of previous files.
    pub made: MadeUp,
}

/// Whether a file starting with `head` is such output.
pub fn is_log(head: &str) -> bool {
    let mut lines = head
        .lines()
        .filter(|line| !line.trim().is_empty())
        .take(LINES_BEFORE_MAX);
    lines.any(|line| Header::read(line).is_some() || is_oom_kill(line))
}

/// oomkill prints no header: each line is complete.
fn is_oom_kill(line: &str) -> bool {
    line.contains(" Triggered by PID ") && line.contains(" OOM kill of PID ")
}

/// Whether it is output of a tool that prints a latency histogram instead of events.
pub fn is_histogram(head: &str) -> bool {
    head.lines().take(LINES_BEFORE_MAX).any(|line| {
        let mut words = line.split_whitespace();
        let unit = words.next().unwrap_or_default();
        matches!(unit, "usecs" | "msecs" | "nsecs" | "us" | "ms")
            && words.next() == Some(":")
            && words.next() == Some("count")
            && words.next() == Some("distribution")
    })
}

/// `written` is the modification time of the file, used where its timestamps are incomplete; `made`
/// is the result of the previous file.
pub fn translate(log: &str, written: Option<Ns>, made: MadeUp, bad_max: usize) -> Translated {
    let mut reader = Reader::new(Shift::default(), 0);
    reader.run(log);
    let shift = reader.clock.shift(written);
    let is_of_stat = reader.descriptors == (true, false);
    drop(reader);
    let mut reader = Reader::new(shift, bad_max);
    reader.is_of_stat = is_of_stat;
    reader.emit.made = made;
    reader.run(log);
    let mut done = reader.done;
    done.made = reader.emit.made;
    done.zones = u64::from(shift.is_guessed && done.rows > 0);
    done
}

struct Reader {
    clock: Clock,
    shift: Shift,
    bad_max: usize,
    header: Option<Header>,
    /// Time of the line above a table (filetop), and of the previous one.
    above: Option<(Ns, Option<Ns>)>,
    emit: emit::Emit,
    /// Whether calls returned descriptor 0, and others.
    descriptors: (bool, bool),
    /// statsnoop of bcc has the header of opensnoop, with zeros as descriptors.
    is_of_stat: bool,
    done: Translated,
}

impl Reader {
    fn new(shift: Shift, bad_max: usize) -> Self {
        Self {
            clock: Clock::default(),
            shift,
            bad_max,
            header: None,
            above: None,
            emit: emit::Emit::default(),
            descriptors: (false, false),
            is_of_stat: false,
            done: Translated {
                text: format!("{}\n", text::MAGIC),
                ..Translated::default()
            },
        }
    }

    fn run(&mut self, log: &str) {
        let mut offset = 0;
        for (number, line) in log.split_inclusive('\n').enumerate() {
            let read = if line.len() > text::LINE_BYTES_MAX / 4 {
                Err(format!("longer than {} bytes", text::LINE_BYTES_MAX / 4))
            } else {
                self.line(line.trim_end_matches(['\n', '\r']))
            };
            if let Err(what) = read {
                self.done.bad_count += 1;
                if self.done.bad.len() < self.bad_max {
                    let line = number + 1;
                    self.done.bad.push(Bad { line, offset, what });
                }
            }
            offset += line.len();
        }
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        if line.trim().is_empty() {
            return Ok(());
        }
        if let Some(header) = Header::read(line) {
            self.done.tool = header.tool.name();
            self.header = Some(header);
            return Ok(());
        }
        if is_oom_kill(line) {
            return self.oom_kill(line);
        }
        if let Some((time, _)) = line.split_once(" loadavg:") {
            let time = stamp::time_of_day(time.trim()).ok_or("missing time before `loadavg:`")?;
            let at = self.at(Stamp::OfDay(time));
            self.above = Some((at, self.above.map(|(before, _)| before)));
            return Ok(());
        }
        let Some(header) = &self.header else {
            self.done.status_lines += 1;
            return Ok(());
        };
        // tcpdrop prints a stack after each line.
        let is_stack = header.tool == Tool::TcpDrop && line.starts_with(['\t', ' ']);
        if is_stack || is_message(line) {
            self.done.status_lines += 1;
            return Ok(());
        }
        let row = header
            .row(line)
            .ok_or("the fields do not match the header")?;
        let tool = match header.tool {
            Tool::Open if self.is_of_stat => Tool::Stat,
            tool => tool,
        };
        if tool == Tool::Open
            && let Some(descriptor) = row.int(Field::Fd).filter(|descriptor| *descriptor >= 0)
        {
            self.descriptors.0 |= descriptor == 0;
            self.descriptors.1 |= descriptor > 0;
        }
        let (at, interval) = match (row.stamp()?, self.above) {
            (Some(stamp), _) => (self.at(stamp), None),
            (None, Some((at, before))) => (at, before.map(|before| at.saturating_sub(before))),
            (None, None) => {
                self.done.untimed += 1;
                return Ok(());
            }
        };
        if self
            .emit
            .event((tool, &row), (at, interval), &mut self.done.text)?
        {
            self.done.no_thread += 1;
        }
        self.done.rows += 1;
        Ok(())
    }

    fn oom_kill(&mut self, line: &str) -> Result<(), String> {
        let (time, what) = line.split_once(' ').unwrap_or_default();
        let time = stamp::time_of_day(time).ok_or("missing time of day")?;
        let at = self.at(Stamp::OfDay(time));
        self.done.tool = "oomkill";
        emit::oom_kill(what, at, &mut self.done.text);
        self.done.rows += 1;
        Ok(())
    }

    fn at(&mut self, stamp: Stamp) -> Ns {
        self.clock.read(stamp).saturating_add(self.shift.by)
    }
}

/// Other output of the tools.
fn is_message(line: &str) -> bool {
    const BEGINS: [&str; 7] = [
        "Tracing ",
        "Attaching ",
        "libbpf: ",
        "Detaching...",
        "Possibly lost ",
        "WARNING: ",
        "Lost ",
    ];
    BEGINS.iter().any(|begin| line.starts_with(begin))
        || line.starts_with("lost ") && line.contains(" events on CPU")
}
