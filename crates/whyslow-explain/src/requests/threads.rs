//! Which threads served a request, and when.

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_analysis::AnalysisError;
use whyslow_analysis::before_after::{Request, Requests};
use whyslow_model::row::Row;
use whyslow_model::tables::{RequestRow, RequestThreadRow, SyscallRow, ThreadStateRow};
use whyslow_model::{Ns, Symbols, Window};
use whyslow_store::{Tables, each_row};

use super::local::Collected;

/// A stretch of time in which a thread served a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stretch {
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    pub(crate) utid: i32,
    pub(crate) tid: i32,
    /// It served other requests at the same time.
    pub(crate) is_shared: bool,
}

/// Threads by the id of the request that they served.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    of: FxHashMap<i64, Vec<Stretch>>,
    /// Ids of requests as a server saw them.
    of_servers: FxHashSet<i64>,
    /// The same request as its server saw it, for requests that the import did not join.
    server_of: FxHashMap<i64, i64>,
    /// What threads did was recorded.
    has_activity: bool,
}

impl Threads {
    /// Without stretches if neither thread states nor system calls were recorded.
    pub(crate) fn read(tables: &dyn Tables, window: Option<Window>) -> Result<Self, AnalysisError> {
        let has = |name: &str| {
            let table = tables.info().tables.get(name);
            table.is_none_or(|table| table.rows > 0)
        };
        let has_activity = has(ThreadStateRow::TABLE.name) || has(SyscallRow::TABLE.name);
        let mut found = Self {
            has_activity,
            ..Self::default()
        };
        let mut symbols = Symbols::new();
        let mut collected = Collected::default();
        each_row::<RequestThreadRow>(tables, window, &mut symbols, |row, _| {
            let end = row.ts_end.or(row.dur.map(|dur| row.ts.saturating_add(dur)));
            if let Some(end) = end.filter(|end| has_activity && *end > row.ts) {
                found.of.entry(row.request).or_default().push(Stretch {
                    begin: row.ts,
                    end,
                    utid: row.utid,
                    tid: row.tid,
                    is_shared: row.is_shared,
                });
            }
            Ok(())
        })?;
        // Without other information, the thread that started the request served all of it.
        each_row::<RequestRow>(tables, window, &mut symbols, |row, symbols| {
            collected.add(&row, symbols);
            if symbols.get(row.role) != "server" {
                return Ok(());
            }
            // A log of the server does not show what its threads did.
            if has_activity || symbols.get(row.source) == "socket" {
                found.of_servers.insert(row.id);
            }
            let end = row.ts_end.or(row.dur.map(|dur| row.ts.saturating_add(dur)));
            let end = end.filter(|end| has_activity && *end > row.ts);
            if let (Some(utid), Some(end)) = (row.utid, end) {
                found.of.entry(row.id).or_insert_with(|| {
                    vec![Stretch {
                        begin: row.ts,
                        end,
                        utid,
                        tid: row.tid.unwrap_or(0),
                        is_shared: false,
                    }]
                });
            }
            Ok(())
        })?;
        for stretches in found.of.values_mut() {
            stretches.sort_unstable();
        }
        found.server_of = collected.joined();
        Ok(found)
    }

    /// The same request as its server saw it.
    pub(super) fn server_of(&self, request: &Request) -> Option<i64> {
        let joined = || self.server_of.get(&request.id).copied();
        request.server_request.or_else(joined)
    }

    /// Whether it was recorded what threads did.
    pub(super) fn has_activity(&self) -> bool {
        self.has_activity
    }

    /// The request that a thread spent the longest part of a window on, without interruption by
    /// other requests, and that time.
    pub(super) fn served_by(
        &self,
        tid: i32,
        (begin, end): (Ns, Ns),
        except: &[i64],
    ) -> Option<(i64, Ns)> {
        let spent = self.of.iter().filter_map(|(id, stretches)| {
            let of_thread = stretches
                .iter()
                .filter(|one| one.tid == tid && !one.is_shared);
            let sum: Ns = of_thread
                .map(|one| (one.end.min(end) - one.begin.max(begin)).max(0))
                .sum();
            (sum > 0 && !except.contains(id)).then_some((*id, sum))
        });
        spent.max_by_key(|(id, sum)| (*sum, std::cmp::Reverse(*id)))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Whether a server's view of the request was recorded.
    pub(super) fn is_served(&self, request: &Request) -> bool {
        let server = self.server_of(request);
        server.is_some_and(|id| self.of_servers.contains(&id))
            || self.of_servers.contains(&request.id)
    }

    /// Threads that served a request, by its id on the server.
    pub(crate) fn of_served(&self, id: i64) -> &[Stretch] {
        self.of.get(&id).map(Vec::as_slice).unwrap_or_default()
    }

    pub(super) fn of(&self, request: &Request) -> &[Stretch] {
        let by = |id: &i64| self.of.get(id).map(Vec::as_slice);
        let server = self.server_of(request);
        let server = server.as_ref().and_then(by);
        server.or_else(|| by(&request.id)).unwrap_or_default()
    }

    /// The longest stretch; a shared one counts half.
    pub(super) fn longest(&self, request: &Request) -> Option<&Stretch> {
        let stretches = self.of(request).iter();
        stretches.max_by_key(|one| {
            let times = if one.is_shared { 1 } else { 2 };
            let length = (one.end - one.begin).saturating_mul(times);
            (length, std::cmp::Reverse((one.begin, one.utid)))
        })
    }
}

/// The requests of the role (client or server) that this request has. Of requests that only
/// sockets show, those to other servers are not similar.
pub(super) fn with(tables: &dyn Tables, id: i64) -> Result<Requests, AnalysisError> {
    let has = |requests: &Requests| requests.rows.iter().any(|request| request.id == id);
    let all = Requests::read(tables, None)?;
    if has(&all) && !all.is_of_sockets {
        return Ok(all);
    }
    for role in ["client", "server"] {
        let of_sockets = Requests::of_sockets(tables, None, role)?;
        if has(&of_sockets) {
            return Ok(of_sockets);
        }
    }
    Requests::of_role_of(tables, id)
}
