//! Findings of threads that spent a long time below one call: a DNS lookup that took five seconds in
//! all samples, while other lookups take none.
//!
//! Samples show that the thread was there (B), but never why the call took that long. A call that
//! may wait for work (a lock, a queue, an idle connection) is reported only if it is queried, and
//! if most other runs of the same function do not show it.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_analysis::AnalysisError;
use whyslow_model::Ns;
use whyslow_model::row::Row;
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::StackSampleRow;
use whyslow_store::Tables;

use super::calls::{CallKind, Sampled, Stretch, Waits, apart, plain};
use super::{ProfileQuery, calls, of_group, silent, time_argument};
use crate::page::Page;
use crate::report::{
    Actor, ActorKind, Confidence, Finding, Grade, Hop, Missing, Part, Target, Thing,
};
use crate::sentence;

/// A larger profile is read only if it has something to find.
const SAMPLES_MANY: u64 = 1_000_000;
/// Default minimum duration of a finding.
const LONG: Ns = 1_000_000_000;
/// Maximum number of findings.
const GROUPS: usize = 4;
/// Minimum share of a request below the call, for the call to be what made it slow.
const COVERED: f64 = 0.8;
/// Stretches with durations that differ by no more than this share have the same timeout.
const SAME: f64 = 0.05;
/// Minimum number of stretches for a constant duration.
const CONSTANT_MIN: usize = 2;
/// Timeout of the C library for each name server.
const RESOLVER: Ns = 5_000_000_000;
/// How close to it a duration hints at it: samplers are late.
const RESOLVER_NEAR: f64 = 0.1;
/// Minimum number of requests, in total and per thread, to conclude that most do not show it: the
/// loop of a worker is not a request, and an idle worker spends all of it below its wait for work.
const OTHERS_MIN: usize = 10;
const OTHERS_A_THREAD: usize = 3;
/// The maximum share of requests that may show it.
const RARE: f64 = 1.0 / 3.0;

/// Runs of one function, which are requests if there are any.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Requests {
    function: String,
    /// It belongs to the program, not to a library.
    is_own: bool,
    all: usize,
    /// None if the profiler does not show the duration of each.
    slow: Option<usize>,
    /// Slow runs that spent most of their time below the call.
    below: usize,
    threads: usize,
}

impl Requests {
    /// Most runs spent little time below the call.
    fn show_it_rarely(&self) -> bool {
        self.is_own
            && self.all >= OTHERS_MIN.max(OTHERS_A_THREAD * self.threads)
            && self.below as f64 <= RARE * self.all as f64
    }
}

/// Similar stretches, and the requests that they are in.
type Alike = (Vec<Stretch>, Option<Requests>);

impl ProfileQuery<'_> {
    /// Whether it is more specific than the default query.
    fn is_specific(&self) -> bool {
        self.min.is_some() || self.window.is_some() || !self.utids.is_empty()
    }

    fn is_about(&self, stretch: &Stretch, call: &str) -> bool {
        let is_call = self.calls.is_empty() || self.calls.iter().any(|name| name == plain(call));
        is_call && (self.utids.is_empty() || self.utids.contains(&stretch.utid))
    }
}

/// The findings, with the thread of each.
pub(super) fn findings(
    tables: &dyn Tables,
    query: &ProfileQuery<'_>,
) -> Result<Vec<(i32, Finding)>, AnalysisError> {
    if !is_worth_reading(tables, query)? {
        return Ok(Vec::new());
    }
    let sampled = Sampled::read(tables, query.window)?;
    let min = query.min.unwrap_or(LONG).max(1);
    let mut found = seen(&sampled, query, min);
    found.extend(unseen(&sampled, query, min));
    found.index_sort_by_key(|(group, _)| {
        std::cmp::Reverse(group.iter().map(Stretch::dur).sum::<Ns>())
    });
    found.truncate(GROUPS);
    let builder = FindingBuilder {
        sampled: &sampled,
        recording: query.recording,
    };
    let findings = found.iter().filter_map(|(group, requests)| {
        let longest = group.iter().max_by_key(|stretch| stretch.dur())?;
        let finding = builder.finding(longest, group, requests.as_ref());
        Some((longest.utid, finding))
    });
    Ok(findings.collect())
}

