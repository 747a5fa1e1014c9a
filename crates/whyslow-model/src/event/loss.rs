//! Losses in a source.

use crate::Ns;

/// A time range in which a stream lost events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss<'a> {
    /// Start of the range: nothing was lost before this time.
    pub ts: Ns,
    /// End of the range: nothing was lost after this time; `None` if unknown.
    pub ts_end: Option<Ns>,
    /// CPU whose events were lost; `None` if several or unknown.
    pub cpu: Option<i32>,
    /// Stream or buffer that lost them.
    pub stream: &'a str,
    /// Unit of `count`.
    pub kind: LossKind,
    /// Number lost; `None` if the source does not report it.
    pub count: Option<i64>,
}

/// What was lost, as in the column `lost_events.kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossKind {
    /// Events for which a buffer had no space.
    Events,
    /// Whole packets of a stream: overwritten sub-buffers.
    Packets,
    /// Bytes that could not be read.
    Bytes,
}
