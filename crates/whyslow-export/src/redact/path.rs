//! Paths, and other objects of descriptors.
//!
//! The replacement of a component depends on the component and its parents, never on its children:
//! what was below a directory stays below its replacement. Components of kernel file systems
//! (`/proc`, `/sys`, `/dev`) stay, except in places where people choose names; libraries stay in
//! system directories. Everywhere else, only public words stay.

use super::Redactor;
use super::words::Lexicon;

/// Suffix of the path of a deleted file.
const DELETED: &str = " (deleted)";

/// Position of a component in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Usr,
    Libraries,
    Proc,
    Sys,
    /// In a kernel directory with one entry per interface.
    Interfaces,
    Devices,
    Else,
}

impl Redactor {
    /// A path, a socket address, or the kernel's name of an object without a path.
    pub(super) fn object(&self, text: &str) -> String {
        if let Some(name) = text.strip_prefix("/memfd:") {
            return format!("/memfd:{}", self.words_and_deletion(name));
        }
        if text.starts_with('/') {
            return self.path(text);
        }
        if let Some(name) = text.strip_prefix('@') {
            return format!("@{}", self.object(name));
        }
        if is_anonymous(text) {
            return text.to_owned();
        }
        self.address(text).unwrap_or_else(|| self.path(text))
    }

    fn words_and_deletion(&self, name: &str) -> String {
        match name.strip_suffix(DELETED) {
            Some(name) => self.words(name, Lexicon::Common) + DELETED,
            None => self.words(name, Lexicon::Common),
        }
    }

    pub(super) fn path(&self, path: &str) -> String {
        let (path, deleted) = match path.strip_suffix(DELETED) {
            Some(path) => (path, DELETED),
            None => (path, ""),
        };
        if self.keep.path(path) {
            return path.to_owned() + deleted;
        }
        let mut place = if path.starts_with('/') {
            Place::Root
        } else {
            Place::Else
        };
        let mut out = String::with_capacity(path.len());
        for (number, part) in path.split('/').enumerate() {
            if number > 0 {
                out.push('/');
            }
            let (new, next) = self.component(part, place);
            out.push_str(&new);
            place = next;
        }
        out + deleted
    }

    /// The replacement of a component, and the position of the next one.
    fn component(&self, part: &str, place: Place) -> (String, Place) {
        let kept = |next| (part.to_owned(), next);
        let words = |next| (self.part(part), next);
        match (place, part) {
            (_, "" | ".") => kept(place),
            (_, "..") => kept(Place::Else),
            (Place::Root, "proc") => kept(Place::Proc),
            (Place::Root, "sys") => kept(Place::Sys),
            (Place::Root, "dev") => kept(Place::Devices),
            (Place::Root, "usr") => kept(Place::Usr),
            (Place::Root | Place::Usr, "lib" | "lib32" | "lib64" | "libx32") => {
                kept(Place::Libraries)
            }
            (Place::Libraries, _) if is_library(part) => kept(Place::Else),
            (Place::Libraries, _) if is_architecture(part) => kept(Place::Libraries),
            (Place::Interfaces, _) => words(Place::Sys),
            (Place::Proc, "root" | "cwd") | (Place::Sys, "cgroup" | "config" | "instances") => {
                kept(Place::Else)
            }
            (Place::Proc, "conf" | "neigh") | (Place::Sys, "net") => kept(Place::Interfaces),
            (Place::Proc | Place::Sys, _) if part.is_ascii() => kept(place),
            (Place::Devices, "fd" | "pts" | "block" | "char" | "bus" | "cpu" | "dri" | "snd") => {
                kept(Place::Devices)
            }
            (Place::Devices, _) if is_device(part) => kept(Place::Devices),
            _ => words(Place::Else),
        }
    }

    /// A component that may be an address.
    fn part(&self, part: &str) -> String {
        let is_digit = |c: char| c.is_ascii_digit();
        let address = part.starts_with(is_digit).then(|| self.address(part));
        address
            .flatten()
            .unwrap_or_else(|| self.words(part, Lexicon::Common))
    }

    /// `server:/export`, `tmpfs`, `/dev/sda1`.
    pub(super) fn mount_source(&self, source: &str) -> String {
        match source.split_once(":/") {
            Some((host, path)) if !source.starts_with('/') => {
                format!("{}:{}", self.host(host), self.path(&format!("/{path}")))
            }
            _ => self.object(source),
        }
    }

