//! Records: data from the BPF programs (`wire.h` of the recorder has the same layouts), and data
//! that the recorder itself collected.

// tidy: long because each kind of record is documented where it is declared.

use super::block_io::BlockIo;
pub(super) use super::cursor::Cursor;
use super::fill::FillRecord;
use super::host::{HostRecord, host};
use super::lookup::LookupRecord;
use super::net::{NetRecord, TcpRecord};
use super::probe::{FunctionEndRecord, FunctionRecord, ProbeRecord, UsdtRecord};
use super::signal;
use super::stack::{self, LockRecord, MissedRecord, NameRecord, StackRecord};
use super::wall::{self, CodeRecord, RoundRecord, WallRecord};
use super::work::{ReclaimRecord, WorkItemRecord, WorkRecord};
use crate::event::Signal;

/// Size of a record head in bytes.
pub const HEAD_BYTES: usize = 24;
/// Type of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
pub enum Kind {
    /// A system call at its return ([`Record::Syscall`]).
    Syscall = 1,
    /// A system call at its entry, if entry and return are recorded separately.
    SyscallEnter = 2,
    /// A text that an argument of the next call points to.
    Text = 3,
    /// Bytes that an argument of the next call points to.
    Bytes = 4,
    /// `sched_switch`.
    Switch = 16,
    /// `sched_waking`.
    Waking = 17,
    /// `sched_wakeup_new`.
    WakeupNew = 18,
    /// `sched_process_fork`.
    Fork = 19,
    /// `sched_process_exec`.
    Exec = 20,
    /// `sched_process_exit`.
    Exit = 21,
    /// `sched_process_free`.
    Free = 22,
    /// `task_rename`.
    Comm = 23,
    /// `signal_generate`.
    Signal = 24,
    /// `signal_deliver`.
    SignalDelivered = 25,
    /// `block_bio_queue`.
    BioQueue = 32,
    /// `block_bio_backmerge`.
    BioBackmerge = 33,
    /// `block_bio_frontmerge`.
    BioFrontmerge = 34,
    /// `block_bio_complete`.
    BioComplete = 35,
    /// `block_bio_remap`.
    BioRemap = 36,
    /// `block_split`.
    BioSplit = 37,
    /// `block_getrq`.
    GetRq = 38,
    /// `block_rq_insert`.
    RqInsert = 39,
    /// `block_rq_issue`.
    RqIssue = 40,
    /// `block_rq_merge`.
    RqMerge = 41,
    /// `block_rq_requeue`.
    RqRequeue = 42,
    /// `block_rq_complete`.
    RqComplete = 43,
    /// Entry of an interrupt handler.
    IrqEnter = 48,
    /// Exit of an interrupt handler.
    IrqExit = 49,
    /// `softirq_raise`.
    SoftirqRaise = 50,
    /// A CPU sends an IPI to other CPUs.
    Ipi = 51,
    /// Entry to a libc function that makes DNS lookups.
    LookupBegin = 64,
    /// Return from it.
    Lookup = 65,
    /// Entry to a probed function.
    FunctionBegin = 66,
    /// Return from it.
    FunctionEnd = 67,
    /// Hit of a USDT probe.
    Usdt = 68,
    /// Stack of a thread that runs again after an off-CPU interval.
    Stack = 56,
    /// User stack of a thread at the return of its system call.
    UserStack = 57,
    /// Stack of a running thread, from the CPU clock sampler.
    Sample = 58,
    /// End of a contended kernel lock wait.
    Lock = 59,
    /// Activity of a thread, sampled by wall-clock time.
    Wall = 60,
    // 61 is used only between the BPF programs and the recorder.
    /// End of a round of wall-clock samples.
    Round = 62,
    /// Start of page reclaim.
    ReclaimBegin = 72,
    /// End of page reclaim.
    ReclaimEnd = 73,
    /// Counted memory events, such as page faults.
    Memory = 74,
    /// File pages were added to the page cache.
    Fill = 75,
    /// Path of an inode.
    Inode = 76,
    /// A phase of kernel work that threads wait for.
    Work = 80,
    /// A phase of a workqueue item.
    WorkItem = 81,
    /// A packet.
    Net = 96,
    /// State change of a TCP connection.
    Tcp = 97,
    /// Snapshot: other clocks at the time in the head.
    Clock = 128,
    /// A named property of the machine or the recording.
    Fact = 129,
    /// Snapshot: a process.
    Process = 130,
    /// Snapshot: a thread.
    Thread = 131,
    /// Snapshot: a file descriptor.
    Fd = 132,
    /// Snapshot: a block device and its name.
    BlockDevice = 133,
    /// Snapshot: a network interface.
    NetInterface = 134,
    /// End of a complete snapshot.
    SnapshotEnd = 135,
    /// Records that were lost.
    Lost = 136,
    /// A marker added by the user or by the recorder.
    Mark = 137,
    /// Snapshot: name of an interrupt.
    Irq = 138,
    /// Symbol of an address.
    Name = 150,
    /// Runs of a BPF program that the kernel skipped.
    Missed = 151,
    /// Function with a number instead of an address.
    Code = 153,
    /// Declaration of a probe.
    Probe = 152,
    /// Properties of a process, when it executes a program and when it ends.
    Program = 139,
    /// Name of a user id.
    User = 140,
    /// Snapshot: a mount.
    Mount = 141,
    /// Snapshot: properties of a block device.
    DeviceAbout = 142,
    /// Snapshot: a device is stacked on another one.
    DeviceLink = 143,
    /// Values of counters.
    Counters = 144,
    /// Path of a cgroup.
    Cgroup = 145,
    /// Snapshot: a file of the resolver configuration.
    ResolverFile = 146,
    /// Root directory of a process.
    Root = 147,
}

