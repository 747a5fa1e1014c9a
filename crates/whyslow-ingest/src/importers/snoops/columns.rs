//! Headers, and how a line is cut into their columns.
//!
//! Columns are as wide as their contents ask for, and names of threads may have blanks: a line is cut
//! so that each field is what its column can hold.

use whyslow_model::Ns;

use super::super::stamp::{self, Stamp};

/// Words that a name of a thread may have.
const COMM_WORDS_MAX: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    /// Time of day.
    Time,
    Seconds,
    Milliseconds,
    Microseconds,
    Pid,
    Tid,
    Ppid,
    Comm,
    Ret,
    Err,
    Fd,
    Flags,
    Path,
    Args,
    File,
    Host,
    Call,
    ExitCode,
    Disk,
    Letters,
    Sector,
    Bytes,
    QueueMs,
    LatencyMs,
    LatencyUs,
    OffsetKb,
    OffsetBytes,
    Local,
    LocalPort,
    Remote,
    RemotePort,
    /// Of a connection.
    State,
    TcpFlags,
    SentKb,
    ReceivedKb,
    LengthMs,
    AgeSeconds,
    Signal,
    TargetPid,
    Result,
    Pages,
    Reads,
    Writes,
    ReadKb,
    WrittenKb,
    /// Of no use beside the others.
    Number,
    Word,
    Rest,
}

/// What a field can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Time,
    Int,
    Float,
    Word,
    Letters,
    Comm,
    Rest,
}

/// Names of columns in all families of tools.
const COLUMNS: &[(&str, Field)] = &[
    ("TIME", Field::Time),
    ("TIMESTAMP", Field::Time),
    ("TIME(s)", Field::Seconds),
    ("TIME(ms)", Field::Milliseconds),
    ("ENDTIME_us", Field::Microseconds),
    ("PID", Field::Pid),
    ("TID", Field::Tid),
    ("PPID", Field::Ppid),
    ("COMM", Field::Comm),
    ("PCOMM", Field::Comm),
    ("TASK", Field::Comm),
    ("UID", Field::Number),
    ("RET", Field::Ret),
    ("ERR", Field::Err),
    ("FD", Field::Fd),
    ("FLAGS", Field::Flags),
    ("PATH", Field::Path),
    ("ARGS", Field::Args),
    ("FILENAME", Field::File),
    ("FILE", Field::File),
    ("HOST", Field::Host),
    ("CALL", Field::Call),
    ("EVENT", Field::Call),
    ("EXIT_CODE", Field::ExitCode),
    ("DISK", Field::Disk),
    ("T", Field::Letters),
    ("D", Field::Letters),
    ("TYPE", Field::Letters),
    ("SECTOR", Field::Sector),
    ("BYTES", Field::Bytes),
    ("P", Field::Word),
    ("QUE(ms)", Field::QueueMs),
    ("LAT(ms)", Field::LatencyMs),
    ("LATms", Field::LatencyMs),
    ("LAT(us)", Field::LatencyUs),
    ("LATENCY_us", Field::LatencyUs),
    ("OFF_KB", Field::OffsetKb),
    ("OFFSET_b", Field::OffsetBytes),
    ("IP", Field::Number),
    ("LADDR", Field::Local),
    ("SADDR", Field::Local),
    ("LPORT", Field::LocalPort),
    ("RADDR", Field::Remote),
    ("DADDR", Field::Remote),
    ("RPORT", Field::RemotePort),
    ("DPORT", Field::RemotePort),
    ("SPORT", Field::LocalPort),
    ("LADDR:LPORT", Field::Local),
    ("SADDR:SPORT", Field::Local),
    ("RADDR:RPORT", Field::Remote),
    ("DADDR:DPORT", Field::Remote),
    ("T>", Field::Word),
    (">", Field::Word),
    ("STATE", Field::State),
    ("(FLAGS)", Field::TcpFlags),
    ("TX_KB", Field::SentKb),
    ("RX_KB", Field::ReceivedKb),
    ("MS", Field::LengthMs),
    ("AGE(s)", Field::AgeSeconds),
    ("SIG", Field::Signal),
    ("TPID", Field::TargetPid),
    ("RESULT", Field::Result),
    ("PAGES", Field::Pages),
    ("LABEL", Field::Word),
];

