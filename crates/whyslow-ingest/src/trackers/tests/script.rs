//! Event sequences as text for tests: one event per line.
//!
//! `TS cCPU [ctx=THREAD|in=none|in=soft|in=hard] VERB ARGUMENTS`, where THREAD is
//! `tid[/pid][:comm]`; see [`body`] for the verbs. `loss CPU TS TS_END` and `finish TS` are lines
//! of their own.

use whyslow_model::event::{
    BlockFlags, BlockOp, BlockRange, Body, CacheFill, Context, Endpoint, Event, FillCause,
    FilledPages, Interrupt, IrqKind, ItemPhase, Loss, LossKind, MemoryKind, NetAddress,
    NetFaultKind, NetHeaders, NetKind, PrevState, ReclaimKind, Signal, StateMount, StateProcess,
    SyscallArgs, TcpChange, TcpState, WakeupKind, Work, WorkItem, WorkKind, WorkPhase,
};
use whyslow_model::row::{Row, Sink};
use whyslow_model::tables::{Collected, EmitAll};
use whyslow_model::{Sym, Symbols};

use crate::trackers::Trackers;

/// Runs a script through all trackers.
pub(super) fn run(script: &str) -> (Collected, Symbols, Trackers) {
    let mut rows = Collected::default();
    let mut symbols = Symbols::new();
    let mut trackers = Trackers::new(&mut symbols);
    let mut last = 0;
    for line in script.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [] => {}
            ["loss", cpu, ts, ts_end] => {
                let loss = Loss {
                    ts: number(ts),
                    ts_end: Some(number(ts_end)),
                    cpu: Some(number(cpu) as i32),
                    stream: "chan",
                    kind: LossKind::Events,
                    count: Some(1),
                };
                trackers.loss(&loss, &mut symbols, &mut rows);
            }
            ["finish", ts] => last = number(ts),
            _ => {
                let event = event(&words);
                last = event.ts;
                trackers.event(&event, &mut symbols, &mut rows);
            }
        }
    }
    finish(&mut trackers, last, &mut symbols, &mut rows);
    (rows, symbols, trackers)
}

fn finish<S: EmitAll>(trackers: &mut Trackers, ts: i64, symbols: &mut Symbols, sink: &mut S) {
    trackers.finish(ts, symbols, sink);
}

fn event<'a>(words: &[&'a str]) -> Event<'a> {
    let ts = number(words[0]);
    let cpu = words[1].strip_prefix('c').map(|cpu| number(cpu) as i32);
    let (context, rest) = match words[2].strip_prefix("ctx=") {
        Some(thread) => {
            let (tid, pid, comm) = thread_of(thread);
            let context = Context {
                tid: Some(tid),
                pid,
                comm: (!comm.is_empty()).then_some(comm),
                ..Context::default()
            };
            (context, &words[3..])
        }
        None => match words[2].strip_prefix("in=") {
            Some(interrupt) => {
                let context = Context {
                    interrupt: Some(match interrupt {
                        "none" => Interrupt::None,
                        "soft" => Interrupt::Soft,
                        _ => Interrupt::Hard,
                    }),
                    ..Context::default()
                };
                (context, &words[3..])
            }
            None => (Context::default(), &words[2..]),
        },
    };
    Event {
        ts,
        cpu,
        context,
        body: body(rest),
    }
}

