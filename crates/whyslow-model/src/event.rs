//! Everything that a source can report: the events passed from importers (or the recorder) to the
//! trackers. Borrowed, flat and cheap to build; bytes are passed on as they are in the trace.

// tidy: long because each event and field is documented where it is declared.

mod loss;
mod net;
mod probe;
mod shift;
mod signal;
mod stack;
mod tcp;
mod work;

pub use loss::{Hidden, Loss, LossKind};
pub use net::{NetAddress, NetHeaders};
pub use probe::{FunctionCall, UsdtHit};
pub use signal::{Signal, SignalAction};
pub use stack::{Frame, LockKind, LockWait, Stack, StackKind, WallSample};
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
    ProcessAbout, ReportedCounters, StateCounters, StateDevice, StateMount, StateResolverFile,
};

use crate::Ns;
use crate::lookup::{Function, Outcome};

/// One event of one source, in time order when it reaches the trackers.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// Time, on the clock shared by all sources of an import.
    pub ts: Ns,
    /// CPU the event happened on.
    pub cpu: Option<i32>,
    /// Context recorded with the event, in addition to the payload.
    pub context: Context<'a>,
    /// Payload.
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

/// Arguments of a system call, by meaning. The table in [`crate::syscall`] defines which of them a
/// call has, and which argument they come from.
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
    /// Requested size in bytes.
    pub count: Option<i64>,
    /// File offset in bytes; for `mmap2` the page number times 4096.
    pub offset: Option<i64>,
    /// Open flags, mmap flags, dup3 flags, …
    pub flags: Option<i64>,
    /// Command of fcntl, ioctl, futex, epoll_ctl; mode of open.
    pub command: Option<i64>,
    /// Third argument of fcntl, value of futex, …
    pub value: Option<i64>,
    /// Address argument: mmap, munmap, msync, futex.
    pub address: Option<u64>,
    /// Second address argument of futex: the address that waiters are requeued to.
    pub address2: Option<u64>,
    /// Address of the futex timeout; 0 for none.
    pub timeout: Option<u64>,
    /// Socket family (domain) and type.
    pub family: Option<i32>,
    /// `SOCK_STREAM`, `SOCK_DGRAM`, …, with the flags passed to the call.
    pub socket_type: Option<i32>,
    /// Address passed to bind, connect and sendto, or returned by accept and recvfrom.
    pub socket_address: Option<SocketAddress<'a>>,
    /// Descriptors returned through memory (pipe, socketpair), on exit.
    pub fds: Option<[i32; 2]>,
    /// Signal or other plain arguments, by position, if nothing better is known.
    pub raw: Option<[u64; 6]>,
}

impl SyscallArgs<'_> {
    /// No argument is known. A static reference has any lifetime.
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

/// State of a thread after a switch away from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrevState {
    /// Runnable; `preempted` if the source reports that the switch was involuntary.
    Runnable {
        /// Lost its CPU (`R+`) rather than yielding it.
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
    /// `TASK_IDLE`: an uninterruptible sleep of kernel threads that does not count as load.
    Idle,
    /// Another state, as in the source.
    Unknown(i64),
}

/// The three wakeup tracepoints.
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
    /// Discarded blocks (discard, secure erase).
    Discard,
    /// A flush of the device's cache without data.
    Flush,
    /// Passthrough commands, zone operations and others without a letter of their own (`N`).
    Other,
}

/// `rwbs` of a block event, decoded from the mask or the text in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockFlags {
    /// Direction and kind.
    pub op: BlockOp,
    /// A thread waits for it (`REQ_SYNC`, letter `S`).
    pub sync: bool,
    /// File system metadata (`REQ_META`, letter `M`).
    pub meta: bool,
    /// Readahead (`REQ_RAHEAD`, letter `A`).
    pub ahead: bool,
    /// Completes only when it is on the medium (`REQ_FUA`, letter `F` after the direction).
    pub fua: bool,
    /// Preceded by a flush.
    pub preflush: bool,
    /// Secure erase (`REQ_OP_SECURE_ERASE`, letters `DE`).
    pub secure: bool,
}

