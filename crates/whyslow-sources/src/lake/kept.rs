//! The other end of a keeper: the process that asks the lake.

use std::io::{BufRead as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use whyslow_base::failure::Failure;

use super::child::ask;
use super::keeper::{Asked, BYTES_MAX, Head, Unanswered};
use super::request::Request;

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The keeper's own end: until nobody asks any more.
pub fn keep(lake: &str, engine: &str) -> Result<(), Failure> {
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
