//! Segments for followers of a recording: each starts and ends like a spool, while the recording
//! itself continues unchanged.

use std::io;

use whyslow_model::spool::{Encoder, records};

use super::facts::{fact, write_off_programs, write_stand_ins};
use super::{NAMING_ROTATION_MAX, Session, Taken, of_spool};
use crate::block_writer::{BlockWriter, Out};
use crate::clock::{self, Clocks};
use crate::error::RecordError;
use crate::following::{About, FOLLOWERS_MAX, FollowRequest, Id, Purpose};
use crate::in_flight::InFlight;
use crate::marks::NewFollower;
use crate::options::Options;
use crate::packed::Packed;
use crate::programs::{Off, Topic};
use crate::snapshot;

/// Description of the recording, for followers.
pub(super) fn about(options: &Options, off: &[Off], out: &Out) -> About {
    let is_whole = |topic: &Topic| !off.iter().any(|off| off.topic == Some(*topic));
    About {
        purpose: match out {
            Out::Ring(_) => Purpose::Flight,
            Out::Spool(_) if options.may_turn => Purpose::Live,
            Out::Spool(_) => Purpose::Record,
        },
        topics: options.topics.iter().copied().filter(is_whole).collect(),
        is_of_all: !options.only_pids && options.call_min.is_zero(),
    }
}

impl Session<'_> {
    /// Accepts new followers.
    pub(super) fn admit(sink: &mut BlockWriter, new_followers: Vec<NewFollower>) {
        for new_follower in new_followers {
            let pid = new_follower.pid;
            if sink.followers.admit(new_follower)
                && let Some(watcher) = &mut sink.watcher
            {
                // What the follower writes must not trigger a condition.
                watcher.ignore_process(pid);
            }
        }
    }

    /// Sends the followers their data.
    pub(crate) fn serve(&mut self) -> Result<(), RecordError> {
        let mut sink = self.sink.borrow_mut();
        if sink.followers.is_empty() {
            return Ok(());
        }
        let requested = sink.followers.poll();
        if sink.followers.is_empty() && !self.remembers {
            sink.in_flight = None;
        }
        let followers = sink.followers.pids();
        drop(sink);
        self.exclude_followers(followers);
        match requested {
            Some((id, FollowRequest::Next)) if self.snapshot.is_none() => self.begin_segment(id),
            Some((id, FollowRequest::End)) if self.snapshot.is_none() => {
                self.name_rest(NAMING_ROTATION_MAX)?;
                self.list_in_flight(false);
                self.drain_all()?;
                self.end_wall(0)?;
                self.seal()?;
                self.end_segment(id, &clock::clocks())
            }
            _ => Ok(()),
        }
    }

    /// Excludes the followers from the recording, as the recorder itself.
    fn exclude_followers(&mut self, pids: [u32; FOLLOWERS_MAX]) {
        if let Some(settings) = self.loaded.skeleton.maps.bss_data.as_deref_mut()
            && settings.followers != pids
        {
            settings.followers = pids;
            settings.has_followers = pids != [0; FOLLOWERS_MAX];
        }
    }

    fn begin_segment(&mut self, id: Id) -> Result<(), RecordError> {
        self.name_rest(NAMING_ROTATION_MAX)?;
        let until = self.drain_with_in_flight()?;
        self.sampler.next_spool();
        self.end_wall(until.monotonic)?;
        self.seal()?;
        if self.sink.borrow_mut().followers.has_segment(id) {
            self.end_segment(id, &until)?;
        }
        let failed = |source| of_spool(&self.spool, source);
        let mut sink = self.sink.borrow_mut();
        let sink = &mut *sink;
        let mut head = Encoder::default();
        snapshot::head(&mut head, &until, &self.pids, &self.topics);
        if let Some(watch) = &self.watch {
            watch.write_probes(&mut head);
        }
        write_in_flight(sink.in_flight.as_mut(), until.monotonic, &mut head);
        let head = sink
            .packer
            .pack_all(&head, until.monotonic)
            .map_err(failed)?;
        sink.followers.begin(id, head);
        // Everything up to then was written before: later records were buffered.
        sink.complete_until = sink.complete_until.max(until.monotonic);
        sink.release_pending();
        sink.symbolizer.begin_spool();
        if self.records_resolvers {
            self.namespaces.begin_spool();
        }
        self.snapshot = Some(Taken::of(Some((id, until.monotonic))));
        Ok(())
    }

    /// Writes the records that end a spool, for one follower.
    pub(super) fn end_segment(&mut self, id: Id, now: &Clocks) -> Result<(), RecordError> {
        let failed = |source| of_spool(&self.spool, source);
        let mut sink = self.sink.borrow_mut();
        let sink = &mut *sink;
        let mut end = Encoder::default();
        snapshot::clocks(&mut end, now);
        sink.followers.write_left_out(id, &mut end);
        self.write_end(&sink.left_out(), &mut end);
        let end = sink.packer.pack_all(&end, u64::MAX).map_err(failed)?;
        sink.followers.end(id, end);
        Ok(())
    }

    /// Writes the records that end every spool.
    pub(super) fn write_end(&self, left_out: &[(&str, u64)], encoder: &mut Encoder) {
        write_off_programs(&self.loaded.off, encoder);
        write_stand_ins(&self.loaded.stand_ins, encoder);
        for (what, times) in left_out.iter().filter(|(_, times)| *times > 0) {
            fact(encoder, what, &times.to_string());
        }
        if let Some(watch) = &self.watch {
            watch.write_facts(encoder);
        }
    }
}

/// Passes a part of a snapshot to a follower.
pub(super) fn put_snapshot(
    sink: &mut BlockWriter,
    (id, begin): (Id, u64),
    part: &Encoder,
) -> io::Result<()> {
    let count = records(part.payload()).count() as u32;
    let part: Packed = sink.packer.pack(part.payload(), count, begin)?;
    sink.followers.put_snapshot(id, part);
    Ok(())
}

/// What a spool needs to know about operations that started before it.
pub(super) fn write_in_flight(in_flight: Option<&mut InFlight>, until: u64, encoder: &mut Encoder) {
    let Some(in_flight) = in_flight else {
        return;
    };
    in_flight.end_rotation(until, encoder);
    for (what, times) in in_flight.take_forgotten() {
        if times > 0 {
            fact(encoder, what, &times.to_string());
        }
    }
}
