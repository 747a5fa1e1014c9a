//! Which findings are reported, and which are merged into others.

use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use crate::report::{ActorKind, Also, Confidence, Finding};

/// Minimum time of a finding, as a share of the time of the largest one.
const WORTH_MIN: f64 = 0.02;

/// Orders findings, those with a culprit first, and keeps one for each culprit. A finding of its
/// effect on another thread takes precedence over one of its own slow operation, as both have the
/// same cause.
pub(crate) fn ranked(findings: Vec<Finding>) -> Vec<Finding> {
    let weight = |finding: &Finding| {
        let (part, excess) = (
            finding.culprit.map(|place| &finding.parts[place]),
            excess(finding),
        );
        let is_other = part.is_some_and(|part| part.culprit.kind != ActorKind::Own);
        let confidence = match finding.confidence {
            Confidence::High | Confidence::Medium => 2,
            Confidence::Low => 1,
            Confidence::None => 0,
        };
        (confidence > 0 && is_other, confidence, excess)
    };
    let mut findings = findings;
    findings.index_sort_by_key(|finding| std::cmp::Reverse(weight(finding)));
    let most = findings.iter().map(excess).max().unwrap_or(0);
    findings.retain(|finding| excess(finding) as f64 >= WORTH_MIN * most as f64);
    // Findings without a culprit are reported only if there are no others.
    if findings.iter().any(|finding| finding.culprit.is_some()) {
        findings.retain(|finding| finding.culprit.is_some());
    }
    let mut kept: Vec<Finding> = Vec::new();
    for finding in findings {
        let part = finding.culprit.map(|place| &finding.parts[place]);
        let culprit = part.map(|part| match part.culprit.kind {
            ActorKind::Own => (&finding.target.actor, part),
            _ => (&part.culprit, part),
        });
        let same = culprit.and_then(|(actor, _)| {
            let victim = finding.target.actor.pid;
            kept.iter_mut().find(|other| {
                let theirs = other.culprit.map(|place| &other.parts[place].culprit);
                let victims = [victim, other.target.actor.pid];
                theirs.is_some_and(|theirs| {
                    // Threads of a process that is itself a victim are culprits one by one.
                    let is_of_victim = victims.contains(&actor.pid);
                    theirs.pid.is_some()
                        && theirs.pid == actor.pid
                        && (theirs.name == actor.name || !is_of_victim)
                })
            })
        });
        match same {
            // The longest operation delayed by another thread represents all.
            Some(other) if length(&finding) > length(other) && of_other(&finding) => {
                let (also, mut before) = (std::mem::take(&mut other.also), finding);
                std::mem::swap(other, &mut before);
                other.also = also;
                other.also.insert(0, also_of(before));
            }
            Some(other) => other.also.push(also_of(finding)),
            None => kept.push(finding),
        }
    }
    kept
}

/// Adds findings of contended locks before those with less time. They are not merged with others of
/// the same culprit: an operation delayed by it does not show the threads that it always blocks.
pub(crate) fn add_by_time(findings: &mut Vec<Finding>, locks: Vec<Finding>) {
    for lock in locks {
        let time = excess(&lock);
        let place = findings.iter().position(|other| excess(other) < time);
        findings.insert(place.unwrap_or(findings.len()), lock);
    }
}

fn also_of(finding: Finding) -> Also {
    Also {
        begin_ns: finding.target.begin_ns,
        dur_ns: length(&finding),
        count: finding.group.map_or(1, |group| group.count),
        what: finding.target.what,
        id: finding.target.id,
        actor: finding.target.actor,
    }
}

fn length(finding: &Finding) -> Ns {
    finding.target.end_ns - finding.target.begin_ns
}

/// Whether another thread is the culprit of a slow operation.
fn of_other(finding: &Finding) -> bool {
    let part = finding.culprit.map(|place| &finding.parts[place]);
    finding.target.kind == "operation"
        && part.is_some_and(|part| part.culprit.kind != ActorKind::Own)
}

/// Time beyond the usual of all operations that a finding represents.
fn excess(finding: &Finding) -> Ns {
    // The waits of its threads are at the same time.
    if let Some(contention) = &finding.contention {
        return contention.wall_ns;
    }
    let usual = finding
        .baseline
        .as_ref()
        .map_or(0, |baseline| baseline.median_ns);
    match &finding.group {
        Some(group) => group.dur_ns_total - usual * group.count as Ns,
        None => finding.target.end_ns - finding.target.begin_ns - usual,
    }
}
