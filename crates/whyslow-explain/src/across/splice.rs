//! Replaces waits for other hosts by what these hosts did.

use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use super::follow::Followed;
use crate::levels::{self, Claim};
use crate::middlemen::is_event_loop;
use crate::report::{
    Activity, Actor, ActorKind, Alternative, Confidence, Finding, Grade, Hop, Missing, Part,
};
use crate::sentence::{self, Clause};

/// Parts with a smaller share of the time are not listed as alternatives.
const ALTERNATIVE_MIN: f64 = 0.15;
/// Minimum score for a culprit to be named.
const NAMED_MIN: f64 = 0.3;

/// A part of the time on another host, or in transit to it and back.
#[derive(Debug, Clone)]
pub(super) struct Replacement {
    pub(super) part: Part,
    /// Its clause in the verdict, with the host.
    pub(super) clause: Clause,
    /// From the waiting thread to the culprit, by the clock of the waiting thread.
    pub(super) chain: Vec<Hop>,
    pub(super) missing: Vec<Missing>,
}

/// Time of a host without a recorded activity.
pub(super) fn unknown(dur_ns: Ns, host: &str) -> Option<Replacement> {
    let part = Part {
        mechanism: "unknown".into(),
        root: "unknown".into(),
        culprit: Actor {
            kind: ActorKind::Unknown,
            name: "unknown".into(),
            pid: None,
            tid: None,
            host: Some(host.to_owned()),
        },
        activity: None,
        object: None,
        client: None,
        dur_ns,
        share: 0.0,
        grade: Grade::C,
        pieces: 1,
        evidence: Vec::new(),
        shown_by: None,
    };
    (dur_ns > 0).then(|| Replacement {
        part,
        clause: Clause::unexplained(
            format!("host {host}"),
            ("was handling", "handling"),
            "the request, and no event recorded there shows what it did",
        ),
        chain: Vec::new(),
        missing: Vec::new(),
    })
}

/// Converts actors and times of another host to the view of the waiting host.
struct There<'h> {
    host: &'h str,
    /// How far its clock is ahead.
    shift: Ns,
}

impl There<'_> {
    fn actor(&self, actor: &Actor) -> Actor {
        Actor {
            kind: match actor.kind {
                ActorKind::Own => ActorKind::Process,
                kind => kind,
            },
            host: actor.host.clone().or_else(|| Some(self.host.to_owned())),
            ..actor.clone()
        }
    }

    fn moved(&self, mut activity: Activity) -> Activity {
        activity.begin_ns = activity.begin_ns.saturating_sub(self.shift);
        let end = activity.end_ns;
        activity.end_ns = end.map(|end| end.saturating_sub(self.shift));
        activity
    }

    fn hop(&self, hop: &Hop) -> Hop {
        Hop {
            actor: self.actor(&hop.actor),
            begin_ns: hop.begin_ns.saturating_sub(self.shift),
            end_ns: hop.end_ns.saturating_sub(self.shift),
            activity: hop.activity.clone().map(|activity| self.moved(activity)),
            ..hop.clone()
        }
    }

    fn part(&self, part: &Part) -> Part {
        Part {
            culprit: self.actor(&part.culprit),
            activity: part.activity.clone().map(|activity| self.moved(activity)),
            client: part.client.as_ref().map(|client| self.actor(client)),
            ..part.clone()
        }
    }
}

/// The parts of the finding of a thread on `host`, in the view of the waiting host. `shift` is how
/// far its clock is ahead.
pub(super) fn of_server(
    finding: &Finding,
    followed: Followed,
    (host, shift): (&str, Ns),
    is_shared: bool,
) -> Vec<Replacement> {
    let there = There { host, shift };
    let server = there.actor(&finding.target.actor);
    let missing: Vec<Missing> = finding
        .missing
        .iter()
        .map(|one| Missing {
            events: format!("{} on host {host}", one.events),
            ..one.clone()
        })
        .collect();
    let mut found = Vec::new();
    for (place, (own, taken)) in finding.parts.iter().zip(&followed.taken).enumerate() {
        if own.dur_ns <= *taken {
            continue;
        }
        let mut part = there.part(own);
        part.dur_ns -= taken;
        if own.culprit.kind == ActorKind::Own {
            part.culprit = server.clone();
        }
        if is_shared {
            // It is not known how much of it was for other requests.
            part.grade = part.grade.min(Grade::B);
        }
        let thread = sentence::thread(&finding.target.actor);
        let chain = if finding.culprit == Some(place) {
            finding.chain.iter().map(|hop| there.hop(hop)).collect()
        } else {
            vec![there.hop(&at_work(finding, own))]
        };
        found.push(Replacement {
            part,
            clause: sentence::clause(own, &thread).and(&format!(
                " (on host {host}, where {thread} served the request)"
            )),
            chain,
            missing: missing.clone(),
        });
    }
    for mut replacement in followed.replacements {
        replacement.part = there.part(&replacement.part);
        replacement.chain = replacement.chain.iter().map(|hop| there.hop(hop)).collect();
        // The thread that waited on this host.
        if let Some(first) = replacement.chain.first_mut() {
            first.actor = server.clone();
        }
        found.push(replacement);
    }
    found
}

