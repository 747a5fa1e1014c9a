//! Executes a [`Plan`] on bytes.

use super::class::ByteOrder;
use super::decoded::Slot;
use super::plan::{
    BytesKind, Choice, Count, Element, Load, LoadKind, Meaning, NO_SLOT, NOTHING_ELSE, Number,
    OddLoad, Op, Plan,
};

/// A window has so many bytes more than it says, so that a word can be read at its last byte.
pub(super) const PADDING_BYTES: usize = 16;
/// Numbers in one column of one event.
const COLUMN_LENGTH_MAX: usize = 1 << 22;

/// Why decoding stopped inside a structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The window ended first.
    Short,
    /// No option of a variant goes with its selector, or a length is absurd.
    Invalid,
}

/// Where a stream is, and what its bytes said so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Cursor {
    /// Bits from the begin of the window.
    pub(super) at: usize,
    pub(super) end: usize,
    /// Class id that the last event header told.
    pub(super) event_id: u64,
    /// Clock of the stream, in cycles.
    pub(super) cycles: u64,
    /// Values of lengths and selectors.
    pub(super) registers: Vec<u64>,
}

impl Cursor {
    /// Takes over the lowest bits of the clock: it can only have gone forward.
    #[inline]
    pub(super) fn advance_clock(&mut self, value: u64, bits: u32) {
        if bits >= 64 {
            self.cycles = value;
            return;
        }
        let mask = (1_u64 << bits) - 1;
        let value = value & mask;
        let wrapped = value < self.cycles & mask;
        let high = self.cycles & !mask;
        self.cycles = (high | value).wrapping_add(if wrapped { mask + 1 } else { 0 });
    }
}

/// Where decoded values go.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub(super) slots: Vec<Slot>,
    pub(super) columns: Vec<Vec<u64>>,
}

impl Output {
    /// Makes room for what the plan gives.
    pub(super) fn reserve(&mut self, plan: &Plan) {
        if self.slots.len() < plan.slots {
            self.slots.resize(plan.slots, Slot::Absent);
        }
        if self.columns.len() < plan.columns {
            self.columns.resize_with(plan.columns, Vec::new);
        }
    }
}

/// Decodes one structure (or several that follow one another) at the cursor.
///
/// The window holds [`PADDING_BYTES`] more than the cursor's end.
#[inline]
pub(super) fn decode(
    plan: &Plan,
    window: &[u8],
    cursor: &mut Cursor,
    output: &mut Output,
) -> Result<(), Stop> {
    for &(slot, value) in &plan.resets {
        output.slots[slot as usize] = value;
    }
    for &column in &plan.clears {
        output.columns[column as usize].clear();
    }
    let mut execution = Execution {
        plan,
        window,
        cursor,
        output,
        is_overfull: false,
    };
    execution.operations(0, plan.ops.len())?;
    for &(from, to) in &plan.copies {
        output.slots[to as usize] = output.slots[from as usize];
    }
    Ok(())
}

struct Execution<'a> {
    plan: &'a Plan,
    window: &'a [u8],
    cursor: &'a mut Cursor,
    output: &'a mut Output,
    /// A column reached its limit.
    is_overfull: bool,
}

