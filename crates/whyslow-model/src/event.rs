//! What any source can tell: one vocabulary of events between importers (or the recorder) and the
//! trackers. Borrowed, flat and cheap to build; bytes come from the trace as they are.

mod loss;
mod net;
mod probe;
mod shift;
mod signal;
mod stack;
mod tcp;
mod work;

pub use loss::{Loss, LossKind};
pub use net::{NetAddress, NetHeaders};
pub use probe::{FunctionCall, UsdtHit};
pub use signal::{Signal, SignalAction};
pub use stack::{Frame, LockKind, LockWait, Stack, StackKind, WallLook};
pub use tcp::{Endpoint, TcpChange, TcpState};
pub use work::{ItemPhase, Work, WorkItem, WorkKind, WorkPhase};

mod context;
mod fault;
mod fill;
mod host;

pub use context::{Context, Interrupt};
pub use fault::NetFaultKind;
pub use fill::{CacheFill, FillCause, FilledPages};
pub use host::{
    ProcessAbout, StateCounters, StateDevice, StateMount, StateResolverFile, ToldCounters,
};

use crate::Ns;
use crate::lookup::{Function, Outcome};

/// One event of one source, in time order when it reaches the trackers.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    pub ts: Ns,
    /// CPU the event happened on.
    pub cpu: Option<i32>,
    /// What the source says of the thread that was running, beside the payload.
    pub context: Context<'a>,
    pub body: Body<'a>,
}

/// Address of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketAddress<'a> {
    Inet {
        address: [u8; 4],
        port: u16,
    },
    Inet6 {
        address: [u8; 16],
        port: u16,
    },
    Unix {
        path: &'a [u8],
    },
    /// Known by family only.
    Family(i32),
}

/// Arguments of a system call, by meaning. Which of them a call has, and from which argument they
/// come, is told by the table in [`crate::syscall`].
#[derive(Debug, Clone, Copy, Default)]
pub struct SyscallArgs<'a> {
    pub fd: Option<i64>,
    /// newfd of dup2, fd_out of splice, out_fd of sendfile, …
    pub fd2: Option<i64>,
    /// Directory descriptor of the `*at` calls (`AT_FDCWD` is -100).
    pub dirfd: Option<i64>,
    /// Directory descriptor of the second path.
    pub dirfd2: Option<i64>,
    pub path: Option<&'a [u8]>,
    pub path2: Option<&'a [u8]>,
    /// Bytes asked for.
    pub count: Option<i64>,
    pub offset: Option<i64>,
    /// Open flags, mmap flags, dup3 flags, …
    pub flags: Option<i64>,
    /// Command of fcntl, ioctl, futex, epoll_ctl; mode of open.
    pub command: Option<i64>,
    /// Third argument of fcntl, value of futex, …
    pub value: Option<i64>,
    /// Address argument: mmap, munmap, msync, futex.
    pub address: Option<u64>,
    /// Second address argument of futex: where waiters are moved to.
    pub address2: Option<u64>,
    /// Where the longest time to wait stands, for futex; 0 for no limit.
    pub timeout: Option<u64>,
    /// Socket family (domain) and type.
    pub family: Option<i32>,
    pub socket_type: Option<i32>,
    pub socket_address: Option<SocketAddress<'a>>,
    /// Descriptors returned through memory (pipe, socketpair), on exit.
    pub fds: Option<[i32; 2]>,
    /// Signal or other plain arguments, by position, when nothing better is known.
    pub raw: Option<[u64; 6]>,
}

impl SyscallArgs<'_> {
    /// No argument is known. By reference it lives as long as anything.
    pub const NONE: SyscallArgs<'static> = SyscallArgs {
        fd: None,
        fd2: None,
        dirfd: None,
        dirfd2: None,
        path: None,
        path2: None,
        count: None,
        offset: None,
        flags: None,
        command: None,
        value: None,
        address: None,
        address2: None,
        timeout: None,
        family: None,
        socket_type: None,
        socket_address: None,
        fds: None,
        raw: None,
    };
}

