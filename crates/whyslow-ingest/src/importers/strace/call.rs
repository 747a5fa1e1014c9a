//! A system call with its arguments and its result.

use std::fmt::Write as _;

use whyslow_model::syscall::{self, Role};
use whyslow_model::{Ns, errno};

use super::args::{Args, annotated, string};
use super::line::seconds;
use super::quoted;
use super::values::{descriptors, number, socket_address};

/// Flag of clone and clone3: the child is a thread of the same process.
const CLONE_THREAD: &str = "CLONE_THREAD";
/// Maximum number of arguments considered.
const ARGS_MAX: usize = 16;

#[derive(Debug)]
pub(super) struct Call<'t> {
    pub(super) name: &'t str,
    args: Vec<&'t str>,
    pub(super) ended: Option<Ended<'t>>,
}

/// The text after the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ended<'t> {
    /// Negative error numbers, as the kernel returns them.
    pub(super) ret: Option<i64>,
    pub(super) dur: Option<Ns>,
    /// Path of a returned descriptor (`-y`).
    pub(super) fd_path: Option<&'t str>,
}

impl<'t> Call<'t> {
    pub(super) fn read(text: &'t str) -> Option<Self> {
        let open = text.find('(')?;
        let name = &text[..open];
        let is_name = name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        if name.is_empty() || !is_name || name.as_bytes()[0].is_ascii_digit() {
            return None;
        }
        let mut args = Args::new(&text[open + 1..]);
        let list = args.by_ref().take(ARGS_MAX).collect();
        // Skips all remaining arguments.
        args.by_ref().for_each(drop);
        Some(Self {
            name,
            args: list,
            ended: args.after().and_then(Ended::read),
        })
    }

    /// Whether the line contains the result.
    pub(super) fn is_whole(&self) -> bool {
        self.ended.is_some()
    }

    /// Arguments with their roles.
    fn roles(&self) -> impl Iterator<Item = (Role, &'t str)> + '_ {
        let known = syscall::call(self.name).args.iter().map(|arg| arg.role);
        known
            .zip(&self.args)
            .filter_map(|(role, text)| Some((role?, *text)))
    }

    /// Descriptors among the arguments that are annotated with a path.
    pub(super) fn named(&self) -> Vec<(i64, &'t str)> {
        let fds = self
            .roles()
            .filter(|(role, _)| matches!(role, Role::Fd | Role::Fd2 | Role::Dirfd | Role::Dirfd2));
        let named = fds.filter_map(|(_, text)| {
            let (fd, path) = annotated(text);
            Some((number(fd).filter(|fd| *fd >= 0)?, path?))
        });
        named.collect()
    }

    /// Fields of the entry in the text format.
    pub(super) fn entry_fields(&self) -> String {
        let mut out = String::new();
        let mut directory = None;
        for (role, text) in self.roles() {
            let key = match role {
                Role::Path | Role::Path2 => {
                    if let Some((path, _)) = string(text) {
                        let path = absolute(directory.take(), path);
                        let key = if role == Role::Path { "path" } else { "path2" };
                        let _ = write!(out, " {key}={}", quoted(&path));
                    }
                    continue;
                }
                Role::Dirfd | Role::Dirfd2 => {
                    let (fd, path) = annotated(text);
                    directory = path;
                    if let Some(fd) = number(fd) {
                        let key = if role == Role::Dirfd {
                            "dirfd"
                        } else {
                            "dirfd2"
                        };
                        let _ = write!(out, " {key}={fd}");
                    }
                    continue;
                }
                Role::Fd => "fd",
                Role::Fd2 => "fd2",
                Role::Count => "count",
                Role::Offset | Role::PageOffset => "offset",
                Role::Flags => "flags",
                Role::Command | Role::TimeoutMs => "command",
                Role::Value => "value",
                Role::Address => "address",
                Role::Address2 => "address2",
                Role::Timeout => "timeout",
                Role::Family => "family",
                Role::SocketType => "socket_type",
            };
            if let Some(value) = number(annotated(text).0) {
                let _ = write!(out, " {key}={value}");
            }
        }
        if matches!(self.name, "connect" | "bind") {
            self.push_address(1, &mut out);
        }
        out
    }

    /// Fields that are known at the return.
    pub(super) fn exit_fields(&self) -> String {
        let mut out = String::new();
        let pair = match self.name {
            "pipe" | "pipe2" => self.args.first(),
            "socketpair" => self.args.get(3),
            _ => None,
        };
        if let Some((one, other)) = pair.and_then(|text| descriptors(text)) {
            let _ = write!(out, " fds={one},{other}");
        }
        if matches!(self.name, "accept" | "accept4") {
            self.push_address(1, &mut out);
        }
        out
    }

    fn push_address(&self, at: usize, out: &mut String) {
        if let Some(address) = self.args.get(at).and_then(|text| socket_address(text)) {
            let _ = write!(out, " sockaddr={}", quoted(address.as_bytes()));
        }
    }

    pub(super) fn makes_task(&self) -> bool {
        matches!(self.name, "clone" | "clone2" | "clone3" | "fork" | "vfork")
    }

    pub(super) fn makes_thread(&self) -> bool {
        self.args.iter().any(|text| text.contains(CLONE_THREAD))
    }

    pub(super) fn never_returns(&self) -> bool {
        matches!(self.name, "exit" | "exit_group")
    }

    pub(super) fn first_number(&self) -> Option<i64> {
        number(annotated(self.args.first()?).0)
    }

    /// The first path among the arguments.
    pub(super) fn first_path(&self) -> Option<Vec<u8>> {
        let mut strings = self.args.iter().filter_map(|text| string(text));
        strings.next().map(|(path, _)| path)
    }
}

/// A relative path, joined with the directory if that is known.
fn absolute(directory: Option<&str>, path: Vec<u8>) -> Vec<u8> {
    match directory {
        Some(directory) if !path.is_empty() && path[0] != b'/' => {
            let mut whole = directory.as_bytes().to_vec();
            whole.push(b'/');
            whole.extend(path);
            whole
        }
        _ => path,
    }
}

impl<'t> Ended<'t> {
    /// ` = 3</etc/passwd> <0.000011>`, ` = -1 ENOENT (No such file or directory)`, ` = ?`.
    fn read(after: &'t str) -> Option<Self> {
        let text = after.trim_start().strip_prefix('=')?.trim();
        let (text, dur) = match text
            .strip_suffix('>')
            .and_then(|text| text.rsplit_once('<'))
        {
            Some((before, length)) if seconds(length).is_some() => {
                (before.trim_end(), seconds(length))
            }
            _ => (text, None),
        };
        let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
        // A path may contain spaces.
        let (value, fd_path) = annotated(if first.contains('<') { text } else { first });
        let error = rest.split(' ').next().and_then(errno::number);
        let ret = match value {
            "?" => error.map(|error| -error),
            "-1" => Some(error.map_or(-1, |error| -error)),
            value => number(value),
        };
        if ret.is_none() && value != "?" {
            return None;
        }
        Some(Self { ret, dur, fd_path })
    }
}
