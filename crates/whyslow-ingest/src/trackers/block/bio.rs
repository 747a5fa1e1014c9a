//! Bios: their submission, remaps, splits and merges into requests, and their completion on devices
//! without requests.

use whyslow_model::event::BlockRange;
use whyslow_model::tables::EmitAll;

use super::BlockTracker;
use super::open::{Io, Source, Stage};
use crate::trackers::identity::{Here, Output, ThreadRef};

impl BlockTracker {
    pub(super) fn bio_queue<S: EmitAll>(
        &mut self,
        here: &Here,
        range: &BlockRange<'_>,
        out: &mut Output<'_, S>,
    ) {
        let range = self.placed(range);
        self.devices.get(range.0.dev).queue_seen = true;
        if range.0.sectors <= 0 {
            return self.begin_empty(here, &range, Source::BioQueue, out);
        }
        let (place, _) = range;
        let is_unqueued = |io: &Io| io.stage == Stage::Bio && !io.queued;
        if let Some(slot) = self
            .open
            .find(place.dev, place.sector, place.sectors, is_unqueued)
        {
            let io = self.open.get_mut(slot);
            io.queued = true;
            io.flags = place.flags;
            if io.submitter.source == Source::BioRemap {
                io.submitter.source = Source::BioQueue;
            }
            self.note_flush_need(slot);
        } else {
            let mut io = self.begun(here, &range, Source::BioQueue);
            io.queued = true;
            self.add(io, out);
        }
    }

    /// An I/O to a partition is remapped to its disk before it is queued there. A bio that *was*
    /// queued at the old position belongs to a stacked device: it stays, and its clone starts
    /// below.
    pub(super) fn bio_remap<S: EmitAll>(
        &mut self,
        here: &Here,
        range: &BlockRange<'_>,
        (old_dev, old_sector): (i64, i64),
        out: &mut Output<'_, S>,
    ) {
        if range.dev == old_dev {
            self.devices.remapped_in_place(old_dev, out.symbols);
        }
        let (place, part) = self.placed(range);
        self.devices.get(place.dev).queue_seen = true;
        if place.sectors <= 0 {
            return; // an empty flush: its bio_queue or getrq follows, on the disk
        }
        let is_bio = |io: &Io| io.stage == Stage::Bio;
        let old_place = self.devices.place(old_dev).0;
        let above = self.open.find(old_place, old_sector, place.sectors, is_bio);
        let part = match above.map(|slot| *self.open.get(slot)) {
            Some(bio) if bio.queued => None,
            Some(_) => {
                self.devices.remapped(old_dev, place.dev);
                let slot = above.expect("matched before");
                self.open.reshape(slot, |io| {
                    io.dev = place.dev;
                    io.sector = place.sector;
                    io.at = place.sector;
                    io.part = Some(old_dev);
                });
                return;
            }
            None if range.dev == old_dev => part,
            None => {
                self.devices.remapped(old_dev, place.dev);
                Some(old_dev)
            }
        };
        let mut io = self.begun(here, &(place, part), Source::BioRemap);
        if let Some(above) = above {
            io.submitter = self.open.get(above).submitter;
        }
        self.add(io, out);
    }

    /// The front part continues unchanged; the rest was queued together with it.
    pub(super) fn split<S: EmitAll>(
        &mut self,
        range: &BlockRange<'_>,
        new_sector: i64,
        out: &mut Output<'_, S>,
    ) {
        let (place, _) = self.placed(range);
        let is_bio = |io: &Io| io.stage == Stage::Bio;
        let Some(slot) = self.open.find(place.dev, place.sector, -1, is_bio) else {
            return;
        };
        let whole = *self.open.get(slot);
        let front = new_sector.saturating_sub(whole.at);
        if front <= 0 || front >= whole.left {
            return;
        }
        self.open.reshape(slot, |io| {
            io.sectors = front;
            io.left = front;
        });
        let rest = Io {
            id: self.take_id(),
            sector: new_sector,
            at: new_sector,
            sectors: whole.left - front,
            left: whole.left - front,
            queued: false,
            ..whole
        };
        self.add(rest, out);
    }

    /// The bio at this position becomes part of a request. Returns its thread.
    fn take_bio(&mut self, here: &Here, place: &BlockRange<'_>) -> Option<ThreadRef> {
        let is_bio = |io: &Io| io.stage == Stage::Bio;
        let found = self
            .open
            .find(place.dev, place.sector, place.sectors, is_bio);
        match found {
            Some(bio) => self.open.close(bio).submitter.thread,
            None => here.thread.filter(|_| !here.interrupted),
        }
    }

    pub(super) fn back_merge(&mut self, here: &Here, range: &BlockRange<'_>) {
        let (place, _) = self.placed(range);
        let thread = self.take_bio(here, &place);
        if let Some(target) = self.open.ending_at(place.dev, place.sector) {
            let into = self.open.get(target);
            self.shares.merged(into, thread, here.ts, place.sectors);
            self.open.reshape(target, |io| {
                io.sectors = io.sectors.saturating_add(place.sectors);
                io.left = io.left.saturating_add(place.sectors);
                io.merges = io.merges.saturating_add(1);
            });
        }
    }

    pub(super) fn front_merge(&mut self, here: &Here, range: &BlockRange<'_>) {
        let (place, _) = self.placed(range);
        let thread = self.take_bio(here, &place);
        let behind = place.sector.saturating_add(place.sectors);
        if let Some(target) = self.open.find(place.dev, behind, -1, Io::is_waiting) {
            let into = self.open.get(target);
            self.shares.merged(into, thread, here.ts, place.sectors);
            self.open.reshape(target, |io| {
                io.sector = place.sector;
                io.at = place.sector;
                io.sectors = io.sectors.saturating_add(place.sectors);
                io.left = io.left.saturating_add(place.sectors);
                io.merges = io.merges.saturating_add(1);
            });
        }
    }

    pub(super) fn bio_complete<S: EmitAll>(
        &mut self,
        here: &Here,
        range: &BlockRange<'_>,
        error: Option<i32>,
        out: &mut Output<'_, S>,
    ) {
        let (place, part) = self.placed(range);
        let is_bio = |io: &Io| io.stage == Stage::Bio;
        let found = match place.sectors {
            // Linux 5 and later report it when the bio has advanced to its end.
            0 => self
                .open
                .ending_at(place.dev, place.sector)
                .filter(|&slot| is_bio(self.open.get(slot))),
            sectors => self.open.find(place.dev, place.sector, sectors, is_bio),
        };
        if let Some(slot) = found {
            self.note_completion(slot, error);
            self.emit_completed(slot, here.ts, out);
        } else if place.sectors > 0 && !self.devices.get(place.dev).has_requests {
            let place = BlockRange {
                dev: part.unwrap_or(place.dev),
                ..place
            };
            self.complete_unknown(here, &place, error, out);
        }
    }
}
