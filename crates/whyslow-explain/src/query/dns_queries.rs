//! Slow DNS queries of programs that do not use the C library, such as programs in Go.
//!
//! Which thread waits for the reply is not known, because such programs wait for all of their
//! sockets in one thread. So no thread is walked, and the finding covers the query itself.

use std::ops::ControlFlow;

use rustc_hash::FxHashMap;
use whyslow_analysis::AnalysisError;
use whyslow_analysis::read::{Projection, in_order};
use whyslow_model::Ns;
use whyslow_model::row::Row;
use whyslow_model::tables::DnsQueryRow;

use super::Explainer;
use crate::detectors::counters::has;
use crate::page::Page;
use crate::report::{
    Actor, ActorKind, Baseline, Confidence, Finding, Grade, Group, Part, Target, Thing,
};
use crate::sentence;
use crate::slow::{Counts, Like, Slow, SlowGroup, Wanted, baseline, group, process_names, sort};

/// Shorter queries are usual for a server that has to query other servers.
const QUERY_MIN_NS: Ns = 100_000_000;
/// Pairs of program and server that get a finding.
const GROUPS: usize = 4;
/// Distinct pairs of program and server.
const GROUPS_MAX: usize = 65_536;
const MECHANISM: &str = "dns_lookup";
/// Confidence that a thread waited for the reply: usually one does.
const SCORE: f64 = 0.5;

/// A slow query, except for its duration.
struct Query {
    ts_end: Ns,
    is_answered: bool,
    pid: Option<i32>,
    tid: Option<i32>,
}

