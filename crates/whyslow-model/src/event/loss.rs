//! What a source lost.

use crate::Ns;

/// A range of time in which a stream lost something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss<'a> {
    /// Nothing was lost before this.
    pub ts: Ns,
    /// Nothing was lost after this; `None` if the end is not known.
    pub ts_end: Option<Ns>,
    /// CPU whose events were lost; `None` if several or unknown.
    pub cpu: Option<i32>,
    /// Stream or buffer that lost them.
    pub stream: &'a str,
    /// What `count` counts.
    pub kind: LossKind,
    /// How many; `None` if the source does not know.
    pub count: Option<i64>,
}

/// What a source lost, as the column `lost_events.kind` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossKind {
    /// Events that found no room in a buffer.
    Events,
    /// Whole packets of a stream: sub-buffers that were overwritten.
    Packets,
    /// Bytes that could not be read.
    Bytes,
}
