//! Evaluates conditions while records pass ([`parse_when`]): only the fields that a condition needs
//! are read, and most records are skipped by their kind.
//!
//! A call counts when it returns, so that all of it is recorded. A call that does not return counts
//! once it has lasted half of the time that is kept ([`Watcher::check_pending`]), while the records
//! before it are still there.

mod block;
mod grammar;
mod limits;
mod pressure;
mod sched;
mod served;
mod trigger;

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::spool::{COMPAT, ENTRY_RECORDED, Kind, Switch};
use whyslow_model::syscall::{self, Abi};
use whyslow_model::trigger::TriggerKind;

pub(crate) use grammar::What;
pub use grammar::{Term, WhenError, parse_when};
pub use trigger::{Operation, Trigger};

use crate::raw::Raw;
use block::Requests;
use limits::Limits;
use sched::Waits;
use served::{Served, Slow};

/// Conditions reported individually between two calls of [`Watcher::take_fired`].
const FIRED_MAX: usize = 64;
/// Names of exited threads that are kept.
const ENDED_MAX: usize = 4096;

/// The call in which a thread is.
#[derive(Debug, Clone, Copy)]
struct Inside {
    entered: u64,
    pid: i32,
    nr: u32,
    is_compat: bool,
    fd: u64,
}

/// A condition that was met; the thread's name is read after all records were processed.
#[derive(Debug)]
struct Fired {
    number: usize,
    ts: u64,
    operation: Operation,
    /// Start of the sentence, up to the thread.
    before: String,
}

#[derive(Debug, Default)]
pub(crate) struct Watcher {
    terms: Vec<Term>,
    /// By number, for the native and the 32-bit system call table.
    calls: [FxHashMap<u32, Limits>; 2],
    /// Shorter calls never count.
    call_min: u64,
    /// Calls reported at entry that may count.
    inside: FxHashMap<i32, Inside>,
    /// Calls reported at entry that have returned: since the last call of [`Watcher::take_fired`],
    /// and before it. The entry may arrive later, through the ring of another CPU.
    returned: [FxHashSet<(i32, u64)>; 2],
    requests: Option<(Limits, Requests)>,
    waits: Option<(Limits, Waits)>,
    served: Option<(Limits, Served)>,
    lookups: Limits,
    locks: Limits,
    pressures: Vec<(&'static str, f64, usize)>,
    /// Names of recently exited threads.
    ended: VecDeque<(i32, String)>,
    /// Processes to ignore: the recorder's own.
    own: FxHashSet<i32>,
    fired: Vec<Fired>,
}

impl Watcher {
    pub(crate) fn new(terms: &[Term], abi: Abi, kept: Duration) -> Self {
        let mut watcher = Self {
            terms: terms.to_vec(),
            call_min: u64::MAX,
            ..Self::default()
        };
        watcher.own.insert(std::process::id() as i32);
        for (number, term) in terms.iter().enumerate() {
            match &term.what {
                What::Call {
                    names, longer_ns, ..
                } => {
                    watcher.call_min = watcher.call_min.min(*longer_ns);
                    for (calls, abi) in watcher.calls.iter_mut().zip([abi, abi.compat()]) {
                        for nr in names
                            .iter()
                            .filter_map(|name| syscall::number_of(abi, name))
                        {
                            let limits = calls.entry(nr as u32).or_default();
                            limits.add(*longer_ns, number);
                        }
                    }
                }
                What::Block { longer_ns } => {
                    let (limits, _) = watcher.requests.get_or_insert_default();
                    limits.add(*longer_ns, number);
                }
                What::Sched { longer_ns } => {
                    let (limits, _) = watcher.waits.get_or_insert_default();
                    limits.add(*longer_ns, number);
                }
                What::Request { longer_ns } => {
                    let (limits, served) = watcher.served.get_or_insert_with(|| {
                        (Limits::default(), Served::new(abi, kept.as_nanos() as u64))
                    });
                    limits.add(*longer_ns, number);
                    served.count_from(*longer_ns);
                }
                What::Lookup { longer_ns } => watcher.lookups.add(*longer_ns, number),
                What::Lock { longer_ns } => watcher.locks.add(*longer_ns, number),
                What::Pressure { resource, percent } => {
                    watcher.pressures.push((resource, *percent, number));
                }
            }
        }
        watcher
    }

    /// Ignores everything that this process does.
    pub(crate) fn ignore_process(&mut self, pid: i32) {
        self.own.insert(pid);
    }

