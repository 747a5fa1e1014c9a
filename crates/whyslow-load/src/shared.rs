//! State that all workers of a run share: the next turn, and whether there are more.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use hyper::header::HeaderValue;
use tokio_rustls::TlsConnector;

use crate::clock::Clock;
use crate::plan::{Limits, Model, Plan, Trace};
use crate::target::Target;
use crate::worker::TRACEPARENT;
use crate::{LoadError, tls};

/// Time for the threads of a stage to start; its schedule begins then.
const HEAD_START_NS: u64 = 5_000_000;

pub(crate) struct Shared {
    pub(crate) plan: Plan,
    pub(crate) clock: Clock,
    pub(crate) connector: TlsConnector,
    /// Random number of the run, half of each of its trace ids.
    run: u64,
    targets: Vec<Arc<Target>>,
    /// Cumulative weights of the targets.
    weights: Vec<u64>,
    /// Distance between the targets of consecutive turns.
    stride: u64,
    hosts: BTreeSet<String>,
    requests: CachePadded<AtomicU64>,
    connections: AtomicU64,
    halt: AtomicU8,
    /// Redirects to hosts that are not targets of the load.
    pub(crate) unfollowed: AtomicU64,
}

/// Separates data that all threads modify from data that they only read, to avoid false sharing
/// (two cache lines of 64 bytes, because some CPUs fetch them in pairs).
#[repr(align(128))]
struct CachePadded<T>(T);

/// Whether requests may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Halt {
    No,
    /// None starts any more; those in flight are awaited.
    Slow,
    /// Those in flight are not awaited, either.
    Now,
}

/// One number of workers, with its own turns.
pub(crate) struct Stage {
    pub(crate) workers: u32,
    pub(crate) begin_ns: u64,
    /// No request starts after this time.
    end_ns: u64,
    /// Maximum number of requests of all its workers.
    limit: u64,
    each: u64,
    turns: CachePadded<AtomicU64>,
    per_second: Option<f64>,
}

/// A request for a worker to send.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    number: u64,
    pub(crate) intended_ns: Option<u64>,
}

impl Stage {
    pub(crate) fn new(plan: &Plan, workers: u32, clock: Clock) -> Self {
        let (limits, head_start_ns) = match plan.model {
            Model::Closed(limits) => (limits, 0),
            Model::Open { .. } => (Limits::default(), HEAD_START_NS),
        };
        let begin_ns = clock.now_ns() + head_start_ns;
        let length_ns = limits
            .length
            .map_or(u64::MAX, |length| length.as_nanos() as u64);
        Self {
            workers,
            begin_ns,
            end_ns: begin_ns.saturating_add(length_ns),
            limit: plan.requests(workers).unwrap_or(u64::MAX),
            each: limits.each.unwrap_or(u64::MAX),
            turns: CachePadded(AtomicU64::new(0)),
            per_second: match plan.model {
                Model::Open { per_second, .. } => Some(per_second),
                Model::Closed(_) => None,
            },
        }
    }

    /// How late the next turn is.
    pub(crate) fn behind(&self, now_ns: u64) -> Duration {
        let next = self.turns.0.load(Relaxed).min(self.limit);
        let late = self.per_second.map_or(0, |rate| {
            let due_ns = self.begin_ns + (next as f64 * 1e9 / rate) as u64;
            now_ns.saturating_sub(due_ns)
        });
        Duration::from_nanos(if next < self.limit { late } else { 0 })
    }

    /// The next turn for a worker that has had `had` turns.
    pub(crate) fn turn(&self, shared: &Shared, had: u64) -> Option<Turn> {
        let is_over = || self.end_ns < u64::MAX && shared.clock.now_ns() >= self.end_ns;
        if had >= self.each || shared.halt() != Halt::No || is_over() {
            return None;
        }
        let number = self.turns.0.fetch_add(1, Relaxed);
        if number >= self.limit {
            return None;
        }
        let offset = |per_second: f64| (number as f64 * 1e9 / per_second) as u64;
        Some(Turn {
            number,
            intended_ns: self.per_second.map(|rate| self.begin_ns + offset(rate)),
        })
    }
}

