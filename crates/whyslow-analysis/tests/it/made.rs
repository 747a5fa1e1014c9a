//! A generated recording: every table that queries read, with nulls, cut rows, unknown objects,
//! zero-length operations, calls with two objects, and equal durations.

use whyslow_model::tables::{
    BlockIoRow, Collected, CpuRow, DeviceRow, EmitAll, FdLifeRow, FileLifeRow, LostEventsRow,
    MappingRow, NetPacketRow, ProcessRow, SyscallRow, ThreadRow, WakeupRow,
};
use whyslow_model::{Sym, Symbols};
use whyslow_store::RecordingInfo;

/// Start of every generated recording.
pub(crate) const BEGIN: i64 = 1_421_342_317_000_000_000;

/// A small pseudo-random number generator, the same on every machine.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides.max(1)
    }

    pub(crate) fn one_in(&mut self, sides: u64) -> bool {
        self.below(sides) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }

    /// Durations over six decades; every tenth one has one of a few round values.
    pub(crate) fn duration(&mut self) -> i64 {
        if self.one_in(10) {
            return *self.pick(&[0, 1, 1000, 64_000]);
        }
        let octave = self.below(20);
        (1 << octave) + self.below(1 << octave) as i64
    }
}

/// Amount of data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Amount {
    pub seed: u64,
    pub syscalls: u64,
    pub blocks: u64,
    pub states: u64,
    pub paths: u64,
    /// Mean distance between system calls.
    pub gap_ns: u64,
}

impl Amount {
    pub(crate) fn small(seed: u64) -> Self {
        Self {
            seed,
            syscalls: 900,
            blocks: 250,
            states: 300,
            paths: 25,
            gap_ns: 1_000_000,
        }
    }

    fn end(&self) -> i64 {
        BEGIN + (self.syscalls * self.gap_ns) as i64
    }
}

pub(crate) const THREADS: u64 = 12;
const COMMS: [&str; 5] = [
    "apache2",
    "python",
    "sync",
    "lttng-consumerd",
    "kworker/0:1",
];
/// User number and name, control group, and the digit of a container id.
type OwnerOf<'o> = (
    Option<i64>,
    Option<&'o str>,
    Option<&'o str>,
    Option<&'o str>,
);
const OWNERS: [OwnerOf<'_>; 6] = [
    (Some(0), Some("root"), Some("/system.slice/a.service"), None),
    (Some(33), Some("www-data"), Some("/docker/e"), Some("e")),
    (Some(33), Some("www-data"), Some("/docker/f"), Some("f")),
    (Some(0), Some("root"), Some("/docker/e"), Some("e")),
    (Some(70_000), None, Some("/"), None),
    (None, None, None, None),
];
const CALLS: [(&str, &str); 16] = [
    ("openat", "open"),
    ("open", "open"),
    ("dup", "open"),
    ("close", "close"),
    ("read", "read"),
    ("pread64", "read"),
    ("write", "write"),
    ("read", "read"),
    ("write", "write"),
    ("sendfile", "read_write"),
    ("fsync", "sync"),
    ("sync", "sync"),
    ("unlink", "metadata"),
    ("futex", "lock"),
    ("epoll_wait", "wait"),
    ("mmap", "memory"),
];
const CLASSES: [&str; 8] = [
    "file",
    "file",
    "inet",
    "unix",
    "pipe",
    "unknown",
    "directory",
    "proc",
];

/// Generates the rows; `after` is called between them, so that a writer can bound its memory.
pub(crate) fn make<S: EmitAll>(
    amount: Amount,
    symbols: &mut Symbols,
    sink: &mut S,
    mut after: impl FnMut(&mut S, &Symbols),
) -> RecordingInfo {
    let mut dice = Dice::new(amount.seed);
    things(symbols, sink);
    let mut maker = Maker {
        amount,
        dice: &mut dice,
        symbols,
    };
    let end = amount.end();
    let mut ts = BEGIN;
    for id in 0..amount.syscalls as i64 {
        ts = (ts + maker.dice.below(2 * amount.gap_ns) as i64).min(end);
        sink.emit(maker.syscall(id, ts));
        after(sink, maker.symbols);
    }
    let step = (end - BEGIN) / amount.blocks.max(1) as i64;
    for id in 0..amount.blocks as i64 {
        sink.emit(maker.block(id, BEGIN + id * step));
        after(sink, maker.symbols);
    }
    let step = (end - BEGIN) / amount.states.max(1) as i64;
    for id in 0..amount.states as i64 {
        maker.thread_life(id, BEGIN + id * step, step, sink);
        maker.scheduling(id, BEGIN + id * step, step, sink);
        after(sink, maker.symbols);
    }
    maker.others(sink);
    maker.waits(step, sink);
    maker.requests(step, sink);
    RecordingInfo {
        begin_ns: BEGIN,
        end_ns: end,
        host: Some("made".into()),
        ..RecordingInfo::default()
    }
}

