//! Records: what the programs in the kernel tell (`wire.h` of the recorder has the same layouts),
//! and what the recorder itself saw.

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

/// Bytes of a head.
pub const HEAD_BYTES: usize = 24;
/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
pub enum Kind {
    /// A system call at its return ([`Record::Syscall`]).
    Syscall = 1,
    /// A system call at its entry, where the two are recorded apart.
    SyscallEnter = 2,
    /// A text that an argument of the next call points at.
    Text = 3,
    /// Bytes that an argument of the next call points at.
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
    /// A CPU sends others an interrupt.
    Ipi = 51,
    /// A function of libc that looks up names is called.
    LookupBegin = 64,
    /// It returns.
    Lookup = 65,
    /// A traced function is entered.
    FunctionBegin = 66,
    /// It returns.
    FunctionEnd = 67,
    /// A static probe is passed.
    Usdt = 68,
    /// Stack of a thread that comes back to the CPU.
    Stack = 56,
    /// User stack of a thread at the return of its call.
    UserStack = 57,
    /// Stack of a thread that runs, taken by the clock of the CPU.
    Sample = 58,
    /// End of a contended kernel lock wait.
    Lock = 59,
    /// What a thread did, sampled by wall-clock time.
    Wall = 60,
    // 61 is what the programs tell the recorder alone.
    /// A round of wall-clock samples is over.
    Round = 62,
    /// Reclaim begins.
    ReclaimBegin = 72,
    /// Reclaim ends.
    ReclaimEnd = 73,
    /// Page faults and the like, which are counted.
    Memory = 74,
    /// Pages of a file came into the page cache.
    Fill = 75,
    /// Path of an inode.
    Inode = 76,
    /// A step of kernel work that others wait for.
    Work = 80,
    /// A step of a workqueue item.
    WorkItem = 81,
    /// A packet.
    Net = 96,
    /// A TCP connection changes its state.
    Tcp = 97,
    /// Snapshot: other clocks at the time of the head.
    Clock = 128,
    /// A named fact about the machine or the recording.
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
    /// Snapshot: it is complete.
    SnapshotEnd = 135,
    /// Records that were lost.
    Lost = 136,
    /// A mark of the user, or of the recorder.
    Mark = 137,
    /// Snapshot: name of an interrupt.
    Irq = 138,
    /// Name of an address.
    Name = 150,
    /// Runs of a BPF program that the kernel left out.
    Missed = 151,
    /// Function with a number instead of an address.
    Code = 153,
    /// What a probe is.
    Probe = 152,
    /// What a process is, when it begins to run a program and when it ends.
    Program = 139,
    /// Name of a user id.
    User = 140,
    /// Snapshot: a mount.
    Mount = 141,
    /// Snapshot: what a block device is.
    DeviceAbout = 142,
    /// Snapshot: a device lies on another one.
    DeviceLink = 143,
    /// Values of counters.
    Counters = 144,
    /// Path of a control group.
    Cgroup = 145,
    /// Snapshot: a file of the resolver's configuration.
    ResolverFile = 146,
    /// Root directory of a process.
    Root = 147,
}

impl Kind {
    /// Every kind; records of other numbers are [`RecordError::Kind`].
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

/// Every record is looked up, so by place rather than by search.
static BY_NUMBER: [Option<Kind>; 256] = {
    let mut kinds = [None; 256];
    let mut place = 0;
    while place < Kind::ALL.len() {
        kinds[Kind::ALL[place] as usize] = Some(Kind::ALL[place]);
        place += 1;
    }
    kinds
};

/// What every record begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// What follows the head.
    pub kind: Kind,
    /// Bytes of the record, this head included.
    pub len: u16,
    /// CPU on which the record was made.
    pub cpu: u16,
    /// Bits [`COMPAT`](super::COMPAT) to [`IN_HARDIRQ`](super::IN_HARDIRQ).
    pub flags: u16,
    /// CLOCK_MONOTONIC in ns.
    pub ts: u64,
    /// Thread at work, and its process.
    pub tid: i32,
    /// Kernel process id (thread group) of that thread; 0 for records of no process.
    pub pid: i32,
}

/// Why bytes are no record. All but [`RecordError::Length`] leave the records behind it readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The length in the head is impossible; nothing says where the next record begins.
    #[error("a record of {0} bytes does not fit into what is left of its block")]
    Length(usize),
    /// Written by a later program.
    #[error("a record is of kind {0}, which this whyslow does not know")]
    Kind(u16),
    /// The payload ends before all fields of its kind.
    #[error("a record of kind {0:?} is too short")]
    Short(Kind),
}

/// A call, at its return or at its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyscallRecord {
    /// Time of the entry, CLOCK_MONOTONIC in ns.
    pub entered: u64,
    /// Return value, a negative errno on failure; 0 at an entry.
    pub ret: i64,
    /// Number of the call, by the table that [`COMPAT`](super::COMPAT) says.
    pub nr: u32,
    /// By register; those that were not recorded are 0.
    pub args: [u64; 6],
}

