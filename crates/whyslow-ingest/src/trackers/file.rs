//! Files by path, from the first operation to deletion.
//!
//! A descriptor refers to the file it opened, whatever happens to the name: a file that was
//! unlinked or renamed still counts what is read and written through descriptors, under its old
//! identity. So a file does not leave this table when its name is removed; it only loses its entry
//! in the index by path, and a new file with that name is a new entry. The rename of a directory is
//! not applied to the names below it.
//!
//! Relative paths with an unknown directory are kept apart by process: two programs that open `a.o`
//! do not necessarily refer to the same file.
//!
//! Bounded: at [`LIVES_MAX`] the least recently used entry is dropped (second-chance algorithm,
//! constant time). Its row ends open, and further use starts another row.

use rustc_hash::FxHashMap;
use whyslow_model::stat;
use whyslow_model::tables::{EmitAll, FileLifeRow};
use whyslow_model::{Ns, Sym};

use super::identity::{Output, ThreadRef};

const LIVES_MAX: usize = 131_072;
/// Maximum number of renames followed from an older name that a descriptor refers to.
const RENAMES_FOLLOWED_MAX: usize = 16;

/// A path, and the process that it is relative to if its directory is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FileKey {
    pub(super) path: Sym,
    pub(super) scope: Option<i64>,
}

/// Reference to an entry; stale after the entry was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileRef {
    index: u32,
    generation: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Named in a successful call.
    Seen,
    /// Opened; `creating` according to the flags (`O_CREAT`, `O_EXCL`).
    Opened {
        creating: bool,
        exclusive: bool,
    },
    /// Created by mkdir, mknod, link or symlink.
    Made,
    Read(i64),
    Written(i64),
}

#[derive(Debug)]
struct Life {
    key: FileKey,
    generation: u32,
    used: bool,
    /// The last lookup found no file.
    absent: bool,
    /// Present after its first use; there is no row before.
    row: Option<FileLifeRow>,
    moved_to: Option<FileRef>,
}

#[derive(Debug, Default)]
pub(super) struct FileLives {
    lives: Vec<Life>,
    by_key: FxHashMap<FileKey, u32>,
    hand: usize,
    next_id: i64,
}

impl FileLives {
    /// The current entry of a path, without counting a use.
    pub(super) fn at<S: EmitAll>(
        &mut self,
        key: FileKey,
        ts: Ns,
        out: &mut Output<'_, S>,
    ) -> FileRef {
        let index = match self.by_key.get(&key) {
            Some(&index) => index,
            None => self.add(key, ts, out),
        };
        FileRef {
            index,
            generation: self.lives[index as usize].generation,
        }
    }

    /// Counts a use. Returns whether the entry is still current; if not, look it up by path.
    pub(super) fn touch(&mut self, file: FileRef, ts: Ns, by: &ThreadRef, use_: Use) -> bool {
        let Some(index) = self.follow(file) else {
            return false;
        };
        let life = &mut self.lives[index];
        life.used = true;
        let is_first = life.row.is_none();
        let row = life.row.get_or_insert_with(|| {
            let id = self.next_id;
            self.next_id += 1;
            begun(id, life.key.path, ts)
        });
        match use_ {
            Use::Seen => {}
            Use::Made => row.created = Some(true),
            Use::Opened {
                creating,
                exclusive,
            } => {
                row.opens += 1;
                if exclusive || (creating && life.absent) {
                    row.created = Some(true);
                } else if creating && is_first {
                    row.created = None;
                }
            }
            Use::Read(bytes) => {
                row.reads += 1;
                row.bytes_read = row.bytes_read.saturating_add(bytes);
            }
            Use::Written(bytes) => {
                row.writes += 1;
                row.bytes_written = row.bytes_written.saturating_add(bytes);
            }
        }
        row.ts = row.ts.min(ts);
        life.absent = false;
        row.upid = by.upid;
        row.pid = by.pid;
        row.comm = by.comm;
        true
    }

    /// A lookup found that the file does not exist.
    pub(super) fn absent<S: EmitAll>(&mut self, key: FileKey, ts: Ns, out: &mut Output<'_, S>) {
        let file = self.at(key, ts, out);
        let life = &mut self.lives[file.index as usize];
        life.absent = life.row.is_none();
    }

    /// The name was removed.
    pub(super) fn unlinked<S: EmitAll>(
        &mut self,
        key: FileKey,
        ts: Ns,
        by: &ThreadRef,
        out: &mut Output<'_, S>,
    ) {
        let file = self.at(key, ts, out);
        self.touch(file, ts, by, Use::Seen);
        self.end(file, ts, true);
        self.absent(key, ts, out);
    }

