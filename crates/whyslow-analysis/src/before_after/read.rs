//! Reads the requests of a recording for statistics over many of them.

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::row::Row;
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::{RequestPhaseRow, RequestRow};
use whyslow_model::{Ns, Sym, Symbols, Window};
use whyslow_store::{Tables, each_row};

use super::latency::{Latency, PHASES_MAX};
use crate::{AnalysisError, pool_of};

/// Phases with a column in table `request`.
const PHASES: [&str; 7] = [
    "queue", "resolve", "connect", "tls", "send", "wait", "receive",
];
/// Maximum number of requests; of more, the first of the window.
const REQUESTS_MAX: usize = 1_000_000;
/// No known worker.
const NO_WORKER: u32 = u32::MAX;

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Id in the table `request`.
    pub id: i64,
    /// Start, ns since the epoch.
    pub ts: Ns,
    /// In ns from start to end; `None` if the end is unknown.
    pub dur: Option<Ns>,
    /// Scheduled start, for load with a schedule.
    pub ts_intended: Option<Ns>,
    /// Index into [`Requests::keys`].
    pub key: u32,
    /// Neither successful nor of unknown outcome.
    pub failed: bool,
    /// Whether its outcome is `timeout`.
    pub timed_out: bool,
    /// Worker of the load, else connection, else thread; `u32::MAX` if none is known.
    pub worker: u32,
    /// Number of its connection, unique in its source.
    pub connection: Option<i64>,
    /// Whether an earlier request had used the connection.
    pub is_reused: Option<bool>,
    /// Status of the reply; `None` without one.
    pub status: Option<i32>,
    /// Texts in [`Requests::symbols`].
    pub outcome: Sym,
    /// Address or name of the client.
    pub client: Option<Sym>,
    /// Address and port of the side that recorded it.
    pub local: Option<Sym>,
    /// Address and port of the other side.
    pub peer: Option<Sym>,
    /// Name of the thread that started it.
    pub comm: Option<Sym>,
    /// Recording-unique id of that thread.
    pub utid: Option<i32>,
    /// Kernel id of that thread.
    pub tid: Option<i32>,
    /// Kernel id of its process.
    pub pid: Option<i32>,
    /// The same request as recorded by its server.
    pub server_request: Option<i64>,
    /// The request of a server that caused it.
    pub parent_request: Option<i64>,
    /// The same request as reported by a load generator or a log.
    pub same_as: Option<i64>,
    /// Bytes that this side received; `None` if the source does not count them.
    pub bytes_received: Option<i64>,
    /// In ns by index into [`Requests::phases`]; 0 for missing phases.
    pub phases: [Ns; PHASES_MAX],
}

/// Source that reports requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Source {
    Load,
    /// Logs, lists and spans.
    Log,
    /// Connections of the recorded machine, including requests that no client waits for.
    Sockets,
}

impl Source {
    fn by(source: &str) -> Self {
        match source {
            "load" => Self::Load,
            "socket" => Self::Sockets,
            _ => Self::Log,
        }
    }
}

/// Requests of one role, in order of their start.
#[derive(Debug, Default)]
pub struct Requests {
    /// At most a million; see `left_out`.
    pub rows: Vec<Request>,
    /// Endpoints with their method.
    pub keys: Vec<String>,
    /// Names of the phases that occur.
    pub phases: Vec<String>,
    /// Texts of the [`Sym`]s of the rows.
    pub symbols: Symbols,
    /// client, server or proxy; `None` without requests.
    pub role: Option<&'static str>,
    /// From a load whose workers wait for a response before they send the next request.
    pub is_closed: bool,
    /// Only reported by sockets, which do not identify the purpose of a request.
    pub is_of_sockets: bool,
    /// Number of requests beyond the maximum.
    pub left_out: u64,
}

/// Target of a request: host, method, endpoint.
type Aim = (Option<Sym>, Option<Sym>, Option<Sym>);

impl Requests {
    /// Of the requests that start in the window: those reported by a load generator, else by
    /// clients, else by servers, else by proxies, so that none is counted twice; those of sockets
    /// if there are no others.
    pub fn read(tables: &dyn Tables, window: Option<Window>) -> Result<Self, AnalysisError> {
        match chosen(tables, window)? {
            Some((role, source)) => Self::read_chosen(tables, window, (role, Some(source))),
            None => Ok(Self::default()),
        }
    }

    /// Requests that servers logged, or those seen at their sockets.
    pub fn of_servers(
        tables: &dyn Tables,
        window: Option<Window>,
        of_sockets: bool,
    ) -> Result<Self, AnalysisError> {
        let source = if of_sockets {
            Source::Sockets
        } else {
            Source::Log
        };
        Self::read_chosen(tables, window, ("server", Some(source)))
    }

    /// Requests seen at the sockets of clients (or servers). Those without an endpoint are
    /// distinguished by the address of the server and by the program that this side is.
    pub fn of_sockets(
        tables: &dyn Tables,
        window: Option<Window>,
        role: &'static str,
    ) -> Result<Self, AnalysisError> {
        let mut found = Self::read_chosen(tables, window, (role, Some(Source::Sockets)))?;
        found.name_by_server();
        Ok(found)
    }

