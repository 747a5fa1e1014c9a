//! Findings from the reports of other tools: busy devices with slow requests, and slow DNS lookups.
//!
//! A counter of a whole device shows that it was slow, but not which processes used it or waited
//! for it, so these observations only overlap with what was slow (grade C). A device that is always
//! busy is not necessarily saturated: devices that serve many requests at once have spare capacity
//! where iostat shows 100 %. So utilisation counts only together with the latency of requests.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use whyslow_analysis::AnalysisError;
use whyslow_analysis::read::{Projection, in_order};
use whyslow_model::row::Row;
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::{CounterRow, DnsLookupRow};
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use super::{actor, seconds};
use crate::report::{Actor, ActorKind, Observation, Thing};
use crate::sentence::length;

/// Percent, in hundredths.
const BUSY_MIN: i64 = 9_000;
/// A lower mean latency is usual for a healthy hard disk.
const AWAIT_MIN: Ns = 20_000_000;
const LOOKUP_MIN: Ns = 1_000_000_000;
/// Default timeout after which resolvers retry.
const RESOLVER_TIMEOUT: Ns = 5_000_000_000;
const RESOLVER_SLACK: Ns = 300_000_000;
const DEVICES_MAX: usize = 4096;

pub(super) fn find(
    tables: &dyn Tables,
    window: Option<Window>,
    recording: &str,
) -> Result<Vec<Observation>, AnalysisError> {
    let mut found = devices(tables, window, recording)?;
    found.extend(lookups(tables, window, recording)?);
    Ok(found)
}

pub(crate) fn has(tables: &dyn Tables, name: &str) -> bool {
    let table = tables.info().tables.get(name);
    table.is_some_and(|table| table.rows > 0)
}

/// One sample of a device's counters.
#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    interval: Ns,
    util: i64,
    await_ns: Ns,
}

type Samples = BTreeMap<(String, String), BTreeMap<Ns, Sample>>;

