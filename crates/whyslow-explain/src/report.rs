//! The result of `explain` as data. Text, Markdown and JSON are generated from it and cannot
//! differ.
//!
//! Times are ns since the epoch, durations ns. Field names are those of the JSON form, which only
//! grows within one version of [`SCHEMA`].

// tidy: long because each field of the report is documented where it is declared.

use serde::Serialize;
use whyslow_model::Ns;

use crate::page::{Page, Resource};
use crate::trigger::Trigger;

/// Value of [`Report::schema`]; the version changes when fields are removed or changed.
pub const SCHEMA: &str = "whyslow.explain.v2";

/// What a claim rests on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Grade {
    /// Both happened at the same time.
    #[default]
    C,
    /// Nothing else in the recording can be the cause.
    B,
    /// The same request, lock, packet or thread was seen on both sides.
    A,
}

impl Grade {
    /// The conjunction that a sentence may use.
    pub fn verb(self) -> &'static str {
        match self {
            Grade::A => "because",
            Grade::B => "most likely because",
            Grade::C => "overlapped with",
        }
    }
}

/// How sure the named culprit is: what the score allows, limited by the conditions of
/// `whyslow-explain/src/levels.rs`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// No culprit dominates.
    #[default]
    None,
    /// A culprit is named with [`Finding::score`] of at least 0.3, or because it overlaps with most
    /// of the time; or the chain is a dead end, such as a peer that did not reply.
    Low,
    /// [`Finding::score`] is at least 0.5; a link of the chain may be inferred.
    Medium,
    /// [`Finding::score`] is at least 0.75, and every link of the chain is proven.
    High,
}

/// What kind of thing a culprit or a step of the chain is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ActorKind {
    /// The thread or process that is explained.
    Own,
    /// Another process of users.
    Process,
    /// A kernel thread that worked for no known process.
    Kernel,
    /// A block device.
    Device,
    /// A host on the network.
    Peer,
    /// A timer.
    Timer,
    /// A cgroup that reached its limit.
    Cgroup,
    /// An interrupt handler or softirq.
    Interrupt,
    /// A CPU that stood still.
    Cpu,
    /// Not known from what was recorded.
    #[default]
    Unknown,
}

/// A culprit, a victim, or a step of the chain.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Actor {
    /// What kind of actor.
    pub kind: ActorKind,
    /// Name of the thread, device, host or control group.
    pub name: String,
    /// Kernel ids of processes and threads.
    pub pid: Option<i32>,
    /// Kernel thread id; `None` for a process, a device, a host.
    pub tid: Option<i32>,
    /// Host of another recording in which it was seen; none for the recording that is explained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

impl Actor {
    /// Whether both are one culprit of a thread in process `victim`: threads of another process
    /// count together, those of the same process by name.
    pub(crate) fn is_culprit_with(&self, other: &Self, victim: Option<i32>) -> bool {
        self.culprit_key(victim) == other.culprit_key(victim)
    }

    /// What [`Self::is_culprit_with`] compares.
    pub(crate) fn culprit_key(
        &self,
        victim: Option<i32>,
    ) -> (ActorKind, &str, Option<i32>, Option<&str>) {
        let is_other = self.kind == ActorKind::Process && self.pid.is_some() && self.pid != victim;
        let name = if is_other { "" } else { self.name.as_str() };
        (self.kind, name, self.pid, self.host.as_deref())
    }
}

/// What an actor did at that time: usually a system call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Activity {
    /// Name of the system call, or of another activity.
    pub call: String,
    /// File, device or address that it operated on.
    pub path: Option<String>,
    /// When it began.
    pub begin_ns: Ns,
    /// Null if it was still in progress.
    pub end_ns: Option<Ns>,
    /// Id for other commands: `op:17`.
    pub id: Option<String>,
}

/// The object of an action or a wait.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Thing {
    /// device, file, lock, futex, peer, cgroup, cpu, function, irq, journal, phase, endpoint;
    /// children: the short-lived processes that the culprit started; way: the network round trip
    /// between this host and another one.
    pub kind: String,
    /// Path, address or name.
    pub name: String,
}

