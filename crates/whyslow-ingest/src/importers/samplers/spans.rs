//! Converts calls with start and end to time spans with one stack each.

use whyslow_model::Ns;

use crate::profile::{OPEN, Point, Profile, SampleKind, SampledState};

/// Maximum call depth.
const DEPTH_MAX: usize = 4096;
/// Maximum number of frames of all stacks per byte of the file: inside deeply nested calls, each
/// short call adds a long stack.
const FRAMES_A_BYTE: usize = 4;
/// Length of truncated stacks beyond that limit.
const FRAMES_CUT: usize = 16;

/// Calls of one thread after another, each in time order.
#[derive(Debug)]
pub(super) struct Spans {
    /// Outermost first.
    open: Vec<u32>,
    since: Ns,
    /// Number of frames that may still be stored.
    frames_left: usize,
    /// Stacks truncated to the innermost frames.
    pub(super) cut: u64,
}

impl Spans {
    /// For a file of this size.
    pub(super) fn within(bytes: usize) -> Self {
        Self {
            open: Vec::new(),
            since: 0,
            frames_left: bytes.saturating_mul(FRAMES_A_BYTE),
            cut: 0,
        }
    }

    /// Ends the current span.
    fn until(&mut self, ts: Ns, thread: u32, profile: &mut Profile) {
        if ts > self.since {
            self.add((self.since, ts - self.since), thread, profile);
        }
        self.since = self.since.max(ts);
    }

    fn add(&mut self, (ts, span): (Ns, Ns), thread: u32, profile: &mut Profile) {
        if self.open.is_empty() {
            return;
        }
        let is_cut = self.open.len() > FRAMES_CUT.max(self.frames_left);
        let count = if is_cut { FRAMES_CUT } else { self.open.len() };
        self.cut += u64::from(is_cut);
        let frames: Vec<u32> = self.open.iter().rev().take(count).copied().collect();
        let count_before = profile.stacks.len();
        let stack = profile.stack(&frames);
        if profile.stacks.len() > count_before {
            self.frames_left = self.frames_left.saturating_sub(count);
        }
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
        let is_within_depth = self.open.len() < DEPTH_MAX;
        if is_within_depth {
            self.open.push(frame);
        }
        is_within_depth
    }

    /// False if no call was open.
    pub(super) fn end(&mut self, ts: Ns, thread: u32, profile: &mut Profile) -> bool {
        self.until(ts, thread, profile);
        self.open.pop().is_some()
    }

    /// The remaining calls of this thread have no end; returns their number.
    pub(super) fn finish(&mut self, ts: Ns, thread: u32, profile: &mut Profile) -> u64 {
        self.until(ts, thread, profile);
        self.add((self.since, OPEN), thread, profile);
        let left = self.open.len() as u64;
        self.open.clear();
        self.since = 0;
        left
    }
}