/// Columns of filetop: beside these, `T` is the kind of the file.
const FILETOP: [(&str, Field); 4] = [
    ("READS", Field::Reads),
    ("WRITES", Field::Writes),
    ("R_Kb", Field::ReadKb),
    ("W_Kb", Field::WrittenKb),
];

impl Field {
    fn of(name: &str) -> Option<Self> {
        if name.starts_with("TIME-") {
            return Some(Self::Time);
        }
        if name == "FREE(KB)" {
            return Some(Self::Number);
        }
        let mut all = COLUMNS.iter().chain(&FILETOP);
        all.find(|(known, _)| *known == name)
            .map(|(_, field)| *field)
    }

    fn shape(self) -> Shape {
        match self {
            // exitsnoop and tcplife of libbpf-tools call a time of day `TIME(s)`, too.
            Self::Time | Self::Seconds => Shape::Time,
            Self::Comm => Shape::Comm,
            Self::Path
            | Self::Args
            | Self::File
            | Self::Host
            | Self::Call
            | Self::ExitCode
            | Self::Rest => Shape::Rest,
            Self::Disk
            | Self::Flags
            | Self::Local
            | Self::Remote
            | Self::Signal
            | Self::State
            | Self::TcpFlags
            | Self::Word => Shape::Word,
            Self::Letters => Shape::Letters,
            Self::Milliseconds
            | Self::QueueMs
            | Self::LatencyMs
            | Self::SentKb
            | Self::ReceivedKb
            | Self::LengthMs
            | Self::AgeSeconds => Shape::Float,
            _ => Shape::Int,
        }
    }
}

/// What a table is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    Open,
    Stat,
    Exec,
    Exit,
    Block,
    /// A latency of a device, without the request.
    BlockLatency,
    SlowFile,
    TopFile,
    Lookup,
    RunQueue,
    TcpLife,
    TcpConnect,
    TcpAccept,
    TcpDrop,
    TcpRetransmit,
    Sync,
    Signal,
    Reclaim,
}

/// Columns that a tool has, the more telling first.
const TOOLS: &[(Tool, &str, &[Field])] = &[
    (
        Tool::Open,
        "opensnoop",
        &[Field::Pid, Field::Fd, Field::Err, Field::Path],
    ),
    (
        Tool::Stat,
        "statsnoop",
        &[Field::Pid, Field::Err, Field::Path],
    ),
    (
        Tool::Exit,
        "exitsnoop",
        &[Field::Pid, Field::Tid, Field::AgeSeconds],
    ),
    (
        Tool::Exec,
        "execsnoop",
        &[Field::Comm, Field::Pid, Field::Ppid, Field::Args],
    ),
    (
        Tool::Exec,
        "execsnoop",
        &[Field::Milliseconds, Field::Pid, Field::Args],
    ),
    (
        Tool::Block,
        "biosnoop",
        &[
            Field::Disk,
            Field::Letters,
            Field::Sector,
            Field::Bytes,
            Field::LatencyMs,
        ],
    ),
    (
        Tool::BlockLatency,
        "biosnoop",
        &[Field::Milliseconds, Field::Disk, Field::LatencyMs],
    ),
    (
        Tool::TopFile,
        "filetop",
        &[Field::Tid, Field::Reads, Field::Writes, Field::File],
    ),
    (
        Tool::SlowFile,
        "slower",
        &[Field::Comm, Field::Letters, Field::LatencyMs, Field::File],
    ),
    (
        Tool::SlowFile,
        "slower",
        &[Field::Comm, Field::Letters, Field::LatencyUs, Field::File],
    ),
    (
        Tool::Lookup,
        "gethostlatency",
        &[Field::Pid, Field::LatencyMs, Field::Host],
    ),
    (
        Tool::TcpLife,
        "tcplife",
        &[Field::Pid, Field::Local, Field::Remote, Field::LengthMs],
    ),
    (
        Tool::TcpConnect,
        "tcpconnlat",
        &[
            Field::Pid,
            Field::Local,
            Field::Remote,
            Field::RemotePort,
            Field::LatencyMs,
        ],
    ),
    (
        Tool::TcpDrop,
        "tcpdrop",
        &[Field::Local, Field::Remote, Field::State, Field::TcpFlags],
    ),
    (
        Tool::TcpRetransmit,
        "tcpretrans",
        &[Field::Local, Field::Remote, Field::State],
    ),
    (
        Tool::TcpAccept,
        "tcpaccept",
        &[
            Field::Pid,
            Field::Remote,
            Field::RemotePort,
            Field::Local,
            Field::LocalPort,
        ],
    ),
    (
        Tool::TcpConnect,
        "tcpconnect",
        &[Field::Pid, Field::Local, Field::Remote, Field::RemotePort],
    ),
    (
        Tool::RunQueue,
        "runqslower",
        &[Field::Comm, Field::Tid, Field::LatencyUs],
    ),
    (
        Tool::Signal,
        "killsnoop",
        &[Field::Pid, Field::Signal, Field::TargetPid, Field::Result],
    ),
    (
        Tool::Reclaim,
        "drsnoop",
        &[Field::Comm, Field::Pid, Field::LatencyMs, Field::Pages],
    ),
];

