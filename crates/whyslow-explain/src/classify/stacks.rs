//! What the kernel stack of a sleep shows about it.

use whyslow_model::Ns;

use crate::attribution::Attribution;
use crate::blame_target::{BlameTarget, Object, Proof, Reason};
use crate::report::Grade;
use crate::window_slice::{Segment, TextId, Utid, WindowSlice};

/// Journal functions in which threads wait.
pub(super) const JOURNAL: [&str; 9] = [
    "jbd2_log_wait_commit",
    "start_this_handle",
    "add_transaction_credits",
    "do_get_write_access",
    "jbd2_journal_commit_transaction",
    "wait_transaction_locked",
    "xlog_",
    "xfs_log_",
    "jbd2_journal_lock_updates",
];
/// Functions in which threads wait until pages have been written back.
pub(super) const WRITEBACK: [&str; 2] = ["wb_wait_for_completion", "balance_dirty_pages"];
/// Functions in which threads wait for pages under writeback, until a request completes.
const WRITTEN: [&str; 3] = [
    "folio_wait_writeback",
    "__filemap_fdatawait_range",
    "wait_on_page_writeback",
];
pub(super) const SWAP: [&str; 3] = ["do_swap_page", "swap_read", "swapin_"];
/// Innermost functions that do not show what is waited for.
const SCHEDULER: [&str; 16] = [
    "__schedule",
    "schedule",
    "io_schedule",
    "schedule_timeout",
    "io_schedule_timeout",
    "schedule_preempt_disabled",
    "bit_wait",
    "bit_wait_io",
    "__wait_on_bit",
    "out_of_line_wait_on_bit",
    "preempt_schedule",
    "__cond_resched",
    "schedule_hrtimeout_range",
    "schedule_hrtimeout_range_clock",
    "context_switch",
    "__wait_on_bit_lock",
];

/// Waits that the kernel imposes, recognised by the stack where no event of them was recorded.
pub(super) fn throttled(
    slice: &WindowSlice,
    attribution: &Attribution<'_>,
    sleep: &Segment,
) -> Option<Reason> {
    let has = |function: &str| stack_has(slice, sleep.utid, (sleep.begin, sleep.end), &[function]);
    let (mechanism, target) = if has("balance_dirty_pages") {
        ("dirty_throttle", attribution.dirtier(None, sleep.utid).0)
    } else if has("reclaim_throttle") || has("throttle_direct_reclaim") {
        ("memory_throttle", BlameTarget::Thread(sleep.utid))
    } else {
        return None;
    };
    let reason = Reason::new(mechanism, target, Grade::B);
    Some(with_stack(slice, sleep, reason))
}

/// A sleep for the journal of a file system, or for writeback: the stack shows which.
pub(super) fn for_writeback(slice: &WindowSlice, sleep: &Segment, waker: Utid) -> Option<Reason> {
    let range = (sleep.begin, sleep.end);
    let mechanism = if stack_has(slice, sleep.utid, range, &JOURNAL) {
        "journal_wait"
    } else if stack_has(slice, sleep.utid, range, &WRITEBACK)
        || stack_has(slice, sleep.utid, range, &WRITTEN)
    {
        "writeback_wait"
    } else {
        return None;
    };
    let reason = Reason::new(mechanism, BlameTarget::Thread(waker), Grade::B);
    Some(with_stack(slice, sleep, reason))
}

/// Whether the stack of a wait has a function with one of these prefixes.
pub(crate) fn stack_has(slice: &WindowSlice, utid: Utid, range: (Ns, Ns), wanted: &[&str]) -> bool {
    let Some(stack) = slice.stack_at(utid, range) else {
        return false;
    };
    let functions = slice.functions(stack.callsite).iter();
    functions
        .map(|id| slice.text(*id))
        .any(|function| wanted.iter().any(|wanted| function.starts_with(wanted)))
}

/// The kernel function that a thread waited in.
pub(super) fn waiting_in(slice: &WindowSlice, sleep: &Segment) -> Option<TextId> {
    let stack = slice.stack_at(sleep.utid, (sleep.begin, sleep.end))?;
    let mut functions = slice.functions(stack.callsite).iter();
    functions
        .find(|id| !SCHEDULER.contains(&slice.text(**id)))
        .copied()
}

fn with_stack(slice: &WindowSlice, sleep: &Segment, reason: Reason) -> Reason {
    let object = waiting_in(slice, sleep).map(Object::Function);
    with_proof(slice, sleep, reason.about(object))
}

/// The same with the stack of the wait as evidence.
pub(super) fn with_proof(slice: &WindowSlice, sleep: &Segment, reason: Reason) -> Reason {
    match slice.stack_at(sleep.utid, (sleep.begin, sleep.end)) {
        Some(stack) => reason.by(Proof::Stack(stack.id)),
        None => reason,
    }
}
