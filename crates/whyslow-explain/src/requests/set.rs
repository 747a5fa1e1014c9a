//! All requests of a window: which pattern of slowness it is, and how slow requests differ.

use rustc_hash::FxHashMap;
use whyslow_analysis::AnalysisError;
use whyslow_analysis::before_after::{Request, Requests};
use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use super::activities::{self, Activities};
use super::contrasts::{Columns, Contrast};
use super::findings::RequestExplainer;
use super::queued;
use super::representative::Representative;
use super::results::result_of;
use super::spread;
use crate::group_excess::{WALKED, excess};
use crate::patterns::excess::{Excess, Spent, decompose};
use crate::patterns::{Class, Input, Item, Judgement, UNIDENTIFIED, judge};
use crate::query::Query;
use crate::report::{Finding, Group, Pattern};
use crate::{limits, sentence};

/// Maximum number of other requests for which calls are examined, in addition to all slow ones.
const USUAL_MAX: usize = 5000;

/// The pattern of the requests, and how slow requests differ.
pub(super) struct PatternVerdict {
    judgement: Judgement,
    contrasts: Vec<Contrast>,
    /// Phases with the additional time of slow requests.
    phases: Vec<(String, Excess)>,
}

impl PatternVerdict {
    pub(super) fn is_insufficient(&self) -> bool {
        self.judgement.class == Class::Insufficient
    }

    /// Indexes of slow requests.
    pub(super) fn slow(&self) -> &[usize] {
        &self.judgement.slow
    }

    /// The pattern for the report, with the differences as further tests.
    pub(super) fn pattern(&self) -> Pattern {
        let mut pattern = self.judgement.pattern();
        for summary in self.differences() {
            pattern.summary = format!("{}; {summary}", pattern.summary);
            pattern.tests.push(("differs".into(), true, summary));
        }
        pattern
    }

    fn differences(&self) -> Vec<String> {
        let phases = self.phases.iter().map(|(phase, one)| {
            format!(
                "{:.0} % of the additional time of slow requests is in phase {phase} (95 % CI: {:.0}–{:.0} %)",
                100.0 * one.share,
                100.0 * one.share_low,
                100.0 * one.share_high
            )
        });
        phases
            .chain(self.contrasts.iter().map(Contrast::summary))
            .collect()
    }

    /// Sentences of these tests, if they fired or lack data.
    fn outcomes(&self, tests: &[&str]) -> impl Iterator<Item = &str> {
        let outcomes = self.judgement.outcomes.iter();
        // Without those that the conclusion includes already.
        let is_new = |summary: &str| !self.judgement.summary.contains(summary);
        outcomes
            .filter(|one| tests.contains(&one.test))
            .filter(|one| one.fired || one.summary.contains("too few"))
            .map(|one| one.summary.as_str())
            .filter(move |summary| is_new(summary))
    }
}

