//! Locks that take a large share of the time of the threads that need them.
//!
//! If a lock is always held for long, each wait for it is as long as the others, so no wait is an
//! outlier. Here waits count in absolute terms: the sum per thread, against the time from the first
//! to the last wait for that lock.
//!
//! A thread that waits for work is idle, not blocked, although it may wait at a futex, too: of a
//! condition variable, a semaphore or an event. What follows distinguishes these. A thread that
//! waited for a mutex holds it afterwards, and releases it by a wake at the same address; so does
//! one that waited for a semaphore that serves as a lock, as in Python. A thread that waited for
//! work does not wake anything there. The value that a wait expects decides where it is known: it is
//! constant for locks and counts for condition variables.

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::row::Row;
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::{FutexCallRow, LockWaitRow, SyscallRow};
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use crate::attempts::{Attempts, REFUSED};
use crate::window_slice::columns::{Result, rows};
use crate::window_slice::{Interner, TextId};

/// A thread is blocked by a lock if it waits for it for at least this share of the time.
const BLOCKED_MIN: f64 = 0.1;
/// Minimum mean share of the time of the blocked threads, if there are several …
const SHARE_MIN: f64 = 0.2;
/// … and if there is one.
const ALONE_MIN: f64 = 0.5;
/// Minimum sum of all waits.
const TOTAL_MIN_NS: Ns = 200_000_000;
/// Minimum time from the first to the last wait: this …
const SPAN_MIN_NS: Ns = 1_000_000_000;
/// … or this share of the window.
const SPAN_MIN: f64 = 0.2;
/// Minimum number of waits: fewer are not a habit.
const WAITS_MIN: u64 = 4;
/// Distinct locks; waits for further ones are left out.
const LOCKS_MAX: usize = 65_536;
/// Waits that are kept of each lock, the longest.
const KEPT: usize = 16;
/// Value of a contended mutex of glibc, of Rust's library and of Go's runtime.
const MUTEX_CONTENDED: i64 = 2;
/// Bit of a mutex with waiters whose value has the id of the owner.
const OWNED: i64 = 1 << 31;

const ETIMEDOUT: i64 = 110;

/// With more system calls, file locks are not examined: reading all calls once more takes longer
/// than the rest.
const CALLS_MAX: u64 = 20_000_000;
/// Kind of a lock on a file.
pub(crate) const FILE_LOCK: &str = "file lock";
/// Flag of flock: fail instead of waiting.
const LOCK_NB: i64 = 4;
/// Operation of flock that unlocks.
const LOCK_UN: i64 = 8;
/// Commands of fcntl that wait: F_SETLKW, F_OFD_SETLKW …
const WAITING: [i64; 2] = [7, 38];
/// … and that fail instead: F_SETLK, F_OFD_SETLK.
const TRYING: [i64; 2] = [6, 37];

/// A lock: an address in a process or in the kernel, or a path.
type Key = (Option<i32>, TextId);

/// One wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wait {
    pub(crate) dur: Ns,
    pub(crate) begin: Ns,
    pub(crate) utid: i32,
    /// Id of the system call, or of the wait for a kernel lock; [`crate::attempts::POLLED`] if the thread polled.
    pub(crate) id: i64,
    pub(crate) callsite: Option<i64>,
}

impl Wait {
    pub(crate) fn end(&self) -> Ns {
        self.begin + self.dur
    }
}

/// A lock with a large share of the time of its waiters.
#[derive(Debug)]
pub(crate) struct Contended {
    /// futex, [`FILE_LOCK`], or the kind of a kernel lock: mutex, rwsem, …
    pub(crate) kind: String,
    /// Address, or path of the file.
    pub(crate) lock: String,
    /// Process of a futex.
    pub(crate) upid: Option<i32>,
    /// Threads that it blocks.
    pub(crate) threads: u64,
    /// Waits of all threads, and their sum.
    pub(crate) waits: u64,
    pub(crate) waited: Ns,
    /// Time in which at least one thread waited.
    pub(crate) wall: Ns,
    /// Mean share of the time of the blocked threads.
    pub(crate) share: f64,
    /// When the last wait ended.
    pub(crate) end: Ns,
    /// The longest waits of any thread, the longest first.
    pub(crate) longest: Vec<Wait>,
}

