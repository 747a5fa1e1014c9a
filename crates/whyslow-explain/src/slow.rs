//! Operations that took much longer than similar ones.
//!
//! Operations with different results are not similar: a call that fails at once with ENOENT or
//! EAGAIN does not show how long one takes that does its work.

mod always;

use std::ops::ControlFlow;

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_analysis::AnalysisError;
use whyslow_analysis::read::{PerWord, Projection, Uncertain, in_order};
use whyslow_model::errno;
use whyslow_model::row::Row;
use whyslow_model::sort::{IndexSort, float_key};
use whyslow_model::syscall::waits::{is_filled, is_read, is_wait, waits_for_work};
use whyslow_model::tables::{ProcessRow, SyscallRow};
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use crate::report::Baseline;
use crate::window_slice::Interner;
use always::always;

/// Minimum number of similar operations for a baseline.
pub(crate) const BASELINE_MIN: u64 = 20;
/// Shorter operations are never slow.
pub(crate) const SLOW_MIN_NS: Ns = 1_000_000;
/// Minimum distance from the median, in robust standard deviations of the logarithm …
const DEVIATIONS: f64 = 4.0;
/// … and in multiples of the median.
const MEDIANS: f64 = 3.0;
/// Maximum number of threads of one kind of operation that are counted.
const THREADS_MAX: usize = 64;
/// Classes of objects that nothing but the kernel and a disk serves.
const STORAGE: [&str; 3] = ["file", "directory", "block"];
/// Slow operations that are kept of each kind.
const KEPT: usize = 64;
/// Size of the random sample of all calls.
const DRAWN: usize = 48;
/// Duration buckets: 16 per octave, which is 4 %.
const PER_OCTAVE: f64 = 16.0;
const BUCKETS: usize = 64 * 16;

/// Calls whose duration is decided by others than the kernel: a child, a tracer.
const NOT_JUDGED: [&str; 4] = ["clone", "ptrace", "exit", "exit_group"];

/// Calls that wait on a socket or pipe only if its other end is slow: for room in its buffer, or for
/// a connection.
const SENDS: [&str; 12] = [
    "connect",
    "write",
    "writev",
    "pwrite64",
    "sendto",
    "sendmsg",
    "sendmmsg",
    "send",
    "sendfile",
    "sendfile64",
    "splice",
    "vmsplice",
];
/// Objects with another end.
const CHANNELS: [(&str, &str); 5] = [
    ("pipe", "a pipe"),
    ("unix", "a Unix socket"),
    ("inet", "a connection"),
    ("inet6", "a connection"),
    ("socket", "a socket"),
];

/// Calls that wait for the completion of requests: those to disks are not waits for work.
const COMPLETIONS: [&str; 3] = ["io_getevents", "io_pgetevents", "io_uring_enter"];

/// Names of calls that were not checked yet, and those that are not wanted.
const UNKNOWN: u32 = u32::MAX;
const UNWANTED: u32 = u32::MAX - 1;

/// One slow call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slow {
    pub(crate) dur: Ns,
    pub(crate) id: i64,
    pub(crate) ts: Ns,
    pub(crate) utid: i32,
    /// Process of the thread (recording-unique id); -1 if it is not known.
    pub(crate) upid: i32,
}

/// What operations have in common that are compared with each other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Like {
    /// Name of the program.
    pub(crate) comm: String,
    /// Name of the call.
    pub(crate) call: String,
    /// How they failed: `ENOENT`; `None` if they succeeded.
    pub(crate) failure: Option<String>,
    /// What they send to, if it has another end: `a pipe`.
    pub(crate) to: Option<&'static str>,
}

impl Like {
    /// The result as [`Baseline::result`] names it.
    fn result(&self) -> &str {
        self.failure.as_deref().unwrap_or("ok")
    }

    /// `openat by nginx`, with the error if they failed.
    pub(crate) fn operation(&self) -> String {
        let Self { comm, call, .. } = self;
        let to = self.to.map_or_else(String::new, |to| format!(" to {to}"));
        match &self.failure {
            Some(failure) => format!("{call}{to} by {comm} failing with {failure}"),
            None => format!("{call}{to} by {comm}"),
        }
    }

    /// The operations of a baseline, with their result.
    fn of_baseline(&self) -> String {
        match &self.failure {
            Some(_) => self.operation(),
            None => format!("successful {}", self.operation()),
        }
    }
}

