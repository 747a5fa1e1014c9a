//! Settings, thread dumps, and texts shared by many events.

use super::made::{EXECUTION, MONITOR, Made, RECORDING, SOCKET_READ, STRING, SYMBOL, text};
use super::*;

/// CPU samples of async-profiler 2: all threads have the state of running ones.
fn executions(settings: &[(&str, &str)]) -> Made {
    let mut made = Made::new(SECOND);
    for (name, value) in settings {
        made.setting_of(RECORDING, name, value);
    }
    made.setting_of(EXECUTION, "interval", "10000000");
    for number in 0..30 {
        made.event(EXECUTION, &[number * 10_000_000, 1, 1, 0]);
    }
    made
}

fn kinds(read: &Read) -> Vec<SampleKind> {
    let kinds = read.profile.points.iter().map(|point| point.kind);
    let mut kinds: Vec<SampleKind> = kinds.collect();
    kinds.dedup();
    kinds
}

#[test]
fn samples_of_a_cpu_without_a_state_of_their_own_are_known_by_the_event() {
    let cases: [(&[(&str, &str)], SampleKind); 5] = [
        (&[("event", "cpu")], SampleKind::Cpu),
        (&[("event", "itimer")], SampleKind::Cpu),
        (&[("event", "wall")], SampleKind::Wall),
        (&[], SampleKind::Wall),
        (&[("event", "cpu"), ("wall", "5000000")], SampleKind::Wall),
    ];
    for (settings, kind) in cases {
        let read = read(&executions(settings).chunk());
        assert_eq!(kinds(&read), [kind], "{settings:?}");
    }
    // Other samples state their kind.
    let mut made = executions(&[("event", "cpu")]);
    made.sample([500_000_000, 2, 2, 0, 1, 0]);
    assert_eq!(kinds(&read(&made.chunk())), [SampleKind::Wall]);
}

#[test]
fn settings_of_the_profiler_are_facts() {
    let mut made = executions(&[("event", "cpu"), ("version", "2.9")]);
    made.setting_of(MONITOR, "threshold", "20 ms");
    let facts = read(&made.chunk()).profile.facts;
    let settings_facts: Vec<(&str, &str)> = facts
        .iter()
        .filter(|(name, _)| name.starts_with("setting."))
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        settings_facts,
        [
            ("setting.event", "cpu"),
            ("setting.interval", "10000000"),
            ("setting.version", "2.9")
        ]
    );
}

#[test]
fn dumps_are_kept_whole_and_their_repetitions_within_bounds() {
    let long = "\"worker\" #7 nid=9 runnable\n".repeat(4000);
    let mut made = usual(SECOND);
    made.dump(1_000_000, Ok(&long));
    let read = super::read(&made.chunk());
    assert_eq!(read.dumps, [(SECOND + 1_000_000, long.clone())]);
    assert_eq!(read.damage, Damage::default());

    let mut string = Vec::new();
    text(&long, &mut string);
    made.constant(STRING, 5, string);
    for number in 0..1000 {
        made.dump(number, Err(5));
    }
    let chunk = made.chunk();
    let read = super::read(&chunk);
    let kept: usize = read.dumps.iter().map(|(_, text)| text.len()).sum();
    assert!(kept <= 3 * chunk.len(), "{kept} of {}", chunk.len());
    assert_eq!(read.dumps.len() as u64 + read.damage.dumps, 1001);
}

#[test]
fn a_text_that_many_events_name_is_held_once() {
    let mut made = usual(SECOND);
    let mut string = Vec::new();
    text(&"a/b".repeat(10_000), &mut string);
    made.constant(SYMBOL, 9, string);
    for number in 0..300 {
        made.event(SOCKET_READ, &[number, 1, 9, number % 3]);
    }
    let read = read(&made.chunk());
    let texts: FxHashSet<*const u8> = read
        .profile
        .events
        .iter()
        .filter_map(|event| Some(event.object.as_ref()?.as_ptr()))
        .collect();
    // The class of the monitor; the host without a port, and with each of two.
    assert_eq!(texts.len(), 4);
    let longest = read.profile.events.iter().filter_map(|event| {
        let object = event.object.as_ref()?;
        object.rsplit_once(':').map(|(host, _)| host.len())
    });
    assert_eq!(longest.max(), Some(255));
}

#[test]
fn names_of_frames_are_kept_within_bounds() {
    let mut made = Made::new(SECOND);
    let mut string = Vec::new();
    text(&"x".repeat(60_000), &mut string);
    made.constant(SYMBOL, 2, string);
    // Each line is a separate frame, of one method with a long name.
    let mut stack = vec![0];
    super::made::varint(2000, &mut stack);
    for line in 0..2000 {
        for number in [1, line + 1, 0, 0] {
            super::made::varint(number, &mut stack);
        }
    }
    made.constant(super::made::TRACE, 7, stack);
    made.sample([5_000_000, 1, 7, 0, 1, 0]);
    let chunk = made.chunk();
    let read = read(&chunk);
    let bytes: usize = read
        .profile
        .frames
        .iter()
        .map(|frame| frame.function.len())
        .sum();
    assert!(bytes <= 32 * chunk.len() + (1 << 20), "{bytes}");
    assert!(read.damage.unresolved > 0);
}
