//! Stacks of CPython 3.8 to 3.14.
//!
//! `_PyRuntime` refers to the interpreters, they to their threads, each thread to its innermost
//! frame, and frames to their callers and their code, which has name, file and lines. Internal
//! frames of the interpreter (since 3.12) are skipped. The frame of a generator is in the chain
//! only while it runs.

mod layout;
mod lines;

use std::collections::HashMap;
use std::ops::Range;

use super::budget::WALK_BYTES_MAX;
use super::image;
use super::memory::{Log, Memory, bytes_of, half_at, half_of, word_at, word_of};
use super::texts::{Names, TEXT_MAX};
use super::{FRAMES_MAX, Frame, Stack, Thread};
use layout::{Gil, Layout, Place, ToFrame};

const INTERPRETERS_MAX: usize = 64;
/// Longer line tables are not read.
const LINES_MAX: u64 = 1 << 20;
/// Maximum number of code objects known at once.
const CODES_MAX: usize = 1 << 14;
/// Tags of references in the two lowest bits (3.14).
const TAGS: u64 = 3;

#[derive(Debug)]
pub(super) struct Python {
    runtime: u64,
    layout: Layout,
    code_type: Option<u64>,
    codes: HashMap<u64, Code>,
    /// Memory of the code objects.
    pub(super) bytes: usize,
    /// Bytes of tables that the current walk may still add.
    left: usize,
    /// Addresses of the evaluation function.
    pub(super) code: Vec<Range<u64>>,
}

#[derive(Debug)]
struct Code {
    /// Identifies the code object: addresses of its strings, and its first line.
    mark: [u64; 4],
    function: u32,
    first: u32,
    table: Vec<u8>,
}

impl Python {
    pub(super) fn find(pid: i32, memory: &dyn Memory) -> Option<Self> {
        const NAMES: &[&str] = &["python", "libpython", "uwsgi"];
        const SYMBOLS: &[&str] = &[
            "_PyRuntime",
            "PyCode_Type",
            "Py_Version",
            "_PyEval_EvalFrameDefault",
        ];
        let image = image::find(pid, NAMES, SYMBOLS)?;
        let runtime = image.address("_PyRuntime")?;
        let version = image
            .address("Py_Version")
            .and_then(|at| half_of(memory, at));
        // Major and minor are the highest bytes.
        let minor = version.map(|version| version >> 16 & 0xff);
        let minor = minor.or_else(|| minor_of(&image.name))?;
        let layout = Layout::from_runtime(memory, runtime).or_else(|| Layout::of(minor))?;
        let mut python = Self::new(runtime, layout, image.address("PyCode_Type"));
        python.code = image.code(&["_PyEval_EvalFrameDefault"]);
        Some(python)
    }

    fn new(runtime: u64, layout: Layout, code_type: Option<u64>) -> Self {
        Self {
            runtime,
            layout,
            code_type,
            codes: HashMap::new(),
            bytes: 0,
            left: 0,
            code: Vec::new(),
        }
    }

    /// For a version, without a process.
    pub(super) fn of_version(runtime: u64, minor: u32) -> Option<Self> {
        Some(Self::new(runtime, Layout::of(minor)?, None))
    }

    pub(super) fn from_runtime(memory: &dyn Memory, runtime: u64) -> Option<Self> {
        Some(Self::new(
            runtime,
            Layout::from_runtime(memory, runtime)?,
            None,
        ))
    }

    pub(super) fn forget(&mut self) {
        self.codes = HashMap::new();
        self.bytes = 0;
    }

    pub(super) fn is_there(&self, memory: &dyn Memory) -> bool {
        self.at(self.layout.runtime_interpreters)
            .is_some_and(|at| word_of(memory, at).is_some())
    }

