//! Classifies stacks: those that wait for a lock, and those in code guarded by a lock.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::LockKind;
use crate::profile::{CodeFrame, CodeKind, Profile};

/// Functions of the JVM in which a thread waits for a monitor.
const MONITOR_ENTER: &[&str] = &[
    "ObjectMonitor::enter",
    "ObjectMonitor::EnterI",
    "ObjectMonitor::TrySpin",
    "ObjectSynchronizer::enter",
    "InterpreterRuntime::monitorenter",
    "SharedRuntime::complete_monitor_locking",
    "Runtime1::monitorenter",
];

/// Functions of the C library that wait for any futex.
const FUTEX: &[&str] = &[
    "futex_abstimed_wait_common",
    "futex_wait",
    "futex",
    "lll_lock_wait",
    "pthread_cond_wait",
    "pthread_cond_timedwait",
    "syscall",
];

/// Functions of the C library that take a lock.
const PTHREAD_LOCKS: &[&str] = &[
    "pthread_mutex_lock",
    "pthread_mutex_timedlock",
    "pthread_mutex_clocklock",
    "pthread_rwlock_rdlock",
    "pthread_rwlock_wrlock",
    "pthread_spin_lock",
];

/// Wrappers around these functions.
const NATIVE_LOCK_CODE: &[&str] = &["std::", "__gthread", "__gnu_cxx::", "boost::", "absl::"];

/// Methods that wait for work, time or a signal rather than for a lock.
const OTHER_WAITS: &[&str] = &[
    "jdk.internal.misc.Unsafe.park",
    "sun.misc.Unsafe.park",
    "java.lang.Object.wait",
    "java.lang.Thread.sleep",
    "java.lang.ref.Reference.waitForReferencePendingList",
];

const PARK: &[&str] = &["jdk.internal.misc.Unsafe.park", "sun.misc.Unsafe.park"];
const LIBRARY_LOCKS: &str = "java.util.concurrent.locks.";

/// Classes whose acquire methods take a lock; others use acquire for permits and events.
const LOCK_CLASSES: &[&str] = &[
    "java.util.concurrent.locks.ReentrantLock",
    "java.util.concurrent.locks.ReentrantReadWriteLock",
    "java.util.concurrent.locks.StampedLock",
];

/// A class, or the function itself if it has none: identifies the code guarded by a lock.
pub(super) type Class = u32;

/// A stack that waits for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wanting {
    pub(super) kind: LockKind,
    /// Index in the stack of the frame that requested the lock.
    pub(super) place: u32,
    pub(super) class: Class,
    pub(super) frame: u32,
}

/// Stacks of a profile, each classified once.
pub(super) struct Stacks {
    /// Class of each frame.
    classes: Vec<Class>,
    /// Class names, by number.
    names: Vec<Arc<str>>,
    wanting: Vec<Option<Wanting>>,
}

impl Stacks {
    pub(super) fn of(profile: &Profile) -> Self {
        let mut numbers: FxHashMap<&str, Class> = FxHashMap::default();
        let mut names = Vec::new();
        let classes = profile.frames.iter().map(|frame| {
            let name = class_of(frame);
            *numbers.entry(name).or_insert_with(|| {
                names.push(Arc::from(name));
                names.len() as u32 - 1
            })
        });
        let classes: Vec<Class> = classes.collect();
        let wanting = profile.stacks.iter().map(|stack| {
            let frame = |at: &u32| &profile.frames[*at as usize];
            let frames: Vec<&CodeFrame> = stack.iter().map(frame).collect();
            let (kind, place) = wants(&frames)?;
            let frame = *stack.get(place)?;
            Some(Wanting {
                kind,
                place: place as u32,
                class: classes[frame as usize],
                frame,
            })
        });
        Self {
            wanting: wanting.collect(),
            names,
            classes,
        }
    }

    pub(super) fn wanting(&self, stack: u32) -> Option<Wanting> {
        self.wanting.get(stack as usize).copied().flatten()
    }

    pub(super) fn name(&self, class: Class) -> &Arc<str> {
        &self.names[class as usize]
    }

    pub(super) fn class(&self, frame: u32) -> Class {
        self.classes[frame as usize]
    }

