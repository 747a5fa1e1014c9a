//! Load that started within the window: the time before it is the baseline.

use whyslow_model::Ns;

use super::change::Change;
use super::decide::judge_against;
use super::{Class, Input, Item, Judgement, Resource};

/// Minimum ratio of the medians after and before a change.
const RATIO_MIN: f64 = 1.5;

/// The judgement of the time after the first change for the worse, with the time before it as the
/// baseline; none without such a change, or if not everything became slower. If one object or kind
/// deviates, durations change with its share of the operations, so the time before is not a
/// baseline.
pub(super) fn judge_since(input: &Input<'_>, whole: &Judgement) -> Option<Judgement> {
    if matches!(whole.class, Class::OneDevice | Class::OneOperation) {
        return None;
    }
    let is_worse = |one: &Change| one.ratios[1] >= RATIO_MIN * one.ratios[0];
    let place = whole.changes.iter().position(is_worse)?;
    let (window, at) = (input.span(), whole.changes[place].ts);
    let before = place
        .checked_sub(1)
        .map_or(window.0, |before| whole.changes[before].ts);
    let after = whole
        .changes
        .get(place + 1)
        .map_or(window.1, |next| next.ts);
    let of = |from: Ns, to: Ns| -> Vec<usize> {
        let items = input.items.iter().enumerate();
        let inside = items.filter(|(_, item)| (from..to).contains(&item.ts));
        inside.map(|(place, _)| place).collect()
    };
    let places = of(at, after);
    let items = |places: &[usize]| -> Vec<Item> {
        places.iter().map(|place| input.items[*place]).collect()
    };
    let (items, baseline) = (items(&places), items(&of(before, at)));
    let resource = |one: &Resource| Resource {
        baseline_share: Some(share(&one.saturated, (before, at))),
        ..one.clone()
    };
    let resources: Vec<Resource> = input.resources.iter().map(resource).collect();
    let found = judge_against(&Input {
        items: &items,
        baseline: &baseline,
        window: Some((at, after)),
        resources: &resources,
        ..*input
    });
    matches!(found.class, Class::HeavyLoad | Class::Shifted).then(|| Judgement {
        summary: format!("since {}: {}", input.moment(at), found.summary),
        since: Some(at),
        slow: found.slow.iter().map(|slow| places[*slow]).collect(),
        changes: whole.changes.clone(),
        ..found
    })
}

/// Share of a time that disjoint intervals cover.
fn share(intervals: &[(Ns, Ns)], (from, to): (Ns, Ns)) -> f64 {
    let inside = intervals
        .iter()
        .map(|(begin, end)| (end.min(&to) - begin.max(&from)).max(0));
    inside.sum::<Ns>() as f64 / (to - from).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::super::{Class, Input, Item, UNIDENTIFIED, judge};
    use super::share;

    /// Requests of this many workers from `begin` on, each of which takes about `ms`.
    fn stage(workers: u32, begin: i64, ms: i64) -> Vec<Item> {
        const MS: i64 = 1_000_000;
        let all = (0..800).map(|number| (number / workers, number % workers));
        all.map(|(turn, worker)| Item {
            ts: (begin + i64::from(turn) * ms) * MS + i64::from(worker),
            dur: ms * MS - i64::from(1 + (turn + worker) % 7) * MS / 10,
            key: 0,
            object: UNIDENTIFIED,
            worker,
            failed: false,
            result: 0,
            wait_ns_max: None,
        })
        .collect()
    }

    #[test]
    fn a_load_that_was_raised_is_one_and_slower_answers_to_the_same_are_none() {
        let check = |workers: u32, is_closed: bool, class: Class, part: &str| {
            let (before, after) = (stage(8, 0, 16), stage(workers, 2_000, 185));
            let found = judge(&Input {
                items: &after,
                baseline: &before,
                what: "request",
                keys: &["GET /".to_owned()],
                is_closed,
                ..Input::default()
            });
            assert_eq!(found.class, class, "{}", found.summary);
            assert!(found.summary.contains(part), "{}", found.summary);
        };
        let raised = "depends on concurrency, which rose from 8 to 32 concurrent requests";
        check(32, true, Class::HeavyLoad, raised);
        check(8, true, Class::Shifted, "no evidence of load");
        // The workers are not known.
        check(32, false, Class::Shifted, "no evidence of load");
    }

    #[test]
    fn the_share_of_a_time_by_hand() {
        assert_eq!(share(&[(0, 10), (20, 30), (90, 200)], (5, 105)), 0.3);
        assert_eq!(share(&[], (0, 0)), 0.0);
    }
}
