//! Random intervals at all levels, compared with a naive computation.

use proptest::prelude::*;

use crate::it::support::{Piece, check, slices, state_parts, states, tiles_of};

/// Numbers with uniformly distributed magnitude.
fn magnitude(bits: u32) -> impl Strategy<Value = u64> {
    (0..=bits, any::<u64>()).prop_map(|(bits, number)| {
        let mask = 1u64.checked_shl(bits).map_or(u64::MAX, |bit| bit - 1);
        number & mask
    })
}

/// Consecutive intervals of a lane.
fn lane(parts: fn(i32, u64) -> [u64; 4]) -> impl Strategy<Value = Vec<Piece>> {
    // Some repeat with about the same size, so that they get summed.
    let one = (
        magnitude(34),
        magnitude(34),
        0..10i32,
        any::<u64>(),
        1..40usize,
    );
    proptest::collection::vec(one, 0..25).prop_map(move |drawn| {
        let mut at = 0;
        let mut pieces = Vec::new();
        for (gap, length, value, salt, times) in drawn {
            for time in 0..times as u64 {
                let gap = if time == 0 { gap } else { gap % (length + 1) };
                let begin = at + gap;
                let end = begin + length / (1 + (salt >> (time % 60)) % 3);
                pieces.push(Piece {
                    begin,
                    end,
                    value,
                    parts: parts(value, salt),
                });
                at = end;
            }
        }
        pieces
    })
}

fn of_state(value: i32, _: u64) -> [u64; 4] {
    state_parts(value)
}

fn of_slice(_: i32, salt: u64) -> [u64; 4] {
    let system = salt % 256;
    let interrupts = (salt >> 8) % (256 - system);
    [255 - system - interrupts, system, interrupts, 0]
}

/// Indices of tiles around the intervals, and of one anywhere.
fn indexes(lanes: &[(i32, Vec<Piece>)], level: u8, pick: u64) -> Vec<u64> {
    let all: Vec<&Piece> = lanes.iter().flat_map(|(_, pieces)| pieces).collect();
    let tile = |at: u64| (at >> level) / whyslow_tiles::CELLS;
    let mut indexes = vec![0, pick];
    if let Some(piece) = all.get(pick as usize % all.len().max(1)) {
        indexes.extend([tile(piece.begin), tile(piece.end), tile(piece.end) + 1]);
    }
    indexes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tiles_of_states_are_what_the_rows_say(
        drawn in proptest::collection::vec(lane(of_state), 1..4),
        levels in proptest::collection::vec(0u8..=50, 8),
        pick: u64,
    ) {
        let lanes: Vec<_> = (-1..).zip(drawn).map(|(lane, pieces)| (lane * 1000, pieces)).collect();
        let end = lanes.iter().filter_map(|(_, pieces)| Some(pieces.last()?.end)).max();
        let begin = 1_700_000_000_000_000_000;
        let tiles = tiles_of(&states(&lanes, begin, begin + end.unwrap_or(0) as i64));
        let ids: Vec<i32> = lanes.iter().rev().map(|(id, _)| *id).collect();
        for level in levels {
            for index in indexes(&lanes, level, pick) {
                let runs = tiles.tile("states", level, index, &ids).expect("not damaged");
                for (lane, pieces) in &lanes {
                    check(&runs, *lane, pieces, level, index);
                }
            }
        }
        for (lane, pieces) in &lanes {
            let found = tiles.tracks()[0].lanes.iter().find(|found| found.id == *lane);
            prop_assert_eq!(found.map_or(0, |found| found.intervals), pieces.len() as u64);
        }
    }

    #[test]
    fn tiles_of_slices_are_what_the_rows_say(
        pieces in lane(of_slice),
        levels in proptest::collection::vec(0u8..=50, 8),
        pick: u64,
    ) {
        // Parts are stored in units of 1/255: only multiples of 255 ns are exact.
        let mut scaled: Vec<Piece> = pieces
            .iter()
            .map(|piece| Piece { begin: piece.begin * 255, end: piece.end * 255, ..*piece })
            .collect();
        for piece in scaled.iter_mut().filter(|piece| piece.begin == piece.end) {
            piece.parts = [255, 0, 0, 0];
        }
        let lanes = vec![(3, scaled)];
        let end = lanes[0].1.last().map_or(0, |piece| piece.end);
        let tiles = tiles_of(&slices(&lanes, end as i64));
        for level in levels {
            for index in indexes(&lanes, level, pick) {
                let runs = tiles.tile("cpus", level, index, &[3]).expect("not damaged");
                check(&runs, 3, &lanes[0].1, level, index);
            }
        }
    }
}