/// Classifies the requests, with those of another time as the baseline if there are any.
pub(super) fn judge_set(
    explainer: &RequestExplainer<'_>,
    query: &Query,
    there: &Requests,
) -> Result<PatternVerdict, AnalysisError> {
    let tables = explainer.tables;
    let mut names = Names::default();
    let mut items = names.items(explainer.requests);
    let baseline = names.items(there);
    let (resources, waits) = limits::read(tables, query.window)?;
    for (item, request) in items.iter_mut().zip(&explainer.requests.rows) {
        let of_thread = explainer.threads.longest(request);
        let waited = of_thread.and_then(|one| waits.longest(one.utid, (one.begin, one.end)));
        item.wait_ns_max = waited.or(item.wait_ns_max);
    }
    let (marks, jobs) = crate::pattern_verdict::marks(tables, query.window)?;
    let info = tables.info();
    let span = query.window.map_or((info.begin_ns, info.end_ns), |window| {
        (window.begin.max(info.begin_ns), window.end.min(info.end_ns))
    });
    let input = Input {
        items: &items,
        what: "request",
        window: (span.1 > span.0).then_some(span),
        objective: query.min,
        clock: query.clock.as_ref(),
        baseline: &baseline,
        keys: &names.keys,
        objects: &names.objects,
        workers: &names.workers,
        is_closed: explainer.requests.is_closed,
        resources: &resources,
        jobs: &jobs,
        marks: &marks,
        ..Input::default()
    };
    let mut judgement = judge(&input);
    let is_slow = flags(items.len(), &judgement.slow);
    let activities = activities::read(explainer, &examined(&is_slow))?;
    let features = activities.by_key(explainer.requests);
    if !features.is_empty() && !judgement.exempt.is_empty() {
        let feature_names: Vec<String> = activities
            .names
            .iter()
            .map(|(column, value)| format!("{column} {value}"))
            .collect();
        judgement = judge(&Input {
            features: &features,
            feature_names: &feature_names,
            ..input
        });
    }
    let effect = judgement.slow.len() as f64 / judgement.episodes.max(1) as f64;
    let mut contrasts = columns(explainer, &is_slow).contrasts(effect);
    contrasts.extend(done(&activities, &is_slow).contrasts(effect));
    Ok(PatternVerdict {
        contrasts,
        phases: phases(explainer.requests, &is_slow),
        judgement,
    })
}

/// Names of keys, objects and workers, of both sides of a comparison.
#[derive(Debug, Default)]
struct Names {
    keys: Vec<String>,
    objects: Vec<String>,
    workers: Vec<String>,
}

fn number(names: &mut Vec<String>, known: &mut FxHashMap<String, u32>, name: &str) -> u32 {
    if let Some(number) = known.get(name) {
        return *number;
    }
    let next = names.len() as u32;
    known.insert(name.to_owned(), next);
    names.push(name.to_owned());
    next
}

impl Names {
    fn items(&mut self, requests: &Requests) -> Vec<Item> {
        let known = |names: &[String]| -> FxHashMap<String, u32> {
            let names = names.iter().enumerate();
            names
                .map(|(place, name)| (name.clone(), place as u32))
                .collect()
        };
        let (mut keys, mut objects) = (known(&self.keys), known(&self.objects));
        let key_of: Vec<u32> = requests
            .keys
            .iter()
            .map(|name| number(&mut self.keys, &mut keys, name))
            .collect();
        let is_server = requests.role == Some("server");
        let most = requests
            .rows
            .iter()
            .map(|row| row.worker)
            .filter(|one| *one != UNIDENTIFIED)
            .max();
        let workers = most.map_or(0, |most| most as usize + 1);
        for worker in self.workers.len()..workers {
            self.workers.push(format!("worker {worker}"));
        }
        let item = |request: &Request| {
            // Clients of one server, and servers of one client, are comparable.
            let object = if is_server {
                request.client
            } else {
                request.peer
            };
            let object = object.map(|sym| host(requests.symbols.get(sym)));
            Item {
                ts: request.ts,
                dur: request.dur.unwrap_or(0).max(0),
                key: key_of[request.key as usize],
                object: object.map_or(UNIDENTIFIED, |name| {
                    number(&mut self.objects, &mut objects, name)
                }),
                worker: request.worker,
                failed: request.failed || request.dur.is_none(),
                result: result_of(request),
                wait_ns_max: of_client(requests, request),
            }
        };
        requests.rows.iter().map(item).collect()
    }
}

/// An address without its port, which differs for each connection.
pub(super) fn host(address: &str) -> &str {
    match address.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|one| one.is_ascii_digit()) => {
            host
        }
        _ => address,
    }
}

/// The longest single wait of a client before its server was involved.
fn of_client(requests: &Requests, request: &Request) -> Option<Ns> {
    let phases = requests.phases.iter().zip(request.phases);
    let early = phases.filter(|(name, _)| matches!(name.as_str(), "resolve" | "connect"));
    let most = early.map(|(_, ns)| ns).max()?;
    (2 * most > request.dur.unwrap_or(Ns::MAX)).then_some(most)
}

