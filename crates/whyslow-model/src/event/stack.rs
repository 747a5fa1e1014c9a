//! Stacks, and waits for locks of the kernel.

use super::PrevState;
use crate::Ns;
use crate::spool::WallEnd;

/// What a stack was taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StackKind {
    /// The thread comes back to the CPU. `user_follows` if the frames of its program will be told
    /// when its system call returns.
    Back {
        state: PrevState,
        user_follows: bool,
    },
    /// Frames of the program that made the call which returns.
    User,
    /// The thread runs.
    Sample,
}

#[derive(Debug, Clone, Copy)]
pub struct Stack<'a> {
    pub kind: StackKind,
    /// When the thread left the CPU or entered the call; of a sample, one period ago.
    pub since: Ns,
    pub cpu: Option<i32>,
    /// Innermost first.
    pub frames: &'a [Frame<'a>],
}

/// What a thread did for a while, as somebody saw who looks at all threads by the clock on the wall.
#[derive(Debug, Clone, Copy)]
pub struct WallLook<'a> {
    pub since: Ns,
    /// None if it was on a CPU.
    pub state: Option<PrevState>,
    pub credits: u32,
    /// System call that it was in.
    pub syscall: Option<&'a str>,
    /// Where it ran.
    pub cpu: Option<i32>,
    pub end: WallEnd,
    /// Innermost first.
    pub frames: &'a [Frame<'a>],
}

/// A function in a stack, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Frame<'a> {
    pub is_kernel: bool,
    /// Of a language with a runtime of its own.
    pub is_managed: bool,
    pub line: Option<i32>,
    pub address: u64,
    pub function: Option<&'a [u8]>,
    pub module: Option<&'a [u8]>,
    /// Bytes from the begin of the function, or of the module if that has no name.
    pub distance: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    Mutex,
    Rwsem,
    PercpuRwsem,
    RtMutex,
    Semaphore,
    Spin,
    Rwlock,
}

impl LockKind {
    pub const ALL: [Self; 7] = [
        Self::Mutex,
        Self::Rwsem,
        Self::PercpuRwsem,
        Self::RtMutex,
        Self::Semaphore,
        Self::Spin,
        Self::Rwlock,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::Rwsem => "rwsem",
            Self::PercpuRwsem => "percpu_rwsem",
            Self::RtMutex => "rt_mutex",
            Self::Semaphore => "semaphore",
            Self::Spin => "spin",
            Self::Rwlock => "rwlock",
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct LockWait<'a> {
    pub kind: LockKind,
    /// Whether to read or to write, where the lock tells them apart.
    pub is_write: Option<bool>,
    pub slept: bool,
    pub lock: u64,
    pub since: Ns,
    pub ret: i32,
    /// Innermost first; none if the wait was short.
    pub frames: &'a [Frame<'a>],
}
