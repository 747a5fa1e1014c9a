//! Which findings are reported, and which are merged into others.

use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use crate::report::{Actor, ActorKind, Also, Confidence, Finding, Hop};

/// Minimum time of a finding, as a share of the time of the largest one.
pub(crate) const WORTH_MIN: f64 = 0.02;

/// The same of a finding without a culprit beside others with one.
const UNKNOWN_MIN: f64 = 0.25;
/// A finding precedes slow requests if its time is this many times as long …
const REQUESTS_FIRST: Ns = 4;
/// … or, if those have no culprit, this part of it.
const UNKNOWN_LAST: Ns = 4;
/// Waits for something that the culprit did for itself or for others, not for the waiting thread.
const IN_THE_WAY: [&str; 6] = [
    "block_queue",
    "block_held",
    "journal_wait",
    "lock_futex",
    "lock_inode",
    "lock_kernel",
];

/// Orders findings, those with a culprit first, and keeps one for each culprit. A finding of its
/// effect on another thread takes precedence over one of its own slow operation, as both have the
/// same cause.
pub(crate) fn ranked(findings: Vec<Finding>) -> Vec<Finding> {
    let weight = |finding: &Finding| {
        let (part, excess) = (
            finding.culprit.map(|place| &finding.parts[place]),
            excess(finding),
        );
        let is_other = part.is_some_and(|part| part.culprit.kind != ActorKind::Own);
        let confidence = match finding.confidence {
            Confidence::High | Confidence::Medium => 2,
            Confidence::Low => 1,
            Confidence::None => 0,
        };
        (confidence > 0 && is_other, confidence, excess)
    };
    let mut findings = findings;
    findings.index_sort_by_key(|finding| std::cmp::Reverse(weight(finding)));
    let most = findings.iter().map(excess).max().unwrap_or(0);
    findings.retain(|finding| excess(finding) as f64 >= WORTH_MIN * most as f64);
    // Without a culprit, it is reported after the others if that is much of what was slow.
    if findings.iter().any(|finding| finding.culprit.is_some()) {
        let is_much = |finding: &Finding| excess(finding) as f64 >= UNKNOWN_MIN * most as f64;
        findings.retain(|finding| finding.culprit.is_some() || is_much(finding));
    }
    let mut kept: Vec<Finding> = Vec::new();
    for finding in findings {
        let part = finding.culprit.map(|place| &finding.parts[place]);
        let culprit = part.map(|part| match part.culprit.kind {
            ActorKind::Own => (&finding.target.actor, part),
            _ => (&part.culprit, part),
        });
        let same = culprit.and_then(|(actor, _)| {
            let victim = finding.target.actor.pid;
            kept.iter_mut().find(|other| {
                let theirs = other.culprit.map(|place| &other.parts[place].culprit);
                let victims = [victim, other.target.actor.pid];
                theirs.is_some_and(|theirs| {
                    // Threads of a process that is itself a victim are culprits one by one.
                    let is_of_victim = victims.contains(&actor.pid);
                    theirs.pid.is_some()
                        && theirs.pid == actor.pid
                        && (theirs.name == actor.name || !is_of_victim)
                })
            })
        });
        match same {
            Some(other) if of_other(&finding) && represents(&finding, other) => {
                let (also, mut before) = (std::mem::take(&mut other.also), finding);
                std::mem::swap(other, &mut before);
                other.also = also;
                other.also.insert(0, also_of(before));
            }
            Some(other) => other.also.push(also_of(finding)),
            None => kept.push(finding),
        }
    }
    kept
}

/// Adds findings of contended locks before those with less time. They are not merged with others of
/// the same culprit: an operation delayed by it does not show the threads that it always blocks.
pub(crate) fn add_by_time(findings: &mut Vec<Finding>, locks: Vec<Finding>) {
    for lock in locks {
        let time = excess(&lock);
        let place = findings.iter().position(|other| excess(other) < time);
        findings.insert(place.unwrap_or(findings.len()), lock);
    }
}

/// Adds findings of slow requests, which are what users notice: before other findings, unless these
/// account for much more time. One with the same cause as another finding is part of that one, so
/// that a wait of a server and the requests that it delayed are one incident. The first `fixed`
/// findings stay where they are.
pub(crate) fn add_requests(findings: &mut Vec<Finding>, mut requests: Vec<Finding>, fixed: usize) {
    let at_times = findings
        .iter()
        .chain(&requests)
        .filter(|one| !is_always(one));
    let least = WORTH_MIN * at_times.map(excess).max().unwrap_or(0) as f64;
    requests.retain(|finding| excess(finding) as f64 >= least);
    requests.index_sort_by_key(|finding| std::cmp::Reverse(order(finding, excess(finding))));
    for mut finding in requests {
        let same = findings
            .iter()
            .position(|other| is_same_cause(other, &finding));
        let Some(same) = same else {
            place(findings, finding, fixed);
            continue;
        };
        let mut other = findings.remove(same);
        let is_fixed = same < fixed;
        let is_first = other.target.kind == "request" && !is_victim_of(&finding, &other)
            || explains(&other, &finding);
        if is_fixed || is_first {
            other.also.insert(0, also_of(finding));
            finding = other;
        } else {
            finding.also.append(&mut other.also);
            finding.also.insert(0, also_of(other));
        }
        if is_fixed {
            findings.insert(same, finding);
        } else {
            place(findings, finding, fixed);
        }
    }
}

