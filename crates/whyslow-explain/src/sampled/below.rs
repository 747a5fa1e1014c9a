//! Stories of threads that were below one call for long: a lookup of a name that took five seconds, sample after
//! sample, while others of its kind take none.
//!
//! That the thread was there is what samples show (B); why the call took so long they never do. A call that may
//! wait for work (a lock, a queue, a connection that nobody uses) is told of only where somebody asks for it, and
//! most other runs of the same function do not show it.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_analysis::AnalysisError;
use whyslow_model::Ns;
use whyslow_model::row::Row;
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::StackSampleRow;
use whyslow_store::Tables;

use super::calls::{Sampled, Stretch, Waits, Way, apart, plain};
use super::{Asked, calls, moment, of_group, silent};
use crate::report::{
    Actor, ActorKind, Confidence, Grade, Hop, Missing, Part, Story, Target, Thing,
};
use crate::say;

/// More samples than this are read only where there is something to find.
const SAMPLES_MANY: u64 = 1_000_000;
/// Shorter stretches are no stories unless asked for.
const LONG: Ns = 1_000_000_000;
/// Stories at most.
const GROUPS: usize = 4;
/// Share of a request for it to be slow for that reason.
const COVERED: f64 = 0.8;
/// Stretches that are as long as each other, up to so much, took the same time-out.
const SAME: f64 = 0.05;
/// Of these a constant is told.
const CONSTANT_MIN: usize = 2;
/// What the C library waits for each server of names.
const RESOLVER: Ns = 5_000_000_000;
/// How near to that a time is that hints at it: samplers are late.
const RESOLVER_NEAR: f64 = 0.1;
/// Requests that are needed to say that most do not show it, altogether and of each thread: the loop of a
/// worker is no request, and an idle worker is below its wait for work for all of it.
const OTHERS_MIN: usize = 10;
const OTHERS_A_THREAD: usize = 3;
/// The share that may show it then.
const RARE: f64 = 1.0 / 3.0;

/// Runs of one function: requests, if there are any.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Requests {
    function: String,
    /// It is code of the program.
    is_own: bool,
    all: usize,
    /// None where the profiler did not see how long each took.
    slow: Option<usize>,
    /// Slow ones that were below the call for most of their time.
    below: usize,
    threads: usize,
}

impl Requests {
    /// Most of them were not below the call for long.
    fn show_it_rarely(&self) -> bool {
        self.is_own
            && self.all >= OTHERS_MIN.max(OTHERS_A_THREAD * self.threads)
            && self.below as f64 <= RARE * self.all as f64
    }
}

/// Stretches that are alike, and the requests that they are in.
type Alike = (Vec<Stretch>, Option<Requests>);

impl Asked<'_> {
    /// Than what is told when nobody asks.
    fn is_for_more(&self) -> bool {
        self.min.is_some() || self.window.is_some() || !self.utids.is_empty()
    }

    fn is_about(&self, stretch: &Stretch, call: &str) -> bool {
        let is_call = self.calls.is_empty() || self.calls.iter().any(|name| name == plain(call));
        is_call && (self.utids.is_empty() || self.utids.contains(&stretch.utid))
    }
}

/// The stories, with the thread of each.
pub(super) fn stories(
    tables: &dyn Tables,
    asked: &Asked<'_>,
) -> Result<Vec<(i32, Story)>, AnalysisError> {
    if !is_worth_reading(tables, asked)? {
        return Ok(Vec::new());
    }
    let sampled = Sampled::read(tables, asked.window)?;
    let min = asked.min.unwrap_or(LONG).max(1);
    let mut found = seen(&sampled, asked, min);
    found.extend(unseen(&sampled, asked, min));
    found.index_sort_by_key(|(group, _)| {
        std::cmp::Reverse(group.iter().map(Stretch::dur).sum::<Ns>())
    });
    found.truncate(GROUPS);
    let teller = Teller {
        sampled: &sampled,
        recording: asked.recording,
    };
    let told = found.iter().filter_map(|(group, requests)| {
        let longest = group.iter().max_by_key(|stretch| stretch.dur())?;
        let story = teller.story(longest, group, requests.as_ref());
        Some((longest.utid, story))
    });
    Ok(told.collect())
}

/// A large profile in which nothing is looked up or connected has no story here that nobody asks for.
fn is_worth_reading(tables: &dyn Tables, asked: &Asked<'_>) -> Result<bool, AnalysisError> {
    let table = tables.info().tables.get(StackSampleRow::TABLE.name);
    let is_large = table.is_some_and(|table| table.rows > SAMPLES_MANY);
    Ok(!is_large || asked.is_for_more() || calls::are_called(tables)?)
}

