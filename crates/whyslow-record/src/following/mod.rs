//! A recording under way is handed on to whoever follows it, beside the spool or the memory it goes to.
//!
//! A follower connects to the socket of the recorder ([`crate::marks`]), is told what is recorded
//! ([`About`]), and asks for one segment after the other. Each is a spool of its own: the clocks, what is
//! under way and a snapshot, then the blocks that the recorder makes anyway, then its end. So a segment
//! costs the recorder what turning to another spool costs, and the time between costs a copy.
//!
//! From the recorder come frames: a byte that tells the kind, the length of the rest in four bytes, the
//! rest. From the follower come single bytes: each asks for the next segment, or for the end of the last.

mod client;
mod server;

use std::collections::BTreeSet;

use crate::programs::Topic;

pub use client::{FollowError, Following, follow, running};
pub(crate) use server::{Asked, FOLLOWERS_MAX, Followers, Id};

/// What is recorded, in words.
const ABOUT: u8 = b'A';
/// A block of the segment.
const BLOCK: u8 = b'B';
/// The segment is whole.
const SEGMENT: u8 = b'S';
/// So is the recording.
const LAST: u8 = b'L';
const HEAD_BYTES: usize = 5;
/// Asks for the next segment.
const NEXT: u8 = b'N';
/// Asks for the end of the present one.
const END: u8 = b'E';

/// What a running recorder is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Makes one recording.
    Record,
    /// Keeps what happened lately.
    Flight,
    /// Answers questions itself, and ends with them.
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
    /// What it records for.
    pub purpose: Purpose,
    /// What is recorded as a whole.
    pub topics: BTreeSet<Topic>,
    /// No process and no call is left out.
    pub is_of_all: bool,
}

impl About {
    fn told(&self) -> String {
        let topics: Vec<_> = self.topics.iter().map(|topic| topic.name()).collect();
        format!(
            "purpose {}\ntopics {}\nall {}\n",
            self.purpose.name(),
            topics.join(","),
            if self.is_of_all { "yes" } else { "no" },
        )
    }

    /// Lines nobody knows are those of a later version.
    fn parse(text: &str) -> Option<Self> {
        let value = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            lines.find_map(|(key, value)| (key == name).then_some(value))
        };
        let named = value("purpose")?;
        let all = Purpose::ALL;
        let topics: BTreeSet<&str> = value("topics")?.split(',').collect();
        let is_told = |topic: &Topic| topics.contains(topic.name());
        Some(Self {
            purpose: all.into_iter().find(|purpose| purpose.name() == named)?,
            topics: Topic::ALL.iter().copied().filter(is_told).collect(),
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
            assert_eq!(About::parse(&about.told()), Some(about.clone()));
            let later = format!("color blue\n{}", about.told());
            assert_eq!(About::parse(&later), Some(about));
        }
        let nothing = About::parse("purpose record\ntopics \nall no\n").expect("a recorder");
        assert!(nothing.topics.is_empty());
        for text in ["", "purpose", "purpose fun\ntopics block\nall yes\n"] {
            assert_eq!(About::parse(text), None);
        }
    }
}