/// Inserts a finding of requests.
fn place(findings: &mut Vec<Finding>, finding: Finding, fixed: usize) {
    let time = requests_time(&finding).unwrap_or_else(|| excess(&finding));
    let is_after = |other: &Finding| match requests_time(other) {
        Some(theirs) => order(other, theirs) < order(&finding, time),
        None if is_always(other) || is_always(&finding) => is_always(other),
        None if finding.culprit.is_some() || other.culprit.is_none() => {
            excess(other) < REQUESTS_FIRST * time
        }
        None => excess(other) * UNKNOWN_LAST < time,
    };
    let fixed = fixed.min(findings.len());
    let at = findings[fixed..].iter().position(is_after);
    findings.insert(at.map_or(findings.len(), |at| fixed + at), finding);
}

/// Requests with a culprit are before the others, those that are slow at times before those that
/// always are, and those that are slow compared with others before those without any to compare
/// with.
fn order(finding: &Finding, time: Ns) -> (bool, bool, bool, Ns) {
    let (has_culprit, has_usual) = (finding.culprit.is_some(), finding.baseline.is_some());
    (has_culprit, !is_always(finding), has_usual, time)
}

fn is_always(finding: &Finding) -> bool {
    finding.group.as_ref().is_some_and(|group| group.is_always)
}

/// Time of the slow requests of a finding; none if it has no requests.
fn requests_time(finding: &Finding) -> Option<Ns> {
    let is_request = |also: &&Also| is_request(also.id.as_deref());
    let delayed = finding.also.iter().filter(is_request);
    let delayed = delayed.map(|also| also.dur_ns * also.count as Ns).max();
    let own = (finding.target.kind == "request").then(|| excess(finding));
    own.max(delayed)
}

fn is_request(id: Option<&str>) -> bool {
    id.is_some_and(|id| id.starts_with("request:"))
}

/// Whether two findings have the same culprit.
fn is_same_cause(one: &Finding, other: &Finding) -> bool {
    let culprit = |finding: &Finding| -> Option<(ActorKind, String, Option<i32>)> {
        let part = &finding.parts[finding.culprit?];
        let actor = match part.culprit.kind {
            ActorKind::Own => &finding.target.actor,
            _ => &part.culprit,
        };
        let kind = match part.culprit.kind {
            ActorKind::Own | ActorKind::Kernel => ActorKind::Process,
            kind => kind,
        };
        let is_one = actor.pid.is_some() || matches!(kind, ActorKind::Device | ActorKind::Peer);
        is_one.then(|| (kind, actor.name.clone(), actor.pid))
    };
    culprit(one).is_some_and(|one| culprit(other) == Some(one))
}

/// Whether a call of another thread is what a slow request waited for. One of a process that the
/// request did not depend on was delayed by the same culprit, no more.
fn explains(call: &Finding, request: &Finding) -> bool {
    let (caller, client) = (&call.target.actor, &request.target.actor);
    let is_behind = |hop: &Hop| caller.pid.is_some() && hop.actor.pid == caller.pid;
    // All that a thread waited for in a window also contains what it did between requests.
    call.target.kind != "thread"
        && caller.tid != client.tid
        && 2 * length(call) >= length(request)
        && request.chain.iter().any(is_behind)
}

/// Whether requests were slow because of what the same culprit did for other requests: because it
/// served those, or because what it did for them was in the way. Then those are what was expensive,
/// and not the incident that others noticed, unless they took much longer.
fn is_victim_of(finding: &Finding, expensive: &Finding) -> bool {
    let part = |finding: &'_ Finding| finding.culprit.map(|place| finding.parts[place].clone());
    let (Some(ours), Some(theirs)) = (part(finding), part(expensive)) else {
        return false;
    };
    let other = &expensive.target.actor;
    let serves_it = |client: &Option<Actor>| {
        let client = client.as_ref();
        client.is_some_and(|client| client.pid.is_some() && client.pid == other.pid)
    };
    let is_in_the_way = |root: &str| IN_THE_WAY.contains(&root);
    (serves_it(&ours.client) || is_in_the_way(&ours.root) && !is_in_the_way(&theirs.root))
        && finding.confidence >= expensive.confidence
        && excess(expensive) < REQUESTS_FIRST * excess(finding)
}

