//! What `explain` says, as data: text, Markdown and JSON are made from it and cannot differ.
//!
//! Times are ns since the epoch, lengths ns. The names of the fields are those of the JSON form,
//! which only grows within one version of [`SCHEMA`].

use serde::Serialize;
use whyslow_model::Ns;

/// Value of [`Report::schema`]; another number means that fields were removed or changed.
pub const SCHEMA: &str = "whyslow.explain.v1";

/// What a claim rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Grade {
    /// Both happened at the same time.
    C,
    /// The structure allows nothing else that was recorded.
    B,
    /// The same request, lock, packet or thread was seen on both sides.
    A,
}

impl Grade {
    /// How a sentence may say it.
    pub fn verb(self) -> &'static str {
        match self {
            Grade::A => "because",
            Grade::B => "most likely because",
            Grade::C => "coincided with",
        }
    }
}

/// How sure the named culprit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// No culprit dominates.
    None,
    /// A culprit is named with [`Story::score`] of at least 0.3, or because it overlaps with most
    /// of the time.
    Low,
    /// [`Story::score`] is at least 0.5.
    Medium,
    /// [`Story::score`] is at least 0.75.
    High,
}

/// What kind of thing a culprit or a step of the chain is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ActorKind {
    /// The thread or process that is explained.
    Own,
    /// Another process of users.
    Process,
    /// A thread of the kernel on nobody's behalf that is known.
    Kernel,
    /// A block device.
    Device,
    /// A host on the network.
    Peer,
    /// A time that was waited for.
    Timer,
    /// A control group whose limit was reached.
    Cgroup,
    /// What handles interrupts.
    Interrupt,
    /// Not known from what was recorded.
    Unknown,
}

/// Who did it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Actor {
    /// What kind of actor.
    pub kind: ActorKind,
    /// Name of the thread, device, host or control group.
    pub name: String,
    /// Kernel ids of processes and threads.
    pub pid: Option<i32>,
    /// Kernel thread id; `None` for a process, a device, a host.
    pub tid: Option<i32>,
    /// Host of another recording on which it was seen; none where that is the one that is explained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// What an actor did meanwhile: a system call, as a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Activity {
    /// Name of the system call, or of what else it did.
    pub call: String,
    /// File, device or address that it was about.
    pub path: Option<String>,
    /// When it began.
    pub begin_ns: Ns,
    /// Null where it had not ended.
    pub end_ns: Option<Ns>,
    /// As other commands take it: `op:17`.
    pub id: Option<String>,
}

/// What it was about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Thing {
    /// device, file, lock, futex, peer, cgroup, cpu, function, irq, journal, phase, endpoint; way: what
    /// lies between this host and another one, there and back together.
    pub kind: String,
    /// Path, address or name.
    pub name: String,
}

/// Time of the window that went to one culprit by one mechanism.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// How the slow thread felt it: id of [`whyslow_model::mechanism::MECHANISMS`]. Where the culprit is on
    /// another host, how the thread felt it that served the request there.
    pub mechanism: String,
    /// What the culprit did at the end of the chain, by the same ids.
    pub root: String,
    /// The actor that the time is attributed to.
    pub culprit: Actor,
    /// What it did at that time.
    pub activity: Option<Activity>,
    /// What it did that to.
    pub object: Option<Thing>,
    /// Length in ns.
    pub dur_ns: Ns,
    /// Of the window.
    pub share: f64,
    /// Of the weakest link to it.
    pub grade: Grade,
    /// Pieces of time it consists of.
    pub pieces: u64,
    /// What it rests on, as other commands take it: `op:17`, `block:5`, …
    pub evidence: Vec<String>,
    /// The command that shows it.
    pub shown_by: Option<String>,
}

/// One step of the chain from the slow operation to the culprit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hop {
    /// Who waited, or worked at the end of the chain.
    pub actor: Actor,
    /// waited, ran, queued, held, was served, …
    pub what: String,
    /// Id of [`whyslow_model::mechanism::MECHANISMS`].
    pub mechanism: String,
    /// What the actor did meanwhile.
    pub activity: Option<Activity>,
    /// What the step is about.
    pub object: Option<Thing>,
    /// Innermost functions of the kernel, outermost last.
    pub stack: Vec<String>,
    /// What the program did, by samples of a profiler at that time: innermost function first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub program: Vec<String>,
    /// When the step began.
    pub begin_ns: Ns,
    /// When it ended.
    pub end_ns: Ns,
    /// What the step rests on.
    pub grade: Grade,
    /// Why this step is known, in words.
    pub evidence: String,
    /// The command that shows it.
    pub shown_by: Option<String>,
}

/// What was explained.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Target {
    /// operation, lookup, thread, window, device; of profiles lock, gap, call.
    pub kind: String,
    /// `op:17`, `dns:3`, where it is one row of the recording.
    pub id: Option<String>,
    /// In words: `openat /var/lib/php/sessions/sess_…`.
    pub what: String,
    /// Thread or process that it is about.
    pub actor: Actor,
    /// When it began.
    pub begin_ns: Ns,
    /// When it ended; the end of the recording if it did not.
    pub end_ns: Ns,
    /// Where the recording cuts it: begin, end, both.
    pub cut: Option<String>,
}

