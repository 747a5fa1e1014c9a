//! Locks that block several threads for most of the time, and waits that look alike but are idle.

use std::fmt::Write as _;

use whyslow_explain::{Confidence, Finding, Judged, Query, Report, explain};
use whyslow_test_recordings::Recorded;

const CYCLES: i64 = 10;
const WORKERS: i64 = 4;
/// Time of a cycle, and the part of it in which the lock is held, in µs.
const CYCLE: i64 = 500_000;
const HELD: i64 = 300_000;

/// What the workers of a process wait for at a futex.
#[derive(Clone, Copy)]
struct Scene {
    /// Value that a wait expects, by cycle; `None` if it is not recorded.
    value: fn(i64) -> Option<i64>,
    /// Threads wake the next one at the same address when they are done.
    releases: bool,
    /// All are woken by one call.
    broadcast: bool,
    /// Waits end by a timeout.
    expires: bool,
    has_sched: bool,
    has_address: bool,
}

const MUTEX: Scene = Scene {
    value: |_| Some(2),
    releases: true,
    broadcast: false,
    expires: false,
    has_sched: true,
    has_address: true,
};

/// Workers that wait for jobs of a thread that sleeps in between.
const POOL: Scene = Scene {
    value: |cycle| Some(2 * cycle),
    releases: false,
    ..MUTEX
};

/// Events by time in µs.
#[derive(Default)]
struct Events(Vec<(i64, String)>);

impl Events {
    fn add(&mut self, at: i64, event: impl Into<String>) {
        self.0.push((at, event.into()));
    }

    fn text(mut self) -> String {
        self.0.sort();
        let mut text = String::new();
        for (at, event) in self.0 {
            let _ = writeln!(text, "{}.{:06} {event}", at / 1_000_000, at % 1_000_000);
        }
        text
    }
}

fn trace(scene: Scene) -> String {
    let mut events = Events::default();
    events.add(900_000, "[0] state_process tid=10 pid=10 comm=server");
    events.add(900_001, "[5] state_process tid=11 pid=10 comm=holder");
    if scene.has_sched {
        events.add(
            900_010,
            "[5] sched_switch prev=0 next=11 prev_state=R next_comm=holder",
        );
    }
    for worker in 1..=WORKERS {
        let tid = 20 + worker;
        let name = format!("[{worker}] state_process tid={tid} pid=10 comm=worker-{worker}");
        events.add(900_002, name);
        if scene.has_sched {
            let switch = format!(
                "[{worker}] sched_switch prev=0 next={tid} prev_state=R next_comm=worker-{worker}"
            );
            events.add(900_020, switch);
        }
    }
    for cycle in 0..CYCLES {
        let begin = 1_000_000 + cycle * CYCLE;
        held(&mut events, scene, begin);
        for worker in 1..=WORKERS {
            waits(&mut events, scene, (cycle, begin, worker));
        }
    }
    events.text()
}

fn address(scene: Scene) -> &'static str {
    if scene.has_address {
        " address=0x7f00"
    } else {
        ""
    }
}

/// The holder, or the thread that has the jobs: it sleeps, then wakes the first worker, or all.
fn held(events: &mut Events, scene: Scene, begin: i64) {
    let (on, address) = ("[5] (tid=11 pid=10 comm=holder)", address(scene));
    events.add(begin, format!("{on} syscall_enter name=clock_nanosleep"));
    if scene.has_sched {
        events.add(
            begin + 1,
            "[5] (tid=11) sched_switch prev=11 prev_state=S next=0",
        );
        let end = begin + HELD - 60;
        events.add(end, "[5] irq_enter kind=hrtimer nr=0");
        events.add(end + 1, "[5] sched_waking tid=11");
        events.add(end + 2, "[5] irq_exit kind=hrtimer nr=0");
        events.add(end + 3, "[5] sched_switch prev=0 prev_state=R next=11");
    }
    let end = begin + HELD - 50;
    events.add(end, format!("{on} syscall_exit name=clock_nanosleep ret=0"));
    if scene.expires {
        return;
    }
    let wakes: Vec<i64> = match (scene.broadcast, scene.releases) {
        (true, _) => vec![WORKERS],
        (_, true) => vec![1],
        // One call for each job.
        _ => vec![1; WORKERS as usize],
    };
    let mut worker = 1;
    for (number, woken) in wakes.into_iter().enumerate() {
        let at = begin + HELD - 20 + 4 * number as i64;
        events.add(
            at,
            format!("{on} syscall_enter name=futex{address} command=129 value={woken}"),
        );
        for _ in 0..woken {
            if scene.has_sched {
                events.add(
                    at + 1,
                    format!("[5] (tid=11) sched_waking tid={}", 20 + worker),
                );
            }
            worker += 1;
        }
        events.add(at + 2, format!("{on} syscall_exit name=futex ret={woken}"));
    }
}

