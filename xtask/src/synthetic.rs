//! A recording of many system calls for query benchmarks: independent random columns, which are the
//! worst case for size and speed.

use std::path::Path;

use whyslow_model::row::Emit as _;
use whyslow_model::tables::{ProcessRow, SyscallRow, ThreadRow};
use whyslow_model::{Sym, Symbols};
use whyslow_store::{Existing, RecordingInfo, RecordingWriter};

const BEGIN: i64 = 1_700_000_000_000_000_000;
const SPAN_NS: i64 = 60_000_000_000;
const THREADS: u64 = 240;
const PROCESSES: u64 = 40;
const PATHS: u64 = 50_000;
/// Name, class, share in 1/256.
const CALLS: [(&str, &str, u64); 18] = [
    ("read", "read", 60),
    ("write", "write", 40),
    ("openat", "open", 20),
    ("close", "close", 20),
    ("futex", "lock", 30),
    ("newfstatat", "metadata", 15),
    ("fstat", "metadata", 10),
    ("recvfrom", "read", 10),
    ("sendto", "write", 10),
    ("epoll_wait", "wait", 10),
    ("mmap", "memory", 7),
    ("munmap", "memory", 5),
    ("pread64", "read", 5),
    ("pwrite64", "write", 4),
    ("fsync", "sync", 2),
    ("fdatasync", "sync", 2),
    ("lseek", "other", 3),
    ("ioctl", "other", 3),
];

pub(crate) fn write(target: &Path, rows: u64) -> Result<String, String> {
    let text = |error: whyslow_store::StoreError| error.to_string();
    let mut writer = RecordingWriter::create(target, Existing::Replace).map_err(text)?;
    let mut symbols = Symbols::new();
    let names = Names::new(&mut symbols);
    threads(&mut writer, &names);
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for id in 0..rows {
        let thread = random.next() % THREADS;
        let step = SPAN_NS as u64 / rows.max(1);
        let ts = BEGIN + (id * step + random.next() % step.max(1)) as i64;
        writer.emit(call((id as i64, ts), thread, &names, &mut random));
        writer.flush_ready(&symbols).map_err(text)?;
    }
    let about = RecordingInfo {
        host: Some("synthetic".into()),
        begin_ns: BEGIN,
        end_ns: BEGIN + SPAN_NS,
        ..RecordingInfo::default()
    };
    writer.finish(&symbols, about).map_err(text)?;
    Ok(format!("{rows} system calls"))
}

pub(crate) struct Names {
    calls: Vec<(Sym, Sym)>,
    comms: Vec<Sym>,
    paths: Vec<Sym>,
    class: Sym,
    by_share: Vec<usize>,
}

impl Names {
    pub(crate) fn new(symbols: &mut Symbols) -> Self {
        let calls = CALLS
            .iter()
            .map(|(name, op, _)| (symbols.intern(name), symbols.intern(op)));
        let calls = calls.collect();
        let comms = (0..PROCESSES)
            .map(|n| symbols.intern(&format!("service-{n}")))
            .collect();
        let path = |n| format!("/srv/tree/{}/{}/object-{n}.bin", n % 97, n % 1009);
        Self {
            calls,
            comms,
            paths: (0..PATHS).map(|n| symbols.intern(&path(n))).collect(),
            class: symbols.intern("file"),
            by_share: CALLS
                .iter()
                .enumerate()
                .flat_map(|(at, call)| std::iter::repeat_n(at, call.2 as usize))
                .collect(),
        }
    }
}

fn threads(writer: &mut RecordingWriter, names: &Names) {
    for n in 0..PROCESSES {
        writer.emit(ProcessRow {
            upid: n as i32,
            pid: 1000 + n as i32,
            parent_upid: None,
            ppid: None,
            comm: Some(names.comms[n as usize]),
            exe: None,
            command_line: None,
            uid: None,
            user_name: None,
            cgroup: None,
            container: None,
            mount_ns: None,
            ts_created: None,
            ts_start: None,
            ts_exit: None,
            is_tracer: false,
        });
    }
    for n in 0..THREADS {
        let process = n % PROCESSES;
        writer.emit(ThreadRow {
            utid: n as i32,
            upid: Some(process as i32),
            tid: 2000 + n as i32,
            pid: Some(1000 + process as i32),
            comm: Some(names.comms[process as usize]),
            ts_start: None,
            ts_exit: None,
            ts_first: BEGIN,
            ts_last: BEGIN + SPAN_NS,
            parent_utid: None,
            is_main: Some(n < PROCESSES),
            is_kernel: Some(false),
            is_tracer: false,
            runtime_name: None,
        });
    }
}

pub(crate) fn call(
    (id, ts): (i64, i64),
    thread: u64,
    names: &Names,
    random: &mut Random,
) -> SyscallRow {
    let at = names.by_share[(random.next() % names.by_share.len() as u64) as usize];
    let (name, op) = names.calls[at];
    let process = thread % PROCESSES;
    let dur = random.latency_ns();
    let moves = matches!(CALLS[at].1, "read" | "write");
    let bytes = moves.then(|| (random.next() % 65_536) as i64);
    SyscallRow {
        id,
        ts,
        dur: Some(dur),
        ts_end: Some(ts + dur),
        utid: Some(thread as i32),
        upid: Some(process as i32),
        tid: Some(2000 + thread as i32),
        pid: Some(1000 + process as i32),
        comm: Some(names.comms[process as usize]),
        cpu: Some((random.next() % 8) as i32),
        name,
        nr: None,
        compat: false,
        op,
        ret: Some(bytes.unwrap_or(0)),
        errno: random.next().is_multiple_of(50).then_some(2),
        fd: Some((random.next() % 64) as i32),
        fd2: None,
        path: Some(names.paths[random.rank(PATHS) as usize]),
        path2: None,
        fd_class: Some(names.class),
        unknown_reason: None,
        bytes_requested: bytes,
        bytes,
        file_offset: None,
        flags: None,
        cut: None,
    }
}

/// xorshift64*: yields the same numbers on every machine.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() % (1 << 40)) as f64 / (1u64 << 40) as f64
    }

    /// Log-normal around 8 µs, with one stall of 20–520 ms in ten thousand.
    fn latency_ns(&mut self) -> i64 {
        if self.next().is_multiple_of(10_000) {
            return 20_000_000 + (self.next() % 500_000_000) as i64;
        }
        (9f64.exp() * self.spread(1.0)) as i64
    }

    /// Log-normal around 1.
    pub(crate) fn spread(&mut self, sigma: f64) -> f64 {
        let normal =
            (-2.0 * (1.0 - self.unit()).ln()).sqrt() * (self.unit() * std::f64::consts::TAU).cos();
        (sigma * normal).exp()
    }

    /// Draws a rank approximately by Zipf's law: log-uniform.
    pub(crate) fn rank(&mut self, count: u64) -> u64 {
        (((count as f64).ln() * self.unit()).exp() as u64).min(count) - 1
    }
}
