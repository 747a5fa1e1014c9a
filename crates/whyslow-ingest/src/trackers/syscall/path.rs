//! Resolves the arguments of a call to objects, at its entry.
//!
//! A relative path is appended to its start directory, if known: the working directory of the
//! process according to the last `chdir`, or the path of the passed descriptor. Otherwise it stays
//! as it was passed, with the reason. `..` and symbolic links are not resolved: only the kernel
//! knows their targets.

use whyslow_model::Sym;
use whyslow_model::event::SyscallArgs;
use whyslow_model::tables::EmitAll;

use super::super::fd::Owner;
use super::super::identity::{Output, ThreadRef};
use super::super::object::{FdClass, Object, Reason};
use super::super::request::endpoint;
use super::effect::{AT_FDCWD, Effect};
use super::{Pending, SyscallTracker};

impl SyscallTracker {
    pub(super) fn resolve<S: EmitAll>(
        &mut self,
        pending: &mut Pending,
        args: &SyscallArgs<'_>,
        out: &mut Output<'_, S>,
    ) {
        let effect = self.calls.get(pending.called.meaning).effect;
        let thread = pending.thread;
        if effect != Effect::CloseRange {
            let anonymous = effect == Effect::Mmap
                && args
                    .flags
                    .is_some_and(|flags| flags & super::effect::MAP_ANONYMOUS != 0);
            let fd = pending.numbers.fd.filter(|_| !anonymous);
            pending.target = self.target(&thread, fd);
            pending.target2 = match effect {
                Effect::Dup => None, // the descriptor number to use, not an object
                _ => self.target(&thread, pending.numbers.fd2),
            };
        }
        match effect {
            Effect::Connect | Effect::Bind => {
                let address = args.socket_address.as_ref();
                pending.named = address.map(|address| Object::of_address(address, out.symbols));
                pending.peer = address.and_then(endpoint);
            }
            Effect::SendTo => name_by_address(pending, args, out),
            Effect::Memfd => {
                let name = String::from_utf8_lossy(args.path.unwrap_or_default());
                let name = out.symbols.intern(&format!("/memfd:{name}"));
                pending.named = Some(Object::known(FdClass::Memfd, name));
            }
            Effect::MqOpen => {
                let name = String::from_utf8_lossy(args.path.unwrap_or_default());
                let name = out.symbols.intern(&format!("mqueue:{name}"));
                pending.named = Some(Object::known(FdClass::Anon, name));
            }
            Effect::Symlink => {
                // The content of the link is text, not a path relative to the current directory.
                pending.named = args.path.map(|text| Object {
                    class: FdClass::File,
                    path: Some(out.intern(text)),
                    reason: None,
                });
                pending.named2 = self.named(&thread, args.dirfd2, args.path2, out);
            }
            Effect::Fresh(_) => {} // the path argument of fsopen is a file system type
            Effect::Unresolved => {
                let kept = |path: &[u8], out: &mut Output<'_, S>| Object {
                    class: FdClass::File,
                    path: Some(out.intern(path)),
                    reason: None,
                };
                pending.named = args.path.map(|path| kept(path, out));
                pending.named2 = args.path2.map(|path| kept(path, out));
            }
            _ => {
                let takes_path = self.calls.get(pending.called.meaning).takes_path;
                pending.named = self.named(&thread, args.dirfd, args.path, out);
                if takes_path && args.path.is_none() {
                    pending.named = Some(Object::unknown(Reason::PathUnread));
                }
                pending.named2 = self.named(&thread, args.dirfd2, args.path2, out);
            }
        }
    }

    fn named<S: EmitAll>(
        &mut self,
        thread: &ThreadRef,
        dirfd: Option<i64>,
        path: Option<&[u8]>,
        out: &mut Output<'_, S>,
    ) -> Option<Object> {
        let path = path?;
        let owner = Owner::of(thread);
        let from = dirfd.filter(|&dirfd| dirfd != AT_FDCWD);
        let directory = from.and_then(|dirfd| self.fds.get(owner, i32::try_from(dirfd).ok()?));
        if path.is_empty() {
            // With AT_EMPTY_PATH the descriptor itself is meant; otherwise the tracer could not
            // read the path, which was not in memory.
            let meant = directory.map(|descriptor| descriptor.object);
            return Some(meant.unwrap_or(Object::unknown(Reason::PathUnread)));
        }
        let known = |symbol: Sym, out: &Output<'_, S>| {
            let class = FdClass::of_path(out.symbols.get(symbol));
            Object::known(class, symbol)
        };
        if path[0] == b'/' {
            let symbol = out.intern(path);
            return Some(known(symbol, out));
        }
        let base = match from {
            Some(_) => directory.and_then(|descriptor| descriptor.object.path),
            None => self.fds.cwd(owner),
        };
        let base = base.map(|base| out.symbols.get(base).as_bytes());
        let Some(base) = base.filter(|base| base.starts_with(b"/")) else {
            return Some(Object {
                class: FdClass::File,
                path: Some(out.intern(path)),
                reason: Some(Reason::DirectoryUnknown),
            });
        };
        join(&mut self.scratch, base, path);
        let symbol = out.symbols.intern_bytes(&self.scratch);
        Some(known(symbol, out))
    }
}

/// A datagram contains its destination; a connected socket already has a better name.
pub(super) fn name_by_address<S: EmitAll>(
    pending: &mut Pending,
    args: &SyscallArgs<'_>,
    out: &mut Output<'_, S>,
) {
    let Some(address) = &args.socket_address else {
        return;
    };
    let nameless = match pending.target {
        Some(target) => is_nameless(&target.object, out),
        None => false,
    };
    if nameless {
        pending.named = Some(Object::of_address(address, out.symbols));
    }
}

/// A socket without a known address.
pub(super) fn is_nameless<S: EmitAll>(object: &Object, out: &Output<'_, S>) -> bool {
    let unnamed = |path| {
        let path = out.symbols.get(path);
        path == "socket" || path.starts_with("socket:")
    };
    object.path.is_none_or(unnamed)
}

fn join(joined: &mut Vec<u8>, base: &[u8], mut path: &[u8]) {
    while let Some(rest) = path.strip_prefix(b"./") {
        path = rest;
    }
    joined.clear();
    joined.extend_from_slice(base);
    if path == b"." || path.is_empty() {
        return;
    }
    if !base.ends_with(b"/") {
        joined.push(b'/');
    }
    joined.extend_from_slice(path);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_path_goes_behind_its_directory_as_it_is() {
        let check = |base: &str, path: &str, expected: &str| {
            let mut joined = Vec::new();
            join(&mut joined, base.as_bytes(), path.as_bytes());
            assert_eq!(joined, expected.as_bytes());
        };
        check("/home/a", "b", "/home/a/b");
        check("/", "b", "/b");
        check("/home/a", "././b/../c", "/home/a/b/../c");
        check("/home/a", ".", "/home/a");
    }
}