/// The rows in memory.
pub(crate) fn collected(amount: Amount) -> (Collected, Symbols, RecordingInfo) {
    let mut symbols = Symbols::new();
    let mut rows = Collected::default();
    let info = make(amount, &mut symbols, &mut rows, |_, _| {});
    (rows, symbols, info)
}

fn things<S: EmitAll>(symbols: &mut Symbols, sink: &mut S) {
    for utid in 0..THREADS as i32 {
        let upid = utid / 2;
        let comm = COMMS[upid as usize % COMMS.len()];
        let is_tracer = comm.starts_with("lttng-");
        let comm = Some(symbols.intern(comm));
        if utid % 2 == 0 {
            let (uid, user, cgroup, container) = OWNERS[upid as usize % OWNERS.len()];
            let container = container.map(|digit| digit.repeat(64));
            let mut text = |text: Option<&str>| text.map(|text| symbols.intern(text));
            sink.emit(ProcessRow {
                upid,
                pid: 1000 + upid,
                comm,
                exe: text((upid == 1).then_some("/usr/bin/python3.11")),
                uid,
                user_name: text(user),
                cgroup: text(cgroup),
                container: text(container.as_deref()),
                mount_ns: (upid != 4).then_some(4_026_531_840 + i64::from(upid) / 3),
                is_tracer,
                ..ProcessRow::default()
            });
        }
        sink.emit(ThreadRow {
            utid,
            upid: Some(upid),
            tid: 1000 + upid + (utid % 2) * 500,
            pid: Some(1000 + upid),
            comm,
            ts_start: (utid == 3).then_some(BEGIN + 1_000_000),
            ts_exit: (utid == 5).then_some(BEGIN + 300_000_000),
            ts_first: BEGIN,
            ts_last: BEGIN,
            parent_utid: None,
            is_main: Some(utid % 2 == 0),
            is_kernel: None,
            is_tracer: false,
            runtime_name: None,
        });
    }
    for (dev, minor, name) in [
        (8 << 20, 0, "sda"),
        ((8 << 20) | 1, 1, "sda1"),
        (253 << 20, 0, "dm-0"),
    ] {
        sink.emit(DeviceRow {
            dev,
            major: (dev >> 20) as i32,
            minor,
            name: symbols.intern(name),
            parent: (minor == 1).then_some(8 << 20),
            ..DeviceRow::default()
        });
    }
}

pub(crate) struct Maker<'m> {
    pub(crate) amount: Amount,
    pub(crate) dice: &'m mut Dice,
    pub(crate) symbols: &'m mut Symbols,
}

/// The owner of a row; sometimes unknown.
pub(crate) struct Owner {
    pub(crate) utid: Option<i32>,
    pub(crate) upid: Option<i32>,
    pub(crate) tid: Option<i32>,
    pub(crate) pid: Option<i32>,
    pub(crate) comm: Option<Sym>,
}

