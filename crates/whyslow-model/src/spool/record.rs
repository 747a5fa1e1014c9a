//! Records: what the programs in the kernel tell (`wire.h` of the recorder has the same layouts),
//! and what the recorder itself saw.

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
    Syscall = 1,
    SyscallEnter = 2,
    Text = 3,
    Bytes = 4,
    Switch = 16,
    Waking = 17,
    WakeupNew = 18,
    Fork = 19,
    Exec = 20,
    Exit = 21,
    Free = 22,
    Comm = 23,
    Signal = 24,
    SignalDelivered = 25,
    BioQueue = 32,
    BioBackmerge = 33,
    BioFrontmerge = 34,
    BioComplete = 35,
    BioRemap = 36,
    BioSplit = 37,
    GetRq = 38,
    RqInsert = 39,
    RqIssue = 40,
    RqMerge = 41,
    RqRequeue = 42,
    RqComplete = 43,
    IrqEnter = 48,
    IrqExit = 49,
    SoftirqRaise = 50,
    Ipi = 51,
    LookupBegin = 64,
    Lookup = 65,
    FunctionBegin = 66,
    FunctionEnd = 67,
    Usdt = 68,
    Stack = 56,
    UserStack = 57,
    Sample = 58,
    Lock = 59,
    Wall = 60,
    // 61 is what the programs tell the recorder alone.
    Round = 62,
    ReclaimBegin = 72,
    ReclaimEnd = 73,
    Memory = 74,
    Fill = 75,
    Inode = 76,
    Work = 80,
    WorkItem = 81,
    Net = 96,
    Tcp = 97,
    Clock = 128,
    Fact = 129,
    Process = 130,
    Thread = 131,
    Fd = 132,
    BlockDevice = 133,
    NetInterface = 134,
    SnapshotEnd = 135,
    Lost = 136,
    Mark = 137,
    Irq = 138,
    Name = 150,
    Missed = 151,
    Code = 153,
    Probe = 152,
    Program = 139,
    User = 140,
    Mount = 141,
    DeviceAbout = 142,
    DeviceLink = 143,
    Counters = 144,
    Cgroup = 145,
    ResolverFile = 146,
    Root = 147,
}

impl Kind {
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
    pub kind: Kind,
    /// Bytes of the record, this head included.
    pub len: u16,
    pub cpu: u16,
    pub flags: u16,
    pub ts: u64,
    /// Thread at work, and its process.
    pub tid: i32,
    pub pid: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    #[error("a record of {0} bytes does not fit into what is left of its block")]
    Length(usize),
    #[error("a record is of kind {0}, which this whyslow does not know")]
    Kind(u16),
    #[error("a record of kind {0:?} is too short")]
    Short(Kind),
}

/// A call, at its return or at its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyscallRecord {
    pub entered: u64,
    pub ret: i64,
    pub nr: u32,
    /// By register; those that were not recorded are 0.
    pub args: [u64; 6],
}

/// What an argument of the thread's next call points at; arguments count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextRecord<'b> {
    pub arg: u32,
    pub bytes: &'b [u8],
}

/// The head's thread goes, another one comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    pub next_tid: i32,
    pub next_pid: i32,
    /// As the kernel has it, or [`Switch::PREEMPTED`].
    pub prev_state: u32,
    pub prev_prio: u16,
    pub next_prio: u16,
}

impl Switch {
    pub const PREEMPTED: u32 = 1 << 31;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wakeup {
    pub tid: i32,
    pub pid: i32,
    pub prio: u16,
    pub target_cpu: Option<u16>,
}

/// A thread that begins, ends, or gets a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task<'b> {
    pub tid: i32,
    pub pid: i32,
    pub comm: &'b [u8],
}

/// A record and what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record<'b> {
    Syscall(SyscallRecord),
    SyscallEnter(SyscallRecord),
    Text(TextRecord<'b>),
    Bytes(TextRecord<'b>),
    Switch(Switch),
    Waking(Wakeup),
    WakeupNew(Wakeup),
    Fork(Task<'b>),
    /// The number of the argument is the thread's id before.
    Exec(TextRecord<'b>),
    Exit(Task<'b>),
    Free(Task<'b>),
    Comm(Task<'b>),
    /// Kind `Signal` or `SignalDelivered`.
    Signal(Signal),
    Block(BlockIo),
    Reclaim(ReclaimRecord),
    /// As [`crate::event::MemoryKind::ALL`].
    Memory {
        what: u32,
        order: u32,
    },
    Fill(FillRecord<'b>),
    Work(WorkRecord<'b>),
    WorkItem(WorkItemRecord<'b>),
    Net(NetRecord<'b>),
    Tcp(TcpRecord),
    /// The head's CPU sends an interrupt to those whose bits are set, from `first` on. Number 0
    /// reschedule, 1 call a function, 2 the same for one CPU.
    Ipi {
        nr: u32,
        first: u32,
        cpus: u64,
    },
    /// Kind 0 hard, 1 soft, 2 high-resolution timer, 3 sent by a CPU.
    IrqEnter {
        kind: u32,
        nr: u32,
    },
    IrqExit {
        kind: u32,
        nr: u32,
        ret: i32,
    },
    SoftirqRaise {
        nr: u32,
    },
    /// Kind `LookupBegin` or `Lookup`.
    Lookup(LookupRecord<'b>),
    Function(FunctionRecord<'b>),
    FunctionEnd(FunctionEndRecord),
    Usdt(UsdtRecord<'b>),
    Probe(ProbeRecord<'b>),
    /// Other clocks at the moment of the head.
    Clock {
        boot: u64,
        real: i64,
    },
    /// Something about the machine or the recording, by name.
    Fact {
        name: &'b [u8],
        value: &'b [u8],
    },
    /// The head's process, as it was.
    Process {
        ppid: i32,
        uid: u32,
        /// Since boot, ns.
        started: u64,
        /// Number of the mount namespace; 0 where that is not told.
        mount_ns: u32,
        executable: &'b [u8],
        /// Words end with a zero byte.
        command_line: &'b [u8],
        cgroup: &'b [u8],
    },
    /// The head's thread, as it was.
    Thread {
        state: u8,
        comm: &'b [u8],
    },
    /// A descriptor of the head's process; -100 (`AT_FDCWD`) stands for its working directory.
    Fd {
        fd: i32,
        flags: u64,
        path: &'b [u8],
    },
    BlockDevice {
        dev: u32,
        name: &'b [u8],
    },
    NetInterface {
        index: u32,
        address: [u8; 4],
        name: &'b [u8],
    },
    Irq {
        nr: u32,
        name: &'b [u8],
    },
    SnapshotEnd,
    /// Records that found no room, of the head's CPU.
    Lost {
        from: u64,
        to: u64,
        count: u64,
    },
    Mark {
        text: &'b [u8],
    },
    Stack(StackRecord<'b>),
    Lock(LockRecord<'b>),
    Wall(WallRecord<'b>),
    Round(RoundRecord),
    Code(CodeRecord<'b>),
    Name(NameRecord<'b>),
    Missed(MissedRecord<'b>),
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
