//! Progress of a load on standard error.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use serde_json::json;
use whyslow_base::args::{ProgressChoice, TalkArgs};
use whyslow_base::talk;
use whyslow_load::{Outcome, Progress, Row};

const LINE_EVERY: Duration = Duration::from_millis(200);
const JSON_EVERY: Duration = Duration::from_secs(1);
/// A delay of the schedule below this is not shown.
const BEHIND_MIN: Duration = Duration::from_millis(10);

/// Shows the progress of a load: a status line, or one JSON object per second.
pub(super) struct ProgressLine {
    every: Option<Duration>,
    is_line: bool,
    shown_at: Option<Instant>,
    ended: u64,
    failed: u64,
    longest_ns: u64,
}

impl ProgressLine {
    pub(super) fn new(args: &TalkArgs) -> Self {
        let is_json = args.progress == ProgressChoice::Json;
        let every = match is_json {
            _ if args.quiet || args.no_progress => None,
            true => Some(JSON_EVERY),
            false => std::io::stderr().is_terminal().then_some(LINE_EVERY),
        };
        Self {
            every,
            is_line: !is_json,
            shown_at: None,
            ended: 0,
            failed: 0,
            longest_ns: 0,
        }
    }

    pub(super) fn count(&mut self, row: &Row) {
        self.ended += 1;
        self.failed += u64::from(row.outcome != Outcome::Ok);
        self.longest_ns = self.longest_ns.max(row.total_ns());
    }

    pub(super) fn show(&mut self, progress: Progress) {
        let Some(every) = self.every else {
            return;
        };
        if self.shown_at.is_some_and(|at| at.elapsed() < every) {
            return;
        }
        self.shown_at = Some(Instant::now());
        if self.is_line {
            talk::raw(&format!("\r\x1b[K{}", self.line(progress)));
        } else {
            talk::line(&self.json(progress));
        }
    }

    /// Clears the line.
    pub(super) fn end(&mut self) {
        if self.shown_at.is_some() && self.is_line {
            talk::raw("\r\x1b[K");
        }
    }

    fn line(&self, progress: Progress) -> String {
        let seconds = progress.elapsed.as_secs_f64();
        let behind = match progress.behind {
            behind if behind >= BEHIND_MIN => {
                format!("  {:.2} s behind schedule", behind.as_secs_f64())
            }
            _ => String::new(),
        };
        format!(
            "{seconds:.0} s  {} threads  {} requests ({:.0}/s)  {} failed  {} in flight  longest {:.1} ms{behind}",
            progress.workers,
            self.ended,
            self.ended as f64 / seconds.max(1e-3),
            self.failed,
            progress.begun.saturating_sub(self.ended),
            self.longest_ns as f64 / 1e6,
        )
    }

    fn json(&self, progress: Progress) -> String {
        json!({
            "type": "progress",
            "elapsed_ns": progress.elapsed.as_nanos() as u64,
            "threads": progress.workers,
            "requests": self.ended,
            "failed": self.failed,
            "begun": progress.begun,
            "behind_ns": progress.behind.as_nanos() as u64,
        })
        .to_string()
    }
}
