//! Identifies tools by their columns.

use super::Field;

/// Contents of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Tool {
    Open,
    Stat,
    Exec,
    Exit,
    Block,
    /// Latency of a device, without the request.
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

/// Columns of each tool, the most specific first.
pub(super) const TOOLS: &[(Tool, &str, &[Field])] = &[
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
    pub(in super::super) fn name(self) -> &'static str {
        let mut tools = TOOLS.iter();
        let found = tools.find(|(tool, ..)| *tool == self);
        found.map_or("syncsnoop", |(_, name, _)| name)
    }
}