/// Slow calls of one name by one program with one result.
#[derive(Debug, Clone)]
pub(crate) struct SlowGroup {
    pub(crate) like: Like,
    pub(crate) baseline: Option<Baseline>,
    /// The longest calls, the longest first.
    pub(crate) longest: Vec<Slow>,
    /// A sample of calls that were not slow; of all calls, if it is from the other side of a
    /// comparison.
    pub(crate) usual: Vec<Slow>,
    /// Number of such calls on the other side of a comparison.
    pub(crate) elsewhere: Option<u64>,
    pub(crate) count: u64,
    pub(crate) total: Ns,
    /// Time beyond the median.
    pub(crate) excess: Ns,
    /// Such calls always take that long: this is their median duration.
    pub(crate) always: Option<Ns>,
}

impl SlowGroup {
    /// Threads of the longest calls.
    pub(crate) fn threads(&self) -> usize {
        let threads: FxHashSet<i32> = self.longest.iter().map(|slow| slow.utid).collect();
        threads.len()
    }

    /// Processes of the longest calls.
    pub(crate) fn processes(&self) -> usize {
        let processes: FxHashSet<i32> = self.longest.iter().map(|slow| slow.upid).collect();
        processes.len()
    }
}

pub(crate) struct Counts {
    buckets: Box<[u32]>,
    count: u64,
    /// Number and time of the calls on files and disks in the window, and the threads that made
    /// them.
    storage_calls: u64,
    on_storage: Ns,
    threads: FxHashSet<i32>,
    longest: Vec<Slow>,
    /// Random sample: each call is included with the same probability.
    drawn: Vec<Slow>,
}

fn bucket(dur: Ns) -> usize {
    (((dur.max(1) as f64).log2() * PER_OCTAVE) as usize).min(BUCKETS - 1)
}

fn middle(bucket: usize) -> f64 {
    f64::exp2((bucket as f64 + 0.5) / PER_OCTAVE)
}

impl Counts {
    pub(crate) fn new() -> Self {
        Self {
            buckets: vec![0; BUCKETS].into_boxed_slice(),
            count: 0,
            storage_calls: 0,
            on_storage: 0,
            threads: FxHashSet::default(),
            longest: Vec::new(),
            drawn: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, slow: Slow) {
        self.buckets[bucket(slow.dur)] += 1;
        self.count += 1;
        self.draw(slow);
        if self.longest.len() == KEPT * 2 {
            self.longest.sort_unstable_by(|a, b| b.cmp(a));
            self.longest.truncate(KEPT);
        }
        if slow.dur >= SLOW_MIN_NS {
            self.longest.push(slow);
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Adds the time of a call on a file or disk.
    fn add_storage(&mut self, slow: &Slow) {
        self.storage_calls += 1;
        self.on_storage += slow.dur;
        if self.threads.len() < THREADS_MAX {
            self.threads.insert(slow.utid);
        }
    }

    /// Reservoir sampling with deterministic numbers, which depend on the count of calls only.
    fn draw(&mut self, call: Slow) {
        if self.drawn.len() < DRAWN {
            self.drawn.push(call);
            return;
        }
        let number = self.count.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 11;
        let place = (number % self.count) as usize;
        if let Some(drawn) = self.drawn.get_mut(place) {
            *drawn = call;
        }
    }

    pub(crate) fn median(&self) -> f64 {
        let mut before = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            before += u64::from(*count);
            if before * 2 >= self.count {
                return middle(bucket);
            }
        }
        0.0
    }

    /// The duration above which an operation is slow, from the median and the MAD of the logarithm.
    pub(crate) fn threshold(&self) -> f64 {
        let median = self.median();
        let mut deviations: Vec<(f64, u32)> = self
            .buckets
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(bucket, count)| ((middle(bucket) / median).ln().abs(), *count))
            .collect();
        deviations.index_sort_by_ints(|one| [float_key(one.0), 0, 0]);
        let mut before = 0;
        let spread = deviations.iter().find(|(_, count)| {
            before += u64::from(*count);
            before * 2 >= self.count
        });
        let spread = 1.4826 * spread.map_or(0.0, |(deviation, _)| *deviation);
        (median * (DEVIATIONS * spread).exp()).max(MEDIANS * median)
    }
}

/// What to select: all slow calls, or calls by name and minimum duration.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) calls: Vec<String>,
    pub(crate) min: Option<Ns>,
    pub(crate) window: Option<Window>,
    pub(crate) utids: Vec<i32>,
    /// Only calls in this window are read; all if none.
    pub(crate) near: Option<Window>,
    /// Only calls with this error number, 0 for those that succeeded; all if none.
    pub(crate) errno: Option<i32>,
}

