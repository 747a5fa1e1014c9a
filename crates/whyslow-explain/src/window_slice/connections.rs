//! Connections of the recorded host: which processes are at which address, and which threads served
//! which requests.
//!
//! A socket's own address is not a column of system calls: a client's calls name the server, and
//! those of a server the client's port. So the two ends of a connection are found from TCP
//! connections, from descriptors named by the other end, and from requests.

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::row::Row;
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::{
    FdLifeRow, NetInterfaceRow, RequestRow, RequestThreadRow, TcpConnectionRow,
};
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use super::Utid;
use super::columns::{Result, rows};
use crate::addresses::{host, is_any, is_loopback, plain, split};

/// A thread that waits for a connection wakes up at most this long after it was established.
const ESTABLISHED_NS: u64 = 1_000_000;

/// A request as one side saw it at its sockets.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    pub(crate) id: i64,
    pub(crate) is_client: bool,
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    /// Thread that sent it, or read it on a server.
    pub(crate) utid: Option<Utid>,
    pub(crate) upid: Option<i32>,
    pub(crate) local: Option<Box<str>>,
    pub(crate) peer: Option<Box<str>>,
    /// For a client: the request that caused it …
    pub(crate) parent: Option<i64>,
    /// … and the same request as its server saw it.
    pub(crate) server: Option<i64>,
}

/// A stretch of time in which a thread served a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) request: i64,
    pub(crate) utid: Utid,
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
}

/// A connection initiated by a process of this host.
#[derive(Debug)]
struct Initiated {
    local: Box<str>,
    begin: Ns,
    end: Ns,
    /// When the other end had accepted it.
    established: Option<Ns>,
    /// Segments that were retransmitted, as far as the last change of its state showed.
    retransmits: i64,
}

/// One end of a connection that retransmitted segments.
#[derive(Debug)]
struct Lossy {
    local: Box<str>,
    upid: Option<i32>,
    begin: Ns,
    end: Ns,
}

#[derive(Debug, Default)]
pub(crate) struct Connections {
    own_hosts: FxHashSet<Box<str>>,
    /// Processes by the address of their end.
    at: FxHashMap<Box<str>, Vec<i32>>,
    /// Processes with a socket for any address, by port: listeners.
    at_port: FxHashMap<Box<str>, Vec<i32>>,
    /// Processes with a descriptor that is named by the address of the other end.
    holders: FxHashMap<Box<str>, Vec<i32>>,
    /// By process and remote address.
    initiated: FxHashMap<(i32, Box<str>), Vec<Initiated>>,
    /// By remote address.
    lossy: FxHashMap<Box<str>, Vec<Lossy>>,
    exchanges: Vec<Exchange>,
    exchange_of: FxHashMap<i64, usize>,
    /// Client requests by the request that caused them.
    nested: FxHashMap<i64, Vec<usize>>,
    /// By thread and by request, in order of start.
    turns_of_thread: FxHashMap<Utid, Vec<Turn>>,
    turns_of_request: FxHashMap<i64, Vec<Turn>>,
}

fn add(to: &mut FxHashMap<Box<str>, Vec<i32>>, address: &str, upid: i32) {
    let of = to.entry(address.into()).or_default();
    if !of.contains(&upid) {
        of.push(upid);
    }
}

impl Connections {
    pub(super) fn load(tables: &dyn Tables, window: Window) -> Result<Self> {
        let mut found = Self::default();
        found.load_interfaces(tables)?;
        found.load_descriptors(tables, window)?;
        found.load_tcp(tables, window)?;
        found.load_requests(tables, window)?;
        found.load_turns(tables, window)?;
        for of in found.at.values_mut().chain(found.at_port.values_mut()) {
            of.sort_unstable();
        }
        Ok(found)
    }

