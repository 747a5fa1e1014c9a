//! Counters of the machine, its processes and its file systems, read once a second by a separate
//! thread, so that slow reads delay no events.
//!
//! The cost per second is bounded: if there are many processes, only some are read each second, in
//! rotation, and only changes are recorded.

mod file_systems;
mod machine;
mod process;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use whyslow_model::counter;
use whyslow_model::spool::{Encoder, Kind};

use self::machine::Value;
use crate::clock;
use crate::snapshot;

const PERIOD: Duration = Duration::from_secs(1);
/// Maximum number of processes read per second.
const PROCESSES_EACH: usize = 300;
/// The same at the start and at the end.
const PROCESSES_AT_ENDS: usize = 5_000;
/// Maximum number of new processes described per second.
const NEW_EACH: usize = 100;
/// File systems are read every this many seconds.
const FILE_SYSTEMS_EACH: u64 = 10;
/// How long the end of a recording waits for a read that hangs.
const STOP_MAX: Duration = Duration::from_secs(3);

/// The sampler thread, and its results that were not taken yet.
pub(crate) struct Sampler {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    woken: Condvar,
}

#[derive(Default)]
struct State {
    found: Encoder,
    /// Start of the current round: its results are not earlier.
    round: Option<u64>,
    /// Number of spools started: each needs all values.
    spools: u64,
    /// The spool has its snapshot, which must precede the results.
    may_begin: bool,
    is_over: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A round that panicked left the results of earlier ones intact.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a round is due, and starts it. Returns the number of spools so far, and whether
    /// it is the last round.
    fn wait(&self, until: Instant, spools: u64) -> (u64, bool) {
        let mut state = self.lock();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let is_due = state.spools != spools || left.is_zero();
            if state.is_over || state.may_begin && is_due {
                state.round = Some(clock::monotonic());
                return (state.spools, state.is_over);
            }
            state = if state.may_begin {
                let woken = self.woken.wait_timeout(state, left);
                woken.unwrap_or_else(PoisonError::into_inner).0
            } else {
                let woken = self.woken.wait(state);
                woken.unwrap_or_else(PoisonError::into_inner)
            };
        }
    }
}

impl Sampler {
    pub(crate) fn start() -> Self {
        let shared = Arc::<Shared>::default();
        let named = thread::Builder::new().name("sampler".into());
        let thread = named.spawn({
            let shared = Arc::clone(&shared);
            move || run(&shared)
        });
        Self {
            shared,
            // Without a thread nothing is sampled.
            thread: thread.ok(),
        }
    }

    /// The snapshot is complete.
    pub(crate) fn begin(&self) {
        self.shared.lock().may_begin = true;
        self.shared.woken.notify_all();
    }

    /// Moves the results to the encoder; later results are not before the returned time.
    pub(crate) fn take(&self, encoder: &mut Encoder) -> u64 {
        let mut state = self.shared.lock();
        encoder.append(&state.found);
        state.found.clear();
        state.round.unwrap_or(u64::MAX)
    }

    /// Another spool starts: results not taken belong to the previous one, which has ended.
    pub(crate) fn next_spool(&self) {
        let mut state = self.shared.lock();
        state.found.clear();
        state.round = None;
        state.may_begin = false;
        state.spools += 1;
        self.shared.woken.notify_all();
    }

    /// Runs a last round.
    pub(crate) fn stop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.woken.notify_all();
        let begun = Instant::now();
        let Some(thread) = self.thread.take() else {
            return;
        };
        while !thread.is_finished() && begun.elapsed() < STOP_MAX {
            thread::sleep(Duration::from_millis(2));
        }
        if thread.is_finished() {
            // A thread that panicked has left its results.
            let _ = thread.join();
        }
    }
}

fn run(shared: &Shared) {
    let mut rounds = Rounds::new(Path::new("/proc"));
    let (mut due, mut spools) = (Instant::now(), 0);
    loop {
        let (spool, is_over) = shared.wait(due, spools);
        if spool != spools {
            rounds = Rounds::new(Path::new("/proc"));
            spools = spool;
        }
        let mut encoder = Encoder::default();
        rounds.round(&mut encoder, is_over);
        let mut state = shared.lock();
        if state.spools == spools {
            state.found.append(&encoder);
            state.round = None;
        }
        drop(state);
        if is_over {
            return;
        }
        // A late round is not made up for.
        due = (due + PERIOD).max(Instant::now() + PERIOD / 2);
    }
}

/// The values already recorded, so that only changes are recorded.
struct Rounds {
    proc: PathBuf,
    number: u64,
    machine: BTreeMap<u32, i64>,
    processes: BTreeMap<i32, Known>,
    /// The next process to read.
    next: i32,
    file_systems: file_systems::FileSystems,
}

#[derive(Default)]
struct Known {
    values: Vec<Value>,
    /// It started during the recording.
    is_new: bool,
    /// A kernel thread has no memory of its own.
    has_none: bool,
}

impl Rounds {
    fn new(proc: &Path) -> Self {
        Self {
            proc: proc.to_owned(),
            number: 0,
            machine: BTreeMap::new(),
            processes: BTreeMap::new(),
            next: 0,
            file_systems: file_systems::FileSystems::default(),
        }
    }

    fn round(&mut self, encoder: &mut Encoder, is_last: bool) {
        let uptime = clock::clocks().boot as i64;
        let values = machine::all(&self.proc, uptime);
        let changed = |(place, value): &Value| self.machine.insert(*place, *value) != Some(*value);
        let values: Vec<Value> = values.into_iter().filter(changed).collect();
        put(encoder, 0, &values);
        let is_first = self.number == 0;
        self.find(encoder, (is_first, is_last));
        let count = if is_first || is_last {
            PROCESSES_AT_ENDS
        } else {
            PROCESSES_EACH
        };
        self.sample(encoder, count);
        if is_last || self.number.is_multiple_of(FILE_SYSTEMS_EACH) {
            self.file_systems.round(encoder, &self.proc);
        }
        self.number += 1;
    }

