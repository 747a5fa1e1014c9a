//! Slow operations that are no incident: none is long, and together they take a small part of the time.
//! Every program has some.

use whyslow_model::Ns;

use crate::ranked::excess;
use crate::report::Finding;
use crate::sentence;

/// Operations that are shorter than this …
const BRIEF_NS: Ns = 10_000_000;
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
            let is_brief = longest < BRIEF_NS
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
            "brief slow operations are no finding ({kinds}, up to {}, less than {:.0} % of the time each): list them with `whyslow requests top` and `whyslow syscalls top`",
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
