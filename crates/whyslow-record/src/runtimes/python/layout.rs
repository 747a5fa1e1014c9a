//! Field offsets of CPython's structures. Up to 3.12 they are those that a compiler computes from
//! the headers of the version, on 64 bits; from 3.13 on the interpreter has a table of them at the
//! start of `_PyRuntime`.

use super::super::memory::{Memory, bytes_of, word_at};

/// How a thread refers to its innermost frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToFrame {
    /// A pointer in the thread's state.
    Direct(u64),
    /// A pointer to a structure that contains the pointer.
    Through(u64, u64),
}

/// The holder of the interpreter lock (GIL).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gil {
    /// One for all, in `_PyRuntime`: whether it is locked, and its last holder.
    Runtime(u64, u64),
    /// One per interpreter, by a pointer there.
    Interpreter { gil: u64, locked: u64, holder: u64 },
    /// None.
    Free,
}

/// Form of the line table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    /// Up to 3.9.
    Steps,
    /// 3.10.
    Ranges,
    /// From 3.11 on.
    Locations,
}

/// Position of a frame in its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// An offset in bytes (`u32`, all ones before the first instruction), in units of `step` bytes.
    Index { at: u64, step: u32 },
    /// An address.
    Pointer(u64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) runtime_interpreters: u64,
    pub(super) interpreter_threads: u64,
    pub(super) interpreter_next: u64,
    pub(super) gil: Gil,
    pub(super) thread_next: u64,
    pub(super) thread_handle: u64,
    pub(super) thread_tid: Option<u64>,
    pub(super) to_frame: ToFrame,
    pub(super) frame_back: u64,
    pub(super) frame_code: u64,
    pub(super) place: Place,
    /// Offset of a frame's owner, and the value from which on frames are the interpreter's own.
    pub(super) owner: Option<(u64, u8)>,
    pub(super) type_of: u64,
    pub(super) code_name: u64,
    pub(super) code_file: u64,
    pub(super) code_line: u64,
    pub(super) code_lines: u64,
    /// Offset of the instructions in the code object, if they are part of it.
    pub(super) code_begin: u64,
    pub(super) lines: Lines,
    pub(super) text_length: u64,
    pub(super) text_state: u64,
    /// Bits before those of a string's kind.
    pub(super) text_shift: u32,
    pub(super) text_ascii: u64,
    pub(super) text_compact: u64,
    pub(super) bytes_size: u64,
    pub(super) bytes_begin: u64,
}

/// Up to 3.10, where frames are objects.
const V3_10: Layout = Layout {
    runtime_interpreters: 32,
    interpreter_threads: 8,
    interpreter_next: 0,
    gil: Gil::Runtime(368, 360),
    thread_next: 8,
    thread_handle: 176,
    thread_tid: None,
    to_frame: ToFrame::Direct(24),
    frame_back: 24,
    frame_code: 32,
    place: Place::Index { at: 96, step: 2 },
    owner: None,
    type_of: 8,
    code_name: 112,
    code_file: 104,
    code_line: 40,
    code_lines: 120,
    code_begin: 0,
    lines: Lines::Ranges,
    text_length: 16,
    text_state: 32,
    text_shift: 2,
    text_ascii: 48,
    text_compact: 72,
    bytes_size: 16,
    bytes_begin: 32,
};

const V3_9: Layout = Layout {
    place: Place::Index { at: 104, step: 1 },
    lines: Lines::Steps,
    ..V3_10
};

const V3_8: Layout = Layout {
    gil: Gil::Runtime(1168, 1160),
    ..V3_9
};

const V3_11: Layout = Layout {
    runtime_interpreters: 40,
    interpreter_threads: 16,
    gil: Gil::Runtime(376, 368),
    thread_handle: 152,
    thread_tid: Some(160),
    to_frame: ToFrame::Through(56, 8),
    frame_back: 48,
    place: Place::Pointer(56),
    code_name: 128,
    code_file: 112,
    code_line: 72,
    code_lines: 136,
    code_begin: 184,
    lines: Lines::Locations,
    ..V3_10
};

