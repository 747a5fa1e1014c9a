//! Samples of stacks as any profiler takes them: what every reader of a profile ends in, and what everything
//! after it begins with.

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

/// What a frame is code of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CodeKind {
    /// The kernel.
    Kernel,
    /// Machine code of a program or library.
    User,
    /// A function of a language with a runtime of its own: Java, Python, Ruby, ….
    Managed,
}

/// A function in a stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CodeFrame {
    /// What it is code of.
    pub kind: CodeKind,
    /// Name of the function, or its address where it has none.
    pub function: String,
    /// File or library, where it is known.
    pub module: Option<String>,
    /// Line in the source file.
    pub line: Option<i32>,
}

/// A thread of one profile.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SampledThread {
    /// Number that the kernel knows it by; none for threads of a runtime alone.
    pub tid: Option<i32>,
    /// Number that the runtime gave it.
    pub runtime_id: Option<i64>,
    /// Name that the profile gives it.
    pub name: Option<String>,
}

/// What a sampler says the thread did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SampledState {
    /// The sampler does not report it.
    Unknown,
    /// On a CPU, or waiting for one: samplers cannot tell which.
    Running,
    /// Off the CPU.
    Sleeping,
}

/// How the sampler chooses its moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SampleKind {
    /// All threads, whatever they do, in turn.
    Wall,
    /// Threads that use a CPU.
    Cpu,
    /// Threads that are in code of the runtime's language.
    Execution,
    /// Threads that are in native code called from there.
    Native,
    /// All threads, in a dump that somebody asked for.
    Dump,
}

impl SampleKind {
    /// As the column `stack_sample.kind` has it.
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

/// A sample, or several equal ones that the sampler wrote as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// When it was taken; the first of several.
    pub ts: Ns,
    /// From there to the last of several; [`OPEN`] if its end is not told.
    pub span: Ns,
    /// In [`Profile::threads`].
    pub thread: u32,
    /// In [`Profile::stacks`]; [`NO_STACK`] if the sampler got none.
    pub stack: u32,
    /// How many samples it stands for.
    pub credits: u32,
    /// How the sampler chose the moment.
    pub kind: SampleKind,
    /// What the thread did, as the sampler reports it.
    pub state: SampledState,
    /// The stack was not looked at again: the thread had hardly run since it was taken.
    pub is_assumed: bool,
}

/// Stands for a stack that was not taken.
pub const NO_STACK: u32 = u32::MAX;
/// Of what went on when the profile ended; a row has no length then.
pub const OPEN: Ns = Ns::MAX;

/// What a runtime tells of one of its threads, or of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuntimeKind {
    /// Enters a contended monitor (`synchronized`).
    MonitorEnter,
    /// Waits in `Object.wait`.
    MonitorWait,
    /// Parks in `LockSupport.park`.
    Park,
    /// Sleeps in `Thread.sleep`.
    Sleep,
    /// Reads from a file.
    FileRead,
    /// Writes to a file.
    FileWrite,
    /// `FileChannel.force`: fsync.
    FileForce,
    /// Reads from a socket.
    SocketRead,
    /// Writes to a socket.
    SocketWrite,
    /// Waits for a native lock, as async-profiler reports it.
    NativeLock,
    /// The collector stops all threads.
    GcPause,
    /// All threads are stopped at a safepoint.
    Safepoint,
    /// The VM executes an operation of its own.
    VmOperation,
    /// A sampled allocation.
    Allocation,
    /// A sampled object that was alive at the end.
    LiveObject,
}

impl RuntimeKind {
    /// As the column `runtime_event.kind` has it.
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

/// Something that a runtime tells of, with its begin and length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeEvent {
    /// When it began.
    pub ts: Ns,
    /// Length in ns; 0 for what has none.
    pub dur: Ns,
    /// What happened.
    pub kind: RuntimeKind,
    /// Thread, in [`Profile::threads`]; `None` for what concerns all.
    pub thread: Option<u32>,
    /// Stack, in [`Profile::stacks`]; [`NO_STACK`] if none was taken.
    pub stack: u32,
    /// Class of the lock, path, host, name of the phase or operation.
    pub object: Option<Arc<str>>,
    /// Address of the lock.
    pub address: Option<u64>,
    /// Who had the lock last before.
    pub owner: Option<u32>,
    /// Bytes moved or allocated.
    pub bytes: Option<i64>,
}

/// All that was read of one profile.
#[derive(Debug, Default)]
pub struct Profile {
    /// Threads; other fields refer to them by place.
    pub threads: Vec<SampledThread>,
    /// Frames; stacks refer to them by place.
    pub frames: Vec<CodeFrame>,
    /// Frames of each stack, the innermost first.
    pub stacks: Vec<Box<[u32]>>,
    /// In order of time once [`Profile::sort`] was called.
    pub points: Vec<Point>,
    /// Events of the runtime, in the order of the file.
    pub events: Vec<RuntimeEvent>,
    /// Process, where the profile tells.
    pub pid: Option<i32>,
    /// Time between samples of one thread as the sampler was told; none if that is not known.
    pub interval: Option<Ns>,
    /// Numbers of threads with the life that the profile tells: begin, end.
    pub lives: Vec<(u32, Option<Ns>, Option<Ns>)>,
    /// What it says of itself: settings, the program.
    pub facts: Vec<(String, String)>,
    sorted: Sorted,
    known_threads: FxHashMap<SampledThread, u32>,
    known_frames: FxHashMap<CodeFrame, u32>,
    known_stacks: FxHashMap<Box<[u32]>, u32>,
}

impl Profile {
    /// Place of a thread, which is added if it is new.
    pub fn thread(&mut self, thread: SampledThread) -> u32 {
        place(&mut self.known_threads, &mut self.threads, thread)
    }

    /// Place of a frame, which is added if it is new.
    pub fn frame(&mut self, frame: CodeFrame) -> u32 {
        place(&mut self.known_frames, &mut self.frames, frame)
    }

    /// Place of a stack, innermost frame first, which is added if it is new; [`NO_STACK`] for none.
    pub fn stack(&mut self, frames: &[u32]) -> u32 {
        if frames.is_empty() {
            return NO_STACK;
        }
        match self.known_stacks.get(frames) {
            Some(known) => *known,
            None => place(&mut self.known_stacks, &mut self.stacks, frames.into()),
        }
    }

    /// Of a stack, innermost first.
    pub fn frames_of(&self, stack: u32) -> impl DoubleEndedIterator<Item = &CodeFrame> + Clone {
        let frames = self.stacks.get(stack as usize);
        let frames = frames.map_or(&[][..], |frames| frames);
        frames.iter().map(|frame| &self.frames[*frame as usize])
    }

    /// By time; what is of one time by thread and kind, so that the order in the file does not matter.
    pub fn sort(&mut self) {
        self.sorted = Sorted::default();
        self.sort_rest();
    }

    /// The same after [`Self::sort_points`].
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

    /// Sorts points that came since the last time: while they are in the cache, that costs hardly anything.
    pub(crate) fn sort_points(&mut self) {
        let threads = &self.threads;
        let order = |one: &Point, other: &Point| compare(threads, one, other);
        self.sorted.extend(&mut self.points, order);
    }
}

/// By time; see [`Profile::sort`].
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
