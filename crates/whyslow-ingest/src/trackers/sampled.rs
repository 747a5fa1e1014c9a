//! Data from profilers and runtimes: stack samples, sampling gaps, lock waits of a language.
//!
//! The items are complete, so nothing is tracked: they are converted to rows, of the same threads
//! as the kernel's events if possible.

mod locks;

use rustc_hash::FxHashMap;
use whyslow_model::tables::{EmitAll, RuntimeEventRow, SampleGapRow, StackSampleRow};
use whyslow_model::{Ns, Sym, stat};

use super::callsites::{Callsites, KnownFrame};
use super::identity::{Output, ThreadRef};
use super::process::Processes;
use crate::profile::gaps::Gap;
use crate::profile::leaf::{Leaf, leaf};
use crate::profile::locks::LockWait;
use crate::profile::{CodeKind, NO_STACK, OPEN, Point, Profile, RuntimeEvent, SampledState};

/// Offset added to the ids of threads known only to a runtime; greater than any kernel thread id.
pub const RUNTIME_TID: i32 = 10_000_000;

/// An item of a profile.
#[derive(Debug, Clone, Copy)]
pub enum Sampled<'p> {
    /// A sample, and the start of the time that it stands for.
    Point(&'p Point, Ns),
    /// With the time shift to apply.
    Gap(&'p Gap, Ns),
    /// An event of the runtime.
    Runtime(&'p RuntimeEvent, Ns),
    /// Passed on at its end.
    Lock(&'p LockWait, Ns),
}

impl Sampled<'_> {
    /// Time in the sequence: for a lock wait its end, for other items their start.
    pub fn ts(&self) -> Ns {
        match self {
            Self::Point(point, _) => point.ts,
            Self::Gap(gap, shift) => gap.ts.saturating_add(*shift),
            Self::Runtime(event, shift) => event.ts.saturating_add(*shift),
            Self::Lock(wait, shift) => wait.ts_end.saturating_add(*shift),
        }
    }

    /// End time.
    pub fn ts_end(&self) -> Ns {
        let dur = match self {
            // Its end is unknown.
            Self::Point(point, _) if point.span == OPEN => 0,
            Self::Point(point, _) => point.span,
            Self::Gap(gap, _) => gap.dur(),
            Self::Runtime(event, _) => event.dur,
            Self::Lock(..) => 0,
        };
        self.ts().saturating_add(dur)
    }
}

/// Functions that wait for locks or hold them; they do not show which code requested a lock.
const LOCK_CODE: &[&str] = &[
    "jdk.internal.misc.Unsafe.park",
    "sun.misc.Unsafe.park",
    "java.util.concurrent.locks.",
    "java.lang.Object.wait",
    "java.lang.Thread.sleep",
    "jdk.internal.misc.Blocker.",
];

/// A stack whose rows were written.
#[derive(Debug, Clone, Copy)]
struct KnownStack {
    callsite: Option<i64>,
    /// The innermost function, the innermost user function, and the innermost one outside of lock
    /// code.
    innermost: Option<Sym>,
    program: Option<Sym>,
    wanting: Option<Sym>,
    /// The system call that it waits in, otherwise the function.
    doing: Option<Sym>,
}

/// Items of a profile that were already written.
#[derive(Debug, Default)]
struct Placed {
    threads: Vec<Option<ThreadRef>>,
    names: Vec<Option<Sym>>,
    frames: Vec<Option<KnownFrame>>,
    stacks: Vec<Option<KnownStack>>,
    /// Ids of the gaps so far, in the order of the profile.
    gaps: Vec<i64>,
}

#[derive(Debug, Default)]
pub(super) struct SampledTracker {
    profiles: Vec<Placed>,
    /// Runtime thread ids by kernel thread id.
    runtime_ids: FxHashMap<i32, i64>,
    next_gap_id: i64,
    next_runtime_id: i64,
}

/// A profile and its number.
#[derive(Clone, Copy)]
pub struct Source<'p> {
    /// Number of the profile in the import, from 0.
    pub number: usize,
    /// The profile.
    pub profile: &'p Profile,
}

/// Parts of the other trackers that are needed here.
pub(super) struct Shared<'t> {
    pub(super) processes: &'t mut Processes,
    pub(super) sites: &'t mut Callsites,
}

/// A thread with the name given by its runtime.
#[derive(Clone, Copy)]
struct Named {
    thread: Option<ThreadRef>,
    name: Option<Sym>,
}