/// Time of the window that is attributed to one culprit and one mechanism.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Part {
    /// What the slow thread waited for: id of [`whyslow_model::mechanism::MECHANISMS`]. For a
    /// culprit on another host, what the thread that served the request there waited for.
    pub mechanism: String,
    /// What the culprit did at the end of the chain, by the same ids.
    pub root: String,
    /// The actor that the time is attributed to.
    pub culprit: Actor,
    /// What it did at that time.
    pub activity: Option<Activity>,
    /// The object of the wait or the activity.
    pub object: Option<Thing>,
    /// The client whose request the culprit served at that time, if it is another one than the
    /// slow thread's process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<Actor>,
    /// Duration in ns.
    pub dur_ns: Ns,
    /// Share of the window.
    pub share: f64,
    /// Grade of the weakest link to the culprit.
    pub grade: Grade,
    /// Number of intervals it consists of.
    pub pieces: u64,
    /// Rows that support it, as ids for other commands: `op:17`, `block:5`, …
    pub evidence: Vec<String>,
    /// The command that shows it.
    pub shown_by: Option<String>,
}

/// One step of the chain from the slow operation to the culprit.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Hop {
    /// The actor that waited, or that worked at the end of the chain.
    pub actor: Actor,
    /// waited, ran, was runnable, held the lock, caused the wait, …
    pub what: String,
    /// Id of [`whyslow_model::mechanism::MECHANISMS`].
    pub mechanism: String,
    /// What the actor did at that time.
    pub activity: Option<Activity>,
    /// The object of the step.
    pub object: Option<Thing>,
    /// Kernel functions, innermost first.
    pub stack: Vec<String>,
    /// Functions of the program according to profiler samples of that time, innermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub program: Vec<String>,
    /// When the step began.
    pub begin_ns: Ns,
    /// When it ended.
    pub end_ns: Ns,
    /// How well the step is supported.
    pub grade: Grade,
    /// The evidence for this step: an id, or a sentence.
    pub evidence: String,
    /// The command that shows it.
    pub shown_by: Option<String>,
}

/// What was explained.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Target {
    /// operation, lookup, query, request, block, reclaim, thread, window, device, lock, call; of
    /// profiles also gap.
    pub kind: String,
    /// `op:17`, `block:3`, if it is one row of the recording.
    pub id: Option<String>,
    /// Description: `openat /var/lib/php/sessions/sess_…`.
    pub what: String,
    /// The victim: thread or process.
    pub actor: Actor,
    /// When it began.
    pub begin_ns: Ns,
    /// When it ended; the end of the recording if it was still in progress.
    pub end_ns: Ns,
    /// Which ends lie outside of the recording: begin, end, both; lost if events were lost between
    /// start and end, which may belong to different operations.
    pub cut: Option<String>,
}

/// The usual duration of such an operation.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Baseline {
    /// Median duration in ns.
    pub median_ns: Ns,
    /// Number of operations.
    pub count: u64,
    /// Which operations these are, with their result.
    pub of: String,
    /// Result that all of them have, as the explained operation: ok, an error name (ENOENT), a
    /// class of status codes (2xx), an outcome; empty if results are not known.
    pub result: String,
}

/// Events that were not recorded, and what they would show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// Which events are missing.
    pub events: String,
    /// What they would show.
    pub decides: String,
    /// Command that records them.
    pub record_with: String,
}

/// Another explanation of at least 15 % of the time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alternative {
    /// Index of the part.
    pub part: usize,
    /// The explanation as a sentence.
    pub summary: String,
}

/// An actor that was busy at the same time; the overlap alone does not make it a cause.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Neighbour {
    /// The busy actor.
    pub actor: Actor,
    /// What it did: `12.3 MiB of disk I/O`.
    pub what: String,
    /// Bytes of its block requests; null if it is listed for its CPU time.
    pub bytes: Option<i64>,
    /// Its CPU time; null if it is listed for its I/O.
    pub cpu_ns: Option<Ns>,
}

/// Slow operations that one finding represents.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Group {
    /// What the operations have in common.
    pub operation: String,
    /// Number of slow operations.
    pub count: u64,
    /// Number of all such operations, slow or not; null if it is not known.
    pub all: Option<u64>,
    /// Sum of their durations in ns.
    pub dur_ns_total: Ns,
    /// Longest of them in ns.
    pub dur_ns_max: Ns,
    /// Slow operations of the group with a followed wait chain.
    pub walked: u64,
    /// Other operations of the kind that they were compared with.
    pub compared: u64,
    /// What the slow operations spend more time on.
    pub excess: Vec<Excess>,
    /// Threads of the slow operations, as far as they are known.
    #[serde(skip)]
    pub(crate) threads: usize,
    /// Such operations are always slow: there is no usual duration to compare them with.
    #[serde(skip)]
    pub(crate) is_always: bool,
    /// Processes of these threads; 0 if they are not known.
    #[serde(skip)]
    pub(crate) processes: usize,
    /// Further slow operations with a followed wait chain, the longest first.
    #[serde(skip)]
    pub(crate) others: Vec<Followed>,
}

