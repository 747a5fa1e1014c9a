//! Calls with begin and end, as stretches of time with one stack each.

use whyslow_model::Ns;

use crate::profile::{OPEN, Point, Profile, SampleKind, SampledState};

/// Calls within calls.
const DEPTH_MAX: usize = 4096;
/// Frames of all stacks, for each byte of the file: within many calls that stay open, each short one makes a long
/// stack.
const FRAMES_A_BYTE: usize = 4;
/// Of stacks for which that leaves no room.
const FRAMES_CUT: usize = 16;

/// Calls of one thread after the other, each in order of time.
#[derive(Debug)]
pub(super) struct Spans {
    /// Outermost first.
    open: Vec<u32>,
    since: Ns,
    /// Frames that may still be kept.
    room: usize,
    /// Stacks of which only the innermost frames were kept.
    pub(super) cut: u64,
}

impl Spans {
    /// Of a file of so many bytes.
    pub(super) fn within(bytes: usize) -> Self {
        Self {
            open: Vec::new(),
            since: 0,
            room: bytes.saturating_mul(FRAMES_A_BYTE),
            cut: 0,
        }
    }

    /// Ends the stretch that lasts until then.
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
        let is_cut = self.open.len() > FRAMES_CUT.max(self.room);
        let count = if is_cut { FRAMES_CUT } else { self.open.len() };
        self.cut += u64::from(is_cut);
        let frames: Vec<u32> = self.open.iter().rev().take(count).copied().collect();
        let known = profile.stacks.len();
        let stack = profile.stack(&frames);
        if profile.stacks.len() > known {
            self.room = self.room.saturating_sub(count);
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

    /// What is left of this thread goes on, nobody knows for how long; how many calls that are.
    pub(super) fn finish(&mut self, ts: Ns, thread: u32, profile: &mut Profile) -> u64 {
        self.until(ts, thread, profile);
        self.add((self.since, OPEN), thread, profile);
        let left = self.open.len() as u64;
        self.open.clear();
        self.since = 0;
        left
    }
}