    /// Gives requests without an endpoint the address of their server as one.
    fn name_by_server(&mut self) {
        let (is_client, symbols) = (self.role == Some("client"), &self.symbols);
        let mut known: FxHashMap<(u32, Option<Sym>, Option<String>), u32> = FxHashMap::default();
        let mut names = Vec::new();
        for row in &mut self.rows {
            let name = self.keys.get(row.key as usize).map_or("?", String::as_str);
            let server = if is_client { row.peer } else { row.local };
            let server = server.filter(|_| name == "?");
            let pool = row.comm.map(|comm| pool_of(symbols.get(comm)).into_owned());
            let next = names.len() as u32;
            row.key = *known.entry((row.key, server, pool)).or_insert_with(|| {
                let way = if is_client { "to" } else { "at" };
                names.push(match server {
                    Some(server) => format!("{way} {}", symbols.get(server)),
                    None => name.to_owned(),
                });
                next
            });
        }
        self.keys = names;
    }

    /// All requests with the role of the given one; empty if there is no such request.
    pub fn of_role_of(tables: &dyn Tables, id: i64) -> Result<Self, AnalysisError> {
        let mut found = None;
        let mut symbols = Symbols::new();
        each_row::<RequestRow>(tables, None, &mut symbols, |row, symbols| {
            if row.id == id {
                found = Some(role_of(symbols.get(row.role)));
            }
            Ok(())
        })?;
        match found {
            Some(role) => Self::read_chosen(tables, None, (role, None)),
            None => Ok(Self::default()),
        }
    }

