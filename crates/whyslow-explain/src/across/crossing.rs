//! Describes a request that went from one host to another.

use whyslow_model::Ns;

use super::clock::Clock;
use super::hosts::{Hosts, Joined, Missing};
use super::rows::Seen;
use super::splice::Replacement;
use crate::report::{Actor, ActorKind, ClockBounds, Crossing, Grade, Hop, Part, RemoteWait, Thing};
use crate::sentence;

/// A crossing of which only the client is known so far.
pub(super) fn begun(from_host: Option<String>, request: i64, waited_ns: Ns) -> Crossing {
    Crossing {
        from_host,
        request,
        recording: None,
        host: None,
        server_request: None,
        joined_by: None,
        grade: Grade::C,
        waited_ns,
        served_ns: 0,
        between_ns: 0,
        clock: None,
        contradicting: 0,
        summary: String::new(),
    }
}

/// Why a request cannot be followed.
pub(super) fn unseen(hosts: &Hosts<'_>, issued: &Seen, peer: &str, missing: Missing) -> String {
    let id = issued.id;
    match missing {
        Missing::Unseen => format!(
            "server side of request {id} to {peer} unavailable: not found in {}",
            hosts.others()
        ),
        Missing::Several(server, clock) => {
            let name = hosts.name(server);
            let why = match clock {
                Clock::Within { .. } => "the clock offset allows no request or several requests",
                Clock::Contradicting { .. } => "requests seen on both hosts contradict each other",
                Clock::Ambiguous { .. } => {
                    "the match is ambiguous: no recording has the first request of a connection"
                }
                Clock::Unknown => "the clock offset is unknown",
            };
            format!("server side of request {id} to {peer} on {name} not identified: {why}")
        }
    }
}

/// Adds which request of the server it is, with the grade of the join.
pub(super) fn describe(hosts: &Hosts<'_>, crossing: &mut Crossing, joined: &Joined, served: &Seen) {
    let (name, recording) = (
        hosts.name(joined.server).to_owned(),
        hosts.recording(joined.server).recording.to_owned(),
    );
    crossing.grade = if joined.pair.is_sure {
        Grade::A
    } else {
        Grade::B
    };
    let by = joined.pair.by.name();
    crossing.summary = format!(
        "request {} matches request {} on {name} ({recording}) by {by}",
        crossing.request, served.id
    );
    crossing.joined_by = Some(by.to_owned());
    crossing.server_request = Some(served.id);
    crossing.host = Some(name);
    crossing.recording = Some(recording);
    if let Clock::Contradicting { contradicting, .. } = joined.clock {
        crossing.contradicting = contradicting;
    } else if let Some(bounds) = joined.bounds {
        let pairs = match joined.clock {
            Clock::Within { pairs, .. } => pairs,
            _ => 1,
        };
        crossing.clock = Some(ClockBounds {
            low_ns: bounds.low_ns,
            high_ns: bounds.high_ns,
            pairs,
        });
    }
}

/// The rest of the wait: the network round trip.
pub(super) fn between(peer: &str, host: &str, dur_ns: Ns, grade: Grade) -> Option<Replacement> {
    let part = Part {
        mechanism: "network_remote".into(),
        root: "network_remote".into(),
        culprit: Actor {
            kind: ActorKind::Peer,
            name: peer.to_owned(),
            pid: None,
            tid: None,
            host: None,
        },
        activity: None,
        object: Some(Thing {
            kind: "way".into(),
            name: format!("to {host} and back"),
        }),
        client: None,
        dur_ns,
        share: 0.0,
        grade,
        pieces: 1,
        evidence: Vec::new(),
        shown_by: None,
    };
    (dur_ns > 0).then(|| Replacement {
        clause: sentence::clause(&part, ""),
        part,
        chain: Vec::new(),
        missing: Vec::new(),
    })
}

/// The step of the chain that waited for the reply.
pub(super) fn waiting(issued: &Seen, waits: &[RemoteWait], peer: &str, grade: Grade) -> Hop {
    let begin = waits.iter().map(|wait| wait.begin).min();
    let end = waits.iter().map(|wait| wait.end).max();
    Hop {
        // The caller fills in the thread of its finding.
        actor: Actor {
            kind: ActorKind::Own,
            name: String::new(),
            pid: None,
            tid: None,
            host: None,
        },
        what: "waited".into(),
        mechanism: "network_remote".into(),
        activity: None,
        object: Some(Thing {
            kind: "peer".into(),
            name: peer.to_owned(),
        }),
        stack: Vec::new(),
        program: Vec::new(),
        begin_ns: begin.unwrap_or(issued.begin),
        end_ns: end.unwrap_or(issued.first),
        grade,
        evidence: format!("request:{}", issued.id),
        shown_by: None,
    }
}

/// Adds the durations and the clock offset.
pub(super) fn finish(crossing: &mut Crossing, joined: &Joined) {
    let host = crossing.host.as_deref().unwrap_or_default();
    let mut summary = format!(
        "{}: the client waited {}, of which {host} had the request for {} and the network round trip took {}",
        crossing.summary,
        sentence::length(crossing.waited_ns),
        sentence::length(crossing.served_ns),
        sentence::length(crossing.between_ns),
    );
    match &crossing.clock {
        Some(clock) => {
            let (low, high) = (clock.low_ns, clock.high_ns);
            let middle = low.saturating_add(high.saturating_sub(low) / 2);
            let direction = if middle < 0 { "behind" } else { "ahead" };
            let pairs = match joined.clock {
                Clock::Within { pairs: 1, .. } | Clock::Unknown => "this request".to_owned(),
                _ => format!("{} requests and packets seen on both hosts", clock.pairs),
            };
            summary = format!(
                "{summary}; the clock of {host} was {:.6} s {direction} (± {}, from {pairs})",
                middle.unsigned_abs() as f64 / 1e9,
                sentence::length(high.saturating_sub(low) / 2 + 1),
            );
        }
        None => {
            summary =
                format!("{summary}; its clock offset is unknown, and not needed for these times");
        }
    }
    crossing.summary = summary;
}
