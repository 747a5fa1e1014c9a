//! Waits for locks of files by threads that poll: the lock is refused, the thread sleeps and tries
//! again.
//!
//! One attempt is all calls of a thread on the file without a pause: it may acquire several locks
//! before one is refused, and give them back. The wait lasts from the first refused call to the
//! first attempt that is not refused.

use rustc_hash::FxHashMap;
use whyslow_model::Ns;

use crate::contention::Wait;
use crate::window_slice::TextId;

/// Id of such a wait, which is no system call.
pub(crate) const POLLED: i64 = -1;
/// Errors of a refused lock: EAGAIN, EACCES.
pub(crate) const REFUSED: [i64; 2] = [11, 13];
/// A thread that tries again without a shorter pause is in the same attempt.
const PAUSE_MIN_NS: Ns = 200_000;
/// After a longer pause it had given up, and does something else in between.
const PAUSE_MAX_NS: Ns = 150_000_000;

#[derive(Debug, Clone, Copy)]
struct Polling {
    /// The first refusal.
    begin: Ns,
    /// Start of the current attempt, and whether it was refused.
    attempt: Ns,
    is_refused: bool,
    /// End of the last call.
    last: Ns,
}

impl Polling {
    fn wait(&self, utid: i32) -> Option<Wait> {
        let end = if self.is_refused {
            self.last
        } else {
            self.attempt
        };
        (end > self.begin).then(|| Wait {
            dur: end - self.begin,
            begin: self.begin,
            utid,
            id: POLLED,
            callsite: None,
        })
    }
}

/// Threads that poll for locks, by thread and file.
#[derive(Debug, Default)]
pub(crate) struct Attempts(FxHashMap<(i32, TextId), Polling>);

impl Attempts {
    /// Adds a call, in order of time; returns the wait that it shows to be over.
    pub(crate) fn add(
        &mut self,
        (utid, path): (i32, TextId),
        (begin, end): (Ns, Ns),
        is_refused: bool,
    ) -> Option<(TextId, Wait)> {
        let key = (utid, path);
        let mut over = None;
        if let Some(polling) = self.0.get_mut(&key) {
            let pause = begin - polling.last;
            let is_over = pause >= PAUSE_MIN_NS && (!polling.is_refused || pause > PAUSE_MAX_NS);
            if !is_over {
                if pause >= PAUSE_MIN_NS {
                    (polling.attempt, polling.is_refused) = (begin, false);
                }
                polling.is_refused |= is_refused;
                polling.last = end;
                return None;
            }
            over = polling.wait(utid).map(|wait| (path, wait));
            self.0.remove(&key);
        }
        if is_refused {
            let polling = Polling {
                begin: end,
                attempt: begin,
                is_refused,
                last: end,
            };
            self.0.insert(key, polling);
        }
        over
    }

    /// The waits that are not known to be over.
    pub(crate) fn finish(self) -> impl Iterator<Item = (TextId, Wait)> {
        let all = self.0.into_iter();
        all.filter_map(|((utid, path), polling)| Some((path, polling.wait(utid)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window_slice::Interner;

    const MS: Ns = 1_000_000;

    /// Waits of one thread from its calls: time in ms, and whether it was refused.
    fn waits(calls: &[(Ns, bool)]) -> Vec<(Ns, Ns)> {
        let path = Interner::default().intern("/a");
        let mut attempts = Attempts::default();
        let mut found = Vec::new();
        for (ms, is_refused) in calls {
            let span = (ms * MS, ms * MS + 1000);
            found.extend(attempts.add((1, path), span, *is_refused));
        }
        found.extend(attempts.finish());
        let ms = |ns: Ns| (ns + MS / 2) / MS;
        let found = found.iter();
        found
            .map(|(_, wait)| (ms(wait.begin), ms(wait.end())))
            .collect()
    }

    #[test]
    fn a_wait_lasts_from_the_first_refusal_to_the_attempt_that_succeeds() {
        let calls = [(10, true), (20, true), (40, true), (60, false), (90, false)];
        assert_eq!(waits(&calls), [(10, 60)]);
        assert_eq!(waits(&[(10, false), (20, false)]), []);
    }

    #[test]
    fn what_was_acquired_before_the_refusal_is_part_of_the_attempt() {
        let calls = [
            (10, false),
            (10, true),
            (10, false),
            (30, false),
            (30, true),
            (30, false),
            (50, false),
            (50, false),
        ];
        assert_eq!(waits(&calls), [(10, 50)]);
    }

    #[test]
    fn a_thread_that_does_something_else_does_not_wait() {
        // It tries once a second, and is refused each time.
        assert_eq!(waits(&[(0, true), (1000, true), (2000, true)]), []);
        // Still refused at the end.
        assert_eq!(waits(&[(0, true), (100, true)]), [(0, 100)]);
    }
}