    fn read_chosen(
        tables: &dyn Tables,
        window: Option<Window>,
        (role, source): (&'static str, Option<Source>),
    ) -> Result<Self, AnalysisError> {
        let mut found = Self {
            role: Some(role),
            ..Self::default()
        };
        let mut symbols = std::mem::take(&mut found.symbols);
        let mut aims: FxHashMap<Aim, u32> = FxHashMap::default();
        let mut workers: FxHashMap<(u8, i64), u32> = FxHashMap::default();
        each_row::<RequestRow>(tables, window, &mut symbols, |row, symbols| {
            let is_chosen = role_of(symbols.get(row.role)) == role
                && source.is_none_or(|source| source == Source::by(symbols.get(row.source)));
            if !is_chosen || window.is_some_and(|window| !window.contains(row.ts)) {
                return Ok(());
            }
            // The client was stopped, so the duration is unknown.
            if symbols.get(row.outcome) == "cut" {
                return Ok(());
            }
            if found.rows.len() >= REQUESTS_MAX {
                found.left_out += 1;
                return Ok(());
            }
            let next = aims.len() as u32;
            let aim = (row.host, row.method, row.endpoint.or(row.target));
            let key = *aims.entry(aim).or_insert(next);
            let worker = row
                .worker
                .map(|worker| (0, i64::from(worker)))
                .or(row.connection.map(|connection| (1, connection)))
                .or(row.utid.map(|utid| (2, i64::from(utid))));
            let next = workers.len() as u32;
            let worker = worker.map_or(NO_WORKER, |worker| *workers.entry(worker).or_insert(next));
            found
                .rows
                .push(request(&row, symbols.get(row.outcome), (key, worker)));
            Ok(())
        })?;
        found.rows.index_sort_by_ints(|row| [row.ts, row.id, 0]);
        found.keys = names(&aims, &symbols);
        found.symbols = symbols;
        let waits = |row: &Request| row.ts_intended.is_none() && row.worker != NO_WORKER;
        let is_nameless = aims.keys().all(|(.., what)| what.is_none());
        found.is_of_sockets = source == Some(Source::Sockets) && is_nameless;
        found.is_closed =
            source == Some(Source::Load) && !found.rows.is_empty() && found.rows.iter().all(waits);
        found.name_phases(tables, window)?;
        Ok(found)
    }

    /// The phases with columns, else those of the phase table; brokers only have a column for the
    /// queue.
    fn name_phases(
        &mut self,
        tables: &dyn Tables,
        window: Option<Window>,
    ) -> Result<(), AnalysisError> {
        let has_phases = |row: &Request| row.phases[1..] != [0; PHASES_MAX - 1];
        if self.rows.iter().any(has_phases) {
            self.phases = PHASES.iter().map(|name| (*name).to_owned()).collect();
            return Ok(());
        }
        for row in &mut self.rows {
            row.phases = [0; PHASES_MAX];
        }
        let places: FxHashMap<i64, usize> = self
            .rows
            .iter()
            .enumerate()
            .map(|(place, row)| (row.id, place))
            .collect();
        let (rows, names) = (&mut self.rows, &mut self.phases);
        let mut known: FxHashMap<Sym, usize> = FxHashMap::default();
        each_row::<RequestPhaseRow>(tables, window, &mut self.symbols, |row, symbols| {
            let (Some(place), Some(dur)) = (places.get(&row.request), row.dur) else {
                return Ok(());
            };
            let next = known.len();
            let phase = *known.entry(row.phase).or_insert(next);
            if phase == names.len() && phase < PHASES_MAX {
                names.push(symbols.get(row.phase).to_owned());
            }
            if let Some(sum) = rows[*place].phases.get_mut(phase) {
                *sum = sum.saturating_add(dur.max(0));
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Whether each of them has a scheduled start.
    pub(crate) fn is_scheduled(&self) -> bool {
        !self.rows.is_empty() && self.rows.iter().all(|row| row.ts_intended.is_some())
    }

    /// Input of the comparison; measured from the scheduled start if `by_schedule`.
    pub(crate) fn latencies(&self, by_schedule: bool) -> impl Iterator<Item = (u32, Latency)> {
        self.rows.iter().map(move |row| {
            let late = row.ts_intended.filter(|_| by_schedule);
            let late = late.map_or(0, |intended| (row.ts - intended).max(0));
            // The duration of an early failure is meaningless; a timeout is a lower bound.
            let dur = row.dur.filter(|_| !row.failed || row.timed_out);
            let latency = Latency {
                ts: row.ts,
                dur: dur.map(|dur| dur.saturating_add(late)),
                failed: row.failed,
                worker: row.worker,
                phases: row.phases,
            };
            (row.key, latency)
        })
    }
}

fn request(row: &RequestRow, outcome: &str, (key, worker): (u32, u32)) -> Request {
    let columns = [
        row.queue_ns,
        row.resolve_ns,
        row.connect_ns,
        row.tls_ns,
        row.send_ns,
        row.wait_ns,
        row.receive_ns,
    ];
    let mut phases = [0; PHASES_MAX];
    for (phase, ns) in phases.iter_mut().zip(columns) {
        *phase = ns.unwrap_or(0).max(0);
    }
    let end = row.dur.or(row.ts_end.map(|end| end.saturating_sub(row.ts)));
    Request {
        id: row.id,
        ts: row.ts,
        dur: end.filter(|dur| *dur >= 0),
        ts_intended: row.ts_intended,
        key,
        failed: !matches!(outcome, "ok" | "unknown"),
        timed_out: outcome == "timeout",
        worker,
        connection: row.connection,
        is_reused: row.is_reused,
        status: row.status,
        outcome: row.outcome,
        client: row.client,
        local: row.local,
        peer: row.peer,
        comm: row.comm,
        utid: row.utid,
        tid: row.tid,
        pid: row.pid,
        server_request: row.server_request,
        parent_request: row.parent_request,
        same_as: row.same_as,
        bytes_received: row.bytes_received,
        phases,
    }
}

fn role_of(word: &str) -> &'static str {
    match word {
        "client" => "client",
        "server" => "server",
        _ => "proxy",
    }
}

/// The role and source to use.
fn chosen(
    tables: &dyn Tables,
    window: Option<Window>,
) -> Result<Option<(&'static str, Source)>, AnalysisError> {
    let is_there = tables.info().tables.get(RequestRow::TABLE.name);
    if is_there.is_some_and(|table| table.rows == 0) {
        return Ok(None);
    }
    let mut found: FxHashSet<(&'static str, Source)> = FxHashSet::default();
    let mut symbols = Symbols::new();
    each_row::<RequestRow>(tables, window, &mut symbols, |row, symbols| {
        if window.is_none_or(|window| window.contains(row.ts)) {
            let role = role_of(symbols.get(row.role));
            found.insert((role, Source::by(symbols.get(row.source))));
        }
        Ok(())
    })?;
    let order = [
        ("client", Source::Load),
        ("client", Source::Log),
        ("server", Source::Log),
        ("proxy", Source::Log),
        ("client", Source::Sockets),
        ("server", Source::Sockets),
    ];
    Ok(order.into_iter().find(|one| found.contains(one)))
}

/// The name of an unknown endpoint.
pub const UNKNOWN_ENDPOINT: &str = "?";

/// Names of the endpoints, by index; hosts only if there are several.
fn names(aims: &FxHashMap<Aim, u32>, symbols: &Symbols) -> Vec<String> {
    let mut ordered: Vec<(&Aim, &u32)> = aims.iter().collect();
    ordered.index_sort_by_key(|(_, place)| **place);
    let mut hosts: Vec<Option<Sym>> = ordered.iter().map(|((host, ..), _)| *host).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let word = |sym: Option<Sym>| sym.map(|sym| symbols.get(sym));
    let name = |((host, method, endpoint), _): &(&Aim, &u32)| {
        let host = word(*host).filter(|_| hosts.len() > 1 || endpoint.is_none());
        let path = word(*endpoint).map(|path| path.split('?').next().unwrap_or(path));
        let aim = format!("{}{}", host.unwrap_or(""), path.unwrap_or(""));
        let aim = if aim.is_empty() {
            UNKNOWN_ENDPOINT.to_owned()
        } else {
            aim
        };
        word(*method).map_or_else(|| aim.clone(), |method| format!("{method} {aim}"))
    };
    ordered.iter().map(name).collect()
}