    #[inline]
    pub(crate) fn see(&mut self, record: &[u8]) {
        const SYSCALL: u16 = Kind::Syscall as u16;
        const ENTER: u16 = Kind::SyscallEnter as u16;
        const SWITCH: u16 = Kind::Switch as u16;
        const WAKING: u16 = Kind::Waking as u16;
        const WAKEUP_NEW: u16 = Kind::WakeupNew as u16;
        const EXIT: u16 = Kind::Exit as u16;
        const FREE: u16 = Kind::Free as u16;
        const FORK: u16 = Kind::Fork as u16;
        const EXEC: u16 = Kind::Exec as u16;
        const LOOKUP: u16 = Kind::Lookup as u16;
        const LOCK: u16 = Kind::Lock as u16;
        const FIRST_OF_BLOCK: u16 = Kind::BioQueue as u16;
        const LAST_OF_BLOCK: u16 = Kind::RqComplete as u16;
        let raw = Raw(record);
        match raw.kind() {
            SYSCALL => self.returned(raw),
            ENTER if self.call_min < u64::MAX => self.entered(raw),
            SWITCH if self.waits.is_some() => self.switched(raw),
            WAKING | WAKEUP_NEW if self.waits.is_some() => self.woken(raw),
            FIRST_OF_BLOCK..=LAST_OF_BLOCK => self.block(raw),
            LOOKUP if !self.lookups.is_empty() => self.looked_up(raw),
            LOCK if !self.locks.is_empty() => self.locked(raw),
            EXIT => self.exited(raw),
            FORK | EXEC => self.lived(raw),
            FREE => {
                if let Some((_, waits)) = &mut self.waits {
                    waits.gone(raw.i32(0));
                }
            }
            _ => {}
        }
    }

    fn returned(&mut self, raw: Raw<'_>) {
        if raw.flags() & ENTRY_RECORDED != 0 && self.may_count(raw) {
            self.inside.remove(&raw.tid());
            self.returned[0].insert((raw.tid(), raw.entered()));
        }
        if let Some((_, served)) = &mut self.served {
            served.returned(raw, raw.flags() & COMPAT != 0);
        }
        let took = raw.ts().saturating_sub(raw.entered());
        if took >= self.call_min {
            let inside = inside(raw);
            let _ = self.call(&inside, (raw.tid(), raw.ts(), took), true);
        }
    }

    fn entered(&mut self, raw: Raw<'_>) {
        let call = (raw.tid(), raw.entered());
        let has_returned = self.returned.iter().any(|calls| calls.contains(&call));
        if !has_returned && self.may_count(raw) {
            self.inside.insert(raw.tid(), inside(raw));
        }
    }

    fn may_count(&self, raw: Raw<'_>) -> bool {
        let inside = inside(raw);
        let calls = &self.calls[usize::from(inside.is_compat)];
        calls.contains_key(&inside.nr)
    }

    /// Whether a call of that duration, completed or not, meets a condition.
    fn call(
        &mut self,
        inside: &Inside,
        (tid, ts, took): (i32, u64, u64),
        is_over: bool,
    ) -> Option<()> {
        let limits = self.calls[usize::from(inside.is_compat)].get(&inside.nr)?;
        if self.own.contains(&inside.pid) {
            return None;
        }
        let counts = |number: &usize| {
            let is_of_files =
                matches!(&self.terms[*number].what, What::Call { of_files: true, .. });
            !is_of_files || !is_no_file(inside.pid, inside.fd)
        };
        let number = limits.reached(took).find(counts)?;
        let abi = if inside.is_compat {
            abi_here().compat()
        } else {
            abi_here()
        };
        let name = syscall::number_name(abi, inside.nr.into())?;
        let operation = Operation {
            kind: TriggerKind::Call,
            thread: Some((inside.pid, tid)),
            took,
            name: name.to_owned(),
            is_over,
        };
        self.fire(number, ts, operation, format!("{name} by "));
        Some(())
    }

    fn switched(&mut self, raw: Raw<'_>) {
        let Some((limits, waits)) = &mut self.waits else {
            return;
        };
        let (next_tid, next_pid, state) = (raw.i32(0), raw.i32(4), raw.u32(8));
        if raw.tid() != 0 {
            waits.off(
                raw.tid(),
                raw.ts(),
                state == 0 || state == Switch::PREEMPTED,
            );
        }
        if next_tid == 0 {
            return;
        }
        let waited = waits.on(next_tid, raw.ts()).unwrap_or(0);
        if let Some(number) = limits.most(waited) {
            self.waited(number, (next_pid, next_tid), raw.ts(), waited);
        }
    }

    fn woken(&mut self, raw: Raw<'_>) {
        let Some((limits, waits)) = &mut self.waits else {
            return;
        };
        let (tid, pid) = (raw.i32(0), raw.i32(4));
        let waited = waits.woken(tid, raw.ts()).unwrap_or(0);
        if let Some(number) = limits.most(waited) {
            self.waited(number, (pid, tid), raw.ts() + waited, waited);
        }
    }

