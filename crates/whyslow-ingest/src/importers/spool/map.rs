//! Converts records to events.

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::Ns;
use whyslow_model::event::{
    Body, Context, Event, Interrupt, Loss, LossKind, PrevState, SocketAddress, StateProcess,
    SyscallArgs, WakeupKind,
};
use whyslow_model::spool::{
    COMPAT, ELSEWHERE, Head, HostRecord, IN_HARDIRQ, IN_SOFTIRQ, IN_TASK, Kind, LookupRecord,
    MissedRecord, Record, Switch, SyscallRecord,
};
use whyslow_model::syscall::{self, Abi, Role};

use super::block;
use super::fill;
use super::host::{self, Host};
use super::kernel;
use super::names::Names;
use super::order::Pointed;

/// Result of converting a record.
pub(crate) enum Converted<'a> {
    Event(Event<'a>),
    Loss(Loss<'a>),
    /// Name and value.
    Fact(&'a [u8], &'a [u8]),
    Nothing,
}

fn interrupt_of(flags: u16) -> Option<Interrupt> {
    match flags & (IN_TASK | IN_SOFTIRQ | IN_HARDIRQ) {
        IN_TASK => Some(Interrupt::None),
        IN_SOFTIRQ => Some(Interrupt::Soft),
        IN_HARDIRQ => Some(Interrupt::Hard),
        _ => None,
    }
}

/// Context of a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) ts: Ns,
    /// The entry of a system call.
    pub(crate) is_entry: bool,
    pub(crate) pointed: Option<&'a Pointed>,
}

type Comm = [u8; 16];

/// Stands for the working directory.
const AT_FDCWD: i32 = -100;

/// Keeps names of threads and system calls, which most records do not contain.
#[derive(Debug, Default)]
pub(crate) struct Mapper {
    comms: FxHashMap<i32, Comm>,
    parents: FxHashMap<i32, i32>,
    kernel_threads: FxHashSet<i32>,
    /// Of system calls known by number only.
    numbers: FxHashMap<u32, Box<str>>,
    abi: Option<Abi>,
    pub(super) names: Names,
    host: Host,
    /// Buffer for a path.
    path: Vec<u8>,
}

impl Mapper {
    /// `names` resolves addresses.
    pub(crate) fn new(names: Names) -> Self {
        Self {
            names,
            ..Self::default()
        }
    }

    /// The machine's architecture, as reported by `uname -m`.
    pub(crate) fn set_architecture(&mut self, name: &[u8]) {
        self.abi = match name {
            b"x86_64" => Some(Abi::X86_64),
            b"aarch64" => Some(Abi::Aarch64),
            _ => None,
        };
    }

    /// Offset from the boot-time clock to wall-clock time.
    pub(crate) fn set_boot_offset(&mut self, offset: Ns) {
        self.host.set_boot_offset(offset);
    }

