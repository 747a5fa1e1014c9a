//! Converts ended calls to rows.

use whyslow_model::Ns;
use whyslow_model::syscall::Op;
use whyslow_model::tables::{CUT_UNCERTAIN, EmitAll, SyscallRow};

use super::super::file::Use;
use super::super::identity::{Output, ThreadRef};
use super::super::object::{FdClass, Object, Reason};
use super::super::pairing::Pairing;
use super::buffered::Moved;
use super::{End, Pending, SyscallTracker, Target, had_no_object};

/// The greatest errno; lower return values are addresses and other large numbers.
const ERRNO_MAX: i64 = 4095;

impl SyscallTracker {
    /// The end of a call that returned.
    pub(super) fn returned(&mut self, pending: &Pending, (ts, ret): (Ns, Option<i64>)) -> End {
        let class = pending.named.or(pending.target.map(|target| target.object));
        let kind = (pending.called.meaning, class.map(|object| object.class));
        let range = (pending.ts, ts);
        match self.pairings.judge(kind, &[None], range) {
            Pairing::Certain => End::Returned(ts, ret),
            pairing => End::Uncertain(ts, ret, pairing),
        }
    }

    /// Writes the row. `now` is the thread, as known at the end.
    pub(super) fn emit<S: EmitAll>(
        &mut self,
        pending: &Pending,
        now: Option<&ThreadRef>,
        end: End,
        out: &mut Output<'_, S>,
    ) {
        let row = self.row(pending, now, end, out);
        let futex = match pending.op {
            Op::Lock => super::futex::row(pending, &row, out),
            _ => None,
        };
        let may_be_named = |target: Option<Target>| {
            let target = target?;
            let waits = target.object.reason == Some(Reason::BeforeRecording);
            target.descriptor.filter(|_| waits)
        };
        let thread = now.unwrap_or(&pending.thread);
        if !self.buffered.is_over() {
            let descriptor = may_be_named(pending.target).filter(|_| pending.named.is_none());
            let descriptor2 = may_be_named(pending.target2).filter(|_| pending.named2.is_none());
            let alone = thread.upid.is_none() && thread.utid >= 0;
            if alone || descriptor.is_some() || descriptor2.is_some() {
                let (bytes, bytes2) = moved(pending, row.bytes);
                let moved = Moved { descriptor, bytes };
                let moved2 = Moved {
                    descriptor: descriptor2,
                    bytes: bytes2,
                };
                let buffered = &mut self.buffered;
                return buffered.push(
                    (Box::new(row), futex.map(Box::new)),
                    *thread,
                    (moved, moved2),
                    &mut self.files,
                    out,
                );
            }
        }
        if let Some(futex) = futex {
            out.sink.emit(futex);
        }
        out.sink.emit(row);
    }

    fn row<S: EmitAll>(
        &self,
        pending: &Pending,
        now: Option<&ThreadRef>,
        end: End,
        out: &mut Output<'_, S>,
    ) -> SyscallRow {
        let (ts_end, ret, cut) = match end {
            End::Returned(ts, ret) => (Some(ts), ret, None),
            End::Uncertain(ts, ret, _) => (Some(ts), ret, Some(CUT_UNCERTAIN)),
            End::Sometime(ret) => (None, ret, Some("end")),
            End::OfUnknownBegin(ts, ret) => (Some(ts), ret, Some("begin")),
            End::Unknown => (None, None, Some("end")),
        };
        let has_duration = match end {
            End::Uncertain(_, _, pairing) => pairing.has_duration(),
            _ => cut.is_none(),
        };
        let meaning = self.calls.get(pending.called.meaning);
        let known = (pending.thread.utid >= 0).then_some(pending.thread);
        let process = now.copied().or(known);
        let (object, object2) = objects(pending, ret, cut == Some("begin"));
        let numbers = &pending.numbers;
        let symbols = &mut *out.symbols;
        SyscallRow {
            id: pending.id,
            ts: pending.ts,
            dur: ts_end
                .filter(|_| has_duration)
                .map(|end: Ns| end.saturating_sub(pending.ts)),
            ts_end,
            utid: known.map(|thread| thread.utid),
            upid: process.and_then(|thread| thread.upid),
            tid: known.map(|thread| thread.tid),
            pid: process.and_then(|thread| thread.pid),
            comm: known.and_then(|thread| thread.comm),
            cpu: pending.cpu,
            name: meaning.name,
            nr: pending.called.nr,
            compat: pending.called.compat,
            op: symbols.intern_static(pending.op.name()),
            ret,
            errno: ret.and_then(errno),
            fd: numbers.fd,
            fd2: numbers.fd2,
            path: object.and_then(|object| object.path),
            path2: object2.and_then(|object| object.path),
            fd_class: object.map(|object| symbols.intern_static(object.class.name())),
            unknown_reason: object
                .and_then(|object| object.reason)
                .or(object2.and_then(|object| object.reason))
                .map(|reason| symbols.intern_static(reason.name())),
            bytes_requested: numbers.count,
            bytes: ret.filter(|&ret| meaning.call.returns_bytes && ret >= 0),
            file_offset: numbers.offset,
            flags: numbers.flags.or(numbers.command),
            cut: cut.map(|cut| symbols.intern_static(cut)),
        }
    }
}

/// Use to count for the files of the first and the second descriptor.
pub(super) fn moved(pending: &Pending, bytes: Option<i64>) -> (Option<Use>, Option<Use>) {
    let Some(bytes) = bytes else {
        return (None, None);
    };
    match pending.op {
        Op::Read => (Some(Use::Read(bytes)), None),
        Op::Write => (Some(Use::Written(bytes)), None),
        Op::ReadWrite => (Some(Use::Read(bytes)), Some(Use::Written(bytes))),
        _ => (None, None),
    }
}

/// First and second object of the row.
fn objects(
    pending: &Pending,
    ret: Option<i64>,
    entry_lost: bool,
) -> (Option<Object>, Option<Object>) {
    if entry_lost && pending.op.is_io() {
        let object = pending.named.unwrap_or(Object::unknown(Reason::EntryLost));
        return (Some(object), None);
    }
    let behind = |target: Option<Target>| {
        target
            .filter(|target| !had_no_object(ret) || target.descriptor.is_some())
            .map(|target| target.object)
    };
    let object = pending.named.or(behind(pending.target));
    (object, pending.named2.or(behind(pending.target2)))
}

pub(super) fn errno(ret: i64) -> Option<i32> {
    (-ERRNO_MAX..0).contains(&ret).then(|| -ret as i32)
}

impl Target {
    /// Success implies the class of the object, but not which one.
    pub(super) fn learn(&mut self, class: FdClass) {
        if self.object.class == FdClass::Unknown {
            self.object.class = class;
        }
    }
}
