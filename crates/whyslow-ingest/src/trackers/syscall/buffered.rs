//! Rows of calls that wait for the state dump, which reports the processes of threads and names
//! descriptors.

use rustc_hash::FxHashMap;
use whyslow_model::tables::{EmitAll, FutexCallRow, SyscallRow};

use super::super::fd::{Owner, file_key};
use super::super::file::{FileLives, FileRef, Use};
use super::super::identity::{Output, ThreadRef};
use super::super::object::Object;

/// Maximum number of rows buffered; above it, these and all further rows are written unchanged.
const BUFFERED_MAX: usize = 4096;

/// Bytes transferred through a descriptor whose object was not known yet.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Moved {
    /// Id of the descriptor in `fd_life`, and the use to count for its file.
    pub(super) descriptor: Option<i64>,
    pub(super) bytes: Option<Use>,
}

#[derive(Debug)]
struct BufferedRow {
    row: Box<SyscallRow>,
    futex: Option<Box<FutexCallRow>>,
    thread: ThreadRef,
    moved: Moved,
    moved2: Moved,
}

#[derive(Debug, Default)]
pub(super) struct BufferedRows {
    rows: Vec<BufferedRow>,
    /// Threads whose process has become known since.
    joined: FxHashMap<i32, ThreadRef>,
    /// Objects of descriptors that have become known since.
    known: FxHashMap<i64, (Object, Option<FileRef>)>,
    over: bool,
}

impl BufferedRows {
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

    pub(super) fn push<S: EmitAll>(
        &mut self,
        (row, futex): (Box<SyscallRow>, Option<Box<FutexCallRow>>),
        thread: ThreadRef,
        (moved, moved2): (Moved, Moved),
        files: &mut FileLives,
        out: &mut Output<'_, S>,
    ) {
        self.rows.push(BufferedRow {
            row,
            futex,
            thread,
            moved,
            moved2,
        });
        if self.rows.len() >= BUFFERED_MAX {
            self.settle(files, out);
        }
    }

    pub(super) fn settle<S: EmitAll>(&mut self, files: &mut FileLives, out: &mut Output<'_, S>) {
        self.over = true;
        let known = std::mem::take(&mut self.known);
        let joined = std::mem::take(&mut self.joined);
        for mut buffered in std::mem::take(&mut self.rows) {
            if let Some(now) = joined.get(&buffered.thread.utid) {
                buffered.thread = *now;
                buffered.row.upid = now.upid;
                buffered.row.pid = now.pid;
            }
            let found = |moved: &Moved| known.get(&moved.descriptor?);
            if let Some((object, file)) = found(&buffered.moved) {
                buffered.row.path = object.path;
                buffered.row.fd_class = Some(out.symbols.intern_static(object.class.name()));
                buffered.row.unknown_reason = None;
                count(&buffered, buffered.moved.bytes, (object, *file), files, out);
            }
            if let Some((object, file)) = found(&buffered.moved2) {
                buffered.row.path2 = object.path;
                count(
                    &buffered,
                    buffered.moved2.bytes,
                    (object, *file),
                    files,
                    out,
                );
            }
            if let Some(mut futex) = buffered.futex.take() {
                futex.upid = buffered.row.upid;
                futex.pid = buffered.row.pid;
                out.sink.emit(*futex);
            }
            out.sink.emit(*buffered.row);
        }
    }
}

fn count<S: EmitAll>(
    buffered: &BufferedRow,
    moved: Option<Use>,
    (object, file): (&Object, Option<FileRef>),
    files: &mut FileLives,
    out: &mut Output<'_, S>,
) {
    let ts = buffered.row.ts_end.unwrap_or(buffered.row.ts);
    let owner = Owner::of(&buffered.thread);
    let Some(use_) = moved else { return };
    let by_path = |files: &mut FileLives, out: &mut Output<'_, S>| {
        Some(files.at(file_key(object, owner)?, ts, out))
    };
    if let Some(file) = file.or_else(|| by_path(files, out)) {
        files.touch(file, ts, &buffered.thread, use_);
    }
}
