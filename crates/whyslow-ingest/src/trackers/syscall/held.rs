//! Rows of calls that wait for the state dump, which reports the processes of threads and names
//! descriptors.

use rustc_hash::FxHashMap;
use whyslow_model::tables::{EmitAll, FutexCallRow, SyscallRow};

use super::super::fd::{Owner, file_key};
use super::super::file::{FileLives, FileRef, Use};
use super::super::identity::{Output, ThreadRef};
use super::super::object::Object;

/// Maximum number of rows held back; above it, these and all further rows are written unchanged.
const HELD_MAX: usize = 4096;

/// Bytes transferred through a descriptor whose object was not known yet.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Moved {
    /// Id of the descriptor in `fd_life`, and the use to count for its file.
    pub(super) descriptor: Option<i64>,
    pub(super) bytes: Option<Use>,
}

#[derive(Debug)]
struct HeldRow {
    row: Box<SyscallRow>,
    futex: Option<Box<FutexCallRow>>,
    thread: ThreadRef,
    moved: Moved,
    moved2: Moved,
}

#[derive(Debug, Default)]
pub(super) struct Held {
    rows: Vec<HeldRow>,
    /// Threads whose process has become known since.
    joined: FxHashMap<i32, ThreadRef>,
    /// Objects of descriptors that have become known since.
    known: FxHashMap<i64, (Object, Option<FileRef>)>,
    over: bool,
}

impl Held {
    /// Whether no dump is expected any more.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    pub(super) fn known(&mut self, descriptor: i64, object: Object, file: Option<FileRef>) {
        if !self.over {
            self.known.insert(descriptor, (object, file));
        }
    }

    pub(super) fn joined(&mut self, thread: &ThreadRef) {
        if !self.over {
            self.joined.insert(thread.utid, *thread);
        }
    }

    pub(super) fn hold<S: EmitAll>(
        &mut self,
        (row, futex): (Box<SyscallRow>, Option<Box<FutexCallRow>>),
        thread: ThreadRef,
        (moved, moved2): (Moved, Moved),
        files: &mut FileLives,
        out: &mut Output<'_, S>,
    ) {
        self.rows.push(HeldRow {
            row,
            futex,
            thread,
            moved,
            moved2,
        });
        if self.rows.len() >= HELD_MAX {
            self.settle(files, out);
        }
    }

    pub(super) fn settle<S: EmitAll>(&mut self, files: &mut FileLives, out: &mut Output<'_, S>) {
        self.over = true;
        let known = std::mem::take(&mut self.known);
        let joined = std::mem::take(&mut self.joined);
        for mut held in std::mem::take(&mut self.rows) {
            if let Some(now) = joined.get(&held.thread.utid) {
                held.thread = *now;
                held.row.upid = now.upid;
                held.row.pid = now.pid;
            }
            let found = |moved: &Moved| known.get(&moved.descriptor?);
            if let Some((object, file)) = found(&held.moved) {
                held.row.path = object.path;
                held.row.fd_class = Some(out.symbols.intern_static(object.class.name()));
                held.row.unknown_reason = None;
                count(&held, held.moved.bytes, (object, *file), files, out);
            }
            if let Some((object, file)) = found(&held.moved2) {
                held.row.path2 = object.path;
                count(&held, held.moved2.bytes, (object, *file), files, out);
            }
            if let Some(mut futex) = held.futex.take() {
                futex.upid = held.row.upid;
                futex.pid = held.row.pid;
                out.sink.emit(*futex);
            }
            out.sink.emit(*held.row);
        }
    }
}

fn count<S: EmitAll>(
    held: &HeldRow,
    moved: Option<Use>,
    (object, file): (&Object, Option<FileRef>),
    files: &mut FileLives,
    out: &mut Output<'_, S>,
) {
    let ts = held.row.ts_end.unwrap_or(held.row.ts);
    let owner = Owner::of(&held.thread);
    let Some(use_) = moved else { return };
    let by_path = |files: &mut FileLives, out: &mut Output<'_, S>| {
        Some(files.at(file_key(object, owner)?, ts, out))
    };
    if let Some(file) = file.or_else(|| by_path(files, out)) {
        files.touch(file, ts, &held.thread, use_);
    }
}
