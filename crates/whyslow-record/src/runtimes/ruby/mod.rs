//! Stacks of MRI (CRuby) 2.7 to 4.0.
//!
//! `ruby_current_vm_ptr` refers to the virtual machine, that to its ractors and their threads, each
//! thread to its context and that to its control frames, which are consecutive. Frames of Ruby code
//! have an instruction sequence with label, path and lines. Frames of C functions are skipped: they
//! are in the native stack.

mod layout;
mod lines;

use std::collections::HashMap;
use std::ops::Range;

use super::budget::WALK_BYTES_MAX;
use super::image;
use super::memory::{Log, Memory, bytes_of, half_at, word_at, word_of};
use super::texts::{Names, TEXT_MAX};
use super::{FRAMES_MAX, Frame, Stack, Thread};
use layout::{Layout, Threads, ToTid};

const RACTORS_MAX: usize = 1024;
const SEQUENCES_MAX: usize = 1 << 14;
/// Longer sequences have no lines.
const ENTRIES_MAX: u32 = 1 << 16;
const POSITIONS_MAX: u32 = 1 << 20;

#[derive(Debug)]
pub(super) struct Ruby {
    /// Address of the pointer to the virtual machine.
    machine: u64,
    layout: Layout,
    sequences: HashMap<u64, Sequence>,
    /// Memory of the sequences.
    pub(super) bytes: usize,
    /// Bytes of tables that the current walk may still add.
    left: usize,
    /// Addresses of the evaluation functions.
    pub(super) code: Vec<Range<u64>>,
}

#[derive(Debug)]
struct Sequence {
    /// Identifies the sequence.
    mark: [u64; 5],
    function: u32,
    first: u32,
    size: u32,
    index: Vec<u8>,
    entries: Vec<u32>,
}

impl Ruby {
    pub(super) fn find(pid: i32, memory: &dyn Memory) -> Option<Self> {
        const NAMES: &[&str] = &["ruby", "libruby"];
        const SYMBOLS: &[&str] = &[
            "ruby_current_vm_ptr",
            "ruby_version",
            "vm_exec_core",
            "rb_vm_exec",
            "vm_exec",
        ];
        const EVALUATE: &[&str] = &["vm_exec_core", "rb_vm_exec", "vm_exec"];
        let image = image::find(pid, NAMES, SYMBOLS)?;
        let version = bytes_of(memory, image.address("ruby_version")?, 16)?;
        let version = version.split(|byte| *byte == 0).next()?;
        let layout = Layout::of(std::str::from_utf8(version).ok()?)?;
        let mut ruby = Self::new(image.address("ruby_current_vm_ptr")?, layout);
        ruby.code = image.code(EVALUATE);
        Some(ruby)
    }

    fn new(machine: u64, layout: Layout) -> Self {
        Self {
            machine,
            layout,
            sequences: HashMap::new(),
            bytes: 0,
            left: 0,
            code: Vec::new(),
        }
    }

    /// For a version, without a process.
    pub(super) fn of_version(machine: u64, version: &str) -> Option<Self> {
        Some(Self::new(machine, Layout::of(version)?))
    }

    pub(super) fn forget(&mut self) {
        self.sequences = HashMap::new();
        self.bytes = 0;
    }

    pub(super) fn is_there(&self, memory: &dyn Memory) -> bool {
        word_of(memory, self.machine).is_some_and(|machine| machine != 0)
    }

    /// `None` if the list is inconsistent.
    pub(super) fn threads(&self, memory: &dyn Memory) -> Option<Vec<Thread>> {
        let mut log = Log::default();
        let machine = log.word(memory, self.machine)?;
        let mut threads = Vec::new();
        match self.layout.threads {
            Threads::Machine { list, holder } => {
                let holder = word_of(memory, machine.checked_add(holder)?);
                let list = machine.checked_add(list)?;
                self.threads_of(memory, (list, holder), (&mut log, &mut threads))?;
            }
            Threads::Ractors {
                ractors,
                node,
                list,
                holder,
            } => {
                let ractors = machine.checked_add(ractors)?;
                for ractor in nodes(memory, ractors, RACTORS_MAX, &mut log)? {
                    let ractor = ractor.checked_sub(node)?;
                    let holder = word_of(memory, ractor.checked_add(holder)?);
                    let list = ractor.checked_add(list)?;
                    self.threads_of(memory, (list, holder), (&mut log, &mut threads))?;
                }
            }
        }
        log.holds(memory, &mut Vec::new()).then_some(threads)
    }

