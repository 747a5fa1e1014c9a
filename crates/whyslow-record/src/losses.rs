//! Records that did not fit into a ring buffer, as counted by the BPF programs.

use libbpf_rs::{MapCore as _, MapFlags};
use whyslow_model::spool::{Encoder, Kind};

use crate::load::Loaded;

/// Counts seen so far.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// By CPU, with the time of the last poll.
    seen: Vec<(u64, u64)>,
    pub(crate) total: u64,
}

impl Losses {
    /// Records the losses since the last poll.
    pub(crate) fn note(&mut self, loaded: &Loaded<'_>, encoder: &mut Encoder, now: u64) {
        let losses = &loaded.skeleton.maps.losses;
        let Ok(Some(by_cpu)) = losses.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY) else {
            return;
        };
        self.seen.resize(by_cpu.len(), (0, now));
        for (cpu, (lost, seen)) in by_cpu.iter().zip(&mut self.seen).enumerate() {
            let number = |at: usize| {
                let bytes = lost.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
                bytes.map_or(0, u64::from_ne_bytes)
            };
            let (count, last) = (number(0), number(8));
            if count > seen.0 {
                let new = count - seen.0;
                self.total += new;
                let place = (cpu as u16, 0);
                encoder
                    .begin_on(Kind::Lost, seen.1, (0, 0), place)
                    .u64(seen.1)
                    .u64(last.max(seen.1))
                    .u64(new)
                    .end();
            }
            *seen = (count, now);
        }
    }
}
