//! What programs did while kernel events show that they waited, from samples of the same thread.

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_analysis::AnalysisError;
use whyslow_model::row::Row;
use whyslow_model::tables::{SampleGapRow, StackSampleRow};
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use super::load::{self, Code};
use crate::blame::CAUSED;
use crate::report::{Finding, Hop};
use crate::window_slice::columns::rows;

/// Minimum share of a hop's time that a sampling gap has to cover to show what the hop did.
const GAP_SHARE: f64 = 0.5;
const FRAMES_MAX: usize = 12;
/// Packages of runtimes: their callers are of interest.
const RUNTIME: &[&str] = &["java.", "javax.", "jdk.", "sun.", "com.sun."];

/// A stack that a thread had for a time.
struct Piece {
    begin: Ns,
    end: Ns,
    callsite: i64,
    is_gap: bool,
    /// Sampled by the recorder itself.
    is_own: bool,
}

/// Adds to each hop the functions of the program that samples of the same thread show.
pub(crate) fn add(tables: &dyn Tables, findings: &mut [Finding]) -> Result<(), AnalysisError> {
    if !super::has(tables, "stack_sample") {
        return Ok(());
    }
    for finding in findings {
        add_to(tables, finding)?;
    }
    Ok(())
}

/// Whether a hop lacks the stack of the program; hops from profiles have it already.
fn is_open(hop: &Hop) -> bool {
    let is_of_profile = matches!(hop.mechanism.as_str(), "lock_program" | "unseen_wait");
    // The culprit may have acted before the wait.
    !is_of_profile && hop.what != CAUSED && hop.actor.tid.is_some()
}

fn add_to(tables: &dyn Tables, finding: &mut Finding) -> Result<(), AnalysisError> {
    let open = || finding.chain.iter().filter(|hop| is_open(hop));
    let (Some(begin), Some(end)) = (
        open().map(|hop| hop.begin_ns).min(),
        open().map(|hop| hop.end_ns).max(),
    ) else {
        return Ok(());
    };
    let tids: FxHashSet<i32> = open().filter_map(|hop| hop.actor.tid).collect();
    let pieces = pieces(tables, Window::new(begin, end), &tids)?;
    let mut found: Vec<(usize, i64, bool)> = Vec::new();
    for (place, hop) in finding
        .chain
        .iter()
        .enumerate()
        .filter(|(_, hop)| is_open(hop))
    {
        let Some(pieces) = hop.actor.tid.and_then(|tid| pieces.get(&tid)) else {
            continue;
        };
        // A profiler knows its language better than the recorder, which samples from outside.
        let (own, profiled): (Vec<_>, Vec<_>) = pieces.iter().partition(|piece| piece.is_own);
        let range = (hop.begin_ns, hop.end_ns);
        let of_profile = shown(&profiled, range).map(|callsite| (place, callsite, false));
        found.extend(of_profile.or_else(|| Some((place, shown(&own, range)?, true))));
    }
    let wanted = found.iter().map(|(_, callsite, _)| *callsite).collect();
    let stacks = load::code(tables, &wanted)?;
    for (place, callsite, is_own) in found {
        // The recorder's native frames are part of the kernel stack already.
        let is_useful = |stack: &&Vec<Code>| !is_own || stack.iter().any(|code| code.is_managed);
        if let Some(stack) = stacks.get(&callsite).filter(is_useful) {
            finding.chain[place].program = of_program(stack);
        }
    }
    Ok(())
}

/// The functions from the first one outside of the runtime.
pub(crate) fn of_program(stack: &[Code]) -> Vec<String> {
    let scripts: Vec<&Code> = stack.iter().filter(|code| is_script(code)).collect();
    if !scripts.is_empty() {
        let first = scripts.iter().position(|code| !is_of_language(&code.file));
        let own = scripts[first.unwrap_or(0)..].iter();
        return own.take(FRAMES_MAX).map(|code| placed(code)).collect();
    }
    let is_own = |code: &Code| {
        let function = &code.function;
        function.contains('.') && !RUNTIME.iter().any(|of| function.starts_with(of))
    };
    let first = stack.iter().position(is_own).unwrap_or(0);
    let own = stack[first..].iter().take(FRAMES_MAX);
    own.map(|code| code.function.clone()).collect()
}

