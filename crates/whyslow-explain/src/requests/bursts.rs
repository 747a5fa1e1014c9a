//! Clients that sent, or failed, far more requests than usual, and the effect on other clients at
//! that time.
//!
//! `whyslow_analysis::bursts` detects the bursts. If other clients were slow during a burst and not
//! at other times, it is reported as an overlap. The probability that it is chance is computed from
//! the recording itself: the burst is moved to every other position in time, and the positions are
//! counted at which requests of other clients degrade as much compared with the interval before.
//! Slow requests come in clusters, which stay intact, so one stall counts once; and requests that
//! were slow before the burst started are not attributed to it.

use std::collections::BTreeMap;

use whyslow_analysis::AnalysisError;
use whyslow_analysis::before_after::{Request, Requests};
use whyslow_analysis::bursts::{Burst, BurstOf, Series, part_width};
use whyslow_model::sort::IndexSort;
use whyslow_model::{Ns, Sym};
use whyslow_store::Tables;

use super::meanwhile::{Meanwhile, OTHERS_MIN, chance, describe};
use super::results::result_of;
use super::set::host;
use crate::patterns::normal::Normal;
use crate::patterns::{Item, UNIDENTIFIED};
use crate::query::Query;
use crate::report::{Actor, ActorKind, Observation, Thing};
use crate::sentence;
use crate::wall_clock::WallClock;

/// Maximum number of observations.
const FINDINGS_MAX: usize = 5;
/// Minimum share of a burst for an endpoint or status to be named.
const MOST: f64 = 0.5;

/// Bursts that overlap with slow or failed requests, the largest first.
pub(super) fn find(
    tables: &dyn Tables,
    query: &Query,
    examined: &Requests,
) -> Result<Vec<Observation>, AnalysisError> {
    let info = tables.info();
    let (begin, end) = query.window.map_or((info.begin_ns, info.end_ns), |window| {
        (window.begin.max(info.begin_ns), window.end.min(info.end_ns))
    });
    let parts = Parts::of(begin, end);
    let scene = |requests| Scene {
        requests,
        parts,
        objective: query.min,
        recording: &query.recording,
        clock: query.clock.as_ref(),
    };
    let all: Vec<&Request> = examined.rows.iter().collect();
    if !examined.is_of_sockets && clients(examined, &all).len() > 1 {
        return Ok(scene(examined).observations(&all, None));
    }
    let logged = Requests::of_servers(tables, query.window, false)?;
    let rows: Vec<&Request> = logged.rows.iter().collect();
    if clients(&logged, &rows).len() > 1 {
        return Ok(scene(&logged).observations(&rows, None));
    }
    let served = Requests::of_servers(tables, query.window, true)?;
    let mut of_port: BTreeMap<&str, Vec<&Request>> = BTreeMap::new();
    for row in &served.rows {
        // Servers on one machine send requests to each other, and each has its own clients.
        of_port
            .entry(port(&served, row.local))
            .or_default()
            .push(row);
    }
    let mut found = Vec::new();
    for (own_port, rows) in of_port {
        if clients(&served, &rows).len() < 2 {
            continue;
        }
        let sent: Vec<&Request> = examined
            .rows
            .iter()
            .filter(|row| !examined.is_of_sockets && port(examined, row.peer) == own_port)
            .collect();
        let sent = (sent.len() as u64 >= OTHERS_MIN).then_some((examined, sent.as_slice()));
        found.extend(scene(&served).observations(&rows, sent));
    }
    Ok(found)
}

/// Time divided into equal parts.
#[derive(Debug, Clone, Copy)]
struct Parts {
    begin: Ns,
    end: Ns,
    width: Ns,
}

impl Parts {
    fn of(begin: Ns, end: Ns) -> Self {
        let end = end.max(begin.saturating_add(1));
        Self {
            begin,
            end,
            width: part_width(end.saturating_sub(begin)),
        }
    }

