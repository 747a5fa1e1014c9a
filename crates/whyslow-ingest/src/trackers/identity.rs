//! Identity of the thread of an event, as passed between trackers and copied into rows.

use whyslow_model::event::Interrupt;
use whyslow_model::tables::EmitAll;
use whyslow_model::{Ns, Sym, Symbols};

use super::anomalies::Anomalies;

/// A thread, as known at one point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadRef {
    /// Dense index for per-thread state of trackers. Reused for another thread only after
    /// [`Change::Gone`].
    pub slot: u32,
    /// Recording-unique id.
    pub utid: i32,
    /// `None` until the process of the thread is known.
    pub upid: Option<i32>,
    /// Kernel thread id.
    pub tid: i32,
    /// Kernel process id; `None` until a source reports it.
    pub pid: Option<i32>,
    /// Name at this time; `None` until a source reports it.
    pub comm: Option<Sym>,
    /// Whether its process is the tracer or recorder.
    pub is_tracer: bool,
}

impl ThreadRef {
    /// The slot, as an index.
    pub fn index(&self) -> usize {
        self.slot as usize
    }
}

/// A process, as known at one point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessRef {
    /// Recording-unique id.
    pub upid: i32,
    /// Kernel process id.
    pub pid: i32,
    /// Name of its main thread.
    pub comm: Option<Sym>,
}

/// Thread that is running on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Running {
    /// Not known yet.
    #[default]
    Unknown,
    /// The idle thread.
    Idle,
    /// Slot of the thread.
    Thread(u32),
}

/// Context of an event.
#[derive(Debug, Clone, Copy)]
pub struct Here {
    /// Time of the event, ns since the epoch.
    pub ts: Ns,
    /// CPU of the event.
    pub cpu: Option<i32>,
    /// Thread that was running on the CPU; `None` if the CPU was idle or the thread is unknown. For
    /// a switch it is the thread switched out.
    pub thread: Option<ThreadRef>,
    /// The CPU was idle.
    pub idle: bool,
    /// In an interrupt handler, so [`Here::thread`] is not the cause of the event.
    pub interrupted: bool,
    /// Interrupt context, as reported by the event itself.
    pub interrupt: Option<Interrupt>,
}

/// A change of threads and processes by one event. Trackers that keep state per thread or process
/// apply these changes in order, before they process the event itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The child belongs to the process of its parent exactly if it shares the parent's
    /// descriptors, as far as a trace shows: the event does not contain the flags of `clone`.
    Forked {
        /// The thread that called clone; `None` if unknown.
        parent: Option<ThreadRef>,
        /// The new thread.
        child: ThreadRef,
    },
    /// The thread executes another program; the other threads of its process are gone.
    Execed {
        /// The thread, under its id after exec.
        thread: ThreadRef,
    },
    /// The process of a thread became known.
    Joined {
        /// The thread, now with its process.
        thread: ThreadRef,
    },
    /// The thread called exit; it may still run for a short time.
    Exited {
        /// The thread that exited.
        thread: ThreadRef,
    },
    /// The last known thread of the process exited or was dropped.
    ProcessEnded {
        /// The process that ended.
        process: ProcessRef,
    },
    /// The last event of this thread has passed; its slot may be reused.
    Gone {
        /// The thread that ended.
        thread: ThreadRef,
    },
}

/// Output of trackers, and what they need to create rows.
pub struct Output<'a, S> {
    /// Interner of the recording.
    pub symbols: &'a mut Symbols,
    /// Counters of anomalies.
    pub anomalies: &'a mut Anomalies,
    /// Destination of rows.
    pub sink: &'a mut S,
}

impl<S: EmitAll> Output<'_, S> {
    /// Interns bytes from a trace.
    pub fn intern(&mut self, bytes: &[u8]) -> Sym {
        self.symbols.intern_bytes(bytes)
    }
}