/// Values that the waits at a futex expected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Values {
    #[default]
    Unknown,
    Same(i64),
    Various,
    /// Various, all with the bit of an owned mutex.
    Owned,
}

impl Values {
    fn add(&mut self, value: Option<i64>) {
        let Some(value) = value else { return };
        let is_owned = value & OWNED != 0;
        *self = match *self {
            Self::Unknown => Self::Same(value),
            Self::Same(same) if same == value => Self::Same(same),
            Self::Same(same) if same & OWNED != 0 && is_owned => Self::Owned,
            Self::Owned if is_owned => Self::Owned,
            _ => Self::Various,
        };
    }
}

#[derive(Debug, Default, Clone, Copy)]
struct Waiter {
    waited: Ns,
    /// Waited since its last release of the lock …
    pending: Ns,
    /// … and before such releases.
    released: Ns,
}

#[derive(Debug, Default)]
struct Sum {
    kind: Option<TextId>,
    waiters: FxHashMap<i32, Waiter>,
    longest: Vec<Wait>,
    waits: u64,
    begin: Ns,
    end: Ns,
    wall: Ns,
    wakes: u64,
    /// Wakes of several threads: all waiters of an event.
    broadcasts: u64,
    values: Values,
    /// A lock with priority inheritance: nothing else is unlocked by a call.
    is_unlocked: bool,
}

impl Sum {
    fn wait(&mut self, wait: Wait) {
        let waiter = self.waiters.entry(wait.utid).or_default();
        waiter.waited += wait.dur;
        waiter.pending += wait.dur;
        if self.waits == 0 {
            (self.begin, self.end) = (wait.begin, wait.begin);
        }
        self.wall += wait.end() - wait.begin.max(self.end).min(wait.end());
        self.end = self.end.max(wait.end());
        self.waits += 1;
        self.longest.push(wait);
        if self.longest.len() >= 2 * KEPT {
            self.keep();
        }
    }

    fn keep(&mut self) {
        self.longest.sort_unstable_by(|a, b| b.cmp(a));
        self.longest.truncate(KEPT);
    }

    fn wake(&mut self, utid: i32, woken: i64) {
        self.wakes += 1;
        self.broadcasts += u64::from(woken > 1);
        if let Some(waiter) = self.waiters.get_mut(&utid) {
            waiter.released += std::mem::take(&mut waiter.pending);
        }
    }

    fn waited(&self) -> Ns {
        self.waiters.values().map(|waiter| waiter.waited).sum()
    }

    /// Whether a futex is a lock, rather than a place at which threads wait for work.
    fn is_lock(&self) -> bool {
        if self.is_unlocked {
            return true;
        }
        let is_event = self.broadcasts * 10 > self.wakes;
        let is_counting = self.values == Values::Various;
        if is_event || is_counting {
            return false;
        }
        let released: Ns = self.waiters.values().map(|waiter| waiter.released).sum();
        2 * released >= self.waited() || self.values == Values::Same(MUTEX_CONTENDED)
    }

    /// The lock, if it takes enough of the time of its waiters.
    fn contended(mut self, key: Key, window: Ns, interner: &Interner) -> Option<Contended> {
        self.keep();
        let span = (self.end - self.begin).max(1);
        let is_long = span >= SPAN_MIN_NS || span as f64 >= SPAN_MIN * window as f64;
        let waited = self.waited();
        if !is_long || waited < TOTAL_MIN_NS || self.waits < WAITS_MIN {
            return None;
        }
        let share = |waiter: &Waiter| waiter.waited as f64 / span as f64;
        let shares = self.waiters.values().map(share);
        let blocked: Vec<f64> = shares.filter(|share| *share >= BLOCKED_MIN).collect();
        let mean = blocked.iter().sum::<f64>() / blocked.len().max(1) as f64;
        // No thread waits for work at the lock of a file.
        let is_file = self
            .kind
            .is_some_and(|kind| interner.text(kind) == FILE_LOCK);
        let least = if blocked.len() > 1 || is_file {
            SHARE_MIN
        } else {
            ALONE_MIN
        };
        (mean >= least).then(|| Contended {
            kind: self
                .kind
                .map_or("futex", |kind| interner.text(kind))
                .to_owned(),
            lock: interner.text(key.1).to_owned(),
            upid: key.0,
            threads: blocked.len() as u64,
            waits: self.waits,
            waited,
            wall: self.wall,
            share: mean.min(1.0),
            end: self.end,
            longest: self.longest,
        })
    }
}

