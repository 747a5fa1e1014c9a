//! Follows the waits of a finding to what the other hosts did.

use std::collections::BTreeMap;

use whyslow_analysis::AnalysisError;
use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use super::clock::Clock;
use super::crossing;
use super::hosts::{Hosts, Joined};
use super::rows::Seen;
use super::splice::{self, Replacement};
use crate::finding::{self, Subject};
use crate::report::{Crossing, Finding, Grade, RemoteWait, Waiter};
use crate::requests::threads::Stretch;
use crate::sentence;

/// Maximum number of hosts in a chain.
const DEPTH_MAX: usize = 8;
/// Maximum number of requests of a finding that are followed, those with the longest waits.
const REQUESTS_MAX: usize = 16;
/// If a wait covers only a part of the server's time, the bounds must be narrower than one part in
/// this many of it.
const WIDTH_PARTS: Ns = 10;

pub(super) struct Follower<'t> {
    hosts: Hosts<'t>,
}

/// Requests that lead to the current finding, by host and id.
type RequestPath = Vec<(usize, i64)>;

/// The result of following the waits of a finding.
#[derive(Default)]
pub(super) struct Followed {
    /// Followed time of each part of the finding.
    pub(super) taken: Vec<Ns>,
    /// The parts that replace that time.
    pub(super) replacements: Vec<Replacement>,
}

/// A request that was waited for, and the waits.
struct Awaited {
    issued: usize,
    waits: Vec<RemoteWait>,
    grade: Grade,
}

/// A part of the server's time within a wait, by the server's clock.
#[derive(Debug, Clone, Copy)]
struct Served {
    begin: Ns,
    end: Ns,
    /// Offset to subtract for the client's clock.
    shift: Ns,
}

impl<'t> Follower<'t> {
    pub(super) fn new(hosts: Hosts<'t>) -> Self {
        Self { hosts }
    }

    /// A caveat if no finding could be followed.
    pub(super) fn caveats(&self, findings: &[Finding]) -> Option<String> {
        let is_none = findings.iter().all(|finding| finding.across.is_empty());
        is_none.then(|| {
            format!(
                "nothing to follow into {}: no observation waits for a recorded request to another host",
                self.hosts.others()
            )
        })
    }

    /// Continues a finding on other hosts.
    pub(super) fn finding(&mut self, finding: &mut Finding) -> Result<(), AnalysisError> {
        let mut crossings = Vec::new();
        let followed = self.follow(0, finding, &mut RequestPath::new(), &mut crossings)?;
        if !crossings.is_empty() {
            let others = self.hosts.others().replace(", ", ",");
            finding.reproduce = format!("{} --across {others}", finding.reproduce);
        }
        finding.across = crossings;
        splice::into(finding, followed);
        Ok(())
    }

    /// Follows the waits of a finding on one of the hosts.
    fn follow(
        &mut self,
        host: usize,
        finding: &Finding,
        path: &mut RequestPath,
        crossings: &mut Vec<Crossing>,
    ) -> Result<Followed, AnalysisError> {
        let mut found = Followed {
            taken: vec![0; finding.parts.len()],
            replacements: Vec::new(),
        };
        if path.len() >= DEPTH_MAX {
            return Ok(found);
        }
        for awaited in self.awaited(host, finding)? {
            let rows = self.hosts.rows(host)?;
            let issued = &rows.issued[awaited.issued];
            if issued.is_served_here || path.contains(&(host, issued.id)) {
                continue;
            }
            path.push((host, issued.id));
            let replacements = self.request(host, &awaited, path, crossings)?;
            path.pop();
            if replacements.is_empty() {
                continue;
            }
            for wait in &awaited.waits {
                found.taken[wait.part] += wait.end - wait.begin;
            }
            found.replacements.extend(replacements);
        }
        Ok(found)
    }

