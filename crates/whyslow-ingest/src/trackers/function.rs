//! Function calls, from entry to return.
//!
//! **Goal.** Each return is matched with its call, even if functions are recursive, end in a tail
//! call, or are left by a jump or an exception and never return.
//!
//! **Rejected.** A plain stack: calls that were left would stay on it forever. Treating a call with
//! a deeper stack pointer as left when a call above it is seen: signal handlers and coroutines have
//! their own stacks, and a call in progress may have a lower address.
//!
//! **Chosen.** A return belongs to the last call of that function with that stack pointer. Calls
//! made since with a stack pointer not above it were left, because their frames are gone. The same
//! applies when a call starts at the frame of another one, unless that one ended in a tail call to
//! it. All other calls stay open until the thread ends, or the limit is reached.

use rustc_hash::FxHashMap;
use whyslow_model::event::{Body, FunctionCall};
use whyslow_model::probe::{FUNCTION_ARGS, TEXTS};
use whyslow_model::tables::{EmitAll, FunctionCallRow};
use whyslow_model::{Ns, Sym, stat};

use super::identity::{Here, Output, ThreadRef};

/// Maximum number of nested returns that the kernel tracks per thread: deeper calls have none.
const RETURNS_MAX: usize = 64;
/// Maximum number of open calls per thread.
const OPEN_MAX: usize = 256;

#[derive(Debug, Clone, Copy)]
struct Open {
    id: i64,
    ts: Ns,
    probe: u32,
    sp: u64,
    parent_id: Option<i64>,
    function: Sym,
    module: Sym,
    args: [Option<i64>; FUNCTION_ARGS],
    texts: [Option<Sym>; TEXTS],
    thread: Option<ThreadRef>,
    cpu: Option<i32>,
}

/// Time of the return, and its value.
type End = Option<(Ns, Option<i64>)>;

#[derive(Debug, Default)]
pub(super) struct FunctionTracker {
    /// By utid, in order of entry.
    open: FxHashMap<i32, Vec<Open>>,
    next_id: i64,
}

impl FunctionTracker {
    pub(super) fn event<S: EmitAll>(
        &mut self,
        body: &Body<'_>,
        here: &Here,
        out: &mut Output<'_, S>,
    ) {
        match *body {
            Body::FunctionBegin(ref call) => self.begin(call, here, out),
            Body::FunctionEnd { probe, sp, ret } => self.end((probe, sp), ret, here, out),
            _ => {}
        }
    }

    fn begin<S: EmitAll>(&mut self, call: &FunctionCall<'_>, here: &Here, out: &mut Output<'_, S>) {
        let mut open = Open {
            id: self.next_id,
            ts: here.ts,
            probe: call.probe,
            sp: call.sp,
            parent_id: None,
            function: out.intern(call.function),
            module: out.intern(call.module),
            args: std::array::from_fn(|place| call.args.get(place).copied().flatten()),
            texts: call.texts.map(|text| text.map(|text| out.intern(text))),
            thread: here.thread,
            cpu: here.cpu,
        };
        self.next_id += 1;
        let Some(thread) = here.thread else {
            // Its return could not be matched.
            return left(&open, here.ts, out);
        };
        let calls = self.open.entry(thread.utid).or_default();
        if !call.is_tail
            && let Some(place) = calls.iter().position(|other| other.sp == call.sp)
        {
            leave_from(calls, (place, call.sp), here.ts, out);
        }
        let mut outer = calls.iter().rev();
        let parent = outer.find(|other| other.sp > call.sp || call.is_tail && other.sp == call.sp);
        open.parent_id = parent.map(|parent| parent.id);
        calls.push(open);
        if calls.len() > OPEN_MAX {
            // Drops the oldest call that has no return, or was left long ago.
            left(&calls.remove(RETURNS_MAX), here.ts, out);
        }
    }

    fn end<S: EmitAll>(
        &mut self,
        (probe, sp): (u32, u64),
        ret: Option<i64>,
        here: &Here,
        out: &mut Output<'_, S>,
    ) {
        let calls = here
            .thread
            .and_then(|thread| self.open.get_mut(&thread.utid));
        let place = calls.as_ref().and_then(|calls| {
            let is_it = |open: &Open| open.probe == probe && open.sp == sp;
            calls.iter().rposition(is_it)
        });
        let (Some(calls), Some(place)) = (calls, place) else {
            out.anomalies
                .count(&stat::FUNCTION_END_WITHOUT_BEGIN, here.ts);
            return;
        };
        leave_from(calls, (place + 1, sp), here.ts, out);
        let mut open = calls.remove(place);
        // Snapshots report thread names, and may come later than the entry.
        open.thread = here.thread;
        emit(&open, Some((here.ts, ret)), out);
    }

    /// The thread ended, or executes another program: its calls have no return.
    pub(super) fn left<S: EmitAll>(&mut self, thread: &ThreadRef, ts: Ns, out: &mut Output<'_, S>) {
        for open in self.open.remove(&thread.utid).unwrap_or_default() {
            left(&open, ts, out);
        }
    }

    pub(super) fn finish<S: EmitAll>(&mut self, ts_end: Ns, out: &mut Output<'_, S>) {
        let mut open: Vec<Open> = self.open.drain().flat_map(|(_, open)| open).collect();
        open.sort_unstable_by_key(|open| open.id);
        for open in &open {
            left(open, ts_end, out);
        }
    }
}

/// Ends calls from index `place` on whose frames are not above `sp`: they were left.
fn leave_from<S: EmitAll>(
    calls: &mut Vec<Open>,
    (place, sp): (usize, u64),
    ts: Ns,
    out: &mut Output<'_, S>,
) {
    let mut number = 0;
    calls.retain(|open| {
        let is_left = number >= place && open.sp <= sp;
        number += 1;
        if is_left {
            left(open, ts, out);
        }
        !is_left
    });
}

fn left<S: EmitAll>(open: &Open, ts: Ns, out: &mut Output<'_, S>) {
    out.anomalies.count(&stat::FUNCTION_LEFT, ts);
    emit(open, None, out);
}

fn emit<S: EmitAll>(open: &Open, end: End, out: &mut Output<'_, S>) {
    let [arg1, arg2, arg3, arg4, arg5, arg6] = open.args;
    let [text, text2] = open.texts;
    out.sink.emit(FunctionCallRow {
        id: open.id,
        ts: open.ts,
        dur: end.map(|(ts, _)| ts.saturating_sub(open.ts)),
        ts_end: end.map(|(ts, _)| ts),
        function: open.function,
        module: open.module,
        arg1,
        arg2,
        arg3,
        arg4,
        arg5,
        arg6,
        text,
        text2,
        ret: end.and_then(|(_, ret)| ret),
        parent_id: open.parent_id,
        utid: open.thread.map(|thread| thread.utid),
        upid: open.thread.and_then(|thread| thread.upid),
        tid: open.thread.map(|thread| thread.tid),
        pid: open.thread.and_then(|thread| thread.pid),
        comm: open.thread.and_then(|thread| thread.comm),
        cpu: open.cpu,
    });
}
