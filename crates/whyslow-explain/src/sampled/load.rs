//! Rows that profiles provide: lock waits of programs with their holders, and sampling gaps.

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_analysis::read::{Observed, WallSamples};
use whyslow_model::row::Row;
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::{CallsiteRow, FrameRow, LockWaitRow, SampleGapRow};
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use crate::report::{Actor, ActorKind, Grade};
use crate::window_slice::columns::{Result, rows};

/// Minimum duration of a wait that a chain can follow.
const LINK_MIN: Ns = 10_000_000;

#[derive(Debug, Clone)]
pub(super) struct Holder {
    pub(super) utid: i32,
    pub(super) actor: Actor,
    pub(super) held: Ns,
    pub(super) confidence: String,
    pub(super) function: Option<String>,
    pub(super) callsite: Option<i64>,
    pub(super) gap: Option<i64>,
}

/// A thread's wait for a lock of its program.
#[derive(Debug, Clone)]
pub(super) struct Wait {
    pub(super) id: i64,
    pub(super) utid: i32,
    pub(super) actor: Actor,
    pub(super) begin: Ns,
    pub(super) end: Ns,
    pub(super) kind: String,
    pub(super) lock: String,
    pub(super) object: String,
    pub(super) function: String,
    pub(super) is_reported: bool,
    pub(super) callsite: Option<i64>,
    pub(super) holder: Option<Holder>,
}

impl Wait {
    pub(super) fn dur(&self) -> Ns {
        self.end - self.begin
    }
}

/// A time in which a thread probably was in an uninterruptible wait that no signal reached.
#[derive(Debug, Clone)]
pub(super) struct Gap {
    pub(super) id: i64,
    pub(super) utid: i32,
    pub(super) actor: Actor,
    pub(super) begin: Ns,
    pub(super) end: Ns,
    pub(super) is_fault: bool,
    pub(super) group: Option<i32>,
    pub(super) function: String,
    pub(super) callsite: Option<i64>,
    /// The state that the recorder saw at that time.
    pub(super) shown: Option<Observed>,
}

impl Gap {
    pub(super) fn dur(&self) -> Ns {
        self.end - self.begin
    }

    pub(super) fn is_proven(&self) -> bool {
        matches!(self.shown, Some(Observed::Uninterruptible { .. }))
    }

    /// A recorder sample proves the wait; otherwise it is likely only within a call.
    pub(super) fn grade(&self) -> Grade {
        match (self.is_proven(), self.is_fault || self.shown.is_some()) {
            (true, _) => Grade::A,
            (false, true) => Grade::C,
            (false, false) => Grade::B,
        }
    }

    /// The call it was in, and the kernel function, if known.
    pub(super) fn place(&self) -> String {
        match &self.shown {
            Some(Observed::Uninterruptible {
                function: Some(function),
                ..
            }) if *function != self.function => format!("{} ({function})", self.function),
            _ => self.function.clone(),
        }
    }
}

/// All waits and gaps of a profile, by start.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) waits: Vec<Wait>,
    pub(super) gaps: Vec<Gap>,
    frames: FxHashMap<i64, Vec<String>>,
}

impl Seen {
    /// Reads all of a window.
    pub(super) fn read(tables: &dyn Tables, window: Option<Window>) -> Result<Self> {
        let mut seen = Self {
            waits: waits(tables, window)?,
            gaps: gaps(tables, window)?,
            frames: FxHashMap::default(),
        };
        seen.waits
            .index_sort_by_ints(|wait| [wait.begin, wait.id, 0]);
        seen.gaps.index_sort_by_ints(|gap| [gap.begin, gap.id, 0]);
        seen.read_frames(tables)?;
        seen.read_states(tables)?;
        Ok(seen)
    }

    fn read_states(&mut self, tables: &dyn Tables) -> Result<()> {
        let begin = self.gaps.iter().map(|gap| gap.begin).min();
        let end = self.gaps.iter().map(|gap| gap.end).max();
        let (Some(begin), Some(end)) = (begin, end) else {
            return Ok(());
        };
        let threads = self.gaps.iter().map(|gap| i64::from(gap.utid)).collect();
        let samples = WallSamples::read(tables, Window::new(begin, end), &threads)?;
        for gap in &mut self.gaps {
            gap.shown = samples.of(i64::from(gap.utid), (gap.begin, gap.end));
        }
        Ok(())
    }

    pub(super) fn gap(&self, id: i64) -> Option<&Gap> {
        self.gaps.iter().find(|gap| gap.id == id)
    }

    /// Functions of a stack, innermost first.
    pub(super) fn stack(&self, callsite: Option<i64>) -> &[String] {
        let found = callsite.and_then(|callsite| self.frames.get(&callsite));
        found.map_or(&[], Vec::as_slice)
    }

    /// Reads the frames of all stacks. Both tables have one row per distinct stack, which are few.
    fn read_frames(&mut self, tables: &dyn Tables) -> Result<()> {
        let of_waits = self.waits.iter().flat_map(|wait| {
            let of_holder = wait.holder.as_ref().and_then(|holder| holder.callsite);
            [wait.callsite, of_holder]
        });
        let of_gaps = self.gaps.iter().map(|gap| gap.callsite);
        let wanted: FxHashSet<i64> = of_waits.chain(of_gaps).flatten().collect();
        self.frames = frames(tables, &wanted)?;
        Ok(())
    }
}

/// A function in a stack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Code {
    pub(crate) function: String,
    /// Source file or library; empty if it is not known.
    pub(crate) file: String,
    pub(crate) line: Option<i32>,
    /// Code of a language with its own runtime.
    pub(crate) is_managed: bool,
}

