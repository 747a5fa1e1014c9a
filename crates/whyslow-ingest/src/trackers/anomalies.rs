//! Counts of anomalies, by declared kind.

use whyslow_model::Ns;
use whyslow_model::stat::Stat;

/// Number of occurrences of an anomaly, and the first one.
#[derive(Debug, Clone, Copy)]
pub struct Anomaly {
    /// Kind of the anomaly.
    pub stat: &'static Stat,
    /// Number of occurrences.
    pub count: u64,
    /// Time of the first occurrence; `None` if unknown.
    pub ts_first: Option<Ns>,
}

/// The anomalies of an import. Only a few kinds occur, so this is a list rather than a map.
#[derive(Debug, Default)]
pub struct Anomalies {
    seen: Vec<Anomaly>,
    texts: Vec<(&'static Stat, String)>,
}

impl Anomalies {
    /// Counts one at a time in the trace.
    pub fn count(&mut self, stat: &'static Stat, ts: Ns) {
        self.add(stat, 1, Some(ts));
    }

    /// Counts several; `ts` is the time of the first one, if known.
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

    /// Counts one with a text of its own. Use it for rare anomalies only.
    pub fn note(&mut self, stat: &'static Stat, ts: Ns, text: String) {
        self.count(stat, ts);
        self.texts.push((stat, text));
    }

    /// Text of a kind, in addition to its description.
    pub fn text(&self, stat: &'static Stat) -> Option<&str> {
        let found = self.texts.iter().find(|(of, _)| std::ptr::eq(*of, stat));
        found.map(|(_, text)| text.as_str())
    }

    /// Number of occurrences of a kind so far.
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
