//! The recordings of all hosts, each read on first use.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use whyslow_analysis::AnalysisError;
use whyslow_model::{Ns, Window};

use super::OtherHost;
use super::clock::{Bounds, Candidate, Clock};
use super::join::{self, Link, Pair};
use super::rows::{Interner, Packets, Rows, writes};
use crate::requests::threads::Threads;

/// Packets within this time of the one in query are used for the clock offset.
const PACKETS_NS: Ns = 2_000_000_000;

pub(super) struct Hosts<'t> {
    /// The explained recording comes first.
    all: Vec<OtherHost<'t>>,
    names: Vec<String>,
    interner: Interner,
    rows: FxHashMap<usize, Rc<Rows>>,
    threads: FxHashMap<usize, Rc<Threads>>,
    links: FxHashMap<(usize, usize), Rc<Link>>,
}

/// A request that another host served, and the clock offset at that time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Joined {
    pub(super) server: usize,
    pub(super) pair: Pair,
    pub(super) clock: Clock,
    /// From all pairs including this one.
    pub(super) bounds: Option<Bounds>,
}

/// Why a request was not found in another recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    Unseen,
    /// Several requests on the connection may be it.
    Several(usize, Clock),
}

impl<'t> Hosts<'t> {
    pub(super) fn new(here: OtherHost<'t>, others: &[OtherHost<'t>]) -> Self {
        let all: Vec<OtherHost<'t>> = std::iter::once(here)
            .chain(others.iter().copied())
            .collect();
        let hosts: Vec<Option<&str>> = all
            .iter()
            .map(|one| one.tables.info().host.as_deref())
            .collect();
        let name = |place: usize| {
            let host = hosts[place];
            // Several recordings of one host, such as of its containers, are named by file.
            let is_alone = hosts.iter().filter(|one| **one == host).count() == 1;
            let host = host.filter(|_| is_alone);
            host.unwrap_or(all[place].recording).to_owned()
        };
        Self {
            names: (0..all.len()).map(name).collect(),
            all,
            interner: Interner::default(),
            rows: FxHashMap::default(),
            threads: FxHashMap::default(),
            links: FxHashMap::default(),
        }
    }

    pub(super) fn name(&self, host: usize) -> &str {
        &self.names[host]
    }

    pub(super) fn recording(&self, host: usize) -> OtherHost<'t> {
        self.all[host]
    }

    /// Names of the other recordings.
    pub(super) fn others(&self) -> String {
        let names: Vec<&str> = self.all[1..].iter().map(|one| one.recording).collect();
        names.join(", ")
    }

    pub(super) fn rows(&mut self, host: usize) -> Result<Rc<Rows>, AnalysisError> {
        if let Some(rows) = self.rows.get(&host) {
            return Ok(Rc::clone(rows));
        }
        let rows = Rc::new(Rows::read(self.all[host].tables, &mut self.interner)?);
        self.rows.insert(host, Rc::clone(&rows));
        Ok(rows)
    }

    pub(super) fn threads(&mut self, host: usize) -> Result<Rc<Threads>, AnalysisError> {
        if let Some(threads) = self.threads.get(&host) {
            return Ok(Rc::clone(threads));
        }
        let threads = Rc::new(Threads::read(self.all[host].tables, None)?);
        self.threads.insert(host, Rc::clone(&threads));
        Ok(threads)
    }

    fn link(&mut self, client: usize, server: usize) -> Result<Rc<Link>, AnalysisError> {
        if let Some(link) = self.links.get(&(client, server)) {
            return Ok(Rc::clone(link));
        }
        let (of_client, of_server) = (self.rows(client)?, self.rows(server)?);
        let link = Rc::new(Link::new(&of_client, &of_server));
        self.links.insert((client, server), Rc::clone(&link));
        Ok(link)
    }

    /// The server side of a client's request.
    pub(super) fn served(
        &mut self,
        client: usize,
        issued: usize,
    ) -> Result<Result<Joined, Missing>, AnalysisError> {
        let mut missing = Missing::Unseen;
        for server in (0..self.all.len()).filter(|server| *server != client) {
            let link = self.link(client, server)?;
            let (here, there) = (self.rows(client)?, self.rows(server)?);
            let pairs = link.pairs(&here, &there, issued);
            if pairs.is_empty() {
                continue;
            }
            let one = &here.issued[issued];
            // The middle of the request.
            let at = one.begin + (one.end.unwrap_or(one.first) - one.begin) / 2;
            let mut near = link.near(&here, &there, at);
            // A very long request starts far from its middle.
            if near.iter().all(|pair| pair.issued != issued) {
                near.extend(&pairs);
            }
            let ends = near.iter().filter_map(|pair| {
                let served = &there.served[pair.served];
                Some((served.upid, served.end.filter(|_| served.is_of_sockets)?))
            });
            let ends: Vec<(Option<i32>, Ns)> = ends.collect();
            let written = writes(self.all[server].tables, &ends)?;
            let bounds = |pair: &Pair| {
                let (issued, served) = (&here.issued[pair.issued], &there.served[pair.served]);
                let key = served.end.map(|end| (served.upid, end));
                let written = key.and_then(|key| written.get(&key)).copied();
                join::bounds(issued, served, (written, at))
            };
            let mut candidates: Vec<Candidate> = near
                .iter()
                .filter_map(|pair| {
                    Some(Candidate {
                        issued: pair.issued as u64,
                        bounds: bounds(pair)?,
                        is_sure: pair.is_sure,
                    })
                })
                .collect();
            candidates.extend(self.packets((client, server), at, &candidates)?);
            let clock = Clock::of(&candidates);
            let Some((pair, bounds)) = join::only(&pairs, clock, bounds) else {
                missing = Missing::Several(server, clock);
                continue;
            };
            return Ok(Ok(Joined {
                server,
                pair,
                clock,
                bounds,
            }));
        }
        Ok(Err(missing))
    }

    /// Candidates from packets around a time of the client's clock, if that time is approximately
    /// known on the other clock.
    fn packets(
        &mut self,
        (client, server): (usize, usize),
        at: Ns,
        candidates: &[Candidate],
    ) -> Result<Vec<Candidate>, AnalysisError> {
        let Clock::Within { bounds, .. } = Clock::of(candidates) else {
            return Ok(Vec::new());
        };
        let around = |at: Ns, more: Ns| {
            let half = PACKETS_NS.saturating_add(more);
            Window::new(at.saturating_sub(half), at.saturating_add(half))
        };
        let (tables, others) = (self.all[client].tables, self.all[server].tables);
        let here = Packets::read(tables, around(at, 0), &mut self.interner)?;
        if here.sent.is_empty() && here.received.is_empty() {
            return Ok(Vec::new());
        }
        let moved = at.saturating_add(bounds.middle_ns());
        let window = around(moved, bounds.width_ns());
        let there = Packets::read(others, window, &mut self.interner)?;
        Ok(join::of_packets(&here, &there, at))
    }
}
