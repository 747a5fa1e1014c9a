//! Which request of one recording is which of another one, and what that says of their clocks.
//!
//! Both sides know the addresses and ports of a connection, mirrored, and on a connection requests come
//! one after another. Where both saw its first one, those are the same in order: that is sure, as are
//! requests of one trace whose spans name each other. Of a connection that is older than one of the
//! recordings, each may be any, until the clocks tell.

use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use super::clock::{Bounds, Candidate, Clock};
use super::rows::{Packets, Rows, Seen};

/// Requests so far from the one in question say little of the clocks at its time.
const NEAR_NS: Ns = 10_000_000_000;
/// Requests that are looked at for that, the nearest.
const NEAR_MAX: usize = 512;
/// Requests of a connection on the other side, of which one may be any.
const POSSIBLE_MAX: usize = 512;
/// Numbers of packets among those of requests.
const PACKET: u64 = 1 << 63;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Connection,
    Trace,
}

impl By {
    pub(super) fn word(self) -> &'static str {
        match self {
            By::Connection => "connection",
            By::Trace => "trace",
        }
    }
}

/// Two views of one request, by place among those that were asked and that were served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) asked: usize,
    pub(super) served: usize,
    pub(super) by: By,
    pub(super) is_sure: bool,
}

/// Requests of one recording that another one served.
#[derive(Debug, Default)]
pub(super) struct Link {
    /// By place among those that were asked.
    sure: FxHashMap<usize, Pair>,
}

impl Link {
    pub(super) fn new(client: &Rows, server: &Rows) -> Self {
        let mut link = Self::default();
        for (ends, asked) in &client.asked_on {
            let Some(served) = server.served_on.get(ends) else {
                continue;
            };
            link.in_order((client, asked), (server, served));
        }
        link.traced(client, server);
        link
    }

    /// Requests of a connection whose first one both saw.
    fn in_order(
        &mut self,
        (client, asked): (&Rows, &[usize]),
        (server, served): (&Rows, &[usize]),
    ) {
        let is_first = |one: &Seen| one.is_reused == Some(false);
        let firsts = |rows: &[Seen], places: &[usize]| {
            places
                .iter()
                .filter(|place| is_first(&rows[**place]))
                .count()
        };
        // What its load and its sockets tell are two rows of one request: each source by itself.
        for of_sockets in [false, true] {
            let places: Vec<usize> = asked
                .iter()
                .copied()
                .filter(|place| client.asked[*place].is_of_sockets == of_sockets)
                .collect();
            let (Some(first), Some(first_served)) = (places.first(), served.first()) else {
                continue;
            };
            let begins = is_first(&client.asked[*first]) && is_first(&server.served[*first_served]);
            let is_once =
                firsts(&client.asked, &places) == 1 && firsts(&server.served, served) == 1;
            if !begins || !is_once {
                continue;
            }
            for (asked, served) in places.iter().zip(served) {
                let (here, there) = (&client.asked[*asked], &server.served[*served]);
                if !is_possible(here, there) {
                    break;
                }
                self.sure.insert(
                    *asked,
                    Pair {
                        asked: *asked,
                        served: *served,
                        by: By::Connection,
                        is_sure: true,
                    },
                );
            }
        }
    }

    /// Requests whose spans name each other, each the only one that does.
    fn traced(&mut self, client: &Rows, server: &Rows) {
        let mut caused: FxHashMap<(i64, i64, i64), Vec<usize>> = FxHashMap::default();
        for (place, one) in server.served.iter().enumerate() {
            let traced = one.traced;
            let Some((high, low)) = traced.trace else {
                continue;
            };
            // Some tracers have both sides share a span.
            let mut spans = [traced.parent, traced.span];
            if spans[0] == spans[1] {
                spans[1] = None;
            }
            for span in spans.into_iter().flatten() {
                caused.entry((high, low, span)).or_default().push(place);
            }
        }
        for (place, one) in client.asked.iter().enumerate() {
            let key = one.traced.trace.zip(one.traced.span);
            let Some(((high, low), span)) = key else {
                continue;
            };
            let served = caused
                .get(&(high, low, span))
                .map_or(&[][..], Vec::as_slice);
            if let &[served] = served {
                self.sure.entry(place).or_insert(Pair {
                    asked: place,
                    served,
                    by: By::Trace,
                    is_sure: true,
                });
            }
        }
    }

