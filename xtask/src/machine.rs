//! A recording of a busy machine for query benchmarks, in time order and identical on every run. It
//! has about the requested number of rows of each kind of event, or of all kinds together, in the
//! proportions of the bundled incident. The first shows the cost of a kind of event, the second that
//! of a recording with this number of events, for queries that read several tables.
//!
//! It spans sixty seconds at ten million rows, and less time for fewer rows: rates are constant, so
//! that costs per time and costs per thread can be distinguished. Rows that depend on each other in
//! reality (the states of a thread, its slices) do so here; everything else is drawn from
//! distributions with heavy tails, and threads by Zipf's law.

use std::path::Path;

use whyslow_model::row::Emit as _;
use whyslow_model::tables::{
    CpuRow, DeviceRow, NetInterfaceRow, PageCountRow, ProcessRow, ReclaimRow, ThreadRow,
};
use whyslow_model::{Sym, Symbols};
use whyslow_store::{Existing, RecordingInfo, RecordingWriter, TableInfo};

mod devices;
mod scheduling;

use crate::synthetic::{self, Random};
use devices::Devices;
use scheduling::{Pace, Scheduling};

const BEGIN: i64 = 1_700_000_000_000_000_000;
/// Time between two rows of a kind.
const STEP_NS: i64 = 6_000;
const SECOND_NS: i64 = 1_000_000_000;
const CPUS: usize = 64;
const PROCESSES: u64 = 512;
const THREADS: u64 = 4096;
const RECLAIMS: [(&str, u64); 3] = [("direct", 70), ("cgroup", 20), ("kswapd", 10)];

/// Meaning of the requested number of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    /// Rows of each table.
    Each,
    /// Rows of all tables.
    Together,
}

/// Events that are drawn independently, unlike those of the scheduler.
#[derive(Clone, Copy)]
enum Event {
    Request,
    Handler,
    Packet,
    Reclaim,
    Call,
}

const EVENTS: [Event; 5] = [
    Event::Request,
    Event::Handler,
    Event::Packet,
    Event::Reclaim,
    Event::Call,
];
/// Rows per thousand rows of all tables, in the order of [`EVENTS`]; the rest are scheduler rows.
const SHARES: [u64; EVENTS.len()] = [25, 60, 20, 5, 540];

impl Rows {
    /// Draws the events of a step.
    fn drawn(self, random: &mut Random) -> &'static [Event] {
        if self == Rows::Each {
            return &EVENTS;
        }
        let mut left = random.next() % 1000;
        for (event, share) in SHARES.iter().enumerate() {
            if left < *share {
                return &EVENTS[event..=event];
            }
            left -= share;
        }
        &[]
    }

    fn pace(self) -> Pace {
        match self {
            Rows::Each => Pace {
                slice_steps: 1.0,
                gap_ns: 200_000.0,
                states_of_every: 3,
            },
            // 9 % of the rows are slices, and three times as many are states.
            Rows::Together => Pace {
                slice_steps: 11.0,
                gap_ns: 4_050_000.0,
                states_of_every: 1,
            },
        }
    }
}

pub(crate) fn write(target: &Path, rows: u64, spread: Rows) -> Result<String, String> {
    let text = |error: whyslow_store::StoreError| error.to_string();
    let mut writer = RecordingWriter::create(target, Existing::Replace).map_err(text)?;
    let mut symbols = Symbols::new();
    let mut machine = Machine::new(&mut symbols);
    let calls = synthetic::Names::new(&mut symbols);
    let mut scheduling = Scheduling::new(&mut symbols, &mut machine.random, spread.pace());
    let mut devices = Devices::new(&mut symbols);
    let end = BEGIN + rows as i64 * STEP_NS;
    machine.entities(&devices, (rows, end), &mut writer);
    let mut ids = [0; EVENTS.len()];
    for step in (BEGIN..end).step_by(STEP_NS as usize) {
        let ts = machine.time_in_step(step);
        scheduling.advance(step, &mut machine, &mut writer);
        for event in spread.drawn(&mut machine.random) {
            let id = &mut ids[*event as usize];
            match event {
                Event::Request => devices.request((*id, ts), &mut machine, &mut writer),
                Event::Handler => devices.handler((*id, ts), &mut machine, &mut writer),
                Event::Packet => devices.packet((*id, ts), &mut machine, &mut writer),
                Event::Reclaim => machine.reclaim((*id, ts), &mut writer),
                Event::Call => machine.call((*id, ts), &calls, &mut writer),
            }
            *id += 1;
        }
        if (step - BEGIN) / SECOND_NS != (step - STEP_NS - BEGIN) / SECOND_NS || step == BEGIN {
            machine.pages(step, &mut writer);
        }
        writer.flush_ready(&symbols).map_err(text)?;
    }
    let about = RecordingInfo {
        host: Some("synthetic".into()),
        begin_ns: BEGIN,
        end_ns: end,
        ..RecordingInfo::default()
    };
    let written = writer.finish(&symbols, about).map_err(text)?;
    let of = |(name, table): (&String, &TableInfo)| {
        let is_large = table.rows > THREADS;
        is_large.then(|| format!("{} {name}", table.rows))
    };
    let counts: Vec<String> = written.tables.iter().filter_map(of).collect();
    Ok(format!("{} rows", counts.join(", ")))
}

/// The thread of an event.
#[derive(Clone, Copy)]
struct Thread {
    utid: i32,
    upid: i32,
    tid: i32,
    pid: i32,
    comm: Sym,
}

struct Machine {
    random: Random,
    comms: Vec<Sym>,
    reclaims: Vec<Sym>,
    page_rows: i64,
}

