//! The conclusion: the first class in a list for which the tests fired.

use whyslow_model::Ns;

use super::change::Change;
use super::constants::Hint;
use super::facts::{Facts, Test};
use super::format::{count, list, name, p, percent, time};
use super::keys::{KEYS_MIN, SLOW_MIN};
use super::levels::Levels;
use super::modes;
use super::outcomes::{Outcome, depends, outcomes};
use super::periodic::EPISODES_MIN;
use super::ranks::median;
use super::{Input, LEVEL};
use crate::report::Pattern;

/// A period that differs from the duration of slow items by no more than this share is caused by
/// it.
const ECHO: f64 = 0.1;

/// Patterns of slowness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// Everything is slower than before, and more so with more concurrency or while a resource is
    /// saturated.
    HeavyLoad,
    /// Everything is slower than before, without evidence of load.
    Shifted,
    /// One of several similar objects deviates.
    OneDevice,
    /// One key has most of the slow items.
    OneOperation,
    /// Episodes are periodic.
    Periodic,
    /// Occasional, independent of the operation.
    RareContention,
    /// Insufficient evidence for any of these.
    Insufficient,
}

impl Class {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Class::HeavyLoad => "heavy_load",
            Class::Shifted => "shifted",
            Class::OneDevice => "one_device",
            Class::OneOperation => "one_operation",
            Class::Periodic => "periodic",
            Class::RareContention => "rare_contention",
            Class::Insufficient => "insufficient",
        }
    }
}

/// The pattern that items show, with the evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The conclusion.
    pub class: Class,
    /// The conclusion as a sentence, with its numbers.
    pub summary: String,
    /// Results of all tests; for those that could not be made, what they lack.
    pub outcomes: Vec<Outcome>,
    /// Causes with known constants, as hints.
    pub hints: Vec<Hint>,
    /// Number of examined items.
    pub items: usize,
    /// Indexes of slow items in [`Input::items`], ascending.
    pub slow: Vec<usize>,
    /// Number of episodes that the slow items form.
    pub episodes: usize,
    /// The slow key, if there is one.
    pub keys: Vec<u32>,
    /// Objects that deviate from their peers.
    pub objects: Vec<u32>,
    /// Keys that were never slow although they had enough items.
    pub exempt: Vec<u32>,
    /// Features of all slow keys and no exempt one: indexes into [`Input::feature_names`].
    pub only_of_slow: Vec<u32>,
    /// Times at which the rate of slow items or their durations changed.
    pub changes: Vec<Change>,
    /// Time from which on everything is slower: the conclusion and the tests compare the time after
    /// it with the time before.
    pub since: Option<Ns>,
    /// Number of further items that would suffice, if it is known.
    pub more: Option<u64>,
}

/// Classifies the items. Deterministic: the same input gives the same judgement. Without a
/// baseline, the time before a change for the worse serves as one.
pub fn judge(input: &Input<'_>) -> Judgement {
    let whole = judge_against(input);
    let since = match input.baseline {
        [] => super::since::judge_since(input, &whole),
        _ => None,
    };
    since.unwrap_or(whole)
}

/// Classifies with the baseline of the input only.
pub(super) fn judge_against(input: &Input<'_>) -> Judgement {
    let facts = Facts::of(input);
    let view = View {
        facts: &facts,
        input,
    };
    let class = view.class();
    let keys: Vec<u32> = view.slow_key().into_iter().collect();
    let objects = view.objects();
    let exempt = view.exempt();
    let ever_slow = facts.rates.rates.iter().filter(|rate| rate.slow > 0);
    let ever_slow: Vec<u32> = ever_slow.map(|rate| rate.key).collect();
    let only_of_slow = super::features::only_of_slow(input.features, &ever_slow, &exempt);
    let (summary, more) = view.summary(class, &only_of_slow);
    Judgement {
        class,
        summary,
        outcomes: outcomes(&view),
        hints: facts.hints.clone(),
        items: facts.items.len(),
        slow: facts.slow.clone(),
        episodes: facts.episodes.onsets.len(),
        keys,
        objects,
        exempt,
        only_of_slow,
        changes: facts.changes.clone(),
        since: None,
        more,
    }
}

