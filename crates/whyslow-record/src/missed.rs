//! Runs of BPF programs that the kernel skipped: it does not run a program recursively on the same
//! CPU. Lock waits inside a BPF program are such a case.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::libbpf_sys::{bpf_prog_get_info_by_fd, bpf_prog_info};
use libbpf_rs::skel::Skel;
use libbpf_rs::{MapCore as _, MapFlags};
use whyslow_model::spool::{Encoder, Kind};

use crate::clock;
use crate::load::Loaded;

#[derive(Debug, Default)]
pub(crate) struct Missed {
    /// By program.
    seen: BTreeMap<&'static str, u64>,
    /// Of all programs.
    pub(crate) count: u64,
    polled_at: u64,
}

impl Missed {
    /// Records the runs skipped since the last poll.
    pub(crate) fn poll(&mut self, loaded: &Loaded<'_>, encoder: &mut Encoder) {
        let now = clock::monotonic();
        let from = if self.polled_at == 0 {
            now
        } else {
            self.polled_at
        };
        for (name, count) in counts(loaded) {
            let before = self.seen.insert(name, count).unwrap_or(0);
            let new = count.saturating_sub(before);
            if new > 0 {
                self.count += new;
                encoder
                    .begin(Kind::Missed, from, (0, 0))
                    .u64(now)
                    .u64(new)
                    .text(name.as_bytes())
                    .end();
            }
        }
        self.polled_at = now;
    }
}

fn counts(loaded: &Loaded<'_>) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    for program in loaded.skeleton.object().progs() {
        let mut links = loaded.links.iter();
        if let Some((chosen, _)) = links.find(|(chosen, _)| program.name() == chosen.form)
            && let Some(count) = count(program.as_fd().as_raw_fd())
        {
            counts.insert(chosen.form, count);
        }
    }
    counts.insert("waits", waits(loaded));
    counts
}

/// Waits whose start could not be stored, for the same reason.
fn waits(loaded: &Loaded<'_>) -> u64 {
    let losses = &loaded.skeleton.maps.losses;
    let by_cpu = losses.lookup_percpu(&1u32.to_ne_bytes(), MapFlags::ANY);
    let count = |lost: &Vec<u8>| {
        lost.first_chunk()
            .map_or(0, |count| u64::from_ne_bytes(*count))
    };
    by_cpu.ok().flatten().iter().flatten().map(count).sum()
}

#[allow(unsafe_code)]
fn count(program: i32) -> Option<u64> {
    let mut info = bpf_prog_info::default();
    let mut size = size_of::<bpf_prog_info>() as u32;
    // SAFETY: the kernel writes at most `size` bytes, which the structure has; its lists are empty.
    let result = unsafe { bpf_prog_get_info_by_fd(program, &raw mut info, &raw mut size) };
    (result == 0).then_some(info.recursion_misses)
}
