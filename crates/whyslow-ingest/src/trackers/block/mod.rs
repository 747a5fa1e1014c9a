//! Block requests, from submission to completion.
//!
//! **Goal.** One row per I/O of a device: its submitter, its queue time, its device time. The
//! kernel reports it in several events that identify no request, only a position:
//!
//! ```text
//! bio_remap → bio_queue → split → getrq → insert → issue → complete (→ complete …)
//!                  └────── backmerge, frontmerge, rq_merge ──┘
//! ```
//!
//! Any of these may be missing; the first one recorded starts the row, and its thread is the
//! submitter, because later events are more likely to be in a kworker or an interrupt of an
//! unrelated thread.
//!
//! **Rejected.** A map by (device, sector) in which the newest I/O replaces the older one: two
//! processes may read one block at the same time, and the completion of the first would end the
//! second. Matching completions by size: it loses partial ones. Searching a list of remaps or of
//! requests to merge into: quadratic.
//!
//! **Chosen.** Hash chains by position ([`open`]); a partial completion advances the position; a
//! merge is found by the end of the request that grows. An I/O issued at the position of another
//! one that is in the driver exists in addition to it, unless events were lost since, or only
//! issues are recorded for the device: then the completion of the older one is assumed to be lost
//! (`BLOCK_KEY_REUSED`). I/O without sectors is ordered by [`sequence`]. A bio to a stacked device
//! (dm, md) is an I/O of its own with layer `bio`, which `block_bio_complete` ends; the I/O to the
//! underlying device is another one.
//!
//! **Lost events.** An I/O whose completion was lost must not take that of the next one at its
//! position, and that one of the one after it: all later I/Os there would seem to last from one to
//! the next. So I/Os that started before a loss are given up when another one starts in their place.
//! An end across a loss is judged in [`rows`]. A completion without a start has no duration; the row
//! is at the time of the completion, because nothing shows that the device had it before.

mod bio;
mod device;
mod empty;
mod open;
mod rows;
mod sequence;
mod shares;
#[cfg(test)]
mod tests;

use whyslow_model::event::{BlockRange, Body, Loss};
use whyslow_model::stat;
use whyslow_model::tables::EmitAll;
use whyslow_model::{Ns, Sym, Symbols};

use self::device::Devices;
use self::open::{CHAIN_MAX, Io, OPEN_MAX, OpenIos, Slot, Source, Stage, Submitter};
use self::rows::{End, Rows};
use self::sequence::Sequences;
use self::shares::Shares;
use super::identity::{Here, Output};

#[derive(Debug, Default)]
pub(super) struct BlockTracker {
    open: OpenIos,
    devices: Devices,
    sequences: Sequences,
    rows: Rows,
    shares: Shares,
    next_id: i64,
    /// The request that the current event completes, in whole or in part.
    completed: Option<i64>,
    /// End of the last loss.
    ts_lost: Option<Ns>,
}

impl BlockTracker {
    /// Name of a device, as far as it is known.
    pub(super) fn device_name(&self, dev: i64, symbols: &mut Symbols) -> Sym {
        self.devices.name(dev, symbols)
    }

    /// Processes an event.
    /// Returns the id of the request that the event completes, in whole or in part.
    pub(super) fn apply<S: EmitAll>(
        &mut self,
        here: &Here,
        body: &Body<'_>,
        out: &mut Output<'_, S>,
    ) -> Option<i64> {
        self.completed = None;
        match *body {
            Body::BlockBioQueue(range) => self.bio_queue(here, &range, out),
            Body::BlockBioRemap {
                range,
                old_dev,
                old_sector,
            } => self.bio_remap(here, &range, (old_dev, old_sector), out),
            Body::BlockSplit { range, new_sector } => self.split(&range, new_sector, out),
            Body::BlockBioBackmerge(range) => self.back_merge(here, &range),
            Body::BlockBioFrontmerge(range) => self.front_merge(here, &range),
            Body::BlockBioComplete { range, error } => self.bio_complete(here, &range, error, out),
            Body::BlockGetRq(range) => self.get_rq(here, &range, out),
            Body::BlockRqInsert(range) => self.insert(here, &range, out),
            Body::BlockRqIssue(range) => self.issue(here, &range, out),
            Body::BlockRqMerge(range) => self.rq_merge(&range),
            Body::BlockRqRequeue(range) => self.requeue(&range),
            Body::BlockRqComplete { range, error } => self.complete(here, &range, error, out),
            Body::StateBlockDevice { dev, name } => {
                let name = out.intern(name);
                self.devices.set_name(dev, name);
            }
            Body::StateDevice(ref about) => self.devices.describe(about, out.symbols),
            Body::StateDeviceLink {
                dev,
                below,
                kind: b"partition",
            } => self.devices.set_disk(dev, below),
            Body::StateEnd => self.rows.settle(&self.devices, out),
            _ => {}
        }
        self.completed
    }

