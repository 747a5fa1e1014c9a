//! Queue of stacks to read.
//!
//! The kernel reports the place of a waiting thread once, so its job stays until it is done, or the
//! thread is elsewhere. A copy of a running thread's stack is useful as long as its round waits for
//! it. Only one reader at a time works on a process: one that hangs there blocks no other.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::{Job, Stack};

/// Copies have 16 KiB each.
const COPIES_MAX: usize = 2048;
const WAITING_MAX: usize = 1 << 15;
/// Maximum time that rounds wait for a copy.
pub(super) const COPY_AGE: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
pub(super) struct Queue {
    copies: VecDeque<(Job, Instant)>,
    /// Jobs of waiting threads, by process and thread, …
    waiting: HashMap<(i32, i32), Job>,
    /// … in this order.
    order: VecDeque<(i32, i32)>,
    /// Jobs that will not be read any more.
    gone: Vec<u64>,
}

impl Queue {
    /// False if the queue is full.
    pub(super) fn push(&mut self, job: Job) -> bool {
        match job.stack {
            Stack::Copy(..) => {
                self.expire();
                let fits = self.copies.len() < COPIES_MAX;
                if fits {
                    self.copies.push_back((job, Instant::now()));
                }
                fits
            }
            Stack::There(_) => {
                let key = (job.pid, job.tid);
                let is_new = !self.waiting.contains_key(&key);
                if is_new && self.order.len() >= WAITING_MAX {
                    return false;
                }
                if is_new {
                    self.order.push_back(key);
                }
                // It has run since the previous job.
                let before = self.waiting.insert(key, job);
                self.gone.extend(before.map(|job| job.id));
                true
            }
        }
    }

    /// The first job of a process on which no reader works.
    pub(super) fn take(&mut self, is_busy: impl Fn(i32) -> bool) -> Option<Job> {
        self.expire();
        let (copy, waiting) = self.first(&is_busy);
        let id = |place: usize| Some(self.waiting.get(self.order.get(place)?)?.id);
        let is_copy = match (copy, waiting) {
            (Some(copy), Some(waiting)) => Some(self.copies.get(copy)?.0.id) < id(waiting),
            (copy, _) => copy.is_some(),
        };
        if is_copy {
            return Some(self.copies.remove(copy?)?.0);
        }
        let key = self.order.remove(waiting?)?;
        self.waiting.remove(&key)
    }

    pub(super) fn has_any(&self, is_busy: impl Fn(i32) -> bool) -> bool {
        let (copy, waiting) = self.first(&is_busy);
        copy.is_some() || waiting.is_some()
    }

    /// Numbers of jobs that will not be read any more, each once.
    pub(super) fn take_gone(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.gone)
    }

    fn first(&self, is_busy: &impl Fn(i32) -> bool) -> (Option<usize>, Option<usize>) {
        let mut copies = self.copies.iter();
        let copy = copies.position(|(job, _)| !is_busy(job.pid));
        let mut order = self.order.iter();
        (copy, order.position(|(pid, _)| !is_busy(*pid)))
    }

    fn expire(&mut self) {
        let is_old = |(_, queued_at): &mut (Job, Instant)| queued_at.elapsed() >= COPY_AGE;
        while let Some((job, _)) = self.copies.pop_front_if(is_old) {
            self.gone.push(job.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Registers, Since};
    use super::*;

    fn job(id: u64, (pid, tid): (i32, i32), is_copy: bool) -> Job {
        let registers = Registers {
            ip: 1,
            sp: 2,
            bp: None,
            lr: 0,
        };
        let since = Since {
            runs: 1,
            switches: 0,
        };
        let stack = if is_copy {
            Stack::Copy(Vec::new(), since)
        } else {
            Stack::There(since)
        };
        Job {
            id,
            pid,
            tid,
            registers,
            stack,
        }
    }

    #[test]
    fn processes_in_which_somebody_is_wait_and_others_do_not() {
        let mut queue = Queue::default();
        for (id, pid, is_copy) in [(1, 7, false), (2, 7, true), (3, 8, false), (4, 9, true)] {
            assert!(queue.push(job(id, (pid, id as i32), is_copy)));
        }
        let is_seven = |pid| pid == 7;
        let mut take = |is_busy: &dyn Fn(i32) -> bool| queue.take(is_busy).map(|job| job.id);
        assert_eq!(take(&is_seven), Some(3));
        assert_eq!(take(&is_seven), Some(4));
        assert_eq!(take(&is_seven), None);
        let none_busy = |_| false;
        assert_eq!(
            [take(&none_busy), take(&none_busy), take(&none_busy)],
            [Some(1), Some(2), None]
        );
        assert_eq!(queue.take_gone(), []);
    }

    #[test]
    fn a_thread_that_is_elsewhere_is_asked_for_once() {
        let mut queue = Queue::default();
        for id in 1..100 {
            assert!(queue.push(job(id, (7, 70), false)));
        }
        assert_eq!(queue.take_gone().len(), 98);
        assert_eq!(queue.take(|_| false).map(|job| job.id), Some(99));
        assert!(queue.take(|_| false).is_none());
    }

    #[test]
    fn what_waits_is_bounded_and_old_copies_go() {
        let mut queue = Queue::default();
        let pushed = |queue: &mut Queue, is_copy| {
            let mut pushed = 0..1 << 17;
            pushed.position(|id| !queue.push(job(id, (7, id as i32), is_copy)))
        };
        assert_eq!(pushed(&mut queue, true), Some(COPIES_MAX));
        assert_eq!(pushed(&mut queue, false), Some(WAITING_MAX));
        for (_, queued_at) in &mut queue.copies {
            *queued_at = queued_at.checked_sub(COPY_AGE).unwrap_or(*queued_at);
        }
        queue.take(|_| true);
        assert_eq!(queue.take_gone().len(), COPIES_MAX);
        assert!(queue.push(job(1, (7, 1), true)));
    }
}
