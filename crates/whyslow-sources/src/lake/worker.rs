//! A process that queries a lake for a confined server: it is started before the server gives up
//! access to the network and to other files, accepts only queries of `sql/fleet/`, and only for one
//! lake.
//!
//! Each request is a line of JSON on its standard input ([`Request`] and the time limit). Each
//! response is a line with a size, followed by that many bytes, or a line with an error.

use std::io::{BufRead as _, BufReader, Read as _, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use whyslow_base::failure::Failure;

use super::request::Request;

/// Maximum size of an answer.
pub(super) const BYTES_MAX: usize = 64 << 20;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WorkerRequest {
    pub(super) request: Request,
    pub(super) time_ms: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    #[serde(default)]
    pub(super) causes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
    /// Whether the request was wrong.
    #[serde(default)]
    pub(super) is_usage: bool,
    #[serde(default)]
    pub(super) is_too_long: bool,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum QueryFailure {
    /// It exceeded the time limit.
    TooLong,
    /// The process could not be started, exited, or reported an error.
    Failed(Failure),
}

impl From<Failure> for QueryFailure {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// The server's end.
#[derive(Debug)]
pub struct LakeWorker {
    process: Child,
    queries: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl LakeWorker {
    /// Starts the process for this lake.
    pub fn start(lake: &str, engine: &str) -> Result<Self, Failure> {
        let failed = |error: &std::io::Error| {
            Failure::new("cannot start the lake query process").caused_by(error)
        };
        let mut process = Command::new("/proc/self/exe")
            .args(["fleet", "keep", "--lake", lake, "--engine", engine])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(&error))?;
        let (Some(queries), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(failed(&std::io::Error::other("missing pipes")));
        };
        Ok(Self {
            process,
            queries,
            answers: BufReader::new(answers),
        })
    }

    /// Runs one query at a time; the answer is an Arrow stream.
    pub fn query(&mut self, request: Request, time: Duration) -> Result<Vec<u8>, QueryFailure> {
        let gone = |error: &std::io::Error| {
            Failure::new("cannot query the lake: its process exited").caused_by(error)
        };
        let request_line = WorkerRequest {
            request,
            time_ms: time.as_millis() as u64,
        };
        let mut line = serde_json::to_vec(&request_line).unwrap_or_default();
        line.push(b'\n');
        self.queries
            .write_all(&line)
            .and_then(|()| self.queries.flush())
            .map_err(|error| gone(&error))?;
        let mut head = String::new();
        self.answers
            .read_line(&mut head)
            .map_err(|error| gone(&error))?;
        let head: Head =
            serde_json::from_str(&head).map_err(|error| gone(&std::io::Error::other(error)))?;
        if head.is_too_long {
            return Err(QueryFailure::TooLong);
        }
        if let Some(error) = head.error {
            let failure = if head.is_usage {
                Failure::usage(error)
            } else {
                Failure::new(error)
            };
            let causes = head.causes.into_iter().map(std::io::Error::other);
            let failure = causes.fold(failure, |failure, cause| failure.caused_by(&cause));
            let failure = match head.hint {
                Some(hint) => failure.hint(hint),
                None => failure,
            };
            return Err(failure.into());
        }
        let mut answer = vec![0; head.bytes.min(BYTES_MAX)];
        self.answers
            .read_exact(&mut answer)
            .map_err(|error| gone(&error))?;
        Ok(answer)
    }
}

impl Drop for LakeWorker {
    fn drop(&mut self) {
        // It exits when its standard input is closed, and kills its own child.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