    pub(crate) fn map<'a>(
        &'a mut self,
        head: &Head,
        record: &Record<'a>,
        place: Place<'a>,
        args: &'a mut SyscallArgs<'a>,
    ) -> Converted<'a> {
        self.learn(head, record);
        let event = |body| {
            Converted::Event(Event {
                ts: place.ts,
                cpu: (head.flags & ELSEWHERE == 0).then_some(i32::from(head.cpu)),
                context: Context {
                    tid: Some(head.tid),
                    pid: Some(head.pid),
                    interrupt: interrupt_of(head.flags),
                    ..Context::default()
                },
                body,
            })
        };
        // Kinds of later recorders are ignored.
        let optional = |body: Option<_>| body.map_or(Converted::Nothing, event);
        let state = |body| {
            Converted::Event(Event {
                ts: place.ts,
                cpu: None,
                context: Context::default(),
                body,
            })
        };
        match *record {
            Record::SyscallEnter(call) => event(self.entry(head, call, place.pointed, args)),
            Record::Syscall(call) if place.is_entry => {
                event(self.entry(head, call, place.pointed, args))
            }
            Record::Syscall(call) => event(self.exit(head, call, place.pointed, args)),
            Record::Switch(switch) => event(self.switch(head, switch)),
            Record::Waking(wakeup) | Record::WakeupNew(wakeup) => event(Body::SchedWakeup {
                kind: match head.kind {
                    Kind::WakeupNew => WakeupKind::WakeupNew,
                    _ => WakeupKind::Waking,
                },
                tid: wakeup.tid,
                comm: self.comm(wakeup.tid),
                prio: Some(i32::from(wakeup.prio)),
                target_cpu: wakeup.target_cpu.map(i32::from),
            }),
            Record::Fork(child) => event(Body::Fork {
                parent_tid: head.tid,
                parent_pid: Some(head.pid),
                parent_comm: self.comm(head.tid),
                child_tid: child.tid,
                child_pid: Some(child.pid),
                child_comm: child.comm,
            }),
            Record::Exec(ref text) => event(Body::Exec {
                filename: text.bytes,
                tid: Some(head.tid),
                old_tid: Some(text.arg as i32),
            }),
            Record::Exit(task) => event(Body::Exit {
                tid: task.tid,
                comm: task.comm,
            }),
            Record::Free(task) => event(Body::Free { tid: task.tid }),
            Record::Comm(task) => event(Body::CommChange {
                tid: task.tid,
                comm: task.comm,
            }),
            Record::Signal(signal) if head.kind == Kind::Signal => event(Body::Signal(signal)),
            Record::Signal(signal) => event(Body::SignalDelivered(signal)),
            Record::Block(io) => event(block::event(head.kind, io)),
            Record::IrqEnter { kind, nr } => event(Body::IrqEnter {
                kind: kernel::irq_kind(kind),
                nr: nr as i32,
                name: None,
            }),
            Record::IrqExit { kind, nr, ret } => event(Body::IrqExit {
                kind: kernel::irq_kind(kind),
                nr: nr as i32,
                ret: Some(ret),
            }),
            Record::Reclaim(reclaim) => optional(kernel::reclaim(head.kind, reclaim)),
            Record::Memory { what, order } => optional(kernel::memory(what, order)),
            Record::Fill(record) => {
                let is_event = head.kind == Kind::Fill;
                let abi = self.abi(head);
                let fill = fill::fill((head, place.ts), record, abi, &mut self.path);
                let body = Body::CacheFill(fill);
                if is_event { event(body) } else { state(body) }
            }
            Record::Work(work) => optional(kernel::work(work)),
            Record::WorkItem(item) => optional(kernel::item(item, &self.names)),
            Record::Net(packet) => optional(kernel::packet(packet)),
            Record::Tcp(change) => optional(kernel::tcp(change)),
            Record::Ipi { nr, first, cpus } => event(Body::IpiRaise {
                nr: nr as i32,
                first: first as i32,
                cpus,
            }),
            Record::SoftirqRaise { nr } => event(Body::SoftirqRaise { nr: nr as i32 }),
            Record::Thread {
                state: letter,
                comm,
            } => state(Body::StateProcess(StateProcess {
                tid: head.tid,
                pid: Some(head.pid),
                ppid: self.parents.get(&head.pid).copied(),
                comm: Some(comm),
                is_kernel: Some(self.kernel_threads.contains(&head.pid)),
                status: status(letter),
                cpu: None,
                file_table: None,
            })),
            Record::Fd {
                fd: AT_FDCWD, path, ..
            } => state(Body::StateDirectory {
                pid: head.pid,
                path,
            }),
            Record::Fd { fd, flags, path } => state(Body::StateFd {
                pid: Some(head.pid),
                file_table: None,
                fd,
                flags: Some(flags as i64),
                path,
            }),
            Record::BlockDevice { dev, name } => state(Body::StateBlockDevice {
                dev: i64::from(dev),
                name,
            }),
            Record::NetInterface { index, name, .. } => state(Body::StateNetInterface {
                name,
                ifindex: i32::try_from(index).ok(),
                address: None,
            }),
            Record::Irq { nr, name } => state(Body::StateIrq {
                irq: nr as i32,
                name,
                action: name,
            }),
            Record::Mark { text } => {
                let body = Body::Marker {
                    name: "mark",
                    text: text.utf8_chunks().next().map_or("", |chunk| chunk.valid()),
                };
                // The recorder itself adds some markers.
                if head.pid == 0 {
                    state(body)
                } else {
                    event(body)
                }
            }
            Record::SnapshotEnd => state(Body::StateEnd),
            Record::Lost { from, to, count } => {
                Converted::Loss(Loss {
                    ts: place.ts,
                    ts_end: Some(place.ts.saturating_add(
                        i64::try_from(to.saturating_sub(from)).unwrap_or(i64::MAX),
                    )),
                    cpu: (head.flags & ELSEWHERE == 0).then_some(i32::from(head.cpu)),
                    stream: "spool",
                    kind: LossKind::Events,
                    count: i64::try_from(count).ok(),
                })
            }
            Record::Lookup(lookup) => event(dns_lookup(head, lookup, place.ts)),
            Record::Missed(missed) => Converted::Loss(missed_runs(head, missed, place.ts)),
            Record::Fact { name, value } => Converted::Fact(name, value),
            Record::Process { .. } => {
                let about = self.host.snapshot(head, record);
                about.map_or(Converted::Nothing, state)
            }
            Record::Host(HostRecord::Program(program)) => event(self.host.program(head, program)),
            Record::Text(_)
            | Record::Bytes(_)
            | Record::Clock { .. }
            | Record::Stack(_)
            | Record::Lock(_)
            | Record::Wall(_)
            | Record::Round(_)
            | Record::Code(_)
            | Record::Function(_)
            | Record::FunctionEnd(_)
            | Record::Usdt(_)
            | Record::Probe(_)
            | Record::Name(_) => Converted::Nothing,
            Record::Host(ref record) => {
                host::machine(head, record).map_or(Converted::Nothing, state)
            }
        }
    }

    fn learn(&mut self, head: &Head, record: &Record<'_>) {
        self.names.learn(head, record);
        match record {
            Record::Process {
                ppid,
                executable,
                command_line,
                ..
            } => {
                self.parents.insert(head.pid, *ppid);
                const KTHREADD: i32 = 2;
                let is_of_kernel = *ppid == KTHREADD || head.pid == KTHREADD;
                if is_of_kernel && executable.is_empty() && command_line.is_empty() {
                    self.kernel_threads.insert(head.pid);
                }
            }
            Record::Thread { comm, .. } => self.name(head.tid, comm),
            Record::Host(record) => self.host.learn(record),
            Record::Fork(task) | Record::Comm(task) => self.name(task.tid, task.comm),
            Record::Free(task) => {
                self.comms.remove(&task.tid);
            }
            _ => {}
        }
    }

    fn name(&mut self, tid: i32, name: &[u8]) {
        let mut comm = Comm::default();
        let length = name.len().min(comm.len() - 1);
        comm[..length].copy_from_slice(&name[..length]);
        self.comms.insert(tid, comm);
    }

    /// Empty if unknown.
    fn comm(&self, tid: i32) -> &[u8] {
        if tid == 0 {
            return b"swapper";
        }
        let comm = self.comms.get(&tid).map_or(&[][..], |comm| comm);
        let end = comm.iter().position(|byte| *byte == 0);
        &comm[..end.unwrap_or(comm.len())]
    }

    fn switch(&self, head: &Head, switch: Switch) -> Body<'_> {
        Body::SchedSwitch {
            prev_tid: head.tid,
            prev_comm: self.comm(head.tid),
            prev_prio: Some(i32::from(switch.prev_prio)),
            prev_state: prev_state(switch.prev_state),
            next_tid: switch.next_tid,
            next_comm: self.comm(switch.next_tid),
            next_prio: Some(i32::from(switch.next_prio)),
        }
    }

    fn entry<'a>(
        &'a mut self,
        head: &Head,
        call: SyscallRecord,
        pointed: Option<&'a Pointed>,
        args: &'a mut SyscallArgs<'a>,
    ) -> Body<'a> {
        let abi = self.abi(head);
        let name = self.call_name(abi, call.nr);
        let known = syscall::call(name);
        if let Some(abi) = abi {
            *args = known.args_of_registers(call.args, abi);
        }
        for (arg, bytes) in pointed.into_iter().flatten() {
            let place = (*arg as usize).wrapping_sub(1);
            let role = known.args.get(place).and_then(|arg| arg.role);
            match role {
                Some(Role::Path) => args.path = Some(bytes),
                Some(Role::Path2) => args.path2 = Some(bytes),
                _ if takes_address(name) => args.socket_address = address(bytes),
                _ => {}
            }
        }
        Body::SyscallEnter {
            name,
            nr: Some(call.nr as i32),
            compat: head.flags & COMPAT != 0,
            args,
        }
    }

    fn exit<'a>(
        &'a mut self,
        head: &Head,
        call: SyscallRecord,
        pointed: Option<&'a Pointed>,
        args: &'a mut SyscallArgs<'a>,
    ) -> Body<'a> {
        let abi = self.abi(head);
        let name = self.call_name(abi, call.nr);
        for (_, bytes) in pointed.into_iter().flatten() {
            match name {
                "pipe" | "pipe2" | "socketpair" => args.fds = pair(bytes),
                _ if takes_address(name) => {}
                "accept" | "accept4" | "recvfrom" => args.socket_address = address(bytes),
                _ => {}
            }
        }
        Body::SyscallExit {
            name: Some(name),
            nr: Some(call.nr as i32),
            compat: head.flags & COMPAT != 0,
            ret: Some(call.ret),
            args,
            is_timed: true,
        }
    }

    pub(super) fn abi(&self, head: &Head) -> Option<Abi> {
        let abi = self.abi?;
        Some(if head.flags & COMPAT != 0 {
            abi.compat()
        } else {
            abi
        })
    }

    /// Name of a system call that was looked up before.
    pub(super) fn seen_call_name(&self, head: &Head, nr: u32) -> &str {
        let known = self.abi(head);
        let known = known.and_then(|abi| syscall::number_name(abi, i64::from(nr)));
        known
            .or_else(|| self.numbers.get(&nr).map(AsRef::as_ref))
            .unwrap_or_default()
    }

    pub(super) fn call_name(&mut self, abi: Option<Abi>, nr: u32) -> &str {
        match abi.and_then(|abi| syscall::number_name(abi, i64::from(nr))) {
            Some(name) => name,
            None => self
                .numbers
                .entry(nr)
                .or_insert_with(|| nr.to_string().into()),
        }
    }
}

