//! Time series: sums over many columns of equal width.

use crate::limits;
use crate::store::columns::put;
use crate::store::directory::Extent;
use crate::store::pages::PageWriter;

/// Number of series: busy CPUs, threads in uninterruptible sleep, block I/O bytes, block requests
/// in flight, system calls.
pub(crate) const LINES: usize = 5;

/// Time spent in each column. A long interval costs as much as a short one: it updates the columns
/// at its ends, and a prefix sum adds the columns in between at the end.
#[derive(Debug)]
struct Spans {
    edges: Vec<u64>,
    changes: Vec<i64>,
}

impl Spans {
    fn new(columns: usize) -> Self {
        Self {
            edges: vec![0; columns],
            changes: vec![0; columns + 1],
        }
    }

    #[inline]
    fn add(&mut self, begin: u64, end: u64, bits: u8) {
        if end <= begin {
            return;
        }
        let (first, last) = (begin >> bits, (end - 1) >> bits);
        let mut edge = |column: u64, length: u64| {
            let sum = &mut self.edges[column as usize];
            *sum = sum.saturating_add(length);
        };
        if first == last {
            edge(first, end - begin);
            return;
        }
        edge(first, ((first + 1) << bits) - begin);
        edge(last, end - (last << bits));
        self.changes[first as usize + 1] += 1;
        self.changes[last as usize] -= 1;
    }

    fn into_sums(self, bits: u8) -> Vec<u64> {
        let mut covering = 0;
        let sums = self.edges.iter().zip(&self.changes).map(|(edge, change)| {
            covering += change;
            edge.saturating_add((covering.max(0) as u64).saturating_mul(1 << bits))
        });
        sums.collect()
    }
}

#[derive(Debug)]
pub(crate) struct SeriesBuilder {
    bits: u8,
    spans: [Spans; 3],
    bytes: Vec<u64>,
    calls: Vec<u64>,
}

impl SeriesBuilder {
    pub(crate) fn new(bits: u8, length: u64) -> Self {
        let columns = (length >> bits) as usize + 1;
        Self {
            bits,
            spans: std::array::from_fn(|_| Spans::new(columns)),
            bytes: vec![0; columns],
            calls: vec![0; columns],
        }
    }

    #[inline]
    pub(crate) fn busy(&mut self, begin: u64, end: u64) {
        self.spans[0].add(begin, end, self.bits);
    }

    #[inline]
    pub(crate) fn blocked(&mut self, begin: u64, end: u64) {
        self.spans[1].add(begin, end, self.bits);
    }

    /// Adds a request, and its bytes at its end if that is known.
    #[inline]
    pub(crate) fn request(&mut self, begin: u64, end: u64, bytes: Option<i64>) {
        self.spans[2].add(begin, end, self.bits);
        if let Some(bytes) = bytes {
            let sum = &mut self.bytes[(end >> self.bits) as usize];
            *sum = sum.saturating_add(bytes.max(0) as u64);
        }
    }

    #[inline]
    pub(crate) fn call(&mut self, begin: u64) {
        self.calls[(begin >> self.bits) as usize] += 1;
    }

    /// Writes all series; those of tables that were not recorded are empty.
    pub(crate) fn finish(
        self,
        is_recorded: [bool; LINES],
        pages: &mut PageWriter,
    ) -> Result<Extent, std::io::Error> {
        let bits = self.bits;
        let [busy, blocked, depth] = self.spans.map(|spans| spans.into_sums(bits));
        let mut content = Vec::new();
        for (line, is_recorded) in [busy, blocked, self.bytes, depth, self.calls]
            .iter()
            .zip(is_recorded)
        {
            let mut plain = Vec::new();
            for value in line.iter().filter(|_| is_recorded) {
                put(&mut plain, *value);
            }
            let packed = zstd::bulk::compress(&plain, limits::ZSTD_LEVEL)?;
            put(&mut content, plain.len() as u64);
            put(&mut content, packed.len() as u64);
            content.extend(packed);
        }
        let (offset, bytes) = pages.checksummed(&content);
        Ok(Extent { offset, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn time_lies_in_the_columns_it_passes(
            spans in proptest::collection::vec((0u64..1000, 0u64..1000), 0..20),
            bits in 0u8..6,
        ) {
            let columns = (2000 >> bits) + 1;
            let mut sums = Spans::new(columns);
            let mut expected = vec![0; columns];
            for (begin, length) in spans {
                sums.add(begin, begin + length, bits);
                for at in begin..begin + length {
                    expected[(at >> bits) as usize] += 1;
                }
            }
            prop_assert_eq!(sums.into_sums(bits), expected);
        }
    }
}
