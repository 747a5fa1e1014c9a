//! Questions to name servers that took long, of programs that ask without the C library, as those in
//! Go do.
//!
//! Who waits for the answer is not known: such programs wait for all of their sockets in one thread.
//! So nothing is walked, and what is told is the question itself.

use std::ops::ControlFlow;

use rustc_hash::FxHashMap;
use whyslow_analysis::AnalysisError;
use whyslow_analysis::read::{Projection, in_order};
use whyslow_model::Ns;
use whyslow_model::row::Row;
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::DnsQueryRow;

use super::Asker;
use crate::detectors::told::has;
use crate::report::{Actor, ActorKind, Confidence, Grade, Group, Part, Story, Target, Thing};
use crate::say;
use crate::slow::{Counts, Slow, SlowGroup, Wanted, group, process_names};

/// Shorter ones are those of a server that has to ask others.
const QUESTION_MIN_NS: Ns = 100_000_000;
/// Programs and servers of which questions are told.
const TOLD: usize = 4;
/// Programs and servers that are told apart.
const GROUPS_MAX: usize = 65_536;
const MECHANISM: &str = "dns_lookup";
/// How sure it is that somebody waited: most of the time somebody does.
const SCORE: f64 = 0.5;

/// What is known of one beside its length.
struct Asked {
    ts_end: Ns,
    is_answered: bool,
    pid: Option<i32>,
    tid: Option<i32>,
}

impl Asker<'_> {
    /// A story for each program and server of which answers took long, or never came.
    pub(super) fn questions(&self, utids: &[i32]) -> Result<Vec<Story>, AnalysisError> {
        if !has(self.tables, "dns_query") {
            return Ok(Vec::new());
        }
        let wanted = Wanted {
            min: Some(QUESTION_MIN_NS),
            window: self.question.window,
            utids: utids.to_vec(),
            ..Wanted::default()
        };
        let mut about = FxHashMap::default();
        let mut groups: Vec<SlowGroup> = self
            .by_server(&mut about)?
            .into_iter()
            .filter_map(|((comm, server), counts)| group((comm, server), counts, None, &wanted))
            .collect();
        groups.index_sort_by(|one, other| {
            let by_excess = other.excess.cmp(&one.excess);
            by_excess.then_with(|| (&one.comm, &one.call).cmp(&(&other.comm, &other.call)))
        });
        let told = groups.iter().take(TOLD);
        Ok(told
            .filter_map(|group| self.of_server(group, &about))
            .collect())
    }

    fn by_server(
        &self,
        about: &mut FxHashMap<i64, Asked>,
    ) -> Result<FxHashMap<(String, String), Counts>, AnalysisError> {
        let comms = process_names(self.tables)?;
        let lookups = self.lookups_by_thread()?;
        let mut groups: FxHashMap<(String, String), Counts> = FxHashMap::default();
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
                // Those of lookups are told with these; sources that tell a lookup when it is over
                // do not say so of its questions.
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
                let key = (comm.cloned().unwrap_or_default(), server.to_owned());
                if groups.len() >= GROUPS_MAX && !groups.contains_key(&key) {
                    continue;
                }
                let slow = Slow {
                    dur,
                    id: id.at(row),
                    ts: ts.at(row),
                    utid,
                };
                groups.entry(key).or_insert_with(Counts::new).add(slow);
                if dur >= QUESTION_MIN_NS {
                    let one = Asked {
                        ts_end: slow.ts + dur,
                        is_answered: outcome.get(row) == Some("answered"),
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

    /// Begins and ends of lookups by the C library, in order.
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

    /// All of its time, put down to the server.
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
            dur_ns,
            share: 1.0,
            grade: Grade::B,
            pieces: 1,
            evidence: vec![id.to_owned()],
            shown_by: Some(format!(
                "whyslow nameservers log {} -w {id}",
                self.question.recording
            )),
        }
    }

    fn of_server(&self, group: &SlowGroup, about: &FxHashMap<i64, Asked>) -> Option<Story> {
        let longest = group.longest.first()?;
        let asked = about.get(&longest.id)?;
        let (id, server) = (format!("question:{}", longest.id), &group.call);
        let what = format!("a question to the name server {server}");
        let actor = Actor {
            kind: ActorKind::Own,
            name: group.comm.clone(),
            pid: asked.pid,
            tid: asked.tid,
            host: None,
        };
        let usually = group.baseline.as_ref().map_or_else(String::new, |usual| {
            let median = say::length(usual.median_ns);
            format!(" (normally {median}, n = {})", usual.count)
        });
        let how = if asked.is_answered {
            "the answer came as late"
        } else {
            "no answer came"
        };
        let took = say::length(longest.dur);
        let verdict = format!(
            "{what} by {} took {took}{usually}: {how}",
            say::thread(&actor)
        );
        let part = self.part(server, longest.dur, &id);
        Some(Story {
            across: Vec::new(),
            remote: crate::report::Remote::default(),
            target: Target {
                kind: "question".into(),
                id: Some(id.clone()),
                what,
                actor,
                begin_ns: longest.ts,
                end_ns: asked.ts_end,
                cut: None,
            },
            group: Some(Group {
                operation: format!("questions to {server} by {}", group.comm),
                count: group.count,
                dur_ns_total: group.total,
                dur_ns_max: longest.dur,
                walked: 0,
                compared: 0,
                excess: Vec::new(),
            }),
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
            suggestions: crate::advice(MECHANISM, MECHANISM),
            caveats: vec![
                "the program asks without the C library: which of its threads waited, and which name was asked for, is not known".into(),
            ],
            reproduce: format!("whyslow nameservers top {}", self.question.recording),
        })
    }
}

fn is_within(lookups: Option<&Vec<(Ns, Ns)>>, ts: Ns) -> bool {
    let lookups = lookups.map_or(&[][..], Vec::as_slice);
    let before = lookups.partition_point(|(begin, _)| *begin <= ts);
    lookups[..before].last().is_some_and(|(_, end)| ts < *end)
}