/// Whether the call takes an address rather than returning one.
fn takes_address(name: &str) -> bool {
    matches!(name, "connect" | "bind" | "sendto")
}

fn pair(bytes: &[u8]) -> Option<[i32; 2]> {
    let bytes: [u8; 8] = bytes.try_into().ok()?;
    let [a, b, c, d, e, f, g, h] = bytes;
    Some([
        i32::from_le_bytes([a, b, c, d]),
        i32::from_le_bytes([e, f, g, h]),
    ])
}

/// A `struct sockaddr`.
fn address(bytes: &[u8]) -> Option<SocketAddress<'_>> {
    const AF_UNIX: u16 = 1;
    const AF_INET: u16 = 2;
    const AF_INET6: u16 = 10;
    let (family, rest) = bytes.split_first_chunk::<2>()?;
    let family = u16::from_le_bytes(*family);
    let port = || {
        let port = rest.first_chunk::<2>()?;
        Some(u16::from_be_bytes(*port))
    };
    Some(match family {
        AF_INET => SocketAddress::Inet {
            port: port()?,
            address: *rest.get(2..)?.first_chunk()?,
        },
        AF_INET6 => SocketAddress::Inet6 {
            port: port()?,
            address: *rest.get(6..)?.first_chunk()?,
        },
        // An abstract name starts with a NUL byte and has no terminator.
        AF_UNIX if rest.first() == Some(&0) => SocketAddress::Unix { path: rest },
        AF_UNIX => {
            let end = rest.iter().position(|byte| *byte == 0);
            SocketAddress::Unix {
                path: &rest[..end.unwrap_or(rest.len())],
            }
        }
        family => SocketAddress::Family(i32::from(family)),
    })
}

