//! Counts of what was not as it should be, by declared kind.

use whyslow_model::Ns;
use whyslow_model::stat::Stat;

/// How often one kind of anomaly occurred, and when first.
#[derive(Debug, Clone, Copy)]
pub struct Anomaly {
    /// Kind of the anomaly.
    pub stat: &'static Stat,
    /// How often it occurred.
    pub count: u64,
    /// When it occurred first; `None` if no time is known.
    pub ts_first: Option<Ns>,
}

/// The anomalies of one import. Few kinds ever occur, so a list is searched, not a map.
#[derive(Debug, Default)]
pub struct Anomalies {
    seen: Vec<Anomaly>,
    told: Vec<(&'static Stat, String)>,
}

impl Anomalies {
    /// Counts one at a time of the trace.
    pub fn count(&mut self, stat: &'static Stat, ts: Ns) {
        self.add(stat, 1, Some(ts));
    }

    /// Counts several; `ts` is that of the first, if it is known.
    pub fn add(&mut self, stat: &'static Stat, count: u64, ts: Option<Ns>) {
        let found = self
            .seen
            .iter_mut()
            .find(|anomaly| std::ptr::eq(anomaly.stat, stat));
        match found {
            Some(anomaly) => {
                anomaly.count = anomaly.count.saturating_add(count);
                anomaly.ts_first = anomaly.ts_first.or(ts);
            }
            None => self.seen.push(Anomaly {
                stat,
                count,
                ts_first: ts,
            }),
        }
    }

    /// The same, in words of its own. There may be few of these.
    pub fn tell(&mut self, stat: &'static Stat, ts: Ns, text: String) {
        self.count(stat, ts);
        self.told.push((stat, text));
    }

    /// What there is to say of a kind beside its description.
    pub fn text(&self, stat: &'static Stat) -> Option<&str> {
        let told = self.told.iter().find(|(of, _)| std::ptr::eq(*of, stat));
        told.map(|(_, text)| text.as_str())
    }

    /// How often a kind occurred so far.
    pub fn get(&self, stat: &'static Stat) -> u64 {
        self.iter()
            .find(|anomaly| std::ptr::eq(anomaly.stat, stat))
            .map_or(0, |anomaly| anomaly.count)
    }

    /// In order of first occurrence.
    pub fn iter(&self) -> impl Iterator<Item = &Anomaly> {
        self.seen.iter()
    }
}
