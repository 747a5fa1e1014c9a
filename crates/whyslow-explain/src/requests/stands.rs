//! Which of the slow requests stands for all of them.
//!
//! The longest one, as a rule. But of the longest the cause may be lost, or another one than that of the
//! rest; then it is the longest of those whose cause most of their time went to.

use whyslow_model::Ns;

use crate::report::{ActorKind, Story};

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stands {
    /// Among the stories.
    pub(super) place: usize,
    /// Stories with its cause, it among them.
    alike: usize,
    /// Stories that name no cause.
    untold: usize,
    all: usize,
}

impl Stands {
    /// By stories of slow requests, the longest first; none if none of them has a cause.
    pub(super) fn of(stories: &[Story]) -> Option<Self> {
        let causes = stories.iter().map(|story| {
            let length = story.target.end_ns - story.target.begin_ns;
            (Cause::of(story), length)
        });
        Self::by(&causes.collect::<Vec<_>>())
    }

    fn by<C: PartialEq>(stories: &[(Option<C>, Ns)]) -> Option<Self> {
        let alike = |cause: &C| {
            let alike = stories
                .iter()
                .filter(|(one, _)| one.as_ref() == Some(cause));
            (alike.clone().map(|(_, ns)| ns).sum::<Ns>(), alike.count())
        };
        let told = stories.iter().enumerate();
        let told = told.filter_map(|(place, (cause, _))| Some((place, alike(cause.as_ref()?))));
        let most = told.max_by_key(|(place, (ns, _))| (*ns, std::cmp::Reverse(*place)));
        let (place, (_, alike)) = most?;
        Some(Self {
            place,
            alike,
            untold: stories.iter().filter(|(cause, _)| cause.is_none()).count(),
            all: stories.len(),
        })
    }

    pub(super) fn is_longest(&self) -> bool {
        self.place == 0
    }

    /// How it is called.
    pub(super) fn name(&self) -> String {
        format!(
            "The longest of {} that have one cause, among the {} longest that were followed",
            self.alike, self.all
        )
    }

    /// What became of the others that were looked at.
    pub(super) fn caveat(&self, longest: &Story) -> String {
        let others = self.all - self.alike - self.untold;
        format!(
            "of the {} longest that were followed {} have this cause, {others} another one, of {} none \
             is told; of the longest of all: {}",
            self.all, self.alike, self.untold, longest.verdict
        )
    }
}

/// Mechanism at the end of the chain, and who: of a process any thread, whatever it is called.
#[derive(PartialEq, Eq)]
struct Cause<'s> {
    root: &'s str,
    kind: ActorKind,
    who: Result<i32, &'s str>,
}

impl<'s> Cause<'s> {
    fn of(story: &'s Story) -> Option<Self> {
        let part = &story.parts[story.culprit?];
        let culprit = &part.culprit;
        Some(Self {
            root: &part.root,
            kind: culprit.kind,
            who: culprit.pid.ok_or(&culprit.name),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_most_time_went_to_stands_for_all() {
        let check = |stories: &[(Option<&str>, Ns)], expected: Option<(usize, usize, usize)>| {
            let found = Stands::by(stories).map(|one| (one.place, one.alike, one.untold));
            assert_eq!(found, expected, "{stories:?}");
        };
        check(&[], None);
        check(&[(None, 9), (None, 8)], None);
        check(&[(Some("a"), 9), (Some("a"), 8)], Some((0, 2, 0)));
        // Of causes that are equal the longest request's.
        check(&[(Some("a"), 9), (Some("b"), 9)], Some((0, 1, 0)));
        check(
            &[(Some("a"), 9), (Some("b"), 8), (Some("b"), 7)],
            Some((1, 2, 0)),
        );
        check(&[(None, 9), (Some("a"), 8), (None, 7)], Some((1, 1, 2)));
        check(
            &[(Some("a"), 9), (Some("b"), 2), (Some("b"), 1)],
            Some((0, 1, 0)),
        );
    }
}
