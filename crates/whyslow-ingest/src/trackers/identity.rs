//! Who an event belongs to, as trackers hand it to each other and copy it into rows.

use whyslow_model::event::Interrupt;
use whyslow_model::tables::EmitAll;
use whyslow_model::{Ns, Sym, Symbols};

use super::anomalies::Anomalies;

/// A thread as known at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadRef {
    /// Dense index for state that a tracker keeps per thread. Given to another thread only after
    /// [`Change::Gone`] told that this one is over.
    pub slot: u32,
    /// Recording-unique id.
    pub utid: i32,
    /// Null until something told the process of the thread.
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

/// A process as known at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessRef {
    /// Recording-unique id.
    pub upid: i32,
    /// Kernel process id.
    pub pid: i32,
    /// Name of its main thread.
    pub comm: Option<Sym>,
}

/// Who ran on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Running {
    /// Nothing has shown it yet.
    #[default]
    Unknown,
    /// The idle thread.
    Idle,
    /// Slot of the thread.
    Thread(u32),
}

/// Where an event happened.
#[derive(Debug, Clone, Copy)]
pub struct Here {
    /// Time of the event, ns since the epoch.
    pub ts: Ns,
    /// CPU of the event.
    pub cpu: Option<i32>,
    /// The thread that was running there; null if none was (idle) or if nothing told which.
    /// For a switch it is the thread switched out.
    pub thread: Option<ThreadRef>,
    /// The CPU was idle.
    pub idle: bool,
    /// In an interrupt handler, where [`Here::thread`] is a mere bystander.
    pub interrupted: bool,
    /// What the event itself tells of that.
    pub interrupt: Option<Interrupt>,
}

/// What one event changed about threads and processes. Trackers that keep state per thread or
/// process apply these, in order, before they look at the event itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The child belongs to the same process as its parent exactly if it shares the parent's
    /// descriptors, as far as a trace can tell: flags of `clone` are not recorded with it.
    Forked {
        /// The thread that called clone; `None` if it is not known.
        parent: Option<ThreadRef>,
        /// The new thread.
        child: ThreadRef,
    },
    /// The thread runs another program; its other threads are gone.
    Execed {
        /// The thread, under its id after exec.
        thread: ThreadRef,
    },
    /// A thread known without its process is now known with it.
    Joined {
        /// The thread, now with its process.
        thread: ThreadRef,
    },
    /// The thread called exit; it may still run a little.
    Exited {
        /// The thread that exited.
        thread: ThreadRef,
    },
    /// The last known thread of the process exited or was given up.
    ProcessEnded {
        /// The process that is over.
        process: ProcessRef,
    },
    /// The last event about this thread has passed; its slot may be given to another one.
    Gone {
        /// The thread that is over.
        thread: ThreadRef,
    },
}

/// Where trackers put their rows, and what they need to make them.
pub struct Output<'a, S> {
    /// Interner of the recording.
    pub symbols: &'a mut Symbols,
    /// Where trackers count what is not as it should be.
    pub anomalies: &'a mut Anomalies,
    /// Takes the rows.
    pub sink: &'a mut S,
}

impl<S: EmitAll> Output<'_, S> {
    /// Interns bytes of a trace.
    pub fn intern(&mut self, bytes: &[u8]) -> Sym {
        self.symbols.intern_bytes(bytes)
    }
}
