//! Column types by name.

use super::super::super::stamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Field {
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
    /// State of a TCP connection.
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
    /// Redundant next to the others.
    Number,
    Word,
    Rest,
}

/// Syntax of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Time,
    Int,
    Float,
    Word,
    Letters,
    Comm,
    Rest,
}

/// Column names in all families of tools.
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

/// Columns of filetop: here `T` is the file type.
const FILETOP: [(&str, Field); 4] = [
    ("READS", Field::Reads),
    ("WRITES", Field::Writes),
    ("R_Kb", Field::ReadKb),
    ("W_Kb", Field::WrittenKb),
];

impl Field {
    pub(super) fn of(name: &str) -> Option<Self> {
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

    pub(super) fn shape(self) -> Shape {
        match self {
            // exitsnoop and tcplife of libbpf-tools use `TIME(s)` for a time of day, too.
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

impl Shape {
    pub(super) fn fits(self, text: &str) -> bool {
        match self {
            Self::Time => stamp::time_of_day(text).is_some() || Self::Float.fits(text),
            Self::Int => text == "?" || text.parse::<i64>().is_ok(),
            Self::Float => text.len() <= 24 && text.parse::<f64>().is_ok_and(f64::is_finite),
            Self::Letters => {
                (1..=8).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_uppercase())
            }
            Self::Word => !text.is_empty(),
            Self::Comm | Self::Rest => true,
        }
    }
}