/// A slow operation of a group besides the explained one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Followed {
    pub(crate) actor: Actor,
    /// `openat(/srv/a)`.
    pub(crate) what: String,
    pub(crate) id: String,
    pub(crate) begin_ns: Ns,
    pub(crate) end_ns: Ns,
    /// It has the culprit of the finding.
    pub(crate) is_same: bool,
}

/// Additional time of the slow operations of a kind, compared with the others, on average.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Excess {
    /// Id of [`whyslow_model::mechanism::MECHANISMS`].
    pub mechanism: String,
    /// The actor that the time is attributed to.
    pub culprit: Actor,
    /// Difference of the means.
    pub delta_ns: Ns,
    /// Share of all additional time …
    pub share: f64,
    /// … and the lower end of its 95 % interval.
    pub share_low: f64,
    /// Upper end of that interval.
    pub share_high: f64,
    /// Share of the slow operations in which this is the largest excess.
    pub dominance: f64,
}

/// A lock that takes a large share of the time of the threads that need it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contention {
    /// futex, file lock, or the kind of a kernel lock: mutex, rwsem, …
    pub kind: String,
    /// Address of the lock, or path of the file.
    pub lock: String,
    /// The thread that held it for most of the examined waits.
    pub holder: Actor,
    /// Share of the time of these waits in which it held the lock.
    pub holder_share: f64,
    /// Number of threads that the lock blocks.
    pub threads: u64,
    /// Number of waits of all threads.
    pub waits: u64,
    /// Sum of these waits in ns.
    pub waited_ns: Ns,
    /// Time in which at least one thread waited, ns.
    pub wall_ns: Ns,
    /// Mean share of their time that the blocked threads waited, from the first to the last wait.
    pub share: f64,
    /// When the last wait ended.
    pub end_ns: Ns,
    /// Functions of the program in which a thread waited, innermost first; empty without a stack.
    pub callsite: Vec<String>,
}

/// Comparison with another window, or another recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Versus {
    /// The other recording; the same one for another window.
    pub recording: String,
    /// Start of the window there.
    pub begin_ns: Ns,
    /// End of the window there.
    pub end_ns: Ns,
    /// What times are divided by: call, or second (of a window).
    pub per: String,
    /// Operations or threads that were walked here.
    pub here: u64,
    /// Operations or threads that were walked there.
    pub there: u64,
    /// Mean duration here.
    pub mean_here_ns: Ns,
    /// Mean duration there; null if there is nothing to compare with.
    pub mean_there_ns: Option<Ns>,
    /// Greatest first.
    pub differences: Vec<Difference>,
}

/// Time attributed to one culprit and one mechanism, here and there.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// Id of [`whyslow_model::mechanism::MECHANISMS`].
    pub mechanism: String,
    /// The actor that the time is attributed to.
    pub culprit: Actor,
    /// Mean time here, per [`Versus::per`].
    pub here_ns: Ns,
    /// Mean time there.
    pub there_ns: Ns,
}

/// Other slow operations with the same culprit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Also {
    /// What the operations have in common.
    pub what: String,
    /// Id of the longest of them, for other commands: `op:17`.
    pub id: Option<String>,
    /// Thread or process that did them.
    pub actor: Actor,
    /// Start of the longest.
    pub begin_ns: Ns,
    /// Duration of the longest.
    pub dur_ns: Ns,
    /// Number of operations.
    pub count: u64,
}

/// Calls of one kind that the threads of a request made on files of one path pattern.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Did {
    /// Name of the system call.
    pub call: String,
    /// Path pattern of the files; null for calls without a file.
    pub path: Option<String>,
    /// Number of calls.
    pub count: u64,
    /// Sum of their durations in ns.
    pub dur_ns: Ns,
    /// Share of the duration of the request.
    pub share: f64,
    /// Bytes that they transferred; null for calls that transfer none.
    pub bytes: Option<i64>,
    /// Id of the longest, for other commands: `op:17`.
    pub id: String,
}

