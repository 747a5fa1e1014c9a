//! Requests of clients and servers on the same host, in one recording: the server's view of a
//! client's request that the import did not find, for example because the connection is older than
//! the recording.

use rustc_hash::FxHashMap;
use whyslow_model::tables::RequestRow;
use whyslow_model::{Ns, Symbols};

use crate::addresses::plain;

/// The clocks of a log and of the recorder may differ by this much on one host.
const CLOCK_NS: Ns = 1_000_000;

/// Both ends of a connection, interned, the client's first.
type Ends = (u32, u32);

/// A request as one side saw it.
#[derive(Debug, Clone, Copy)]
struct Side {
    id: i64,
    begin: Ns,
    end: Ns,
    ends: Ends,
}

/// Collects requests, and joins those of the same connection.
#[derive(Debug, Default)]
pub(super) struct Collected {
    addresses: FxHashMap<String, u32>,
    clients: Vec<Side>,
    servers: FxHashMap<Ends, Vec<Side>>,
}

impl Collected {
    pub(super) fn add(&mut self, row: &RequestRow, symbols: &Symbols) {
        let (Some(local), Some(peer)) = (row.local, row.peer) else {
            return;
        };
        let is_client = symbols.get(row.role) == "client";
        if is_client && row.server_request.is_some() {
            return;
        }
        let (local, peer) = (
            self.number(&plain(symbols.get(local))),
            self.number(&plain(symbols.get(peer))),
        );
        let end = row.ts_end.or(row.dur.map(|dur| row.ts.saturating_add(dur)));
        let side = |ends| Side {
            id: row.id,
            begin: row.ts,
            end: end.unwrap_or(Ns::MAX),
            ends,
        };
        if is_client {
            self.clients.push(side((local, peer)));
        } else {
            let ends = (peer, local);
            self.servers.entry(ends).or_default().push(side(ends));
        }
    }

    fn number(&mut self, address: &str) -> u32 {
        if let Some(number) = self.addresses.get(address) {
            return *number;
        }
        let number = self.addresses.len() as u32;
        self.addresses.insert(address.to_owned(), number);
        number
    }

    /// The server's request for each client's request: the one on the same connection with the
    /// longest common time, if it began after the client's.
    pub(super) fn joined(mut self) -> FxHashMap<i64, i64> {
        for servers in self.servers.values_mut() {
            servers.sort_unstable_by_key(|one| (one.begin, one.id));
        }
        let server_of = |client: &Side| {
            let servers = self.servers.get(&client.ends)?;
            let from = client.begin.saturating_sub(CLOCK_NS);
            let first = servers.partition_point(|one| one.begin < from);
            let inside = servers[first..].iter();
            let inside = inside.take_while(|one| one.begin <= client.end);
            let common = |one: &&Side| one.end.min(client.end) - one.begin.max(client.begin);
            let longest = inside.max_by_key(|one| (common(one), std::cmp::Reverse(one.id)))?;
            Some((client.id, longest.id))
        };
        self.clients.iter().filter_map(server_of).collect()
    }
}