impl SampledTracker {
    /// A sample, and the start of the time that it stands for.
    #[inline]
    pub(super) fn point<S: EmitAll>(
        &mut self,
        source: Source<'_>,
        (point, since, id): (&Point, Ns, i64),
        shared: &mut Shared<'_>,
        out: &mut Output<'_, S>,
    ) {
        let of = self.thread(source, point.thread, point.ts, shared, out);
        let stack = self.stack(source, point.stack, point.ts, shared, out);
        let ts_end = (point.span != OPEN).then(|| point.ts.saturating_add(point.span));
        let state = match point.state {
            SampledState::Running => Some("running"),
            SampledState::Sleeping => Some("sleeping"),
            SampledState::Unknown => None,
        };
        let thread = of.thread;
        let row = StackSampleRow {
            id,
            ts: since,
            dur: ts_end.map(|end| end.saturating_sub(since)),
            ts_end,
            kind: out.symbols.intern_static(point.kind.name()),
            state: state.map(|state| out.symbols.intern_static(state)),
            utid: thread.map(|thread| thread.utid),
            upid: thread.and_then(|thread| thread.upid),
            tid: thread.map(|thread| thread.tid),
            pid: thread.and_then(|thread| thread.pid),
            comm: of.name,
            cpu: None,
            function: stack.and_then(|stack| stack.innermost),
            user_function: stack.and_then(|stack| stack.program),
            callsite_id: stack.and_then(|stack| stack.callsite),
            credits: Some(i32::try_from(point.credits).unwrap_or(i32::MAX)),
            is_assumed: Some(point.is_assumed),
            syscall: None,
            sampler: None,
            is_cut: None,
        };
        out.sink.emit(row);
    }

    pub(super) fn gap<S: EmitAll>(
        &mut self,
        source: Source<'_>,
        (gap, shift): (&Gap, Ns),
        shared: &mut Shared<'_>,
        out: &mut Output<'_, S>,
    ) {
        let ts = gap.ts.saturating_add(shift);
        let of = gap
            .thread
            .map(|thread| self.thread(source, thread, ts, shared, out));
        let thread = of.and_then(|of| of.thread);
        // A gap of all threads belongs to their process, which any of them shows.
        let member =
            thread.or_else(|| self.placed(source).threads.iter().flatten().next().copied());
        let before = self.stack(source, gap.before, ts, shared, out);
        let after = self.stack(source, gap.after, ts, shared, out);
        let row = SampleGapRow {
            id: self.next_gap_id,
            ts,
            dur: Some(gap.dur()),
            ts_end: Some(gap.ts_end.saturating_add(shift)),
            class: out.symbols.intern_static(gap.class.name()),
            utid: thread.map(|thread| thread.utid),
            upid: member.and_then(|thread| thread.upid),
            tid: thread.map(|thread| thread.tid),
            pid: member.and_then(|thread| thread.pid),
            comm: of.and_then(|of| of.name),
            cycles: gap.thread.map(|_| gap.cycles as i32),
            queued: gap.thread.map(|_| gap.queued as i32),
            group_id: gap.group.map(|group| group as i32),
            function: after.and_then(|stack| stack.innermost),
            before_function: before.and_then(|stack| stack.innermost),
            callsite_id: after.and_then(|stack| stack.callsite),
            before_callsite_id: before.and_then(|stack| stack.callsite),
        };
        self.placed(source).gaps.push(row.id);
        self.next_gap_id += 1;
        out.sink.emit(row);
    }

    pub(super) fn runtime<S: EmitAll>(
        &mut self,
        source: Source<'_>,
        (event, shift): (&RuntimeEvent, Ns),
        shared: &mut Shared<'_>,
        out: &mut Output<'_, S>,
    ) {
        let ts = event.ts.saturating_add(shift);
        let of = event
            .thread
            .map(|thread| self.thread(source, thread, ts, shared, out));
        let owner = event
            .owner
            .map(|thread| self.thread(source, thread, ts, shared, out));
        let thread = of.and_then(|of| of.thread);
        let stack = self.stack(source, event.stack, ts, shared, out);
        let address = event.address.map(|address| format!("{address:x}"));
        let row = RuntimeEventRow {
            id: self.next_runtime_id,
            ts,
            dur: Some(event.dur),
            ts_end: Some(ts.saturating_add(event.dur)),
            kind: out.symbols.intern_static(event.kind.name()),
            object: event
                .object
                .as_ref()
                .map(|object| out.symbols.intern(object)),
            address: address.map(|address| out.symbols.intern(&address)),
            bytes: event.bytes,
            owner_utid: owner.and_then(|of| of.thread).map(|thread| thread.utid),
            utid: thread.map(|thread| thread.utid),
            upid: thread.and_then(|thread| thread.upid),
            tid: thread.map(|thread| thread.tid),
            pid: thread.and_then(|thread| thread.pid),
            comm: of.and_then(|of| of.name),
            function: stack.and_then(|stack| stack.wanting),
            callsite_id: stack.and_then(|stack| stack.callsite),
        };
        self.next_runtime_id += 1;
        out.sink.emit(row);
    }

