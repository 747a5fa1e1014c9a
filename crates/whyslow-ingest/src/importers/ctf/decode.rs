//! Executes a [`Plan`] on bytes.

use super::bits::{
    Places, append_numbers, bytes_slot, first_zero, integer, other_slot, sign_extended, zero_unit,
};
use super::plan::{
    BytesKind, Choice, Count, Element, Load, Meaning, NO_SLOT, NOTHING_ELSE, Op, Plan, Rows,
};
use super::slot::{Slot, SlotKind};

/// Additional bytes at the end of a window, so that a word can be read at its last byte.
pub(super) const PADDING_BYTES: usize = 16;
/// Maximum number of values in one column of one event.
const COLUMN_LENGTH_MAX: usize = 1 << 22;

/// Reason why decoding stopped inside a structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// End of the window.
    Short,
    /// No option of a variant matches its selector, or a length is implausible.
    Invalid,
}

/// Position in a stream, and the state decoded so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Cursor {
    /// Bits from the start of the window.
    pub(super) at: usize,
    pub(super) end: usize,
    /// Class id in the last event header.
    pub(super) event_id: u64,
    /// Clock of the stream, in cycles.
    pub(super) cycles: u64,
    /// Values of lengths and selectors.
    pub(super) registers: Vec<u64>,
}

impl Cursor {
    /// Updates the lowest bits of the clock, which only moves forward.
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

/// Receives decoded values.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub(super) slots: Vec<Slot>,
    pub(super) columns: Vec<Vec<u64>>,
}

impl Output {
    /// Reserves space for the results of the plan.
    pub(super) fn reserve(&mut self, plan: &Plan) {
        if self.slots.len() < plan.slots {
            self.slots.resize(plan.slots, Slot::ABSENT);
        }
        if self.columns.len() < plan.columns {
            self.columns.resize_with(plan.columns, Vec::new);
        }
    }
}

