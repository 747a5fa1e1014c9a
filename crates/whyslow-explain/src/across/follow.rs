//! From the waits of a story to what the hosts that were waited for did.

use std::collections::BTreeMap;

use whyslow_analysis::AnalysisError;
use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use super::clock::Clock;
use super::crossing;
use super::hosts::{Hosts, Joined};
use super::rows::Seen;
use super::splice::{self, Told};
use crate::report::{Crossing, Grade, RemoteWait, Story, Waiter};
use crate::requests::threads::Stretch;
use crate::say;
use crate::story::{self, Subject};

/// Hosts in a row at most.
const DEPTH_MAX: usize = 8;
/// Requests of a story that are followed, those that it waited longest for.
const REQUESTS_MAX: usize = 16;
/// Bounds that are wider than this part of the server's time do not tell which of it belongs to a wait
/// that has not all of it.
const WIDTH_PARTS: Ns = 10;

pub(super) struct Follower<'t> {
    hosts: Hosts<'t>,
}

/// Requests that lead to where a story is, by host and id.
type Way = Vec<(usize, i64)>;

/// What came of following the waits of a story.
#[derive(Default)]
pub(super) struct Followed {
    /// Of each part of the story what of it was followed.
    pub(super) taken: Vec<Ns>,
    /// What that time went to instead.
    pub(super) told: Vec<Told>,
}

/// A request that was waited for, and the waits.
struct Awaited {
    asked: usize,
    waits: Vec<RemoteWait>,
    grade: Grade,
}

/// A part of the server's time that lies in a wait, by the server's clock.
#[derive(Debug, Clone, Copy)]
struct Served {
    begin: Ns,
    end: Ns,
    /// What to take off to have the client's clock.
    shift: Ns,
}

impl<'t> Follower<'t> {
    pub(super) fn new(hosts: Hosts<'t>) -> Self {
        Self { hosts }
    }

    /// What none of the stories tells.
    pub(super) fn caveats(&self, stories: &[Story]) -> Option<String> {
        let is_none = stories.iter().all(|story| story.across.is_empty());
        is_none.then(|| {
            format!(
                "no story waits for a request to another host that this recording tells of: nothing to look for in {}",
                self.hosts.others()
            )
        })
    }

    /// Has a story go on on other hosts.
    pub(super) fn story(&mut self, story: &mut Story) -> Result<(), AnalysisError> {
        let mut crossings = Vec::new();
        let followed = self.follow(0, story, &mut Way::new(), &mut crossings)?;
        if !crossings.is_empty() {
            let others = self.hosts.others().replace(", ", ",");
            story.reproduce = format!("{} --across {others}", story.reproduce);
        }
        story.across = crossings;
        splice::into(story, followed);
        Ok(())
    }

    /// Follows the waits of a story of one of the hosts.
    fn follow(
        &mut self,
        host: usize,
        story: &Story,
        way: &mut Way,
        crossings: &mut Vec<Crossing>,
    ) -> Result<Followed, AnalysisError> {
        let mut found = Followed {
            taken: vec![0; story.parts.len()],
            told: Vec::new(),
        };
        if way.len() >= DEPTH_MAX {
            return Ok(found);
        }
        for awaited in self.awaited(host, story)? {
            let rows = self.hosts.rows(host)?;
            let asked = &rows.asked[awaited.asked];
            if asked.is_served_here || way.contains(&(host, asked.id)) {
                continue;
            }
            way.push((host, asked.id));
            let told = self.request(host, &awaited, way, crossings)?;
            way.pop();
            if told.is_empty() {
                continue;
            }
            for wait in &awaited.waits {
                found.taken[wait.part] += wait.end - wait.begin;
            }
            found.told.extend(told);
        }
        Ok(found)
    }

    /// The requests that a story waits for, those that it waited longest for, in order.
    fn awaited(&mut self, host: usize, story: &Story) -> Result<Vec<Awaited>, AnalysisError> {
        let mut found: BTreeMap<usize, Awaited> = BTreeMap::new();
        if story.remote.waits.is_empty() {
            return Ok(Vec::new());
        }
        let rows = self.hosts.rows(host)?;
        for wait in &story.remote.waits {
            let asked = match wait.by {
                Waiter::Request(id) => rows.asked_with(id).map(|asked| (asked, true)),
                Waiter::Thread(utid) => rows.awaited(utid, (wait.begin, wait.end)),
            };
            let Some((asked, is_only)) = asked else {
                continue;
            };
            let grade = if is_only { Grade::A } else { Grade::B };
            let awaited = found.entry(asked).or_insert_with(|| Awaited {
                asked,
                waits: Vec::new(),
                grade,
            });
            awaited.grade = awaited.grade.min(grade);
            awaited.waits.push(*wait);
        }
        let mut found: Vec<Awaited> = found.into_values().collect();
        found.index_sort_by_key(|one| std::cmp::Reverse(length(&one.waits)));
        found.truncate(REQUESTS_MAX);
        found.index_sort_by_key(|one| one.asked);
        Ok(found)
    }