/// A known pattern of behaviour: short-lived temporary files, a flooded log, …
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Observation {
    /// temporary_files, log_flood, fsync_neighbour, metadata_storm, old_data, misbehaving_disk,
    /// device_differs, slow_device, device_busy, slow_lookup, request_flood, error_burst, …
    pub kind: String,
    /// The actor that does it.
    pub culprit: Actor,
    /// The file, device or endpoint that it affects.
    pub object: Option<Thing>,
    /// First time at which it was seen.
    pub begin_ns: Ns,
    /// Last time at which it was seen.
    pub end_ns: Ns,
    /// The observation as a sentence.
    pub summary: String,
    /// Name and value; the name has the unit.
    pub numbers: Vec<(String, f64)>,
    /// Rows that support it, as ids for other commands: `op:17`, `block:5`, …
    pub evidence: Vec<String>,
    /// The command that shows it.
    pub shown_by: Option<String>,
    /// What to do about it.
    pub suggestions: Vec<String>,
}

/// Which pattern of slowness many operations or requests show.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pattern {
    /// heavy_load, shifted, one_device, one_operation, periodic, rare_contention, insufficient.
    pub class: String,
    /// The conclusion as a sentence.
    pub summary: String,
    /// Test, whether it fired, and its numbers as a sentence.
    pub tests: Vec<(String, bool, String)>,
    /// Known constants near the durations: hints, never verdicts.
    pub hints: Vec<String>,
    /// Figures by name: `items`, `slow`, `episodes`, and those of tests as `T2.delta`.
    pub numbers: Vec<(String, f64)>,
    /// Number of further operations that would suffice if the evidence is insufficient.
    pub more: Option<u64>,
}

/// Bounds on how far the clock of another host was ahead of that of the host before it, at the time
/// of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClockBounds {
    /// Smallest offset that the pairs allow.
    pub low_ns: Ns,
    /// Largest offset that the pairs allow.
    pub high_ns: Ns,
    /// Number of requests and packets seen on both sides, which the bounds are derived from.
    pub pairs: u64,
}

/// A request that went to another host, and what that host's recording shows of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Crossing {
    /// Host of the client; none for the host that is explained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_host: Option<String>,
    /// Id of the request in the client's recording.
    pub request: i64,
    /// Recording of the server; null if no recording has the request.
    pub recording: Option<String>,
    /// Name of the host that served the request.
    pub host: Option<String>,
    /// Id of the request there.
    pub server_request: Option<i64>,
    /// connection (addresses and ports), trace.
    pub joined_by: Option<String>,
    /// Grade of the join.
    pub grade: Grade,
    /// How long the client waited for it, within the explained window.
    pub waited_ns: Ns,
    /// Time of that wait on the server …
    pub served_ns: Ns,
    /// … and in transit, in both directions together; correct whatever the clock offset is.
    pub between_ns: Ns,
    /// Null if no bounds are known.
    pub clock: Option<ClockBounds>,
    /// Number of pairs that contradict the others: then no offset is claimed and nothing is
    /// followed.
    pub contradicting: u64,
    /// The crossing as a sentence.
    pub summary: String,
}

/// A wait for a reply from another host, which this recording cannot follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RemoteWait {
    /// Index of the part that it belongs to.
    pub(crate) part: usize,
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    pub(crate) by: Waiter,
}

/// What waited for another host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiter {
    /// A thread, by its `utid`.
    Thread(i32),
    /// A request of a client, by its id.
    Request(i64),
}

/// What is needed to rewrite a finding when its waits for other hosts are followed.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Remote {
    pub(crate) waits: Vec<RemoteWait>,
    /// Start of the verdict: what took how long.
    pub(crate) head: String,
    /// The verdict.
    pub(crate) summary: String,
    /// The duration is usual for such operations.
    pub(crate) is_usual: bool,
}

