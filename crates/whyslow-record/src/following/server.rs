//! Server of the follow protocol: never waits for a follower, and buffers a bounded amount for
//! each.

use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use whyslow_model::spool::{ELSEWHERE, Encoder, Kind};

use super::{ABOUT, About, BLOCK, END, HEAD_BYTES, LAST, NEXT, SEGMENT};
use crate::marks::NewFollower;
use crate::packed::Packed;

/// Maximum number of followers.
pub(crate) const FOLLOWERS_MAX: usize = 4;
/// Maximum bytes buffered for a follower; further events are dropped, and reported as lost.
const WAITING_MAX: u64 = 16 << 20;
/// A follower gets no new segment while more than this of the last one is unsent.
const READY_MAX: u64 = 1 << 20;
/// Time after which a follower that reads nothing is disconnected.
const STALL_MAX: Duration = Duration::from_secs(30);
/// Time for sending the last frames, …
const FINISH_MAX: Duration = Duration::from_secs(1);
/// … and the pause between attempts.
const FINISH_PAUSE: Duration = Duration::from_millis(2);

/// Identifies a follower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Id(u64);

/// A follower's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FollowRequest {
    /// End the segment, if there is one, and start another.
    Next,
    /// End the segment.
    End,
}

/// All followers.
#[derive(Debug, Default)]
pub(crate) struct Followers {
    about: String,
    each: Vec<Follower>,
    came: u64,
}

#[derive(Debug)]
enum Frame {
    Block(Arc<Packed>),
    /// A block that can be dropped.
    Events(Arc<Packed>),
    Word(u8, Box<[u8]>),
}

impl Frame {
    fn bytes(&self) -> u64 {
        match self {
            Frame::Block(block) | Frame::Events(block) => block.bytes(),
            Frame::Word(_, text) => text.len() as u64,
        }
    }
}

