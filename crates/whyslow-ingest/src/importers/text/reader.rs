//! Parses a line of the text format.

mod network;

use std::net::Ipv4Addr;
use std::str::FromStr;

use whyslow_model::counter::ReportedValues;
use whyslow_model::event::{
    BlockRange, Body, Context, Event, Frame, Interrupt, IrqKind, ItemPhase, Loss, LossKind,
    MemoryKind, NetFaultKind, NetKind, PrevState, ProcessAbout, ReclaimKind, ReportedCounters,
    StateProcess, SyscallArgs, WakeupKind, Work, WorkItem, WorkKind, WorkPhase,
};

use self::network::socket_address;
use super::line::{self, Line};
use crate::importers::rwbs;

/// The contents of a line.
#[derive(Debug, Clone, Copy)]
pub enum Item<'a> {
    /// A comment, an empty line, or the first line of a file.
    Nothing,
    /// A fact about the recording.
    Metadata {
        /// Name of the fact.
        key: &'a str,
        /// Its value, unescaped.
        value: &'a [u8],
    },
    /// An event.
    Event {
        /// Event name in the line, for counts.
        name: &'a str,
        /// The event; it borrows from the buffers of the reader.
        event: Event<'a>,
    },
    /// A time range in which the source lost data.
    Loss(Loss<'a>),
}

/// Buffers for the data that an event borrows.
#[derive(Debug, Default)]
pub struct EventBuffers<'a> {
    args: Option<SyscallArgs<'a>>,
    frames: Vec<Frame<'a>>,
}

/// Parses one line, without its line break; data that its event borrows is stored in `buffers`. The
/// error is the reason why the line is invalid.
pub fn parse<'a>(
    text: &'a str,
    line: &'a mut Line,
    buffers: &'a mut EventBuffers<'a>,
) -> Result<Item<'a>, String> {
    let text = text.trim();
    if text.is_empty() || text.starts_with('#') || text == super::MAGIC {
        return Ok(Item::Nothing);
    }
    if let Some(fields) = text.strip_prefix("meta ") {
        line.clear();
        line.read_rest(fields)?;
        let (key, value) = line.first().ok_or("no fact")?;
        return Ok(Item::Metadata { key, value });
    }
    let head = line.read(text)?;
    let fields = Fields { line };
    if head.name == "lost" {
        return Ok(Item::Loss(fields.loss(head.ts, head.cpu)?));
    }
    Ok(Item::Event {
        name: head.name,
        event: Event {
            ts: head.ts,
            cpu: head.cpu,
            context: fields.context()?,
            body: fields.body(head.name, buffers)?,
        },
    })
}

pub(super) struct Fields<'a> {
    line: &'a Line,
}

pub(super) type Read<T> = Result<T, String>;

/// A type of field value.
pub(super) trait Parse<'a>: Sized {
    fn parse(text: &'a [u8]) -> Option<Self>;
}

impl<'a> Parse<'a> for &'a [u8] {
    fn parse(text: &'a [u8]) -> Option<Self> {
        Some(text)
    }
}

impl<'a> Parse<'a> for &'a str {
    fn parse(text: &'a [u8]) -> Option<Self> {
        std::str::from_utf8(text).ok()
    }
}

impl Parse<'_> for i64 {
    fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok().map(|value| value as i64),
            None => text.parse().ok(),
        }
    }
}

impl Parse<'_> for u64 {
    fn parse(text: &[u8]) -> Option<Self> {
        let plain = std::str::from_utf8(text).ok()?.parse().ok();
        plain.or_else(|| <i64 as Parse>::parse(text).map(|value| value as u64))
    }
}

macro_rules! parse_narrow {
    ($($narrow:ty),+) => { $(
        impl Parse<'_> for $narrow {
            fn parse(text: &[u8]) -> Option<Self> {
                Self::try_from(<i64 as Parse>::parse(text)?).ok()
            }
        }
    )+ };
}
parse_narrow!(i32, u32, u16, u8);

