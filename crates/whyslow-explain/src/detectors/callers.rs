//! Which function of a program makes its file calls, by samples of all its threads.
//!
//! Such calls are short and samples are few. So the function with the most samples is named, and
//! the sentence states that it is from samples, and from how many.

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_analysis::AnalysisError;
use whyslow_model::Window;
use whyslow_model::row::Row;
use whyslow_model::tables::StackSampleRow;
use whyslow_store::Tables;

use crate::sampled::{self, Code};
use crate::window_slice::columns::rows;

/// Calls that create files, and prefixes of their kernel functions for samples without the call.
const OPENS: (&[&str], &[&str]) = (
    &["open", "openat", "openat2", "creat"],
    &[
        "__x64_sys_open",
        "__arm64_sys_open",
        "do_sys_open",
        "path_openat",
    ],
);
const OTHERS: (&[&str], &[&str]) = (
    &[
        "write",
        "pwrite64",
        "writev",
        "close",
        "unlink",
        "unlinkat",
        "rename",
        "fsync",
        "fdatasync",
    ],
    &[
        "__x64_sys_unlink",
        "__x64_sys_write",
        "ksys_write",
        "vfs_write",
        "do_unlinkat",
        "vfs_fsync",
    ],
);
/// Functions of a caller that are named.
const FUNCTIONS: usize = 3;

/// The caller of file calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Caller {
    /// Innermost first.
    functions: Vec<String>,
    is_open: bool,
    /// Samples that show it …
    pub(super) samples: u64,
    /// … of all samples in such calls.
    of: u64,
}

impl Caller {
    /// The end of a sentence.
    pub(super) fn summary(&self) -> String {
        let calls = if self.is_open {
            "open calls"
        } else {
            "file calls"
        };
        let functions = self.functions.join(" ← ");
        format!(
            "; {functions} makes its {calls} ({} of {} samples)",
            self.samples, self.of
        )
    }
}

/// The caller of the process's file calls; none if no sample is in one.
pub(super) fn of_files(
    tables: &dyn Tables,
    upid: i32,
    window: Window,
) -> Result<Option<Caller>, AnalysisError> {
    let mut seen: Vec<(String, i64, u64)> = Vec::new();
    let columns = (
        &["ts", "ts_end", "upid", "callsite_id", "credits"][..],
        &["kind", "syscall"][..],
    );
    rows(
        tables,
        StackSampleRow::TABLE,
        columns,
        Some(window),
        |cells, row| {
            let is_of = cells.small(2, row) == Some(upid);
            let is_sample = matches!(cells.text(0, row), "wall" | "sample" | "offcpu");
            if let Some(callsite) = cells.int(3, row).filter(|_| is_of && is_sample) {
                let credits = cells.int(4, row).unwrap_or(1).max(1) as u64;
                seen.push((cells.text(1, row).to_owned(), callsite, credits));
            }
        },
    )?;
    if seen.is_empty() {
        return Ok(None);
    }
    let wanted: FxHashSet<i64> = seen.iter().map(|(_, callsite, _)| *callsite).collect();
    let stacks = sampled::code(tables, &wanted)?;
    let met = |(calls, functions): (&[&str], &[&str])| -> Vec<(&Vec<Code>, u64)> {
        let samples = seen.iter().filter_map(|(call, callsite, credits)| {
            let stack = stacks.get(callsite)?;
            let is_one = if call.is_empty() {
                let begins = |code: &Code| functions.iter().any(|of| code.function.starts_with(of));
                stack.iter().any(begins)
            } else {
                calls.contains(&call.as_str())
            };
            is_one.then_some((stack, *credits))
        });
        samples.collect()
    };
    let opens = most(&met(OPENS), true);
    Ok(opens.or_else(|| most(&met(OTHERS), false)))
}

/// The caller that most samples show. Lines of one function are one caller.
fn most(samples: &[(&Vec<Code>, u64)], is_open: bool) -> Option<Caller> {
    let mut by_function: FxHashMap<String, (u64, Vec<String>)> = FxHashMap::default();
    let mut of = 0;
    for (stack, credits) in samples {
        of += credits;
        let mut functions = sampled::of_program(stack);
        // A stack without functions of the program's language adds nothing.
        let is_managed = stack.iter().any(|code| code.is_managed);
        if functions.is_empty() || !is_managed {
            continue;
        }
        functions.truncate(FUNCTIONS);
        let key = functions.iter().map(|function| without_line(function));
        let key = key.collect::<Vec<_>>().join("\n");
        let known = by_function.entry(key).or_insert((0, functions));
        known.0 += credits;
    }
    let best = by_function.into_values().max_by(|left, right| {
        let names = right.1.cmp(&left.1);
        left.0.cmp(&right.0).then(names)
    });
    best.map(|(samples, functions)| Caller {
        functions,
        is_open,
        samples,
        of,
    })
}

fn without_line(function: &str) -> &str {
    function
        .rsplit_once(':')
        .map_or(function, |(before, _)| before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(lines: &[(&str, i32)]) -> Vec<Code> {
        let frame = |(function, line): &(&str, i32)| Code {
            function: (*function).to_owned(),
            file: "/srv/app.py".to_owned(),
            line: Some(*line),
            is_managed: true,
        };
        lines.iter().map(frame).collect()
    }

    #[test]
    fn the_caller_that_most_samples_show_is_told_whatever_its_line() {
        let (spill, spilt, other) = (
            stack(&[("spill", 4), ("run", 9)]),
            stack(&[("spill", 5), ("run", 9)]),
            stack(&[("log", 30), ("run", 10)]),
        );
        let caller = most(&[(&spill, 2), (&spilt, 2), (&other, 3)], true).expect("one");
        assert_eq!((caller.samples, caller.of), (4, 7));
        assert_eq!(
            caller.summary(),
            "; spill (/srv/app.py:4) ← run (/srv/app.py:9) makes its open calls (4 of 7 samples)"
        );
    }

    #[test]
    fn native_code_alone_tells_nobody() {
        let native = vec![Code {
            function: "__open64".to_owned(),
            ..Code::default()
        }];
        assert_eq!(most(&[(&native, 2)], true), None);
    }
}
