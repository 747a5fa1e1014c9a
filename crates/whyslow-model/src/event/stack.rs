//! Stacks and kernel lock waits.

use super::PrevState;
use crate::Ns;
use crate::spool::WallEnd;

/// Reason why a stack was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StackKind {
    /// The thread runs again after an off-CPU interval. `user_follows` if its user frames are
    /// reported when its system call returns.
    Back {
        /// State during the off-CPU interval.
        state: PrevState,
        /// A [`StackKind::User`] of the same thread follows.
        user_follows: bool,
    },
    /// User frames of the system call that returns.
    User,
    /// The thread is running.
    Sample,
}

/// Frames of a thread, and the time up to the event that they stand for.
#[derive(Debug, Clone, Copy)]
pub struct Stack<'a> {
    /// Reason why the stack was recorded.
    pub kind: StackKind,
    /// Time at which the thread went off-CPU or entered the call; for a sample, one period before
    /// the event.
    pub since: Ns,
    /// CPU on which the stack was recorded, if it is not the CPU of the event.
    pub cpu: Option<i32>,
    /// Innermost first.
    pub frames: &'a [Frame<'a>],
}

/// Activity of a thread over a period, from a wall-clock sampler.
#[derive(Debug, Clone, Copy)]
pub struct WallSample<'a> {
    /// Start of the period; the event is its end.
    pub since: Ns,
    /// `None` if the thread was on a CPU.
    pub state: Option<PrevState>,
    /// Samples that found the thread in this state.
    pub credits: u32,
    /// System call of the thread.
    pub syscall: Option<&'a str>,
    /// CPU of the thread.
    pub cpu: Option<i32>,
    /// How far the user stack was unwound.
    pub end: WallEnd,
    /// Innermost first.
    pub frames: &'a [Frame<'a>],
}

/// A function in a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Frame<'a> {
    /// Kernel code.
    pub is_kernel: bool,
    /// Code of a language with its own runtime.
    pub is_managed: bool,
    /// Line in the source file, for managed code.
    pub line: Option<i32>,
    /// Address, or a number from [`NO_ADDRESS`](crate::spool::NO_ADDRESS) upwards for code without
    /// an address.
    pub address: u64,
    /// Name of the function; `None` if unknown.
    pub function: Option<&'a [u8]>,
    /// File that contains the code; `None` if unknown.
    pub module: Option<&'a [u8]>,
    /// Offset in bytes from the start of the function, or from the start of the module if the
    /// function is unknown.
    pub distance: Option<u64>,
}

/// Kinds of kernel locks, as in the column `lock_wait.kind`.
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
    /// `rwlock_t`, a reader-writer spin lock.
    Rwlock,
}

impl LockKind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::Mutex,
        Self::Rwsem,
        Self::PercpuRwsem,
        Self::RtMutex,
        Self::Semaphore,
        Self::Spin,
        Self::Rwlock,
    ];

    /// Value of the column `lock_wait.kind`.
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
    /// Kind of lock.
    pub kind: LockKind,
    /// Whether the lock was taken for writing, if the lock has modes.
    pub is_write: Option<bool>,
    /// The thread blocked, rather than spinning all the time.
    pub slept: bool,
    /// Address of the lock.
    pub lock: u64,
    /// Start of the wait.
    pub since: Ns,
    /// 0, or a negative errno if the wait failed.
    pub ret: i32,
    /// Innermost first; empty for short waits.
    pub frames: &'a [Frame<'a>],
}
