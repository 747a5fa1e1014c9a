//! Meaning of columns by name: the subject of a row, or a number in some unit.

use whyslow_model::counter::{CounterUnit, push_reported};

/// Meaning of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Role {
    /// A device, a CPU, a network interface, …
    Subject,
    Pid,
    Tid,
    /// The name of a program; in the last column it may contain spaces.
    Comm,
    /// Redundant next to the others.
    Skip,
    Value(Scale),
}

/// Conversion of a number to a counter value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    factor: f64,
    /// None: from the notation, a count without a decimal point and hundredths with one.
    unit: Option<CounterUnit>,
}

impl Eq for Scale {}

const KIB: f64 = 1024.0;
const SECTOR: f64 = 512.0;
const MS: f64 = 1e6;

const SUBJECTS: [&str; 15] = [
    "Device",
    "Device:",
    "DEV",
    "CPU",
    "NODE",
    "IFACE",
    "TTY",
    "INTR",
    "FILESYSTEM",
    "BUS",
    "FAN",
    "TEMP",
    "IN",
    "FCHOST",
    "CORE",
];

/// Names with an implied unit, and names without one.
const NAMED: [(&str, f64, CounterUnit); 29] = [
    ("await", MS, CounterUnit::Ns),
    ("r_await", MS, CounterUnit::Ns),
    ("w_await", MS, CounterUnit::Ns),
    ("d_await", MS, CounterUnit::Ns),
    ("f_await", MS, CounterUnit::Ns),
    ("svctm", MS, CounterUnit::Ns),
    ("areq-sz", KIB, CounterUnit::Bytes),
    ("rareq-sz", KIB, CounterUnit::Bytes),
    ("wareq-sz", KIB, CounterUnit::Bytes),
    ("dareq-sz", KIB, CounterUnit::Bytes),
    ("avgrq-sz", SECTOR, CounterUnit::Bytes),
    ("VSZ", KIB, CounterUnit::Bytes),
    ("RSS", KIB, CounterUnit::Bytes),
    ("StkSize", KIB, CounterUnit::Bytes),
    ("StkRef", KIB, CounterUnit::Bytes),
    ("bread/s", SECTOR, CounterUnit::BytesPerSecond),
    ("bwrtn/s", SECTOR, CounterUnit::BytesPerSecond),
    ("bdscd/s", SECTOR, CounterUnit::BytesPerSecond),
    ("rsec/s", SECTOR, CounterUnit::BytesPerSecond),
    ("wsec/s", SECTOR, CounterUnit::BytesPerSecond),
    ("Blk_read/s", SECTOR, CounterUnit::BytesPerSecond),
    ("Blk_wrtn/s", SECTOR, CounterUnit::BytesPerSecond),
    ("pgpgin/s", KIB, CounterUnit::BytesPerSecond),
    ("pgpgout/s", KIB, CounterUnit::BytesPerSecond),
    ("tps", 100.0, CounterUnit::HundredthsPerSecond),
    ("rtps", 100.0, CounterUnit::HundredthsPerSecond),
    ("wtps", 100.0, CounterUnit::HundredthsPerSecond),
    ("dtps", 100.0, CounterUnit::HundredthsPerSecond),
    ("MHz", 100.0, CounterUnit::Hundredths),
];

/// Columns of vmstat, which prints no units: KiB, and KiB per second.
const VMSTAT: [(&str, f64, CounterUnit); 19] = [
    ("swpd", KIB, CounterUnit::Bytes),
    ("free", KIB, CounterUnit::Bytes),
    ("buff", KIB, CounterUnit::Bytes),
    ("cache", KIB, CounterUnit::Bytes),
    ("inact", KIB, CounterUnit::Bytes),
    ("active", KIB, CounterUnit::Bytes),
    ("si", KIB, CounterUnit::BytesPerSecond),
    ("so", KIB, CounterUnit::BytesPerSecond),
    ("bi", KIB, CounterUnit::BytesPerSecond),
    ("bo", KIB, CounterUnit::BytesPerSecond),
    ("in", 100.0, CounterUnit::HundredthsPerSecond),
    ("cs", 100.0, CounterUnit::HundredthsPerSecond),
    ("us", 100.0, CounterUnit::Hundredths),
    ("sy", 100.0, CounterUnit::Hundredths),
    ("id", 100.0, CounterUnit::Hundredths),
    ("wa", 100.0, CounterUnit::Hundredths),
    ("st", 100.0, CounterUnit::Hundredths),
    ("gu", 100.0, CounterUnit::Hundredths),
    ("ni", 100.0, CounterUnit::Hundredths),
];

/// Columns of vmstat whose first row is current, not an average since boot.
pub(super) fn is_current(name: &str) -> bool {
    matches!(
        name,
        "r" | "b" | "swpd" | "free" | "buff" | "cache" | "inact" | "active"
    )
}