    /// `None` if the list is inconsistent.
    pub(super) fn threads(&self, memory: &dyn Memory) -> Option<Vec<Thread>> {
        let layout = &self.layout;
        let mut log = Log::default();
        let mut threads = Vec::new();
        let mut interpreter = log.word(memory, self.at(layout.runtime_interpreters)?)?;
        for _ in 0..INTERPRETERS_MAX {
            if interpreter == 0 {
                break;
            }
            let holder = self.holder(memory, interpreter);
            let threads_at = interpreter.checked_add(layout.interpreter_threads)?;
            let mut thread = log.word(memory, threads_at)?;
            while thread != 0 && threads.len() < image::THREADS_MAX {
                let tid = layout.thread_tid.map(|at| thread.checked_add(at));
                let tid = match tid {
                    Some(at) => Some(log.word(memory, at?)? as i32),
                    None => None,
                };
                threads.push(Thread {
                    address: thread,
                    tid,
                    handle: log.word(memory, thread.checked_add(layout.thread_handle)?)?,
                    is_holder: holder == Some(thread),
                });
                thread = log.word(memory, thread.checked_add(layout.thread_next)?)?;
            }
            interpreter = log.word(memory, interpreter.checked_add(layout.interpreter_next)?)?;
        }
        log.holds(memory, &mut Vec::new()).then_some(threads)
    }

    fn at(&self, offset: u64) -> Option<u64> {
        self.runtime.checked_add(offset)
    }

    fn holder(&self, memory: &dyn Memory, interpreter: u64) -> Option<u64> {
        let (locked, holder) = match self.layout.gil {
            Gil::Free => return None,
            Gil::Runtime(locked, holder) => (self.at(locked)?, self.at(holder)?),
            Gil::Interpreter {
                gil,
                locked,
                holder,
            } => {
                let gil = word_of(memory, interpreter.checked_add(gil)?)?;
                (gil.checked_add(locked)?, gil.checked_add(holder)?)
            }
        };
        let is_locked = half_of(memory, locked)? == 1;
        word_of(memory, holder).filter(|_| is_locked)
    }

    /// `None` if it cannot be read.
    pub(super) fn stack(
        &mut self,
        memory: &dyn Memory,
        thread: u64,
        (log, names): (&mut Log, &mut Names),
    ) -> Option<Stack> {
        self.left = WALK_BYTES_MAX;
        let mut frame = match self.layout.to_frame {
            ToFrame::Direct(at) => log.word(memory, thread.checked_add(at)?)?,
            ToFrame::Through(at, then) => {
                let place = log.word(memory, thread.checked_add(at)?)?;
                log.word(memory, place.checked_add(then)?)?
            }
        };
        let mut stack = Stack::default();
        for _ in 0..2 * FRAMES_MAX {
            if frame == 0 {
                return Some(stack);
            }
            if stack.frames.len() >= FRAMES_MAX {
                break;
            }
            frame = self.frame(memory, frame, (log, names, &mut stack))?;
        }
        stack.is_cut = true;
        Some(stack)
    }

    /// Adds a frame, and returns its caller.
    fn frame(
        &mut self,
        memory: &dyn Memory,
        frame: u64,
        (log, names, stack): (&mut Log, &mut Names, &mut Stack),
    ) -> Option<u64> {
        let layout = &self.layout;
        let (place_at, place_bytes) = match layout.place {
            Place::Index { at, .. } => (at, 4),
            Place::Pointer(at) => (at, 8),
        };
        let owner_end = layout.owner.map_or(0, |(at, _)| at + 1);
        let ends = [
            layout.frame_back + 8,
            layout.frame_code + 8,
            place_at + place_bytes,
        ];
        let end = ends.into_iter().fold(owner_end, u64::max);
        let begin = layout.frame_back.min(layout.frame_code);
        let bytes = log.bytes(memory, frame.checked_add(begin)?, (end - begin) as usize)?;
        let at = |offset: u64| (offset - begin) as usize;
        let back = word_at(bytes, at(layout.frame_back))?;
        let owner = layout
            .owner
            .and_then(|(place, own)| Some((*bytes.get(at(place))?, own)));
        if owner.is_some_and(|(owner, own)| owner >= own) {
            return Some(back);
        }
        let code = word_at(bytes, at(layout.frame_code))? & !TAGS;
        let place = match layout.place {
            Place::Index { at: place, step } => half_at(bytes, at(place))?.wrapping_mul(step),
            Place::Pointer(place) => {
                let begin = code.checked_add(layout.code_begin)?;
                let pointer = word_at(bytes, at(place))?;
                // Before the first instruction it is one unit before the code.
                let distance = pointer.checked_sub(begin);
                distance
                    .and_then(|bytes| u32::try_from(bytes).ok())
                    .unwrap_or(0)
            }
        };
        // Before the first instruction: -1, times the unit.
        let place = if place >= u32::MAX - 1 { 0 } else { place };
        let form = layout.lines;
        let code = self.code(memory, code, (log, names))?;
        let line = lines::line(&code.table, form, (code.first, place));
        stack.frames.push(Frame {
            function: code.function,
            line: line.unwrap_or(code.first),
        });
        Some(back)
    }