/// Whether a finding, rather than another one of the same culprit, represents both: that of an
/// operation that waited for what the culprit did, before one that had to share a CPU with it, as
/// anything on the machine may; otherwise the longest.
fn represents(finding: &Finding, other: &Finding) -> bool {
    let shares_cpu = |finding: &Finding| {
        let part = finding.culprit.map(|place| &finding.parts[place]);
        part.is_some_and(|part| part.root == "cpu_runqueue")
    };
    match (shares_cpu(finding), shares_cpu(other)) {
        (false, true) => finding.confidence >= other.confidence.min(Confidence::Medium),
        (true, false) => false,
        _ => length(finding) > length(other),
    }
}

fn also_of(finding: Finding) -> Also {
    let many = finding
        .group
        .as_ref()
        .filter(|group| finding.target.kind == "request" && group.count > 1);
    let what = match many {
        Some(group) => group.operation.clone(),
        None => finding.target.what.clone(),
    };
    // A window is one, whatever the number of its waits.
    let is_one = finding.target.kind == "thread";
    let group = finding.group.as_ref().filter(|_| !is_one);
    Also {
        begin_ns: finding.target.begin_ns,
        dur_ns: length(&finding),
        count: group.map_or(1, |group| group.count),
        what,
        id: finding.target.id,
        actor: finding.target.actor,
    }
}

fn length(finding: &Finding) -> Ns {
    finding.target.end_ns - finding.target.begin_ns
}

/// Whether another thread is the culprit of a slow operation.
fn of_other(finding: &Finding) -> bool {
    let part = finding.culprit.map(|place| &finding.parts[place]);
    finding.target.kind == "operation"
        && part.is_some_and(|part| part.culprit.kind != ActorKind::Own)
}

