//! Disks, interrupts and the network of the synthetic machine.

use whyslow_model::row::Emit as _;
use whyslow_model::tables::{BlockIoRow, IrqRow, NetPacketRow};
use whyslow_model::{Sym, Symbols};
use whyslow_store::RecordingWriter;

use super::{CPUS, Machine};

const DISKS: u64 = 24;
const INTERFACES: u64 = 4;
const PEERS: u64 = 20_000;
const SERVICES: u64 = 64;
/// Addresses of packet buffers: the kernel reuses few.
const BUFFERS: u64 = 8192;
/// Class, flags, share in percent.
const OPS: [(&str, &str, u64); 6] = [
    ("read", "R", 40),
    ("read", "RA", 15),
    ("write", "W", 30),
    ("write", "WS", 10),
    ("discard", "D", 2),
    ("flush", "FF", 3),
];
const SECTORS: [i64; 8] = [8, 8, 8, 16, 32, 64, 256, 2048];
/// Kind, number, name, share in percent.
const HANDLERS: [(&str, i32, &str, u64); 12] = [
    ("hard", 130, "nvme0q3", 8),
    ("hard", 131, "nvme0q7", 6),
    ("hard", 150, "eth0-rx-0", 8),
    ("hard", 151, "eth0-tx-0", 5),
    ("hard", 9, "acpi", 1),
    ("soft", 1, "TIMER", 15),
    ("soft", 3, "NET_RX", 20),
    ("soft", 4, "BLOCK", 5),
    ("soft", 7, "SCHED", 10),
    ("soft", 9, "RCU", 7),
    ("hrtimer", 0, "tick_sched_timer", 12),
    ("hrtimer", 0, "hrtimer_wakeup", 3),
];
/// Share in permille.
const PACKETS: [(&str, u64); 5] = [
    ("receive", 450),
    ("queue", 270),
    ("transmit", 275),
    ("retransmit", 3),
    ("drop", 2),
];

pub(super) struct Devices {
    disks: Vec<Sym>,
    interfaces: Vec<Sym>,
    layer: Sym,
    source: Sym,
    ops: Vec<(Sym, Sym)>,
    handlers: Vec<(usize, Sym, Sym)>,
    packets: Vec<(usize, Sym)>,
    tcp: Sym,
    peers: Vec<Sym>,
    services: Vec<Sym>,
}

/// Kernel `dev_t` of a disk by index.
pub(super) fn number(disk: usize) -> i64 {
    (8 << 20) + 16 * disk as i64
}

impl Devices {
    pub(super) fn new(symbols: &mut Symbols) -> Self {
        let mut ops = Vec::new();
        for (op, rwbs, share) in OPS {
            let op = (symbols.intern(op), symbols.intern(rwbs));
            ops.extend(std::iter::repeat_n(op, share as usize));
        }
        let mut handlers = Vec::new();
        for (place, (kind, _, name, share)) in HANDLERS.iter().enumerate() {
            let handler = (place, symbols.intern(kind), symbols.intern(name));
            handlers.extend(std::iter::repeat_n(handler, *share as usize));
        }
        let mut packets = Vec::new();
        for (place, (kind, share)) in PACKETS.iter().enumerate() {
            let packet = (place, symbols.intern(kind));
            packets.extend(std::iter::repeat_n(packet, *share as usize));
        }
        let mut named = |count: u64, name: &dyn Fn(u64) -> String| -> Vec<Sym> {
            (0..count).map(|n| symbols.intern(&name(n))).collect()
        };
        Self {
            disks: named(DISKS, &|n| format!("sd{}", char::from(b'a' + n as u8))),
            interfaces: named(INTERFACES, &|n| format!("eth{n}")),
            peers: named(PEERS, &|n| {
                format!(
                    "10.{}.{}.{}:{}",
                    n % 7,
                    n % 251,
                    n % 241,
                    32_768 + n % 28_000
                )
            }),
            services: named(SERVICES, &|n| format!("10.9.0.1:{}", 8000 + n)),
            layer: symbols.intern("request"),
            source: symbols.intern("bio_queue"),
            tcp: symbols.intern("tcp"),
            ops,
            handlers,
            packets,
        }
    }

    pub(super) fn disks(&self) -> &[Sym] {
        &self.disks
    }

    pub(super) fn interfaces(&self) -> &[Sym] {
        &self.interfaces
    }

