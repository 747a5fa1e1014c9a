//! Many slow calls of one kind at once: what they spend their time on that others do not.

use rustc_hash::FxHashMap;
use whyslow_model::Ns;

use crate::patterns::excess::{Spent, decompose};
use crate::report::{Actor, Excess, Part, Story};

/// Slow calls that are walked, and others of the same kind.
pub(crate) const WALKED: usize = 24;

/// Mechanism and culprit.
type Category = (String, Actor);

/// What the slow ones spend more, by mechanism and culprit; only what is at least a quarter of it with
/// some certainty.
pub(crate) fn excess(slow: &[Story], usual: &[Story]) -> Vec<Excess> {
    let mut numbers: FxHashMap<Category, u32> = FxHashMap::default();
    let mut categories: Vec<Category> = Vec::new();
    let mut number = |part: &Part| {
        // A culprit is a process here, whichever of its threads it was.
        let actor = Actor {
            tid: None,
            ..part.culprit.clone()
        };
        let category = (part.mechanism.clone(), actor);
        *numbers.entry(category).or_insert_with_key(|category| {
            categories.push(category.clone());
            categories.len() as u32 - 1
        })
    };
    let mut spent = |story: &Story| -> Spent {
        let parts = story.parts.iter();
        parts.map(|part| (number(part), part.dur_ns)).collect()
    };
    let slow: Vec<Spent> = slow.iter().map(&mut spent).collect();
    let usual: Vec<Spent> = usual.iter().map(&mut spent).collect();
    let found = decompose(&slow, &usual);
    let much = found.iter().filter(|excess| excess.is_much());
    much.map(|excess| {
        let (mechanism, culprit) = categories[excess.category as usize].clone();
        Excess {
            mechanism,
            culprit,
            delta_ns: excess.delta_ns as Ns,
            share: excess.share,
            share_low: excess.share_low,
            share_high: excess.share_high,
            dominance: excess.dominance,
        }
    })
    .collect()
}
