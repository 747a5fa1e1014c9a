//! A run: threads with workers, whose results are merged.
//!
//! Every few milliseconds, each thread passes on the requests that ended, with the time up to which
//! they are complete. So rows are reported in order of their ends across threads, without
//! disturbing requests.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use tokio::task::{JoinSet, LocalSet};

use whyslow_model::sort::IndexSort;

use crate::LoadError;
use crate::clock;
use crate::order::{Batch, Waiting};
use crate::pacer::Pacer;
use crate::plan::Plan;
use crate::row::{Outcome, Row};
use crate::shared::{Halt, Shared, Stage};
use crate::worker::{Local, Slot, Worker};

const BATCH_INTERVAL: Duration = Duration::from_millis(20);
/// Workers per thread: with two threads of ten workers each, a request took a sixth more CPU time
/// than with one thread of twenty, and requests were no faster.
const WORKERS_OF_THREAD: usize = 32;
const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);
/// Batches of all threads that were sent but not processed; threads wait beyond that if the disk is
/// too slow.
const BATCHES_MAX: usize = 1_024;

/// Receives the results of a run.
pub trait Sink {
    /// The following requests are sent by this many workers.
    fn stage(&mut self, workers: u32);

    /// Requests that ended, in order of their ends.
    fn take(&mut self, rows: &mut dyn Iterator<Item = Row>) -> Result<(), LoadError>;

    /// Called several times per second with the progress.
    fn look(&mut self, progress: Progress);
}

/// Progress of a run.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Workers of the present stage.
    pub workers: u32,
    /// Since the start of the present stage.
    pub elapsed: Duration,
    /// Requests that have started.
    pub begun: u64,
    /// How late the next scheduled request is; zero without a schedule.
    pub behind: Duration,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// All requests of the plan were made.
    Done,
    /// `cancel` was set.
    Interrupted,
    /// A request took as long as [`Plan::until_slow`](crate::Plan::until_slow).
    UntilSlow,
}

impl Reason {
    /// As in the last line of a spool.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Interrupted => "interrupted",
            Self::UntilSlow => "until_slow",
        }
    }
}

/// Result of a run.
#[derive(Debug, Clone)]
pub struct Ended {
    /// Why it ended.
    pub reason: Reason,
    /// ns since the start of the run.
    pub end_ns: u64,
    /// One for each number of workers that was reached, in order.
    pub stages: Vec<StageEnded>,
    /// CPU utilization of the busiest load thread, 0–1.
    pub busiest: f64,
    /// Redirects that were not followed because their host is not a target of the load.
    pub unfollowed: u64,
}

/// Result for one number of workers. Times are ns since the start of the run.
#[derive(Debug, Clone, Copy)]
pub struct StageEnded {
    /// Number of workers.
    pub workers: u32,
    /// Start of its first request.
    pub begin_ns: u64,
    /// End of its last request.
    pub end_ns: u64,
}

/// A validated run that is ready to start.
pub struct Run {
    shared: Arc<Shared>,
}

impl Run {
    /// Validates the plan, sets up TLS and starts the clock; nothing is sent yet.
    pub fn new(plan: Plan) -> Result<Self, LoadError> {
        Ok(Self {
            shared: Arc::new(Shared::new(plan)?),
        })
    }

    /// The start, to which all times refer: ns since the epoch.
    pub fn begin_ns(&self) -> i64 {
        self.shared.clock.begin_ns()
    }

    /// Runs until everything is done, or `cancel` is set.
    pub fn go(self, cancel: &AtomicBool, sink: &mut dyn Sink) -> Result<Ended, LoadError> {
        let shared = self.shared;
        let (mut stages, mut busiest) = (Vec::new(), 0.0_f64);
        for workers in shared.plan.workers.clone() {
            if shared.halt() != Halt::No {
                break;
            }
            sink.stage(workers);
            let stage = Arc::new(Stage::new(&shared.plan, workers, shared.clock));
            let result = of_stage(&shared, &stage, cancel, sink);
            if result.is_err() {
                shared.stop(Halt::Now);
            }
            let (busy_ns, end_ns) = (result?, shared.clock.now_ns());
            let length_ns = end_ns.saturating_sub(stage.begin_ns).max(1);
            busiest = busiest.max(busy_ns as f64 / length_ns as f64);
            stages.push(StageEnded {
                workers,
                begin_ns: stage.begin_ns,
                end_ns,
            });
        }
        Ok(Ended {
            reason: match shared.halt() {
                Halt::No => Reason::Done,
                Halt::Slow => Reason::UntilSlow,
                Halt::Now => Reason::Interrupted,
            },
            end_ns: shared.clock.now_ns(),
            stages,
            busiest,
            unfollowed: shared.unfollowed.load(Relaxed),
        })
    }
}