    fn placed(&mut self, source: Source<'_>) -> &mut Placed {
        if self.profiles.len() <= source.number {
            self.profiles
                .resize_with(source.number + 1, Placed::default);
        }
        let placed = &mut self.profiles[source.number];
        if placed.threads.is_empty() {
            placed.threads = vec![None; source.profile.threads.len()];
            placed.names = vec![None; source.profile.threads.len()];
            placed.frames = vec![None; source.profile.frames.len()];
            placed.stacks = vec![None; source.profile.stacks.len()];
        }
        placed
    }

    #[inline]
    fn thread<S: EmitAll>(
        &mut self,
        source: Source<'_>,
        thread: u32,
        ts: Ns,
        shared: &mut Shared<'_>,
        out: &mut Output<'_, S>,
    ) -> Named {
        let at = thread as usize;
        let placed = self.placed(source);
        if let Some(known) = placed.threads[at]
            && shared.processes.still_is(known)
        {
            return Named {
                thread: Some(shared.processes.seen(known.slot, ts)),
                name: placed.names[at].or(known.comm),
            };
        }
        self.place_thread(source, at, ts, shared, out)
    }

    #[cold]
    fn place_thread<S: EmitAll>(
        &mut self,
        source: Source<'_>,
        at: usize,
        ts: Ns,
        shared: &mut Shared<'_>,
        out: &mut Output<'_, S>,
    ) -> Named {
        let of = &source.profile.threads[at];
        let of_runtime = || {
            let id = i32::try_from(of.runtime_id?).ok()?;
            RUNTIME_TID.checked_add(id)
        };
        let Some(tid) = of.tid.or_else(of_runtime) else {
            out.anomalies.count(&stat::THREAD_UNKNOWN, ts);
            let name = of.name.as_deref().map(|name| out.symbols.intern(name));
            return Named { thread: None, name };
        };
        // The kernel reuses ids; a runtime does not.
        let is_other = of.runtime_id.is_some_and(|id| {
            let before = self.runtime_ids.insert(tid, id);
            before.is_some_and(|before| before != id)
        });
        let name = of.name.as_deref().filter(|name| !name.starts_with("[tid="));
        let reported = (tid, source.profile.pid, name);
        let thread = shared.processes.sampled(reported, is_other, ts, out);
        let name = name.map(|name| out.symbols.intern(name)).or(thread.comm);
        let placed = self.placed(source);
        placed.threads[at] = Some(thread);
        placed.names[at] = name;
        Named {
            thread: Some(thread),
            name,
        }
    }

    #[inline]
    fn stack<S: EmitAll>(
        &mut self,
        source: Source<'_>,
        stack: u32,
        ts: Ns,
        shared: &mut Shared<'_>,
        out: &mut Output<'_, S>,
    ) -> Option<KnownStack> {
        if stack == NO_STACK {
            return None;
        }
        let at = stack as usize;
        if let Some(known) = self.placed(source).stacks.get(at)? {
            return Some(*known);
        }
        Some(self.place_stack(source, at, ts, shared, out))
    }

    #[cold]
    fn place_stack<S: EmitAll>(
        &mut self,
        source: Source<'_>,
        at: usize,
        ts: Ns,
        shared: &mut Shared<'_>,
        out: &mut Output<'_, S>,
    ) -> KnownStack {
        let profile = source.profile;
        let placed = self.placed(source);
        let mut known = Vec::with_capacity(profile.stacks[at].len());
        for frame in &profile.stacks[at] {
            let place = *frame as usize;
            let of = &profile.frames[place];
            let found = *placed.frames[place].get_or_insert_with(|| shared.sites.code(of, out));
            known.push((found, of));
        }
        let function = |of: Option<&(KnownFrame, &crate::profile::CodeFrame)>| {
            of.and_then(|(known, _)| known.function)
        };
        let is_managed = |kind| kind == CodeKind::Managed;
        let mut managed = known.iter().filter(|(_, of)| is_managed(of.kind));
        let mut user = known.iter().filter(|(_, of)| of.kind == CodeKind::User);
        let mut wanting = managed
            .clone()
            .filter(|(_, of)| !LOCK_CODE.iter().any(|code| of.function.starts_with(code)));
        let doing = match leaf(profile.frames_of(at as u32)) {
            // The frame of the call itself is more specific than the class that contains it.
            Leaf::FileCall => {
                let mut calls = known.iter().filter(|(_, of)| of.kind != CodeKind::Kernel);
                function(calls.next())
            }
            _ => None,
        };
        let program = function(managed.next()).or_else(|| function(user.next()));
        let stack = KnownStack {
            doing: doing.or(program),
            innermost: function(known.first()),
            program,
            wanting: function(wanting.next()).or_else(|| function(known.first())),
            callsite: shared
                .sites
                .stack(known.iter().map(|(known, _)| known), ts, out),
        };
        placed.stacks[at] = Some(stack);
        stack
    }
}
