//! A running recording: passes events from the rings to the spool.

mod facts;
mod followed;
mod rotation;
mod summary;

use std::cell::RefCell;
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use libbpf_rs::OpenObject;
use whyslow_model::spool::Encoder;

use crate::block_writer::{BlockWriter, Out};
use crate::clock::{self, Clocks};
use crate::drop;
use crate::error::RecordError;
use crate::following::{Followers, Id};
use crate::in_flight::InFlight;
use crate::load::{self, Loaded};
use crate::losses::Losses;
use crate::marks::{Listener, Received};
use crate::meter::Meter;
use crate::missed::Missed;
use crate::namespaces::Namespaces;
use crate::naming::{SymbolizerQueue, WATCHED};
use crate::options::Options;
use crate::programs::Topic;
use crate::ring::Part;
use crate::rings::Rings;
use crate::sampler::Sampler;
use crate::saving::SaveRequest;
use crate::snapshot;
use crate::spool::SpoolWriter;
use crate::targets::Targets;
use crate::wall::Wall;
use crate::watch::Watch;
use crate::when::Watcher;
pub use summary::{Progress, Ready, Step, Summary, Unwritten};

use facts::{complete_topics, write_cost, write_mark, write_off_programs, write_stand_ins};

/// Age at which a block is written, if it is not full before.
const BLOCK_AGE: Duration = Duration::from_secs(1);
/// Pause between polls of the rings, when there is much or little to do.
const PAUSE_BUSY: Duration = Duration::from_millis(5);
const PAUSE_IDLE: Duration = Duration::from_millis(40);
/// Bytes per pause from which the recorder is busy.
const BUSY_BYTES: u64 = 64 << 10;
/// How long the end of a recording waits for symbolization …
const NAMING_END_MAX: Duration = Duration::from_secs(2);
/// … and how long the end of a spool does that is followed by another.
const NAMING_ROTATION_MAX: Duration = Duration::from_millis(100);
/// Rounds of symbolizing the most recent stacks.
const NAMING_ROUNDS: u32 = 3;
/// How long the end of a recording waits for stacks of the last wall-clock samples.
const WALL_END_MAX: Duration = Duration::from_millis(200);
/// Interval of clock comparisons, which detect steps.
const CLOCKS_AGE: Duration = Duration::from_secs(1);

/// Records until `each`, which is called many times a second, returns [`Step::End`]. `ready` is
/// called when all programs run.
pub fn record(
    options: &Options,
    ready: impl FnOnce(&Ready<'_>),
    mut each: impl FnMut(&Progress) -> Step,
) -> Result<Summary, RecordError> {
    let mut storage = MaybeUninit::uninit();
    let mut session = Session::begin(options, &mut storage, |spool| {
        SpoolWriter::create(spool, options.spool_bytes_max).map(Out::Spool)
    })
    .inspect_err(|error| {
        if matches!(error, RecordError::SpoolRoom { .. }) {
            // The spool is empty; a directory that cannot be removed is reported on the next run.
            let _ = fs::remove_dir_all(&options.spool);
        }
    })?;
    ready(&session.ready());
    let mut next = None;
    loop {
        let drained = session.drain()?;
        session.watch();
        session.take_snapshot(false)?;
        if session.snapshot.is_none()
            && let Some(spool) = next.take()
        {
            session.rotate(spool)?;
        }
        let progress = session.progress();
        session.serve()?;
        match each(&progress) {
            Step::End => break,
            Step::Turn(spool) => next = Some(spool),
            Step::GoOn if session.is_full() => break,
            Step::GoOn => {}
        }
        pause(drained);
    }
    session.finish()
}

/// Sleeps until the next poll of the rings, depending on the amount of the last one.
pub(crate) fn pause(drained: Drained) {
    if drained.is_all {
        thread::sleep(if drained.bytes >= BUSY_BYTES {
            PAUSE_BUSY
        } else {
            PAUSE_IDLE
        });
    }
}

fn of_spool(path: &Path, source: io::Error) -> RecordError {
    RecordError::Spool {
        path: path.to_owned(),
        source,
    }
}

/// Result of polling the rings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drained {
    bytes: u64,
    /// The rings are empty.
    is_all: bool,
}

