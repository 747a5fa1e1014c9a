//! Finds devices that deviate from their peers, without mean and standard deviation: a single
//! request of 20 s among a hundred thousand would decide.
//!
//! There are two tests: [`Tail`] finds a device with some requests that are far slower than those
//! of its peers, [`Shift`] one that is slower throughout. To avoid reporting a busy device as
//! broken,
//!
//! - each request is only compared with requests of peers of the same operation, of similar size,
//!   and issued with a similar number in flight ([`Stratum`]): the number at issue cannot be
//!   influenced by the request itself. A device that always has more in flight than all others
//!   cannot be compared, and that is reported;
//! - a device with more demand than its peers, measured by the requests that arrive shortly before
//!   each, must also be slower by the time that each request would have needed alone: later
//!   requests slow it down, too, and are unknown at issue.
//!
//! The number in flight is a consequence of slowness, so it does not prove that a device is busy;
//! demand does.
//!
//! Limits: several bad devices hide each other, because each is a peer of the others; a bad device
//! that always has more in flight than its peers is not compared; sequential and random requests
//! are not distinguished. `docs/outliers.md` has the detection and false positive rates of the
//! tests.

mod dispersion;
mod driver;
mod in_flight;
mod objects;
mod shift;
#[cfg(test)]
mod simulation;
mod strata;
mod tail;

pub(crate) use dispersion::Slices;
pub use driver::driver;
pub(crate) use in_flight::{Completed, InFlight, Issued};
pub use objects::{Deviation, Operation, deviations};
pub(crate) use shift::{REQUESTS_MIN as SHIFT_REQUESTS_MIN, Shift};
pub(crate) use strata::{Sample, Stratum};
pub(crate) use tail::{Evidence, Tail};

use std::collections::BTreeMap;
use std::sync::OnceLock;

use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};

use strata::Counts;

use crate::statistics::adjusted;

/// False discovery rate over all tests of an answer.
pub(crate) const LEVEL: f64 = 0.01;
/// With fewer devices, it is impossible to decide which one deviates.
pub(crate) const DEVICES_MIN: usize = 4;
/// A request needs comparable ones at this many peers …
pub(crate) const PEERS_MIN: usize = DEVICES_MIN - 1;
/// … and this many of them: fewer have no 99th percentile.
pub(crate) const PEER_REQUESTS_MIN: u64 = 100;
/// Peers with fewer comparable requests have no statistics of their own.
const REQUESTS_OF_A_PEER_MIN: u64 = 30;
/// Fewer requests are not conclusive.
pub(crate) const REQUESTS_MIN: u64 = 20;

/// A device is busy if its demand exceeds this multiple of the median peer's.
const DEMAND_MAX: f64 = 1.5;
/// Average requests just before each; a smaller number counts as this.
const DEMAND_LEAST: f64 = 0.1;

/// One operation of one device, compared with its peers.
#[derive(Debug, Clone)]
pub(crate) struct Comparison {
    pub(crate) op: u8,
    pub(crate) tail: Tail,
    /// `None` with too few requests for it.
    pub(crate) shift: Option<Shift>,
    /// Devices with enough comparable requests for statistics of their own.
    pub(crate) peers: usize,
    /// For a busy device, the same with the times that requests would have needed alone.
    alone: Option<(Tail, Option<Shift>)>,
}

impl Comparison {
    pub(crate) fn tail_fires(&self) -> bool {
        let alone = self.alone.as_ref();
        self.tail.fires() && alone.is_none_or(|(tail, _)| tail.agrees())
    }

    pub(crate) fn shift_fires(&self) -> bool {
        let agrees = |(_, shift): &(Tail, Option<Shift>)| {
            let shift = shift.as_ref();
            shift.is_some_and(Shift::agrees)
        };
        self.shift.as_ref().is_some_and(Shift::fires) && self.alone.as_ref().is_none_or(agrees)
    }

    /// Whether a test would have fired if the device were not busy.
    pub(crate) fn is_excused(&self) -> bool {
        let found = self.tail.fires() || self.shift.as_ref().is_some_and(Shift::fires);
        found && !self.tail_fires() && !self.shift_fires()
    }
}

/// Why a device could not be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lacking {
    /// It has only this many requests with a known duration.
    Requests(u64),
    /// Only this many devices have requests.
    Devices(usize),
    /// Peers have too few requests of its operations and sizes.
    LikeRequests(Like),
    /// Peers have enough of them, but not with as many in flight.
    LikeDepth,
}

/// Requests of peers that are comparable with the commonest requests of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Like {
    pub(crate) requests: u64,
    pub(crate) devices: usize,
}

