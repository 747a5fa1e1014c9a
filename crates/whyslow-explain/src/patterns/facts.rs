//! All figures of a judgement, before the conclusion.

use std::collections::{BTreeMap, BTreeSet};

use whyslow_analysis::outliers::Deviation;
use whyslow_analysis::statistics::adjusted;
use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use super::change::{Change, Point, changes};
use super::concurrency::{Concurrency, concurrency};
use super::constants::{Hint, Waits, hints};
use super::episodes::Episodes;
use super::fixed;
use super::keys::{Evenness, Exposed, Keys, Rates, Spared};
use super::levels::{Levels, levels, raised};
use super::modes::{Gap, gap, unrounded};
use super::normal::Normal;
use super::overlap::{Overlap, overlap};
use super::periodic::{Matching, Rhythm, matching, rhythm};
use super::ranks::{deviation, median, quantile};
use super::saturation::{Saturated, saturated};
use super::shifted::{Shifted, shifted};
use super::{Input, Item, LEVEL};

/// Minimum number of items of a key for the test of having most of the slow ones.
const KEY_ITEMS_MIN: u64 = 5;

#[derive(Debug, Clone)]
pub(super) struct Facts {
    /// By time, without early failures.
    pub(super) items: Vec<Item>,
    /// Indexes of slow items in the input.
    pub(super) slow: Vec<usize>,
    pub(super) episodes: Episodes,
    /// Rates of the kinds that can show the slowness.
    pub(super) rates: Rates,
    /// Additional time of items that are slow by their own measure only, ns.
    pub(super) lesser: Vec<f64>,
    /// Kinds with a usual duration too long for the additional time to make them slow.
    pub(super) hidden: BTreeSet<u32>,
    pub(super) shifted: Option<Shifted>,
    pub(super) concurrency: Option<Concurrency>,
    /// Share of slow items by the number in flight.
    pub(super) by_level: Option<Levels>,
    /// Concurrent requests before and now, if the load was raised.
    pub(super) raised: Option<(f64, f64)>,
    /// By resource.
    pub(super) saturated: Vec<Option<Saturated>>,
    pub(super) exposed: Vec<Exposed>,
    pub(super) evenness: [Option<Evenness>; 2],
    pub(super) spared: Vec<Spared>,
    pub(super) gap: Option<Gap>,
    /// Median and MAD of the time beyond the usual of items above the gap, ns.
    pub(super) mode: Option<(f64, f64)>,
    pub(super) hints: Vec<Hint>,
    pub(super) rhythm: Option<Rhythm>,
    /// By job.
    pub(super) jobs: Vec<Matching>,
    pub(super) deviations: Vec<Deviation>,
    pub(super) changes: Vec<Change>,
    /// By worker and by object.
    pub(super) overlaps: [Option<Overlap>; 2],
    levels: BTreeMap<Test, f64>,
    tests: usize,
}

/// A test of the family that levels are adjusted over, with its key, resource or column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Test {
    Shifted,
    Concurrency,
    Levels,
    Saturated(usize),
    Exposed(u32),
    Spared(u32),
    Gap,
    Rhythm,
    Overlap(usize),
}

/// Concurrent requests before and now, if a closed loop raised the load.
fn raised_of(input: &Input<'_>, items: &[Item]) -> Option<(f64, f64)> {
    input
        .is_closed
        .then(|| raised(input.baseline, items))
        .flatten()
}

/// How well the starts of each job match the rhythm, if there is one.
fn jobs(rhythm: Option<&Rhythm>, input: &Input<'_>, onsets: &[Ns]) -> Vec<Matching> {
    let window = input.span();
    let job = |rhythm: &Rhythm, starts: &[Ns]| matching(onsets, starts, (rhythm.period, window));
    let of_rhythm = |rhythm| input.jobs.iter().map(move |one| job(rhythm, &one.starts));
    rhythm.into_iter().flat_map(of_rhythm).collect()
}