#[derive(Debug)]
struct Follower {
    id: Id,
    pid: i32,
    stream: UnixStream,
    waiting: VecDeque<Frame>,
    /// Events to send after the snapshot, which is not complete yet.
    behind: Option<Vec<Frame>>,
    /// Bytes in both queues.
    bytes: u64,
    /// The frame being sent, and the number of bytes already sent.
    sending: (Vec<u8>, usize),
    /// Number of the next block.
    number: u64,
    /// When the follower last read something, or there was nothing to read.
    took: Instant,
    requested: Option<FollowRequest>,
    has_segment: bool,
    /// All records before this time were sent.
    sent_until: u64,
    /// Events dropped in this segment, with their time range.
    left_out: Option<LeftOut>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LeftOut {
    records: u64,
    since: u64,
    until: u64,
}

impl Followers {
    pub(crate) fn new(about: &About) -> Self {
        Self {
            about: about.encode(),
            ..Self::default()
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.each.is_empty()
    }

    /// Process ids of the followers.
    pub(crate) fn pids(&self) -> [u32; FOLLOWERS_MAX] {
        let mut pids = [0; FOLLOWERS_MAX];
        for (pid, follower) in pids.iter_mut().zip(&self.each) {
            *pid = follower.pid as u32;
        }
        pids
    }

    /// Whether the follower is accepted.
    pub(crate) fn admit(&mut self, new_follower: NewFollower) -> bool {
        if self.each.len() >= FOLLOWERS_MAX {
            return false;
        }
        self.came += 1;
        let mut follower = Follower {
            id: Id(self.came),
            pid: new_follower.pid,
            stream: new_follower.stream,
            waiting: VecDeque::new(),
            behind: None,
            bytes: 0,
            sending: (Vec::new(), 0),
            number: 0,
            took: Instant::now(),
            requested: None,
            has_segment: false,
            sent_until: 0,
            left_out: None,
        };
        follower.put(Frame::Word(ABOUT, self.about.as_bytes().into()));
        self.each.push(follower);
        true
    }

    /// Sends and receives pending data; returns a follower whose request can be served.
    pub(crate) fn poll(&mut self) -> Option<(Id, FollowRequest)> {
        self.each.retain_mut(|follower| follower.talk().is_ok());
        let mut ready = self.each.iter().filter(|follower| follower.is_ready());
        ready.find_map(|follower| Some((follower.id, follower.requested?)))
    }

    /// Events for all followers with a segment.
    pub(crate) fn push(&mut self, block: &Arc<Packed>) {
        for follower in self.each.iter_mut().filter(|each| each.has_segment) {
            follower.push(block);
        }
    }

    fn find(&mut self, id: Id) -> Option<&mut Follower> {
        self.each.iter_mut().find(|follower| follower.id == id)
    }

    pub(crate) fn has_segment(&mut self, id: Id) -> bool {
        self.find(id).is_some_and(|follower| follower.has_segment)
    }

    /// Writes the loss record of the segment, for its end.
    pub(crate) fn write_left_out(&mut self, id: Id, encoder: &mut Encoder) {
        let left_out = self.find(id).and_then(|follower| follower.left_out.take());
        if let Some(left_out) = left_out {
            encoder
                .begin_on(Kind::Lost, left_out.since, (0, 0), (0, ELSEWHERE))
                .u64(left_out.since)
                .u64(left_out.until)
                .u64(left_out.records)
                .end();
        }
    }

    /// The last block of the segment.
    pub(crate) fn end(&mut self, id: Id, block: Packed) {
        if let Some(follower) = self.find(id) {
            follower.end(block);
        }
    }

    /// The first block of the next segment; its snapshot follows.
    pub(crate) fn begin(&mut self, id: Id, head: Packed) {
        // The other followers come first next time.
        self.each.sort_by_key(|follower| follower.id == id);
        if let Some(follower) = self.find(id) {
            follower.requested = None;
            follower.has_segment = true;
            follower.sent_until = head.complete_until;
            follower.put(Frame::Block(Arc::new(head)));
            follower.behind = Some(Vec::new());
        }
    }

    pub(crate) fn put_snapshot(&mut self, id: Id, part: Packed) {
        if let Some(follower) = self.find(id) {
            follower.put(Frame::Block(Arc::new(part)));
        }
    }

    pub(crate) fn end_snapshot(&mut self, id: Id) {
        if let Some(follower) = self.find(id) {
            let behind = follower.behind.take();
            follower.waiting.extend(behind.into_iter().flatten());
        }
    }

    /// Followers with an open segment.
    pub(crate) fn with_segment(&self) -> Vec<Id> {
        let with = self.each.iter().filter(|each| each.has_segment);
        with.map(|follower| follower.id).collect()
    }

    /// Memory is short: drops the buffered events.
    pub(crate) fn give_up(&mut self) {
        for follower in &mut self.each {
            follower.give_up();
        }
    }

    /// The recording is over. Waits a limited time for followers to read the rest.
    pub(crate) fn finish(&mut self) {
        for follower in &mut self.each {
            follower.put(Frame::Word(LAST, Box::default()));
        }
        let begun = Instant::now();
        loop {
            self.each.retain_mut(|follower| {
                follower.send().is_ok() && !(follower.waiting.is_empty() && follower.is_sent())
            });
            if self.is_empty() || begun.elapsed() > FINISH_MAX {
                return;
            }
            thread::sleep(FINISH_PAUSE);
        }
    }
}

impl Follower {
    fn put(&mut self, frame: Frame) {
        self.bytes += frame.bytes();
        self.waiting.push_back(frame);
    }

    fn push(&mut self, block: &Arc<Packed>) {
        if self.bytes + block.bytes() > WAITING_MAX {
            self.leave_out(block);
            return;
        }
        if self.left_out.is_none() {
            self.sent_until = self.sent_until.max(block.complete_until);
        }
        let frame = Frame::Events(Arc::clone(block));
        match &mut self.behind {
            Some(behind) => {
                self.bytes += frame.bytes();
                behind.push(frame);
            }
            None => self.put(frame),
        }
    }