    fn code(
        &mut self,
        memory: &dyn Memory,
        code: u64,
        (log, names): (&mut Log, &mut Names),
    ) -> Option<&Code> {
        let layout = &self.layout;
        let ends = [
            layout.code_name,
            layout.code_file,
            layout.code_line,
            layout.code_lines,
        ];
        let begin = layout.type_of;
        let end = ends.into_iter().fold(begin, u64::max) + 8;
        let bytes = log.bytes(memory, code.checked_add(begin)?, (end - begin) as usize)?;
        let word = |at: u64| word_at(bytes, usize::try_from(at.checked_sub(begin)?).ok()?);
        let is_code = self.code_type.is_none_or(|kind| word(begin) == Some(kind));
        if !is_code {
            return None;
        }
        let first = half_at(
            bytes,
            usize::try_from(layout.code_line.checked_sub(begin)?).ok()?,
        )?;
        let [name, file, table] = [
            word(layout.code_name)?,
            word(layout.code_file)?,
            word(layout.code_lines)?,
        ];
        let mark = [name, file, table, u64::from(first)];
        if self.codes.get(&code).is_none_or(|known| known.mark != mark) {
            let name = self.text(memory, name)?;
            let file = self.text(memory, file)?;
            let known = Code {
                mark,
                function: names.intern(name, file),
                first,
                table: self.table(memory, table).unwrap_or_default(),
            };
            if self.codes.len() >= CODES_MAX {
                self.forget();
            }
            self.left = self.left.saturating_sub(known.table.len());
            self.bytes += known.bytes();
            let gone = self.codes.insert(code, known);
            self.bytes -= gone.map_or(0, |gone| gone.bytes());
        }
        self.codes.get(&code)
    }

    fn table(&self, memory: &dyn Memory, object: u64) -> Option<Vec<u8>> {
        let size = word_of(memory, object.checked_add(self.layout.bytes_size)?)?;
        let begin = object.checked_add(self.layout.bytes_begin)?;
        let size = usize::try_from(size.min(LINES_MAX)).ok()?;
        (size <= self.left).then(|| bytes_of(memory, begin, size))?
    }

    fn text(&self, memory: &dyn Memory, object: u64) -> Option<String> {
        let layout = &self.layout;
        let length = word_of(memory, object.checked_add(layout.text_length)?)?;
        let state = half_of(memory, object.checked_add(layout.text_state)?)? >> layout.text_shift;
        let (kind, is_compact, is_ascii) = (state & 7, state >> 3 & 1 == 1, state >> 4 & 1 == 1);
        let count = usize::try_from(length).ok()?.min(TEXT_MAX);
        if !is_compact || !matches!(kind, 1 | 2 | 4) {
            return None;
        }
        let begin = if is_ascii {
            layout.text_ascii
        } else {
            layout.text_compact
        };
        let bytes = bytes_of(memory, object.checked_add(begin)?, count * kind as usize)?;
        let unit = |unit: &[u8]| {
            let units = unit.iter().rev();
            char::from_u32(units.fold(0, |value, byte| value << 8 | u32::from(*byte)))
        };
        let chars = bytes.chunks_exact(kind as usize).map(unit);
        Some(
            chars
                .map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect(),
        )
    }
}

impl Code {
    fn bytes(&self) -> usize {
        size_of::<(u64, Self)>() + self.table.len()
    }
}

/// `libpython3.8.so.1.0`, `python3.10`.
fn minor_of(name: &str) -> Option<u32> {
    let rest = name.split_once("python3.")?.1;
    let digits = rest
        .find(|char: char| !char.is_ascii_digit())
        .unwrap_or(rest.len());
    rest.get(..digits)?.parse().ok()
}
