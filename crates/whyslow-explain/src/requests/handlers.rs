//! What the handler threads of a queue did while a request waited in it.
//!
//! Any idle handler would have taken the request. So the wait is attributed to what all of them did
//! in that time, in equal parts: their walks are added up and divided by their number. Which
//! handler took the request is not known, so the grade is B at most.
//!
//! The handlers are identified from requests seen at sockets: threads that were handed a request
//! without reading it from the connection, and threads of the same pool. Otherwise, for a Kafka
//! broker, by name. The kernel's names have 15 bytes: a JVM up to version 20 truncates
//! `data-plane-kafka-request-handler-3` to `data-plane-kafk`, a name that network threads have as
//! well, which are distinguished by their calls; later versions omit the middle
//! (`data-pl..dler-3`).

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_analysis::{AnalysisError, pattern_of, pool_of};
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::{RequestRow, RequestThreadRow, SyscallRow, ThreadRow, ThreadStateRow};
use whyslow_model::{Ns, Symbols, Window};
use whyslow_store::{Tables, each_row};

use crate::finding::{self, Subject};
use crate::report::{Actor, ActorKind, Grade, Hop, Missing, Part};
use crate::sentence::{self, Clause};

/// Maximum number of handlers that are examined.
const THREADS_MAX: usize = 64;
/// Minimum share of the time for a state or call to be named.
const CALL_MIN: f64 = 0.2;
/// System calls of threads that wait for connections.
const LOOPS: [&str; 7] = [
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "poll",
    "ppoll",
    "select",
    "pselect6",
];
/// The victim in the clauses of [`Busy`].
const HANDLER: &str = "a handler";
/// Waiting for a request, according to wakeups.
const IDLE: &str = "producer_idle";

/// The handler threads of one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Handlers {
    /// Name of the pool, with `N` for numbers.
    pub(super) name: String,
    pub(super) pid: Option<i32>,
    /// Recording-unique and kernel thread ids.
    threads: Vec<(i32, i32)>,
}

/// What the handlers did in a window.
#[derive(Debug, Clone)]
pub(super) struct Busy {
    pub(super) handlers: Handlers,
    /// Their parts, added up and divided by their number; greatest first. The durations add up to
    /// at most the window.
    pub(super) parts: Vec<Part>,
    /// Index of the largest part with a known cause, and the effect on a handler.
    clause: Option<(usize, Clause)>,
    /// Chain of the handler with the longest attributed time.
    pub(super) chain: Vec<Hop>,
    pub(super) missing: Vec<Missing>,
    /// Share of their time in which they waited for requests.
    pub(super) idle: f64,
    /// Shares of their time by state, and by call with its path pattern; greatest first.
    states: Vec<(String, f64)>,
    calls: Vec<(String, f64)>,
}

/// A thread with its name and ids.
struct Named {
    utid: i32,
    upid: Option<i32>,
    tid: i32,
    pid: Option<i32>,
    name: String,
}

impl Handlers {
    /// None if the handlers cannot be identified. `port` is that of the server, as text.
    pub(super) fn of(
        tables: &dyn Tables,
        window: Window,
        (port, is_kafka): (Option<&str>, bool),
    ) -> Result<Option<Self>, AnalysisError> {
        let mut symbols = Symbols::new();
        let mut threads: Vec<Named> = Vec::new();
        each_row::<ThreadRow>(tables, None, &mut symbols, |row, symbols| {
            if let Some(name) = row.runtime_name.or(row.comm) {
                threads.push(Named {
                    utid: row.utid,
                    upid: row.upid,
                    tid: row.tid,
                    pid: row.pid,
                    name: symbols.get(name).to_owned(),
                });
            }
            Ok(())
        })?;
        let handoffs = Handoffs::read(tables, port)?;
        let process = handoffs.process();
        let handed = handoffs.handed.get(&process);
        let of_process = |thread: &&Named| thread.upid == process && process.is_some();
        let pools: BTreeSet<String> = threads
            .iter()
            .filter(of_process)
            .filter(|thread| handed.is_some_and(|handed| handed.contains(&thread.utid)))
            .map(|thread| pool_of(&thread.name).into_owned())
            .collect();
        let mut found: Vec<&Named> = threads
            .iter()
            .filter(of_process)
            .filter(|thread| pools.contains(pool_of(&thread.name).as_ref()))
            .filter(|thread| !handoffs.readers.contains(&thread.utid))
            .collect();
        if found.is_empty() && is_kafka {
            found = by_name(tables, window, &threads)?;
        }
        found.index_sort_by_ints(|thread| [thread.tid.into(), thread.utid.into(), 0]);
        found.truncate(THREADS_MAX);
        let Some(first) = found.first() else {
            return Ok(None);
        };
        Ok(Some(Self {
            name: pool_of(&first.name).into_owned(),
            pid: first.pid,
            threads: found
                .iter()
                .map(|thread| (thread.utid, thread.tid))
                .collect(),
        }))
    }