impl Wanted {
    /// Whether a call began in the window, and its thread was selected.
    fn includes(&self, slow: &Slow) -> bool {
        let is_inside = self.window.is_none_or(|window| window.contains(slow.ts));
        is_inside && (self.utids.is_empty() || self.utids.contains(&slow.utid))
    }
}

/// Calls of each name and result by each program.
pub(crate) struct Programs(FxHashMap<Like, Counts>);

/// Groups of slow calls, the one with the most time beyond the usual first. The usual durations may
/// come from the other side of a comparison.
pub(crate) fn groups(
    tables: &dyn Tables,
    wanted: &Wanted,
    elsewhere: Option<&Programs>,
) -> Result<Vec<SlowGroup>, AnalysisError> {
    let programs = programs(tables, wanted)?.0;
    let nothing = Counts::new();
    let info = tables.info();
    let window = wanted.window.map_or(info.end_ns - info.begin_ns, |window| {
        window.end.min(info.end_ns) - window.begin.max(info.begin_ns)
    });
    let finds_always = wanted.min.is_none() && wanted.near.is_none() && elsewhere.is_none();
    let mut groups: Vec<SlowGroup> = programs
        .into_iter()
        .flat_map(|(like, counts)| {
            let there = elsewhere.map(|programs| programs.0.get(&like).unwrap_or(&nothing));
            let is_always = finds_always && like.to.is_none() && counts.is_always_slow(window);
            let all = is_always.then(|| always(&like, &counts, wanted)).flatten();
            let relative = group(like, counts, there, wanted);
            // A few that are slower still are not what takes the time.
            let is_most = |all: &SlowGroup| {
                let known = relative.as_ref().map_or(0, |group| group.total);
                2 * known < all.total
            };
            let all = all.filter(is_most);
            relative.into_iter().chain(all)
        })
        .collect();
    sort(&mut groups);
    Ok(groups)
}

/// Orders groups, the one with the most time beyond the usual first.
pub(crate) fn sort(groups: &mut [SlowGroup]) {
    groups.index_sort_by(|a, b| {
        let by_excess = b.excess.cmp(&a.excess);
        by_excess.then_with(|| a.like.cmp(&b.like))
    });
}