impl Kind {
    /// All kinds; records with other numbers are [`RecordError::Kind`].
    pub const ALL: &[Kind] = &[
        Kind::Syscall,
        Kind::SyscallEnter,
        Kind::Text,
        Kind::Bytes,
        Kind::Switch,
        Kind::Waking,
        Kind::WakeupNew,
        Kind::Fork,
        Kind::Exec,
        Kind::Exit,
        Kind::Free,
        Kind::Comm,
        Kind::Signal,
        Kind::SignalDelivered,
        Kind::BioQueue,
        Kind::BioBackmerge,
        Kind::BioFrontmerge,
        Kind::BioComplete,
        Kind::BioRemap,
        Kind::BioSplit,
        Kind::GetRq,
        Kind::RqInsert,
        Kind::RqIssue,
        Kind::RqMerge,
        Kind::RqRequeue,
        Kind::RqComplete,
        Kind::IrqEnter,
        Kind::IrqExit,
        Kind::SoftirqRaise,
        Kind::Ipi,
        Kind::LookupBegin,
        Kind::Lookup,
        Kind::FunctionBegin,
        Kind::FunctionEnd,
        Kind::Usdt,
        Kind::Stack,
        Kind::UserStack,
        Kind::Sample,
        Kind::Lock,
        Kind::Wall,
        Kind::Round,
        Kind::ReclaimBegin,
        Kind::ReclaimEnd,
        Kind::Memory,
        Kind::Fill,
        Kind::Inode,
        Kind::Work,
        Kind::WorkItem,
        Kind::Net,
        Kind::Tcp,
        Kind::Clock,
        Kind::Fact,
        Kind::Process,
        Kind::Thread,
        Kind::Fd,
        Kind::BlockDevice,
        Kind::NetInterface,
        Kind::SnapshotEnd,
        Kind::Lost,
        Kind::Mark,
        Kind::Irq,
        Kind::Name,
        Kind::Missed,
        Kind::Code,
        Kind::Probe,
        Kind::Program,
        Kind::User,
        Kind::Mount,
        Kind::DeviceAbout,
        Kind::DeviceLink,
        Kind::Counters,
        Kind::Cgroup,
        Kind::ResolverFile,
        Kind::Root,
    ];

    fn of(number: u16) -> Option<Kind> {
        BY_NUMBER.get(usize::from(number)).copied().flatten()
    }
}

/// Used for every record, so it is an array rather than a search.
static BY_NUMBER: [Option<Kind>; 256] = {
    let mut kinds = [None; 256];
    let mut place = 0;
    while place < Kind::ALL.len() {
        kinds[Kind::ALL[place] as usize] = Some(Kind::ALL[place]);
        place += 1;
    }
    kinds
};

/// Head of every record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Kind of the record, which defines what follows the head.
    pub kind: Kind,
    /// Size of the record in bytes, including the head.
    pub len: u16,
    /// CPU that the record was made on.
    pub cpu: u16,
    /// Bits [`COMPAT`](super::COMPAT) to [`IN_HARDIRQ`](super::IN_HARDIRQ).
    pub flags: u16,
    /// CLOCK_MONOTONIC in ns.
    pub ts: u64,
    /// Running thread.
    pub tid: i32,
    /// Kernel process id (thread group) of that thread; 0 for records of no process.
    pub pid: i32,
}

