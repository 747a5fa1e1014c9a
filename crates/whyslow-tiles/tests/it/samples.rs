//! Samples and sampling gaps in one lane.

use whyslow_model::Symbols;
use whyslow_model::tables::{CallsiteRow, Collected, FrameRow, SampleGapRow, StackSampleRow};
use whyslow_store::MemoryTables;
use whyslow_tiles::{LEVEL_MAX, Tiles};

use crate::it::made::piece;
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

    fn sample(
        &mut self,
        (begin, end, utid): (i64, i64, i32),
        (kind, state): (&str, &str),
        function: Option<&str>,
    ) {
        self.rows.stack_sample.push(StackSampleRow {
            id: begin,
            ts: begin,
            dur: Some(end - begin),
            ts_end: Some(end),
            kind: self.symbols.intern(kind),
            state: Some(self.symbols.intern(state)),
            utid: Some(utid),
            function: function.map(|function| self.symbols.intern(function)),
            callsite_id: Some(0),
            ..StackSampleRow::default()
        });
    }

    fn gap(&mut self, (begin, end, utid): (i64, i64, Option<i32>), class: &str) {
        self.rows.sample_gap.push(SampleGapRow {
            id: begin,
            ts: begin,
            dur: Some(end - begin),
            ts_end: Some(end),
            class: self.symbols.intern(class),
            utid,
            function: Some(self.symbols.intern("sendfile64")),
            ..SampleGapRow::default()
        });
    }

    fn tiles(mut self) -> Tiles {
        self.rows.frame.push(FrameRow {
            kind: self.symbols.intern("managed"),
            ..FrameRow::default()
        });
        self.rows.callsite.push(CallsiteRow::default());
        tiles_of(&MemoryTables::new(&self.rows, &self.symbols, info(0, 1000)))
    }
}

/// Class, kind of code and function number of a lane at time `at`.
fn parts(tiles: &Tiles, lane: i32, at: u16) -> (&'static str, i32, i32) {
    let runs = tiles.tile("samples", 0, 0, &[lane]).expect("whole");
    let run = runs.iter().find(|run| run.x <= at && at < run.x + run.n);
    let value = run.expect("a run").value;
    let track = tiles.tracks().iter().find(|track| track.name == "samples");
    let values = &track.expect("a track").values;
    (values[(value & 15) as usize], value >> 4 & 3, value >> 6)
}

#[test]
fn gaps_lie_between_samples() {
    let mut made = Made::new();
    made.sample((0, 100, 1), ("wall", "running"), Some("f"));
    made.sample((100, 200, 1), ("wall", "sleeping"), Some("g"));
    made.gap((200, 700, Some(1)), "kernel_wait");
    made.sample((700, 800, 1), ("wall", "running"), Some("sendfile64"));
    made.gap((800, 900, Some(1)), "cpu_starved");
    // Of the whole process: in no lane.
    made.gap((900, 950, None), "process_stopped");
    let tiles = made.tiles();
    let value = |at: u16| {
        let runs = tiles.tile("samples", 0, 0, &[1]).expect("whole");
        let run = runs.iter().find(|run| run.x <= at && at < run.x + run.n);
        run.expect("a run").value
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
    // The same function has the same number in samples and in gaps.
    assert_eq!(parts(&tiles, 1, 450).2, parts(&tiles, 1, 750).2);
    assert_ne!(parts(&tiles, 1, 50).2, parts(&tiles, 1, 150).2);
    assert_eq!(parts(&tiles, 1, 50).1, 3);
    let left_out = tiles.tracks().iter().map(|track| track.left_out);
    assert!(left_out.into_iter().all(|left| left.without_lane == 0));
}

#[test]
fn stacks_of_who_left_the_cpu_stand_where_no_sampler_looked() {
    let mut made = Made::new();
    let offcpu = ("offcpu", "uninterruptible");
    made.sample((0, 500, 1), ("wall", "sleeping"), None);
    made.sample((100, 300, 1), offcpu, None);
    made.sample((100, 300, 2), offcpu, None);
    let tiles = made.tiles();
    assert_eq!(parts(&tiles, 1, 200).0, "sleeping");
    assert_eq!(parts(&tiles, 2, 200).0, "uninterruptible");
}
