//! Progress of an import on standard error: shown after the first second, on a terminal or as JSON.

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use serde_json::json;
use whyslow_ingest::{Progress, Stage};

use crate::args::{ProgressChoice, TalkArgs};
use crate::talk;

/// Nothing is shown for an import that is shorter than this.
const SILENCE: Duration = Duration::from_secs(1);
const LINE_EVERY: Duration = Duration::from_millis(200);
const JSON_EVERY: Duration = Duration::from_secs(1);

/// Shows the progress of an import.
pub struct ProgressReporter {
    start: Instant,
    /// The current stage and its start.
    stage: (Stage, Instant),
    shown_at: Option<Instant>,
    style: Style,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Silent,
    Line,
    Json,
}

impl ProgressReporter {
    /// In the style that the flags request; `auto` is silent unless standard error is a terminal.
    pub fn new(args: &TalkArgs) -> Self {
        let style = match args.progress {
            _ if args.quiet || args.no_progress => Style::Silent,
            ProgressChoice::Json => Style::Json,
            ProgressChoice::Auto if std::io::stderr().is_terminal() => Style::Line,
            ProgressChoice::Auto => Style::Silent,
        };
        let start = Instant::now();
        Self {
            start,
            stage: (Stage::default(), start),
            shown_at: None,
            style,
        }
    }

    /// Shows the progress, at a limited rate.
    pub fn show(&mut self, progress: Progress) {
        let every = match self.style {
            Style::Silent => return,
            Style::Line => LINE_EVERY,
            Style::Json => JSON_EVERY,
        };
        if progress.stage != self.stage.0 {
            self.stage = (progress.stage, Instant::now());
        }
        let elapsed = self.start.elapsed();
        if elapsed < SILENCE || self.shown_at.is_some_and(|at| at.elapsed() < every) {
            return;
        }
        self.shown_at = Some(Instant::now());
        match self.style {
            Style::Line => talk::status(&line(progress, self.stage.1.elapsed())),
            _ => talk::line(&json_line(progress, elapsed)),
        }
    }

    /// Clears the line.
    pub fn end(&mut self) {
        if self.shown_at.is_some() && self.style == Style::Line {
            talk::status("");
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
