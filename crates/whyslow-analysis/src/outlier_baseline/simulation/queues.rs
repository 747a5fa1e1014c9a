//! Devices with queues: busy ones that must not be reported as broken, and broken ones among them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use whyslow_model::Ns;

use super::super::{
    Compared, Completed, InFlight, Issued, Sample, Slices, Stratum, adjust, compare,
};
use super::dice::{Dice, Family};
use super::{assert_at_least, assert_at_most, compared, fires, rate, runs, tail_fires};
use whyslow_model::histogram::bucket_of;

const DEVICES: usize = 17;
/// Mean service time of a disk request of 8 KiB.
const SERVICE: f64 = 5e6;
const TIMES: Family = Family::LogNormal(0.5);

/// Requests of one device, (issue, end), in order of issue.
type Requests = Vec<(Ns, Ns)>;

/// The requests of a device as the view samples them.
fn sampled(requests: &Requests, mut each: impl FnMut(Stratum, Completed<()>)) {
    let mut in_flight = InFlight::new(4 * SERVICE as Ns);
    let mut each =
        |completed: Completed<()>| each(Stratum::new(0, 8192, completed.depth), completed);
    for (id, (issue, end)) in (0..).zip(requests) {
        let (issue, end) = (*issue, *end);
        let what = ();
        in_flight.add(
            issue,
            Issued {
                issue,
                id,
                end,
                what,
            },
            &mut each,
        );
    }
    in_flight.finish(&mut each);
}

fn samples(devices: &[Requests]) -> Vec<Sample> {
    let one = |requests: &Requests| {
        let mut sample = Sample::default();
        sampled(requests, |stratum, completed| {
            let Issued { issue, end, .. } = completed.request;
            sample.add(stratum, end - issue, completed.share_ns);
            sample.count_arrival(completed.preceded);
        });
        sample
    };
    devices.iter().map(one).collect()
}

/// Independent arrivals at this rate.
fn arrivals(per_second: f64, seconds: f64, dice: &mut Dice) -> Vec<f64> {
    let mut at = 0.0;
    let next = || {
        at += dice.exponential() / per_second;
        (at < seconds).then_some(at * 1e9)
    };
    std::iter::from_fn(next).collect()
}

/// How a device serves several requests.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Server {
    /// One after the other.
    InTurn,
    /// All concurrently, each slower the more were in flight at its issue.
    SlowerWhenFull,
    /// All concurrently, sharing the device's speed equally.
    Sharing,
}

/// `bad`: this share of requests needs twenty times the time.
fn served(server: Server, arrivals: &[f64], bad: f64, dice: &mut Dice) -> Requests {
    let mut service = || {
        let times = if dice.happens(bad) { 20.0 } else { 1.0 };
        SERVICE * TIMES.draw(dice) * times
    };
    match server {
        Server::InTurn => {
            let mut free = 0.0;
            let one = |at: &f64| {
                free = f64::max(free, *at) + service();
                (*at as Ns, free as Ns)
            };
            arrivals.iter().map(one).collect()
        }
        Server::SlowerWhenFull => {
            let mut ends: BinaryHeap<Reverse<Ns>> = BinaryHeap::new();
            let one = |at: &f64| {
                while ends.peek().is_some_and(|end| (end.0 as f64) <= *at) {
                    ends.pop();
                }
                let crowd = 1.0 + 0.5 * ends.len() as f64;
                let end = (at + service() * crowd) as Ns;
                ends.push(Reverse(end));
                (*at as Ns, end)
            };
            arrivals.iter().map(one).collect()
        }
        Server::Sharing => sharing(arrivals, service),
    }
}

fn sharing(arrivals: &[f64], mut service: impl FnMut() -> f64) -> Requests {
    let mut ends = vec![0.0; arrivals.len()];
    // Remaining work of each request in flight.
    let mut there: Vec<(usize, f64)> = Vec::new();
    let mut now = 0.0;
    let mut next = 0;
    while next < arrivals.len() || !there.is_empty() {
        let least = there
            .iter()
            .map(|(_, left)| *left)
            .fold(f64::INFINITY, f64::min);
        let done = now + least * there.len().max(1) as f64;
        let arrival = arrivals.get(next).copied().unwrap_or(f64::INFINITY);
        if arrival < done {
            let share = (arrival - now) / there.len().max(1) as f64;
            for (_, left) in &mut there {
                *left -= share;
            }
            there.push((next, service()));
            next += 1;
            now = arrival;
            continue;
        }
        now = done;
        there.retain_mut(|(request, left)| {
            *left -= least;
            if *left <= 0.0 {
                ends[*request] = now;
            }
            *left > 0.0
        });
    }
    let both = arrivals.iter().zip(ends);
    both.map(|(at, end)| (*at as Ns, end as Ns)).collect()
}

/// Threads that each send a request to one of the disks, wait for it and send the next; the first
/// disk takes twenty times as long for one request in five.
fn closed_loop(threads: usize, requests: usize, crowded: bool, dice: &mut Dice) -> Vec<Requests> {
    let mut devices = vec![Requests::new(); DEVICES];
    let mut ready: BinaryHeap<Reverse<Ns>> = (0..threads).map(|at| Reverse(at as Ns)).collect();
    for _ in 0..requests {
        let Some(Reverse(now)) = ready.pop() else {
            break;
        };
        let device = dice.below(DEVICES);
        let there = devices[device].iter().rev().take(threads);
        let there = there.filter(|(_, end)| *end > now).count();
        let mut time = SERVICE * TIMES.draw(dice);
        if crowded {
            time *= 1.0 + 0.5 * there as f64;
        }
        if device == 0 && dice.happens(0.2) {
            time *= 20.0;
        }
        let end = now + time as Ns;
        devices[device].push((now, end));
        ready.push(Reverse(end + 1));
    }
    devices
}