    pub(super) fn count(&self) -> usize {
        self.threads.len()
    }

    fn actor(&self, kind: ActorKind) -> Actor {
        Actor {
            kind,
            name: self.name.clone(),
            pid: self.pid,
            tid: None,
            host: None,
        }
    }

    /// What they did from `begin` to `end`.
    pub(super) fn busy(
        self,
        tables: &dyn Tables,
        (begin, end): (Ns, Ns),
        recording: &str,
    ) -> Result<Busy, AnalysisError> {
        let subject = |(utid, tid): &(i32, i32)| Subject {
            utid: *utid,
            begin,
            end,
            kind: "thread",
            id: None,
            what: "a handler".into(),
            cut: None,
            only_waits: false,
            baseline: None,
            reproduce: format!(
                "whyslow explain {recording} -w {} -t {tid}",
                sentence::window(begin, end)
            ),
            recording: recording.to_owned(),
        };
        let subjects: Vec<Subject> = self.threads.iter().map(subject).collect();
        let findings = finding::findings(tables, &subjects)?;
        let longest = findings
            .iter()
            .max_by_key(|finding| finding.saved_at_most_ns);
        let chain = longest.map_or_else(Vec::new, |finding| finding.chain.clone());
        let missing = longest.map_or_else(Vec::new, |finding| finding.missing.clone());
        let mut parts = self.summed(findings.into_iter().flat_map(|finding| finding.parts));
        let (count, length) = (self.count().max(1) as Ns, (end - begin).max(1));
        let of_all = |ns: Ns| ns as f64 / (count * length) as f64;
        let is_idle = |part: &&Part| part.root == IDLE;
        let idle = parts.iter().filter(is_idle).map(|part| part.dur_ns).sum();
        let is_known = |part: &Part| !matches!(part.root.as_str(), "unknown" | "lost" | IDLE);
        let greatest = parts.iter().position(is_known);
        let clause = greatest.map(|place| (place, sentence::clause(&parts[place], HANDLER)));
        for part in &mut parts {
            part.dur_ns /= count;
            part.share = part.dur_ns as f64 / length as f64;
            part.grade = part.grade.min(Grade::B);
            if part.culprit.kind == ActorKind::Own {
                part.culprit = self.actor(ActorKind::Process);
            }
        }
        let states = shares(states(tables, &self, (begin, end))?, of_all);
        let calls = shares(calls(tables, &self, (begin, end))?, of_all);
        Ok(Busy {
            clause,
            parts,
            chain,
            missing,
            idle: of_all(idle),
            states,
            calls,
            handlers: self,
        })
    }

