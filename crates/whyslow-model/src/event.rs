//! What any source can tell: one vocabulary of events between importers (or the recorder) and the
//! trackers. Borrowed, flat and cheap to build; bytes come from the trace as they are.

// tidy: long because each event and field is documented where it is declared.

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
    /// When it happened, on the clock that all sources of an import share.
    pub ts: Ns,
    /// CPU the event happened on.
    pub cpu: Option<i32>,
    /// What the source says of the thread that was running, beside the payload.
    pub context: Context<'a>,
    /// Payload: what happened.
    pub body: Body<'a>,
}

/// Address of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketAddress<'a> {
    /// `AF_INET`.
    Inet {
        /// In network byte order, as printed: `[127, 0, 0, 1]`.
        address: [u8; 4],
        /// Port in host byte order.
        port: u16,
    },
    /// `AF_INET6`.
    Inet6 {
        /// In network byte order.
        address: [u8; 16],
        /// Port in host byte order.
        port: u16,
    },
    /// `AF_UNIX`.
    Unix {
        /// Path; an abstract name begins with a zero byte; empty for an unnamed socket.
        path: &'a [u8],
    },
    /// Known by family only.
    Family(i32),
}

/// Arguments of a system call, by meaning. Which of them a call has, and from which argument they
/// come, is told by the table in [`crate::syscall`].
#[derive(Debug, Clone, Copy, Default)]
pub struct SyscallArgs<'a> {
    /// First descriptor argument.
    pub fd: Option<i64>,
    /// newfd of dup2, fd_out of splice, out_fd of sendfile, …
    pub fd2: Option<i64>,
    /// Directory descriptor of the `*at` calls (`AT_FDCWD` is -100).
    pub dirfd: Option<i64>,
    /// Directory descriptor of the second path.
    pub dirfd2: Option<i64>,
    /// First path argument, not yet resolved against a directory.
    pub path: Option<&'a [u8]>,
    /// Second path argument: new name of rename, link and symlink.
    pub path2: Option<&'a [u8]>,
    /// Bytes asked for.
    pub count: Option<i64>,
    /// File offset in bytes; of `mmap2` the page number times 4096.
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
    /// `SOCK_STREAM`, `SOCK_DGRAM`, …, with the flags that the call was given.
    pub socket_type: Option<i32>,
    /// Address given to bind, connect and sendto, or returned by accept and recvfrom.
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
        /// Lost its CPU (`R+`) rather than giving it up.
        preempted: bool,
    },
    /// `TASK_INTERRUPTIBLE` (`S`).
    Sleeping,
    /// `TASK_UNINTERRUPTIBLE` (`D`).
    Uninterruptible,
    /// `TASK_STOPPED` (`T`), by a signal.
    Stopped,
    /// `TASK_TRACED` (`t`), by a debugger.
    Traced,
    /// `EXIT_DEAD` (`X`).
    Dead,
    /// `EXIT_ZOMBIE` (`Z`).
    Zombie,
    /// `TASK_PARKED` (`P`), a kernel thread that was parked.
    Parked,
    /// TASK_IDLE: an uninterruptible sleep of kernel threads that does not count as load.
    Idle,
    /// Another state, as the source has it.
    Unknown(i64),
}

/// Which of the three wakeup tracepoints it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeupKind {
    /// On the waking CPU, in the waker's context.
    Waking,
    /// On the target CPU, when it became runnable.
    Wakeup,
    /// `sched_wakeup_new`: a new thread becomes runnable for the first time.
    WakeupNew,
}

/// Direction and kind of block I/O, from `rwbs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockOp {
    /// Data from the device.
    Read,
    /// Data to the device.
    Write,
    /// Blocks that are given up (discard, secure erase).
    Discard,
    /// A flush of the device's cache without data.
    Flush,
    /// Passthrough commands, zone operations and what else has no letter of its own (`N`).
    Other,
}