impl Parse<'_> for bool {
    fn parse(text: &[u8]) -> Option<Self> {
        match text {
            b"1" | b"true" => Some(true),
            b"0" | b"false" => Some(false),
            _ => None,
        }
    }
}

impl<'a> Fields<'a> {
    pub(super) fn optional<T: Parse<'a>>(&self, key: &str) -> Read<Option<T>> {
        match self.line.bytes(key) {
            None => Ok(None),
            Some(text) => T::parse(text).map(Some).ok_or_else(|| bad(key, text)),
        }
    }

    pub(super) fn required<T: Parse<'a>>(&self, key: &str) -> Read<T> {
        self.optional(key)?
            .ok_or_else(|| format!("missing `{key}`"))
    }

    /// A key that older writers wrote under another name.
    fn renamed<T: Parse<'a>>(&self, key: &str, old_key: &str) -> Read<T> {
        match self.optional(old_key)? {
            Some(value) => Ok(value),
            None => self.required(key),
        }
    }

    fn name(&self, key: &str) -> &'a [u8] {
        self.line.bytes(key).unwrap_or_default()
    }

    /// A value with its own syntax.
    pub(super) fn special<T>(
        &self,
        key: &str,
        read: impl Fn(&'a str) -> Option<T>,
    ) -> Read<Option<T>> {
        match self.optional::<&str>(key)? {
            None => Ok(None),
            Some(text) => read(text)
                .map(Some)
                .ok_or_else(|| bad(key, text.as_bytes())),
        }
    }

    pub(super) fn special_required<T>(
        &self,
        key: &str,
        read: impl Fn(&'a str) -> Option<T>,
    ) -> Read<T> {
        self.special(key, read)?
            .ok_or_else(|| format!("missing `{key}`"))
    }

    fn context(&self) -> Read<Context<'a>> {
        let number = |key: &str| match self.line.context(key) {
            None => Ok(None),
            Some(text) => <i32 as Parse>::parse(text)
                .map(Some)
                .ok_or_else(|| bad(key, text)),
        };
        Ok(Context {
            tid: number("tid")?,
            pid: number("pid")?,
            ppid: number("ppid")?,
            comm: self.line.context("comm"),
            prio: number("prio")?,
            interrupt: match self.line.context("interrupt") {
                Some(name) => Some(Interrupt::of_name(name).ok_or_else(|| bad("interrupt", name))?),
                None => None,
            },
        })
    }

    fn loss(&self, ts: i64, cpu: Option<i32>) -> Read<Loss<'a>> {
        Ok(Loss {
            ts,
            ts_end: self.special("until", line::time_of)?,
            cpu,
            stream: self.optional("stream")?.unwrap_or_default(),
            kind: self.special_required("kind", |kind| match kind {
                "events" => Some(LossKind::Events),
                "packets" => Some(LossKind::Packets),
                "bytes" => Some(LossKind::Bytes),
                _ => None,
            })?,
            count: self.optional("count")?,
        })
    }

    fn body(&self, name: &str, buffers: &'a mut EventBuffers<'a>) -> Read<Body<'a>> {
        if let Some(block) = name.strip_prefix("block_") {
            return self.block(block);
        }
        Ok(match name {
            "sched_switch" => Body::SchedSwitch {
                prev_tid: self.required("prev")?,
                prev_comm: self.name("prev_comm"),
                prev_prio: self.optional("prev_prio")?,
                prev_state: self.special_required("prev_state", prev_state)?,
                next_tid: self.required("next")?,
                next_comm: self.name("next_comm"),
                next_prio: self.optional("next_prio")?,
            },
            "sched_waking" => self.wakeup(WakeupKind::Waking)?,
            "sched_wakeup" => self.wakeup(WakeupKind::Wakeup)?,
            "sched_wakeup_new" => self.wakeup(WakeupKind::WakeupNew)?,
            "sched_migrate" => Body::SchedMigrate {
                tid: self.required("tid")?,
                to_cpu: self.required("to_cpu")?,
            },
            "fork" => Body::Fork {
                parent_tid: self.required("parent")?,
                parent_pid: self.optional("parent_pid")?,
                parent_comm: self.name("parent_comm"),
                child_tid: self.required("child")?,
                child_pid: self.optional("child_pid")?,
                child_comm: self.name("child_comm"),
            },
            "exec" => Body::Exec {
                filename: self.required("filename")?,
                tid: self.optional("tid")?,
                old_tid: self.optional("old_tid")?,
            },
            "exit" => Body::Exit {
                tid: self.required("tid")?,
                comm: self.name("comm"),
            },
            "free" => Body::Free {
                tid: self.required("tid")?,
            },
            "comm" => Body::CommChange {
                tid: self.required("tid")?,
                comm: self.required("comm")?,
            },
            "prio" => Body::PrioChange {
                tid: self.required("tid")?,
                prio: self.required("prio")?,
            },
            "syscall_enter" => Body::SyscallEnter {
                name: self.required("name")?,
                nr: self.optional("nr")?,
                compat: self.optional("compat")?.unwrap_or(false),
                args: buffers.args.insert(self.syscall_args()?),
            },
            "syscall_exit" => Body::SyscallExit {
                name: self.optional("name")?,
                nr: self.optional("nr")?,
                compat: self.optional("compat")?.unwrap_or(false),
                ret: self.optional("ret")?,
                args: buffers.args.insert(self.syscall_args()?),
                is_timed: !self.optional("untimed")?.unwrap_or(false),
            },
            "irq_enter" => Body::IrqEnter {
                kind: self.special_required("kind", irq_kind)?,
                nr: self.required("nr")?,
                name: self.optional("name")?,
            },
            "irq_exit" => Body::IrqExit {
                kind: self.special_required("kind", irq_kind)?,
                nr: self.required("nr")?,
                ret: self.optional("ret")?,
            },
            "softirq_raise" => Body::SoftirqRaise {
                nr: self.required("nr")?,
            },
            "net" => self.net()?,
            "page_alloc" => Body::PageAlloc {
                order: self.required("order")?,
            },
            "page_free" => Body::PageFree {
                order: self.required("order")?,
            },
            "net_fault" => Body::NetFault {
                kind: self.special_required("kind", |text| {
                    NetFaultKind::ALL
                        .into_iter()
                        .find(|kind| kind.name() == text)
                })?,
                skbaddr: self.optional("skbaddr")?,
                reason: self.optional("reason")?,
                ethertype: self.optional("ethertype")?,
                headers: self.net_headers()?,
            },
            "memory" => Body::Memory {
                kind: self.special_required("kind", |text| {
                    MemoryKind::ALL.into_iter().find(|kind| kind.name() == text)
                })?,
                order: self.optional("order")?.unwrap_or(0),
            },
            "reclaim_begin" => Body::ReclaimBegin {
                kind: self.special_required("kind", reclaim_kind)?,
                order: self.optional("order")?,
                node: self.optional("node")?,
            },
            "reclaim_end" => Body::ReclaimEnd {
                kind: self.special_required("kind", reclaim_kind)?,
                pages: self.optional("pages")?,
                node: self.optional("node")?,
            },
            "stack" => Body::Stack(self.stack(&mut buffers.frames)?),
            "wall" => Body::Wall(self.wall(&mut buffers.frames)?),
            "lock_wait" => Body::LockWait(self.lock_wait(&mut buffers.frames)?),
            "work" => Body::Work(self.work()?),
            "work_item" => Body::WorkItem(self.work_item()?),
            "state_process" => Body::StateProcess(StateProcess {
                tid: self.required("tid")?,
                pid: self.optional("pid")?,
                ppid: self.optional("ppid")?,
                comm: self.optional("comm")?,
                is_kernel: self.optional("is_kernel")?,
                status: self.optional("status")?,
                cpu: self.optional("cpu")?,
                file_table: self.optional("file_table")?,
            }),
            "state_fd" => Body::StateFd {
                pid: self.optional("pid")?,
                file_table: self.optional("file_table")?,
                fd: self.required("fd")?,
                flags: self.optional("flags")?,
                path: self.name("path"),
            },
            "state_block_device" => Body::StateBlockDevice {
                dev: self.special_required("dev", device)?,
                name: self.required("name")?,
            },
            "state_net_interface" => Body::StateNetInterface {
                name: self.required("name")?,
                ifindex: self.optional("ifindex")?,
                address: self
                    .special("address", |text| Ipv4Addr::from_str(text).ok())?
                    .map(|address| address.octets()),
            },
            "state_irq" => Body::StateIrq {
                irq: self.required("irq")?,
                name: self.name("name"),
                action: self.name("action"),
            },
            "state_end" => Body::StateEnd,
            "counters" => Body::ReportedCounters(ReportedCounters {
                reported_by: self.renamed("reported_by", "told_by")?,
                pid: self.optional("pid")?,
                subject: self.optional("subject")?,
                interval: self.optional("interval")?,
                values: self.special_required("values", |text| {
                    Some(ReportedValues(text)).filter(|values| values.is_whole())
                })?,
            }),
            "lookup_begin" => self.lookup_begin()?,
            "lookup" => self.lookup()?,
            "tcp" => Body::Tcp(self.tcp()?),
            "process" => Body::ProcessAbout(ProcessAbout {
                pid: self.required("pid")?,
                ppid: self.optional("ppid")?,
                executable: self.optional("executable")?,
                command_line: self.optional("command_line")?,
                uid: self.optional("uid")?,
                ts_created: self.special("created", line::time_of)?,
                ..ProcessAbout::default()
            }),
            "marker" => Body::Marker {
                name: self.required("name")?,
                text: self.optional("text")?.unwrap_or_default(),
            },
            "other" => Body::Other,
            name => return Err(format!("unknown event `{name}`")),
        })
    }

    fn wakeup(&self, kind: WakeupKind) -> Read<Body<'a>> {
        Ok(Body::SchedWakeup {
            kind,
            tid: self.required("tid")?,
            comm: self.name("comm"),
            prio: self.optional("prio")?,
            target_cpu: self.optional("target_cpu")?,
        })
    }

    fn block(&self, name: &str) -> Read<Body<'a>> {
        let sectors = self.required("sectors")?;
        let range = BlockRange {
            dev: self.special_required("dev", device)?,
            sector: self.required("sector")?,
            sectors,
            bytes: self.optional("bytes")?,
            flags: rwbs::from_text(self.required("rwbs")?, sectors),
            tid: self.optional("tid")?,
            comm: self.optional("comm")?,
        };
        let error = self.optional("error")?;
        Ok(match name {
            "bio_queue" => Body::BlockBioQueue(range),
            "bio_backmerge" => Body::BlockBioBackmerge(range),
            "bio_frontmerge" => Body::BlockBioFrontmerge(range),
            "bio_complete" => Body::BlockBioComplete { range, error },
            "bio_remap" => Body::BlockBioRemap {
                range,
                old_dev: self.special_required("old_dev", device)?,
                old_sector: self.required("old_sector")?,
            },
            "split" => Body::BlockSplit {
                range,
                new_sector: self.required("new_sector")?,
            },
            "getrq" => Body::BlockGetRq(range),
            "rq_insert" => Body::BlockRqInsert(range),
            "rq_issue" => Body::BlockRqIssue(range),
            "rq_merge" => Body::BlockRqMerge(range),
            "rq_requeue" => Body::BlockRqRequeue(range),
            "rq_complete" => Body::BlockRqComplete { range, error },
            name => return Err(format!("unknown event `block_{name}`")),
        })
    }

    fn work(&self) -> Read<Work<'a>> {
        let kind = |text: &str| WorkKind::ALL.into_iter().find(|kind| kind.name() == text);
        let phase = |text: &str| {
            WorkPhase::ALL
                .into_iter()
                .find(|phase| phase.name() == text)
        };
        Ok(Work {
            kind: self.special_required("kind", kind)?,
            phase: self.special_required("phase", phase)?,
            dev: self.special("dev", device)?,
            reason: self.optional("reason")?,
            transaction: self.optional("transaction")?,
            pages: self.optional("pages")?,
            dur: self.optional("dur")?,
        })
    }

    fn work_item(&self) -> Read<WorkItem<'a>> {
        let phase = |text: &str| {
            ItemPhase::ALL
                .into_iter()
                .find(|phase| phase.name() == text)
        };
        Ok(WorkItem {
            phase: self.special_required("phase", phase)?,
            work: self.required("work")?,
            address: self.optional("address")?,
            function: self.line.bytes("function"),
            workqueue: self.name("workqueue"),
            is_worker: self.optional("is_worker")?.unwrap_or(false),
        })
    }

    fn net(&self) -> Read<Body<'a>> {
        Ok(Body::Net {
            kind: self.special_required("kind", |kind| match kind {
                "receive" => Some(NetKind::Receive),
                "queue" => Some(NetKind::Queue),
                "transmit" => Some(NetKind::Transmit),
                _ => None,
            })?,
            netif: self.name("netif"),
            bytes: self.required("bytes")?,
            skbaddr: self.optional("skbaddr")?,
            ret: self.optional("ret")?,
            headers: self.net_headers()?,
        })
    }

    fn syscall_args(&self) -> Read<SyscallArgs<'a>> {
        Ok(SyscallArgs {
            fd: self.optional("fd")?,
            fd2: self.optional("fd2")?,
            dirfd: self.optional("dirfd")?,
            dirfd2: self.optional("dirfd2")?,
            path: self.optional("path")?,
            path2: self.optional("path2")?,
            count: self.optional("count")?,
            offset: self.optional("offset")?,
            flags: self.optional("flags")?,
            command: self.optional("command")?,
            value: self.optional("value")?,
            address: self.optional("address")?,
            address2: self.optional("address2")?,
            timeout: self.optional("timeout")?,
            family: self.optional("family")?,
            socket_type: self.optional("socket_type")?,
            socket_address: self.special("sockaddr", socket_address)?,
            fds: self.special("fds", numbers)?,
            raw: self.special("raw", numbers)?,
        })
    }
}

