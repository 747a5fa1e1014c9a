//! Matches requests reported by a client itself, such as load, with the requests of this recording
//! that served them.
//!
//! Both sides know the addresses of the connection, and requests on one connection are consecutive.
//! Two requests match if each is the only one that fits the other in time: the server had the
//! request while the client waited for the reply. If there are several candidates, none is chosen,
//! which is better than a wrong match.
//!
//! The sockets of such a client show the same request again; that row is marked as such. It is
//! processed after the client's own row, which starts no later and uses the same clock; if several
//! overlap it, such as streams on one connection, it is attributed to the one with the longest
//! overlap.
//!
//! The sockets of a server do not show the content of a request. If it is matched with a client's
//! record, the content is known.
//!
//! Another host has another clock. If both sides have the same number of requests on a connection,
//! these match in order, and bound the offset ([`Offset`]).

use rustc_hash::FxHashMap;
use whyslow_model::tables::{EmitAll, RequestRow};
use whyslow_model::{Ns, Sym, stat};

use super::super::identity::Output;
use super::offset::{BothSides, Offset};
use super::traced::Traced;
use crate::importers::requests::Role;

/// Maximum number of client requests buffered until the request that served them is known.
const CLIENTS_MAX: usize = 1 << 18;
/// Maximum number of served requests to match: with a wrong clock, any may be a candidate.
const SERVED_MAX: usize = 1 << 20;
/// Fewer exchanges may fit a wrong clock offset by chance, for example if a port was reused.
const EXCHANGES_MIN: usize = 8;

/// Maximum number of rows that wait for the record of their client; further ones are written
/// without it.
const PENDING_MAX: usize = 1 << 17;
/// Maximum number of a connection's rows that are compared with a request on one of its sockets,
/// latest first: concurrent streams.
const STREAMS_MAX: usize = 64;

#[derive(Debug)]
struct Served {
    id: i64,
    ts: Ns,
    /// Start of the reply.
    answered: Ns,
    /// `None` above the limit.
    row: Option<Box<RequestRow>>,
}

#[derive(Debug, Default)]
struct ClientConnection {
    rows: Vec<RequestRow>,
    served: Vec<Served>,
}

#[derive(Debug, Default)]
pub(super) struct Expected {
    /// Whether both exist: requests reported by clients, and data that may show which requests
    /// served them.
    has_both: bool,
    /// By the client's local and remote address.
    connections: FxHashMap<(Sym, Sym), ClientConnection>,
    clients: usize,
    served: usize,
    pending: usize,
}

impl Expected {
    pub(super) fn expect_both(&mut self) {
        self.has_both = true;
    }

    /// Holds back a client request, which keeps its id; returns it if there is nothing to wait for.
    pub(super) fn client<S: EmitAll>(
        &mut self,
        row: Box<RequestRow>,
        out: &mut Output<'_, S>,
    ) -> Option<Box<RequestRow>> {
        let (true, Some(local), Some(peer)) = (self.has_both, row.local, row.peer) else {
            return Some(row);
        };
        if self.clients >= CLIENTS_MAX {
            out.anomalies.count(&stat::REQUEST_JOIN_LIMIT, row.ts);
            return Some(row);
        }
        self.clients += 1;
        let connection = self.connections.entry((local, peer)).or_default();
        connection.rows.push(*row);
        None
    }

    /// For a request seen on a client's sockets: id of the same request as reported by the client.
    pub(super) fn same_as(&self, row: &RequestRow) -> Option<i64> {
        let connection = self.connections.get(&row.local.zip(row.peer)?)?;
        let end = |row: &RequestRow| row.ts_end.unwrap_or(Ns::MAX);
        let common = |reported: &RequestRow| {
            let until = end(reported).min(end(row));
            until.saturating_sub(reported.ts.max(row.ts))
        };
        let reported = connection.rows.iter().rev().take(STREAMS_MAX);
        let best = reported.max_by_key(|reported| (common(reported), reported.id))?;
        // Either may start earlier, with the connection.
        let length = |row: &RequestRow| end(row).saturating_sub(row.ts);
        let shorter = length(row).min(length(best));
        let is_same = common(best) > 0 && common(best) >= shorter / 2;
        is_same.then_some(best.id)
    }

    /// Holds back a request that was served and replied to; returns it if there is nothing to wait
    /// for.
    pub(super) fn served<S: EmitAll>(
        &mut self,
        row: Box<RequestRow>,
        answered: Ns,
        out: &mut Output<'_, S>,
    ) -> Option<Box<RequestRow>> {
        let (true, Some(ends)) = (self.has_both, row.peer.zip(row.local)) else {
            return Some(row);
        };
        if self.served >= SERVED_MAX {
            out.anomalies.count(&stat::REQUEST_JOIN_LIMIT, row.ts);
            return Some(row);
        }
        self.served += 1;
        let both = self.connections.entry(ends).or_default();
        let (id, ts) = (row.id, row.ts);
        let (pending, given_back) = if self.pending < PENDING_MAX {
            (Some(row), None)
        } else {
            (None, Some(row))
        };
        self.pending += usize::from(pending.is_some());
        both.served.push(Served {
            id,
            ts,
            answered,
            row: pending,
        });
        given_back
    }