/// Whether the default query can find anything: a large profile without lookups and connects is not
/// read.
fn is_worth_reading(tables: &dyn Tables, query: &ProfileQuery<'_>) -> Result<bool, AnalysisError> {
    let table = tables.info().tables.get(StackSampleRow::TABLE.name);
    let is_large = table.is_some_and(|table| table.rows > SAMPLES_MANY);
    Ok(!is_large || query.is_specific() || calls::are_called(tables)?)
}

/// Stretches in which all samples of a thread are below one call, grouped by the call and its
/// callers.
fn seen(sampled: &Sampled, query: &ProfileQuery<'_>, min: Ns) -> Vec<Alike> {
    let mut groups: BTreeMap<(Waits, &[String]), Vec<Stretch>> = BTreeMap::new();
    for stretch in sampled.stretches() {
        let names = &sampled.stacks[&stretch.callsite].names;
        let CallKind::Waits(waits) = stretch.call_kind else {
            continue;
        };
        if stretch.dur() >= min && query.is_about(&stretch, &names[stretch.place]) {
            let key = (waits, &names[..=stretch.place]);
            groups.entry(key).or_default().push(stretch);
        }
    }
    let is_specific = query.is_specific();
    let mut found = Vec::new();
    for ((waits, chain), group) in groups {
        let requests = requests(sampled, chain, &group, min);
        let is_rare = requests.as_ref().is_some_and(Requests::show_it_rarely);
        let is_finding = match waits {
            Waits::Lookup | Waits::Connect => true,
            Waits::LockOrQueue | Waits::Receive => is_specific && is_rare,
        };
        if is_finding {
            found.push((group, requests));
        }
    }
    found
}

/// Stretches in which a profiler that samples one thread at a time did not sample a thread.
fn unseen(sampled: &Sampled, query: &ProfileQuery<'_>, min: Ns) -> Vec<Alike> {
    let mut found = Vec::new();
    for alike in silent::find(sampled, min) {
        let below = alike.stretches.len();
        let mut group = alike.stretches;
        group.retain(|of| query.is_about(of, &sampled.stacks[&of.callsite].names[of.place]));
        let Some(first) = group.first() else { continue };
        let requests = Requests {
            function: sampled.stacks[&first.callsite].names[alike.back].clone(),
            is_own: true,
            all: alike.runs,
            slow: None,
            below,
            threads: sampled.threads.len(),
        };
        found.push((group, Some(requests)));
    }
    found
}

/// A run of a thread through one of the functions that lead to a call.
#[derive(Debug, Clone, Copy)]
struct Run {
    utid: i32,
    begin: Ns,
    end: Ns,
}

/// The outermost function of the program with slow runs that the call explains best; a library
/// function only if there is no other.
fn requests(sampled: &Sampled, chain: &[String], slow: &[Stretch], min: Ns) -> Option<Requests> {
    let runs = runs(sampled, chain);
    let stack = &sampled.stacks[&slow.first()?.callsite];
    let mut best: Option<((bool, f64, usize), Requests)> = None;
    // The call itself is not a request.
    for (depth, runs) in runs.iter().enumerate().take(chain.len() - 1) {
        let long: Vec<&Run> = runs
            .iter()
            .filter(|run| run.end - run.begin >= min)
            .collect();
        let is_below = |run: &&&Run| {
            let inside = slow
                .iter()
                .filter(|of| of.utid == run.utid && of.begin < run.end && run.begin < of.end);
            let below: Ns = inside.map(Stretch::dur).sum();
            below as f64 >= COVERED * (run.end - run.begin) as f64
        };
        let below = long.iter().filter(is_below).count();
        if below == 0 {
            continue;
        }
        let share = below as f64 / long.len() as f64;
        let is_own = !stack.is_foreign[depth];
        let found = Requests {
            function: chain[depth].clone(),
            is_own,
            all: runs.len(),
            slow: Some(long.len()),
            below,
            threads: runs
                .iter()
                .map(|run| run.utid)
                .collect::<FxHashSet<i32>>()
                .len(),
        };
        // A loop that contains several slow runs is one slow run itself.
        let worth = (is_own, share, below);
        if best.as_ref().is_none_or(|(before, _)| worth > *before) {
            best = Some((worth, found));
        }
    }
    best.map(|(_, found)| found)
}

