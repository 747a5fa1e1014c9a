//! Line of an instruction, for the three forms of CPython's line tables.

use super::layout::Lines;

/// The line at an offset in the code, in bytes; `None` if the table has none, or ends.
pub(super) fn line(table: &[u8], form: Lines, (first, place): (u32, u32)) -> Option<u32> {
    let line = match form {
        Lines::Steps => Some(steps(table, i64::from(first), place)),
        Lines::Ranges => ranges(table, i64::from(first), place),
        Lines::Locations => locations(table, i64::from(first), place),
    };
    u32::try_from(line?).ok().filter(|line| *line > 0)
}

/// Pairs: increment of the offset, increment of the line.
fn steps(table: &[u8], first: i64, place: u32) -> i64 {
    let (mut line, mut at) = (first, 0);
    for pair in table.chunks_exact(2) {
        at += u32::from(pair[0]);
        if at > place {
            break;
        }
        line += i64::from(pair[1] as i8);
    }
    line
}

/// Pairs: the next bytes, and the increment of the line; -128 is no line.
fn ranges(table: &[u8], first: i64, place: u32) -> Option<i64> {
    const NONE: i8 = -128;
    let (mut line, mut end) = (first, 0);
    for pair in table.chunks_exact(2) {
        let delta = pair[1] as i8;
        end += u32::from(pair[0]);
        if delta != NONE {
            line += i64::from(delta);
        }
        if place < end {
            return (delta != NONE).then_some(line);
        }
    }
    None
}

/// Entries of variable length, the first byte of each with its highest bit set: a code, and the
/// number of two-byte units covered. Columns follow, which are ignored.
fn locations(table: &[u8], first: i64, place: u32) -> Option<i64> {
    const FIRST: u8 = 0x80;
    let (mut line, mut end) = (first, 0);
    let mut rest = table;
    while let Some((head, after)) = rest.split_first() {
        let length = after.iter().position(|byte| byte & FIRST != 0);
        let (body, next) = after.split_at(length.unwrap_or(after.len()));
        rest = next;
        end += (u32::from(head & 7) + 1) * 2;
        let delta = match head >> 3 & 15 {
            15 => None,
            13 | 14 => Some(signed(body)),
            code @ 10..=12 => Some(i64::from(code) - 10),
            _ => Some(0),
        };
        line = line.checked_add(delta.unwrap_or(0))?;
        if place < end {
            return delta.map(|_| line);
        }
    }
    None
}

/// Six bits a byte, lowest first, for as long as the next bit is set; the lowest bit is the sign.
fn signed(bytes: &[u8]) -> i64 {
    const MORE: u8 = 0x40;
    let (mut value, mut shift) = (0u64, 0);
    for byte in bytes.iter().take(10) {
        value |= u64::from(byte & 0x3f) << shift;
        shift += 6;
        if byte & MORE == 0 {
            break;
        }
    }
    let size = (value >> 1) as i64;
    if value & 1 == 1 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_tells_lines() {
        let steps = [4, 1, 6, 255, 2, 10];
        let at = |place| line(&steps, Lines::Steps, (7, place));
        assert_eq!(
            [at(0), at(4), at(9), at(10), at(99)],
            [7, 8, 8, 7, 17].map(Some)
        );
        let ranges = [4, 1, 2, 0x80, 2, 255];
        let at = |place| line(&ranges, Lines::Ranges, (7, place));
        assert_eq!(
            [at(0), at(3), at(4), at(6), at(8)],
            [Some(8), Some(8), None, Some(7), None]
        );
        // Short (two units), none (one), one line ahead (one), far back (one).
        let locations = [0x81, 0x10, 0xf8, 0xd8, 3, 9, 0xe8, 0x0d];
        let at = |place| line(&locations, Lines::Locations, (7, place));
        assert_eq!(
            [at(0), at(3), at(4), at(6), at(8), at(10)],
            [Some(7), Some(7), None, Some(8), Some(2), None]
        );
    }

    #[test]
    fn tables_without_sense_have_no_line() {
        for form in [Lines::Steps, Lines::Ranges, Lines::Locations] {
            for length in 0..64 {
                let table = vec![0xff; length];
                let _ = line(&table, form, (u32::MAX, u32::MAX));
                let table = vec![0xe8; length];
                let _ = line(&table, form, (0, 9));
            }
        }
    }
}
