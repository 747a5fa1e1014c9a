//! Intervals of a window, each with one cause.

use whyslow_model::Ns;

use crate::report::Grade;
use crate::window_slice::{TextId, Utid};

/// What an interval of time is attributed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum BlameTarget {
    Thread(Utid),
    Device(TextId),
    Peer(TextId),
    Interrupt(TextId),
    /// A CPU that stood still.
    Cpu(i32),
    Timer,
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Object {
    Device(TextId),
    File(TextId),
    Lock(TextId),
    Futex(TextId),
    Peer(TextId),
    Function(TextId),
    Cpu(i32),
    /// Number of short-lived processes that the culprit started.
    Children(u32),
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
pub(crate) struct Reason {
    pub(crate) mechanism: &'static str,
    pub(crate) target: BlameTarget,
    pub(crate) object: Option<Object>,
    pub(crate) grade: Grade,
    pub(crate) proof: Option<Proof>,
}

impl Reason {
    pub(crate) fn new(mechanism: &'static str, target: BlameTarget, grade: Grade) -> Self {
        Self {
            mechanism,
            target,
            object: None,
            grade,
            proof: None,
        }
    }

    pub(crate) fn unknown(mechanism: &'static str) -> Self {
        Self::new(mechanism, BlameTarget::Unknown, Grade::C)
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
pub(crate) struct BlamedInterval {
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    pub(crate) reason: Reason,
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
    pub(crate) reason: Reason,
    pub(crate) depth: u16,
}
