//! Kernel events as raw bytes, as in perf and ftrace.

use whyslow_model::event::{Body, Interrupt, SyscallArgs};

use super::format::{Field, Format, Kind};
use super::syscall::{self, SyscallClass};
use super::value::Value;
use super::{Declared, Facts, Fields, Mapping, Source, find};

/// Maximum number of fields that a definition uses.
const SLOTS_MAX: usize = 16;
/// Bits of `common_flags`: within a hard interrupt or an NMI, or a softirq.
const FLAGS_HARD: i64 = 0x08 | 0x40;
const FLAGS_SOFT: i64 = 0x10;
/// Maximum number of array elements read per event.
const NUMBERS_MAX: usize = 8;

/// One class of events with its definition.
pub(in crate::importers) struct RawClass {
    pub(in crate::importers) name: String,
    meaning: Meaning,
    slots: Vec<Option<Field>>,
    /// `common_flags`.
    flags: Option<Field>,
    facts: Facts,
    is_big_endian: bool,
}

enum Meaning {
    Table(&'static Mapping),
    Syscall(SyscallClass),
    Other,
}

/// Buffer for the arrays of one event.
#[derive(Default)]
pub(in crate::importers) struct ArrayBuffer {
    numbers: [u64; NUMBERS_MAX],
}

struct Declaration<'f>(&'f Format);

impl Declared for Declaration<'_> {
    fn has(&self, name: &str) -> bool {
        self.0.field(name).is_some()
    }

    fn resolve(&self, alternatives: &str) -> String {
        let mut names = alternatives.split('|');
        let first = names.clone().next().unwrap_or_default();
        let found = names.find(|name| self.has(name));
        found.unwrap_or(first).to_owned()
    }
}

impl RawClass {
    /// `has_end` returns whether the event that ends this one is recorded.
    pub(in crate::importers) fn new(
        format: &Format,
        facts: Facts,
        is_big_endian: bool,
        has_end: impl Fn(&str) -> bool,
    ) -> Self {
        let declared = Declaration(format);
        let name = format.name.as_str();
        let (meaning, wanted) = if let Some((call, wanted)) = call_of(format, &declared, facts) {
            (Meaning::Syscall(call), wanted)
        } else if let Some(mapping) = find(name).filter(|_| {
            // Without the exit event, a handler would never end.
            name.strip_suffix("_entry")
                .is_none_or(|stem| has_end(&format!("{stem}_exit")))
        }) {
            let fields = mapping.fields.iter();
            let wanted = fields.map(|field| declared.resolve(field)).collect();
            (Meaning::Table(mapping), wanted)
        } else {
            (Meaning::Other, Vec::new())
        };
        Self {
            name: format!("{}:{name}", format.system),
            meaning,
            slots: wanted
                .iter()
                .take(SLOTS_MAX)
                .map(|name| format.field(name).cloned())
                .collect(),
            flags: format.field("common_flags").cloned(),
            facts,
            is_big_endian,
        }
    }

    /// The same, only counted.
    pub(in crate::importers) fn unused(self) -> Self {
        Self {
            meaning: Meaning::Other,
            slots: Vec::new(),
            ..self
        }
    }

    pub(in crate::importers) fn is_unused(&self) -> bool {
        matches!(self.meaning, Meaning::Other)
    }

    /// The interrupt that the CPU was serving: the thread of the event is a bystander then.
    pub(in crate::importers) fn interrupt(&self, raw: &[u8]) -> Option<Interrupt> {
        let field = self.flags.as_ref()?;
        let bytes = raw.get(field.offset..field.offset.checked_add(field.size)?)?;
        Some(match self.number(bytes, false)? {
            flags if flags & FLAGS_HARD != 0 => Interrupt::Hard,
            flags if flags & FLAGS_SOFT != 0 => Interrupt::Soft,
            _ => Interrupt::None,
        })
    }