/// What an argument of the thread's next call points at; arguments count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextRecord<'b> {
    /// Which argument, from 1 on.
    pub arg: u32,
    /// The text without its zero byte, or the bytes; possibly cut.
    pub bytes: &'b [u8],
}

/// The head's thread goes, another one comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    /// Thread that gets the CPU.
    pub next_tid: i32,
    /// Its process.
    pub next_pid: i32,
    /// As the kernel has it, or [`Switch::PREEMPTED`].
    pub prev_state: u32,
    /// Kernel priority of the thread that leaves.
    pub prev_prio: u16,
    /// Kernel priority of the thread that comes.
    pub next_prio: u16,
}

impl Switch {
    /// Value of `prev_state`: the thread could have gone on and lost its CPU.
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
    /// CPU on which it will run; `None` if it is not known.
    pub target_cpu: Option<u16>,
}

/// A thread that begins, ends, or gets a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task<'b> {
    /// Kernel thread id; of a fork that of the child.
    pub tid: i32,
    /// Its process.
    pub pid: i32,
    /// Its name; of a rename the new one.
    pub comm: &'b [u8],
}

/// A record and what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record<'b> {
    /// Kind `Syscall`: the call returned at the time of the head.
    Syscall(SyscallRecord),
    /// Kind `SyscallEnter`: the call was entered at the time of the head.
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
    /// The number of the argument is the thread's id before.
    Exec(TextRecord<'b>),
    /// Kind `Exit`.
    Exit(Task<'b>),
    /// Kind `Free`: the kernel freed the thread; its id may be used again.
    Free(Task<'b>),
    /// Kind `Comm`: the thread has this name from now on.
    Comm(Task<'b>),
    /// Kind `Signal` or `SignalDelivered`.
    Signal(Signal),
    /// Kinds `BioQueue` to `RqComplete`.
    Block(BlockIo),
    /// Kind `ReclaimBegin` or `ReclaimEnd`.
    Reclaim(ReclaimRecord),
    /// As [`crate::event::MemoryKind::ALL`].
    Memory {
        /// Place in [`MemoryKind::ALL`](crate::event::MemoryKind::ALL).
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
    /// The head's CPU sends an interrupt to those whose bits are set, from `first` on. Number 0
    /// reschedule, 1 call a function, 2 the same for one CPU.
    Ipi {
        /// What the interrupt is for.
        nr: u32,
        /// CPU that bit 0 of `cpus` stands for.
        first: u32,
        /// Target CPUs, one bit each.
        cpus: u64,
    },
    /// Kind 0 hard, 1 soft, 2 high-resolution timer, 3 sent by a CPU.
    IrqEnter {
        /// What kind of handler.
        kind: u32,
        /// Number of the interrupt or softirq vector.
        nr: u32,
    },
    /// The handler returns.
    IrqExit {
        /// As at its entry.
        kind: u32,
        /// As at its entry.
        nr: u32,
        /// Return value of a hard handler.
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
    /// Other clocks at the moment of the head.
    Clock {
        /// CLOCK_BOOTTIME in ns.
        boot: u64,
        /// CLOCK_REALTIME in ns since the epoch.
        real: i64,
    },
    /// Something about the machine or the recording, by name.
    Fact {
        /// Name of the fact, such as `host`.
        name: &'b [u8],
        /// Its value as text.
        value: &'b [u8],
    },
    /// The head's process, as it was.
    Process {
        /// Process id of the parent.
        ppid: i32,
        /// User id.
        uid: u32,
        /// Since boot, ns.
        started: u64,
        /// Number of the mount namespace; 0 where that is not told.
        mount_ns: u32,
        /// Path of the executable; empty if it could not be read.
        executable: &'b [u8],
        /// Words end with a zero byte.
        command_line: &'b [u8],
        /// Path of its control group.
        cgroup: &'b [u8],
    },
    /// The head's thread, as it was.
    Thread {
        /// Letter of its state, as in `/proc/PID/stat`.
        state: u8,
        /// Its name.
        comm: &'b [u8],
    },
    /// A descriptor of the head's process; -100 (`AT_FDCWD`) stands for its working directory.
    Fd {
        /// Descriptor number.
        fd: i32,
        /// Flags of the open.
        flags: u64,
        /// What it leads to: a path, or `socket:[…]` and the like.
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
        /// IPv4 address in network byte order; zeros if it has none.
        address: [u8; 4],
        /// Name of the interface.
        name: &'b [u8],
    },
    /// Kind `Irq`.
    Irq {
        /// Number of the interrupt.
        nr: u32,
        /// Name that the driver registered its handler with.
        name: &'b [u8],
    },
    /// Kind `SnapshotEnd`: what was not in the snapshot did not exist.
    SnapshotEnd,
    /// Records that found no room, of the head's CPU.
    Lost {
        /// Nothing was lost before this, CLOCK_MONOTONIC in ns.
        from: u64,
        /// Nothing was lost after this.
        to: u64,
        /// Number of records.
        count: u64,
    },
    /// Kind `Mark`; of process 0 if the recorder made it.
    Mark {
        /// Text of the mark, UTF-8 as a rule.
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

/// The records of a payload, up to the first that is damaged.
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
        // Where a length is wrong nobody knows where the next record begins.
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
