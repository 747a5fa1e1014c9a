//! Summary of a perf.data file after it was read.

use std::io;

use whyslow_model::Ns;
use whyslow_model::stat;

use super::{Item, PerfSource};
use crate::importers::streamed::{Note, Streamed, Summary};

impl Streamed for PerfSource {
    fn next_ts(&mut self) -> io::Result<Option<Ns>> {
        Self::next_ts(self)
    }

    fn next(&mut self, take: &mut dyn FnMut(Item<'_>)) -> io::Result<bool> {
        Self::next(self, take)
    }

    fn progress(&self) -> (u64, u64) {
        Self::progress(self)
    }

    fn summary(&self) -> Summary {
        let lacks = self.lacks();
        let (damaged, offset) = lacks.damaged;
        let is_guessed = u64::from(!self.is_clock_known);
        let lost = Note::new(&stat::PERF_LOST_BYTES, damaged);
        Summary {
            facts: self.facts(),
            counts: self.counts(),
            records: self.records(),
            skipped: lacks.cut + lacks.strange,
            notes: vec![
                lost.at(offset, format!("{damaged} bytes")),
                Note::new(&stat::PERF_UNFINISHED, u64::from(lacks.is_unfinished)),
                Note::new(&stat::PERF_STRANGE, lacks.strange),
                Note::new(&stat::PERF_CUT, lacks.cut),
                Note::new(&stat::PERF_NO_FORMAT, lacks.without_format),
                Note::new(&stat::PERF_UNNAMED, lacks.unnamed),
                Note::new(&stat::PERF_THROTTLED, lacks.throttled),
                Note::new(&stat::PERF_SORTED_EARLY, lacks.sorted_early),
                Note::new(&stat::EVENT_NOT_USED, lacks.unused),
                Note::new(&stat::PERF_CLOCK_GUESSED, is_guessed),
            ],
        }
    }
}