    pub(super) fn lost(&mut self, loss: &Loss<'_>) {
        self.ts_lost = self.ts_lost.max(loss.ts_end.or(Some(loss.ts)));
        self.sequences.lost();
        self.rows.lost(loss);
    }

    /// End of the recording.
    pub(super) fn finish<S: EmitAll>(&mut self, out: &mut Output<'_, S>) {
        while let Some(slot) = self.open.oldest() {
            self.give_up(slot, out);
        }
        self.rows.settle(&self.devices, out);
        self.devices.finish(out.symbols, out.sink);
    }

    /// The request at this position is merged into the one that ends there.
    fn rq_merge(&mut self, range: &BlockRange<'_>) {
        if range.sectors <= 0 {
            return; // nothing to merge
        }
        let Some(target) = self.open.ending_at(range.dev, range.sector) else {
            return;
        };
        let next = self
            .open
            .find(range.dev, range.sector, range.sectors, Io::is_waiting)
            .filter(|&next| next != target)
            .map(|next| self.open.close(next));
        if let Some(next) = &next {
            self.shares.joined(self.open.get(target), next);
        }
        let merged = next.map_or(0, |next| next.merges);
        // A requeued request may have been completed in part.
        let completed = next.map_or(0, |next| next.completions);
        self.open.reshape(target, |io| {
            io.sectors = io.sectors.saturating_add(range.sectors);
            io.left = io.left.saturating_add(range.sectors);
            io.merges = io.merges.saturating_add(1).saturating_add(merged);
            io.completions = io.completions.saturating_add(completed);
        });
    }

    fn get_rq<S: EmitAll>(&mut self, here: &Here, range: &BlockRange<'_>, out: &mut Output<'_, S>) {
        let range = self.placed(range);
        let (place, _) = range;
        if place.dev == 0 {
            return; // kernels before 5.12 allocate requests for commands and flushes without a bio
        }
        self.note_requests(place.dev);
        if place.sectors <= 0 {
            return self.begin_empty(here, &range, Source::GetRq, out);
        }
        let is_bio = |io: &Io| io.stage == Stage::Bio;
        if let Some(slot) = self
            .open
            .find(place.dev, place.sector, place.sectors, is_bio)
        {
            self.open.get_mut(slot).stage = Stage::Request;
        } else {
            let mut io = self.begun(here, &range, Source::GetRq);
            io.stage = Stage::Request;
            self.add(io, out);
        }
    }

    fn insert<S: EmitAll>(&mut self, here: &Here, range: &BlockRange<'_>, out: &mut Output<'_, S>) {
        self.note_requests(range.dev);
        if range.sectors <= 0 {
            self.hand_over_empty(here, range, Source::Insert, out);
            return;
        }
        let waiting = self.waiting_request(range);
        let issued = |io: &Io| io.stage == Stage::Issued;
        let back = || {
            self.open
                .find(range.dev, range.sector, range.sectors, issued)
        };
        if let Some(slot) = waiting.or_else(back) {
            self.resize(slot, range, Stage::Request);
        } else {
            let mut io = self.begun(here, &(*range, None), Source::Insert);
            io.stage = Stage::Request;
            self.add(io, out);
        }
    }

    fn issue<S: EmitAll>(&mut self, here: &Here, range: &BlockRange<'_>, out: &mut Output<'_, S>) {
        self.devices.get(range.dev).has_requests = true;
        let slot = if range.sectors <= 0 {
            self.hand_over_empty(here, range, Source::Issue, out)
        } else {
            self.request_to_issue(here, range, out)
        };
        let io = self.open.get_mut(slot);
        io.stage = Stage::Issued;
        io.ts_issue = Some(here.ts);
        io.issuer_utid = here.thread.filter(|_| !here.interrupted).map(|t| t.utid);
        let (before, now) = (io.flags, range.flags);
        io.sequenced = (before.preflush && !now.preflush) || (before.fua && !now.fua);
    }

