use super::*;
use crate::profile::{
    CodeFrame, CodeKind, NO_STACK, Point, RuntimeEvent, RuntimeKind, SampleKind, SampledState,
    SampledThread, gaps,
};

const MS: Ns = 1_000_000;
const PARK: &str = "jdk.internal.misc.Unsafe.park";
const SYNC: &str = "java.util.concurrent.locks.ReentrantLock.lock";
const FUTEX: &str = "__futex_abstimed_wait_common";

/// A synthetic profile with rounds of 10 ms.
#[derive(Default)]
struct Made {
    profile: Profile,
}

impl Made {
    fn new(threads: &[&str]) -> Self {
        let mut made = Self::default();
        made.profile.interval = Some(10 * MS);
        for name in threads {
            made.profile.thread(SampledThread {
                tid: None,
                runtime_id: None,
                name: Some((*name).to_owned()),
            });
        }
        made
    }

    fn stack(&mut self, names: &[&str]) -> u32 {
        let frames = names.iter().map(|name| {
            let kind = if name.contains('.') {
                CodeKind::Managed
            } else {
                CodeKind::User
            };
            self.profile.frame(CodeFrame {
                kind,
                function: (*name).to_owned(),
                module: None,
                line: None,
            })
        });
        let frames: Vec<u32> = frames.collect();
        self.profile.stack(&frames)
    }

    /// Adds samples of a thread in these rounds.
    fn seen(&mut self, thread: u32, rounds: std::ops::Range<i64>, names: &[&str]) -> u32 {
        let stack = self.stack(names);
        for round in rounds {
            self.profile.points.push(Point {
                ts: round * 10 * MS + i64::from(thread) * MS / 10,
                span: 0,
                thread,
                stack,
                credits: 1,
                kind: SampleKind::Wall,
                state: SampledState::Sleeping,
                is_assumed: false,
            });
        }
        stack
    }

    fn found(mut self) -> (Vec<LockWait>, Gaps) {
        self.profile.sort();
        let gaps = gaps::find(&mut self.profile).expect("a wall profile");
        (find(&self.profile, &gaps), gaps)
    }
}

fn of_thread(waits: &[LockWait], thread: u32) -> &LockWait {
    let mut of = waits.iter().filter(|wait| wait.thread == thread);
    let only = of.next().expect("it waited");
    assert!(of.next().is_none(), "once");
    only
}

#[test]
fn whoever_is_in_the_class_holds_its_lock() {
    let mut made = Made::new(&["waiter", "holder", "other"]);
    made.seen(0, 10..40, &[FUTEX, "a.Log.size", "a.Main.run"]);
    made.seen(0, 40..60, &["a.Main.run"]);
    let holding = made.seen(1, 0..40, &["pwrite", "a.Log.append", "a.Main.run"]);
    made.seen(1, 40..60, &["a.Main.run"]);
    made.seen(2, 0..60, &["a.Other.run"]);
    let (waits, _) = made.found();
    let wait = of_thread(&waits, 0);
    assert_eq!(wait.kind, LockKind::Monitor);
    assert_eq!(wait.reported_by, WaitSource::Samples);
    assert_eq!(&*wait.object, "a.Log");
    assert!((wait.dur() - 300 * MS).abs() <= 10 * MS, "{wait:?}");
    let holder = wait.holder.expect("a holder");
    assert_eq!((holder.thread, holder.stack), (1, holding));
    assert_eq!(holder.confidence, Confidence::Medium);
    assert_eq!(holder.gap, None);
}

#[test]
fn a_holder_without_samples_is_known_by_those_after() {
    let mut made = Made::new(&["waiter", "holder", "other"]);
    made.seen(0, 0..12, &["a.Main.run"]);
    made.seen(0, 12..40, &[FUTEX, "a.Log.size", "a.Main.run"]);
    made.seen(0, 40..60, &["a.Main.run"]);
    made.seen(1, 0..10, &["a.Main.run"]);
    // No samples during the call, which signals do not interrupt.
    let force = made.seen(1, 40..41, &["fsync", "a.Log.flush", "a.Main.run"]);
    made.seen(1, 41..60, &["a.Main.run"]);
    made.seen(2, 0..60, &["a.Other.run"]);
    let (waits, gaps) = made.found();
    let holder = of_thread(&waits, 0).holder.expect("a holder");
    assert_eq!((holder.thread, holder.stack), (1, force));
    let gap = gaps.gaps[holder.gap.expect("its gap") as usize];
    assert_eq!(
        (gap.thread, gap.class),
        (Some(1), gaps::GapClass::KernelWait)
    );
}