impl Tool {
    pub(super) fn name(self) -> &'static str {
        let mut tools = TOOLS.iter();
        let found = tools.find(|(tool, ..)| *tool == self);
        found.map_or("syncsnoop", |(_, name, _)| name)
    }
}

#[derive(Debug)]
pub(super) struct Header {
    pub(super) tool: Tool,
    columns: Vec<Field>,
    is_csv: bool,
}

impl Header {
    pub(super) fn read(line: &str) -> Option<Self> {
        let is_csv = line.contains(',') && !line.contains(' ');
        let mut columns = Vec::new();
        let names: Vec<&str> = if is_csv {
            line.split(',').collect()
        } else {
            line.split_whitespace().collect()
        };
        if names.len() < 2 || names.len() > 16 {
            return None;
        }
        for name in &names {
            // runqslower -P: who ran before, with a name that may have blanks.
            if *name == "PREV" {
                columns.push(Field::Rest);
                break;
            }
            columns.push(Field::of(name)?);
        }
        let has = |fields: &[Field]| fields.iter().all(|field| columns.contains(field));
        let tool = TOOLS
            .iter()
            .find(|(_, _, fields)| has(fields))
            .map(|(tool, ..)| *tool);
        let tool = match tool {
            None if has(&[Field::Call]) => Tool::Sync,
            // Their headers differ by the width of the first column alone.
            Some(Tool::Open) if line.contains("PID     COMM") => Tool::Stat,
            // Who asked for a connection names itself first, who was asked the other.
            Some(Tool::TcpAccept) if is_before(&columns, Field::Local, Field::Remote) => {
                Tool::TcpConnect
            }
            tool => tool?,
        };
        let comms = columns
            .iter()
            .filter(|field| **field == Field::Comm)
            .count();
        (comms <= 1).then_some(Self {
            tool,
            columns,
            is_csv,
        })
    }

