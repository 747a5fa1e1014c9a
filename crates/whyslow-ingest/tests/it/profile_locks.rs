//! Lock holders compared with the log of the waiting program itself: which thread requested which
//! lock when, got it, and released it.

#![expect(clippy::print_stdout, reason = "shows measurements")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use whyslow_ingest::importers::jfr;
use whyslow_ingest::profile::gaps;
use whyslow_ingest::profile::locks::{self, Confidence, LockWait};
use whyslow_ingest::profile::{Profile, RuntimeKind};

const NAMES: [&str; 5] = ["each", "batches", "chunks", "both", "jdk"];
/// Waits that must have a holder.
const LONG: i64 = 100_000_000;
/// Of two threads that held it for nearly the same time, samples cannot tell which was first.
const NEARLY: i64 = 20_000_000;
/// Minimum fraction of correct holders: with events of the runtime, and without them, when two
/// waits of a thread without a sample in between look like one.
const RIGHT: f64 = 0.98;
const RIGHT_BY_SAMPLES: f64 = 0.96;

/// A line of the program's log.
struct Took {
    lock: String,
    thread: String,
    requested: i64,
    entered: i64,
    left: i64,
}

fn truth(path: &Path) -> Vec<Took> {
    let text = fs::read_to_string(path).expect("the program's log");
    let lines = text.lines().skip(1).map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        let time = |at: usize| cells[at].parse().expect("a time");
        Took {
            lock: cells[0].to_owned(),
            thread: cells[1].to_owned(),
            requested: time(2),
            entered: time(3),
            left: time(4),
        }
    });
    lines.collect()
}

#[derive(Debug, Default, Clone, Copy)]
struct Score {
    waits: u32,
    named: u32,
    right: u32,
    /// Waits with more than low confidence, and the wrong ones among them.
    sure: u32,
    sure_wrong: u32,
}

impl Score {
    fn add(&mut self, other: Self) {
        self.waits += other.waits;
        self.named += other.named;
        self.right += other.right;
        self.sure += other.sure;
        self.sure_wrong += other.sure_wrong;
    }

    fn named_share(&self) -> f64 {
        f64::from(self.named) / f64::from(self.waits.max(1))
    }

    fn right_share(&self) -> f64 {
        f64::from(self.right) / f64::from(self.named.max(1))
    }
}

/// Time for which each thread held the lock during a wait.
fn held<'t>(truth: &'t [Took], wait: &Took) -> BTreeMap<&'t str, i64> {
    let mut held: BTreeMap<&str, i64> = BTreeMap::new();
    for took in truth {
        let overlap = took.left.min(wait.entered) - took.entered.max(wait.requested);
        if took.lock == wait.lock && overlap > 0 {
            *held.entry(&took.thread).or_default() += overlap;
        }
    }
    held
}

fn score(folder: &Path, name: &str, samples_only: bool) -> Score {
    let bytes = fs::read(folder.join(format!("{name}.jfr"))).expect("a recording");
    let mut profile = jfr::read(&bytes).profile;
    if samples_only {
        profile
            .events
            .retain(|event| !matches!(event.kind, RuntimeKind::MonitorEnter | RuntimeKind::Park));
    }
    let gaps = gaps::find(&mut profile).unwrap_or_default();
    let found = locks::find(&profile, &gaps);
    let truth = truth(&folder.join(format!("{name}.truth.csv")));
    let mut score = Score::default();
    // There was no sampling before the first sample.
    let begin = profile.points.first().map_or(0, |point| point.ts);
    for wait in &truth {
        if wait.entered - wait.requested < LONG || wait.requested < begin {
            continue;
        }
        score.waits += 1;
        let Some(one) = matching(&profile, &found, wait) else {
            continue;
        };
        let Some(holder) = one.holder else {
            continue;
        };
        score.named += 1;
        let held = held(&truth, wait);
        let most = held.values().copied().max().unwrap_or(0);
        let name = profile.threads[holder.thread as usize].name.as_deref();
        let of_named = name.and_then(|name| held.get(name)).copied().unwrap_or(0);
        let is_right = of_named > 0 && of_named >= most - NEARLY;
        score.right += u32::from(is_right);
        if holder.confidence > Confidence::Low {
            score.sure += 1;
            score.sure_wrong += u32::from(!is_right);
        }
        if !is_right && std::env::var_os("LOCK_RUNS").is_some() {
            println!(
                "{} {} {name:?} not {held:?}: {:?} of {} ms (reported: {} ms)",
                wait.lock,
                wait.thread,
                holder,
                (wait.entered - wait.requested) / 1_000_000,
                one.dur() / 1_000_000,
            );
        }
    }
    score
}

/// The wait that was found at the time when the program waited: for most of that time.
fn matching<'f>(profile: &Profile, found: &'f [LockWait], wait: &Took) -> Option<&'f LockWait> {
    let of_thread = found.iter().filter(|one| {
        profile.threads[one.thread as usize].name.as_deref() == Some(wait.thread.as_str())
    });
    let overlap = |one: &LockWait| one.ts_end.min(wait.entered) - one.ts.max(wait.requested);
    let best = of_thread.max_by_key(|one| overlap(one))?;
    (overlap(best) * 2 > wait.entered - wait.requested).then_some(best)
}

fn check(folder: &Path, all: &mut BTreeMap<bool, Score>) {
    for samples_only in [false, true] {
        for name in NAMES {
            if samples_only && name == "jdk" {
                continue; // Its recorder does not sample waiting threads.
            }
            let score = score(folder, name, samples_only);
            println!(
                "{name}{}: {score:?} named {:.3} right {:.3}",
                if samples_only { " (samples)" } else { "" },
                score.named_share(),
                score.right_share()
            );
            all.entry(samples_only).or_default().add(score);
        }
    }
}

#[test]
fn holders_are_those_that_the_program_wrote_down() {
    let folder = whyslow_testkit::fixture("jfr");
    let mut all = BTreeMap::new();
    check(&folder, &mut all);
    let reported = all[&false];
    assert!(reported.waits > 50, "{reported:?}");
    assert!(reported.named_share() >= 0.9, "{reported:?}");
    assert_eq!(reported.sure_wrong, 0, "{reported:?}");
    assert!(
        reported.sure * 2 > reported.named,
        "most are sure: {reported:?}"
    );
    let seen = all[&true];
    assert!(seen.named_share() >= 0.9, "{seen:?}");
    assert_eq!(seen.sure_wrong, 0, "{seen:?}");
    assert!(reported.right_share() >= RIGHT && seen.right_share() >= RIGHT_BY_SAMPLES);
}

/// Runs of `workloads/jvm/profiles.sh`: `LOCK_RUNS=FOLDER cargo test … -- --ignored`.
#[test]
#[ignore = "needs runs of its own: LOCK_RUNS=FOLDER, made by workloads/jvm/profiles.sh"]
fn holders_of_other_runs() {
    let folder = std::env::var_os("LOCK_RUNS").expect("LOCK_RUNS names the folder");
    let mut all = BTreeMap::new();
    check(Path::new(&folder), &mut all);
    for (samples_only, score) in &all {
        println!(
            "samples only {samples_only}: {score:?} named {:.3} right {:.3}",
            score.named_share(),
            score.right_share()
        );
        assert!(score.named_share() >= 0.9);
        let wanted = if *samples_only {
            RIGHT_BY_SAMPLES
        } else {
            RIGHT
        };
        assert!(score.right_share() >= wanted);
        assert_eq!(score.sure_wrong, 0);
    }
}