impl Judgement {
    /// The pattern for a report.
    pub fn pattern(&self) -> Pattern {
        let tests = self.outcomes.iter();
        let tests = tests.map(|one| (one.test.to_owned(), one.fired, one.summary.clone()));
        let numbers = self.outcomes.iter().flat_map(|one| {
            let names = one.numbers.iter();
            names.map(|(name, value)| (format!("{}.{name}", one.test), *value))
        });
        let counts = [
            ("items", self.items),
            ("slow", self.slow.len()),
            ("episodes", self.episodes),
        ];
        let counts = counts.map(|(name, value)| (name.to_owned(), value as f64));
        let hint = |hint: &Hint| {
            format!(
                "possibly {}: {} of {} slow ones near {} ({}); to confirm, look for {}",
                hint.known.cause,
                hint.inside,
                hint.slow,
                time(hint.value),
                p(hint.p),
                hint.known.confirm
            )
        };
        Pattern {
            class: self.class.name().into(),
            summary: self.summary.clone(),
            tests: tests.collect(),
            hints: self.hints.iter().map(hint).collect(),
            numbers: counts.into_iter().chain(numbers).collect(),
            more: self.more,
        }
    }
}

/// Figures with the names from the input.
pub(super) struct View<'v> {
    pub(super) facts: &'v Facts,
    pub(super) input: &'v Input<'v>,
}