    fn count(self) -> usize {
        (self.end.saturating_sub(self.begin) as u64).div_ceil(self.width as u64) as usize
    }

    /// Index of the part; times outside belong to the first or last.
    fn at(self, ts: Ns) -> usize {
        let place = ts.saturating_sub(self.begin).max(0) / self.width;
        (place as usize).min(self.count() - 1)
    }

    /// Start and end of a range of parts.
    fn range(self, (first, last): (usize, usize)) -> (Ns, Ns) {
        let begin = self.begin + first as Ns * self.width;
        let end = self.begin + (last as Ns + 1) * self.width;
        (begin, end.min(self.end))
    }
}

/// The client of a request without its port, which differs for each connection.
fn client<'r>(requests: &'r Requests, row: &Request) -> Option<&'r str> {
    let own = row.local.filter(|_| requests.role == Some("client"));
    let name = row.client.or(own).map(|sym| requests.symbols.get(sym));
    name.map(host).filter(|name| !name.is_empty())
}

fn clients<'r>(
    requests: &'r Requests,
    rows: &[&'r Request],
) -> BTreeMap<&'r str, Vec<&'r Request>> {
    let mut found: BTreeMap<&str, Vec<&Request>> = BTreeMap::new();
    for row in rows {
        if let Some(client) = client(requests, row) {
            found.entry(client).or_default().push(row);
        }
    }
    found
}

fn port(requests: &Requests, side: Option<Sym>) -> &str {
    let side = side.map_or("", |sym| requests.symbols.get(sym));
    side.rsplit_once(':').map_or(side, |(_, port)| port)
}

/// Requests of one server, or of one log.
struct Scene<'r> {
    requests: &'r Requests,
    parts: Parts,
    objective: Option<Ns>,
    recording: &'r str,
    clock: Option<&'r WallClock>,
}

impl<'r> Scene<'r> {
    /// `sent` are requests with durations measured by the client; without them those of the server
    /// are used.
    fn observations(
        &self,
        rows: &[&'r Request],
        sent: Option<(&'r Requests, &[&'r Request])>,
    ) -> Vec<Observation> {
        let total = self.series(rows);
        let by_client = clients(self.requests, rows);
        let enough: Vec<(&str, &Vec<&Request>)> = by_client
            .iter()
            .filter(|(_, rows)| self.series(rows).is_enough())
            .map(|(client, rows)| (*client, rows))
            .collect();
        let mut bursts: Vec<(&str, Burst)> = Vec::new();
        for (client, rows) in &enough {
            let found = self.series(rows).bursts(&total, enough.len());
            bursts.extend(found.map(|burst| (*client, burst)));
        }
        bursts.index_sort_by(|(client_a, a), (client_b, b)| {
            b.excess
                .total_cmp(&a.excess)
                .then_with(|| client_a.cmp(client_b))
        });
        let all = bursts.len();
        let (requests, victims) = sent.unwrap_or((self.requests, rows));
        let mut found: Vec<(&str, Burst, Observation)> = Vec::new();
        for (name, burst) in bursts {
            // A flood of failing requests is one observation.
            let is_same = |(other, one, _): &(&str, Burst, Observation)| {
                *other == name && one.first <= burst.last && burst.first <= one.last
            };
            if found.len() >= FINDINGS_MAX || found.iter().any(is_same) {
                continue;
            }
            let meanwhile = self.meanwhile((requests, victims), name, &burst);
            let is_worth = burst.of == BurstOf::Errors
                || meanwhile.overlaps(all)
                || meanwhile.own.is_much_more(meanwhile.own_else);
            if is_worth {
                let of_client = by_client.get(name).map_or(&[][..], Vec::as_slice);
                let observation = self.observation((name, of_client), &burst, (&meanwhile, all));
                found.push((name, burst, observation));
            }
        }
        found
            .into_iter()
            .map(|(.., observation)| observation)
            .collect()
    }

