//! Shares of threads in requests that bios of several threads were merged into.
//!
//! Most requests belong to one thread, and need no entry.

use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::tables::{BlockShareRow, EmitAll};

use super::open::Io;
use crate::trackers::identity::{Output, ThreadRef};

/// Maximum number of threads per request; the sectors of further ones have no owner.
const THREADS_MAX: usize = 256;

#[derive(Debug, Clone, Copy)]
struct Share {
    thread: Option<ThreadRef>,
    ts: Ns,
    sectors: i64,
}

impl Share {
    /// A request whose sectors all belong to its own thread.
    fn whole(io: &Io) -> Self {
        Self {
            thread: io.submitter.thread,
            ts: io.ts,
            sectors: io.sectors,
        }
    }
}

/// Shares in requests in flight, by id.
#[derive(Debug, Default)]
pub(super) struct Shares {
    of: FxHashMap<i64, Vec<Share>>,
    next_id: i64,
}

impl Shares {
    /// Sectors of a thread are merged into a request; `into` is the request before the merge.
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

    /// A request is merged into another one; `into` is the request before the merge.
    pub(super) fn joined(&mut self, into: &Io, next: &Io) {
        let shares = self.of.remove(&next.id);
        for share in shares.unwrap_or_else(|| vec![Share::whole(next)]) {
            self.merged(into, share.thread, share.ts, share.sectors);
        }
    }

    /// The request ended.
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