/// A worker waits from 10 ms after the start of the cycle, then has the lock, or a job, for 5 ms.
fn waits(events: &mut Events, scene: Scene, (cycle, begin, worker): (i64, i64, i64)) {
    let (tid, address) = (20 + worker, address(scene));
    let on = format!("[{worker}] (tid={tid} pid=10 comm=worker-{worker})");
    let from = begin + 10_000 + 100 * worker;
    let value = (scene.value)(cycle).map_or_else(String::new, |value| format!(" value={value}"));
    let enter = format!("{on} syscall_enter name=futex{address} command=128{value}");
    events.add(from, enter);
    // In the order in which they came, if the lock is passed on.
    let woken = if scene.releases {
        begin + HELD + 5_000 * (worker - 1)
    } else {
        begin + HELD
    };
    if scene.has_sched {
        events.add(
            from + 1,
            format!("[{worker}] (tid={tid}) sched_switch prev={tid} prev_state=S next=0"),
        );
        if scene.expires {
            events.add(woken, format!("[{worker}] irq_enter kind=hrtimer nr=0"));
            events.add(woken + 1, format!("[{worker}] sched_waking tid={tid}"));
            events.add(woken + 2, format!("[{worker}] irq_exit kind=hrtimer nr=0"));
        }
        events.add(
            woken + 20,
            format!("[{worker}] sched_switch prev=0 prev_state=R next={tid}"),
        );
    }
    let ret = if scene.expires { -110 } else { 0 };
    events.add(
        woken + 30,
        format!("{on} syscall_exit name=futex ret={ret}"),
    );
    if !scene.releases {
        return;
    }
    let (at, next) = (woken + 4_990, worker + 1);
    events.add(
        at,
        format!("{on} syscall_enter name=futex{address} command=129 value=1"),
    );
    if next <= WORKERS && scene.has_sched {
        events.add(
            at + 1,
            format!("[{worker}] (tid={tid}) sched_waking tid={}", 20 + next),
        );
    }
    let ret = i64::from(next <= WORKERS);
    events.add(at + 2, format!("{on} syscall_exit name=futex ret={ret}"));
}

fn report(trace: &str) -> Report {
    let made = Recorded::of_text(trace);
    explain(&made.recording, &Query::default(), None).expect("an answer")
}

fn of_lock(report: &Report) -> Option<&Finding> {
    let mut findings = report.findings.iter();
    findings.find(|finding| finding.contention.is_some())
}

fn has_lock(finding: &Finding) {
    let contention = finding.contention.as_ref().expect("a lock");
    assert_eq!(
        (contention.kind.as_str(), contention.lock.as_str()),
        ("futex", "7f00")
    );
    assert_eq!((contention.threads, contention.waits), (4, 40));
    assert!((0.5..0.7).contains(&contention.share), "{contention:?}");
    assert!(
        contention.wall_ns < contention.waited_ns / 3,
        "{contention:?}"
    );
    let holder = &contention.holder;
    assert_eq!(
        (holder.tid, holder.pid, holder.name.as_str()),
        (Some(11), Some(10), "holder")
    );
    assert!(contention.holder_share > 0.9, "{contention:?}");
}