    /// The requests with the longest waits of a finding, in order.
    fn awaited(&mut self, host: usize, finding: &Finding) -> Result<Vec<Awaited>, AnalysisError> {
        let mut found: BTreeMap<usize, Awaited> = BTreeMap::new();
        if finding.remote.waits.is_empty() {
            return Ok(Vec::new());
        }
        let rows = self.hosts.rows(host)?;
        for wait in &finding.remote.waits {
            let issued = match wait.by {
                Waiter::Request(id) => rows.issued_with(id).map(|issued| (issued, true)),
                Waiter::Thread(utid) => rows.awaited(utid, (wait.begin, wait.end)),
            };
            let Some((issued, is_only)) = issued else {
                continue;
            };
            let grade = if is_only { Grade::A } else { Grade::B };
            let awaited = found.entry(issued).or_insert_with(|| Awaited {
                issued,
                waits: Vec::new(),
                grade,
            });
            awaited.grade = awaited.grade.min(grade);
            awaited.waits.push(*wait);
        }
        let mut found: Vec<Awaited> = found.into_values().collect();
        found.index_sort_by_key(|one| std::cmp::Reverse(length(&one.waits)));
        found.truncate(REQUESTS_MAX);
        found.index_sort_by_key(|one| one.issued);
        Ok(found)
    }

    /// The parts that replace the wait for one request; nothing if it is not known.
    fn request(
        &mut self,
        host: usize,
        awaited: &Awaited,
        path: &mut RequestPath,
        crossings: &mut Vec<Crossing>,
    ) -> Result<Vec<Replacement>, AnalysisError> {
        let rows = self.hosts.rows(host)?;
        let issued = rows.issued[awaited.issued];
        let peer = rows.peers.get(&issued.id).cloned().unwrap_or_default();
        let waited = length(&awaited.waits);
        let from = (host != 0).then(|| self.hosts.name(host).to_owned());
        let mut crossing = crossing::begun(from, issued.id, waited);
        let joined = match self.hosts.served(host, awaited.issued)? {
            Ok(joined) => joined,
            Err(missing) => {
                crossing.summary = crossing::unseen(&self.hosts, &issued, &peer, missing);
                crossings.push(crossing);
                return Ok(Vec::new());
            }
        };
        let served = self.hosts.rows(joined.server)?.served[joined.pair.served];
        crossing::describe(&self.hosts, &mut crossing, &joined, &served);
        let grade = awaited.grade.min(crossing.grade);
        let windows = match windows(&self.hosts, &joined, &served, &awaited.waits) {
            Ok(windows) => windows,
            Err(summary) => {
                crossing.summary = format!("{}; {summary}", crossing.summary);
                crossings.push(crossing);
                return Ok(Vec::new());
            }
        };
        let place = crossings.len();
        crossings.push(crossing);
        let mut replacements = Vec::new();
        for window in &windows {
            replacements.extend(self.server(&joined, &served, window, path, crossings)?);
        }
        if let (None, Some(end)) = (joined.bounds, served.end) {
            let had = (end - served.begin).clamp(0, waited);
            replacements.extend(splice::unknown(had, self.hosts.name(joined.server)));
        }
        for one in &mut replacements {
            one.part.grade = one.part.grade.min(grade);
            for hop in &mut one.chain {
                hop.grade = hop.grade.min(grade);
            }
        }
        let crossing = &mut crossings[place];
        crossing.served_ns = replacements.iter().map(|one| one.part.dur_ns).sum();
        crossing.between_ns = waited - crossing.served_ns;
        let between = crossing::between(
            &peer,
            self.hosts.name(joined.server),
            crossing.between_ns,
            grade,
        );
        replacements.extend(between);
        let client = crossing::waiting(&issued, &awaited.waits, &peer, grade);
        for one in &mut replacements {
            one.chain.insert(0, client.clone());
        }
        crossing::finish(crossing, &joined);
        Ok(replacements)
    }

