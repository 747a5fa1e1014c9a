//! Truncated or changed files cause an error, or make no difference.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use whyslow_model::Window;
use whyslow_tiles::{Heat, Run, Series, Tiles, TilesError};

use crate::it::support::{Piece, built, state_parts, states};

/// Everything that can be read from tiles.
#[derive(Debug, PartialEq)]
struct All {
    tiles: Vec<Vec<Run>>,
    series: Vec<Series>,
    heat: Option<Heat>,
}

const LANES: [i32; 3] = [1, 2, 9];

fn all(folder: &Path) -> Result<All, TilesError> {
    let tiles = Tiles::open(folder)?;
    let mut shown = Vec::new();
    for level in [0, 9, 14, 20, 31] {
        for index in [0, 1] {
            shown.push(tiles.tile("states", level, index, &LANES)?);
        }
    }
    Ok(All {
        tiles: shown,
        series: tiles.series(Window::ALL, 50)?,
        heat: tiles.heat("io", Window::ALL, 50)?,
    })
}

fn pieces(lane: u64) -> Vec<Piece> {
    let lengths = (0..400u64).map(|number| (number * number * (lane + 3)) % 9973);
    let mut at = 0;
    let piece = |length: u64| {
        let begin = at;
        at += length * 2;
        let value = (length % 4) as i32;
        Piece {
            begin,
            end: begin + length,
            value,
            parts: state_parts(value),
        }
    };
    lengths.map(piece).collect()
}

/// The two files of a build, and their content.
fn whole() -> &'static (Vec<u8>, Vec<u8>, All) {
    static WHOLE: OnceLock<(Vec<u8>, Vec<u8>, All)> = OnceLock::new();
    WHOLE.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let lanes: Vec<_> = LANES.map(|lane| (lane, pieces(lane as u64))).to_vec();
        built(&states(&lanes, -7, 9_000_000), folder.path());
        let read = |name| fs::read(folder.path().join(name)).expect("just written");
        (
            read("tiles"),
            read("about.json"),
            all(folder.path()).expect("whole"),
        )
    })
}

/// Content of these files; `None` on error.
fn read(tiles: &[u8], about: &[u8]) -> Option<All> {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("tiles"), tiles).expect("a file");
    fs::write(folder.path().join("about.json"), about).expect("a file");
    match all(folder.path()) {
        Ok(all) => Some(all),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

/// `about.json` with another file size.
fn about_of(about: &[u8], before: usize, after: usize) -> Vec<u8> {
    let text = std::str::from_utf8(about).expect("JSON");
    text.replace(&before.to_string(), &after.to_string())
        .into_bytes()
}

#[test]
fn what_is_cut_short_is_an_error() {
    let (tiles, about, _) = whole();
    for length in (0..tiles.len())
        .step_by(7)
        .chain(tiles.len() - 40..tiles.len())
    {
        assert_eq!(read(&tiles[..length], about), None, "{length} bytes");
        // Even if `about.json` has the shorter size.
        let shorter = about_of(about, tiles.len(), length);
        assert_eq!(read(&tiles[..length], &shorter), None, "{length} bytes");
    }
    for length in 0..about.len() - 2 {
        assert_eq!(read(tiles, &about[..length]), None, "{length} bytes");
    }
}

#[test]
fn what_is_changed_is_an_error_or_makes_no_difference() {
    let (tiles, about, expected) = whole();
    let mut errors = 0;
    let steps = (0..tiles.len()).step_by(7);
    let count = steps.len();
    for at in steps {
        let mut changed = tiles.clone();
        changed[at] ^= 1 << (at % 8);
        let found = read(&changed, about);
        errors += usize::from(found.is_none());
        assert!(found.is_none_or(|found| found == *expected), "byte {at}");
    }
    // All bytes are read and verified, except those not needed here.
    assert!(errors * 10 > count * 9, "{errors} of {count}");
    for at in 0..about.len() {
        let mut changed = about.clone();
        changed[at] ^= 1 << (at % 8);
        let found = read(tiles, &changed);
        assert!(found.is_none_or(|found| found == *expected), "byte {at}");
    }
}

/// A wrong directory with a correct checksum was forged: the content may be anything, but reading
/// it must not panic.
#[test]
fn what_lies_is_survived() {
    let (tiles, about, _) = whole();
    let end = tiles.len() - 28;
    let word = |at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&tiles[at..at + 8]);
        u64::from_le_bytes(word) as usize
    };
    let (begin, length) = (word(end), word(end + 8) - 4);
    for at in 0..length {
        for change in [1u8, 0x80, 0xff] {
            let mut changed = tiles.clone();
            changed[begin + at] ^= change;
            let sum = crc32fast::hash(&changed[begin..begin + length]);
            changed[begin + length..begin + length + 4].copy_from_slice(&sum.to_le_bytes());
            read(&changed, about);
        }
    }
}

#[test]
fn links_and_other_things_are_no_tiles() {
    let (tiles, about, _) = whole();
    let folder = tempfile::tempdir().expect("a folder");
    let elsewhere = folder.path().join("elsewhere");
    fs::write(&elsewhere, tiles).expect("a file");
    let place = folder.path().join("place");
    fs::create_dir(&place).expect("a folder");
    fs::write(place.join("about.json"), about).expect("a file");
    std::os::unix::fs::symlink(&elsewhere, place.join("tiles")).expect("a link");
    let refused = Tiles::open(&place).unwrap_err().to_string();
    assert!(refused.ends_with("symbolic link"), "{refused}");
    fs::remove_file(place.join("tiles")).expect("it is there");
    fs::create_dir(place.join("tiles")).expect("a folder");
    let refused = Tiles::open(&place).unwrap_err().to_string();
    assert!(refused.ends_with("not a regular file"), "{refused}");
}
