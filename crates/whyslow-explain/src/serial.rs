//! How a device serves requests: one at a time, or many at once.

use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::sort::{IndexSort, float_key};

use crate::window_slice::{Request, TextId, WindowSlice};

/// Minimum number of requests for a decision.
const REQUESTS_MIN: usize = 10;
/// Maximum number of requests that are examined.
const REQUESTS_MAX: usize = 20_000;
/// Minimum rank correlation of the work ahead at issue and the time in the device.
const CORRELATION_MIN: f64 = 0.5;
/// Maximum median deviation from the latency that the intervals between completions predict.
const OFF_MAX: f64 = 0.3;
/// Number of requests without others in flight that make a baseline.
pub(crate) const ALONE_MIN: usize = 20;

/// Whether the latency of the device's requests is the sum of their own service time and that of
/// the requests ahead of them.
pub(crate) fn is_serial(slice: &WindowSlice, dev: i64) -> bool {
    let mut requests: Vec<&Request> = of_device(slice, dev);
    if requests.len() < REQUESTS_MIN {
        // No evidence against the simpler model, and the own time is the same in both.
        return true;
    }
    requests.index_sort_by_ints(|request| [request.issue.unwrap_or(i64::MIN), request.id, 0]);
    let issued: Vec<Ns> = requests
        .iter()
        .filter_map(|request| request.issue)
        .collect();
    let mut order: Vec<&Request> = requests.clone();
    order.index_sort_by_ints(|request| [request.end, request.id, 0]);
    let ends: Vec<Ns> = order.iter().map(|request| request.end).collect();
    let ended = |before: usize, at: Ns| ends.partition_point(|end| *end <= at).min(before);
    if (0..issued.len()).all(|before| ended(before, issued[before]) == before) {
        return true;
    }
    let usual = slots(&order);
    let own = |request: &&Request| usual[&class(request)];
    // Requests issued before and not yet completed are ahead.
    let (begun, done) = (sums(requests.iter().map(own)), sums(order.iter().map(own)));
    let predicted: Vec<f64> = issued
        .iter()
        .enumerate()
        .map(|(place, at)| (begun[place + 1] - done[ended(place, *at)]).max(0.0))
        .collect();
    let latency: Vec<f64> = requests
        .iter()
        .zip(&issued)
        .map(|(request, issue)| (request.end - issue) as f64)
        .collect();
    let seen = latency.iter().zip(&predicted);
    let off = median(
        seen.map(|(seen, predicted)| (seen - predicted).abs() / seen.max(1.0))
            .collect(),
    );
    spearman(&predicted, &latency) > CORRELATION_MIN && off < OFF_MAX
}

/// Median service time by class, for a device with a single slot: it is idle, or works on the
/// request that completes next.
fn slots(order: &[&Request]) -> FxHashMap<(TextId, u32), f64> {
    let mut slots: FxHashMap<(TextId, u32), Vec<f64>> = FxHashMap::default();
    let mut before = Ns::MIN;
    for request in order {
        let issue = request.issue.unwrap_or(request.begin);
        let slot = (request.end - issue.max(before)) as f64;
        slots.entry(class(request)).or_default().push(slot);
        before = request.end;
    }
    let usual = slots.into_iter();
    usual.map(|(class, slots)| (class, median(slots))).collect()
}

/// Prefix sums, starting with 0.
fn sums(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sums = vec![0.0];
    for value in values {
        sums.push(sums[sums.len() - 1] + value);
    }
    sums
}

fn of_device(slice: &WindowSlice, dev: i64) -> Vec<&Request> {
    let all = slice.done_after(dev, Ns::MIN);
    all.filter(|request| request.issue.is_some() && !request.is_open)
        .take(REQUESTS_MAX)
        .collect()
}

/// Requests of like size, by powers of two.
pub(crate) fn size_class(request: &Request) -> u32 {
    request.bytes.max(1).ilog2()
}

/// Requests that take about the same time.
fn class(request: &Request) -> (TextId, u32) {
    (request.op, size_class(request))
}

/// Number of similar requests on the device, up to the size of a baseline.
pub(crate) fn like(slice: &WindowSlice, request: &Request) -> usize {
    let all = slice.done_after(request.dev, Ns::MIN);
    let like = all.filter(|other| class(other) == class(request) && !other.is_open);
    like.take(ALONE_MIN).count()
}

/// Service time of such a request without others in flight: the 20th percentile of those that had
/// the device to themselves, or the 5th of all if there are too few.
pub(crate) fn alone(slice: &WindowSlice, request: &Request) -> Ns {
    let like = |other: &&Request| class(other) == class(request);
    let all = of_device(slice, request.dev);
    let mut ends: Vec<Ns> = all.iter().map(|other| other.end).collect();
    ends.sort_unstable();
    let mut begins: Vec<Ns> = all.iter().filter_map(|other| other.issue).collect();
    begins.sort_unstable();
    let in_flight = |at: Ns| {
        let begun = begins.partition_point(|begin| *begin <= at);
        begun.saturating_sub(ends.partition_point(|end| *end <= at))
    };
    let latency = |other: &&Request| Some(other.end - other.issue?);
    let like: Vec<&Request> = all.iter().filter(|other| like(other)).copied().collect();
    let mut single: Vec<Ns> = like
        .iter()
        .filter(|other| other.issue.is_some_and(|issue| in_flight(issue) <= 1))
        .filter_map(latency)
        .collect();
    single.sort_unstable();
    if single.len() >= ALONE_MIN {
        return single[single.len() / 5];
    }
    let mut every: Vec<Ns> = like.iter().filter_map(latency).collect();
    every.sort_unstable();
    every.get(every.len() / 20).copied().unwrap_or(0)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Ranks; equal values share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.index_sort_by_ints(|at| [float_key(values[*at]), 0, 0]);
    let mut ranks = vec![0.0; values.len()];
    let mut begin = 0;
    for group in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let rank = begin as f64 + (group.len() as f64 - 1.0) / 2.0;
        for place in group {
            ranks[*place] = rank;
        }
        begin += group.len();
    }
    ranks
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Rank correlation, −1 to 1; 0 where one side does not vary.
fn spearman(a: &[f64], b: &[f64]) -> f64 {
    let (a, b) = (ranks(a), ranks(b));
    let (mean_a, mean_b) = (mean(&a), mean(&b));
    let both: f64 = a
        .iter()
        .zip(&b)
        .map(|(a, b)| (a - mean_a) * (b - mean_b))
        .sum();
    let spread =
        |values: &[f64], mean: f64| -> f64 { values.iter().map(|v| (v - mean) * (v - mean)).sum() };
    let product = spread(&a, mean_a) * spread(&b, mean_b);
    if product > 0.0 {
        both / product.sqrt()
    } else {
        0.0
    }
}
