//! Frames without an address: functions of languages with a runtime, and kernel functions of which
//! only the name is known. Each has a number between the user and the kernel addresses.
//!
//! The texts are controlled by the sampled processes, so their size is limited per process and in
//! total. Texts beyond the limits share one number. When space is needed, texts that were not used
//! for a while are dropped; their numbers are never reused.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use whyslow_model::spool::{CodeKind, Encoder, Kind, NO_ADDRESS, NO_ADDRESS_END};

use super::managed::ManagedFrame;

/// Maximum bytes of texts per process, …
const PROCESS_BYTES_MAX: usize = 4 << 20;
/// … and in total.
const BYTES_MAX: usize = 16 << 20;
/// Overhead per text.
const EACH_BYTES: usize = 256;
/// Maximum time between assigning a number and the request for its text.
const UNUSED: Duration = Duration::from_secs(5);
/// Minimum interval of sweeps.
const SWEEP_AGAIN: Duration = Duration::from_secs(1);
/// Number of all texts beyond the limits.
const MORE: u64 = NO_ADDRESS;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Text {
    kind: CodeKind,
    function: Vec<u8>,
    file: Vec<u8>,
    line: Option<i32>,
}

#[derive(Debug)]
struct Entry {
    text: Arc<Text>,
    /// First process that used it.
    pid: i32,
    used: Instant,
    /// Written to the current spool.
    is_written: bool,
}

impl Entry {
    fn bytes(&self) -> usize {
        EACH_BYTES + self.text.function.len() + self.text.file.len()
    }
}

#[derive(Debug)]
pub(super) struct Texts {
    numbers: HashMap<Arc<Text>, u64>,
    entries: HashMap<u64, Entry>,
    next: u64,
    bytes: usize,
    by_process: HashMap<i32, usize>,
    /// Frames beyond the limits.
    pub(super) over: u64,
    needs_sweep: bool,
    swept: Instant,
}

impl Default for Texts {
    fn default() -> Self {
        let more = Text::of(CodeKind::Managed, ManagedFrame::instead("(more)"));
        let entry = Entry {
            text: Arc::new(more),
            pid: 0,
            used: Instant::now(),
            is_written: false,
        };
        Self {
            numbers: HashMap::new(),
            entries: HashMap::from([(MORE, entry)]),
            next: MORE + 1,
            bytes: 0,
            by_process: HashMap::new(),
            over: 0,
            needs_sweep: false,
            swept: Instant::now(),
        }
    }
}

impl Text {
    fn of(kind: CodeKind, frame: ManagedFrame) -> Self {
        Self {
            kind,
            function: frame.function,
            file: frame.file,
            line: frame.line,
        }
    }
}

impl Texts {
    pub(super) fn managed(&mut self, pid: i32, frame: ManagedFrame) -> u64 {
        self.number(pid, Text::of(CodeKind::Managed, frame))
    }

    pub(super) fn kernel(&mut self, function: &[u8]) -> u64 {
        let frame = ManagedFrame {
            function: function.to_vec(),
            file: Vec::new(),
            line: None,
        };
        self.number(0, Text::of(CodeKind::Kernel, frame))
    }

    fn number(&mut self, pid: i32, text: Text) -> u64 {
        if let Some(number) = self.numbers.get(&text) {
            let number = *number;
            self.touch(number);
            return number;
        }
        let text = Arc::new(text);
        let entry = Entry {
            text: Arc::clone(&text),
            pid,
            used: Instant::now(),
            is_written: false,
        };
        let bytes = entry.bytes();
        let of_process = self.by_process.get(&pid).copied().unwrap_or(0);
        let fits = self.bytes + bytes <= BYTES_MAX && of_process + bytes <= PROCESS_BYTES_MAX;
        if !fits || self.next >= NO_ADDRESS_END {
            self.over += 1;
            self.needs_sweep = true;
            return MORE;
        }
        let number = self.next;
        self.next += 1;
        self.bytes += bytes;
        self.by_process.insert(pid, of_process + bytes);
        self.numbers.insert(text, number);
        self.entries.insert(number, entry);
        number
    }