    /// Merges equal parts of several handlers, the greatest first.
    fn summed(&self, parts: impl Iterator<Item = Part>) -> Vec<Part> {
        let mut sums: BTreeMap<String, Part> = BTreeMap::new();
        for mut part in parts {
            // Handlers that wait for each other count as one culprit.
            let tid = part.culprit.tid;
            if tid.is_some_and(|tid| self.threads.iter().any(|(_, one)| *one == tid)) {
                part.culprit = self.actor(part.culprit.kind);
            }
            let object = part.object.as_ref().map(|thing| &thing.name);
            let culprit = &part.culprit;
            let key = format!(
                "{} {} {:?} {:?} {:?} {object:?}",
                part.mechanism, part.root, culprit.kind, culprit.name, culprit.pid
            );
            let Some(sum) = sums.get_mut(&key) else {
                sums.insert(key, part);
                continue;
            };
            let is_longer = part.dur_ns > sum.dur_ns;
            let (dur_ns, pieces) = (sum.dur_ns + part.dur_ns, sum.pieces + part.pieces);
            let grade = sum.grade.min(part.grade);
            if is_longer {
                *sum = part;
            }
            (sum.dur_ns, sum.pieces, sum.grade) = (dur_ns, pieces, grade);
        }
        let mut parts: Vec<Part> = sums.into_values().collect();
        parts.index_sort_by_key(|part| std::cmp::Reverse(part.dur_ns));
        parts
    }
}

impl Busy {
    /// The part with most of their time, and its effect on a handler.
    pub(super) fn greatest(&self) -> Option<(&Part, &Clause)> {
        let (place, clause) = self.clause.as_ref()?;
        Some((&self.parts[*place], clause))
    }

    /// `the 8 threads data-plane-kafka-request-handler-N[812]`.
    pub(super) fn names(&self) -> String {
        let handlers = &self.handlers;
        let pid = handlers
            .pid
            .map_or_else(String::new, |pid| format!("[{pid}]"));
        let count = handlers.count();
        let threads = if count == 1 { "thread" } else { "threads" };
        format!("the {count} {threads} {}{pid}", handlers.name)
    }

    /// Where their time went by state and call.
    pub(super) fn time_by_activity(&self) -> String {
        let list = |of: &[(String, f64)], word: &str| -> Vec<String> {
            let much = of.iter().filter(|(_, share)| *share >= CALL_MIN).take(2);
            much.map(|(name, share)| format!("{} {word}{name}", sentence::percent(*share)))
                .collect()
        };
        let mut shares = list(&self.states, "");
        shares.extend(list(&self.calls, "in "));
        if shares.is_empty() {
            "no states or system calls recorded".into()
        } else {
            shares.join(", ")
        }
    }
}

/// Threads that handled requests, as seen at sockets.
#[derive(Default)]
struct Handoffs {
    /// Threads that were handed a request, by process.
    handed: BTreeMap<Option<i32>, FxHashSet<i32>>,
    readers: FxHashSet<i32>,
    /// Number of requests handed over within a process.
    count: BTreeMap<Option<i32>, u64>,
}

impl Handoffs {
    fn read(tables: &dyn Tables, port: Option<&str>) -> Result<Self, AnalysisError> {
        let mut symbols = Symbols::new();
        let mut of_port: FxHashSet<i64> = FxHashSet::default();
        each_row::<RequestRow>(tables, None, &mut symbols, |row, symbols| {
            let local = row.local.map(|sym| symbols.get(sym));
            let own = local.and_then(|local| local.rsplit_once(':'));
            let is_of = port.is_none() || own.map(|(_, own)| own) == port;
            if row.utid.is_some() && symbols.get(row.role) == "server" && is_of {
                of_port.insert(row.id);
            }
            Ok(())
        })?;
        let mut found = Self::default();
        each_row::<RequestThreadRow>(tables, None, &mut symbols, |row, symbols| {
            if !of_port.contains(&row.request) {
                return Ok(());
            }
            match symbols.get(row.received_by) {
                "read" => {
                    found.readers.insert(row.utid);
                }
                "write" | "socket" => {}
                _ => {
                    found.handed.entry(row.upid).or_default().insert(row.utid);
                    *found.count.entry(row.upid).or_default() += 1;
                }
            }
            Ok(())
        })?;
        for handed in found.handed.values_mut() {
            handed.retain(|utid| !found.readers.contains(utid));
        }
        Ok(found)
    }