    /// `None` if a required field is missing.
    pub(in crate::importers) fn body<'a>(
        &'a self,
        raw: &'a [u8],
        arrays: &'a mut ArrayBuffer,
        args: &'a mut Option<SyscallArgs<'a>>,
    ) -> Option<Body<'a>> {
        let mut values = [Value::Absent; SLOTS_MAX];
        // At most one field of an event is an array of integers larger than bytes.
        let mut array = None;
        for (slot, field) in self.slots.iter().enumerate() {
            let Some(field) = field else { continue };
            match field.kind {
                Kind::Numbers { each } if each > 1 => {
                    let count = self.numbers(raw, field, each, &mut arrays.numbers)?;
                    array = Some((slot, count));
                }
                _ => values[slot] = self.value(raw, field)?,
            }
        }
        if let Some((slot, count)) = array {
            values[slot] = Value::Ints(&arrays.numbers[..count]);
        }
        let fields = Fields {
            source: Source::Slots(&values),
            facts: self.facts,
        };
        match &self.meaning {
            Meaning::Table(mapping) => (mapping.body)(&fields),
            Meaning::Syscall(call) => Some(call.body(&fields, args)),
            Meaning::Other => Some(Body::Other),
        }
    }

    fn number(&self, bytes: &[u8], is_signed: bool) -> Option<i64> {
        number(bytes, is_signed, self.is_big_endian)
    }

    fn value<'a>(&self, raw: &'a [u8], field: &Field) -> Option<Value<'a>> {
        let end = field.offset.checked_add(field.size)?;
        let bytes = raw.get(field.offset..end)?;
        Some(match field.kind {
            Kind::Number { is_signed } => {
                let number = self.number(bytes, is_signed)?;
                if is_signed {
                    Value::Signed(number)
                } else {
                    Value::Unsigned(number as u64)
                }
            }
            Kind::Text => Value::Str(until_zero(bytes)),
            Kind::Numbers { .. } => Value::Bytes(bytes),
            Kind::Elsewhere {
                is_relative,
                is_text,
            } => {
                let place = self.number(bytes, false)? as u64;
                let mut at = (place & 0xffff) as usize;
                if is_relative {
                    at = at.checked_add(end)?;
                }
                let size = (place >> 16 & 0xffff) as usize;
                let bytes = raw.get(at..at.checked_add(size)?)?;
                if is_text {
                    Value::Str(until_zero(bytes))
                } else {
                    Value::Bytes(bytes)
                }
            }
        })
    }

    fn numbers(
        &self,
        raw: &[u8],
        field: &Field,
        each: usize,
        out: &mut [u64; NUMBERS_MAX],
    ) -> Option<usize> {
        let end = field.offset.checked_add(field.size)?;
        let bytes = raw.get(field.offset..end)?;
        let mut count = 0;
        for (slot, one) in out.iter_mut().zip(bytes.chunks_exact(each)) {
            *slot = self.number(one, false)? as u64;
            count += 1;
        }
        Some(count)
    }
}

/// Definitions of system call events: one event per call, or a generic one with the call number.
fn call_of(
    format: &Format,
    declared: &Declaration<'_>,
    facts: Facts,
) -> Option<(SyscallClass, Vec<String>)> {
    match (format.system.as_str(), format.name.as_str()) {
        ("raw_syscalls", "sys_enter") => {
            syscall::classify("syscall_entry_unknown", declared, facts)
        }
        ("raw_syscalls", "sys_exit") => syscall::classify("syscall_exit_unknown", declared, facts),
        ("syscalls", name) => {
            let (word, call) = name
                .strip_prefix("sys_enter_")
                .map(|call| ("entry", call))
                .or_else(|| name.strip_prefix("sys_exit_").map(|call| ("exit", call)))?;
            syscall::classify(&format!("syscall_{word}_{call}"), declared, facts)
        }
        _ => None,
    }
}

/// An integer of one to eight bytes.
pub(in crate::importers) fn number(
    bytes: &[u8],
    is_signed: bool,
    is_big_endian: bool,
) -> Option<i64> {
    let (len, mut wide) = (bytes.len(), [0; 8]);
    if !matches!(len, 1..=8) {
        return None;
    }
    if is_big_endian {
        wide[8 - len..].copy_from_slice(bytes);
        wide.reverse();
    } else {
        wide[..len].copy_from_slice(bytes);
    }
    let value = u64::from_le_bytes(wide);
    let shift = 64 - 8 * len as u32;
    Some(if is_signed {
        (value << shift) as i64 >> shift
    } else {
        value as i64
    })
}