/// State of the outgoing thread, in the bits of current kernels (since 4.14).
pub(super) fn prev_state(state: u32) -> PrevState {
    const UNINTERRUPTIBLE: u32 = 0x2;
    const DEAD: u32 = 0x80;
    const NOLOAD: u32 = 0x400;
    const RTLOCK_WAIT: u32 = 0x1000;
    const FROZEN: u32 = 0x8000;
    const IDLE: u32 = UNINTERRUPTIBLE | NOLOAD;
    match state {
        Switch::PREEMPTED => PrevState::Runnable { preempted: true },
        0 => PrevState::Runnable { preempted: false },
        state if state & DEAD != 0 => PrevState::Dead,
        state if state & IDLE == IDLE => PrevState::Idle,
        state if state & (UNINTERRUPTIBLE | RTLOCK_WAIT | FROZEN) != 0 => {
            PrevState::Uninterruptible
        }
        state if state & 0x1 != 0 => PrevState::Sleeping,
        state if state & 0x4 != 0 => PrevState::Stopped,
        state if state & 0x8 != 0 => PrevState::Traced,
        state if state & 0x40 != 0 => PrevState::Parked,
        state => PrevState::Unknown(i64::from(state)),
    }
}

/// Samples missed on all CPUs.
fn missed_runs<'a>(head: &Head, missed: MissedRecord<'a>, ts: Ns) -> Loss<'a> {
    let length = i64::try_from(missed.to.saturating_sub(head.ts));
    Loss {
        ts,
        ts_end: Some(ts.saturating_add(length.unwrap_or(i64::MAX))),
        cpu: None,
        stream: std::str::from_utf8(missed.program).unwrap_or("spool"),
        kind: LossKind::Events,
        count: i64::try_from(missed.count).ok(),
    }
}

