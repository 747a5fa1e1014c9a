//! Wall-clock sampling: samples all threads each interval, whether they run or not.
//!
//! A separate thread makes the rounds, on time, and never touches the memory of other processes;
//! the threads that do may block ([`unwind`]). [`rows`] combines rounds and stacks into records of
//! the spool.

mod iterator;
mod managed;
mod proc;
mod rows;
mod texts;
mod thread_sample;
mod unwind;

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use libbpf_rs::{MapCore as _, MapHandle};
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec};
use whyslow_model::spool::Encoder;

use crate::block_writer::BlockWriter;
use crate::clock;
use crate::load::Loaded;
use crate::naming::SymbolizerQueue;
use crate::options::Options;
use crate::runtimes::{Budget, Runtimes};
use crate::skeleton::RecorderSkel;
use iterator::Iterator as Threads;
use managed::Walkers;
pub(crate) use managed::{ManagedFrame, Part, Walker};
use proc::Files;
use rows::{Names, Round, Rows};
use texts::Texts;
pub(crate) use thread_sample::RUNS;
use thread_sample::{Away, Doing, Run, ThreadSample};
use unwind::{Job, Pool, Since, Stack, Walked};

/// Maximum number of rounds that wait to be taken; the sampler blocks then.
const ROUNDS_MAX: usize = 64;
/// Minimum interval.
pub const WALL_MIN: Duration = Duration::from_millis(1);

/// Rate of the ticks that sample running threads: two per interval, so that one is near.
pub(crate) fn frequency(options: &Options) -> u32 {
    let interval = options.wall.unwrap_or(WALL_MIN).max(WALL_MIN);
    (2.0 / interval.as_secs_f64()).round().max(1.0) as u32
}

/// The source of samples.
enum SampleSource {
    Iterator(Threads),
    Files(Box<Files>),
}

impl SampleSource {
    fn round(&mut self, found: &mut Vec<ThreadSample>) -> io::Result<()> {
        match self {
            Self::Iterator(threads) => threads.round(found),
            Self::Files(files) => files.round(found),
        }
    }
}

#[derive(Default)]
struct Shared {
    is_over: AtomicBool,
}

/// Job numbers.
#[derive(Debug, Default)]
struct Numbers(AtomicU64);

impl Numbers {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// Samples all threads, until it is dropped.
pub(crate) struct Wall {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    rounds: Receiver<Round>,
    walked: Receiver<Walked>,
    pool: Arc<Pool>,
    numbers: Arc<Numbers>,
    texts: Arc<Mutex<Texts>>,
    /// Memory budget of interpreter data.
    budget: Arc<Budget>,
    rows: Rows,
    /// Everything that ran before this time is known.
    until: u64,
}

impl Wall {
    /// `None` if not requested.
    pub(crate) fn start(loaded: &Loaded<'_>, options: &Options) -> io::Result<Option<Self>> {
        let Some(interval) = options.wall else {
            return Ok(None);
        };
        let interval = interval.max(WALL_MIN).as_nanos() as u64;
        let texts = Arc::<Mutex<Texts>>::default();
        let source = if let Some(link) = &loaded.wall_iter {
            SampleSource::Iterator(Threads::of(link)?)
        } else {
            let targets = targets(&loaded.skeleton, options)?;
            SampleSource::Files(Box::new(Files::new(targets, Arc::clone(&texts))))
        };
        let (give_walked, walked) = mpsc::channel();
        let budget = Arc::<Budget>::default();
        let of_readers = (Arc::clone(&budget), Arc::clone(&texts));
        let walkers = move || {
            let (budget, texts) = of_readers.clone();
            Walkers::new(vec![Box::new(Runtimes::new(budget))], texts)
        };
        let pool = Arc::new(Pool::start(give_walked, walkers));
        let (give, rounds) = mpsc::sync_channel(ROUNDS_MAX);
        let (shared, numbers) = (Arc::<Shared>::default(), Arc::<Numbers>::default());
        let made = Maker {
            shared: Arc::clone(&shared),
            pool: Arc::clone(&pool),
            numbers: Arc::clone(&numbers),
            interval,
            give,
        };
        let named = thread::Builder::new().name("wall".into());
        let thread = named.spawn(move || made.run(source))?;
        Ok(Some(Self {
            shared,
            thread: Some(thread),
            rounds,
            walked,
            pool,
            numbers,
            texts,
            budget,
            rows: Rows::new(interval),
            until: 0,
        }))
    }

