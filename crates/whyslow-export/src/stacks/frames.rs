//! Functions and their callers.

use whyslow_model::Symbols;
use whyslow_model::tables::{CallsiteRow, FrameRow};
use whyslow_store::{Tables, rows};

use super::Mark;
use crate::ExportError;

/// Kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FrameKind {
    /// The name of a thread, above its stacks.
    Thread,
    /// Machine code of a program or library.
    User,
    /// Kernel code.
    Kernel,
    /// Code of a language with a runtime.
    Managed,
    /// Not a function: why there is no sample.
    Mark,
}

impl FrameKind {
    /// The name in the JSON of flame graphs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::User => "user",
            Self::Kernel => "kernel",
            Self::Managed => "managed",
            Self::Mark => "mark",
        }
    }
}

/// A function in a stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame {
    /// Its name, or its address if it has none.
    pub name: String,
    /// File of its code.
    pub module: Option<String>,
    /// Kind of its code.
    pub kind: FrameKind,
    /// Address as recorded; 0 if there is none.
    pub address: i64,
}

/// Frames and their callers.
#[derive(Debug, Default)]
pub struct Callsites {
    /// Unique functions.
    pub frames: Vec<Frame>,
    /// Caller and frame, by id.
    sites: Vec<(Option<usize>, usize)>,
    /// Frames of marks.
    marks: [usize; Mark::ALL.len()],
}

/// Limit of the stack depth: deeper stacks in a recording are cycles.
const DEPTH_MAX: usize = 1024;

impl Callsites {
    /// Reads the tables `callsite` and `frame`; empty if they have no rows.
    pub fn read(tables: &dyn Tables) -> Result<Self, ExportError> {
        let mut symbols = Symbols::new();
        let has = |name: &str| {
            let info = tables.info().tables.get(name);
            info.is_some_and(|table| table.rows > 0)
        };
        let mut found = Self::default();
        if !has("callsite") || !has("frame") {
            return Ok(found.with_marks());
        }
        for row in rows::<CallsiteRow>(tables, &mut symbols)? {
            // Ids are consecutive; do not allocate for a gap.
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
                    "managed" => FrameKind::Managed,
                    _ => FrameKind::User,
                },
                address: row.address,
            });
        }
        Ok(found.with_marks())
    }

    fn with_marks(mut self) -> Self {
        for (place, mark) in self.marks.iter_mut().zip(Mark::ALL) {
            *place = self.frames.len();
            self.frames.push(Frame {
                name: mark.text().to_owned(),
                module: None,
                kind: FrameKind::Mark,
                address: 0,
            });
        }
        self
    }

    /// Indexes into `frames` of a stack, outermost first; empty if it is unknown.
    pub fn stack(&self, (callsite, mark): (Option<i64>, Option<Mark>)) -> Vec<usize> {
        let mut stack = self.plain(callsite);
        if let Some(mark) = mark {
            let place = self.marks[mark as usize];
            match mark {
                Mark::Blocked => stack.push(place),
                Mark::NotSampled | Mark::Stopped => stack = vec![place],
            }
        }
        stack
    }

    fn plain(&self, callsite: Option<i64>) -> Vec<usize> {
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