/// Decodes one structure (or several consecutive ones) at the cursor.
///
/// The window has [`PADDING_BYTES`] after the cursor's end.
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
    /// Runs and strings are by far the most frequent, so they are tested first: the processor
    /// predicts such branches better than a jump to one of eight targets.
    fn operations(&mut self, begin: usize, end: usize) -> Result<(), Stop> {
        let plan = self.plan;
        let mut next = begin;
        while next < end {
            let op = &plan.ops[next];
            next += 1;
            if let Op::Run { bits, first, count } = *op {
                self.run(bits, first, count)?;
            } else if let Op::Text {
                unit_bytes: 1,
                slot,
            } = *op
            {
                self.text(slot)?;
            } else {
                next = self.other(op, next)?;
            }
        }
        Ok(())
    }

    /// Executes the operation before `next`; returns the next one.
    fn other(&mut self, op: &Op, next: usize) -> Result<usize, Stop> {
        match *op {
            Op::Run { .. } => unreachable!("runs are executed by the caller"),
            Op::Align { bits } => {
                let bits = bits as usize;
                let aligned = (self.cursor.at + bits - 1) & !(bits - 1);
                if aligned > self.cursor.end {
                    return Err(Stop::Short);
                }
                self.cursor.at = aligned;
            }
            Op::Text { unit_bytes, slot } => self.wide_text(unit_bytes as usize, slot)?,
            Op::Leb { signed, slot, also } => self.leb(signed, slot, also)?,
            Op::Bytes { count, kind, slot } => self.bytes(self.count(count), kind, slot)?,
            Op::Ints {
                count,
                ref element,
                slot,
                column,
            } => {
                self.integers(self.count(count), element, slot, column)?;
            }
            Op::Rows { count, rows } => self.rows(self.count(count), rows)?,
            Op::Repeat { count, ops } => {
                let after = next + ops as usize;
                self.repeat(self.count(count), next, after)?;
                return Ok(after);
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
                let choices = &self.plan.choices[first as usize..(first + count) as usize];
                match chosen(self.plan, choices, value) {
                    Some(choice) => {
                        self.operations(choice.ops.0 as usize, choice.ops.1 as usize)?;
                    }
                    None if optional => {}
                    None => return Err(Stop::Invalid),
                }
                return Ok(next + ops as usize);
            }
        }
        Ok(next)
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

    /// The parts of a slot are written individually: building it on the stack and copying it takes
    /// twice the time, because the copy waits for the parts.
    #[inline]
    fn load(&mut self, load: &Load, at: usize) {
        if load.kind.is_integer() {
            let bits = integer(self.window, at, load);
            if let Some(place) = self.output.slots.get_mut(load.slot as usize) {
                place.kind = load.gives;
                place.bits = bits;
            }
            if load.also != NOTHING_ELSE {
                self.also(load.also, bits);
            }
        } else {
            self.load_other(load, at);
        }
    }

    fn load_other(&mut self, load: &Load, at: usize) {
        let slot = other_slot(self.plan, self.window, at, load);
        self.put(load.slot, slot);
        if load.also != NOTHING_ELSE
            && let Some(number) = slot.integer()
        {
            self.also(load.also, number);
        }
    }

    /// Stores the value for the consumer, if needed.
    #[inline]
    fn put(&mut self, slot: u16, value: Slot) {
        if let Some(place) = self.output.slots.get_mut(slot as usize) {
            place.kind = value.kind;
            place.len = value.len;
            place.bits = value.bits;
        }
    }

    fn also(&mut self, also: u16, number: u64) {
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

    #[inline]
    fn text(&mut self, slot: u16) -> Result<(), Stop> {
        let begin = self.cursor.at / 8;
        let rest = &self.window[begin..(self.cursor.end / 8).max(begin)];
        let len = first_zero(rest).ok_or(Stop::Short)?;
        self.cursor.at = (begin + len + 1) * 8;
        let (len, bits) = (len as u32, begin as u64);
        self.put(
            slot,
            Slot {
                kind: SlotKind::Str,
                len,
                bits,
            },
        );
        Ok(())
    }

    fn wide_text(&mut self, unit_bytes: usize, slot: u16) -> Result<(), Stop> {
        let begin = self.cursor.at / 8;
        let rest = &self.window[begin..(self.cursor.end / 8).max(begin)];
        let len = zero_unit(rest, unit_bytes).ok_or(Stop::Short)?;
        self.cursor.at = (begin + len + unit_bytes) * 8;
        let (len, bits) = (len as u32, begin as u64);
        self.put(
            slot,
            Slot {
                kind: SlotKind::Str,
                len,
                bits,
            },
        );
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
        let (kind, bits) = if signed {
            (
                SlotKind::Signed,
                sign_extended(value, 64 - shift.min(64)) as u64,
            )
        } else {
            (SlotKind::Unsigned, value)
        };
        self.put(slot, Slot { kind, len: 0, bits });
        if also != NOTHING_ELSE {
            self.also(also, bits);
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
            let unit_bytes = match kind {
                BytesKind::Text { unit_bytes } => Some(usize::from(unit_bytes)),
                BytesKind::Blob => None,
            };
            self.output.slots[slot as usize] =
                bytes_slot(self.window, begin, bytes as usize, unit_bytes);
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
        let places = Places {
            first: begin,
            stride: stride as usize,
            count: count as usize,
        };
        let numbers = &mut self.output.columns[column as usize];
        append_numbers(plan, window, places, &element.load, numbers);
        self.output.slots[slot as usize] = Slot::ints(column);
        Ok(())
    }

    /// Column by column, so that the values of one are read in one loop.
    fn rows(&mut self, count: u64, rows: Rows) -> Result<(), Stop> {
        if count == 0 {
            return Ok(());
        }
        let alignment = rows.alignment as usize;
        let begin = (self.cursor.at + alignment - 1) & !(alignment - 1);
        let (bits, stride) = (u64::from(rows.bits), u64::from(rows.stride_bits));
        let total = (count - 1).saturating_mul(stride).saturating_add(bits);
        if begin > self.cursor.end || total > (self.cursor.end - begin) as u64 {
            return Err(Stop::Short);
        }
        self.cursor.at = begin + total as usize;
        let (window, plan) = (self.window, self.plan);
        for load in &plan.loads[rows.first as usize..(rows.first + rows.count) as usize] {
            let Meaning::Element { column } = plan.also[load.also as usize].meaning else {
                unreachable!("rows hold numbers of columns only");
            };
            let column = &mut self.output.columns[column as usize];
            if column.len() as u64 + count > COLUMN_LENGTH_MAX as u64 {
                return Err(Stop::Invalid);
            }
            let places = Places {
                first: begin + load.offset as usize,
                stride: stride as usize,
                count: count as usize,
            };
            append_numbers(plan, window, places, load, column);
        }
        Ok(())
    }

    fn repeat(&mut self, count: u64, begin: usize, end: usize) -> Result<(), Stop> {
        for _ in 0..count {
            let before = self.cursor.at;
            self.operations(begin, end)?;
            if self.cursor.at == before {
                // Empty elements: all others are empty, too.
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