impl BlockFlags {
    /// Letters, as the kernel prints them (`blk_fill_rwbs`).
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

/// Device, sector and size of a block event. `dev` is the kernel's `dev_t` with 20 minor bits.
#[derive(Debug, Clone, Copy)]
pub struct BlockRange<'a> {
    /// Disk; before the remap to a disk, the partition or mapping.
    pub dev: i64,
    /// First 512-byte sector on `dev`.
    pub sector: i64,
    /// Length in 512-byte sectors; 0 for a flush.
    pub sectors: i64,
    /// Bytes if the source reports them (passthrough commands); otherwise sectors × 512.
    pub bytes: Option<i64>,
    /// Type of I/O.
    pub flags: BlockFlags,
    /// Thread in the payload (`tid`), which some events have in addition to the context.
    pub tid: Option<i32>,
    /// Name of that thread, if the payload has it.
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
    /// An interrupt sent by another CPU (IPI).
    Ipi,
}

/// The packet tracepoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetKind {
    /// `netif_receive_skb`: the interface passed the packet to the network stack.
    Receive,
    /// `net_dev_queue`: the network stack passed the packet to the interface.
    Queue,
    /// `net_dev_xmit`: the driver returned.
    Transmit,
}

/// Counted memory events; rows of the table `page_count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryKind {
    /// A page fault in user mode.
    FaultUser,
    /// A page fault in kernel mode, such as a copy to an unmapped user buffer.
    FaultKernel,
    /// File pages added to the page cache.
    CacheAdd,
    /// File pages removed from the page cache.
    CacheRemove,
    /// Pages written by reclaim itself.
    ReclaimWrite,
    /// An allocation that found too little free memory woke kswapd.
    KswapdWakeup,
}

impl MemoryKind {
    /// All kinds, in the order of their numbers in a spool.
    pub const ALL: [Self; 6] = [
        Self::FaultUser,
        Self::FaultKernel,
        Self::CacheAdd,
        Self::CacheRemove,
        Self::ReclaimWrite,
        Self::KswapdWakeup,
    ];

    /// Name in the text format.
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

/// Kinds of page reclaim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReclaimKind {
    /// By a thread that allocates memory.
    Direct,
    /// By a thread whose cgroup is at its limit.
    Cgroup,
    /// Of a cgroup above its soft limit, within another kind of reclaim.
    CgroupSoft,
    /// By a thread that allocates memory of one NUMA node.
    Node,
    /// By kswapd, in the background.
    Kswapd,
}

impl ReclaimKind {
    /// All kinds, in the order of their numbers in a spool.
    pub const ALL: [Self; 5] = [
        Self::Direct,
        Self::Cgroup,
        Self::CgroupSoft,
        Self::Node,
        Self::Kswapd,
    ];

    /// Value of the column `reclaim.kind`.
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
    /// Scheduling status: running, waiting in the run queue, waiting, zombie, …
    pub status: Option<i64>,
    /// CPU of the thread.
    pub cpu: Option<i32>,
    /// Identity of its descriptor table, since lttng-modules 2.12.
    pub file_table: Option<u64>,
}