/// Functions of stacks, innermost first.
pub(super) fn frames(
    tables: &dyn Tables,
    wanted: &FxHashSet<i64>,
) -> Result<FxHashMap<i64, Vec<String>>> {
    let stacks = code(tables, wanted)?.into_iter();
    let names = |code: Vec<Code>| code.into_iter().map(|code| code.function).collect();
    Ok(stacks
        .map(|(callsite, code)| (callsite, names(code)))
        .collect())
}

/// The same with all known details. Unnamed functions are left out.
pub(crate) fn code(
    tables: &dyn Tables,
    wanted: &FxHashSet<i64>,
) -> Result<FxHashMap<i64, Vec<Code>>> {
    let mut stacks: FxHashMap<i64, Vec<Code>> = FxHashMap::default();
    if wanted.is_empty() {
        return Ok(stacks);
    }
    let mut parents: FxHashMap<i64, (Option<i64>, i64)> = FxHashMap::default();
    let columns = (&["id", "parent_id", "frame_id"][..], &[][..]);
    rows(tables, CallsiteRow::TABLE, columns, None, |cells, row| {
        let (id, frame) = (cells.ints[0].at(row), cells.ints[2].at(row));
        parents.insert(id, (cells.int(1, row), frame));
    })?;
    let mut known: FxHashMap<i64, Code> = FxHashMap::default();
    let columns = (&["id", "line"][..], &["function", "module", "kind"][..]);
    rows(tables, FrameRow::TABLE, columns, None, |cells, row| {
        let code = Code {
            function: cells.text(0, row).to_owned(),
            file: cells.text(1, row).to_owned(),
            line: cells.small(1, row),
            is_managed: cells.text(2, row) == "managed",
        };
        known.insert(cells.ints[0].at(row), code);
    })?;
    for &callsite in wanted {
        let (mut at, mut functions) = (Some(callsite), Vec::new());
        // Callers have smaller ids, so this ends.
        while let Some((parent, frame)) = at.and_then(|at| parents.get(&at)) {
            let code = known.get(frame).filter(|code| !code.function.is_empty());
            functions.extend(code.cloned());
            at = parent.filter(|parent| Some(*parent) < at);
        }
        stacks.insert(callsite, functions);
    }
    Ok(stacks)
}

pub(super) fn actor(name: &str, pid: Option<i32>, tid: Option<i32>) -> Actor {
    Actor {
        kind: ActorKind::Process,
        name: name.to_owned(),
        pid,
        tid,
        host: None,
    }
}

fn waits(tables: &dyn Tables, window: Option<Window>) -> Result<Vec<Wait>> {
    let ints = [
        "ts",
        "ts_end",
        "id",
        "utid",
        "pid",
        "tid",
        "callsite_id",
        "holder_utid",
        "holder_tid",
        "held",
        "holder_callsite_id",
        "holder_gap_id",
    ];
    let texts = [
        "reported_by",
        "comm",
        "kind",
        "lock",
        "object",
        "function",
        "holder_comm",
        "confidence",
        "holder_function",
    ];
    let mut found = Vec::new();
    rows(
        tables,
        LockWaitRow::TABLE,
        (&ints, &texts),
        window,
        |cells, row| {
            let (Some(end), Some(utid)) = (cells.int(1, row), cells.small(3, row)) else {
                return;
            };
            let (begin, reported_by) = (cells.ints[0].at(row), cells.text(0, row));
            // Kernel lock waits have no `reported_by`.
            if reported_by.is_empty() || end - begin < LINK_MIN {
                return;
            }
            let text = |place| cells.text(place, row).to_owned();
            let pid = cells.small(4, row);
            let holder = cells.small(7, row).map(|holder| Holder {
                utid: holder,
                actor: actor(cells.text(6, row), pid, cells.small(8, row)),
                held: cells.int(9, row).unwrap_or(0).clamp(0, end - begin),
                confidence: text(7),
                function: Some(text(8)).filter(|name| !name.is_empty()),
                callsite: cells.int(10, row),
                gap: cells.int(11, row),
            });
            found.push(Wait {
                id: cells.ints[2].at(row),
                utid,
                actor: actor(cells.text(1, row), pid, cells.small(5, row)),
                begin,
                end,
                kind: text(2),
                lock: text(3),
                object: text(4),
                function: text(5),
                is_reported: reported_by != "samples",
                callsite: cells.int(6, row),
                holder,
            });
        },
    )?;
    Ok(found)
}

fn gaps(tables: &dyn Tables, window: Option<Window>) -> Result<Vec<Gap>> {
    let ints = [
        "ts",
        "ts_end",
        "id",
        "utid",
        "pid",
        "tid",
        "group_id",
        "callsite_id",
    ];
    let texts = ["class", "comm", "function"];
    let mut found = Vec::new();
    rows(
        tables,
        SampleGapRow::TABLE,
        (&ints, &texts),
        window,
        |cells, row| {
            let (Some(end), Some(utid)) = (cells.int(1, row), cells.small(3, row)) else {
                return;
            };
            let class = cells.text(0, row);
            if !matches!(class, "kernel_wait" | "page_fault") {
                return;
            }
            found.push(Gap {
                id: cells.ints[2].at(row),
                utid,
                actor: actor(cells.text(1, row), cells.small(4, row), cells.small(5, row)),
                begin: cells.ints[0].at(row),
                end,
                is_fault: class == "page_fault",
                group: cells.small(6, row),
                function: cells.text(2, row).to_owned(),
                callsite: cells.int(7, row),
                shown: None,
            });
        },
    )?;
    Ok(found)
}
