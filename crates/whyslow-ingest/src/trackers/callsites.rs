//! Stacks as a call tree: each frame with its caller is one row.
//!
//! A frame is identified by name and file, so the same code in two processes, or called from two
//! places of a function, is one frame. Without a name it is identified by its offset in the file,
//! and without that by its address.

use rustc_hash::FxHashMap;
use whyslow_model::event::Frame;
use whyslow_model::tables::{CallsiteRow, EmitAll, FrameRow};
use whyslow_model::{Ns, Sym, stat};

use super::identity::Output;
use crate::profile::{CodeFrame, CodeKind};

/// Maximum number of call tree nodes; further stacks lose their innermost frames.
const CALLSITES_MAX: usize = 2_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct FrameKey {
    kind: CodeKind,
    line: Option<i32>,
    function: Option<Sym>,
    module: Option<Sym>,
    /// Offset in its file, or address, if it has no name.
    place: u64,
}

/// A frame whose row was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KnownFrame {
    pub(super) id: u32,
    pub(super) is_kernel: bool,
    pub(super) function: Option<Sym>,
}

#[derive(Debug, Default)]
pub(super) struct Callsites {
    frames: FxHashMap<FrameKey, u32>,
    /// By caller (0 for none, otherwise its id plus one) and frame.
    sites: FxHashMap<(u32, u32), u32>,
}

impl Callsites {
    pub(super) fn frame<S: EmitAll>(
        &mut self,
        frame: &Frame<'_>,
        ts: Ns,
        out: &mut Output<'_, S>,
    ) -> KnownFrame {
        let function = frame.function.map(|name| out.intern(name));
        let module = frame.module.map(|name| out.intern(name));
        let place = match (function, module, frame.distance) {
            (Some(_), _, _) => 0,
            (None, Some(_), Some(distance)) => distance,
            _ => frame.address,
        };
        let kind = match (frame.is_kernel, frame.is_managed) {
            (true, _) => CodeKind::Kernel,
            (false, true) => CodeKind::Managed,
            (false, false) => CodeKind::User,
        };
        let key = FrameKey {
            kind,
            line: frame.line,
            function,
            module,
            place,
        };
        if function.is_none() && !self.frames.contains_key(&key) {
            out.anomalies.count(&stat::FRAME_UNNAMED, ts);
        }
        self.known(key, (frame.distance, frame.address), out)
    }

    /// A frame with a name, in any language.
    pub(super) fn code<S: EmitAll>(
        &mut self,
        frame: &CodeFrame,
        out: &mut Output<'_, S>,
    ) -> KnownFrame {
        let key = FrameKey {
            kind: frame.kind,
            line: frame.line,
            function: Some(out.symbols.intern(&frame.function)),
            module: frame
                .module
                .as_ref()
                .map(|module| out.symbols.intern(module)),
            place: 0,
        };
        self.known(key, (None, 0), out)
    }

    fn known<S: EmitAll>(
        &mut self,
        key: FrameKey,
        (distance, address): (Option<u64>, u64),
        out: &mut Output<'_, S>,
    ) -> KnownFrame {
        let next = self.frames.len() as u32;
        let id = *self.frames.entry(key).or_insert(next);
        if id == next {
            let kind = out.symbols.intern_static(match key.kind {
                CodeKind::Kernel => "kernel",
                CodeKind::User => "user",
                CodeKind::Managed => "managed",
            });
            out.sink.emit(FrameRow {
                id: i64::from(id),
                function: key.function,
                function_offset: distance.map(|distance| distance as i64),
                module: key.module,
                address: address as i64,
                kind,
                line: key.line,
            });
        }
        KnownFrame {
            id,
            is_kernel: key.kind == CodeKind::Kernel,
            function: key.function,
        }
    }

    /// Id of the stack with these frames, innermost first.
    pub(super) fn stack<'f, S: EmitAll>(
        &mut self,
        frames: impl DoubleEndedIterator<Item = &'f KnownFrame>,
        ts: Ns,
        out: &mut Output<'_, S>,
    ) -> Option<i64> {
        let mut caller = 0;
        for (depth, frame) in (0..).zip(frames.rev()) {
            let next = self.sites.len() as u32;
            let is_full = self.sites.len() >= CALLSITES_MAX;
            let id = match self.sites.get(&(caller, frame.id)) {
                Some(id) => *id,
                None if is_full => {
                    out.anomalies.count(&stat::MAP_LIMIT, ts);
                    break;
                }
                None => {
                    self.sites.insert((caller, frame.id), next);
                    out.sink.emit(CallsiteRow {
                        id: i64::from(next),
                        parent_id: caller.checked_sub(1).map(i64::from),
                        frame_id: i64::from(frame.id),
                        depth,
                    });
                    next
                }
            };
            caller = id + 1;
        }
        caller.checked_sub(1).map(i64::from)
    }
}

