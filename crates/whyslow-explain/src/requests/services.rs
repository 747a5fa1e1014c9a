//! Findings of slow requests that only sockets show: by the program that sent them and the server,
//! or, if no client was recorded, by the server.
//!
//! A request is slow compared with others of its program to that server, or in absolute terms: if
//! there are too few others, if it takes 100 ms and ten times as long as usual, or if such requests
//! always take that long. What waits for work is left out, and counted. The requests of a client
//! and of its server are one; requests that a server sends for a slow one are part of it.

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_analysis::AnalysisError;
use whyslow_analysis::before_after::{Request, Requests};
use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;
use whyslow_store::Tables;

use super::findings::RequestExplainer;
use super::representative::Representative;
use super::slow::TERMINALS;
use super::threads::Threads;
use super::{idle, spread};
use crate::levels::is_dead_end;
use crate::query::Query;
use crate::report::{Confidence, Finding, Followed, Group};
use crate::sentence;
use crate::slow::{BASELINE_MIN, Counts, SLOW_MIN_NS, Slow};

/// A request of this duration is slow in absolute terms …
const ABSOLUTE_NS: Ns = 100_000_000;
/// … if it also takes this many times as long as usual.
const MEDIANS: Ns = 10;
/// From this number on, requests that are all slow are usual.
const SEVERAL: usize = 5;
/// Groups with a finding.
const GROUPS: usize = 6;
/// Requests of a group that are followed: half of them the longest, the others evenly over the rest.
const FOLLOWED: usize = 8;
/// A larger reply takes time to transfer; what follows a smaller one may be a notification.
const BULK: i64 = 1 << 16;
/// Clients of terminals: a session is one long reply to each key.
const TERMINAL_CLIENTS: [&str; 3] = ["ssh", "mosh-client", "telnet"];
/// Port of name servers: lookups have findings of their own.
const DNS: &str = ":53";

/// Slow requests seen at sockets.
#[derive(Debug, Default)]
pub(super) struct Services {
    pub(super) findings: Vec<Finding>,
    /// What was left out.
    pub(super) notes: Vec<String>,
}

/// Slow requests of one program to one server.
struct SlowRequests<'r> {
    /// The longest first.
    slow: Vec<&'r Request>,
    all: u64,
    median: Ns,
    /// Such requests always take that long.
    is_usual: bool,
    excess: Ns,
}

/// Slow requests, and what explains them: those of clients and of servers differ in it.
type Explained<'r> = (&'r RequestExplainer<'r>, SlowRequests<'r>);

/// Finds slow requests that are not part of `reported` by a load generator or a log.
pub(super) fn find(
    tables: &dyn Tables,
    query: &Query,
    reported: &Requests,
) -> Result<Services, AnalysisError> {
    let clients = Requests::of_sockets(tables, query.window, "client")?;
    let servers = Requests::of_sockets(tables, query.window, "server")?;
    let mut found = Services::default();
    if clients.rows.is_empty() && servers.rows.is_empty() {
        return Ok(found);
    }
    let threads = Threads::read(tables, query.window)?;
    let explainer = |requests| RequestExplainer {
        tables,
        requests,
        threads: &threads,
        recording: &query.recording,
    };
    let (of_clients, of_servers) = (explainer(&clients), explainer(&servers));
    let has_log = !reported.rows.is_empty() && !reported.is_of_sockets;
    let served: FxHashMap<i64, i64> = clients
        .rows
        .iter()
        .filter_map(|row| Some((threads.server_of(row)?, row.id)))
        .collect();
    let nested: FxHashSet<i64> = clients
        .rows
        .iter()
        .filter_map(|row| row.parent_request)
        .collect();
    // A log has the requests of its server, with more about each.
    let of_server = |row: &Request| !has_log && !served.contains_key(&row.id);
    let of_client =
        |row: &Request| row.same_as.is_none() && !(has_log && row.parent_request.is_some());
    let slow_clients = slow(&of_clients, of_client).into_iter();
    let slow_servers = slow(&of_servers, of_server).into_iter();
    let mut groups: Vec<Explained<'_>> = slow_clients
        .map(|one| (&of_clients, one))
        .chain(slow_servers.map(|one| (&of_servers, one)))
        .collect();
    remove_nested(&mut groups, &served);
    groups.index_sort_by_key(|(_, group)| std::cmp::Reverse((group.excess, group.slow[0].id)));
    for (explainer, group) in groups.iter().take(GROUPS) {
        let chosen = chosen(&group.slow);
        let is_idle = idle::find(explainer, (chosen.as_slice(), &servers), &nested)?;
        let busy: Vec<&Request> = chosen
            .iter()
            .zip(&is_idle)
            .filter(|(_, idle)| !**idle)
            .map(|(request, _)| *request)
            .collect();
        // A busy request among many that wait for work represents only itself.
        if 2 * busy.len() < chosen.len() || busy.is_empty() {
            found.notes.push(left_out(explainer, group));
            continue;
        }
        let mut finding = finding(explainer, group, &busy)?;
        let is_nested = |request: &&Request| nested.contains(&request.id);
        if std::ptr::eq(*explainer, &raw const of_servers) && !busy.iter().any(is_nested) {
            doubt_client(&mut finding);
        }
        found.findings.push(finding);
    }
    found.notes.extend(not_followed(&groups));
    Ok(found)
}

