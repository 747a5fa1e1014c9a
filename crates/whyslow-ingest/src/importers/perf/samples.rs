//! Samples: the fields of a tracepoint, or the stack of the running code.

use whyslow_model::Ns;
use whyslow_model::event::{Body, Frame, PrevState, Stack, StackKind};

use super::attr::TRACEPOINT;
use super::names::Address;
use super::order::Pending;
use super::record::{Chain, Sample};
use super::{At, Item, PerfSource};
use crate::importers::tracepoint::raw::ArrayBuffer;

/// Maximum number of frames of a stack.
const FRAMES_MAX: usize = 1024;
/// Markers in a chain: kernel frames follow, user frames follow, …
const MARKS: u64 = -4095_i64 as u64;
const MARK_KERNEL: u64 = -128_i64 as u64;
const MARK_USER: u64 = -512_i64 as u64;
/// Kernel addresses on machines whose chains have no markers.
const KERNEL_HALF: u64 = 1 << 63;

/// A thread that left the CPU, with its stack.
#[derive(Debug)]
pub(super) struct Away {
    since: Ns,
    state: PrevState,
    pid: i32,
    addresses: Vec<Address>,
}

impl PerfSource {
    pub(super) fn sample(&mut self, pending: &Pending, take: &mut dyn FnMut(Item<'_>)) {
        let attr = &self.reader.info.attrs[pending.attr];
        let is_big_endian = self.reader.is_big_endian;
        let Some(sample) = Sample::parse(&pending.body, attr, is_big_endian) else {
            self.cut += 1;
            return;
        };
        let at = At {
            ts: self.time(pending.ts),
            is_before: false,
            place: sample.place,
        };
        self.first.get_or_insert(at.ts);
        self.last.insert(sample.place.cpu, at.ts);
        if attr.kind == TRACEPOINT {
            self.tracepoint(attr.config, &sample, at, take);
            return;
        }
        let (is_of_cpu, interval) = (attr.is_of_cpu(), attr.interval().unwrap_or(0));
        if self.samples.len() <= pending.attr {
            self.samples.resize(pending.attr + 1, 0);
        }
        self.samples[pending.attr] += 1;
        let Some(pid) = sample.place.pid.filter(|_| is_of_cpu) else {
            self.unused += 1;
            take(at.event(Body::Other));
            return;
        };
        let addresses = addresses(pid, sample.chain, sample.ip);
        self.stack(
            &addresses,
            StackKind::Sample,
            at.ts.saturating_sub(interval),
            at,
            take,
        );
    }

    fn tracepoint(
        &mut self,
        config: u64,
        sample: &Sample<'_>,
        at: At,
        take: &mut dyn FnMut(Item<'_>),
    ) {
        *self.tracepoints.entry(config).or_default() += 1;
        let Some(class) = self.classes.get(&config) else {
            self.without_format += 1;
            take(at.event(Body::Other));
            return;
        };
        self.unused += u64::from(class.is_unused());
        let (mut arrays, mut args) = (ArrayBuffer::default(), None);
        let body = class.body(sample.raw, &mut arrays, &mut args);
        let switch = match &body {
            Some(Body::SchedSwitch {
                prev_tid,
                prev_state,
                next_tid,
                ..
            }) => Some((*prev_tid, *prev_state, *next_tid)),
            _ => None,
        };
        match body {
            Some(body) => {
                let mut event = at.whole(body);
                event.context.interrupt = class.interrupt(sample.raw);
                take(Item::Event(event));
            }
            None => self.cut += 1,
        }
        if let Some((prev, state, next)) = switch {
            self.back(next, at, take);
            if let (false, Some(pid)) = (sample.chain.is_empty(), sample.place.pid) {
                let away = Away {
                    since: at.ts,
                    state,
                    pid,
                    addresses: addresses(pid, sample.chain, None),
                };
                self.away.insert(prev, away);
            }
        }
    }

    /// A thread returns to the CPU: the stack at its switch-out is the one of its off-CPU time.
    fn back(&mut self, tid: i32, at: At, take: &mut dyn FnMut(Item<'_>)) {
        let Some(away) = self.away.remove(&tid) else {
            return;
        };
        let mut at = at;
        at.place.tid = Some(tid);
        at.place.pid = Some(away.pid);
        let kind = StackKind::Back {
            state: away.state,
            user_follows: false,
        };
        self.stack(&away.addresses, kind, away.since, at, take);
    }

    fn stack(
        &mut self,
        addresses: &[Address],
        kind: StackKind,
        since: Ns,
        at: At,
        take: &mut dyn FnMut(Item<'_>),
    ) {
        for address in addresses {
            self.names.look_up(&self.maps, &self.reader.info, *address);
        }
        let frames: Vec<Frame<'_>> = addresses
            .iter()
            .map(|address| {
                let symbol = self.names.symbol(&self.maps, *address);
                Frame {
                    is_kernel: address.is_kernel,
                    address: address.at,
                    function: symbol.function,
                    module: symbol.module,
                    distance: symbol.distance,
                    ..Frame::default()
                }
            })
            .collect();
        take(at.event(Body::Stack(Stack {
            kind,
            since,
            cpu: at.place.cpu,
            frames: &frames,
        })));
    }
}

/// Innermost first; without a chain, the sampled address.
fn addresses(pid: i32, chain: Chain<'_>, ip: Option<u64>) -> Vec<Address> {
    let mut found = Vec::new();
    let (mut is_kernel, mut is_marked, mut is_first) = (false, false, true);
    for address in chain.addresses().take(FRAMES_MAX) {
        if address >= MARKS {
            is_kernel = address == MARK_KERNEL;
            is_marked = is_kernel || address == MARK_USER;
            is_first = true;
            continue;
        }
        if !is_marked {
            is_kernel = address >= KERNEL_HALF;
        }
        found.push(Address {
            is_kernel,
            pid,
            at: address,
            is_return: !is_first,
        });
        is_first = false;
    }
    if found.is_empty() {
        found.extend(ip.map(|address| Address {
            is_kernel: address >= KERNEL_HALF,
            pid,
            at: address,
            is_return: false,
        }));
    }
    found
}