    /// Classes among these that a thread is in with this stack, so that it may hold their locks.
    /// The innermost function does not count, because it may be about to request the lock.
    pub(super) fn inside(
        &self,
        profile: &Profile,
        stack: u32,
        classes: &FxHashSet<Class>,
    ) -> Vec<Class> {
        let Some(frames) = profile.stacks.get(stack as usize) else {
            return Vec::new();
        };
        let is_program = |frame: &u32| {
            let frame = &profile.frames[*frame as usize];
            frame.kind == CodeKind::Managed && !is_lock_code(&frame.function)
        };
        let wanting = self.wanting(stack);
        // A thread that waits for a condition has released the lock of its class.
        let first = frames.iter().position(is_program);
        let given = first.filter(|first| {
            frames[..*first].iter().any(|frame| {
                let function = &profile.frames[*frame as usize].function;
                function.starts_with("java.lang.Object.wait") || function.contains("Condition")
            })
        });
        let (from, except) = match (wanting, given) {
            (Some(wanting), _) => (wanting.place as usize + 1, Some(wanting.class)),
            (None, Some(first)) => (first + 1, Some(self.class(frames[first]))),
            (None, None) => (1, None),
        };
        let mut inside: Vec<Class> = Vec::new();
        for frame in frames.iter().skip(from) {
            let class = self.class(*frame);
            if Some(class) != except && classes.contains(&class) && !inside.contains(&class) {
                inside.push(class);
            }
        }
        inside
    }

    /// The frame that a runtime's lock wait event refers to: its stack starts with lock code, or
    /// with the method itself.
    pub(super) fn wanting_by_event(&self, profile: &Profile, stack: u32) -> Option<(u32, Class)> {
        let stack = profile.stacks.get(stack as usize)?;
        let is_program = |frame: &&u32| {
            let frame = &profile.frames[**frame as usize];
            frame.kind == CodeKind::Managed && !is_lock_code(&frame.function)
        };
        let frame = *stack.iter().find(is_program)?;
        Some((frame, self.class(frame)))
    }
}

/// Whether a stack contains a function, on any line, in a frame other than the innermost.
pub(super) fn is_in(profile: &Profile, stack: u32, frame: u32) -> bool {
    let function = &profile.frames[frame as usize].function;
    let mut frames = profile.frames_of(stack).skip(1);
    frames.any(|frame| frame.function == *function)
}

fn is_lock_code(function: &str) -> bool {
    function.starts_with(LIBRARY_LOCKS) || OTHER_WAITS.iter().any(|of| function.starts_with(of))
}

/// Returns `a.B` for `a.B.c`, `a::B` for `a::B::c(int)`.
fn class_of(frame: &CodeFrame) -> &str {
    let function = &frame.function;
    let cut = match frame.kind {
        CodeKind::Managed => function.rfind('.'),
        CodeKind::Kernel => None,
        CodeKind::User => function
            .split(['(', '<'])
            .next()
            .and_then(|name| name.rfind("::")),
    };
    cut.map_or(function, |cut| &function[..cut])
}

/// Purpose of a park, by its stack: only acquires of locks are lock waits.
pub(super) fn acquire(profile: &Profile, stack: u32) -> Option<usize> {
    let frames: Vec<&CodeFrame> = profile.frames_of(stack).collect();
    acquires(&frames)
}

/// Kind of lock, and index of the frame that requests it.
fn wants(frames: &[&CodeFrame]) -> Option<(LockKind, usize)> {
    let native = frames
        .iter()
        .position(|frame| frame.kind == CodeKind::Managed)
        .unwrap_or(frames.len());
    let (inner, outer) = frames.split_at(native);
    let user = || inner.iter().filter(|frame| frame.kind == CodeKind::User);
    if user().any(|frame| is_of(MONITOR_ENTER, &frame.function)) {
        let wanting = outer
            .iter()
            .position(|frame| !is_lock_code(&frame.function));
        return wanting.map(|at| (LockKind::Monitor, native + at));
    }
    if outer
        .first()
        .is_some_and(|frame| is_of(PARK, &frame.function))
    {
        return acquires(frames).map(|at| (LockKind::Library, at));
    }
    if let Some(lock) = inner.iter().position(|frame| takes_lock(frame)) {
        let wanting = inner[lock..].iter().position(|frame| {
            !takes_lock(frame) && !is_of(NATIVE_LOCK_CODE, frame.function.as_str())
        })?;
        let frame = inner[lock + wanting];
        // Internal locks of the JVM are not relevant.
        let is_machine = frame
            .module
            .as_deref()
            .is_some_and(|of| of.contains("libjvm"));
        return (!is_machine).then_some((LockKind::Pthread, lock + wanting));
    }
    let all_futex = user().all(|frame| is_futex(&frame.function)) && user().next().is_some();
    let first = outer.first()?;
    (all_futex && !is_lock_code(&first.function)).then_some((LockKind::Monitor, native))
}

