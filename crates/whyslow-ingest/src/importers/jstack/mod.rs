//! Thread dumps of a JVM (`jstack`, `jcmd Thread.print`, `kill -QUIT`), a single one or a series.
//!
//! A dump contains what each thread did at one time, which locks it held, and which one it waited
//! for: lock holders are recorded, not inferred. Nothing is known about the time between two dumps.
//! A thread that waits for the same lock in several dumps is assumed to have waited at least from
//! the first to the last.

mod dump;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use super::stamp::{Clock, Stamp};
use crate::profile::locks::{Confidence, Holder, LockKind, LockWait, WaitSource};
use crate::profile::{
    CodeFrame, CodeKind, NO_STACK, Point, Profile, SampleKind, SampledState, SampledThread,
};
use dump::{Dump, DumpedThread};

/// Resolution of timestamps, and the assumed interval between dumps without one.
const STAMP: Ns = 1_000_000_000;

/// Contents of a text of dumps.
#[derive(Debug, Default)]
pub struct Read {
    /// One sample per thread and dump.
    pub profile: Profile,
    /// In order of their end.
    pub waits: Vec<LockWait>,
    /// Number of dumps.
    pub dumps: u64,
    /// Dumps without a timestamp.
    pub unstamped: u64,
    /// Dumps whose timestamp has no zone.
    pub zoneless: u64,
}

/// Whether a file starting with `head` is a thread dump.
pub fn is_dump(head: &str) -> bool {
    dump::is_dump(head)
}

/// One file of a series.
#[derive(Debug, Clone, Copy, Default)]
pub struct DumpFile<'t> {
    /// Content of the file.
    pub text: &'t str,
    /// Time in the file name, for files with one dump, which is more exact than the timestamp
    /// inside.
    pub named: Option<Ns>,
    /// Modification time, for dumps without any timestamp.
    pub written: Option<Ns>,
    /// Offset added to its times.
    pub shift: Ns,
}

