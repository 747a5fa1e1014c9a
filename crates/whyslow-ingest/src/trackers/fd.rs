//! Descriptor tables: the object of each descriptor of each process, and its lifetime.
//!
//! Threads of a process share its table; so do processes created with `CLONE_FILES`, according to
//! clone's flags or the addresses in a state dump. A fork copies it. Most children exec or exit
//! soon and there are thousands of them, so a copy costs nothing until one side changes: parent and
//! child refer to the same map, and the child only notes when it inherited it. Its rows get their
//! ids at that time, so that ids stay in order of start.
//!
//! The object of a descriptor whose opening was not recorded is never guessed: it is unknown, with
//! the most likely reason given the state of the table.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use whyslow_model::stat;
use whyslow_model::tables::{EmitAll, FdLifeRow};
use whyslow_model::{Ns, Sym};

use super::file::{FileKey, FileLives, FileRef};
use super::identity::{Output, ThreadRef};
use super::object::{Object, Reason};

/// Maximum number of open descriptors in all tables; the rows of further ones have no end.
const DESCRIPTORS_MAX: usize = 1_000_000;

/// Owner of descriptors, directory and mappings: a process, or a thread whose process is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Owner(i64);

impl Owner {
    pub(super) fn of(thread: &ThreadRef) -> Self {
        thread.upid.map_or(Self::thread(thread.utid), Self::process)
    }

    pub(super) fn process(upid: i32) -> Self {
        Self(i64::from(upid) * 2)
    }

    pub(super) fn thread(utid: i32) -> Self {
        Self(i64::from(utid) * 2 + 1)
    }

    fn upid(self) -> Option<i32> {
        (self.0 % 2 == 0).then_some((self.0 / 2) as i32)
    }
}

/// How a descriptor was created: the `origin` column.
pub(super) type Origin = &'static str;

pub(super) const INHERITED: Origin = "inherited";
pub(super) const STATE_DUMP: Origin = "state_dump";
pub(super) const FIRST_USE: Origin = "first_use";

/// Properties of a new descriptor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opening {
    pub(super) object: Object,
    pub(super) origin: Origin,
    pub(super) ts: Ns,
    pub(super) syscall_id: Option<i64>,
    pub(super) flags: Option<i64>,
    pub(super) cloexec: bool,
    /// For a duplicate: the file stays the same, even if its path was renamed.
    pub(super) file: Option<FileRef>,
    /// According to the state dump, the file is unlinked.
    pub(super) deleted: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Descriptor {
    pub(super) id: i64,
    pub(super) object: Object,
    pub(super) file: Option<FileRef>,
    pub(super) cloexec: bool,
    origin: Origin,
    ts: Ns,
    syscall_id: Option<i64>,
    flags: Option<i64>,
    comm: Option<Sym>,
    pub(super) deleted: bool,
    /// Number of a connected socket, the same for copies of the descriptor. Negative for a socket
    /// pair, whose ends share the number.
    pub(super) socket: Option<i64>,
}

#[derive(Debug, Clone, Copy)]
struct Inheritance {
    ts: Ns,
    /// Ids of the descriptors start here, in order of their numbers.
    first_id: i64,
    comm: Option<Sym>,
}

#[derive(Debug, Default)]
struct Table {
    /// Number of processes that share it.
    users: u32,
    upid: Option<i32>,
    pid: Option<i32>,
    descriptors: Arc<BTreeMap<i32, Descriptor>>,
    /// The map is still shared with the parent.
    inherited: Option<Inheritance>,
    /// All descriptors opened before are known: the table was dumped, or copied from a complete
    /// one.
    complete: bool,
    /// A message was received on a Unix socket, so descriptors may have been passed.
    received: bool,
    /// Working directory, if known.
    cwd: Option<Sym>,
}

#[derive(Debug, Default)]
pub(super) struct FdTables {
    tables: Vec<Table>,
    free: Vec<u32>,
    by_owner: FxHashMap<Owner, u32>,
    /// For the state dump in progress.
    by_address: FxHashMap<u64, ThreadRef>,
    dumped: bool,
    next_id: i64,
    sockets: i64,
    count: usize,
    ts_lost: Option<Ns>,
}

impl FdTables {
    pub(super) fn get(&self, owner: Owner, fd: i32) -> Option<&Descriptor> {
        self.table(owner)?.descriptors.get(&fd)
    }

