//! A process that asks lakes for a server, which may not: it is started before the server gives up the
//! network and the files of others, asks one lake and no other, and takes questions of `sql/fleet/` only.
//!
//! Each question is a line of JSON on its standard input ([`Request`] and the time it may take); each
//! answer is a line that tells its bytes, and these, or a line that tells why there is none.

use std::io::{BufRead as _, BufReader, Read as _, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use whyslow_base::failure::Failure;

use super::request::Request;

/// An answer that is longer is none.
pub(super) const BYTES_MAX: usize = 64 << 20;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KeeperRequest {
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
    /// Whether the asker can mend it by asking otherwise.
    #[serde(default)]
    pub(super) is_usage: bool,
    #[serde(default)]
    pub(super) is_too_long: bool,
}

/// Why a keeper has no answer.
#[derive(Debug)]
pub enum Unanswered {
    /// It took longer than it may.
    TooLong,
    /// It could not be started, broke off, or reported an error.
    Failed(Failure),
}

impl From<Failure> for Unanswered {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// The server's end.
#[derive(Debug)]
pub struct Keeper {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Keeper {
    /// Starts the process, which asks this lake and no other.
    pub fn start(lake: &str, engine: &str) -> Result<Self, Failure> {
        let failed = |error: &std::io::Error| {
            Failure::new("failed to start what asks the lake").caused_by(error)
        };
        let mut process = Command::new("/proc/self/exe")
            .args(["fleet", "keep", "--lake", lake, "--engine", engine])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(&error))?;
        let (Some(questions), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(failed(&std::io::Error::other("it has no pipes")));
        };
        Ok(Self {
            process,
            questions,
            answers: BufReader::new(answers),
        })
    }

    /// One question after the other; the answer is a stream of Arrow.
    pub fn ask(&mut self, request: Request, time: Duration) -> Result<Vec<u8>, Unanswered> {
        let gone =
            |error: &std::io::Error| Failure::new("what asks the lake has ended").caused_by(error);
        let asked = KeeperRequest {
            request,
            time_ms: time.as_millis() as u64,
        };
        let mut line = serde_json::to_vec(&asked).unwrap_or_default();
        line.push(b'\n');
        self.questions
            .write_all(&line)
            .and_then(|()| self.questions.flush())
            .map_err(|error| gone(&error))?;
        let mut head = String::new();
        self.answers
            .read_line(&mut head)
            .map_err(|error| gone(&error))?;
        let head: Head =
            serde_json::from_str(&head).map_err(|error| gone(&std::io::Error::other(error)))?;
        if head.is_too_long {
            return Err(Unanswered::TooLong);
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

impl Drop for Keeper {
    fn drop(&mut self) {
        // It ends with what it is asked by; what it asks is ended by it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