/// A device and its peers.
#[derive(Debug, Clone)]
pub(crate) struct Compared {
    /// Requests with a known duration, and those of them that peers have comparable ones of.
    pub(crate) requests: u64,
    pub(crate) matched: u64,
    /// Demand as a multiple of the median peer's.
    pub(crate) demand: f64,
    /// By operation, or the reason why there is none.
    pub(crate) by_op: Result<Vec<Comparison>, Lacking>,
}

impl Compared {
    pub(crate) fn comparisons_mut(&mut self) -> impl Iterator<Item = &mut Comparison> {
        self.by_op.iter_mut().flatten()
    }
}

/// Adjusts the p values of an answer for the number of tests, both kinds together; returns that
/// number.
pub(crate) fn adjust<'c>(comparisons: impl Iterator<Item = &'c mut Comparison>) -> usize {
    let mut levels = Vec::new();
    for comparison in comparisons {
        levels.push((comparison.tail.p, &mut comparison.tail.q));
        let shift = comparison.shift.as_mut();
        levels.extend(shift.map(|shift| (shift.p, &mut shift.q)));
    }
    let p: Vec<f64> = levels.iter().map(|(p, _)| *p).collect();
    for ((_, q), adjusted) in levels.into_iter().zip(adjusted(&p)) {
        *q = adjusted;
    }
    p.len()
}

/// Compares each device with the others; the p values are not yet [`adjust`]ed.
pub(crate) fn compare(samples: &[Sample]) -> Vec<Compared> {
    let of = |counts: fn(&Sample) -> BTreeMap<Stratum, Counts>| -> Vec<_> {
        samples.par_iter().map(counts).collect()
    };
    let times = of(Sample::times);
    let demands: Vec<f64> = (0..samples.len())
        .map(|device| demand(samples, device))
        .collect();
    let is_busy = |demand: f64| demand > DEMAND_MAX;
    let alone = if demands.iter().any(|demand| is_busy(*demand)) {
        of(Sample::times_alone)
    } else {
        Vec::new()
    };
    let group = Group {
        members: Members::of(&times),
        anyhow: OnceLock::new(),
        alone: Members::of(&alone),
        devices: times.iter().filter(|strata| !strata.is_empty()).count(),
        times,
    };
    let one = |(device, demand): (usize, &f64)| {
        let requests = group.times[device].values();
        let requests = requests.map(|counts| counts.total).sum();
        let by_op = group.compare(device, requests, is_busy(*demand));
        let matched = by_op.iter().flatten().map(|one| one.tail.compared).sum();
        Compared {
            requests,
            matched,
            demand: *demand,
            by_op,
        }
    };
    demands.par_iter().enumerate().map(one).collect()
}

/// Demand of a device as a multiple of the median peer's.
fn demand(samples: &[Sample], device: usize) -> f64 {
    let peers = samples.iter().enumerate();
    let peers = peers.filter(|(peer, sample)| *peer != device && sample.has_arrivals());
    let peer = median(peers.map(|(_, sample)| sample.demand())).unwrap_or(0.0);
    (samples[device].demand() + DEMAND_LEAST) / (peer + DEMAND_LEAST)
}

/// Devices to be compared.
struct Group {
    /// By device.
    times: Vec<BTreeMap<Stratum, Counts>>,
    members: Members,
    /// With any number in flight: only for devices that cannot be compared otherwise.
    anyhow: OnceLock<Members>,
    /// By the time that requests would have needed alone: empty if no device is busy.
    alone: Members,
    devices: usize,
}

impl Group {
    fn compare(
        &self,
        device: usize,
        requests: u64,
        is_busy: bool,
    ) -> Result<Vec<Comparison>, Lacking> {
        if requests < REQUESTS_MIN {
            return Err(Lacking::Requests(requests));
        }
        if self.devices < DEVICES_MIN {
            return Err(Lacking::Devices(self.devices));
        }
        let matched = self.members.matched(device);
        if matched.is_empty() {
            let anyhow = self.anyhow.get_or_init(|| {
                let at_any_depth: Vec<_> = self.times.iter().map(at_any_depth).collect();
                Members::of(&at_any_depth)
            });
            if !anyhow.matched(device).is_empty() {
                return Err(Lacking::LikeDepth);
            }
            return Err(Lacking::LikeRequests(anyhow.like(device)));
        }
        let tests = |matched: &Matched<'_>| (Tail::of(matched), Shift::of(matched));
        let mut alone = BTreeMap::new();
        if is_busy {
            alone = self.alone.matched(device);
        }
        let comparison = |(op, matched): (&u8, &Matched<'_>)| {
            let (tail, shift) = tests(matched);
            Comparison {
                op: *op,
                tail,
                shift,
                peers: matched.peers.len(),
                alone: alone.get(op).map(tests),
            }
        };
        Ok(matched.iter().map(comparison).collect())
    }
}

