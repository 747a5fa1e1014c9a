//! The finding of one request.

use whyslow_analysis::AnalysisError;
use whyslow_analysis::before_after::{Request, Requests, UNKNOWN_ENDPOINT};
use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;
use whyslow_store::Tables;

use super::queued::{self, Queued};
use super::threads::Threads;
use super::views::{View, is_answer};
use super::{did, results};
use crate::addresses::OwnAddresses;
use crate::finding::{self, Subject};
use crate::page::Page;
use crate::report::{
    Actor, ActorKind, Baseline, Confidence, Finding, Grade, Part, Remote, RemoteWait, Target,
    Thing, Waiter,
};
use crate::sentence;

/// Minimum number of similar requests for a baseline.
const LIKE_MIN: usize = 20;
/// Minimum share of the time for a phase to be named.
const PHASE_MIN: f64 = 0.2;

/// Phase, mechanism, and possible causes.
const PHASES: [(&str, &str, &str); 13] = [
    ("queue", "unknown", "a wait for a free connection or worker"),
    ("request_queue", "unknown", "a wait for a free handler"),
    ("local", "unknown", "work or a wait of the handler"),
    (
        "remote",
        "unknown",
        "a wait for other brokers, or for the requested amount of data",
    ),
    ("throttle", "unknown", "a quota"),
    ("response_queue", "unknown", "busy network threads"),
    (
        "response_send",
        "network_remote",
        "a client that does not read, or a congested network",
    ),
    ("resolve", "dns_lookup", "a slow DNS lookup of the host"),
    (
        "connect",
        "network_remote",
        "packet loss, or a server that accepts late",
    ),
    ("tls", "network_remote", "a busy server, or packet loss"),
    ("send", "network_remote", "a server that does not read"),
    ("wait", "network_remote", "work or a wait of the server"),
    (
        "receive",
        "network_remote",
        "a server that writes slowly, or a congested network",
    ),
];

/// With this usual duration, requests are slow in absolute terms.
const ALWAYS_NS: Ns = 100_000_000;
pub(super) struct RequestExplainer<'t> {
    pub(super) tables: &'t dyn Tables,
    pub(super) requests: &'t Requests,
    pub(super) threads: &'t Threads,
    /// Name of the recording in commands.
    pub(super) recording: &'t str,
}

