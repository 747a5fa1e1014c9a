//! Progress of an import on standard error: from the first second on, if somebody watches.

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use serde_json::json;
use whyslow_ingest::{Progress, Stage};

use crate::args::{ProgressChoice, TalkArgs};
use crate::talk;

/// Nothing is said about what takes no longer than this.
const SILENCE: Duration = Duration::from_secs(1);
const LINE_EVERY: Duration = Duration::from_millis(200);
const JSON_EVERY: Duration = Duration::from_secs(1);

/// Tells how far an import is.
pub struct Teller {
    begin: Instant,
    /// What is going on, and since when.
    stage: (Stage, Instant),
    told: Option<Instant>,
    how: How,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Silent,
    Line,
    Json,
}

impl Teller {
    /// As the flags say, and only where somebody watches.
    pub fn new(args: &TalkArgs) -> Self {
        let how = match args.progress {
            _ if args.quiet || args.no_progress => How::Silent,
            ProgressChoice::Json => How::Json,
            ProgressChoice::Auto if std::io::stderr().is_terminal() => How::Line,
            ProgressChoice::Auto => How::Silent,
        };
        let begin = Instant::now();
        Self {
            begin,
            stage: (Stage::default(), begin),
            told: None,
            how,
        }
    }

    /// Shows how far it is, not too often.
    pub fn tell(&mut self, progress: Progress) {
        let every = match self.how {
            How::Silent => return,
            How::Line => LINE_EVERY,
            How::Json => JSON_EVERY,
        };
        if progress.stage != self.stage.0 {
            self.stage = (progress.stage, Instant::now());
        }
        let elapsed = self.begin.elapsed();
        if elapsed < SILENCE || self.told.is_some_and(|told| told.elapsed() < every) {
            return;
        }
        self.told = Some(Instant::now());
        match self.how {
            How::Line => talk::raw(&format!(
                "\r\x1b[K{}",
                line(progress, self.stage.1.elapsed())
            )),
            _ => talk::line(&json_line(progress, elapsed)),
        }
    }

    /// Takes the line away again.
    pub fn end(&mut self) {
        if self.told.is_some() && self.how == How::Line {
            talk::raw("\r\x1b[K");
        }
    }
}

fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Unpacking => "unpacking",
        Stage::Importing => "importing",
    }
}

/// `elapsed` is that of the stage.
fn line(progress: Progress, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    let stage = stage_name(progress.stage);
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let mut text = format!("{stage}  {:.1} MiB", mib(progress.bytes_done));
    if progress.bytes_total > 0 {
        let share = progress.bytes_done as f64 / progress.bytes_total as f64;
        let _ = write!(
            text,
            " of {:.1} MiB ({:.0} %)",
            mib(progress.bytes_total),
            share * 100.0
        );
    }
    if progress.stage == Stage::Importing {
        let rate = progress.events as f64 / seconds / 1e6;
        let _ = write!(text, "  {rate:.2} M events/s");
    }
    if progress.bytes_done > 0 && progress.bytes_total > progress.bytes_done {
        let rest = (progress.bytes_total - progress.bytes_done) as f64;
        let left = seconds * rest / progress.bytes_done as f64;
        let _ = write!(text, "  {left:.0} s left");
    }
    text
}

fn json_line(progress: Progress, elapsed: Duration) -> String {
    json!({
        "type": "progress",
        "stage": stage_name(progress.stage),
        "bytes": progress.bytes_done,
        "bytes_total": (progress.bytes_total > 0).then_some(progress.bytes_total),
        "events": progress.events,
        "elapsed_ns": elapsed.as_nanos() as u64,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_bytes_rate_and_time_left() {
        let progress = Progress {
            stage: Stage::Importing,
            bytes_done: 64 << 20,
            bytes_total: 256 << 20,
            events: 3_000_000,
        };
        let elapsed = Duration::from_secs(2);
        assert_eq!(
            line(progress, elapsed),
            "importing  64.0 MiB of 256.0 MiB (25 %)  1.50 M events/s  6 s left"
        );
        let parsed: serde_json::Value =
            serde_json::from_str(&json_line(progress, elapsed)).expect("JSON");
        assert_eq!(parsed["stage"], "importing");
        assert_eq!(parsed["events"], 3_000_000);
        assert_eq!(parsed["elapsed_ns"], 2_000_000_000_u64);
    }

    #[test]
    fn unpacking_has_no_events() {
        let progress = Progress {
            stage: Stage::Unpacking,
            bytes_done: 1 << 20,
            bytes_total: 4 << 20,
            events: 0,
        };
        let text = line(progress, Duration::from_secs(3));
        assert_eq!(text, "unpacking  1.0 MiB of 4.0 MiB (25 %)  9 s left");
    }

    #[test]
    fn an_unknown_total_is_not_guessed() {
        let progress = Progress {
            stage: Stage::Importing,
            bytes_done: 1 << 20,
            bytes_total: 0,
            events: 10,
        };
        let text = line(progress, Duration::from_secs(1));
        assert!(!text.contains('%') && !text.contains("left"), "{text}");
    }
}
