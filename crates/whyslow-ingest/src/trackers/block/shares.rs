//! Whose sectors a request holds that bios of several threads were merged into.
//!
//! Most requests are of one thread, and nothing is kept of these.

use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::tables::{BlockShareRow, EmitAll};

use super::open::Io;
use crate::trackers::identity::{Output, ThreadRef};

/// Threads of one request that are told apart; the others count as nobody's.
const THREADS_MAX: usize = 256;

#[derive(Debug, Clone, Copy)]
struct Share {
    thread: Option<ThreadRef>,
    ts: Ns,
    sectors: i64,
}

impl Share {
    /// All of a request that only its own thread has sectors in.
    fn whole(io: &Io) -> Self {
        Self {
            thread: io.submitter.thread,
            ts: io.ts,
            sectors: io.sectors,
        }
    }
}

/// Of requests that are under way, by id.
#[derive(Debug, Default)]
pub(super) struct Shares {
    of: FxHashMap<i64, Vec<Share>>,
    next_id: i64,
}

impl Shares {
    /// Sectors of a thread become part of a request, which is as it was before.
    pub(super) fn merged(&mut self, into: &Io, thread: Option<ThreadRef>, ts: Ns, sectors: i64) {
        let utid = |thread: Option<ThreadRef>| thread.map(|thread| thread.utid);
        if utid(into.submitter.thread) == utid(thread) && !self.of.contains_key(&into.id) {
            return;
        }
        let shares = self
            .of
            .entry(into.id)
            .or_insert_with(|| vec![Share::whole(into)]);
        let is_full = shares.len() >= THREADS_MAX;
        let is_known = shares
            .iter()
            .any(|share| utid(share.thread) == utid(thread));
        let thread = thread.filter(|_| is_known || !is_full);
        let same = |share: &&mut Share| utid(share.thread) == utid(thread);
        match shares.iter_mut().find(same) {
            Some(share) => share.sectors = share.sectors.saturating_add(sectors),
            None => shares.push(Share {
                thread,
                ts,
                sectors,
            }),
        }
    }

    /// A request is appended to another one, which is as it was before.
    pub(super) fn joined(&mut self, into: &Io, next: &Io) {
        let shares = self.of.remove(&next.id);
        for share in shares.unwrap_or_else(|| vec![Share::whole(next)]) {
            self.merged(into, share.thread, share.ts, share.sectors);
        }
    }

    /// The request is over.
    pub(super) fn emit<S: EmitAll>(&mut self, io: &Io, out: &mut Output<'_, S>) {
        if self.of.is_empty() {
            return;
        }
        for share in self.of.remove(&io.id).into_iter().flatten() {
            let thread = share.thread;
            out.sink.emit(BlockShareRow {
                id: self.next_id,
                block_io_id: io.id,
                ts: share.ts,
                utid: thread.map(|thread| thread.utid),
                upid: thread.and_then(|thread| thread.upid),
                tid: thread.map(|thread| thread.tid),
                pid: thread.and_then(|thread| thread.pid),
                comm: thread.and_then(|thread| thread.comm),
                sectors: share.sectors,
            });
            self.next_id += 1;
        }
    }
}
