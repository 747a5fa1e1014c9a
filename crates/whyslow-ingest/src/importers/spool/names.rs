//! Symbols of addresses in stacks.
//!
//! The recorder resolves symbols after it took the stack, so they follow it in the spool. A spool
//! is therefore read twice, first for its symbols; blocks with symbols are flagged, and the others
//! are skipped.

use std::path::Path;

use rustc_hash::FxHashMap;
use whyslow_model::event::Frame;
use whyslow_model::spool::{CodeKind, CodeRecord, Head, NameRecord, Record, records};

use super::reader::SpoolReader;

/// Maximum number of resolved addresses; further ones stay addresses.
const NAMES_MAX: usize = 1 << 20;

/// Pid, time of its last exec, address. The kernel is pid 0.
type Key = (i32, u64, u64);

/// The symbol of an address, and the offset in it.
#[derive(Debug, Clone, Copy)]
struct Named {
    function: u32,
    module: u32,
    distance: u64,
}

/// A function with an id instead of an address (interpreted code).
#[derive(Debug, Clone, Copy)]
struct Code {
    kind: CodeKind,
    function: u32,
    file: u32,
    line: Option<i32>,
}

#[derive(Debug, Default)]
pub(crate) struct Names {
    code: FxHashMap<u64, Code>,
    named: FxHashMap<Key, Named>,
    /// Index 0 means no text.
    texts: Vec<Box<[u8]>>,
    numbers: FxHashMap<Box<[u8]>, u32>,
    /// Time of the last exec of each process.
    programs: FxHashMap<i32, u64>,
}

impl Names {
    /// Reads all symbols of a spool. Damage is reported when the records are read.
    pub(crate) fn read(path: &Path) -> Self {
        let mut names = Self::default();
        let Ok(mut reader) = SpoolReader::open(path) else {
            return names;
        };
        while let Ok(Some(payload)) = reader.next_with_names() {
            for (_, record) in records(&payload) {
                match record {
                    Ok((head, Record::Name(name))) => names.add(head.pid, &name),
                    Ok((_, Record::Code(code))) => names.add_code(&code),
                    _ => {}
                }
            }
        }
        names
    }

    pub(crate) fn add(&mut self, pid: i32, name: &NameRecord<'_>) {
        if self.named.len() >= NAMES_MAX {
            return;
        }
        let named = Named {
            function: self.number(name.function),
            module: self.number(name.module),
            distance: name.distance,
        };
        self.named.insert((pid, name.since, name.address), named);
    }

    fn add_code(&mut self, code: &CodeRecord<'_>) {
        if self.code.len() < NAMES_MAX {
            let known = Code {
                kind: code.kind,
                function: self.number(code.function),
                file: self.number(code.file),
                line: code.line,
            };
            self.code.insert(code.number, known);
        }
    }

    fn number(&mut self, text: &[u8]) -> u32 {
        if text.is_empty() {
            return 0;
        }
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        self.texts.push(text.into());
        let number = self.texts.len() as u32;
        self.numbers.insert(text.into(), number);
        number
    }

    fn text(&self, number: u32) -> Option<&[u8]> {
        let place = (number as usize).checked_sub(1)?;
        self.texts.get(place).map(AsRef::as_ref)
    }

    /// Updates which program a process runs.
    pub(super) fn learn(&mut self, head: &Head, record: &Record<'_>) {
        match record {
            Record::Exec(_) => {
                self.programs.insert(head.pid, head.ts);
            }
            Record::Fork(child) if child.tid == child.pid => {
                self.programs.insert(child.pid, head.ts);
            }
            Record::Free(task) if task.tid == task.pid => {
                self.programs.remove(&task.pid);
            }
            Record::Name(name) => self.add(head.pid, name),
            Record::Code(code) => self.add_code(code),
            _ => {}
        }
    }

    /// A kernel frame, or a frame of the program that the process currently runs.
    pub(super) fn frame(&self, process: Option<i32>, address: u64) -> Frame<'_> {
        if let Some(code) = self.code.get(&address) {
            return Frame {
                is_kernel: code.kind == CodeKind::Kernel,
                is_managed: code.kind == CodeKind::Managed,
                line: code.line,
                address,
                function: self.text(code.function),
                module: self.text(code.file),
                distance: None,
            };
        }
        let key = process.map_or((0, 0, address), |pid| {
            let since = self.programs.get(&pid).copied().unwrap_or(0);
            (pid, since, address)
        });
        let named = self.named.get(&key);
        let has_place = named.filter(|named| named.function != 0 || named.module != 0);
        Frame {
            is_kernel: process.is_none(),
            address,
            function: named.and_then(|named| self.text(named.function)),
            module: named.and_then(|named| self.text(named.module)),
            distance: has_place.map(|named| named.distance),
            ..Frame::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyslow_model::spool::{Encoder, Kind};

    fn learn(names: &mut Names, encoder: &Encoder) {
        for (_, record) in records(encoder.payload()) {
            let (head, record) = record.expect("a valid record");
            names.learn(&head, &record);
        }
    }

    #[test]
    fn a_name_is_that_of_the_program_that_the_process_runs() {
        let mut names = Names::default();
        let mut encoder = Encoder::default();
        for (since, function) in [(0, &b"before"[..]), (50, b"after")] {
            encoder
                .begin(Kind::Name, 90, (7, 7))
                .u64(since)
                .u64(0x1000)
                .u64(4)
                .text(function)
                .text(b"/bin/x")
                .end();
        }
        learn(&mut names, &encoder);
        let function = |names: &Names| names.frame(Some(7), 0x1000).function.map(<[u8]>::to_vec);
        assert_eq!(function(&names), Some(b"before".to_vec()));
        let mut encoder = Encoder::default();
        encoder
            .begin(Kind::Exec, 50, (7, 7))
            .u32(7)
            .text(b"/bin/x")
            .end();
        learn(&mut names, &encoder);
        assert_eq!(function(&names), Some(b"after".to_vec()));
        assert_eq!(names.frame(Some(8), 0x1000).function, None);
        assert_eq!(names.frame(None, 0x1000).function, None);
    }
}
