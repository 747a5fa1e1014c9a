//! Applies returned calls to descriptors, files and mappings.

use whyslow_model::Sym;
use whyslow_model::event::SyscallArgs;
use whyslow_model::tables::{EmitAll, MappingRow, ProcessViewRow};

use super::super::fd::{FIRST_USE, Opening, Origin, Owner, file_key};
use super::super::file::Use;
use super::super::identity::{Here, Output, ThreadRef};
use super::super::object::{FdClass, Object, Reason};
use super::effect::{
    CLONE_FILES, CLOSE_RANGE_CLOEXEC, CLOSE_RANGE_UNSHARE, EINPROGRESS, ENOENT, Effect, F_SETFD,
    FIOCLEX, FIONCLEX, Fresh, MAP_ANONYMOUS, O_CLOEXEC, O_CREAT, O_DIRECTORY, O_EXCL, O_TMPFILE,
    RENAME_EXCHANGE, SIGNALFD, TCGETS,
};
use super::path::{is_nameless, name_by_address};
use super::row::{errno, moved};
use super::{End, Pending, SyscallTracker, Target, failed_with, had_no_object};

/// Maximum number of pipes and socket pairs with their own name; further ones share one.
const PIPES_NAMED_MAX: u32 = 1 << 20;
/// `fcntl(F_DUPFD_CLOEXEC)`.
const F_DUPFD_CLOEXEC: i64 = 1030;
/// `memfd_create(MFD_CLOEXEC)`.
const MFD_CLOEXEC: i64 = 1;

/// A call at its return.
struct Return<'a> {
    pending: Pending,
    /// The thread, as known now.
    thread: ThreadRef,
    owner: Owner,
    here: &'a Here,
    ret: Option<i64>,
    args: &'a SyscallArgs<'a>,
}

impl Return<'_> {
    fn succeeded(&self) -> bool {
        self.ret.is_none_or(|ret| errno(ret).is_none())
    }

    /// The descriptor that a successful call returned.
    fn new_fd(&self) -> Option<i32> {
        i32::try_from(self.ret?).ok().filter(|&fd| fd >= 0)
    }

    fn flags(&self, mask: i64) -> bool {
        self.pending
            .numbers
            .flags
            .is_some_and(|flags| flags & mask != 0)
    }
}

