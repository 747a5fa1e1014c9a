//! Pieces of lanes, for tests that build their own tables.

use whyslow_tiles::Track;

use crate::it::support::Piece;

pub(crate) fn piece(begin: u64, end: u64, value: i32, group: usize) -> Piece {
    let mut parts = [0; 4];
    parts[group] = 255;
    Piece {
        begin,
        end,
        value,
        parts,
    }
}

pub(crate) fn place(track: &Track, value: &str) -> i32 {
    let place = track.values.iter().position(|known| *known == value);
    place.expect("a value") as i32
}
