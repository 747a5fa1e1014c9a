//! Records that an import of a spool omits on purpose, to evaluate answers without them.

use whyslow_model::spool::{Head, Kind};

const MILLION: u32 = 1_000_000;

/// Names of event classes, and the kinds of records that they consist of.
const CLASSES: &[(&str, &[Kind])] = &[
    (
        "syscalls",
        &[Kind::Syscall, Kind::SyscallEnter, Kind::Text, Kind::Bytes],
    ),
    ("sched", &[Kind::Switch]),
    ("wakeup", &[Kind::Waking, Kind::WakeupNew]),
    ("stacks", &[Kind::Stack, Kind::UserStack, Kind::Sample]),
    ("wall", &[Kind::Wall]),
    ("locks", &[Kind::Lock]),
    (
        "irq",
        &[
            Kind::IrqEnter,
            Kind::IrqExit,
            Kind::SoftirqRaise,
            Kind::Ipi,
            Kind::Irq,
        ],
    ),
    (
        "block",
        &[
            Kind::BioQueue,
            Kind::BioBackmerge,
            Kind::BioFrontmerge,
            Kind::BioComplete,
            Kind::BioRemap,
            Kind::BioSplit,
            Kind::GetRq,
            Kind::RqInsert,
            Kind::RqIssue,
            Kind::RqMerge,
            Kind::RqRequeue,
            Kind::RqComplete,
        ],
    ),
    ("dns", &[Kind::LookupBegin, Kind::Lookup]),
    ("mem", &[Kind::ReclaimBegin, Kind::ReclaimEnd, Kind::Memory]),
    ("work", &[Kind::Work, Kind::WorkItem]),
    ("net", &[Kind::Net, Kind::Tcp]),
];

/// Records of a spool that an import omits; none by default.
#[derive(Debug, Clone, Default)]
pub struct LeaveOut {
    kinds: Vec<Kind>,
    /// Number of randomly dropped records per million.
    lost_of_million: u32,
    drawn: u64,
}

/// What happens to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Kept,
    /// As if it had not been recorded.
    LeftOut,
    /// As if the buffer had been full; counted as lost.
    Lost,
}

impl LeaveOut {
    /// Names of all classes.
    pub fn classes() -> impl Iterator<Item = &'static str> {
        CLASSES.iter().map(|(name, _)| *name)
    }

    /// Leaves out a class of events; false if the name is unknown.
    pub fn class(&mut self, name: &str) -> bool {
        let found = CLASSES.iter().find(|(known, _)| *known == name);
        self.kinds
            .extend(found.into_iter().flat_map(|(_, kinds)| *kinds));
        found.is_some()
    }

    /// Drops a share of all events, 0–1, the same ones each time.
    pub fn lose(&mut self, share: f64) {
        self.lost_of_million = (share.clamp(0.0, 1.0) * f64::from(MILLION)) as u32;
    }

    pub(super) fn fate(&mut self, head: &Head) -> Fate {
        if self.kinds.contains(&head.kind) {
            return Fate::LeftOut;
        }
        // The recorder's own records are never lost.
        if self.lost_of_million == 0 || head.kind as u16 >= Kind::Clock as u16 {
            return Fate::Kept;
        }
        if self.draw() < self.lost_of_million {
            Fate::Lost
        } else {
            Fate::Kept
        }
    }

    /// splitmix64, below a million.
    fn draw(&mut self) -> u32 {
        self.drawn = self.drawn.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.drawn;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) % u64::from(MILLION)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(kind: Kind) -> Head {
        Head {
            kind,
            len: 24,
            cpu: 0,
            flags: 0,
            ts: 0,
            tid: 1,
            pid: 1,
        }
    }

    #[test]
    fn a_class_goes_and_the_rest_stays() {
        let mut leave_out = LeaveOut::default();
        assert!(leave_out.class("wakeup"));
        assert!(!leave_out.class("weather"));
        assert_eq!(leave_out.fate(&head(Kind::Waking)), Fate::LeftOut);
        assert_eq!(leave_out.fate(&head(Kind::Switch)), Fate::Kept);
    }

    #[test]
    fn as_many_are_lost_as_told_and_none_of_the_recorder() {
        let mut leave_out = LeaveOut::default();
        leave_out.lose(0.1);
        let mut lost = |kind| {
            let fates = (0..100_000).map(|_| leave_out.fate(&head(kind)));
            fates.filter(|fate| *fate == Fate::Lost).count()
        };
        assert!((9_000..11_000).contains(&lost(Kind::Switch)));
        assert_eq!(lost(Kind::Process), 0);
    }
}
