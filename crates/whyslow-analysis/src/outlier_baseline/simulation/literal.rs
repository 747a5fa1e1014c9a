//! The tests as first designed, as a reference for the others: counts beyond the peers' 99th
//! percentile against a plain binomial distribution, and the Mann-Whitney test against all peers as
//! one.

use super::super::{LEVEL, median};
use crate::statistics::{adjusted, binomial_tail, normal_tail};

/// Devices that are found by their tails, from the times of each.
pub(super) fn tail(devices: &[Vec<f64>]) -> Vec<bool> {
    let over = |device: usize| {
        let mut peers = peers(devices, device);
        let place = peers.len() - 1 - peers.len() / 100;
        let threshold = *peers.select_nth_unstable_by(place, f64::total_cmp).1;
        let over = devices[device].iter().filter(|time| **time > threshold);
        (over.count() as u64, devices[device].len() as u64)
    };
    let over: Vec<(u64, u64)> = (0..devices.len()).map(over).collect();
    let p = over.iter().map(|(over, count)| match over {
        0 => 1.0,
        _ => binomial_tail(*over, *count, 0.01),
    });
    let q = adjusted(&p.collect::<Vec<f64>>());
    let fires = |(q, (over, count)): (&f64, &(u64, u64))| {
        *q <= LEVEL && *over >= 5 && *over as f64 >= 0.05 * *count as f64
    };
    q.iter().zip(&over).map(fires).collect()
}

/// Devices that are found slower throughout.
pub(super) fn shift(devices: &[Vec<f64>]) -> Vec<bool> {
    let figures: Vec<[f64; 3]> = (0..devices.len())
        .map(|device| {
            let mut peers = peers(devices, device);
            peers.sort_unstable_by(f64::total_cmp);
            let own = &devices[device];
            let wins = own
                .iter()
                .map(|time| peers.partition_point(|peer| peer < time) as f64);
            let wins: f64 = wins.sum();
            let (ours, theirs) = (own.len() as f64, peers.len() as f64);
            let pairs = ours * theirs;
            let deviation = (pairs * (ours + theirs + 1.0) / 12.0).sqrt();
            let ratio = median(own.iter().copied()).zip(median(peers.iter().copied()));
            [
                normal_tail((wins - pairs / 2.0) / deviation),
                2.0 * wins / pairs - 1.0,
                ratio.map_or(1.0, |(own, peers)| own / peers),
            ]
        })
        .collect();
    let q = adjusted(&figures.iter().map(|[p, ..]| *p).collect::<Vec<f64>>());
    let both = q.iter().zip(&figures);
    both.map(|(q, [_, delta, ratio])| *q <= LEVEL && (*delta > 0.33 || *ratio >= 1.5))
        .collect()
}

fn peers(devices: &[Vec<f64>], device: usize) -> Vec<f64> {
    let others = devices.iter().enumerate();
    let others = others.filter(|(other, _)| *other != device);
    others
        .flat_map(|(_, times)| times.iter().copied())
        .collect()
}