impl Facts {
    pub(super) fn of(input: &Input<'_>) -> Self {
        let mut normal = Normal::of(input.items, input.baseline, input.objective);
        let flags = normal.slow.iter().enumerate();
        let flagged = flags.map(|(place, slow)| (input.items[place], *slow, place));
        let mut flagged: Vec<(Item, bool, usize)> = flagged.collect();
        // Early failures are neither usual nor slow.
        flagged.retain(|(item, slow, _)| *slow || !item.failed);
        flagged.index_sort_by_ints(|(item, _, place)| [item.ts, item.dur, *place as i64]);
        let items: Vec<Item> = flagged.iter().map(|(item, ..)| *item).collect();
        let ((gap, mode), lesser) = separated(&mut flagged, &items, &normal);
        normal.slow = flagged.iter().map(|(_, slow, _)| *slow).collect();
        let places = flagged
            .iter()
            .filter(|(_, slow, _)| *slow)
            .map(|(.., place)| *place);
        let mut places: Vec<usize> = places.collect();
        places.sort_unstable();
        let flagged: Vec<(Item, bool)> = flagged
            .iter()
            .map(|(item, slow, _)| (*item, *slow))
            .collect();
        let window = input.span();
        let slow_items = || {
            flagged
                .iter()
                .filter(|(_, slow)| *slow)
                .map(|(item, _)| item)
        };
        let episodes = Episodes::of(slow_items());
        let hidden = hidden(&items, &normal, gap.as_ref());
        let shown = flagged
            .iter()
            .filter(|(item, _)| !hidden.contains(&item.key));
        let rates = rates(&shown.copied().collect::<Vec<_>>(), &episodes);
        let rhythm = rhythm(&episodes.onsets, window);
        let stretches = || slow_items().map(|item| (item.ts, item.end()));
        let saturated = |one| saturated(one, stretches(), window);
        let by_worker = slow_items().map(|item| (item.ts, item.dur, item.worker));
        let by_object = slow_items().map(|item| (item.ts, item.dur, item.object));
        let mut facts = Self {
            shifted: shifted(&items, input.baseline),
            concurrency: concurrency(&items, &normal.slow, &episodes),
            by_level: levels(&items, &normal.slow, &episodes, input.is_closed),
            raised: raised_of(input, &items),
            saturated: input.resources.iter().map(saturated).collect(),
            exposed: rates.exposed(),
            evenness: [rates.evenness(Keys::All), rates.evenness(Keys::EverSlow)],
            spared: rates.spared(),
            mode,
            lesser,
            hidden,
            hints: waits(&items, &normal).map_or_else(Vec::new, |waits| hints(&waits)),
            jobs: jobs(rhythm.as_ref(), input, &episodes.onsets),
            rhythm,
            deviations: super::objects::deviating(&items, input.groups),
            changes: changes(&points(&items, &normal), window, input.marks),
            overlaps: [overlap(by_worker), overlap(by_object)],
            levels: BTreeMap::new(),
            tests: 0,
            gap,
            rates,
            episodes,
            slow: places,
            items,
        };
        facts.adjust();
        facts
    }

    /// The smallest false discovery rate at which a test is significant; 1 if it was not made.
    pub(super) fn q(&self, test: Test) -> f64 {
        self.levels.get(&test).copied().unwrap_or(1.0)
    }

    pub(super) fn is_found(&self, test: Test) -> bool {
        self.q(test) <= LEVEL
    }

    /// The level that one further test would have to reach.
    pub(super) fn level(&self) -> f64 {
        let found = self.levels.values().filter(|q| **q <= LEVEL).count();
        LEVEL * (found + 1) as f64 / self.tests.max(1) as f64
    }