impl Execution<'_> {
    fn operations(&mut self, begin: usize, end: usize) -> Result<(), Stop> {
        let plan = self.plan;
        let mut next = begin;
        while next < end {
            let op = plan.ops[next];
            next += 1;
            match op {
                Op::Run { bits, first, count } => self.run(bits, first, count)?,
                Op::Align { bits } => {
                    let bits = bits as usize;
                    let aligned = (self.cursor.at + bits - 1) & !(bits - 1);
                    if aligned > self.cursor.end {
                        return Err(Stop::Short);
                    }
                    self.cursor.at = aligned;
                }
                Op::Text { unit_bytes, slot } => self.text(unit_bytes as usize, slot)?,
                Op::Leb { signed, slot, also } => self.leb(signed, slot, also)?,
                Op::Bytes { count, kind, slot } => self.bytes(self.count(count), kind, slot)?,
                Op::Ints {
                    count,
                    element,
                    slot,
                    column,
                } => {
                    self.integers(self.count(count), &element, slot, column)?;
                }
                Op::Repeat { count, ops } => {
                    let after = next + ops as usize;
                    self.repeat(self.count(count), next, after)?;
                    next = after;
                }
                Op::Choose {
                    selector,
                    bias,
                    first,
                    count,
                    ops,
                    optional,
                } => {
                    let value = self.cursor.registers[selector as usize] ^ bias;
                    let choices = &plan.choices[first as usize..(first + count) as usize];
                    match chosen(plan, choices, value) {
                        Some(choice) => {
                            self.operations(choice.ops.0 as usize, choice.ops.1 as usize)?;
                        }
                        None if optional => {}
                        None => return Err(Stop::Invalid),
                    }
                    next += ops as usize;
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn run(&mut self, bits: u32, first: u32, count: u32) -> Result<(), Stop> {
        let begin = self.cursor.at;
        let end = begin + bits as usize;
        if end > self.cursor.end {
            return Err(Stop::Short);
        }
        self.cursor.at = end;
        for load in &self.plan.loads[first as usize..(first + count) as usize] {
            self.load(load, begin + load.offset as usize);
        }
        Ok(())
    }

    #[inline]
    fn load(&mut self, load: &Load, at: usize) {
        let bits = u32::from(load.bits);
        let value = match load.kind {
            LoadKind::UnsignedLittle => Slot::Unsigned(unsigned_little(self.window, at, bits)),
            LoadKind::SignedLittle => {
                let value = unsigned_little(self.window, at, bits);
                Slot::Signed(sign_extended(value, bits))
            }
            LoadKind::UnsignedBig => Slot::Unsigned(unsigned_big(self.window, at, bits)),
            LoadKind::SignedBig => {
                let value = unsigned_big(self.window, at, bits);
                Slot::Signed(sign_extended(value, bits))
            }
            LoadKind::Bytes(kind) => bytes_slot(self.window, at / 8, load.extent as usize, kind),
            LoadKind::Odd => odd(self.window, at, self.plan.odd[load.extent as usize]),
        };
        if load.slot != NO_SLOT {
            self.output.slots[load.slot as usize] = value;
        }
        if load.also != NOTHING_ELSE {
            self.also(load.also, value);
        }
    }

    fn also(&mut self, also: u16, value: Slot) {
        let number = match value {
            Slot::Unsigned(value) => value,
            Slot::Signed(value) => value as u64,
            _ => return,
        };
        let also = self.plan.also[also as usize];
        if let Some(register) = also.register {
            self.cursor.registers[register as usize] = number;
        }
        match also.meaning {
            Meaning::None => {}
            Meaning::EventClassId => self.cursor.event_id = number,
            Meaning::Time { bits } => self.cursor.advance_clock(number, bits),
            Meaning::Element { column } => {
                let column = &mut self.output.columns[column as usize];
                if column.len() < COLUMN_LENGTH_MAX {
                    column.push(number);
                } else {
                    self.is_overfull = true;
                }
            }
        }
    }

    fn count(&self, count: Count) -> u64 {
        match count {
            Count::Fixed(count) => count,
            Count::Register(register) => self.cursor.registers[register as usize],
        }
    }

    fn text(&mut self, unit_bytes: usize, slot: u16) -> Result<(), Stop> {
        let begin = self.cursor.at / 8;
        let rest = &self.window[begin..(self.cursor.end / 8).max(begin)];
        let len = zero_unit(rest, unit_bytes);
        let len = len.ok_or(Stop::Short)?;
        self.cursor.at = (begin + len + unit_bytes) * 8;
        if slot != NO_SLOT {
            self.output.slots[slot as usize] = Slot::Str {
                begin: begin as u32,
                len: len as u32,
            };
        }
        Ok(())
    }

    fn leb(&mut self, signed: bool, slot: u16, also: u16) -> Result<(), Stop> {
        let mut value = 0_u64;
        let mut shift = 0;
        loop {
            if self.cursor.at + 8 > self.cursor.end {
                return Err(Stop::Short);
            }
            let byte = self.window[self.cursor.at / 8];
            self.cursor.at += 8;
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
            }
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
            if shift > 64 * 7 {
                return Err(Stop::Invalid);
            }
        }
        let value = if signed {
            Slot::Signed(sign_extended(value, shift.min(64)))
        } else {
            Slot::Unsigned(value)
        };
        if slot != NO_SLOT {
            self.output.slots[slot as usize] = value;
        }
        if also != NOTHING_ELSE {
            self.also(also, value);
        }
        Ok(())
    }

    fn bytes(&mut self, bytes: u64, kind: BytesKind, slot: u16) -> Result<(), Stop> {
        let begin = self.cursor.at / 8;
        let rest = (self.cursor.end - self.cursor.at) as u64 / 8;
        if bytes > rest {
            return Err(Stop::Short);
        }
        self.cursor.at += bytes as usize * 8;
        if slot != NO_SLOT {
            self.output.slots[slot as usize] = bytes_slot(self.window, begin, bytes as usize, kind);
        }
        Ok(())
    }

    fn integers(
        &mut self,
        count: u64,
        element: &Element,
        slot: u16,
        column: u16,
    ) -> Result<(), Stop> {
        if let Some(kind) = element.as_bytes
            && self.cursor.at.is_multiple_of(8)
        {
            return self.bytes(count, kind, slot);
        }
        let begin = self.cursor.at;
        let bits = u64::from(element.load.bits);
        let stride = u64::from(element.stride_bits);
        let total = match count {
            0 => 0,
            _ => (count - 1)
                .checked_mul(stride)
                .map_or(u64::MAX, |all| all.saturating_add(bits)),
        };
        if total > (self.cursor.end - begin) as u64 {
            return Err(Stop::Short);
        }
        self.cursor.at = begin + total as usize;
        if slot == NO_SLOT {
            return Ok(());
        }
        let column_len = self.output.columns[column as usize].len();
        if column_len as u64 + count > COLUMN_LENGTH_MAX as u64 {
            return Err(Stop::Invalid);
        }
        let (window, plan) = (self.window, self.plan);
        let numbers = (0..count as usize)
            .map(|index| number(plan, window, begin + index * stride as usize, &element.load));
        self.output.columns[column as usize].extend(numbers);
        self.output.slots[slot as usize] = Slot::Ints {
            column: u32::from(column),
        };
        Ok(())
    }

    fn repeat(&mut self, count: u64, begin: usize, end: usize) -> Result<(), Stop> {
        for _ in 0..count {
            let before = self.cursor.at;
            self.operations(begin, end)?;
            if self.cursor.at == before {
                // Nothing in an element: so it is with all the others.
                break;
            }
            if self.is_overfull {
                return Err(Stop::Invalid);
            }
        }
        Ok(())
    }
}

#[inline]
fn chosen(plan: &Plan, choices: &[Choice], value: u64) -> Option<Choice> {
    choices.iter().copied().find(|choice| {
        plan.ranges[choice.ranges.0 as usize..choice.ranges.1 as usize]
            .iter()
            .any(|&(first, last)| first <= value && value <= last)
    })
}

/// A number of an array, sign-extended to 64 bits.
#[inline]
fn number(plan: &Plan, window: &[u8], at: usize, load: &Load) -> u64 {
    let bits = u32::from(load.bits);
    match load.kind {
        LoadKind::UnsignedLittle => unsigned_little(window, at, bits),
        LoadKind::SignedLittle => sign_extended(unsigned_little(window, at, bits), bits) as u64,
        LoadKind::UnsignedBig => unsigned_big(window, at, bits),
        LoadKind::SignedBig => sign_extended(unsigned_big(window, at, bits), bits) as u64,
        LoadKind::Bytes(_) => 0,
        LoadKind::Odd => match odd(window, at, plan.odd[load.extent as usize]) {
            Slot::Unsigned(value) => value,
            Slot::Signed(value) => value as u64,
            _ => 0,
        },
    }
}

#[inline]
fn bytes_slot(window: &[u8], begin: usize, room: usize, kind: BytesKind) -> Slot {
    match kind {
        BytesKind::Blob => Slot::Bytes {
            begin: begin as u32,
            len: room as u32,
        },
        BytesKind::Text { unit_bytes } => {
            let len = zero_unit(&window[begin..begin + room], usize::from(unit_bytes));
            Slot::Str {
                begin: begin as u32,
                len: len.unwrap_or(room) as u32,
            }
        }
    }
}

/// Where the first unit is of which all bytes are zero.
#[inline]
fn zero_unit(bytes: &[u8], unit_bytes: usize) -> Option<usize> {
    if unit_bytes == 1 {
        return memchr::memchr(0, bytes);
    }
    let is_zero = |unit: &[u8]| unit.iter().all(|&byte| byte == 0);
    bytes
        .chunks_exact(unit_bytes)
        .position(is_zero)
        .map(|units| units * unit_bytes)
}

#[inline]
fn word(window: &[u8], byte: usize) -> [u8; 8] {
    let bytes = &window[byte..byte + 8];
    bytes
        .try_into()
        .expect("a slice of eight bytes is eight bytes")
}

/// The number of `bits` (1 to 64) that lies in the eight bytes at bit `at`.
#[inline]
fn unsigned_little(window: &[u8], at: usize, bits: u32) -> u64 {
    let shifted = u64::from_le_bytes(word(window, at / 8)) >> (at % 8);
    let unused = 64 - bits;
    shifted << unused >> unused
}

#[inline]
fn unsigned_big(window: &[u8], at: usize, bits: u32) -> u64 {
    u64::from_be_bytes(word(window, at / 8)) << (at % 8) >> (64 - bits)
}

#[inline]
fn sign_extended(value: u64, bits: u32) -> i64 {
    let unused = 64 - bits;
    (value << unused) as i64 >> unused
}

/// A number that needs more than a word, floats and bits in unusual order.
#[cold]
fn odd(window: &[u8], at: usize, class: OddLoad) -> Slot {
    let bytes: [u8; 16] = window[at / 8..at / 8 + 16]
        .try_into()
        .expect("a slice of sixteen bytes is sixteen bytes");
    let (shift, bits) = ((at % 8) as u32, class.bits);
    let mut value = match class.byte_order {
        ByteOrder::Little => (u128::from_le_bytes(bytes) >> shift) as u64,
        ByteOrder::Big => (u128::from_be_bytes(bytes) << shift >> (128 - bits)) as u64,
    };
    value = value << (64 - bits) >> (64 - bits);
    if class.reversed {
        value = value.reverse_bits() >> (64 - bits);
    }
    match class.number {
        Number::Unsigned => Slot::Unsigned(value),
        Number::Signed => Slot::Signed(sign_extended(value, bits)),
        Number::Float => match bits {
            16 => Slot::Float(half(value as u16)),
            32 => Slot::Float(f64::from(f32::from_bits(value as u32))),
            64 => Slot::Float(f64::from_bits(value)),
            _ => Slot::Absent,
        },
    }
}

/// IEEE 754 binary16.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f64::from(bits & 0x3ff) / 1024.0;
    sign * match exponent {
        0 => fraction * 2_f64.powi(-14),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction) * 2_f64.powi(exponent - 15),
    }
}
