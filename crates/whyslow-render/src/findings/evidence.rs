//! All evidence of a finding: where the time went, the chain, what else was busy, and what was not
//! recorded.

use std::fmt::Write as _;

use whyslow_explain::{Excess, Finding, Group, Hop, Versus, mechanism_noun};

use super::head::{time_of_day, timestamp};
use super::length;
use super::page::Page;
use crate::labels::{about, actor, call, grade};
use crate::style::TextStyle;

/// Parts that are shown without `--wide`, and differences of a comparison.
const PARTS: usize = 6;
/// Parts with a smaller share are not shown.
const SHARE: f64 = 0.001;
/// Stack frames that are shown.
const FRAMES: usize = 4;

impl Page<'_> {
    pub(super) fn evidence(&mut self, finding: &Finding) {
        self.text("   verdict: ", &finding.verdict);
        let mut facts = Vec::new();
        if finding.saved_at_most_ns > 0 {
            let saved = length(finding.saved_at_most_ns);
            facts.push(format!("removing it saves at most {saved}"));
        }
        facts.push(format!("unexplained {}", length(finding.unexplained_ns)));
        if let Some(group) = finding.group.as_ref().filter(|group| group.count > 1) {
            facts.push(format!(
                "{} such calls were slow, {} in total",
                group.count,
                length(group.dur_ns_total)
            ));
        }
        self.text("   ", &facts.join("; "));
        self.parts(finding);
        self.did(finding);
        if !finding.chain.is_empty() {
            self.text("   ", "chain");
        }
        for hop in &finding.chain {
            self.hop(hop);
        }
        for crossing in &finding.across {
            self.text("   across: ", &crossing.summary);
        }
        for other in &finding.alternatives {
            self.text("   also: ", &other.summary);
        }
        self.also(finding);
        for neighbour in &finding.neighbours {
            let busy = format!("{}: {}", actor(&neighbour.actor), neighbour.what);
            self.text("   also busy: ", &busy);
        }
        for missing in &finding.missing {
            let text = format!(
                "{} ({}): {}",
                missing.events, missing.decides, missing.record_with
            );
            self.text("   not recorded: ", &text);
        }
        for caveat in &finding.caveats {
            self.text("   note: ", caveat);
        }
    }

    /// Other calls slowed by the same culprit.
    fn also(&mut self, finding: &Finding) {
        for also in &finding.also {
            let words = format!(
                "{} by {}: {} calls, longest {}{}",
                also.what,
                actor(&also.actor),
                also.count,
                length(also.dur_ns),
                also.id
                    .as_ref()
                    .map_or_else(String::new, |id| format!(" ({id})"))
            );
            self.text("   same culprit: ", &words);
        }
    }

    /// The calls of a request by kind and path pattern.
    fn did(&mut self, finding: &Finding) {
        if !finding.did.is_empty() {
            self.text("   ", "what it did");
        }
        for did in &finding.did {
            let lead = format!(
                "   {:>10} {:>5.1} %  ",
                length(did.dur_ns),
                did.share * 100.0
            );
            let path = did.path.as_deref().unwrap_or("");
            let bytes = did.bytes.filter(|bytes| *bytes > 0);
            let bytes = bytes.map_or_else(String::new, |bytes| {
                format!(", {:.1} MiB", bytes as f64 / (1 << 20) as f64)
            });
            let (count, call, id) = (did.count, &did.call, &did.id);
            let text = format!("{count} {call}({path}){bytes}; longest {id}");
            self.text(&lead, &text);
        }
    }

    fn parts(&mut self, finding: &Finding) {
        let worth = finding.parts.iter().take_while(|part| part.share >= SHARE);
        let count = if self.style.details {
            finding.parts.len()
        } else {
            worth.count().clamp(1, PARTS)
        };
        self.text("   ", "where the time went");
        for part in finding.parts.iter().take(count) {
            let lead = format!(
                "   {:>10} {:>5.1} %  {}  ",
                length(part.dur_ns),
                part.share * 100.0,
                grade(part),
            );
            let text = format!("{:<15} {}", part.mechanism, about(part));
            self.text(&lead, &text);
        }
        let rest = finding.parts.iter().skip(count);
        let (number, sum) = rest.fold((0, 0), |(n, sum), part| (n + 1, sum + part.dur_ns));
        if number > 0 {
            let lead = format!("   {:>10}          ", length(sum));
            self.text(&lead, &format!("{number} more (--wide)"));
        }
        if let Some(command) = finding
            .culprit
            .and_then(|place| finding.parts[place].shown_by.as_ref())
        {
            self.text("   evidence: ", command);
        }
    }

    fn hop(&mut self, hop: &Hop) {
        let mut words = format!(
            "{} .. {} ({}) {} {}",
            time_of_day(self.style, hop.begin_ns),
            time_of_day(self.style, hop.end_ns),
            length(hop.end_ns - hop.begin_ns),
            actor(&hop.actor),
            hop.what
        );
        let _ = write!(words, ": {}", hop.mechanism);
        if let Some(object) = &hop.object {
            let _ = write!(words, ", {} {}", object.kind, object.name);
        }
        if let Some(activity) = &hop.activity {
            let _ = write!(words, ", in {}", call(activity));
        }
        if !hop.stack.is_empty() {
            let frames: Vec<&str> = hop.stack.iter().take(FRAMES).map(String::as_str).collect();
            let _ = write!(words, ", stack {}", frames.join(" < "));
        }
        if !hop.program.is_empty() {
            let frames: Vec<&str> = hop
                .program
                .iter()
                .take(FRAMES)
                .map(String::as_str)
                .collect();
            let _ = write!(words, ", below {}", frames.join(" < "));
        }
        let _ = write!(
            words,
            " [{:?}{}]",
            hop.grade,
            if hop.evidence.is_empty() {
                String::new()
            } else {
                format!(": {}", hop.evidence)
            }
        );
        self.text("     ", &words);
    }
}

/// What slow calls spend more time on than others of their kind.
pub(super) fn excess_lines(group: &Group) -> Vec<String> {
    let line = |excess: &Excess| {
        format!(
            "{} of the longest {} calls spend {} more on {} ({}) than {} others: {:.0} % of the excess (95 % CI: {:.0}–{:.0} %)",
            percent(excess.dominance),
            group.walked,
            length(excess.delta_ns),
            mechanism_noun(&excess.mechanism),
            actor(&excess.culprit),
            group.compared,
            excess.share * 100.0,
            excess.share_low * 100.0,
            excess.share_high * 100.0,
        )
    };
    group.excess.iter().map(line).collect()
}

/// A heading, then a line per difference.
pub(super) fn versus_lines(versus: &Versus, style: &TextStyle) -> Vec<String> {
    let mut lines = vec![format!(
        "versus {} {} .. {}: {}",
        versus.recording,
        timestamp(style, versus.begin_ns),
        time_of_day(style, versus.end_ns),
        match (versus.per.as_str(), versus.mean_there_ns) {
            (_, None) => "nothing to compare with".to_owned(),
            ("call", Some(there)) => format!(
                "{} per call (mean of {}) instead of {} (mean of {})",
                length(versus.mean_here_ns),
                versus.here,
                length(there),
                versus.there
            ),
            _ => "per second".to_owned(),
        }
    )];
    if versus.mean_there_ns.is_some() {
        let differences = versus.differences.iter().take(PARTS).map(|one| {
            format!(
                "  {} ({}): {} instead of {}",
                mechanism_noun(&one.mechanism),
                actor(&one.culprit),
                length(one.here_ns),
                length(one.there_ns)
            )
        });
        lines.extend(differences);
    }
    lines
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