    /// The request that is issued, with its size at issue.
    fn request_to_issue<S: EmitAll>(
        &mut self,
        here: &Here,
        range: &BlockRange<'_>,
        out: &mut Output<'_, S>,
    ) -> Slot {
        let issued = |io: &Io| io.stage == Stage::Issued;
        let older = self
            .open
            .find(range.dev, range.sector, range.sectors, issued);
        let waiting = self.waiting_request(range);
        if let Some(older) = older {
            let lost = self.open.get(older).ts_issue < self.ts_lost;
            if waiting.is_none() && !lost && self.devices.get(range.dev).queue_seen {
                // Requeued without an event, and issued again.
                return older;
            }
            if waiting.is_none() || lost {
                out.anomalies.count(&stat::BLOCK_KEY_REUSED, here.ts);
                self.emit_cut(older, out);
            }
        }
        if let Some(slot) = waiting {
            self.resize(slot, range, Stage::Issued);
            return slot;
        }
        let io = self.begun(here, &(*range, None), Source::Issue);
        self.add(io, out)
    }

    fn requeue(&mut self, range: &BlockRange<'_>) {
        let issued = |io: &Io| io.stage == Stage::Issued;
        if let Some(slot) = self
            .open
            .find(range.dev, range.sector, range.sectors, issued)
        {
            let io = self.open.get_mut(slot);
            io.stage = Stage::Request;
            io.ts_issue = None;
        }
    }

    fn complete<S: EmitAll>(
        &mut self,
        here: &Here,
        range: &BlockRange<'_>,
        error: Option<i32>,
        out: &mut Output<'_, S>,
    ) {
        self.devices.get(range.dev).has_requests = true;
        if range.sectors <= 0 || range.sector < 0 {
            return self.complete_empty(here, range, error, out);
        }
        let issued = |io: &Io| io.stage == Stage::Issued;
        let found = self
            .open
            .find(range.dev, range.sector, range.sectors, issued)
            .or_else(|| self.waiting_request(range));
        let Some(slot) = found else {
            return self.complete_unknown(here, range, error, out);
        };
        self.note_completion(slot, error);
        if range.sectors < self.open.get(slot).left {
            self.open.reshape(slot, |io| {
                io.stage = Stage::Issued; // in case its issue was not recorded
                io.at += range.sectors;
                io.left -= range.sectors;
            });
        } else if self.open.get(slot).sequenced {
            let io = self.open.get_mut(slot);
            io.stage = Stage::Draining;
            io.ts_done = Some(here.ts);
        } else {
            self.emit_completed(slot, here.ts, out);
        }
    }

    /// Completion of an I/O that started before the recording, or while events were lost.
    fn complete_unknown<S: EmitAll>(
        &mut self,
        here: &Here,
        range: &BlockRange<'_>,
        error: Option<i32>,
        out: &mut Output<'_, S>,
    ) {
        out.anomalies
            .count(&stat::BLOCK_COMPLETE_WITHOUT_ISSUE, here.ts);
        let mut io = self.begun(here, &(*range, None), Source::Issue);
        io.submitter.thread = None;
        io.submitter.tid = None;
        io.cpu = None;
        io.sector = io.sector.max(0);
        io.completions = 1;
        io.error = errno(error);
        self.completed = Some(io.id);
        self.rows
            .emit(&io, End::OfUnknownBegin(here.ts), &mut self.devices, out);
    }

    /// A request that was not issued yet; a bio represents a request whose allocation was not
    /// recorded.
    fn waiting_request(&mut self, range: &BlockRange<'_>) -> Option<Slot> {
        let (dev, sector, sectors) = (range.dev, range.sector, range.sectors);
        let request = |io: &Io| io.stage == Stage::Request;
        let find = |open: &OpenIos| {
            open.find(dev, sector, sectors, request)
                .or_else(|| open.find(dev, sector, sectors, Io::is_waiting))
        };
        find(&self.open).or_else(|| {
            self.adopt_orphan(range)?;
            find(&self.open)
        })
    }

    /// Finds the disk of a partition: a request to the disk at the position of a bio to the
    /// partition.
    fn adopt_orphan(&mut self, range: &BlockRange<'_>) -> Option<()> {
        let (sector, sectors) = (range.sector, range.sectors);
        let found = |&part: &i64| {
            let slot = self.open.find(part, sector, sectors, Io::is_waiting);
            slot.is_some() && part != range.dev
        };
        let part = self.devices.orphans().iter().copied().find(found)?;
        self.devices.adopt(part, range.dev);
        for slot in self.open.of_device(part) {
            self.open.reshape(slot, |io| {
                io.dev = range.dev;
                io.part = Some(part);
            });
        }
        Some(())
    }

