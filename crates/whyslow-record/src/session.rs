//! A recording under way: events from the rings go to the spool.

use std::cell::RefCell;
use std::io::Read as _;
use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use libbpf_rs::{Iter, MapCore as _, MapFlags, RingBuffer, RingBufferBuilder};
use whyslow_model::spool::{Encoder, HEAD_BYTES, Kind, records};

use crate::clock;
use crate::error::RecordError;
use crate::load::{self, Loaded};
use crate::options::Options;
use crate::programs::Off;
use crate::snapshot;
use crate::spool::SpoolWriter;
use crate::watch::Watch;

/// A block is written when it is so large …
const BLOCK_BYTES: usize = 512 << 10;
/// … or so old.
const BLOCK_AGE: Duration = Duration::from_secs(1);
/// Between looks at the rings, when there is much or little to do.
const PAUSE_BUSY: Duration = Duration::from_millis(5);
const PAUSE_IDLE: Duration = Duration::from_millis(40);
/// From so many bytes a pause on there is much to do.
const BUSY_BYTES: u64 = 64 << 10;
/// Clocks are compared so often, to notice steps.
const CLOCKS_AGE: Duration = Duration::from_secs(1);

/// What a record of an exec begins with.
const EXEC: [u8; 2] = (Kind::Exec as u16).to_le_bytes();

/// How far a recording is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    pub records: u64,
    /// Bytes of records.
    pub bytes: u64,
    /// Bytes of the spool.
    pub spool_bytes: u64,
    /// Records that found no room.
    pub lost: u64,
    pub elapsed: Duration,
    /// CPU time of the recorder itself; what its programs take is part of others' time.
    pub own_cpu: Duration,
}

/// What is known when recording begins.
#[derive(Debug)]
pub struct Ready<'r> {
    pub off: &'r [Off],
}

#[derive(Debug)]
pub struct Summary {
    pub progress: Progress,
    pub off: Vec<Off>,
    /// The spool has the size that it may have.
    pub is_full: bool,
}

