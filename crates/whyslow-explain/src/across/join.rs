//! Joins requests of two recordings, and derives the clock offset from them.
//!
//! Both sides know the addresses and ports of a connection, mirrored, and requests on a connection
//! are sequential. If both recordings have its first request, requests match in order, which is
//! sure, as are requests of one trace with spans that refer to each other. On a connection that is
//! older than one of the recordings, each request may match any other until the clock offset is
//! known.

use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use super::clock::{Bounds, Candidate, Clock};
use super::rows::{Packets, Rows, Seen};

/// Requests further from the one in query show little about the clock offset at its time.
const NEAR_NS: Ns = 10_000_000_000;
/// Maximum number of requests used for the clock offset, the nearest.
const NEAR_MAX: usize = 512;
/// Maximum number of possible matches of a request on its connection.
const POSSIBLE_MAX: usize = 512;
/// Distinguishes ids of packets from those of requests.
const PACKET: u64 = 1 << 63;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Connection,
    Trace,
}

impl By {
    pub(super) fn name(self) -> &'static str {
        match self {
            By::Connection => "connection",
            By::Trace => "trace",
        }
    }
}

/// Two views of one request, by index among the client's and the server's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) issued: usize,
    pub(super) served: usize,
    pub(super) by: By,
    pub(super) is_sure: bool,
}

/// Requests of one recording that the host of another one served.
#[derive(Debug, Default)]
pub(super) struct Link {
    /// By index among the client's requests.
    sure: FxHashMap<usize, Pair>,
}

impl Link {
    pub(super) fn new(client: &Rows, server: &Rows) -> Self {
        let mut link = Self::default();
        for (ends, issued) in &client.issued_on {
            let Some(served) = server.served_on.get(ends) else {
                continue;
            };
            link.in_order((client, issued), (server, served));
        }
        link.traced(client, server);
        link
    }

    /// Joins requests of a connection if both recordings have its first request.
    fn in_order(
        &mut self,
        (client, issued): (&Rows, &[usize]),
        (server, served): (&Rows, &[usize]),
    ) {
        let is_first = |one: &Seen| one.is_reused == Some(false);
        let firsts = |rows: &[Seen], places: &[usize]| {
            places
                .iter()
                .filter(|place| is_first(&rows[**place]))
                .count()
        };
        // A load generator and the sockets give two rows for one request: each source is joined
        // separately.
        for of_sockets in [false, true] {
            let places: Vec<usize> = issued
                .iter()
                .copied()
                .filter(|place| client.issued[*place].is_of_sockets == of_sockets)
                .collect();
            let (Some(first), Some(first_served)) = (places.first(), served.first()) else {
                continue;
            };
            let begins =
                is_first(&client.issued[*first]) && is_first(&server.served[*first_served]);
            let is_once =
                firsts(&client.issued, &places) == 1 && firsts(&server.served, served) == 1;
            if !begins || !is_once {
                continue;
            }
            for (issued, served) in places.iter().zip(served) {
                let (here, there) = (&client.issued[*issued], &server.served[*served]);
                if !is_possible(here, there) {
                    break;
                }
                self.sure.insert(
                    *issued,
                    Pair {
                        issued: *issued,
                        served: *served,
                        by: By::Connection,
                        is_sure: true,
                    },
                );
            }
        }
    }

    /// Joins requests with spans that refer to each other uniquely.
    fn traced(&mut self, client: &Rows, server: &Rows) {
        let mut caused: FxHashMap<(i64, i64, i64), Vec<usize>> = FxHashMap::default();
        for (place, one) in server.served.iter().enumerate() {
            let traced = one.traced;
            let Some((high, low)) = traced.trace else {
                continue;
            };
            // With some tracers both sides share a span.
            let mut spans = [traced.parent, traced.span];
            if spans[0] == spans[1] {
                spans[1] = None;
            }
            for span in spans.into_iter().flatten() {
                caused.entry((high, low, span)).or_default().push(place);
            }
        }
        for (place, one) in client.issued.iter().enumerate() {
            let key = one.traced.trace.zip(one.traced.span);
            let Some(((high, low), span)) = key else {
                continue;
            };
            let served = caused
                .get(&(high, low, span))
                .map_or(&[][..], Vec::as_slice);
            if let &[served] = served {
                self.sure.entry(place).or_insert(Pair {
                    issued: place,
                    served,
                    by: By::Trace,
                    is_sure: true,
                });
            }
        }
    }

