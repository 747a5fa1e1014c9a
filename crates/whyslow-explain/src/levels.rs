//! How sure a finding is of its culprit: the one place that decides, from a table of conditions.
//!
//! The score (time attributed to the culprit, weighted by grade) gives the level; each condition
//! that applies limits it. What a level promises: of the claims with high confidence at least 99 %
//! are right, with medium 85 %, with low 60 %.

use crate::report::{ActorKind, Confidence, Grade};

/// A culprit that only overlaps with a smaller share of the time is not named.
const OVERLAP_MIN: f64 = 0.75;

/// What the level depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim<'c> {
    /// Share of the time, weighted by grade.
    pub(crate) score: f64,
    /// Share of the time.
    pub(crate) share: f64,
    /// Grade of the weakest link of the chain, for most of the time.
    pub(crate) grade: Grade,
    /// What the slow thread waited for.
    pub(crate) mechanism: &'c str,
    /// What the culprit did at the end of the chain.
    pub(crate) root: &'c str,
    pub(crate) culprit: ActorKind,
    /// Not slower than usual.
    pub(crate) is_usual: bool,
    /// Events were lost in this time.
    pub(crate) is_lossy: bool,
    pub(crate) has_states: bool,
    pub(crate) has_handlers: bool,
    /// What the culprit did is a wait for any of several descriptors.
    pub(crate) is_event_loop: bool,
    /// A single operation without others to compare it with.
    pub(crate) is_alone: bool,
    /// Short, and without a baseline.
    pub(crate) is_short: bool,
}

impl Claim<'_> {
    /// The culprit held a lock, whatever it did meanwhile.
    fn holds_lock(&self) -> bool {
        self.culprit == ActorKind::Process && self.mechanism.starts_with("lock_")
    }

    /// The thread is the right one although its chain is a dead end: it held the lock, or slept by
    /// its own timer. An event loop with a timer waited for an event, too, which did not come.
    fn is_known_thread(&self) -> bool {
        let is_sleeping = self.culprit == ActorKind::Process && self.root == "timer_sleep";
        self.holds_lock() || is_sleeping && !self.is_event_loop
    }
}

/// Roots with a culprit that is only the last one seen: why it did not do its part is not recorded.
const DEAD_ENDS: [&str; 12] = [
    "device_irq",
    "kernel_wait",
    "lost",
    "network_remote",
    "polling",
    "producer_idle",
    "send_buffer",
    "still_blocked",
    "timer_sleep",
    "unknown",
    "unseen_wait",
    "woken_by",
];

/// A condition that limits the level.
struct Limit {
    level: Confidence,
    /// Named in tests.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "documents the table, and names it in tests")
    )]
    id: &'static str,
    applies: fn(&Claim<'_>) -> bool,
}

const fn limit(id: &'static str, level: Confidence, applies: fn(&Claim<'_>) -> bool) -> Limit {
    Limit { level, id, applies }
}

