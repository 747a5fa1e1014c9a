//! The spool of a load, written during the run, so that a killed run leaves all its results.
//!
//! JSON lines. The first describes the load (`whyslow_load`: 1, `begin_ns`, `host`, `arguments`,
//! `model`, `threads`, `zone`), then follows one line per request in order of their ends, and the
//! last has the end and its reason (`end_ns`, `reason`). Times are ns since the epoch.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::LoadError;
use crate::line;
use crate::row::Row;
use crate::run::Reason;

/// Content of the first line.
#[derive(Debug, Clone, Serialize)]
pub struct Header {
    /// [`VERSION`]; importers recognise the file by this key.
    pub whyslow_load: u32,
    /// Start, ns since the epoch.
    pub begin_ns: i64,
    /// Name of the host that generates the load.
    pub host: String,
    /// Command line without the program.
    pub arguments: Vec<String>,
    /// closed, open
    pub model: &'static str,
    /// Maximum number of concurrent workers.
    pub threads: u32,
    /// Time zone of the host, as `Europe/Berlin` or `+01:00`.
    pub zone: Option<String>,
}

/// Version of the format.
pub const VERSION: u32 = 1;

#[derive(Serialize)]
struct Last {
    end_ns: i64,
    reason: &'static str,
}

/// Lines are written in chunks of about this size.
const WRITTEN_BYTES: usize = 1 << 16;

/// Writes the spool of one load.
pub struct Spool {
    path: PathBuf,
    file: File,
    /// Lines that are not in the file yet.
    lines: Vec<u8>,
    begin_ns: i64,
}

impl Spool {
    /// Creates a new file; an existing one is an error.
    pub fn create(path: &Path, header: &Header) -> Result<Self, LoadError> {
        let failed = |source| LoadError::Spool {
            path: path.to_owned(),
            source,
        };
        let file = File::create_new(path).map_err(failed)?;
        let mut spool = Self {
            path: path.to_owned(),
            file,
            lines: Vec::with_capacity(2 * WRITTEN_BYTES),
            begin_ns: header.begin_ns,
        };
        spool.line(header)?;
        spool.flush()?;
        Ok(spool)
    }

    /// Writes a request; requests come in order of their ends. It is in the file after
    /// [`flush`](Self::flush).
    pub fn write(&mut self, row: &Row) -> Result<(), LoadError> {
        line::put(&mut self.lines, row, self.begin_ns);
        if self.lines.len() >= WRITTEN_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes the last line. A spool without it is readable, and its importer reports that it is
    /// incomplete.
    pub fn end(mut self, end_ns: i64, reason: Reason) -> Result<(), LoadError> {
        self.line(&Last {
            end_ns,
            reason: reason.name(),
        })?;
        self.flush()
    }

    fn line(&mut self, line: &impl Serialize) -> Result<(), LoadError> {
        let written = serde_json::to_writer(&mut self.lines, line);
        written.map_err(|error| self.failed(error.into()))?;
        self.lines.push(b'\n');
        Ok(())
    }

    /// Writes all pending lines to the file.
    pub fn flush(&mut self) -> Result<(), LoadError> {
        let written = self.file.write_all(&self.lines);
        self.lines.clear();
        written.map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> LoadError {
        LoadError::Spool {
            path: self.path.clone(),
            source,
        }
    }
}