    /// A thread was running at a tick of its CPU.
    pub(crate) fn ran(&mut self, record: &[u8]) {
        let Some(mut run) = Run::parse(record) else {
            return;
        };
        let stack = std::mem::take(&mut run.stack);
        let has_stack = !stack.is_empty();
        let since = Since {
            runs: run.runs,
            switches: 0,
        };
        let job = Job {
            id: self.numbers.next(),
            pid: run.pid,
            tid: run.tid,
            registers: run.registers,
            stack: Stack::Copy(stack, since),
        };
        let id = job.id;
        let is_queued = has_stack && self.pool.submit(job);
        self.rows.ran(run, is_queued.then_some(id));
    }

    /// These processes called exec.
    pub(crate) fn execed(&self, pids: &[i32]) {
        for pid in pids {
            self.pool.forget(*pid);
        }
    }

    /// The rings were emptied up to this time.
    pub(crate) fn settle(&mut self, until: u64) {
        self.until = self.until.max(until);
    }

    /// Moves complete samples to the encoder; later ones are not before the returned time.
    pub(crate) fn take(&mut self, encoder: &mut Encoder, symbolizer: &mut SymbolizerQueue) -> u64 {
        self.rounds
            .try_iter()
            .for_each(|round| self.rows.add(round));
        self.walked
            .try_iter()
            .for_each(|walked| self.rows.walked(walked));
        let mut names = NameRequests {
            texts: &self.texts,
            symbolizer,
        };
        let now = clock::monotonic();
        self.rows.write(self.until, now, &mut names, encoder);
        let mut texts = self.texts();
        if texts.is_sweep_due() {
            self.rows.addresses().for_each(|number| texts.touch(number));
            texts.sweep();
        }
        drop(texts);
        self.rows.limit()
    }

    /// Memory is short: drops what can be read again.
    pub(crate) fn give_up(&self) {
        self.budget.give_up();
        self.texts().give_up();
    }

    /// Counts of what the stacks are missing.
    pub(crate) fn left_out(&self) -> [(&'static str, u64); 3] {
        [
            ("wall_functions_over", self.texts().over),
            ("interpreter_stacks_torn", self.budget.torn()),
            ("interpreter_stacks_unreadable", self.budget.unreadable()),
        ]
    }

    /// The spool ends, and the next one starts at that time.
    pub(crate) fn end_spool(
        &mut self,
        until: u64,
        encoder: &mut Encoder,
        symbolizer: &mut SymbolizerQueue,
    ) {
        self.take(encoder, symbolizer);
        let mut names = NameRequests {
            texts: &self.texts,
            symbolizer,
        };
        self.rows.cut(until, &mut names, encoder);
        self.texts().begin_spool();
    }

    /// Some samples wait for their stacks.
    pub(crate) fn has_rounds(&self) -> bool {
        self.rows.has_rounds()
    }

    fn texts(&self) -> std::sync::MutexGuard<'_, Texts> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends sampling.
    pub(crate) fn stop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It may be blocked until its round is taken.
            while !thread.is_finished() {
                self.rounds
                    .try_iter()
                    .for_each(|round| self.rows.add(round));
                thread::sleep(Duration::from_millis(1));
            }
            let _ = thread.join();
        }
        self.rounds
            .try_iter()
            .for_each(|round| self.rows.add(round));
    }
}

/// Requests the symbols of samples.
struct NameRequests<'t> {
    texts: &'t Mutex<Texts>,
    symbolizer: &'t mut SymbolizerQueue,
}

