//! Short-lived temporary files: a program creates them, reads them back and deletes them, so their
//! writeback is wasted.

use std::ops::ControlFlow;

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_analysis::read::{Projection, in_order};
use whyslow_analysis::{AnalysisError, Common, Creation};
use whyslow_model::row::Row;
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::FileLifeRow;
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use super::callers;
use super::calls::{Counted, Process, What};
use super::{actor, mebibytes, template};
use crate::report::{Observation, Thing};

/// Minimum number of files.
const FILES_MIN: u64 = 50;
/// This many files are reported even if they are small …
const FILES_MANY: u64 = 300;
/// … with this minimum size in total.
const BYTES_OF_MANY: i64 = 512 << 10;
/// Minimum size in total otherwise: every editor writes less.
const BYTES_MIN: i64 = 4 << 20;
/// Minimum share of deleted files: files that stay are results.
const DELETED_MIN: f64 = 0.8;
/// Files with a longer lifetime are a cache.
const LIFE_MAX_NS: Ns = 120_000_000_000;
/// A folder with this many files belongs to one request.
const FILES_A_FOLDER: u64 = 5;
const FOLDERS_MAX: usize = 10_000;
/// A pause of this many median distances, and of this minimum, ends a burst.
const PAUSE: f64 = 20.0;
const PAUSE_MIN_NS: Ns = 50_000_000;

#[derive(Debug, Default)]
struct Files {
    made: u64,
    /// Of these, those whose creation is inferred.
    inferred: u64,
    deleted: u64,
    written: i64,
    read: i64,
    lives: Vec<Ns>,
    /// Creation time and bytes written of each file.
    begins: Vec<(Ns, i64)>,
    /// Their folders: many programs create one for each request.
    folders: FxHashSet<String>,
    common: Common,
    last: Ns,
}

