//! Passes a running recording on to followers, in addition to its own spool or memory.
//!
//! A follower connects to the recorder's socket ([`crate::marks`]), receives a description of the
//! recording ([`About`]), and requests one segment after another. Each segment is a spool: the
//! clocks, the operations in progress and a snapshot, then the blocks of the recording, then its
//! end. So a segment costs the recorder as much as a spool rotation, and the time between costs a
//! copy.
//!
//! The recorder sends frames: a byte for the kind, the length of the payload in four bytes, the
//! payload. The follower sends single bytes: each requests the next segment, or the end of the last
//! one.

mod client;
mod server;

use std::collections::BTreeSet;

use crate::programs::Topic;

pub use client::{FollowError, Following, follow, running};
pub(crate) use server::{FOLLOWERS_MAX, FollowRequest, Followers, Id};

/// Description of the recording, as text.
const ABOUT: u8 = b'A';
/// A block of the segment.
const BLOCK: u8 = b'B';
/// The segment is complete.
const SEGMENT: u8 = b'S';
/// The recording is complete.
const LAST: u8 = b'L';
const HEAD_BYTES: usize = 5;
/// Requests the next segment.
const NEXT: u8 = b'N';
/// Requests the end of the current segment.
const END: u8 = b'E';

/// Purpose of a running recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Creates one recording.
    Record,
    /// A flight recorder: keeps recent records in memory.
    Flight,
    /// Answers live queries, and ends with them.
    Live,
}

impl Purpose {
    const ALL: [Self; 3] = [Self::Record, Self::Flight, Self::Live];

    fn name(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Flight => "flight",
            Self::Live => "live",
        }
    }
}

/// What a running recorder records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Its purpose.
    pub purpose: Purpose,
    /// Topics that are recorded completely.
    pub topics: BTreeSet<Topic>,
    /// Whether all processes and calls are recorded.
    pub is_of_all: bool,
}

impl About {
    fn encode(&self) -> String {
        let topics: Vec<_> = self.topics.iter().map(|topic| topic.name()).collect();
        format!(
            "purpose {}\ntopics {}\nall {}\n",
            self.purpose.name(),
            topics.join(","),
            if self.is_of_all { "yes" } else { "no" },
        )
    }

    /// Unknown lines belong to a later version.
    fn parse(text: &str) -> Option<Self> {
        let value = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            lines.find_map(|(key, value)| (key == name).then_some(value))
        };
        let named = value("purpose")?;
        let all = Purpose::ALL;
        let topics: BTreeSet<&str> = value("topics")?.split(',').collect();
        let is_listed = |topic: &Topic| topics.contains(topic.name());
        Some(Self {
            purpose: all.into_iter().find(|purpose| purpose.name() == named)?,
            topics: Topic::ALL.iter().copied().filter(is_listed).collect(),
            is_of_all: value("all")? == "yes",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_of_a_recorder_is_understood() {
        for purpose in Purpose::ALL {
            let about = About {
                purpose,
                topics: [Topic::Block, Topic::Syscalls].into(),
                is_of_all: purpose == Purpose::Flight,
            };
            assert_eq!(About::parse(&about.encode()), Some(about.clone()));
            let later = format!("color blue\n{}", about.encode());
            assert_eq!(About::parse(&later), Some(about));
        }
        let nothing = About::parse("purpose record\ntopics \nall no\n").expect("a recorder");
        assert!(nothing.topics.is_empty());
        for text in ["", "purpose", "purpose fun\ntopics block\nall yes\n"] {
            assert_eq!(About::parse(text), None);
        }
    }
}
