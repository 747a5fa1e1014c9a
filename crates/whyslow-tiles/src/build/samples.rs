//! Stack samples of threads, each for the time it represents, and sampling gaps.
//!
//! The value of an interval packs three things, so that a chart needs no names: the class (the
//! state of the thread, or why there is no sample), the kind of code, and a number that is the same
//! for the same innermost function in every recording.

use rustc_hash::FxHashSet;
use whyslow_analysis::read::{PerWord, Projection};
use whyslow_model::row::Row as _;
use whyslow_model::tables::{CallsiteRow, FrameRow, SampleGapRow, StackSampleRow, TraceStatRow};
use whyslow_model::{Symbols, stat};
use whyslow_store::{Tables, rows};

use crate::TilesError;
use crate::build::lanes::{LaneRow, LanesBuilder};
use crate::build::merge;
use crate::build::rows::Work;
use crate::item::Mix;
use crate::kinds::SAMPLE_CLASSES;

/// Bit offsets of the parts of a value.
const CODE_SHIFT: u32 = 4;
const FUNCTION_SHIFT: u32 = 6;
/// Width of the function number: small enough to keep the value positive.
const FUNCTION_BITS: u32 = 25;

const RUNNING: u8 = 0;
const WAITING: u8 = 1;
const INFERRED: u8 = 2;
const NOT_SAMPLED: u8 = 3;

/// Values of `frame.kind`. The code of a sample is 1 + the index here, or 0 if unknown.
const CODE_KINDS: [&str; 3] = ["kernel", "user", "managed"];

pub(crate) fn samples(work: &Work<'_>, lanes: &mut LanesBuilder<'_, '_>) -> Result<(), TilesError> {
    let codes = codes(work)?;
    let wall_sampled = wall_sampled_threads(work)?;
    merge::by_time(
        work,
        lanes,
        |work, each| read_samples(work, (&codes, &wall_sampled), each),
        |work, each| read_gaps(work, &codes, each),
    )
}

/// Whether the samples are mere counts, as in collapsed stacks.
pub(crate) fn without_times(tables: &dyn Tables) -> Result<bool, TilesError> {
    let mut symbols = Symbols::new();
    let stats: Vec<TraceStatRow> = rows(tables, &mut symbols)?;
    let of = |row: &TraceStatRow| symbols.get(row.name) == stat::SAMPLES_NO_TIMES.name;
    Ok(stats.iter().any(of))
}

/// Class and group of a sample.
fn class(kind: &str, state: Option<&str>) -> (u8, u8) {
    let word = match (kind, state) {
        // Samplers of these kinds sample running threads only.
        ("sample" | "execution" | "native", None) => "running",
        (_, Some(state)) => state,
        _ => "unknown",
    };
    let index = index_of(word).unwrap_or_else(|| match state {
        Some(_) => index_of("waiting").unwrap_or(0),
        None => index_of("unknown").unwrap_or(0),
    });
    let is_running = matches!(
        SAMPLE_CLASSES[usize::from(index)],
        "running" | "runnable" | "unknown"
    );
    (index, if is_running { RUNNING } else { WAITING })
}

/// Class and group of a sampling gap.
fn gap_class(word: &str) -> (u8, u8) {
    let index = index_of(word)
        .or_else(|| index_of("sampler_late"))
        .unwrap_or(0);
    let is_inferred = matches!(word, "kernel_wait" | "page_fault");
    (index, if is_inferred { INFERRED } else { NOT_SAMPLED })
}

fn index_of(word: &str) -> Option<u8> {
    let index = SAMPLE_CLASSES.iter().position(|class| *class == word)?;
    u8::try_from(index).ok()
}

fn value(class: u8, code: u8, function: u32) -> i32 {
    let value = u32::from(class) | u32::from(code) << CODE_SHIFT | function << FUNCTION_SHIFT;
    i32::try_from(value).unwrap_or(i32::from(class))
}

/// Number of a function, derived from its name only.
fn number_of(function: &str) -> u32 {
    crc32fast::hash(function.as_bytes()) >> (u32::BITS - FUNCTION_BITS)
}

/// Kind of code of the innermost frame of each stack.
fn codes(work: &Work<'_>) -> Result<Vec<u8>, TilesError> {
    if !work.has("callsite") || !work.has("frame") {
        return Ok(Vec::new());
    }
    let mut symbols = Symbols::new();
    let of_kind = |kind: &str| CODE_KINDS.iter().position(|known| *known == kind);
    let frames: Vec<FrameRow> = rows(work.tables, &mut symbols)?;
    let frames: Vec<u8> = frames
        .iter()
        .map(|frame| of_kind(symbols.get(frame.kind)).map_or(0, |index| index as u8 + 1))
        .collect();
    let sites: Vec<CallsiteRow> = rows(work.tables, &mut symbols)?;
    let of_site = |site: &CallsiteRow| {
        let frame = usize::try_from(site.frame_id).ok();
        frame
            .and_then(|frame| frames.get(frame))
            .copied()
            .unwrap_or(0)
    };
    Ok(sites.iter().map(of_site).collect())
}

fn code_of(codes: &[u8], callsite: Option<i64>) -> u8 {
    let index = callsite.and_then(|id| usize::try_from(id).ok());
    index
        .and_then(|index| codes.get(index))
        .copied()
        .unwrap_or(0)
}