/// Reads all dumps of some files in time order.
pub fn read(files: &[DumpFile<'_>]) -> Read {
    let mut reading = Reading::default();
    let mut taken: Vec<Vec<Dump>> = files.iter().map(|file| dump::dumps(file.text)).collect();
    let zone = zone(&taken, files);
    let mut dumps = Vec::new();
    for (found, file) in taken.iter_mut().zip(files) {
        let unstamped = found.iter().filter(|dump| dump.ts.is_none()).count();
        reading.read.unstamped += unstamped as u64;
        if !is_named(found, file) {
            reading.read.zoneless += (found.len() - unstamped) as u64;
        }
        for ts in found.iter_mut().filter_map(|dump| dump.ts.as_mut()) {
            *ts = ts.saturating_add(zone);
        }
        let times = times(found, file);
        dumps.extend(times.into_iter().zip(found.drain(..)));
    }
    dumps.index_sort_by_key(|(ts, _)| *ts);
    reading.read.dumps = dumps.len() as u64;
    let mut before: Option<Ns> = None;
    for (ts, dump) in &dumps {
        let ts = before.map_or(*ts, |before| (*ts).max(before.saturating_add(1)));
        reading.dump(dump, ts, before);
        before = Some(ts);
    }
    reading.finish()
}

/// Whether the time in the file name is better than the timestamp inside.
fn is_named(dumps: &[Dump], file: &DumpFile<'_>) -> bool {
    file.named.is_some() && dumps.len() == 1
}

/// Offset of the timestamps: a machine has one zone, the most frequent one of files written with
/// their last dump.
fn zone(taken: &[Vec<Dump>], files: &[DumpFile<'_>]) -> Ns {
    let mut zones: BTreeMap<Ns, usize> = BTreeMap::new();
    for (dumps, file) in taken.iter().zip(files) {
        let Some(last) = dumps.iter().rev().find_map(|dump| dump.ts) else {
            continue;
        };
        if !is_named(dumps, file) {
            let mut clock = Clock::default();
            clock.read(Stamp::Wall(last));
            *zones.entry(clock.shift(file.written).by).or_default() += 1;
        }
    }
    let most = zones.into_iter().max_by_key(|(_, files)| *files);
    most.map_or(0, |(zone, _)| zone)
}

/// Time of each dump. Timestamps have a resolution of seconds: dumps of the same second are spread
/// evenly.
fn times(dumps: &[Dump], file: &DumpFile<'_>) -> Vec<Ns> {
    let mut last: Option<Ns> = None;
    let mut times = Vec::with_capacity(dumps.len());
    for same in dumps.chunk_by(|one, next| one.ts.is_some() && one.ts == next.ts) {
        let known = file.named.filter(|_| is_named(dumps, file)).or(same[0].ts);
        let otherwise = || match last {
            Some(last) => last.saturating_add(STAMP),
            None => file.written.unwrap_or(0),
        };
        let begin = known.unwrap_or_else(otherwise);
        for number in 0..same.len() {
            let ts = begin.saturating_add(STAMP * number as Ns / same.len() as Ns);
            last = Some(ts);
            times.push(ts.saturating_add(file.shift));
        }
    }
    times
}

/// Lock holders: index of the thread in the dump by lock address.
fn holders(threads: &[DumpedThread]) -> FxHashMap<u64, usize> {
    let mut holders: FxHashMap<u64, usize> = FxHashMap::default();
    for (place, thread) in threads.iter().enumerate() {
        for address in &thread.holds {
            let holder = holders.entry(*address).or_insert(place);
            // If two threads appear to hold a lock, one may have released it in `Object.wait`.
            if threads[*holder].is_on_monitor && !thread.is_on_monitor {
                *holder = place;
            }
        }
    }
    holders
}

#[derive(Default)]
struct Reading {
    read: Read,
    /// Waits in the last dump, by thread and address.
    open: FxHashMap<(u32, u64), LockWait>,
}

impl Reading {
    fn dump(&mut self, dump: &Dump, ts: Ns, before: Option<Ns>) {
        let mut known = Vec::with_capacity(dump.threads.len());
        for thread in &dump.threads {
            known.push(self.thread(thread, ts, before));
        }
        let holders = holders(&dump.threads);
        let mut open = FxHashMap::default();
        for (place, thread) in dump.threads.iter().enumerate() {
            let Some((kind, address, frame)) = self.wanted(thread, known[place].1) else {
                continue;
            };
            let holder = holders.get(&address).map(|holder| known[*holder]);
            let key = (known[place].0, address);
            let wait = match self.open.remove(&key) {
                Some(mut wait) => {
                    wait.ts_end = ts;
                    wait
                }
                None => LockWait {
                    ts,
                    ts_end: ts,
                    thread: known[place].0,
                    kind,
                    reported_by: WaitSource::Dump,
                    stack: known[place].1,
                    frame,
                    address: Some(address),
                    object: thread
                        .wants
                        .as_ref()
                        .map(|wanted| wanted.class.as_str())
                        .unwrap_or_default()
                        .into(),
                    holder: None,
                },
            };
            let held = wait.dur();
            let holder = holder.map(|(thread, stack)| Holder {
                thread,
                held,
                confidence: Confidence::High,
                stack,
                gap: None,
            });
            // A holder that changed had the lock for part of the time only; the last one is
            // reported.
            let is_same = wait
                .holder
                .is_none_or(|before| holder.is_some_and(|now| now.thread == before.thread));
            if is_same {
                open.insert(key, LockWait { holder, ..wait });
            } else {
                self.read.waits.push(wait.clone());
                open.insert(
                    key,
                    LockWait {
                        ts,
                        holder: holder.map(|holder| Holder { held: 0, ..holder }),
                        ..wait
                    },
                );
            }
        }
        let ended = std::mem::replace(&mut self.open, open);
        self.read.waits.extend(ended.into_values());
    }

    /// Adds the thread and its stack, with a sample of it.
    fn thread(&mut self, dumped: &DumpedThread, ts: Ns, before: Option<Ns>) -> (u32, u32) {
        let profile = &mut self.read.profile;
        let thread = profile.thread(SampledThread {
            tid: dumped.tid,
            runtime_id: dumped.runtime_id,
            name: Some(dumped.name.clone()),
        });
        let frames: Vec<u32> = dumped
            .frames
            .iter()
            .map(|(function, line)| {
                profile.frame(CodeFrame {
                    kind: CodeKind::Managed,
                    function: function.clone(),
                    module: None,
                    line: *line,
                })
            })
            .collect();
        let stack = profile.stack(&frames);
        let begin = before.unwrap_or_else(|| ts.saturating_sub(STAMP));
        if stack != NO_STACK {
            profile.points.push(Point {
                // It covers the time since the previous dump, as samples do.
                ts: begin,
                span: ts.saturating_sub(begin),
                thread,
                stack,
                credits: 1,
                kind: SampleKind::Dump,
                state: match dumped.state.as_str() {
                    "RUNNABLE" => SampledState::Running,
                    "" | "NEW" | "TERMINATED" => SampledState::Unknown,
                    _ => SampledState::Sleeping,
                },
                is_assumed: false,
            });
        }
        (thread, stack)
    }

    /// Kind and address of the lock that a thread waits for, and the frame that acquires it.
    fn wanted(&self, thread: &DumpedThread, stack: u32) -> Option<(LockKind, u64, u32)> {
        let wanted = thread.wants.as_ref()?;
        let frames = self.read.profile.stacks.get(stack as usize)?;
        if !wanted.parks {
            return Some((
                LockKind::Monitor,
                wanted.address,
                *frames.get(wanted.place)?,
            ));
        }
        // Most parked threads wait for work; those that wait for a lock are inside its code.
        let place = crate::profile::locks::acquires(&self.read.profile, stack)?;
        Some((LockKind::Library, wanted.address, *frames.get(place)?))
    }

    fn finish(mut self) -> Read {
        self.read.waits.extend(self.open.into_values());
        let waits = &mut self.read.waits;
        waits.index_sort_by_key(|wait| (wait.ts_end, wait.ts, wait.thread, wait.address));
        self.read.profile.sort();
        self.read
    }
}

#[cfg(test)]
mod tests;