    /// Merges may not be recorded: use the size reported by the queue or the driver.
    fn resize(&mut self, slot: Slot, range: &BlockRange<'_>, stage: Stage) {
        self.open.reshape(slot, |io| {
            io.stage = stage;
            io.sectors = range.sectors;
            io.left = range.sectors;
        });
    }

    fn note_requests(&mut self, dev: i64) {
        let device = self.devices.get(dev);
        device.has_requests = true;
        device.queue_seen = true;
    }

    fn note_completion(&mut self, slot: Slot, error: Option<i32>) {
        let io = self.open.get_mut(slot);
        self.completed = Some(io.id);
        io.completions = io.completions.saturating_add(1);
        let failed = io.error.filter(|&error| error != 0);
        io.error = failed.or(errno(error));
    }

    fn note_flush_need(&mut self, slot: Slot) {
        let io = self.open.get(slot);
        if io.sectors > 0 && (io.flags.preflush || io.flags.fua) {
            self.sequences.of(io.dev).needy = Some((slot, io.id));
        }
    }

    fn placed<'a>(&mut self, range: &BlockRange<'a>) -> (BlockRange<'a>, Option<i64>) {
        let (dev, part) = self.devices.place(range.dev);
        (BlockRange { dev, ..*range }, part)
    }

    fn take_id(&mut self) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    fn begun(
        &mut self,
        here: &Here,
        (range, part): &(BlockRange<'_>, Option<i64>),
        source: Source,
    ) -> Io {
        let sectors = range.sectors.max(0);
        let known = !here.interrupted;
        Io {
            id: self.take_id(),
            ts: here.ts,
            cpu: here.cpu,
            submitter: Submitter {
                thread: here.thread.filter(|_| known),
                tid: range.tid.filter(|&tid| known && tid > 0),
                source,
            },
            issuer_utid: None,
            dev: range.dev,
            part: *part,
            sector: range.sector,
            sectors,
            at: range.sector,
            left: sectors,
            bytes: range.bytes,
            flags: range.flags,
            stage: Stage::Bio,
            queued: false,
            sequenced: false,
            ts_issue: None,
            ts_done: None,
            merges: 0,
            completions: 0,
            error: None,
        }
    }

    fn add<S: EmitAll>(&mut self, io: Io, out: &mut Output<'_, S>) -> Slot {
        if self.open.len() >= OPEN_MAX
            && let Some(oldest) = self.open.oldest()
        {
            out.anomalies.count(&stat::MAP_LIMIT, io.ts);
            self.emit_cut(oldest, out);
        }
        let ts_lost = self.ts_lost;
        let is_old = |old: &Io| Some(old.ts) < ts_lost;
        if io.sectors > 0
            && let Some(old) = self.open.find(io.dev, io.at, -1, is_old)
        {
            out.anomalies.count(&stat::BLOCK_KEY_REUSED, io.ts);
            self.emit_cut(old, out);
        }
        if io.sectors > 0 && self.open.chain_len(io.dev, io.at) >= CHAIN_MAX {
            let oldest = self.open.find(io.dev, io.at, -1, |_| true);
            out.anomalies.count(&stat::BLOCK_KEY_REUSED, io.ts);
            self.emit_cut(oldest.expect("the chain has members"), out);
        }
        let slot = self.open.insert(io);
        self.note_flush_need(slot);
        slot
    }

    fn emit_completed<S: EmitAll>(&mut self, slot: Slot, ts: Ns, out: &mut Output<'_, S>) {
        let io = self.open.close(slot);
        self.shares.emit(&io, out);
        self.rows
            .emit(&io, End::Completed(ts), &mut self.devices, out);
    }

    fn emit_cut<S: EmitAll>(&mut self, slot: Slot, out: &mut Output<'_, S>) {
        let io = self.open.close(slot);
        let end = io.ts_done.map_or(End::Unknown, End::Completed);
        self.shares.emit(&io, out);
        self.rows.emit(&io, end, &mut self.devices, out);
    }

    fn give_up<S: EmitAll>(&mut self, slot: Slot, out: &mut Output<'_, S>) {
        if self.open.get(slot).ts_done.is_none() {
            let ts = self.open.get(slot).ts;
            out.anomalies.count(&stat::BLOCK_ISSUE_WITHOUT_COMPLETE, ts);
        }
        self.emit_cut(slot, out);
    }
}

/// Completions contain negative errnos.
fn errno(error: Option<i32>) -> Option<i32> {
    error.map(|error| i32::try_from(error.unsigned_abs()).unwrap_or(i32::MAX))
}
