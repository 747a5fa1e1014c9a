//! What many slow calls of one kind spend time on that the other calls do not.

use rustc_hash::FxHashMap;
use whyslow_model::Ns;

use crate::patterns::excess::{Spent, decompose};
use crate::report::{Actor, Excess, Finding, Part};

/// Maximum number of slow calls that are walked, and of others of the same kind.
pub(crate) const WALKED: usize = 24;

/// Mechanism and culprit.
type Category = (String, Actor);

/// The additional time of slow calls by mechanism and culprit; only entries that make up at least a
/// quarter of it with 97.5 % confidence.
pub(crate) fn excess(slow: &[Finding], usual: &[Finding]) -> Vec<Excess> {
    let mut numbers: FxHashMap<Category, u32> = FxHashMap::default();
    let mut categories: Vec<Category> = Vec::new();
    let mut number = |part: &Part| {
        // The culprit here is the process, whichever of its threads it was.
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
    let mut spent = |finding: &Finding| -> Spent {
        let parts = finding.parts.iter();
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