/// Payload of an event. Names follow the kernel's own events.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Body<'a> {
    /// A context switch on a CPU (`sched_switch`); id 0 is the idle thread of the CPU.
    SchedSwitch {
        /// Thread that is switched out.
        prev_tid: i32,
        /// Its name.
        prev_comm: &'a [u8],
        /// Its kernel priority.
        prev_prio: Option<i32>,
        /// Its state after the switch.
        prev_state: PrevState,
        /// Thread that is switched in.
        next_tid: i32,
        /// Its name.
        next_comm: &'a [u8],
        /// Its kernel priority.
        next_prio: Option<i32>,
    },
    /// A thread is woken by the thread of the context, or by an interrupt on its CPU.
    SchedWakeup {
        /// Which tracepoint.
        kind: WakeupKind,
        /// Thread that is woken.
        tid: i32,
        /// Its name.
        comm: &'a [u8],
        /// Its kernel priority.
        prio: Option<i32>,
        /// CPU that the thread is placed on.
        target_cpu: Option<i32>,
    },
    /// The scheduler migrates a thread that is runnable or about to be woken
    /// (`sched_migrate_task`).
    SchedMigrate {
        /// Thread that is migrated.
        tid: i32,
        /// Destination CPU.
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
        /// Its process: for a thread the same as the parent's, for a process its own id.
        child_pid: Option<i32>,
        /// Its name, initially that of the parent.
        child_comm: &'a [u8],
    },
    /// `tid` and `old_tid` differ if a thread other than the main one calls exec.
    Exec {
        /// Executed path, as passed.
        filename: &'a [u8],
        /// Thread id after exec: that of the process.
        tid: Option<i32>,
        /// Thread id before exec.
        old_tid: Option<i32>,
    },
    /// A thread exits (`sched_process_exit`); it may remain as a zombie until [`Body::Free`].
    Exit {
        /// Thread that exits.
        tid: i32,
        /// Its name.
        comm: &'a [u8],
    },
    /// The kernel freed the thread; its id may be reused.
    Free {
        /// Thread that was freed.
        tid: i32,
    },
    /// A thread is renamed (`task_rename`, `PR_SET_NAME`).
    CommChange {
        /// Thread that is renamed.
        tid: i32,
        /// Its new name.
        comm: &'a [u8],
    },
    /// The priority of a thread changes (`sched_pi_setprio`).
    PrioChange {
        /// Thread whose priority changes.
        tid: i32,
        /// Its new kernel priority.
        prio: i32,
    },

    /// `name` has no prefix (`openat`); for calls known by number only, it is the number as text.
    SyscallEnter {
        /// Name in the source.
        name: &'a str,
        /// Number in the traced architecture.
        nr: Option<i32>,
        /// Entered through the 32-bit table.
        compat: bool,
        /// Arguments known at entry.
        args: &'a SyscallArgs<'a>,
    },
    /// `name` is `None` for sources whose exit events have no name (`exit_syscall`).
    SyscallExit {
        /// Name in the source.
        name: Option<&'a str>,
        /// Number in the traced architecture.
        nr: Option<i32>,
        /// Entered through the 32-bit table.
        compat: bool,
        /// Return value, a negative errno on failure; `None` if the source does not report it.
        ret: Option<i64>,
        /// Arguments known only on return: what the kernel wrote to memory.
        args: &'a SyscallArgs<'a>,
        /// Whether the timestamp is that of the return; otherwise the call returned then or later.
        is_timed: bool,
    },

    /// A bio enters the block layer (`block_bio_queue`).
    BlockBioQueue(BlockRange<'a>),
    /// A bio is merged at the back of a request (`block_bio_backmerge`).
    BlockBioBackmerge(BlockRange<'a>),
    /// A bio is merged at the front of a request (`block_bio_frontmerge`).
    BlockBioFrontmerge(BlockRange<'a>),
    /// A bio completes (`block_bio_complete`); for devices without a request queue this is the only
    /// completion.
    BlockBioComplete {
        /// The bio.
        range: BlockRange<'a>,
        /// Positive errno; 0 is success.
        error: Option<i32>,
    },
    /// I/O to `old_dev`/`old_sector` continues as `range`.
    BlockBioRemap {
        /// Range after the remap.
        range: BlockRange<'a>,
        /// Original device, such as a partition or a mapping.
        old_dev: i64,
        /// Sector on that device.
        old_sector: i64,
    },
    /// A bio is too large for the device and is split (`block_split`).
    BlockSplit {
        /// The first part.
        range: BlockRange<'a>,
        /// First sector of the rest.
        new_sector: i64,
    },
    /// A request is allocated (`block_getrq`).
    BlockGetRq(BlockRange<'a>),
    /// A request enters the I/O scheduler (`block_rq_insert`).
    BlockRqInsert(BlockRange<'a>),
    /// A request is issued to the driver (`block_rq_issue`).
    BlockRqIssue(BlockRange<'a>),
    /// A request is merged into another one (`block_rq_merge`).
    BlockRqMerge(BlockRange<'a>),
    /// The driver returns a request to the queue (`block_rq_requeue`).
    BlockRqRequeue(BlockRange<'a>),
    /// A request completes, in whole or in part (`block_rq_complete`).
    BlockRqComplete {
        /// The completed sectors.
        range: BlockRange<'a>,
        /// Positive errno; 0 is success.
        error: Option<i32>,
    },

    /// Entry to an interrupt handler on the CPU of the event.
    IrqEnter {
        /// Kind of handler.
        kind: IrqKind,
        /// Number of the interrupt or softirq vector, or of the IPI as in [`Body::IpiRaise`].
        nr: i32,
        /// Name of the device action, if the source has it.
        name: Option<&'a [u8]>,
    },
    /// Exit from an interrupt handler on the CPU of the event.
    IrqExit {
        /// Kind of handler.
        kind: IrqKind,
        /// Number as at its entry.
        nr: i32,
        /// Return value of a hard interrupt handler: 1 if it handled the interrupt.
        ret: Option<i32>,
    },
    /// A softirq is marked pending on the CPU of the event (`softirq_raise`).
    SoftirqRaise {
        /// Softirq vector.
        nr: i32,
    },
    /// A CPU sends an IPI to the CPUs whose bits are set, counted from `first`. Number 0 is
    /// reschedule, 1 function call, 2 function call on a single CPU.
    IpiRaise {
        /// Number, as above.
        nr: i32,
        /// CPU that bit 0 of `cpus` stands for.
        first: i32,
        /// Target CPUs, one bit each.
        cpus: u64,
    },

    /// A packet passes between network stack and interface.
    Net {
        /// Direction.
        kind: NetKind,
        /// Name of the interface.
        netif: &'a [u8],
        /// Length of the packet.
        bytes: i64,
        /// Address of the socket buffer, which pairs events of one packet.
        skbaddr: Option<u64>,
        /// Result of the driver for [`NetKind::Transmit`]; 0 is success.
        ret: Option<i32>,
        /// Headers, if the source has them.
        headers: Option<NetHeaders>,
    },
    /// A packet that was retransmitted or dropped.
    NetFault {
        /// Kind of fault.
        kind: NetFaultKind,
        /// Address of the socket buffer.
        skbaddr: Option<u64>,
        /// Drop reason, by the number in the traced kernel.
        reason: Option<i64>,
        /// Ethertype of the frame (0x0800 for IPv4), if there are no headers.
        ethertype: Option<u16>,
        /// Headers, if the source has them.
        headers: Option<NetHeaders>,
    },

    /// Start of a DNS lookup: entry to the function called by a program.
    LookupBegin {
        /// Function that was called.
        function: Function,
        /// Host name to look up; `None` if there is none or it could not be read.
        host: Option<&'a [u8]>,
        /// Service name or port to look up.
        service: Option<&'a [u8]>,
    },
    /// End of a DNS lookup.
    LookupEnd {
        /// Time of entry to the function.
        begun: Ns,
        /// Function that returned.
        function: Function,
        /// Host name, as at the start.
        host: Option<&'a [u8]>,
        /// Service name, as at the start.
        service: Option<&'a [u8]>,
        /// Whether a name was found, or the error.
        outcome: Outcome,
        /// The first address found.
        address: Option<NetAddress>,
    },

    /// Entry to a probed function.
    FunctionBegin(FunctionCall<'a>),
    /// Return from a probed function.
    FunctionEnd {
        /// Number of the probe, as in [`FunctionCall::probe`].
        probe: u32,
        /// Stack pointer at its entry.
        sp: u64,
        /// Return value, converted to the type specified for the probe; `None` without a type.
        ret: Option<i64>,
    },
    /// Hit of a USDT probe.
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

    /// A counted memory event: 2^`order` pages, or a single fault or wakeup.
    Memory {
        /// What is counted.
        kind: MemoryKind,
        /// 2^`order` pages; 0 for single events.
        order: u32,
    },
    /// Pages are added to the page cache, or the path of a file is reported.
    CacheFill(CacheFill<'a>),
    /// Start of page reclaim; the thread does nothing else until the end.
    ReclaimBegin {
        /// Kind of reclaim.
        kind: ReclaimKind,
        /// 2^`order` pages are requested.
        order: Option<i32>,
        /// NUMA node.
        node: Option<i32>,
    },
    /// End of page reclaim.
    ReclaimEnd {
        /// Kind of reclaim, as at the start.
        kind: ReclaimKind,
        /// Pages that were freed; `None` if the source does not report it.
        pages: Option<i64>,
        /// NUMA node.
        node: Option<i32>,
    },

    /// Kernel work that threads wait for.
    Work(Work<'a>),
    /// A signal is generated by the thread of the context.
    Signal(Signal),
    /// A signal is delivered to the thread of the context.
    SignalDelivered(Signal),

    /// State change of a TCP connection.
    Tcp(TcpChange),

    /// A workqueue item.
    WorkItem(WorkItem<'a>),

    /// State dump: a thread.
    StateProcess(StateProcess<'a>),
    /// Snapshot: properties of a process.
    ProcessAbout(ProcessAbout<'a>),
    /// State dump: a descriptor of process `pid`, or of `file_table` since lttng-modules 2.12.
    StateFd {
        /// Process that owns the descriptor.
        pid: Option<i32>,
        /// Identity of the descriptor table.
        file_table: Option<u64>,
        /// Descriptor number.
        fd: i32,
        /// Flags of the open.
        flags: Option<i64>,
        /// Object that it refers to: a path, or `socket:[…]` and similar.
        path: &'a [u8],
    },
    /// State dump: working directory of a process.
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
    /// Snapshot: properties of a block device.
    StateDevice(StateDevice<'a>),
    /// Snapshot: `dev` is stacked on `below`.
    StateDeviceLink {
        /// Upper device: a partition, a mapping, a RAID.
        dev: i64,
        /// Underlying device.
        below: i64,
        /// Relation, as in the column `device_link.kind`.
        kind: &'a [u8],
    },
    /// Snapshot: a mount.
    StateMount(StateMount<'a>),
    /// Snapshot: a file of the resolver configuration.
    StateResolverFile(StateResolverFile<'a>),
    /// Snapshot: counters that the recorder read.
    StateCounters(StateCounters<'a>),
    /// Counters reported by another tool.
    ReportedCounters(ReportedCounters<'a>),
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
        /// Name that the driver registered its handler under.
        action: &'a [u8],
    },
    /// End of a state dump: what was not in it did not exist.
    StateEnd,

    /// A stack of the thread of the context.
    Stack(Stack<'a>),
    /// A wall-clock sample of a thread.
    Wall(WallSample<'a>),
    /// A kernel lock wait, at its end.
    LockWait(LockWait<'a>),

    /// A marker added by a user, or an event of a user-space tracepoint with its fields as text.
    Marker {
        /// Name of the event; `mark` for a user's marker.
        name: &'a str,
        /// Fields of the event, or the text of the marker.
        text: &'a str,
    },
    /// Counted by name; its context is used to identify the thread.
    Other,
}
