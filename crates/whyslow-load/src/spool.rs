//! The spool of a load: what is written while it runs, so that a run that is killed leaves all it
//! did.
//!
//! Lines of JSON. The first tells of the load (`whyslow_load`: 1, `begin_ns`, `host`, `arguments`,
//! `model`, `threads`, `zone`), then comes one for each request in order of their ends, and the last
//! says when and why it ended (`end_ns`, `reason`). Times are ns since the epoch.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::LoadError;
use crate::row::Row;
use crate::run::Reason;

/// What the first line tells.
#[derive(Debug, Clone, Serialize)]
pub struct Header {
    pub whyslow_load: u32,
    /// Begin, ns since the epoch.
    pub begin_ns: i64,
    pub host: String,
    /// Of the command line, without the program.
    pub arguments: Vec<String>,
    /// closed, open
    pub model: &'static str,
    /// Workers; the most that there were at a time.
    pub threads: u32,
    /// Zone of the host, as `Europe/Berlin` or `+01:00`.
    pub zone: Option<String>,
}

/// Version of the form.
pub const VERSION: u32 = 1;

#[derive(Serialize)]
struct Line<'r> {
    seq: u64,
    worker: u32,
    intended_ns: Option<i64>,
    start_ns: i64,
    resolve_ns: Option<u64>,
    connect_ns: Option<u64>,
    tls_ns: Option<u64>,
    send_ns: Option<u64>,
    wait_ns: Option<u64>,
    receive_ns: Option<u64>,
    total_ns: u64,
    method: &'r str,
    url: &'r str,
    endpoint: &'r str,
    status: Option<u16>,
    protocol: Option<&'r str>,
    bytes_sent: u64,
    bytes_received: u64,
    connection: Option<u64>,
    reused: bool,
    local: Option<&'r str>,
    peer: Option<&'r str>,
    trace_id: Option<String>,
    span_id: Option<String>,
    outcome: &'r str,
    error: Option<&'r str>,
    server_timing: Option<&'r str>,
}

#[derive(Serialize)]
struct Last {
    end_ns: i64,
    reason: &'static str,
}

/// Writes the spool of one load.
pub struct Spool {
    path: PathBuf,
    out: BufWriter<File>,
    begin_ns: i64,
}

impl Spool {
    /// A new file: one that is there is not touched.
    pub fn create(path: &Path, header: &Header) -> Result<Self, LoadError> {
        let failed = |source| LoadError::Spool {
            path: path.to_owned(),
            source,
        };
        let file = File::create_new(path).map_err(failed)?;
        let mut spool = Self {
            path: path.to_owned(),
            out: BufWriter::with_capacity(1 << 16, file),
            begin_ns: header.begin_ns,
        };
        spool.line(header)?;
        spool.flush()?;
        Ok(spool)
    }

    /// Requests in order of their ends; they are in the file when this returns.
    pub fn write(&mut self, rows: &[Row]) -> Result<(), LoadError> {
        for row in rows {
            let line = line_of(row, self.begin_ns);
            self.line(&line)?;
        }
        self.flush()
    }

    pub fn end(mut self, end_ns: i64, reason: Reason) -> Result<(), LoadError> {
        self.line(&Last {
            end_ns,
            reason: reason.name(),
        })?;
        self.flush()
    }

    fn line(&mut self, line: &impl Serialize) -> Result<(), LoadError> {
        let written = serde_json::to_writer(&mut self.out, line)
            .map_err(io::Error::from)
            .and_then(|()| self.out.write_all(b"\n"));
        written.map_err(|source| self.failed(source))
    }

    fn flush(&mut self) -> Result<(), LoadError> {
        self.out.flush().map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> LoadError {
        LoadError::Spool {
            path: self.path.clone(),
            source,
        }
    }
}

fn line_of(row: &Row, begin_ns: i64) -> Line<'_> {
    let moment = |ns: u64| begin_ns.saturating_add(ns as i64);
    let link = row.connection.as_deref();
    Line {
        seq: row.seq,
        worker: row.worker,
        intended_ns: row.intended_ns.map(moment),
        start_ns: moment(row.start_ns),
        resolve_ns: row.phases.resolve,
        connect_ns: row.phases.connect,
        tls_ns: row.phases.tls,
        send_ns: row.phases.send,
        wait_ns: row.phases.wait,
        receive_ns: row.phases.receive,
        total_ns: row.total_ns(),
        method: row.target.method.as_str(),
        url: &row.target.url,
        endpoint: &row.target.endpoint,
        status: row.status,
        protocol: row.protocol,
        bytes_sent: row.bytes_sent,
        bytes_received: row.bytes_received,
        connection: link.map(|link| link.number),
        reused: row.is_reused,
        local: link.map(|link| link.local.as_str()),
        peer: link.map(|link| link.peer.as_str()),
        trace_id: row.trace.map(|(trace, _)| format!("{trace:032x}")),
        span_id: row.trace.map(|(_, span)| format!("{span:016x}")),
        outcome: row.outcome.name(),
        error: row.error.as_deref(),
        server_timing: row.server_timing.as_deref(),
    }
}