/// A snapshot in progress.
struct Taken {
    /// The follower it is for, and the start of its segment.
    of: Option<(Id, u64)>,
    parts: Receiver<Encoder>,
}

impl Taken {
    fn of(of: Option<(Id, u64)>) -> Self {
        Self {
            of,
            parts: snapshot::start(),
        }
    }
}

pub(crate) struct Session<'o> {
    /// Must be dropped before the programs.
    rings: Rings,
    watch: Option<Watch>,
    loaded: Loaded<'o>,
    pub(crate) sink: Rc<RefCell<BlockWriter>>,
    spool: PathBuf,
    spool_bytes_max: u64,
    /// `None`: no marks can be added.
    listener: Option<Listener>,
    /// Processes that wait for a save; only of a flight recorder.
    pub(crate) saves: Vec<SaveRequest>,
    /// Written at the start of each snapshot.
    pids: Vec<i32>,
    topics: String,
    losses: Losses,
    missed: Missed,
    meter: Meter,
    /// The last check found too much memory in use.
    is_short: bool,
    sampler: Sampler,
    namespaces: Namespaces,
    targets: Targets,
    /// In progress while the rings are drained.
    snapshot: Option<Taken>,
    /// Keep what the arguments of calls in progress point at, for the next spool.
    remembers: bool,
    records_resolvers: bool,
    turns: u64,
    begun: Instant,
    /// Start of the current spool or chapter.
    chapter_start: Instant,
    /// CPU time of loading the programs.
    cpu_before: u64,
    clocks_at: Instant,
    /// Function calls until the last check, and their number in the second before it.
    calls: (u64, u64),
}

impl<'o> Session<'o> {
    /// Loads the programs; events arrive from now on.
    pub(crate) fn begin(
        options: &Options,
        storage: &'o mut MaybeUninit<OpenObject>,
        out: impl FnOnce(&Path) -> io::Result<Out>,
    ) -> Result<Self, RecordError> {
        let mut loaded = load::load(options, storage)?;
        // The kernel may require privileges for it that are dropped below.
        let watch = Watch::start(&mut loaded, options)?;
        // Without an iterator, reading kernel stacks requires this privilege.
        let reads_stacks = options.wall.is_some() && loaded.wall_iter.is_none();
        drop::privileges(watch.is_some() || reads_stacks);
        let sink = out(&options.spool)
            .and_then(|out| BlockWriter::new(out, options.may_turn, SymbolizerQueue::new(options)));
        let mut sink = sink.map_err(|source| of_spool(&options.spool, source))?;
        sink.wall = Wall::start(&loaded, options).map_err(RecordError::Wall)?;
        sink.followers = Followers::new(&followed::about(options, &loaded.off, &sink.out));
        let sink = Rc::new(RefCell::new(sink));
        let begun = Instant::now();
        let rings = Rings::new(&loaded.rings, loaded.ring_bytes, &sink)?;
        let ring_bytes = loaded.ring_bytes * loaded.rings.len() as u64;
        let mut session = Session {
            rings,
            watch,
            pids: options.pids.clone(),
            topics: complete_topics(options, &loaded.off),
            loaded,
            sink,
            spool: options.spool.clone(),
            spool_bytes_max: options.spool_bytes_max,
            targets: Targets::new(options),
            losses: Losses::default(),
            missed: Missed::default(),
            meter: Meter::new(options.memory_bytes_max, ring_bytes),
            is_short: false,
            sampler: Sampler::start(),
            namespaces: Namespaces::start(),
            listener: Listener::open().ok(),
            saves: Vec::new(),
            snapshot: None,
            remembers: options.may_turn,
            records_resolvers: options.topics.contains(&Topic::Dns),
            turns: 0,
            begun,
            chapter_start: begun,
            cpu_before: clock::own_cpu(),
            clocks_at: begun,
            calls: (0, 0),
        };
        let found = session.targets.find(&session.loaded.skeleton)?;
        session.pids.extend(found);
        session.begun = Instant::now();
        session.begin_spool(&clock::clocks())?;
        Ok(session)
    }