    fn threads_of(
        &self,
        memory: &dyn Memory,
        (list, holder): (u64, Option<u64>),
        (log, threads): (&mut Log, &mut Vec<Thread>),
    ) -> Option<()> {
        // The node is the first field of a thread, in all versions.
        for thread in nodes(memory, list, image::THREADS_MAX, log)? {
            let (tid, handle) = match self.layout.to_tid {
                ToTid::Handle(at) => (None, log.word(memory, thread.checked_add(at)?)?),
                ToTid::Direct(at) => (Some(log.half(memory, thread.checked_add(at)?)? as i32), 0),
                ToTid::Native(native, at) => {
                    let native = log.word(memory, thread.checked_add(native)?)?;
                    if native == 0 {
                        // It waits without a native thread.
                        continue;
                    }
                    (Some(log.half(memory, native.checked_add(at)?)? as i32), 0)
                }
            };
            if threads.len() >= image::THREADS_MAX {
                break;
            }
            threads.push(Thread {
                address: thread,
                tid,
                handle,
                is_holder: holder == Some(thread),
            });
        }
        Some(())
    }

    /// `None` if it cannot be read.
    pub(super) fn stack(
        &mut self,
        memory: &dyn Memory,
        thread: u64,
        (log, names): (&mut Log, &mut Names),
    ) -> Option<Stack> {
        const CONTEXT: usize = 24;
        self.left = WALK_BYTES_MAX;
        let size = self.layout.frame_size;
        let context = log.word(memory, thread.checked_add(self.layout.context)?)?;
        let mut stack = Stack::default();
        if context == 0 {
            return Some(stack);
        }
        let words = log.bytes(memory, context, CONTEXT)?;
        let [begin, count, frame] = [word_at(words, 0)?, word_at(words, 8)?, word_at(words, 16)?];
        if begin == 0 {
            return Some(stack);
        }
        let end = begin.checked_add(count.checked_mul(8)?)?;
        if frame < begin || frame > end {
            return None;
        }
        let there = (end - frame) / size;
        let wanted = there.min(2 * FRAMES_MAX as u64);
        stack.is_cut = wanted < there;
        let frames = log.bytes(memory, frame, (wanted * size) as usize)?.to_vec();
        for frame in frames.chunks_exact(size as usize) {
            if stack.frames.len() >= FRAMES_MAX {
                stack.is_cut = true;
                break;
            }
            let (pc, sequence) = (word_at(frame, 0)?, word_at(frame, 16)?);
            // C frames, and the first frame of each thread.
            if pc == 0 || sequence == 0 {
                continue;
            }
            let frame = self.frame(memory, (sequence, pc), (log, names))?;
            stack.frames.push(frame);
        }
        // The main thread starts with a frame for the program, without a line.
        if stack.frames.len() > 1 && stack.frames.last().is_some_and(|frame| frame.line == 0) {
            stack.frames.pop();
        }
        Some(stack)
    }

    fn frame(
        &mut self,
        memory: &dyn Memory,
        (sequence, pc): (u64, u64),
        (log, names): (&mut Log, &mut Names),
    ) -> Option<Frame> {
        const BODY: u64 = 16;
        let infos = self.layout.infos as usize;
        let body = log.word(memory, sequence.checked_add(BODY)?)?;
        let bytes = log.bytes(memory, body, infos + 32)?;
        let size = half_at(bytes, 4)?;
        let begin = word_at(bytes, 8)?;
        let (path, base, label) = (
            word_at(bytes, 64)?,
            word_at(bytes, 72)?,
            word_at(bytes, 80)?,
        );
        let first = word_at(bytes, 88)?;
        let mark = [path, base, label, begin, u64::from(size)];
        if self
            .sequences
            .get(&body)
            .is_none_or(|known| known.mark != mark)
        {
            let bytes = bytes.to_vec();
            let name = self.text(memory, label)?;
            let file = self.path(memory, path).unwrap_or_default();
            let first = if self.layout.is_first_object {
                first >> 1
            } else {
                first & u64::from(u32::MAX)
            };
            let (index, entries) = self
                .table(memory, &bytes[infos..], size)
                .unwrap_or_default();
            let known = Sequence {
                mark,
                function: names.intern(name, file),
                first: u32::try_from(first).unwrap_or(0),
                size,
                index,
                entries,
            };
            if self.sequences.len() >= SEQUENCES_MAX {
                self.forget();
            }
            self.left = self.left.saturating_sub(known.table_bytes());
            self.bytes += known.bytes();
            let gone = self.sequences.insert(body, known);
            self.bytes -= gone.map_or(0, |gone| gone.bytes());
        }
        let known = self.sequences.get(&body)?;
        let position = pc.checked_sub(begin)? / 8;
        Some(Frame {
            function: known.function,
            // The position is that of the next instruction.
            line: known.line(position.saturating_sub(1)),
        })
    }