/// Index of the frame that called a lock's acquire, if the park is part of one.
fn acquires(frames: &[&CodeFrame]) -> Option<usize> {
    let parks = |frame: &&CodeFrame| is_of(PARK, &frame.function);
    let park = frames.iter().take(24).position(parks)?;
    let rest = &frames[park + 1..];
    let locks = rest
        .iter()
        .take_while(|frame| frame.function.starts_with(LIBRARY_LOCKS));
    let count = locks.clone().count();
    let is_lock = locks
        .clone()
        .any(|frame| is_of(LOCK_CLASSES, &frame.function));
    let is_condition = locks
        .clone()
        .any(|frame| frame.function.contains("Condition"));
    (is_lock && !is_condition && count < rest.len()).then_some(park + 1 + count)
}

fn is_of(names: &[&str], function: &str) -> bool {
    names.iter().any(|name| function.starts_with(name))
}

/// Removes decorations by compilers and versions: `___pthread_mutex_lock@@GLIBC_2.2.5`.
fn plain(function: &str) -> &str {
    let name = function.split(['@', '.', '(']).next().unwrap_or(function);
    let name = name.trim_start_matches('_');
    let name = name.strip_prefix("GI_").unwrap_or(name);
    let name = name.trim_start_matches('_');
    name.strip_suffix("64").unwrap_or(name)
}

fn is_futex(function: &str) -> bool {
    FUTEX.contains(&plain(function))
}

fn takes_lock(frame: &CodeFrame) -> bool {
    frame.kind == CodeKind::User && PTHREAD_LOCKS.contains(&plain(&frame.function))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(names: &[&str]) -> Vec<CodeFrame> {
        let frame = |name: &&str| {
            let kind = if name.starts_with("k:") {
                CodeKind::Kernel
            } else if name.contains('.') && !name.contains("::") && !name.contains('@') {
                CodeKind::Managed
            } else {
                CodeKind::User
            };
            CodeFrame {
                kind,
                function: (*name).to_owned(),
                module: None,
                line: None,
            }
        };
        names.iter().map(frame).collect()
    }

    fn wanted(names: &[&str]) -> Option<(LockKind, String)> {
        let frames = frames(names);
        let by: Vec<&CodeFrame> = frames.iter().collect();
        wants(&by).map(|(kind, at)| (kind, frames[at].function.clone()))
    }

    #[test]
    fn waits_for_locks_are_told_from_waits_for_work() {
        const FUTEX: &str = "__futex_abstimed_wait_common";
        const PARK: &str = "jdk.internal.misc.Unsafe.park";
        const LOCKS: &str = "java.util.concurrent.locks.";
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| name.replace("L.", LOCKS)).collect();
            wanted(&names.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let is = |kind, name: &str| Some((kind, name.to_owned()));
        assert_eq!(
            of(&[FUTEX, "a.Ledger.size"]),
            is(LockKind::Monitor, "a.Ledger.size")
        );
        assert_eq!(
            of(&[
                "k:futex_wait",
                FUTEX,
                "ObjectMonitor::EnterI",
                "ObjectMonitor::enter",
                "a.B.c"
            ]),
            is(LockKind::Monitor, "a.B.c")
        );
        assert_eq!(of(&[FUTEX, "java.lang.Object.wait", "a.B.take"]), None);
        assert_eq!(of(&[FUTEX, "java.lang.Thread.sleep", "a.B.take"]), None);
        assert_eq!(
            of(&[FUTEX, "SafepointSynchronize::block", "a.B.take"]),
            None
        );
        assert_eq!(of(&[FUTEX]), None);
        let acquire = "L.AbstractQueuedSynchronizer.acquire";
        let support = "L.LockSupport.park";
        assert_eq!(
            of(&[
                FUTEX,
                PARK,
                support,
                acquire,
                "L.ReentrantLock$Sync.lock",
                "a.Index.get"
            ]),
            is(LockKind::Library, "a.Index.get")
        );
        let condition = "L.AbstractQueuedSynchronizer$ConditionObject.await";
        assert_eq!(of(&[FUTEX, PARK, support, condition, "a.Queue.take"]), None);
        assert_eq!(
            of(&[
                PARK,
                support,
                acquire,
                "java.util.concurrent.Semaphore.acquire",
                "a.B.c"
            ]),
            None
        );
        assert_eq!(
            of(&[
                "__lll_lock_wait",
                "___pthread_mutex_lock@@GLIBC_2",
                "std::mutex::lock",
                "shop::Cart::add"
            ]),
            is(LockKind::Pthread, "shop::Cart::add")
        );
    }

    #[test]
    fn classes_are_what_functions_belong_to() {
        for (function, class) in [
            ("a.b.Ledger.size", "a.b.Ledger"),
            ("shop::Cart::add(std::string)", "shop::Cart"),
            ("main", "main"),
        ] {
            assert_eq!(class_of(&frames(&[function])[0]), class);
        }
    }
}