/// By call and all that led to it: threads of which every sample is below it.
fn seen(sampled: &Sampled, asked: &Asked<'_>, min: Ns) -> Vec<Alike> {
    let mut groups: BTreeMap<(Waits, &[String]), Vec<Stretch>> = BTreeMap::new();
    for stretch in sampled.stretches() {
        let names = &sampled.stacks[&stretch.callsite].names;
        let Way::Waits(waits) = stretch.way else {
            continue;
        };
        if stretch.dur() >= min && asked.is_about(&stretch, &names[stretch.place]) {
            let key = (waits, &names[..=stretch.place]);
            groups.entry(key).or_default().push(stretch);
        }
    }
    let is_asked = asked.is_for_more();
    let mut found = Vec::new();
    for ((waits, chain), group) in groups {
        let requests = requests(sampled, chain, &group, min);
        let is_rare = requests.as_ref().is_some_and(Requests::show_it_rarely);
        let is_story = match waits {
            Waits::Lookup | Waits::Connect => true,
            Waits::Turn | Waits::Receive => is_asked && is_rare,
        };
        if is_story {
            found.push((group, requests));
        }
    }
    found
}

/// Threads that a profiler which sees one at a time did not see.
fn unseen(sampled: &Sampled, asked: &Asked<'_>, min: Ns) -> Vec<Alike> {
    let mut found = Vec::new();
    for alike in silent::find(sampled, min) {
        let below = alike.stretches.len();
        let mut group = alike.stretches;
        group.retain(|of| asked.is_about(of, &sampled.stacks[&of.callsite].names[of.place]));
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

/// Runs of a thread through one of the functions that lead to a call.
#[derive(Debug, Clone, Copy)]
struct Run {
    utid: i32,
    begin: Ns,
    end: Ns,
}

/// The outermost function of the program whose slow runs are best explained by the call; one of the language's
/// library only if there is no other.
fn requests(sampled: &Sampled, chain: &[String], slow: &[Stretch], min: Ns) -> Option<Requests> {
    let runs = runs(sampled, chain);
    let stack = &sampled.stacks[&slow.first()?.callsite];
    let mut best: Option<((bool, f64, usize), Requests)> = None;
    // The call itself is no request.
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
        // A loop that has several slow ones in it is one slow run itself.
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
    // Those that go on, as many as functions of the chain are open.
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

struct Teller<'s> {
    sampled: &'s Sampled,
    recording: &'s str,
}

impl Teller<'_> {
    fn story(&self, one: &Stretch, group: &[Stretch], requests: Option<&Requests>) -> Story {
        let stack = &self.sampled.stacks[&one.callsite];
        let call = match one.way {
            Way::Waits(_) => stack.names[one.place].as_str(),
            Way::Unnamed => "a function without a name",
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
        let is_named = one.way != Way::Unnamed;
        let said = is_named.then_some((&part, part.dur_ns, share, grade));
        let mut verdict = say::verdict(&target, None, said, &[], false);
        verdict.push_str(&in_words(group, requests));
        let confidence = match grade {
            _ if !is_named => Confidence::None,
            Grade::C => Confidence::Low,
            _ => Confidence::Medium,
        };
        let members: Vec<&Stretch> = group.iter().collect();
        Story {
            across: Vec::new(),
            remote: crate::report::Remote::default(),
            verdict,
            confidence,
            score: match confidence {
                Confidence::None => 0.0,
                Confidence::Low => 0.3,
                _ => 0.8,
            },
            culprit: is_named.then_some(0),
            suggestions: crate::advice(&part.mechanism, &part.root),
            saved_at_most_ns: if is_named { part.dur_ns } else { 0 },
            unexplained_ns: if is_named { 0 } else { part.dur_ns },
            group: of_group(format!("times below {call}"), &members, Stretch::dur),
            versus: None,
            baseline: None,
            chain: vec![hop],
            alternatives: Vec::new(),
            also: Vec::new(),
            neighbours: Vec::new(),
            missing: missing(one.way),
            caveats: caveats(one, group),
            reproduce: format!(
                "whyslow explain {} -w {}",
                self.recording,
                say::window(one.begin, one.end)
            ),
            parts: vec![part],
            target,
        }
    }

    /// The function of the program that made the call.
    fn caller(&self, one: &Stretch) -> Option<&String> {
        let stack = &self.sampled.stacks[&one.callsite];
        let before = match one.way {
            Way::Waits(_) => one.place,
            // What has no name is the innermost.
            Way::Unnamed => stack.names.len() - 1,
        };
        let own = (0..before).rev().find(|at| !stack.is_foreign[*at]);
        stack.names.get(own.or(before.checked_sub(1))?)
    }

    fn hop(&self, one: &Stretch, thread: &Actor) -> Hop {
        let stack = &self.sampled.stacks[&one.callsite];
        let last = match one.way {
            Way::Waits(_) => one.place,
            Way::Unnamed => stack.names.len() - 1,
        };
        let mut functions: Vec<String> = stack.names[..=last].to_vec();
        functions.reverse();
        let evidence = if one.silent > 0 {
            format!(
                "its last sample before {} without any is in this call, and the next one in code that made it",
                say::length(one.silent)
            )
        } else if one.samples == 1 {
            "one sample stands for all of that time, and is below this call".to_owned()
        } else {
            format!(
                "{} samples one after another are all below this call, with the same caller",
                one.samples
            )
        };
        Hop {
            actor: thread.clone(),
            what: "waited".into(),
            mechanism: mechanism(one.way).into(),
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
                moment(one.begin + one.dur() / 2)
            )),
        }
    }
}