    /// `rw,lowerdir=/a:/b,uid=1000`. Numbers with or without a unit stay.
    pub(super) fn mount_options(&self, options: &str) -> String {
        let is_amount = |value: &str| {
            let digits = value.trim_end_matches(['k', 'm', 'g', 'K', 'M', 'G', '%']);
            digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        let value = |value: &str| {
            if is_amount(value) {
                return value.to_owned();
            }
            let parts: Vec<String> = if value.starts_with('/') {
                value.split(':').map(|path| self.path(path)).collect()
            } else {
                vec![self.object(value)]
            };
            parts.join(":")
        };
        let option = |option: &str| match option.split_once('=') {
            Some((name, of)) => {
                let name = self.words(name, Lexicon::Common);
                format!("{name}={}", value(of))
            }
            None => self.words(option, Lexicon::Common),
        };
        let options: Vec<String> = options.split(',').map(option).collect();
        options.join(",")
    }
}

/// The kernel's names of unnamed objects: `pipe:[12]`, `anon_inode:[eventpoll]`, `inode:[8:1/12]`.
fn is_anonymous(text: &str) -> bool {
    const KINDS: [&str; 14] = [
        "socket",
        "pipe",
        "anon_inode",
        "inode",
        "net",
        "mnt",
        "pid",
        "user",
        "uts",
        "ipc",
        "cgroup",
        "time",
        "time_for_children",
        "pid_for_children",
    ];
    // These forms come only from the kernel, except that relative paths could look like them.
    const NAMES: [&str; 24] = [
        "unix",
        "inet",
        "inet6",
        "netlink",
        "eventfd",
        "eventpoll",
        "timerfd",
        "signalfd",
        "inotify",
        "fanotify",
        "io_uring",
        "userfaultfd",
        "perf_event",
        "pidfd",
        "seccomp",
        "bpf-map",
        "bpf-prog",
        "bpf_link",
        "bpf_iter",
        "btf",
        "kvm-vm",
        "sync_file",
        "lttng_metadata_stream",
        "lttng_stream",
    ];
    if matches!(text, "" | "-" | "socket" | "inotify") {
        return true;
    }
    let (kind, name) = text.split_once(':').unwrap_or(("anon_inode", text));
    let name = name
        .strip_prefix('[')
        .map_or(name, |name| name.trim_end_matches(']'));
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '#' | ':' | '/');
    KINDS.contains(&kind)
        && (NAMES.contains(&name) || (text.contains(':') && name.chars().all(is_number)))
}

fn is_library(name: &str) -> bool {
    let begins = ["lib", "ld-"].iter().any(|begin| name.starts_with(begin));
    begins && (name.ends_with(".so") || name.contains(".so."))
}

/// Directories of libraries of an architecture: `x86_64-linux-gnu`.
fn is_architecture(name: &str) -> bool {
    const KNOWN: [&str; 10] = [
        "x86_64",
        "i386",
        "i686",
        "aarch64",
        "arm",
        "armhf",
        "riscv64",
        "powerpc64le",
        "s390x",
        "mips64el",
    ];
    const SYSTEMS: [&str; 6] = [
        "linux-gnu",
        "linux-gnueabihf",
        "linux-gnueabi",
        "linux-gnux32",
        "linux-musl",
        "linux-gnuabi64",
    ];
    name.split_once('-')
        .is_some_and(|(cpu, system)| KNOWN.contains(&cpu) && SYSTEMS.contains(&system))
}

/// Driver-assigned names: a few letters after the name of the driver, then numbers.
fn is_device(name: &str) -> bool {
    const WHOLE: [&str; 24] = [
        "null",
        "zero",
        "full",
        "random",
        "urandom",
        "kmsg",
        "mem",
        "fuse",
        "kvm",
        "stdin",
        "stdout",
        "stderr",
        "tty",
        "ptmx",
        "console",
        "log",
        "net",
        "rtc",
        "hpet",
        "vsock",
        "vhost-net",
        "vhost-vsock",
        "uinput",
        "autofs",
    ];
    const DRIVERS: [&str; 19] = [
        "sd", "vd", "xvd", "hd", "sr", "nvme", "mmcblk", "loop", "dm-", "md", "zram", "nbd", "ram",
        "rbd", "tty", "hvc", "rtc", "ptp", "watchdog",
    ];
    let numbered = |rest: &str| {
        let digits = rest.trim_start_matches(|c: char| c.is_ascii_lowercase());
        let is_number = |c: char| c.is_ascii_digit() || matches!(c, 'p' | 'n');
        let letters = rest.len() - digits.len();
        letters <= 2 && digits.len() <= 12 && digits.chars().all(is_number)
    };
    WHOLE.contains(&name)
        || DRIVERS
            .iter()
            .any(|driver| name.strip_prefix(driver).is_some_and(numbered))
}
