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
        /// State that it was left in.
        state: PrevState,
        /// A [`StackKind::User`] of the same thread comes later.
        user_follows: bool,
    },
    /// Frames of the program that made the call which returns.
    User,
    /// The thread runs.
    Sample,
}

/// Frames of a thread and the time that they stand for, up to the event.
#[derive(Debug, Clone, Copy)]
pub struct Stack<'a> {
    /// What the stack was taken for.
    pub kind: StackKind,
    /// When the thread left the CPU or entered the call; of a sample, one period ago.
    pub since: Ns,
    /// CPU on which it was taken, if that is not the CPU of the event.
    pub cpu: Option<i32>,
    /// Innermost first.
    pub frames: &'a [Frame<'a>],
}

/// What a thread did for a while, as somebody saw who looks at all threads by the clock on the wall.
#[derive(Debug, Clone, Copy)]
pub struct WallLook<'a> {
    /// Beginning of the time that this is about; the event is its end.
    pub since: Ns,
    /// None if it was on a CPU.
    pub state: Option<PrevState>,
    /// Samples of the thread that found it in this state.
    pub credits: u32,
    /// System call that it was in.
    pub syscall: Option<&'a str>,
    /// Where it ran.
    pub cpu: Option<i32>,
    /// How far the program's frames could be followed.
    pub end: WallEnd,
    /// Innermost first.
    pub frames: &'a [Frame<'a>],
}

/// A function in a stack, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Frame<'a> {
    /// Code of the kernel.
    pub is_kernel: bool,
    /// Of a language with a runtime of its own.
    pub is_managed: bool,
    /// Line in the source file, of managed code.
    pub line: Option<i32>,
    /// Address, or a number from [`NO_ADDRESS`](crate::spool::NO_ADDRESS) on for code that has
    /// none.
    pub address: u64,
    /// Name of the function; `None` if it was not found.
    pub function: Option<&'a [u8]>,
    /// File of the code; `None` if it was not found.
    pub module: Option<&'a [u8]>,
    /// Bytes from the begin of the function, or of the module if that has no name.
    pub distance: Option<u64>,
}

/// Kinds of kernel locks, as the column `lock_wait.kind` has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// `struct mutex`.
    Mutex,
    /// `struct rw_semaphore`, such as `mmap_lock`.
    Rwsem,
    /// `struct percpu_rw_semaphore`.
    PercpuRwsem,
    /// `struct rt_mutex`.
    RtMutex,
    /// `struct semaphore`.
    Semaphore,
    /// `spinlock_t`; threads and interrupts spin for it.
    Spin,
    /// `rwlock_t`, a spin lock for readers and writers.
    Rwlock,
}

impl LockKind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::Mutex,
        Self::Rwsem,
        Self::PercpuRwsem,
        Self::RtMutex,
        Self::Semaphore,
        Self::Spin,
        Self::Rwlock,
    ];

    /// As the column `lock_wait.kind` has it.
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

/// A contended kernel lock (`contention_begin` to `contention_end`), at the end of the wait.
#[derive(Debug, Clone, Copy)]
pub struct LockWait<'a> {
    /// What kind of lock.
    pub kind: LockKind,
    /// Whether to read or to write, where the lock tells them apart.
    pub is_write: Option<bool>,
    /// The thread gave up its CPU in between, rather than spinning all the time.
    pub slept: bool,
    /// Address of the lock.
    pub lock: u64,
    /// When the wait began.
    pub since: Ns,
    /// 0, or a negative errno if the wait was given up.
    pub ret: i32,
    /// Innermost first; none if the wait was short.
    pub frames: &'a [Frame<'a>],
}