/// Returns the CPU time of the busiest thread.
fn of_stage(
    shared: &Arc<Shared>,
    stage: &Arc<Stage>,
    cancel: &AtomicBool,
    sink: &mut dyn Sink,
) -> Result<u64, LoadError> {
    let needed = (stage.workers as usize).div_ceil(WORKERS_OF_THREAD).max(1);
    let threads = shared.plan.threads.clamp(1, needed);
    let (sender, receiver) = mpsc::sync_channel(BATCHES_MAX);
    let mut begun = Vec::new();
    for thread in 0..threads {
        let numbers: Vec<u32> = (0..stage.workers)
            .filter(|number| *number as usize % threads == thread)
            .collect();
        let (shared, stage, sender) = (Arc::clone(shared), Arc::clone(stage), sender.clone());
        let spawned = std::thread::Builder::new()
            .name(format!("load-{thread}"))
            .spawn(move || of_thread(&shared, &stage, &numbers, (thread, sender)));
        begun.push(spawned.map_err(LoadError::Thread)?);
    }
    drop(sender);
    let delivered = deliver(shared, stage, (&receiver, threads), cancel, sink);
    if delivered.is_err() {
        shared.stop(Halt::Now);
    }
    // No thread may block on a channel that is no longer read.
    drop(receiver);
    let mut busy_ns = 0;
    for thread in begun {
        match thread.join() {
            Ok(done) => busy_ns = busy_ns.max(done?),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    delivered.map(|()| busy_ns)
}

/// Reports rows in order of their ends until all threads are done.
fn deliver(
    shared: &Shared,
    stage: &Stage,
    (receiver, threads): (&Receiver<Batch>, usize),
    cancel: &AtomicBool,
    sink: &mut dyn Sink,
) -> Result<(), LoadError> {
    let mut waiting = Waiting::of(threads);
    loop {
        if cancel.load(Relaxed) {
            shared.stop(Halt::Now);
        }
        let is_over = match receiver.recv_timeout(PROGRESS_INTERVAL) {
            Ok(batch) => {
                waiting.put(batch);
                false
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => true,
        };
        if is_over {
            waiting.end();
        }
        sink.take(&mut waiting)?;
        if is_over {
            return Ok(());
        }
        sink.look(Progress {
            workers: stage.workers,
            elapsed: Duration::from_nanos(shared.clock.now_ns().saturating_sub(stage.begin_ns)),
            begun: shared.begun(),
            behind: stage.behind(shared.clock.now_ns()),
        });
    }
}

/// Returns its CPU time.
fn of_thread(
    shared: &Arc<Shared>,
    stage: &Arc<Stage>,
    numbers: &[u32],
    (thread, sender): (usize, SyncSender<Batch>),
) -> Result<u64, LoadError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // Each may look up a name at the same time.
        .max_blocking_threads(numbers.len().max(1))
        .build()
        .map_err(LoadError::Thread)?;
    let workers = LocalSet::new();
    let done = workers.block_on(&runtime, async {
        let local = Rc::new(Local {
            targets: shared.targets(),
            shared: Arc::clone(shared),
            stage: Arc::clone(stage),
            pacer: Pacer::new(shared.clock).map_err(LoadError::Thread)?,
            rows: std::cell::RefCell::default(),
        });
        run_workers(&local, numbers, |until_ns| {
            let mut rows = local.rows.borrow_mut();
            // About as many are expected next time.
            let next = Vec::with_capacity(rows.len());
            let rows = std::mem::replace(&mut *rows, next);
            let batch = Batch {
                thread,
                until_ns,
                rows,
            };
            // A receiver that is gone has stopped the run.
            let _ = sender.send(batch);
        })
        .await;
        Ok(())
    });
    drop(workers);
    // A lookup may take longer than is acceptable to wait.
    runtime.shutdown_background();
    done.map(|()| clock::of_this_thread_ns())
}

/// Runs workers and passes on their results until they are done or the run is halted.
async fn run_workers(local: &Rc<Local>, numbers: &[u32], hand_on: impl Fn(u64)) {
    let shared = &local.shared;
    let mut slots: Vec<Slot> = Vec::new();
    let mut workers = JoinSet::new();
    for number in numbers {
        let slot = Slot::default();
        slots.push(Rc::clone(&slot));
        workers.spawn_local(Worker::new(Rc::clone(local), *number, slot).run());
    }
    let pacer = Rc::clone(local);
    let pacing = tokio::task::spawn_local(async move { pacer.pacer.run().await });
    loop {
        let ended = tokio::time::timeout(BATCH_INTERVAL, workers.join_next()).await;
        match ended {
            Ok(None) => break,
            Ok(Some(_)) => continue,
            Err(_) => hand_on(shared.clock.now_ns()),
        }
        let is_idle = || slots.iter().all(|slot| slot.borrow().is_none());
        match shared.halt() {
            Halt::Slow if is_idle() => break,
            Halt::Now => break,
            _ => {}
        }
    }
    pacing.abort();
    let now_ns = shared.clock.now_ns();
    let under_way = slots.iter().filter_map(|slot| slot.borrow_mut().take());
    let mut cut: Vec<Row> = under_way
        .map(|request| request.end(now_ns, Outcome::Cut, None))
        .collect();
    cut.index_sort_by_ints(|row| [row.seq as i64, 0, 0]);
    local.rows.borrow_mut().append(&mut cut);
    hand_on(u64::MAX);
}