    /// What the time went to for which one request was waited for; nothing if that is not known.
    fn request(
        &mut self,
        host: usize,
        awaited: &Awaited,
        way: &mut Way,
        crossings: &mut Vec<Crossing>,
    ) -> Result<Vec<Told>, AnalysisError> {
        let rows = self.hosts.rows(host)?;
        let asked = rows.asked[awaited.asked];
        let peer = rows.peers.get(&asked.id).cloned().unwrap_or_default();
        let waited = length(&awaited.waits);
        let from = (host != 0).then(|| self.hosts.name(host).to_owned());
        let mut crossing = crossing::begun(from, asked.id, waited);
        let joined = match self.hosts.served(host, awaited.asked)? {
            Ok(joined) => joined,
            Err(missing) => {
                crossing.says = crossing::unseen(&self.hosts, &asked, &peer, missing);
                crossings.push(crossing);
                return Ok(Vec::new());
            }
        };
        let served = self.hosts.rows(joined.server)?.served[joined.pair.served];
        crossing::describe(&self.hosts, &mut crossing, &joined, &served);
        let grade = awaited.grade.min(crossing.grade);
        let windows = match windows(&self.hosts, &joined, &served, &awaited.waits) {
            Ok(windows) => windows,
            Err(says) => {
                crossing.says = format!("{}; {says}", crossing.says);
                crossings.push(crossing);
                return Ok(Vec::new());
            }
        };
        let place = crossings.len();
        crossings.push(crossing);
        let mut told = Vec::new();
        for window in &windows {
            told.extend(self.server(&joined, &served, window, way, crossings)?);
        }
        if let (None, Some(end)) = (joined.bounds, served.end) {
            let had = (end - served.begin).clamp(0, waited);
            told.extend(splice::untold(had, self.hosts.name(joined.server)));
        }
        for one in &mut told {
            one.part.grade = one.part.grade.min(grade);
            for hop in &mut one.chain {
                hop.grade = hop.grade.min(grade);
            }
        }
        let crossing = &mut crossings[place];
        crossing.served_ns = told.iter().map(|one| one.part.dur_ns).sum();
        crossing.between_ns = waited - crossing.served_ns;
        let between = crossing::between(
            &peer,
            self.hosts.name(joined.server),
            crossing.between_ns,
            grade,
        );
        told.extend(between);
        let client = crossing::waiting(&asked, &awaited.waits, &peer, grade);
        for one in &mut told {
            one.chain.insert(0, client.clone());
        }
        crossing::finish(crossing, &joined);
        Ok(told)
    }

    /// What the threads of the server did in a stretch of its time.
    fn server(
        &mut self,
        joined: &Joined,
        served: &Seen,
        window: &Served,
        way: &mut Way,
        crossings: &mut Vec<Crossing>,
    ) -> Result<Vec<Told>, AnalysisError> {
        let threads = self.hosts.threads(joined.server)?;
        let turns = turns(threads.of_served(served.id), served, window.end);
        let mut found = Vec::new();
        let mut at = window.begin;
        for turn in turns {
            let (begin, end) = (turn.begin.max(at), turn.end.min(window.end));
            if end <= begin {
                continue;
            }
            found.extend(splice::untold(begin - at, self.hosts.name(joined.server)));
            let stretch = Stretch { begin, end, ..turn };
            found.extend(self.turn(
                joined.server,
                served,
                (stretch, window.shift),
                way,
                crossings,
            )?);
            at = end;
        }
        let rest = splice::untold(window.end - at, self.hosts.name(joined.server));
        found.extend(rest);
        Ok(found)
    }

    fn turn(
        &mut self,
        server: usize,
        served: &Seen,
        (turn, shift): (Stretch, Ns),
        way: &mut Way,
        crossings: &mut Vec<Crossing>,
    ) -> Result<Vec<Told>, AnalysisError> {
        let of = self.hosts.recording(server);
        let subject = Subject {
            utid: turn.utid,
            begin: turn.begin,
            end: turn.end,
            kind: "request",
            id: Some(format!("request:{}", served.id)),
            what: format!("request {}", served.id),
            cut: None,
            only_waits: false,
            baseline: None,
            reproduce: format!("whyslow explain {} --request {}", of.recording, served.id),
            recording: of.recording.to_owned(),
        };
        let story = story::story(of.tables, &subject)?;
        let followed = self.follow(server, &story, way, crossings)?;
        let host = self.hosts.name(server);
        Ok(splice::of_server(
            &story,
            followed,
            (host, shift),
            turn.is_shared,
        ))
    }
}

fn length(waits: &[RemoteWait]) -> Ns {
    waits.iter().map(|wait| wait.end - wait.begin).sum()
}

/// Who had the request, one after another: the one that read it also while it lay in the socket.
fn turns(stretches: &[Stretch], served: &Seen, end: Ns) -> Vec<Stretch> {
    let mut turns = stretches.to_vec();
    if turns.is_empty() {
        let utid = served.utid;
        turns.extend(utid.map(|utid| Stretch {
            begin: served.begin,
            end: served.end.unwrap_or(end),
            utid,
            tid: 0,
            is_shared: false,
        }));
    }
    if let Some(first) = turns.first_mut() {
        first.begin = first.begin.min(served.begin);
    }
    turns
}

/// The stretches of the server's time that lie in waits; none, with the reason, where that is not known.
/// Without threads that anybody could look at there are none, either.
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
                "but {contradicting} of {pairs} pairs that both sides saw contradict the others: a clock was set \
                 meanwhile, or these are not the same, and nothing is told of what {name} did"
            ));
        }
        Clock::Within { .. } | Clock::Ambiguous { .. } | Clock::Unknown => {}
    }
    let Some(bounds) = joined.bounds else {
        return Ok(Vec::new());
    };
    let shift = bounds.middle_ns();
    // What was not answered when the recording ended had not been until then.
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
            "but their clocks are known to {} only, too little to tell what {name} did in this wait",
            say::length(bounds.width_ns())
        ));
    }
    Ok(windows)
}