/// Runs through each function of the chain, the outermost first.
fn runs(sampled: &Sampled, chain: &[String]) -> Vec<Vec<Run>> {
    let mut shared: FxHashMap<i64, usize> = FxHashMap::default();
    for (callsite, stack) in &sampled.stacks {
        let same = stack.names.iter().zip(chain);
        let depth = same.take_while(|(one, other)| one == other).count();
        shared.insert(*callsite, depth);
    }
    let mut done: Vec<Vec<Run>> = vec![Vec::new(); chain.len()];
    // Runs in progress, one for each function of the chain that the last sample is in.
    let mut open: Vec<Run> = Vec::new();
    for sample in &sampled.samples {
        let depth = shared.get(&sample.callsite).copied().unwrap_or(0);
        let goes_on = open
            .first()
            .is_some_and(|run| run.utid == sample.utid && sample.begin - run.end <= apart(sample));
        let kept = if goes_on { depth.min(open.len()) } else { 0 };
        for (place, run) in open.drain(kept..).enumerate() {
            done[kept + place].push(run);
        }
        for run in &mut open {
            run.end = run.end.max(sample.end);
        }
        open.resize(
            depth,
            Run {
                utid: sample.utid,
                begin: sample.begin,
                end: sample.end,
            },
        );
    }
    for (place, run) in open.into_iter().enumerate() {
        done[place].push(run);
    }
    done
}

struct FindingBuilder<'s> {
    sampled: &'s Sampled,
    recording: &'s str,
}

