//! Writes events as lines of the text format.

mod lookups;

use std::fmt::{self, Write as _};
use std::net::Ipv4Addr;

use whyslow_model::Ns;
use whyslow_model::event::{
    BlockRange, Body, Context, Endpoint as EndOfTcp, Event, Interrupt, IrqKind, Loss, LossKind,
    NetAddress, NetHeaders, NetKind, SocketAddress, StateProcess, SyscallArgs, TcpChange,
    WakeupKind,
};

use super::values::{Device, Endpoint, Hex, State, Time};

/// Appends the line of an event, including the line break.
pub fn write_event(event: &Event<'_>, out: &mut String) {
    let mut line = LineWriter { out };
    line.head(event.ts, event.cpu);
    line.context(&event.context);
    line.body(&event.body);
    out.push('\n');
}

/// Appends the line of a loss.
pub fn write_loss(loss: &Loss<'_>, out: &mut String) {
    let mut line = LineWriter { out };
    line.head(loss.ts, loss.cpu);
    line.name("lost");
    line.field(
        "kind",
        match loss.kind {
            LossKind::Events => "events",
            LossKind::Packets => "packets",
            LossKind::Bytes => "bytes",
        },
    );
    if let Some(until) = loss.ts_end {
        line.field("until", Time(until));
    }
    line.some("count", loss.count);
    if !loss.stream.is_empty() {
        line.bytes("stream", loss.stream.as_bytes());
    }
    out.push('\n');
}

/// Appends the line of a fact about the machine.
pub fn write_metadata(key: &str, value: &str, out: &mut String) {
    out.push_str("meta");
    LineWriter { out }.bytes(key, value.as_bytes());
    out.push('\n');
}

pub(super) struct LineWriter<'o> {
    out: &'o mut String,
}

