//! Connections, and what is asked and answered on each: one exchange at a time.

use whyslow_model::event::Endpoint;
use whyslow_model::sort::IndexSort;
use whyslow_model::{Ns, Sym};

use super::super::identity::ThreadRef;
use super::hands::{Edge, Way};
use super::tcp::Standing;

/// Hand-overs of one exchange that are kept, and exchanges that it led to.
pub(super) const EDGES_MAX: usize = 256;
/// A lock of an interpreter is waited for in steps of no more than 5 ms: longer than that, in one wait, is for a
/// result.
const AWAY_MIN_NS: Ns = 10_000_000;
/// Who gives something away and waits for it does so at once: within this part of the time.
const AWAY_SHARE: Ns = 10;
/// Who had it for less and only woke another matters to nobody.
const PASSED_NS: Ns = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Client,
    Server,
}

/// An exchange, as long as it is the last one of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) socket: i64,
    pub(super) id: i64,
}

/// A moment at which a thread had something to do with it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Touch {
    pub(super) ts: Ns,
    pub(super) thread: ThreadRef,
    /// Changes of what the thread works for, until then.
    pub(super) turns: u32,
}

#[derive(Debug)]
pub(super) struct Connection {
    /// As rows tell it.
    pub(super) number: i64,
    pub(super) role: Role,
    pub(super) local: Option<Sym>,
    pub(super) peer: Option<Sym>,
    pub(super) peer_end: Option<Endpoint>,
    /// Who asks, without a port.
    pub(super) client: Option<Sym>,
    pub(super) protocol: Option<&'static str>,
    /// Of TCP, once it stands.
    pub(super) standing: Option<Standing>,
    /// When it was asked for, and the answer was there.
    pub(super) connected: Option<(Ns, Ns)>,
    /// Thread that asked for it.
    pub(super) connected_by: Option<i32>,
    pub(super) accepted: Option<Ns>,
    /// It was there before the recording began.
    pub(super) is_old: bool,
    /// Bytes that nobody has read yet came first at this moment.
    pub(super) arrived: Option<Ns>,
    /// Exchanges before the open one.
    pub(super) done: u32,
    pub(super) open: Option<Box<Exchange>>,
    /// Process that read or wrote last.
    pub(super) user: Option<i32>,
    /// The kernel has closed it; what came before may still be read.
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

/// A question and its answer.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) id: i64,
    pub(super) ts: Ns,
    pub(super) begun: Touch,
    pub(super) bytes_sent: i64,
    pub(super) bytes_received: i64,
    pub(super) queue_ns: Option<Ns>,
    /// Of a client: when the question was written.
    pub(super) sent: Option<Ns>,
    /// First and last moment of the answer: read by a client, written by a server.
    pub(super) answer: Option<(Ns, Ns)>,
    /// Of a server: who wrote the answer, and since when it can have been at it.
    pub(super) writer: Option<(Touch, Ns)>,
    pub(super) edges: Vec<Edge>,
    /// What was asked of others meanwhile.
    pub(super) nested: Vec<Nested>,
    /// The exchange in whose course this one was asked for.
    pub(super) parent: Option<Key>,
    /// The same one as the other side has it.
    pub(super) other: Option<Key>,
    /// Of a client: who worked at the other side, once that is over.
    pub(super) chain: Vec<Turn>,
    pub(super) is_reset: bool,
}

/// An exchange with another server.
#[derive(Debug)]
pub(super) struct Nested {
    pub(super) key: Key,
    pub(super) asked: Touch,
    pub(super) answered: Option<Touch>,
    /// Who worked at the other side.
    pub(super) chain: Vec<Turn>,
}

/// A thread had it from `ts` to `ts_end`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    pub(super) ts: Ns,
    pub(super) ts_end: Ns,
    pub(super) thread: ThreadRef,
    pub(super) from: Option<ThreadRef>,
    pub(super) way: Way,
    /// Since when it had waited to be woken for this.
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

    /// More of the answer.
    pub(super) fn answered(&mut self, first: Ns, last: Ns) {
        let since = self.answer.map_or(first, |(since, _)| since);
        self.answer = Some((since, last));
    }

    /// Who had it, in order: from who wrote the answer back to who read the question. Others that
    /// were woken meanwhile are left out.
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
            // Nothing tells how it came there: only that it was at it by then.
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

/// What comes back to a thread by futexes and new threads alone it most likely never gave away, unless it waited for just that
/// all the while: a lock that is passed round looks the same. For the same reason, who had it for an
/// instant between two others, both by futexes, is left out.
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

/// Whether a thread waited for the whole of the time for which others had it. `before` is its turn
/// before that.
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

/// Who worked at the other side, as hand-overs from who asked to who got the answer.
pub(super) fn handed_on(turns: &[Turn], asked: Touch, answered: Touch) -> Vec<Edge> {
    let touch = |thread, ts| Touch {
        ts,
        thread,
        turns: 0,
    };
    let mut from = asked;
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
