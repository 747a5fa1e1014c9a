//! From a row to lines of the text format.

use std::collections::{BTreeSet, HashMap};
use std::fmt::{Arguments, Write as _};

use whyslow_model::Ns;
use whyslow_model::counter::{CounterUnit, push_told};

use super::super::strace::UNNAMED_TID;
use super::super::sysstat::quoted;
use super::FIRST_TID;
use super::columns::{Field, Row, Tool};

/// Calls of one process at once.
const AT_ONCE_MAX: usize = 4096;
const KIB: f64 = 1024.0;

#[derive(Debug, Default)]
pub(super) struct Emit {
    /// By process and name: made-up threads, and until when each has something to do.
    threads: HashMap<(i32, String), Vec<(i32, Ns)>>,
    made: i32,
    named: BTreeSet<String>,
    socks: u64,
}

/// Who something is told of, as a context.
type Who = String;

impl Emit {
    /// Whether its thread was made up.
    pub(super) fn event(
        &mut self,
        (tool, row): (Tool, &Row<'_>),
        (at, interval): (Ns, Option<Ns>),
        out: &mut String,
    ) -> Result<bool, String> {
        let begin = at.saturating_sub(row.latency().unwrap_or(0));
        match tool {
            Tool::Open | Tool::Stat => {
                let (tid, who) = self.thread(row, (at, at))?;
                path_call(tool, row, (at, &who), out);
                return Ok(tid.is_some());
            }
            Tool::SlowFile => {
                let (tid, who) = self.thread(row, (begin, at))?;
                file_call(row, (tid, &who), (begin, at), out);
                return Ok(tid.is_some());
            }
            Tool::Block => {
                let (tid, who) = self.thread(row, (at, at))?;
                self.request(row, &who, (begin, at), out)?;
                return Ok(tid.is_some());
            }
            Tool::Lookup => {
                let (tid, who) = self.thread(row, (begin, at))?;
                let host = quoted(row.text(Field::Host).unwrap_or_default());
                let since = Time(begin);
                say(
                    at,
                    &who,
                    format_args!("lookup since={since} function=unknown host={host}"),
                    out,
                );
                return Ok(tid.is_some());
            }
            Tool::TcpRetransmit | Tool::TcpDrop => fault(tool, row, at, out)?,
            Tool::TcpLife | Tool::TcpConnect | Tool::TcpAccept => {
                let begin = match tool {
                    Tool::TcpLife => {
                        at.saturating_sub(row.scaled(Field::LengthMs, 1e6).unwrap_or(0).max(0))
                    }
                    _ => begin,
                };
                let (tid, who) = self.thread(row, (begin, at))?;
                self.connection((tool, row), &who, (begin, at), out);
                return Ok(tid.is_some());
            }
            Tool::Reclaim => {
                let (tid, who) = self.thread(row, (begin, at))?;
                let pages = row.int(Field::Pages).unwrap_or(0);
                say(begin, &who, format_args!("reclaim_begin kind=direct"), out);
                say(
                    at,
                    &who,
                    format_args!("reclaim_end kind=direct pages={pages}"),
                    out,
                );
                return Ok(tid.is_some());
            }
            Tool::Sync => {
                let (tid, who) = self.thread(row, (at, at))?;
                let name = call_name(row.text(Field::Call).unwrap_or_default());
                say(at, &who, format_args!("syscall_enter name={name}"), out);
                say(
                    at,
                    &who,
                    format_args!("syscall_exit name={name} untimed=1"),
                    out,
                );
                return Ok(tid.is_some());
            }
            Tool::Exec => exec(row, at, out)?,
            Tool::Exit => exit(row, at, out)?,
            Tool::Signal => {
                let (tid, who) = self.thread(row, (at, at))?;
                let fields = [Field::Signal, Field::TargetPid, Field::Result];
                let [signal, target, result] =
                    fields.map(|field| row.text(field).unwrap_or_default());
                let text = quoted(&format!("signal {signal} to {target}, result {result}"));
                say(
                    at,
                    &who,
                    format_args!("marker name=signal text={text}"),
                    out,
                );
                return Ok(tid.is_some());
            }
            Tool::RunQueue | Tool::TopFile | Tool::BlockLatency => {
                counters((tool, row), (at, interval), out);
            }
        }
        Ok(false)
    }

    /// A thread of the process that has nothing else to do meanwhile, and its context.
    fn thread(
        &mut self,
        row: &Row<'_>,
        (begin, end): (Ns, Ns),
    ) -> Result<(Option<i32>, Who), String> {
        let comm = row.text(Field::Comm).unwrap_or_default();
        // fileslower names the thread itself, of an unknown process.
        if let (Some(tid), None) = (row.id(Field::Tid), row.id(Field::Pid)) {
            return Ok((None, format!(" (tid={tid} comm={})", quoted(comm))));
        }
        let pid = row.id(Field::Pid).unwrap_or(0);
        let made = &mut self.made;
        let threads = self.threads.entry((pid, comm.to_owned())).or_default();
        let place = match threads.iter().position(|(_, until)| *until <= begin) {
            Some(place) => place,
            None if threads.len() < AT_ONCE_MAX => {
                let tid = if pid == 0 && comm.is_empty() && threads.is_empty() {
                    UNNAMED_TID
                } else {
                    *made += 1;
                    FIRST_TID.saturating_add(*made)
                };
                threads.push((tid, begin));
                threads.len() - 1
            }
            None => return Err(format!("more than {AT_ONCE_MAX} calls of {comm} at once")),
        };
        let (tid, until) = &mut threads[place];
        *until = end;
        let mut who = format!(" (tid={tid}");
        if pid > 0 {
            let _ = write!(who, " pid={pid}");
        }
        if !comm.is_empty() {
            let _ = write!(who, " comm={}", quoted(comm));
        }
        who.push(')');
        Ok((Some(*tid), who))
    }

    fn request(
        &mut self,
        row: &Row<'_>,
        who: &str,
        (begin, end): (Ns, Ns),
        out: &mut String,
    ) -> Result<(), String> {
        let disk = row.text(Field::Disk).unwrap_or_default();
        let (major, minor) = device(disk);
        if self.named.insert(disk.to_owned()) {
            let name = quoted(disk);
            say(
                begin,
                "",
                format_args!("state_block_device dev={major}:{minor} name={name}"),
                out,
            );
        }
        let bytes = row.int(Field::Bytes).filter(|bytes| *bytes >= 0);
        let bytes = bytes.ok_or("no bytes that a request can have")?;
        let sector = row.int(Field::Sector).unwrap_or(0);
        let letters = row.text(Field::Letters).unwrap_or("N");
        let range = format!(
            "dev={major}:{minor} sector={sector} sectors={} bytes={bytes} rwbs={letters}",
            bytes / 512
        );
        let queue = row.scaled(Field::QueueMs, 1e6).filter(|queue| *queue > 0);
        if let Some(queue) = queue {
            say(
                begin.saturating_sub(queue),
                who,
                format_args!("block_rq_insert {range}"),
                out,
            );
        }
        say(begin, who, format_args!("block_rq_issue {range}"), out);
        say(end, "", format_args!("block_rq_complete {range}"), out);
        Ok(())
    }

    fn connection(
        &mut self,
        (tool, row): (Tool, &Row<'_>),
        who: &str,
        (begin, end): (Ns, Ns),
        out: &mut String,
    ) {
        self.socks += 1;
        let sock = self.socks;
        let local = side(row, Field::Local, Field::LocalPort).map(|side| format!(" local={side}"));
        let peer = side(row, Field::Remote, Field::RemotePort).map(|side| format!(" peer={side}"));
        let sides = format!("{}{}", local.unwrap_or_default(), peer.unwrap_or_default());
        // The numbers of sockets that kernels have are addresses.
        let tcp = |from: &str, to: &str| format!("tcp sock={sock} from={from} to={to}{sides}");
        if tool == Tool::TcpAccept {
            say(end, who, format_args!("{}", tcp("close", "syn_recv")), out);
            let accepted = tcp("syn_recv", "established");
            say(end, who, format_args!("{accepted}"), out);
            return;
        }
        if tool == Tool::TcpConnect {
            say(
                begin,
                who,
                format_args!("{}", tcp("close", "syn_sent")),
                out,
            );
            // tcpconnect tells that it was asked for, and not what became of it.
            if row.latency().is_some() {
                let connected = tcp("syn_sent", "established");
                say(end, who, format_args!("{connected}"), out);
            }
            return;
        }
        let bytes = |field| row.scaled(field, KIB).unwrap_or(0).max(0);
        let (sent, received) = (bytes(Field::SentKb), bytes(Field::ReceivedKb));
        say(
            begin,
            who,
            format_args!("{}", tcp("close", "established")),
            out,
        );
        let closed = tcp("established", "close");
        say(
            end,
            who,
            format_args!("{closed} acked={sent} received={received}"),
            out,
        );
    }
}

/// opensnoop and statsnoop tell what a call gave back, and not how long it took.
fn path_call(tool: Tool, row: &Row<'_>, (at, who): (Ns, &str), out: &mut String) {
    let path = quoted(row.text(Field::Path).unwrap_or_default());
    let error = row.int(Field::Err).unwrap_or(0);
    let name = if tool == Tool::Open { "openat" } else { "stat" };
    let ret = match (error, tool) {
        (0, Tool::Open) => row.int(Field::Fd).unwrap_or(-1),
        (0, _) => 0,
        (error, _) => -error.abs(),
    };
    let flags = row.text(Field::Flags);
    let flags = flags.and_then(|flags| i64::from_str_radix(flags, 8).ok());
    let flags = flags.map_or_else(String::new, |flags| format!(" flags={flags}"));
    say(
        at,
        who,
        format_args!("syscall_enter name={name} path={path}{flags}"),
        out,
    );
    say(
        at,
        who,
        format_args!("syscall_exit name={name} ret={ret} untimed=1"),
        out,
    );
}

/// ext4slower and its like: which call it was is known by its kind only.
fn file_call(
    row: &Row<'_>,
    (tid, who): (Option<i32>, &str),
    (begin, end): (Ns, Ns),
    out: &mut String,
) {
    let path = quoted(row.text(Field::File).unwrap_or_default());
    let bytes = row.int(Field::Bytes).unwrap_or(0);
    let kind = row.text(Field::Letters).unwrap_or_default();
    if kind == "O" {
        say(
            begin,
            who,
            format_args!("syscall_enter name=open path={path}"),
            out,
        );
        say(end, who, format_args!("syscall_exit name=open"), out);
        return;
    }
    let name = match kind {
        "R" => "pread64",
        "W" => "pwrite64",
        _ => "fsync",
    };
    let offset = row
        .scaled(Field::OffsetKb, KIB)
        .or_else(|| row.int(Field::OffsetBytes));
    // No program has a descriptor of this number.
    let fd = tid.unwrap_or(FIRST_TID);
    let owner = row
        .id(Field::Pid)
        .or_else(|| row.id(Field::Tid))
        .unwrap_or(fd);
    say(
        begin,
        who,
        format_args!("state_fd pid={owner} fd={fd} path={path}"),
        out,
    );
    let mut asked = format!("syscall_enter name={name} fd={fd}");
    if name != "fsync" {
        let _ = write!(asked, " count={bytes}");
        if let Some(offset) = offset {
            let _ = write!(asked, " offset={offset}");
        }
    }
    say(begin, who, format_args!("{asked}"), out);
    let ret = if name == "fsync" { 0 } else { bytes };
    say(
        end,
        who,
        format_args!("syscall_exit name={name} ret={ret}"),
        out,
    );
}

fn exec(row: &Row<'_>, at: Ns, out: &mut String) -> Result<(), String> {
    let pid = row.id(Field::Pid).ok_or("no process")?;
    let args = row.text(Field::Args).unwrap_or_default();
    let program = args
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .trim_matches('"');
    let ret = row.int(Field::Ret).unwrap_or(0);
    let comm = row.text(Field::Comm).filter(|comm| !comm.is_empty());
    let comm = comm.map_or_else(String::new, |comm| format!(" comm={}", quoted(comm)));
    let who = format!(" (tid={pid} pid={pid}{comm})");
    let path = quoted(program);
    say(
        at,
        &who,
        format_args!("syscall_enter name=execve path={path}"),
        out,
    );
    if ret == 0 {
        say(at, &who, format_args!("exec filename={path}"), out);
        let parent = row.id(Field::Ppid);
        let parent = parent.map_or_else(String::new, |parent| format!(" ppid={parent}"));
        let line = quoted(args);
        say(
            at,
            "",
            format_args!("process pid={pid}{parent} command_line={line}"),
            out,
        );
    }
    say(
        at,
        &who,
        format_args!("syscall_exit name=execve ret={ret} untimed=1"),
        out,
    );
    Ok(())
}

fn exit(row: &Row<'_>, at: Ns, out: &mut String) -> Result<(), String> {
    let pid = row.id(Field::Pid).ok_or("no process")?;
    let tid = row.id(Field::Tid).unwrap_or(pid);
    let comm = quoted(row.text(Field::Comm).unwrap_or_default());
    let who = format!(" (tid={tid} pid={pid} comm={comm})");
    if let Some(age) = row
        .scaled(Field::AgeSeconds, 1e9)
        .filter(|age| *age >= 0 && tid == pid)
    {
        let created = Time(at.saturating_sub(age));
        let parent = row.id(Field::Ppid);
        let parent = parent.map_or_else(String::new, |parent| format!(" ppid={parent}"));
        say(
            at,
            "",
            format_args!("process pid={pid}{parent} created={created}"),
            out,
        );
    }
    let code = quoted(row.text(Field::ExitCode).unwrap_or_default());
    say(at, &who, format_args!("marker name=exit text={code}"), out);
    say(at, &who, format_args!("exit tid={tid} comm={comm}"), out);
    Ok(())
}

fn counters((tool, row): (Tool, &Row<'_>), (at, interval): (Ns, Option<Ns>), out: &mut String) {
    let mut values = String::new();
    let mut push = |name: &str, value: Option<i64>, unit: CounterUnit| {
        if let Some(value) = value {
            push_told(&mut values, (name, value), unit);
        }
    };
    let subject = match tool {
        Tool::TopFile => {
            push("READS", row.int(Field::Reads), CounterUnit::Count);
            push("WRITES", row.int(Field::Writes), CounterUnit::Count);
            push("R_Kb", row.scaled(Field::ReadKb, KIB), CounterUnit::Bytes);
            push(
                "W_Kb",
                row.scaled(Field::WrittenKb, KIB),
                CounterUnit::Bytes,
            );
            row.text(Field::File)
        }
        Tool::RunQueue => {
            push("run_queue", row.latency(), CounterUnit::Ns);
            None
        }
        _ => {
            push("latency", row.latency(), CounterUnit::Ns);
            row.text(Field::Disk)
        }
    };
    let tid = row.id(Field::Tid).or_else(|| row.id(Field::Pid));
    let comm = quoted(row.text(Field::Comm).unwrap_or_default());
    let who = tid.map_or_else(String::new, |tid| format!(" (tid={tid} comm={comm})"));
    let subject = subject.map_or_else(String::new, |subject| {
        format!(" subject={}", quoted(subject))
    });
    let interval = interval.filter(|interval| *interval > 0);
    let interval = interval.map_or_else(String::new, |interval| format!(" interval={interval}"));
    let (name, values) = (tool.name(), quoted(&values));
    say(
        at,
        &who,
        format_args!("counters told_by={name}{subject}{interval} values={values}"),
        out,
    );
}

/// What TCP sent again or threw away. Who ran then has nothing to do with it.
fn fault(tool: Tool, row: &Row<'_>, at: Ns, out: &mut String) -> Result<(), String> {
    let end = |field| {
        let (address, port) = row.text(field)?.rsplit_once(':')?;
        let address = address.trim_matches(['[', ']']).parse().ok()?;
        Some(std::net::SocketAddr::new(address, port.parse().ok()?))
    };
    let local = end(Field::Local).ok_or("no address and port of this side")?;
    let remote = end(Field::Remote).ok_or("no address and port of the other side")?;
    let kind = if tool == Tool::TcpDrop {
        "drop"
    } else {
        "retransmit"
    };
    let sides = format!("source={local} destination={remote}");
    say(
        at,
        "",
        format_args!("net_fault kind={kind} protocol=6 {sides}"),
        out,
    );
    Ok(())
}

/// `21:03:39 Triggered by PID 3297 ("ntpd"), OOM kill of PID 22516 ("perl"), …`
pub(super) fn oom_kill(text: &str, at: Ns, out: &mut String) {
    let text = quoted(text);
    say(
        at,
        "",
        format_args!("marker name=oom_kill text={text}"),
        out,
    );
}

/// `10.0.0.1:80`, `[::1]:80`; without a port where none is told.
fn side(row: &Row<'_>, address: Field, port: Field) -> Option<String> {
    let address: std::net::IpAddr = row.text(address)?.parse().ok()?;
    let port = row.int(port).and_then(|port| u16::try_from(port).ok());
    Some(match port {
        Some(port) => std::net::SocketAddr::new(address, port).to_string(),
        None => address.to_string(),
    })
}

/// `sync()`, `tracepoint:syscalls:sys_enter_fsync`.
fn call_name(text: &str) -> String {
    let name = text.trim().trim_end_matches("()");
    let name = name.rsplit("sys_enter_").next().unwrap_or_default();
    let name: String = name
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '_')
        .collect();
    if name.is_empty() {
        "sync".to_owned()
    } else {
        name
    }
}

/// Numbers that the kernel gives where they are fixed by the name; others are made from the name, so
/// that two files mean the same device.
fn device(name: &str) -> (u32, u32) {
    if let Some(letter) = name.strip_prefix("sd").filter(|rest| rest.len() == 1) {
        let letter = letter.as_bytes()[0];
        if (b'a'..=b'p').contains(&letter) {
            return (8, u32::from(letter - b'a') * 16);
        }
    }
    for (before, major) in [("loop", 7), ("md", 9)] {
        let number = name
            .strip_prefix(before)
            .and_then(|rest| rest.parse::<u32>().ok());
        if let Some(number) = number.filter(|number| *number < 1 << 20) {
            return (major, number);
        }
    }
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    (4095, hash >> 12)
}

struct Time(Ns);

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let size = self.0.unsigned_abs();
        write!(
            f,
            "{sign}{}.{:09}",
            size / 1_000_000_000,
            size % 1_000_000_000
        )
    }
}

fn say(at: Ns, who: &str, what: Arguments<'_>, out: &mut String) {
    let _ = writeln!(out, "{} [-]{who} {what}", Time(at));
}