impl LineWriter<'_> {
    fn head(&mut self, ts: Ns, cpu: Option<i32>) {
        self.push(format_args!("{}", Time(ts)));
        match cpu {
            Some(cpu) => self.push(format_args!(" [{cpu}]")),
            None => self.push(format_args!(" [-]")),
        }
    }

    fn context(&mut self, context: &Context<'_>) {
        if *context == Context::default() {
            return;
        }
        let before = self.out.len();
        self.some("tid", context.tid);
        self.some("pid", context.pid);
        self.some("ppid", context.ppid);
        self.some_bytes("comm", context.comm);
        self.some("prio", context.prio);
        self.some("interrupt", context.interrupt.map(Interrupt::name));
        self.out.replace_range(before..=before, " (");
        self.out.push(')');
    }

    fn body(&mut self, body: &Body<'_>) {
        match *body {
            Body::SchedSwitch {
                prev_tid,
                prev_comm,
                prev_prio,
                prev_state,
                next_tid,
                next_comm,
                next_prio,
            } => {
                self.name("sched_switch");
                self.field("prev", prev_tid);
                self.bytes("prev_comm", prev_comm);
                self.some("prev_prio", prev_prio);
                self.field("prev_state", State(prev_state));
                self.field("next", next_tid);
                self.bytes("next_comm", next_comm);
                self.some("next_prio", next_prio);
            }
            Body::SchedWakeup {
                kind,
                tid,
                comm,
                prio,
                target_cpu,
            } => {
                self.name(match kind {
                    WakeupKind::Waking => "sched_waking",
                    WakeupKind::Wakeup => "sched_wakeup",
                    WakeupKind::WakeupNew => "sched_wakeup_new",
                });
                self.field("tid", tid);
                self.bytes("comm", comm);
                self.some("prio", prio);
                self.some("target_cpu", target_cpu);
            }
            Body::SchedMigrate { tid, to_cpu } => {
                self.name("sched_migrate");
                self.field("tid", tid);
                self.field("to_cpu", to_cpu);
            }
            Body::Fork {
                parent_tid,
                parent_pid,
                parent_comm,
                child_tid,
                child_pid,
                child_comm,
            } => {
                self.name("fork");
                self.field("parent", parent_tid);
                self.some("parent_pid", parent_pid);
                self.bytes("parent_comm", parent_comm);
                self.field("child", child_tid);
                self.some("child_pid", child_pid);
                self.bytes("child_comm", child_comm);
            }
            Body::Exec {
                filename,
                tid,
                old_tid,
            } => {
                self.name("exec");
                self.bytes("filename", filename);
                self.some("tid", tid);
                self.some("old_tid", old_tid);
            }
            Body::Exit { tid, comm } => {
                self.name("exit");
                self.field("tid", tid);
                self.bytes("comm", comm);
            }
            Body::Free { tid } => {
                self.name("free");
                self.field("tid", tid);
            }
            Body::CommChange { tid, comm } => {
                self.name("comm");
                self.field("tid", tid);
                self.bytes("comm", comm);
            }
            Body::PrioChange { tid, prio } => {
                self.name("prio");
                self.field("tid", tid);
                self.field("prio", prio);
            }
            Body::SyscallEnter {
                name,
                nr,
                compat,
                args,
            } => {
                self.name("syscall_enter");
                self.bytes("name", name.as_bytes());
                self.some("nr", nr);
                self.flag("compat", compat);
                self.syscall_args(args);
            }
            Body::SyscallExit {
                name,
                nr,
                compat,
                ret,
                args,
                is_timed,
            } => {
                self.name("syscall_exit");
                self.some_bytes("name", name.map(str::as_bytes));
                self.some("nr", nr);
                self.flag("compat", compat);
                self.some("ret", ret);
                self.flag("untimed", !is_timed);
                self.syscall_args(args);
            }
            Body::IrqEnter { kind, nr, name } => {
                self.name("irq_enter");
                self.field("kind", irq_kind(kind));
                self.field("nr", nr);
                self.some_bytes("name", name);
            }
            Body::IrqExit { kind, nr, ret } => {
                self.name("irq_exit");
                self.field("kind", irq_kind(kind));
                self.field("nr", nr);
                self.some("ret", ret);
            }
            Body::SoftirqRaise { nr } => {
                self.name("softirq_raise");
                self.field("nr", nr);
            }
            Body::Net {
                kind,
                netif,
                bytes,
                skbaddr,
                ret,
                headers,
            } => {
                self.name("net");
                self.field(
                    "kind",
                    match kind {
                        NetKind::Receive => "receive",
                        NetKind::Queue => "queue",
                        NetKind::Transmit => "transmit",
                    },
                );
                self.bytes("netif", netif);
                self.field("bytes", bytes);
                self.some("skbaddr", skbaddr.map(Hex));
                self.some("ret", ret);
                if let Some(headers) = headers {
                    self.net_headers(&headers);
                }
            }
            Body::PageAlloc { order } => {
                self.name("page_alloc");
                self.field("order", order);
            }
            Body::PageFree { order } => {
                self.name("page_free");
                self.field("order", order);
            }
            Body::NetFault {
                kind,
                skbaddr,
                reason,
                ethertype,
                headers,
            } => {
                self.name("net_fault");
                self.field("kind", kind.name());
                self.some("skbaddr", skbaddr.map(Hex));
                self.some("reason", reason);
                self.some("ethertype", ethertype);
                if let Some(headers) = headers {
                    self.net_headers(&headers);
                }
            }
            Body::Memory { kind, order } => {
                self.name("memory");
                self.field("kind", kind.name());
                self.field("order", order);
            }
            Body::ReclaimBegin { kind, order, node } => {
                self.name("reclaim_begin");
                self.field("kind", kind.name());
                self.some("order", order);
                self.some("node", node);
            }
            Body::ReclaimEnd { kind, pages, node } => {
                self.name("reclaim_end");
                self.field("kind", kind.name());
                self.some("pages", pages);
                self.some("node", node);
            }
            Body::Work(work) => {
                self.name("work");
                self.field("kind", work.kind.name());
                self.field("phase", work.phase.name());
                self.some("dev", work.dev.map(Device));
                self.some("reason", work.reason);
                self.some("transaction", work.transaction);
                self.some("pages", work.pages);
                self.some("dur", work.dur);
            }
            Body::Stack(ref stack) => self.stack(stack),
            Body::Wall(ref look) => self.wall(look),
            Body::LockWait(ref wait) => self.lock_wait(wait),
            Body::WorkItem(item) => {
                self.name("work_item");
                self.field("phase", item.phase.name());
                self.field("work", Hex(item.work));
                self.some("address", item.address.map(Hex));
                self.some_bytes("function", item.function);
                let workqueue = Some(item.workqueue).filter(|name| !name.is_empty());
                self.some_bytes("workqueue", workqueue);
                self.field("is_worker", item.is_worker);
            }
            Body::StateProcess(ref process) => self.state_process(process),
            Body::StateFd {
                pid,
                file_table,
                fd,
                flags,
                path,
            } => {
                self.name("state_fd");
                self.some("pid", pid);
                self.some("file_table", file_table.map(Hex));
                self.field("fd", fd);
                self.some("flags", flags);
                self.bytes("path", path);
            }
            Body::StateBlockDevice { dev, name } => {
                self.name("state_block_device");
                self.field("dev", Device(dev));
                self.bytes("name", name);
            }
            Body::StateNetInterface {
                name,
                ifindex,
                address,
            } => {
                self.name("state_net_interface");
                self.bytes("name", name);
                self.some("ifindex", ifindex);
                self.some("address", address.map(Ipv4Addr::from));
            }
            Body::StateIrq { irq, name, action } => {
                self.name("state_irq");
                self.field("irq", irq);
                self.bytes("name", name);
                self.bytes("action", action);
            }
            Body::StateEnd => self.name("state_end"),
            Body::ReportedCounters(ref counters) => {
                self.name("counters");
                self.field("reported_by", counters.reported_by);
                self.some("pid", counters.pid);
                self.some_bytes("subject", counters.subject);
                self.some("interval", counters.interval);
                self.bytes("values", counters.values.0.as_bytes());
            }
            Body::LookupBegin { .. } | Body::LookupEnd { .. } => self.lookup(body),
            Body::Tcp(ref change) => self.tcp(change),
            Body::ProcessAbout(ref about) => {
                self.name("process");
                self.field("pid", about.pid);
                self.some("ppid", about.ppid);
                self.some_bytes("executable", about.executable);
                self.some_bytes("command_line", about.command_line);
                self.some("uid", about.uid);
                self.some("created", about.ts_created.map(Time));
            }
            Body::Marker { name, text } => {
                self.name("marker");
                self.bytes("name", name.as_bytes());
                self.bytes("text", text.as_bytes());
            }
            ref body => match block_parts(body) {
                Some((name, range, more)) => {
                    self.name(name);
                    self.block_range(range);
                    self.block_more(more);
                }
                None => self.name("other"),
            },
        }
    }

    fn block_range(&mut self, range: &BlockRange<'_>) {
        self.field("dev", Device(range.dev));
        self.field("sector", range.sector);
        self.field("sectors", range.sectors);
        self.some("bytes", range.bytes);
        self.field("rwbs", range.flags.letters());
        self.some("tid", range.tid);
        self.some_bytes("comm", range.comm);
    }

    fn block_more(&mut self, more: BlockMore) {
        match more {
            BlockMore::Nothing => {}
            BlockMore::Error(error) => self.some("error", error),
            BlockMore::Remap(dev, sector) => {
                self.field("old_dev", Device(dev));
                self.field("old_sector", sector);
            }
            BlockMore::Split(sector) => self.field("new_sector", sector),
        }
    }

    fn tcp(&mut self, change: &TcpChange) {
        let side = |side: Option<EndOfTcp>| side.map(|side| Endpoint(side.address, side.port));
        self.name("tcp");
        self.field("sock", Hex(change.sock));
        self.field("from", change.from.name());
        self.field("to", change.to.name());
        self.some("local", side(change.local));
        self.some("peer", side(change.peer));
        self.some("acked", change.acked);
        self.some("received", change.received);
        self.some("retransmits", change.retransmits);
        self.some("rtt_us", change.rtt_us);
        self.field("error", change.error);
    }

    fn net_headers(&mut self, headers: &NetHeaders) {
        self.field("protocol", headers.protocol);
        self.field("source", Endpoint(headers.source, headers.source_port));
        let destination = Endpoint(headers.destination, headers.destination_port);
        self.field("destination", destination);
        self.some("tcp_seq", headers.tcp_seq);
    }

    fn state_process(&mut self, process: &StateProcess<'_>) {
        self.name("state_process");
        self.field("tid", process.tid);
        self.some("pid", process.pid);
        self.some("ppid", process.ppid);
        self.some_bytes("comm", process.comm);
        self.some("is_kernel", process.is_kernel);
        self.some("status", process.status);
        self.some("cpu", process.cpu);
        self.some("file_table", process.file_table.map(Hex));
    }

    fn syscall_args(&mut self, args: &SyscallArgs<'_>) {
        self.some("fd", args.fd);
        self.some("fd2", args.fd2);
        self.some("dirfd", args.dirfd);
        self.some_bytes("path", args.path);
        self.some("dirfd2", args.dirfd2);
        self.some_bytes("path2", args.path2);
        self.some("count", args.count);
        self.some("offset", args.offset);
        self.some("flags", args.flags);
        self.some("command", args.command);
        self.some("value", args.value);
        self.some("address", args.address.map(Hex));
        self.some("address2", args.address2.map(Hex));
        self.some("timeout", args.timeout.map(Hex));
        self.some("family", args.family);
        self.some("socket_type", args.socket_type);
        match args.socket_address {
            None => {}
            Some(SocketAddress::Inet { address, port }) => {
                self.field("sockaddr", Endpoint(NetAddress::V4(address), Some(port)));
            }
            Some(SocketAddress::Inet6 { address, port }) => {
                self.field("sockaddr", Endpoint(NetAddress::V6(address), Some(port)));
            }
            Some(SocketAddress::Unix { path }) => {
                let value = [b"unix:", path].concat();
                self.bytes("sockaddr", &value);
            }
            Some(SocketAddress::Family(family)) => {
                self.field("sockaddr", format_args!("family:{family}"));
            }
        }
        if let Some([first, second]) = args.fds {
            self.field("fds", format_args!("{first},{second}"));
        }
        if let Some(raw) = args.raw {
            self.field("raw", raw.map(|value| Hex(value).to_string()).join(","));
        }
    }

    pub(super) fn name(&mut self, name: &str) {
        self.out.push(' ');
        self.out.push_str(name);
    }

    pub(super) fn field(&mut self, key: &str, value: impl fmt::Display) {
        self.push(format_args!(" {key}={value}"));
    }

    pub(super) fn some(&mut self, key: &str, value: Option<impl fmt::Display>) {
        if let Some(value) = value {
            self.field(key, value);
        }
    }

    fn flag(&mut self, key: &str, value: bool) {
        if value {
            self.field(key, 1);
        }
    }

    fn some_bytes(&mut self, key: &str, value: Option<&[u8]>) {
        if let Some(value) = value {
            self.bytes(key, value);
        }
    }

    pub(super) fn bytes(&mut self, key: &str, value: &[u8]) {
        self.push(format_args!(" {key}="));
        let plain = |byte: &u8| byte.is_ascii_graphic() && !b"\"\\()".contains(byte);
        if value.iter().all(plain) {
            self.out.extend(value.iter().map(|&byte| byte as char));
            return;
        }
        self.out.push('"');
        for chunk in value.utf8_chunks() {
            for character in chunk.valid().chars() {
                self.character(character);
            }
            for byte in chunk.invalid() {
                self.push(format_args!("\\x{byte:02x}"));
            }
        }
        self.out.push('"');
    }

    fn character(&mut self, character: char) {
        match character {
            '\n' => self.out.push_str("\\n"),
            '\r' => self.out.push_str("\\r"),
            '\t' => self.out.push_str("\\t"),
            '"' => self.out.push_str("\\\""),
            '\\' => self.out.push_str("\\\\"),
            control if control.is_ascii_control() => {
                self.push(format_args!("\\x{:02x}", control as u32));
            }
            other => self.out.push(other),
        }
    }

    fn push(&mut self, text: fmt::Arguments<'_>) {
        self.out
            .write_fmt(text)
            .expect("writing to a String cannot fail");
    }
}

