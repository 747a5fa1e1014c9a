//! Files of any size whose events are read in order of time while they are imported: of perf, trace-cmd, blktrace.

use std::collections::BTreeMap;
use std::io;

use whyslow_model::Ns;
use whyslow_model::event::{Event, Loss};
use whyslow_model::stat::Stat;

/// What a file gives.
pub enum Item<'a> {
    /// An event, in order of time.
    Event(Event<'a>),
    /// Of something that was there before the first record.
    Before(Event<'a>),
    /// A range of time in which the source lost events.
    Loss(Loss<'a>),
}

/// Something that was met while reading.
#[derive(Debug, Clone)]
pub struct Note {
    /// Kind of the anomaly.
    pub stat: &'static Stat,
    /// How often it occurred.
    pub count: u64,
    /// Place in the file of the first one.
    pub offset: Option<u64>,
    /// Details of the first one; may be empty.
    pub text: String,
}

impl Note {
    /// A note without place and text.
    pub fn new(stat: &'static Stat, count: u64) -> Self {
        Self {
            stat,
            count,
            offset: None,
            text: String::new(),
        }
    }

    /// The same with the place and text of the first one.
    #[must_use]
    pub fn at(self, offset: Option<u64>, text: String) -> Self {
        Self {
            offset,
            text,
            ..self
        }
    }
}

/// What there was in a source, once all of it was read.
#[derive(Debug, Default)]
pub struct Summary {
    /// What the file says of where and how it was recorded.
    pub facts: Vec<(&'static str, String)>,
    /// How many of which events there were.
    pub counts: BTreeMap<String, u64>,
    /// Records of every kind.
    pub records: u64,
    /// Those of them that could not be used.
    pub skipped: u64,
    /// Those that count nothing say nothing.
    pub notes: Vec<Note>,
}

/// A source, in order of time.
pub trait Streamed {
    /// When the next record happened.
    fn next_ts(&mut self) -> io::Result<Option<Ns>>;

    /// Hands on what the next record tells; false if there is none.
    fn next(&mut self, take: &mut dyn FnMut(Item<'_>)) -> io::Result<bool>;

    /// Bytes read, and all there are.
    fn progress(&self) -> (u64, u64);

    /// What there was; complete once all of it was read.
    fn summary(&self) -> Summary;
}