/// State a thread was left in by a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrevState {
    /// Runnable; `preempted` where the source tells it was not voluntary.
    Runnable {
        preempted: bool,
    },
    Sleeping,
    Uninterruptible,
    Stopped,
    Traced,
    Dead,
    Zombie,
    Parked,
    /// TASK_IDLE: an uninterruptible sleep of kernel threads that does not count as load.
    Idle,
    Unknown(i64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeupKind {
    /// On the waking CPU, in the waker's context.
    Waking,
    /// On the target CPU, when it became runnable.
    Wakeup,
    WakeupNew,
}

/// Direction and kind of block I/O, from `rwbs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockOp {
    Read,
    Write,
    Discard,
    Flush,
    Other,
}

/// `rwbs` of a block event, decoded from the mask or the text of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockFlags {
    pub op: BlockOp,
    pub sync: bool,
    pub meta: bool,
    pub ahead: bool,
    pub fua: bool,
    /// A flush goes before it.
    pub preflush: bool,
    pub secure: bool,
}

impl BlockFlags {
    /// As the kernel spells them (`blk_fill_rwbs`).
    pub fn letters(&self) -> String {
        let mut letters = String::new();
        if self.preflush {
            letters.push('F');
        }
        letters.push_str(match self.op {
            BlockOp::Read => "R",
            BlockOp::Write => "W",
            BlockOp::Discard if self.secure => "DE",
            BlockOp::Discard => "D",
            BlockOp::Flush => "F",
            BlockOp::Other => "N",
        });
        let marks = [
            (self.fua, 'F'),
            (self.ahead, 'A'),
            (self.sync, 'S'),
            (self.meta, 'M'),
        ];
        letters.extend(marks.iter().filter(|mark| mark.0).map(|mark| mark.1));
        letters
    }
}

/// Device, place and size of a block event. `dev` is the kernel's `dev_t` with 20 minor bits.
#[derive(Debug, Clone, Copy)]
pub struct BlockRange<'a> {
    pub dev: i64,
    pub sector: i64,
    pub sectors: i64,
    /// Bytes where the source tells (passthrough commands); else sectors × 512.
    pub bytes: Option<i64>,
    pub flags: BlockFlags,
    /// Thread in the payload (`tid`), which some events carry beside the context.
    pub tid: Option<i32>,
    pub comm: Option<&'a [u8]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IrqKind {
    Hard,
    Soft,
    Hrtimer,
    /// Sent by another CPU.
    Ipi,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetKind {
    Receive,
    Queue,
    Transmit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryKind {
    /// A page fault of a program itself, or of the kernel on its behalf.
    FaultUser,
    FaultKernel,
    /// Pages of files that came into the page cache or left it.
    CacheAdd,
    CacheRemove,
    /// Pages that reclaim itself had to write.
    ReclaimWrite,
    /// An allocation that found memory short called for kswapd.
    KswapdWakeup,
}

impl MemoryKind {
    pub const ALL: [Self; 6] = [
        Self::FaultUser,
        Self::FaultKernel,
        Self::CacheAdd,
        Self::CacheRemove,
        Self::ReclaimWrite,
        Self::KswapdWakeup,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::FaultUser => "fault_user",
            Self::FaultKernel => "fault_kernel",
            Self::CacheAdd => "cache_add",
            Self::CacheRemove => "cache_remove",
            Self::ReclaimWrite => "reclaim_write",
            Self::KswapdWakeup => "kswapd_wakeup",
        }
    }
}

/// Who frees pages, and for whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReclaimKind {
    /// A thread that wanted memory.
    Direct,
    /// A thread whose cgroup is at its limit.
    Cgroup,
    /// A cgroup above its soft limit, within one of the others.
    CgroupSoft,
    /// A thread that wanted memory of one node.
    Node,
    /// The kernel thread of a node, in the background.
    Kswapd,
}

impl ReclaimKind {
    pub const ALL: [Self; 5] = [
        Self::Direct,
        Self::Cgroup,
        Self::CgroupSoft,
        Self::Node,
        Self::Kswapd,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Cgroup => "cgroup",
            Self::CgroupSoft => "cgroup_soft",
            Self::Node => "node",
            Self::Kswapd => "kswapd",
        }
    }
}