/// The meaning of a sysstat column.
pub(super) fn role(name: &str, has_process: bool) -> Role {
    match name {
        "PID" | "TGID" => Role::Pid,
        "TID" => Role::Tid,
        "Command" => Role::Comm,
        "UID" | "USER" | "PRIO" | "POLICY" => Role::Skip,
        "CPU" if has_process => Role::Skip,
        name if SUBJECTS.contains(&name) => Role::Subject,
        name => Role::Value(Scale::of(name)),
    }
}

impl Scale {
    pub(super) fn of(name: &str) -> Self {
        let (factor, unit) = Self::find(&NAMED, name).unwrap_or_else(|| by_spelling(name));
        Self { factor, unit }
    }

    pub(super) fn of_vmstat(name: &str) -> Self {
        let (factor, unit) = Self::find(&VMSTAT, name).unwrap_or((1.0, None));
        Self { factor, unit }
    }

    /// Of a number in this unit.
    pub(super) fn new(factor: f64, unit: CounterUnit) -> Self {
        let unit = Some(unit);
        Self { factor, unit }
    }

    fn find(table: &[(&str, f64, CounterUnit)], name: &str) -> Option<(f64, Option<CounterUnit>)> {
        let mut table = table.iter();
        let (_, factor, unit) = table.find(|(known, ..)| *known == name)?;
        Some((*factor, Some(*unit)))
    }

    /// Appends the value of a column; the error is the reason why it is invalid.
    pub(super) fn push(self, values: &mut String, name: &str, text: &str) -> Result<(), String> {
        if text == "-" {
            return Ok(());
        }
        let bad = || format!("`{text}` in column `{name}` is not a number");
        let (number, size) = number(text).ok_or_else(bad)?;
        let is_bytes = matches!(
            self.unit,
            Some(CounterUnit::Bytes | CounterUnit::BytesPerSecond)
        );
        let (factor, unit) = match (self.unit, size) {
            // With --human each size has its own unit, regardless of the header.
            (Some(unit), Some(size)) if is_bytes => (size, unit),
            (_, Some(size)) if size > 1.0 => (size, CounterUnit::Count),
            (Some(unit), _) => (self.factor, unit),
            (None, _) if text.contains(['.', ',']) => (100.0, CounterUnit::Hundredths),
            (None, _) => (1.0, CounterUnit::Count),
        };
        let value = (number * factor).round();
        // Beyond this, not every integer is representable.
        if value.abs() >= 9e15 {
            return Err(bad());
        }
        push_reported(values, (name, value as i64), unit);
        Ok(())
    }
}

/// Printed by pidstat for values that it cannot read: without root, or for a kernel thread.
pub(super) fn is_unreadable(text: &str) -> bool {
    number(text) == Some((-1.0, None))
}

/// `%util`, `rkB/s`, `kbmemfree`, `MBfsused`, `rxpck/s`.
fn by_spelling(name: &str) -> (f64, Option<CounterUnit>) {
    let is_rate = name.ends_with("/s");
    let size = if name.contains("kB") || name.starts_with("kb") {
        Some(KIB)
    } else if name.contains("MB") {
        Some(KIB * KIB)
    } else {
        None
    };
    match (size, is_rate) {
        (Some(size), true) => (size, Some(CounterUnit::BytesPerSecond)),
        (Some(size), false) => (size, Some(CounterUnit::Bytes)),
        (None, true) => (100.0, Some(CounterUnit::HundredthsPerSecond)),
        (None, false) if name.starts_with('%') => (100.0, Some(CounterUnit::Hundredths)),
        (None, false) => (1.0, None),
    }
}

/// `52.94`, `0,65`, `-1`, `98.0%`, `6.4M`: the number, and the factor of its suffix.
pub(super) fn number(text: &str) -> Option<(f64, Option<f64>)> {
    let (digits, size) = match text.char_indices().next_back()? {
        (at, '%') => (&text[..at], None),
        (at, 'k' | 'K') => (&text[..at], Some(KIB)),
        (at, 'm' | 'M') => (&text[..at], Some(KIB * KIB)),
        (at, 'g' | 'G') => (&text[..at], Some(KIB * KIB * KIB)),
        (at, 't' | 'T') => (&text[..at], Some(KIB * KIB * KIB * KIB)),
        (at, 'B') => (&text[..at], Some(1.0)),
        _ => (text, None),
    };
    let plain = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b',' | b'-');
    if digits.is_empty() || digits.len() > 24 || !digits.bytes().all(plain) {
        return None;
    }
    let number: f64 = digits.replace(',', ".").parse().ok()?;
    number.is_finite().then_some((number, size))
}