pub(super) fn bad(key: &str, text: &[u8]) -> String {
    format!("invalid `{key}={}`", String::from_utf8_lossy(text))
}

pub(super) fn prev_state(text: &str) -> Option<PrevState> {
    Some(match text {
        "R" => PrevState::Runnable { preempted: false },
        "R+" => PrevState::Runnable { preempted: true },
        "S" => PrevState::Sleeping,
        "D" => PrevState::Uninterruptible,
        "T" => PrevState::Stopped,
        "t" => PrevState::Traced,
        "X" => PrevState::Dead,
        "Z" => PrevState::Zombie,
        "P" => PrevState::Parked,
        "I" => PrevState::Idle,
        number => PrevState::Unknown(number.parse().ok()?),
    })
}

fn reclaim_kind(text: &str) -> Option<ReclaimKind> {
    ReclaimKind::ALL
        .into_iter()
        .find(|kind| kind.name() == text)
}

fn irq_kind(text: &str) -> Option<IrqKind> {
    match text {
        "hard" => Some(IrqKind::Hard),
        "soft" => Some(IrqKind::Soft),
        "hrtimer" => Some(IrqKind::Hrtimer),
        "ipi" => Some(IrqKind::Ipi),
        _ => None,
    }
}

fn device(text: &str) -> Option<i64> {
    let (major, minor) = text.split_once(':')?;
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    (major < 1 << 12 && minor < 1 << 20).then_some(i64::from(major) << 20 | i64::from(minor))
}

fn numbers<'a, T: Parse<'a>, const N: usize>(text: &'a str) -> Option<[T; N]> {
    let parts: Option<Vec<T>> = text
        .split(',')
        .map(|part| T::parse(part.as_bytes()))
        .collect();
    parts?.try_into().ok()
}