#[test]
fn a_mutex_that_is_held_most_of_the_time_is_a_finding() {
    let report = report(&trace(MUTEX));
    let finding = of_lock(&report).expect("a finding");
    has_lock(finding);
    assert_eq!(report.judged, Judged::Findings);
    // Acquisitions without a wait leave no trace, so the holder is inferred.
    assert_eq!(finding.confidence, Confidence::Medium, "{finding:#?}");
    for part in [
        "4 threads of server[10] waited ",
        " of the time for lock 7f00 (futex) (",
        " in 40 waits of up to ",
        "holder[10/11]",
    ] {
        assert!(
            finding.verdict.contains(part),
            "{part}: {}",
            finding.verdict
        );
    }
    let part = &finding.parts[finding.culprit.expect("a culprit")];
    assert_eq!(
        (part.mechanism.as_str(), part.root.as_str()),
        ("lock_futex", "timer_sleep")
    );
}

#[test]
fn releases_show_a_mutex_where_values_are_not_recorded() {
    let scene = Scene {
        value: |_| None,
        ..MUTEX
    };
    has_lock(of_lock(&report(&trace(scene))).expect("a finding"));
}

#[test]
fn a_semaphore_that_its_waiters_release_is_a_lock() {
    let scene = Scene {
        value: |_| Some(0),
        ..MUTEX
    };
    has_lock(of_lock(&report(&trace(scene))).expect("a finding"));
}

#[test]
fn near_misses_are_idle() {
    let scenes: [(&str, Scene); 5] = [
        ("a pool that waits for jobs", POOL),
        (
            "the same without recorded values",
            Scene {
                value: |_| None,
                ..POOL
            },
        ),
        (
            "a condition variable that wakes all",
            Scene {
                broadcast: true,
                ..POOL
            },
        ),
        (
            "a semaphore that counts jobs",
            Scene {
                value: |_| Some(0),
                ..POOL
            },
        ),
        (
            "a loop of timers",
            Scene {
                value: |_| Some(2),
                expires: true,
                releases: false,
                ..MUTEX
            },
        ),
    ];
    for (what, scene) in scenes {
        let report = report(&trace(scene));
        assert!(report.findings.is_empty(), "{what}: {:#?}", report.findings);
        assert_eq!(report.judged, Judged::NothingSlow, "{what}");
    }
}

#[test]
fn a_condition_variable_that_both_sides_signal_is_no_lock() {
    // The workers wake the next one, too; but the value counts.
    let scene = Scene {
        value: |cycle| Some(cycle + 1),
        ..MUTEX
    };
    assert!(of_lock(&report(&trace(scene))).is_none());
}

#[test]
fn a_lock_that_is_seldom_waited_for_is_none() {
    let mut short = String::new();
    for line in trace(MUTEX).lines() {
        let seconds: f64 = line
            .split(' ')
            .next()
            .and_then(|at| at.parse().ok())
            .expect("a time");
        // One cycle at the start, and one after 60 s.
        if seconds < 1.5 {
            short.push_str(line);
            short.push('\n');
        }
    }
    short.push_str("61.000000 [5] (tid=11 pid=10 comm=holder) syscall_enter name=getpid\n");
    short.push_str("61.000001 [5] (tid=11 pid=10 comm=holder) syscall_exit name=getpid ret=10\n");
    assert!(of_lock(&report(&short)).is_none());
}

#[test]
fn lossy_without_addresses_or_scheduling_no_holder_is_claimed() {
    let without_address = Scene {
        has_address: false,
        ..MUTEX
    };
    assert!(of_lock(&report(&trace(without_address))).is_none());
    let without_sched = Scene {
        has_sched: false,
        ..MUTEX
    };
    let report = report(&trace(without_sched));
    let confidence = of_lock(&report).map(|finding| finding.confidence);
    assert!(
        confidence.is_none_or(|it| it <= Confidence::Low),
        "{:#?}",
        report.findings
    );
}

#[test]
fn lossy_with_lost_events_it_is_not_certain() {
    let mut lines: Vec<String> = trace(MUTEX).lines().map(str::to_owned).collect();
    for cycle in 0..CYCLES {
        let at = 1_000_000 + cycle * CYCLE + 200_000;
        let (seconds, us) = (at / 1_000_000, at % 1_000_000);
        let until = format!("{seconds}.{:06}000", us + 1_000);
        lines.push(format!(
            "{seconds}.{us:06} [5] lost kind=events until={until} count=3 stream=a"
        ));
    }
    lines.sort_by(|a, b| a.split(' ').next().cmp(&b.split(' ').next()));
    let report = report(&(lines.join("\n") + "\n"));
    let confidence = of_lock(&report).map(|finding| finding.confidence);
    assert!(
        confidence.is_none_or(|it| it <= Confidence::Medium),
        "{confidence:?}"
    );
}