    fn load_interfaces(&mut self, tables: &dyn Tables) -> Result<()> {
        let own = &mut self.own_hosts;
        let columns = (&[][..], &["address"][..]);
        rows(
            tables,
            NetInterfaceRow::TABLE,
            columns,
            None,
            |cells, row| {
                let address = cells.text(0, row).split('/').next().unwrap_or_default();
                if !address.is_empty() && !is_any(address) {
                    own.insert(host(address).into());
                }
            },
        )
    }

    fn load_descriptors(&mut self, tables: &dyn Tables, window: Window) -> Result<()> {
        let columns = (&["ts", "ts_end", "upid"][..], &["fd_class", "path"][..]);
        let (holders, at_port) = (&mut self.holders, &mut self.at_port);
        rows(
            tables,
            FdLifeRow::TABLE,
            columns,
            Some(window),
            |cells, row| {
                let is_inet = cells.text(0, row).starts_with("inet");
                let Some(upid) = cells.small(2, row).filter(|_| is_inet) else {
                    return;
                };
                let address = plain(cells.text(1, row));
                match split(&address) {
                    Some((host, port)) if is_any(host) => add(at_port, port, upid),
                    Some(_) => add(holders, &address, upid),
                    None => {}
                }
            },
        )
    }

    fn load_tcp(&mut self, tables: &dyn Tables, window: Window) -> Result<()> {
        let columns = (
            &["ts", "ts_end", "upid", "retransmits", "connect_ns"][..],
            &["kind", "local", "peer"][..],
        );
        let (own, at, holders) = (&mut self.own_hosts, &mut self.at, &self.holders);
        let (initiated, lossy) = (&mut self.initiated, &mut self.lossy);
        // Own ends of connections by peer, if several processes have a descriptor of that peer.
        let mut shared: FxHashMap<Box<str>, Vec<Box<str>>> = FxHashMap::default();
        // A connection from before the recording begins in the table with the first change of its
        // state, which may be its end.
        let until = tables.info().whole().end.max(window.end);
        rows(
            tables,
            TcpConnectionRow::TABLE,
            columns,
            Some(Window::new(window.begin, until)),
            |cells, row| {
                let is_later = cells.ints[0].at(row) >= window.end;
                if is_later && cells.text(0, row) != "unknown" {
                    return;
                }
                let (local, peer) = (plain(cells.text(1, row)), plain(cells.text(2, row)));
                let upid = cells.small(2, row);
                if !is_any(host(&local)) {
                    own.insert(host(&local).into());
                }
                let kind = cells.text(0, row);
                let begin = cells.ints[0].at(row);
                let retransmits = cells.int(3, row).unwrap_or(0);
                if retransmits > 0 {
                    let of = lossy.entry(peer.clone().into()).or_default();
                    of.push(Lossy {
                        local: local.clone().into(),
                        upid,
                        // One from before the recording is known from its end only.
                        begin: if kind == "unknown" { Ns::MIN } else { begin },
                        end: cells.int(1, row).unwrap_or(Ns::MAX),
                    });
                }
                if kind == "connect" {
                    let Some(upid) = upid else { return };
                    add(at, &local, upid);
                    let of = initiated.entry((upid, peer.into())).or_default();
                    of.push(Initiated {
                        local: local.into(),
                        begin,
                        end: cells.int(1, row).unwrap_or(Ns::MAX),
                        established: cells.int(4, row).map(|took| begin + took),
                        retransmits,
                    });
                    return;
                }
                // The thread that accepted it is not known to the kernel's event, but its
                // descriptor is named by the client.
                match holders.get(&*peer).map(Vec::as_slice) {
                    Some([_, _, ..]) if kind == "unknown" => {
                        let of = shared.entry(Box::from(&*peer)).or_default();
                        of.push(Box::from(&*local));
                    }
                    Some(holders) => holders.iter().for_each(|upid| add(at, &local, *upid)),
                    None => upid.into_iter().for_each(|upid| add(at, &local, upid)),
                }
            },
        )?;
        self.add_shared(shared);
        Ok(())
    }