fn devices(
    tables: &dyn Tables,
    window: Option<Window>,
    recording: &str,
) -> Result<Vec<Observation>, AnalysisError> {
    // Recorded requests show more than counters.
    if !has(tables, "counter") || has(tables, "block_io") {
        return Ok(Vec::new());
    }
    let mut samples = Samples::new();
    let mut projection = Projection::new(CounterRow::TABLE);
    let [ts, value, interval] = ["ts", "value", "interval_ns"].map(|name| projection.need(name));
    let [name, subject, reported_by] =
        ["name", "subject", "reported_by"].map(|name| projection.need(name));
    in_order(tables, &projection.scan(window), |batch| {
        let (ts, value, interval) = (ts.ints(batch)?, value.ints(batch)?, interval.ints(batch)?);
        let (name, subject) = (name.texts(batch)?, subject.texts(batch)?);
        let reported_by = reported_by.texts(batch)?;
        for row in 0..batch.num_rows() as u32 {
            let (Some(subject), Some(tool), Some(name)) =
                (subject.get(row), reported_by.get(row), name.get(row))
            else {
                continue;
            };
            if !matches!(name, "%util" | "await" | "r_await" | "w_await" | "f_await") {
                continue;
            }
            let key = (subject.to_owned(), tool.to_owned());
            if samples.len() >= DEVICES_MAX && !samples.contains_key(&key) {
                continue;
            }
            let of_device = samples.entry(key).or_default();
            let sample = of_device.entry(ts.at(row)).or_default();
            sample.interval = interval.get(row).unwrap_or(0);
            if name == "%util" {
                sample.util = value.at(row);
            } else {
                sample.await_ns = sample.await_ns.max(value.at(row));
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let mut found: Vec<Observation> = samples
        .iter()
        .filter_map(|(key, samples)| busy(key, samples, recording))
        .collect();
    let longest =
        |observation: &Observation| observation.numbers.first().map_or(0.0, |(_, value)| *value);
    found.index_sort_by(|one, other| longest(other).total_cmp(&longest(one)));
    Ok(found)
}

fn busy(
    (device, tool): &(String, String),
    samples: &BTreeMap<Ns, Sample>,
    recording: &str,
) -> Option<Observation> {
    let is_busy = |sample: &Sample| sample.util >= BUSY_MIN && sample.await_ns >= AWAIT_MIN;
    let busy: Vec<(Ns, Sample)> = samples
        .iter()
        .filter(|(_, sample)| is_busy(sample))
        .map(|(ts, sample)| (*ts, *sample))
        .collect();
    let (first, last) = (busy.first()?, busy.last()?);
    let time = |samples: &mut dyn Iterator<Item = Sample>| -> Ns {
        samples.fold(0, |sum, sample| sum.saturating_add(sample.interval))
    };
    let of_busy = time(&mut busy.iter().map(|(_, sample)| *sample));
    let of_all = time(&mut samples.values().copied());
    let worst = busy.iter().map(|(_, sample)| sample.await_ns).max()?;
    let most = busy.iter().map(|(_, sample)| sample.util).max()?;
    let summary = format!(
        "device {device} was at {2:.0} % utilisation or more for {0} of {1} (maximum {3:.1} %), with a mean request latency of up to {4} per interval; slow operations at that time overlapped with it, causality not established",
        length(of_busy),
        length(of_all),
        BUSY_MIN as f64 / 100.0,
        most as f64 / 100.0,
        length(worst),
    );
    Some(Observation {
        kind: "device_busy".into(),
        culprit: Actor {
            kind: ActorKind::Device,
            name: device.clone(),
            pid: None,
            tid: None,
            host: None,
        },
        object: Some(Thing {
            kind: "device".into(),
            name: device.clone(),
        }),
        begin_ns: first.0.saturating_sub(first.1.interval),
        end_ns: last.0,
        summary,
        numbers: vec![
            ("busy_seconds".into(), seconds(of_busy)),
            ("seconds".into(), seconds(of_all)),
            ("await_ns_max".into(), worst as f64),
            ("util_percent_max".into(), most as f64 / 100.0),
        ],
        evidence: vec![format!(
            "grade C: the counters of {tool} are per device, not per process"
        )],
        shown_by: Some(format!(
            "whyslow counters {recording} --name %util,await,r_await,w_await,aqu-sz"
        )),
        suggestions: vec![
            "record the processes that use it and wait for it: whyslow record".into(),
        ],
    })
}

/// Lookups of one program.
#[derive(Debug, Default)]
struct Lookups {
    pids: BTreeSet<i32>,
    count: u64,
    time: Ns,
    first: Ns,
    last: Ns,
    longest: (Ns, String),
    /// Lookups that took a multiple of the resolver's timeout.
    timeouts: u64,
}

impl Lookups {
    /// None if several processes have the name.
    fn pid(&self) -> Option<i32> {
        let only = self.pids.first().filter(|_| self.pids.len() == 1);
        only.copied()
    }
}

fn lookups(
    tables: &dyn Tables,
    window: Option<Window>,
    recording: &str,
) -> Result<Vec<Observation>, AnalysisError> {
    // If calls or thread states were recorded, there are findings of the lookups.
    if !has(tables, "dns_lookup") || has(tables, "syscall") || has(tables, "thread_state") {
        return Ok(Vec::new());
    }
    let mut programs: BTreeMap<String, Lookups> = BTreeMap::new();
    let mut projection = Projection::new(DnsLookupRow::TABLE);
    let [ts, dur, pid] = ["ts", "dur", "pid"].map(|name| projection.need(name));
    let [host, comm] = ["host", "comm"].map(|name| projection.need(name));
    in_order(tables, &projection.scan(window), |batch| {
        let (ts, dur, pid) = (ts.ints(batch)?, dur.ints(batch)?, pid.ints(batch)?);
        let (host, comm) = (host.texts(batch)?, comm.texts(batch)?);
        for row in 0..batch.num_rows() as u32 {
            let Some(dur) = dur.get(row).filter(|dur| *dur >= LOOKUP_MIN) else {
                continue;
            };
            let begin = ts.at(row);
            let program = comm
                .get(row)
                .unwrap_or("an unidentified process")
                .to_owned();
            let of = programs.entry(program).or_default();
            if of.count == 0 {
                of.first = begin;
            }
            of.pids
                .extend(pid.get(row).and_then(|pid| i32::try_from(pid).ok()));
            of.count += 1;
            of.time = of.time.saturating_add(dur);
            of.last = of.last.max(begin.saturating_add(dur));
            let beyond = dur.rem_euclid(RESOLVER_TIMEOUT);
            of.timeouts += u64::from(dur >= RESOLVER_TIMEOUT && beyond <= RESOLVER_SLACK);
            if dur > of.longest.0 {
                of.longest = (dur, host.get(row).unwrap_or("an unknown name").to_owned());
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let mut found: Vec<(Ns, Observation)> = programs
        .into_iter()
        .map(|(program, lookups)| (lookups.time, slow(&program, &lookups, recording)))
        .collect();
    found.index_sort_by_key(|(time, _)| std::cmp::Reverse(*time));
    Ok(found
        .into_iter()
        .map(|(_, observation)| observation)
        .collect())
}

fn slow(program: &str, lookups: &Lookups, recording: &str) -> Observation {
    let (longest, host) = &lookups.longest;
    let hint = if lookups.timeouts > 0 {
        format!(
            "; {} of them took a multiple of 5 s, the default retry interval of resolvers, which suggests timeouts",
            lookups.timeouts
        )
    } else {
        String::new()
    };
    let processes = match lookups.pids.len() {
        0 | 1 => String::new(),
        many => format!(" ({many} processes)"),
    };
    let summary = format!(
        "{program}{processes} waited {} in {} DNS lookups of at least 1 s, the longest {} for `{host}`{hint}",
        length(lookups.time),
        lookups.count,
        length(*longest),
    );
    Observation {
        kind: "slow_lookup".into(),
        culprit: actor(program, lookups.pid(), None),
        object: Some(Thing {
            kind: "host".into(),
            name: host.clone(),
        }),
        begin_ns: lookups.first,
        end_ns: lookups.last,
        summary,
        numbers: vec![
            ("lookups".into(), lookups.count as f64),
            ("seconds".into(), seconds(lookups.time)),
            ("longest_ns".into(), *longest as f64),
            ("timeouts".into(), lookups.timeouts as f64),
        ],
        evidence: vec![
            "grade C: the wait is measured; without packets, its cause and the name server are unknown".into(),
        ],
        shown_by: Some(format!("whyslow dns log {recording}")),
        suggestions: vec![
            "also record packets: sudo whyslow record --what +net".into(),
        ],
    }
}