fn body<'a>(words: &[&'a str]) -> Body<'a> {
    match *words {
        ["other"] => Body::Other,
        ["switch", prev, state, next] => {
            let ((prev, prev_prio), (next, next_prio)) = (prio_of(prev), prio_of(next));
            let (prev_tid, _, prev_comm) = thread_of(prev);
            let (next_tid, _, next_comm) = thread_of(next);
            Body::SchedSwitch {
                prev_tid,
                prev_comm,
                prev_prio: Some(prev_prio),
                prev_state: prev_state(state),
                next_tid,
                next_comm,
                next_prio: Some(next_prio),
            }
        }
        [verb @ ("waking" | "wakeup" | "wakeup_new"), thread, cpu] => {
            let (thread, prio) = prio_of(thread);
            let (tid, _, comm) = thread_of(thread);
            Body::SchedWakeup {
                kind: match verb {
                    "waking" => WakeupKind::Waking,
                    "wakeup" => WakeupKind::Wakeup,
                    _ => WakeupKind::WakeupNew,
                },
                tid,
                comm,
                prio: Some(prio),
                target_cpu: Some(number(cpu) as i32),
            }
        }
        ["migrate", tid, cpu] => Body::SchedMigrate {
            tid: number(tid) as i32,
            to_cpu: number(cpu) as i32,
        },
        ["fork", parent, child] => {
            let (parent_tid, parent_pid, parent_comm) = thread_of(parent);
            let (child_tid, child_pid, child_comm) = thread_of(child);
            Body::Fork {
                parent_tid,
                parent_pid,
                parent_comm,
                child_tid,
                child_pid,
                child_comm,
            }
        }
        ["exec", tid, old_tid, filename] => Body::Exec {
            filename: filename.as_bytes(),
            tid: Some(number(tid) as i32),
            old_tid: Some(number(old_tid) as i32),
        },
        ["exit", thread] => {
            let (tid, _, comm) = thread_of(thread);
            Body::Exit { tid, comm }
        }
        ["free", tid] => Body::Free {
            tid: number(tid) as i32,
        },
        ["rename", thread] => {
            let (tid, _, comm) = thread_of(thread);
            Body::CommChange { tid, comm }
        }
        ["dump", thread, ppid, status] => {
            let (tid, pid, comm) = thread_of(thread);
            Body::StateProcess(StateProcess {
                tid,
                pid,
                ppid: Some(number(ppid) as i32),
                comm: Some(comm),
                status: Some(number(status)),
                cpu: Some(0),
                ..StateProcess::default()
            })
        }
        ["syscall", name] => Body::SyscallEnter {
            name,
            nr: None,
            compat: false,
            args: &SyscallArgs::NONE,
        },
        ["return", name] => Body::SyscallExit {
            name: Some(name),
            nr: None,
            compat: false,
            ret: Some(0),
            args: &SyscallArgs::NONE,
            is_timed: true,
        },
        ["irq+", nr, name] => irq_enter(IrqKind::Hard, nr, Some(name)),
        ["irq+", nr] => irq_enter(IrqKind::Hard, nr, None),
        ["soft+", nr] => irq_enter(IrqKind::Soft, nr, None),
        ["timer+"] => irq_enter(IrqKind::Hrtimer, "0", None),
        ["irq-", nr] => irq_exit(IrqKind::Hard, nr),
        ["soft-", nr] => irq_exit(IrqKind::Soft, nr),
        ["timer-"] => irq_exit(IrqKind::Hrtimer, "0"),
        ["raise", nr] => Body::SoftirqRaise {
            nr: number(nr) as i32,
        },
        ["ipi+", nr] => irq_enter(IrqKind::Ipi, nr, None),
        ["ipi-", nr] => irq_exit(IrqKind::Ipi, nr),
        ["ipi", nr, first, cpus] => Body::IpiRaise {
            nr: number(nr) as i32,
            first: number(first) as i32,
            cpus: number(cpus) as u64,
        },
        ["block", phase, sector] => {
            let range = BlockRange {
                dev: 8 << 20,
                sector: number(sector),
                sectors: 8,
                bytes: None,
                flags: BlockFlags {
                    op: BlockOp::Read,
                    sync: false,
                    meta: false,
                    ahead: false,
                    fua: false,
                    preflush: false,
                    secure: false,
                },
                tid: None,
                comm: None,
            };
            match phase {
                "queue" => Body::BlockBioQueue(range),
                "issue" => Body::BlockRqIssue(range),
                _ => Body::BlockRqComplete { range, error: None },
            }
        }
        ["irqname", nr, name] => Body::StateIrq {
            irq: number(nr) as i32,
            name: b"chip",
            action: name.as_bytes(),
        },
        ["page+", order] => Body::PageAlloc {
            order: number(order) as u32,
        },
        ["page-", order] => Body::PageFree {
            order: number(order) as u32,
        },
        [verb @ ("rx" | "queue" | "tx"), netif, bytes] => Body::Net {
            kind: match verb {
                "rx" => NetKind::Receive,
                "queue" => NetKind::Queue,
                _ => NetKind::Transmit,
            },
            netif: netif.as_bytes(),
            bytes: number(bytes),
            skbaddr: None,
            ret: None,
            headers: None,
        },
        ["mount", ns, dev, root, point] => Body::StateMount(StateMount {
            mount_ns: number(ns),
            id: number(dev) as i32,
            parent: 0,
            dev: number(dev),
            root: root.as_bytes(),
            point: point.as_bytes(),
            fs: b"ext4",
            source: b"",
            options: b"",
        }),
        ["place", dev, inode, path] => Body::CacheFill(CacheFill::Place {
            dev: number(dev),
            inode: number(inode) as u64,
            path: path.as_bytes(),
        }),
        ["came", cause, since, dev, inode, pages, fd] => {
            Body::CacheFill(CacheFill::Pages(FilledPages {
                since: number(since),
                until: 9,
                dev: number(dev),
                inode: number(inode) as u64,
                pages: number(pages),
                bytes: number(pages) * 4096,
                cause: of_name(&FillCause::ALL, FillCause::name, cause),
                fd: fd.parse().ok(),
            }))
        }
        ["memory", kind, order] => Body::Memory {
            kind: of_name(&MemoryKind::ALL, MemoryKind::name, kind),
            order: number(order) as u32,
        },
        ["reclaim+", kind, order, node] => Body::ReclaimBegin {
            kind: of_name(&ReclaimKind::ALL, ReclaimKind::name, kind),
            order: Some(number(order) as i32),
            node: Some(number(node) as i32),
        },
        ["reclaim-", kind, pages, node] => Body::ReclaimEnd {
            kind: of_name(&ReclaimKind::ALL, ReclaimKind::name, kind),
            pages: Some(number(pages)),
            node: Some(number(node) as i32),
        },
        ["work", kind, phase, dev, amount] => Body::Work(Work {
            kind: of_name(&WorkKind::ALL, WorkKind::name, kind),
            phase: of_name(&WorkPhase::ALL, WorkPhase::name, phase),
            dev: Some(number(dev)),
            reason: None,
            transaction: None,
            pages: Some(number(amount)),
            dur: Some(number(amount)),
        }),
        [verb @ ("signal" | "got"), number, tid, pid, result] => {
            let signal = Signal {
                number: self::number(number) as i32,
                code: 0,
                tid: self::number(tid) as i32,
                pid: self::number(pid) as i32,
                result: self::number(result) as u32,
                is_group: true,
                has_handler: false,
            };
            if verb == "signal" {
                Body::Signal(signal)
            } else {
                Body::SignalDelivered(signal)
            }
        }
        ["tcp", sock, from, to, error] => Body::Tcp(TcpChange {
            sock: number(sock) as u64,
            from: of_name(&TcpState::ALL, TcpState::name, from),
            to: of_name(&TcpState::ALL, TcpState::name, to),
            local: Some(Endpoint {
                address: NetAddress::V4([10, 0, 0, 1]),
                port: (to != "syn_sent").then_some(1000 + number(sock) as u16),
            }),
            peer: Some(Endpoint {
                address: NetAddress::V4([10, 0, 0, 2]),
                port: Some(80),
            }),
            acked: Some(5),
            received: Some(6),
            retransmits: Some(0),
            rtt_us: Some(7),
            error: number(error) as i32,
        }),
        ["item", phase, work, function, is_worker] => Body::WorkItem(WorkItem {
            phase: of_name(&ItemPhase::ALL, ItemPhase::name, phase),
            work: number(work) as u64,
            address: Some(0xff),
            function: Some(function.as_bytes()).filter(|name| *name != b"-"),
            workqueue: if phase == "queued" { b"events" } else { b"" },
            is_worker: is_worker == "worker",
        }),
        ["drop", reason, ethertype] => Body::NetFault {
            kind: NetFaultKind::Drop,
            skbaddr: None,
            reason: Some(number(reason)),
            ethertype: Some(number(ethertype) as u16),
            headers: None,
        },
        [kind @ ("retransmit" | "retransmit_synack"), last, port] => Body::NetFault {
            kind: of_name(&NetFaultKind::ALL, NetFaultKind::name, kind),
            skbaddr: None,
            reason: None,
            ethertype: None,
            headers: Some(NetHeaders {
                protocol: 6,
                source: NetAddress::V4([10, 0, 0, 1]),
                destination: NetAddress::V4([10, 0, 0, number(last) as u8]),
                source_port: Some(80),
                destination_port: Some(number(port) as u16),
                tcp_seq: None,
            }),
        },
        ["netif", name, last] => Body::StateNetInterface {
            name: name.as_bytes(),
            ifindex: None,
            address: Some([10, 0, 0, number(last) as u8]),
        },
        ["mark", name, text] => Body::Marker { name, text },
        _ => panic!("no such event: {words:?}"),
    }
}

