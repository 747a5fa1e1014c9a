//! A condition that was met, and how a spool stores it.

use whyslow_model::spool::{ELSEWHERE, Encoder, Kind};
use whyslow_model::trigger::{self, TriggerKind};

/// A condition that was met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    /// The condition as typed; `None` for a save on request.
    pub term: Option<String>,
    /// The thread, what it did or waited for, and how long that took.
    pub what: String,
    /// CLOCK_MONOTONIC, ns.
    pub ts: u64,
    /// What met the condition; `None` for a save on request.
    pub operation: Option<Operation>,
}

/// What met a condition: enough to find its row in the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Its kind, which determines the table.
    pub kind: TriggerKind,
    /// Kernel ids of process and thread; `None` for pressure.
    pub thread: Option<(i32, i32)>,
    /// Duration until the condition was met, in ns.
    pub took: u64,
    /// What identifies it beyond its thread, if anything does.
    pub name: String,
    /// Whether it had ended by then.
    pub is_over: bool,
}

impl Trigger {
    /// A save on request, now.
    pub(crate) fn requested(ts: u64) -> Self {
        Self {
            term: None,
            what: trigger::REQUESTED.into(),
            ts,
            operation: None,
        }
    }

    /// The condition and what met it.
    pub(crate) fn text(&self) -> String {
        match &self.term {
            Some(term) => format!("{term}: {}", self.what),
            None => self.what.clone(),
        }
    }

    /// Writes its facts and a marker; the recording begins at `begin`.
    pub(crate) fn write(&self, encoder: &mut Encoder, begin: u64) {
        let text = self.text();
        let mut fact = |ts, name: &str, value: &str| {
            encoder
                .begin(Kind::Fact, ts, (0, 0))
                .text(name.as_bytes())
                .text(value.as_bytes())
                .end();
        };
        fact(begin, trigger::TEXT, &text);
        // The time of the record is the value: the importer converts it.
        fact(self.ts, trigger::TIME, "");
        if let Some(term) = &self.term {
            fact(begin, trigger::CONDITION, term);
        }
        if let Some(operation) = &self.operation {
            fact(begin, trigger::KIND, operation.kind.name());
            if let Some((pid, tid)) = operation.thread {
                fact(begin, trigger::PID, &pid.to_string());
                fact(begin, trigger::TID, &tid.to_string());
                fact(begin, trigger::DURATION, &operation.took.to_string());
                let complete = if operation.is_over { "yes" } else { "no" };
                fact(begin, trigger::COMPLETE, complete);
            }
            if !operation.name.is_empty() {
                fact(begin, trigger::NAME, &operation.name);
            }
        }
        encoder
            .begin_on(Kind::Mark, self.ts, (0, 0), (0, ELSEWHERE))
            .text(text.as_bytes())
            .end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyslow_model::spool::{Record, records};
    use whyslow_model::trigger::TriggerFacts;

    /// The facts that an import finds, and the times of their records.
    fn written(trigger: &Trigger) -> Vec<(String, String, u64)> {
        let mut encoder = Encoder::default();
        trigger.write(&mut encoder, 3);
        let facts = records(encoder.payload()).filter_map(|(_, record)| match record {
            Ok((head, Record::Fact { name, value })) => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                Some((text(name), text(value), head.ts))
            }
            _ => None,
        });
        facts.collect()
    }

    #[test]
    fn a_spool_has_all_that_identifies_the_operation() {
        let trigger = Trigger {
            term: Some("open>1s".into()),
            what: "openat by php 7/8 took 1.50 s".into(),
            ts: 77,
            operation: Some(Operation {
                kind: TriggerKind::Call,
                thread: Some((7, 8)),
                took: 1_500_000_000,
                name: "openat".into(),
                is_over: true,
            }),
        };
        let facts = written(&trigger);
        let keys: Vec<&str> = facts.iter().map(|(key, ..)| key.as_str()).collect();
        assert!(
            trigger::ALL.iter().all(|key| keys.contains(key)),
            "{keys:?}"
        );
        let time = facts.iter().find(|(key, ..)| key == trigger::TIME);
        assert_eq!(time.map(|(.., ts)| *ts), Some(77));
        let value = |key: &str| {
            let mut found = facts.iter();
            found.find_map(|(name, value, _)| (name == key).then_some(value.as_str()))
        };
        let read = TriggerFacts::read(value).expect("a trigger");
        assert_eq!(read.what(), trigger.what);
        assert_eq!(read.kind, Some(TriggerKind::Call));
        assert_eq!(
            (read.pid, read.tid, read.dur),
            (Some(7), Some(8), Some(1_500_000_000))
        );
        assert!(read.is_complete);
    }

    #[test]
    fn a_requested_save_has_its_time_only() {
        let facts = written(&Trigger::requested(5));
        let keys: Vec<&str> = facts.iter().map(|(key, ..)| key.as_str()).collect();
        assert_eq!(keys, [trigger::TEXT, trigger::TIME]);
        assert_eq!(facts[0].1, trigger::REQUESTED);
    }
}