/// Functions that block and resume a thread; they do not indicate the reason of a wait.
const SCHEDULER: &[&str] = &[
    "__schedule",
    "schedule",
    "io_schedule",
    "preempt_schedule",
    "__cond_resched",
    "__switch_to",
    "finish_task_switch",
];
/// Functions of lock implementations.
const LOCKS: &[&str] = &[
    "_raw_",
    "__raw_",
    "native_queued_",
    "queued_",
    "__pv_queued_",
    "osq_lock",
    "mutex_",
    "__mutex_",
    "ww_mutex_",
    "__ww_mutex_",
    "rwsem_",
    "down_",
    "__down",
    "up_read",
    "up_write",
    "percpu_rwsem",
    "__percpu_rwsem",
    "percpu_down",
    "__percpu_down",
    "rt_mutex_",
    "__rt_mutex_",
    "rt_spin_",
    "rtlock_",
    "rwbase_",
];
/// Functions that run the recorder's BPF programs in a thread.
const RECORDER: &[&str] = &[
    "bpf_prog_",
    "bpf_trace_run",
    "__bpf_trace_",
    "__traceiter_",
    "bpf_get_stack",
    "trace_contention_",
];
/// Maximum number of innermost frames that may belong to the recorder.
const RECORDER_DEPTH: usize = 8;

fn is_among(names: &[&str], function: &str) -> bool {
    names.iter().any(|name| function.starts_with(name))
}

fn is_locking(function: &str) -> bool {
    function == "down" || is_among(LOCKS, function) || is_among(SCHEDULER, function)
}

/// Innermost function that is not excluded.
fn innermost<S>(
    frames: &[KnownFrame],
    is_left_out: fn(&str) -> bool,
    out: &Output<'_, S>,
) -> Option<Sym> {
    let functions = frames.iter().filter_map(|frame| frame.function);
    let mut functions = functions.filter(|function| !is_left_out(out.symbols.get(*function)));
    functions.next()
}

/// Function in which a thread waited or ran.
pub(super) fn outside_of_scheduler<S>(frames: &[KnownFrame], out: &Output<'_, S>) -> Option<Sym> {
    innermost(frames, |function| is_among(SCHEDULER, function), out)
}

/// Function that requested the lock.
pub(super) fn outside_of_locks<S>(frames: &[KnownFrame], out: &Output<'_, S>) -> Option<Sym> {
    innermost(frames, is_locking, out)
}

/// Innermost user-space function.
pub(super) fn of_program(frames: &[KnownFrame]) -> Option<Sym> {
    let mut user = frames.iter().filter(|frame| !frame.is_kernel);
    user.find_map(|frame| frame.function)
}

/// The frames without those of the recorder at the innermost end.
pub(super) fn without_recorder<'f, 'a>(frames: &'f [Frame<'a>]) -> &'f [Frame<'a>] {
    let is_own = |frame: &Frame<'_>| {
        let name = frame
            .function
            .and_then(|name| std::str::from_utf8(name).ok());
        name.is_some_and(|name| is_among(RECORDER, name))
    };
    let begin = &frames[..frames.len().min(RECORDER_DEPTH)];
    let own = begin.iter().rposition(is_own);
    &frames[own.map_or(0, |place| place + 1)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_locks_and_of_the_scheduler_is_told_by_name() {
        for (function, locking) in [
            ("__mutex_lock.constprop.0", true),
            ("rwsem_down_write_slowpath", true),
            ("down", true),
            ("down_write", true),
            ("schedule_preempt_disabled", true),
            ("download", false),
            ("ext4_buffered_write_iter", false),
            ("percpu_counter_add_batch", false),
        ] {
            assert_eq!(is_locking(function), locking, "{function}");
        }
    }

    #[test]
    fn frames_of_the_recorder_are_left_out_at_the_begin_only() {
        let frame = |function: &'static str| Frame {
            is_kernel: true,
            address: 1,
            function: (!function.is_empty()).then_some(function.as_bytes()),
            ..Frame::default()
        };
        let frames = ["bpf_prog_1_x", "", "__traceiter_contention_end", "a", "b"].map(frame);
        assert_eq!(without_recorder(&frames), &frames[3..]);
        let frames = ["a", "b"].map(frame);
        assert_eq!(without_recorder(&frames), &frames[..]);
        assert_eq!(without_recorder(&[]), &[]);
    }
}
