//! Selects the request that represents all slow ones.
//!
//! Usually it is the longest. But its cause may be unknown, or differ from that of the rest; then
//! it is the longest request with the cause that most of the time is attributed to.

use whyslow_model::Ns;

use crate::report::{ActorKind, Finding};

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Representative {
    /// Index of its finding.
    pub(super) place: usize,
    /// Number of findings with its cause, including its own.
    alike: usize,
    /// Number of findings without a cause.
    unexplained: usize,
    all: usize,
}

impl Representative {
    /// Selects from findings of slow requests, the longest first; none if none of them has a cause.
    pub(super) fn of(findings: &[Finding]) -> Option<Self> {
        let causes = findings.iter().map(|finding| {
            let length = finding.target.end_ns - finding.target.begin_ns;
            (Cause::of(finding), length)
        });
        Self::by(&causes.collect::<Vec<_>>())
    }

    fn by<C: PartialEq>(findings: &[(Option<C>, Ns)]) -> Option<Self> {
        let alike = |cause: &C| {
            let alike = findings
                .iter()
                .filter(|(one, _)| one.as_ref() == Some(cause));
            (alike.clone().map(|(_, ns)| ns).sum::<Ns>(), alike.count())
        };
        let explained = findings.iter().enumerate();
        let explained =
            explained.filter_map(|(place, (cause, _))| Some((place, alike(cause.as_ref()?))));
        let most = explained.max_by_key(|(place, (ns, _))| (*ns, std::cmp::Reverse(*place)));
        let (place, (_, alike)) = most?;
        Some(Self {
            place,
            alike,
            unexplained: findings.iter().filter(|(cause, _)| cause.is_none()).count(),
            all: findings.len(),
        })
    }

    pub(super) fn is_longest(&self) -> bool {
        self.place == 0
    }

    /// What it is the longest of.
    pub(super) fn name(&self) -> String {
        format!(
            "The longest of {} requests with the same cause, of the {} longest that were analysed",
            self.alike, self.all
        )
    }

    /// The causes of the other analysed requests.
    pub(super) fn caveat(&self, longest: &Finding) -> String {
        let others = self.all - self.alike - self.unexplained;
        format!(
            "of the {} longest requests analysed, {} have this cause, {others} another cause, {} none; the \
             longest: {}",
            self.all, self.alike, self.unexplained, longest.verdict
        )
    }
}

/// Mechanism at the end of the chain, and the culprit: its process id, or its name if it has none.
#[derive(PartialEq, Eq)]
struct Cause<'s> {
    root: &'s str,
    kind: ActorKind,
    culprit: Result<i32, &'s str>,
}

impl<'s> Cause<'s> {
    fn of(finding: &'s Finding) -> Option<Self> {
        let part = &finding.parts[finding.culprit?];
        let culprit = &part.culprit;
        Some(Self {
            root: &part.root,
            kind: culprit.kind,
            culprit: culprit.pid.ok_or(&culprit.name),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_most_time_went_to_stands_for_all() {
        let check = |findings: &[(Option<&str>, Ns)], expected: Option<(usize, usize, usize)>| {
            let found =
                Representative::by(findings).map(|one| (one.place, one.alike, one.unexplained));
            assert_eq!(found, expected, "{findings:?}");
        };
        check(&[], None);
        check(&[(None, 9), (None, 8)], None);
        check(&[(Some("a"), 9), (Some("a"), 8)], Some((0, 2, 0)));
        // Between equal causes, that of the longest request wins.
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