    fn waited(&mut self, number: usize, (pid, tid): (i32, i32), ts: u64, waited: u64) {
        if !self.own.contains(&pid) {
            let operation = ended(TriggerKind::Sched, (pid, tid), waited, String::new());
            self.fire(number, ts, operation, "run-queue wait of ".to_owned());
        }
    }

    fn block(&mut self, raw: Raw<'_>) {
        let Some((limits, requests)) = &mut self.requests else {
            return;
        };
        let Some((io, submitted)) = requests.see(raw) else {
            return;
        };
        let took = raw.ts().saturating_sub(submitted.ts);
        let exceeded = limits.most(took);
        let Some(number) = exceeded.filter(|_| !self.own.contains(&submitted.pid)) else {
            return;
        };
        let (major, minor) = (io.dev >> 20, io.dev & 0xf_ffff);
        let before = format!(
            "{} of {} KiB at sector {} of device {major}:{minor}, submitted by ",
            io.op(),
            io.bytes / 1024,
            io.sector,
        );
        let thread = (submitted.pid, submitted.tid);
        let name = format!("{major}:{minor}+{}", io.sector);
        let operation = ended(TriggerKind::Block, thread, took, name);
        self.fire(number, raw.ts(), operation, before);
    }

    fn looked_up(&mut self, raw: Raw<'_>) {
        if let Some((number, took)) = self.lasted(raw, &self.lookups) {
            let host = String::from_utf8_lossy(raw.host()).into_owned();
            let before = format!("DNS lookup of {host:?} by ");
            let operation = ended(TriggerKind::Lookup, (raw.pid(), raw.tid()), took, host);
            self.fire(number, raw.ts(), operation, before);
        }
    }

    fn locked(&mut self, raw: Raw<'_>) {
        if let Some((number, took)) = self.lasted(raw, &self.locks) {
            let lock = format!("{:#x}", raw.u64(8));
            let before = format!("kernel lock wait at {lock} by ");
            let operation = ended(TriggerKind::Lock, (raw.pid(), raw.tid()), took, lock);
            self.fire(number, raw.ts(), operation, before);
        }
    }

    /// Whether an interval with start and end in one record meets a limit, and its duration.
    fn lasted(&self, raw: Raw<'_>, limits: &Limits) -> Option<(usize, u64)> {
        let took = raw.ts().saturating_sub(raw.entered());
        let number = limits.most(took)?;
        (!self.own.contains(&raw.pid())).then_some((number, took))
    }

    fn lived(&mut self, raw: Raw<'_>) {
        if let Some((_, served)) = &mut self.served {
            served.lived(raw);
        }
    }

    /// A snapshot lists the connections that existed before.
    pub(crate) fn see_snapshot(&mut self, payload: &[u8]) {
        if let Some((_, served)) = &mut self.served {
            served.snapshot(payload, |pid| self.own.contains(&pid));
        }
    }

    /// Some records were lost.
    pub(crate) fn lose(&mut self) {
        if let Some((_, served)) = &mut self.served {
            served.lose();
        }
    }

    /// All records up to this time have arrived.
    pub(crate) fn settle(&mut self, until: u64) {
        let Some((_, served)) = &mut self.served else {
            return;
        };
        served.settle(until);
        for slow in served.take_slow() {
            self.serve(&slow, true);
        }
    }

    fn serve(&mut self, slow: &Slow, is_over: bool) {
        let limits = self.served.as_ref().map(|(limits, _)| limits);
        let exceeded = limits.and_then(|limits| limits.most(slow.took));
        if let Some(number) = exceeded.filter(|_| !self.own.contains(&slow.thread.0)) {
            let operation = Operation {
                is_over,
                ..ended(TriggerKind::Request, slow.thread, slow.took, String::new())
            };
            let before = if is_over {
                "request answered by "
            } else {
                "request read by "
            };
            self.fire(number, slow.ts, operation, before.to_owned());
        }
    }

    fn exited(&mut self, raw: Raw<'_>) {
        self.lived(raw);
        self.inside.remove(&raw.tid());
        if self.ended.len() >= ENDED_MAX {
            self.ended.pop_front();
        }
        let comm = String::from_utf8_lossy(raw.comm()).into_owned();
        self.ended.push_back((raw.tid(), comm));
    }