/// A kernel lock that a writer holds for 300 of every 500 ms, with three blocked readers.
fn kernel_lock() -> String {
    let mut events = Events::default();
    events.add(900_000, "[5] state_process tid=11 pid=11 comm=writer");
    events.add(
        900_010,
        "[5] sched_switch prev=0 next=11 prev_state=R next_comm=writer",
    );
    for reader in 1..=3 {
        let tid = 20 + reader;
        events.add(
            900_001,
            format!("[{reader}] state_process tid={tid} pid={tid} comm=reader"),
        );
        let switch =
            format!("[{reader}] sched_switch prev=0 next={tid} prev_state=R next_comm=reader");
        events.add(900_020, switch);
    }
    for cycle in 0..CYCLES {
        let begin = 1_000_000 + cycle * CYCLE;
        events.add(
            begin,
            "[5] (tid=11 pid=11 comm=writer) syscall_enter name=mremap",
        );
        for reader in 1..=3 {
            let tid = 20 + reader;
            let from = begin + 10_000 + reader;
            let end = begin + HELD + reader;
            let seconds = format!("{}.{:06}000", from / 1_000_000, from % 1_000_000);
            let on = format!("[{reader}] (tid={tid} pid={tid} comm=reader)");
            events.add(
                from + 10,
                format!("[{reader}] (tid={tid}) sched_switch prev={tid} prev_state=D next=0"),
            );
            events.add(end, format!("[5] (tid=11) sched_waking tid={tid}"));
            events.add(
                end + 20,
                format!("[{reader}] sched_switch prev=0 prev_state=R next={tid}"),
            );
            let wait = format!("{on} lock_wait kind=rwsem lock=0xff00 since={seconds}");
            events.add(end + 30, wait);
        }
        let end = begin + HELD + 10;
        events.add(
            end,
            "[5] (tid=11 pid=11 comm=writer) syscall_exit name=mremap ret=0",
        );
    }
    events.text()
}

#[test]
fn a_kernel_lock_is_one_too() {
    let report = report(&kernel_lock());
    let finding = of_lock(&report).expect("a finding");
    let contention = finding.contention.as_ref().expect("a lock");
    assert_eq!((contention.kind.as_str(), contention.threads), ("rwsem", 3));
    assert_eq!(contention.holder.tid, Some(11));
    assert!(
        finding.verdict.contains("kernel lock ff00 (rwsem)"),
        "{}",
        finding.verdict
    );
    assert!(finding.verdict.contains("mremap"), "{}", finding.verdict);
}

/// A process that holds the lock of a file for 300 of every 500 ms, with two blocked ones; each
/// tries to get it without waiting if `flags` say so.
fn file_lock(flags: i64) -> String {
    let mut events = Events::default();
    events.add(900_000, "[5] state_process tid=11 pid=11 comm=backup");
    let switch = "[5] sched_switch prev=0 next=11 prev_state=R next_comm=backup";
    events.add(900_010, switch);
    for waiter in 1..=2 {
        let tid = 20 + waiter;
        let name = format!("[{waiter}] state_process tid={tid} pid={tid} comm=cron");
        events.add(900_001, name);
        let switch =
            format!("[{waiter}] sched_switch prev=0 next={tid} prev_state=R next_comm=cron");
        events.add(900_020, switch);
    }
    for cycle in 0..CYCLES {
        let begin = 1_000_000 + cycle * CYCLE;
        for waiter in 1..=2 {
            let tid = 20 + waiter;
            let (from, end) = (begin + 10_000 + waiter, begin + HELD + waiter);
            let on = format!("[{waiter}] (tid={tid} pid={tid} comm=cron)");
            let enter =
                format!("{on} syscall_enter name=flock fd=3 path=/run/app.lock command={flags}");
            events.add(from, enter);
            let switch =
                format!("[{waiter}] (tid={tid}) sched_switch prev={tid} prev_state=S next=0");
            events.add(from + 5, switch);
            events.add(end, format!("[5] (tid=11) sched_waking tid={tid}"));
            events.add(
                end + 20,
                format!("[{waiter}] sched_switch prev=0 prev_state=R next={tid}"),
            );
            events.add(end + 30, format!("{on} syscall_exit name=flock ret=0"));
        }
        let on = "[5] (tid=11 pid=11 comm=backup)";
        events.add(
            begin + HELD - 5,
            format!("{on} syscall_enter name=flock fd=3 path=/run/app.lock command=8"),
        );
        events.add(
            begin + HELD + 10,
            format!("{on} syscall_exit name=flock ret=0"),
        );
    }
    events.text()
}