/// Why bytes are not a record. After all errors but [`RecordError::Length`], the following records
/// remain readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The length in the head is impossible; the start of the next record is unknown.
    #[error("a record of {0} bytes exceeds the rest of its block")]
    Length(usize),
    /// Written by a later version.
    #[error("unknown record kind {0}")]
    Kind(u16),
    /// The payload ends before all fields of its kind.
    #[error("a record of kind {0:?} is truncated")]
    Short(Kind),
}

/// A system call, at its return or at its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyscallRecord {
    /// Time of the entry, CLOCK_MONOTONIC in ns.
    pub entered: u64,
    /// Return value, a negative errno on failure; 0 at an entry.
    pub ret: i64,
    /// Number of the call, in the table selected by [`COMPAT`](super::COMPAT).
    pub nr: u32,
    /// By register; 0 if not recorded.
    pub args: [u64; 6],
}

/// Data that an argument of the thread's next call points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextRecord<'b> {
    /// Number of the argument, starting at 1.
    pub arg: u32,
    /// The text without its terminating zero byte, or the bytes; possibly truncated.
    pub bytes: &'b [u8],
}

/// A context switch away from the head's thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    /// Thread that is switched in.
    pub next_tid: i32,
    /// Its process.
    pub next_pid: i32,
    /// The kernel's value, or [`Switch::PREEMPTED`].
    pub prev_state: u32,
    /// Kernel priority of the previous thread.
    pub prev_prio: u16,
    /// Kernel priority of the next thread.
    pub next_prio: u16,
}

impl Switch {
    /// Value of `prev_state` for a thread that was runnable and lost its CPU.
    pub const PREEMPTED: u32 = 1 << 31;
}

/// A thread is woken, by the head's thread or an interrupt on its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wakeup {
    /// Thread that is woken.
    pub tid: i32,
    /// Its process.
    pub pid: i32,
    /// Its kernel priority.
    pub prio: u16,
    /// CPU that it is placed on; `None` if unknown.
    pub target_cpu: Option<u16>,
}

/// A thread that is created, renamed or exits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task<'b> {
    /// Kernel thread id; for a fork that of the child.
    pub tid: i32,
    /// Its process.
    pub pid: i32,
    /// Its name; for a rename the new one.
    pub comm: &'b [u8],
}