/// A hop for the thread of a finding and one of its parts.
fn at_work(finding: &Finding, part: &Part) -> Hop {
    let target = &finding.target;
    let what = match part.root.as_str() {
        "cpu_running" => "ran",
        "cpu_runqueue" | "cpu_idle_delay" | "cpu_throttled" => "was runnable",
        _ => "waited",
    };
    Hop {
        actor: target.actor.clone(),
        what: what.into(),
        mechanism: part.mechanism.clone(),
        activity: part.activity.clone(),
        object: part.object.clone(),
        stack: Vec::new(),
        program: Vec::new(),
        begin_ns: target.begin_ns,
        end_ns: target.end_ns,
        grade: part.grade,
        evidence: part.evidence.first().cloned().unwrap_or_default(),
        shown_by: part.shown_by.clone(),
    }
}

/// Merges equal parts of several threads, with the chain of the longest.
fn merged(all: Vec<Replacement>) -> Vec<Replacement> {
    let mut found: Vec<(Ns, Replacement)> = Vec::new();
    for one in all {
        let is_same = |other: &Part| {
            let call = |part: &Part| part.activity.as_ref().map(|it| it.call.clone());
            let part = &one.part;
            (&other.mechanism, &other.root, &other.culprit, &other.object)
                == (&part.mechanism, &part.root, &part.culprit, &part.object)
                && call(other) == call(part)
        };
        let Some((longest, sum)) = found.iter_mut().find(|(_, it)| is_same(&it.part)) else {
            found.push((one.part.dur_ns, one));
            continue;
        };
        let dur_ns = sum.part.dur_ns + one.part.dur_ns;
        let pieces = sum.part.pieces + one.part.pieces;
        let grade = sum.part.grade.min(one.part.grade);
        if one.part.dur_ns > *longest {
            *longest = one.part.dur_ns;
            *sum = one;
        }
        (sum.part.dur_ns, sum.part.pieces, sum.part.grade) = (dur_ns, pieces, grade);
    }
    found
        .into_iter()
        .map(|(_, replacement)| replacement)
        .collect()
}

/// A part of the finding, its previous index, and the remote part if it is new.
struct Row {
    part: Part,
    before: Option<usize>,
    replacement: Option<Replacement>,
}

/// Inserts the followed parts into a finding of the explained recording, and names the culprit.
pub(super) fn into(finding: &mut Finding, followed: Followed) {
    if followed.replacements.is_empty() {
        return;
    }
    let length = (finding.target.end_ns - finding.target.begin_ns).max(1);
    let before = finding.parts.drain(..).zip(&followed.taken).enumerate();
    let mut rows: Vec<Row> = before
        .map(|(place, (mut part, taken))| {
            part.dur_ns -= taken;
            Row {
                part,
                before: Some(place),
                replacement: None,
            }
        })
        .filter(|row| row.part.dur_ns > 0)
        .collect();
    rows.extend(merged(followed.replacements).into_iter().map(|mut one| {
        if let Some(first) = one.chain.first_mut() {
            first.actor = finding.target.actor.clone();
        }
        Row {
            part: one.part.clone(),
            before: None,
            replacement: Some(one),
        }
    }));
    rows.index_sort_by_key(|row| std::cmp::Reverse(row.part.dur_ns));
    for row in &mut rows {
        row.part.share = row.part.dur_ns as f64 / length as f64;
    }
    // The remaining time of the previously named culprit.
    let own_ns = finding
        .culprit
        .map_or(0, |place| match followed.taken[place] {
            0 => finding.saved_at_most_ns,
            _ => rows
                .iter()
                .find(|row| row.before == Some(place))
                .map_or(0, |row| row.part.dur_ns),
        });
    let place_of = |before: usize| rows.iter().position(|row| row.before == Some(before));
    finding.culprit = finding.culprit.and_then(place_of);
    finding.alternatives = finding
        .alternatives
        .drain(..)
        .filter_map(|one| {
            let part = place_of(one.part)?;
            // A followed wait is replaced by what it was for.
            let is_whole = followed.taken[one.part] == 0;
            is_whole.then_some(Alternative { part, ..one })
        })
        .collect();
    name(finding, &rows, (length, own_ns));
    let unexplained = rows.iter().map(|row| &row.part);
    finding.unexplained_ns = unexplained
        .filter(|part| is_unknown(part) && part.culprit.kind != ActorKind::Process)
        .map(|part| part.dur_ns)
        .sum();
    finding.parts = rows.into_iter().map(|row| row.part).collect();
}

