//! Samples and times without any in one lane.

use whyslow_model::tables::{CallsiteRow, Collected, FrameRow, SampleGapRow, StackSampleRow};
use whyslow_model::{Sym, Symbols};
use whyslow_store::MemoryTables;
use whyslow_tiles::{LEVEL_MAX, Tiles};

use crate::it::cells::row;
use crate::it::made::{piece, times};
use crate::it::support::{check, info, tiles_of};

struct Made {
    symbols: Symbols,
    rows: Collected,
}

impl Made {
    fn new() -> Self {
        Self {
            symbols: Symbols::new(),
            rows: Collected::default(),
        }
    }

    fn words(&mut self, words: &[(&'static str, &str)]) -> Vec<(&'static str, Sym)> {
        let each = words.iter();
        each.map(|(key, word)| (*key, self.symbols.intern(word)))
            .collect()
    }

    fn sample(&mut self, (begin, end, utid): (i64, i64, i64), words: &[(&'static str, &str)]) {
        let words = self.words(words);
        let mut numbers = times(begin, end, utid).to_vec();
        numbers.push(("callsite_id", 0));
        let row = row::<StackSampleRow>(&numbers, &words);
        self.rows.stack_sample.push(row);
    }

    fn gap(&mut self, (begin, end, utid): (i64, i64, Option<i64>), class: &str) {
        let words = self.words(&[("class", class), ("function", "sendfile64")]);
        let numbers = times(begin, end, utid.unwrap_or(0));
        let numbers = if utid.is_some() {
            &numbers[..]
        } else {
            &numbers[..4]
        };
        self.rows
            .sample_gap
            .push(row::<SampleGapRow>(numbers, &words));
    }

    fn tiles(mut self) -> Tiles {
        let words = self.words(&[("kind", "managed")]);
        self.rows.frame.push(row::<FrameRow>(&[], &words));
        self.rows.callsite.push(row::<CallsiteRow>(&[], &[]));
        tiles_of(&MemoryTables::new(&self.rows, &self.symbols, info(0, 1000)))
    }
}

/// Class, kind of code, and the function's number of what is at a moment of a lane.
fn parts(tiles: &Tiles, lane: i32, at: u16) -> (&'static str, i32, i32) {
    let runs = tiles.tile("samples", 0, 0, &[lane]).expect("whole");
    let run = runs.iter().find(|run| run.x <= at && at < run.x + run.n);
    let value = run.expect("something is there").value;
    let track = tiles.tracks().iter().find(|track| track.name == "samples");
    let values = &track.expect("a track").values;
    (values[(value & 15) as usize], value >> 4 & 3, value >> 6)
}

const WALL: (&str, &str) = ("kind", "wall");

#[test]
fn gaps_lie_between_samples() {
    let mut made = Made::new();
    made.sample(
        (0, 100, 1),
        &[WALL, ("state", "running"), ("function", "f")],
    );
    made.sample(
        (100, 200, 1),
        &[WALL, ("state", "sleeping"), ("function", "g")],
    );
    made.gap((200, 700, Some(1)), "kernel_wait");
    made.sample(
        (700, 800, 1),
        &[WALL, ("state", "running"), ("function", "sendfile64")],
    );
    made.gap((800, 900, Some(1)), "cpu_starved");
    // Of all threads: no lane has it.
    made.gap((900, 950, None), "process_stopped");
    let tiles = made.tiles();
    let value = |at: u16| {
        let runs = tiles.tile("samples", 0, 0, &[1]).expect("whole");
        let run = runs.iter().find(|run| run.x <= at && at < run.x + run.n);
        run.expect("something is there").value
    };
    let expected = [
        piece(0, 100, value(50), 0),
        piece(100, 200, value(150), 1),
        piece(200, 700, value(450), 2),
        piece(700, 800, value(750), 0),
        piece(800, 900, value(850), 3),
    ];
    for level in 0..=LEVEL_MAX {
        let runs = tiles.tile("samples", level, 0, &[1]).expect("whole");
        check(&runs, 1, &expected, level, 0);
    }
    let classes: Vec<&str> = [50, 150, 450, 750, 850]
        .map(|at| parts(&tiles, 1, at).0)
        .into();
    assert_eq!(
        classes,
        [
            "running",
            "sleeping",
            "kernel_wait",
            "running",
            "cpu_starved"
        ]
    );
    // One function has one number, whether a sample or the end of a gap shows it.
    assert_eq!(parts(&tiles, 1, 450).2, parts(&tiles, 1, 750).2);
    assert_ne!(parts(&tiles, 1, 50).2, parts(&tiles, 1, 150).2);
    assert_eq!(parts(&tiles, 1, 50).1, 3);
    let left_out = tiles.tracks().iter().map(|track| track.left_out);
    assert!(left_out.into_iter().all(|left| left.without_lane == 0));
}

#[test]
fn stacks_of_who_left_the_cpu_stand_where_no_sampler_looked() {
    let mut made = Made::new();
    let offcpu = [("kind", "offcpu"), ("state", "uninterruptible")];
    made.sample((0, 500, 1), &[WALL, ("state", "sleeping")]);
    made.sample((100, 300, 1), &offcpu);
    made.sample((100, 300, 2), &offcpu);
    let tiles = made.tiles();
    assert_eq!(parts(&tiles, 1, 200).0, "sleeping");
    assert_eq!(parts(&tiles, 2, 200).0, "uninterruptible");
}
