use std::sync::mpsc::sync_channel;
use std::thread;

use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::interrupt;
use whyslow_model::Ns;

use super::answers::Answers;
use super::folder::LiveFolder;
use super::follow::to_follow;
use super::handover::{BACKLOG, Handover};
use super::plan::Plan;
use super::recorder::Recorder;
use super::segment::Segment;

/// A snapshot of all processes would take a large part of a shorter interval.
const INTERVAL_MIN: Ns = 100_000_000;

/// Records, and calls `answer` at the end of each interval.
pub fn run(
    plan: &Plan,
    talk: &TalkArgs,
    answer: &mut (dyn FnMut(&Segment<'_>) -> Result<(), Failure> + Send),
) -> Result<(), Failure> {
    if plan
        .interval
        .is_some_and(|interval| interval < INTERVAL_MIN)
    {
        return Err(
            Failure::usage("cannot use intervals shorter than 100 ms with @live")
                .hint("make a recording first: sudo whyslow record -o NAME.wsl"),
        );
    }
    let stop = interrupt::flag()?;
    let followed = to_follow(plan, talk)?;
    let folder = LiveFolder::new()?;
    let handover = Handover::default();
    let (sender, receiver) = sync_channel(BACKLOG);
    let (recorded, answered) = thread::scope(|scope| {
        let answers = Answers {
            folder: &folder,
            handover: &handover,
            are_parts: plan.interval.is_some(),
            receiver,
        };
        let answers = scope.spawn(|| answers.give(answer));
        let recorder = Recorder::new(plan, &folder, (&handover, &stop), sender);
        let recorded = match followed {
            Some(followed) => recorder.follow(followed, plan, talk),
            None => recorder.record(plan, talk),
        };
        (recorded, answers.join())
    });
    let answered = answered.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    // A failure of the recorder is the cause of missing answers.
    recorded.and(answered)
}
