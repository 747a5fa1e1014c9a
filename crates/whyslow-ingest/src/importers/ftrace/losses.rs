//! Lost events as reported by the tools.
//!
//! ```text
//! CPU:0 [9860 EVENTS DROPPED]     trace-cmd report
//! CPU:1 [LOST 45 EVENTS]          ftrace; both may omit the number
//! ```
//!
//! The line precedes the first event of that CPU after the gap.

use std::collections::BTreeMap;

use whyslow_model::Ns;
use whyslow_model::event::{Loss, LossKind};

use super::super::text;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lost {
    cpu: u16,
    count: Option<i64>,
}

impl Lost {
    pub(super) fn read(line: &str) -> Option<Self> {
        let (cpu, rest) = line.strip_prefix("CPU:")?.split_once('[')?;
        let words: Vec<&str> = rest.strip_suffix(']')?.split_whitespace().collect();
        let count = match words[..] {
            ["EVENTS", "DROPPED"] | ["LOST", "EVENTS"] => None,
            [count, "EVENTS", "DROPPED"] | ["LOST", count, "EVENTS"] => Some(count.parse().ok()?),
            _ => return None,
        };
        let cpu = cpu.trim().parse().ok()?;
        Some(Self { cpu, count })
    }
}

#[derive(Debug, Default)]
pub(super) struct Losses {
    /// Losses without a following event yet, by CPU: the number of events.
    open: BTreeMap<u16, Option<i64>>,
    /// Time of the last event of each CPU.
    cpus: BTreeMap<u16, Ns>,
    last: Option<Ns>,
}

impl Losses {
    pub(super) fn add(&mut self, lost: Lost) {
        let sum = self.open.entry(lost.cpu).or_insert(Some(0));
        *sum = sum
            .zip(lost.count)
            .map(|(sum, count)| sum.saturating_add(count));
    }

    /// Writes the loss between the previous event on that CPU and this one.
    pub(super) fn event(&mut self, cpu: Option<i32>, ts: Ns, out: &mut String) {
        if let Some(cpu) = cpu.and_then(|cpu| u16::try_from(cpu).ok()) {
            if let Some(count) = self.open.remove(&cpu) {
                self.write(cpu, count, ts, out);
            }
            self.cpus.insert(cpu, ts);
        }
        self.last = self.last.max(Some(ts));
    }

    /// A loss without a following event lasts to the end.
    pub(super) fn finish(mut self, out: &mut String) {
        let Some(last) = self.last else { return };
        for (cpu, count) in std::mem::take(&mut self.open) {
            self.write(cpu, count, last, out);
        }
    }

    fn write(&self, cpu: u16, count: Option<i64>, ts_end: Ns, out: &mut String) {
        let before = self.cpus.get(&cpu).copied().or(self.last);
        let loss = Loss {
            ts: before.unwrap_or(ts_end).min(ts_end),
            ts_end: Some(ts_end),
            cpu: Some(i32::from(cpu)),
            stream: "ftrace",
            kind: LossKind::Events,
            count,
        };
        text::write_loss(&loss, out);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{is_trace, translate};
    use super::*;

    #[test]
    fn lines_of_both_tools_tell_how_much_was_lost() {
        let read = |line| Lost::read(line).map(|lost| (lost.cpu, lost.count));
        assert_eq!(read("CPU:0 [9860 EVENTS DROPPED]"), Some((0, Some(9860))));
        assert_eq!(read("CPU:1 [LOST 45 EVENTS]"), Some((1, Some(45))));
        assert_eq!(read("CPU:12 [EVENTS DROPPED]"), Some((12, None)));
        assert_eq!(read("CPU:2 [LOST EVENTS]"), Some((2, None)));
        for line in [
            "CPU:0 [",
            "CPU:0 [x EVENTS DROPPED]",
            "CPU:x [LOST EVENTS]",
            "CPU 0",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }

    #[test]
    fn a_loss_lasts_from_the_event_before_to_the_next_of_its_cpu() {
        let trace = "CPU:0 [7 EVENTS DROPPED]\n\
                     a-1 [000] 1.000001: x: y=1\n\
                     a-1 [001] 1.000002: x: y=1\n\
                     CPU:0 [LOST 45 EVENTS]\n\
                     a-1 [001] 1.000003: x: y=1\n\
                     a-1 [000] 1.000004: x: y=1\n\
                     CPU:1 [EVENTS DROPPED]\n\
                     a-1 [000] 1.000005: x: y=1\n";
        assert!(is_trace(trace));
        let done = translate(trace, None, 5);
        assert_eq!((done.events, done.bad_count), (5, 0));
        let lost: Vec<&str> = done
            .text
            .lines()
            .filter(|line| line.contains(" lost "))
            .collect();
        let expected = [
            "1.000001000 [0] lost kind=events until=1.000001000 count=7 stream=ftrace",
            "1.000001000 [0] lost kind=events until=1.000004000 count=45 stream=ftrace",
            "1.000003000 [1] lost kind=events until=1.000005000 stream=ftrace",
        ];
        assert_eq!(lost, expected);
    }
}
