//! What made a flight recorder save: facts of its spool, which the import copies into the table
//! `metadata`. Times are durations or converted at import, so that they fit the rows.

use crate::Ns;

/// The condition and what met it, as one sentence; all that earlier versions wrote.
pub const TEXT: &str = "trigger";
/// Time at which the condition was met. The spool has it as the time of the record, with an empty
/// value; the import writes ns since the epoch.
pub const TIME: &str = "trigger_ns";
/// The condition as typed; missing if a save was requested.
pub const CONDITION: &str = "trigger_condition";
/// [`TriggerKind::name`].
pub const KIND: &str = "trigger_kind";
/// Kernel id of the thread of the operation.
pub const TID: &str = "trigger_tid";
/// Kernel id of its process.
pub const PID: &str = "trigger_pid";
/// Duration of the operation until the condition was met, in ns.
pub const DURATION: &str = "trigger_dur_ns";
/// What identifies the operation beyond its thread: [`TriggerKind`].
pub const NAME: &str = "trigger_name";
/// `yes` or `no`: whether the operation had ended.
pub const COMPLETE: &str = "trigger_complete";
/// All of them.
pub const ALL: [&str; 9] = [
    TEXT, TIME, CONDITION, KIND, TID, PID, DURATION, NAME, COMPLETE,
];
/// [`TEXT`] of a save that was requested.
pub const REQUESTED: &str = "requested";

/// Kind of operation that met a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerKind {
    /// A request served on this machine; without a name.
    Request,
    /// A system call; its name.
    Call,
    /// Block I/O; device and sector: `8:0+2048`.
    Block,
    /// A run-queue wait; without a name.
    Sched,
    /// A DNS lookup; the host.
    Lookup,
    /// A kernel lock wait; the address.
    Lock,
    /// Pressure: a state of the machine; the resource.
    Pressure,
}

impl TriggerKind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::Request,
        Self::Call,
        Self::Block,
        Self::Sched,
        Self::Lookup,
        Self::Lock,
        Self::Pressure,
    ];

    /// The name in facts and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Call => "call",
            Self::Block => "block",
            Self::Sched => "sched",
            Self::Lookup => "dns",
            Self::Lock => "lock",
            Self::Pressure => "pressure",
        }
    }

    /// The kind with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// The facts of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TriggerFacts {
    /// Value of [`TEXT`].
    pub text: String,
    /// Value of [`TIME`], ns since the epoch; none from earlier versions.
    pub ts: Option<Ns>,
    /// Value of [`CONDITION`].
    pub condition: Option<String>,
    /// Value of [`KIND`].
    pub kind: Option<TriggerKind>,
    /// Value of [`TID`].
    pub tid: Option<i32>,
    /// Value of [`PID`].
    pub pid: Option<i32>,
    /// Value of [`DURATION`], ns.
    pub dur: Option<Ns>,
    /// Value of [`NAME`].
    pub name: Option<String>,
    /// Value of [`COMPLETE`].
    pub is_complete: bool,
}

impl TriggerFacts {
    /// Reads the facts; `None` if the recording has no trigger.
    pub fn read<'f>(fact: impl Fn(&str) -> Option<&'f str>) -> Option<Self> {
        let text = fact(TEXT)?.to_owned();
        let owned = |key| fact(key).map(str::to_owned);
        // Written by earlier versions as `open>1s: openat by …`.
        let typed = |text: &str| {
            let (condition, _) = text.split_once(": ")?;
            let is_one = condition.contains('>') && !condition.contains(' ');
            is_one.then(|| condition.to_owned())
        };
        Some(Self {
            condition: owned(CONDITION).or_else(|| typed(&text)),
            ts: fact(TIME).and_then(|text| text.parse().ok()),
            kind: fact(KIND).and_then(TriggerKind::by_name),
            tid: fact(TID).and_then(|text| text.parse().ok()),
            pid: fact(PID).and_then(|text| text.parse().ok()),
            dur: fact(DURATION).and_then(|text| text.parse().ok()),
            name: owned(NAME),
            is_complete: fact(COMPLETE) != Some("no"),
            text,
        })
    }

    /// What met the condition: the text without the condition.
    pub fn what(&self) -> &str {
        let condition = self.condition.as_deref();
        let rest = condition.and_then(|condition| self.text.strip_prefix(condition));
        rest.and_then(|rest| rest.strip_prefix(": "))
            .unwrap_or(&self.text)
    }

    /// Start of the operation, ns since the epoch.
    pub fn begin(&self) -> Option<Ns> {
        Some(self.ts?.saturating_sub(self.dur?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(facts: &[(&str, &str)]) -> Option<TriggerFacts> {
        let facts = facts.to_vec();
        TriggerFacts::read(|key| {
            let mut found = facts.iter();
            found.find_map(|(name, value)| (*name == key).then_some(*value))
        })
    }

    #[test]
    fn facts_become_a_trigger() {
        let facts = [
            (TEXT, "open>1s: openat by php 7/8 took 1.50 s"),
            (TIME, "5000000000"),
            (CONDITION, "open>1s"),
            (KIND, "call"),
            (TID, "8"),
            (PID, "7"),
            (DURATION, "1500000000"),
            (NAME, "openat"),
            (COMPLETE, "no"),
        ];
        let found = read(&facts).expect("a trigger");
        assert_eq!(found.what(), "openat by php 7/8 took 1.50 s");
        assert_eq!(found.begin(), Some(3_500_000_000));
        assert_eq!(found.kind, Some(TriggerKind::Call));
        assert_eq!((found.pid, found.tid), (Some(7), Some(8)));
        assert!(!found.is_complete);
        assert!(
            ALL.iter()
                .all(|key| facts.iter().any(|(name, _)| name == key))
        );
        assert_eq!(read(&facts[1..]), None);
    }

    #[test]
    fn a_trigger_of_an_earlier_version_has_a_condition_and_nothing_else() {
        let found = read(&[(TEXT, "fsync>1ms: fsync by a: b 7/8 took 2.0 ms")]);
        let found = found.expect("a trigger");
        assert_eq!(found.condition.as_deref(), Some("fsync>1ms"));
        assert_eq!(found.what(), "fsync by a: b 7/8 took 2.0 ms");
        assert_eq!((found.kind, found.ts, found.begin()), (None, None, None));
        let found = read(&[(TEXT, REQUESTED)]).expect("a trigger");
        assert_eq!((found.condition.clone(), found.what()), (None, REQUESTED));
    }

    #[test]
    fn kinds_have_names() {
        for kind in TriggerKind::ALL {
            assert_eq!(TriggerKind::by_name(kind.name()), Some(kind));
        }
        assert_eq!(TriggerKind::by_name("cause"), None);
    }
}