/// The locks with the largest share of the time of their waiters, the most waited for first. Only
/// waits of `utids` count, if there are any.
pub(crate) fn locks(
    tables: &dyn Tables,
    window: Option<Window>,
    utids: &[i32],
) -> Result<Vec<Contended>> {
    let info = tables.info();
    let whole = Window::new(info.begin_ns, info.end_ns);
    let window = window.map_or(whole, |window| {
        Window::new(window.begin.max(whole.begin), window.end.min(whole.end))
    });
    let mut reader = Reader {
        window,
        wanted: utids.iter().copied().collect(),
        interner: Interner::default(),
        sums: FxHashMap::default(),
    };
    reader.futexes(tables)?;
    reader.sums.retain(|_, sum| sum.is_lock());
    reader.kernel_locks(tables)?;
    reader.file_locks(tables)?;
    let Reader { interner, sums, .. } = reader;
    let sums = sums.into_iter();
    let found = sums.filter_map(|(key, sum)| sum.contended(key, window.length(), &interner));
    let mut found: Vec<Contended> = found.collect();
    found.index_sort_by(|a, b| {
        let by_time = b.waited.cmp(&a.waited);
        by_time.then_with(|| (a.upid, &a.lock).cmp(&(b.upid, &b.lock)))
    });
    Ok(found)
}

struct Reader {
    window: Window,
    wanted: FxHashSet<i32>,
    interner: Interner,
    sums: FxHashMap<Key, Sum>,
}

impl Reader {
    fn futexes(&mut self, tables: &dyn Tables) -> Result<()> {
        let ints = [
            "ts", "ts_end", "utid", "upid", "id", "errno", "woken", "value",
        ];
        let columns = (&ints[..], &["op", "address"][..]);
        let window = Some(self.window);
        rows(
            tables,
            FutexCallRow::TABLE,
            columns,
            window,
            |cells, row| {
                let Some(utid) = cells.small(2, row) else {
                    return;
                };
                let Some(address) = cells.text_id(1, row, &mut self.interner) else {
                    return;
                };
                let key = (cells.small(3, row), address);
                match cells.text(0, row) {
                    // One that timed out is not known to be a wait for a lock.
                    "wait" if cells.int(5, row) != Some(ETIMEDOUT) => {
                        let span = (cells.ints[0].at(row), cells.int(1, row));
                        let id = cells.ints[4].at(row);
                        if let Some(sum) = self.wait(key, span, (utid, id, None)) {
                            sum.values.add(cells.int(7, row));
                        }
                    }
                    "unlock" => {
                        let sum = self.sums.entry(key).or_default();
                        sum.is_unlocked = true;
                        sum.wake(utid, 1);
                    }
                    "wake" => {
                        let woken = cells.int(6, row).unwrap_or(0);
                        if let Some(sum) = self.sums.get_mut(&key) {
                            sum.wake(utid, woken);
                        }
                    }
                    // Moves the waiters of a condition variable to its mutex.
                    "requeue" => {
                        if let Some(sum) = self.sums.get_mut(&key) {
                            sum.wake(utid, i64::MAX);
                        }
                    }
                    _ => {}
                }
            },
        )
    }