/// Fields of a block event in addition to its range.
enum BlockMore {
    Nothing,
    Error(Option<i32>),
    Remap(i64, i64),
    Split(i64),
}

fn block_parts<'b, 'a>(
    body: &'b Body<'a>,
) -> Option<(&'static str, &'b BlockRange<'a>, BlockMore)> {
    use BlockMore::{Error, Nothing, Remap, Split};
    Some(match body {
        Body::BlockBioQueue(range) => ("block_bio_queue", range, Nothing),
        Body::BlockBioBackmerge(range) => ("block_bio_backmerge", range, Nothing),
        Body::BlockBioFrontmerge(range) => ("block_bio_frontmerge", range, Nothing),
        Body::BlockBioComplete { range, error } => ("block_bio_complete", range, Error(*error)),
        Body::BlockBioRemap {
            range,
            old_dev,
            old_sector,
        } => ("block_bio_remap", range, Remap(*old_dev, *old_sector)),
        Body::BlockSplit { range, new_sector } => ("block_split", range, Split(*new_sector)),
        Body::BlockGetRq(range) => ("block_getrq", range, Nothing),
        Body::BlockRqInsert(range) => ("block_rq_insert", range, Nothing),
        Body::BlockRqIssue(range) => ("block_rq_issue", range, Nothing),
        Body::BlockRqMerge(range) => ("block_rq_merge", range, Nothing),
        Body::BlockRqRequeue(range) => ("block_rq_requeue", range, Nothing),
        Body::BlockRqComplete { range, error } => ("block_rq_complete", range, Error(*error)),
        _ => return None,
    })
}

fn irq_kind(kind: IrqKind) -> &'static str {
    match kind {
        IrqKind::Hard => "hard",
        IrqKind::Soft => "soft",
        IrqKind::Hrtimer => "hrtimer",
        IrqKind::Ipi => "ipi",
    }
}
