//! Mounts of each mount namespace of a process.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use whyslow_model::spool::{Encoder, Kind};

use super::processes::{mount_ns, numbers, root};
use crate::clock;

/// Maximum numbers of namespaces and mounts.
const NAMESPACES_MAX: usize = 256;
const MOUNTS_MAX: usize = 20_000;

/// Mounts of the recorder's namespace, which stands for the machine. Events that arrive during the
/// snapshot need them for file names, so they are written before anything is recorded.
pub(super) fn own(encoder: &mut Encoder, proc: &Path) {
    let own = proc.join("self");
    let Some(ns) = mount_ns(&own) else { return };
    fact(encoder, "mount_ns", &ns.to_string());
    let Ok(text) = fs::read(own.join("mountinfo")) else {
        return;
    };
    let root = root(&own).unwrap_or_default();
    if put(encoder, ns, (&text, &root), &mut { MOUNTS_MAX }) {
        left_out(encoder);
    }
}

/// Mounts of all other namespaces, preferably read through a process with the root of the
/// namespace: other roots show only a part.
pub(super) fn others(encoder: &mut Encoder, proc: &Path) {
    let mut seen = BTreeSet::from_iter(mount_ns(&proc.join("self")));
    let mut left = MOUNTS_MAX;
    let mut is_cut = false;
    let folders = numbers(proc)
        .into_iter()
        .map(|pid| proc.join(pid.to_string()));
    let (whole, below): (Vec<_>, Vec<_>) = folders.partition(|folder| root(folder).is_none());
    for folder in whole.into_iter().chain(below) {
        let Some(ns) = mount_ns(&folder).filter(|ns| !seen.contains(ns)) else {
            continue;
        };
        let Ok(text) = fs::read(folder.join("mountinfo")) else {
            continue;
        };
        if seen.len() >= NAMESPACES_MAX {
            is_cut = true;
            break;
        }
        seen.insert(ns);
        let root = root(&folder).unwrap_or_default();
        is_cut |= put(encoder, ns, (&text, &root), &mut left);
    }
    if is_cut {
        left_out(encoder);
    }
}

fn left_out(encoder: &mut Encoder) {
    fact(encoder, "mounts_left_out", "too many mounts");
}

fn fact(encoder: &mut Encoder, name: &str, value: &str) {
    encoder
        .begin(Kind::Fact, clock::monotonic(), (0, 0))
        .text(name.as_bytes())
        .text(value.as_bytes())
        .end();
}

/// The mounts of a namespace, as seen by a process with that root; returns whether some were left
/// out.
fn put(encoder: &mut Encoder, ns: u32, (text, root): (&[u8], &[u8]), left: &mut usize) -> bool {
    for mount in Mount::all(text, root) {
        if *left == 0 {
            return true;
        }
        *left -= 1;
        mount.put(encoder, ns);
    }
    false
}

/// A line of `/proc/PID/mountinfo`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) id: u32,
    pub(crate) parent: u32,
    /// Kernel `dev_t` with 20 minor bits.
    pub(crate) dev: u32,
    pub(crate) root: Vec<u8>,
    pub(crate) point: Vec<u8>,
    pub(crate) kind: Vec<u8>,
    pub(crate) source: Vec<u8>,
    pub(crate) options: Vec<u8>,
}

impl Mount {
    /// The mounts in a `mountinfo` file, with their mount points in the namespace: the file of a
    /// process with another root shows them relative to that root.
    pub(crate) fn all<'t>(text: &'t [u8], root: &'t [u8]) -> impl Iterator<Item = Mount> + 't {
        let root = root.strip_suffix(b"/").unwrap_or(root);
        let lines = text.split(|byte| *byte == b'\n');
        lines.filter_map(Mount::parse).map(move |mut mount| {
            if !root.is_empty() {
                let inside = if mount.point == b"/" {
                    &b""[..]
                } else {
                    &mount.point
                };
                mount.point = [root, inside].concat();
            }
            mount
        })
    }

