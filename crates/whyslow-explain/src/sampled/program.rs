//! What programs did while the kernel's events tell that they waited: samples beside them, on the same thread.

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_analysis::AnalysisError;
use whyslow_model::row::Row;
use whyslow_model::tables::{SampleGapRow, StackSampleRow};
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use super::load;
use crate::moment::columns::rows;
use crate::report::{Hop, Story};

/// A time without samples shows what a link did, if it has so much of the link's time.
const GAP_SHARE: f64 = 0.5;
const FRAMES_MAX: usize = 12;
/// Packages of runtimes: who called them is what people ask for.
const RUNTIME: &[&str] = &["java.", "javax.", "jdk.", "sun.", "com.sun."];

/// A stack that a thread had for a time.
struct Piece {
    begin: Ns,
    end: Ns,
    callsite: i64,
    is_gap: bool,
}

/// Adds to each link the functions of the program that samples of the same thread show.
pub(crate) fn add(tables: &dyn Tables, stories: &mut [Story]) -> Result<(), AnalysisError> {
    if !super::has(tables, "stack_sample") {
        return Ok(());
    }
    for story in stories {
        add_to(tables, story)?;
    }
    Ok(())
}

/// Links of profiles have the stack of the program already.
fn is_open(hop: &Hop) -> bool {
    let is_of_profile = matches!(hop.mechanism.as_str(), "lock_program" | "unseen_wait");
    // What made others wait was done before they did.
    !is_of_profile && hop.what != "did it" && hop.actor.tid.is_some()
}

fn add_to(tables: &dyn Tables, story: &mut Story) -> Result<(), AnalysisError> {
    let open = || story.chain.iter().filter(|hop| is_open(hop));
    let (Some(begin), Some(end)) = (
        open().map(|hop| hop.begin_ns).min(),
        open().map(|hop| hop.end_ns).max(),
    ) else {
        return Ok(());
    };
    let tids: FxHashSet<i32> = open().filter_map(|hop| hop.actor.tid).collect();
    let pieces = pieces(tables, Window::new(begin, end), &tids)?;
    let mut found: Vec<(usize, i64)> = Vec::new();
    for (place, hop) in story.chain.iter().enumerate() {
        let of_thread = hop.actor.tid.and_then(|tid| pieces.get(&tid));
        let callsite = of_thread.and_then(|pieces| shown(pieces, (hop.begin_ns, hop.end_ns)));
        found.extend(
            callsite
                .filter(|_| is_open(hop))
                .map(|callsite| (place, callsite)),
        );
    }
    let wanted = found.iter().map(|(_, callsite)| *callsite).collect();
    let frames = load::frames(tables, &wanted)?;
    for (place, callsite) in found {
        if let Some(functions) = frames.get(&callsite) {
            story.chain[place].program = of_program(functions);
        }
    }
    Ok(())
}

/// From the first function on that is not of the runtime.
fn of_program(functions: &[String]) -> Vec<String> {
    let is_own = |function: &String| {
        function.contains('.') && !RUNTIME.iter().any(|of| function.starts_with(of))
    };
    let first = functions.iter().position(is_own).unwrap_or(0);
    functions[first..]
        .iter()
        .take(FRAMES_MAX)
        .cloned()
        .collect()
}

/// The stack that stands for most of the range.
fn shown(pieces: &[Piece], (begin, end): (Ns, Ns)) -> Option<i64> {
    let overlap = |piece: &Piece| (piece.end.min(end) - piece.begin.max(begin)).max(0);
    let gaps = pieces.iter().filter(|piece| piece.is_gap);
    if let Some(gap) = gaps.max_by_key(|gap| overlap(gap))
        && overlap(gap) as f64 >= GAP_SHARE * (end - begin).max(1) as f64
    {
        return Some(gap.callsite);
    }
    let mut times: FxHashMap<i64, Ns> = FxHashMap::default();
    for sample in pieces.iter().filter(|piece| !piece.is_gap) {
        *times.entry(sample.callsite).or_default() += overlap(sample);
    }
    times.retain(|_, time| *time > 0);
    times
        .into_iter()
        .max_by_key(|(callsite, time)| (*time, -callsite))
        .map(|(callsite, _)| callsite)
}

/// Of these threads, by number.
fn pieces(
    tables: &dyn Tables,
    window: Window,
    tids: &FxHashSet<i32>,
) -> Result<FxHashMap<i32, Vec<Piece>>, AnalysisError> {
    let mut found: FxHashMap<i32, Vec<Piece>> = FxHashMap::default();
    let ints = ["ts", "ts_end", "tid", "callsite_id"];
    let samples: &[&str] = &["kind", "sampler"];
    for (table, texts, is_gap) in [
        (StackSampleRow::TABLE, samples, false),
        (SampleGapRow::TABLE, &["class"], true),
    ] {
        rows(tables, table, (&ints, texts), Some(window), |cells, row| {
            let (Some(end), Some(tid), Some(callsite)) =
                (cells.int(1, row), cells.small(2, row), cells.int(3, row))
            else {
                return;
            };
            // Stacks of the recorder itself are told with the kernel's.
            let is_of_profile = matches!(
                cells.text(0, row),
                "wall" | "execution" | "native" | "kernel_wait" | "page_fault"
            );
            let is_own = !is_gap && cells.text(1, row) == "recorder";
            if is_of_profile && !is_own && tids.contains(&tid) {
                found.entry(tid).or_default().push(Piece {
                    begin: cells.ints[0].at(row),
                    end,
                    callsite,
                    is_gap,
                });
            }
        })?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(begin: Ns, end: Ns, callsite: i64, is_gap: bool) -> Piece {
        Piece {
            begin,
            end,
            callsite,
            is_gap,
        }
    }

    #[test]
    fn what_stands_for_most_of_the_time_is_shown() {
        let pieces = [
            piece(0, 10, 1, false),
            piece(10, 20, 2, false),
            piece(20, 100, 3, true),
            piece(100, 110, 2, false),
        ];
        assert_eq!(shown(&pieces, (10, 100)), Some(3));
        assert_eq!(shown(&pieces, (0, 40)), Some(3));
        assert_eq!(shown(&pieces, (0, 22)), Some(1));
        assert_eq!(shown(&pieces, (100, 110)), Some(2));
        assert_eq!(shown(&pieces, (200, 300)), None);
    }

    #[test]
    fn code_of_the_runtime_is_not_what_the_program_did() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let stack =
            words("__write sun.nio.ch.IOUtil.write java.io.Log.x kafka.log.Append main.Run");
        assert_eq!(of_program(&stack), words("kafka.log.Append main.Run"));
        assert_eq!(of_program(&words("poll epoll")), words("poll epoll"));
    }
}