/// The content of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record<'b> {
    /// Kind `Syscall`: the call returned at the time in the head.
    Syscall(SyscallRecord),
    /// Kind `SyscallEnter`: the call was entered at the time in the head.
    SyscallEnter(SyscallRecord),
    /// Kind `Text`.
    Text(TextRecord<'b>),
    /// Kind `Bytes`.
    Bytes(TextRecord<'b>),
    /// Kind `Switch`.
    Switch(Switch),
    /// Kind `Waking`.
    Waking(Wakeup),
    /// Kind `WakeupNew`.
    WakeupNew(Wakeup),
    /// Kind `Fork`: the head's thread creates this one.
    Fork(Task<'b>),
    /// Kind `Exec`. The argument number is the previous id of the thread.
    Exec(TextRecord<'b>),
    /// Kind `Exit`.
    Exit(Task<'b>),
    /// Kind `Free`: the kernel freed the thread; its id may be reused.
    Free(Task<'b>),
    /// Kind `Comm`: the new name of the thread.
    Comm(Task<'b>),
    /// Kind `Signal` or `SignalDelivered`.
    Signal(Signal),
    /// Kinds `BioQueue` to `RqComplete`.
    Block(BlockIo),
    /// Kind `ReclaimBegin` or `ReclaimEnd`.
    Reclaim(ReclaimRecord),
    /// Kind `Memory`.
    Memory {
        /// Index in [`MemoryKind::ALL`](crate::event::MemoryKind::ALL).
        what: u32,
        /// 2^`order` pages.
        order: u32,
    },
    /// Kind `Fill` or `Inode`.
    Fill(FillRecord<'b>),
    /// Kind `Work`.
    Work(WorkRecord<'b>),
    /// Kind `WorkItem`.
    WorkItem(WorkItemRecord<'b>),
    /// Kind `Net`.
    Net(NetRecord<'b>),
    /// Kind `Tcp`.
    Tcp(TcpRecord),
    /// The head's CPU sends an IPI to the CPUs whose bits are set, counted from `first`. Number 0
    /// is reschedule, 1 function call, 2 function call on a single CPU.
    Ipi {
        /// Number, as above.
        nr: u32,
        /// CPU that bit 0 of `cpus` stands for.
        first: u32,
        /// Target CPUs, one bit each.
        cpus: u64,
    },
    /// Entry to an interrupt handler. Kind 0 hard, 1 soft, 2 high-resolution timer, 3 IPI.
    IrqEnter {
        /// Kind of handler.
        kind: u32,
        /// Number of the interrupt or softirq vector.
        nr: u32,
    },
    /// Exit from an interrupt handler.
    IrqExit {
        /// As at its entry.
        kind: u32,
        /// As at its entry.
        nr: u32,
        /// Return value of a hard interrupt handler.
        ret: i32,
    },
    /// A softirq is marked pending on the head's CPU.
    SoftirqRaise {
        /// Softirq vector.
        nr: u32,
    },
    /// Kind `LookupBegin` or `Lookup`.
    Lookup(LookupRecord<'b>),
    /// Kind `FunctionBegin`.
    Function(FunctionRecord<'b>),
    /// Kind `FunctionEnd`.
    FunctionEnd(FunctionEndRecord),
    /// Kind `Usdt`.
    Usdt(UsdtRecord<'b>),
    /// Kind `Probe`.
    Probe(ProbeRecord<'b>),
    /// Other clocks at the time in the head.
    Clock {
        /// CLOCK_BOOTTIME in ns.
        boot: u64,
        /// CLOCK_REALTIME in ns since the epoch.
        real: i64,
    },
    /// A named property of the machine or the recording.
    Fact {
        /// Name, such as `host`.
        name: &'b [u8],
        /// Value as text.
        value: &'b [u8],
    },
    /// Snapshot of the head's process.
    Process {
        /// Process id of the parent.
        ppid: i32,
        /// User id.
        uid: u32,
        /// Creation time since boot, ns.
        started: u64,
        /// Mount namespace number; 0 if it is not reported.
        mount_ns: u32,
        /// Path of the executable; empty if it could not be read.
        executable: &'b [u8],
        /// Arguments, each terminated by a zero byte.
        command_line: &'b [u8],
        /// Path of its cgroup.
        cgroup: &'b [u8],
    },
    /// Snapshot of the head's thread.
    Thread {
        /// State letter, as in `/proc/PID/stat`.
        state: u8,
        /// Its name.
        comm: &'b [u8],
    },
    /// A descriptor of the head's process; -100 (`AT_FDCWD`) is its working directory.
    Fd {
        /// Descriptor number.
        fd: i32,
        /// Flags of the open.
        flags: u64,
        /// Object that it refers to: a path, or `socket:[…]` and similar.
        path: &'b [u8],
    },
    /// Kind `BlockDevice`.
    BlockDevice {
        /// Kernel `dev_t` with 20 minor bits.
        dev: u32,
        /// Name without `/dev/`.
        name: &'b [u8],
    },
    /// Kind `NetInterface`.
    NetInterface {
        /// Index of the interface.
        index: u32,
        /// IPv4 address in network byte order; zeros without one.
        address: [u8; 4],
        /// Name of the interface.
        name: &'b [u8],
    },
    /// Kind `Irq`.
    Irq {
        /// Number of the interrupt.
        nr: u32,
        /// Name that the driver registered its handler under.
        name: &'b [u8],
    },
    /// Kind `SnapshotEnd`: what was not in the snapshot did not exist.
    SnapshotEnd,
    /// Records of the head's CPU that did not fit into a buffer.
    Lost {
        /// Start of the range: nothing was lost before this time, CLOCK_MONOTONIC in ns.
        from: u64,
        /// End of the range: nothing was lost after this time.
        to: u64,
        /// Number of records.
        count: u64,
    },
    /// Kind `Mark`; process 0 if the recorder added it.
    Mark {
        /// Text of the marker, normally UTF-8.
        text: &'b [u8],
    },
    /// Kind `Stack`, `UserStack` or `Sample`.
    Stack(StackRecord<'b>),
    /// Kind `Lock`.
    Lock(LockRecord<'b>),
    /// Kind `Wall`.
    Wall(WallRecord<'b>),
    /// Kind `Round`.
    Round(RoundRecord),
    /// Kind `Code`.
    Code(CodeRecord<'b>),
    /// Kind `Name`.
    Name(NameRecord<'b>),
    /// Kind `Missed`.
    Missed(MissedRecord<'b>),
    /// Kinds `Program`, `User`, `Mount`, `DeviceAbout`, `DeviceLink`, `Counters`, `Cgroup`,
    /// `ResolverFile`, `Root`.
    Host(HostRecord<'b>),
}

/// The records of a payload, up to the first one with an impossible length.
pub fn records(
    payload: &[u8],
) -> impl Iterator<Item = (usize, Result<(Head, Record<'_>), RecordError>)> {
    let mut at = 0;
    let mut is_damaged = false;
    std::iter::from_fn(move || {
        if is_damaged || at >= payload.len() {
            return None;
        }
        let (begin, rest) = (at, &payload[at..]);
        let found = cut(rest).and_then(|(kind, bytes)| {
            at += bytes.len();
            parse(kind, bytes)
        });
        // After a bad length the start of the next record is unknown.
        is_damaged = matches!(found, Err(RecordError::Length(_)));
        if let Err(RecordError::Kind(_)) = found {
            at += usize::from(u16::from_le_bytes([rest[2], rest[3]]));
        }
        Some((begin, found))
    })
}

fn cut(rest: &[u8]) -> Result<(Kind, &[u8]), RecordError> {
    let head = rest
        .get(..HEAD_BYTES)
        .ok_or(RecordError::Length(rest.len()))?;
    let len = usize::from(u16::from_le_bytes([head[2], head[3]]));
    let bytes = rest.get(..len).filter(|bytes| bytes.len() >= HEAD_BYTES);
    let bytes = bytes.ok_or(RecordError::Length(len))?;
    let number = u16::from_le_bytes([head[0], head[1]]);
    Ok((Kind::of(number).ok_or(RecordError::Kind(number))?, bytes))
}

fn parse(kind: Kind, bytes: &[u8]) -> Result<(Head, Record<'_>), RecordError> {
    let mut cursor = Cursor { kind, rest: bytes };
    let at = &mut cursor;
    at.u16()?;
    let head = Head {
        kind,
        len: at.u16()?,
        cpu: at.u16()?,
        flags: at.u16()?,
        ts: at.u64()?,
        tid: at.i32()?,
        pid: at.i32()?,
    };
    Ok((head, body(kind, at)?))
}

fn body<'b>(kind: Kind, at: &mut Cursor<'b>) -> Result<Record<'b>, RecordError> {
    Ok(match kind {
        Kind::Syscall => Record::Syscall(syscall(at)?),
        Kind::SyscallEnter => Record::SyscallEnter(syscall(at)?),
        Kind::Text => Record::Text(text(at)?),
        Kind::Bytes => Record::Bytes(text(at)?),
        Kind::Exec => Record::Exec(text(at)?),
        Kind::Switch => Record::Switch(Switch {
            next_tid: at.i32()?,
            next_pid: at.i32()?,
            prev_state: at.u32()?,
            prev_prio: at.u16()?,
            next_prio: at.u16()?,
        }),
        Kind::Waking => Record::Waking(wakeup(at)?),
        Kind::WakeupNew => Record::WakeupNew(wakeup(at)?),
        Kind::Fork => Record::Fork(task(at)?),
        Kind::Exit => Record::Exit(task(at)?),
        Kind::Free => Record::Free(task(at)?),
        Kind::Comm => Record::Comm(task(at)?),
        Kind::Signal | Kind::SignalDelivered => Record::Signal(signal::signal(at)?),
        Kind::BioQueue
        | Kind::BioBackmerge
        | Kind::BioFrontmerge
        | Kind::BioComplete
        | Kind::BioRemap
        | Kind::BioSplit
        | Kind::GetRq
        | Kind::RqInsert
        | Kind::RqIssue
        | Kind::RqMerge
        | Kind::RqRequeue
        | Kind::RqComplete => Record::Block(BlockIo::take(at)?),
        Kind::IrqEnter | Kind::IrqExit | Kind::SoftirqRaise => signal::irq(kind, at)?,
        Kind::Stack | Kind::UserStack | Kind::Sample => Record::Stack(stack::stack(at)?),
        Kind::Lock => Record::Lock(stack::lock(at)?),
        Kind::Wall | Kind::Round | Kind::Code => wall::record(kind, at)?,
        Kind::Name => Record::Name(stack::name(at)?),
        Kind::Missed => Record::Missed(stack::missed(at)?),
        Kind::Program
        | Kind::User
        | Kind::Mount
        | Kind::DeviceAbout
        | Kind::DeviceLink
        | Kind::Counters
        | Kind::Cgroup
        | Kind::ResolverFile
        | Kind::Root => Record::Host(host(kind, at)?),
        Kind::LookupBegin | Kind::Lookup => Record::Lookup(LookupRecord::parse(at)?),
        Kind::FunctionBegin => Record::Function(FunctionRecord::take(at)?),
        Kind::FunctionEnd => Record::FunctionEnd(FunctionEndRecord::take(at)?),
        Kind::Usdt => Record::Usdt(UsdtRecord::take(at)?),
        Kind::Probe => Record::Probe(ProbeRecord::take(at)?),
        Kind::ReclaimBegin | Kind::ReclaimEnd => Record::Reclaim(ReclaimRecord::take(at)?),
        Kind::Ipi => Record::Ipi {
            nr: at.u32()?,
            first: at.u32()?,
            cpus: at.u64()?,
        },
        Kind::Memory => Record::Memory {
            what: at.u32()?,
            order: at.u32()?,
        },
        Kind::Fill | Kind::Inode => Record::Fill(FillRecord::take(kind, at)?),
        Kind::Work => Record::Work(WorkRecord::take(at)?),
        Kind::WorkItem => Record::WorkItem(WorkItemRecord::take(at)?),
        Kind::Net => Record::Net(NetRecord::take(at)?),
        Kind::Tcp => Record::Tcp(TcpRecord::take(at)?),
        _ => snapshot(kind, at)?,
    })
}

fn snapshot<'b>(kind: Kind, at: &mut Cursor<'b>) -> Result<Record<'b>, RecordError> {
    Ok(match kind {
        Kind::Clock => Record::Clock {
            boot: at.u64()?,
            real: at.i64()?,
        },
        Kind::Fact => Record::Fact {
            name: at.text()?,
            value: at.text()?,
        },
        Kind::Process => Record::Process {
            ppid: at.i32()?,
            uid: at.u32()?,
            started: at.u64()?,
            mount_ns: at.u32()?,
            executable: at.text()?,
            command_line: at.text()?,
            cgroup: at.text()?,
        },
        Kind::Thread => Record::Thread {
            state: at.u32()? as u8,
            comm: at.text()?,
        },
        Kind::Fd => Record::Fd {
            fd: at.i32()?,
            flags: at.u64()?,
            path: at.text()?,
        },
        Kind::BlockDevice => Record::BlockDevice {
            dev: at.u32()?,
            name: at.text()?,
        },
        Kind::NetInterface => Record::NetInterface {
            index: at.u32()?,
            address: at.array()?,
            name: at.text()?,
        },
        Kind::Irq => Record::Irq {
            nr: at.u32()?,
            name: at.text()?,
        },
        Kind::Lost => Record::Lost {
            from: at.u64()?,
            to: at.u64()?,
            count: at.u64()?,
        },
        Kind::Mark => Record::Mark { text: at.text()? },
        _ => Record::SnapshotEnd,
    })
}

fn syscall(at: &mut Cursor<'_>) -> Result<SyscallRecord, RecordError> {
    let mut record = SyscallRecord {
        entered: at.u64()?,
        ret: at.i64()?,
        nr: at.u32()?,
        args: [0; 6],
    };
    let count = at.u32()? as usize;
    let args = record.args.get_mut(..count);
    for arg in args.ok_or(RecordError::Short(at.kind))? {
        *arg = at.u64()?;
    }
    Ok(record)
}

fn text<'b>(at: &mut Cursor<'b>) -> Result<TextRecord<'b>, RecordError> {
    Ok(TextRecord {
        arg: at.u32()?,
        bytes: at.text()?,
    })
}

fn wakeup(at: &mut Cursor<'_>) -> Result<Wakeup, RecordError> {
    Ok(Wakeup {
        tid: at.i32()?,
        pid: at.i32()?,
        prio: at.u16()?,
        target_cpu: Some(at.u16()?).filter(|cpu| *cpu != u16::MAX),
    })
}

fn task<'b>(at: &mut Cursor<'b>) -> Result<Task<'b>, RecordError> {
    Ok(Task {
        tid: at.i32()?,
        pid: at.i32()?,
        comm: at.comm()?,
    })
}
