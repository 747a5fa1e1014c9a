//! What a source lost.

use crate::Ns;

/// A range of time in which a stream lost something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss<'a> {
    pub ts: Ns,
    pub ts_end: Option<Ns>,
    pub cpu: Option<i32>,
    pub stream: &'a str,
    pub kind: LossKind,
    pub count: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossKind {
    Events,
    Packets,
    Bytes,
}