impl RequestExplainer<'_> {
    /// The endpoint, if it is known.
    fn endpoint(&self, request: &Request) -> Option<&str> {
        let key = self.requests.keys.get(request.key as usize);
        key.map(String::as_str)
            .filter(|key| *key != UNKNOWN_ENDPOINT)
    }

    /// The request in a sentence: its number, and its endpoint if it is known.
    pub(super) fn name(&self, request: &Request) -> String {
        self.endpoint(request).map_or_else(
            || format!("request {}", request.id),
            |endpoint| format!("request {} {endpoint}", request.id),
        )
    }

    /// The requests to the same endpoint in a sentence.
    pub(super) fn names(&self, request: &Request) -> String {
        self.endpoint(request).map_or_else(
            || "requests".to_owned(),
            |endpoint| format!("requests {endpoint}"),
        )
    }

    /// Explains one request.
    pub(super) fn one(&self, request: &Request) -> Result<Finding, AnalysisError> {
        let baseline = self.baseline(request);
        let mut first = None;
        for view in self.views(request) {
            let subject = self.subject(request, &view, baseline.clone());
            let found = finding::finding(self.tables, &subject)?;
            let found = self.complete(request, &view, baseline.clone(), found)?;
            if is_answer(&found) {
                return Ok(found);
            }
            first = first.or(Some(found));
        }
        let length = |found: &Finding| found.target.end_ns - found.target.begin_ns;
        match first {
            Some(found) if !has_phases(request) || 2 * found.unexplained_ns < length(&found) => {
                Ok(found)
            }
            _ => self.by_phases(request, baseline),
        }
    }

    /// Findings of the requests with known threads.
    pub(super) fn walked(&self, requests: &[&Request]) -> Result<Vec<Finding>, AnalysisError> {
        let followed = requests.iter().filter_map(|request| {
            let view = self.views(request).into_iter().next()?;
            Some((*request, view))
        });
        let followed: Vec<(&Request, View)> = followed.collect();
        let subjects = followed.iter();
        let subjects: Vec<Subject> = subjects
            .map(|(request, view)| self.subject(request, view, self.baseline(request)))
            .collect();
        finding::findings(self.tables, &subjects)
    }

    fn subject(&self, request: &Request, view: &View, baseline: Option<Baseline>) -> Subject {
        // The time of one thread may be usual where that of the request is not.
        let is_slow = |usual: &Baseline, dur: Ns| dur >= 2 * usual.median_ns;
        let whole = request.dur.unwrap_or(0);
        let baseline = baseline.filter(|usual| {
            let is_same = is_slow(usual, view.end - view.begin) || !is_slow(usual, whole);
            is_same && usual.median_ns < ALWAYS_NS
        });
        Subject {
            utid: view.utid,
            begin: view.begin,
            end: view.end,
            kind: "request",
            id: Some(format!("request:{}", request.id)),
            what: self.name(request),
            cut: None,
            only_waits: false,
            baseline,
            reproduce: self.command(request),
            recording: self.recording.to_owned(),
        }
    }

    /// Adds what is known of the request besides the walk.
    fn complete(
        &self,
        request: &Request,
        view: &View,
        baseline: Option<Baseline>,
        mut found: Finding,
    ) -> Result<Finding, AnalysisError> {
        let usual = baseline.as_ref().map_or(0, |usual| usual.median_ns);
        if usual >= ALWAYS_NS && request.dur.is_some_and(|dur| dur < 2 * usual) {
            found.caveats.push(format!(
                "slow in absolute terms only: such requests usually take {}",
                sentence::length(usual)
            ));
        }
        found.baseline = baseline;
        self.add_threads(request, view, &mut found);
        self.add_behind(request, &mut found);
        did::add(self, request, view, &mut found)?;
        Ok(found)
    }

    fn command(&self, request: &Request) -> String {
        format!(
            "whyslow explain {} --request {}",
            self.recording, request.id
        )
    }

    /// Usual duration of requests to its endpoint with the same result.
    fn baseline(&self, request: &Request) -> Option<Baseline> {
        let like = self.requests.rows.iter().filter(|other| {
            other.key == request.key && other.id != request.id && results::is_same(request, other)
        });
        let mut lengths: Vec<Ns> = like.filter_map(|other| other.dur).collect();
        if lengths.len() < LIKE_MIN {
            return None;
        }
        lengths.sort_unstable();
        let (requests, result) = (self.names(request), results::named(self.requests, request));
        Some(Baseline {
            median_ns: lengths[(lengths.len() - 1) / 2],
            count: lengths.len() as u64,
            of: match result.as_str() {
                "" => requests,
                result => format!("{requests} with result {result}"),
            },
            result,
        })
    }

    /// Adds caveats about other threads that served the request, and other requests of its thread.
    fn add_threads(&self, request: &Request, view: &View, finding: &mut Finding) {
        let all = self.threads.of(request);
        let sum = self.served(request);
        let Some(walked) = self.threads.longest(request) else {
            return;
        };
        let whole = request.dur.unwrap_or(0);
        if 2 * sum < whole {
            finding.caveats.push(format!(
                "the server's thread {} had the request for only {} of this time",
                walked.tid,
                sentence::length(walked.end - walked.begin)
            ));
            return;
        }
        if view.is_client {
            return;
        }
        if all.len() > 1 {
            finding.caveats.push(format!(
                "{} intervals of threads served the request, {} in total; this is the longest, of thread {}",
                all.len(),
                sentence::length(sum),
                walked.tid
            ));
        }
        if walked.is_shared {
            finding.caveats.push(
                "the thread also served other connections: some of its time is theirs".into(),
            );
        }
        let missing = whole - (view.end - view.begin);
        let is_much = missing as f64 > PHASE_MIN * whole as f64;
        if is_much && let Some((phase, _, _)) = self.longest_phase(request) {
            finding.caveats.push(format!(
                "{} of the request's {} are outside of that thread; its longest phase is {phase}",
                sentence::length(missing),
                sentence::length(whole),
            ));
        }
    }

    /// Name, ns, and possible causes.
    fn longest_phase(&self, request: &Request) -> Option<(&str, Ns, &'static str)> {
        let phases = self.requests.phases.iter().zip(request.phases);
        let most = phases.max_by_key(|(_, ns)| *ns)?;
        let behind = PHASES.iter().find(|(name, ..)| name == most.0);
        let behind = behind.map_or("work or a wait in that phase", |(.., behind)| behind);
        (most.1 > 0).then_some((most.0.as_str(), most.1, behind))
    }

    /// Explains a request without known threads by its phases.
    fn by_phases(
        &self,
        request: &Request,
        baseline: Option<Baseline>,
    ) -> Result<Finding, AnalysisError> {
        let length = request.dur.unwrap_or(0).max(1);
        let parts = self.parts(request, length);
        let took = self.took(request, baseline.as_ref());
        let is_queue = self
            .much_phase(request, length)
            .is_some_and(|(phase, ..)| phase == queued::PHASE);
        let queued = if is_queue {
            self.queued(request)?
        } else {
            None
        };
        let (of_phase, caveats) = match &queued {
            Some(queued) => self.of_queue(queued),
            None => (self.of_phase(request, length), Vec::new()),
        };
        let why = if queued.as_ref().is_some_and(Queued::is_explained) {
            ""
        } else {
            self.missing_cause(request)?
        };
        let unexplained = parts.iter().filter(|part| part.root == "unknown");
        let head = format!("{} {took}", self.name(request));
        let verdict = format!("{head}: {of_phase}{why}");
        let remote = self.remote(request, &parts, (head, &verdict));
        let mut finding = Finding {
            across: Vec::new(),
            is_trigger: false,
            page: Page::default(),
            remote,
            did: Vec::new(),
            behind: None,
            target: Target {
                kind: "request".into(),
                id: Some(format!("request:{}", request.id)),
                what: self.name(request),
                actor: self.actor(request),
                begin_ns: request.ts,
                end_ns: request.ts + length,
                cut: request.dur.is_none().then(|| "end".into()),
            },
            group: None,
            contention: None,
            versus: None,
            baseline,
            verdict,
            confidence: Confidence::None,
            score: 0.0,
            culprit: None,
            unexplained_ns: unexplained.map(|part| part.dur_ns).sum(),
            parts,
            chain: Vec::new(),
            saved_at_most_ns: 0,
            alternatives: Vec::new(),
            also: Vec::new(),
            neighbours: Vec::new(),
            missing: Vec::new(),
            suggestions: Vec::new(),
            caveats,
            reproduce: self.command(request),
        };
        if let Some(queued) = queued {
            queued.explain(&mut finding, length);
        }
        Ok(finding)
    }

    /// Why the phases do not show the cause, to append to the verdict.
    fn missing_cause(&self, request: &Request) -> Result<&'static str, AnalysisError> {
        Ok(if self.threads.is_served(request) {
            "; cause unavailable: activity of its thread not recorded"
        } else if self.is_of_this_host(request)? {
            "; cause unavailable: the server runs on this host, but its side of the request was not recorded"
        } else {
            "; cause unavailable: no recording of the server"
        })
    }

    /// Whether the other side of a client's request is an address of this host.
    fn is_of_this_host(&self, request: &Request) -> Result<bool, AnalysisError> {
        let peer = request.peer.map(|sym| self.requests.symbols.get(sym));
        let Some(peer) = peer.filter(|_| self.requests.role == Some("client")) else {
            return Ok(false);
        };
        Ok(OwnAddresses::read(self.tables)?.contains(peer))
    }

    /// Its duration, the usual duration, and whether it failed.
    fn took(&self, request: &Request, baseline: Option<&Baseline>) -> String {
        let usual = baseline.map_or_else(String::new, sentence::usually);
        let took = match request.dur {
            Some(dur) => format!("took {}", sentence::length(dur)),
            None => "was still in progress at the end of the recording".to_owned(),
        };
        let outcome = self.requests.symbols.get(request.outcome);
        let failed = request.failed.then(|| format!(" and failed ({outcome})"));
        format!("{took}{usual}{}", failed.unwrap_or_default())
    }

    /// The phase with most of the time, and its possible causes.
    fn of_phase(&self, request: &Request, length: Ns) -> String {
        match self.much_phase(request, length) {
            Some((phase, ns, behind)) => format!(
                "{} of it in phase {phase}, consistent with {behind}",
                sentence::length(ns)
            ),
            None => "no phase has much of the time".to_owned(),
        }
    }

    fn much_phase(&self, request: &Request, length: Ns) -> Option<(&str, Ns, &'static str)> {
        let longest = self.longest_phase(request);
        longest.filter(|(_, ns, _)| *ns as f64 >= PHASE_MIN * length as f64)
    }

    /// Whether it spent most of its time waiting for a handler.
    pub(super) fn is_queued(&self, request: &Request) -> bool {
        let length = request.dur.unwrap_or(0).max(1);
        let longest = self.longest_phase(request);
        longest.is_some_and(|(phase, ns, _)| phase == queued::PHASE && 2 * ns >= length)
    }

    /// The request in a sentence, and its client.
    pub(super) fn of_client(&self, request: &Request) -> String {
        let client = request.client.map(|sym| self.requests.symbols.get(sym));
        let name = self.name(request);
        match client {
            Some(client) => format!("{name} by client {client}"),
            None => name,
        }
    }

    /// Phases, and the rest of the time; the durations add up to `length`.
    fn parts(&self, request: &Request, length: Ns) -> Vec<Part> {
        let mut left = length;
        let mut parts = Vec::new();
        for (name, ns) in self.requests.phases.iter().zip(request.phases) {
            let dur = ns.clamp(0, left);
            left -= dur;
            if dur > 0 {
                let known = PHASES.iter().find(|(phase, ..)| phase == name);
                let mechanism = known.map_or("unknown", |(_, mechanism, _)| mechanism);
                parts.push(part(name, mechanism, (dur, length)));
            }
        }
        if left > 0 {
            parts.push(part("", "unknown", (left, length)));
        }
        parts.index_sort_by_key(|part| std::cmp::Reverse(part.dur_ns));
        parts
    }

    /// What is needed to follow it in the recording of its server.
    fn remote(&self, request: &Request, parts: &[Part], (head, summary): (String, &str)) -> Remote {
        Remote {
            waits: self.remote_waits(request, parts),
            head,
            summary: summary.to_owned(),
            is_usual: false,
        }
    }

    /// The phases in which a client waited for its server: the last consecutive ones.
    fn remote_waits(&self, request: &Request, parts: &[Part]) -> Vec<RemoteWait> {
        if self.requests.role != Some("client") {
            return Vec::new();
        }
        let Some(dur) = request.dur else {
            return Vec::new();
        };
        let mut end = request.ts + dur;
        let mut waits = Vec::new();
        for name in ["receive", "wait", "send"] {
            let is_it = |part: &Part| part.object.as_ref().is_some_and(|one| one.name == name);
            let Some(place) = parts.iter().position(is_it) else {
                continue;
            };
            let begin = end - parts[place].dur_ns;
            waits.push(RemoteWait {
                part: place,
                begin,
                end,
                by: Waiter::Request(request.id),
            });
            end = begin;
        }
        waits.reverse();
        waits
    }

    fn actor(&self, request: &Request) -> Actor {
        let word = |sym| self.requests.symbols.get(sym).to_owned();
        let name = request
            .comm
            .or(request.client)
            .map_or_else(|| self.requests.role.unwrap_or("client").to_owned(), word);
        Actor {
            kind: ActorKind::Process,
            name,
            pid: None,
            tid: request.tid,
            host: None,
        }
    }
}

fn part(phase: &str, mechanism: &str, (dur, length): (Ns, Ns)) -> Part {
    let object = Thing {
        kind: "phase".into(),
        name: phase.to_owned(),
    };
    Part {
        mechanism: mechanism.into(),
        root: mechanism.into(),
        culprit: Actor {
            kind: ActorKind::Unknown,
            name: String::new(),
            pid: None,
            tid: None,
            host: None,
        },
        activity: None,
        object: (!phase.is_empty()).then_some(object),
        client: None,
        dur_ns: dur,
        share: dur as f64 / length as f64,
        grade: Grade::C,
        pieces: 1,
        evidence: Vec::new(),
        shown_by: None,
    }
}

fn has_phases(request: &Request) -> bool {
    request.phases.iter().any(|ns| *ns > 0)
}