    /// Adjusts all tests together, so that many keys do not lead to a chance finding (Benjamini,
    /// Hochberg). Comparisons of objects are adjusted where they are made, and changes and known
    /// constants have their own thresholds, which account for their number.
    fn adjust(&mut self) {
        let mut tests: Vec<(Test, f64)> = Vec::new();
        let mut add = |test, p: Option<f64>| tests.extend(p.map(|p| (test, p)));
        add(Test::Shifted, self.shifted.map(|one| one.p));
        add(Test::Concurrency, self.concurrency.map(|one| one.p));
        add(Test::Levels, self.by_level.as_ref().map(|one| one.p));
        for (place, one) in self.saturated.iter().enumerate() {
            add(Test::Saturated(place), one.map(|one| one.p));
        }
        for one in &self.exposed {
            let p = (one.rate.items >= KEY_ITEMS_MIN).then_some(one.p);
            add(Test::Exposed(one.rate.key), p);
        }
        // Keys with too few items to be found exempt at all do not count as tests (Tarone 1990);
        // others do, even if they turned out to have slow items.
        let share = self.rates.slow as f64 / self.rates.items.max(1) as f64;
        let least = super::keys::enough(share, self.rates.design_effect, LEVEL);
        for one in self.rates.rates.iter().filter(|rate| rate.items >= least) {
            let found = self
                .spared
                .binary_search_by_key(&one.key, |spared| spared.rate.key);
            let p = found.map_or(1.0, |place| self.spared[place].p);
            add(Test::Spared(one.key), Some(p));
        }
        add(Test::Gap, self.gap.as_ref().map(|one| one.p));
        add(Test::Rhythm, self.rhythm.map(|one| one.p));
        for (place, one) in self.overlaps.iter().enumerate() {
            add(Test::Overlap(place), one.as_ref().map(|one| one.p));
        }
        let levels: Vec<f64> = tests.iter().map(|(_, p)| *p).collect();
        self.tests = tests.len();
        let tests = tests.into_iter().map(|(test, _)| test);
        self.levels = tests.zip(adjusted(&levels)).collect();
    }
}

fn rates(flagged: &[(Item, bool)], episodes: &Episodes) -> Rates {
    let mut rates = Rates::of(flagged.iter().map(|(item, slow)| (item.key, *slow)));
    // A key with a higher rate explains by itself that slow items occur when it is used.
    let by_key: BTreeMap<u32, f64> = rates
        .rates
        .iter()
        .map(|rate| (rate.key, rate.share()))
        .collect();
    let explained = flagged
        .iter()
        .map(|(item, slow)| (item.ts, *slow, by_key[&item.key]));
    let explained: Vec<(Ns, bool, f64)> = explained.collect();
    rates.design_effect = episodes.design_effect(&explained);
    rates
}

/// Keys with a usual duration too long to show the additional time: an operation that usually takes
/// 4 s is not slow with 5 s more, and not exempt either.
fn hidden(items: &[Item], normal: &Normal, gap: Option<&Gap>) -> BTreeSet<u32> {
    let gap = gap.filter(|gap| gap.is_much());
    let of = |places: &mut dyn Iterator<Item = usize>| {
        median(places.map(|place| normal.excess(&items[place])).collect())
    };
    let slow = || (0..items.len()).filter(|place| normal.slow[*place]);
    let more = match gap {
        Some(gap) => of(&mut gap.above.iter().copied()),
        None => of(&mut slow()),
    };
    let least = gap.and_then(|gap| gap.above.last());
    let least = least.map(|place| normal.log_ratio(&items[*place]));
    let Some(more) = more else {
        return BTreeSet::new();
    };
    let is_shown = |key: u32| {
        normal.usual(key).is_some_and(|usual| {
            let with_more = usual.median + more;
            let is_above = least.is_some_and(|least| (with_more / usual.median).ln() >= least);
            with_more > usual.limit || is_above
        })
    };
    let keys: BTreeSet<u32> = items.iter().map(|item| item.key).collect();
    keys.into_iter().filter(|key| !is_shown(*key)).collect()
}

/// A gap, with median and MAD of the items above it.
type Mode = (Option<Gap>, Option<(f64, f64)>);

