//! Counts anomalies found while reading, each kind with its first location.

use std::path::{Path, PathBuf};

use whyslow_model::sort::IndexSort;
use whyslow_model::stat::{self, Stat};

/// Occurrences of one kind of anomaly.
#[derive(Debug, Clone)]
pub struct Anomaly {
    /// Kind of the anomaly.
    pub stat: &'static Stat,
    /// Number of occurrences.
    pub count: u64,
    /// File of the first occurrence.
    pub path: PathBuf,
    /// Offset of the first occurrence in that file.
    pub byte_offset: u64,
    /// Details of the first occurrence; may be empty.
    pub text: String,
}

/// Counts of all kinds.
#[derive(Debug, Default)]
pub(super) struct Tally {
    met: Vec<Anomaly>,
}

impl Tally {
    pub(super) fn add(&mut self, stat: &'static Stat, path: &Path, byte_offset: u64) {
        self.add_with(stat, path, byte_offset, String::new);
    }

    pub(super) fn add_with(
        &mut self,
        stat: &'static Stat,
        path: &Path,
        byte_offset: u64,
        text: impl FnOnce() -> String,
    ) {
        self.add_many(stat, 1, (path, byte_offset), text);
    }

    pub(super) fn add_many(
        &mut self,
        stat: &'static Stat,
        count: u64,
        (path, byte_offset): (&Path, u64),
        text: impl FnOnce() -> String,
    ) {
        let is_same = |anomaly: &&mut Anomaly| std::ptr::eq(anomaly.stat, stat);
        if let Some(anomaly) = self.met.iter_mut().find(is_same) {
            anomaly.count += count;
            return;
        }
        let (path, text) = (path.to_owned(), text());
        self.met.push(Anomaly {
            stat,
            count,
            path,
            byte_offset,
            text,
        });
    }

    pub(super) fn merge(&mut self, other: &Tally) {
        for anomaly in &other.met {
            let place = (anomaly.path.as_path(), anomaly.byte_offset);
            self.add_many(anomaly.stat, anomaly.count, place, || anomaly.text.clone());
        }
    }

    /// Only kinds that occurred, in the order of their declaration.
    pub(super) fn anomalies(&self) -> Vec<Anomaly> {
        let mut met = self.met.clone();
        let place = |anomaly: &Anomaly| {
            stat::ALL
                .iter()
                .position(|stat| std::ptr::eq(*stat, anomaly.stat))
        };
        met.index_sort_by_key(place);
        met
    }

    pub(super) fn count(&self, stat: &'static Stat) -> u64 {
        let found = self
            .met
            .iter()
            .find(|anomaly| std::ptr::eq(anomaly.stat, stat));
        found.map_or(0, |anomaly| anomaly.count)
    }
}