#[test]
fn two_at_once_in_the_class_are_a_guess_at_best() {
    let mut made = Made::new(&["waiter", "one", "two"]);
    made.seen(0, 10..40, &[FUTEX, "a.Log.size", "a.Main.run"]);
    made.seen(0, 40..50, &["a.Main.run"]);
    made.seen(1, 0..50, &["read", "a.Log.append", "a.Main.run"]);
    made.seen(2, 0..50, &["read", "a.Log.append", "a.Main.run"]);
    let (waits, _) = made.found();
    let holder = of_thread(&waits, 0).holder.expect("a guess");
    assert_eq!(holder.confidence, Confidence::Low);
}

#[test]
fn who_waits_for_a_condition_has_given_the_lock_back() {
    let mut made = Made::new(&["waiter", "consumer", "other"]);
    let wanting = [FUTEX, PARK, SYNC, "a.Queue.offer", "a.Main.run"];
    made.seen(0, 10..40, &wanting);
    made.seen(0, 40..50, &["a.Main.run"]);
    let condition = "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject.await";
    made.seen(
        1,
        0..50,
        &[
            FUTEX,
            PARK,
            condition,
            "a.Queue.take",
            "a.Queue.poll",
            "a.Main.run",
        ],
    );
    made.seen(2, 0..50, &["a.Other.run"]);
    let (waits, _) = made.found();
    let wait = of_thread(&waits, 0);
    assert_eq!((wait.kind, wait.holder), (LockKind::Library, None));
}

#[test]
fn what_the_runtime_tells_is_told_once_and_is_surer() {
    let mut made = Made::new(&["waiter", "holder", "other"]);
    made.seen(0, 10..40, &[FUTEX, "a.Log.size", "a.Main.run"]);
    made.seen(0, 40..60, &["a.Main.run"]);
    made.seen(1, 0..40, &["a.Log.append", "a.Log.roll", "a.Main.run"]);
    made.seen(1, 40..60, &["a.Main.run"]);
    made.seen(2, 0..60, &["a.Other.run"]);
    let stack = made.stack(&["a.Log.size", "a.Main.run"]);
    made.profile.events.push(RuntimeEvent {
        ts: 95 * MS,
        dur: 300 * MS,
        kind: RuntimeKind::MonitorEnter,
        thread: Some(0),
        stack,
        object: Some("a.Log".into()),
        address: Some(0xf00),
        owner: Some(1),
        bytes: None,
    });
    let (waits, _) = made.found();
    let wait = of_thread(&waits, 0);
    assert_eq!(
        (wait.reported_by, wait.address),
        (WaitSource::Event, Some(0xf00))
    );
    let holder = wait.holder.expect("a holder");
    assert_eq!((holder.thread, holder.confidence), (1, Confidence::High));
}

#[test]
fn an_owner_that_nothing_shows_is_a_guess() {
    let mut made = Made::new(&["waiter", "holder", "other"]);
    made.seen(2, 0..60, &["a.Other.run"]);
    let stack = made.stack(&["a.Log.size", "a.Main.run"]);
    made.profile.events.push(RuntimeEvent {
        ts: 95 * MS,
        dur: 300 * MS,
        kind: RuntimeKind::MonitorEnter,
        thread: Some(0),
        stack,
        object: None,
        address: Some(0xf00),
        owner: Some(1),
        bytes: None,
    });
    let (waits, _) = made.found();
    let holder = of_thread(&waits, 0).holder.expect("the last holder");
    assert_eq!((holder.thread, holder.stack), (1, NO_STACK));
    assert_eq!(holder.confidence, Confidence::Low);
}
