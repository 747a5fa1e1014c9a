//! Requests of one recording, with the fields needed to find them in another one.

use std::ops::ControlFlow;

use rustc_hash::FxHashMap;
use whyslow_analysis::AnalysisError;
use whyslow_analysis::read::{Projection, in_order};
use whyslow_model::row::Row;
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::{NetPacketRow, RequestRow, SyscallRow};
use whyslow_model::{Ns, Symbols, Window};
use whyslow_store::{Tables, each_row};

use crate::addresses::plain;

/// Maximum number of requests that are read, from the start of the recording.
const REQUESTS_MAX: usize = 1 << 20;
/// Maximum number of packets that are read for a window.
const PACKETS_MAX: usize = 1 << 18;

/// Interned texts of all recordings: their symbols differ.
#[derive(Debug, Default)]
pub(super) struct Interner(FxHashMap<String, u32>);

impl Interner {
    pub(super) fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.0.get(text) {
            return *number;
        }
        let number = self.0.len() as u32;
        self.0.insert(text.to_owned(), number);
        number
    }
}

/// Trace and span ids of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Traced {
    pub(super) trace: Option<(i64, i64)>,
    pub(super) span: Option<i64>,
    pub(super) parent: Option<i64>,
}

/// A request as seen on one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) id: i64,
    /// On a client, when it wrote the request; on a server, when the request was ready to be read,
    /// or the connection to be accepted.
    pub(super) begin: Ns,
    /// On a client, when it received the first byte of the reply; on a server, when it read the
    /// first byte of the request.
    pub(super) first: Ns,
    pub(super) end: Option<Ns>,
    /// Address and port of this side and of the other one, interned.
    pub(super) ends: Option<(u32, u32)>,
    pub(super) traced: Traced,
    pub(super) is_reused: Option<bool>,
    pub(super) bytes_sent: Option<i64>,
    pub(super) bytes_received: Option<i64>,
    /// Seen at sockets, with timestamps of the recorder's clock.
    pub(super) is_of_sockets: bool,
    pub(super) utid: Option<i32>,
    pub(super) upid: Option<i32>,
    /// This recording itself has the server side.
    pub(super) is_served_here: bool,
}

/// All requests of a recording, by side, in order of start.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// Requests of clients.
    pub(super) issued: Vec<Seen>,
    /// Requests of servers.
    pub(super) served: Vec<Seen>,
    /// Indexes of the servers' requests, by address of the client and of the server.
    pub(super) served_on: FxHashMap<(u32, u32), Vec<usize>>,
    pub(super) issued_on: FxHashMap<(u32, u32), Vec<usize>>,
    /// Server address by id of the request.
    pub(super) peers: FxHashMap<i64, String>,
    /// Indexes of the clients' requests by thread.
    pub(super) issued_by: FxHashMap<i32, Vec<usize>>,
}

impl Rows {
    pub(super) fn read(
        tables: &dyn Tables,
        interner: &mut Interner,
    ) -> Result<Self, AnalysisError> {
        let mut found = Self::default();
        let mut symbols = Symbols::new();
        each_row::<RequestRow>(tables, None, &mut symbols, |row, symbols| {
            let of_client = match symbols.get(row.role) {
                "client" => true,
                "server" => false,
                _ => return Ok(()),
            };
            let list = if of_client {
                &mut found.issued
            } else {
                &mut found.served
            };
            if list.len() >= REQUESTS_MAX {
                return Ok(());
            }
            if let Some(peer) = row.peer.filter(|_| of_client) {
                found.peers.insert(row.id, symbols.get(peer).to_owned());
            }
            let mut number = |sym| interner.number(&plain(symbols.get(sym)));
            let ends = row.local.zip(row.peer);
            let ends = ends.map(|(local, peer)| (number(local), number(peer)));
            list.push(seen(&row, of_client, ends, symbols.get(row.source)));
            Ok(())
        })?;
        for list in [&mut found.issued, &mut found.served] {
            list.index_sort_by_ints(|one| [one.begin, one.id, 0]);
        }
        for (place, one) in found.issued.iter().enumerate() {
            if let Some(utid) = one.utid {
                found.issued_by.entry(utid).or_default().push(place);
            }
            if let Some(ends) = one.ends {
                found.issued_on.entry(ends).or_default().push(place);
            }
        }
        for (place, one) in found.served.iter().enumerate() {
            if let Some((local, peer)) = one.ends {
                found
                    .served_on
                    .entry((peer, local))
                    .or_default()
                    .push(place);
            }
        }
        found.mark_served_here();
        Ok(found)
    }

    /// Marks requests of clients that a server in this recording had at the same time on the same
    /// connection.
    fn mark_served_here(&mut self) {
        let (served, served_on) = (&self.served, &self.served_on);
        for one in &mut self.issued {
            let on = one.ends.and_then(|ends| served_on.get(&ends));
            let end = one.end.unwrap_or(Ns::MAX);
            let is_same = |place: &usize| {
                let other = &served[*place];
                other.begin <= end && one.begin <= other.end.unwrap_or(Ns::MAX)
            };
            one.is_served_here |= on.is_some_and(|on| on.iter().any(is_same));
        }
    }

    /// Index of a client's request, by its id.
    pub(super) fn issued_with(&self, id: i64) -> Option<usize> {
        self.issued.iter().position(|one| one.id == id)
    }