    pub(super) fn cwd(&self, owner: Owner) -> Option<Sym> {
        self.table(owner)?.cwd
    }

    pub(super) fn set_cwd(&mut self, by: &ThreadRef, cwd: Option<Sym>) {
        let index = self.table_of(by);
        self.tables[index].cwd = cwd;
    }

    /// Sets the directory reported by a dump, unless events reported a later one.
    pub(super) fn set_first_cwd(&mut self, by: &ThreadRef, cwd: Sym) {
        let index = self.table_of(by);
        self.tables[index].cwd.get_or_insert(cwd);
    }

    pub(super) fn received(&mut self, by: &ThreadRef) {
        let index = self.table_of(by);
        self.tables[index].received = true;
    }

    pub(super) fn lost(&mut self, ts: Ns) {
        self.ts_lost = self.ts_lost.max(Some(ts));
    }

    /// Reason why the object of a descriptor in this table is unknown.
    pub(super) fn reason(&self, owner: Owner) -> Reason {
        match self.table(owner) {
            Some(table) if table.complete => {
                if table.received {
                    Reason::Passed
                } else if self.ts_lost.is_some() {
                    Reason::Lost
                } else {
                    Reason::NotSeen
                }
            }
            _ => Reason::BeforeRecording,
        }
    }

    /// Adds a descriptor; one with the same number ends.
    pub(super) fn open<S: EmitAll>(
        &mut self,
        by: &ThreadRef,
        fd: i32,
        opening: Opening,
        files: &mut FileLives,
        out: &mut Output<'_, S>,
    ) -> Option<FileRef> {
        let index = self.table_of(by);
        self.remove(index, fd, (opening.ts, "replaced"), files, out);
        self.put(index, (by, fd), opening, files, out)
    }

    /// Changes the object of a descriptor, but not its file.
    pub(super) fn rename(&mut self, owner: Owner, fd: i32, object: Object) {
        if self
            .get(owner, fd)
            .is_some_and(|known| known.object != object)
        {
            self.change(owner, fd, |descriptor| descriptor.object = object);
        }
    }

    /// Two descriptors refer to the ends of a pair.
    pub(super) fn set_pair(&mut self, owner: Owner, ends: [i32; 2]) {
        self.sockets += 1;
        for fd in ends {
            self.share_socket(owner, fd, Some(-self.sockets));
        }
    }

    /// A descriptor refers to a new socket. Returns the number of the socket, or `None` if the
    /// descriptor is unknown.
    pub(super) fn set_socket(&mut self, owner: Owner, fd: i32) -> Option<i64> {
        self.get(owner, fd)?;
        self.sockets += 1;
        let socket = Some(self.sockets);
        self.change(owner, fd, |descriptor| descriptor.socket = socket);
        socket
    }

    /// A copy of a descriptor refers to the same socket.
    pub(super) fn share_socket(&mut self, owner: Owner, fd: i32, socket: Option<i64>) {
        if socket.is_some() {
            self.change(owner, fd, |descriptor| descriptor.socket = socket);
        }
    }

    pub(super) fn set_cloexec(&mut self, owner: Owner, fd: i32, cloexec: bool) {
        if self
            .get(owner, fd)
            .is_some_and(|known| known.cloexec != cloexec)
        {
            self.change(owner, fd, |descriptor| descriptor.cloexec = cloexec);
        }
    }

