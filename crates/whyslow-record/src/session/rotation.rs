//! A recording can end its spool and continue in another one, with all programs attached. The
//! kernel lists every call in progress, including those reported before. Events up to then go to
//! the old spool, later ones to the new one, whichever ring they arrive through. Records of calls
//! go to both, except for calls that have returned since. So each record of a return is in one
//! spool, and each spool knows the calls that its returns belong to.

use std::io::Read as _;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use libbpf_rs::Iter;

use super::{NAMING_ROTATION_MAX, NAMING_ROUNDS, PAUSE_BUSY, Session, of_spool};
use crate::block_writer::Out;
use crate::clock::{self, Clocks};
use crate::error::RecordError;
use crate::ring::{Part, Window};
use crate::spool::SpoolWriter;
use crate::when::Trigger;

impl Session<'_> {
    /// Ends the spool and starts another one.
    pub(super) fn rotate(&mut self, spool: PathBuf) -> Result<(), RecordError> {
        let writer = SpoolWriter::create(&spool, self.spool_bytes_max)
            .map_err(|source| of_spool(&spool, source))?;
        self.name_rest(NAMING_ROTATION_MAX)?;
        let until = self.drain_with_in_flight()?;
        self.sampler.next_spool();
        self.end_wall(until.monotonic)?;
        self.end_spool(&until)?;
        self.sink.borrow_mut().begin(writer);
        self.spool = spool;
        self.turns += 1;
        self.begin_spool(&until)
    }

    /// Starts another chapter of the records in memory.
    pub(crate) fn next_chapter(&mut self) -> Result<(), RecordError> {
        self.name_rest(NAMING_ROTATION_MAX)?;
        let until = self.drain_with_in_flight()?;
        self.sampler.next_spool();
        self.end_wall(until.monotonic)?;
        self.seal()?;
        self.sink.borrow_mut().symbolizer.begin_spool();
        self.begin_spool(&until)
    }

    /// The records in memory, up to now.
    pub(crate) fn window(&mut self, trigger: Trigger) -> Result<Option<Window>, RecordError> {
        self.name_rest(NAMING_ROTATION_MAX)?;
        self.list_in_flight(false);
        self.drain_all()?;
        self.end_wall(0)?;
        self.seal()?;
        Ok(match &self.sink.borrow().out {
            Out::Ring(ring) => Some(ring.window(clock::monotonic(), trigger)),
            Out::Spool(_) => None,
        })
    }

    /// Finishes the last wall-clock samples, with the symbols that they need.
    pub(super) fn end_wall(&mut self, until: u64) -> Result<(), RecordError> {
        let mut sink = self.sink.borrow_mut();
        sink.end_wall(until);
        let written = sink.write_names(true);
        written.map_err(|source| of_spool(&self.spool, source))
    }

    /// Seals the pending records into a block.
    pub(super) fn seal(&mut self) -> Result<(), RecordError> {
        let mut sink = self.sink.borrow_mut();
        if sink.encoder.payload().is_empty() {
            return Ok(());
        }
        sink.write(Part::Events)
            .map_err(|source| of_spool(&self.spool, source))
    }

    /// Drains the rings, including all calls in progress, which are also written to the next spool.
    /// Returns the time up to which the records are complete; later ones are buffered for the next
    /// spool. Rings are emptied one after another: otherwise, for a thread that migrated meanwhile,
    /// a return could be in this spool and the data of its call in the next.
    pub(super) fn drain_with_in_flight(&mut self) -> Result<Clocks, RecordError> {
        self.sink.borrow_mut().begin_rotation(clock::monotonic());
        self.drain_all()?;
        self.list_in_flight(true);
        let until = clock::clocks();
        self.sink.borrow_mut().hold_from(until.monotonic);
        self.drain_all()?;
        Ok(until)
    }

    /// Makes the kernel list the calls in progress: all of them, or only those not listed before.
    pub(super) fn list_in_flight(&mut self, again: bool) {
        let Some(link) = &self.loaded.last else {
            return;
        };
        if let Some(settings) = self.loaded.skeleton.maps.bss_data.as_deref_mut() {
            settings.is_rotating = again;
        }
        if let Ok(mut threads) = Iter::new(link) {
            let mut nothing = [0; 64];
            while threads.read(&mut nothing).is_ok_and(|count| count > 0) {}
        }
    }

    /// Symbolizes the most recent stacks, within the time limit.
    pub(super) fn name_rest(&mut self, longest: Duration) -> Result<(), RecordError> {
        let begun = Instant::now();
        for round in 0.. {
            let emptied = self.rings.poll()?;
            let mut sink = self.sink.borrow_mut();
            if let Some(until) = emptied {
                sink.symbolizer.settle(until);
                sink.wall.iter_mut().for_each(|wall| wall.settle(until));
            }
            // Functions in the last samples need symbols as well.
            sink.take_wall();
            let is_done = round >= NAMING_ROUNDS && sink.symbolizer.is_done();
            if is_done || begun.elapsed() >= longest {
                let written = sink.write_names(true);
                return written.map_err(|source| of_spool(&self.spool, source));
            }
            drop(sink);
            thread::sleep(PAUSE_BUSY);
        }
        Ok(())
    }
}
