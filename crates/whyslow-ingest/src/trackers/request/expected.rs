//! Requests that a client told itself, as load does, and the ones of this recording that served them.
//!
//! Both know the addresses of the connection, and requests on one connection come one after the
//! other. They are the same if each of them is the only one that fits the other in time: the server
//! had the question while the client waited for the answer. Where none is the only one there is no
//! answer, which is better than a wrong one.
//!
//! Of another host, the clock is another one. Where both sides know as many requests of a connection, those are the same
//! in order, and bound the difference ([`Offset`]).

use rustc_hash::FxHashMap;
use whyslow_model::tables::{EmitAll, RequestRow};
use whyslow_model::{Ns, Sym, stat};

use super::super::identity::Output;
use super::offset::{BothSides, Offset};
use super::traced::Traced;
use crate::importers::requests::Role;

/// Requests of clients that are held until it is known who served them.
const ASKED_MAX: usize = 1 << 18;
/// Requests that were served, of which it is known whose they may be: any, by a clock that is wrong.
const SERVED_MAX: usize = 1 << 20;
/// Fewer exchanges may fit a wrong difference of clocks by chance, as where a port was used again.
const EXCHANGES_MIN: usize = 8;

#[derive(Debug, Clone, Copy)]
struct Served {
    id: i64,
    ts: Ns,
    /// It began to answer.
    answered: Ns,
}

#[derive(Debug, Default)]
struct Asked {
    rows: Vec<RequestRow>,
    served: Vec<Served>,
}

#[derive(Debug, Default)]
pub(super) struct Expected {
    /// Whether there are both: requests that clients tell, and what may show who served them.
    has_both: bool,
    /// By this side of the client and its other side.
    connections: FxHashMap<(Sym, Sym), Asked>,
    asked: usize,
    served: usize,
}

impl Expected {
    pub(super) fn expect_both(&mut self) {
        self.has_both = true;
    }

    /// Takes a request of a client, which keeps its id; gives it back if there is nothing to wait for.
    pub(super) fn client<S: EmitAll>(
        &mut self,
        row: Box<RequestRow>,
        out: &mut Output<'_, S>,
    ) -> Option<Box<RequestRow>> {
        let (true, Some(local), Some(peer)) = (self.has_both, row.local, row.peer) else {
            return Some(row);
        };
        if self.asked >= ASKED_MAX {
            out.anomalies.count(&stat::REQUEST_JOIN_LIMIT, row.ts);
            return Some(row);
        }
        self.asked += 1;
        let asked = self.connections.entry((local, peer)).or_default();
        asked.rows.push(*row);
        None
    }

    /// A request that was served and answered.
    pub(super) fn served<S: EmitAll>(
        &mut self,
        row: &RequestRow,
        answered: Ns,
        out: &mut Output<'_, S>,
    ) {
        let (true, Some(ends)) = (self.has_both, row.peer.zip(row.local)) else {
            return;
        };
        if self.served >= SERVED_MAX {
            return out.anomalies.count(&stat::REQUEST_JOIN_LIMIT, row.ts);
        }
        self.served += 1;
        let both = self.connections.entry(ends).or_default();
        both.served.push(Served {
            id: row.id,
            ts: row.ts,
            answered,
        });
    }

    /// Writes them all, joined.
    pub(super) fn finish<S: EmitAll>(&mut self, traced: &Traced, out: &mut Output<'_, S>) {
        let mut rows = Vec::new();
        let mut connections = std::mem::take(&mut self.connections);
        for asked in connections.values_mut() {
            asked.rows.sort_by_key(|row| (row.ts, row.id));
            asked.served.sort_by_key(|served| (served.ts, served.id));
        }
        let pairs = connections
            .values()
            .filter(|it| it.rows.len() == it.served.len());
        let pairs = pairs.flat_map(|it| it.rows.iter().zip(&it.served));
        let exchanges: Vec<BothSides> = pairs
            .filter_map(|(row, served)| {
                Some(BothSides {
                    asked: (row.ts, row.ts_end?),
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
                "clock of the load is {} \u{b5}s ahead, \u{b1} {} \u{b5}s",
                middle / 1000,
                error.saturating_add(999) / 1000
            );
            out.anomalies
                .tell(&stat::REQUEST_CLOCK, at.unwrap_or(0), text);
        }
        let joined = out.symbols.intern_static("connection");
        let by_trace = out.symbols.intern_static("trace");
        for asked in connections.into_values() {
            let found = join(&asked, shift);
            rows.extend(asked.rows.into_iter().zip(found).map(|(mut row, found)| {
                row.server_request = found;
                row.joined_by = found.map(|_| joined);
                traced.join(&mut row, Role::Client, by_trace);
                row
            }));
        }
        rows.sort_by_key(|row| row.id);
        for row in rows {
            out.sink.emit(row);
        }
    }
}

/// Of each that was asked the only one that fits, if it fits no other.
fn join(asked: &Asked, shift: Ns) -> Vec<Option<i64>> {
    let mut taken = vec![0i64; asked.served.len() + 1];
    let fits = asked.rows.iter().map(|row| {
        let begin = row.ts.saturating_sub(shift);
        let end = row.ts_end.map(|end| end.saturating_sub(shift));
        let from = asked.served.partition_point(|served| served.ts < begin);
        let to = end.map_or(from, |end| {
            asked.served.partition_point(|served| served.ts <= end)
        });
        from..to.max(from)
    });
    let fits: Vec<std::ops::Range<usize>> = fits.collect();
    // How many begin to fit each, less those that no longer do.
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
        is_only.then(|| asked.served[range.start].id)
    };
    fits.into_iter().map(only).collect()
}
