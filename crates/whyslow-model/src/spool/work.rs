//! Kernel work that threads wait for.

use super::RecordError;
use super::record::Cursor;
use crate::event::{ItemPhase, WorkPhase};

/// Start or end of page reclaim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReclaimRecord {
    /// Index in [`crate::event::ReclaimKind::ALL`].
    pub what: u32,
    /// At the start: 2^`order` pages are requested; `None` if the kernel does not report it.
    pub order: Option<i32>,
    /// NUMA node; `None` if the kernel does not report it.
    pub node: Option<i32>,
    /// At the end: pages that were freed; `None` if the kernel does not report it.
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
    /// Index in [`crate::event::WorkKind::ALL`].
    pub what: u32,
    /// `None` for a phase unknown to this version.
    pub phase: Option<WorkPhase>,
    /// The kernel's `dev_t`, with 20 bits for the minor number; 0 if unknown.
    pub dev: u32,
    /// Number of the reason in the traced kernel; `None` if the kind has none.
    pub reason: Option<u32>,
    /// Transaction number.
    pub id: Option<u64>,
    /// Pages still to be written.
    pub pages: Option<i64>,
    /// Duration in ns, for work that is reported only at its end.
    pub dur: u64,
    /// Name of the device if its number is unknown, normally `major:minor`.
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

/// A workqueue item, or at least the address of its function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkItemRecord<'b> {
    /// Identifies the item until it starts.
    pub work: u64,
    /// `None` if it was reported before.
    pub function: Option<u64>,
    /// `None` for a phase unknown to this version.
    pub phase: Option<ItemPhase>,
    /// The head's thread is a worker.
    pub is_worker: bool,
    /// Name of the workqueue at queueing, otherwise empty.
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
