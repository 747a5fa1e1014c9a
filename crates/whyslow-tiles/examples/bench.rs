//! Cost of tiles: `bench RECORDING.wsl FOLDER` builds them in FOLDER and reads tiles of 40 lanes at
//! every level. Prints JSON lines.

#![allow(clippy::print_stdout, reason = "prints its results")]

use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use whyslow_model::Window;
use whyslow_store::Recording;
use whyslow_tiles::{CELLS, LEVEL_MAX, Tiles, Track, build};

type AnyError = Box<dyn std::error::Error>;

const LANES: usize = 40;
/// Tiles read per level, spread over the recording.
const TILES: u64 = 9;

fn main() -> Result<(), AnyError> {
    let mut arguments = std::env::args_os().skip(1);
    let mut next = || arguments.next().ok_or("usage: bench RECORDING.wsl FOLDER");
    let (recording, folder) = (next()?, next()?);
    let folder = Path::new(&folder);
    if !folder.join("about.json").exists() {
        std::fs::create_dir_all(folder)?;
        let recording = Recording::open(Path::new(&recording))?;
        let begin = Instant::now();
        let most = Cell::new(0);
        let last_check = Cell::new(begin);
        let progress = |_| {
            if last_check.get().elapsed().as_millis() > 20 {
                last_check.set(Instant::now());
                most.set(most.get().max(private_kib()));
            }
        };
        build(&recording, folder, &progress, &AtomicBool::new(false))?;
        println!(
            "{{\"build_s\":{:.2},\"private_mib\":{}}}",
            begin.elapsed().as_secs_f64(),
            most.get() / 1024
        );
    }
    let before = private_kib();
    let begin = Instant::now();
    let tiles = Tiles::open(folder)?;
    let opened = begin.elapsed().as_secs_f64() * 1e3;
    let bytes = std::fs::metadata(folder.join("tiles"))?.len();
    let intervals: u64 = (tiles.tracks().iter().flat_map(|track| &track.lanes))
        .map(|lane| lane.intervals)
        .sum();
    println!(
        "{{\"open_ms\":{opened:.2},\"open_kib\":{},\"bytes\":{bytes},\"intervals\":{intervals},\"bytes_each\":{:.2}}}",
        private_kib().saturating_sub(before),
        bytes as f64 / intervals.max(1) as f64
    );
    for track in tiles.tracks() {
        let (level, worst, runs, median) = worst(&tiles, track)?;
        let lanes = track.lanes.len();
        let of_track: u64 = track.lanes.iter().map(|lane| lane.intervals).sum();
        println!(
            "{{\"track\":\"{}\",\"lanes\":{lanes},\"intervals\":{of_track},\"worst_ms\":{worst:.2},\"at_level\":{level},\"runs\":{runs},\"median_ms\":{median:.2},\"left_out\":\"{:?}\"}}",
            track.name, track.left_out
        );
    }
    charts(&tiles)
}

/// Level, ms and runs of the slowest tile of the busiest lanes, and the median ms of all tiles.
fn worst(tiles: &Tiles, track: &Track) -> Result<(u8, f64, usize, f64), AnyError> {
    let mut lanes: Vec<_> = track.lanes.iter().collect();
    lanes.sort_by_key(|lane| std::cmp::Reverse(lane.intervals));
    let lanes: Vec<i32> = lanes.iter().take(LANES).map(|lane| lane.id).collect();
    let length = tiles.span().length() as u64;
    let (mut slowest, mut all) = ((0, 0.0, 0), Vec::new());
    for level in 0..=LEVEL_MAX {
        let count = length / (CELLS << level) + 1;
        for number in 0..TILES.min(count) {
            let index = count * number / TILES.min(count);
            let (mut took, mut runs) = (f64::INFINITY, 0);
            // The best of three excludes other load on the machine.
            for _ in 0..3 {
                let begin = Instant::now();
                runs = tiles.tile(track.name, level, index, &lanes)?.len();
                took = took.min(begin.elapsed().as_secs_f64() * 1e3);
            }
            all.push(took);
            if took > slowest.1 {
                slowest = (level, took, runs);
            }
        }
    }
    all.sort_by(f64::total_cmp);
    Ok((slowest.0, slowest.1, slowest.2, all[all.len() / 2]))
}

fn charts(tiles: &Tiles) -> Result<(), AnyError> {
    let span = tiles.span();
    let middle = span.begin + span.length() / 3;
    let part = Window::new(middle, middle + span.length() / 50);
    for (what, window) in [("all", span), ("part", part)] {
        let begin = Instant::now();
        let series = tiles.series(window, 2000)?;
        let took = begin.elapsed().as_secs_f64() * 1e3;
        let points = series.first().map_or(0, |line| line.values.len());
        println!("{{\"series\":\"{what}\",\"ms\":{took:.2},\"points\":{points}}}");
        for kind in ["block", "io"] {
            let begin = Instant::now();
            let heat = tiles.heat(kind, window, 600)?;
            let took = begin.elapsed().as_secs_f64() * 1e3;
            let cells = heat.map_or(0, |heat| heat.cells.len());
            println!("{{\"heat\":\"{kind} {what}\",\"ms\":{took:.2},\"cells\":{cells}}}");
        }
    }
    Ok(())
}

/// Private anonymous memory of this process.
fn private_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}
