//! Tests the comparison on requests to a real web server, two versions of it in alternation.
//!
//! `benches/eval/diff.py` records and evaluates more of them; `fixtures/requests-in-turns` has a
//! part.

use whyslow_model::Ns;

use super::simulation::{margin, rate, runs, verdict};
use super::{Latency, Side, Verdict, compare};
use crate::statistics::Dice;

const BLOCKS: &str = include_str!("../../../../fixtures/requests-in-turns/turns.txt");
/// Unit of the durations.
const TENTH: Ns = 100_000;
/// Assumed spacing of requests and duration of a block: only the order matters.
const APART: Ns = 5_000_000;
const TURN: Ns = 10_000_000_000;

/// Blocks of one version: durations in order of start.
fn blocks(version: &str) -> Vec<Vec<Ns>> {
    let lines = BLOCKS.lines().map(|line| line.split(' '));
    lines
        .filter_map(|mut words| {
            let is_wanted = words.next() == Some(version);
            let lengths = words.skip(1).map(|word| word.parse().expect("a number"));
            is_wanted.then(|| lengths.collect())
        })
        .collect()
}

/// Blocks of one side: index, and durations.
type Turns<'t> = Vec<(usize, &'t [Ns])>;

fn side(turns: &Turns<'_>) -> Side {
    let one = |turn: usize, place: usize, length: Ns| Latency {
        ts: turn as Ns * TURN + place as Ns * APART,
        dur: Some(length * TENTH),
        failed: false,
        worker: (place % 4) as u32,
        phases: Default::default(),
    };
    let all = turns.iter().flat_map(|(turn, block)| {
        let lengths = block.iter().enumerate();
        lengths.map(move |(place, length)| one(*turn, place, *length))
    });
    Side::of(all.collect())
}

/// A random choice of `count` of `of` items, without repetition.
fn some(of: usize, count: usize, dice: &mut Dice) -> Vec<usize> {
    let mut all: Vec<usize> = (0..of).collect();
    dice.shuffle(&mut all);
    all.truncate(count);
    all
}

/// From `pairs` pairs of consecutive blocks of one version, one block for each side.
fn same<'t>(blocks: &'t [Vec<Ns>], pairs: usize, dice: &mut Dice) -> [Turns<'t>; 2] {
    let mut sides = [Vec::new(), Vec::new()];
    for pair in some(blocks.len() / 2, pairs, dice) {
        let first = dice.below(2);
        for (place, side) in sides.iter_mut().enumerate() {
            let turn = 2 * pair + usize::from(place != first);
            side.push((turn, blocks[turn].as_slice()));
        }
    }
    sides
}

#[test]
fn turns_of_one_version_are_rarely_said_to_differ() {
    let (runs, blocks) = (runs(200), blocks("a"));
    let found = rate("A/A, replayed", runs, |dice| {
        let sides = same(&blocks, blocks.len() / 2, dice);
        verdict(&side(&sides[0]), &side(&sides[1])).is_shown()
    });
    assert!(found <= 0.05, "{found}");
}

#[test]
fn the_slower_version_is_found_with_as_many_requests_as_are_said_to_be_needed() {
    let (runs, a, b) = (runs(40), blocks("a"), blocks("b"));
    let (mut needed, mut too_few) = (Vec::new(), 0);
    let found = rate("A/B, replayed", runs, |dice| {
        let look = same(&a, a.len() / 2, dice);
        let first = compare(&side(&look[0]), &side(&look[1]), None);
        let enough = first.quantiles[0].enough.expect("a number");
        needed.push(enough);
        let count = (enough as usize).div_ceil(a[0].len()).max(2);
        too_few += u32::from(count > a.len());
        let turns = some(a.len(), count, dice);
        let before = turns.iter().map(|turn| (2 * turn, a[*turn].as_slice()));
        let after = turns.iter().map(|turn| (2 * turn + 1, b[*turn].as_slice()));
        verdict(&side(&before.collect()), &side(&after.collect())) == Verdict::Worse
    });
    needed.sort_unstable();
    println!("|   needed | {needed:?}, more than there are: {too_few} |");
    assert!(found >= 0.9 - margin(0.9, runs), "{found}");
}
