//! `@live`: this machine now, where a recording is taken otherwise.
//!
//! A recorder of our own, or one that runs already and is followed, fills one spool after the other;
//! each becomes a recording in a folder of our own, and is asked as every other one, by a thread beside.
//! If answers take longer than the intervals, the intervals get longer: nothing piles up, and nothing is
//! left out.

mod answers;
mod lookups;
mod outliers;
mod recorder;
mod rolling;
mod room;
mod whom;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::interrupt;
use whyslow_model::Ns;
use whyslow_record::Topic;

use answers::Answers;
pub(crate) use lookups::count_lookups;
pub(crate) use outliers::{Watched, watch};
use recorder::Recorder;
pub(crate) use rolling::{Shown, roll};
pub(crate) use room::Room;
pub(crate) use whom::Whom;

/// Recorded when no interval is asked for.
const LENGTH: Duration = Duration::from_secs(10);
/// A snapshot of all processes takes a good part of a shorter one.
const INTERVAL_MIN: Ns = 100_000_000;
/// Spools that wait to be asked, or are.
const BACKLOG: usize = 2;

/// What to record, and how often to ask.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan {
    pub(crate) whom: Whom,
    pub(crate) topics: BTreeSet<Topic>,
    /// Calls of these processes are enough; of all if there are none.
    pub(crate) pids: Vec<i32>,
    /// Without one there is one answer.
    pub(crate) interval: Option<Ns>,
    /// Answers; none is until somebody says stop.
    pub(crate) count: Option<i64>,
}

impl Plan {
    /// Of what questions of a kind need.
    pub(crate) fn of(whom: Whom, topics: &[Topic]) -> Self {
        Self {
            whom,
            topics: topics.iter().copied().collect(),
            ..Self::default()
        }
    }
}

/// An interval that is over.
#[derive(Debug)]
pub(crate) struct Segment<'s> {
    pub(crate) recording: &'s Path,
    /// From 0 on.
    pub(crate) number: u64,
    /// Of several, or of as many as there will be.
    pub(crate) is_part: bool,
    pub(crate) shared: &'s Shared,
}

/// What the answers of all intervals have in common.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// What was said once needs not be said again.
    pub(crate) told: Mutex<BTreeSet<String>>,
    /// The moment that times count from.
    pub(crate) first: OnceLock<Ns>,
}

/// How recorder and answers are together.
#[derive(Debug, Default)]
struct Between {
    waiting: AtomicUsize,
    /// Nobody wants further answers.
    is_over: AtomicBool,
}

/// Records, and has each interval answered when it is over.
pub(crate) fn run(
    plan: &Plan,
    talk: &TalkArgs,
    answer: &mut (dyn FnMut(&Segment<'_>) -> Result<(), Failure> + Send),
) -> Result<(), Failure> {
    if plan
        .interval
        .is_some_and(|interval| interval < INTERVAL_MIN)
    {
        return Err(
            Failure::usage("intervals shorter than 100 ms are not recorded live")
                .hint("record, and ask with an interval: sudo whyslow record -o NAME.wsl"),
        );
    }
    let stop = interrupt::flag()?;
    let followed = plan.whom.find(plan, talk)?;
    let room = Room::new()?;
    let between = Between::default();
    let (sender, receiver) = sync_channel(BACKLOG);
    let (recorded, answered) = thread::scope(|scope| {
        let answers = Answers {
            room: &room,
            between: &between,
            are_parts: plan.interval.is_some(),
            receiver,
        };
        let answers = scope.spawn(|| answers.give(answer));
        let recorder = Recorder::new(plan, &room, (&between, &stop), sender);
        let recorded = match followed {
            Some(followed) => recorder.follow(followed, plan, talk),
            None => recorder.record(plan, talk),
        };
        (recorded, answers.join())
    });
    let answered = answered.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    // That the recorder failed is why there are no answers.
    recorded.and(answered)
}