/// The load of the first device.
#[derive(Debug, Clone, Copy)]
enum Busy {
    /// This share of its time, this multiple of the others' load.
    Always(f64, f64),
    /// As many requests as the others, this many at once.
    InBursts(usize),
}

fn busy(server: Server, busy: Busy, slow: bool, run: u64) -> Vec<Sample> {
    let dice = &mut Dice::new(run);
    let device = |device: usize| {
        let arrivals = match busy {
            Busy::Always(load, times) => {
                let load = if device == 0 { load } else { load / times };
                arrivals(load * 1e9 / SERVICE, 20.0, dice)
            }
            Busy::InBursts(size) if device == 0 => {
                let bursts = arrivals(20.0 / size as f64, 20.0, dice);
                let each = |at: f64| (0..size).map(move |place| at + 1e4 * place as f64);
                bursts.into_iter().flat_map(each).collect()
            }
            Busy::InBursts(_) => arrivals(20.0, 20.0, dice),
        };
        let service = if slow && device == 0 { 0.2 } else { 0.0 };
        served(server, &arrivals, service, dice)
    };
    samples(&(0..DEVICES).map(device).collect::<Vec<_>>())
}

#[test]
fn a_busy_device_is_not_called_broken() {
    for server in [Server::InTurn, Server::SlowerWhenFull, Server::Sharing] {
        for load in [
            Busy::Always(0.15, 3.0),
            Busy::Always(0.4, 8.0),
            Busy::Always(0.7, 8.0),
            Busy::InBursts(4),
            Busy::InBursts(40),
        ] {
            let runs = runs(20);
            let what = format!("busy | {server:?} | {load:?}");
            let found = rate(&what, runs, |run| {
                compared(&busy(server, load, false, run)).iter().any(fires)
            });
            assert_at_most(found, 0.01, runs, &what);
            let what = format!("busy and bad | {server:?} | {load:?}");
            let found = rate(&what, runs, |run| {
                fires(&compared(&busy(server, load, true, run))[0])
            });
            if matches!(load, Busy::Always(_, 3.0) | Busy::InBursts(4)) {
                assert_at_least(found, 0.99, runs, &what);
            }
        }
    }
}

#[test]
fn a_bad_device_is_found_by_those_of_its_requests_that_have_peers() {
    for crowded in [false, true] {
        for threads in [2, 8, 32] {
            let runs = runs(20);
            let what = format!("closed loop | {threads} threads | crowded {crowded}");
            let found = rate(&what, runs, |run| {
                let devices = closed_loop(threads, 17 * 200, crowded, &mut Dice::new(run));
                fires(&compared(&samples(&devices))[0])
            });
            // With more threads than devices, all wait for the bad one, which is then not
            // comparable with the others.
            let wanted = if threads > DEVICES { 0.2 } else { 0.99 };
            assert_at_least(found, wanted, runs, &what);
        }
    }
}

/// For 1.5 s now and then, each request to a device takes twenty times as long.
fn with_phases(run: u64) -> Vec<Requests> {
    const SECONDS: f64 = 25.0;
    let dice = &mut Dice::new(run);
    let one = |_| {
        let phases = arrivals(0.003, SECONDS, dice);
        let arrivals = arrivals(40.0, SECONDS, dice);
        let one = |at: &f64| {
            let is_slow = phases
                .iter()
                .any(|begin| (*begin..begin + 1.5e9).contains(at));
            let times = if is_slow { 20.0 } else { 1.0 };
            (
                *at as Ns,
                (at + 0.1 * SERVICE * TIMES.draw(dice) * times) as Ns,
            )
        };
        arrivals.iter().map(one).collect()
    };
    (0..DEVICES).map(one).collect()
}

/// As in the view: requests in bursts count for less.
fn judged_by_bursts(devices: &[Requests]) -> Vec<Compared> {
    let mut compared = compare(&samples(devices));
    for (compared, requests) in compared.iter_mut().zip(devices) {
        for comparison in compared.comparisons_mut() {
            let mut slices = Slices::new(25_000_000_000);
            sampled(requests, |stratum, Completed { request, .. }| {
                let bucket = bucket_of(request.end - request.issue);
                let is_over = comparison.tail.is_over(stratum, bucket);
                if let Some(is_over) = is_over {
                    slices.add(request.issue, is_over);
                }
            });
            comparison.tail.disperse(slices.dispersion());
        }
    }
    adjust(compared.iter_mut().flat_map(Compared::comparisons_mut));
    compared
}

#[test]
fn a_phase_that_any_device_may_have_is_no_fault_of_the_one_that_had_it() {
    let runs = runs(40);
    let by_request = rate("slow phases | counted by request", runs, |run| {
        compared(&samples(&with_phases(run))).iter().any(tail_fires)
    });
    let by_burst = rate("slow phases | counted by burst", runs, |run| {
        judged_by_bursts(&with_phases(run)).iter().any(tail_fires)
    });
    assert!(by_request > 0.5, "the phases are to be seen: {by_request}");
    assert_at_most(by_burst, 0.01, runs, "slow phases");
}