    /// Finds new and exited processes. Those in the snapshot of the recording are not described
    /// again.
    fn find(&mut self, encoder: &mut Encoder, (is_first, is_last): (bool, bool)) {
        let pids = snapshot::pids(&self.proc);
        self.processes
            .retain(|pid, _| pids.binary_search(pid).is_ok());
        let clocks = clock::clocks();
        let mut described = 0;
        for pid in pids {
            let is_known = self.processes.contains_key(&pid);
            let known = self.processes.entry(pid).or_default();
            known.is_new |= !is_known && !is_first;
            // Their credentials may have changed since.
            let is_described = known.is_new && (!is_known || is_last);
            if is_described && described < NEW_EACH {
                described += 1;
                snapshot::about(encoder, &self.proc, pid, &clocks);
            }
        }
    }

    fn sample(&mut self, encoder: &mut Encoder, count: usize) {
        let after = self.processes.range(self.next..);
        let all = after.chain(self.processes.range(..self.next));
        let with_memory = all.filter(|(_, known)| !known.has_none);
        let batch: Vec<i32> = with_memory.map(|(pid, _)| *pid).take(count).collect();
        for pid in &batch {
            let Some(known) = self.processes.get_mut(pid) else {
                continue;
            };
            let values = process::all(&self.proc.join(pid.to_string()));
            known.has_none = values.is_empty() && known.values.is_empty();
            let changed = |value: &&Value| !known.values.contains(value);
            let changes: Vec<Value> = values.iter().filter(changed).copied().collect();
            put(encoder, *pid, &changes);
            known.values = values;
        }
        if let Some(last) = batch.last() {
            self.next = last.saturating_add(1);
        }
    }
}

/// Values of a process, or of the machine (pid 0).
fn put(encoder: &mut Encoder, pid: i32, values: &[Value]) {
    put_of(encoder, (pid, 0, 0, b""), values);
}

/// Values of a process, or of a mount: namespace, id and mount point.
fn put_of(
    encoder: &mut Encoder,
    (pid, mount_ns, mount_id, place): (i32, u32, u32, &[u8]),
    values: &[Value],
) {
    if values.is_empty() {
        return;
    }
    let mut bytes = Vec::with_capacity(values.len() * counter::VALUE_BYTES);
    for (counter, value) in values {
        counter::push(&mut bytes, *counter, *value);
    }
    encoder
        .begin(Kind::Counters, clock::monotonic(), (pid, pid))
        .u32(mount_ns)
        .u32(mount_id)
        .text(place)
        .text(&bytes)
        .end();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use whyslow_model::spool::{HostRecord, Record, records};

    fn recorded(encoder: &Encoder) -> Vec<(i32, Vec<(&'static str, i64)>)> {
        let mut recorded = Vec::new();
        for (_, record) in records(encoder.payload()) {
            if let Ok((head, Record::Host(HostRecord::Counters(counters)))) = record
                && counters.mount_id == 0
            {
                let values = counters.values.iter();
                let values = values.map(|(counter, value)| (counter.name, value));
                recorded.push((head.pid, values.collect()));
            }
        }
        recorded
    }

    #[test]
    fn only_what_changed_is_told_and_processes_take_turns() {
        let folder = tempfile::TempDir::new().expect("a temporary folder");
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("it has one")).expect("a disk");
            fs::write(path, text).expect("a disk");
        };
        write("loadavg", "1.00 2.00 3.00 1/2 3\n");
        for pid in [7, 8, 9] {
            write(&format!("{pid}/statm"), "9 1 1 0 0 0 0\n");
        }
        write("2/statm", "0 0 0 0 0 0 0\n");
        let mut rounds = Rounds::new(folder.path());
        let mut round = |count: usize| {
            let mut encoder = Encoder::default();
            rounds.find(&mut encoder, (false, false));
            rounds.sample(&mut encoder, count);
            recorded(&encoder)
                .into_iter()
                .map(|(pid, _)| pid)
                .collect::<Vec<_>>()
        };
        assert_eq!(round(3), [7, 8]);
        assert_eq!(round(3), [9]);
        assert_eq!(round(100), []);
        write("8/statm", "9 2 1 0 0 0 0\n");
        assert_eq!(round(100), [8]);
        fs::remove_dir_all(folder.path().join("8")).expect("a disk");
        assert_eq!(round(100), []);
        write("8/statm", "9 2 1 0 0 0 0\n");
        assert_eq!(round(100), [8]);
    }

    #[test]
    fn what_is_under_way_is_not_complete() {
        let mut sampler = Sampler::start();
        sampler.begin();
        let mut encoder = Encoder::default();
        let begun = Instant::now();
        while encoder.records() == 0 && begun.elapsed() < Duration::from_mins(1) {
            let until = clock::monotonic();
            let before = encoder.payload().len();
            let limit = sampler.take(&mut encoder);
            for (_, record) in records(&encoder.payload()[before..]) {
                let (head, _) = record.expect("whole records");
                assert!(head.ts <= limit.max(until));
            }
        }
        sampler.stop();
        let before = encoder.records();
        assert_eq!(sampler.take(&mut encoder), u64::MAX);
        assert!(encoder.records() > before, "a last round");
        let (_, values) = &recorded(&encoder)[0];
        assert!(
            values
                .iter()
                .any(|(name, bytes)| *name == "mem_total" && *bytes > 1 << 20)
        );
    }
}