/// A server that requests nothing of others waits for its own client, such as for the rest of an upload.
/// Nothing shows that the client should be faster, or that others waited for this.
fn doubt_client(finding: &mut Finding) {
    let part = finding.culprit.map(|place| &finding.parts[place]);
    if part.is_some_and(|part| part.mechanism == "local_ipc" && is_dead_end(&part.root)) {
        finding.confidence = finding.confidence.min(Confidence::Low);
    }
}

/// Removes requests that were sent for another slow one: they are part of it. `served` has the
/// request of the client for each request of a server.
fn remove_nested(groups: &mut Vec<Explained<'_>>, served: &FxHashMap<i64, i64>) {
    let all_slow: FxHashSet<i64> = groups
        .iter()
        .flat_map(|(_, group)| group.slow.iter().map(|request| request.id))
        .collect();
    let is_slow = |id: i64| all_slow.contains(&id);
    for (_, group) in groups.iter_mut() {
        group.slow.retain(|request| {
            let parent = request.parent_request;
            let client = parent.and_then(|parent| served.get(&parent));
            !(parent.is_some_and(is_slow) || client.is_some_and(|client| is_slow(*client)))
        });
    }
    groups.retain(|(_, group)| !group.slow.is_empty());
}

/// Reports how many groups have no finding because there are too many.
fn not_followed(groups: &[Explained<'_>]) -> Option<String> {
    if groups.len() <= GROUPS {
        return None;
    }
    let more = groups[GROUPS..].iter();
    let longest = more.map(|(_, group)| group.slow[0].dur.unwrap_or(0)).max();
    Some(format!(
        "{} more kinds of slow requests were not followed (up to {}): list them with `whyslow requests top`",
        groups.len() - GROUPS,
        sentence::length(longest.unwrap_or(0))
    ))
}

/// The slow requests among those that `is_of` accepts, by key.
fn slow<'r>(
    explainer: &RequestExplainer<'r>,
    is_of: impl Fn(&Request) -> bool,
) -> Vec<SlowRequests<'r>> {
    let requests: &'r Requests = explainer.requests;
    let is_terminal = |request: &Request| {
        let comm = request.comm.map_or("", |comm| requests.symbols.get(comm));
        TERMINALS.iter().any(|name| comm.starts_with(name)) || TERMINAL_CLIENTS.contains(&comm)
    };
    let is_dns = |request: &Request| {
        let peer = request.peer.map_or("", |peer| requests.symbols.get(peer));
        peer.ends_with(DNS)
    };
    let mut by_key: Vec<Vec<&'r Request>> = vec![Vec::new(); requests.keys.len()];
    for request in &requests.rows {
        let is_wanted = request.dur.is_some() && is_of(request);
        if is_wanted && !is_terminal(request) && !is_dns(request) {
            by_key[request.key as usize].push(request);
        }
    }
    let groups = by_key.into_iter();
    groups.filter_map(|all| slow_of(explainer, &all)).collect()
}

/// The slow ones among requests of one kind; none if there are none.
fn slow_of<'r>(explainer: &RequestExplainer<'r>, all: &[&'r Request]) -> Option<SlowRequests<'r>> {
    let mut counts = Counts::new();
    for request in all {
        counts.add(Slow {
            dur: latency(explainer, request),
            id: request.id,
            ts: request.ts,
            utid: request.utid.unwrap_or(-1),
            upid: -1,
        });
    }
    let median = counts.median() as Ns;
    let has_usual = all.len() as u64 >= BASELINE_MIN;
    let least = if has_usual {
        let relative = (counts.threshold() as Ns).max(SLOW_MIN_NS);
        relative.min(ABSOLUTE_NS.max(MEDIANS * median))
    } else {
        ABSOLUTE_NS
    };
    let longer_than = |least: Ns| -> Vec<&'r Request> {
        let all = all.iter().copied();
        all.filter(|request| latency(explainer, request) >= least)
            .collect()
    };
    let mut slow = longer_than(least);
    // Too few for a limit of their own, but enough to see that most of them take that long.
    let are_several = !has_usual && all.len() >= SEVERAL;
    let is_usual = (slow.is_empty() || are_several) && median >= ABSOLUTE_NS;
    if is_usual {
        slow = longer_than(ABSOLUTE_NS);
    }
    slow.index_sort_by_ints(|request| [!latency(explainer, request), request.id, 0]);
    let usual = if has_usual && !is_usual { median } else { 0 };
    let excess = slow
        .iter()
        .map(|request| latency(explainer, request) - usual);
    let excess = excess.sum();
    (!slow.is_empty()).then_some(SlowRequests {
        slow,
        all: all.len() as u64,
        median,
        is_usual,
        excess,
    })
}

