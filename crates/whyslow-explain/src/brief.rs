//! Slow operations that are no incident: none is long, or much longer than usual, and together they
//! take a small part of the time. Every program has some.

use whyslow_model::Ns;

use crate::ranked::excess;
use crate::report::Finding;
use crate::sentence;

/// Operations that are shorter than this …
const BRIEF_NS: Ns = 10_000_000;
/// … or than this, if they are shorter than this multiple of the usual …
const VARIED_NS: Ns = 100_000_000;
const VARIED_TIMES: Ns = 5;
/// … and take less than this share of the time beyond the usual are no finding.
const SHARE_MAX: f64 = 0.02;

/// Findings that are left out of a report about everything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Brief {
    pub(crate) count: u64,
    pub(crate) longest: Ns,
}

impl Brief {
    /// Takes brief operations out of the findings of a window of this length.
    pub(crate) fn take_out(&mut self, findings: &mut Vec<Finding>, length: Ns) {
        findings.retain(|finding| {
            let longest = longest(finding);
            let usual = finding.baseline.as_ref().map_or(0, |one| one.median_ns);
            let is_varied = longest < VARIED_NS && longest < VARIED_TIMES * usual;
            let is_brief = (longest < BRIEF_NS || is_varied)
                && (excess(finding) as f64) < SHARE_MAX * length as f64
                && finding.contention.is_none();
            if is_brief {
                self.count += 1;
                self.longest = self.longest.max(longest);
            }
            !is_brief
        });
    }

    /// A note about what was left out.
    pub(crate) fn note(&self) -> Option<String> {
        let kinds = match self.count {
            0 => return None,
            1 => "1 kind".to_owned(),
            count => format!("{count} kinds"),
        };
        Some(format!(
            "brief slow operations, and those little longer than usual, are no finding ({kinds}, up to {}, less than {:.0} % of the time each): list them with `whyslow requests top` and `whyslow syscalls top`",
            sentence::length(self.longest),
            SHARE_MAX * 100.0
        ))
    }
}

/// The longest operation of a finding.
fn longest(finding: &Finding) -> Ns {
    let target = &finding.target;
    let own = target.end_ns - target.begin_ns;
    finding
        .group
        .as_ref()
        .map_or(own, |group| group.dur_ns_max.max(own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Baseline, Group};

    const MS: Ns = 1_000_000;

    /// Whether a finding of several operations in ten seconds remains.
    fn remains(longest: Ns, total: Ns, usual: Ns) -> bool {
        let mut finding = Finding {
            baseline: Some(Baseline {
                median_ns: usual,
                ..Baseline::default()
            }),
            group: Some(Group {
                count: 1,
                dur_ns_total: total + usual,
                dur_ns_max: longest,
                ..Group::default()
            }),
            ..Finding::default()
        };
        finding.target.end_ns = longest;
        let (mut brief, mut findings) = (Brief::default(), vec![finding]);
        brief.take_out(&mut findings, 10_000 * MS);
        assert_eq!(brief.count, u64::from(findings.is_empty()));
        !findings.is_empty()
    }

    #[test]
    fn what_is_short_or_little_longer_than_usual_is_no_finding() {
        assert!(!remains(9 * MS, 100 * MS, MS / 10));
        assert!(remains(11 * MS, 100 * MS, MS / 10), "long");
        assert!(remains(9 * MS, 300 * MS, MS / 10), "often");
        assert!(!remains(40 * MS, 100 * MS, 10 * MS));
        assert!(remains(60 * MS, 100 * MS, 10 * MS), "unusual");
        assert!(remains(120 * MS, 100 * MS, 40 * MS), "very long");
        assert!(remains(40 * MS, 300 * MS, 10 * MS), "often");
    }
}