    /// All that the request `asked` may be.
    pub(super) fn pairs(&self, client: &Rows, server: &Rows, asked: usize) -> Vec<Pair> {
        if let Some(sure) = self.sure.get(&asked) {
            return vec![*sure];
        }
        let one = &client.asked[asked];
        let served = one.ends.and_then(|ends| server.served_on.get(&ends));
        let served = served.map_or(&[][..], Vec::as_slice);
        let taken = served
            .iter()
            .copied()
            .filter(|served| is_possible(one, &server.served[*served]));
        taken
            .take(POSSIBLE_MAX)
            .map(|served| Pair {
                asked,
                served,
                by: By::Connection,
                is_sure: false,
            })
            .collect()
    }

    /// Requests near a moment, and what each of them may be.
    pub(super) fn near(&self, client: &Rows, server: &Rows, at: Ns) -> Vec<Pair> {
        let mut near: Vec<usize> = client
            .asked
            .iter()
            .enumerate()
            .filter(|(_, one)| (one.begin - at).abs() <= NEAR_NS && !one.is_served_here)
            .map(|(place, _)| place)
            .collect();
        near.index_sort_by_key(|place| ((client.asked[*place].begin - at).abs(), *place));
        let pairs = near.iter().map(|place| self.pairs(client, server, *place));
        let pairs = pairs.filter(|pairs| !pairs.is_empty());
        pairs.take(NEAR_MAX).flatten().collect()
    }
}

/// Whether they can be the same, whatever the clocks say.
fn is_possible(asked: &Seen, served: &Seen) -> bool {
    let differs = |one: Option<i64>, other: Option<i64>| {
        let both = asked.is_of_sockets && served.is_of_sockets;
        both && one.zip(other).is_some_and(|(one, other)| one != other)
    };
    let order = asked.is_reused.zip(served.is_reused);
    !differs(asked.bytes_sent, served.bytes_received)
        && !differs(asked.bytes_received, served.bytes_sent)
        && order.is_none_or(|(here, there)| here == there)
}

/// The difference of the clocks that one pair allows at a moment of the client's clock; none where what
/// is told of one side is no moment that bounds anything.
pub(super) fn bounds(
    asked: &Seen,
    served: &Seen,
    (written, at): (Option<Ns>, Ns),
) -> Option<Bounds> {
    // When a log says that a request began or ended is when it was written down, rounded.
    if !served.is_of_sockets {
        return None;
    }
    let end = asked.end?;
    // Who had all of the answer had it after its last part was written.
    let has_all = asked
        .bytes_received
        .zip(served.bytes_sent)
        .is_some_and(|(here, there)| here >= there);
    let gave = match written.filter(|_| has_all) {
        Some(written) => (written.saturating_sub(end), end),
        None => (served.first.saturating_sub(asked.first), asked.first),
    };
    let had = served.begin.saturating_sub(asked.begin);
    Some(Bounds::of_pair((had, asked.begin), gave, at))
}

/// What packets that both saw say: they are received after they were sent, whichever way they went.
pub(super) fn of_packets(here: &Packets, there: &Packets, at: Ns) -> Vec<Candidate> {
    let mut found = Vec::new();
    let mut add = |bounds: Bounds, ts: Ns| {
        found.push(Candidate {
            asked: PACKET + found.len() as u64,
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

/// One of those that the request may be that the clocks allow, if it is the only one.
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