impl Shared {
    pub(crate) fn new(mut plan: Plan) -> Result<Self, LoadError> {
        plan.check()?;
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(LoadError::Random)?;
        let mut sum = 0;
        let weights = plan.targets.iter().map(|target| {
            sum += u64::from(target.weight);
            sum
        });
        let weights: Vec<u64> = weights.collect();
        if plan.trace == Trace::Sent {
            // Reserves entries for the headers that each request fills in: growing a map costs more
            // than copying it.
            for target in &mut plan.targets {
                target
                    .headers
                    .insert(TRACEPARENT, HeaderValue::from_static(""));
            }
        }
        let is_even = plan.targets.iter().all(|target| target.weight == 1);
        Ok(Self {
            stride: if is_even { 1 } else { stride(sum) },
            connector: tls::connector(&plan)?,
            hosts: plan.targets.iter().map(|t| t.host().to_owned()).collect(),
            targets: plan.targets.drain(..).map(Arc::new).collect(),
            weights,
            // A trace id of 0 is invalid.
            run: u64::from_le_bytes(random) | 1,
            clock: Clock::begin(),
            requests: CachePadded(AtomicU64::new(0)),
            connections: AtomicU64::new(0),
            halt: AtomicU8::new(Halt::No as u8),
            unfollowed: AtomicU64::new(0),
            plan,
        })
    }

    pub(crate) fn halt(&self) -> Halt {
        match self.halt.load(Relaxed) {
            0 => Halt::No,
            1 => Halt::Slow,
            _ => Halt::Now,
        }
    }

    pub(crate) fn stop(&self, halt: Halt) {
        self.halt.fetch_max(halt as u8, Relaxed);
    }

    pub(crate) fn next_request(&self) -> u64 {
        self.requests.0.fetch_add(1, Relaxed)
    }

    pub(crate) fn next_connection(&self) -> u64 {
        self.connections.fetch_add(1, Relaxed)
    }

    pub(crate) fn begun(&self) -> u64 {
        self.requests.0.load(Relaxed)
    }

    pub(crate) fn is_target(&self, host: &str) -> bool {
        self.hosts.contains(host)
    }

    /// The targets, for use by one thread.
    pub(crate) fn targets(&self) -> Vec<Arc<Target>> {
        let targets = self.targets.iter();
        targets.map(|target| Arc::new(target.apart())).collect()
    }

    /// Index of a turn's target: over as many turns as the sum of all weights, each target occurs
    /// as often as its weight.
    pub(crate) fn place(&self, turn: Turn) -> usize {
        let sum = self.weights.last().copied().unwrap_or(1).max(1);
        let walked = u128::from(turn.number) * u128::from(self.stride);
        let place = (walked % u128::from(sum)) as u64;
        let at = self.weights.partition_point(|reached| *reached <= place);
        at.min(self.targets.len() - 1)
    }

    /// Trace id and span id of a request, unique within a run.
    pub(crate) fn trace(&self, seq: u64) -> Option<(u128, u64)> {
        if self.plan.trace == Trace::Silent {
            return None;
        }
        let trace = u128::from(self.run) << 64 | u128::from(mixed(self.run ^ seq));
        Some((
            trace,
            mixed(self.run.wrapping_add(seq).rotate_left(32)).max(1),
        ))
    }
}

/// A step that visits every place of a circle and spreads visits evenly, unlike random choice: the
/// golden section of the circle, or the next number that is coprime to it.
fn stride(places: u64) -> u64 {
    let golden = (u128::from(places) * 0x9e37_79b9_7f4a_7c15) >> 64;
    let mut step = (golden as u64).max(1);
    while divisor(step, places) != 1 {
        step += 1;
    }
    step
}

fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// A pseudo-random number, distinct for each input (splitmix64).
fn mixed(mut value: u64) -> u64 {
    value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