    /// The fields of a line, if it has those of the header.
    pub(super) fn row<'l>(&self, line: &'l str) -> Option<Row<'l>> {
        if self.is_csv {
            let count = self.columns.len();
            let fields: Vec<&str> = line.splitn(count, ',').collect();
            let fields = self.columns.iter().copied().zip(fields);
            let row = Row {
                fields: fields.collect(),
            };
            let fits = |(field, text): &(Field, &str)| fits(field.shape(), text);
            return (row.fields.len() == count && row.fields.iter().all(fits)).then_some(row);
        }
        let words = words(line);
        let lengths = (1..=COMM_WORDS_MAX).chain([0]);
        let has_comm = self.columns.contains(&Field::Comm);
        let mut lengths = lengths.take(if has_comm { COMM_WORDS_MAX + 1 } else { 1 });
        lengths.find_map(|length| self.cut(line, &words, length))
    }

    fn cut<'l>(&self, line: &'l str, words: &[(usize, &'l str)], comm: usize) -> Option<Row<'l>> {
        let mut fields = Vec::with_capacity(self.columns.len());
        let mut next = 0;
        for field in &self.columns {
            let text = match field.shape() {
                Shape::Comm if comm == 0 => "",
                Shape::Comm => {
                    let (begin, _) = words.get(next)?;
                    let (end, last) = words.get(next + comm - 1)?;
                    next += comm;
                    line.get(*begin..end + last.len())?
                }
                Shape::Rest => {
                    let begin = words.get(next).map_or(line.len(), |(begin, _)| *begin);
                    next = words.len();
                    line.get(begin..)?
                }
                shape => {
                    let (_, text) = words.get(next)?;
                    next += 1;
                    fits(shape, text).then_some(*text)?
                }
            };
            fields.push((*field, text));
        }
        (next == words.len()).then_some(Row { fields })
    }
}

fn is_before(columns: &[Field], first: Field, second: Field) -> bool {
    let place = |of| columns.iter().position(|field| *field == of);
    place(first) < place(second)
}

/// Words with their places.
fn words(line: &str) -> Vec<(usize, &str)> {
    let base = line.as_ptr() as usize;
    line.split_whitespace()
        .map(|word| (word.as_ptr() as usize - base, word))
        .collect()
}

fn fits(shape: Shape, text: &str) -> bool {
    match shape {
        Shape::Time => stamp::time_of_day(text).is_some() || fits(Shape::Float, text),
        Shape::Int => text == "?" || text.parse::<i64>().is_ok(),
        Shape::Float => text.len() <= 24 && text.parse::<f64>().is_ok_and(f64::is_finite),
        Shape::Letters => {
            (1..=8).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_uppercase())
        }
        Shape::Word => !text.is_empty(),
        Shape::Comm | Shape::Rest => true,
    }
}

/// A line in its columns.
#[derive(Debug)]
pub(super) struct Row<'l> {
    fields: Vec<(Field, &'l str)>,
}

impl<'l> Row<'l> {
    pub(super) fn text(&self, field: Field) -> Option<&'l str> {
        let mut fields = self.fields.iter();
        fields.find(|(of, _)| *of == field).map(|(_, text)| *text)
    }

    pub(super) fn int(&self, field: Field) -> Option<i64> {
        self.text(field)?.parse().ok()
    }

    /// A process or thread; 0 is none.
    pub(super) fn id(&self, field: Field) -> Option<i32> {
        self.text(field)?.parse().ok().filter(|id| *id > 0)
    }

    /// A number in these units, in whole ones.
    pub(super) fn scaled(&self, field: Field, factor: f64) -> Option<i64> {
        let number: f64 = self.text(field)?.parse().ok()?;
        let value = (number * factor).round();
        (value.abs() < 9e15).then_some(value as i64)
    }

    pub(super) fn latency(&self) -> Option<Ns> {
        let ms = self.scaled(Field::LatencyMs, 1e6);
        ms.or_else(|| self.scaled(Field::LatencyUs, 1e3))
            .filter(|latency| *latency >= 0)
    }

    /// None where no column has one.
    pub(super) fn stamp(&self) -> Result<Option<Stamp>, String> {
        let time = self.text(Field::Time).or_else(|| self.text(Field::Seconds));
        if let Some(time) = time.and_then(stamp::time_of_day) {
            return Ok(Some(Stamp::OfDay(time)));
        }
        let units = [
            (Field::Time, 1_000_000_000),
            (Field::Seconds, 1_000_000_000),
            (Field::Milliseconds, 1_000_000),
            (Field::Microseconds, 1_000),
        ];
        for (field, unit) in units {
            if let Some(text) = self.text(field) {
                let since = exact(text, unit).ok_or("a time that is too great")?;
                return Ok(Some(Stamp::Since(since)));
            }
        }
        Ok(None)
    }
}

/// A number in these units, without the loss of a floating point: since a machine was started are
/// more nanoseconds than that tells apart.
fn exact(text: &str, unit: Ns) -> Option<Ns> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = fraction.get(..fraction.len().min(9))?;
    let part = match digits {
        "" => 0,
        digits => digits.parse::<u32>().ok().map(Ns::from)?,
    };
    let part = part * unit / 10_i64.pow(digits.len() as u32);
    whole
        .parse::<Ns>()
        .ok()?
        .checked_mul(unit)?
        .checked_add(part)
}