/// `rwbs` of a block event, decoded from the mask or the text of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockFlags {
    /// Direction and kind.
    pub op: BlockOp,
    /// A thread waits for it (`REQ_SYNC`, letter `S`).
    pub sync: bool,
    /// Metadata of a file system (`REQ_META`, letter `M`).
    pub meta: bool,
    /// Read-ahead (`REQ_RAHEAD`, letter `A`).
    pub ahead: bool,
    /// Complete only when it is on the medium (`REQ_FUA`, letter `F` after the direction).
    pub fua: bool,
    /// A flush goes before it.
    pub preflush: bool,
    /// The discard erases (`REQ_OP_SECURE_ERASE`, letters `DE`).
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
    /// Disk; partition or mapping before the remap to a disk.
    pub dev: i64,
    /// First 512-byte sector on `dev`.
    pub sector: i64,
    /// Length in 512-byte sectors; 0 for a flush.
    pub sectors: i64,
    /// Bytes where the source tells (passthrough commands); else sectors × 512.
    pub bytes: Option<i64>,
    /// What kind of I/O it is.
    pub flags: BlockFlags,
    /// Thread in the payload (`tid`), which some events carry beside the context.
    pub tid: Option<i32>,
    /// Name of that thread, where the payload has one.
    pub comm: Option<&'a [u8]>,
}

/// Kinds of interrupt handlers, as the column `irq.kind` has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IrqKind {
    /// A handler of a device interrupt (`irq_handler_entry`).
    Hard,
    /// A softirq (`softirq_entry`).
    Soft,
    /// The callback of a high-resolution timer (`hrtimer_expire_entry`).
    Hrtimer,
    /// Sent by another CPU.
    Ipi,
}

/// Which of the packet tracepoints it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetKind {
    /// `netif_receive_skb`: the interface handed the packet to the network stack.
    Receive,
    /// `net_dev_queue`: the network stack handed the packet to the interface.
    Queue,
    /// `net_dev_xmit`: the driver answered.
    Transmit,
}

/// What is counted about memory; rows of the table `page_count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryKind {
    /// A page fault of a program itself, or of the kernel on its behalf.
    FaultUser,
    /// A fault in kernel code, such as a copy to a program's buffer that is not mapped yet.
    FaultKernel,
    /// Pages of files that came into the page cache or left it.
    CacheAdd,
    /// Pages of files that left the page cache.
    CacheRemove,
    /// Pages that reclaim itself had to write.
    ReclaimWrite,
    /// An allocation that found memory short called for kswapd.
    KswapdWakeup,
}

impl MemoryKind {
    /// Every kind, in the order of the numbers that a spool uses.
    pub const ALL: [Self; 6] = [
        Self::FaultUser,
        Self::FaultKernel,
        Self::CacheAdd,
        Self::CacheRemove,
        Self::ReclaimWrite,
        Self::KswapdWakeup,
    ];

    /// As the column `page_count.kind` has it.
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
    /// Every kind, in the order of the numbers that a spool uses.
    pub const ALL: [Self; 5] = [
        Self::Direct,
        Self::Cgroup,
        Self::CgroupSoft,
        Self::Node,
        Self::Kswapd,
    ];

    /// As the column `reclaim.kind` has it.
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
    /// Kernel thread id.
    pub tid: i32,
    /// Kernel process id (thread group).
    pub pid: Option<i32>,
    /// Process id of the parent.
    pub ppid: Option<i32>,
    /// Name of the thread.
    pub comm: Option<&'a [u8]>,
    /// Whether it is a kernel thread.
    pub is_kernel: Option<bool>,
    /// Where it was: running, waiting in the CPU queue, waiting, zombie, …
    pub status: Option<i64>,
    /// CPU that it was on.
    pub cpu: Option<i32>,
    /// Identity of its file table, since lttng-modules 2.12.
    pub file_table: Option<u64>,
}

