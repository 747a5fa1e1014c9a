//! I/O without sectors, from submission to completion: flushes and commands. They are found by
//! their order, see [`sequence`](super::sequence).

use whyslow_model::event::{BlockOp, BlockRange};
use whyslow_model::tables::EmitAll;

use super::BlockTracker;
use super::open::{Io, Slot, Source, Stage};
use crate::trackers::identity::{Here, Output};

impl BlockTracker {
    /// An empty flush or a command is submitted; its getrq follows its bio_queue.
    pub(super) fn begin_empty<S: EmitAll>(
        &mut self,
        here: &Here,
        range: &(BlockRange<'_>, Option<i64>),
        source: Source,
        out: &mut Output<'_, S>,
    ) {
        let dev = range.0.dev;
        let flush = range.0.flags.preflush || range.0.flags.op == BlockOp::Flush;
        if source == Source::GetRq && flush {
            let waiting = self.sequences.of(dev).empty.youngest_bio(&self.open);
            if let Some(slot) = waiting {
                self.open.get_mut(slot).stage = Stage::Request;
                return;
            }
        }
        self.give_up_lost(dev, out);
        let mut io = self.begun(here, range, source);
        io.queued = true;
        if source == Source::GetRq {
            io.stage = Stage::Request;
        }
        let id = io.id;
        let slot = self.add(io, out);
        let sequence = self.sequences.of(dev);
        let queue = if flush {
            &mut sequence.empty
        } else {
            &mut sequence.commands
        };
        queue.push((slot, id));
    }

    /// A flush or command is inserted into the scheduler or issued to the driver.
    pub(super) fn hand_over_empty<S: EmitAll>(
        &mut self,
        here: &Here,
        range: &BlockRange<'_>,
        source: Source,
        out: &mut Output<'_, S>,
    ) -> Slot {
        let flush = range.flags.preflush || range.flags.op == BlockOp::Flush;
        let sequence = self.sequences.of(range.dev);
        let queue = if flush {
            &mut sequence.flushes
        } else {
            &mut sequence.commands
        };
        if let Some(slot) = queue.waiting(&self.open) {
            let io = self.open.get_mut(slot);
            io.stage = io.stage.max(Stage::Request);
            return slot;
        }
        if flush && let Some(slot) = sequence.empty.pop(&self.open) {
            let io = self.open.get_mut(slot);
            io.stage = Stage::Request;
            sequence.flushes.push((slot, io.id));
            return slot;
        }
        let submitted_by = sequence
            .needy
            .filter(|&(slot, id)| flush && self.open.holds(slot, id))
            .map(|(slot, _)| self.open.get(slot).submitter);
        self.give_up_lost(range.dev, out);
        let mut io = self.begun(here, &(*range, None), source);
        io.stage = Stage::Request;
        io.sector = io.sector.max(0);
        if let Some(submitter) = submitted_by {
            io.submitter = submitter;
        }
        let id = io.id;
        let slot = self.add(io, out);
        let sequence = self.sequences.of(range.dev);
        let queue = if flush {
            &mut sequence.flushes
        } else {
            &mut sequence.commands
        };
        queue.push((slot, id));
        slot
    }

    /// A flush or a command, or the end of a flush sequence whose data is complete.
    pub(super) fn complete_empty<S: EmitAll>(
        &mut self,
        here: &Here,
        range: &BlockRange<'_>,
        error: Option<i32>,
        out: &mut Output<'_, S>,
    ) {
        let drains = |io: &Io| io.stage == Stage::Draining;
        if let Some(slot) = self.open.find(range.dev, range.sector, -1, drains) {
            self.completed = Some(self.open.get(slot).id);
            return self.emit_completed(slot, here.ts, out);
        }
        let sequence = self.sequences.of(range.dev);
        let found = if range.flags.op == BlockOp::Flush {
            let flush = sequence.flushes.pop_issued(&self.open);
            let empty = flush.is_some_and(|slot| self.open.get(slot).queued);
            sequence.tails = sequence.tails.saturating_add(u32::from(empty));
            flush
        } else if range.sector < 0 {
            sequence.commands.pop_issued(&self.open)
        } else if sequence.tails > 0 {
            sequence.tails -= 1;
            return;
        } else {
            match sequence.empty.pop(&self.open) {
                Some(slot) => Some(slot),
                // The end of a sequence whose start was not recorded.
                None => return,
            }
        };
        match found {
            Some(slot) => {
                self.note_completion(slot, error);
                self.emit_completed(slot, here.ts, out);
            }
            None => self.complete_unknown(here, range, error, out),
        }
    }

    /// Ends I/Os without sectors that started before the last loss, because another one starts.
    fn give_up_lost<S: EmitAll>(&mut self, dev: i64, out: &mut Output<'_, S>) {
        let Some(ts_lost) = self.ts_lost else { return };
        for slot in self.sequences.of(dev).take_before(ts_lost, &self.open) {
            self.emit_cut(slot, out);
        }
    }
}