    /// The request that a thread waited for in a window, and whether it is the only candidate.
    pub(super) fn awaited(&self, utid: i32, (begin, end): (Ns, Ns)) -> Option<(usize, bool)> {
        let common = |place: usize| {
            let one = &self.issued[place];
            one.end.unwrap_or(Ns::MAX).min(end) - one.begin.max(begin)
        };
        let length = end - begin;
        let issued = self.issued_by.get(&utid)?.iter().copied();
        let fitting: Vec<usize> = issued
            .filter(|place| 2 * common(*place) >= length)
            .collect();
        // If there are several, the one with the reply that ended the wait.
        let nearest = fitting.iter().copied().min_by_key(|place| {
            let one = &self.issued[*place];
            (
                (one.first - end)
                    .abs()
                    .min((one.end.unwrap_or(Ns::MAX) - end).abs()),
                *place,
            )
        });
        nearest.map(|place| (place, fitting.len() == 1))
    }
}

fn seen(row: &RequestRow, of_client: bool, ends: Option<(u32, u32)>, source: &str) -> Seen {
    let sum = |parts: &[Option<i64>]| -> Ns { parts.iter().flatten().map(|ns| (*ns).max(0)).sum() };
    let end = row.ts_end.or(row.dur.map(|dur| row.ts.saturating_add(dur)));
    let (begin, first) = if of_client {
        let before = [row.queue_ns, row.resolve_ns, row.connect_ns, row.tls_ns];
        let begin = row.ts.saturating_add(sum(&before));
        let first = end.map(|end| end.saturating_sub(sum(&[row.receive_ns])));
        (begin, first.unwrap_or(begin).max(begin))
    } else {
        let begin = row.ts.saturating_sub(sum(&[row.queue_ns]));
        (begin, row.ts)
    };
    Seen {
        id: row.id,
        begin,
        first,
        end,
        ends,
        traced: Traced {
            trace: row.trace_high.zip(row.trace_low),
            span: row.span,
            parent: row.parent_span,
        },
        is_reused: row.is_reused,
        bytes_sent: row.bytes_sent,
        bytes_received: row.bytes_received,
        is_of_sockets: source == "socket",
        utid: row.utid,
        upid: row.upid,
        is_served_here: row.server_request.is_some(),
    }
}

/// Start times of the calls that ended exactly when replies did, by process and end: the data may
/// have left before the call returned.
pub(super) fn writes(
    tables: &dyn Tables,
    ends: &[(Option<i32>, Ns)],
) -> Result<FxHashMap<(Option<i32>, Ns), Ns>, AnalysisError> {
    let mut found = FxHashMap::default();
    let times = ends.iter().map(|(_, end)| *end);
    let Some((first, last)) = times.clone().min().zip(times.max()) else {
        return Ok(found);
    };
    let wanted: rustc_hash::FxHashSet<(Option<i32>, Ns)> = ends.iter().copied().collect();
    let mut projection = Projection::new(SyscallRow::TABLE);
    let [ts, ts_end, upid] = ["ts", "ts_end", "upid"].map(|name| projection.need(name));
    let window = Window::new(first.saturating_sub(1), last.saturating_add(1));
    in_order(tables, &projection.scan(Some(window)), |batch| {
        let (ts, ts_end, upid) = (ts.ints(batch)?, ts_end.ints(batch)?, upid.ints(batch)?);
        for row in 0..batch.num_rows() as u32 {
            let Some(end) = ts_end.get(row) else { continue };
            let key = (upid.get(row).map(|upid| upid as i32), end);
            if wanted.contains(&key) {
                found.insert(key, ts.at(row));
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// A TCP packet as seen on one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PacketKey {
    pub(super) source: u32,
    pub(super) destination: u32,
    pub(super) seq: i64,
}

/// Times at which packets were queued for sending, and received; only packets seen once.
#[derive(Debug, Default)]
pub(super) struct Packets {
    pub(super) sent: FxHashMap<PacketKey, Ns>,
    pub(super) received: FxHashMap<PacketKey, Ns>,
}

impl Packets {
    pub(super) fn read(
        tables: &dyn Tables,
        window: Window,
        interner: &mut Interner,
    ) -> Result<Self, AnalysisError> {
        let mut all: [FxHashMap<PacketKey, Option<Ns>>; 2] = Default::default();
        let mut symbols = Symbols::new();
        each_row::<NetPacketRow>(tables, Some(window), &mut symbols, |row, symbols| {
            let kind = match symbols.get(row.kind) {
                "queue" => 0,
                "receive" => 1,
                // If a packet was sent twice, it is not known which of the two arrived.
                "retransmit" => 2,
                _ => return Ok(()),
            };
            let (Some(source), Some(destination), Some(seq)) =
                (row.source, row.destination, row.tcp_seq)
            else {
                return Ok(());
            };
            let mut number = |sym| interner.number(&plain(symbols.get(sym)));
            let key = PacketKey {
                source: number(source),
                destination: number(destination),
                seq,
            };
            if kind == 2 {
                all[0].insert(key, None);
                return Ok(());
            }
            if all[kind].len() < PACKETS_MAX {
                let first = !all[kind].contains_key(&key);
                all[kind].insert(key, first.then_some(row.ts));
            }
            Ok(())
        })?;
        let once = |of: FxHashMap<PacketKey, Option<Ns>>| {
            let once = of.into_iter().filter_map(|(key, ts)| Some((key, ts?)));
            once.collect()
        };
        let [sent, received] = all;
        Ok(Self {
            sent: once(sent),
            received: once(received),
        })
    }
}