    /// The entry of `old` becomes that of `new`; the previous file of that name is gone.
    pub(super) fn renamed<S: EmitAll>(
        &mut self,
        (old, new): (FileKey, FileKey),
        ts: Ns,
        by: &ThreadRef,
        out: &mut Output<'_, S>,
    ) {
        if old == new {
            return;
        }
        let from = self.at(old, ts, out);
        self.touch(from, ts, by, Use::Seen);
        if let Some(&index) = self.by_key.get(&new) {
            let generation = self.lives[index as usize].generation;
            self.end(FileRef { index, generation }, ts, true);
        }
        let to = self.at(new, ts, out);
        self.touch(to, ts, by, Use::Made);
        if let Some(row) = &mut self.lives[to.index as usize].row {
            row.renamed_from = Some(old.path);
        }
        if self.is_current(from) {
            self.end(from, ts, false);
            self.lives[from.index as usize].moved_to = Some(to);
        }
        self.absent(old, ts, out);
    }

    /// Whether the file lost its name by unlink, or was replaced by a rename.
    pub(super) fn is_deleted(&self, file: FileRef) -> bool {
        let row = self
            .follow(file)
            .and_then(|index| self.lives[index].row.as_ref());
        row.is_some_and(|row| row.deleted)
    }

    pub(super) fn finish<S: EmitAll>(&mut self, out: &mut Output<'_, S>) {
        self.by_key.clear();
        for life in std::mem::take(&mut self.lives) {
            if let Some(row) = life.row {
                out.sink.emit(row);
            }
        }
    }

    fn add<S: EmitAll>(&mut self, key: FileKey, ts: Ns, out: &mut Output<'_, S>) -> u32 {
        let mut life = Life {
            key,
            generation: 0,
            used: true,
            absent: false,
            row: None,
            moved_to: None,
        };
        let index = if self.lives.len() < LIVES_MAX {
            self.lives.push(life);
            self.lives.len() - 1
        } else {
            let index = self.idle();
            let old = &mut self.lives[index];
            life.generation = old.generation.wrapping_add(1);
            let old = std::mem::replace(old, life);
            if self.by_key.get(&old.key) == Some(&(index as u32)) {
                self.by_key.remove(&old.key);
            }
            if let Some(row) = old.row {
                if row.ts_end.is_none() {
                    out.anomalies.count(&stat::MAP_LIMIT, ts);
                }
                out.sink.emit(row);
            }
            index
        };
        self.by_key.insert(key, index as u32);
        index as u32
    }

    /// An entry not used since the clock hand last passed it. Terminates because the hand clears
    /// the mark.
    fn idle(&mut self) -> usize {
        loop {
            self.hand = (self.hand + 1) % self.lives.len();
            let life = &mut self.lives[self.hand];
            if !life.used {
                return self.hand;
            }
            life.used = false;
        }
    }

    fn end(&mut self, file: FileRef, ts: Ns, deleted: bool) {
        if !self.is_current(file) {
            return;
        }
        let life = &mut self.lives[file.index as usize];
        if let Some(row) = &mut life.row {
            row.ts_end = Some(ts);
            row.dur = Some(ts.saturating_sub(row.ts));
            row.deleted = deleted;
        }
        if self.by_key.get(&life.key) == Some(&file.index) {
            self.by_key.remove(&life.key);
        }
    }

    fn is_current(&self, file: FileRef) -> bool {
        let life = self.lives.get(file.index as usize);
        life.is_some_and(|life| life.generation == file.generation)
    }

    fn follow(&self, mut file: FileRef) -> Option<usize> {
        for _ in 0..RENAMES_FOLLOWED_MAX {
            if !self.is_current(file) {
                return None;
            }
            match self.lives[file.index as usize].moved_to {
                Some(next) if self.is_current(next) => file = next,
                _ => break,
            }
        }
        Some(file.index as usize)
    }
}

fn begun(id: i64, path: Sym, ts: Ns) -> FileLifeRow {
    FileLifeRow {
        id,
        ts,
        dur: None,
        ts_end: None,
        path,
        renamed_from: None,
        created: Some(false),
        deleted: false,
        opens: 0,
        reads: 0,
        writes: 0,
        bytes_read: 0,
        bytes_written: 0,
        upid: None,
        pid: None,
        comm: None,
    }
}