/// How long the reply took. What arrives after the first byte of a small reply of an unknown server
/// may be notifications, which nothing waits for.
fn latency(explainer: &RequestExplainer<'_>, request: &Request) -> Ns {
    let whole = request.dur.unwrap_or(0);
    let is_bulk = request.bytes_received.is_some_and(|bytes| bytes >= BULK);
    if is_bulk || explainer.threads.is_served(request) {
        return whole;
    }
    (whole - explainer.receiving(request)).max(0)
}

fn chosen<'r>(slow: &[&'r Request]) -> Vec<&'r Request> {
    let half = slow.len().min(FOLLOWED / 2);
    let (longest, others) = slow.split_at(half);
    let mut chosen = longest.to_vec();
    if !others.is_empty() {
        chosen.extend(spread(others, FOLLOWED - half));
    }
    chosen
}

/// A sentence about requests that wait for work.
fn left_out(explainer: &RequestExplainer<'_>, group: &SlowRequests<'_>) -> String {
    let longest = group.slow[0];
    format!(
        "{} {} are waits for work and no finding (up to {}, request {}): their server was idle until another client's request arrived",
        group.slow.len(),
        explainer.names(longest),
        sentence::length(longest.dur.unwrap_or(0)),
        longest.id
    )
}

/// The finding of one of the followed requests, which represents the group.
fn finding(
    explainer: &RequestExplainer<'_>,
    group: &SlowRequests<'_>,
    followed: &[&Request],
) -> Result<Finding, AnalysisError> {
    let mut findings: Vec<Finding> = followed
        .iter()
        .map(|request| explainer.one(request))
        .collect::<Result<_, _>>()?;
    let representative = Representative::of(&findings);
    let place = representative.as_ref().map_or(0, |one| one.place);
    let mut finding = findings.remove(place);
    let culprit = finding.culprit.map(|place| &finding.parts[place].culprit);
    let others: Vec<Followed> = findings
        .iter()
        .map(|other| {
            let theirs = other.culprit.map(|place| &other.parts[place].culprit);
            let same = culprit.zip(theirs);
            Followed {
                actor: other.target.actor.clone(),
                what: other.target.what.clone(),
                id: other.target.id.clone().unwrap_or_default(),
                begin_ns: other.target.begin_ns,
                end_ns: other.target.end_ns,
                is_same: same.is_some_and(|(one, other)| {
                    (one.kind, &one.name, one.pid) == (other.kind, &other.name, other.pid)
                }),
            }
        })
        .collect();
    let threads: FxHashSet<Option<i32>> = group.slow.iter().map(|one| one.utid).collect();
    let (count, requests) = (group.slow.len(), explainer.names(followed[place]));
    let median = sentence::length(group.median);
    let always = if group.is_usual { ", as always" } else { "" };
    let which = match &representative {
        Some(one) if !one.is_longest() => one.name(),
        _ => "The longest".to_owned(),
    };
    finding.verdict = format!(
        "{count} of {} {requests} took long{always} (median of all {median}). {which}: {}",
        group.all, finding.verdict
    );
    if let Some(one) = representative.filter(|one| !one.is_longest()) {
        finding.caveats.push(one.caveat(&findings[0]));
    }
    if group.is_usual {
        // Nothing shows that it should be faster: it may be meant to wait.
        let part = finding.culprit.map(|place| &finding.parts[place]);
        if part.is_some_and(|part| is_dead_end(&part.root)) {
            finding.confidence = finding.confidence.min(Confidence::Low);
        }
        finding.caveats.push(format!(
            "{requests} are always slow: the median of {} is {median}",
            group.all
        ));
    }
    finding.group = Some(Group {
        operation: requests,
        count: count as u64,
        all: Some(group.all),
        dur_ns_total: group.slow.iter().filter_map(|one| one.dur).sum(),
        dur_ns_max: group.slow[0].dur.unwrap_or(0),
        walked: followed.len() as u64,
        threads: threads.len(),
        is_always: group.is_usual,
        others,
        ..Group::default()
    });
    Ok(finding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Part;

    #[test]
    fn a_server_that_waits_for_its_client_is_no_sure_finding() {
        let confidence = |mechanism: &str, root: &str| {
            let part = Part {
                mechanism: mechanism.into(),
                root: root.into(),
                ..Part::default()
            };
            let mut finding = Finding {
                parts: vec![part],
                culprit: Some(0),
                confidence: Confidence::Medium,
                ..Finding::default()
            };
            doubt_client(&mut finding);
            finding.confidence
        };
        assert_eq!(confidence("local_ipc", "timer_sleep"), Confidence::Low);
        assert_eq!(confidence("local_ipc", "cpu_running"), Confidence::Medium);
        assert_eq!(confidence("timer_sleep", "timer_sleep"), Confidence::Medium);
    }
}
