//! Converts stacks and lock waits to events.

use whyslow_model::Ns;
use whyslow_model::event::{
    Body, Context, Event, Frame, LockKind, LockWait, PrevState, Stack, StackKind, WallSample,
};
use whyslow_model::spool::{Head, Kind, LockRecord, Record, SLEPT, StackRecord, WallRecord};

use super::map::{Mapper, prev_state};

impl Mapper {
    /// The event of a record with a stack; none for other records.
    pub(crate) fn stack<'a>(
        &'a mut self,
        head: &Head,
        record: &Record<'a>,
        ts: Ns,
        frames: &'a mut Vec<Frame<'a>>,
    ) -> Option<Event<'a>> {
        if let Record::Wall(wall) = record {
            // A system call without a known name is named by its number.
            let abi = self.abi(head);
            wall.nr.map(|nr| self.call_name(abi, nr).len());
        }
        let names = &self.names;
        let of_kernel = |address| names.frame(None, address);
        let of_user = |address| names.frame(Some(head.pid), address);
        let body = match record {
            Record::Stack(stack) => {
                frames.extend(stack.kernel.iter().map(of_kernel));
                frames.extend(stack.user.iter().map(of_user));
                Body::Stack(Stack {
                    kind: stack_kind(head, stack),
                    since: before(ts, head.ts, stack.since),
                    cpu: Some(i32::from(head.cpu)),
                    frames,
                })
            }
            Record::Lock(lock) => {
                frames.extend(lock.kernel.iter().map(of_kernel));
                let has = |flag| lock.flags & flag != 0;
                Body::LockWait(LockWait {
                    kind: lock_kind(lock.flags),
                    is_write: if has(LockRecord::WRITE) {
                        Some(true)
                    } else {
                        has(LockRecord::READ).then_some(false)
                    },
                    slept: !has(LockRecord::SPIN),
                    lock: lock.lock,
                    since: before(ts, head.ts, lock.since),
                    ret: lock.ret,
                    frames,
                })
            }
            Record::Wall(wall) => {
                frames.extend(wall.kernel.iter().map(of_kernel));
                frames.extend(wall.user.iter().map(of_user));
                Body::Wall(WallSample {
                    since: before(ts, head.ts, wall.since),
                    state: (wall.state != WallRecord::ON_CPU).then(|| prev_state(wall.state)),
                    credits: wall.credits,
                    syscall: wall.nr.map(|nr| self.seen_call_name(head, nr)),
                    cpu: wall.has_cpu.then_some(i32::from(head.cpu)),
                    end: wall.end,
                    frames,
                })
            }
            _ => return None,
        };
        Some(Event {
            ts,
            // The record of a switch-in may come before or after the switch.
            cpu: (!matches!(head.kind, Kind::Stack | Kind::Wall)).then_some(i32::from(head.cpu)),
            context: Context {
                tid: Some(head.tid),
                pid: Some(head.pid),
                ..Context::default()
            },
            body,
        })
    }
}

/// Converts a kernel timestamp, given the converted time of a later one.
fn before(ts: Ns, at: u64, since: u64) -> Ns {
    let length = i64::try_from(at.saturating_sub(since)).unwrap_or(i64::MAX);
    ts.saturating_sub(length)
}

fn stack_kind(head: &Head, stack: &StackRecord<'_>) -> StackKind {
    match head.kind {
        Kind::UserStack => StackKind::User,
        Kind::Sample => StackKind::Sample,
        _ => StackKind::Back {
            state: match prev_state(stack.state) {
                // A runnable thread with a stack was preempted.
                PrevState::Runnable { .. } => PrevState::Runnable { preempted: true },
                state => state,
            },
            user_follows: head.flags & SLEPT != 0,
        },
    }
}

fn lock_kind(flags: u32) -> LockKind {
    let has = |flag| flags & flag != 0;
    let is_shared = has(LockRecord::READ) || has(LockRecord::WRITE);
    if has(LockRecord::MUTEX) {
        LockKind::Mutex
    } else if has(LockRecord::RT) {
        LockKind::RtMutex
    } else if has(LockRecord::PERCPU) {
        LockKind::PercpuRwsem
    } else if has(LockRecord::SPIN) {
        if is_shared {
            LockKind::Rwlock
        } else {
            LockKind::Spin
        }
    } else if is_shared {
        LockKind::Rwsem
    } else {
        LockKind::Semaphore
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_locks_are_told_by_their_flags() {
        for (flags, kind) in [
            (0, LockKind::Semaphore),
            (1, LockKind::Spin),
            (1 | 2, LockKind::Rwlock),
            (2, LockKind::Rwsem),
            (4, LockKind::Rwsem),
            (8 | 4, LockKind::RtMutex),
            (16 | 2, LockKind::PercpuRwsem),
            (32, LockKind::Mutex),
            (32 | 1, LockKind::Mutex),
        ] {
            assert_eq!(lock_kind(flags), kind, "{flags}");
        }
    }
}