    /// The index of positions, and the lines of its entries.
    fn table(&self, memory: &dyn Memory, infos: &[u8], size: u32) -> Option<(Vec<u8>, Vec<u32>)> {
        let (begin, index) = (word_at(infos, 0)?, word_at(infos, 24)?);
        let count = half_at(infos, 16)?;
        if count > ENTRIES_MAX || size > POSITIONS_MAX {
            return None;
        }
        let width = self.layout.info_size as usize;
        let index_bytes = match count {
            0 | 1 => 0,
            _ => lines::index_bytes(size as usize),
        };
        if count as usize * size_of::<u32>() + index_bytes > self.left {
            return None;
        }
        let entries = bytes_of(memory, begin, count as usize * width)?;
        let entries = entries
            .chunks_exact(width)
            .filter_map(|entry| half_at(entry, 0));
        let index = match index_bytes {
            0 => Vec::new(),
            bytes => bytes_of(memory, index, bytes)?,
        };
        Some((index, entries.collect()))
    }

    /// A path, or a pair of the given and the real path.
    fn path(&self, memory: &dyn Memory, object: u64) -> Option<String> {
        const TYPES: u64 = 0x1f;
        const ARRAY: u64 = 7;
        const EMBEDDED: u64 = 1 << 13;
        let flags = word_of(memory, object)?;
        if flags & TYPES != ARRAY {
            return self.text(memory, object);
        }
        let begin = if flags & EMBEDDED == 0 {
            word_of(memory, object.checked_add(32)?)?
        } else {
            object.checked_add(16)?
        };
        let real = word_of(memory, begin.checked_add(8)?).and_then(|at| self.text(memory, at));
        real.or_else(|| self.text(memory, word_of(memory, begin)?))
    }

    fn text(&self, memory: &dyn Memory, object: u64) -> Option<String> {
        const TYPES: u64 = 0x1f;
        const STRING: u64 = 5;
        const NOT_EMBEDDED: u64 = 1 << 13;
        let head = bytes_of(memory, object, 32)?;
        let flags = word_at(&head, 0)?;
        if flags & TYPES != STRING || object & 7 != 0 {
            return None;
        }
        let (length, begin) = if flags & NOT_EMBEDDED != 0 {
            (word_at(&head, 16)?, word_at(&head, 24)?)
        } else if self.layout.has_length {
            (word_at(&head, 16)?, object.checked_add(24)?)
        } else {
            (flags >> 14 & 0x1f, object.checked_add(16)?)
        };
        let count = usize::try_from(length).ok()?.min(TEXT_MAX);
        let bytes = bytes_of(memory, begin, count)?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Sequence {
    fn table_bytes(&self) -> usize {
        self.index.len() + self.entries.len() * size_of::<u32>()
    }

    fn bytes(&self) -> usize {
        size_of::<(u64, Self)>() + self.table_bytes()
    }

    fn line(&self, position: u64) -> u32 {
        if position >= u64::from(self.size) {
            return self.first;
        }
        let entry = match self.entries.len() {
            0 => None,
            1 => Some(0),
            _ => lines::entry(&self.index, position as usize),
        };
        let line = entry.and_then(|entry| self.entries.get(entry));
        line.copied().unwrap_or(self.first)
    }
}

/// Nodes of a circular list. `None` if the list does not return to its head, or is too long.
fn nodes(memory: &dyn Memory, head: u64, most: usize, log: &mut Log) -> Option<Vec<u64>> {
    let mut nodes = Vec::new();
    let mut node = log.word(memory, head)?;
    while node != head {
        if node == 0 || nodes.len() >= most {
            return None;
        }
        nodes.push(node);
        node = log.word(memory, node)?;
    }
    Some(nodes)
}
