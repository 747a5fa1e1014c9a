//! Findings of `explain` as rows. Names are reduced to patterns without file, thread and other ids,
//! so that hosts with the same problem have the same row.

use std::borrow::Cow;

use whyslow_analysis::{pattern_of, pool_of};
use whyslow_explain::{
    Confidence, Finding, Grade, Observation, Pattern, Query, Report, Thing, explain, template_of,
};
use whyslow_model::sort::IndexSort;
use whyslow_store::Tables;

use super::{RecordingFacts, SummaryError};
use crate::tables::FindingRow;

pub(super) fn of(
    tables: &dyn Tables,
    facts: &RecordingFacts,
) -> Result<Vec<FindingRow>, SummaryError> {
    let query = Query {
        recording: facts.name.clone(),
        ..Query::default()
    };
    let report = explain(tables, &query, None)?;
    let findings = report.findings.iter().map(|one| of_finding(one, facts));
    let observations = report
        .observations
        .iter()
        .map(|one| of_observation(one, facts));
    let patterns = report
        .patterns
        .iter()
        .map(|one| of_pattern(one, &report, facts));
    let mut rows: Vec<FindingRow> = findings.chain(observations).chain(patterns).collect();
    for (nr, row) in rows.iter_mut().enumerate() {
        row.nr = nr as i32;
    }
    rows.index_sort_by(|a, b| (&a.mechanism, a.ts, a.nr).cmp(&(&b.mechanism, b.ts, b.nr)));
    Ok(rows)
}

fn of_finding(finding: &Finding, facts: &RecordingFacts) -> FindingRow {
    let named = finding.culprit.and_then(|part| finding.parts.get(part));
    // Without a culprit, the largest part at least shows the mechanism.
    let part = named.or_else(|| finding.parts.iter().max_by_key(|part| part.dur_ns));
    let window = finding
        .target
        .end_ns
        .saturating_sub(finding.target.begin_ns);
    // All time attributed to the culprit, as in the verdict; one part may be shorter.
    let blamed = named.map(|part| part.dur_ns.max(finding.saved_at_most_ns));
    let missing: Vec<&str> = finding
        .missing
        .iter()
        .map(|one| one.events.as_str())
        .collect();
    let others: u64 = finding.also.iter().map(|also| also.count).sum();
    let count = finding.group.as_ref().map_or(1, |group| group.count.max(1));
    FindingRow {
        operation: operation(&finding.target.what),
        victim: Some(pool_of(&finding.target.actor.name).into_owned())
            .filter(|name| !name.is_empty()),
        mechanism: part.map_or_else(|| "unexplained".to_owned(), |part| part.mechanism.clone()),
        root: part.map(|part| part.root.clone()),
        culprit_kind: named.map(|part| word(part.culprit.kind)),
        culprit: named.map(|part| pool_of(&part.culprit.name).into_owned()),
        object_kind: named.and_then(|part| Some(part.object.as_ref()?.kind.clone())),
        object: named.and_then(|part| Some(object(part.object.as_ref()?))),
        blamed_ns: blamed,
        share: blamed.map(|ns| ns as f64 / window.max(1) as f64),
        count: count.saturating_add(others) as i64,
        grade: named.map(|part| grade(part.grade).to_owned()),
        confidence: Some(confidence(finding.confidence).to_owned()),
        missing: Some(missing.join("; ")).filter(|text| !text.is_empty()),
        id: finding.target.id.clone(),
        reproduce: Some(finding.reproduce.clone()),
        ..empty(
            facts,
            (finding.target.begin_ns, window),
            ("finding", &finding.target.kind),
            &finding.verdict,
        )
    }
}

fn of_observation(observation: &Observation, facts: &RecordingFacts) -> FindingRow {
    let length = observation.end_ns.saturating_sub(observation.begin_ns);
    FindingRow {
        operation: observation.kind.clone(),
        mechanism: observation.kind.clone(),
        culprit_kind: Some(word(observation.culprit.kind)),
        culprit: Some(pool_of(&observation.culprit.name).into_owned()),
        object_kind: observation.object.as_ref().map(|thing| thing.kind.clone()),
        object: observation.object.as_ref().map(object),
        reproduce: observation.shown_by.clone(),
        ..empty(
            facts,
            (observation.begin_ns, length),
            ("observation", "window"),
            &observation.summary,
        )
    }
}

fn of_pattern(pattern: &Pattern, report: &Report, facts: &RecordingFacts) -> FindingRow {
    let length = report.end_ns.saturating_sub(report.begin_ns);
    FindingRow {
        operation: pattern.class.clone(),
        mechanism: pattern.class.clone(),
        ..empty(
            facts,
            (report.begin_ns, length),
            ("pattern", "window"),
            &pattern.summary,
        )
    }
}

fn empty(
    facts: &RecordingFacts,
    (ts, dur): (i64, i64),
    (source, target): (&str, &str),
    verdict: &str,
) -> FindingRow {
    FindingRow {
        recording: facts.recording.clone(),
        host: facts.host.clone(),
        nr: 0,
        ts,
        dur,
        source: source.to_owned(),
        target: target.to_owned(),
        operation: String::new(),
        victim: None,
        mechanism: String::new(),
        root: None,
        culprit_kind: None,
        culprit: None,
        object_kind: None,
        object: None,
        blamed_ns: None,
        share: None,
        count: 1,
        grade: None,
        confidence: None,
        missing: None,
        verdict: verdict.to_owned(),
        id: None,
        reproduce: None,
    }
}

/// `openat(/var/lib/php/sessions/sess_<id>)`.
fn operation(what: &str) -> String {
    let parts = what
        .split_once('(')
        .and_then(|(call, rest)| Some((call, rest.strip_suffix(')')?)));
    match parts {
        Some((call, path)) if path.starts_with('/') => format!("{call}({})", pattern_of(path)),
        _ => template_of(what),
    }
}

fn object(thing: &Thing) -> String {
    let name: Cow<'_, str> = if thing.name.starts_with('/') {
        pattern_of(&thing.name)
    } else {
        Cow::Borrowed(&thing.name)
    };
    name.into_owned()
}

fn grade(grade: Grade) -> &'static str {
    match grade {
        Grade::A => "A",
        Grade::B => "B",
        Grade::C => "C",
    }
}

fn confidence(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::None => "none",
        Confidence::Low => "low",
        Confidence::Medium => "medium",
        Confidence::High => "high",
    }
}

/// As in the JSON output of `explain`.
fn word(kind: whyslow_explain::ActorKind) -> String {
    use whyslow_explain::ActorKind as Kind;
    let word = match kind {
        Kind::Own => "own",
        Kind::Process => "process",
        Kind::Kernel => "kernel",
        Kind::Device => "device",
        Kind::Peer => "peer",
        Kind::Timer => "timer",
        Kind::Cgroup => "cgroup",
        Kind::Interrupt => "interrupt",
        Kind::Cpu => "cpu",
        Kind::Unknown => "unknown",
    };
    word.to_owned()
}
