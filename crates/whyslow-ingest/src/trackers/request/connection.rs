//! Connections, and the requests and replies on each: one exchange at a time.

use whyslow_model::event::Endpoint;
use whyslow_model::sort::IndexSort;
use whyslow_model::{Ns, Sym};

use super::super::identity::ThreadRef;
use super::tcp::Standing;
use super::workers::{Edge, Way};

/// Maximum number of handovers kept per exchange, and of nested exchanges.
pub(super) const EDGES_MAX: usize = 256;
/// Waits for an interpreter lock are steps of at most 5 ms: a longer single wait is for a result.
const AWAY_MIN_NS: Ns = 10_000_000;
/// A thread that passes a request on and waits for it does so at once: within this fraction of the
/// time.
const AWAY_SHARE: Ns = 10;
/// A thread that had a request for less than this time, and only woke another one, is ignored.
const PASSED_NS: Ns = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Role {
    Client,
    Server,
}

/// Identifies an exchange as long as it is the last one of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) socket: i64,
    pub(super) id: i64,
}

/// A point in time at which a thread handled an exchange.
#[derive(Debug, Clone, Copy)]
pub(super) struct Touch {
    pub(super) ts: Ns,
    pub(super) thread: ThreadRef,
    /// Number of changes of the thread's current exchange until then.
    pub(super) turns: u32,
}

#[derive(Debug)]
pub(super) struct Connection {
    /// Number in rows.
    pub(super) number: i64,
    pub(super) role: Role,
    pub(super) local: Option<Sym>,
    pub(super) peer: Option<Sym>,
    pub(super) peer_end: Option<Endpoint>,
    /// Client address without port.
    pub(super) client: Option<Sym>,
    pub(super) protocol: Option<&'static str>,
    /// State of the TCP connection, once established.
    pub(super) standing: Option<Standing>,
    /// Time of the connection request, and of the reply.
    pub(super) connected: Option<(Ns, Ns)>,
    /// Thread that requested the connection.
    pub(super) connected_by: Option<i32>,
    /// The exchange that this thread worked on then: an event loop sends its request when the
    /// connection is established, after it waited for any event.
    pub(super) cause: Option<Key>,
    pub(super) accepted: Option<Ns>,
    /// It was established before the recording.
    pub(super) is_old: bool,
    /// Arrival time of the first unread data.
    pub(super) arrived: Option<Ns>,
    /// Number of exchanges before the open one.
    pub(super) done: u32,
    pub(super) open: Option<Box<Exchange>>,
    /// Process of the last read or write.
    pub(super) user: Option<i32>,
    /// The kernel closed it; data received before may still be read.
    pub(super) is_over: bool,
}

impl Connection {
    pub(super) fn new(number: i64, role: Role) -> Self {
        Self {
            number,
            role,
            local: None,
            peer: None,
            peer_end: None,
            client: None,
            protocol: None,
            standing: None,
            connected: None,
            connected_by: None,
            cause: None,
            accepted: None,
            is_old: false,
            arrived: None,
            done: 0,
            open: None,
            user: None,
            is_over: false,
        }
    }

    pub(super) fn is_answered(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.answer.is_some())
    }
}

/// A request and its reply.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) id: i64,
    pub(super) ts: Ns,
    pub(super) begun: Touch,
    pub(super) bytes_sent: i64,
    pub(super) bytes_received: i64,
    pub(super) queue_ns: Option<Ns>,
    /// For a client: time at which the request was written.
    pub(super) sent: Option<Ns>,
    /// First and last time of the reply: read by a client, written by a server.
    pub(super) answer: Option<(Ns, Ns)>,
    /// For a server: the thread that wrote the reply, and the earliest time at which it can have
    /// started.
    pub(super) writer: Option<(Touch, Ns)>,
    pub(super) edges: Vec<Edge>,
    /// Client requests to other servers in the meantime.
    pub(super) nested: Vec<Nested>,
    /// The exchange that caused this one.
    pub(super) parent: Option<Key>,
    /// The same exchange on the other side.
    pub(super) other: Option<Key>,
    /// For a client: the threads of the other side, once it has ended.
    pub(super) chain: Vec<Turn>,
    pub(super) is_reset: bool,
}

/// An exchange with another server.
#[derive(Debug)]
pub(super) struct Nested {
    pub(super) key: Key,
    pub(super) requested: Touch,
    pub(super) answered: Option<Touch>,
    /// The threads of the other side.
    pub(super) chain: Vec<Turn>,
}

/// The exchange was with a thread from `ts` to `ts_end`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    pub(super) ts: Ns,
    pub(super) ts_end: Ns,
    pub(super) thread: ThreadRef,
    pub(super) from: Option<ThreadRef>,
    pub(super) way: Way,
    /// Start of its wait for the wakeup with this exchange.
    pub(super) waited_since: Option<Ns>,
    pub(super) is_shared: bool,
}

impl Exchange {
    pub(super) fn new(id: i64, begun: Touch) -> Self {
        Self {
            id,
            ts: begun.ts,
            begun,
            bytes_sent: 0,
            bytes_received: 0,
            queue_ns: None,
            sent: None,
            answer: None,
            writer: None,
            edges: Vec::new(),
            nested: Vec::new(),
            parent: None,
            other: None,
            chain: Vec::new(),
            is_reset: false,
        }
    }