impl Maker<'_> {
    pub(crate) fn owner(&mut self) -> Owner {
        if self.dice.one_in(40) {
            return Owner {
                utid: None,
                upid: None,
                tid: None,
                pid: None,
                comm: None,
            };
        }
        let utid = self.dice.below(THREADS) as i32;
        let upid = utid / 2;
        let comm = COMMS[upid as usize % COMMS.len()];
        Owner {
            utid: Some(utid),
            upid: Some(upid),
            tid: Some(1000 + upid + (utid % 2) * 500),
            pid: Some(1000 + upid),
            comm: Some(self.symbols.intern(comm)),
        }
    }

    pub(crate) fn sometimes(&mut self, sides: u64, text: &str) -> Option<Sym> {
        self.dice.one_in(sides).then(|| self.symbols.intern(text))
    }

    fn path(&mut self) -> Sym {
        let (most, paths) = (self.amount.paths, self.amount.paths.max(2));
        // A few paths have most of the calls.
        let place = self.dice.below(paths);
        let number = self.dice.below(place + 1);
        let path = match number % 5 {
            0 => format!(
                "/tmp/3f2504e0-4f89-11d3-9a0c-{:012x}/{number}.txt",
                number % 3
            ),
            1 => format!("/var/log/app/access-{number}.log"),
            2 => format!("/etc/conf{}", number % 7),
            3 if number == 3 => format!("pipe:[{most}]"),
            3 => format!("/srv/data/part-{number:05}/index"),
            _ => format!("10.0.0.{}:443", number % 200),
        };
        self.symbols.intern(&path)
    }

    /// (`dur`, `ts_end`, `cut`) of an operation.
    fn length(&mut self, ts: i64, sides: u64) -> (Option<i64>, Option<i64>, Option<Sym>) {
        let dur = self.dice.duration();
        match self.dice.below(sides) {
            0 => (None, None, Some(self.symbols.intern("end"))),
            1 => (None, Some(ts + dur), Some(self.symbols.intern("begin"))),
            2 => (Some(dur), Some(ts + dur), Some(self.symbols.intern("lost"))),
            _ => (Some(dur), Some(ts + dur), None),
        }
    }

    fn syscall(&mut self, id: i64, ts: i64) -> SyscallRow {
        let (name, op) = *self.dice.pick(&CALLS);
        let owner = self.owner();
        let (dur, ts_end, cut) = self.length(ts, 60);
        let failed = dur.is_some() && self.dice.one_in(12);
        let has_object = !matches!(op, "lock" | "wait") && name != "sync";
        let known = has_object && !self.dice.one_in(9);
        let moves = matches!(op, "read" | "write" | "read_write") && dur.is_some() && !failed;
        let bytes = moves.then(|| self.dice.below(1 << 16) as i64);
        let class = *self.dice.pick(&CLASSES);
        let fd = has_object.then(|| self.dice.below(9) as i32);
        let second = op == "read_write" && !self.dice.one_in(5);
        SyscallRow {
            id,
            ts,
            dur,
            ts_end,
            utid: owner.utid,
            upid: owner.upid,
            tid: owner.tid,
            pid: owner.pid,
            comm: owner.comm,
            cpu: Some(self.dice.below(4) as i32),
            name: self.symbols.intern(name),
            nr: None,
            compat: false,
            op: self.symbols.intern(op),
            ret: if op == "open" && !failed {
                fd.map(i64::from)
            } else {
                bytes
            },
            errno: failed.then(|| *self.dice.pick(&[2, 11, 13])),
            fd,
            fd2: second.then_some(11),
            path: known.then(|| self.path()),
            path2: second.then(|| self.path()),
            fd_class: has_object.then(|| self.symbols.intern(class)),
            unknown_reason: (has_object && !known)
                .then(|| self.symbols.intern("opened before the recording")),
            bytes_requested: bytes,
            bytes,
            file_offset: (name == "pread64").then(|| self.dice.below(1 << 20) as i64),
            flags: (name == "openat").then(|| *self.dice.pick(&[0, 0x241, 0x1_0000])),
            cut,
        }
    }

    fn block(&mut self, id: i64, ts: i64) -> BlockIoRow {
        let owner = self.owner();
        let (dur, ts_end, cut) = self.length(ts, 50);
        let on_partition = self.dice.one_in(2);
        let bio = self.dice.one_in(6);
        let sectors = 8 * self.dice.below(64) as i64;
        let queue_ns = dur.map(|dur| dur / 3);
        BlockIoRow {
            id,
            ts,
            dur,
            ts_end,
            ts_issue: queue_ns.map(|queue| ts + queue),
            queue_ns,
            device_ns: dur.zip(queue_ns).map(|(dur, queue)| dur - queue),
            dev: if bio { 253 << 20 } else { 8 << 20 },
            dev_name: self.symbols.intern(if bio { "dm-0" } else { "sda" }),
            part: (on_partition && !bio).then_some((8 << 20) | 1),
            part_name: (on_partition && !bio).then(|| self.symbols.intern("sda1")),
            sector: self.dice.below(1 << 30) as i64,
            sectors,
            bytes: sectors * 512,
            op: {
                let op = *self
                    .dice
                    .pick(&["read", "write", "write", "flush", "discard"]);
                self.symbols.intern(op)
            },
            rwbs: self.symbols.intern("W"),
            layer: self.symbols.intern(if bio { "bio" } else { "request" }),
            utid: owner.utid,
            upid: owner.upid,
            tid: owner.tid,
            pid: owner.pid,
            comm: owner.comm,
            submitter_source: self.sometimes(2, "getrq"),
            issuer_utid: None,
            cpu: Some(0),
            merges: 0,
            completions: 1,
            error: self.dice.one_in(30).then_some(5),
            cut,
        }
    }

    /// A file descriptor, a file and a packet around the same time.
    // tidy: long because it is one row of each table
    fn thread_life<S: EmitAll>(&mut self, id: i64, ts: i64, step: i64, sink: &mut S) {
        let owner = self.owner();
        let last = id + 1 == self.amount.states as i64;
        let dur = (!last).then(|| self.dice.below(4 * step as u64) as i64);
        let (path, upid) = (self.path(), owner.upid.unwrap_or(0));
        let known = !self.dice.one_in(7);
        sink.emit(FdLifeRow {
            id,
            ts,
            dur,
            ts_end: dur.map(|dur| ts + dur),
            upid: Some(upid),
            pid: Some(1000 + upid),
            comm: owner.comm,
            fd: self.dice.below(9) as i32,
            fd_class: self.symbols.intern("file"),
            path: known.then_some(path),
            unknown_reason: (!known).then(|| self.symbols.intern("inherited")),
            origin: self.symbols.intern("open"),
            syscall_id: None,
            flags: None,
            cloexec: false,
            deleted: self.dice.one_in(5),
            closed_by: None,
        });
        let deleted = dur.is_some() && self.dice.one_in(2);
        sink.emit(FileLifeRow {
            id,
            ts,
            dur: dur.filter(|_| deleted),
            ts_end: dur.filter(|_| deleted).map(|dur| ts + dur),
            path,
            renamed_from: None,
            created: (!self.dice.one_in(9)).then(|| self.dice.one_in(2)),
            deleted,
            opens: 1,
            reads: 2,
            writes: 3,
            bytes_read: 4,
            bytes_written: 5,
            upid: Some(upid),
            pid: Some(1000 + upid),
            comm: owner.comm,
        });
        let kind = *self.dice.pick(&[
            "receive",
            "receive",
            "queue",
            "transmit",
            "retransmit",
            "retransmit_synack",
            "drop",
        ]);
        let is_whole = matches!(kind, "receive" | "queue" | "transmit");
        let netif = *self.dice.pick(&["eth0", "lo"]);
        let peers = ["10.0.0.1:80", "10.0.0.2:443", "10.0.0.3:53"];
        let [source, destination] = [0, 1].map(|_| {
            let peer = *self.dice.pick(&peers);
            self.sometimes(2, peer)
        });
        let protocol = self.sometimes(2, "tcp");
        sink.emit(NetPacketRow {
            id,
            ts,
            kind: self.symbols.intern(kind),
            netif: (is_whole || kind == "retransmit").then(|| self.symbols.intern(netif)),
            bytes: is_whole.then(|| self.dice.below(1500) as i64),
            utid: owner.utid,
            upid: owner.upid,
            tid: owner.tid,
            pid: owner.pid,
            comm: owner.comm,
            protocol,
            source,
            destination,
            drop_reason: (kind == "drop").then_some(5),
            ..NetPacketRow::default()
        });
    }

    fn others<S: EmitAll>(&mut self, sink: &mut S) {
        for cpu in 0..3 {
            sink.emit(CpuRow {
                cpu,
                // Its first event is late.
                ts_first: BEGIN + i64::from(cpu / 2) * 80_000_000,
                ts_last: BEGIN,
                events: 1,
                lost: 0,
                busy_ns: None,
            });
        }
        let ts = BEGIN + 100_000_000;
        sink.emit(MappingRow {
            id: 0,
            ts,
            upid: Some(1),
            pid: Some(1001),
            address: 0,
            bytes: 4096,
            path: Some(self.symbols.intern("/srv/data/db")),
            fd: Some(3),
            prot: Some(1),
            ..MappingRow::default()
        });
        let late = self.amount.end() - 5_000_000;
        for (id, ts, dur, cpu) in [
            (0, ts, Some(50_000_000), Some(1)),
            (1, ts + 100_000_000, Some(30_000_000), None),
            (2, late, None, Some(0)),
        ] {
            sink.emit(LostEventsRow {
                id,
                ts,
                dur,
                ts_end: dur.map(|dur| ts + dur),
                cpu,
                stream: self.symbols.intern("channel0_1"),
                kind: self.symbols.intern("events"),
                count: Some(7002),
            });
        }
        sink.emit(WakeupRow {
            id: 0,
            ts,
            kind: self.symbols.intern("wakeup"),
            utid: Some(1),
            tid: 1500,
            prio: Some(120),
            target_cpu: Some(0),
            cpu: Some(1),
            context: self.symbols.intern("irq"),
            spurious: false,
            ..WakeupRow::default()
        });
    }
}