fn flags(count: usize, places: &[usize]) -> Vec<bool> {
    let mut flags = vec![false; count];
    for place in places {
        flags[*place] = true;
    }
    flags
}

/// All slow requests, and others evenly over time.
fn examined(is_slow: &[bool]) -> Vec<usize> {
    let every = is_slow.len().div_ceil(USUAL_MAX).max(1);
    let places = is_slow.iter().enumerate();
    places
        .filter(|(place, slow)| **slow || place % every == 0)
        .map(|(place, _)| place)
        .collect()
}

impl Activities {
    /// Activities of the requests of each key.
    fn by_key(&self, requests: &Requests) -> Vec<(u32, u32)> {
        let mut found: Vec<(u32, u32)> = self
            .of
            .iter()
            .flat_map(|(place, things)| {
                let key = requests.rows[*place].key;
                things.iter().map(move |thing| (key, *thing))
            })
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

fn done(activities: &Activities, is_slow: &[bool]) -> Columns {
    let mut columns = Columns::default();
    let mut places: Vec<usize> = activities.of.keys().copied().collect();
    places.sort_unstable();
    for place in places {
        let things = activities.of[&place].iter();
        let values: Vec<_> = things
            .map(|thing| activities.names[*thing as usize].clone())
            .collect();
        columns.add(is_slow[place], &values);
    }
    columns
}

/// Columns of requests that may be correlated with slowness. The endpoint is part of the pattern.
fn columns(explainer: &RequestExplainer<'_>, is_slow: &[bool]) -> Columns {
    let requests = explainer.requests;
    let mut columns = Columns::default();
    let mut connections: FxHashMap<i64, u64> = FxHashMap::default();
    for (request, slow) in requests.rows.iter().zip(is_slow) {
        let mut values: Vec<(&'static str, String)> = Vec::new();
        let word = |sym| requests.symbols.get(sym).to_owned();
        let mut add = |column, value: Option<String>| {
            values.extend(value.map(|value| (column, value)));
        };
        let earlier = request.connection.map(|connection| {
            let count = connections.entry(connection).or_default();
            *count += 1;
            *count > 1
        });
        let reused = request.is_reused.or(earlier);
        let age = reused.map(|reused| if reused { "used before" } else { "new" });
        add("connection", age.map(str::to_owned));
        add("status", request.status.map(|status| status.to_string()));
        add(
            "client",
            request.client.map(|sym| host(&word(sym)).to_owned()),
        );
        add("peer", request.peer.map(word));
        let worker = Some(request.worker).filter(|worker| *worker != UNIDENTIFIED);
        add("worker", worker.map(|worker| worker.to_string()));
        let thread = explainer.threads.longest(request);
        add("server thread", thread.map(|one| one.tid.to_string()));
        columns.add(*slow, &values);
    }
    columns
}

/// Phases with most of the additional time of slow requests.
fn phases(requests: &Requests, is_slow: &[bool]) -> Vec<(String, Excess)> {
    let spent = |wanted: bool| -> Vec<Spent> {
        let rows = requests.rows.iter().zip(is_slow);
        let rows = rows.filter(|(row, slow)| **slow == wanted && row.dur.is_some() && !row.failed);
        rows.map(|(row, _)| {
            let phases = row.phases.iter().enumerate();
            let mut spent: Spent = phases.map(|(place, ns)| (place as u32, *ns)).collect();
            let known: Ns = row.phases.iter().sum();
            let rest = requests.phases.len().max(row.phases.len()) as u32;
            spent.push((rest, (row.dur.unwrap_or(0) - known).max(0)));
            spent
        })
        .collect()
    };
    if requests.phases.is_empty() {
        return Vec::new();
    }
    let found = decompose(&spent(true), &spent(false));
    let much = found.into_iter().filter(Excess::is_much);
    much.filter_map(|one| {
        let name = requests.phases.get(one.category as usize)?;
        Some((name.clone(), one))
    })
    .collect()
}

fn lengths(of: &[&Request]) -> Vec<Ns> {
    of.iter().filter_map(|one| one.dur).collect()
}

/// Their median duration.
fn middle(of: &[&Request]) -> String {
    let mut lengths = lengths(of);
    lengths.sort_unstable();
    sentence::length(lengths.get(lengths.len() / 2).copied().unwrap_or(0))
}

/// Name and finding of the request that represents all slow ones. `known` are those with known
/// threads, the longest first, and `walked` the findings of the first of them.
fn standing(
    explainer: &RequestExplainer<'_>,
    longest: &Request,
    (known, walked): (&[&Request], &[Finding]),
) -> Result<(String, Finding), AnalysisError> {
    let finding = explainer.one(longest)?;
    let representative = Representative::of(walked).filter(|representative| {
        !(representative.is_longest() && known[representative.place].id == longest.id)
    });
    let Some(representative) = representative else {
        return Ok(("The longest".to_owned(), finding));
    };
    let mut standing = explainer.one(known[representative.place])?;
    standing.caveats.push(representative.caveat(&finding));
    Ok((representative.name(), standing))
}

/// The finding of one of the slow requests, which represents all of them; none if none is slow.
pub(super) fn finding<'t>(
    explainer: &RequestExplainer<'t>,
    verdict: &PatternVerdict,
) -> Result<Option<Finding>, AnalysisError> {
    let rows = &explainer.requests.rows;
    let is_slow = flags(rows.len(), verdict.slow());
    let of = |wanted: bool| -> Vec<&Request> {
        let rows = rows.iter().zip(&is_slow);
        let rows = rows.filter(|(row, slow)| **slow == wanted && row.dur.is_some());
        rows.map(|(row, _)| row).collect()
    };
    let (mut slow, usual) = (of(true), of(false));
    slow.index_sort_by_ints(|request| [!request.dur.unwrap_or(i64::MIN), request.id, 0]);
    let Some(longest) = slow.first() else {
        return Ok(None);
    };
    // The representative has to wait for the same thing as most slow requests.
    let is_queue = verdict
        .phases
        .first()
        .is_some_and(|(phase, _)| phase == queued::PHASE);
    let queued = slow.iter().find(|one| is_queue && explainer.is_queued(one));
    let mut group = Group {
        operation: "requests".into(),
        count: slow.len() as u64,
        all: Some(rows.len() as u64),
        dur_ns_total: lengths(&slow).iter().sum(),
        dur_ns_max: slow[0].dur.unwrap_or(0),
        walked: 1,
        ..Group::default()
    };
    let followed = |of: &[&'t Request]| -> Vec<&'t Request> {
        let all = of.iter().copied();
        all.filter(|one| explainer.threads.longest(one).is_some())
            .collect()
    };
    let known = followed(&slow);
    let mut walked = Vec::new();
    if known.len() > 1 {
        let others = followed(&usual);
        walked = explainer.walked(&known[..known.len().min(WALKED)])?;
        let compared = explainer.walked(&spread(&others, WALKED))?;
        group.walked = walked.len() as u64;
        group.compared = compared.len() as u64;
        group.excess = excess(&walked, &compared);
    }
    let (which, mut finding) = match queued {
        Some(queued) => (
            "The longest that waited for a handler".to_owned(),
            explainer.one(queued)?,
        ),
        None => standing(explainer, longest, (&known, &walked))?,
    };
    finding.verdict = format!(
        "{} of {} requests were slow (median {}; others {}): {}. {which}: {}",
        slow.len(),
        rows.len(),
        middle(&slow),
        middle(&usual),
        verdict.judgement.summary,
        finding.verdict
    );
    finding.group = Some(group);
    let outcomes = verdict.outcomes(&["T2", "T6", "T12"]);
    finding.caveats.extend(outcomes.map(str::to_owned));
    finding.caveats.extend(verdict.differences());
    Ok(Some(finding))
}