/// What such an operation takes otherwise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Baseline {
    /// Median length in ns.
    pub median_ns: Ns,
    /// Operations it is the median of.
    pub count: u64,
    /// What was taken for such an operation.
    pub of: String,
}

/// Events that were not recorded, and what they would decide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// Which events are missing.
    pub events: String,
    /// What they would decide, or add.
    pub decides: String,
    /// Option of `record` that records them.
    pub record_with: String,
}

/// Another explanation of at least 15 % of the time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alternative {
    /// Place among the parts.
    pub part: usize,
    /// The explanation as a sentence.
    pub says: String,
}

/// Who was busy at the same time: overlap alone is no reason.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Neighbour {
    /// The busy actor.
    pub actor: Actor,
    /// What it did, for people: `12.3 MiB to and from disks`.
    pub what: String,
    /// Bytes of its block requests; null if it is named for its CPU time.
    pub bytes: Option<i64>,
    /// Its time on CPUs; null if it is named for its I/O.
    pub cpu_ns: Option<Ns>,
}

/// Slow operations that one story stands for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// What the operations have in common.
    pub operation: String,
    /// Number of slow operations.
    pub count: u64,
    /// Sum of their lengths in ns.
    pub dur_ns_total: Ns,
    /// Longest of them in ns.
    pub dur_ns_max: Ns,
    /// Slow operations of the group that were walked, and others to compare them with.
    pub walked: u64,
    /// Other operations of the kind that were walked.
    pub compared: u64,
    /// What the slow ones have more.
    pub excess: Vec<Excess>,
}

/// What slow operations of a kind spend more than others of it, on average.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Excess {
    /// Id of [`whyslow_model::mechanism::MECHANISMS`].
    pub mechanism: String,
    /// The actor that the time is attributed to.
    pub culprit: Actor,
    /// Of the mean.
    pub delta_ns: Ns,
    /// Of all that they take longer …
    pub share: f64,
    /// … and the 95 % interval of that.
    pub share_low: f64,
    /// Upper end of that interval.
    pub share_high: f64,
    /// Share of the slow operations in which nothing else is more.
    pub dominance: f64,
}

/// How it is in another window, or another recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Versus {
    /// Recording that is compared with; the same one for another window.
    pub recording: String,
    /// Start of the window there.
    pub begin_ns: Ns,
    /// End of the window there.
    pub end_ns: Ns,
    /// What lengths are told of: call, or second of a stretch.
    pub per: String,
    /// Operations or threads that were walked here, and there.
    pub here: u64,
    /// Operations or threads that were walked there.
    pub there: u64,
    /// Length, on average; null where there is none to compare with.
    pub mean_here_ns: Ns,
    /// Mean length there.
    pub mean_there_ns: Option<Ns>,
    /// Greatest first.
    pub differences: Vec<Difference>,
}

/// Time put down to one culprit by one mechanism, here and there.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// Id of [`whyslow_model::mechanism::MECHANISMS`].
    pub mechanism: String,
    /// The actor that the time is attributed to.
    pub culprit: Actor,
    /// Mean time here, per what [`Versus::per`] says.
    pub here_ns: Ns,
    /// Mean time there.
    pub there_ns: Ns,
}

/// Other slow operations with the same culprit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Also {
    /// What the operations have in common.
    pub what: String,
    /// The longest of them, as other commands take it: `op:17`.
    pub id: Option<String>,
    /// Thread or process that did it.
    pub actor: Actor,
    /// Of the longest.
    pub dur_ns: Ns,
    /// Number of operations.
    pub count: u64,
}

/// Something known by name that somebody does: files made and deleted at once, a flooded log, …
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// temporary_files, log_flood, fsync_neighbour, metadata_storm, old_data, misbehaving_disk, device_busy, slow_lookup, request_flood, error_burst, …
    pub kind: String,
    /// The actor that does it.
    pub culprit: Actor,
    /// What it does that to.
    pub object: Option<Thing>,
    /// First time at which it was seen.
    pub begin_ns: Ns,
    /// Last time at which it was seen.
    pub end_ns: Ns,
    /// The finding as a sentence.
    pub says: String,
    /// Name, value; with the unit in the name.
    pub numbers: Vec<(String, f64)>,
    /// What it rests on, as other commands take it: `op:17`, `block:5`, …
    pub evidence: Vec<String>,
    /// The command that shows it.
    pub shown_by: Option<String>,
    /// What to do about it.
    pub suggestions: Vec<String>,
}

