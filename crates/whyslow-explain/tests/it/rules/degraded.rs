//! Results when classes of events are missing: weaker, and never anything that only these events
//! could show.

use whyslow_explain::{Confidence, Grade, Story};

use super::{Case, cases, story_of};

const BLOCK: &str = include_str!("cases/block.txt");
const LOCK: &str = include_str!("cases/kernel_lock.txt");
const FUTEX: &str = include_str!("cases/futex.txt");
const WAITS: &str = include_str!("cases/waits.txt");

/// The story of a case without the events with one of these prefixes.
fn without(text: &str, title: &str, left_out: &[&str]) -> Story {
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
    story_of(&Case {
        trace: &trace,
        title: case.title,
        command: case.command,
        expected: Vec::new(),
    })
}

fn strongest(story: &Story) -> Grade {
    let named = story.culprit.map(|place| &story.parts[place]);
    named.map_or(Grade::C, |part| part.grade)
}

fn mechanisms(story: &Story) -> Vec<&str> {
    story
        .parts
        .iter()
        .map(|part| part.mechanism.as_str())
        .collect()
}

#[test]
fn with_everything_the_culprit_is_named() {
    let story = without(BLOCK, "the disk serves", &[]);
    assert_eq!(strongest(&story), Grade::A);
    assert!(
        story.verdict.contains("because backup[20]"),
        "{}",
        story.verdict
    );
    assert!(
        story
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
        let story = without(text, title, &["sched_", "lock_wait", "stack"]);
        assert!(
            story.confidence <= Confidence::Medium,
            "{title}: {:?}",
            story.confidence
        );
        assert!(strongest(&story) <= Grade::B, "{title}: {}", story.verdict);
        let is_locked = mechanisms(&story)
            .iter()
            .any(|mechanism| mechanism.starts_with("lock"));
        assert!(!is_locked, "{title}: {:?}", mechanisms(&story));
        assert!(
            story
                .missing
                .iter()
                .any(|missing| missing.events == "sched")
        );
        assert!(!story.verdict.contains(") because"), "{}", story.verdict);
    }
}

#[test]
fn what_only_happened_at_the_same_time_coincided() {
    let story = without(
        WAITS,
        "the same with a sync call",
        &["sched_", "stack", "block_"],
    );
    assert!(
        story.verdict.contains("overlapped with"),
        "{}",
        story.verdict
    );
    assert_eq!(story.parts[0].culprit.tid, Some(40), "{:?}", story.parts[0]);
}

#[test]
fn without_calls_and_requests_no_file_or_device_is_named() {
    let story = without(BLOCK, "the disk serves", &["syscall_", "block_", "irq_"]);
    for part in &story.parts {
        let object = part.object.as_ref().map(|object| object.kind.as_str());
        assert!(!matches!(object, Some("device" | "file")), "{part:?}");
        assert!(part.activity.is_none(), "{part:?}");
    }
}

#[test]
fn without_requests_no_queue_of_a_device_is_told() {
    let story = without(BLOCK, "the disk serves", &["block_"]);
    let mechanisms = mechanisms(&story);
    assert!(
        !mechanisms.iter().any(|name| name.starts_with("block_")),
        "{mechanisms:?}"
    );
    // The device that woke it is still known from its interrupt.
    assert_eq!(mechanisms[0], "device_irq");
    assert!(strongest(&story) <= Grade::B);
    let missing = story.missing.iter();
    assert!(
        missing.into_iter().any(|missing| missing.events == "block"),
        "{:?}",
        story.missing
    );
}

#[test]
fn without_wakeups_nobody_is_blamed_for_a_sleep() {
    for (text, title) in [(LOCK, "the reading thread"), (FUTEX, "the waker")] {
        let story = without(text, title, &["sched_waking"]);
        let sleep = &story.parts[0];
        assert_eq!(
            (sleep.mechanism.as_str(), sleep.culprit.tid),
            ("unknown", None),
            "{title}"
        );
        assert!(
            story.unexplained_ns > 90_000_000,
            "{title}: {}",
            story.unexplained_ns
        );
        assert_eq!(story.culprit, None, "{title}: {}", story.verdict);
    }
}

#[test]
fn without_stacks_and_locks_the_mechanism_is_not_guessed() {
    let story = without(LOCK, "the reading thread", &["lock_wait"]);
    assert_eq!(story.parts[0].mechanism, "woken_by");
    assert!(story.parts[0].grade <= Grade::B);
    let story = without(WAITS, "the journal", &["stack"]);
    assert!(
        !mechanisms(&story).contains(&"journal_wait"),
        "{:?}",
        mechanisms(&story)
    );
}

#[test]
fn without_interrupts_the_end_of_a_request_still_names_it() {
    let story = without(BLOCK, "its own read", &["irq_"]);
    assert_eq!(story.parts[0].mechanism, "block_service");
    assert_eq!(story.parts[0].grade, Grade::A);
}

#[test]
fn what_was_lost_is_unexplained() {
    let story = without(BLOCK, "lossy", &[]);
    assert_eq!(story.culprit, None, "{}", story.verdict);
    assert!(story.unexplained_ns > 190_000_000);
    assert!(story.caveats.iter().any(|caveat| caveat.contains("lost")));
}