fn is_unknown(part: &Part) -> bool {
    matches!(part.root.as_str(), "unknown" | "lost" | "still_blocked")
}

/// Names the culprit with most of the time, if it is on another host or in transit.
fn name(finding: &mut Finding, rows: &[Row], (length, own_ns): (Ns, Ns)) {
    let is_known = |row: &&Row| row.replacement.is_some() && !is_unknown(&row.part);
    let of = |one: &Part| -> (Ns, f64) {
        let same = rows.iter().filter(is_known).map(|row| &row.part);
        let same = same.filter(|part| {
            let is_work = |part: &Part| part.root == "cpu_running";
            part.culprit == one.culprit && is_work(part) == is_work(one)
        });
        same.fold((0, 0.0), |(ns, score), part| {
            let weight = match part.grade {
                Grade::A => 1.0,
                Grade::B => 0.8,
                Grade::C => 0.3,
            };
            (ns + part.dur_ns, score + weight * part.share)
        })
    };
    let known = rows.iter().enumerate().filter(|(_, row)| is_known(row));
    let most = known.max_by_key(|(place, row)| (of(&row.part).0, std::cmp::Reverse(*place)));
    let is_named = most.map(|(place, _)| place);
    finding.alternatives.extend(alternatives(rows, is_named));
    if finding.remote.is_usual {
        return;
    }
    let named = most.map(|(place, row)| (place, row, of(&row.part)));
    let named = named.filter(|(.., (ns, score))| *ns > own_ns && *score >= NAMED_MIN);
    let Some((place, row, (ns, score))) = named else {
        // The previously named culprit may have lost its time.
        if finding.culprit.is_none() {
            without(finding, rows);
        }
        return;
    };
    let Some(replacement) = &row.replacement else {
        return;
    };
    let share = ns as f64 / length as f64;
    let summary = format!(
        "{}: {} of it ({}) {}",
        finding.remote.head,
        sentence::length(ns),
        sentence::percent(share),
        replacement.clause.with_grade(row.part.grade)
    );
    replace_verdict(finding, summary);
    finding.confidence = levels::level(&Claim {
        score,
        share,
        grade: row.part.grade,
        mechanism: &row.part.mechanism,
        root: &row.part.root,
        culprit: row.part.culprit.kind,
        is_usual: false,
        is_lossy: false,
        has_states: true,
        has_handlers: true,
        is_event_loop: is_event_loop(&row.part),
        is_alone: finding.baseline.is_none(),
        is_short: false,
    });
    (finding.culprit, finding.score, finding.saved_at_most_ns) = (Some(place), score, ns);
    finding.suggestions = crate::advice::on(&row.part.mechanism, &row.part.root);
    finding.chain.clone_from(&replacement.chain);
    finding.missing.clone_from(&replacement.missing);
}

/// Other large parts of the time on other hosts, or in transit.
fn alternatives(rows: &[Row], named: Option<usize>) -> Vec<Alternative> {
    let others = rows.iter().enumerate();
    let others =
        others.filter(|(place, row)| row.part.share >= ALTERNATIVE_MIN && Some(*place) != named);
    others
        .filter_map(|(part, row)| {
            let replacement = row.replacement.as_ref()?;
            let summary = format!(
                "{} ({}) {}",
                sentence::length(row.part.dur_ns),
                sentence::percent(row.part.share),
                replacement.clause.with_grade(row.part.grade)
            );
            Some(Alternative { part, summary })
        })
        .collect()
}

/// States that no culprit is named, although another host had the request.
fn without(finding: &mut Finding, rows: &[Row]) {
    let remote = rows.iter().filter_map(|row| row.replacement.as_ref());
    let Some(longest) = remote.max_by_key(|one| one.part.dur_ns) else {
        return;
    };
    let summary = format!(
        "{}: no single cause dominates; for {} {}",
        finding.remote.head,
        sentence::length(longest.part.dur_ns),
        longest.clause.past()
    );
    replace_verdict(finding, summary);
    (finding.culprit, finding.score, finding.saved_at_most_ns) = (None, 0.0, 0);
    finding.confidence = Confidence::None;
    finding.suggestions.clear();
    finding.chain.clear();
}

fn replace_verdict(finding: &mut Finding, summary: String) {
    finding.verdict = if finding.verdict.contains(&finding.remote.summary) {
        finding.verdict.replace(&finding.remote.summary, &summary)
    } else {
        summary.clone()
    };
    finding.remote.summary = summary;
}