    fn kernel_locks(&mut self, tables: &dyn Tables) -> Result<()> {
        let ints = ["ts", "ts_end", "utid", "id", "callsite_id"];
        let columns = (&ints[..], &["lock", "kind", "reported_by"][..]);
        let window = Some(self.window);
        rows(tables, LockWaitRow::TABLE, columns, window, |cells, row| {
            // Locks of programs have findings of their own.
            let is_of_program = !cells.text(2, row).is_empty();
            let Some(utid) = cells.small(2, row).filter(|_| !is_of_program) else {
                return;
            };
            let Some(lock) = cells.text_id(0, row, &mut self.interner) else {
                return;
            };
            let kind = cells.text_id(1, row, &mut self.interner);
            let span = (cells.ints[0].at(row), cells.int(1, row));
            let wait = (utid, cells.ints[3].at(row), cells.int(4, row));
            if let Some(sum) = self.wait((None, lock), span, wait) {
                sum.kind = kind;
            }
        })
    }

    fn file_locks(&mut self, tables: &dyn Tables) -> Result<()> {
        // Only these few calls are of interest.
        if tables.info().rows_of_whole(SyscallRow::TABLE.name) > CALLS_MAX {
            return Ok(());
        }
        let words = tables.words(SyscallRow::TABLE, "name")?;
        let is_absent = |words: &std::collections::BTreeSet<String>| {
            !words.contains("flock") && !words.contains("fcntl")
        };
        if words.as_ref().is_some_and(is_absent) {
            return Ok(());
        }
        let kind = self.interner.intern(FILE_LOCK);
        let mut attempts = Attempts::default();
        let mut polled: Vec<(TextId, Wait)> = Vec::new();
        let ints = ["ts", "ts_end", "utid", "id", "flags", "errno"];
        let columns = (&ints[..], &["name", "path"][..]);
        let window = Some(self.window);
        rows(tables, SyscallRow::TABLE, columns, window, |cells, row| {
            let is_wait = match (cells.text(0, row), cells.int(4, row)) {
                ("flock", flags) => flags.is_some_and(|flags| flags & LOCK_NB == 0),
                ("fcntl", command) => command.is_some_and(|one| WAITING.contains(&one)),
                _ => false,
            };
            let is_try = match (cells.text(0, row), cells.int(4, row)) {
                ("flock", flags) => !is_wait && flags != Some(LOCK_UN),
                ("fcntl", command) => command.is_some_and(|one| TRYING.contains(&one)),
                _ => false,
            };
            let Some(utid) = cells.small(2, row).filter(|_| is_wait || is_try) else {
                return;
            };
            let Some(path) = cells.text_id(1, row, &mut self.interner) else {
                return;
            };
            let span = (cells.ints[0].at(row), cells.int(1, row));
            if is_try {
                let end = span.1.unwrap_or(span.0);
                let errno = cells.int(5, row);
                let is_refused = errno.is_some_and(|errno| REFUSED.contains(&errno));
                polled.extend(attempts.add((utid, path), (span.0, end), is_refused));
                return;
            }
            let wait = (utid, cells.ints[3].at(row), None);
            if let Some(sum) = self.wait((None, path), span, wait) {
                sum.kind = Some(kind);
            }
        })?;
        polled.extend(attempts.finish());
        polled.sort_unstable_by_key(|(_, wait)| (wait.begin, wait.utid));
        for (path, wait) in polled {
            let of = (wait.utid, wait.id, None);
            if let Some(sum) = self.wait((None, path), (wait.begin, Some(wait.end())), of) {
                sum.kind = Some(kind);
            }
        }
        Ok(())
    }

    /// Adds the part of a wait in the window.
    fn wait(
        &mut self,
        key: Key,
        (begin, end): (Ns, Option<Ns>),
        (utid, id, callsite): (i32, i64, Option<i64>),
    ) -> Option<&mut Sum> {
        let (begin, end) = (
            begin.max(self.window.begin),
            end.unwrap_or(Ns::MAX).min(self.window.end),
        );
        let is_wanted = self.wanted.is_empty() || self.wanted.contains(&utid);
        let is_full = self.sums.len() >= LOCKS_MAX && !self.sums.contains_key(&key);
        if end <= begin || !is_wanted || is_full {
            return None;
        }
        let sum = self.sums.entry(key).or_default();
        sum.wait(Wait {
            dur: end - begin,
            begin,
            utid,
            id,
            callsite,
        });
        Some(sum)
    }
}
