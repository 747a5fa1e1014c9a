//! What tools of bcc, libbpf-tools and bpftrace print: a line an event.
//!
//! A header names columns; by them a tool is known, whichever family it is of and whatever flags it
//! had (`columns::Tool`). Each line becomes lines of the text format ([`super::text`]): calls with
//! begin and end, requests of devices, lookups, connections.
//!
//! Most of these tools name the process and not the thread. So that nothing is said of threads that
//! nobody saw, what they tell is put on threads of the process whose numbers no kernel gives
//! ([`FIRST_TID`] and on): as many as it had such calls at once.
//!
//! Times are those of the end of an event. Of those that count from a zero of their own, or are times
//! of day, see `super::stamp`.

mod columns;
mod emit;

use whyslow_model::Ns;

use self::columns::{Field, Header, Tool};
use super::Bad;
use super::stamp::{self, Clock, Shift, Stamp};
use super::text;

/// Greater than the number of any thread.
pub const FIRST_TID: i32 = 5_000_000;
/// Lines before the header: what attached, and how to end.
const LINES_BEFORE_MAX: usize = 12;

/// How many numbers were made up: no two files that are imported together may share one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MadeUp {
    /// Thread ids for threads that the tool names without one.
    pub threads: i32,
    /// Socket addresses for connections that the tool lists without one.
    pub sockets: u64,
}

/// A file in the text format.
#[derive(Debug, Default)]
pub struct Translated {
    /// Its lines, for [`super::text`].
    pub text: String,
    /// The first lines that are not understood.
    pub bad: Vec<Bad>,
    /// Number of all such lines.
    pub bad_count: u64,
    /// Lines that became events.
    pub rows: u64,
    /// 1 if the zone or the zero of its times was guessed.
    pub zones: u64,
    /// Lines that name a process and not its thread.
    pub no_thread: u64,
    /// Lines of tables without times.
    pub untimed: u64,
    /// What tools say of themselves.
    pub talk: u64,
    /// What the tool is called.
    pub tool: &'static str,
    /// With those of the files before.
    pub made: MadeUp,
}

/// Whether these first lines are of such a file.
pub fn is_log(head: &str) -> bool {
    let mut lines = head
        .lines()
        .filter(|line| !line.trim().is_empty())
        .take(LINES_BEFORE_MAX);
    lines.any(|line| Header::read(line).is_some() || is_oom_kill(line))
}

/// oomkill has no header: each line says it all.
fn is_oom_kill(line: &str) -> bool {
    line.contains(" Triggered by PID ") && line.contains(" OOM kill of PID ")
}

/// Whether they are of a tool that prints how many events took how long, not events.
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

/// `written` is when the file was last written, for what its times do not say; `made` is what the files
/// before gave back.
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
    /// Of a table under a line with a time (filetop), and the one before.
    above: Option<(Ns, Option<Ns>)>,
    emit: emit::Emit,
    /// Whether calls gave back the descriptor 0, and others.
    descriptors: (bool, bool),
    /// statsnoop of bcc has the header of opensnoop, and zeros for descriptors.
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
            let time = stamp::time_of_day(time.trim()).ok_or("no time stands before `loadavg:`")?;
            let at = self.at(Stamp::OfDay(time));
            self.above = Some((at, self.above.map(|(before, _)| before)));
            return Ok(());
        }
        let Some(header) = &self.header else {
            self.done.talk += 1;
            return Ok(());
        };
        // tcpdrop prints the stack behind each line.
        let is_stack = header.tool == Tool::TcpDrop && line.starts_with(['\t', ' ']);
        if is_stack || is_talk(line) {
            self.done.talk += 1;
            return Ok(());
        }
        let row = header
            .row(line)
            .ok_or("its fields are not those of the header")?;
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
        let time = stamp::time_of_day(time).ok_or("no time of day stands before it")?;
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

/// What tools print beside events.
fn is_talk(line: &str) -> bool {
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