    /// Checks once a second what no record reports: calls that do not return, requests without a
    /// response, and pressure.
    pub(crate) fn check_pending(&mut self, now: u64, kept: Duration) {
        let longest = kept.as_nanos() as u64 / 2;
        let is_long = |inside: &Inside| now.saturating_sub(inside.entered) >= longest;
        let long = self.inside.iter().filter(|(_, inside)| is_long(inside));
        let long: Vec<(i32, Inside)> = long.map(|(tid, inside)| (*tid, *inside)).collect();
        for (tid, inside) in long {
            let took = now - inside.entered;
            let is_old = took >= longest.saturating_mul(2);
            // Counts once.
            if is_old || self.call(&inside, (tid, now, took), false).is_some() {
                self.inside.remove(&tid);
            }
        }
        let served = self.served.as_mut();
        let unanswered =
            served.map(|(_, served)| served.unanswered(now, now.saturating_sub(longest)));
        for slow in unanswered.unwrap_or_default() {
            self.serve(&slow, false);
        }
        for (resource, percent, number) in self.pressures.clone() {
            let folder = Path::new(pressure::FOLDER);
            let found = pressure::read(folder, resource).filter(|found| *found > percent);
            if let Some(found) = found {
                let what = format!(
                    "{resource} pressure: threads stalled for {found:.1} % of the last 10 s"
                );
                let operation = Operation {
                    kind: TriggerKind::Pressure,
                    thread: None,
                    took: 0,
                    name: resource.to_owned(),
                    is_over: true,
                };
                self.fire(number, now, operation, what);
            }
        }
    }

    /// The conditions met since the last call.
    pub(crate) fn take_fired(&mut self) -> Vec<Trigger> {
        self.returned.swap(0, 1);
        self.returned[0].clear();
        let fired = std::mem::take(&mut self.fired);
        let triggers = fired.into_iter().map(|fired| {
            let what = match fired.operation.thread {
                Some((pid, tid)) => {
                    let (name, took) = (self.name(pid, tid), how_long(&fired.operation));
                    format!("{}{name} {pid}/{tid} {took}", fired.before)
                }
                None => fired.before,
            };
            Trigger {
                term: Some(self.terms[fired.number].text.clone()),
                what,
                ts: fired.ts,
                operation: Some(fired.operation),
            }
        });
        triggers.collect()
    }

    /// Current or last name of the thread.
    fn name(&self, pid: i32, tid: i32) -> String {
        if let Ok(comm) = fs::read(format!("/proc/{pid}/task/{tid}/comm")) {
            return String::from_utf8_lossy(comm.trim_ascii_end()).into_owned();
        }
        let mut ended = self.ended.iter().rev();
        let found = ended.find(|(ended, _)| *ended == tid);
        found.map_or_else(|| "?".to_owned(), |(_, comm)| comm.clone())
    }

    fn fire(&mut self, number: usize, ts: u64, operation: Operation, before: String) {
        if self.fired.len() < FIRED_MAX {
            self.fired.push(Fired {
                number,
                ts,
                operation,
                before,
            });
        }
    }
}

fn length(ns: u64) -> String {
    let ms = ns as f64 / 1e6;
    if ms < 1e3 {
        format!("{ms:.1} ms")
    } else {
        format!("{:.2} s", ms / 1e3)
    }
}

fn how_long(operation: &Operation) -> String {
    let length = length(operation.took);
    match operation.kind {
        _ if operation.is_over => format!("took {length}"),
        TriggerKind::Request => format!("has had no response for {length}"),
        _ => format!("has not returned for {length}"),
    }
}

/// An operation that has ended.
fn ended(kind: TriggerKind, thread: (i32, i32), took: u64, name: String) -> Operation {
    Operation {
        kind,
        thread: Some(thread),
        took,
        name,
        is_over: true,
    }
}

fn inside(raw: Raw<'_>) -> Inside {
    Inside {
        entered: raw.entered(),
        pid: raw.pid(),
        nr: raw.u32(16),
        is_compat: raw.flags() & COMPAT != 0,
        fd: raw.u64(24),
    }
}

pub(crate) fn abi_here() -> Abi {
    if cfg!(target_arch = "x86_64") {
        Abi::X86_64
    } else {
        Abi::Aarch64
    }
}

/// Whether a descriptor is known to be a pipe, socket, terminal or the like, not a stored file.
fn is_no_file(pid: i32, fd: u64) -> bool {
    let link = fs::read_link(format!("/proc/{pid}/fd/{}", fd as i32));
    link.is_ok_and(|link| {
        let text = link.to_string_lossy();
        let is_device = ["/dev/pts/", "/dev/tty", "/dev/ptmx", "/dev/console"];
        !text.starts_with('/') || is_device.iter().any(|device| text.starts_with(device))
    })
}

#[cfg(test)]
mod tests;