    pub(super) fn close<S: EmitAll>(
        &mut self,
        owner: Owner,
        fd: i32,
        end: (Ns, &'static str),
        files: &FileLives,
        out: &mut Output<'_, S>,
    ) {
        if let Some(&index) = self.by_owner.get(&owner) {
            self.remove(index as usize, fd, end, files, out);
        }
    }

    /// Open descriptors in a range, in order.
    pub(super) fn open_between(&self, owner: Owner, first: i32, last: i32) -> Vec<i32> {
        match self.table(owner) {
            Some(table) if first <= last => table
                .descriptors
                .range(first..=last)
                .map(|(&fd, _)| fd)
                .collect(),
            _ => Vec::new(),
        }
    }

    /// A process is created: it shares the table or gets a copy.
    pub(super) fn fork(
        &mut self,
        parent: Option<&ThreadRef>,
        child: &ThreadRef,
        ts: Ns,
        shares: bool,
    ) {
        let owner = Owner::of(child);
        if self.by_owner.contains_key(&owner) {
            return; // a thread of a process that already has a table
        }
        let from = parent.map(|parent| self.table_of(parent));
        match from {
            Some(index) if shares => {
                self.tables[index].users += 1;
                self.by_owner.insert(owner, index as u32);
            }
            Some(index) => self.copy(index, child, ts),
            None => {
                self.table_of(child);
            }
        }
    }

    /// Gives a process its own copy of a table.
    fn copy(&mut self, from: usize, to: &ThreadRef, ts: Ns) {
        let index = self.table_of(to);
        let from = &self.tables[from];
        let descriptors = Arc::clone(&from.descriptors);
        let copy = Table {
            inherited: Some(Inheritance {
                ts,
                first_id: self.next_id,
                comm: to.comm,
            }),
            descriptors,
            complete: from.complete,
            received: from.received,
            cwd: from.cwd,
            ..Table::default()
        };
        self.next_id += copy.descriptors.len() as i64;
        self.count += copy.descriptors.len();
        let table = &mut self.tables[index];
        *table = Table {
            users: table.users,
            upid: table.upid,
            pid: table.pid,
            ..copy
        };
    }

    /// Exec: the table is no longer shared, and descriptors marked close-on-exec are closed.
    pub(super) fn exec<S: EmitAll>(
        &mut self,
        thread: &ThreadRef,
        ts: Ns,
        files: &FileLives,
        out: &mut Output<'_, S>,
    ) {
        let owner = Owner::of(thread);
        let Some(&index) = self.by_owner.get(&owner) else {
            return;
        };
        self.unshare(thread, ts);
        let index = self.by_owner.get(&owner).map_or(index, |&own| own) as usize;
        let closing: Vec<i32> = self.tables[index]
            .descriptors
            .iter()
            .filter(|(_, descriptor)| descriptor.cloexec)
            .map(|(&fd, _)| fd)
            .collect();
        for fd in closing {
            self.remove(index, fd, (ts, "exec"), files, out);
        }
    }

    /// `unshare(CLONE_FILES)`.
    pub(super) fn unshare(&mut self, thread: &ThreadRef, ts: Ns) {
        let owner = Owner::of(thread);
        if let Some(&index) = self.by_owner.get(&owner)
            && self.tables[index as usize].users > 1
        {
            self.tables[index as usize].users -= 1;
            self.by_owner.remove(&owner);
            self.copy(index as usize, thread, ts);
        }
    }

    /// A thread turned out to belong to a process: its descriptors were those of the process. Calls
    /// `known` for each of its unknown descriptors that the process knows.
    pub(super) fn join(&mut self, thread: &ThreadRef, mut known: impl FnMut(i64, &Descriptor)) {
        let (from, to) = (Owner::thread(thread.utid), Owner::of(thread));
        let Some(index) = self.by_owner.remove(&from) else {
            return;
        };
        let Some(&process) = self.by_owner.get(&to) else {
            self.by_owner.insert(to, index);
            let table = &mut self.tables[index as usize];
            table.upid = thread.upid;
            table.pid = thread.pid;
            return;
        };
        let table = &mut self.tables[index as usize];
        table.users -= 1;
        if table.users > 0 {
            return;
        }
        let table = std::mem::take(table);
        self.free.push(index);
        let descriptors = own(&mut self.tables[process as usize]);
        for (fd, descriptor) in own_rows(&table) {
            match descriptors.get(&fd) {
                Some(same) => {
                    self.count -= 1;
                    known(descriptor.id, same);
                }
                None => {
                    descriptors.insert(fd, descriptor);
                }
            }
        }
        let process = &mut self.tables[process as usize];
        process.cwd = process.cwd.or(table.cwd);
        process.received |= table.received;
    }

    pub(super) fn exit<S: EmitAll>(
        &mut self,
        owner: Owner,
        ts: Ns,
        files: &FileLives,
        out: &mut Output<'_, S>,
    ) {
        let Some(index) = self.by_owner.remove(&owner) else {
            return;
        };
        let table = &mut self.tables[index as usize];
        table.users -= 1;
        if table.users == 0 {
            self.end_table(index, (ts, "exit"), files, out);
        }
    }

    /// A process of a state dump, with the identity of its table if the tracer reports it.
    pub(super) fn dump_process(&mut self, thread: &ThreadRef, address: Option<u64>) {
        let owner = Owner::of(thread);
        if let Some(address) = address {
            let first = *self.by_address.entry(address).or_insert(*thread);
            let first = Owner::of(&first);
            if first != owner
                && !self.by_owner.contains_key(&owner)
                && let Some(&index) = self.by_owner.get(&first)
            {
                self.tables[index as usize].users += 1;
                self.by_owner.insert(owner, index);
            }
        }
        self.table_of(thread);
    }

    /// Owner of the table with this address in the state dump.
    pub(super) fn dumped_owner(&self, address: u64) -> Option<ThreadRef> {
        self.by_address.get(&address).copied()
    }

    /// A descriptor of a state dump. Returns the id of one in use whose object was unknown before.
    pub(super) fn dump<S: EmitAll>(
        &mut self,
        by: &ThreadRef,
        fd: i32,
        opening: Opening,
        files: &mut FileLives,
        out: &mut Output<'_, S>,
    ) -> Option<i64> {
        self.dumped = true;
        let owner = Owner::of(by);
        match self.get(owner, fd) {
            None => {
                let index = self.table_of(by);
                self.put(index, (by, fd), opening, files, out);
                None
            }
            Some(known) if known.object.reason.is_some() => {
                let id = known.id;
                let file = file_of(&opening.object, owner, opening.ts, files, out);
                self.change(owner, fd, |descriptor| {
                    descriptor.object = opening.object;
                    descriptor.file = descriptor.file.or(file);
                    descriptor.flags = descriptor.flags.or(opening.flags);
                    descriptor.deleted |= opening.deleted;
                });
                Some(id)
            }
            Some(_) => None,
        }
    }

    /// End of the state dump: all tables are complete from here on.
    pub(super) fn dump_ended(&mut self) {
        self.by_address.clear();
        if self.dumped {
            for table in &mut self.tables {
                table.complete = true;
            }
        }
    }

    pub(super) fn finish<S: EmitAll>(&mut self, files: &FileLives, out: &mut Output<'_, S>) {
        self.by_owner.clear();
        for table in std::mem::take(&mut self.tables) {
            for (fd, descriptor) in own_rows(&table) {
                let row = row(&table, fd, &descriptor, files, out);
                out.sink.emit(row);
            }
        }
    }

    fn table(&self, owner: Owner) -> Option<&Table> {
        let &index = self.by_owner.get(&owner)?;
        Some(&self.tables[index as usize])
    }

    /// The table of a thread's process, created on first use.
    fn table_of(&mut self, thread: &ThreadRef) -> usize {
        let owner = Owner::of(thread);
        if let Some(&index) = self.by_owner.get(&owner) {
            return index as usize;
        }
        let table = Table {
            users: 1,
            upid: owner.upid(),
            pid: thread.pid,
            ..Table::default()
        };
        let index = if let Some(index) = self.free.pop() {
            self.tables[index as usize] = table;
            index
        } else {
            self.tables.push(table);
            (self.tables.len() - 1) as u32 // bounded by the processes alive
        };
        self.by_owner.insert(owner, index);
        index as usize
    }

    fn put<S: EmitAll>(
        &mut self,
        index: usize,
        (by, fd): (&ThreadRef, i32),
        opening: Opening,
        files: &mut FileLives,
        out: &mut Output<'_, S>,
    ) -> Option<FileRef> {
        let file = opening
            .file
            .or_else(|| file_of(&opening.object, Owner::of(by), opening.ts, files, out));
        let descriptor = Descriptor {
            id: self.next_id,
            object: opening.object,
            file,
            cloexec: opening.cloexec,
            origin: opening.origin,
            ts: opening.ts,
            syscall_id: opening.syscall_id,
            flags: opening.flags,
            comm: by.comm,
            deleted: opening.deleted,
            socket: None,
        };
        self.next_id += 1;
        if self.count >= DESCRIPTORS_MAX {
            out.anomalies.count(&stat::MAP_LIMIT, opening.ts);
            let row = row(&self.tables[index], fd, &descriptor, files, out);
            out.sink.emit(row);
            return file;
        }
        self.count += 1;
        own(&mut self.tables[index]).insert(fd, descriptor);
        file
    }

    fn change(&mut self, owner: Owner, fd: i32, change: impl FnOnce(&mut Descriptor)) {
        if let Some(&index) = self.by_owner.get(&owner)
            && let Some(descriptor) = own(&mut self.tables[index as usize]).get_mut(&fd)
        {
            change(descriptor);
        }
    }

    fn remove<S: EmitAll>(
        &mut self,
        index: usize,
        fd: i32,
        (ts, closed_by): (Ns, &'static str),
        files: &FileLives,
        out: &mut Output<'_, S>,
    ) {
        if !self.tables[index].descriptors.contains_key(&fd) {
            return;
        }
        let descriptor = own(&mut self.tables[index]).remove(&fd);
        let descriptor = descriptor.expect("looked up above");
        self.count -= 1;
        let row = row(&self.tables[index], fd, &descriptor, files, out);
        let closed_by = out.symbols.intern_static(closed_by);
        out.sink.emit(ended(row, &descriptor, ts, closed_by));
    }

    fn end_table<S: EmitAll>(
        &mut self,
        index: u32,
        (ts, closed_by): (Ns, &'static str),
        files: &FileLives,
        out: &mut Output<'_, S>,
    ) {
        let table = std::mem::take(&mut self.tables[index as usize]);
        self.free.push(index);
        self.count -= table.descriptors.len();
        let closed_by = out.symbols.intern_static(closed_by);
        for (fd, descriptor) in own_rows(&table) {
            let row = row(&table, fd, &descriptor, files, out);
            out.sink.emit(ended(row, &descriptor, ts, closed_by));
        }
    }
}

/// The map of a table for writing, not shared any more.
fn own(table: &mut Table) -> &mut BTreeMap<i32, Descriptor> {
    if table.inherited.is_some() {
        table.descriptors = Arc::new(own_rows(table).collect());
        table.inherited = None;
    }
    Arc::make_mut(&mut table.descriptors)
}

/// The descriptors as rows of this table, in order of number.
fn own_rows(table: &Table) -> impl Iterator<Item = (i32, Descriptor)> {
    let inherited = table.inherited;
    let numbered = table.descriptors.iter().zip(0..);
    numbered.map(move |((&fd, &descriptor), rank)| match inherited {
        None => (fd, descriptor),
        Some(inheritance) => {
            let copy = Descriptor {
                id: inheritance.first_id + rank,
                origin: INHERITED,
                ts: inheritance.ts,
                syscall_id: None,
                comm: inheritance.comm,
                ..descriptor
            };
            (fd, copy)
        }
    })
}

fn file_of<S: EmitAll>(
    object: &Object,
    owner: Owner,
    ts: Ns,
    files: &mut FileLives,
    out: &mut Output<'_, S>,
) -> Option<FileRef> {
    let key = file_key(object, owner)?;
    Some(files.at(key, ts, out))
}

/// Key of the file of an object, if it is a file with a name.
pub(super) fn file_key(object: &Object, owner: Owner) -> Option<FileKey> {
    let path = object.path.filter(|_| object.class.has_file())?;
    let relative = object.reason == Some(Reason::DirectoryUnknown);
    Some(FileKey {
        path,
        scope: relative.then_some(owner.0),
    })
}

fn row<S: EmitAll>(
    table: &Table,
    fd: i32,
    descriptor: &Descriptor,
    files: &FileLives,
    out: &mut Output<'_, S>,
) -> FdLifeRow {
    let object = &descriptor.object;
    let symbols = &mut *out.symbols;
    FdLifeRow {
        id: descriptor.id,
        ts: descriptor.ts,
        dur: None,
        ts_end: None,
        upid: table.upid,
        pid: table.pid,
        comm: descriptor.comm,
        fd,
        fd_class: symbols.intern_static(object.class.name()),
        path: object.path,
        unknown_reason: object
            .reason
            .map(|reason| symbols.intern_static(reason.name())),
        origin: symbols.intern_static(descriptor.origin),
        syscall_id: descriptor.syscall_id,
        flags: descriptor.flags,
        cloexec: descriptor.cloexec,
        deleted: descriptor.deleted || descriptor.file.is_some_and(|file| files.is_deleted(file)),
        closed_by: None,
    }
}

/// The duration is known only if the start was recorded.
fn ended(mut row: FdLifeRow, descriptor: &Descriptor, ts: Ns, closed_by: Sym) -> FdLifeRow {
    let begin_seen = !matches!(descriptor.origin, STATE_DUMP | FIRST_USE);
    row.dur = begin_seen.then(|| ts.saturating_sub(row.ts));
    row.ts_end = Some(ts);
    row.closed_by = Some(closed_by);
    row
}