/// Which kind of slowness this is, of many operations or requests.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pattern {
    /// heavy_load, shifted, one_device, one_operation, periodic, rare_contention, insufficient.
    pub class: String,
    /// The conclusion as a sentence.
    pub says: String,
    /// Test, whether it fired, and its numbers in words.
    pub tests: Vec<(String, bool, String)>,
    /// Constants that durations come near to: hints, never verdicts.
    pub hints: Vec<String>,
    /// Figures by name: `items`, `slow`, `episodes`, and those of tests as `T2.delta`.
    pub numbers: Vec<(String, f64)>,
    /// Operations more that would suffice where the evidence does not.
    pub more: Option<u64>,
}

/// How far the clock of another host was ahead of that of the host before it, at the time of a request:
/// something between the two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClockBounds {
    /// Least difference that the pairs allow.
    pub low_ns: Ns,
    /// Greatest difference that the pairs allow.
    pub high_ns: Ns,
    /// Requests and packets that both sides saw and that the bounds are made from.
    pub pairs: u64,
}

/// A request that went to another host, and what its recording tells of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Crossing {
    /// Host that asked; none where that is the one that is explained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_host: Option<String>,
    /// Id of the request in the recording of who asked.
    pub request: i64,
    /// Recording of the host that was asked, and that host; null where none of them saw it.
    pub recording: Option<String>,
    /// Name of the host that served the request.
    pub host: Option<String>,
    /// Id of the request there.
    pub server_request: Option<i64>,
    /// connection (addresses and ports), trace.
    pub joined_by: Option<String>,
    /// Of the join.
    pub grade: Grade,
    /// For so long whoever asked waited for it, in what is explained.
    pub waited_ns: Ns,
    /// Of that the other host had it for so long …
    pub served_ns: Ns,
    /// … and the rest is the way, there and back together: it is right whatever the clocks say.
    pub between_ns: Ns,
    /// Null where no bounds are known.
    pub clock: Option<ClockBounds>,
    /// Pairs that contradict the others: then nothing is said of the clocks, and nothing is followed.
    pub contradicting: u64,
    /// The crossing as a sentence.
    pub says: String,
}

/// A wait for an answer of another host, of which this recording tells no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RemoteWait {
    /// Place among the parts of the one that it belongs to.
    pub(crate) part: usize,
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    pub(crate) by: Waiter,
}

/// Who waited for another host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiter {
    /// A thread, by its `utid`.
    Thread(i32),
    /// A request of a client, by its id.
    Request(i64),
}

/// What a story needs to be told anew when its waits for other hosts are followed.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Remote {
    pub(crate) waits: Vec<RemoteWait>,
    /// What took how long, as the sentence of the story begins.
    pub(crate) head: String,
    /// That sentence.
    pub(crate) says: String,
    /// It is as slow as such operations are.
    pub(crate) is_usual: bool,
}

/// Why one operation, or a group of them, was slow.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Story {
    /// What was explained.
    pub target: Target,
    /// Operations that it stands for; null for a single one.
    pub group: Option<Group>,
    /// Null where nothing is to be compared with.
    pub versus: Option<Versus>,
    /// Null where there are too few such operations.
    pub baseline: Option<Baseline>,
    /// The conclusion as a sentence.
    pub verdict: String,
    /// How sure the culprit is.
    pub confidence: Confidence,
    /// What the confidence is made from, 0–1.
    pub score: f64,
    /// Place among the parts of the one that is named; null if none dominates.
    pub culprit: Option<usize>,
    /// Where the time went; the lengths add up to the window exactly.
    pub parts: Vec<Part>,
    /// From the operation to the culprit.
    pub chain: Vec<Hop>,
    /// Time of the parts whose cause is not known (lost events, nothing recorded), ns.
    pub unexplained_ns: Ns,
    /// Without the culprit.
    pub saved_at_most_ns: Ns,
    /// Other parts that explain at least 15 % of the time.
    pub alternatives: Vec<Alternative>,
    /// Other slow operations that the same culprit explains.
    pub also: Vec<Also>,
    /// Busy actors, causality not established.
    pub neighbours: Vec<Neighbour>,
    /// What was not recorded and would decide.
    pub missing: Vec<Missing>,
    /// What to do about the mechanism and the culprit.
    pub suggestions: Vec<String>,
    /// What a reader has to know: losses, missing events, limits.
    pub caveats: Vec<String>,
    /// The command that gives this story again.
    pub reproduce: String,
    /// Requests to other hosts that it was held up by, where recordings of such hosts are at hand.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub across: Vec<Crossing>,
    #[serde(skip)]
    pub(crate) remote: Remote,
}

/// All that one command says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Name of the recording, as commands take it.
    pub recording: String,
    /// Start of the window that was explained.
    pub begin_ns: Ns,
    /// End of that window.
    pub end_ns: Ns,
    /// Explanations of single operations and of groups.
    pub stories: Vec<Story>,
    /// Known patterns of behaviour, independent of any operation.
    pub findings: Vec<Finding>,
    /// Which kind of slowness many operations show.
    pub patterns: Vec<Pattern>,
    /// What the recorder or tracer itself took of the CPUs, 0–1; null where that is not known.
    pub tracer_share: Option<f64>,
    /// Caveats of the whole report.
    pub caveats: Vec<String>,
}
