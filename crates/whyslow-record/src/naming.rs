//! Decides which addresses to symbolize, and which of the results are valid.
//!
//! Stacks and the records of which process runs which program arrive through different rings: a
//! stack may arrive before an earlier exec. So a stack waits until the rings were emptied once
//! more. A symbol is valid if no exec of the process was seen by the time the symbol was looked up.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::mpsc::TrySendError;

use whyslow_model::spool::{Addresses, Encoder, Kind, NO_ADDRESS, NO_ADDRESS_END, Record, records};

use crate::options::Options;
use crate::programs::Topic;
use crate::symbols::{self, Address, Found, SymbolRequest, Workers};

/// Maximum number of waiting stacks; the addresses of further ones are not looked up.
const STACKS_MAX: usize = 4096;
/// Maximum number of addresses already requested; beyond it all are dropped, and requested again.
const REQUESTED_MAX: usize = 1 << 17;

/// BPF programs that report which process runs which program.
pub(crate) const WATCHED: [&str; 3] = ["on_fork", "on_exec", "on_free"];

/// Addresses of a stack.
#[derive(Debug)]
struct Seen {
    /// 0 for the kernel.
    pid: i32,
    ts: u64,
    addresses: Vec<Address>,
}

/// Whether it is the number of a function, not an address.
fn is_number(address: u64) -> bool {
    (NO_ADDRESS..NO_ADDRESS_END).contains(&address)
}

#[derive(Debug, Default)]
pub(crate) struct SymbolizerQueue {
    workers: Option<Workers>,
    /// When processes started to run their programs.
    programs: HashMap<i32, u64>,
    /// Stacks seen before the rings were last emptied, and since.
    before: Vec<Seen>,
    since: Vec<Seen>,
    /// Process, program, address.
    requested: HashSet<(i32, u64, u64)>,
    /// Results that may belong to another program.
    unconfirmed: Vec<Found>,
    waiting: usize,
    /// Records of valid symbols.
    pub(crate) names: Encoder,
}

impl SymbolizerQueue {
    pub(crate) fn new(options: &Options) -> Self {
        let is_needed = options.stack_min.is_some()
            || options.wall.is_some()
            || options.sample_hz > 0
            || options.topics.contains(&Topic::Locks)
            || options.topics.contains(&Topic::Work);
        Self {
            workers: is_needed.then(symbols::start).flatten(),
            ..Self::default()
        }
    }

    /// A record from a ring.
    pub(crate) fn see(&mut self, record: &[u8]) {
        let kind = record.first_chunk().map(|bytes| u16::from_le_bytes(*bytes));
        const KINDS: [Kind; 8] = [
            Kind::Fork,
            Kind::Exec,
            Kind::Free,
            Kind::Stack,
            Kind::UserStack,
            Kind::Sample,
            Kind::Lock,
            Kind::WorkItem,
        ];
        let is_one = |kind: u16| KINDS.iter().any(|known| *known as u16 == kind);
        if self.workers.is_none() || !kind.is_some_and(is_one) {
            return;
        }
        let Some((_, Ok((head, record)))) = records(record).next() else {
            return;
        };
        match record {
            Record::Exec(_) => {
                self.programs.insert(head.pid, head.ts);
            }
            Record::Fork(child) if child.tid == child.pid => {
                self.programs.insert(child.pid, head.ts);
            }
            Record::Free(task) if task.tid == task.pid => {
                self.programs.remove(&task.pid);
            }
            Record::Stack(stack) => {
                let is_sample = head.kind == Kind::Sample;
                self.add((0, head.ts), stack.kernel, is_sample);
                self.add((head.pid, head.ts), stack.user, is_sample);
            }
            Record::Lock(lock) => self.add((0, head.ts), lock.kernel, false),
            Record::WorkItem(item) => self.add_function(head.ts, item.function),
            _ => {}
        }
    }

    /// A stack from another source, innermost first. `is_exact`: its first address is the
    /// instruction pointer, not a return address.
    pub(crate) fn see_stack(&mut self, (pid, ts): (i32, u64), stack: &[u64], is_exact: bool) {
        if self.workers.is_none() || stack.is_empty() || self.since.len() >= STACKS_MAX {
            return;
        }
        let since = self.program(pid);
        let addresses = stack.iter().enumerate();
        // Most were requested before.
        let is_new = |(_, address): &(usize, &u64)| {
            !is_number(**address) && !self.requested.contains(&(pid, since, **address))
        };
        let address = |(place, address): (usize, &u64)| Address {
            address: *address,
            is_return: place > 0 || !is_exact,
        };
        let addresses: Vec<Address> = addresses.filter(is_new).map(address).collect();
        if !addresses.is_empty() {
            self.since.push(Seen { pid, ts, addresses });
        }
    }

