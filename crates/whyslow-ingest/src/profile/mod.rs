//! Stack samples of any profiler: the output of every profile reader, and the input of all later
//! steps.

mod cycles;
pub mod gaps;
pub mod leaf;
pub mod locks;
mod order;

use std::cmp::Ordering;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use whyslow_model::Ns;

use self::order::Sorted;

/// Type of code of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CodeKind {
    /// The kernel.
    Kernel,
    /// Machine code of a program or library.
    User,
    /// A function of a language with its own runtime: Java, Python, Ruby, ….
    Managed,
}

/// A function in a stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CodeFrame {
    /// Type of code.
    pub kind: CodeKind,
    /// Name of the function, or its address if it has no symbol.
    pub function: String,
    /// File or library, if known.
    pub module: Option<String>,
    /// Line in the source file.
    pub line: Option<i32>,
}

/// A thread of one profile.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SampledThread {
    /// Kernel thread id; `None` for threads known only to the runtime.
    pub tid: Option<i32>,
    /// Id assigned by the runtime.
    pub runtime_id: Option<i64>,
    /// Name in the profile.
    pub name: Option<String>,
}

/// Thread state, as reported by a sampler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SampledState {
    /// Not reported.
    Unknown,
    /// On a CPU, or waiting for one: samplers cannot distinguish these.
    Running,
    /// Off-CPU.
    Sleeping,
}

/// How the sampler selects threads and times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SampleKind {
    /// All threads in turn, on or off CPU.
    Wall,
    /// Threads running on a CPU.
    Cpu,
    /// Threads executing code of the runtime's language.
    Execution,
    /// Threads in native code called from there.
    Native,
    /// All threads, in an explicitly requested dump.
    Dump,
}

impl SampleKind {
    /// Value of the column `stack_sample.kind`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wall => "wall",
            Self::Cpu => "sample",
            Self::Execution => "execution",
            Self::Native => "native",
            Self::Dump => "dump",
        }
    }
}

/// A sample, or several equal ones that the sampler wrote as one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// Time of the sample; for several, of the first.
    pub ts: Ns,
    /// Time from the first to the last sample; [`OPEN`] if the end is unknown.
    pub span: Ns,
    /// Index in [`Profile::threads`].
    pub thread: u32,
    /// Index in [`Profile::stacks`]; [`NO_STACK`] without a stack.
    pub stack: u32,
    /// Number of samples that it stands for.
    pub credits: u32,
    /// How the sampler selected it.
    pub kind: SampleKind,
    /// Thread state, as reported by the sampler.
    pub state: SampledState,
    /// The stack was not read again, because the thread had hardly run since the previous sample.
    pub is_assumed: bool,
}

/// Index for a missing stack.
pub const NO_STACK: u32 = u32::MAX;
/// Span of samples still in progress at the end of the profile; their rows have no duration.
pub const OPEN: Ns = Ns::MAX;

/// Events that a runtime reports about its threads or about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuntimeKind {
    /// Entry to a contended monitor (`synchronized`).
    MonitorEnter,
    /// `Object.wait`.
    MonitorWait,
    /// `LockSupport.park`.
    Park,
    /// `Thread.sleep`.
    Sleep,
    /// Read from a file.
    FileRead,
    /// Write to a file.
    FileWrite,
    /// `FileChannel.force`: fsync.
    FileForce,
    /// Read from a socket.
    SocketRead,
    /// Write to a socket.
    SocketWrite,
    /// Wait for a native lock, as reported by async-profiler.
    NativeLock,
    /// Garbage collection pause.
    GcPause,
    /// All threads are stopped at a safepoint.
    Safepoint,
    /// The VM executes an internal operation.
    VmOperation,
    /// A sampled allocation.
    Allocation,
    /// A sampled object that was still alive at the end.
    LiveObject,
}

impl RuntimeKind {
    /// Value of the column `runtime_event.kind`.
    pub fn name(self) -> &'static str {
        match self {
            Self::MonitorEnter => "monitor_enter",
            Self::MonitorWait => "monitor_wait",
            Self::Park => "park",
            Self::Sleep => "sleep",
            Self::FileRead => "file_read",
            Self::FileWrite => "file_write",
            Self::FileForce => "file_force",
            Self::SocketRead => "socket_read",
            Self::SocketWrite => "socket_write",
            Self::NativeLock => "native_lock",
            Self::GcPause => "gc_pause",
            Self::Safepoint => "safepoint",
            Self::VmOperation => "vm_operation",
            Self::Allocation => "allocation",
            Self::LiveObject => "live_object",
        }
    }
}

