//! Interrupts, softirqs, timer expirations, and page allocations in any context.

use whyslow_model::event::{Body, IrqKind};

use super::Fields;
use super::Mapping;

pub(super) static EVENTS: &[Mapping] = &[
    Mapping {
        names: &["irq_handler_entry"],
        fields: &["irq", "name"],
        body: irq_enter,
    },
    Mapping {
        names: &["irq_handler_exit"],
        fields: &["irq", "ret"],
        body: irq_exit,
    },
    Mapping {
        names: &["irq_softirq_entry", "softirq_entry"],
        fields: &["vec"],
        body: softirq_enter,
    },
    Mapping {
        names: &["irq_softirq_exit", "softirq_exit"],
        fields: &["vec"],
        body: softirq_exit,
    },
    Mapping {
        names: &["irq_softirq_raise", "softirq_raise"],
        fields: &["vec"],
        body: softirq_raise,
    },
    Mapping {
        names: &["timer_hrtimer_expire_entry", "hrtimer_expire_entry"],
        fields: &["hrtimer"],
        body: hrtimer_enter,
    },
    Mapping {
        names: &["timer_hrtimer_expire_exit", "hrtimer_expire_exit"],
        fields: &["hrtimer"],
        body: hrtimer_exit,
    },
    Mapping {
        names: &["kmem_mm_page_alloc", "mm_page_alloc"],
        fields: &["order", "page"],
        body: page_alloc,
    },
    Mapping {
        names: &["kmem_mm_page_free", "mm_page_free", "mm_page_free_direct"],
        fields: &["order"],
        body: page_free,
    },
];

fn irq_enter<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::IrqEnter {
        kind: IrqKind::Hard,
        nr: fields.i32(0)?,
        name: fields.bytes(1),
    })
}

fn irq_exit<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::IrqExit {
        kind: IrqKind::Hard,
        nr: fields.i32(0)?,
        ret: fields.i32(1),
    })
}

fn softirq_enter<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::IrqEnter {
        kind: IrqKind::Soft,
        nr: fields.i32(0)?,
        name: None,
    })
}

fn softirq_exit<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::IrqExit {
        kind: IrqKind::Soft,
        nr: fields.i32(0)?,
        ret: None,
    })
}

fn softirq_raise<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::SoftirqRaise { nr: fields.i32(0)? })
}

/// Timers have no number: they are distinguished by their context only.
#[expect(
    clippy::unnecessary_wraps,
    reason = "all functions of the table have this signature"
)]
fn hrtimer_enter<'a>(_: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::IrqEnter {
        kind: IrqKind::Hrtimer,
        nr: 0,
        name: None,
    })
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "all functions of the table have this signature"
)]
fn hrtimer_exit<'a>(_: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::IrqExit {
        kind: IrqKind::Hrtimer,
        nr: 0,
        ret: None,
    })
}

fn page_alloc<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    // a failed allocation is recorded as well, without a page
    if fields.u64(1) == Some(0) {
        return Some(Body::Other);
    }
    Some(Body::PageAlloc {
        order: u32::try_from(fields.i64(0)?).ok()?,
    })
}

fn page_free<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::PageFree {
        order: u32::try_from(fields.i64(0)?).ok()?,
    })
}