    /// Writes a request; some disks have more than others, and the first one has a long tail.
    pub(super) fn request(
        &mut self,
        (id, ts): (i64, i64),
        machine: &mut Machine,
        writer: &mut RecordingWriter,
    ) {
        let disk = machine.below(DISKS).min(machine.below(DISKS)) as usize;
        let queue_ns = machine.around(3_000.0, 1.2);
        let is_slow = disk == 0 && machine.below(20) == 0;
        let device_ns = machine.around(if is_slow { 4_000_000.0 } else { 90_000.0 }, 0.8);
        let (op, rwbs) = machine.pick(&self.ops);
        let sectors = machine.pick(&SECTORS);
        let thread = machine.thread();
        writer.emit(BlockIoRow {
            id,
            ts,
            dur: Some(queue_ns + device_ns),
            ts_end: Some(ts + queue_ns + device_ns),
            ts_issue: Some(ts + queue_ns),
            queue_ns: Some(queue_ns),
            device_ns: Some(device_ns),
            dev: number(disk),
            dev_name: self.disks[disk],
            part: None,
            part_name: None,
            sector: machine.below(1 << 31) as i64,
            sectors,
            bytes: sectors * 512,
            op,
            rwbs,
            layer: self.layer,
            utid: Some(thread.utid),
            upid: Some(thread.upid),
            tid: Some(thread.tid),
            pid: Some(thread.pid),
            comm: Some(thread.comm),
            submitter_source: Some(self.source),
            issuer_utid: Some(thread.utid),
            cpu: Some(machine.below(CPUS as u64) as i32),
            merges: i32::from(machine.below(10) == 0),
            completions: 1,
            error: (machine.below(100_000) == 0).then_some(5),
            cut: None,
        });
    }

    pub(super) fn handler(
        &mut self,
        (id, ts): (i64, i64),
        machine: &mut Machine,
        writer: &mut RecordingWriter,
    ) {
        let (place, kind, name) = machine.pick(&self.handlers);
        let (kind_name, nr, ..) = HANDLERS[place];
        let dur = machine.around(1_800.0, 0.9);
        let raise_ns = (kind_name == "soft").then(|| machine.around(700.0, 1.4));
        // The other CPUs are idle.
        let thread = (machine.below(10) < 6).then(|| machine.thread());
        writer.emit(IrqRow {
            id,
            ts,
            dur: Some(dur),
            ts_end: Some(ts + dur),
            cpu: machine.below(CPUS as u64) as i32,
            kind,
            nr,
            name: Some(name),
            ts_raise: raise_ns.map(|raise_ns| ts - raise_ns),
            raise_ns,
            ret: (kind_name == "hard").then_some(1),
            self_ns: Some(dur),
            utid: thread.map(|thread| thread.utid),
            upid: thread.map(|thread| thread.upid),
            tid: thread.map(|thread| thread.tid),
            pid: thread.map(|thread| thread.pid),
            comm: thread.map(|thread| thread.comm),
        });
    }

    pub(super) fn packet(
        &mut self,
        (id, ts): (i64, i64),
        machine: &mut Machine,
        writer: &mut RecordingWriter,
    ) {
        let (place, kind) = machine.pick(&self.packets);
        let name = PACKETS[place].0;
        let moved = matches!(name, "receive" | "queue" | "transmit");
        let thread = machine.thread();
        let peer = machine.random.rank(PEERS) as usize;
        let service = machine.random.rank(SERVICES) as usize;
        let (peer, service) = (self.peers[peer], self.services[service]);
        let inward = matches!(name, "receive" | "drop");
        let (source, destination) = if inward {
            (peer, service)
        } else {
            (service, peer)
        };
        let interface = machine.random.rank(INTERFACES) as usize;
        let long = machine.below(3) > 0;
        let bytes = if long { 1514 } else { 60 + machine.below(600) };
        let has_thread = !inward || machine.below(2) == 0;
        writer.emit(NetPacketRow {
            id,
            ts,
            kind,
            netif: (name != "drop").then(|| self.interfaces[interface]),
            bytes: moved.then_some(bytes as i64),
            cpu: Some(machine.below(CPUS as u64) as i32),
            utid: has_thread.then_some(thread.utid),
            upid: has_thread.then_some(thread.upid),
            tid: has_thread.then_some(thread.tid),
            pid: has_thread.then_some(thread.pid),
            comm: has_thread.then_some(thread.comm),
            skbaddr: Some(-0x7fff_0000_0000 + 256 * machine.below(BUFFERS) as i64),
            ret: (name == "transmit").then_some(0),
            protocol: Some(self.tcp),
            source: Some(source),
            destination: Some(destination),
            tcp_seq: Some(machine.below(1 << 32) as i64),
            drop_reason: (name == "drop").then_some(6),
        });
    }
}