/// Threads with wall-clock samples: their off-CPU stacks would cover the same time twice.
fn wall_sampled_threads(work: &Work<'_>) -> Result<FxHashSet<i64>, TilesError> {
    let mut columns = Projection::new(StackSampleRow::TABLE);
    // `ts` is needed because rows are read in its order.
    let [_, utid, kind] = ["ts", "utid", "kind"].map(|name| columns.need(name));
    let mut found = FxHashSet::default();
    let work = Work::silent(work.tables, work.cancel);
    work.each(&columns, |batch| {
        let (utid, kind) = (utid.ints(batch)?, kind.texts(batch)?);
        for row in 0..batch.num_rows() as u32 {
            if kind.get(row) == Some("wall")
                && let Some(utid) = utid.get(row)
            {
                found.insert(utid);
            }
        }
        Ok(())
    })?;
    Ok(found)
}

fn read_samples(
    work: &Work<'_>,
    (codes, wall_sampled): (&[u8], &FxHashSet<i64>),
    each: &mut dyn FnMut(LaneRow),
) -> Result<(), TilesError> {
    let mut columns = Projection::new(StackSampleRow::TABLE);
    let numbers = ["ts", "ts_end", "utid", "callsite_id"].map(|name| columns.need(name));
    let words = ["kind", "state", "function"].map(|name| columns.need(name));
    let mut functions = PerWord::new();
    work.each(&columns, |batch| {
        let [ts, ts_end, utid, callsite] = numbers;
        let (ts, ts_end) = (ts.ints(batch)?, ts_end.ints(batch)?);
        let (utid, callsite) = (utid.ints(batch)?, callsite.ints(batch)?);
        let [kind, state, function] = words;
        let (kind, state) = (kind.texts(batch)?, state.texts(batch)?);
        let function = function.texts(batch)?;
        let known = functions.of(&function, None::<u32>);
        for row in 0..batch.num_rows() as u32 {
            let lane = utid.get(row);
            let kind = kind.get(row).unwrap_or_default();
            if kind == "offcpu" && lane.is_some_and(|lane| wall_sampled.contains(&lane)) {
                continue;
            }
            let (class, group) = class(kind, state.get(row));
            let number = function.key(row).and_then(|key| {
                let index = known.get_mut(key)?;
                Some(*index.get_or_insert_with(|| number_of(function.get(row).unwrap_or_default())))
            });
            each(LaneRow {
                lane,
                ts: ts.at(row),
                ts_end: ts_end.get(row),
                value: value(
                    class,
                    code_of(codes, callsite.get(row)),
                    number.unwrap_or(0),
                ),
                mix: Mix::Of(group),
            });
        }
        Ok(())
    })
}

/// Gaps of single threads; gaps of a whole process belong to no lane.
fn read_gaps(
    work: &Work<'_>,
    codes: &[u8],
    each: &mut dyn FnMut(Vec<LaneRow>) -> bool,
) -> Result<(), TilesError> {
    if !work.has("sample_gap") {
        return Ok(());
    }
    let mut columns = Projection::new(SampleGapRow::TABLE);
    let numbers = ["ts", "ts_end", "utid", "callsite_id"].map(|name| columns.need(name));
    let words = ["class", "function"].map(|name| columns.need(name));
    work.each(&columns, |batch| {
        let [ts, ts_end, utid, callsite] = numbers;
        let (ts, ts_end) = (ts.ints(batch)?, ts_end.ints(batch)?);
        let (utid, callsite) = (utid.ints(batch)?, callsite.ints(batch)?);
        let [word, function] = words;
        let (word, function) = (word.texts(batch)?, function.texts(batch)?);
        let of_row = |row: u32| {
            let (class, group) = gap_class(word.get(row).unwrap_or_default());
            let number = function.get(row).map_or(0, number_of);
            LaneRow {
                lane: utid.get(row),
                ts: ts.at(row),
                ts_end: ts_end.get(row),
                value: value(class, code_of(codes, callsite.get(row)), number),
                mix: Mix::Of(group),
            }
        };
        let of_threads = (0..batch.num_rows() as u32).filter(|row| utid.get(*row).is_some());
        if each(of_threads.map(of_row).collect()) {
            Ok(())
        } else {
            Err(TilesError::Cancelled)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_a_class_and_a_group() {
        let check = |kind, state, word, group| {
            let (index, of) = class(kind, state);
            assert_eq!((SAMPLE_CLASSES[usize::from(index)], of), (word, group));
        };
        check("wall", Some("running"), "running", RUNNING);
        check("wall", Some("sleeping"), "sleeping", WAITING);
        check("wall", None, "unknown", RUNNING);
        check("sample", None, "running", RUNNING);
        check(
            "offcpu",
            Some("uninterruptible"),
            "uninterruptible",
            WAITING,
        );
        check("offcpu", Some("traced"), "waiting", WAITING);
    }

    #[test]
    fn inferred_waits_are_none_of_the_kernels() {
        let check = |word, group| {
            let (index, of) = gap_class(word);
            assert_eq!((SAMPLE_CLASSES[usize::from(index)], of), (word, group));
        };
        check("kernel_wait", INFERRED);
        check("page_fault", INFERRED);
        check("sampler_late", NOT_SAMPLED);
        check("cpu_starved", NOT_SAMPLED);
    }

    #[test]
    fn parts_of_a_value_are_apart() {
        let number = number_of("sendfile64");
        let value = value(9, 3, number);
        assert_eq!((value & 15, value >> CODE_SHIFT & 3), (9, 3));
        assert_eq!(value >> FUNCTION_SHIFT, number as i32);
        assert!(value > 0 && SAMPLE_CLASSES.len() <= 16 && CODE_KINDS.len() < 4);
    }
}
