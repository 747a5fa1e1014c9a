use std::sync::mpsc::sync_channel;
use std::thread;

use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::interrupt;
use whyslow_model::Ns;

use super::answers::Answers;
use super::between::{BACKLOG, Between};
use super::follow::to_follow;
use super::plan::Plan;
use super::recorder::Recorder;
use super::room::Room;
use super::segment::Segment;

/// A snapshot of all processes takes a good part of a shorter one.
const INTERVAL_MIN: Ns = 100_000_000;

/// Records, and has each interval answered when it is over.
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
            Failure::usage("intervals shorter than 100 ms are not recorded live")
                .hint("record, and ask with an interval: sudo whyslow record -o NAME.wsl"),
        );
    }
    let stop = interrupt::flag()?;
    let followed = to_follow(plan, talk)?;
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
