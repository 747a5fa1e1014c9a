//! Converts finished I/Os to rows.
//!
//! A completion across a loss may be that of a later I/O at the same position: see
//! [`pairing`](crate::trackers::pairing). It may come on any CPU.
//!
//! The state dump names devices some time after the start of the recording, so rows of devices
//! without a name wait for its end, or until [`PENDING_MAX`] of them wait.

use rustc_hash::FxHashMap;
use whyslow_model::event::{BlockFlags, BlockOp, Loss};
use whyslow_model::tables::{BlockIoRow, CUT_UNCERTAIN, EmitAll};
use whyslow_model::{Ns, Sym, Symbols};

use super::device::Devices;
use super::open::{Io, Stage};
use crate::trackers::identity::Output;
use crate::trackers::pairing::{Pairing, Pairings};

const PENDING_MAX: usize = 4096;
const SECTOR_BYTES: i64 = 512;

/// How an I/O ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Completed(Ns),
    /// Completed; its start is unknown.
    OfUnknownBegin(Ns),
    Unknown,
}

#[derive(Debug, Default)]
pub(super) struct Rows {
    pending: Vec<BlockIoRow>,
    /// No more names are expected.
    settled: bool,
    letters: FxHashMap<u8, Sym>,
    /// By device and operation, of queue times too.
    pairings: Pairings<(i64, &'static str, bool)>,
}

impl Rows {
    pub(super) fn lost(&mut self, loss: &Loss<'_>) {
        self.pairings.lost(loss);
    }

    pub(super) fn emit<S: EmitAll>(
        &mut self,
        io: &Io,
        end: End,
        devices: &mut Devices,
        out: &mut Output<'_, S>,
    ) {
        let row = self.row(io, end, devices, out.symbols);
        if self.settled || devices.has_name(io.dev) {
            out.sink.emit(row);
            return;
        }
        self.pending.push(row);
        if self.pending.len() >= PENDING_MAX {
            self.settle(devices, out);
        }
    }

    /// All names are known that will be known.
    pub(super) fn settle<S: EmitAll>(&mut self, devices: &Devices, out: &mut Output<'_, S>) {
        self.settled = true;
        for mut row in std::mem::take(&mut self.pending) {
            row.dev_name = devices.name(row.dev, out.symbols);
            row.part_name = row.part.map(|part| devices.name(part, out.symbols));
            out.sink.emit(row);
        }
    }

    fn row(
        &mut self,
        io: &Io,
        end: End,
        devices: &mut Devices,
        symbols: &mut Symbols,
    ) -> BlockIoRow {
        let kind = |is_queue: bool| (io.dev, op_name(io), is_queue);
        let mut judge = |kind, range| self.pairings.judge(kind, &[None], range);
        let pairing = match end {
            End::Completed(ts) => judge(kind(false), (io.ts, ts)),
            _ => Pairing::Certain,
        };
        let has_queue_time = io
            .ts_issue
            .is_some_and(|issue| judge(kind(true), (io.ts, issue)).has_duration());
        let (ts_end, cut) = end_and_cut(end, pairing);
        let is_whole = matches!(end, End::Completed(_)) && pairing.has_duration();
        let whole = ts_end.filter(|_| is_whole);
        let since = |ts: Ns| whole.map(|end: Ns| end.saturating_sub(ts));
        // A flush issued for a write has the submitter of the write, but was not seen waiting
        // itself.
        let was_waiting = io.submitter.source.is_before_issue() && (io.sectors > 0 || io.queued);
        let queue_from = Some(io.ts).filter(|_| was_waiting);
        let thread = io.submitter.thread;
        let has_request = io.stage > Stage::Bio || devices.get(io.dev).has_requests;
        BlockIoRow {
            id: io.id,
            ts: io.ts,
            dur: since(io.ts),
            ts_end,
            ts_issue: io.ts_issue,
            queue_ns: io
                .ts_issue
                .filter(|_| has_queue_time)
                .and_then(|issue| Some(issue.saturating_sub(queue_from?))),
            device_ns: io.ts_issue.and_then(|issue| {
                let done = whole.map(|end| io.ts_done.unwrap_or(end));
                Some(done?.saturating_sub(issue))
            }),
            dev: io.dev,
            dev_name: devices.name(io.dev, symbols),
            part: io.part,
            part_name: io.part.map(|part| devices.name(part, symbols)),
            sector: io.sector,
            sectors: io.sectors,
            bytes: match io.sectors {
                0 => io.bytes.unwrap_or(0),
                sectors => sectors.saturating_mul(SECTOR_BYTES),
            },
            op: symbols.intern_static(op_name(io)),
            rwbs: self.rwbs(io.flags, symbols),
            layer: symbols.intern_static(if has_request { "request" } else { "bio" }),
            utid: thread.map(|thread| thread.utid),
            upid: thread.and_then(|thread| thread.upid),
            tid: thread.map(|thread| thread.tid).or(io.submitter.tid),
            pid: thread.and_then(|thread| thread.pid),
            comm: thread.and_then(|thread| thread.comm),
            submitter_source: Some(symbols.intern_static(io.submitter.source.name()))
                .filter(|_| thread.is_some() || io.submitter.tid.is_some()),
            issuer_utid: io.issuer_utid,
            cpu: io.cpu,
            merges: io.merges,
            completions: io.completions,
            error: io.error,
            cut: cut.map(|cut| symbols.intern_static(cut)),
        }
    }

    fn rwbs(&mut self, flags: BlockFlags, symbols: &mut Symbols) -> Sym {
        let bits = [
            flags.preflush,
            flags.fua,
            flags.ahead,
            flags.sync,
            flags.meta,
        ];
        let bits = bits.iter().fold(0, |bits, &bit| bits << 1 | u8::from(bit));
        let op = match flags.op {
            BlockOp::Read => 0,
            BlockOp::Write => 1,
            BlockOp::Discard if flags.secure => 2,
            BlockOp::Discard => 3,
            BlockOp::Flush => 4,
            BlockOp::Other => 5,
        };
        *self
            .letters
            .entry(op << 5 | bits)
            .or_insert_with(|| symbols.intern(&flags.letters()))
    }
}

/// When an I/O ended, and what of it was not seen.
fn end_and_cut(end: End, pairing: Pairing) -> (Option<Ns>, Option<&'static str>) {
    match end {
        End::Completed(ts) if !pairing.is_certain() => (Some(ts), Some(CUT_UNCERTAIN)),
        End::Completed(ts) => (Some(ts), None),
        End::OfUnknownBegin(ts) => (Some(ts), Some("begin")),
        End::Unknown => (None, Some("end")),
    }
}

fn op_name(io: &Io) -> &'static str {
    let flush = io.flags.op == BlockOp::Flush || io.flags.preflush;
    match io.flags.op {
        _ if io.sectors == 0 && flush => "flush",
        _ if io.sectors == 0 => "other",
        BlockOp::Read => "read",
        BlockOp::Write => "write",
        BlockOp::Discard => "discard",
        BlockOp::Flush => "flush",
        BlockOp::Other => "other",
    }
}