/// Marks the items of a separate mode as slow, and unmarks those that are slow by their own measure
/// only. Returns the additional time of the latter, ns.
fn separated(
    flagged: &mut [(Item, bool, usize)],
    items: &[Item],
    normal: &Normal,
) -> (Mode, Vec<f64>) {
    let mut mode = mode_of(items, normal, &[]);
    add_mode(flagged, normal, mode.0.as_ref());
    let lesser = lesser(flagged, normal);
    if !lesser.is_empty() {
        for place in &lesser {
            flagged[*place].1 = false;
        }
        mode = mode_of(items, normal, &lesser);
        add_mode(flagged, normal, mode.0.as_ref());
    }
    let excess = lesser.iter().map(|place| normal.excess(&items[*place]));
    (mode, excess.collect())
}

/// Marks items above a gap as slow, if they are not short.
fn add_mode(flagged: &mut [(Item, bool, usize)], normal: &Normal, gap: Option<&Gap>) {
    let gap = gap.filter(|gap| gap.is_much());
    for place in gap.iter().flat_map(|gap| &gap.above) {
        let (item, slow, _) = &mut flagged[*place];
        *slow |= normal.may_be_slow(item);
    }
}

/// Indexes of items that are slow by their own measure only.
fn lesser(flagged: &[(Item, bool, usize)], normal: &Normal) -> Vec<usize> {
    let slow = flagged.iter().enumerate().filter(|(_, (_, slow, _))| *slow);
    let slow = slow.map(|(place, (item, ..))| fixed::Slow {
        place,
        key: item.key,
        excess: normal.excess(item),
    });
    fixed::lesser(slow.collect())
}

/// The mode of the items except those at some indexes.
fn mode_of(items: &[Item], normal: &Normal, without: &[usize]) -> Mode {
    let without: BTreeSet<usize> = without.iter().copied().collect();
    let places: Vec<usize> = (0..items.len())
        .filter(|place| !without.contains(place))
        .collect();
    let times: Vec<Ns> = places.iter().map(|place| items[*place].dur).collect();
    // Divided by the usual duration, because differences between keys are not a gap.
    let usual = |at: usize| {
        normal
            .usual(items[places[at]].key)
            .map_or(1.0, |usual| usual.median)
    };
    let gap = gap(&unrounded(&times, usual)).map(|gap| Gap {
        above: gap.above.iter().map(|at| places[*at]).collect(),
        ..gap
    });
    let mode = gap.as_ref().and_then(|gap| {
        let excess = || gap.above.iter().map(|place| normal.excess(&items[*place]));
        let middle = median(excess().collect())?;
        Some((middle, deviation(excess(), middle)?))
    });
    (gap, mode)
}

fn waits(items: &[Item], normal: &Normal) -> Option<Waits> {
    let slow = || items.iter().zip(&normal.slow).filter(|(_, slow)| **slow);
    let are_known = slow().all(|(item, _)| item.wait_ns_max.is_some());
    let wait = |item: &Item| match item.wait_ns_max {
        Some(wait) if are_known => wait as f64,
        _ => normal.excess(item),
    };
    let usual = |of: fn(super::normal::Usual) -> f64| {
        let usuals = slow().filter_map(|(item, _)| normal.usual(item.key));
        median(usuals.map(of).collect())
    };
    let mut times: Vec<f64> = items.iter().map(|item| item.dur as f64).collect();
    times.sort_unstable_by(f64::total_cmp);
    let (usual, mad) = (usual(|usual| usual.median)?, usual(|usual| usual.mad)?);
    let known = |value: f64| if are_known { 0.0 } else { value };
    Some(Waits {
        waits: slow().map(|(item, _)| wait(item)).collect(),
        usual: known(usual),
        mad: known(mad),
        range: (quantile(&times, 0.5)?, quantile(&times, 1.0)?),
    })
}

fn points(items: &[Item], normal: &Normal) -> Vec<Point> {
    let one = |(item, slow): (&Item, &bool)| Point {
        ts: item.ts,
        log_ratio: normal.log_ratio(item),
        slow: *slow,
    };
    items.iter().zip(&normal.slow).map(one).collect()
}
