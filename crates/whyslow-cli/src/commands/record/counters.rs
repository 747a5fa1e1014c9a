//! Live counters on the terminal while recording.

use std::io::{IsTerminal as _, stderr};
use std::time::{Duration, Instant};

use rustix::process::getpgrp;
use rustix::termios::{tcgetpgrp, tcgetwinsize};
use whyslow_base::args::TalkArgs;
use whyslow_base::talk;
use whyslow_record::Progress;

const INTERVAL: Duration = Duration::from_millis(500);
const WIDTH_DEFAULT: u16 = 80;

/// One line with counters, which is rewritten in place.
pub(in crate::commands) struct Counters {
    is_shown: bool,
    /// Where the records are: `spool`, or `kept` in memory.
    place: &'static str,
    last: Option<(Instant, Progress)>,
}

impl Counters {
    /// Shown on a terminal that no other program writes to: `has_command` if one is being recorded.
    pub(in crate::commands) fn new(
        talk: &TalkArgs,
        has_command: bool,
        place: &'static str,
    ) -> Self {
        let is_silent = talk.quiet || talk.no_progress || has_command;
        Self {
            place,
            is_shown: !is_silent && stderr().is_terminal(),
            last: None,
        }
    }

    pub(in crate::commands) fn show(&mut self, progress: &Progress) {
        if !self.is_shown || !self.is_due() || !is_in_foreground() {
            return;
        }
        let before = self.last.map_or(Progress::default(), |(_, before)| before);
        self.last = Some((Instant::now(), *progress));
        let mut line = line(&before, progress, self.place);
        let width = tcgetwinsize(stderr()).map_or(WIDTH_DEFAULT, |size| size.ws_col);
        // A longer line would wrap, and could not be replaced.
        if let Some((at, _)) = line.char_indices().nth(usize::from(width).max(2) - 1) {
            line.truncate(at);
        }
        talk::status(&line);
    }

    fn is_due(&self) -> bool {
        self.last.is_none_or(|(at, _)| at.elapsed() >= INTERVAL)
    }

    /// Removes the line.
    pub(in crate::commands) fn end(&self) {
        if self.is_shown {
            talk::status("");
        }
    }
}

/// A job in the background does not write to the terminal on its own.
fn is_in_foreground() -> bool {
    tcgetpgrp(stderr()).is_ok_and(|group| group == getpgrp())
}

fn line(before: &Progress, now: &Progress, place: &str) -> String {
    let seconds = now.elapsed.saturating_sub(before.elapsed).as_secs_f64();
    let per_second = |now: f64, before: f64| (now - before).max(0.0) / seconds.max(1e-3);
    let events = per_second(now.records as f64, before.records as f64);
    let cpu = per_second(now.own_cpu.as_secs_f64(), before.own_cpu.as_secs_f64());
    format!(
        "{:.1} s  {} events/s  {} lost  {place} {:.1} MiB  recorder {:.1} % of a CPU",
        now.elapsed.as_secs_f64(),
        talk::grouped(events.round() as u64),
        talk::grouped(now.lost),
        now.spool_bytes as f64 / 1024.0 / 1024.0,
        cpu * 100.0,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_since_the_last_line() {
        let at = |ms: u64, records: u64, cpu_ms: u64| Progress {
            elapsed: Duration::from_millis(ms),
            records,
            own_cpu: Duration::from_millis(cpu_ms),
            lost: 1_234,
            spool_bytes: 13_000_000,
            ..Progress::default()
        };
        assert_eq!(
            line(
                &at(1_000, 1_000_000, 500),
                &at(1_500, 1_007_000, 524),
                "spool"
            ),
            "1.5 s  14,000 events/s  1,234 lost  spool 12.4 MiB  recorder 4.8 % of a CPU"
        );
        let nothing = Progress::default();
        assert!(line(&nothing, &nothing, "kept").starts_with("0.0 s  0 events/s  0 lost"));
    }

    #[test]
    fn counters_are_not_shown_while_a_command_writes_to_the_terminal() {
        let talk = TalkArgs {
            quiet: false,
            no_progress: false,
            ..TalkArgs::silent()
        };
        assert!(!Counters::new(&talk, true, "spool").is_shown);
    }
}