/// Why one operation, or a group of them, was slow.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Finding {
    /// What was explained.
    pub target: Target,
    /// Whether it made the flight recorder save the recording.
    pub is_trigger: bool,
    /// The sentences and the drawing that are shown first.
    #[serde(flatten)]
    pub page: Page,
    /// Operations that it represents; null for a single one.
    pub group: Option<Group>,
    /// The lock that the operations wait for, if it always blocks several threads; otherwise null.
    pub contention: Option<Contention>,
    /// Null without a comparison.
    pub versus: Option<Versus>,
    /// Null if there are too few such operations.
    pub baseline: Option<Baseline>,
    /// The conclusion as a sentence.
    pub verdict: String,
    /// Confidence in the named culprit.
    pub confidence: Confidence,
    /// What the confidence is derived from, 0–1.
    pub score: f64,
    /// Index of the part with the named culprit; null if none dominates.
    pub culprit: Option<usize>,
    /// Where the time went; the durations add up to the window exactly.
    pub parts: Vec<Part>,
    /// From the operation to the culprit.
    pub chain: Vec<Hop>,
    /// Time of the parts without a known cause (lost events, nothing recorded), ns.
    pub unexplained_ns: Ns,
    /// Time that removing the culprit saves at most.
    pub saved_at_most_ns: Ns,
    /// Other parts that explain at least 15 % of the time.
    pub alternatives: Vec<Alternative>,
    /// Other slow operations that the same culprit explains.
    pub also: Vec<Also>,
    /// Busy actors; causality is not established.
    pub neighbours: Vec<Neighbour>,
    /// Events that were not recorded and would show more.
    pub missing: Vec<Missing>,
    /// What to do about the mechanism and the culprit.
    pub suggestions: Vec<String>,
    /// What a reader must know: losses, missing events, limits.
    pub caveats: Vec<String>,
    /// The command that reproduces this finding.
    pub reproduce: String,
    /// Requests to other hosts that it waited for, if recordings of such hosts were given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub across: Vec<Crossing>,
    /// The calls that a request consisted of, by call and path pattern; those with the most time
    /// first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub did: Vec<Did>,
    /// The other request that kept the culprit busy, as a clause.
    #[serde(skip)]
    pub(crate) behind: Option<String>,
    #[serde(skip)]
    pub(crate) remote: Remote,
}

/// A marker that a user added, and the first slow operation near it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MarkNote {
    /// Time of the marker.
    pub ts_ns: Ns,
    /// Text of the marker.
    pub text: String,
    /// Id of the operation, for other commands: `request:5`, `op:17`; null if none is near.
    pub id: Option<String>,
    /// The operation as a sentence.
    pub summary: String,
}

/// Whether the recording could show what was slow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Judged {
    /// There are findings, observations or patterns.
    #[default]
    Findings,
    /// Nothing was slow, and the recording would have shown it.
    NothingSlow,
    /// The recording cannot show it, for [`Report::reasons`].
    CannotTell,
}

/// Why a recording cannot show what was slow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// nothing_recorded, calls_not_recorded, no_operations, averages_only, events_lost,
    /// no_requests.
    pub id: &'static str,
    /// The reason as a clause.
    pub summary: String,
    /// What to do about it, with a command.
    pub next: String,
}

/// The result of one command.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Whether something was found, nothing was slow, or neither can be said.
    pub judged: Judged,
    /// Why neither can be said; otherwise empty.
    pub reasons: Vec<Reason>,
    /// Name of the recording in commands.
    pub recording: String,
    /// Start of the window that was explained.
    pub begin_ns: Ns,
    /// End of that window.
    pub end_ns: Ns,
    /// What made the flight recorder save the recording; null for other recordings.
    pub trigger: Option<Trigger>,
    /// Markers of users, with the first slow operation near each.
    pub marks: Vec<MarkNote>,
    /// Explanations of single operations and of groups.
    pub findings: Vec<Finding>,
    /// Events lost in the window; null if losses of an unknown number of events were reported.
    pub lost_events: Option<u64>,
    /// Share of the window in which events were lost, on average over the CPUs.
    pub lost_share: f64,
    /// Verdicts on resources in the window, independent of the findings.
    pub fine: Vec<Resource>,
    /// Known patterns of behaviour, independent of any operation.
    pub observations: Vec<Observation>,
    /// Patterns of slowness over many operations.
    pub patterns: Vec<Pattern>,
    /// CPU time of the recorder or tracer itself per elapsed time, 1 for one CPU; null if it is not
    /// known.
    pub tracer_share: Option<f64>,
    /// Caveats of the whole report.
    pub caveats: Vec<String>,
    /// One operation or the time of selected threads was explained: all evidence is shown.
    #[serde(skip)]
    pub is_single: bool,
}
