//! `block outliers`: the requests over a threshold, and the devices that deviate from their peers.
//!
//! Devices are judged by the time from issue to completion, because they do not control the queue
//! above. Peers are the disks of a volume if it has enough, otherwise the devices of one driver. For
//! the comparison, see [`crate::outlier_baseline`].

mod delayed;
mod evidence;
mod figures;
mod requests;
mod sweep;
mod verdict;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::sort::IndexSort;

use crate::context::Context;
use crate::outlier_baseline::{
    Compared, DEVICES_MIN, Sample, Slices, Tail, adjust, compare, driver,
};
use crate::sweep::Parts;
use crate::verbs::mounted;
use crate::volumes::Volumes;
use crate::{AnalysisError, arrange};
use figures::{Figures, Where};
use sweep::Disks;
use whyslow_model::histogram::{Histogram, bucket_bounds, bucket_of};

/// The default threshold: noticeable by a user.
const THRESHOLD: Ns = 100_000_000;
/// Requests within this multiple of the usual device time count as just before another one.
const LATELY: i64 = 4;

pub(crate) fn tables(context: &Context<'_>) -> Result<Vec<AnswerTable>, AnalysisError> {
    if !context.query.by.is_empty() {
        return Err(AnalysisError::query(
            "`block outliers` only groups by device",
            "remove --by, or use `block stats`",
        ));
    }
    let given = context.query.filter.dur_min;
    let threshold = given.unwrap_or(THRESHOLD);
    if given.is_none() {
        context.note(format!(
            "the threshold is {} (set another with --min)",
            requests::in_words(threshold)
        ));
    }
    let figures = figures::by_device(context, threshold, requests::limit(context))?;
    let requests = requests::table(context, threshold, &figures)?;
    let (measured, tests) = measure(context, &figures)?;
    let by_time = context.interval.is_some();
    let mut devices = devices(context, &figures, &measured, tests);
    mounted::add_column(context, &mut devices)?;
    let mut tables = vec![requests, devices];
    let from = slow_from(&figures, &measured, threshold);
    if !from.is_empty() && !by_time {
        tables.push(delayed::table(context, &from)?);
    }
    let evidence = [
        evidence::comparisons(&measured, tests, by_time),
        evidence::strata(&measured, by_time),
    ];
    for mut table in evidence {
        if !table.rows.is_empty() {
            sort_by_name(context, &mut table);
            tables.push(table);
        }
    }
    Ok(tables)
}

/// Threshold of slow requests on each device that has some over the threshold or deviates from its
/// peers. On a deviating device, requests beyond its peers' 99th percentile are slow, or all if it
/// is slow throughout.
fn slow_from<'f>(
    figures: &'f BTreeMap<Where, Figures>,
    measured: &BTreeMap<Where, Measured>,
    threshold: Ns,
) -> BTreeMap<&'f str, Ns> {
    let mut found = BTreeMap::new();
    for (place, figures) in figures {
        let compared = measured.get(place).map(|measured| &measured.compared);
        let comparisons = compared.into_iter().flat_map(|compared| &compared.by_op);
        let deviating = comparisons.flatten().filter(|one| verdict::is_found(one));
        let from = deviating.map(|one| {
            let beyond = one.tail.evidence.iter();
            let beyond = beyond.map(|evidence| bucket_bounds(evidence.threshold).1);
            let least = beyond.min();
            least.filter(|_| one.tail_fires()).unwrap_or(0)
        });
        let from = from.chain((figures.over > 0).then_some(threshold)).min();
        if let Some(from) = from {
            found.insert(place.1.as_str(), from.min(threshold));
        }
    }
    found
}

/// Result of the comparison of a device, and its distribution of requests in flight.
struct Measured {
    compared: Compared,
    in_flight: Histogram,
}

/// Data of a device before the comparison.
#[derive(Default)]
struct Sampled {
    sample: Sample,
    in_flight: Histogram,
}