fn at_any_depth(strata: &BTreeMap<Stratum, Counts>) -> BTreeMap<Stratum, Counts> {
    let mut merged: BTreeMap<Stratum, Vec<&Counts>> = BTreeMap::new();
    for (stratum, counts) in strata {
        merged
            .entry(stratum.at_any_depth())
            .or_default()
            .push(counts);
    }
    let merged = merged.into_iter();
    merged
        .map(|(stratum, counts)| (stratum, Counts::merged(counts)))
        .collect()
}

/// Devices with requests of each stratum, ascending, and the sum of these requests.
struct Members(BTreeMap<Stratum, (Vec<(usize, Counts)>, Counts)>);

/// A stratum from the point of view of one device.
struct Pair<'m> {
    stratum: Stratum,
    own: &'m Counts,
    /// Requests of all others.
    peers: Counts,
    members: &'m [(usize, Counts)],
}

/// The strata of one operation in which a device can be compared.
struct Matched<'m> {
    pairs: Vec<Pair<'m>>,
    /// Devices with enough requests in them for statistics of their own.
    peers: Vec<usize>,
}

impl Members {
    fn of(counts: &[BTreeMap<Stratum, Counts>]) -> Self {
        let mut members: BTreeMap<Stratum, Vec<(usize, Counts)>> = BTreeMap::new();
        for (device, strata) in counts.iter().enumerate() {
            for (stratum, counts) in strata {
                let members = members.entry(*stratum).or_default();
                members.push((device, counts.clone()));
            }
        }
        let with_sum = |(stratum, members): (Stratum, Vec<(usize, Counts)>)| {
            let sum = Counts::merged(members.iter().map(|(_, counts)| counts));
            (stratum, (members, sum))
        };
        Self(members.into_iter().map(with_sum).collect())
    }

    /// Requests of others in the stratum in which the device has most.
    fn like(&self, device: usize) -> Like {
        let own = |(members, sum): &(Vec<(usize, Counts)>, Counts)| {
            let own = find(members, device)?.total;
            let devices = members.len() - 1;
            let requests = sum.total - own;
            Some((own, Like { requests, devices }))
        };
        let most = self.0.values().filter_map(own).max_by_key(|(own, _)| *own);
        let none = Like {
            requests: 0,
            devices: 0,
        };
        most.map_or(none, |(_, like)| like)
    }

    /// By operation, where there is enough to compare.
    fn matched(&self, device: usize) -> BTreeMap<u8, Matched<'_>> {
        let mut pairs: BTreeMap<u8, Vec<Pair<'_>>> = BTreeMap::new();
        for (stratum, (members, sum)) in &self.0 {
            let Some(own) = find(members, device) else {
                continue;
            };
            if members.len() <= PEERS_MIN || sum.total - own.total < PEER_REQUESTS_MIN {
                continue;
            }
            pairs.entry(stratum.op).or_default().push(Pair {
                stratum: *stratum,
                own,
                peers: sum.without(own),
                members,
            });
        }
        let matched = pairs.into_iter();
        matched
            .filter_map(|(op, pairs)| Some((op, Matched::of(pairs, device)?)))
            .collect()
    }
}

fn peers_of(pairs: &[Pair<'_>], device: usize) -> Vec<usize> {
    let mut requests: BTreeMap<usize, u64> = BTreeMap::new();
    for (peer, counts) in pairs.iter().flat_map(|pair| pair.members) {
        *requests.entry(*peer).or_default() += counts.total;
    }
    requests.remove(&device);
    let enough = requests
        .into_iter()
        .filter(|(_, requests)| *requests >= REQUESTS_OF_A_PEER_MIN);
    enough.map(|(peer, _)| peer).collect()
}

fn find(members: &[(usize, Counts)], device: usize) -> Option<&Counts> {
    let found = members.binary_search_by_key(&device, |(member, _)| *member);
    found.ok().map(|place| &members[place].1)
}

impl Pair<'_> {
    /// Requests of a peer.
    fn of(&self, peer: usize) -> Option<&Counts> {
        find(self.members, peer)
    }
}

impl<'m> Matched<'m> {
    /// `None` if that is not enough.
    fn of(pairs: Vec<Pair<'m>>, device: usize) -> Option<Self> {
        let matched = Self {
            peers: peers_of(&pairs, device),
            pairs,
        };
        let is_enough = matched.peers.len() >= PEERS_MIN && matched.compared() >= REQUESTS_MIN;
        is_enough.then_some(matched)
    }

    fn compared(&self) -> u64 {
        self.pairs.iter().map(|pair| pair.own.total).sum()
    }
}

/// The mean of the two middle values for an even number; `None` if empty.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let upper = values.get(values.len() / 2)?;
    let lower = values.get((values.len() - 1) / 2)?;
    Some(f64::midpoint(*lower, *upper))
}