/// Time beyond the usual of all operations that a finding represents.
pub(crate) fn excess(finding: &Finding) -> Ns {
    // The waits of its threads are at the same time.
    if let Some(contention) = &finding.contention {
        return contention.wall_ns;
    }
    let usual = finding
        .baseline
        .as_ref()
        .map_or(0, |baseline| baseline.median_ns);
    match &finding.group {
        Some(group) => group.dur_ns_total - usual * group.count as Ns,
        None => finding.target.end_ns - finding.target.begin_ns - usual,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Baseline, Group, Part, Target};

    const MS: Ns = 1_000_000;

    /// A finding of one operation of a thread with a culprit of that process id.
    fn finding(id: &str, (pid, dur): (i32, Ns), culprit: Option<i32>) -> Finding {
        let actor = |kind, pid: i32| Actor {
            kind,
            name: format!("p{pid}"),
            pid: Some(pid),
            tid: Some(pid),
            host: None,
        };
        let kind = if is_request(Some(id)) {
            "request"
        } else {
            "operation"
        };
        Finding {
            target: Target {
                kind: kind.into(),
                id: Some(id.to_owned()),
                what: id.to_owned(),
                actor: actor(ActorKind::Own, pid),
                begin_ns: 0,
                end_ns: dur,
                cut: None,
            },
            parts: culprit
                .map(|pid| Part {
                    culprit: actor(ActorKind::Process, pid),
                    dur_ns: dur,
                    ..Part::default()
                })
                .into_iter()
                .collect(),
            culprit: culprit.map(|_| 0),
            ..Finding::default()
        }
    }

    fn order_of(calls: Vec<Finding>, requests: Vec<Finding>) -> Vec<(String, usize)> {
        let mut findings = calls;
        add_requests(&mut findings, requests, 0);
        let ids = findings.into_iter();
        ids.map(|one| (one.target.id.unwrap_or_default(), one.also.len()))
            .collect()
    }

    fn found(ids: &[(&str, usize)]) -> Vec<(String, usize)> {
        let ids = ids.iter();
        ids.map(|(id, also)| ((*id).to_owned(), *also)).collect()
    }

    #[test]
    fn requests_precede_calls_that_do_not_take_much_longer() {
        let request = || vec![finding("request:1", (10, 300 * MS), Some(20))];
        let call = |ms| vec![finding("op:1", (30, ms * MS), Some(40))];
        assert_eq!(
            order_of(call(400), request()),
            found(&[("request:1", 0), ("op:1", 0)])
        );
        assert_eq!(
            order_of(call(3000), request()),
            found(&[("op:1", 0), ("request:1", 0)])
        );
        // Without a culprit, it does not hide one.
        let unknown = vec![finding("request:1", (10, 300 * MS), None)];
        assert_eq!(
            order_of(call(200), unknown.clone()),
            found(&[("op:1", 0), ("request:1", 0)])
        );
        assert_eq!(
            order_of(call(10), unknown),
            found(&[("request:1", 0), ("op:1", 0)])
        );
    }

    #[test]
    fn one_incident_is_one_finding() {
        let requests = |culprit| {
            vec![
                finding("request:1", (10, 300 * MS), Some(culprit)),
                finding("request:2", (11, 250 * MS), Some(culprit)),
            ]
        };
        // A call of the server is what its client waited for.
        let call = || vec![finding("op:1", (20, 280 * MS), Some(40))];
        let mut served = requests(40);
        for request in &mut served {
            let mut server = Hop::default();
            server.actor.pid = Some(20);
            request.chain.push(server);
        }
        assert_eq!(order_of(call(), served.clone()), found(&[("op:1", 2)]));
        // All waits of a thread of the server are not.
        let mut waits = call();
        waits[0].target.kind = "thread".into();
        assert_eq!(order_of(waits, served), found(&[("request:1", 2)]));
        // One of a process that the request did not depend on is not.
        assert_eq!(order_of(call(), requests(40)), found(&[("request:1", 2)]));
        // A short one is a part of the request.
        let call = vec![finding("op:1", (20, 20 * MS), Some(40))];
        assert_eq!(order_of(call, requests(40)), found(&[("request:1", 2)]));
        let call = vec![finding("op:1", (20, 280 * MS), Some(41))];
        assert_eq!(
            order_of(call, requests(40)),
            found(&[("request:1", 1), ("op:1", 0)])
        );
    }

    #[test]
    fn requests_that_an_expensive_one_delayed_represent_it() {
        let of = |id: &str, pid: i32, dur: Ns, root: &str, client: Option<i32>| {
            let mut finding = finding(id, (pid, dur * MS), Some(40));
            finding.parts[0].root = root.into();
            finding.parts[0].client = client.map(|pid| Actor {
                kind: ActorKind::Process,
                pid: Some(pid),
                ..finding.target.actor.clone()
            });
            finding
        };
        let first = |ours: Finding, theirs: Finding| order_of(Vec::new(), vec![ours, theirs]);
        // The server worked for the longer request when the other one waited.
        let expensive = || of("request:1", 10, 300, "cpu_running", None);
        let delayed = |dur, client| of("request:2", 11, dur, "cpu_running", client);
        assert_eq!(
            first(expensive(), delayed(200, Some(10))),
            found(&[("request:2", 1)])
        );
        assert_eq!(
            first(expensive(), delayed(200, Some(12))),
            found(&[("request:1", 1)]),
            "for another client"
        );
        assert_eq!(
            first(expensive(), delayed(60, Some(10))),
            found(&[("request:1", 1)]),
            "it hardly delayed others"
        );
        // What the culprit did for one request was in the way of another.
        let served = of("request:1", 10, 300, "block_service", None);
        let queued = of("request:2", 11, 200, "block_queue", None);
        assert_eq!(first(served, queued), found(&[("request:2", 1)]));
    }

    #[test]
    fn a_wait_for_the_culprit_represents_those_that_shared_a_cpu_with_it() {
        let of = |id: &str, dur: Ns, root: &str, confidence| {
            let mut finding = finding(id, (dur as i32, dur * MS), Some(40));
            finding.parts[0].root = root.into();
            finding.confidence = confidence;
            finding
        };
        let first = |findings| {
            let kept = ranked(findings);
            assert_eq!(kept.len(), 1);
            kept[0].target.id.clone().unwrap_or_default()
        };
        let shared = || of("op:1", 200, "cpu_runqueue", Confidence::Medium);
        let waited = |confidence| of("op:2", 150, "cpu_running", confidence);
        assert_eq!(first(vec![shared(), waited(Confidence::Medium)]), "op:2");
        assert_eq!(first(vec![waited(Confidence::High), shared()]), "op:2");
        // A guess does not displace what is known.
        assert_eq!(first(vec![shared(), waited(Confidence::Low)]), "op:1");
        let longer = of("op:3", 250, "cpu_runqueue", Confidence::Medium);
        assert_eq!(first(vec![shared(), longer]), "op:3");
    }

    #[test]
    fn what_is_always_slow_comes_last() {
        let always = |mut finding: Finding| {
            finding.group = Some(Group {
                count: 100,
                dur_ns_total: 100 * (finding.target.end_ns),
                is_always: true,
                ..Group::default()
            });
            finding
        };
        let calls = vec![always(finding("op:1", (30, 100 * MS), Some(40)))];
        let mut slow = finding("request:2", (11, 50 * MS), Some(21));
        slow.baseline = Some(Baseline::default());
        let requests = vec![always(finding("request:1", (10, 300 * MS), Some(20))), slow];
        assert_eq!(
            order_of(calls, requests),
            found(&[("request:2", 0), ("request:1", 0), ("op:1", 0)])
        );
    }
}