/// All conditions; the lowest level of those that apply counts.
const LIMITS: &[Limit] = &[
    limit("usual", Confidence::None, |claim| claim.is_usual),
    limit("dead end", Confidence::Low, |claim| {
        is_dead_end(claim.root) && !claim.is_known_thread()
    }),
    // It held the lock, or slept while the slow thread waited for it; why is not recorded.
    limit("dead end of a known thread", Confidence::Medium, |claim| {
        let is_sleep_with_lock = claim.root == "timer_sleep" && claim.holds_lock();
        is_dead_end(claim.root) && claim.is_known_thread() && !is_sleep_with_lock
    }),
    // That no reply came is recorded, why is not.
    limit("no DNS reply", Confidence::Medium, |claim| {
        claim.root == "dns_lookup"
    }),
    limit("overlap only", Confidence::Low, |claim| {
        claim.grade == Grade::C
    }),
    // The same request, lock or packet was not seen on both sides of every link.
    limit("inferred", Confidence::Medium, |claim| {
        claim.grade == Grade::B
    }),
    // The waker is known, and what it did, but not that the wait was for that.
    limit("unknown wait", Confidence::Medium, |claim| {
        claim.mechanism == "woken_by"
    }),
    limit("events lost", Confidence::Medium, |claim| claim.is_lossy),
    limit("no thread states", Confidence::Medium, |claim| {
        !claim.has_states
    }),
    limit("no baseline", Confidence::Medium, |claim| claim.is_alone),
    limit("short", Confidence::Medium, |claim| claim.is_short),
    // The thread that the kernel thread worked for is not known.
    limit("kernel thread", Confidence::Medium, |claim| {
        claim.culprit == ActorKind::Kernel && !matches!(claim.root, "cpu_running" | "cpu_runqueue")
    }),
    // A recording does not show why a CPU stood still.
    limit("stalled CPU", Confidence::Medium, |claim| {
        claim.root == "cpu_stalled"
    }),
    // Without handlers, the time of interrupts counts as time of the thread.
    limit("no interrupt handlers", Confidence::Medium, |claim| {
        claim.root == "cpu_running" && !claim.has_handlers
    }),
];

/// Whether a chain that ends this way does not show the cause.
pub(crate) fn is_dead_end(root: &str) -> bool {
    DEAD_ENDS.contains(&root)
}

/// The level of a claim.
pub(crate) fn level(claim: &Claim<'_>) -> Confidence {
    let by_score = match claim.score {
        score if score >= 0.75 => Confidence::High,
        score if score >= 0.5 => Confidence::Medium,
        score if score >= 0.3 => Confidence::Low,
        // A mere overlap is named if it covers nearly all of the time.
        _ if claim.grade == Grade::C && claim.share >= OVERLAP_MIN => Confidence::Low,
        _ => Confidence::None,
    };
    let applying = LIMITS.iter().filter(|limit| (limit.applies)(claim));
    let lowest = applying.map(|limit| limit.level).min();
    lowest.map_or(by_score, |lowest| by_score.min(lowest))
}

#[cfg(test)]
mod tests {
    use whyslow_model::mechanism::MECHANISMS;

    use super::*;