/// An event reported by a runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeEvent {
    /// Start time.
    pub ts: Ns,
    /// Duration in ns; 0 for events without one.
    pub dur: Ns,
    /// Kind of event.
    pub kind: RuntimeKind,
    /// Index in [`Profile::threads`]; `None` for events that concern all threads.
    pub thread: Option<u32>,
    /// Index in [`Profile::stacks`]; [`NO_STACK`] without a stack.
    pub stack: u32,
    /// Class of the lock, path, host, or name of the phase or operation.
    pub object: Option<Arc<str>>,
    /// Address of the lock.
    pub address: Option<u64>,
    /// Previous owner of the lock.
    pub owner: Option<u32>,
    /// Bytes transferred or allocated.
    pub bytes: Option<i64>,
}

/// Content of a profile.
#[derive(Debug, Default)]
pub struct Profile {
    /// Threads; other fields refer to them by index.
    pub threads: Vec<SampledThread>,
    /// Frames; stacks refer to them by index.
    pub frames: Vec<CodeFrame>,
    /// Frames of each stack, innermost first.
    pub stacks: Vec<Box<[u32]>>,
    /// Sorted by time after [`Profile::sort`].
    pub points: Vec<Point>,
    /// Runtime events, in file order.
    pub events: Vec<RuntimeEvent>,
    /// Process, if the profile reports it.
    pub pid: Option<i32>,
    /// Configured time between samples of a thread; `None` if unknown.
    pub interval: Option<Ns>,
    /// Lifetimes of threads, if the profile reports them: thread, start, end.
    pub lives: Vec<(u32, Option<Ns>, Option<Ns>)>,
    /// Properties of the profile: settings, the program.
    pub facts: Vec<(String, String)>,
    sorted: Sorted,
    known_threads: FxHashMap<SampledThread, u32>,
    known_frames: FxHashMap<CodeFrame, u32>,
    known_stacks: FxHashMap<Box<[u32]>, u32>,
}

impl Profile {
    /// Returns the index of a thread, adding it if necessary.
    pub fn thread(&mut self, thread: SampledThread) -> u32 {
        place(&mut self.known_threads, &mut self.threads, thread)
    }

    /// Returns the index of a frame, adding it if necessary.
    pub fn frame(&mut self, frame: CodeFrame) -> u32 {
        place(&mut self.known_frames, &mut self.frames, frame)
    }

    /// Returns the index of a stack, innermost frame first, adding it if necessary; [`NO_STACK`]
    /// without frames.
    pub fn stack(&mut self, frames: &[u32]) -> u32 {
        if frames.is_empty() {
            return NO_STACK;
        }
        match self.known_stacks.get(frames) {
            Some(known) => *known,
            None => place(&mut self.known_stacks, &mut self.stacks, frames.into()),
        }
    }

    /// Frames of a stack, innermost first.
    pub fn frames_of(&self, stack: u32) -> impl DoubleEndedIterator<Item = &CodeFrame> + Clone {
        let frames = self.stacks.get(stack as usize);
        let frames = frames.map_or(&[][..], |frames| frames);
        frames.iter().map(|frame| &self.frames[*frame as usize])
    }

    /// Sorts by time, then by thread and kind, so that the order in the file does not matter.
    pub fn sort(&mut self) {
        self.sorted = Sorted::default();
        self.sort_rest();
    }

    /// Completes the sorting after [`Self::sort_points`].
    pub(crate) fn sort_rest(&mut self) {
        let threads = &self.threads;
        let order = |one: &Point, other: &Point| compare(threads, one, other);
        self.sorted.finish(&mut self.points, order);
        self.events.sort_by(|one, other| {
            let of = |event: &RuntimeEvent| {
                let thread = event.thread.map(|at| &threads[at as usize]);
                (
                    event.ts,
                    thread.map(|of| (of.tid, of.runtime_id)),
                    event.kind,
                    event.dur,
                )
            };
            of(one)
                .cmp(&of(other))
                .then_with(|| one.object.cmp(&other.object))
        });
    }

    /// Sorts the points added since the last call. This is cheap while they are in the CPU cache.
    pub(crate) fn sort_points(&mut self) {
        let threads = &self.threads;
        let order = |one: &Point, other: &Point| compare(threads, one, other);
        self.sorted.extend(&mut self.points, order);
    }
}

/// Compares by time; see [`Profile::sort`].
fn compare(threads: &[SampledThread], one: &Point, other: &Point) -> Ordering {
    one.ts.cmp(&other.ts).then_with(|| {
        let of = |point: &Point| {
            let thread = &threads[point.thread as usize];
            (
                thread.tid,
                thread.runtime_id,
                point.kind,
                point.state,
                point.span,
            )
        };
        of(one).cmp(&of(other))
    })
}

fn place<T: Clone + Eq + std::hash::Hash>(
    known: &mut FxHashMap<T, u32>,
    all: &mut Vec<T>,
    new: T,
) -> u32 {
    if let Some(at) = known.get(&new) {
        return *at;
    }
    let at = all.len() as u32;
    all.push(new.clone());
    known.insert(new, at);
    at
}