    fn series(&self, rows: &[&Request]) -> Series {
        let mut series = Series::empty(self.parts.count());
        for row in rows {
            let part = self.parts.at(row.ts);
            series.requests[part] += 1;
            series.errors[part] += u64::from(row.failed);
        }
        series
    }

    /// Requests during and outside of a burst. Slow ones are beyond the usual duration of other
    /// times.
    fn meanwhile(
        &self,
        (requests, rows): (&Requests, &[&Request]),
        name: &str,
        burst: &Burst,
    ) -> Meanwhile {
        let is_inside = |row: &Request| {
            let part = self.parts.at(row.ts);
            (burst.first..=burst.last).contains(&part)
        };
        let items: Vec<Item> = rows.iter().map(|row| item(row)).collect();
        let outside = rows.iter().zip(&items).filter(|(row, _)| !is_inside(row));
        let outside: Vec<Item> = outside.map(|(_, item)| *item).collect();
        let slow = Normal::of(&items, &outside, self.objective).slow;
        let mut found = Meanwhile::default();
        let mut of_others = Series::empty(self.parts.count());
        for (row, is_slow) in rows.iter().zip(slow) {
            let Some(client) = client(requests, row) else {
                continue;
            };
            let (is_bad, is_inside) = (is_slow || row.failed, is_inside(row));
            if client == name {
                let of = if is_inside {
                    &mut found.own
                } else {
                    &mut found.own_else
                };
                of.add(is_bad);
                continue;
            }
            let part = self.parts.at(row.ts);
            of_others.requests[part] += 1;
            of_others.errors[part] += u64::from(is_bad);
            if is_inside {
                found.others.add(is_bad);
                let length = (row.dur.unwrap_or(0), row.id);
                found.longest = found.longest.filter(|one| one.0 >= length.0);
                found.longest = found.longest.or(Some(length));
            } else {
                found.others_else.add(is_bad);
            }
        }
        found.chance = chance(&of_others, (burst.first, burst.last));
        // For a client without other requests, the other clients show what is usual.
        if found.own_else.all < OTHERS_MIN {
            found.own_else = found.others_else;
        }
        found
    }

    fn observation(
        &self,
        (name, rows): (&str, &[&Request]),
        burst: &Burst,
        (meanwhile, bursts): (&Meanwhile, usize),
    ) -> Observation {
        let (begin, end) = self.parts.range((burst.first, burst.last));
        let inside = rows.iter().copied();
        let inside = inside.filter(|row| (begin..end).contains(&row.ts));
        let of_burst = |row: &&Request| burst.of == BurstOf::Requests || row.failed;
        let inside: Vec<&Request> = inside.filter(of_burst).collect();
        let endpoint = most(inside.iter().map(|row| row.key));
        let key = |key: u32| self.requests.keys.get(key as usize).cloned();
        let endpoint = endpoint.and_then(|(place, count)| Some((key(place)?, count)));
        let status = most(inside.iter().filter_map(|row| row.status));
        let mut summary = self.head(name, burst, (begin, end));
        if let Some((endpoint, count)) = &endpoint {
            summary = format!("{summary}; {count} of these {endpoint}");
        }
        if let Some((status, count)) = status {
            summary = format!("{summary}; {count} got status {status}");
        }
        let (kind, advice) = self.advice(name, burst);
        let first = inside.first().map(|row| row.id);
        let evidence = meanwhile
            .longest
            .filter(|_| meanwhile.overlaps(bursts))
            .map(|(_, id)| id);
        let id = evidence.or(first);
        Observation {
            kind: kind.into(),
            culprit: Actor {
                kind: ActorKind::Peer,
                name: name.to_owned(),
                pid: None,
                tid: None,
                host: None,
            },
            object: endpoint.map(|(name, _)| Thing {
                kind: "endpoint".into(),
                name,
            }),
            begin_ns: begin,
            end_ns: end,
            summary: format!("{summary}. {}", describe(meanwhile, bursts)),
            numbers: self.numbers(burst, (meanwhile, bursts)),
            evidence: id.map(|id| format!("request:{id}")).into_iter().collect(),
            shown_by: Some(format!("whyslow requests bursts {}", self.recording)),
            suggestions: vec![advice],
        }
    }

