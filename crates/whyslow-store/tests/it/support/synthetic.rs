//! A synthetic machine: system calls and block requests of a busy minute, for measurements.
//!
//! 240 threads of 40 processes call 18 system calls on 50,000 paths with popularity 1/rank; most
//! calls are short (log-normal around 20 µs), one in two thousand stalls for up to half a second.
//! Rows come in order of their ends, as trackers emit them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use whyslow_model::row::Emit;
use whyslow_model::tables::{BlockIoRow, SyscallRow};
use whyslow_model::{Sym, Symbols};

const THREADS: i32 = 240;
const THREADS_PER_PROCESS: i32 = 6;
const PATHS: usize = 50_000;
const CPUS: i32 = 8;
/// System calls of one second.
const CALLS_PER_SECOND: i64 = 333_333;
const BEGIN_NS: i64 = 1_700_000_000_000_000_000;

/// Name, class, number, and arguments.
const CALLS: [(&str, &str, i32, Carries); 18] = [
    ("read", "read", 0, Carries::Bytes),
    ("write", "write", 1, Carries::Bytes),
    ("pread64", "read", 17, Carries::BytesAt),
    ("pwrite64", "write", 18, Carries::BytesAt),
    ("openat", "open", 257, Carries::Path),
    ("close", "close", 3, Carries::Path),
    ("fsync", "sync", 74, Carries::Path),
    ("fdatasync", "sync", 75, Carries::Path),
    ("newfstatat", "meta", 262, Carries::Path),
    ("futex", "wait", 202, Carries::Nothing),
    ("epoll_wait", "wait", 232, Carries::Nothing),
    ("recvfrom", "receive", 45, Carries::Bytes),
    ("sendto", "send", 44, Carries::Bytes),
    ("mmap", "memory", 9, Carries::Nothing),
    ("munmap", "memory", 11, Carries::Nothing),
    ("nanosleep", "wait", 35, Carries::Nothing),
    ("getpid", "other", 39, Carries::Nothing),
    ("poll", "wait", 7, Carries::Nothing),
];

#[derive(Clone, Copy, PartialEq)]
enum Carries {
    Nothing,
    Path,
    Bytes,
    BytesAt,
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Roughly normal: the sum of four uniform numbers.
    fn normal(&mut self) -> f64 {
        let sum = self.unit() + self.unit() + self.unit() + self.unit();
        (sum - 2.0) * 1.732
    }

    fn rank(&mut self, count: usize) -> usize {
        ((count as f64).powf(self.unit()) as usize).min(count - 1)
    }

    fn latency_ns(&mut self) -> i64 {
        if self.next().is_multiple_of(2000) {
            return 1_000_000 + (self.unit() * 500_000_000.0) as i64;
        }
        (20_000.0 * (self.normal() * 1.2).exp()) as i64
    }
}

/// Strings used by the rows.
pub(crate) struct Names {
    calls: Vec<(Sym, Sym)>,
    comms: Vec<Sym>,
    paths: Vec<Sym>,
    file: Sym,
    device: Sym,
    request: Sym,
    rwbs: [Sym; 2],
    op: [Sym; 2],
    source: Sym,
}

impl Names {
    pub(crate) fn new(symbols: &mut Symbols) -> Self {
        let calls = CALLS
            .iter()
            .map(|call| (symbols.intern(call.0), symbols.intern(call.1)));
        Self {
            calls: calls.collect(),
            comms: (0..THREADS / THREADS_PER_PROCESS)
                .map(|process| symbols.intern(&format!("worker/{process}")))
                .collect(),
            paths: (0..PATHS)
                .map(|path| symbols.intern(&format!("/srv/data/{:02x}/{path:08x}.dat", path % 251)))
                .collect(),
            file: symbols.intern("file"),
            device: symbols.intern("nvme0n1"),
            request: symbols.intern("request"),
            rwbs: [symbols.intern("R"), symbols.intern("WS")],
            op: [symbols.intern("read"), symbols.intern("write")],
            source: symbols.intern("bio_queue"),
        }
    }
}