    pub(crate) fn ready(&self) -> Ready<'_> {
        Ready {
            off: &self.loaded.off,
        }
    }

    /// Whether the current spool or chapter has its snapshot.
    pub(crate) fn has_snapshot(&self) -> bool {
        self.snapshot.is_none()
    }

    pub(crate) fn chapter_age(&self) -> Duration {
        self.chapter_start.elapsed()
    }

    fn failed(&self, source: io::Error) -> RecordError {
        of_spool(&self.spool, source)
    }

    /// The clocks come first: without them no timestamp can be converted.
    fn begin_spool(&mut self, now: &Clocks) -> Result<(), RecordError> {
        let complete_until = now.monotonic;
        let mut sink = self.sink.borrow_mut();
        let sink = &mut *sink;
        if let Out::Ring(ring) = &mut sink.out {
            ring.begin_chapter(complete_until);
        }
        snapshot::head(&mut sink.encoder, now, &self.pids, &self.topics);
        if let Some(watch) = &self.watch {
            watch.write_probes(&mut sink.encoder);
        }
        if matches!(sink.out, Out::Ring(_)) {
            // Records in memory have no end at which these could be written.
            write_off_programs(&self.loaded.off, &mut sink.encoder);
            write_stand_ins(&self.loaded.stand_ins, &mut sink.encoder);
        }
        followed::write_in_flight(sink.in_flight.as_mut(), complete_until, &mut sink.encoder);
        sink.complete_until = complete_until;
        sink.write(Part::Head)
            .map_err(|source| of_spool(&self.spool, source))?;
        sink.release_pending();
        if sink.unwritten.is_some() {
            return Err(RecordError::SpoolRoom {
                bytes_max: self.spool_bytes_max,
            });
        }
        self.chapter_start = Instant::now();
        sink.snapshot_until = complete_until;
        self.namespaces.begin_spool();
        self.snapshot = Some(Taken::of(None));
        Ok(())
    }

    /// Drains the rings, for a limited time.
    pub(crate) fn drain(&mut self) -> Result<Drained, RecordError> {
        self.take(Rings::poll)
    }

    /// Drains everything that has arrived until now.
    fn drain_all(&mut self) -> Result<(), RecordError> {
        self.take(|rings| rings.empty().map(Some)).map(|_| ())
    }

    /// While a snapshot is in progress nothing is complete: its records precede the current events.
    fn take(
        &mut self,
        from: impl FnOnce(&mut Rings) -> Result<Option<u64>, RecordError>,
    ) -> Result<Drained, RecordError> {
        self.targets.scan(&self.loaded.skeleton)?;
        let now = clock::monotonic();
        let before = self.sink.borrow().record_bytes();
        let received = self.listener.as_mut().map(|listener| listener.poll(now));
        let Received {
            marks,
            followers,
            saves,
        } = received.unwrap_or_default();
        let emptied = from(&mut self.rings);
        let shared = Rc::clone(&self.sink);
        let mut sink = shared.borrow_mut();
        let sink = &mut *sink;
        if let Some(error) = sink.failed.take() {
            return Err(self.failed(error));
        }
        let emptied = emptied?;
        self.note_losses(sink, now);
        Self::admit(sink, followers);
        self.accept_saves(sink, saves);
        for mark in &marks {
            write_mark(mark, &mut sink.encoder);
        }
        let is_time = self.clocks_at.elapsed() >= CLOCKS_AGE;
        if is_time {
            self.check(sink);
        }
        if let Some(until) = emptied {
            sink.symbolizer.settle(until);
            sink.wall.iter_mut().for_each(|wall| wall.settle(until));
            sink.in_flight.iter_mut().for_each(|it| it.settle(until));
            sink.watcher.iter_mut().for_each(|it| it.settle(until));
        }
        sink.write_names(is_time)
            .map_err(|source| of_spool(&self.spool, source))?;
        self.namespaces.take(&mut sink.encoder);
        let limit = self.sampler.take(&mut sink.encoder).min(sink.take_wall());
        let complete_until = emptied.map_or(0, |until| until.min(limit));
        let complete_until = complete_until.max(sink.complete_until);
        match &mut sink.out {
            // A snapshot in memory is placed first, whenever it completes.
            Out::Ring(ring) => {
                sink.complete_until = complete_until;
                ring.forget(now);
            }
            Out::Spool(_)
                if self
                    .snapshot
                    .as_ref()
                    .is_some_and(|taken| taken.of.is_none()) => {}
            Out::Spool(_) => sink.complete_until = complete_until,
        }
        write_due(sink).map_err(|source| of_spool(&self.spool, source))?;
        Ok(Drained {
            // Less than before if a block did not fit.
            bytes: sink.record_bytes().saturating_sub(before),
            is_all: emptied.is_some(),
        })
    }

    fn note_losses(&mut self, sink: &mut BlockWriter, now: u64) {
        let lost = self.losses.total;
        self.losses.note(&self.loaded, &mut sink.encoder, now);
        if self.losses.total > lost {
            sink.in_flight.iter_mut().for_each(InFlight::lose);
            sink.watcher.iter_mut().for_each(Watcher::lose);
        }
    }

    /// Queues requests to save what is kept in memory.
    fn accept_saves(&mut self, sink: &mut BlockWriter, saves: Vec<SaveRequest>) {
        if matches!(sink.out, Out::Ring(_)) {
            for request in saves {
                // What that process does next must not trigger a condition.
                let watcher = sink.watcher.iter_mut();
                watcher.for_each(|watcher| watcher.ignore_process(request.pid()));
                self.saves.push(request);
            }
        }
    }

    /// Once per [`CLOCKS_AGE`]: compares the clocks, and counts calls, skipped runs and memory.
    fn check(&mut self, sink: &mut BlockWriter) {
        let seconds = self.clocks_at.elapsed().as_secs_f64();
        let new = sink.calls - self.calls.0;
        self.calls = (sink.calls, (new as f64 / seconds) as u64);
        self.clocks_at = Instant::now();
        snapshot::clocks(&mut sink.encoder, &clock::clocks());
        self.missed.poll(&self.loaded, &mut sink.encoder);
        let excess = self.meter.check();
        sink.relieve(excess, self.is_short);
        self.is_short = excess > 0;
    }

    /// New programs may have loaded other libraries.
    pub(crate) fn watch(&mut self) {
        let mut sink = self.sink.borrow_mut();
        let sink = &mut *sink;
        if let Some(watch) = &mut self.watch {
            watch.execed(&sink.execed);
            watch.poll(&mut self.loaded, &mut sink.encoder);
        }
        if let Some(wall) = &sink.wall {
            wall.execed(&sink.execed);
        }
        sink.execed.clear();
        self.namespaces.execed(&sink.spaces);
        sink.spaces.clear();
    }

    /// Writes the available part of the snapshot, or all of it if `must_be`.
    pub(crate) fn take_snapshot(&mut self, must_be: bool) -> Result<(), RecordError> {
        while let Some(Taken { of, parts }) = &self.snapshot {
            let part = if must_be {
                parts.recv().map_err(|_| TryRecvError::Disconnected)
            } else {
                parts.try_recv()
            };
            let mut sink = self.sink.borrow_mut();
            match part {
                Ok(part) => {
                    let put = match of {
                        None => sink.put_snapshot(part.payload()),
                        Some(of) => followed::put_snapshot(&mut sink, *of, &part),
                    };
                    put.map_err(|source| self.failed(source))?;
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    if let Some((id, _)) = of {
                        sink.followers.end_snapshot(*id);
                    }
                    self.snapshot = None;
                    self.sampler.begin();
                }
            }
        }
        Ok(())
    }

    pub(crate) fn progress(&self) -> Progress {
        let sink = self.sink.borrow();
        Progress {
            records: sink.records(),
            bytes: sink.record_bytes(),
            spool_bytes: sink.out.bytes(),
            turns: self.turns,
            calls_per_second: self.calls.1,
            lost: self.losses.total + sink.pending_lost,
            missed: self.missed.count,
            memory: self.meter.most,
            memory_max: self.meter.max,
            memory_short: self.meter.short,
            elapsed: self.begun.elapsed(),
            own_cpu: Duration::from_nanos(clock::own_cpu() - self.cpu_before),
        }
    }

    /// Writes the records that end a spool.
    fn end_spool(&mut self, now: &Clocks) -> Result<(), RecordError> {
        let mut sink = self.sink.borrow_mut();
        let left_out = sink.left_out();
        let ended = sink.end(now, |encoder| self.write_end(&left_out, encoder));
        ended.map_err(|source| of_spool(&self.spool, source))
    }

    fn is_full(&self) -> bool {
        self.sink.borrow().unwritten.is_some()
    }

    /// Waits until the stacks of the last samples are unwound and symbolized.
    fn stop_wall(&mut self) -> Result<(), RecordError> {
        let begun = Instant::now();
        if let Some(wall) = &mut self.sink.borrow_mut().wall {
            wall.stop();
        }
        while self.has_walls() && begun.elapsed() < WALL_END_MAX {
            self.drain_all()?;
            thread::sleep(PAUSE_BUSY);
        }
        Ok(())
    }

    fn has_walls(&self) -> bool {
        let sink = self.sink.borrow();
        sink.wall.as_ref().is_some_and(Wall::has_rounds)
    }

    pub(crate) fn finish(mut self) -> Result<Summary, RecordError> {
        self.list_in_flight(false);
        self.take_snapshot(true)?;
        self.sampler.stop();
        self.stop_wall()?;
        self.drain_all()?;
        // Programs are detached one after another, which takes a while: what the remaining ones
        // report is incomplete. Those that report which process runs what are needed for the last
        // symbols.
        self.missed
            .poll(&self.loaded, &mut self.sink.borrow_mut().encoder);
        self.sink.borrow_mut().is_over = true;
        // Times of the recording itself: what follows is not recorded.
        let ended = self.progress();
        let links = &mut self.loaded.links;
        links.retain(|(chosen, _)| WATCHED.contains(&chosen.program.name));
        self.name_rest(NAMING_END_MAX)?;
        // Programs that report ends are detached before those that report starts: otherwise the
        // last requests would have only an end, and seem to have started before the recording.
        while self.loaded.links.pop().is_some() {}
        let progress = Progress {
            elapsed: ended.elapsed,
            own_cpu: ended.own_cpu,
            ..self.progress()
        };
        self.namespaces.finish(&mut self.sink.borrow_mut().encoder);
        if self.turns == 0 {
            write_cost(&progress, &mut self.sink.borrow_mut().encoder);
        }
        let now = clock::clocks();
        self.end_wall(now.monotonic)?;
        self.end_spool(&now)?;
        let followed = self.sink.borrow().followers.with_segment();
        for id in followed {
            self.end_segment(id, &now)?;
        }
        self.sink.borrow_mut().followers.finish();
        if let Some(watch) = self.watch.take() {
            watch.end();
        }
        let sink = self.sink.borrow();
        if let Out::Spool(writer) = &sink.out {
            writer.sync().map_err(|source| self.failed(source))?;
        }
        Ok(Summary {
            progress: Progress {
                spool_bytes: sink.out.bytes(),
                ..progress
            },
            off: std::mem::take(&mut self.loaded.off),
            unwritten: sink.unwritten.map(|unwritten| Unwritten {
                records: unwritten.records,
                length: Duration::from_nanos(clock::monotonic().saturating_sub(unwritten.since)),
            }),
        })
    }
}

/// Writes drained records to the spool once they are old enough.
fn write_due(sink: &mut BlockWriter) -> std::io::Result<()> {
    let is_due = sink.written.elapsed() >= BLOCK_AGE && !sink.encoder.payload().is_empty();
    if is_due {
        sink.write(Part::Events)
    } else {
        Ok(())
    }
}
