//! Rows for user-space lock waits.

use whyslow_model::Ns;
use whyslow_model::tables::{EmitAll, LockWaitRow};

use super::{SampledTracker, Shared, Source};
use crate::profile::locks::LockWait;
use crate::trackers::identity::Output;

impl SampledTracker {
    pub(in crate::trackers) fn lock<S: EmitAll>(
        &mut self,
        source: Source<'_>,
        (wait, shift, id): (&LockWait, Ns, i64),
        shared: &mut Shared<'_>,
        out: &mut Output<'_, S>,
    ) {
        let ts_end = wait.ts_end.saturating_add(shift);
        let of = self.thread(source, wait.thread, ts_end, shared, out);
        let stack = self.stack(source, wait.stack, ts_end, shared, out);
        let held_by = wait.holder.map(|holder| {
            let of = self.thread(source, holder.thread, ts_end, shared, out);
            let stack = self.stack(source, holder.stack, ts_end, shared, out);
            (holder, of, stack)
        });
        let address = wait.address.map(|address| format!("{address:x}"));
        let lock = address.as_deref().unwrap_or(&wait.object);
        let wanted = &source.profile.frames[wait.frame as usize].function;
        let thread = of.thread;
        let holder = held_by.map(|(holder, ..)| holder);
        let holding = held_by.and_then(|(_, of, _)| of.thread);
        let holder_stack = held_by.and_then(|(.., stack)| stack);
        let gap = holder.and_then(|holder| holder.gap);
        let gap_id = gap.and_then(|gap| self.placed(source).gaps.get(gap as usize).copied());
        let row = LockWaitRow {
            id,
            ts: wait.ts.saturating_add(shift),
            dur: Some(wait.dur()),
            ts_end: Some(ts_end),
            kind: out.symbols.intern_static(wait.kind.name()),
            mode: None,
            slept: true,
            lock: out.symbols.intern(lock),
            ret: 0,
            utid: thread.map(|thread| thread.utid),
            upid: thread.and_then(|thread| thread.upid),
            tid: thread.map(|thread| thread.tid),
            pid: thread.and_then(|thread| thread.pid),
            comm: of.name,
            cpu: None,
            function: Some(out.symbols.intern(wanted)),
            callsite_id: stack.and_then(|stack| stack.callsite),
            reported_by: Some(out.symbols.intern_static(wait.reported_by.name())),
            object: Some(out.symbols.intern(&wait.object)),
            holder_utid: holding.map(|thread| thread.utid),
            holder_tid: holding.map(|thread| thread.tid),
            holder_comm: held_by.and_then(|(_, of, _)| of.name),
            held: holder.map(|holder| holder.held),
            confidence: holder.map(|holder| out.symbols.intern_static(holder.confidence.name())),
            holder_function: holder_stack.and_then(|stack| stack.doing),
            holder_callsite_id: holder_stack.and_then(|stack| stack.callsite),
            holder_gap_id: gap_id,
        };
        out.sink.emit(row);
    }
}