const V3_12: Layout = Layout {
    interpreter_threads: 72,
    gil: Gil::Interpreter {
        gil: 384,
        locked: 16,
        holder: 8,
    },
    thread_handle: 136,
    thread_tid: Some(144),
    to_frame: ToFrame::Through(56, 0),
    frame_back: 8,
    frame_code: 0,
    owner: Some((70, 3)),
    code_line: 68,
    code_begin: 192,
    text_ascii: 40,
    text_compact: 56,
    ..V3_11
};

impl Layout {
    /// Layout of version 3.`minor`, if it has no table of its own.
    pub(super) fn of(minor: u32) -> Option<Self> {
        Some(match minor {
            8 => V3_8,
            9 => V3_9,
            10 => V3_10,
            11 => V3_11,
            12 => V3_12,
            _ => return None,
        })
    }

    /// The interpreter's table at the start of `_PyRuntime`; `None` if there is none, or if the
    /// version's table is unknown.
    pub(super) fn from_runtime(memory: &dyn Memory, runtime: u64) -> Option<Self> {
        const COOKIE: &[u8] = b"xdebugpy";
        const TABLE: usize = 1024;
        let table = bytes_of(memory, runtime, TABLE)?;
        if !table.starts_with(COOKIE) {
            return None;
        }
        // 3.13 is 0x030d....; 3.14 added fields in the middle of the table.
        let version = word_at(&table, 8)? >> 16;
        let grown: usize = match version {
            0x030d => 0,
            0x030e => 1,
            _ => return None,
        };
        let is_free = word_at(&table, 16)? != 0;
        // In words: a head of 3, then one structure after another.
        let interpreter = 6;
        let thread = interpreter + 13 + grown * 3;
        let frame = thread + 9;
        let code = frame + 6 + grown * 2;
        let object = code + 10 + grown;
        let bytes = object + 2 + 4 + 3 + 3 + grown * 4 + 3 + 2 + 3;
        let text = bytes + 3;
        // Structures are small: larger values are no offsets, except in interpreters.
        let field = |place: usize| word_at(&table, place * 8).filter(|offset| *offset < 1 << 16);
        let far = |place: usize| word_at(&table, place * 8).filter(|offset| *offset < 1 << 22);
        let gil_at = interpreter + 8 + grown;
        let gil = far(gil_at + 1)?;
        let within = |place: usize| far(place)?.checked_sub(gil);
        let ascii = field(text + 3)?;
        Some(Self {
            runtime_interpreters: far(5)?,
            interpreter_threads: far(interpreter + 3)?,
            interpreter_next: far(interpreter + 2)?,
            gil: if is_free {
                Gil::Free
            } else {
                Gil::Interpreter {
                    gil: far(gil_at)?,
                    locked: within(gil_at + 3)?,
                    holder: within(gil_at + 4)?,
                }
            },
            thread_next: field(thread + 2)?,
            thread_handle: field(thread + 5)?,
            thread_tid: Some(field(thread + 6)?),
            to_frame: ToFrame::Direct(field(thread + 4)?),
            frame_back: field(frame + 1)?,
            frame_code: field(frame + 2)?,
            place: Place::Pointer(field(frame + 3)?),
            owner: Some((field(frame + 5)?, 3)),
            type_of: field(object + 1)?,
            code_name: field(code + 3)?,
            code_file: field(code + 1)?,
            code_line: field(code + 5)?,
            code_lines: field(code + 4)?,
            code_begin: field(code + 9)?,
            lines: Lines::Locations,
            text_length: field(text + 2)?,
            text_state: field(text + 1)?,
            text_shift: if is_free { 8 } else { 2 },
            text_ascii: ascii,
            // Length and address of another form of the string are in between.
            text_compact: ascii + 16,
            bytes_size: field(bytes + 1)?,
            bytes_begin: field(bytes + 2)?,
        })
    }
}
