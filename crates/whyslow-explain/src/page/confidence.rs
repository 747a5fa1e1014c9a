//! SURE: the confidence, and which links of the chain were seen, inferred, or only overlap.

use std::fmt::Write as _;

use super::Drawn;
use super::names::{call, count, shortened};
use crate::blame::CAUSED;
use crate::report::{ActorKind, Confidence, Grade, Hop, Part};
use crate::sentence::{length, percent};

/// Time without a recorded cause that is worth mentioning.
const UNEXPLAINED: f64 = 0.05;
/// Links of one grade that are listed.
const LISTED: usize = 2;

impl Drawn<'_> {
    pub(super) fn sure(&self) -> String {
        let level = match self.finding.confidence {
            Confidence::High => "high",
            Confidence::Medium => "medium",
            Confidence::Low => "low",
            Confidence::None => "no culprit",
        };
        let mut reasons = Vec::new();
        match self.culprit {
            Some(part) => reasons.extend(self.links(part)),
            None => reasons.extend(self.largest()),
        }
        reasons.extend(self.followed());
        let unexplained = self.finding.unexplained_ns as f64 / self.length() as f64;
        if unexplained >= UNEXPLAINED && self.culprit.is_some() {
            reasons.push(format!(
                "{} ({}) has no recorded cause",
                length(self.finding.unexplained_ns),
                percent(unexplained)
            ));
        }
        reasons.extend(self.missing());
        if reasons.is_empty() {
            return format!("{level}.");
        }
        format!("{level}: {}.", reasons.join("; "))
    }

    /// What was seen, what is inferred, and what only overlaps.
    fn links(&self, part: &Part) -> Vec<String> {
        let mut by_grade: [Vec<String>; 3] = [Vec::new(), Vec::new(), Vec::new()];
        let mut before: Option<&Hop> = None;
        for hop in &self.finding.chain {
            if hop.what == CAUSED && hop.mechanism == "dns_lookup" {
                // The evidence is the call of the victim that timed out.
                continue;
            }
            let of_grade = &mut by_grade[hop.grade as usize];
            // The request that ended the wait, and that the culprit caused.
            let is_joined = hop.what == CAUSED
                && !hop.evidence.is_empty()
                && before.is_some_and(|before| {
                    (before.grade, &before.evidence) == (hop.grade, &hop.evidence)
                });
            if is_joined && let Some(last) = of_grade.last_mut() {
                let _ = write!(last, " and belongs to {}", self.doer(hop));
            } else if let Some(link) = self.link(hop)
                && of_grade.len() < LISTED
                && !of_grade.contains(&link)
            {
                of_grade.push(link);
            }
            before = Some(hop);
        }
        let [overlapping, inferred, seen] = by_grade;
        let mut reasons: Vec<String> = self.whole_wait().into_iter().collect();
        for (label, links) in [
            ("observed", seen),
            ("inferred", inferred),
            ("overlap in time only", overlapping),
        ] {
            if !links.is_empty() {
                reasons.push(format!("{label}: {}", links.join(", ")));
            }
        }
        if self.finding.chain.is_empty() {
            reasons.push(
                match part.grade {
                    Grade::A => "observed on both sides",
                    Grade::B => "inferred: no other recorded activity can be the cause",
                    Grade::C => "overlap in time only",
                }
                .to_owned(),
            );
        }
        reasons
    }

    /// The wait itself, where thread states were recorded.
    fn whole_wait(&self) -> Option<String> {
        let finding = self.finding;
        let first = finding.chain.first().filter(|hop| hop.what == "waited")?;
        let is_recorded = finding.missing.iter().all(|one| one.events != "sched");
        // Profiles infer waits: their evidence is a sentence.
        let is_kernel = is_recorded && !first.evidence.contains(' ');
        if !is_kernel || finding.target.cut.is_some() {
            return None;
        }
        let stack = first.stack.first().map_or_else(String::new, |function| {
            format!(" (kernel stack in {})", shortened(function))
        });
        Some(format!("the wait was recorded from start to end{stack}"))
    }

    /// What links a step of the chain to the next one.
    fn link(&self, hop: &Hop) -> Option<String> {
        let name = self.names.label(&hop.actor);
        let is_victim = hop.actor == self.finding.target.actor;
        if hop.evidence.contains(' ') {
            return Some(format!("{name}: {}", hop.evidence));
        }
        let evidence = hop.evidence.as_str();
        match (hop.what.as_str(), evidence) {
            (CAUSED, "") => Some(format!("caused by {}", self.doer(hop))),
            (CAUSED, _) => Some(format!("{evidence} belongs to {}", self.doer(hop))),
            ("waited", "") => None,
            ("waited", _) if is_victim => Some(format!("{evidence} ended the wait")),
            ("waited", _) => Some(format!("{evidence} ended the wait of {name}")),
            ("ran", _) => Some(format!("{name} was on CPU")),
            ("was runnable", _) => Some(format!("{name} was runnable")),
            _ => None,
        }
    }

    /// `syncfs() of nightly-backup`.
    fn doer(&self, hop: &Hop) -> String {
        let name = self.names.label(&hop.actor);
        match &hop.activity {
            Some(activity) => format!("{} of {name}", call(&activity.call)),
            None => name.to_owned(),
        }
    }

    /// Without a culprit, the largest part.
    fn largest(&self) -> Option<String> {
        let largest = self.finding.parts.first()?;
        Some(format!("the largest share is {}", percent(largest.share)))
    }

    /// Slow operations of the group whose chain leads to the culprit, and how many were not walked.
    fn followed(&self) -> Option<String> {
        let (group, part) = (self.finding.group.as_ref()?, self.culprit?);
        let followed = 1 + group.others.len();
        if followed == 1 {
            return None;
        }
        let cause = match part.culprit.kind {
            ActorKind::Own => "cause",
            _ => "culprit",
        };
        let same = 1 + group.others.iter().filter(|other| other.is_same).count();
        let is_all = followed as u64 >= group.count;
        Some(match (same == followed, is_all) {
            (true, true) => format!("all {same} slow operations have this {cause}"),
            (false, true) => format!("{same} of the {followed} slow operations have this {cause}"),
            // Of a lock, some waits are walked as examples.
            (_, false) if self.finding.contention.is_some() => {
                format!("{same} of the {followed} longest slow operations have this {cause}")
            }
            (_, false) => {
                let left = group.count - followed as u64;
                format!(
                    "{same} of the {followed} longest slow operations have this {cause}, {} {} not followed",
                    count(left),
                    if left == 1 { "was" } else { "were" }
                )
            }
        })
    }

    /// Events that would make it surer.
    fn missing(&self) -> Option<String> {
        let finding = self.finding;
        if finding.confidence == Confidence::High || finding.missing.is_empty() {
            return None;
        }
        // The sentence about the cause lists them if there is no cause.
        if self.culprit.is_none() && self.why().contains("not recorded: ") {
            return None;
        }
        let mut text = "not recorded: ".to_owned();
        for (place, one) in finding.missing.iter().enumerate() {
            let comma = if place > 0 { ", " } else { "" };
            let _ = write!(text, "{comma}{}", one.events);
        }
        Some(text)
    }
}
