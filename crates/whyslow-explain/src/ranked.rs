//! Which stories are told, and which are told with others.

use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use crate::report::{ActorKind, Also, Confidence, Story};

/// A story of less than this share of the greatest one's time is not worth reading.
const WORTH_MIN: f64 = 0.02;

/// Stories with a culprit before those without, each culprit once: what it did to others before how
/// long it took itself, as that is the same story.
pub(crate) fn ranked(stories: Vec<Story>) -> Vec<Story> {
    let weight = |story: &Story| {
        let (part, excess) = (
            story.culprit.map(|place| &story.parts[place]),
            excess(story),
        );
        let is_other = part.is_some_and(|part| part.culprit.kind != ActorKind::Own);
        let told = match story.confidence {
            Confidence::High | Confidence::Medium => 2,
            Confidence::Low => 1,
            Confidence::None => 0,
        };
        (told > 0 && is_other, told, excess)
    };
    let mut stories = stories;
    stories.index_sort_by_key(|story| std::cmp::Reverse(weight(story)));
    let most = stories.iter().map(excess).max().unwrap_or(0);
    stories.retain(|story| excess(story) as f64 >= WORTH_MIN * most as f64);
    // One that names nobody is told where there is nothing else.
    if stories.iter().any(|story| story.culprit.is_some()) {
        stories.retain(|story| story.culprit.is_some());
    }
    let mut kept: Vec<Story> = Vec::new();
    for story in stories {
        let part = story.culprit.map(|place| &story.parts[place]);
        let culprit = part.map(|part| match part.culprit.kind {
            ActorKind::Own => (&story.target.actor, part),
            _ => (&part.culprit, part),
        });
        let same = culprit.and_then(|(actor, _)| {
            kept.iter_mut().find(|other| {
                let theirs = other.culprit.map(|place| &other.parts[place].culprit);
                theirs.is_some_and(|theirs| {
                    theirs.pid.is_some() && theirs.pid == actor.pid && theirs.name == actor.name
                })
            })
        });
        match same {
            // The longest that others did to it stands for all.
            Some(other) if length(&story) > length(other) && of_other(&story) => {
                let (also, mut before) = (std::mem::take(&mut other.also), story);
                std::mem::swap(other, &mut before);
                other.also = also;
                other.also.insert(0, also_of(before));
            }
            Some(other) => other.also.push(also_of(story)),
            None => kept.push(story),
        }
    }
    kept
}

fn also_of(story: Story) -> Also {
    Also {
        dur_ns: length(&story),
        count: story.group.map_or(1, |group| group.count),
        what: story.target.what,
        id: story.target.id,
        actor: story.target.actor,
    }
}

fn length(story: &Story) -> Ns {
    story.target.end_ns - story.target.begin_ns
}

/// Whether somebody else is the culprit, of an operation.
fn of_other(story: &Story) -> bool {
    let part = story.culprit.map(|place| &story.parts[place]);
    story.target.kind == "operation" && part.is_some_and(|part| part.culprit.kind != ActorKind::Own)
}

/// Time beyond the usual of all operations that a story stands for.
fn excess(story: &Story) -> Ns {
    let usual = story
        .baseline
        .as_ref()
        .map_or(0, |baseline| baseline.median_ns);
    match &story.group {
        Some(group) => group.dur_ns_total - usual * group.count as Ns,
        None => story.target.end_ns - story.target.begin_ns - usual,
    }
}