    /// `36 35 98:0 /root /point rw,noatime shared:1 … - ext3 /dev/x rw,errors=continue`
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b' ');
        let mut next = || fields.next();
        let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<u32>().ok();
        let (id, parent) = (number(next()?)?, number(next()?)?);
        let dev = std::str::from_utf8(next()?).ok()?;
        let (root, point) = (unescape(next()?), unescape(next()?));
        let mut options = next()?.to_vec();
        while next()? != b"-" {}
        let kind = unescape(next()?);
        let source = unescape(next()?);
        // Options of the file system, if not among those of the mount.
        let of_system = next().unwrap_or_default();
        for option in of_system.split(|byte| *byte == b',') {
            let mut known = options.split(|byte| *byte == b',');
            if !option.is_empty() && !known.any(|known| known == option) {
                options.push(b',');
                options.extend(option);
            }
        }
        Some(Self {
            id,
            parent,
            dev: super::devices::number(dev)?,
            root,
            point,
            kind,
            source,
            options,
        })
    }

    pub(crate) fn put(&self, encoder: &mut Encoder, ns: u32) {
        encoder
            .begin(Kind::Mount, clock::monotonic(), (0, 0))
            .u32(ns)
            .u32(self.id)
            .u32(self.parent)
            .u32(self.dev)
            .text(&self.root)
            .text(&self.point)
            .text(&self.kind)
            .text(&self.source)
            .text(&self.options)
            .end();
    }
}

/// The kernel escapes blanks, tabs, newlines and backslashes as a backslash and three octal digits.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|digits| {
            byte == b'\\' && digits.iter().all(|digit| (b'0'..=b'7').contains(digit))
        });
        if let Some(digits) = digits {
            let value = digits
                .iter()
                .fold(0u32, |value, digit| value * 8 + u32::from(digit - b'0'));
            plain.push(value as u8);
            rest = &after[3..];
        } else {
            plain.push(byte);
            rest = after;
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_read_whatever_its_names() {
        let line = b"36 35 259:1048575 /a\\040b /m\\134\\012\\0119x rw,noatime shared:1 master:2 - ext3 /dev/r\\040t rw,errors=continue";
        let expected = Mount {
            id: 36,
            parent: 35,
            dev: 259 << 20 | 1_048_575,
            root: b"/a b".to_vec(),
            point: b"/m\\\n\t9x".to_vec(),
            kind: b"ext3".to_vec(),
            source: b"/dev/r t".to_vec(),
            options: b"rw,noatime,errors=continue".to_vec(),
        };
        assert_eq!(Mount::parse(line), Some(expected));
        for end in 0..line.len() - 30 {
            let _ = Mount::parse(&line[..end]);
        }
        for bad in [
            &b""[..],
            b" ",
            b"1 2 3 4 5 6 7",
            b"1 2 a:b / / rw - x y z",
            b"\xff",
        ] {
            assert_eq!(Mount::parse(bad), None);
        }
        let plain = Mount::parse(b"1 2 0:3 / / rw - tmpfs  rw").expect("no source");
        assert_eq!((plain.source, plain.options), (Vec::new(), b"rw".to_vec()));
        assert_eq!(unescape(b"\\04"), b"\\04");
        assert_eq!(unescape(b"\\999"), b"\\999");
    }

    #[test]
    fn mounts_lie_where_the_namespace_has_them_whatever_the_root() {
        let points = |root: &[u8]| {
            let text = b"7 1 0:3 / / rw - tmpfs x rw\n8 7 0:4 / /b rw - tmpfs x rw\n";
            let points = Mount::all(text, root).map(|mount| mount.point);
            points.collect::<Vec<_>>()
        };
        assert_eq!(points(b""), [&b"/"[..], b"/b"]);
        assert_eq!(points(b"/"), [&b"/"[..], b"/b"]);
        assert_eq!(points(b"/jail"), [&b"/jail"[..], b"/jail/b"]);
    }

    #[test]
    fn mounts_beyond_the_limit_are_left_out() {
        let text = b"1 2 0:3 / / rw - tmpfs x rw\nnonsense\n2 1 0:4 / /b rw - tmpfs x rw\n";
        let mut encoder = Encoder::default();
        assert!(put(&mut encoder, 1, (text, b""), &mut 1));
        assert_eq!(encoder.records(), 1);
        assert!(!put(&mut encoder, 1, (text, b""), &mut 2));
        assert_eq!(encoder.records(), 3);
    }
}
