//! Which threads' time can explain a request, and which other request kept them from it.

use whyslow_analysis::before_after::Request;
use whyslow_model::Ns;

use super::findings::RequestExplainer;
use crate::report::{ActorKind, Finding};
use crate::sentence;

/// A request of the same thread that overlaps with less than this part of the time is no other
/// work.
const OVERLAP: Ns = 10;

/// A thread and the time in which it is walked to explain a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct View {
    pub(super) utid: i32,
    pub(super) begin: Ns,
    pub(super) end: Ns,
    pub(super) is_client: bool,
}

/// Whether a walk names what a request waited for: not only that its server did not reply.
pub(super) fn is_answer(finding: &Finding) -> bool {
    let part = finding.culprit.map(|place| &finding.parts[place]);
    part.is_some_and(|part| {
        part.culprit.kind != ActorKind::Peer
            && !matches!(part.root.as_str(), "network_remote" | "producer_idle")
    })
}

impl RequestExplainer<'_> {
    /// The threads whose time can explain the request, in the order in which they are tried: the
    /// client's if it did nothing else meanwhile, because its wait leads to all threads that served
    /// the request; else the one that served it longest.
    pub(super) fn views(&self, request: &Request) -> Vec<View> {
        let served = self.threads.longest(request);
        let whole = request.dur.map(|dur| (request.ts, request.ts + dur));
        let client = self.client_of(request).zip(whole);
        let client = client.map(|(utid, (begin, end))| View {
            utid,
            begin,
            end,
            is_client: true,
        });
        let server = served.map(|one| {
            // Then the answer is in what the thread did before or after.
            let is_short = whole.is_some_and(|(begin, end)| 2 * self.served(request) < end - begin);
            let own = (one.begin, one.end);
            let (begin, end) = whole.filter(|_| is_short).unwrap_or(own);
            View {
                utid: one.utid,
                begin,
                end,
                is_client: false,
            }
        });
        let is_first = client.is_some_and(|view| self.is_dedicated(request, &view));
        let mut views: Vec<View> = [client, server].into_iter().flatten().collect();
        if !is_first {
            views.reverse();
        }
        views
    }

    /// How long threads of the server had the request.
    pub(super) fn served(&self, request: &Request) -> Ns {
        let served = self.threads.of(request).iter();
        served.map(|one| one.end - one.begin).sum()
    }

    /// The thread of a client that sent the request.
    fn client_of(&self, request: &Request) -> Option<i32> {
        let is_client = self.requests.role == Some("client") && self.threads.has_activity();
        request.utid.filter(|_| is_client)
    }

    /// Whether the client's thread waited for no other request for most of that time.
    fn is_dedicated(&self, request: &Request, view: &View) -> bool {
        let others = self.requests.rows.iter().filter(|other| {
            other.id != request.id && other.utid == Some(view.utid) && other.ts < view.end
        });
        let mut overlaps = others.map(|other| {
            let end = other.ts.saturating_add(other.dur.unwrap_or(0));
            end.min(view.end) - other.ts.max(view.begin)
        });
        overlaps.all(|overlap| OVERLAP * overlap < view.end - view.begin)
    }

    /// Time from the first to the last byte of the reply; 0 if it is not known.
    pub(super) fn receiving(&self, request: &Request) -> Ns {
        let phases = self.requests.phases.iter().zip(request.phases);
        phases
            .filter(|(name, _)| name.as_str() == "receive")
            .map(|(_, ns)| ns)
            .sum()
    }

    /// Which other request kept the culprit from this one.
    pub(super) fn add_behind(&self, request: &Request, finding: &mut Finding) {
        let target = &finding.target;
        let Some(part) = finding.culprit.map(|place| &finding.parts[place]) else {
            return;
        };
        let actor = match part.culprit.kind {
            ActorKind::Own => &target.actor,
            ActorKind::Process => &part.culprit,
            _ => return,
        };
        let Some(tid) = actor
            .tid
            .filter(|_| part.root == "cpu_running" || part.pieces == 1)
        else {
            return;
        };
        let own = [Some(request.id), self.threads.server_of(request)];
        let own: Vec<i64> = own.into_iter().flatten().collect();
        let window = (target.begin_ns, target.end_ns);
        let Some((id, spent)) = self.threads.served_by(tid, window, &own) else {
            return;
        };
        // The request that it was part of is no other one.
        if 2 * spent < part.dur_ns || request.parent_request == Some(id) {
            return;
        }
        let rows = self.requests.rows.iter();
        let mut of_client =
            rows.filter(|row| row.id == id || self.threads.server_of(row) == Some(id));
        let client = of_client.find_map(|row| {
            let comm = row.comm.filter(|_| self.requests.role == Some("client"));
            let word = self.requests.symbols.get(comm.or(row.client)?);
            Some(match row.pid.filter(|_| comm.is_some()) {
                Some(pid) => format!(" of {word} (pid {pid})"),
                None => format!(" of client {word}"),
            })
        });
        let behind = format!(
            "{} served request {id}{} for {} of that time",
            sentence::thread(actor),
            client.unwrap_or_default(),
            sentence::length(spent)
        );
        finding.caveats.push(behind.clone());
        finding.behind = Some(behind);
    }
}