pub(super) fn find(
    tables: &dyn Tables,
    window: Option<Window>,
    counted: &Counted,
    recording: &str,
) -> Result<Vec<Observation>, AnalysisError> {
    let mut found: FxHashMap<(i32, String), Files> = FxHashMap::default();
    let mut projection = Projection::new(FileLifeRow::TABLE);
    let [ts, ts_end, upid, read, written] =
        ["ts", "ts_end", "upid", "bytes_read", "bytes_written"].map(|name| projection.need(name));
    let path = projection.need("path");
    let [created, deleted] = ["created", "deleted"].map(|name| projection.need(name));
    in_order(tables, &projection.scan(window), |batch| {
        let (ts, ts_end, upid) = (ts.ints(batch)?, ts_end.ints(batch)?, upid.ints(batch)?);
        let (read, written) = (read.ints(batch)?, written.ints(batch)?);
        let (path, created, deleted) = (
            path.texts(batch)?,
            created.bools(batch)?,
            deleted.bools(batch)?,
        );
        for (number, (created, deleted)) in created.iter().zip(deleted.iter()).enumerate() {
            let row = number as u32;
            let (Some(upid), Some(path)) = (upid.get(row), path.get(row)) else {
                continue;
            };
            // Existing files are not temporary; files that are neither created nor written are
            // lookups.
            let creation = Creation::of(created, written.at(row));
            if creation == Creation::NotShown || written.at(row) == 0 {
                continue;
            }
            let files = found
                .entry((upid as i32, template::of_path(path)))
                .or_default();
            files.made += 1;
            files.inferred += u64::from(creation == Creation::Inferred);
            files.common.add(path);
            files.written += written.at(row);
            files.read += read.at(row);
            files.begins.push((ts.at(row), written.at(row)));
            if let Some((folder, _)) = path.rsplit_once('/')
                && files.folders.len() < FOLDERS_MAX
                && !files.folders.contains(folder)
            {
                files.folders.insert(folder.to_owned());
            }
            files.last = files.last.max(ts_end.get(row).unwrap_or(ts.at(row)));
            if let (Some(true), Some(end)) = (deleted, ts_end.get(row)) {
                files.deleted += 1;
                files.lives.push(end - ts.at(row));
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let mut found: Vec<((i32, String), Files)> = found.into_iter().collect();
    found.retain(|((upid, pattern), files)| {
        are_temporary(files) && pattern.contains('*') && !counted.process(*upid).is_tracer
    });
    found.index_sort_by_key(|(key, files)| (std::cmp::Reverse(files.written), key.clone()));
    let mut observations = Vec::new();
    for ((upid, pattern), files) in found {
        if let Some(mut observation) = observation(upid, &pattern, files, counted, recording) {
            name_caller(tables, upid, &mut observation)?;
            observations.push(observation);
        }
    }
    Ok(observations)
}

/// Whether these are enough files and bytes to matter, and most of the files were deleted.
fn are_temporary(files: &Files) -> bool {
    files.made >= FILES_MIN
        && (files.written >= BYTES_MIN
            || (files.made >= FILES_MANY && files.written >= BYTES_OF_MANY))
        && files.deleted as f64 >= DELETED_MIN * files.made as f64
}

/// Adds the function that creates them, if samples show it.
fn name_caller(
    tables: &dyn Tables,
    upid: i32,
    observation: &mut Observation,
) -> Result<(), AnalysisError> {
    let window = Window::new(observation.begin_ns, observation.end_ns);
    if let Some(caller) = callers::of_files(tables, upid, window)? {
        observation.summary.push_str(&caller.summary());
        let samples = ("samples_of_caller".to_owned(), caller.samples as f64);
        observation.numbers.push(samples);
    }
    Ok(())
}

fn observation(
    upid: i32,
    pattern: &str,
    mut files: Files,
    counted: &Counted,
    recording: &str,
) -> Option<Observation> {
    files.lives.sort_unstable();
    let life = files.lives.get(files.lives.len() / 2).copied().unwrap_or(0);
    if life > LIFE_MAX_NS {
        return None;
    }
    let process = counted.process(upid);
    let writes = counted.of(What::Write);
    let of_pattern = writes
        .iter()
        .find(|(of, number, _)| *of == upid && counted.pattern(*number) == pattern);
    let tid = of_pattern.and_then(|(_, _, sum)| sum.thread());
    files.begins.sort_unstable();
    let folders = files.folders.len();
    let is_each = folders > 1 && folders as u64 * FILES_A_FOLDER <= files.made;
    let bursts = if is_each {
        folders
    } else {
        bursts(&files.begins)
    };
    let (first, last) = (files.begins.first()?.0, files.last);
    let per_burst = files.written / bursts.max(1) as i64;
    let culprit = named(&process, tid);
    let shown = files.common.shown(pattern).into_owned();
    let inferred = match files.inferred {
        0 => String::new(),
        inferred => format!(" ({inferred} of them inferred from an open with O_CREAT)"),
    };
    let summary = format!(
        "{culprit} created {} files {shown}{inferred}, wrote {} to them, read {} back and deleted {} of them; median lifetime {}; {} in {bursts} burst{}, {} each",
        files.made,
        mebibytes(files.written),
        mebibytes(files.read),
        files.deleted,
        crate::sentence::length(life),
        mebibytes(files.written),
        if bursts == 1 { "" } else { "s" },
        mebibytes(per_burst),
    );
    Some(Observation {
        kind: "temporary_files".into(),
        culprit: actor(&process.comm, process.pid, tid),
        object: Some(Thing {
            kind: "file".into(),
            name: shown,
        }),
        begin_ns: first,
        end_ns: last,
        summary,
        numbers: numbers(&files, life, (bursts, per_burst)),
        evidence: Vec::new(),
        shown_by: process.pid.map(|pid| format!("whyslow files top {recording} --pid {pid}")),
        suggestions: vec![
            "keep the data in memory, or put these files on a tmpfs: all of them are deleted anyway".into(),
        ],
    })
}

/// The numbers of the observation, under the names that its readers know.
fn numbers(files: &Files, life: Ns, (bursts, per_burst): (usize, i64)) -> Vec<(String, f64)> {
    let number = |name: &str, value: f64| (name.to_owned(), value);
    vec![
        number("files", files.made as f64),
        number("files_inferred", files.inferred as f64),
        number("deleted", files.deleted as f64),
        number("bytes_written", files.written as f64),
        number("bytes_read", files.read as f64),
        number("life_ns_median", life as f64),
        number("bursts", bursts as f64),
        number("bytes_per_burst", per_burst as f64),
    ]
}

fn named(process: &Process, tid: Option<i32>) -> String {
    match (process.pid, tid) {
        (Some(pid), Some(tid)) if tid != pid => format!("{}[{pid}] (thread {tid})", process.comm),
        (Some(pid), _) => format!("{}[{pid}]", process.comm),
        _ => process.comm.clone(),
    }
}

/// Number of bursts, separated by pauses between files.
fn bursts(begins: &[(Ns, i64)]) -> usize {
    let gaps = || begins.windows(2).map(|pair| pair[1].0 - pair[0].0);
    let mut sorted: Vec<Ns> = gaps().collect();
    sorted.sort_unstable();
    let usual = sorted.get(sorted.len() / 2).copied().unwrap_or(0);
    let pause = ((usual as f64 * PAUSE) as Ns).max(PAUSE_MIN_NS);
    1 + gaps().filter(|gap| *gap > pause).count()
}