/// Durations of calls by program, name and result.
pub(crate) fn programs(tables: &dyn Tables, wanted: &Wanted) -> Result<Programs, AnalysisError> {
    let comms = process_names(tables)?;
    let mut projection = Projection::new(SyscallRow::TABLE);
    let [ts, dur, id, utid, upid] =
        ["ts", "dur", "id", "utid", "upid"].map(|name| projection.need(name));
    let [name, op, class, path] =
        ["name", "op", "fd_class", "path"].map(|name| projection.need(name));
    let (errno, ret) = (projection.need("errno"), projection.need("ret"));
    let uncertain = Uncertain::new(tables, SyscallRow::TABLE, &mut projection)?;
    let mut found: FxHashMap<Kind, Counts> = FxHashMap::default();
    let (mut names, mut known) = (Interner::default(), PerWord::new());
    let mut completions: Vec<u32> = Vec::new();
    let tracers = tracers(tables, wanted)?;
    in_order(tables, &projection.scan(wanted.near), |batch| {
        let (ts, dur, id) = (ts.ints(batch)?, dur.ints(batch)?, id.ints(batch)?);
        let (utid, upid) = (utid.ints(batch)?, upid.ints(batch)?);
        let (name, op) = (name.texts(batch)?, op.texts(batch)?);
        let (class, path) = (class.texts(batch)?, path.texts(batch)?);
        let (errno, ret) = (errno.ints(batch)?, ret.ints(batch)?);
        let uncertain = uncertain.of(batch)?;
        let calls = known.of(&name, (UNKNOWN, false));
        for row in 0..batch.num_rows() as u32 {
            let (Some(dur), Some(word)) = (dur.get(row), name.key(row)) else {
                continue;
            };
            let is_by_tracer = || upid.get(row).is_some_and(|upid| tracers.contains(&upid));
            if uncertain.has(row) || is_by_tracer() {
                continue;
            }
            let (call, reads) = &mut calls[word];
            if *call == UNKNOWN {
                let name = name.get(row).unwrap_or("");
                *reads = is_read(name);
                *call = number_of(wanted, (name, op.get(row)), &mut names, &mut completions);
            }
            let to = name
                .get(row)
                .and_then(|name| sends_to(name, class.get(row)));
            let waits = || *reads && is_filled(class.get(row), path.get(row));
            if *call == UNWANTED || (wanted.calls.is_empty() && waits()) {
                continue;
            }
            let errno = errno.get(row).unwrap_or(0) as i32;
            if completions.contains(&*call)
                && !has_completed(names.text_of(*call), ret.get(row), errno)
            {
                continue;
            }
            if wanted.errno.is_some_and(|wanted| wanted != errno) {
                continue;
            }
            let slow = Slow {
                dur,
                id: id.at(row),
                ts: ts.at(row),
                utid: utid.get(row).unwrap_or(-1) as i32,
                upid: upid.get(row).unwrap_or(-1) as i32,
            };
            let key = (upid.get(row).unwrap_or(-1), *call, errno, to);
            let counts = found.entry(key).or_insert_with(Counts::new);
            counts.add(slow);
            let is_storage = || class.get(row).is_some_and(|class| STORAGE.contains(&class));
            if wanted.includes(&slow) && (op.get(row) == Some("sync") || is_storage()) {
                counts.add_storage(&slow);
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(Programs(by_program(found, &comms, &names)))
}

/// Processes of tracers whose calls are left out: they are of interest only if they were queried.
fn tracers(tables: &dyn Tables, wanted: &Wanted) -> Result<FxHashSet<i64>, AnalysisError> {
    if wanted.calls.is_empty() && wanted.utids.is_empty() {
        crate::tracer::processes(tables)
    } else {
        Ok(FxHashSet::default())
    }
}

/// Number of the call, or `UNWANTED`. Notes calls for completions, which are judged by what they
/// return.
fn number_of(
    wanted: &Wanted,
    (name, op): (&str, Option<&str>),
    names: &mut Interner,
    completions: &mut Vec<u32>,
) -> u32 {
    if !is_wanted(wanted, name, op) {
        return UNWANTED;
    }
    let number = names.intern(name).number();
    if wanted.calls.is_empty() && is_for_completions(name) {
        completions.push(number);
    }
    number
}

/// Process, number of the call, error number, and what it sends to.
type Kind = (i64, u32, i32, Option<&'static str>);

/// Merges processes of one name into one program: a server has many processes, each with few calls.
fn by_program(
    found: FxHashMap<Kind, Counts>,
    comms: &FxHashMap<i64, String>,
    names: &Interner,
) -> FxHashMap<Like, Counts> {
    let mut programs: FxHashMap<Like, Counts> = FxHashMap::default();
    // The sample depends on the order.
    let mut found: Vec<_> = found.into_iter().collect();
    found.index_sort_by_key(|(key, _)| *key);
    for ((upid, call, failure, to), counts) in found {
        let like = Like {
            comm: comms.get(&upid).cloned().unwrap_or_default(),
            call: names.text_of(call).to_owned(),
            failure: (failure != 0).then(|| errno::name(failure.into())),
            to,
        };
        let into = programs.entry(like).or_insert_with(Counts::new);
        into.count += counts.count;
        into.storage_calls += counts.storage_calls;
        into.on_storage += counts.on_storage;
        into.threads.extend(&counts.threads);
        for (sum, more) in into.buckets.iter_mut().zip(&counts.buckets) {
            *sum += more;
        }
        into.longest.extend(counts.longest);
        into.longest.sort_unstable_by(|a, b| b.cmp(a));
        into.longest.truncate(KEPT);
        into.drawn.extend(counts.drawn);
    }
    programs
}

/// Whether such a call waited until requests completed, rather than until its time had run out.
fn has_completed(call: &str, ret: Option<i64>, errno: i32) -> bool {
    match call {
        // The number of submitted requests, which may be none.
        "io_uring_enter" => errno == 0,
        _ => ret.is_none_or(|ret| ret > 0),
    }
}

/// Whether a call waits for the completion of requests.
pub(crate) fn is_for_completions(call: &str) -> bool {
    COMPLETIONS.contains(&call)
}

/// Whether calls of this name are not judged by their duration, whatever they operate on.
fn is_not_judged(call: &str) -> bool {
    is_wait(call) || NOT_JUDGED.contains(&call)
}

/// Whether a call waits for work, or is not judged by its duration for another reason.
pub(crate) fn has_usual_length(call: &str, class: Option<&str>, path: Option<&str>) -> bool {
    !NOT_JUDGED.contains(&call) && !waits_for_work(call, class, path)
}

/// What a call sends to, if it sends to an object of this class that has another end.
pub(crate) fn sends_to(call: &str, class: Option<&str>) -> Option<&'static str> {
    let class = class.filter(|_| SENDS.contains(&call))?;
    let known = CHANNELS.iter().find(|(name, _)| *name == class);
    known.map(|(_, text)| *text)
}

fn is_wanted(wanted: &Wanted, call: &str, op: Option<&str>) -> bool {
    if wanted.calls.is_empty() {
        return !is_not_judged(call);
    }
    // A class includes calls that wait for work: `connect` has accept, too.
    let is_of = |class: &String| Some(class.as_str()) == op && !is_not_judged(call);
    let named = |wanted: &String| wanted == call || is_of(wanted);
    wanted.calls.iter().any(named)
}

/// The usual duration of operations; none if there are too few.
pub(crate) fn baseline(like: &Like, counts: &Counts) -> Option<Baseline> {
    (counts.count >= BASELINE_MIN).then(|| Baseline {
        median_ns: counts.median() as Ns,
        count: counts.count,
        of: like.of_baseline(),
        result: like.result().to_owned(),
    })
}

/// The slow calls of one kind; none if none were slow.
pub(crate) fn group(
    like: Like,
    mut counts: Counts,
    there: Option<&Counts>,
    wanted: &Wanted,
) -> Option<SlowGroup> {
    counts.longest.sort_unstable_by(|a, b| b.cmp(a));
    let elsewhere = there.map(|there| there.count);
    let usual_of = there.filter(|there| there.count >= BASELINE_MIN);
    let basis = usual_of.unwrap_or(&counts);
    let has_baseline = basis.count >= BASELINE_MIN;
    let median = basis.median();
    let baseline = match usual_of {
        Some(there) => baseline(&like, there).map(|baseline| Baseline {
            of: format!("{} in the comparison", baseline.of),
            ..baseline
        }),
        None => baseline(&like, basis),
    };
    let threshold = match wanted.min {
        Some(min) => min as f64,
        None if has_baseline => basis.threshold().max(SLOW_MIN_NS as f64),
        // Without a baseline, a single long call still gets a finding.
        None => 100.0 * SLOW_MIN_NS as f64,
    };
    let mut usual = there.map_or(counts.drawn, |there| there.drawn.clone());
    if there.is_none() {
        usual.retain(|call| (call.dur as f64) < threshold.min(MEDIANS * median));
    }
    usual.sort_unstable_by_key(|call| (call.ts, call.id));
    let mut longest = counts.longest;
    longest.retain(|slow| {
        let end = slow.ts + slow.dur;
        slow.dur as f64 >= threshold
            && wanted
                .window
                .is_none_or(|window| window.overlaps(slow.ts, Some(end)))
            && (wanted.utids.is_empty() || wanted.utids.contains(&slow.utid))
    });
    if longest.is_empty() {
        return None;
    }
    let total: Ns = longest.iter().map(|slow| slow.dur).sum();
    let expected = if has_baseline {
        median as Ns * longest.len() as Ns
    } else {
        0
    };
    Some(SlowGroup {
        baseline,
        like,
        count: longest.len() as u64,
        total,
        excess: total - expected,
        longest,
        usual,
        elsewhere,
        always: None,
    })
}

/// Name of each process.
pub(crate) fn process_names(tables: &dyn Tables) -> Result<FxHashMap<i64, String>, AnalysisError> {
    let mut projection = Projection::new(ProcessRow::TABLE);
    let (upid, comm) = (projection.need("upid"), projection.need("comm"));
    let mut found = FxHashMap::default();
    in_order(tables, &projection.scan(None), |batch| {
        let (upid, comm) = (upid.ints(batch)?, comm.texts(batch)?);
        for row in 0..batch.num_rows() as u32 {
            found.insert(upid.at(row), comm.get(row).unwrap_or("").to_owned());
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}
