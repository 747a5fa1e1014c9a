//! Intervals of a window, each with one cause.

use whyslow_model::Ns;

use crate::moment::{Utid, Word};
use crate::report::Grade;

/// What an interval of time is attributed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Who {
    Thread(Utid),
    Device(Word),
    Peer(Word),
    Interrupt(Word),
    Timer,
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Object {
    Device(Word),
    File(Word),
    Lock(Word),
    Futex(Word),
    Peer(Word),
    Function(Word),
    Cpu(i32),
}

/// The row that supports a claim, by id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Proof {
    Call(i64),
    Request(i64),
    LockWait(i64),
    Work(i64),
    Stack(i64),
}

/// Id of the mechanism, target, object, grade and evidence.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Why {
    pub(crate) mechanism: &'static str,
    pub(crate) who: Who,
    pub(crate) object: Option<Object>,
    pub(crate) grade: Grade,
    pub(crate) proof: Option<Proof>,
}

impl Why {
    pub(crate) fn new(mechanism: &'static str, who: Who, grade: Grade) -> Self {
        Self {
            mechanism,
            who,
            object: None,
            grade,
            proof: None,
        }
    }

    pub(crate) fn unknown(mechanism: &'static str) -> Self {
        Self::new(mechanism, Who::Unknown, Grade::C)
    }

    pub(crate) fn about(mut self, object: Option<Object>) -> Self {
        self.object = object;
        self
    }

    pub(crate) fn by(mut self, proof: Proof) -> Self {
        self.proof = Some(proof);
        self
    }
}

/// An interval of the window and its cause, at the end of a chain of hops.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leaf {
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    pub(crate) why: Why,
    /// The last hop to it; none if the chain has only the thread itself.
    pub(crate) hop: Option<u32>,
}

/// One thread waited for the next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// The previous hop.
    pub(crate) from: Option<u32>,
    pub(crate) waiter: Utid,
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    /// Its target is the thread that was waited for.
    pub(crate) why: Why,
    pub(crate) depth: u16,
}
