//! Results when classes of events are missing: weaker, and never anything that only these events
//! could show.

use whyslow_explain::{Confidence, Finding, Grade};

use super::{Case, cases, finding_of};

const BLOCK: &str = include_str!("cases/block.txt");
const LOCK: &str = include_str!("cases/kernel_lock.txt");
const FUTEX: &str = include_str!("cases/futex.txt");
const WAITS: &str = include_str!("cases/waits.txt");

/// The finding of a case without the events with one of these prefixes.
fn without(text: &str, title: &str, left_out: &[&str]) -> Finding {
    let all = cases(text);
    let case = all
        .iter()
        .find(|case| case.title.starts_with(title))
        .expect("a case");
    let is_left = |line: &&str| {
        let mut words = line.split_whitespace();
        !words.any(|word| left_out.iter().any(|name| word.starts_with(name)))
    };
    let mut trace: String = case
        .trace
        .lines()
        .filter(is_left)
        .collect::<Vec<_>>()
        .join("\n");
    trace.push('\n');
    finding_of(&Case {
        trace: &trace,
        title: case.title,
        command: case.command,
        expected: Vec::new(),
    })
}

fn strongest(finding: &Finding) -> Grade {
    let named = finding.culprit.map(|place| &finding.parts[place]);
    named.map_or(Grade::C, |part| part.grade)
}

fn mechanisms(finding: &Finding) -> Vec<&str> {
    finding
        .parts
        .iter()
        .map(|part| part.mechanism.as_str())
        .collect()
}

#[test]
fn with_everything_the_culprit_is_named() {
    let finding = without(BLOCK, "the disk serves", &[]);
    assert_eq!(strongest(&finding), Grade::A);
    assert!(
        finding.verdict.contains("because backup[20]"),
        "{}",
        finding.verdict
    );
    assert!(
        finding
            .missing
            .iter()
            .all(|missing| missing.events != "sched")
    );
}

#[test]
fn without_scheduling_nobody_is_said_to_have_held_anything_up() {
    for (text, title) in [
        (BLOCK, "the disk serves"),
        (LOCK, "the reading thread"),
        (WAITS, "the same with a sync call"),
    ] {
        let finding = without(text, title, &["sched_", "lock_wait", "stack"]);
        assert!(
            finding.confidence <= Confidence::Medium,
            "{title}: {:?}",
            finding.confidence
        );
        assert!(
            strongest(&finding) <= Grade::B,
            "{title}: {}",
            finding.verdict
        );
        let is_locked = mechanisms(&finding)
            .iter()
            .any(|mechanism| mechanism.starts_with("lock"));
        assert!(!is_locked, "{title}: {:?}", mechanisms(&finding));
        assert!(
            finding
                .missing
                .iter()
                .any(|missing| missing.events == "sched")
        );
        assert!(
            !finding.verdict.contains(") because"),
            "{}",
            finding.verdict
        );
    }
}

#[test]
fn what_only_happened_at_the_same_time_coincided() {
    let finding = without(
        WAITS,
        "the same with a sync call",
        &["sched_", "stack", "block_"],
    );
    assert!(
        finding.verdict.contains("overlapped with"),
        "{}",
        finding.verdict
    );
    assert_eq!(
        finding.parts[0].culprit.tid,
        Some(40),
        "{:?}",
        finding.parts[0]
    );
}

#[test]
fn without_calls_and_requests_no_file_or_device_is_named() {
    let finding = without(BLOCK, "the disk serves", &["syscall_", "block_", "irq_"]);
    for part in &finding.parts {
        let object = part.object.as_ref().map(|object| object.kind.as_str());
        assert!(!matches!(object, Some("device" | "file")), "{part:?}");
        assert!(part.activity.is_none(), "{part:?}");
    }
}

#[test]
fn without_requests_no_queue_of_a_device_is_told() {
    let finding = without(BLOCK, "the disk serves", &["block_"]);
    let mechanisms = mechanisms(&finding);
    assert!(
        !mechanisms.iter().any(|name| name.starts_with("block_")),
        "{mechanisms:?}"
    );
    // The device that woke it is still known from its interrupt.
    assert_eq!(mechanisms[0], "device_irq");
    assert!(strongest(&finding) <= Grade::B);
    let missing = finding.missing.iter();
    assert!(
        missing.into_iter().any(|missing| missing.events == "block"),
        "{:?}",
        finding.missing
    );
}

#[test]
fn without_wakeups_nobody_is_blamed_for_a_sleep() {
    for (text, title) in [(LOCK, "the reading thread"), (FUTEX, "the waker")] {
        let finding = without(text, title, &["sched_waking"]);
        let sleep = &finding.parts[0];
        assert_eq!(
            (sleep.mechanism.as_str(), sleep.culprit.tid),
            ("unknown", None),
            "{title}"
        );
        assert!(
            finding.unexplained_ns > 90_000_000,
            "{title}: {}",
            finding.unexplained_ns
        );
        assert_eq!(finding.culprit, None, "{title}: {}", finding.verdict);
    }
}

#[test]
fn without_stacks_and_locks_the_mechanism_is_not_guessed() {
    let finding = without(LOCK, "the reading thread", &["lock_wait"]);
    assert_eq!(finding.parts[0].mechanism, "woken_by");
    assert!(finding.parts[0].grade <= Grade::B);
    let finding = without(WAITS, "the journal", &["stack"]);
    assert!(
        !mechanisms(&finding).contains(&"journal_wait"),
        "{:?}",
        mechanisms(&finding)
    );
}

#[test]
fn without_interrupts_the_end_of_a_request_still_names_it() {
    let finding = without(BLOCK, "its own read", &["irq_"]);
    assert_eq!(finding.parts[0].mechanism, "block_service");
    assert_eq!(finding.parts[0].grade, Grade::A);
}

#[test]
fn what_was_lost_is_unexplained() {
    let finding = without(BLOCK, "lossy", &[]);
    assert_eq!(finding.culprit, None, "{}", finding.verdict);
    assert!(finding.unexplained_ns > 190_000_000);
    assert!(finding.caveats.iter().any(|caveat| caveat.contains("lost")));
}