/// Whether a function is shown with its file, as for Python and Ruby: the names alone are
/// ambiguous.
fn is_script(code: &Code) -> bool {
    const SUFFIXES: &[&str] = &[".py", ".rb", ".ru"];
    let is_known = |suffix: &&str| code.file.ends_with(*suffix);
    let begins = code.file.starts_with(['/', '<']);
    code.is_managed && (begins || SUFFIXES.iter().any(is_known))
}

/// Whether a file comes with the language. Files of packages count as part of the program.
fn is_of_language(file: &str) -> bool {
    const FOLDERS: &[&str] = &[
        "/lib/python3",
        "/lib64/python3",
        "/lib/ruby/",
        "/share/ruby/",
    ];
    const PACKAGES: &[&str] = &["/site-packages/", "/dist-packages/", "/gems/"];
    let is_there = |folder: &&str| file.contains(*folder);
    file.starts_with('<') || FOLDERS.iter().any(is_there) && !PACKAGES.iter().any(is_there)
}

fn placed(code: &Code) -> String {
    match code.line {
        Some(line) => format!("{} ({}:{line})", code.function, code.file),
        None => format!("{} ({})", code.function, code.file),
    }
}

/// The stack that covers most of the range.
fn shown(pieces: &[&Piece], (begin, end): (Ns, Ns)) -> Option<i64> {
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

/// Samples and gaps of these threads, by kernel thread id.
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
            // Off-CPU and on-CPU stacks of the recorder are shown with the kernel stack.
            let is_of_profile = matches!(
                cells.text(0, row),
                "wall" | "execution" | "native" | "kernel_wait" | "page_fault"
            );
            let is_own = !is_gap && cells.text(1, row) == "recorder";
            if is_of_profile && tids.contains(&tid) {
                found.entry(tid).or_default().push(Piece {
                    begin: cells.ints[0].at(row),
                    end,
                    callsite,
                    is_gap,
                    is_own,
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
            is_own: false,
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
        let pieces: Vec<&Piece> = pieces.iter().collect();
        assert_eq!(shown(&pieces, (10, 100)), Some(3));
        assert_eq!(shown(&pieces, (0, 40)), Some(3));
        assert_eq!(shown(&pieces, (0, 22)), Some(1));
        assert_eq!(shown(&pieces, (100, 110)), Some(2));
        assert_eq!(shown(&pieces, (200, 300)), None);
    }

    #[test]
    fn code_of_the_runtime_is_not_what_the_program_did() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let stack = |text: &str| -> Vec<Code> {
            let code = |function| Code {
                function,
                ..Code::default()
            };
            words(text).into_iter().map(code).collect()
        };
        let found = of_program(&stack(
            "__write sun.nio.ch.IOUtil.write java.io.Log.x kafka.log.Append main.Run",
        ));
        assert_eq!(found, words("kafka.log.Append main.Run"));
        assert_eq!(of_program(&stack("poll epoll")), words("poll epoll"));
    }

    #[test]
    fn functions_of_scripts_go_by_their_files() {
        let code = |function: &str, file: &str, line| Code {
            function: function.to_owned(),
            file: file.to_owned(),
            line: Some(line),
            is_managed: file.ends_with(".py"),
        };
        let mut stack = vec![
            code("poll", "libc.so.6", 0),
            code("getaddrinfo", "/usr/lib/python3.11/socket.py", 962),
            code("get", "/usr/lib/python3/dist-packages/requests/api.py", 73),
            code("fetch", "/srv/app.py", 5),
        ];
        let own = [
            "get (/usr/lib/python3/dist-packages/requests/api.py:73)",
            "fetch (/srv/app.py:5)",
        ];
        assert_eq!(of_program(&stack), own);
        stack.truncate(2);
        assert_eq!(
            of_program(&stack),
            ["getaddrinfo (/usr/lib/python3.11/socket.py:962)"]
        );
    }
}