    /// Adds own ends of connections from before the recording, by peer: such an end may be the
    /// client's. Then the peer is a server with other clients, whose descriptors are named by it, too.
    fn add_shared(&mut self, shared: FxHashMap<Box<str>, Vec<Box<str>>>) {
        for (peer, locals) in shared {
            if let ([local], Some(holders)) = (locals.as_slice(), self.holders.get(&peer)) {
                for upid in holders {
                    add(&mut self.at, local, *upid);
                }
            }
        }
    }

    fn load_requests(&mut self, tables: &dyn Tables, window: Window) -> Result<()> {
        let ints = [
            "ts",
            "ts_end",
            "id",
            "utid",
            "upid",
            "parent_request",
            "server_request",
        ];
        let texts = ["role", "local", "peer", "source"];
        let (own, at) = (&mut self.own_hosts, &mut self.at);
        let found = &mut self.exchanges;
        rows(
            tables,
            RequestRow::TABLE,
            (&ints[..], &texts[..]),
            Some(window),
            |cells, row| {
                // A log may be of another host.
                if cells.text(3, row) != "socket" {
                    return;
                }
                let local = plain(cells.text(1, row));
                let upid = cells.small(4, row);
                if let (Some(_), Some(upid)) = (split(&local), upid) {
                    own.insert(host(&local).into());
                    add(at, &local, upid);
                }
                let peer = plain(cells.text(2, row));
                found.push(Exchange {
                    id: cells.ints[2].at(row),
                    is_client: cells.text(0, row) == "client",
                    begin: cells.ints[0].at(row),
                    end: cells.int(1, row).unwrap_or(Ns::MAX),
                    utid: cells.small(3, row),
                    upid,
                    local: (!local.is_empty()).then(|| local.into()),
                    peer: (!peer.is_empty()).then(|| peer.into()),
                    parent: cells.int(5, row),
                    server: cells.int(6, row),
                });
            },
        )?;
        self.exchanges
            .index_sort_by_ints(|one| [one.begin, one.id, 0]);
        for (place, one) in self.exchanges.iter().enumerate() {
            self.exchange_of.insert(one.id, place);
            if let Some(parent) = one.parent.filter(|_| one.is_client) {
                self.nested.entry(parent).or_default().push(place);
            }
        }
        Ok(())
    }

    fn load_turns(&mut self, tables: &dyn Tables, window: Window) -> Result<()> {
        let columns = (&["ts", "ts_end", "request", "utid"][..], &[][..]);
        let mut found = Vec::new();
        rows(
            tables,
            RequestThreadRow::TABLE,
            columns,
            Some(window),
            |cells, row| {
                if let (Some(end), Some(utid)) = (cells.int(1, row), cells.small(3, row)) {
                    found.push(Turn {
                        request: cells.ints[2].at(row),
                        utid,
                        begin: cells.ints[0].at(row),
                        end,
                    });
                }
            },
        )?;
        found.index_sort_by_ints(|turn| [turn.begin, turn.request, turn.utid.into()]);
        for turn in found {
            self.turns_of_thread
                .entry(turn.utid)
                .or_default()
                .push(turn);
            self.turns_of_request
                .entry(turn.request)
                .or_default()
                .push(turn);
        }
        Ok(())
    }

    /// Whether an address, with or without a port, is one of this host.
    pub(crate) fn is_own(&self, address: &str) -> bool {
        let address = plain(address);
        let host = host(&address);
        is_loopback(host) || self.own_hosts.contains(host)
    }

    /// Processes with a socket at this address; several share it after a fork.
    pub(crate) fn processes_at(&self, address: &str) -> &[i32] {
        let address = plain(address);
        let exact = self.at.get(&*address);
        let any = || {
            let (_, port) = split(&address).filter(|_| self.is_own(&address))?;
            self.at_port.get(port)
        };
        exact.or_else(any).map_or(&[], Vec::as_slice)
    }

    /// Processes with a socket whose other end has this address.
    pub(crate) fn holders(&self, address: &str) -> &[i32] {
        self.holders
            .get(&*plain(address))
            .map_or(&[], Vec::as_slice)
    }