    fn add(&mut self, (pid, ts): (i32, u64), addresses: Addresses<'_>, is_sample: bool) {
        if addresses.is_empty() || self.since.len() >= STACKS_MAX {
            return;
        }
        let addresses = addresses.iter().enumerate();
        let address = |(place, address)| Address {
            address,
            is_return: place > 0 || !is_sample,
        };
        let seen = Seen {
            pid,
            ts,
            addresses: addresses.map(address).collect(),
        };
        self.since.push(seen);
    }

    /// A kernel function.
    fn add_function(&mut self, ts: u64, function: Option<u64>) {
        // Few functions are called often.
        let is_new = |address: &u64| !self.requested.contains(&(0, self.program(0), *address));
        let Some(address) = function.filter(is_new) else {
            return;
        };
        if self.since.len() < STACKS_MAX {
            let is_return = false;
            let addresses = vec![Address { address, is_return }];
            self.since.push(Seen {
                pid: 0,
                ts,
                addresses,
            });
        }
    }

    /// The rings were emptied up to `until`.
    pub(crate) fn settle(&mut self, until: u64) {
        if self.workers.is_none() {
            return;
        }
        let due = std::mem::replace(&mut self.before, std::mem::take(&mut self.since));
        for request in self.requests(due) {
            self.send(request);
        }
        if let Some(workers) = &self.workers {
            for found in workers.found.try_iter() {
                self.waiting = self.waiting.saturating_sub(1);
                self.unconfirmed.push(found);
            }
        }
        let unconfirmed = std::mem::take(&mut self.unconfirmed);
        let (due, unconfirmed) = unconfirmed.into_iter().partition(|found| found.at < until);
        self.unconfirmed = unconfirmed;
        for found in due {
            self.take(&found);
        }
    }

    /// Each spool is read on its own: it needs its own symbols, and only knows programs that it
    /// records.
    pub(crate) fn begin_spool(&mut self) {
        self.requested.clear();
        self.programs.clear();
    }

    /// The unknown addresses of the stacks, by program.
    fn requests(&mut self, stacks: Vec<Seen>) -> Vec<SymbolRequest> {
        let mut requests: Vec<SymbolRequest> = Vec::new();
        let mut places: HashMap<(i32, u64), usize> = HashMap::new();
        for seen in stacks {
            let since = self.program(seen.pid);
            // The program that it ran then is gone.
            if since > seen.ts {
                continue;
            }
            let program = (seen.pid, since);
            for address in seen.addresses {
                if self.requested.len() >= REQUESTED_MAX {
                    self.requested.clear();
                }
                if !self.requested.insert((seen.pid, since, address.address)) {
                    continue;
                }
                let place = *places.entry(program).or_insert_with(|| {
                    requests.push(SymbolRequest {
                        pid: seen.pid,
                        since,
                        addresses: Vec::new(),
                    });
                    requests.len() - 1
                });
                requests[place].addresses.push(address);
            }
        }
        requests
    }

    fn program(&self, pid: i32) -> u64 {
        self.programs.get(&pid).copied().unwrap_or(0)
    }

    /// Memory is short: drops symbol tables, which are read again on demand.
    pub(crate) fn forget(&mut self) {
        self.requested = HashSet::new();
        if let Some(workers) = &self.workers {
            // If requests are queued, the tables are in use.
            let _ = workers.user.try_send(SymbolRequest {
                pid: 0,
                since: 0,
                addresses: Vec::new(),
            });
        }
    }

    /// Never blocks: a request that does not fit is sent again with the next stack.
    fn send(&mut self, request: SymbolRequest) {
        let Some(workers) = &self.workers else {
            return;
        };
        let target = if request.pid == 0 {
            &workers.kernel
        } else {
            &workers.user
        };
        match target.try_send(request) {
            Ok(()) => self.waiting += 1,
            Err(refused) => {
                let (TrySendError::Full(request) | TrySendError::Disconnected(request)) = refused;
                for address in request.addresses {
                    let key = (request.pid, request.since, address.address);
                    self.requested.remove(&key);
                }
            }
        }
    }

    /// Keeps the symbols, unless they may belong to another program.
    fn take(&mut self, found: &Found) {
        if self.program(found.pid) != found.since {
            return;
        }
        for name in &found.names {
            self.names
                .begin(Kind::Name, found.at, (found.pid, found.pid))
                .u64(found.since)
                .u64(name.address)
                .u64(name.distance)
                .text(&name.function)
                .text(&name.module)
                .end();
        }
    }

    /// Files without symbols because they have too many.
    pub(crate) fn too_large(&self) -> u64 {
        let workers = self.workers.as_ref();
        workers.map_or(0, |workers| workers.too_large.load(Ordering::Relaxed))
    }