/// Records until `each`, which is asked many times a second, breaks. `ready` is called when all
/// programs run.
pub fn record(
    options: &Options,
    ready: impl FnOnce(&Ready<'_>),
    mut each: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Summary, RecordError> {
    let mut storage = MaybeUninit::uninit();
    let mut loaded = load::load(options, &mut storage)?;
    let failed = |source| RecordError::Spool {
        path: options.spool.clone(),
        source,
    };
    let writer = SpoolWriter::create(&options.spool).map_err(failed)?;
    let sink = Rc::new(RefCell::new(Sink::new(writer)));
    let rings = rings(&loaded, &sink)?;
    let begun = Instant::now();
    let mut session = Session {
        sink,
        rings,
        seen: Vec::new(),
        lost: 0,
        begun,
        cpu_before: clock::own_cpu(),
        clocks_at: begun,
    };
    session.first_block().map_err(failed)?;
    let mut watch = Watch::start(&mut loaded);
    // The rings must not fill meanwhile.
    let mut snapshot = Some(thread::spawn(|| {
        let mut encoder = Encoder::default();
        snapshot::all(&mut encoder);
        encoder
    }));
    ready(&Ready { off: &loaded.off });
    let mut is_full = false;
    loop {
        let bytes = session
            .drain(&loaded, snapshot.is_none())
            .map_err(|error| error.or(failed))?;
        if snapshot.as_ref().is_some_and(JoinHandle::is_finished)
            && let Some(snapshot) = snapshot.take()
        {
            session.put_snapshot(snapshot).map_err(failed)?;
        }
        session.watch(&mut watch, &mut loaded);
        let progress = session.progress();
        is_full |= progress.spool_bytes >= options.spool_bytes_max;
        if each(&progress).is_break() || is_full {
            break;
        }
        thread::sleep(if bytes >= BUSY_BYTES {
            PAUSE_BUSY
        } else {
            PAUSE_IDLE
        });
    }
    tell_unfinished(&mut loaded);
    session.end_watch(watch, &mut loaded);
    loaded.links.clear();
    if let Some(snapshot) = snapshot.take() {
        session.put_snapshot(snapshot).map_err(failed)?;
    }
    session
        .drain(&loaded, true)
        .map_err(|error| error.or(failed))?;
    session
        .finish(loaded.off)
        .map_err(failed)
        .map(|summary| Summary { is_full, ..summary })
}

/// Has the kernel tell of the calls that have not returned.
fn tell_unfinished(loaded: &mut Loaded<'_>) {
    let Some(link) = loaded.last.take() else {
        return;
    };
    if let Ok(mut threads) = Iter::new(&link) {
        let mut nothing = [0; 64];
        while threads.read(&mut nothing).is_ok_and(|count| count > 0) {}
    }
}

fn rings(
    loaded: &Loaded<'_>,
    sink: &Rc<RefCell<Sink>>,
) -> Result<RingBuffer<'static>, RecordError> {
    let mut builder = RingBufferBuilder::new();
    for ring in &loaded.rings {
        let sink: Rc<RefCell<Sink>> = Rc::clone(sink);
        let take = move |record: &[u8]| sink.borrow_mut().take(record);
        builder.add(ring, take).map_err(RecordError::Buffer)?;
    }
    builder.build().map_err(RecordError::Buffer)
}

/// Where records go.
struct Sink {
    encoder: Encoder,
    writer: SpoolWriter,
    written: Instant,
    /// All before this moment was told before the records in the encoder came.
    complete_until: u64,
    failed: Option<std::io::Error>,
    /// Processes that run another program.
    execed: Vec<i32>,
}

impl Sink {
    fn new(writer: SpoolWriter) -> Self {
        Self {
            encoder: Encoder::default(),
            writer,
            written: Instant::now(),
            complete_until: 0,
            failed: None,
            execed: Vec::new(),
        }
    }

    /// A record from a ring; anything but 0 ends the reading.
    fn take(&mut self, record: &[u8]) -> i32 {
        self.encoder.copy(record);
        if record.starts_with(&EXEC) {
            self.execed.extend(pid_of(record));
        }
        if self.encoder.payload().len() >= BLOCK_BYTES
            && let Err(error) = self.write()
        {
            self.failed = Some(error);
            return -1;
        }
        0
    }

    fn write(&mut self) -> std::io::Result<()> {
        self.written = Instant::now();
        self.writer.write(&mut self.encoder, self.complete_until)
    }
}

/// Process of a record.
fn pid_of(record: &[u8]) -> Option<i32> {
    let bytes = record.get(HEAD_BYTES - 4..HEAD_BYTES)?;
    Some(i32::from_le_bytes(bytes.try_into().ok()?))
}

struct Session {
    sink: Rc<RefCell<Sink>>,
    rings: RingBuffer<'static>,
    /// What was lost by CPU, and when that was looked at.
    seen: Vec<(u64, u64)>,
    lost: u64,
    begun: Instant,
    /// CPU time of loading the programs.
    cpu_before: u64,
    clocks_at: Instant,
}

/// What can go wrong with a drain.
enum DrainError {
    Rings(libbpf_rs::Error),
    Spool(std::io::Error),
}

impl DrainError {
    fn or(self, failed: impl FnOnce(std::io::Error) -> RecordError) -> RecordError {
        match self {
            DrainError::Rings(error) => RecordError::Consume(error),
            DrainError::Spool(error) => failed(error),
        }
    }
}

impl Session {
    /// The clocks come first: without them no time means anything.
    fn first_block(&mut self) -> std::io::Result<()> {
        let mut sink = self.sink.borrow_mut();
        snapshot::head(&mut sink.encoder);
        sink.complete_until = clock::monotonic();
        sink.write()
    }

    /// Takes what the rings hold; returns how much that was. While a snapshot is being taken nothing
    /// is complete: what it will tell belongs before what happens now.
    fn drain(&mut self, loaded: &Loaded<'_>, is_complete: bool) -> Result<u64, DrainError> {
        let until = clock::monotonic();
        let before = self.bytes();
        let consumed = self.rings.consume();
        if let Some(error) = self.sink.borrow_mut().failed.take() {
            return Err(DrainError::Spool(error));
        }
        consumed.map_err(DrainError::Rings)?;
        self.note_losses(loaded, until);
        let mut sink = self.sink.borrow_mut();
        if self.clocks_at.elapsed() >= CLOCKS_AGE {
            self.clocks_at = Instant::now();
            snapshot::clocks(&mut sink.encoder);
        }
        if is_complete {
            sink.complete_until = until;
        }
        if sink.written.elapsed() >= BLOCK_AGE && !sink.encoder.payload().is_empty() {
            sink.write().map_err(DrainError::Spool)?;
        }
        drop(sink);
        Ok(self.bytes() - before)
    }

    /// Programs that began meanwhile may bring other libraries.
    fn watch(&mut self, watch: &mut Option<Watch>, loaded: &mut Loaded<'_>) {
        let mut sink = self.sink.borrow_mut();
        match watch {
            Some(watch) => {
                watch.execed(sink.execed.drain(..));
                watch.turn(loaded);
            }
            None => sink.execed.clear(),
        }
    }

    fn end_watch(&mut self, watch: Option<Watch>, loaded: &mut Loaded<'_>) {
        let encoder = &mut self.sink.borrow_mut().encoder;
        loaded
            .off
            .extend(watch.and_then(|watch| watch.finish(encoder)));
    }

    fn bytes(&self) -> u64 {
        let sink = self.sink.borrow();
        sink.writer.record_bytes + sink.encoder.payload().len() as u64
    }

    /// Tells of what was lost since the last look.
    fn note_losses(&mut self, loaded: &Loaded<'_>, now: u64) {
        let losses = &loaded.skeleton.maps.losses;
        let Ok(Some(by_cpu)) = losses.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY) else {
            return;
        };
        self.seen.resize(by_cpu.len(), (0, now));
        let mut sink = self.sink.borrow_mut();
        for (cpu, (lost, seen)) in by_cpu.iter().zip(&mut self.seen).enumerate() {
            let number = |at: usize| {
                let bytes = lost.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
                bytes.map_or(0, u64::from_ne_bytes)
            };
            let (count, last) = (number(0), number(8));
            if count > seen.0 {
                let new = count - seen.0;
                self.lost += new;
                let place = (cpu as u16, 0);
                sink.encoder
                    .begin_on(Kind::Lost, seen.1, (0, 0), place)
                    .u64(seen.1)
                    .u64(last.max(seen.1))
                    .u64(new)
                    .end();
            }
            *seen = (count, now);
        }
    }

    fn put_snapshot(&mut self, snapshot: JoinHandle<Encoder>) -> std::io::Result<()> {
        let mut sink = self.sink.borrow_mut();
        if !sink.encoder.payload().is_empty() {
            sink.write()?;
        }
        // One that panicked tells nothing; events tell nevertheless.
        let Ok(snapshot) = snapshot.join() else {
            return Ok(());
        };
        let until = sink.complete_until;
        let payload = snapshot.payload();
        let (mut begin, mut count) = (0, 0);
        for (at, _) in records(payload) {
            if at - begin >= BLOCK_BYTES {
                sink.writer.write_block(&payload[begin..at], count, until)?;
                (begin, count) = (at, 0);
            }
            count += 1;
        }
        sink.writer.write_block(&payload[begin..], count, until)
    }

    fn progress(&self) -> Progress {
        let sink = self.sink.borrow();
        Progress {
            records: sink.writer.records + u64::from(sink.encoder.records()),
            bytes: sink.writer.record_bytes + sink.encoder.payload().len() as u64,
            spool_bytes: sink.writer.bytes,
            lost: self.lost,
            elapsed: self.begun.elapsed(),
            own_cpu: Duration::from_nanos(clock::own_cpu() - self.cpu_before),
        }
    }

    fn finish(self, off: Vec<Off>) -> std::io::Result<Summary> {
        let progress = self.progress();
        let mut sink = self.sink.borrow_mut();
        snapshot::clocks(&mut sink.encoder);
        for off in &off {
            let text = format!("{}: {} ({})", off.program, off.reason, off.tells);
            sink.encoder
                .begin(Kind::Fact, clock::monotonic(), (0, 0))
                .text(b"off")
                .text(text.as_bytes())
                .end();
        }
        sink.complete_until = u64::MAX;
        sink.write()?;
        sink.writer.sync()?;
        Ok(Summary {
            progress: Progress {
                spool_bytes: sink.writer.bytes,
                ..progress
            },
            off,
            is_full: false,
        })
    }
}
