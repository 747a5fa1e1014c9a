//! Records of integers, appended row by row and read by column.
//!
//! Integers are LEB128 varints: seven bits a byte, lowest first; the high bit is set in all bytes
//! but the last. A block holds the length of each column, in order, and then the columns: similar
//! values are adjacent, and constant columns cost nothing once compressed.

/// Appends a varint.
#[inline]
pub(crate) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Zigzag encoding: small numbers of either sign become small unsigned ones.
#[inline]
pub(crate) fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

#[inline]
pub(crate) fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// The bytes that remain to be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'b>(pub(crate) &'b [u8]);

impl<'b> Cursor<'b> {
    /// `None` at the end of the bytes, or if the varint exceeds 64 bits.
    #[inline]
    pub(crate) fn number(&mut self) -> Option<u64> {
        let (&first, rest) = self.0.split_first()?;
        if first < 0x80 {
            self.0 = rest;
            return Some(u64::from(first));
        }
        self.long_number()
    }

    fn long_number(&mut self) -> Option<u64> {
        let mut number = 0;
        for (place, byte) in self.0.iter().enumerate().take(10) {
            let part = u64::from(byte & 0x7f);
            if place == 9 && part > 1 {
                return None;
            }
            number |= part << (7 * place);
            if *byte < 0x80 {
                self.0 = &self.0[place + 1..];
                return Some(number);
            }
        }
        None
    }

    pub(crate) fn signed(&mut self) -> Option<i64> {
        self.number().map(unzigzag)
    }

    pub(crate) fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }
}

/// Transposes complete records of `N` numbers each into columns.
pub(crate) fn transpose<const N: usize>(records: &[u8], columns: &mut [Vec<u8>; N]) {
    for column in columns.iter_mut() {
        column.clear();
    }
    let (mut begin, mut column) = (0, 0);
    for (at, byte) in records.iter().enumerate() {
        if *byte < 0x80 {
            columns[column].extend_from_slice(&records[begin..=at]);
            begin = at + 1;
            column = if column + 1 == N { 0 } else { column + 1 };
        }
    }
}

/// Splits a block, which starts with the lengths of its columns, into the columns.
pub(crate) fn split<'b, const N: usize>(block: &mut Cursor<'b>) -> Option<[Cursor<'b>; N]> {
    let mut lengths = [0; N];
    for length in &mut lengths {
        *length = usize::try_from(block.number()?).ok()?;
    }
    let mut columns = [Cursor(&[]); N];
    for (column, length) in columns.iter_mut().zip(lengths) {
        *column = Cursor(block.take(length)?);
    }
    Some(columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(numbers: Vec<u64>) {
            let mut bytes = Vec::new();
            for number in &numbers {
                put(&mut bytes, *number);
            }
            let mut cursor = Cursor(&bytes);
            for number in numbers {
                prop_assert_eq!(cursor.number(), Some(number));
            }
            prop_assert_eq!(cursor.number(), None);
        }

        #[test]
        fn signs_come_back(number: i64) {
            prop_assert_eq!(unzigzag(zigzag(number)), number);
        }

        #[test]
        fn any_bytes_are_read_to_their_end(bytes: Vec<u8>) {
            let mut cursor = Cursor(&bytes);
            while cursor.number().is_some() {}
            let _ = split::<4>(&mut Cursor(&bytes));
        }

        #[test]
        fn columns_are_those_of_the_records(records: Vec<(u64, u64, u64)>) {
            let mut bytes = Vec::new();
            for (a, b, c) in &records {
                for number in [a, b, c] {
                    put(&mut bytes, *number);
                }
            }
            let mut columns = [const { Vec::new() }; 3];
            transpose(&bytes, &mut columns);
            let [mut a, mut b, mut c] = columns.each_ref().map(|column| Cursor(column));
            for record in records {
                let read = (a.number(), b.number(), c.number());
                prop_assert_eq!(read, (Some(record.0), Some(record.1), Some(record.2)));
            }
        }
    }
}