/// Every device of the query in every interval, and the number of tests.
fn measure(
    context: &Context<'_>,
    figures: &BTreeMap<Where, Figures>,
) -> Result<(BTreeMap<Where, Measured>, usize), AnalysisError> {
    let parts = parts(context);
    let disks = disks(figures);
    let all = (0..disks.count()).collect();
    let sampled = sweep::each(
        context,
        (&disks, &all),
        FxHashMap::default,
        |sampled: &mut FxHashMap<(usize, usize), Sampled>, disk, completed| {
            let part = parts.of(completed.request.what.ts);
            let device = sampled.entry((part, disk)).or_default();
            device.sample.count_arrival(completed.preceded);
            if let Some((stratum, device_ns)) = sweep::sampled(&completed) {
                device.in_flight.add(completed.depth as i64);
                device.sample.add(stratum, device_ns, completed.share_ns);
            }
        },
    )?;
    let mut sampled: FxHashMap<(usize, usize), Sampled> = sampled.into_iter().flatten().collect();
    let volumes = Volumes::read(context.tables)?;
    let fellows = volumes.fellows();
    let mut groups: BTreeMap<(Ns, Peers<'_>), Vec<(&Where, Sampled)>> = BTreeMap::new();
    for place in figures.keys() {
        let disk = disks.place_of(&place.1);
        let found = disk.and_then(|disk| sampled.remove(&(parts.of(place.0), disk)));
        let peers = Peers::of(&place.1, &fellows);
        let group = groups.entry((place.0, peers)).or_default();
        group.push((place, found.unwrap_or_default()));
    }
    let mut measured = BTreeMap::new();
    for group in groups.into_values() {
        let (places, sampled): (Vec<&Where>, Vec<Sampled>) = group.into_iter().unzip();
        let (samples, in_flight): (Vec<Sample>, Vec<Histogram>) = sampled
            .into_iter()
            .map(|one| (one.sample, one.in_flight))
            .unzip();
        for ((place, compared), in_flight) in
            places.into_iter().zip(compare(&samples)).zip(in_flight)
        {
            measured.insert(
                place.clone(),
                Measured {
                    compared,
                    in_flight,
                },
            );
        }
    }
    let tests = adjust_all(&mut measured);
    if disperse(context, (parts, &disks), &mut measured)? {
        adjust_all(&mut measured);
    }
    Ok((measured, tests))
}

/// Devices that are compared with each other.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Peers<'n> {
    /// The disks of a volume or array, which share its load.
    OfVolume(BTreeSet<&'n str>),
    OfDriver(&'n str),
}

impl<'n> Peers<'n> {
    fn of(name: &'n str, fellows: &BTreeMap<&'n str, BTreeSet<&'n str>>) -> Self {
        let of_driver = driver(name);
        let disks = fellows.get(name).filter(|disks| {
            // With fewer there is no test.
            disks.len() >= DEVICES_MIN && disks.iter().all(|disk| driver(disk) == of_driver)
        });
        disks.map_or(Self::OfDriver(of_driver), |disks| {
            Self::OfVolume(disks.clone())
        })
    }
}

fn parts(context: &Context<'_>) -> Parts {
    let whole = context.span.length().max(1);
    Parts {
        span: context.span,
        width: context.interval.unwrap_or(whole),
    }
}

/// The devices of the query, each with a multiple of the usual device time of its driver.
fn disks(figures: &BTreeMap<Where, Figures>) -> Disks {
    let mut drivers: BTreeMap<&str, Histogram> = BTreeMap::new();
    for ((_, name), figures) in figures {
        drivers
            .entry(driver(name))
            .or_default()
            .merge(&figures.device);
    }
    let lately = |name: &str| {
        let median = drivers
            .get(driver(name))
            .and_then(|times| times.percentile(500));
        LATELY.saturating_mul(median.unwrap_or(0))
    };
    let names: BTreeSet<&str> = figures.keys().map(|(_, name)| name.as_str()).collect();
    Disks::new(
        names
            .into_iter()
            .map(|name| (name.to_owned(), lately(name))),
    )
}

fn adjust_all(measured: &mut BTreeMap<Where, Measured>) -> usize {
    let compared = measured.values_mut().map(|measured| &mut measured.compared);
    adjust(compared.flat_map(Compared::comparisons_mut))
}

/// Checks whether the slow requests of devices with many of them came in bursts. Returns whether
/// there were any such devices.
fn disperse(
    context: &Context<'_>,
    (parts, disks): (Parts, &Disks),
    measured: &mut BTreeMap<Where, Measured>,
) -> Result<bool, AnalysisError> {
    let mut looked_at: FxHashMap<(usize, usize, u8), &mut Tail> = FxHashMap::default();
    for (place, measured) in measured {
        let Some(disk) = disks.place_of(&place.1) else {
            continue;
        };
        for comparison in measured.compared.comparisons_mut() {
            if comparison.tail.fires() {
                let key = (parts.of(place.0), disk, comparison.op);
                looked_at.insert(key, &mut comparison.tail);
            }
        }
    }
    if looked_at.is_empty() {
        return Ok(false);
    }
    let wanted = looked_at.keys().map(|(_, disk, _)| *disk).collect();
    let found = sweep::each(
        context,
        (disks, &wanted),
        FxHashMap::default,
        |found: &mut FxHashMap<(usize, usize, u8), Slices>, disk, completed| {
            let Some((stratum, device_ns)) = sweep::sampled(&completed) else {
                return;
            };
            let key = (parts.of(completed.request.what.ts), disk, stratum.op);
            if let Some(tail) = looked_at.get(&key)
                && let Some(is_over) = tail.is_over(stratum, bucket_of(device_ns))
            {
                let slices = found.entry(key);
                let slices = slices.or_insert_with(|| Slices::new(parts.width));
                slices.add(completed.request.issue, is_over);
            }
        },
    )?;
    for (key, slices) in found.into_iter().flatten() {
        if let Some(tail) = looked_at.get_mut(&key) {
            tail.disperse(slices.dispersion());
        }
    }
    Ok(true)
}

fn devices(
    context: &Context<'_>,
    figures: &BTreeMap<Where, Figures>,
    measured: &BTreeMap<Where, Measured>,
    tests: usize,
) -> AnswerTable {
    let by_time = context.interval.is_some();
    let title = "devices: time from issue to completion";
    let mut table = AnswerTable::new("devices", title, columns(by_time));
    let mut ranked = Vec::new();
    let mut drivers: BTreeMap<(Ns, &str), Vec<&str>> = BTreeMap::new();
    for (place, figures) in figures {
        let Some(Measured {
            compared,
            in_flight,
        }) = measured.get(place)
        else {
            continue;
        };
        let (begin, name) = (place.0, place.1.as_str());
        let mut row = Vec::with_capacity(table.columns.len());
        if by_time {
            row.push(begin.into());
        }
        row.push(name.into());
        row.extend(figures.cells());
        let [p50, p99] = in_flight.percentiles([500, 990]);
        row.extend([p50.into(), p99.into()]);
        let (is_outlier, cells) = verdict::cells(compared, p50, tests);
        row.extend(cells);
        if is_outlier {
            drivers.entry((begin, driver(name))).or_default().push(name);
        }
        let longest = figures.device.sums().max();
        let time = if by_time { begin } else { 0 };
        ranked.push((
            (time, Reverse((is_outlier, figures.over, longest)), name),
            row,
        ));
    }
    ranked.index_sort_by_key(|(rank, _)| *rank);
    for ((_, Reverse((is_outlier, ..)), _), row) in ranked {
        if is_outlier {
            table.outliers.push(table.rows.len());
        }
        table.rows.push(row);
    }
    for names in drivers.into_values().filter(|names| names.len() > 1) {
        context.note(format!(
            "{} differ from their peers: if they are of a different type, compare them \
             separately (-d {})",
            names.join(", "),
            names.join(",")
        ));
    }
    sort_by_name(context, &mut table);
    table
}

/// Sorts by the column of the query, if the table has it.
fn sort_by_name(context: &Context<'_>, table: &mut AnswerTable) {
    if let Some(sort) = &context.query.sort {
        arrange::sort(table, sort);
    }
}

fn columns(by_time: bool) -> Vec<AnswerColumn> {
    let column = AnswerColumn::new;
    let duration = |name: &str, title: &str| column(name, title, Measure::Duration);
    let mut columns = Vec::new();
    if by_time {
        columns.push(column("ts_ns", "time", Measure::Time));
    }
    columns.extend([
        column("dev", "dev", Measure::Text),
        column("count", "count", Measure::Count).priority(1),
        column("over", "over", Measure::Count),
        column("unfinished", "unfinished", Measure::Count).priority(5),
        duration("device_min_ns", "min").priority(6),
        duration("device_p50_ns", "p50"),
        duration("device_avg_ns", "avg").priority(2),
        duration("device_p90_ns", "p90").priority(4),
        duration("device_p99_ns", "p99").priority(1),
        duration("device_max_ns", "max"),
        column("in_flight_p50", "in flight p50", Measure::Count).priority(3),
        column("in_flight_p99", "in flight p99", Measure::Count).priority(8),
    ]);
    columns.extend(verdict::columns());
    columns
}

impl Figures {
    fn cells(&self) -> [Value; 9] {
        let sums = self.device.sums();
        let [p50, p90, p99] = self.device.percentiles([500, 900, 990]);
        [
            self.count.into(),
            self.over.into(),
            self.unfinished.into(),
            sums.min().into(),
            p50.into(),
            sums.mean().into(),
            p90.into(),
            p99.into(),
            sums.max().into(),
        ]
    }
}