    /// The process with most of the requests handed over.
    fn process(&self) -> Option<i32> {
        let most = self
            .count
            .iter()
            .max_by_key(|(upid, count)| (**count, **upid));
        most.and_then(|(upid, _)| *upid)
    }
}

/// Handlers of a Kafka broker; if there are several, of the one with most threads.
fn by_name<'t>(
    tables: &dyn Tables,
    window: Window,
    threads: &'t [Named],
) -> Result<Vec<&'t Named>, AnalysisError> {
    let is_whole = |name: &str| {
        let is_short = name.starts_with("data-pl..") && name.contains("ler-");
        name.contains("kafka-request-handler") || is_short
    };
    let mut of: BTreeMap<Option<i32>, Vec<&Named>> = BTreeMap::new();
    for thread in threads.iter().filter(|thread| is_whole(&thread.name)) {
        of.entry(thread.upid).or_default().push(thread);
    }
    if of.is_empty() {
        let loops = loops(tables, window)?;
        let is_cut = |name: &str| name == "data-plane-kafk" || name == "data-plane-kaf";
        let cut = threads.iter().filter(|thread| is_cut(&thread.name));
        for thread in cut.filter(|thread| !loops.contains(&thread.utid)) {
            of.entry(thread.upid).or_default().push(thread);
        }
    }
    let most = of.into_iter().max_by_key(|(upid, of)| (of.len(), *upid));
    Ok(most.map(|(_, of)| of).unwrap_or_default())
}

/// Threads that wait for connections in the window.
fn loops(tables: &dyn Tables, window: Window) -> Result<FxHashSet<i32>, AnalysisError> {
    let mut found = FxHashSet::default();
    each_row::<SyscallRow>(tables, Some(window), &mut Symbols::new(), |row, symbols| {
        if LOOPS.contains(&symbols.get(row.name)) {
            found.extend(row.utid);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Total time of all handlers by name, ns.
type Times = FxHashMap<String, Ns>;

fn shares(times: Times, of_all: impl Fn(Ns) -> f64) -> Vec<(String, f64)> {
    let mut shares: Vec<(String, f64)> = times
        .into_iter()
        .map(|(name, ns)| (name, of_all(ns)))
        .collect();
    shares
        .index_sort_by(|(name_a, a), (name_b, b)| b.total_cmp(a).then_with(|| name_a.cmp(name_b)));
    shares
}

fn states(
    tables: &dyn Tables,
    handlers: &Handlers,
    (begin, end): (Ns, Ns),
) -> Result<Times, AnalysisError> {
    let of: FxHashSet<i32> = handlers.threads.iter().map(|(utid, _)| *utid).collect();
    let mut times = Times::default();
    let window = Some(Window { begin, end });
    each_row::<ThreadStateRow>(tables, window, &mut Symbols::new(), |row, symbols| {
        let inside = row.ts_end.unwrap_or(end).min(end) - row.ts.max(begin);
        if row.utid.is_some_and(|utid| of.contains(&utid)) && inside > 0 {
            *times.entry(symbols.get(row.state).to_owned()).or_default() += inside;
        }
        Ok(())
    })?;
    Ok(times)
}

/// Time by system call with its path pattern.
fn calls(
    tables: &dyn Tables,
    handlers: &Handlers,
    (begin, end): (Ns, Ns),
) -> Result<Times, AnalysisError> {
    let of: FxHashSet<i32> = handlers.threads.iter().map(|(utid, _)| *utid).collect();
    let mut times = Times::default();
    let window = Some(Window { begin, end });
    each_row::<SyscallRow>(tables, window, &mut Symbols::new(), |row, symbols| {
        let inside = row.ts_end.unwrap_or(end).min(end) - row.ts.max(begin);
        if row.utid.is_some_and(|utid| of.contains(&utid)) && inside > 0 {
            let name = symbols.get(row.name);
            let name = row.path.map_or_else(
                || name.to_owned(),
                |path| format!("{name}({})", pattern_of(symbols.get(path))),
            );
            *times.entry(name).or_default() += inside;
        }
        Ok(())
    })?;
    Ok(times)
}
