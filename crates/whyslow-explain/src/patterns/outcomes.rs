//! Sentences for every test, with its numbers.

use whyslow_model::sort::IndexSort;

use super::decide::View;
use super::facts::Test;
use super::format::{list, name, p, percent, time};
use super::keys::{KEYS_MIN, SLOW_MIN, enough};
use super::levels::{Level, Levels};
use crate::patterns::periodic::EPISODES_MIN;

/// How the share of slow items grows with the number in flight.
pub(super) fn depends(levels: &Levels) -> String {
    format!(
        "depends on concurrency, the slow share is {} ({})",
        shares(levels),
        p(levels.p)
    )
}

fn shares(levels: &Levels) -> String {
    let one = |one: &Level| {
        let (from, to) = (one.from.round(), one.to.round());
        let range = if from < to {
            format!("{from} to {to}")
        } else {
            from.to_string()
        };
        let share = percent(one.share());
        format!(
            "{share} with {range} in flight ({} of {})",
            one.slow, one.items
        )
    };
    // All levels, because those in the middle show how it grows.
    levels.levels.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// A test and its result.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// T1 … T13.
    pub test: &'static str,
    /// Whether it fired at its adjusted level.
    pub fired: bool,
    /// The result with all numbers, or what the test lacks.
    pub summary: String,
    /// Name with its unit, and value.
    pub numbers: Vec<(&'static str, f64)>,
}

impl Outcome {
    fn new(test: &'static str, fired: bool, summary: String) -> Self {
        Self {
            test,
            fired,
            summary,
            numbers: Vec::new(),
        }
    }

    fn with(mut self, numbers: &[(&'static str, f64)]) -> Self {
        self.numbers.extend_from_slice(numbers);
        self
    }
}

pub(super) fn outcomes(view: &View<'_>) -> Vec<Outcome> {
    let mut all = vec![view.t1(), view.t2()];
    all.extend(view.t2_by_level());
    all.extend(view.t3());
    all.extend([
        view.t4(),
        view.t5(),
        view.t6(),
        view.t7(),
        view.t8(),
        view.t9(),
    ]);
    all.extend(view.t10_and_t11());
    all.extend([view.t12(), view.t13()]);
    all
}

impl View<'_> {
    fn t1(&self) -> Outcome {
        let Some(one) = self.facts.shifted else {
            return Outcome::new(
                "T1",
                false,
                "no baseline with at least 20 operations of one kind".into(),
            );
        };
        let [low, middle, high] = one.ratios;
        let summary = format!(
            "p10 {low:.2}, p50 {middle:.2}, p90 {high:.2} times the baseline; {} of {}s have p10 and p50 \
             of at least 1.5 times ({} kinds, {})",
            percent(one.share),
            self.what(),
            one.keys,
            p(one.p)
        );
        Outcome::new("T1", self.is_shifted(), summary).with(&[
            ("p10_ratio", low),
            ("p50_ratio", middle),
            ("p90_ratio", high),
            ("share", one.share),
            ("p", one.p),
        ])
    }

    fn t2(&self) -> Outcome {
        let Some(one) = self.facts.concurrency else {
            return Outcome::new("T2", false, "all or none slow".into());
        };
        let summary = format!(
            "{:.0} in flight when slow ones start, {:.0} otherwise: delta {:.2}, {}; {:.1} standard \
             deviations more arrivals before slow ones",
            one.slow,
            one.others,
            one.delta,
            p(one.p),
            one.arrivals
        );
        Outcome::new("T2", self.grows_with_concurrency(), summary).with(&[
            ("in_flight_slow", one.slow),
            ("in_flight_others", one.others),
            ("delta", one.delta),
            ("arrivals_z", one.arrivals),
            ("p", one.p),
        ])
    }

    fn t2_by_level(&self) -> Option<Outcome> {
        let levels = self.facts.by_level.as_ref()?;
        let is_found = self.grows_by_level().is_some();
        let summary = if is_found {
            depends(levels)
        } else {
            format!(
                "no dependence on concurrency: {} ({})",
                shares(levels),
                p(levels.p)
            )
        };
        let (first, last) = (levels.levels.first()?, levels.levels.last()?);
        let outcome = Outcome::new("T2", is_found, summary);
        Some(outcome.with(&[
            ("level_low", first.from),
            ("level_high", last.to),
            ("share_low", first.share()),
            ("share_high", last.share()),
            ("levels_z", levels.z),
            ("levels_p", levels.p),
        ]))
    }

    fn t3(&self) -> Vec<Outcome> {
        let found = self.saturated();
        let one = |(place, resource): (usize, &super::Resource)| {
            let Some(one) = self.facts.saturated[place] else {
                let summary = format!("{}: no time to compare with", resource.name);
                return Outcome::new("T3", false, summary);
            };
            let summary = format!(
                "{} saturated for {} of the time with slow {}s, {} {} ({})",
                resource.name,
                percent(one.slow),
                self.what(),
                percent(one.outside),
                if one.is_by_baseline {
                    "in the baseline"
                } else {
                    "otherwise"
                },
                p(one.p)
            );
            Outcome::new("T3", found.contains(&place), summary).with(&[
                ("share_slow", one.slow),
                ("share_outside", one.outside),
                ("p", one.p),
            ])
        };
        let resources = self.input.resources.iter().enumerate();
        let mut all: Vec<Outcome> = resources.map(one).collect();
        if all.is_empty() {
            all.push(Outcome::new("T3", false, "no resource recorded".into()));
        }
        all
    }

    fn t4(&self) -> Outcome {
        let exposed = self.facts.exposed.iter();
        let most = exposed.max_by(|a, b| a.rate.slow.cmp(&b.rate.slow).then(b.p.total_cmp(&a.p)));
        let (Some(one), Some(even)) = (most, self.facts.evenness[0]) else {
            return Outcome::new("T4", false, "fewer than two kinds, or none slow".into());
        };
        let summary = format!(
            "rates differ with {} (G {:.1}, {} degrees of freedom); {} has most: {} of {} slow, {} of all \
             slow ones, {:.1} times the rate of the others ({})",
            p(even.p),
            even.g,
            even.degrees,
            self.key(one.rate.key),
            one.rate.slow,
            one.rate.items,
            percent(one.holds),
            one.relative_risk,
            p(one.p)
        );
        Outcome::new("T4", self.slow_key().is_some(), summary).with(&[
            ("g", even.g),
            ("g_p", even.p),
            ("relative_risk", one.relative_risk),
            ("holds", one.holds),
            ("p", one.p),
        ])
    }

    fn t5(&self) -> Outcome {
        let rates = &self.facts.rates;
        let keys = rates.rates.iter().filter(|rate| rate.slow > 0).count();
        let Some(even) = self.facts.evenness[1] else {
            let summary = format!(
                "{keys} of {} kinds ever slow: too few to compare",
                rates.rates.len()
            );
            return Outcome::new("T5", false, summary);
        };
        let summary = format!(
            "{keys} of {} kinds ever slow, at one rate with {} (G {:.1}, {} degrees of freedom); {} slow \
             ones count as {:.1}, {SLOW_MIN:.0} and {KEYS_MIN} kinds needed",
            rates.rates.len(),
            p(even.p),
            even.g,
            even.degrees,
            rates.slow,
            rates.witnesses()
        );
        Outcome::new("T5", self.is_even(), summary).with(&[
            ("g", even.g),
            ("p", even.p),
            ("kinds", keys as f64),
            ("design_effect", rates.design_effect),
            ("kinds_hidden", self.facts.hidden.len() as f64),
        ])
    }

    fn t6(&self) -> Outcome {
        let exempt = self.exempt();
        let level = self.facts.level();
        let effect = self.facts.rates.design_effect;
        let slow = self.facts.rates.slow as f64;
        let one = |one: &super::keys::Spared| {
            let key = self.key(one.rate.key);
            let seen = format!("{key}: 0 of {} slow ({})", one.rate.items, p(one.p));
            if exempt.contains(&one.rate.key) {
                return format!("{seen}, exempt");
            }
            let share = slow / (self.facts.rates.items - one.rate.items).max(1) as f64;
            let enough = enough(share, effect, level);
            format!("{seen}, too few to call it exempt ({enough} needed)")
        };
        // The most significant first.
        let mut spared: Vec<_> = self.facts.spared.iter().collect();
        spared.index_sort_by(|a, b| a.p.total_cmp(&b.p));
        let kinds: Vec<String> = spared.into_iter().map(one).collect();
        let summary = match kinds.as_slice() {
            [] => "every kind was slow at least once".into(),
            _ if slow == 0.0 => "nothing is slow".into(),
            kinds => list(kinds),
        };
        let least = self
            .facts
            .spared
            .iter()
            .map(|one| one.p)
            .fold(1.0, f64::min);
        Outcome::new("T6", !exempt.is_empty(), summary)
            .with(&[("exempt", exempt.len() as f64), ("p", least)])
    }

    fn t7(&self) -> Outcome {
        let (Some(gap), Some((middle, mad))) = (&self.facts.gap, self.facts.mode) else {
            let summary = format!("fewer than 21 {}s", self.what());
            return Outcome::new("T7", false, summary);
        };
        let mut summary = format!(
            "{} at {} ± {} above the usual, {:.1} times the next lower one ({} over {} ranks)",
            gap.above.len(),
            time(middle),
            time(mad),
            gap.ratio,
            p(gap.p),
            gap.ranks
        );
        if let (false, Some(enough)) = (self.is_mode(), gap.enough())
            && enough > gap.above.len()
        {
            summary = format!("{summary}; {enough} would show a separate mode");
        }
        Outcome::new("T7", self.is_mode(), summary).with(&[
            ("above", gap.above.len() as f64),
            ("excess_ns", middle),
            ("excess_mad_ns", mad),
            ("ratio", gap.ratio),
            ("p", gap.p),
        ])
    }

    fn t8(&self) -> Outcome {
        let Some(hint) = self.facts.hints.first() else {
            return Outcome::new("T8", false, "not near a known constant".into());
        };
        let summary = format!(
            "{} of {} slow ones near {} ({}): possibly {}; to confirm, look for {}",
            hint.inside,
            hint.slow,
            time(hint.value),
            p(hint.p),
            hint.known.cause,
            hint.known.confirm
        );
        Outcome::new("T8", true, summary).with(&[
            ("inside", hint.inside as f64),
            ("value_ns", hint.value),
            ("p", hint.p),
        ])
    }

    fn t9(&self) -> Outcome {
        let episodes = self.facts.episodes.onsets.len();
        let Some(rhythm) = self.facts.rhythm else {
            let summary = format!("{episodes} episodes in too short a time to detect a period");
            return Outcome::new("T9", false, summary);
        };
        let mut summary = format!(
            "best period {}: {} episodes with a phase agreement of {:.2} ({})",
            time(rhythm.period),
            rhythm.episodes,
            rhythm.length,
            p(rhythm.p)
        );
        if rhythm.episodes < EPISODES_MIN {
            summary = format!("{summary}; at least {EPISODES_MIN} needed, about 30 for certainty");
        }
        Outcome::new("T9", self.is_periodic(), summary).with(&[
            ("period_ns", rhythm.period),
            ("phase_ns", rhythm.phase),
            ("agreement", rhythm.length),
            ("p", rhythm.p),
        ])
    }

    fn t10_and_t11(&self) -> [Outcome; 2] {
        let all = &self.facts.deviations;
        if all.is_empty() {
            let summary = "fewer than 4 objects with similar operations, or too few operations";
            return ["T10", "T11"].map(|test| Outcome::new(test, false, summary.into()));
        }
        let object = |object: u32| name(self.input.objects, object);
        let tails = all.iter().filter(|one| one.is_tail).map(|one| {
            let (over, of, risk) = (one.over, one.compared, one.relative_risk);
            format!(
                "{}: {over} of {of} beyond its peers' p99, {risk:.0} times the expected number ({})",
                object(one.object),
                p(one.tail_q)
            )
        });
        let shifts = all.iter().filter(|one| one.is_shifted).map(|one| {
            format!(
                "{}: {:.1} times its peers' median ({})",
                object(one.object),
                one.median_ratio.unwrap_or(1.0),
                p(one.shift_q.unwrap_or(1.0))
            )
        });
        let summary = |found: Vec<String>| match found.as_slice() {
            [] => format!("no outlier among {} objects", all.len()),
            found => list(found),
        };
        let (tails, shifts): (Vec<String>, Vec<String>) = (tails.collect(), shifts.collect());
        let least = |of: fn(&whyslow_analysis::outliers::Deviation) -> f64| {
            all.iter().map(of).fold(1.0, f64::min)
        };
        let clearest = all.iter().min_by(|a, b| a.tail_q.total_cmp(&b.tail_q));
        [
            Outcome::new("T10", !tails.is_empty(), summary(tails)).with(&[
                ("q", least(|one| one.tail_q)),
                ("objects", all.len() as f64),
                ("over", clearest.map_or(0.0, |one| one.over as f64)),
            ]),
            Outcome::new("T11", !shifts.is_empty(), summary(shifts))
                .with(&[("q", least(|one| one.shift_q.unwrap_or(1.0)))]),
        ]
    }

    fn t12(&self) -> Outcome {
        let changes = &self.facts.changes;
        let summary: Vec<String> = changes
            .iter()
            .map(|one| {
                let marks = one
                    .marks
                    .iter()
                    .map(|place| self.input.marks[*place].name.clone());
                let marks: Vec<String> = marks.collect();
                let then = if marks.is_empty() {
                    String::new()
                } else {
                    format!("; at that time: {}", list(&marks))
                };
                format!(
                    "since {} (± {}): {} slow instead of {}, median {:.2} times the previous one{then}",
                    self.input.moment(one.ts),
                    time(one.within as f64),
                    percent(one.rates[1]),
                    percent(one.rates[0]),
                    one.ratios[1] / one.ratios[0]
                )
            })
            .collect();
        let summary = if summary.is_empty() {
            "no change over time".into()
        } else {
            summary.join("; ")
        };
        let outcome = Outcome::new("T12", !changes.is_empty(), summary);
        match changes.first() {
            Some(first) => outcome.with(&[
                ("ts_ns", first.ts as f64),
                ("rate_before", first.rates[0]),
                ("rate_after", first.rates[1]),
            ]),
            None => outcome,
        }
    }

    fn t13(&self) -> Outcome {
        let columns = [
            ("worker", self.input.workers),
            ("object", self.input.objects),
        ];
        let found = |place: usize| {
            let one = self.facts.overlaps[place].as_ref()?;
            let fired = one.is_much() && self.facts.is_found(Test::Overlap(place));
            let (what, names) = columns[place];
            let summary = format!(
                "slow ones of one {what} overlap for {}, {} expected by chance ({}; most on {})",
                time(one.together),
                time(one.expected),
                p(one.p),
                name(names, one.group)
            );
            let outcome = Outcome::new("T13", fired, summary);
            Some(outcome.with(&[("together_ns", one.together), ("p", one.p)]))
        };
        let (by_worker, by_object) = (found(0), found(1));
        match (by_worker, by_object) {
            (Some(worker), Some(object)) if object.fired && !worker.fired => object,
            (Some(one), _) | (None, Some(one)) => one,
            (None, None) => Outcome::new(
                "T13",
                false,
                "slow ones of one worker or object never overlap".into(),
            ),
        }
    }
}
