//! Files of any size (perf, trace-cmd, blktrace) whose events are read in time order during import.

use std::collections::BTreeMap;
use std::io;

use whyslow_model::Ns;
use whyslow_model::event::{Event, Loss};
use whyslow_model::stat::Stat;

/// An item read from a file.
pub enum Item<'a> {
    /// An event, in time order.
    Event(Event<'a>),
    /// State from before the first record.
    Before(Event<'a>),
    /// A time range in which the source lost events.
    Loss(Loss<'a>),
}

/// An anomaly found while reading.
#[derive(Debug, Clone)]
pub struct Note {
    /// Kind of the anomaly.
    pub stat: &'static Stat,
    /// Number of occurrences.
    pub count: u64,
    /// Offset of the first one in the file.
    pub offset: Option<u64>,
    /// Details of the first one; may be empty.
    pub text: String,
}

impl Note {
    /// A note without offset and text.
    pub fn new(stat: &'static Stat, count: u64) -> Self {
        Self {
            stat,
            count,
            offset: None,
            text: String::new(),
        }
    }

    /// The same with the offset and text of the first occurrence.
    #[must_use]
    pub fn at(self, offset: Option<u64>, text: String) -> Self {
        Self {
            offset,
            text,
            ..self
        }
    }
}

/// Contents of a source, available once all of it was read.
#[derive(Debug, Default)]
pub struct Summary {
    /// What the file states about where and how it was recorded.
    pub facts: Vec<(&'static str, String)>,
    /// Number of events by name.
    pub counts: BTreeMap<String, u64>,
    /// Records of all kinds.
    pub records: u64,
    /// Records that could not be used.
    pub skipped: u64,
    /// Notes with a count of 0 carry no information.
    pub notes: Vec<Note>,
}

/// A source read in time order.
pub trait Streamed {
    /// Timestamp of the next record.
    fn next_ts(&mut self) -> io::Result<Option<Ns>>;

    /// Passes on the contents of the next record; false if there is none.
    fn next(&mut self, take: &mut dyn FnMut(Item<'_>)) -> io::Result<bool>;

    /// Bytes read, and bytes in total.
    fn progress(&self) -> (u64, u64);

    /// Summary of the contents; complete once all of the source was read.
    fn summary(&self) -> Summary;
}
