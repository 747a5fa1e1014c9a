//! Merges requests that ended in several threads into one order.

use std::collections::VecDeque;
use std::vec;

use crate::row::Row;

/// Requests that ended in a thread, and the time up to which they are complete.
pub(crate) struct Batch {
    pub(crate) thread: usize,
    pub(crate) until_ns: u64,
    pub(crate) rows: Vec<Row>,
}

/// Requests that ended in each thread and were not reported yet. Rows are not moved to sort them:
/// there may be tens of thousands per second.
pub(crate) struct Waiting {
    threads: Vec<Ends>,
}

struct Ends {
    /// Time up to which all requests of the thread are here.
    until_ns: u64,
    batches: VecDeque<vec::IntoIter<Row>>,
}

impl Waiting {
    pub(crate) fn of(threads: usize) -> Self {
        let none = || Ends {
            until_ns: 0,
            batches: VecDeque::new(),
        };
        Self {
            threads: std::iter::repeat_with(none).take(threads).collect(),
        }
    }

    pub(crate) fn put(&mut self, batch: Batch) {
        let ends = &mut self.threads[batch.thread];
        ends.until_ns = batch.until_ns;
        if !batch.rows.is_empty() {
            ends.batches.push_back(batch.rows.into_iter());
        }
    }

    /// Marks the end of the input.
    pub(crate) fn end(&mut self) {
        for ends in &mut self.threads {
            ends.until_ns = u64::MAX;
        }
    }
}

impl Ends {
    /// End and sequence number of the first row.
    fn first(&self) -> Option<(u64, u64)> {
        let row = self.batches.front()?.as_slice().first()?;
        Some((row.end_ns, row.seq))
    }

    fn next(&mut self) -> Option<Row> {
        let batch = self.batches.front_mut()?;
        let row = batch.next();
        if batch.as_slice().is_empty() {
            self.batches.pop_front();
        }
        row
    }
}

/// In order of their ends, as far as all earlier ones are here.
impl Iterator for Waiting {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        let all_ns = self.threads.iter().map(|ends| ends.until_ns).min()?;
        let firsts = self.threads.iter().enumerate();
        let firsts = firsts.filter_map(|(at, ends)| Some((ends.first()?, at)));
        let ((end_ns, _), at) = firsts.min()?;
        if end_ns >= all_ns {
            return None;
        }
        self.threads[at].next()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::target::RequestTemplate;

    fn batch(thread: usize, until_ns: u64, ends: &[(u64, u64)]) -> Batch {
        let template = RequestTemplate::new(None, &[], None).expect("GET");
        let target = Arc::new(template.target("http://a/", 1).expect("a target"));
        let row = |(end_ns, seq): &(u64, u64)| Row {
            seq: *seq,
            end_ns: *end_ns,
            ..Row::blank(Arc::clone(&target))
        };
        Batch {
            thread,
            until_ns,
            rows: ends.iter().map(row).collect(),
        }
    }

    #[test]
    fn rows_come_in_order_once_none_can_come_before() {
        let mut waiting = Waiting::of(2);
        let mut check = |batch: Option<Batch>, expected: &[u64]| {
            match batch {
                Some(batch) => waiting.put(batch),
                None => waiting.end(),
            }
            let delivered: Vec<u64> = waiting.by_ref().map(|row| row.seq).collect();
            assert_eq!(delivered, expected);
        };
        check(Some(batch(0, 10, &[(3, 1), (8, 0), (8, 4)])), &[]);
        check(Some(batch(1, 8, &[(2, 3), (3, 2)])), &[3, 1, 2]);
        // At exactly that time, others may still end.
        check(Some(batch(1, 8, &[])), &[]);
        check(Some(batch(1, 11, &[(8, 5), (10, 6)])), &[0, 4, 5]);
        check(Some(batch(0, 12, &[(10, 7)])), &[6, 7]);
        check(Some(batch(1, 20, &[(15, 9)])), &[]);
        check(None, &[9]);
        check(None, &[]);
    }
}