    /// Blocks are dropped in the order in which they arrived.
    fn leave_out(&mut self, block: &Packed) {
        let left_out = self.left_out.get_or_insert(LeftOut {
            records: 0,
            since: self.sent_until,
            until: 0,
        });
        left_out.records += u64::from(block.records);
        left_out.until = left_out.until.max(block.complete_until);
    }

    fn give_up(&mut self) {
        let behind = self.behind.iter_mut().flat_map(std::mem::take);
        let mut given_up: Vec<_> = behind.collect();
        let (events, rest) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition::<VecDeque<_>, _>(|frame| matches!(frame, Frame::Events(_)));
        self.waiting = rest;
        given_up.extend(events);
        for frame in given_up {
            self.bytes -= frame.bytes();
            if let Frame::Events(block) = &frame {
                // Whether the follower read everything before is not known.
                self.sent_until = self.sent_until.min(block.complete_until);
                self.leave_out(block);
            }
        }
    }

    fn end(&mut self, block: Packed) {
        // The end of the snapshot may be missing: it is no longer waited for.
        let behind = self.behind.take();
        self.waiting.extend(behind.into_iter().flatten());
        self.put(Frame::Block(Arc::new(block)));
        self.put(Frame::Word(SEGMENT, Box::default()));
        self.has_segment = false;
        if self.requested == Some(FollowRequest::End) {
            self.requested = None;
        }
    }

    fn is_ready(&self) -> bool {
        self.requested.is_some() && self.behind.is_none() && self.bytes < READY_MAX
    }

    /// An error means that the follower is gone, or is to be disconnected.
    fn talk(&mut self) -> io::Result<()> {
        self.hear()?;
        self.send()?;
        if self.took.elapsed() > STALL_MAX {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }

    fn hear(&mut self) -> io::Result<()> {
        let mut bytes = [0; 16];
        match self.stream.read(&mut bytes) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.requested = match bytes[count - 1] {
                    NEXT => Some(FollowRequest::Next),
                    END if self.has_segment => Some(FollowRequest::End),
                    _ => return Err(io::ErrorKind::InvalidData.into()),
                };
                Ok(())
            }
            Err(error) => is_patient(error),
        }
    }

    fn is_sent(&self) -> bool {
        self.sending.1 == self.sending.0.len()
    }

    /// As much as the follower reads without blocking.
    fn send(&mut self) -> io::Result<()> {
        loop {
            if self.is_sent() && !self.next_frame() {
                self.took = Instant::now();
                return Ok(());
            }
            let (frame, sent) = &mut self.sending;
            match self.stream.write(&frame[*sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    *sent += count;
                    self.took = Instant::now();
                }
                Err(error) => return is_patient(error),
            }
        }
    }

    /// Whether there is one.
    fn next_frame(&mut self) -> bool {
        let (bytes, sent) = &mut self.sending;
        bytes.clear();
        *sent = 0;
        let Some(frame) = self.waiting.pop_front() else {
            return false;
        };
        self.bytes -= frame.bytes();
        bytes.resize(HEAD_BYTES, 0);
        let kind = match frame {
            Frame::Block(block) | Frame::Events(block) => {
                block.append_to(bytes, self.number);
                self.number += 1;
                BLOCK
            }
            Frame::Word(kind, text) => {
                bytes.extend_from_slice(&text);
                if kind == SEGMENT {
                    self.number = 0;
                }
                kind
            }
        };
        let length = (bytes.len() - HEAD_BYTES) as u32;
        bytes[0] = kind;
        bytes[1..HEAD_BYTES].copy_from_slice(&length.to_le_bytes());
        true
    }
}

/// Not ready yet is no error.
fn is_patient(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(()),
        _ => Err(error),
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
