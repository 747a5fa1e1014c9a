//! A process that asks lakes for a server, which may not: it is started before the server gives up the
//! network and the files of others, asks one lake and no other, and takes questions of `sql/fleet/` only.
//!
//! Each question is a line of JSON on its standard input ([`Request`] and the time it may take); each
//! answer is a line that tells its bytes, and these, or a line that tells why there is none.

use std::io::{BufRead as _, BufReader, Read as _, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::child::{Request, ask};
use crate::failure::Failure;

/// An answer that is longer is none.
const BYTES_MAX: usize = 64 << 20;
const LOOK_EVERY: Duration = Duration::from_millis(20);

#[derive(Debug, Serialize, Deserialize)]
struct Asked {
    request: Request,
    time_ms: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Head {
    bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(default)]
    causes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// Whether the asker can mend it by asking otherwise.
    #[serde(default)]
    is_usage: bool,
    #[serde(default)]
    is_too_long: bool,
}

/// Why a keeper has no answer.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// It took longer than it may.
    TooLong,
    Failed(Failure),
}

impl From<Failure> for Unanswered {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// The server's end.
#[derive(Debug)]
pub(crate) struct Keeper {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Keeper {
    pub(crate) fn start(lake: &str, engine: &str) -> Result<Self, Failure> {
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
    pub(crate) fn ask(&mut self, request: Request, time: Duration) -> Result<Vec<u8>, Unanswered> {
        let gone =
            |error: &std::io::Error| Failure::new("what asks the lake has ended").caused_by(error);
        let asked = Asked {
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

/// The keeper's own end: until nobody asks any more.
pub(crate) fn keep(lake: &str, engine: &str) -> Result<(), Failure> {
    let stdin = std::io::stdin().lock();
    let mut stdout = std::io::stdout().lock();
    for line in stdin.lines() {
        let asked: Asked = serde_json::from_str(&line?)
            .map_err(|error| Failure::new("that is no question").caused_by(&error))?;
        let request = Request {
            // Whoever takes over the server asks no other one, and no text of his own.
            lake: lake.to_owned(),
            engine: engine.to_owned(),
            sql: None,
            ..asked.request
        };
        let (head, answer) = match within(&request, Duration::from_millis(asked.time_ms)) {
            Ok(answer) if answer.len() <= BYTES_MAX => {
                let head = Head {
                    bytes: answer.len(),
                    ..Head::default()
                };
                (head, answer)
            }
            Ok(_) => {
                let failure =
                    Failure::usage("the answer is too long").hint("ask for less with limit");
                (refused(failure), Vec::new())
            }
            Err(Unanswered::TooLong) => {
                let head = Head {
                    is_too_long: true,
                    ..Head::default()
                };
                (head, Vec::new())
            }
            Err(Unanswered::Failed(failure)) => (refused(failure), Vec::new()),
        };
        let mut line = serde_json::to_vec(&head).unwrap_or_default();
        line.push(b'\n');
        stdout.write_all(&line)?;
        stdout.write_all(&answer)?;
        stdout.flush()?;
    }
    Ok(())
}

fn refused(failure: Failure) -> Head {
    let is_usage = failure.is_usage();
    let (error, causes, hint) = failure.into_parts();
    Head {
        error: Some(error),
        causes,
        hint,
        is_usage,
        ..Head::default()
    }
}

/// Ends the question when its time is over.
fn within(request: &Request, time: Duration) -> Result<Vec<u8>, Unanswered> {
    let stop = Arc::new(AtomicBool::new(false));
    let is_done = Arc::new(AtomicBool::new(false));
    let watch = {
        let (stop, is_done) = (Arc::clone(&stop), Arc::clone(&is_done));
        thread::spawn(move || {
            let end = Instant::now() + time;
            while !is_done.load(Ordering::Relaxed) {
                if Instant::now() >= end {
                    stop.store(true, Ordering::Relaxed);
                    return;
                }
                thread::sleep(LOOK_EVERY);
            }
        })
    };
    let answer = ask(request, &stop);
    is_done.store(true, Ordering::Relaxed);
    let _ = watch.join();
    if answer.is_err() && stop.load(Ordering::Relaxed) {
        return Err(Unanswered::TooLong);
    }
    Ok(answer?)
}