/// Thread record of a state dump.
#[derive(Debug, Clone, Copy, Default)]
pub struct StateProcess<'a> {
    pub tid: i32,
    pub pid: Option<i32>,
    pub ppid: Option<i32>,
    pub comm: Option<&'a [u8]>,
    pub is_kernel: Option<bool>,
    /// Where it was: running, waiting in the CPU queue, waiting, zombie, …
    pub status: Option<i64>,
    pub cpu: Option<i32>,
    /// Identity of its file table, since lttng-modules 2.12.
    pub file_table: Option<u64>,
}

/// What happened. Names follow the kernel's own events.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Body<'a> {
    SchedSwitch {
        prev_tid: i32,
        prev_comm: &'a [u8],
        prev_prio: Option<i32>,
        prev_state: PrevState,
        next_tid: i32,
        next_comm: &'a [u8],
        next_prio: Option<i32>,
    },
    SchedWakeup {
        kind: WakeupKind,
        tid: i32,
        comm: &'a [u8],
        prio: Option<i32>,
        target_cpu: Option<i32>,
    },
    SchedMigrate {
        tid: i32,
        to_cpu: i32,
    },
    Fork {
        parent_tid: i32,
        parent_pid: Option<i32>,
        parent_comm: &'a [u8],
        child_tid: i32,
        child_pid: Option<i32>,
        child_comm: &'a [u8],
    },
    /// `tid` and `old_tid` differ when another thread than the main one calls exec.
    Exec {
        filename: &'a [u8],
        tid: Option<i32>,
        old_tid: Option<i32>,
    },
    Exit {
        tid: i32,
        comm: &'a [u8],
    },
    /// The kernel freed the thread; its id may be used again.
    Free {
        tid: i32,
    },
    CommChange {
        tid: i32,
        comm: &'a [u8],
    },
    PrioChange {
        tid: i32,
        prio: i32,
    },

    /// `name` is without prefix (`openat`); for calls known by number only, the number as text.
    SyscallEnter {
        name: &'a str,
        nr: Option<i32>,
        compat: bool,
        args: &'a SyscallArgs<'a>,
    },
    /// `name` is `None` for sources whose exits do not say (`exit_syscall`).
    SyscallExit {
        name: Option<&'a str>,
        nr: Option<i32>,
        compat: bool,
        ret: Option<i64>,
        args: &'a SyscallArgs<'a>,
        /// Whether the time of the event is that of the return; else it returned then or later.
        is_timed: bool,
    },

    BlockBioQueue(BlockRange<'a>),
    BlockBioBackmerge(BlockRange<'a>),
    BlockBioFrontmerge(BlockRange<'a>),
    BlockBioComplete {
        range: BlockRange<'a>,
        error: Option<i32>,
    },
    /// I/O of `old_dev`/`old_sector` goes on as `range`.
    BlockBioRemap {
        range: BlockRange<'a>,
        old_dev: i64,
        old_sector: i64,
    },
    BlockSplit {
        range: BlockRange<'a>,
        new_sector: i64,
    },
    BlockGetRq(BlockRange<'a>),
    BlockRqInsert(BlockRange<'a>),
    BlockRqIssue(BlockRange<'a>),
    BlockRqMerge(BlockRange<'a>),
    BlockRqRequeue(BlockRange<'a>),
    BlockRqComplete {
        range: BlockRange<'a>,
        error: Option<i32>,
    },

    IrqEnter {
        kind: IrqKind,
        nr: i32,
        name: Option<&'a [u8]>,
    },
    IrqExit {
        kind: IrqKind,
        nr: i32,
        ret: Option<i32>,
    },
    SoftirqRaise {
        nr: i32,
    },
    /// A CPU sends an interrupt to those whose bits are set, from `first` on. Number 0 reschedule, 1
    /// call a function, 2 the same for one CPU.
    IpiRaise {
        nr: i32,
        first: i32,
        cpus: u64,
    },

    Net {
        kind: NetKind,
        netif: &'a [u8],
        bytes: i64,
        skbaddr: Option<u64>,
        ret: Option<i32>,
        headers: Option<NetHeaders>,
    },
    /// A packet that was sent again or thrown away.
    NetFault {
        kind: NetFaultKind,
        skbaddr: Option<u64>,
        /// Why it was thrown away, by the number of the traced kernel.
        reason: Option<i64>,
        /// What the frame carries (0x0800 for IPv4), where no headers tell more.
        ethertype: Option<u16>,
        headers: Option<NetHeaders>,
    },

    /// A lookup of a host name begins: the function that a program called.
    LookupBegin {
        function: Function,
        host: Option<&'a [u8]>,
        service: Option<&'a [u8]>,
    },
    /// It ends, having begun then.
    LookupEnd {
        begun: Ns,
        function: Function,
        host: Option<&'a [u8]>,
        service: Option<&'a [u8]>,
        outcome: Outcome,
        /// The first of those found.
        address: Option<NetAddress>,
    },

    /// A function that was asked for is entered.
    FunctionBegin(FunctionCall<'a>),
    /// It returns.
    FunctionEnd {
        probe: u32,
        /// Stack pointer at its entry.
        sp: u64,
        ret: Option<i64>,
    },
    /// A static probe that was asked for is passed.
    Usdt(UsdtHit<'a>),

    PageAlloc {
        order: u32,
    },
    PageFree {
        order: u32,
    },

    /// Something about memory that is counted: 2^`order` pages, for faults and wakeups once.
    Memory {
        kind: MemoryKind,
        order: u32,
    },
    /// Pages of files come into the page cache, or a file is told of.
    CacheFill(CacheFill<'a>),
    /// Pages are being freed because memory is short; the thread does nothing else meanwhile.
    ReclaimBegin {
        kind: ReclaimKind,
        order: Option<i32>,
        node: Option<i32>,
    },
    /// `pages` were freed.
    ReclaimEnd {
        kind: ReclaimKind,
        pages: Option<i64>,
        node: Option<i32>,
    },

    /// Work of the kernel that others wait for.
    Work(Work<'a>),
    /// A signal is sent, by the thread of the context.
    Signal(Signal),
    /// The thread of the context gets one.
    SignalDelivered(Signal),

    /// A TCP connection goes from one state to another.
    Tcp(TcpChange),

    /// A function that a thread of the kernel calls later.
    WorkItem(WorkItem<'a>),

    StateProcess(StateProcess<'a>),
    ProcessAbout(ProcessAbout<'a>),
    /// A descriptor: of process `pid`, or of `file_table` since lttng-modules 2.12.
    StateFd {
        pid: Option<i32>,
        file_table: Option<u64>,
        fd: i32,
        flags: Option<i64>,
        path: &'a [u8],
    },
    /// Working directory of a process.
    StateDirectory {
        pid: i32,
        path: &'a [u8],
    },
    StateBlockDevice {
        dev: i64,
        name: &'a [u8],
    },
    StateDevice(StateDevice<'a>),
    /// `dev` lies on `below`.
    StateDeviceLink {
        dev: i64,
        below: i64,
        kind: &'a [u8],
    },
    StateMount(StateMount<'a>),
    StateResolverFile(StateResolverFile<'a>),
    StateCounters(StateCounters<'a>),
    ToldCounters(ToldCounters<'a>),
    StateNetInterface {
        name: &'a [u8],
        ifindex: Option<i32>,
        address: Option<[u8; 4]>,
    },
    StateIrq {
        irq: i32,
        name: &'a [u8],
        action: &'a [u8],
    },
    StateEnd,

    /// A stack of the thread of the context.
    Stack(Stack<'a>),
    Wall(WallLook<'a>),
    /// A wait for a lock of the kernel that is over.
    LockWait(LockWait<'a>),

    /// A mark of the user or a user-space tracepoint, its fields rendered as text.
    Marker {
        name: &'a str,
        text: &'a str,
    },
    /// Counted by name and used for what its context tells about the thread.
    Other,
}