impl Names for NameRequests<'_> {
    fn see(&mut self, pid: i32, ts: u64, (kernel, user): (&[u64], &[u64]), is_running: bool) {
        let is_text = |address: &u64| {
            (whyslow_model::spool::NO_ADDRESS..whyslow_model::spool::NO_ADDRESS_END)
                .contains(address)
        };
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        for number in kernel
            .iter()
            .chain(user)
            .copied()
            .filter(|number| is_text(number))
        {
            texts.write(number, &mut self.symbolizer.names);
        }
        drop(texts);
        self.symbolizer.see_stack((0, ts), kernel, is_running);
        let begins_with_call = kernel.is_empty() && is_running;
        self.symbolizer.see_stack((pid, ts), user, begins_with_call);
    }
}

/// Makes the rounds.
struct Maker {
    shared: Arc<Shared>,
    pool: Arc<Pool>,
    numbers: Arc<Numbers>,
    interval: u64,
    give: SyncSender<Round>,
}

impl Maker {
    fn run(self, mut source: SampleSource) {
        let mut due = clock::monotonic();
        let mut missed = 0;
        while !self.shared.is_over.load(Ordering::Relaxed) {
            due += self.interval;
            let now = clock::monotonic();
            if now > due {
                // A late round skips the missed ones, and keeps the phase.
                let late = (now - due) / self.interval;
                missed += late;
                due += late * self.interval;
            }
            sleep_until(due);
            let begun = clock::monotonic();
            let mut found = Vec::new();
            if source.round(&mut found).is_err() {
                missed += 1;
                continue;
            }
            let ended = clock::monotonic();
            let samples = found
                .into_iter()
                .map(|sample| self.request_stack(sample))
                .collect();
            self.pool.tend();
            let round = Round {
                begun,
                ended,
                samples,
                missed: std::mem::take(&mut missed),
            };
            if self.give.send(round).is_err() {
                return;
            }
        }
    }

    /// Requests the stack of the sample.
    fn request_stack(&self, sample: ThreadSample) -> (ThreadSample, Option<u64>) {
        let Doing::Away(_, Away::OffCpu(place)) = &sample.doing else {
            return (sample, None);
        };
        let Some(registers) = place.registers else {
            return (sample, None);
        };
        let job = Job {
            id: self.numbers.next(),
            pid: sample.pid,
            tid: sample.tid,
            registers,
            stack: Stack::There(Since {
                runs: place.runs,
                switches: sample.switches,
            }),
        };
        let id = job.id;
        let is_queued = self.pool.submit(job);
        (sample, is_queued.then_some(id))
    }
}

fn sleep_until(until: u64) {
    let time = Timespec {
        tv_sec: (until / 1_000_000_000) as i64,
        tv_nsec: (until % 1_000_000_000) as _,
    };
    // An early wakeup is harmless.
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &time);
}

/// The processes to sample, if the kernel does not filter them.
struct Targets {
    /// All processes if `None`.
    map: Option<MapHandle>,
}

impl Targets {
    fn pids(&self) -> Option<BTreeSet<i32>> {
        let map = self.map.as_ref()?;
        let pid = |key: Vec<u8>| Some(i32::from_ne_bytes(key.try_into().ok()?));
        Some(map.keys().filter_map(pid).collect())
    }
}

fn targets(skeleton: &RecorderSkel<'_>, options: &Options) -> io::Result<Targets> {
    let handle = || MapHandle::try_from(&skeleton.maps.targets).map_err(io::Error::other);
    let map = options.only_pids.then(handle).transpose()?;
    Ok(Targets { map })
}

impl BlockWriter {
    /// Moves wall-clock samples to the encoder; later ones are not before the returned time.
    pub(crate) fn take_wall(&mut self) -> u64 {
        let wall = self.wall.as_mut();
        wall.map_or(u64::MAX, |wall| {
            wall.take(&mut self.encoder, &mut self.symbolizer)
        })
    }

    /// The same up to the end of a spool, after which the next one starts.
    pub(crate) fn end_wall(&mut self, until: u64) {
        if let Some(wall) = &mut self.wall {
            wall.end_spool(until, &mut self.encoder, &mut self.symbolizer);
        }
    }
}
