//! Which stories are reported, and which are merged into others.

use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use crate::report::{ActorKind, Also, Confidence, Story};

/// Minimum time of a story, as a share of the time of the largest one.
const WORTH_MIN: f64 = 0.02;

/// Orders stories, those with a culprit first, and keeps one for each culprit. A story of its
/// effect on another thread takes precedence over one of its own slow operation, as both have the
/// same cause.
pub(crate) fn ranked(stories: Vec<Story>) -> Vec<Story> {
    let weight = |story: &Story| {
        let (part, excess) = (
            story.culprit.map(|place| &story.parts[place]),
            excess(story),
        );
        let is_other = part.is_some_and(|part| part.culprit.kind != ActorKind::Own);
        let confidence = match story.confidence {
            Confidence::High | Confidence::Medium => 2,
            Confidence::Low => 1,
            Confidence::None => 0,
        };
        (confidence > 0 && is_other, confidence, excess)
    };
    let mut stories = stories;
    stories.index_sort_by_key(|story| std::cmp::Reverse(weight(story)));
    let most = stories.iter().map(excess).max().unwrap_or(0);
    stories.retain(|story| excess(story) as f64 >= WORTH_MIN * most as f64);
    // Stories without a culprit are reported only if there are no others.
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
            // The longest operation delayed by another thread represents all.
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

/// Whether another thread is the culprit of a slow operation.
fn of_other(story: &Story) -> bool {
    let part = story.culprit.map(|place| &story.parts[place]);
    story.target.kind == "operation" && part.is_some_and(|part| part.culprit.kind != ActorKind::Own)
}

/// Time beyond the usual of all operations that a story represents.
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