fn mechanism(way: Way) -> &'static str {
    match way {
        Way::Waits(Waits::Lookup) => "dns_lookup",
        Way::Waits(Waits::Connect | Waits::Receive) => "network_remote",
        Way::Waits(Waits::Turn) => "lock_program",
        Way::Unnamed => "unknown",
    }
}

/// All of the time: who kept it waiting is the other side of the call, whom samples do not show.
fn part(one: &Stretch, shown_by: Option<String>) -> Part {
    let (kind, name) = match one.way {
        Way::Waits(Waits::Lookup) => (ActorKind::Peer, "the resolver"),
        Way::Waits(Waits::Connect | Waits::Receive) => (ActorKind::Peer, "the other host"),
        Way::Waits(Waits::Turn) | Way::Unnamed => (ActorKind::Unknown, ""),
    };
    let mechanism = mechanism(one.way);
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
        dur_ns: one.dur(),
        share: 1.0,
        grade: match one.way {
            Way::Waits(Waits::Lookup | Waits::Connect) if one.silent == 0 => Grade::B,
            _ => Grade::C,
        },
        pieces: one.samples,
        evidence: Vec::new(),
        shown_by,
    }
}

/// How many slow requests are like it.
fn in_words(group: &[Stretch], requests: Option<&Requests>) -> String {
    let count = group.len();
    match requests {
        Some(of) => match of.slow {
            Some(slow) => format!(
                "; {} of {slow} slow runs of {} (of {} that were seen) are below it for nearly all of their time",
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

/// The length that all of them have, if they have one.
fn constant(group: &[Stretch]) -> Option<Ns> {
    let least = group.iter().map(Stretch::dur).min()?;
    let most = group.iter().map(Stretch::dur).max()?;
    let is_same = (most - least) as f64 <= SAME * most as f64;
    (group.len() >= CONSTANT_MIN && is_same).then_some(Ns::midpoint(least, most))
}

fn caveats(one: &Stretch, group: &[Stretch]) -> Vec<String> {
    let mut caveats = vec![
        "inferred from samples: begin and end are as exact as the time between two of them, and several calls \
         one after another with the same caller look like one"
            .to_owned(),
    ];
    // All of them, or the one that is told: a multiple of what the resolver waits.
    let same = constant(group);
    let length = same.unwrap_or_else(|| one.dur());
    let times = ((length as f64 / RESOLVER as f64).round() as Ns).max(1);
    let is_resolver = (length - times * RESOLVER).abs() as f64 <= RESOLVER_NEAR * RESOLVER as f64;
    let may_look_up = match one.way {
        Way::Waits(waits) => waits == Waits::Lookup,
        // One of that length may be chance.
        Way::Unnamed => same.is_some(),
    };
    if may_look_up && is_resolver {
        caveats.push(format!(
            "{} hints at a time-out of the resolver: it waits 5 s for each server where resolv.conf has no \
             other `options timeout`",
            say::length(length)
        ));
    } else if let Some(same) = same {
        caveats.push(format!(
            "all {} took about {}: a time-out or a fixed pause is more likely than work",
            group.len(),
            say::length(same)
        ));
    }
    if one.silent > 0 {
        caveats.push(
            "the profiler saw one thread at a time: what this one did while it was not seen is inferred from \
             the samples before and after"
                .to_owned(),
        );
    }
    if matches!(one.way, Way::Waits(Waits::Turn | Waits::Receive)) {
        caveats
            .push("samples do not tell whether it waited for work or for somebody slow".to_owned());
    }
    caveats
}

fn missing(way: Way) -> Vec<Missing> {
    let (decides, record_with) = match way {
        Way::Waits(Waits::Lookup) | Way::Unnamed => (
            "what it waited for: which name was looked up, which server was asked, and whether its answer came",
            "whyslow record --what sched,syscalls,net,dns -p PID",
        ),
        Way::Waits(Waits::Connect | Waits::Receive) => (
            "which host it was, and whether packets were lost",
            "whyslow record --what sched,syscalls,net -p PID",
        ),
        Way::Waits(Waits::Turn) => (
            "who held the lock, or whether it waited for work",
            "whyslow record --what sched,syscalls,locks --stacks 1ms",
        ),
    };
    vec![Missing {
        events: "what the kernel did".into(),
        decides: decides.into(),
        record_with: record_with.into(),
    }]
}