    const PROVEN: Claim<'_> = Claim {
        score: 0.95,
        share: 0.95,
        grade: Grade::A,
        mechanism: "lock_kernel",
        root: "block_service",
        culprit: ActorKind::Process,
        is_usual: false,
        is_lossy: false,
        has_states: true,
        has_handlers: true,
        is_event_loop: false,
        is_alone: false,
        is_short: false,
    };

    #[test]
    fn only_a_proven_claim_without_conditions_is_sure() {
        assert_eq!(level(&PROVEN), Confidence::High);
        let mut slept = PROVEN;
        (slept.mechanism, slept.root, slept.culprit) =
            ("timer_sleep", "timer_sleep", ActorKind::Own);
        let with = |change: fn(&mut Claim<'_>)| {
            let mut claim = PROVEN;
            change(&mut claim);
            claim
        };
        let table = [
            (
                "usual",
                Confidence::None,
                with(|claim| claim.is_usual = true),
            ),
            ("dead end", Confidence::Low, slept),
            (
                "dead end of a known thread",
                Confidence::Medium,
                with(|claim| claim.root = "network_remote"),
            ),
            (
                "no DNS reply",
                Confidence::Medium,
                with(|claim| claim.root = "dns_lookup"),
            ),
            (
                "overlap only",
                Confidence::Low,
                with(|claim| claim.grade = Grade::C),
            ),
            (
                "inferred",
                Confidence::Medium,
                with(|claim| claim.grade = Grade::B),
            ),
            (
                "unknown wait",
                Confidence::Medium,
                with(|claim| claim.mechanism = "woken_by"),
            ),
            (
                "events lost",
                Confidence::Medium,
                with(|claim| claim.is_lossy = true),
            ),
            (
                "no thread states",
                Confidence::Medium,
                with(|claim| claim.has_states = false),
            ),
            (
                "no baseline",
                Confidence::Medium,
                with(|claim| claim.is_alone = true),
            ),
            (
                "short",
                Confidence::Medium,
                with(|claim| claim.is_short = true),
            ),
            (
                "kernel thread",
                Confidence::Medium,
                with(|claim| claim.culprit = ActorKind::Kernel),
            ),
            (
                "stalled CPU",
                Confidence::Medium,
                with(|claim| claim.root = "cpu_stalled"),
            ),
            (
                "no interrupt handlers",
                Confidence::Medium,
                with(|claim| (claim.root, claim.has_handlers) = ("cpu_running", false)),
            ),
        ];
        assert_eq!(table.len(), LIMITS.len());
        for (id, expected, claim) in table {
            let applying = LIMITS.iter().filter(|limit| (limit.applies)(&claim));
            let ids: Vec<&str> = applying.map(|limit| limit.id).collect();
            assert_eq!(ids, [id]);
            assert_eq!(level(&claim), expected, "{id}");
        }
    }

    #[test]
    fn what_is_a_dead_end_depends_on_the_culprit() {
        let of = |mechanism, root, culprit| {
            level(&Claim {
                mechanism,
                root,
                culprit,
                ..PROVEN
            })
        };
        let process = ActorKind::Process;
        let asleep = |mechanism| of(mechanism, "timer_sleep", process);
        assert_eq!(asleep("lock_futex"), Confidence::High);
        assert_eq!(asleep("local_ipc"), Confidence::Medium);
        let event_loop = |mechanism| {
            level(&Claim {
                mechanism,
                root: "timer_sleep",
                culprit: process,
                is_event_loop: true,
                ..PROVEN
            })
        };
        assert_eq!(event_loop("local_ipc"), Confidence::Low);
        assert_eq!(event_loop("lock_futex"), Confidence::High);
        assert_eq!(of("lock_file", "polling", process), Confidence::Medium);
        assert_eq!(of("local_ipc", "producer_idle", process), Confidence::Low);
        let peer = ActorKind::Peer;
        let remote = of("network_remote", "network_remote", peer);
        assert_eq!(remote, Confidence::Low);
        let lost = of("network_retransmit", "network_retransmit", peer);
        assert_eq!(lost, Confidence::High);
    }

    #[test]
    fn near_misses_are_not_limited() {
        for claim in [
            Claim {
                root: "cpu_running",
                ..PROVEN
            },
            Claim {
                has_handlers: false,
                ..PROVEN
            },
            Claim {
                culprit: ActorKind::Kernel,
                root: "cpu_runqueue",
                ..PROVEN
            },
            Claim {
                root: "network_retransmit",
                ..PROVEN
            },
        ] {
            assert_eq!(level(&claim), Confidence::High, "{claim:?}");
        }
    }

    #[test]
    fn a_low_score_is_not_raised() {
        let by_score = |score, grade| {
            level(&Claim {
                score,
                grade,
                ..PROVEN
            })
        };
        assert_eq!(by_score(0.74, Grade::A), Confidence::Medium);
        assert_eq!(by_score(0.49, Grade::A), Confidence::Low);
        assert_eq!(by_score(0.29, Grade::A), Confidence::None);
        assert_eq!(by_score(0.29, Grade::C), Confidence::Low);
        let part = Claim {
            score: 0.2,
            share: 0.7,
            grade: Grade::C,
            ..PROVEN
        };
        assert_eq!(level(&part), Confidence::None);
    }

    #[test]
    fn a_dead_end_names_what_to_look_at_next() {
        for root in DEAD_ENDS {
            assert!(MECHANISMS.iter().any(|(id, _)| *id == root), "{root}");
            let advice = crate::mechanism::mechanism(root).map_or(&[][..], |one| one.advice);
            let looks = ["record", "check", "sample", "enlarge"];
            let leads_on = advice
                .iter()
                .any(|advice| looks.iter().any(|look| advice.text.starts_with(look)));
            assert!(leads_on, "{root}");
        }
    }
}