/// What happened. Names follow the kernel's own events.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Body<'a> {
    /// A CPU switches threads (`sched_switch`); id 0 is the idle thread of the CPU.
    SchedSwitch {
        /// Thread that leaves the CPU.
        prev_tid: i32,
        /// Its name.
        prev_comm: &'a [u8],
        /// Its kernel priority.
        prev_prio: Option<i32>,
        /// State that it is left in.
        prev_state: PrevState,
        /// Thread that gets the CPU.
        next_tid: i32,
        /// Its name.
        next_comm: &'a [u8],
        /// Its kernel priority.
        next_prio: Option<i32>,
    },
    /// A thread is woken, by the thread of the context or an interrupt on its CPU.
    SchedWakeup {
        /// Which tracepoint.
        kind: WakeupKind,
        /// Thread that is woken.
        tid: i32,
        /// Its name.
        comm: &'a [u8],
        /// Its kernel priority.
        prio: Option<i32>,
        /// CPU on which it will run.
        target_cpu: Option<i32>,
    },
    /// The scheduler moves a thread that is runnable or about to be woken (`sched_migrate_task`).
    SchedMigrate {
        /// Thread that moves.
        tid: i32,
        /// CPU to which it moves.
        to_cpu: i32,
    },
    /// A thread or process is created (`sched_process_fork`, `clone`).
    Fork {
        /// Thread that called clone.
        parent_tid: i32,
        /// Its process.
        parent_pid: Option<i32>,
        /// Its name.
        parent_comm: &'a [u8],
        /// The new thread.
        child_tid: i32,
        /// Its process; the same as the parent's for a thread, its own id for a process.
        child_pid: Option<i32>,
        /// Its name, at first that of the parent.
        child_comm: &'a [u8],
    },
    /// `tid` and `old_tid` differ when another thread than the main one calls exec.
    Exec {
        /// Path that was executed, as it was given.
        filename: &'a [u8],
        /// Thread id after exec: that of the process.
        tid: Option<i32>,
        /// Thread id before exec.
        old_tid: Option<i32>,
    },
    /// A thread ends (`sched_process_exit`); it may stay as a zombie until [`Body::Free`].
    Exit {
        /// Thread that ends.
        tid: i32,
        /// Its name.
        comm: &'a [u8],
    },
    /// The kernel freed the thread; its id may be used again.
    Free {
        /// Thread that is gone.
        tid: i32,
    },
    /// A thread gets another name (`task_rename`, `PR_SET_NAME`).
    CommChange {
        /// Thread that is renamed.
        tid: i32,
        /// Its new name.
        comm: &'a [u8],
    },
    /// A thread gets another priority (`sched_pi_setprio`).
    PrioChange {
        /// Thread whose priority changes.
        tid: i32,
        /// Its new kernel priority.
        prio: i32,
    },

    /// `name` is without prefix (`openat`); for calls known by number only, the number as text.
    SyscallEnter {
        /// Name as the source has it.
        name: &'a str,
        /// Number in the traced architecture.
        nr: Option<i32>,
        /// Entered through the 32-bit table.
        compat: bool,
        /// Arguments that are known at entry.
        args: &'a SyscallArgs<'a>,
    },
    /// `name` is `None` for sources whose exits do not say (`exit_syscall`).
    SyscallExit {
        /// Name as the source has it.
        name: Option<&'a str>,
        /// Number in the traced architecture.
        nr: Option<i32>,
        /// Entered through the 32-bit table.
        compat: bool,
        /// Return value, a negative errno on failure; `None` where the source does not have it.
        ret: Option<i64>,
        /// Arguments that are known only on return: what the kernel wrote to memory.
        args: &'a SyscallArgs<'a>,
        /// Whether the time of the event is that of the return; else it returned then or later.
        is_timed: bool,
    },

    /// A bio enters the block layer (`block_bio_queue`).
    BlockBioQueue(BlockRange<'a>),
    /// A bio is appended to a request (`block_bio_backmerge`).
    BlockBioBackmerge(BlockRange<'a>),
    /// A bio is put before a request (`block_bio_frontmerge`).
    BlockBioFrontmerge(BlockRange<'a>),
    /// A bio is complete (`block_bio_complete`); for devices without a request queue the only
    /// completion.
    BlockBioComplete {
        /// The bio.
        range: BlockRange<'a>,
        /// Positive errno; 0 is success.
        error: Option<i32>,
    },
    /// I/O of `old_dev`/`old_sector` goes on as `range`.
    BlockBioRemap {
        /// Where it goes on.
        range: BlockRange<'a>,
        /// Device that it was sent to, such as a partition or a mapping.
        old_dev: i64,
        /// Sector on that device.
        old_sector: i64,
    },
    /// A bio is too large for the device and is split (`block_split`).
    BlockSplit {
        /// The first part.
        range: BlockRange<'a>,
        /// Sector where the rest begins.
        new_sector: i64,
    },
    /// A request is allocated (`block_getrq`).
    BlockGetRq(BlockRange<'a>),
    /// A request enters the I/O scheduler (`block_rq_insert`).
    BlockRqInsert(BlockRange<'a>),
    /// The driver gets a request (`block_rq_issue`).
    BlockRqIssue(BlockRange<'a>),
    /// A request is merged into another one (`block_rq_merge`).
    BlockRqMerge(BlockRange<'a>),
    /// The driver gives a request back to the queue (`block_rq_requeue`).
    BlockRqRequeue(BlockRange<'a>),
    /// A request, or the first part of one, is complete (`block_rq_complete`).
    BlockRqComplete {
        /// The sectors that are complete.
        range: BlockRange<'a>,
        /// Positive errno; 0 is success.
        error: Option<i32>,
    },

    /// An interrupt handler begins on the CPU of the event.
    IrqEnter {
        /// What kind of handler.
        kind: IrqKind,
        /// Number of the interrupt or softirq vector, or of the IPI as in [`Body::IpiRaise`].
        nr: i32,
        /// Name of the device action, where the source has it.
        name: Option<&'a [u8]>,
    },
    /// An interrupt handler ends on the CPU of the event.
    IrqExit {
        /// What kind of handler.
        kind: IrqKind,
        /// Number as at its entry.
        nr: i32,
        /// Return value of a hard handler: 1 if the interrupt was its own.
        ret: Option<i32>,
    },
    /// A softirq is marked pending on the CPU of the event (`softirq_raise`).
    SoftirqRaise {
        /// Softirq vector.
        nr: i32,
    },
    /// A CPU sends an interrupt to those whose bits are set, from `first` on. Number 0 reschedule, 1
    /// call a function, 2 the same for one CPU.
    IpiRaise {
        /// What the interrupt is for.
        nr: i32,
        /// CPU that bit 0 of `cpus` stands for.
        first: i32,
        /// Target CPUs, one bit each.
        cpus: u64,
    },

    /// A packet passes between network stack and interface.
    Net {
        /// In which direction.
        kind: NetKind,
        /// Name of the interface.
        netif: &'a [u8],
        /// Length of the packet.
        bytes: i64,
        /// Address of the socket buffer, which pairs events of one packet.
        skbaddr: Option<u64>,
        /// Result of the driver for [`NetKind::Transmit`]; 0 is success.
        ret: Option<i32>,
        /// Headers, where the source has them.
        headers: Option<NetHeaders>,
    },
    /// A packet that was sent again or thrown away.
    NetFault {
        /// What went wrong.
        kind: NetFaultKind,
        /// Address of the socket buffer.
        skbaddr: Option<u64>,
        /// Why it was thrown away, by the number of the traced kernel.
        reason: Option<i64>,
        /// What the frame carries (0x0800 for IPv4), where no headers tell more.
        ethertype: Option<u16>,
        /// Headers, where the source has them.
        headers: Option<NetHeaders>,
    },

    /// A lookup of a host name begins: the function that a program called.
    LookupBegin {
        /// Function that was called.
        function: Function,
        /// Host name to look up; `None` if there is none or it could not be read.
        host: Option<&'a [u8]>,
        /// Service name or port to look up.
        service: Option<&'a [u8]>,
    },
    /// It ends, having begun then.
    LookupEnd {
        /// When the function was entered.
        begun: Ns,
        /// Function that returned.
        function: Function,
        /// Host name, as at the beginning.
        host: Option<&'a [u8]>,
        /// Service name, as at the beginning.
        service: Option<&'a [u8]>,
        /// Whether a name was found, or the error.
        outcome: Outcome,
        /// The first of those found.
        address: Option<NetAddress>,
    },

    /// A function that was asked for is entered.
    FunctionBegin(FunctionCall<'a>),
    /// It returns.
    FunctionEnd {
        /// Number of the probe, as in [`FunctionCall::probe`].
        probe: u32,
        /// Stack pointer at its entry.
        sp: u64,
        /// Return value, read by the type that the probe was given; `None` if it was given none.
        ret: Option<i64>,
    },
    /// A static probe that was asked for is passed.
    Usdt(UsdtHit<'a>),

    /// Pages are allocated (`mm_page_alloc`).
    PageAlloc {
        /// 2^`order` pages.
        order: u32,
    },
    /// Pages are freed (`mm_page_free`).
    PageFree {
        /// 2^`order` pages.
        order: u32,
    },

    /// Something about memory that is counted: 2^`order` pages, for faults and wakeups once.
    Memory {
        /// What is counted.
        kind: MemoryKind,
        /// 2^`order` pages; 0 where single things are counted.
        order: u32,
    },
    /// Pages of files come into the page cache, or a file is told of.
    CacheFill(CacheFill<'a>),
    /// Pages are being freed because memory is short; the thread does nothing else meanwhile.
    ReclaimBegin {
        /// Kind of reclaim.
        kind: ReclaimKind,
        /// 2^`order` pages are wanted.
        order: Option<i32>,
        /// NUMA node.
        node: Option<i32>,
    },
    /// `pages` were freed.
    ReclaimEnd {
        /// Kind of reclaim, as at its beginning.
        kind: ReclaimKind,
        /// Pages that were freed; `None` where the source does not have it.
        pages: Option<i64>,
        /// NUMA node.
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

    /// State dump: a thread.
    StateProcess(StateProcess<'a>),
    /// Snapshot: what a process is.
    ProcessAbout(ProcessAbout<'a>),
    /// A descriptor: of process `pid`, or of `file_table` since lttng-modules 2.12.
    StateFd {
        /// Process that owns the descriptor.
        pid: Option<i32>,
        /// Identity of the file table that has the descriptor.
        file_table: Option<u64>,
        /// Descriptor number.
        fd: i32,
        /// Flags of the open.
        flags: Option<i64>,
        /// What it leads to: a path, or `socket:[…]` and the like.
        path: &'a [u8],
    },
    /// Working directory of a process.
    StateDirectory {
        /// Kernel process id.
        pid: i32,
        /// Absolute path.
        path: &'a [u8],
    },
    /// State dump: a block device and its name.
    StateBlockDevice {
        /// Kernel `dev_t` with 20 minor bits.
        dev: i64,
        /// Name without `/dev/`.
        name: &'a [u8],
    },
    /// Snapshot: what a block device is.
    StateDevice(StateDevice<'a>),
    /// `dev` lies on `below`.
    StateDeviceLink {
        /// Device above: a partition, a mapping, a RAID.
        dev: i64,
        /// Device below.
        below: i64,
        /// How it lies there, as the column `device_link.kind` has it.
        kind: &'a [u8],
    },
    /// Snapshot: a mount.
    StateMount(StateMount<'a>),
    /// Snapshot: a file of the resolver's configuration.
    StateResolverFile(StateResolverFile<'a>),
    /// Snapshot: counters that the recorder read.
    StateCounters(StateCounters<'a>),
    /// Counters that another tool reported.
    ToldCounters(ToldCounters<'a>),
    /// State dump: a network interface.
    StateNetInterface {
        /// Name of the interface.
        name: &'a [u8],
        /// Its index.
        ifindex: Option<i32>,
        /// Its IPv4 address.
        address: Option<[u8; 4]>,
    },
    /// State dump: the handler of a hard interrupt.
    StateIrq {
        /// Number of the interrupt.
        irq: i32,
        /// Name of the interrupt controller.
        name: &'a [u8],
        /// Name that the driver registered its handler with.
        action: &'a [u8],
    },
    /// State dump: nothing more follows, so what was not in it did not exist.
    StateEnd,

    /// A stack of the thread of the context.
    Stack(Stack<'a>),
    /// What a thread did, sampled by wall-clock time.
    Wall(WallLook<'a>),
    /// A wait for a lock of the kernel that is over.
    LockWait(LockWait<'a>),

    /// A mark of the user or a user-space tracepoint, its fields rendered as text.
    Marker {
        /// Name of the event; `mark` for a mark of the user.
        name: &'a str,
        /// Fields of the event, or the text of the mark.
        text: &'a str,
    },
    /// Counted by name and used for what its context tells about the thread.
    Other,
}