    /// All possible matches of a client's request.
    pub(super) fn pairs(&self, client: &Rows, server: &Rows, issued: usize) -> Vec<Pair> {
        if let Some(sure) = self.sure.get(&issued) {
            return vec![*sure];
        }
        let one = &client.issued[issued];
        let served = one.ends.and_then(|ends| server.served_on.get(&ends));
        let served = served.map_or(&[][..], Vec::as_slice);
        let taken = served
            .iter()
            .copied()
            .filter(|served| is_possible(one, &server.served[*served]));
        taken
            .take(POSSIBLE_MAX)
            .map(|served| Pair {
                issued,
                served,
                by: By::Connection,
                is_sure: false,
            })
            .collect()
    }

    /// Possible matches of the requests near a time.
    pub(super) fn near(&self, client: &Rows, server: &Rows, at: Ns) -> Vec<Pair> {
        let mut near: Vec<usize> = client
            .issued
            .iter()
            .enumerate()
            .filter(|(_, one)| (one.begin - at).abs() <= NEAR_NS && !one.is_served_here)
            .map(|(place, _)| place)
            .collect();
        near.index_sort_by_key(|place| ((client.issued[*place].begin - at).abs(), *place));
        let pairs = near.iter().map(|place| self.pairs(client, server, *place));
        let pairs = pairs.filter(|pairs| !pairs.is_empty());
        pairs.take(NEAR_MAX).flatten().collect()
    }
}

/// Whether they can be the same request, independent of the clocks.
fn is_possible(issued: &Seen, served: &Seen) -> bool {
    let differs = |one: Option<i64>, other: Option<i64>| {
        let both = issued.is_of_sockets && served.is_of_sockets;
        both && one.zip(other).is_some_and(|(one, other)| one != other)
    };
    let order = issued.is_reused.zip(served.is_reused);
    !differs(issued.bytes_sent, served.bytes_received)
        && !differs(issued.bytes_received, served.bytes_sent)
        && order.is_none_or(|(here, there)| here == there)
}

/// The clock offset that one pair allows at a time of the client's clock; none if the times of one
/// side do not bound it.
pub(super) fn bounds(
    issued: &Seen,
    served: &Seen,
    (written, at): (Option<Ns>, Ns),
) -> Option<Bounds> {
    // Times in a log are those of writing the line, rounded.
    if !served.is_of_sockets {
        return None;
    }
    let end = issued.end?;
    // A client that has all of the reply has it after the server wrote the last part.
    let has_all = issued
        .bytes_received
        .zip(served.bytes_sent)
        .is_some_and(|(here, there)| here >= there);
    let gave = match written.filter(|_| has_all) {
        Some(written) => (written.saturating_sub(end), end),
        None => (served.first.saturating_sub(issued.first), issued.first),
    };
    // The first request of a connection is ready from its start, possibly before it was sent.
    let is_first = served.is_reused == Some(false);
    let arrived = if is_first { served.first } else { served.begin };
    let had = arrived.saturating_sub(issued.begin);
    Some(Bounds::of_pair((had, issued.begin), gave, at))
}

/// Candidates from packets seen on both sides: in both directions they arrive after they were sent.
pub(super) fn of_packets(here: &Packets, there: &Packets, at: Ns) -> Vec<Candidate> {
    let mut found = Vec::new();
    let mut add = |bounds: Bounds, ts: Ns| {
        found.push(Candidate {
            issued: PACKET + found.len() as u64,
            bounds: bounds.after(at.saturating_sub(ts)),
            is_sure: true,
        });
    };
    for (key, sent) in &here.sent {
        if let Some(received) = there.received.get(key) {
            let high_ns = received.saturating_sub(*sent);
            add(
                Bounds {
                    high_ns,
                    ..Bounds::ANY
                },
                *sent,
            );
        }
    }
    for (key, received) in &here.received {
        if let Some(sent) = there.sent.get(key) {
            let low_ns = sent.saturating_sub(*received);
            add(
                Bounds {
                    low_ns,
                    ..Bounds::ANY
                },
                *received,
            );
        }
    }
    found
}

/// The possible match that the clock offset allows, if it is the only one.
pub(super) fn only(
    pairs: &[Pair],
    clock: Clock,
    bounds_of: impl Fn(&Pair) -> Option<Bounds>,
) -> Option<(Pair, Option<Bounds>)> {
    let within = match clock {
        Clock::Within { bounds, .. } => Some(bounds),
        _ => None,
    };
    if let [pair] = pairs
        && pair.is_sure
    {
        let both = match (within, bounds_of(pair)) {
            (Some(all), Some(own)) => all.and(own),
            (all, own) => all.or(own),
        };
        return Some((*pair, both));
    }
    let within = within?;
    let mut fitting = pairs.iter().filter_map(|pair| {
        let both = bounds_of(pair)?.and(within)?;
        Some((*pair, Some(both)))
    });
    let first = fitting.next()?;
    fitting.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests;
