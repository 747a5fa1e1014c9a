//! Stacks with the time they stand for: the source of every profile that is exported.

use std::ops::ControlFlow;

use whyslow_analysis::{Filter, Kind, LogRow, Question, Verb, each_row};
use whyslow_model::answer::LossNote;
use whyslow_model::tables::{CallsiteRow, FrameRow};
use whyslow_model::{Ns, Symbols, Window};
use whyslow_store::{Tables, rows};

use crate::ExportError;

/// What stacks are wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weight {
    /// Time away from the CPU.
    #[default]
    OffCpu,
    /// Samples of what ran, each for the time it stands for.
    Samples,
}

impl Weight {
    /// Value of the column `kind`.
    pub fn kind(self) -> &'static str {
        match self {
            Self::OffCpu => "offcpu",
            Self::Samples => "sample",
        }
    }
}

/// Which stacks count.
#[derive(Debug, Clone, Default)]
pub struct StackQuestion {
    pub window: Option<Window>,
    pub filter: Filter,
    pub weight: Weight,
    /// Only of threads that were left in these states: `uninterruptible`, …
    pub states: Vec<String>,
}

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FrameKind {
    /// The name of a thread, above its stacks.
    Thread,
    User,
    Kernel,
}

impl FrameKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::User => "user",
            Self::Kernel => "kernel",
        }
    }
}

/// A function in a stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame {
    /// Its name, or where it is if it has none.
    pub name: String,
    /// File that its code came from.
    pub module: Option<String>,
    pub kind: FrameKind,
    pub address: i64,
}

/// Frames and who calls them.
#[derive(Debug, Default)]
pub struct Callsites {
    pub frames: Vec<Frame>,
    /// Caller and frame, by id.
    sites: Vec<(Option<usize>, usize)>,
}

/// No stack has more frames: a recording that says so goes in circles.
const DEPTH_MAX: usize = 1024;

impl Callsites {
    pub fn read(tables: &dyn Tables) -> Result<Self, ExportError> {
        let mut symbols = Symbols::new();
        let has = |name: &str| {
            let info = tables.info().tables.get(name);
            info.is_some_and(|table| table.rows > 0)
        };
        let mut found = Self::default();
        if !has("callsite") || !has("frame") {
            return Ok(found);
        }
        for row in rows::<CallsiteRow>(tables, &mut symbols)? {
            // Ids are given one after another; a gap is no reason to make room for it.
            if usize::try_from(row.id) == Ok(found.sites.len()) {
                let parent = row.parent_id.and_then(|id| usize::try_from(id).ok());
                let frame = usize::try_from(row.frame_id).unwrap_or(usize::MAX);
                found.sites.push((parent, frame));
            }
        }
        for row in rows::<FrameRow>(tables, &mut symbols)? {
            let module = row.module.map(|module| symbols.get(module).to_owned());
            let function = row
                .function
                .map(|function| symbols.get(function).to_owned());
            let name = match (function, &module, row.function_offset) {
                (Some(function), ..) => function,
                (None, Some(module), Some(offset)) => {
                    let file = module.rsplit('/').next().unwrap_or(module);
                    format!("{file}+0x{offset:x}")
                }
                _ => format!("0x{:x}", row.address),
            };
            found.frames.push(Frame {
                name,
                module,
                kind: match symbols.get(row.kind) {
                    "kernel" => FrameKind::Kernel,
                    _ => FrameKind::User,
                },
                address: row.address,
            });
        }
        Ok(found)
    }

    /// Places in `frames` of a stack, outermost first; nothing for one that is not known.
    pub fn stack(&self, callsite: Option<i64>) -> Vec<usize> {
        let mut stack = Vec::new();
        let mut next = callsite.and_then(|id| usize::try_from(id).ok());
        while let Some((parent, frame)) = next.and_then(|place| self.sites.get(place)) {
            if stack.len() >= DEPTH_MAX {
                break;
            }
            if *frame < self.frames.len() {
                stack.push(*frame);
            }
            next = *parent;
        }
        stack.reverse();
        stack
    }
}

/// A stack at a moment.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'r> {
    pub begin: Ns,
    /// What of its time lies in the window.
    pub dur: Ns,
    pub comm: Option<&'r str>,
    pub pid: Option<i64>,
    pub tid: Option<i64>,
    pub state: Option<&'r str>,
    pub callsite: Option<i64>,
}

/// What is known of all samples.
#[derive(Debug, Clone, Default)]
pub struct About {
    pub begin: Ns,
    pub end: Ns,
    pub losses: Vec<LossNote>,
    pub caveats: Vec<String>,
}

const COLUMNS: [&str; 7] = [
    "ts_ns",
    "dur_ns",
    "comm",
    "pid",
    "tid",
    "state",
    "callsite_id",
];

/// Shows the samples of a question, in order of begin.
pub fn each_sample(
    tables: &dyn Tables,
    question: &StackQuestion,
    each: &mut dyn FnMut(&Sample<'_>),
) -> Result<About, ExportError> {
    let asked = Question {
        window: question.window,
        filter: Filter {
            ops: vec![question.weight.kind().to_owned()],
            ..question.filter.clone()
        },
        ..Question::new(Kind::Stacks, Verb::Log)
    };
    let info = tables.info();
    let whole = Window::new(info.begin_ns, info.end_ns.saturating_add(1));
    let window = question.window.unwrap_or(whole);
    let header = each_row(tables, &asked, &COLUMNS, &mut |row| {
        if let Some(sample) = sample(row, window)
            && (question.states.is_empty() || is_in(sample.state, &question.states))
        {
            each(&sample);
        }
        ControlFlow::Continue(())
    });
    let header = header?;
    let (begin, end) = header.window.unwrap_or((window.begin, window.end));
    Ok(About {
        begin,
        end,
        losses: header.losses,
        caveats: header.caveats,
    })
}

fn is_in(state: Option<&str>, states: &[String]) -> bool {
    state.is_some_and(|state| states.iter().any(|wanted| wanted == state))
}

fn sample<'r>(row: &'r LogRow<'_>, window: Window) -> Option<Sample<'r>> {
    let [ts, dur, comm, pid, tid, state, callsite] = COLUMNS;
    let begin = row.int(ts)?;
    let end = begin.saturating_add(row.int(dur).unwrap_or(0));
    let inside = end.min(window.end).saturating_sub(begin.max(window.begin));
    Some(Sample {
        begin: begin.max(window.begin),
        dur: inside.max(0),
        comm: row.text(comm),
        pid: row.int(pid),
        tid: row.int(tid),
        state: row.text(state),
        callsite: row.int(callsite),
    })
}