/// Emits `count` system calls and a tenth as many block requests; calls `after_each` after every
/// row.
pub(crate) fn emit<E: Emit<SyscallRow> + Emit<BlockIoRow>>(
    to: &mut E,
    names: &Names,
    count: i64,
    mut after_each: impl FnMut(&mut E),
) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut begins: BinaryHeap<Reverse<(i64, i32)>> = (0..THREADS)
        .map(|thread| Reverse((BEGIN_NS + i64::from(thread) * 1000, thread)))
        .collect();
    let mut ends: BinaryHeap<Reverse<(i64, usize)>> = BinaryHeap::new();
    let mut open: Vec<Option<SyscallRow>> = vec![None; THREADS as usize];
    let gap_ns = 1_000_000_000.0 * f64::from(THREADS) / CALLS_PER_SECOND as f64 - 170_000.0;
    let (mut begun, mut block) = (0, 0);
    while begun < count || !ends.is_empty() {
        let next_end = ends.peek().map_or(i64::MAX, |end| end.0.0);
        let next_begin = begins.peek().map_or(i64::MAX, |begin| begin.0.0);
        if begun < count && next_begin <= next_end {
            let Some(Reverse((ts, thread))) = begins.pop() else {
                return;
            };
            let row = syscall(&mut random, names, begun, ts, thread);
            ends.push(Reverse((row.ts_end.unwrap_or(ts), thread as usize)));
            open[thread as usize] = Some(row);
            begun += 1;
            continue;
        }
        let Some(Reverse((end, thread))) = ends.pop() else {
            return;
        };
        begins.push(Reverse((
            end + (random.unit() * 2.0 * gap_ns) as i64,
            thread as i32,
        )));
        if let Some(row) = open[thread].take() {
            if row.id % 10 == 0 {
                to.emit(block_io(&mut random, names, block, &row));
                block += 1;
            }
            to.emit(row);
            after_each(to);
        }
    }
}

fn syscall(random: &mut Random, names: &Names, id: i64, ts: i64, thread: i32) -> SyscallRow {
    let call = random.rank(CALLS.len());
    let (_, _, nr, carries) = CALLS[call];
    let process = thread / THREADS_PER_PROCESS;
    let dur = random.latency_ns();
    let has_path = carries != Carries::Nothing;
    let moves = matches!(carries, Carries::Bytes | Carries::BytesAt);
    let bytes = moves.then(|| 512_i64 << (random.next() % 8));
    let failed = random.next().is_multiple_of(100);
    SyscallRow {
        id,
        ts,
        dur: Some(dur),
        ts_end: Some(ts + dur),
        utid: Some(thread),
        upid: Some(process),
        tid: Some(4000 + thread),
        pid: Some(4000 + process * THREADS_PER_PROCESS),
        comm: Some(names.comms[process as usize]),
        cpu: Some((random.next() % CPUS as u64) as i32),
        name: names.calls[call].0,
        nr: Some(nr),
        compat: false,
        op: names.calls[call].1,
        ret: Some(if failed { -11 } else { bytes.unwrap_or(0) }),
        errno: failed.then_some(11),
        fd: has_path.then(|| 3 + (random.next() % 200) as i32),
        path: has_path.then(|| names.paths[random.rank(PATHS)]),
        fd_class: has_path.then_some(names.file),
        bytes_requested: bytes,
        bytes: bytes.filter(|_| !failed),
        file_offset: (carries == Carries::BytesAt)
            .then(|| (random.next() % 1_000_000) as i64 * 4096),
        flags: (call == 4).then_some(0o100_000),
        ..SyscallRow::default()
    }
}

fn block_io(random: &mut Random, names: &Names, id: i64, cause: &SyscallRow) -> BlockIoRow {
    let writes = usize::from(random.next().is_multiple_of(3));
    let queue_ns = (random.unit() * 20_000.0) as i64;
    let device_ns = random.latency_ns() * 4;
    let sectors = 8_i64 << (random.next() % 6);
    BlockIoRow {
        id,
        ts: cause.ts,
        dur: Some(queue_ns + device_ns),
        ts_end: Some(cause.ts + queue_ns + device_ns),
        ts_issue: Some(cause.ts + queue_ns),
        queue_ns: Some(queue_ns),
        device_ns: Some(device_ns),
        dev: 259 << 20,
        dev_name: names.device,
        part: None,
        part_name: None,
        sector: (random.next() % (1 << 30)) as i64 * 8,
        sectors,
        bytes: sectors * 512,
        op: names.op[writes],
        rwbs: names.rwbs[writes],
        layer: names.request,
        utid: cause.utid,
        upid: cause.upid,
        tid: cause.tid,
        pid: cause.pid,
        comm: cause.comm,
        submitter_source: Some(names.source),
        issuer_utid: cause.utid,
        cpu: cause.cpu,
        merges: 0,
        completions: 1,
        error: Some(0),
        cut: None,
    }
}
