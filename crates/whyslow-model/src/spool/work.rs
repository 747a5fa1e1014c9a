//! Work of the kernel that others wait for.

use super::RecordError;
use super::record::Cursor;
use crate::event::{ItemPhase, WorkPhase};

/// Begin or end of a time in which pages are freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReclaimRecord {
    /// As [`crate::event::ReclaimKind::ALL`].
    pub what: u32,
    /// At its beginning: 2^`order` pages are wanted; `None` where the kernel does not report it.
    pub order: Option<i32>,
    /// NUMA node; `None` where the kernel does not report it.
    pub node: Option<i32>,
    /// At its end: pages that were freed; `None` where the kernel does not report it.
    pub pages: Option<i64>,
}

impl ReclaimRecord {
    pub(super) fn take(at: &mut Cursor<'_>) -> Result<Self, RecordError> {
        let (what, order, node, _) = (at.u32()?, at.i32()?, at.i32()?, at.u32()?);
        let is_told = |number: &i32| *number >= 0;
        Ok(Self {
            what,
            order: Some(order).filter(is_told),
            node: Some(node).filter(is_told),
            pages: Some(at.i64()?).filter(|pages| *pages >= 0),
        })
    }
}

/// Payload of the kind `Work`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkRecord<'b> {
    /// As [`crate::event::WorkKind::ALL`].
    pub what: u32,
    /// Nothing for a phase that this whyslow does not know.
    pub phase: Option<WorkPhase>,
    /// The kernel's `dev_t`, with 20 bits for the minor number; 0 where it is not known.
    pub dev: u32,
    /// Number of the reason in the traced kernel; `None` if the kind has none.
    pub reason: Option<u32>,
    /// Of the transaction.
    pub id: Option<u64>,
    /// Still to be written.
    pub pages: Option<i64>,
    /// Of work that is told when it is over, ns.
    pub dur: u64,
    /// Name of the device where its number is not known, `major:minor` as a rule.
    pub bdi: &'b [u8],
}

impl<'b> WorkRecord<'b> {
    pub(super) fn take(at: &mut Cursor<'b>) -> Result<Self, RecordError> {
        Ok(Self {
            what: at.u32()?,
            phase: WorkPhase::ALL.get(at.u32()? as usize).copied(),
            dev: at.u32()?,
            reason: u32::try_from(at.i32()?).ok(),
            id: Some(at.u64()?).filter(|id| *id != 0),
            pages: Some(at.i64()?).filter(|pages| *pages >= 0),
            dur: at.u64()?,
            bdi: at.comm()?,
        })
    }
}

/// A function that is called later by a thread of the kernel, or its address at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkItemRecord<'b> {
    /// Tells items apart until they begin.
    pub work: u64,
    /// Nothing where it is not told again.
    pub function: Option<u64>,
    /// Nothing for a phase that this whyslow does not know.
    pub phase: Option<ItemPhase>,
    /// The head's thread is one that does nothing else.
    pub is_worker: bool,
    /// Name of the workqueue, when it is queued; else empty.
    pub queue: &'b [u8],
}

impl<'b> WorkItemRecord<'b> {
    pub(super) fn take(at: &mut Cursor<'b>) -> Result<Self, RecordError> {
        let (work, function) = (at.u64()?, at.u64()?);
        let phase = ItemPhase::ALL.get(at.u32()? as usize).copied();
        let is_worker = at.u32()? != 0;
        let queue = match phase {
            Some(ItemPhase::Queued) => at.name(32)?,
            _ => &[],
        };
        Ok(Self {
            work,
            function: Some(function).filter(|address| *address != 0),
            phase,
            is_worker,
            queue,
        })
    }
}
