//! Descriptors opened before the recording, as reported by snapshots.

use whyslow_model::Ns;
use whyslow_model::tables::EmitAll;

use super::super::fd::{Opening, Owner, STATE_DUMP};
use super::super::identity::{Output, ThreadRef};
use super::super::object::Object;
use super::super::request::SocketOp;
use super::super::socket::{self, About, SocketText};
use super::{SyscallTracker, effect};

/// Flag of descriptors in the state dump, as in `open`.
const O_CLOEXEC: i64 = effect::O_CLOEXEC;

impl SyscallTracker {
    pub(super) fn dump<S: EmitAll>(
        &mut self,
        thread: &ThreadRef,
        (fd, flags): (i32, Option<i64>),
        path: &[u8],
        ts: Ns,
        out: &mut Output<'_, S>,
    ) {
        let (object, deleted) = Object::of_link(path, out.symbols);
        let opening = Opening {
            object,
            origin: STATE_DUMP,
            ts,
            syscall_id: None,
            flags,
            cloexec: flags.is_some_and(|flags| flags & O_CLOEXEC != 0),
            file: None,
            deleted,
        };
        let known_now = self.fds.dump(thread, fd, opening, &mut self.files, out);
        if let Some(id) = known_now {
            let file = self
                .fds
                .get(Owner::of(thread), fd)
                .and_then(|found| found.file);
            self.buffered.known(id, object, file);
        }
        let text = String::from_utf8_lossy(path);
        if let Some(parsed) = SocketText::parse(&text) {
            self.socket(Owner::of(thread), fd, (&parsed, object));
        }
    }

    /// A snapshot reports a socket opened before the recording.
    fn socket(&mut self, owner: Owner, fd: i32, (parsed, object): (&SocketText<'_>, Object)) {
        let Some(descriptor) = self.fds.get(owner, fd) else {
            return;
        };
        // It may refer to another object by now.
        if descriptor.object != object {
            return;
        }
        let known = self.dumped_sockets.get(&parsed.number).copied();
        if let Some(socket) = descriptor.socket.or(known) {
            self.dumped_sockets.insert(parsed.number, socket);
            return self.fds.share_socket(owner, fd, Some(socket));
        }
        let (is_accepted, path, ends) = match parsed.about {
            About::Listens(_) | About::UnixListens(_) => return,
            About::Accepted(local, peer) => (true, None, Some((local, peer))),
            About::Connected(local, peer) => (false, None, Some((local, peer))),
            About::UnixAccepted(_) => (true, object.path, None),
            About::UnixConnected(_) => (false, object.path, None),
        };
        let Some(socket) = self.fds.set_socket(owner, fd) else {
            return;
        };
        self.dumped_sockets.insert(parsed.number, socket);
        self.socket_ops.push(SocketOp::Open {
            socket,
            is_accepted,
            path,
            ends: ends.map(|(local, peer)| (socket::endpoint(local), socket::endpoint(peer))),
        });
    }
}