impl View<'_> {
    pub(super) fn is_shifted(&self) -> bool {
        let much = self.facts.shifted.is_some_and(|one| one.is_much());
        much && self.facts.is_found(Test::Shifted)
    }

    pub(super) fn grows_with_concurrency(&self) -> bool {
        let much = self.facts.concurrency.is_some_and(|one| one.is_much());
        much && self.facts.is_found(Test::Concurrency)
    }

    pub(super) fn grows_by_level(&self) -> Option<&Levels> {
        let found = self.facts.by_level.as_ref();
        found.filter(|one| one.is_much() && self.facts.is_found(Test::Levels))
    }

    /// Indexes of resources that were saturated when items were slow.
    pub(super) fn saturated(&self) -> Vec<usize> {
        let all = self.facts.saturated.iter().enumerate();
        let found = all.filter(|(place, one)| {
            one.is_some_and(|one| one.is_much()) && self.facts.is_found(Test::Saturated(*place))
        });
        found.map(|(place, _)| place).collect()
    }

    pub(super) fn slow_key(&self) -> Option<u32> {
        let differ = self.facts.evenness[0].is_some_and(|one| one.p <= LEVEL);
        let found = self
            .facts
            .exposed
            .iter()
            .find(|one| one.is_much() && self.facts.is_found(Test::Exposed(one.rate.key)));
        found.filter(|_| differ).map(|one| one.rate.key)
    }

    pub(super) fn objects(&self) -> Vec<u32> {
        let found = self.facts.deviations.iter();
        let found = found.filter(|one| one.is_tail || one.is_shifted);
        found.map(|one| one.object).collect()
    }

    pub(super) fn is_even(&self) -> bool {
        let keys = self
            .facts
            .rates
            .rates
            .iter()
            .filter(|rate| rate.slow > 0)
            .count();
        let even = self.facts.evenness[1].is_some_and(|one| one.p > LEVEL);
        even && keys >= KEYS_MIN && self.facts.rates.witnesses() >= SLOW_MIN
    }

    pub(super) fn exempt(&self) -> Vec<u32> {
        let keys = self.facts.spared.iter().map(|one| one.rate.key);
        keys.filter(|key| self.facts.is_found(Test::Spared(*key)))
            .collect()
    }

    pub(super) fn is_mode(&self) -> bool {
        let much = self.facts.gap.as_ref().is_some_and(modes::Gap::is_much);
        much && self.facts.is_found(Test::Gap)
    }

    pub(super) fn is_periodic(&self) -> bool {
        let much = self.facts.rhythm.is_some_and(|one| one.is_much());
        much && self.facts.is_found(Test::Rhythm) && !self.is_echo()
    }

    /// Whether the period results from the duration of slow items: in a closed loop, a worker sends
    /// its next request when the slow reply has arrived.
    fn is_echo(&self) -> bool {
        let slow = self.facts.slow.iter();
        let slow = slow.map(|place| self.input.items[*place].dur as f64);
        let (Some(rhythm), Some(length)) = (self.facts.rhythm, median(slow.collect())) else {
            return false;
        };
        let is_near = |times: f64| (times * rhythm.period / length - 1.0).abs() < ECHO;
        self.input.is_closed && [1.0, 2.0, 3.0].into_iter().any(is_near)
    }

    pub(super) fn what(&self) -> &str {
        if self.input.what.is_empty() {
            "operation"
        } else {
            self.input.what
        }
    }

    pub(super) fn key(&self, key: u32) -> String {
        name(self.input.keys, key)
    }

    fn class(&self) -> Class {
        let is_load = self.grows_with_concurrency()
            || self.grows_by_level().is_some()
            || self.facts.raised.is_some()
            || !self.saturated().is_empty();
        if self.is_shifted() {
            return if is_load {
                Class::HeavyLoad
            } else {
                Class::Shifted
            };
        }
        if !self.objects().is_empty() {
            Class::OneDevice
        } else if self.slow_key().is_some() {
            Class::OneOperation
        } else if self.is_periodic() {
            Class::Periodic
        } else if self.is_even() && (self.is_mode() || !self.facts.hints.is_empty()) {
            Class::RareContention
        } else {
            Class::Insufficient
        }
    }

    /// The conclusion, and how many more items would lead to one.
    fn summary(&self, class: Class, only_of_slow: &[u32]) -> (String, Option<u64>) {
        let (summary, more) = self.concludes(class, only_of_slow);
        let summary = match self.grows_by_level() {
            Some(levels) => format!("{summary}; {}", depends(levels)),
            None => summary,
        };
        (format!("{summary}{}", self.lesser()), more)
    }

    /// Items that are slow by their own measure only.
    fn lesser(&self) -> String {
        let lesser = &self.facts.lesser;
        let most = lesser.iter().copied().reduce(f64::max);
        most.map_or_else(String::new, |most| {
            let verb = if lesser.len() == 1 { "is" } else { "are" };
            format!(
                "; {} more {verb} slow by their own measure only, by at most {}, and not counted",
                lesser.len(),
                time(most)
            )
        })
    }

    fn concludes(&self, class: Class, only_of_slow: &[u32]) -> (String, Option<u64>) {
        let summary = match class {
            Class::HeavyLoad => self.load(),
            Class::Shifted => format!(
                "everything is slower, {}; no evidence of load",
                self.shift()
            ),
            Class::OneDevice => self.device(),
            Class::OneOperation => self.operation(),
            Class::Periodic => self.rhythm(),
            Class::RareContention => self.contention(only_of_slow),
            Class::Insufficient => return self.lacking(),
        };
        (summary, None)
    }

    fn shift(&self) -> String {
        let ratios = self.facts.shifted.map_or([1.0; 3], |one| one.ratios);
        let [low, middle, _] = ratios;
        format!("p10 {low:.1} times, median {middle:.1} times as long as before")
    }

    fn load(&self) -> String {
        let mut reasons = Vec::new();
        for place in self.saturated() {
            if let Some(one) = self.facts.saturated[place] {
                reasons.push(format!(
                    "{} was saturated for {} of the time in which {}s were slow, {} otherwise",
                    self.input.resources[place].name,
                    percent(one.slow),
                    self.what(),
                    percent(one.outside)
                ));
            }
        }
        if let (true, Some(one)) = (self.grows_with_concurrency(), self.facts.concurrency) {
            reasons.push(format!(
                "{}s are slower with more in flight (delta {:.2})",
                self.what(),
                one.delta
            ));
        }
        if let Some((before, now)) = self.facts.raised {
            reasons.push(format!(
                "depends on concurrency, which rose from {before:.0} to {now:.0} concurrent {}s",
                self.what()
            ));
        }
        format!(
            "heavy load: everything is slower, {}; {}",
            self.shift(),
            reasons.join("; ")
        )
    }

    fn device(&self) -> String {
        let one = |one: &whyslow_analysis::outliers::Deviation| {
            let object = name(self.input.objects, one.object);
            if one.is_tail {
                format!(
                    "{object}: {} of {} beyond its peers' p99, {:.0} times the expected number",
                    one.over, one.compared, one.relative_risk
                )
            } else {
                let ratio = one.median_ratio.unwrap_or(1.0);
                format!("{object}: {ratio:.1} times its peers' median throughout")
            }
        };
        let found = self.facts.deviations.iter();
        let found: Vec<String> = found
            .filter(|one| one.is_tail || one.is_shifted)
            .map(one)
            .collect();
        format!("outlier among its peers: {}", found.join("; "))
    }

    fn operation(&self) -> String {
        let key = self.slow_key();
        let found = self
            .facts
            .exposed
            .iter()
            .find(|one| Some(one.rate.key) == key);
        let Some(one) = found else {
            return String::new();
        };
        format!(
            "one of {} kinds is slow: {} has {} of all slow {}s ({} of {}), {:.0} times the rate of the \
             others",
            self.facts.rates.rates.len(),
            self.key(one.rate.key),
            percent(one.holds),
            self.what(),
            one.rate.slow,
            one.rate.items,
            one.relative_risk
        )
    }

    fn rhythm(&self) -> String {
        let Some(rhythm) = self.facts.rhythm else {
            return String::new();
        };
        let jobs = self.facts.jobs.iter().enumerate();
        let jobs = jobs.filter(|(_, one)| one.is_much()).map(|(place, one)| {
            let job = &self.input.jobs[place].name;
            format!("{job} started with {} of {} episodes", one.near, one.onsets)
        });
        let jobs: Vec<String> = jobs.collect();
        let known = super::constants::of_period(rhythm.period);
        let reason = match (jobs.as_slice(), known) {
            ([], None) => "no known job starts at these times".to_owned(),
            ([], Some((cause, confirm))) => {
                format!("possibly {cause}; to confirm, look for {confirm}")
            }
            (jobs, _) => jobs.join("; "),
        };
        format!(
            "periodic, every {}: {} with a phase agreement of {:.2}; {reason}",
            time(rhythm.period),
            count(rhythm.episodes as u64, "episode"),
            rhythm.length
        )
    }

    fn contention(&self, only_of_slow: &[u32]) -> String {
        let rates = &self.facts.rates;
        let slow = rates.rates.iter().filter(|rate| rate.slow > 0);
        let items: u64 = slow.clone().map(|rate| rate.items).sum();
        let mut parts = vec![format!(
            "rare contention on a shared path: {} of {} kinds, slow rate {}, even across kinds ({})",
            slow.count(),
            rates.rates.len(),
            percent(rates.slow as f64 / items.max(1) as f64),
            p(self.facts.evenness[1].map_or(1.0, |one| one.p))
        )];
        let exempt: Vec<String> = self.exempt().into_iter().map(|key| self.key(key)).collect();
        if !exempt.is_empty() {
            parts.push(format!("never slow: {}", list(&exempt)));
        }
        if !self.facts.hidden.is_empty() {
            let hidden = count(self.facts.hidden.len() as u64, "kind");
            parts.push(format!(
                "not detectable for {hidden} that usually take as long"
            ));
        }
        if !only_of_slow.is_empty() {
            let names = only_of_slow
                .iter()
                .map(|place| name(self.input.feature_names, *place));
            let names: Vec<String> = names.collect();
            parts.push(format!("used only by slow kinds: {}", list(&names)));
        }
        if let (true, Some((middle, mad)), Some(gap)) =
            (self.is_mode(), self.facts.mode, &self.facts.gap)
        {
            // An objective may classify fewer items as slow than the gap does.
            let of = if gap.above.len() as u64 <= rates.slow {
                format!("{} slow ones", rates.slow)
            } else {
                items.to_string()
            };
            parts.push(format!(
                "{} of {} take {} ± {} longer",
                gap.above.len(),
                of,
                time(middle),
                time(mad)
            ));
        }
        if let Some(hint) = self.facts.hints.first() {
            parts.push(format!("possibly {}", hint.known.cause));
        }
        let is_known = self.grows_by_level().is_some();
        if let (true, Some(one)) = (self.grows_with_concurrency(), self.facts.concurrency)
            && !is_known
        {
            parts.push(format!(
                "more likely with more in flight (delta {:.2})",
                one.delta
            ));
        }
        parts.join("; ")
    }

    /// What is missing for a conclusion.
    fn lacking(&self) -> (String, Option<u64>) {
        let (rates, what) = (&self.facts.rates, self.what());
        if rates.slow == 0 {
            let seen = count(rates.items, what);
            // The rule of three: with a larger share at least one would be slow in 19 of 20 cases.
            let most = (3.0 / rates.items.max(1) as f64).min(1.0);
            let summary = format!(
                "none of {seen} is slow; a share above {} would be detected",
                percent(most)
            );
            return (summary, None);
        }
        let mut lacks = Vec::new();
        let mut more = None;
        if !self.facts.hidden.is_empty() {
            let hidden = count(self.facts.hidden.len() as u64, "kind");
            lacks.push(format!("{hidden} usually take too long to show it"));
        }
        let witnesses = rates.witnesses();
        if witnesses < SLOW_MIN {
            let wanted = rates.items as f64 * (SLOW_MIN / witnesses - 1.0);
            more = Some(wanted.ceil() as u64);
            lacks.push(format!(
                "{} count as {witnesses:.1}, {SLOW_MIN:.0} needed: about {} more",
                count(rates.slow, "slow one"),
                count(wanted.ceil() as u64, what)
            ));
        }
        let keys = rates.rates.len();
        if keys < KEYS_MIN {
            lacks.push(format!(
                "only {}, {KEYS_MIN} needed to test for even rates",
                count(keys as u64, "kind")
            ));
        } else if self.facts.evenness[1].is_some_and(|one| one.p <= LEVEL) {
            lacks.push(
                "slow rates differ between kinds, but no single kind has most of the slow ones"
                    .into(),
            );
        }
        if !self.is_mode() && self.facts.hints.is_empty() {
            lacks.push(match self.facts.gap.as_ref().and_then(modes::Gap::enough) {
                Some(enough)
                    if self
                        .facts
                        .gap
                        .as_ref()
                        .is_some_and(|gap| enough > gap.above.len()) =>
                {
                    format!("{enough} slow ones needed to show a separate mode")
                }
                _ => "slow ones are the tail of the usual durations, not a separate mode".into(),
            });
        }
        let episodes = self.facts.episodes.onsets.len();
        if episodes < EPISODES_MIN {
            lacks.push(format!(
                "{episodes} episodes, {EPISODES_MIN} needed to detect a period"
            ));
        }
        let all = percent(rates.slow as f64 / rates.items as f64);
        let summary = format!(
            "insufficient evidence for any pattern ({all} slow): {}",
            lacks.join("; ")
        );
        (summary, more)
    }
}