#[test]
fn a_file_lock_is_one_as_well() {
    let found = report(&file_lock(2));
    let finding = of_lock(&found).expect("a finding");
    let contention = finding.contention.as_ref().expect("a lock");
    assert_eq!(
        (contention.kind.as_str(), contention.threads),
        ("file lock", 2)
    );
    assert_eq!(contention.lock, "/run/app.lock");
    assert_eq!(contention.holder.tid, Some(11));
    // LOCK_NB does not wait for the lock.
    assert!(of_lock(&report(&file_lock(2 | 4))).is_none());
}

/// A process that holds the lock of a file for 300 of every 500 ms, and one that is refused it and
/// tries again after each `pause_us`, as SQLite does with a busy timeout.
fn polled_lock(pause_us: i64) -> String {
    let mut events = Events::default();
    for (cpu, tid, comm) in [(1, 21, "checkout"), (5, 11, "import")] {
        let name = format!("[{cpu}] state_process tid={tid} pid={tid} comm={comm}");
        events.add(900_001, name);
        let switch =
            format!("[{cpu}] sched_switch prev=0 next={tid} prev_state=R next_comm={comm}");
        events.add(900_020, switch);
    }
    let mut call = |at: i64, (cpu, tid): (i64, i64), ret: i64| {
        let on = format!("[{cpu}] (tid={tid} pid={tid})");
        let enter = format!("{on} syscall_enter name=fcntl fd=3 path=/srv/shop.db command=6");
        events.add(at, enter);
        events.add(at + 2, format!("{on} syscall_exit name=fcntl ret={ret}"));
    };
    let mut sleeps = Vec::new();
    for cycle in 0..CYCLES {
        let begin = 1_000_000 + cycle * CYCLE;
        call(begin, (5, 11), 0);
        call(begin + HELD, (5, 11), 0);
        let mut at = begin + 10_000;
        while at < begin + HELD {
            call(at, (1, 21), -11);
            sleeps.push(at + 10);
            at += pause_us;
        }
        call(at, (1, 21), 0);
    }
    for at in sleeps {
        let (woken, on) = (at + pause_us - 100, "[1] (tid=21 pid=21)");
        events.add(at, format!("{on} syscall_enter name=clock_nanosleep"));
        let switch = "[1] (tid=21) sched_switch prev=21 prev_state=S next=0";
        events.add(at + 2, switch);
        events.add(woken, "[1] irq_enter kind=hrtimer nr=0");
        events.add(woken + 1, "[1] sched_waking tid=21");
        events.add(woken + 2, "[1] irq_exit kind=hrtimer nr=0");
        events.add(woken + 10, "[1] sched_switch prev=0 prev_state=R next=21");
        let exit = format!("{on} syscall_exit name=clock_nanosleep ret=0");
        events.add(woken + 20, exit);
    }
    events.text()
}

#[test]
fn a_file_lock_that_is_polled_for_is_held_by_another_process() {
    let found = report(&polled_lock(30_000));
    let finding = of_lock(&found).expect("a finding");
    let contention = finding.contention.as_ref().expect("a lock");
    assert_eq!(
        (contention.kind.as_str(), contention.lock.as_str()),
        ("file lock", "/srv/shop.db")
    );
    assert_eq!((contention.threads, contention.waits), (1, CYCLES as u64));
    assert_eq!(contention.holder.tid, Some(11));
    assert_eq!(finding.confidence, Confidence::Medium);
    // A thread that tries rarely has something else to do in between.
    assert!(of_lock(&report(&polled_lock(160_000))).is_none());
}