    /// Kind of the observation, and advice.
    fn advice(&self, name: &str, burst: &Burst) -> (&'static str, String) {
        match burst.of {
            BurstOf::Requests => (
                "request_flood",
                "set a rate limit for each client, or find out why this client sends that many requests"
                    .to_owned(),
            ),
            BurstOf::Errors => (
                "error_burst",
                format!(
                    "list the failed requests: whyslow requests log {} --client '{name}*' --errors",
                    self.recording
                ),
            ),
        }
    }

    fn numbers(
        &self,
        burst: &Burst,
        (meanwhile, bursts): (&Meanwhile, usize),
    ) -> Vec<(String, f64)> {
        let per_second = self.parts.width as f64 / 1e9;
        let usual = match burst.of {
            BurstOf::Requests => ("usual_per_second", burst.usual / per_second),
            BurstOf::Errors => ("usual_ratio", burst.usual),
        };
        let numbers = [
            ("count", burst.count as f64),
            ("among", burst.among as f64),
            usual,
            ("others_bad", meanwhile.others.bad as f64),
            ("others", meanwhile.others.all as f64),
            ("others_bad_elsewhere", meanwhile.others_else.bad as f64),
            ("others_elsewhere", meanwhile.others_else.all as f64),
            ("chance", (meanwhile.chance * bursts as f64).min(1.0)),
        ];
        let times = burst.times.map(|times| ("times_usual", times));
        let numbers = numbers.into_iter().chain(times);
        numbers
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    /// What the client did more than usual.
    fn head(&self, name: &str, burst: &Burst, (begin, end): (Ns, Ns)) -> String {
        let (count, among) = (burst.count, burst.among);
        let window = self.parts.begin;
        let start = self.clock.map_or_else(
            || format!("+{}", sentence::length(begin - window)),
            |clock| clock.show(begin, window),
        );
        let when = format!("in {} starting at {start}", sentence::length(end - begin));
        let percent = sentence::percent(count as f64 / among.max(1) as f64);
        match (burst.of, burst.times) {
            (BurstOf::Requests, Some(times)) => format!(
                "client {name} sent {count} of {among} requests ({percent}) {when}, {times:.1} times its usual rate of {:.1}/s",
                burst.usual * 1e9 / self.parts.width as f64
            ),
            (BurstOf::Requests, None) => format!(
                "client {name} sent {count} of {among} requests ({percent}) {when}, and none at other times"
            ),
            (BurstOf::Errors, _) => format!(
                "{count} of {among} requests of client {name} failed ({percent}) {when}; the usual failure rate is {}",
                sentence::percent(burst.usual)
            ),
        }
    }
}

/// The value that most of them have, and its count.
fn most<T: Ord + Copy>(values: impl Iterator<Item = T>) -> Option<(T, u64)> {
    let mut counts: BTreeMap<T, u64> = BTreeMap::new();
    let mut all: u64 = 0;
    for value in values {
        *counts.entry(value).or_default() += 1;
        all += 1;
    }
    let best = counts
        .into_iter()
        .max_by_key(|(value, count)| (*count, std::cmp::Reverse(*value)))?;
    (best.1 as f64 >= MOST * all as f64).then_some(best)
}

fn item(row: &Request) -> Item {
    Item {
        ts: row.ts,
        dur: row.dur.unwrap_or(0).max(0),
        key: row.key,
        object: UNIDENTIFIED,
        worker: UNIDENTIFIED,
        failed: row.failed || row.dur.is_none(),
        result: result_of(row),
        wait_ns_max: None,
    }
}