    /// What the threads of the server did in a window of its time.
    fn server(
        &mut self,
        joined: &Joined,
        served: &Seen,
        window: &Served,
        path: &mut RequestPath,
        crossings: &mut Vec<Crossing>,
    ) -> Result<Vec<Replacement>, AnalysisError> {
        let threads = self.hosts.threads(joined.server)?;
        let serving_threads = serving_threads(threads.of_served(served.id), served, window.end);
        let mut found = Vec::new();
        let mut at = window.begin;
        for serving_thread in serving_threads {
            let (begin, end) = (
                serving_thread.begin.max(at),
                serving_thread.end.min(window.end),
            );
            if end <= begin {
                continue;
            }
            found.extend(splice::unknown(begin - at, self.hosts.name(joined.server)));
            let stretch = Stretch {
                begin,
                end,
                ..serving_thread
            };
            found.extend(self.serving_thread(
                joined.server,
                served,
                (stretch, window.shift),
                path,
                crossings,
            )?);
            at = end;
        }
        let rest = splice::unknown(window.end - at, self.hosts.name(joined.server));
        found.extend(rest);
        Ok(found)
    }

    fn serving_thread(
        &mut self,
        server: usize,
        served: &Seen,
        (serving_thread, shift): (Stretch, Ns),
        path: &mut RequestPath,
        crossings: &mut Vec<Crossing>,
    ) -> Result<Vec<Replacement>, AnalysisError> {
        let of = self.hosts.recording(server);
        let subject = Subject {
            utid: serving_thread.utid,
            begin: serving_thread.begin,
            end: serving_thread.end,
            kind: "request",
            id: Some(format!("request:{}", served.id)),
            what: format!("request {}", served.id),
            cut: None,
            only_waits: false,
            baseline: None,
            reproduce: format!("whyslow explain {} --request {}", of.recording, served.id),
            recording: of.recording.to_owned(),
        };
        let finding = finding::finding(of.tables, &subject)?;
        let followed = self.follow(server, &finding, path, crossings)?;
        let host = self.hosts.name(server);
        Ok(splice::of_server(
            &finding,
            followed,
            (host, shift),
            serving_thread.is_shared,
        ))
    }
}

fn length(waits: &[RemoteWait]) -> Ns {
    waits.iter().map(|wait| wait.end - wait.begin).sum()
}

/// The threads that served the request, in order. The one that read it also gets the time before.
fn serving_threads(stretches: &[Stretch], served: &Seen, end: Ns) -> Vec<Stretch> {
    let mut serving_threads = stretches.to_vec();
    if serving_threads.is_empty() {
        let utid = served.utid;
        serving_threads.extend(utid.map(|utid| Stretch {
            begin: served.begin,
            end: served.end.unwrap_or(end),
            utid,
            tid: 0,
            is_shared: false,
        }));
    }
    if let Some(first) = serving_threads.first_mut() {
        first.begin = first.begin.min(served.begin);
    }
    serving_threads
}

/// The windows of the server's time within the waits, or the reason why they are not known. Without
/// clock bounds there are none.
fn windows(
    hosts: &Hosts<'_>,
    joined: &Joined,
    served: &Seen,
    waits: &[RemoteWait],
) -> Result<Vec<Served>, String> {
    let name = hosts.name(joined.server);
    match joined.clock {
        Clock::Contradicting {
            pairs,
            contradicting,
        } => {
            return Err(format!(
                "but {contradicting} of {pairs} requests and packets seen on both hosts contradict the others (a \
                 clock was set, or the match is wrong), so requests are not followed into {name}"
            ));
        }
        Clock::Within { .. } | Clock::Ambiguous { .. } | Clock::Unknown => {}
    }
    let Some(bounds) = joined.bounds else {
        return Ok(Vec::new());
    };
    let shift = bounds.middle_ns();
    // A request without a reply was in progress until the end of the recording.
    let end = served
        .end
        .unwrap_or(hosts.recording(joined.server).tables.info().end_ns);
    let mut windows = Vec::new();
    for wait in waits {
        let (begin, end) = (
            wait.begin.saturating_add(shift).max(served.begin),
            wait.end.saturating_add(shift).min(end),
        );
        if end > begin {
            windows.push(Served { begin, end, shift });
        }
    }
    let inside: Ns = windows.iter().map(|one| one.end - one.begin).sum();
    let outside = end - served.begin - inside;
    if outside > bounds.width_ns() && WIDTH_PARTS * bounds.width_ns() > inside {
        return Err(format!(
            "but the clock offset is only known to within {}: not exact enough to show what {name} did in this wait",
            sentence::length(bounds.width_ns())
        ));
    }
    Ok(windows)
}