    /// More of the reply.
    pub(super) fn answered(&mut self, first: Ns, last: Ns) {
        let since = self.answer.map_or(first, |(since, _)| since);
        self.answer = Some((since, last));
    }

    /// The threads of the exchange, in order: found backwards from the thread that wrote the reply
    /// to the one that read the request. Other threads that were woken in the meantime are omitted.
    pub(super) fn turns(&self) -> Vec<Turn> {
        let Some((writer, since)) = self.writer else {
            return Vec::new();
        };
        let mut edges: Vec<&Edge> = self.edges.iter().collect();
        edges.index_sort_by_ints(|edge| [edge.ts, 0, 0]);
        let mut turns = Vec::new();
        let mut last = writer;
        while let Some(place) = edges
            .iter()
            .rposition(|edge| edge.to.thread.utid == last.thread.utid && edge.ts <= last.ts)
        {
            let edge = edges[place];
            edges.truncate(place);
            turns.push(Turn {
                ts: edge.ts,
                ts_end: last.ts,
                thread: last.thread,
                from: Some(edge.from.thread),
                way: edge.way,
                waited_since: edge.waited.map(|(since, _)| since),
                is_shared: last.turns != edge.to.turns,
            });
            last = edge.from;
            last.ts = edge.ts;
        }
        let reader = self.begun;
        let is_reader = last.thread.utid == reader.thread.utid;
        if !is_reader {
            // It is unknown how the exchange got to the thread: only that it was there by then.
            let ts = if last.thread.utid == writer.thread.utid {
                since.max(reader.ts).min(last.ts)
            } else {
                last.ts
            };
            turns.push(Turn {
                ts,
                ts_end: last.ts,
                thread: last.thread,
                from: None,
                way: Way::Write,
                waited_since: None,
                is_shared: false,
            });
            last.ts = ts;
        }
        turns.push(Turn {
            ts: reader.ts,
            ts_end: last.ts.max(reader.ts),
            thread: reader.thread,
            from: None,
            way: Way::Read,
            waited_since: None,
            is_shared: is_reader && last.turns != reader.turns,
        });
        turns.reverse();
        without_rounds(turns)
    }
}

/// Removes round trips. An exchange that comes back to a thread only by futexes and new threads was
/// most likely never passed on, unless the thread waited for just that all the time: a lock that is
/// passed around looks the same. For the same reason, a thread that had the exchange for an instant
/// between two others, both by futexes, is omitted.
fn without_rounds(turns: Vec<Turn>) -> Vec<Turn> {
    let mut kept: Vec<Turn> = Vec::with_capacity(turns.len());
    for turn in turns {
        let by_futex = kept.iter().rev();
        let by_futex = by_futex
            .take_while(|before| before.way.is_candidate())
            .count();
        let from = kept.len().saturating_sub(by_futex + 1);
        let is_same = |before: &Turn| before.thread.utid == turn.thread.utid;
        let had = kept[from..].iter().position(is_same);
        let had = had.filter(|_| turn.way == Way::Futex);
        match had.map(|place| from + place) {
            Some(place) if !has_waited(&turn, &kept[place]) => {
                kept.truncate(place + 1);
                if let Some(before) = kept.last_mut() {
                    before.ts_end = turn.ts_end;
                    before.is_shared |= turn.is_shared;
                }
            }
            _ => kept.push(turn),
        }
    }
    without_passers(kept)
}

/// Whether a thread waited for the whole time that others had the exchange. `before` is its
/// previous turn.
fn has_waited(turn: &Turn, before: &Turn) -> bool {
    let away = turn.ts.saturating_sub(before.ts_end);
    let Some(since) = turn.waited_since else {
        return false;
    };
    away >= AWAY_MIN_NS && since.saturating_sub(before.ts_end) <= away / AWAY_SHARE
}

fn without_passers(turns: Vec<Turn>) -> Vec<Turn> {
    let mut kept: Vec<Turn> = Vec::with_capacity(turns.len());
    for (place, turn) in turns.iter().enumerate() {
        let next = turns.get(place + 1);
        let is_passer = turn.way.is_candidate()
            && next.is_some_and(|next| next.way == Way::Futex)
            && turn.ts_end.saturating_sub(turn.ts) < PASSED_NS;
        if let Some(before) = kept.last_mut().filter(|_| is_passer) {
            before.ts_end = turn.ts_end;
            continue;
        }
        let from = kept.last().map(|before| before.thread);
        kept.push(Turn {
            from: turn.from.and(from),
            ..*turn
        });
    }
    kept
}

/// The threads of the other side, as handovers from the thread that sent the request to the one
/// that received the reply.
pub(super) fn handed_on(turns: &[Turn], requested: Touch, answered: Touch) -> Vec<Edge> {
    let touch = |thread, ts| Touch {
        ts,
        thread,
        turns: 0,
    };
    let mut from = requested;
    let mut edges = Vec::new();
    for (place, turn) in turns.iter().enumerate() {
        let to = touch(turn.thread, turn.ts);
        let way = if place == 0 { Way::Socket } else { turn.way };
        let ts = turn.ts;
        edges.push(Edge {
            ts,
            from,
            to,
            way,
            waited: None,
        });
        from = touch(turn.thread, turn.ts_end);
    }
    edges.push(Edge {
        ts: answered.ts,
        from,
        to: answered,
        way: Way::Socket,
        waited: None,
    });
    edges
}
