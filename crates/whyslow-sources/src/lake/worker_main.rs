//! The process that queries the lake for a server.

use std::io::{BufRead as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use whyslow_base::failure::Failure;

use super::child::evaluate;
use super::request::Request;
use super::worker::{BYTES_MAX, Head, QueryFailure, WorkerRequest};

const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Runs until standard input is closed.
pub fn keep(lake: &str, engine: &str) -> Result<(), Failure> {
    let stdin = std::io::stdin().lock();
    let mut stdout = std::io::stdout().lock();
    for line in stdin.lines() {
        let request_line: WorkerRequest = serde_json::from_str(&line?)
            .map_err(|error| Failure::new("invalid request").caused_by(&error))?;
        let request = Request {
            // A compromised server must not reach another lake, or run its own SQL.
            lake: lake.to_owned(),
            engine: engine.to_owned(),
            sql: None,
            ..request_line.request
        };
        let (head, answer) = match within(&request, Duration::from_millis(request_line.time_ms)) {
            Ok(answer) if answer.len() <= BYTES_MAX => {
                let head = Head {
                    bytes: answer.len(),
                    ..Head::default()
                };
                (head, answer)
            }
            Ok(_) => {
                let failure = Failure::usage("cannot return the result: it is too large")
                    .hint("use a smaller limit");
                (refused(failure), Vec::new())
            }
            Err(QueryFailure::TooLong) => {
                let head = Head {
                    is_too_long: true,
                    ..Head::default()
                };
                (head, Vec::new())
            }
            Err(QueryFailure::Failed(failure)) => (refused(failure), Vec::new()),
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

/// Kills the query when its time limit is exceeded.
fn within(request: &Request, time: Duration) -> Result<Vec<u8>, QueryFailure> {
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
                thread::sleep(POLL_INTERVAL);
            }
        })
    };
    let answer = evaluate(request, &stop);
    is_done.store(true, Ordering::Relaxed);
    let _ = watch.join();
    if answer.is_err() && stop.load(Ordering::Relaxed) {
        return Err(QueryFailure::TooLong);
    }
    Ok(answer?)
}