    /// Writes all requests, matched.
    pub(super) fn finish<S: EmitAll>(&mut self, traced: &Traced, out: &mut Output<'_, S>) {
        let mut rows = Vec::new();
        let mut connections = std::mem::take(&mut self.connections);
        for connection in connections.values_mut() {
            connection.rows.sort_by_key(|row| (row.ts, row.id));
            connection
                .served
                .sort_by_key(|served| (served.ts, served.id));
        }
        let pairs = connections
            .values()
            .filter(|it| it.rows.len() == it.served.len());
        let pairs = pairs.flat_map(|it| it.rows.iter().zip(&it.served));
        let exchanges: Vec<BothSides> = pairs
            .filter_map(|(row, served)| {
                Some(BothSides {
                    client: (row.ts, row.ts_end?),
                    served: (served.ts, served.answered),
                })
            })
            .collect();
        let is_enough = exchanges.len() >= EXCHANGES_MIN;
        let offset = Offset::of(exchanges).filter(|_| is_enough);
        let other_clock = offset.filter(|offset| !offset.is_none());
        let shift = other_clock.map_or(0, |offset| offset.middle_ns().0);
        if let Some(offset) = other_clock {
            let (middle, error) = offset.middle_ns();
            let at = connections
                .values()
                .flat_map(|it| &it.rows)
                .map(|row| row.ts)
                .min();
            let text = format!(
                "the client's clock is {} \u{b5}s ahead (\u{b1} {} \u{b5}s)",
                middle / 1000,
                error.saturating_add(999) / 1000
            );
            out.anomalies
                .note(&stat::REQUEST_CLOCK, at.unwrap_or(0), text);
        }
        let joined = out.symbols.intern_static("connection");
        let by_trace = out.symbols.intern_static("trace");
        let kinds = ["unknown", "ok", "error"].map(|word| out.symbols.intern_static(word));
        for mut connection in connections.into_values() {
            for (row, place) in join(&connection, shift).into_iter().enumerate() {
                let Some(served) = place.and_then(|place| connection.served.get_mut(place)) else {
                    continue;
                };
                let reported = &mut connection.rows[row];
                reported.server_request = Some(served.id);
                reported.joined_by = Some(joined);
                if let Some(served) = &mut served.row {
                    name(served, reported, kinds);
                }
            }
            for reported in &mut connection.rows {
                traced.join(reported, Role::Client, by_trace);
            }
            rows.extend(connection.rows);
            let pending = connection
                .served
                .into_iter()
                .filter_map(|served| served.row);
            rows.extend(pending.map(|row| *row));
        }
        rows.sort_by_key(|row| row.id);
        for row in rows {
            out.sink.emit(row);
        }
    }
}

/// Copies the properties of a request from the client's record: method, endpoint and the
/// status of the response.
fn name(served: &mut RequestRow, reported: &RequestRow, [unknown, ok, error]: [Sym; 3]) {
    served.method = reported.method;
    served.host = reported.host;
    served.endpoint = reported.endpoint;
    served.target = reported.target;
    served.status = reported.status;
    served.protocol = served.protocol.or(reported.protocol);
    // A client may have given up without its server noticing.
    if served.outcome == unknown && (reported.outcome == ok || reported.outcome == error) {
        served.outcome = reported.outcome;
    }
}

/// For each client request, the index of the only served request that fits, if that fits no other.
fn join(connection: &ClientConnection, shift: Ns) -> Vec<Option<usize>> {
    let mut taken = vec![0i64; connection.served.len() + 1];
    let fits = connection.rows.iter().map(|row| {
        let begin = row.ts.saturating_sub(shift);
        let end = row.ts_end.map(|end| end.saturating_sub(shift));
        let from = connection
            .served
            .partition_point(|served| served.ts < begin);
        let to = end.map_or(from, |end| {
            connection.served.partition_point(|served| served.ts <= end)
        });
        from..to.max(from)
    });
    let fits: Vec<std::ops::Range<usize>> = fits.collect();
    // Number of client requests that start to fit each, minus those that no longer fit.
    for range in &fits {
        taken[range.start] += 1;
        taken[range.end] -= 1;
    }
    let mut sum = 0;
    for count in &mut taken {
        sum += *count;
        *count = sum;
    }
    let only = |range: std::ops::Range<usize>| {
        let is_only = range.len() == 1 && taken[range.start] == 1;
        is_only.then_some(range.start)
    };
    fits.into_iter().map(only).collect()
}
