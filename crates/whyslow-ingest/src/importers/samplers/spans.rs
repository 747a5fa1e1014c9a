//! Calls with begin and end, as stretches of time with one stack each.

use whyslow_model::Ns;

use crate::profile::{OPEN, Point, Profile, SampleKind, SampledState};

/// Calls within calls.
const DEPTH_MAX: usize = 4096;

/// One thread's calls, in order of time.
#[derive(Debug, Default)]
pub(super) struct Spans {
    /// Outermost first.
    open: Vec<u32>,
    since: Ns,
}

impl Spans {
    /// Ends the stretch that lasts until then.
    fn until(&mut self, ts: Ns, thread: u32, profile: &mut Profile) {
        if ts > self.since {
            self.add((self.since, ts - self.since), thread, profile);
        }
        self.since = self.since.max(ts);
    }

    fn add(&self, (ts, span): (Ns, Ns), thread: u32, profile: &mut Profile) {
        if self.open.is_empty() {
            return;
        }
        let frames: Vec<u32> = self.open.iter().rev().copied().collect();
        let stack = profile.stack(&frames);
        profile.points.push(Point {
            ts,
            span,
            thread,
            stack,
            credits: 1,
            kind: SampleKind::Cpu,
            state: SampledState::Unknown,
            is_assumed: false,
        });
    }

    pub(super) fn begin(&mut self, ts: Ns, frame: u32, thread: u32, profile: &mut Profile) -> bool {
        self.until(ts, thread, profile);
        let has_room = self.open.len() < DEPTH_MAX;
        if has_room {
            self.open.push(frame);
        }
        has_room
    }

    /// False if nothing was open.
    pub(super) fn end(&mut self, ts: Ns, thread: u32, profile: &mut Profile) -> bool {
        self.until(ts, thread, profile);
        self.open.pop().is_some()
    }

    /// What is left goes on, nobody knows for how long; how many calls that are.
    pub(super) fn finish(&mut self, ts: Ns, thread: u32, profile: &mut Profile) -> u64 {
        self.until(ts, thread, profile);
        self.add((self.since, OPEN), thread, profile);
        let left = self.open.len() as u64;
        self.open.clear();
        left
    }
}