impl FindingBuilder<'_> {
    fn finding(&self, one: &Stretch, group: &[Stretch], requests: Option<&Requests>) -> Finding {
        let stack = &self.sampled.stacks[&one.callsite];
        let call = match one.call_kind {
            CallKind::Waits(_) => stack.names[one.place].as_str(),
            CallKind::Unnamed => "an unnamed function",
        };
        let thread = self.sampled.threads[&one.utid].clone();
        let caller = self.caller(one);
        let by = caller.map_or_else(String::new, |caller| format!(" (called by {caller})"));
        let target = Target {
            kind: "call".into(),
            id: None,
            what: format!("{call}{by}"),
            actor: thread.clone(),
            begin_ns: one.begin,
            end_ns: one.end,
            cut: None,
        };
        let hop = self.hop(one, &thread);
        let part = part(one, hop.shown_by.clone());
        let (grade, share) = (part.grade, part.share);
        let is_named = one.call_kind != CallKind::Unnamed;
        let cause = is_named.then_some((&part, part.dur_ns, share, grade));
        let mut verdict = sentence::verdict(&target, None, cause, &[], false);
        verdict.push_str(&similar(group, requests));
        let confidence = match grade {
            _ if !is_named => Confidence::None,
            Grade::C => Confidence::Low,
            _ => Confidence::Medium,
        };
        let members: Vec<&Stretch> = group.iter().collect();
        Finding {
            across: Vec::new(),
            did: Vec::new(),
            behind: None,
            is_trigger: false,
            page: Page::default(),
            remote: crate::report::Remote::default(),
            verdict,
            confidence,
            score: match confidence {
                Confidence::None => 0.0,
                Confidence::Low => 0.3,
                _ => 0.8,
            },
            culprit: is_named.then_some(0),
            suggestions: crate::advice::on(&part.mechanism, &part.root),
            saved_at_most_ns: if is_named { part.dur_ns } else { 0 },
            unexplained_ns: if is_named { 0 } else { part.dur_ns },
            group: of_group(format!("calls of {call}"), &members, Stretch::dur),
            contention: None,
            versus: None,
            baseline: None,
            chain: vec![hop],
            alternatives: Vec::new(),
            also: Vec::new(),
            neighbours: Vec::new(),
            missing: missing(one.call_kind),
            caveats: caveats(one, group),
            reproduce: format!(
                "whyslow explain {} -w {}",
                self.recording,
                sentence::window(one.begin, one.end)
            ),
            parts: vec![part],
            target,
        }
    }

    /// The function of the program that made the call.
    fn caller(&self, one: &Stretch) -> Option<&String> {
        let stack = &self.sampled.stacks[&one.callsite];
        let before = match one.call_kind {
            CallKind::Waits(_) => one.place,
            // The unnamed function is the innermost.
            CallKind::Unnamed => stack.names.len() - 1,
        };
        let own = (0..before).rev().find(|at| !stack.is_foreign[*at]);
        stack.names.get(own.or(before.checked_sub(1))?)
    }

    fn hop(&self, one: &Stretch, thread: &Actor) -> Hop {
        let stack = &self.sampled.stacks[&one.callsite];
        let last = match one.call_kind {
            CallKind::Waits(_) => one.place,
            CallKind::Unnamed => stack.names.len() - 1,
        };
        let mut functions: Vec<String> = stack.names[..=last].to_vec();
        functions.reverse();
        let evidence = if one.silent > 0 {
            format!(
                "its last sample before a gap of {} is in this call, and the next one in the caller",
                sentence::length(one.silent)
            )
        } else if one.samples == 1 {
            "one sample represents all of that time, and is below this call".to_owned()
        } else {
            format!(
                "{} consecutive samples are below this call, with the same caller",
                one.samples
            )
        };
        Hop {
            actor: thread.clone(),
            what: "waited".into(),
            mechanism: mechanism(one.call_kind).into(),
            activity: None,
            object: Some(Thing {
                kind: "function".into(),
                name: stack.names[last].clone(),
            }),
            stack: functions,
            program: Vec::new(),
            begin_ns: one.begin,
            end_ns: one.end,
            grade: if one.silent > 0 { Grade::C } else { Grade::B },
            evidence,
            shown_by: Some(format!(
                "whyslow threads dump {} --at {}",
                self.recording,
                time_argument(one.begin + one.dur() / 2)
            )),
        }
    }
}

fn mechanism(call_kind: CallKind) -> &'static str {
    match call_kind {
        CallKind::Waits(Waits::Lookup) => "dns_lookup",
        CallKind::Waits(Waits::Connect | Waits::Receive) => "network_remote",
        CallKind::Waits(Waits::LockOrQueue) => "lock_program",
        CallKind::Unnamed => "unknown",
    }
}

/// All of the time, attributed to the other side of the call, which samples do not identify.
fn part(one: &Stretch, shown_by: Option<String>) -> Part {
    let (kind, name) = match one.call_kind {
        CallKind::Waits(Waits::Lookup) => (ActorKind::Peer, "the resolver"),
        CallKind::Waits(Waits::Connect | Waits::Receive) => (ActorKind::Peer, "the other host"),
        CallKind::Waits(Waits::LockOrQueue) | CallKind::Unnamed => (ActorKind::Unknown, ""),
    };
    let mechanism = mechanism(one.call_kind);
    Part {
        mechanism: mechanism.into(),
        root: mechanism.into(),
        culprit: Actor {
            kind,
            name: name.into(),
            pid: None,
            tid: None,
            host: None,
        },
        activity: None,
        object: None,
        client: None,
        dur_ns: one.dur(),
        share: 1.0,
        grade: match one.call_kind {
            CallKind::Waits(Waits::Lookup | Waits::Connect) if one.silent == 0 => Grade::B,
            _ => Grade::C,
        },
        pieces: one.samples,
        evidence: Vec::new(),
        shown_by,
    }
}