    /// No request is pending.
    pub(crate) fn is_done(&self) -> bool {
        self.workers.is_none() || self.unconfirmed.is_empty() && self.waiting == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::{channel, sync_channel};

    use crate::symbols::Name;

    fn stack(pid: i32, ts: u64, address: u64) -> Encoder {
        let mut encoder = Encoder::default();
        let record = encoder.begin(Kind::UserStack, ts, (pid, pid));
        record.u64(0).u32(0).u16(0).u16(1).u64(address).end();
        encoder
    }

    fn exec(pid: i32, ts: u64) -> Encoder {
        let mut encoder = Encoder::default();
        let record = encoder.begin(Kind::Exec, ts, (pid, pid));
        record.u32(pid as u32).text(b"/bin/x").end();
        encoder
    }

    fn found(pid: i32, since: u64, at: u64) -> Found {
        let name = Name {
            address: 0x40,
            distance: 0,
            function: b"f".to_vec(),
            module: Vec::new(),
        };
        Found {
            pid,
            since,
            at,
            names: vec![name],
        }
    }

    #[test]
    fn an_exec_that_is_seen_late_is_not_missed() {
        let (kernel, _) = sync_channel(1);
        let (user, requests) = sync_channel(10);
        let (results, found_by) = channel();
        let mut queue = SymbolizerQueue {
            workers: Some(Workers {
                kernel,
                user,
                found: found_by,
                too_large: Arc::default(),
            }),
            ..SymbolizerQueue::default()
        };
        queue.see(stack(7, 50, 0x40).payload());
        queue.settle(60);
        queue.see(exec(7, 40).payload());
        queue.settle(70);
        let request: SymbolRequest = requests.try_recv().expect("one request");
        assert_eq!((request.pid, request.since), (7, 40));
        // The same address is requested once.
        queue.see(stack(7, 75, 0x40).payload());
        queue.settle(80);
        queue.settle(90);
        assert!(requests.try_recv().is_err());
        results.send(found(7, 40, 95)).expect("it lives");
        queue.settle(95);
        assert_eq!(queue.names.records(), 0);
        assert!(!queue.is_done());
        queue.settle(100);
        assert_eq!(queue.names.records(), 1);
        assert!(queue.is_done());
    }

    #[test]
    fn a_name_of_another_program_does_not_count() {
        let (kernel, _) = sync_channel(1);
        let (user, requests) = sync_channel(1);
        let (results, found_by) = channel();
        let mut queue = SymbolizerQueue {
            workers: Some(Workers {
                kernel,
                user,
                found: found_by,
                too_large: Arc::default(),
            }),
            ..SymbolizerQueue::default()
        };
        queue.see(stack(7, 50, 0x40).payload());
        queue.settle(60);
        queue.settle(70);
        assert_eq!(requests.try_recv().expect("one request").since, 0);
        results.send(found(7, 0, 75)).expect("it lives");
        queue.see(exec(7, 72).payload());
        queue.settle(80);
        assert_eq!(queue.names.records(), 0);
        // A stack of the previous program is not symbolized.
        queue.see(stack(7, 71, 0x41).payload());
        queue.settle(90);
        queue.settle(100);
        assert!(requests.try_recv().is_err());
        assert!(queue.is_done());
    }

    #[test]
    fn a_full_line_is_not_waited_for() {
        let (kernel, _) = sync_channel(1);
        let (user, requests) = sync_channel(1);
        let (_answers, found_by) = channel();
        let mut queue = SymbolizerQueue {
            workers: Some(Workers {
                kernel,
                user,
                found: found_by,
                too_large: Arc::default(),
            }),
            ..SymbolizerQueue::default()
        };
        queue.see(stack(7, 50, 0x40).payload());
        queue.see(stack(8, 50, 0x40).payload());
        queue.settle(60);
        queue.settle(70);
        assert_eq!(queue.waiting, 1);
        assert_eq!(requests.try_recv().expect("one request").pid, 7);
        // It is requested again with the next stack.
        queue.see(stack(8, 80, 0x40).payload());
        queue.settle(90);
        queue.settle(100);
        assert_eq!(requests.try_recv().expect("one request").pid, 8);
    }

    #[test]
    fn bytes_that_are_no_record_are_passed_over() {
        let mut queue = SymbolizerQueue {
            workers: symbols::start(),
            ..SymbolizerQueue::default()
        };
        for bytes in [
            &[][..],
            &[57],
            &[57, 0],
            &[57, 0, 255, 255, 0, 0],
            &[20; 40],
        ] {
            queue.see(bytes);
        }
        queue.settle(1);
        assert!(queue.is_done());
    }
}