fn of_name<K: Copy>(all: &[K], name: fn(K) -> &'static str, text: &str) -> K {
    let found = all.iter().find(|kind| name(**kind) == text);
    *found.expect("a kind")
}

fn irq_enter<'a>(kind: IrqKind, nr: &str, name: Option<&'a str>) -> Body<'a> {
    Body::IrqEnter {
        kind,
        nr: number(nr) as i32,
        name: name.map(str::as_bytes),
    }
}

fn irq_exit(kind: IrqKind, nr: &str) -> Body<'static> {
    Body::IrqExit {
        kind,
        nr: number(nr) as i32,
        ret: Some(1),
    }
}

fn prev_state(state: &str) -> PrevState {
    match state {
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
        _ => PrevState::Unknown(33),
    }
}

/// `thread[@prio]`
fn prio_of(text: &str) -> (&str, i32) {
    match text.split_once('@') {
        Some((thread, prio)) => (thread, number(prio) as i32),
        None => (text, 120),
    }
}

/// `tid[/pid][:comm]`
fn thread_of(text: &str) -> (i32, Option<i32>, &[u8]) {
    let (numbers, comm) = text.split_once(':').unwrap_or((text, ""));
    let (tid, pid) = match numbers.split_once('/') {
        Some((tid, pid)) => (tid, Some(number(pid) as i32)),
        None => (numbers, None),
    };
    (number(tid) as i32, pid, comm.as_bytes())
}