impl Explainer<'_> {
    /// A finding for each program and server with replies that took long, or never arrived.
    pub(super) fn dns_queries(&self, utids: &[i32]) -> Result<Vec<Finding>, AnalysisError> {
        if !has(self.tables, "dns_query") {
            return Ok(Vec::new());
        }
        let wanted = Wanted {
            min: Some(QUERY_MIN_NS),
            window: self.query.window,
            utids: utids.to_vec(),
            ..Wanted::default()
        };
        let mut about = FxHashMap::default();
        let by_server = self.by_server(&mut about)?;
        let answered: Vec<(Like, Option<Baseline>)> = by_server
            .iter()
            .filter(|(like, _)| like.failure.is_none())
            .map(|(like, counts)| (like.clone(), baseline(like, counts)))
            .collect();
        // Without a reply there is no duration to compare with: replies show how long one takes.
        let compared = |mut group: SlowGroup| {
            let like = Like {
                failure: None,
                ..group.like.clone()
            };
            let usual = answered.iter().find(|(of, _)| *of == like);
            group.baseline = usual.and_then(|(_, usual)| usual.clone());
            group
        };
        let mut groups: Vec<SlowGroup> = by_server
            .into_iter()
            .filter_map(|(like, counts)| group(like, counts, None, &wanted))
            .map(compared)
            .collect();
        sort(&mut groups);
        let slowest = groups.iter().take(GROUPS);
        Ok(slowest
            .filter_map(|group| self.of_server(group, &about))
            .collect())
    }

    fn by_server(
        &self,
        about: &mut FxHashMap<i64, Query>,
    ) -> Result<FxHashMap<Like, Counts>, AnalysisError> {
        let comms = process_names(self.tables)?;
        let lookups = self.lookups_by_thread()?;
        let mut groups: FxHashMap<Like, Counts> = FxHashMap::default();
        let mut projection = Projection::new(DnsQueryRow::TABLE);
        let [ts, dur, id, lookup] = ["ts", "dur", "id", "lookup"].map(|name| projection.need(name));
        let [utid, upid, pid, tid] =
            ["utid", "upid", "pid", "tid"].map(|name| projection.need(name));
        let [server, outcome] = ["server", "outcome"].map(|name| projection.need(name));
        in_order(self.tables, &projection.scan(None), |batch| {
            let [ts, dur, id] = [ts.ints(batch)?, dur.ints(batch)?, id.ints(batch)?];
            let [lookup, utid, upid] = [lookup.ints(batch)?, utid.ints(batch)?, upid.ints(batch)?];
            let [pid, tid] = [pid.ints(batch)?, tid.ints(batch)?];
            let (server, outcome) = (server.texts(batch)?, outcome.texts(batch)?);
            for row in 0..batch.num_rows() as u32 {
                // Queries of a lookup belong to its finding. Sources that report a lookup when it
                // ends do not link its queries to it.
                let utid = utid.get(row).unwrap_or(-1) as i32;
                if is_within(lookups.get(&utid), ts.at(row)) {
                    continue;
                }
                let (Some(dur), Some(server), None) =
                    (dur.get(row), server.get(row), lookup.get(row))
                else {
                    continue;
                };
                let comm = upid.get(row).and_then(|upid| comms.get(&upid));
                let is_answered = outcome.get(row) == Some("answered");
                let key = Like {
                    comm: comm.cloned().unwrap_or_default(),
                    call: server.to_owned(),
                    failure: (!is_answered).then(|| "no reply".to_owned()),
                    to: None,
                };
                if groups.len() >= GROUPS_MAX && !groups.contains_key(&key) {
                    continue;
                }
                let slow = Slow {
                    dur,
                    id: id.at(row),
                    ts: ts.at(row),
                    utid,
                    upid: upid.get(row).unwrap_or(-1) as i32,
                };
                groups.entry(key).or_insert_with(Counts::new).add(slow);
                if dur >= QUERY_MIN_NS {
                    let one = Query {
                        ts_end: slow.ts + dur,
                        is_answered,
                        pid: pid.get(row).map(|pid| pid as i32),
                        tid: tid.get(row).map(|tid| tid as i32),
                    };
                    about.insert(slow.id, one);
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(groups)
    }

    /// Start and end of the C library's lookups, in order.
    fn lookups_by_thread(&self) -> Result<FxHashMap<i32, Vec<(Ns, Ns)>>, AnalysisError> {
        let mut lookups: FxHashMap<i32, Vec<(Ns, Ns)>> = FxHashMap::default();
        if has(self.tables, "dns_lookup") {
            self.each_lookup(None, |lookup, _, _| {
                let times = (lookup.ts, lookup.ts + lookup.dur);
                lookups.entry(lookup.utid).or_default().push(times);
            })?;
        }
        Ok(lookups)
    }

    /// All of its time, attributed to the server.
    fn part(&self, server: &str, dur_ns: Ns, id: &str) -> Part {
        let culprit = Actor {
            kind: ActorKind::Peer,
            name: server.to_owned(),
            pid: None,
            tid: None,
            host: None,
        };
        Part {
            mechanism: MECHANISM.into(),
            root: MECHANISM.into(),
            culprit,
            activity: None,
            object: Some(Thing {
                kind: "peer".into(),
                name: server.to_owned(),
            }),
            client: None,
            dur_ns,
            share: 1.0,
            grade: Grade::B,
            pieces: 1,
            evidence: vec![id.to_owned()],
            shown_by: Some(format!(
                "whyslow nameservers log {} -w {id}",
                self.query.recording
            )),
        }
    }

    fn of_server(&self, group: &SlowGroup, about: &FxHashMap<i64, Query>) -> Option<Finding> {
        let longest = group.longest.first()?;
        let query = about.get(&longest.id)?;
        let (id, server) = (format!("query:{}", longest.id), &group.like.call);
        let what = format!("DNS query to name server {server}");
        let actor = Actor {
            kind: ActorKind::Own,
            name: group.like.comm.clone(),
            pid: query.pid,
            tid: query.tid,
            host: None,
        };
        let usually = group.baseline.as_ref();
        let usually = usually.map_or_else(String::new, sentence::usually);
        let how = if query.is_answered {
            "the server replied late"
        } else {
            "the server did not reply"
        };
        let took = sentence::length(longest.dur);
        let verdict = format!(
            "{what} by {} took {took}{usually}: {how}",
            sentence::thread(&actor)
        );
        let part = self.part(server, longest.dur, &id);
        Some(Finding {
            across: Vec::new(),
            did: Vec::new(),
            behind: None,
            is_trigger: false,
            page: Page::default(),
            remote: crate::report::Remote::default(),
            target: Target {
                kind: "query".into(),
                id: Some(id.clone()),
                what,
                actor,
                begin_ns: longest.ts,
                end_ns: query.ts_end,
                cut: None,
            },
            group: Some(counted(group, longest.dur)),
            contention: None,
            versus: None,
            baseline: group.baseline.clone(),
            verdict,
            confidence: Confidence::Medium,
            score: SCORE,
            culprit: Some(0),
            parts: vec![part],
            chain: Vec::new(),
            unexplained_ns: 0,
            saved_at_most_ns: longest.dur,
            alternatives: Vec::new(),
            also: Vec::new(),
            neighbours: Vec::new(),
            missing: Vec::new(),
            suggestions: crate::advice::on(MECHANISM, MECHANISM),
            caveats: vec![
                "waiting thread and queried name unavailable: the program does not resolve names with the C library".into(),
            ],
            reproduce: format!("whyslow nameservers top {}", self.query.recording),
        })
    }
}

/// How many such queries there were. None is walked: the waiting thread is not known.
fn counted(group: &SlowGroup, dur_ns_max: Ns) -> Group {
    let (comm, server) = (&group.like.comm, &group.like.call);
    Group {
        operation: format!("DNS queries to {server} by {comm}"),
        count: group.count,
        threads: group.threads(),
        processes: group.processes(),
        dur_ns_total: group.total,
        dur_ns_max,
        walked: 0,
        ..Group::default()
    }
}

fn is_within(lookups: Option<&Vec<(Ns, Ns)>>, ts: Ns) -> bool {
    let lookups = lookups.map_or(&[][..], Vec::as_slice);
    let before = lookups.partition_point(|(begin, _)| *begin <= ts);
    lookups[..before].last().is_some_and(|(_, end)| ts < *end)
}
