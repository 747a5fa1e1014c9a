//! Converts records about memory, file systems and packets.

use whyslow_model::event::{
    Body, IrqKind, MemoryKind, NetFaultKind, NetKind, ReclaimKind, TcpChange, Work, WorkItem,
    WorkKind,
};
use whyslow_model::spool::{Kind, NetRecord, ReclaimRecord, TcpRecord, WorkItemRecord, WorkRecord};

use super::names::Names;

pub(super) fn irq_kind(kind: u32) -> IrqKind {
    match kind {
        0 => IrqKind::Hard,
        2 => IrqKind::Hrtimer,
        3 => IrqKind::Ipi,
        _ => IrqKind::Soft,
    }
}

pub(super) fn reclaim(kind: Kind, record: ReclaimRecord) -> Option<Body<'static>> {
    let (order, node, pages) = (record.order, record.node, record.pages);
    let what = *ReclaimKind::ALL.get(record.what as usize)?;
    Some(match kind {
        Kind::ReclaimBegin => Body::ReclaimBegin {
            kind: what,
            order,
            node,
        },
        _ => Body::ReclaimEnd {
            kind: what,
            pages,
            node,
        },
    })
}

pub(super) fn memory(what: u32, order: u32) -> Option<Body<'static>> {
    let kind = *MemoryKind::ALL.get(what as usize)?;
    Some(Body::Memory { kind, order })
}

/// Reasons for writeback (`enum wb_reason`, the same since 4.15).
const WRITEBACK_REASONS: [&str; 8] = [
    "background",
    "vmscan",
    "sync",
    "periodic",
    "laptop_timer",
    "fs_free_space",
    "forker_thread",
    "foreign_flush",
];

/// Reasons for throttling in reclaim (`enum vmscan_throttle_state`, since 5.16).
const THROTTLE_REASONS: [&str; 4] = ["writeback", "isolated", "noprogress", "congested"];

pub(super) fn work<'a>(record: WorkRecord<'_>) -> Option<Body<'a>> {
    let kind = *WorkKind::ALL.get(record.what as usize)?;
    let reasons: &[&str] = match kind {
        WorkKind::Writeback => &WRITEBACK_REASONS,
        WorkKind::ReclaimThrottle => &THROTTLE_REASONS,
        _ => &[],
    };
    let reason = record
        .reason
        .and_then(|reason| reasons.get(reason as usize));
    let dev = Some(i64::from(record.dev)).filter(|dev| *dev != 0);
    Some(Body::Work(Work {
        kind,
        phase: record.phase?,
        dev: dev.or_else(|| device(record.bdi)),
        reason: reason.copied(),
        transaction: record.id.and_then(|id| i64::try_from(id).ok()),
        pages: record.pages,
        dur: i64::try_from(record.dur).ok().filter(|dur| *dur > 0),
    }))
}

pub(super) fn item<'a>(record: WorkItemRecord<'a>, names: &'a Names) -> Option<Body<'a>> {
    let frame = record.function.map(|address| names.frame(None, address));
    Some(Body::WorkItem(WorkItem {
        phase: record.phase?,
        work: record.work,
        address: record.function,
        function: frame.and_then(|frame| frame.function),
        workqueue: record.queue,
        is_worker: record.is_worker,
    }))
}

/// `254:16`; writeback without a block device has other names.
fn device(name: &[u8]) -> Option<i64> {
    let (major, minor) = std::str::from_utf8(name).ok()?.split_once(':')?;
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    (major < 1 << 12 && minor < 1 << 20).then(|| i64::from(major << 20 | minor))
}

pub(super) fn packet(record: NetRecord<'_>) -> Option<Body<'_>> {
    let skbaddr = Some(record.skb).filter(|address| *address != 0);
    let sent = |kind, ret| {
        Some(Body::Net {
            kind,
            netif: record.netif,
            bytes: i64::from(record.bytes),
            skbaddr,
            ret,
            headers: record.headers,
        })
    };
    let fault = |kind, reason| {
        Some(Body::NetFault {
            kind,
            skbaddr,
            reason,
            ethertype: record.ethertype,
            headers: record.headers,
        })
    };
    match record.what {
        0 => sent(NetKind::Receive, None),
        1 => sent(NetKind::Queue, None),
        2 => sent(NetKind::Transmit, Some(record.ret)),
        3 => fault(NetFaultKind::Retransmit, None),
        4 => fault(NetFaultKind::RetransmitSynack, None),
        5 => fault(NetFaultKind::Drop, Some(i64::from(record.ret))),
        _ => None,
    }
}

pub(super) fn tcp(record: TcpRecord) -> Option<Body<'static>> {
    Some(Body::Tcp(TcpChange {
        sock: record.sock,
        from: record.from?,
        to: record.to?,
        local: record.local,
        peer: record.peer,
        acked: Some(record.acked),
        received: Some(record.received),
        retransmits: Some(record.retransmits),
        rtt_us: Some(record.rtt_us),
        error: record.error,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_known_by_the_names_of_their_writeback() {
        assert_eq!(device(b"254:16"), Some(254 << 20 | 16));
        assert_eq!(device(b"btrfs-1"), None);
        assert_eq!(device(b"4096:1"), None);
        assert_eq!(device(b"1:-1"), None);
        assert_eq!(device(b"\xff:1"), None);
    }
}