/// Letter of `/proc/PID/stat`, as in LTTng's state dumps.
fn status(letter: u8) -> Option<i64> {
    Some(match letter {
        b'R' => 6,
        b'S' | b'D' | b'I' => 5,
        b'Z' => 4,
        b'X' => 7,
        _ => return None,
    })
}

/// `ts` is the time of the record, in wall-clock time.
fn dns_lookup<'a>(head: &Head, lookup: LookupRecord<'a>, ts: Ns) -> Body<'a> {
    let LookupRecord {
        function,
        host,
        service,
        address,
        ..
    } = lookup;
    let length = i64::try_from(head.ts.saturating_sub(lookup.entered)).unwrap_or(i64::MAX);
    match lookup.outcome {
        Some(outcome) => Body::LookupEnd {
            begun: ts.saturating_sub(length),
            function,
            host,
            service,
            outcome,
            address,
        },
        None => Body::LookupBegin {
            function,
            host,
            service,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_those_of_the_kernel() {
        let check = |raw, expected| assert_eq!(prev_state(raw), expected, "{raw:#x}");
        check(0, PrevState::Runnable { preempted: false });
        check(Switch::PREEMPTED, PrevState::Runnable { preempted: true });
        check(0x1, PrevState::Sleeping);
        check(0x2001, PrevState::Sleeping);
        check(0x102, PrevState::Uninterruptible);
        check(0x402, PrevState::Idle);
        check(0x80, PrevState::Dead);
        check(0x40, PrevState::Parked);
    }

    #[test]
    fn addresses_of_any_length_are_read() {
        let inet = [2, 0, 0x1f, 0x90, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        let found = address(&inet);
        assert_eq!(
            found,
            Some(SocketAddress::Inet {
                address: [127, 0, 0, 1],
                port: 8080
            })
        );
        let path = SocketAddress::Unix { path: b"/run/x" };
        assert_eq!(address(b"\x01\0/run/x\0\0"), Some(path));
        for length in 0..inet.len() {
            address(&inet[..length]);
        }
    }
}