fn number(text: &str) -> i64 {
    text.parse().expect("a number")
}

/// Rows sorted by key, one per line with the selected columns; `-` is null.
pub(super) fn render<R: Row>(rows: &[R], columns: &str, symbols: &Symbols) -> String {
    let mut rows = rows.to_vec();
    rows.sort_by_key(Row::key);
    let mut text = String::new();
    for row in &rows {
        let mut cells = Cells {
            symbols,
            cells: Vec::new(),
        };
        row.put(&mut cells);
        let line: Vec<&str> = columns
            .split_whitespace()
            .map(|column| {
                let (index, _) = R::TABLE.column(column).expect("a column of the table");
                cells.cells[index].as_str()
            })
            .collect();
        text += &line.join(" ");
        text.push('\n');
    }
    text
}

struct Cells<'a> {
    symbols: &'a Symbols,
    cells: Vec<String>,
}

impl Cells<'_> {
    fn put<T: ToString>(&mut self, value: Option<T>) {
        let text = value.map_or("-".to_owned(), |value| value.to_string());
        self.cells.push(text);
    }
}

impl Sink for Cells<'_> {
    fn i64(&mut self, _: usize, value: Option<i64>) {
        self.put(value);
    }
    fn i32(&mut self, _: usize, value: Option<i32>) {
        self.put(value);
    }
    fn f64(&mut self, _: usize, value: Option<f64>) {
        self.put(value);
    }
    fn bool(&mut self, _: usize, value: Option<bool>) {
        self.put(value);
    }
    fn sym(&mut self, _: usize, value: Option<Sym>) {
        let text = value.map(|sym| self.symbols.get(sym).to_owned());
        self.put(text);
    }
}