fn until_zero(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == 0);
    &bytes[..end.unwrap_or(bytes.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_size_and_order() {
        assert_eq!(number(&[0xff], true, false), Some(-1));
        assert_eq!(number(&[0xff], false, false), Some(255));
        assert_eq!(number(&[1, 2], false, false), Some(0x201));
        assert_eq!(number(&[1, 2], false, true), Some(0x102));
        assert_eq!(number(&[0xff; 8], false, false), Some(-1));
        assert_eq!(number(&[], false, false), None);
        assert_eq!(number(&[0; 9], false, false), None);
    }

    #[test]
    fn the_interrupt_is_read_from_the_common_flags() {
        let with = "name: sched_waking\nID: 7\nformat:\n\
            \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n";
        let interrupt = |format: &str, raw: &[u8]| {
            let format = Format::parse("sched", format).expect("a format");
            RawClass::new(&format, Facts::default(), false, |_| true).interrupt(raw)
        };
        assert_eq!(interrupt(with, &[7, 0, 0x01]), Some(Interrupt::None));
        assert_eq!(interrupt(with, &[7, 0, 0x09]), Some(Interrupt::Hard));
        assert_eq!(interrupt(with, &[7, 0, 0x18]), Some(Interrupt::Hard));
        assert_eq!(interrupt(with, &[7, 0, 0x11]), Some(Interrupt::Soft));
        assert_eq!(interrupt(with, &[7, 0, 0x40]), Some(Interrupt::Hard));
        assert_eq!(interrupt(with, &[7, 0]), None);
        let without = "name: sched_waking\nID: 7\nformat:\n";
        assert_eq!(interrupt(without, &[7, 0, 0x08]), None);
    }

    #[test]
    fn a_wakeup_is_read_from_its_bytes() {
        let format = "name: sched_wakeup\nID: 7\nformat:\n\
            \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
            \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
            \tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n\
            \tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n";
        let format = Format::parse("sched", format).expect("a format");
        let class = RawClass::new(&format, Facts::default(), false, |_| true);
        let mut raw = vec![0; 8];
        raw.extend(b"worker\0\0\0\0\0\0\0\0\0\0");
        raw.extend([77, 0, 0, 0, 120, 0, 0, 0, 1, 0, 0, 0]);
        let (mut arrays, mut args) = (ArrayBuffer::default(), None);
        let body = class.body(&raw, &mut arrays, &mut args);
        let Some(Body::SchedWakeup {
            tid,
            comm,
            prio,
            target_cpu,
            ..
        }) = body
        else {
            panic!("{body:?}");
        };
        assert_eq!(
            (tid, comm, prio, target_cpu),
            (77, &b"worker"[..], Some(120), Some(1))
        );
        // A truncated event is ignored without harm.
        for end in 0..raw.len() {
            let (mut arrays, mut args) = (ArrayBuffer::default(), None);
            let body = class.body(&raw[..end], &mut arrays, &mut args);
            assert!(body.is_none(), "{end}");
        }
    }

    #[test]
    fn a_place_elsewhere_may_lie() {
        let format = "name: sched_process_exec\nID: 7\nformat:\n\
            \tfield:__data_loc char[] filename;\toffset:8;\tsize:4;\tsigned:0;\n\
            \tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;\n";
        let format = Format::parse("sched", format).expect("a format");
        let class = RawClass::new(&format, Facts::default(), false, |_| true);
        let raw = |at: u16, size: u16| {
            let mut raw = vec![0; 8];
            raw.extend(at.to_le_bytes());
            raw.extend(size.to_le_bytes());
            raw.extend([5, 0, 0, 0]);
            raw.extend(b"/bin/sh\0");
            raw
        };
        let is_read = |raw: &[u8]| {
            let (mut arrays, mut args) = (ArrayBuffer::default(), None);
            class.body(raw, &mut arrays, &mut args).is_some()
        };
        assert!(is_read(&raw(16, 8)));
        assert!(!is_read(&raw(16, 9)));
        assert!(!is_read(&raw(u16::MAX, u16::MAX)));
    }
}