    /// The text is still in use.
    pub(super) fn touch(&mut self, number: u64) {
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.used = Instant::now();
        }
    }

    /// Memory is short.
    pub(super) fn give_up(&mut self) {
        self.needs_sweep = true;
    }

    /// Whether unused texts should be dropped; those of rows must be touched first.
    pub(super) fn is_sweep_due(&self) -> bool {
        self.needs_sweep && self.swept.elapsed() >= SWEEP_AGAIN
    }

    pub(super) fn sweep(&mut self) {
        self.needs_sweep = false;
        self.swept = Instant::now();
        let (numbers, by_process) = (&mut self.numbers, &mut self.by_process);
        let mut freed = 0;
        self.entries.retain(|number, entry| {
            let is_used = *number == MORE || entry.used.elapsed() < UNUSED;
            if !is_used {
                numbers.remove(&entry.text);
                let of_process = by_process.entry(entry.pid).or_default();
                *of_process = of_process.saturating_sub(entry.bytes());
                freed += entry.bytes();
            }
            is_used
        });
        self.bytes -= freed;
        by_process.retain(|_, bytes| *bytes > 0);
        numbers.shrink_to_fit();
        self.entries.shrink_to_fit();
    }

    /// Another spool starts, which knows no texts.
    pub(super) fn begin_spool(&mut self) {
        let entries = self.entries.values_mut();
        entries.for_each(|entry| entry.is_written = false);
    }

    /// Writes the text of the number, unless it was written before.
    pub(super) fn write(&mut self, number: u64, encoder: &mut Encoder) {
        self.touch(number);
        let Some(entry) = self.entries.get_mut(&number) else {
            return;
        };
        if std::mem::replace(&mut entry.is_written, true) {
            return;
        }
        let text = &entry.text;
        encoder
            .begin(Kind::Code, 0, (0, 0))
            .u64(number)
            .u32(text.kind as u32)
            .u32(text.line.unwrap_or(-1) as u32)
            .text(&text.function)
            .text(&text.file)
            .end();
    }
}

#[cfg(test)]
mod tests {
    use whyslow_model::spool::{Record, records};

    use super::*;

    fn frame(number: usize) -> ManagedFrame {
        ManagedFrame {
            function: format!("function {number}").into_bytes(),
            file: vec![b'x'; 4000],
            line: None,
        }
    }

    fn written(texts: &mut Texts, number: u64) -> Option<Vec<u8>> {
        let mut encoder = Encoder::default();
        texts.write(number, &mut encoder);
        records(encoder.payload()).find_map(|(_, record)| match record {
            Ok((_, Record::Code(code))) => Some(code.function.to_vec()),
            _ => None,
        })
    }

    #[test]
    fn what_finds_no_room_is_told_as_more_and_leaves_room_to_others() {
        let mut texts = Texts::default();
        let numbers: Vec<u64> = (0..2000)
            .map(|number| texts.managed(7, frame(number)))
            .collect();
        assert_eq!(*numbers.last().expect("one"), MORE);
        assert_eq!(written(&mut texts, MORE).as_deref(), Some(&b"(more)"[..]));
        let more = numbers.iter().filter(|number| **number == MORE).count();
        assert!(more > 900 && more == texts.over as usize, "{more}");
        assert!(texts.bytes <= PROCESS_BYTES_MAX);
        // Known texts keep their number, and other processes get theirs.
        assert_eq!(texts.managed(7, frame(0)), numbers[0]);
        assert_ne!(texts.managed(8, frame(5000)), MORE);
        for pid in 9..20 {
            (0..1000).for_each(|number| {
                texts.managed(pid, frame(pid as usize * 10_000 + number));
            });
        }
        assert!(texts.bytes <= BYTES_MAX);
    }

    #[test]
    fn numbers_of_what_is_gone_do_not_come_again() {
        let mut texts = Texts::default();
        let (one, other) = (texts.managed(7, frame(1)), texts.managed(7, frame(2)));
        let long_ago = Instant::now().checked_sub(2 * UNUSED);
        let Some(long_ago) = long_ago else { return };
        for number in [one, other] {
            texts.entries.get_mut(&number).expect("it is known").used = long_ago;
        }
        texts.give_up();
        texts.swept = long_ago;
        assert!(texts.is_sweep_due());
        texts.touch(other);
        texts.sweep();
        assert!(!texts.is_sweep_due());
        assert_eq!(written(&mut texts, one), None);
        assert_eq!(texts.managed(7, frame(2)), other);
        assert!(texts.managed(7, frame(1)) > other);
        assert!(written(&mut texts, other).is_some() && written(&mut texts, other).is_none());
        texts.begin_spool();
        assert!(written(&mut texts, other).is_some());
    }
}