/// How many slow requests are similar, as the end of the verdict.
fn similar(group: &[Stretch], requests: Option<&Requests>) -> String {
    let count = group.len();
    match requests {
        Some(of) => match of.slow {
            Some(slow) => format!(
                "; {} of {slow} slow runs of {} (of {} in the profile) spend nearly all of their time below this call",
                of.below, of.function, of.all
            ),
            None => format!(
                "; seen in {} of {} runs of {}",
                of.below, of.all, of.function
            ),
        },
        None if count > 1 => format!("; {count} times"),
        None => String::new(),
    }
}

/// The common duration of all stretches, if they have one.
fn constant(group: &[Stretch]) -> Option<Ns> {
    let least = group.iter().map(Stretch::dur).min()?;
    let most = group.iter().map(Stretch::dur).max()?;
    let is_same = (most - least) as f64 <= SAME * most as f64;
    (group.len() >= CONSTANT_MIN && is_same).then_some(Ns::midpoint(least, most))
}

fn caveats(one: &Stretch, group: &[Stretch]) -> Vec<String> {
    let mut caveats = vec![
        "inferred from samples: start and end are only as exact as the sampling interval, and several \
         consecutive calls with the same caller look like one"
            .to_owned(),
    ];
    // The common duration, or that of this one, may be a multiple of the resolver's timeout.
    let same = constant(group);
    let length = same.unwrap_or_else(|| one.dur());
    let times = ((length as f64 / RESOLVER as f64).round() as Ns).max(1);
    let is_resolver = (length - times * RESOLVER).abs() as f64 <= RESOLVER_NEAR * RESOLVER as f64;
    let may_look_up = match one.call_kind {
        CallKind::Waits(waits) => waits == Waits::Lookup,
        // A single one of that duration may be chance.
        CallKind::Unnamed => same.is_some(),
    };
    if may_look_up && is_resolver {
        caveats.push(format!(
            "{} suggests a resolver timeout: 5 s for each name server, unless resolv.conf sets \
             `options timeout`",
            sentence::length(length)
        ));
    } else if let Some(same) = same {
        caveats.push(format!(
            "all {} took about {}: a timeout or a fixed sleep is more likely than work",
            group.len(),
            sentence::length(same)
        ));
    }
    if one.silent > 0 {
        caveats.push(
            "the profiler sampled one thread at a time: what this thread did during the gap is inferred from \
             the samples before and after"
                .to_owned(),
        );
    }
    if matches!(
        one.call_kind,
        CallKind::Waits(Waits::LockOrQueue | Waits::Receive)
    ) {
        caveats.push(
            "samples do not show whether the thread waited for work or for a slow peer".to_owned(),
        );
    }
    caveats
}

fn missing(call_kind: CallKind) -> Vec<Missing> {
    let (decides, record_with) = match call_kind {
        CallKind::Waits(Waits::Lookup) | CallKind::Unnamed => (
            "what the thread waited for: the name looked up, the name server, and whether the server replied",
            "whyslow record --what +net -p PID",
        ),
        CallKind::Waits(Waits::Connect | Waits::Receive) => (
            "which host the thread waited for, and whether packets were lost",
            "whyslow record --what +net -p PID",
        ),
        CallKind::Waits(Waits::LockOrQueue) => (
            "which thread held the lock, or whether the thread waited for work",
            "whyslow record",
        ),
    };
    vec![Missing {
        events: "kernel events".into(),
        decides: decides.into(),
        record_with: record_with.into(),
    }]
}