    /// The connection of a process to `peer`, if it had only one at that time.
    fn connection(&self, upid: i32, peer: &str, (begin, end): (Ns, Ns)) -> Option<&Initiated> {
        let key: (i32, Box<str>) = (upid, plain(peer).into());
        let of = self.initiated.get(&key)?;
        let mut open = of.iter().filter(|one| one.begin <= end && begin <= one.end);
        let only = open.next()?;
        open.next().is_none().then_some(only)
    }

    /// The own address of that connection.
    pub(crate) fn local_of(&self, upid: i32, peer: &str, range: (Ns, Ns)) -> Option<&str> {
        Some(&*self.connection(upid, peer, range)?.local)
    }

    /// Whether segments of that connection were retransmitted, at any time.
    pub(crate) fn has_loss(&self, upid: i32, peer: &str, range: (Ns, Ns)) -> bool {
        let only = self.connection(upid, peer, range);
        only.is_some_and(|only| only.retransmits > 0)
    }

    /// Whether a process waited in this range until the only connection that it was opening to
    /// `peer` was established, and whether segments of that one were retransmitted.
    pub(crate) fn opening(&self, upid: i32, peer: &str, (begin, end): (Ns, Ns)) -> Option<bool> {
        let key: (i32, Box<str>) = (upid, plain(peer).into());
        let mut opening = self.initiated.get(&key)?.iter().filter(|one| {
            let is_then = |established: Ns| established.abs_diff(end) <= ESTABLISHED_NS;
            one.begin <= begin && one.established.is_some_and(is_then)
        });
        let only = opening.next()?;
        (opening.next().is_none()).then_some(only.retransmits > 0)
    }

    /// Own addresses of connections to `peer` that retransmitted segments to it, at any time, and
    /// were open in this range; if `upid` is known, of that process.
    pub(crate) fn lossy_to(
        &self,
        peer: &str,
        upid: Option<i32>,
        (begin, end): (Ns, Ns),
    ) -> impl Iterator<Item = &str> {
        let all = self.lossy.get(&*plain(peer)).into_iter().flatten();
        all.filter(move |one| one.begin <= end && begin <= one.end)
            .filter(move |one| upid.is_none() || one.upid.is_none() || one.upid == upid)
            .map(|one| &*one.local)
    }

    pub(crate) fn exchange(&self, id: i64) -> Option<&Exchange> {
        let place = self.exchange_of.get(&id)?;
        self.exchanges.get(*place)
    }

    /// The request of a thread to `peer` that is in progress at that time.
    pub(crate) fn sent_by(&self, utid: Utid, peer: Option<&str>, at: Ns) -> Option<&Exchange> {
        let peer = peer.map(plain);
        let last = self.exchanges.partition_point(|one| one.begin <= at);
        let mut open = self.exchanges[..last].iter().rev().filter(|one| {
            let is_there = match (&peer, &one.peer) {
                (Some(peer), Some(of)) => **peer == **of,
                _ => true,
            };
            one.is_client && one.utid == Some(utid) && at <= one.end && is_there
        });
        let found = open.next()?;
        (peer.is_some() || open.next().is_none()).then_some(found)
    }

    /// Client requests that a served request caused, in order of start.
    pub(crate) fn nested_in(&self, request: i64) -> impl Iterator<Item = &Exchange> {
        let places = self.nested.get(&request).into_iter().flatten();
        places.map(|place| &self.exchanges[*place])
    }

    /// Stretches in which threads served a request, in order of start.
    pub(crate) fn turns_of(&self, request: i64) -> &[Turn] {
        self.turns_of_request
            .get(&request)
            .map_or(&[], Vec::as_slice)
    }

    /// Stretches in which a thread served requests, in order of start.
    pub(crate) fn served_by(&self, utid: Utid) -> &[Turn] {
        self.turns_of_thread.get(&utid).map_or(&[], Vec::as_slice)
    }
}