impl Machine {
    fn new(symbols: &mut Symbols) -> Self {
        let comm = |n| symbols.intern(&format!("service-{}", n % 200));
        let comms = (0..PROCESSES).map(comm).collect();
        let mut reclaims = Vec::new();
        for (kind, share) in RECLAIMS {
            reclaims.extend(std::iter::repeat_n(symbols.intern(kind), share as usize));
        }
        Self {
            random: Random(0x9E37_79B9_7F4A_7C15),
            comms,
            reclaims,
            page_rows: 0,
        }
    }

    fn below(&mut self, count: u64) -> u64 {
        self.random.next() % count
    }

    fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.below(among.len() as u64) as usize]
    }

    fn time_in_step(&mut self, step: i64) -> i64 {
        step + self.below(STEP_NS as u64) as i64
    }

    /// Draws a duration around a median, ns.
    fn around(&mut self, median_ns: f64, sigma: f64) -> i64 {
        (median_ns * self.random.spread(sigma)) as i64
    }

    fn thread(&mut self) -> Thread {
        // Make ranks independent of thread numbers.
        let rank = self.random.rank(THREADS);
        self.nth((rank * 1237) % THREADS)
    }

    fn nth(&self, utid: u64) -> Thread {
        let process = utid % PROCESSES;
        Thread {
            utid: utid as i32,
            upid: process as i32,
            tid: 2000 + utid as i32,
            pid: 2000 + process as i32,
            comm: self.comms[process as usize],
        }
    }

    fn entities(&self, devices: &Devices, (rows, end): (u64, i64), writer: &mut RecordingWriter) {
        for n in 0..PROCESSES {
            let main = self.nth(n);
            writer.emit(ProcessRow {
                upid: main.upid,
                pid: main.pid,
                parent_upid: None,
                ppid: None,
                comm: Some(main.comm),
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
            let thread = self.nth(n);
            writer.emit(ThreadRow {
                utid: thread.utid,
                upid: Some(thread.upid),
                tid: thread.tid,
                pid: Some(thread.pid),
                comm: Some(thread.comm),
                ts_start: None,
                ts_exit: None,
                ts_first: BEGIN,
                ts_last: end,
                parent_utid: None,
                is_main: Some(n < PROCESSES),
                is_kernel: Some(false),
                is_tracer: false,
                runtime_name: None,
            });
        }
        for cpu in 0..CPUS as i32 {
            writer.emit(CpuRow {
                cpu,
                ts_first: BEGIN,
                ts_last: end,
                events: (8 * rows / CPUS as u64) as i64,
                lost: 0,
                busy_ns: None,
            });
        }
        devices_of(devices, writer);
    }

    fn call(
        &mut self,
        (id, ts): (i64, i64),
        calls: &synthetic::Names,
        writer: &mut RecordingWriter,
    ) {
        let thread = self.thread();
        let call = synthetic::call((id, ts), thread.utid as u64, calls, &mut self.random);
        writer.emit(whyslow_model::tables::SyscallRow {
            upid: Some(thread.upid),
            tid: Some(thread.tid),
            pid: Some(thread.pid),
            comm: Some(thread.comm),
            ..call
        });
    }

    fn reclaim(&mut self, (id, ts): (i64, i64), writer: &mut RecordingWriter) {
        let thread = self.thread();
        let dur = self.around(40_000.0, 1.3);
        let kind = self.below(self.reclaims.len() as u64) as usize;
        writer.emit(ReclaimRow {
            id,
            ts,
            dur: Some(dur),
            ts_end: Some(ts + dur),
            kind: self.reclaims[kind],
            utid: Some(thread.utid),
            upid: Some(thread.upid),
            tid: Some(thread.tid),
            pid: Some(thread.pid),
            comm: Some(thread.comm),
            cpu: Some(self.below(CPUS as u64) as i32),
            alloc_order: Some(self.below(4) as i32),
            node: None,
            pages: Some(self.below(64) as i64),
        });
    }

    /// Writes the page counts of each thread for the second that starts.
    fn pages(&mut self, ts: i64, writer: &mut RecordingWriter) {
        for n in 0..THREADS {
            let thread = self.nth(n);
            let allocated = self.around(300.0, 2.0);
            writer.emit(PageCountRow {
                id: self.page_rows,
                ts,
                utid: Some(thread.utid),
                upid: Some(thread.upid),
                tid: Some(thread.tid),
                pid: Some(thread.pid),
                comm: Some(thread.comm),
                allocated,
                freed: self.around(allocated as f64, 0.5),
                faults_user: self.around(100.0, 1.5),
                faults_kernel: self.below(20) as i64,
                cache_added: self.around(20.0, 1.5),
                cache_removed: self.around(20.0, 1.5),
                reclaim_written: 0,
                kswapd_wakeups: self.below(2) as i64,
            });
            self.page_rows += 1;
        }
    }
}

fn devices_of(devices: &Devices, writer: &mut RecordingWriter) {
    for (number, name) in devices.disks().iter().enumerate() {
        let dev = devices::number(number);
        writer.emit(DeviceRow {
            dev,
            major: (dev >> 20) as i32,
            minor: (dev & 0xf_ffff) as i32,
            name: *name,
            parent: None,
            kind: None,
            size: None,
            rotational: None,
            label: None,
            backing: None,
        });
    }
    for (number, name) in devices.interfaces().iter().enumerate() {
        writer.emit(NetInterfaceRow {
            id: number as i64,
            name: *name,
            ifindex: Some(2 + number as i32),
            address: None,
        });
    }
}