impl SyscallTracker {
    pub(super) fn perform<S: EmitAll>(
        &mut self,
        pending: &Pending,
        thread: &ThreadRef,
        here: &Here,
        (ret, args): (Option<i64>, &SyscallArgs<'_>),
        out: &mut Output<'_, S>,
    ) {
        let mut call = Return {
            owner: Owner::of(thread),
            pending: *pending,
            thread: *thread,
            here,
            ret,
            args,
        };
        self.meet(&mut call, out);
        self.apply(&mut call, out);
        self.account(&mut call, out);
        self.dns_call(&call.pending, thread, (ret, here.ts), out.symbols);
        self.ops_done(&call.pending, call.owner, (ret, args));
        let end = if pending.is_timed {
            self.returned(&call.pending, (here.ts, ret))
        } else {
            End::Sometime(ret)
        };
        self.emit(&call.pending, Some(thread), end, out);
    }

    /// Changes the view of the process.
    fn rooted<S: EmitAll>(&mut self, call: &Return<'_>, out: &mut Output<'_, S>) {
        let named = call.pending.named.filter(|named| named.reason.is_none());
        if let (Some(upid), Some(root)) = (call.thread.upid, named.and_then(|named| named.path)) {
            let row = ProcessViewRow {
                // Even ids are used for snapshots and programs.
                id: 2 * self.roots + 1,
                ts: call.here.ts,
                upid,
                mount_ns: None,
                root: Some(root),
                is_below: true,
            };
            self.roots += 1;
            out.sink.emit(row);
        }
    }

    /// If the entry of a call is missing, only its return reports a new descriptor.
    pub(super) fn perform_late<S: EmitAll>(
        &mut self,
        mut pending: Pending,
        thread: &ThreadRef,
        here: &Here,
        (ret, args): (Option<i64>, &SyscallArgs<'_>),
        out: &mut Output<'_, S>,
    ) {
        pending.named = None;
        let mut call = Return {
            owner: Owner::of(thread),
            pending,
            thread: *thread,
            here,
            ret,
            args,
        };
        let effect = self.calls.get(pending.called.meaning).effect;
        if call.succeeded() {
            match effect {
                Effect::Accept => self.accepted(&mut call, out),
                Effect::Fresh(fresh) => self.made(&mut call, fresh, out),
                Effect::Pipe | Effect::SocketPair => self.paired(&mut call, effect, out),
                Effect::Open | Effect::Creat | Effect::Socket | Effect::Memfd => {
                    call.pending.named = Some(Object::unknown(Reason::EntryLost));
                    self.yielded(&mut call, "open", false, out);
                }
                _ => {}
            }
        }
        let end = End::OfUnknownBegin(here.ts, ret);
        self.emit(&call.pending, Some(thread), end, out);
    }

    /// Adds descriptors that were used but unknown.
    fn meet<S: EmitAll>(&mut self, call: &mut Return<'_>, out: &mut Output<'_, S>) {
        if had_no_object(call.ret) {
            return;
        }
        let class = match self.calls.get(call.pending.called.meaning).effect {
            Effect::Ioctl if call.pending.numbers.command == Some(TCGETS) => Some(FdClass::Tty),
            _ => self.calls.get(call.pending.called.meaning).implied_class,
        };
        let class = class.filter(|_| call.succeeded());
        let (fd, fd2) = (call.pending.numbers.fd, call.pending.numbers.fd2);
        let mut target = call.pending.target;
        if let (Some(fd), Some(target)) = (fd, &mut target) {
            self.meet_one(call, fd, target, class, out);
        }
        call.pending.target = target;
        let mut target2 = call.pending.target2;
        if let (Some(fd), Some(target)) = (fd2, &mut target2) {
            self.meet_one(call, fd, target, None, out);
        }
        call.pending.target2 = target2;
    }

    fn meet_one<S: EmitAll>(
        &mut self,
        call: &Return<'_>,
        fd: i32,
        target: &mut Target,
        class: Option<FdClass>,
        out: &mut Output<'_, S>,
    ) {
        let now = self.fds.get(call.owner, fd).copied();
        let same = now.filter(|now| Some(now.id) == target.descriptor);
        if let Some(now) = same.filter(|_| target.object.reason.is_some()) {
            // The state dump may have named it while the call was in progress.
            target.object = now.object;
            target.file = now.file;
        }
        let before = target.object;
        if let Some(class) = class {
            if class == FdClass::Directory && before.class == FdClass::File {
                target.object.class = class;
            }
            target.learn(class);
        }
        if target.descriptor.is_some() {
            if same.is_some_and(|now| now.object == before) {
                self.fds.rename(call.owner, fd, target.object);
            }
            return;
        }
        if now.is_some() {
            return; // opened by another thread while this call was in progress
        }
        let opening = Opening {
            object: target.object,
            origin: FIRST_USE,
            ts: call.pending.ts,
            syscall_id: None,
            flags: None,
            cloexec: false,
            file: None,
            deleted: false,
        };
        let (fds, files) = (&mut self.fds, &mut self.files);
        fds.open(&call.thread, fd, opening, files, out);
        target.descriptor = self.fds.get(call.owner, fd).map(|now| now.id);
    }

    fn apply<S: EmitAll>(&mut self, call: &mut Return<'_>, out: &mut Output<'_, S>) {
        let effect = self.calls.get(call.pending.called.meaning).effect;
        if effect == Effect::Connect {
            return self.connected(call, out);
        }
        if effect == Effect::Close {
            return self.closed(call, out);
        }
        if !call.succeeded() {
            return self.failed(call, effect, out);
        }
        match effect {
            Effect::Open | Effect::Creat => self.opened(call, effect == Effect::Creat, out),
            Effect::Fresh(fresh) => self.made(call, fresh, out),
            Effect::Signalfd if call.pending.numbers.fd == Some(-1) => {
                self.made(call, SIGNALFD, out);
            }
            Effect::Memfd => self.yielded(call, "memfd", call.flags(MFD_CLOEXEC), out),
            Effect::MqOpen => self.yielded(call, "mq_open", true, out),
            Effect::OpenByHandle => {
                let mut object = Object::unknown(Reason::ByHandle);
                object.class = FdClass::File;
                call.pending.named = Some(object);
                self.yielded(call, "open_by_handle", call.flags(O_CLOEXEC), out);
            }
            Effect::PidfdGetfd => {
                call.pending.named = Some(Object::unknown(Reason::OtherProcess));
                self.yielded(call, "pidfd_getfd", true, out);
            }
            Effect::Socket => {
                let family = call.pending.numbers.family;
                let class = family.map_or(FdClass::Socket, FdClass::of_family);
                call.pending.named = Some(Object::of_socket(class, out.symbols));
                self.yielded(call, "socket", socket_cloexec(call), out);
            }
            Effect::SocketPair | Effect::Pipe => self.paired(call, effect, out),
            Effect::Accept => self.accepted(call, out),
            Effect::Bind | Effect::Getpeername | Effect::Getsockname => {
                self.addressed(call, effect, out);
            }
            Effect::Dup => self.duplicated(call, call.flags(O_CLOEXEC), out),
            Effect::Fcntl => self.controlled(call, out),
            Effect::Ioctl => {
                let command = call.pending.numbers.command;
                if let Some(fd) = call.pending.numbers.fd
                    && (command == Some(FIOCLEX) || command == Some(FIONCLEX))
                {
                    let cloexec = command == Some(FIOCLEX);
                    self.fds.set_cloexec(call.owner, fd, cloexec);
                }
            }
            Effect::CloseRange => self.closed_range(call, out),
            Effect::Unlink | Effect::Rename | Effect::Link | Effect::Symlink | Effect::Make => {
                self.name_changed(call, effect, out);
            }
            Effect::Chdir | Effect::Fchdir => {
                let to = call
                    .pending
                    .named
                    .or(call.pending.target.map(|target| target.object));
                let cwd = to.filter(|to| to.reason.is_none()).and_then(|to| to.path);
                self.fds.set_cwd(&call.thread, cwd);
            }
            Effect::Chroot => self.rooted(call, out),
            Effect::Mmap | Effect::Munmap | Effect::Mremap => self.mapped(call, effect, out),
            Effect::Unshare if call.flags(CLONE_FILES) => {
                self.fds.unshare(&call.thread, call.here.ts);
            }
            Effect::SocketCall => self.socket_called(call, out),
            Effect::RecvMsg => {
                let by_message = call.pending.target.is_some_and(|target| {
                    let class = target.object.class;
                    matches!(class, FdClass::Unix | FdClass::Socket | FdClass::Unknown)
                });
                if by_message {
                    self.fds.received(&call.thread);
                }
            }
            Effect::RecvFrom => {
                let (mut pending, args) = (call.pending, call.args);
                name_by_address(&mut pending, args, out);
                call.pending = pending;
            }
            _ => self.seen(call, out),
        }
    }

    /// Counts reads and writes for the file of the descriptor, whatever its current name.
    fn account<S: EmitAll>(&mut self, call: &mut Return<'_>, out: &mut Output<'_, S>) {
        let meaning = self.calls.get(call.pending.called.meaning);
        let bytes = call
            .ret
            .filter(|&ret| meaning.call.returns_bytes && ret >= 0);
        let (first, second) = moved(&call.pending, bytes);
        for (target, use_) in [(call.pending.target, first), (call.pending.target2, second)] {
            let (Some(target), Some(use_)) = (target, use_) else {
                continue;
            };
            let (ts, thread) = (call.here.ts, &call.thread);
            let counted = target
                .file
                .is_some_and(|file| self.files.touch(file, ts, thread, use_));
            if !counted && let Some(key) = file_key(&target.object, call.owner) {
                let file = self.files.at(key, ts, out);
                self.files.touch(file, ts, thread, use_);
            }
        }
    }

    /// A failed lookup shows that the file does not exist.
    fn failed<S: EmitAll>(&mut self, call: &Return<'_>, effect: Effect, out: &mut Output<'_, S>) {
        let looks = matches!(effect, Effect::Open | Effect::Plain | Effect::Unlink);
        if looks
            && failed_with(call.ret, ENOENT)
            && let Some(named) = call.pending.named
            && let Some(key) = file_key(&named, call.owner)
        {
            self.files.absent(key, call.here.ts, out);
        }
    }

    fn seen<S: EmitAll>(&mut self, call: &Return<'_>, out: &mut Output<'_, S>) {
        for named in [call.pending.named, call.pending.named2]
            .into_iter()
            .flatten()
        {
            self.use_file(call, &named, Use::Seen, out);
        }
    }

    fn use_file<S: EmitAll>(
        &mut self,
        call: &Return<'_>,
        object: &Object,
        use_: Use,
        out: &mut Output<'_, S>,
    ) {
        if let Some(key) = file_key(object, call.owner) {
            let file = self.files.at(key, call.here.ts, out);
            self.files.touch(file, call.here.ts, &call.thread, use_);
        }
    }

    fn opened<S: EmitAll>(&mut self, call: &mut Return<'_>, creat: bool, out: &mut Output<'_, S>) {
        let mut object = call
            .pending
            .named
            .unwrap_or(Object::unknown(Reason::PathUnread));
        if call.flags(O_TMPFILE) {
            if let Some(directory) = object.path {
                let name = format!("{} (O_TMPFILE)", out.symbols.get(directory));
                object.path = Some(out.symbols.intern(&name));
            }
        } else if call.flags(O_DIRECTORY) && object.class == FdClass::File {
            object.class = FdClass::Directory;
        }
        call.pending.named = Some(object);
        let creating = creat || call.flags(O_CREAT);
        let use_ = Use::Opened {
            creating,
            exclusive: creating && call.flags(O_EXCL),
        };
        self.use_file(call, &object, use_, out);
        let origin = if creat { "creat" } else { "open" };
        self.yielded(call, origin, call.flags(O_CLOEXEC), out);
    }

    fn made<S: EmitAll>(&mut self, call: &mut Return<'_>, fresh: Fresh, out: &mut Output<'_, S>) {
        let name = out.symbols.intern_static(fresh.name);
        call.pending.named = Some(Object::known(fresh.class, name));
        let cloexec = fresh.cloexec == -1 || call.flags(fresh.cloexec);
        self.yielded(call, fresh.origin, cloexec, out);
    }

    /// The call returned a descriptor of the object that it named.
    fn yielded<S: EmitAll>(
        &mut self,
        call: &mut Return<'_>,
        origin: Origin,
        cloexec: bool,
        out: &mut Output<'_, S>,
    ) {
        let (Some(fd), Some(object)) = (call.new_fd(), call.pending.named) else {
            return;
        };
        self.enter_fd(call, (fd, object), (origin, cloexec), out);
        let numbers = &mut call.pending.numbers;
        if numbers.fd.is_none_or(|fd| fd < 0) {
            numbers.fd = Some(fd);
        } else {
            numbers.fd2 = Some(fd);
        }
    }

    fn enter_fd<S: EmitAll>(
        &mut self,
        call: &Return<'_>,
        (fd, object): (i32, Object),
        (origin, cloexec): (Origin, bool),
        out: &mut Output<'_, S>,
    ) {
        let opening = Opening {
            object,
            origin,
            ts: call.here.ts,
            syscall_id: Some(call.pending.id),
            flags: call.pending.numbers.flags,
            cloexec,
            file: None,
            deleted: false,
        };
        let (fds, files) = (&mut self.fds, &mut self.files);
        fds.open(&call.thread, fd, opening, files, out);
    }

    /// Both ends have the same name, so that reader and writer can be matched.
    fn paired<S: EmitAll>(
        &mut self,
        call: &mut Return<'_>,
        effect: Effect,
        out: &mut Output<'_, S>,
    ) {
        let name = self.pipe_name(effect, out);
        let (class, origin, cloexec) = if effect == Effect::Pipe {
            (FdClass::Pipe, "pipe", call.flags(O_CLOEXEC))
        } else {
            let family = call.pending.numbers.family;
            let class = family.map_or(FdClass::Unix, FdClass::of_family);
            (class, "socketpair", socket_cloexec(call))
        };
        let object = Object::known(class, name);
        call.pending.named = Some(object);
        let Some(ends) = call.args.fds else {
            return;
        };
        for fd in ends {
            self.enter_fd(call, (fd, object), (origin, cloexec), out);
        }
        call.pending.numbers.fd = Some(ends[0]);
        call.pending.numbers.fd2 = Some(ends[1]);
    }

    fn pipe_name<S: EmitAll>(&mut self, effect: Effect, out: &mut Output<'_, S>) -> Sym {
        let kind = if effect == Effect::Pipe {
            "pipe"
        } else {
            "socket"
        };
        if self.pipes >= PIPES_NAMED_MAX {
            return out.symbols.intern(&format!("{kind}:pair"));
        }
        self.pipes += 1;
        out.symbols.intern(&format!("{kind}:#{}", self.pipes))
    }

    fn accepted<S: EmitAll>(&mut self, call: &mut Return<'_>, out: &mut Output<'_, S>) {
        let listener = call.pending.target.map(|target| target.object);
        let class = listener.map_or(FdClass::Socket, |listener| listener.class);
        let object = match (&call.args.socket_address, listener) {
            (Some(address), _) => Object::of_address(address, out.symbols),
            // Clients of Unix sockets rarely have names: use the name of the listener.
            (None, Some(listener)) if class == FdClass::Unix => listener,
            (None, _) => Object::of_socket(class, out.symbols),
        };
        let nameless_unix = object.class == FdClass::Unix && is_nameless(&object, out);
        let object = listener.filter(|_| nameless_unix).unwrap_or(object);
        call.pending.named = Some(object);
        self.yielded(call, "accept", call.flags(O_CLOEXEC), out);
    }

    /// A socket is named after its peer once that has accepted, or while connecting.
    fn connected<S: EmitAll>(&mut self, call: &Return<'_>, out: &mut Output<'_, S>) {
        let connected = call.succeeded() || failed_with(call.ret, EINPROGRESS);
        if let (true, Some(fd), Some(peer)) =
            (connected, call.pending.numbers.fd, call.pending.named)
        {
            let was = self.fds.get(call.owner, fd).map(|known| known.object.class);
            let object = match was {
                // Connecting to AF_UNSPEC dissolves the connection.
                Some(class) if peer.class == FdClass::Socket && class.is_socket() => {
                    Object::of_socket(class, out.symbols)
                }
                _ => peer,
            };
            self.fds.rename(call.owner, fd, object);
        }
    }

    /// An address names a socket that has no peer yet; the peer's address always names it.
    fn addressed<S: EmitAll>(
        &mut self,
        call: &mut Return<'_>,
        effect: Effect,
        out: &mut Output<'_, S>,
    ) {
        let address = call.args.socket_address.as_ref();
        let address = address.map(|address| Object::of_address(address, out.symbols));
        let Some(object) = address.or(call.pending.named) else {
            return;
        };
        let Some((fd, target)) = call.pending.numbers.fd.zip(call.pending.target) else {
            return;
        };
        if effect == Effect::Getpeername || is_nameless(&target.object, out) {
            if !is_nameless(&object, out) || target.object.reason.is_some() {
                self.fds.rename(call.owner, fd, object);
            }
            call.pending.named = Some(object);
        }
    }

    fn duplicated<S: EmitAll>(
        &mut self,
        call: &mut Return<'_>,
        cloexec: bool,
        out: &mut Output<'_, S>,
    ) {
        let (Some(old), Some(new)) = (call.pending.numbers.fd, call.new_fd()) else {
            return;
        };
        call.pending.numbers.fd2 = Some(new);
        let Some(&descriptor) = self.fds.get(call.owner, old).filter(|_| old != new) else {
            return;
        };
        let ts = call.here.ts;
        let (fds, files) = (&mut self.fds, &mut self.files);
        fds.close(call.owner, new, (ts, "dup"), files, out);
        let opening = Opening {
            object: descriptor.object,
            origin: "dup",
            ts,
            syscall_id: Some(call.pending.id),
            flags: None,
            cloexec,
            file: descriptor.file,
            deleted: descriptor.deleted,
        };
        fds.open(&call.thread, new, opening, files, out);
        fds.share_socket(call.owner, new, descriptor.socket);
    }

    fn controlled<S: EmitAll>(&mut self, call: &mut Return<'_>, out: &mut Output<'_, S>) {
        let (command, value) = (call.pending.numbers.command, call.pending.numbers.value);
        match command {
            Some(0) => self.duplicated(call, false, out),
            Some(F_DUPFD_CLOEXEC) => self.duplicated(call, true, out),
            Some(F_SETFD) => {
                if let (Some(fd), Some(flags)) = (call.pending.numbers.fd, value) {
                    self.fds.set_cloexec(call.owner, fd, flags & 1 != 0);
                }
            }
            _ => {}
        }
    }

    /// The descriptor is free from the start of close in the kernel, so another thread may have
    /// reused it by now. Only a descriptor that was not open stays unchanged.
    fn closed<S: EmitAll>(&mut self, call: &Return<'_>, out: &mut Output<'_, S>) {
        let (Some(fd), Some(target)) = (call.pending.numbers.fd, call.pending.target) else {
            return;
        };
        let now = self.fds.get(call.owner, fd).map(|now| now.id);
        if now.is_some() && now == target.descriptor && !had_no_object(call.ret) {
            let end = (call.here.ts, "close");
            self.fds.close(call.owner, fd, end, &self.files, out);
        }
    }

    fn closed_range<S: EmitAll>(&mut self, call: &Return<'_>, out: &mut Output<'_, S>) {
        let numbers = &call.pending.numbers;
        let (first, last) = (numbers.fd.unwrap_or(0), numbers.fd2.unwrap_or(-1));
        // An unsigned number: negative values mean no limit.
        let last = if last < 0 { i32::MAX } else { last };
        if call.flags(CLOSE_RANGE_UNSHARE) {
            self.fds.unshare(&call.thread, call.here.ts);
        }
        for fd in self.fds.open_between(call.owner, first, last) {
            if call.flags(CLOSE_RANGE_CLOEXEC) {
                self.fds.set_cloexec(call.owner, fd, true);
            } else {
                let end = (call.here.ts, "close");
                self.fds.close(call.owner, fd, end, &self.files, out);
            }
        }
    }

    fn name_changed<S: EmitAll>(
        &mut self,
        call: &mut Return<'_>,
        effect: Effect,
        out: &mut Output<'_, S>,
    ) {
        let (ts, thread, owner) = (call.here.ts, call.thread, call.owner);
        if let (Effect::Make, Some(named)) = (effect, &mut call.pending.named)
            && named.class == FdClass::File
            && self
                .calls
                .get(call.pending.called.meaning)
                .call
                .name
                .starts_with("mkdir")
        {
            named.class = FdClass::Directory;
        }
        let (named, named2) = (call.pending.named, call.pending.named2);
        let key = |object: Option<Object>| file_key(&object?, owner);
        match effect {
            Effect::Unlink => {
                if let Some(key) = key(named) {
                    self.files.unlinked(key, ts, &thread, out);
                }
            }
            Effect::Rename if !call.flags(RENAME_EXCHANGE) => {
                if let Some(keys) = key(named).zip(key(named2)) {
                    self.files.renamed(keys, ts, &thread, out);
                }
            }
            Effect::Rename => self.seen(call, out),
            Effect::Make => {
                if let Some(named) = named {
                    self.use_file(call, &named, Use::Made, out);
                }
            }
            _ => {
                if let Some(named) = named.filter(|_| effect == Effect::Link) {
                    self.use_file(call, &named, Use::Seen, out);
                }
                if let Some(named2) = named2 {
                    self.use_file(call, &named2, Use::Made, out);
                }
            }
        }
    }

    fn mapped<S: EmitAll>(&mut self, call: &Return<'_>, effect: Effect, out: &mut Output<'_, S>) {
        let numbers = &call.pending.numbers;
        let (ts, owner) = (call.here.ts, call.owner);
        let bytes = numbers.count.unwrap_or(0).max(0) as u64;
        match (effect, numbers.address, call.ret) {
            (Effect::Munmap, Some(address), _) => {
                self.mappings.unmap(owner, (address, bytes), ts, out);
            }
            (Effect::Mremap, Some(address), Some(to)) => {
                let new_bytes = numbers.value.unwrap_or(0).max(0) as u64;
                let (from, to) = ((address, bytes), (to as u64, new_bytes));
                self.mappings.remap(owner, from, to, ts, out);
            }
            (Effect::Mmap, _, Some(address)) => {
                let anonymous = call.flags(MAP_ANONYMOUS);
                let target = call.pending.target.filter(|_| !anonymous);
                let row = MappingRow {
                    id: 0,
                    ts,
                    dur: None,
                    ts_end: None,
                    upid: call.thread.upid,
                    pid: call.thread.pid,
                    comm: call.thread.comm,
                    address,
                    bytes: bytes as i64,
                    path: target.and_then(|target| target.object.path),
                    fd: numbers.fd.filter(|&fd| fd >= 0 && !anonymous),
                    prot: numbers.value,
                    flags: numbers.flags,
                    file_offset: numbers.offset.filter(|_| !anonymous),
                };
                self.mappings.map(owner, row, out);
            }
            _ => {}
        }
    }

    /// The 32-bit way to create sockets; its arguments are behind a pointer.
    fn socket_called<S: EmitAll>(&mut self, call: &mut Return<'_>, out: &mut Output<'_, S>) {
        const SYS_SOCKET: i64 = 1;
        const SYS_ACCEPT: i64 = 5;
        const SYS_ACCEPT4: i64 = 18;
        let origin = match call.pending.numbers.command {
            Some(SYS_SOCKET) => "socket",
            Some(SYS_ACCEPT | SYS_ACCEPT4) => "accept",
            _ => return,
        };
        call.pending.named = Some(Object::of_socket(FdClass::Socket, out.symbols));
        self.yielded(call, origin, false, out);
    }
}

fn socket_cloexec(call: &Return<'_>) -> bool {
    let socket_type = call.pending.numbers.socket_type;
    socket_type.is_some_and(|flags| i64::from(flags) & O_CLOEXEC != 0)
}
