//! The files that configure name resolution, as a process sees them.
//!
//! The owner of a container controls these files: every symbolic link is resolved within the root
//! of the process, only regular files are read, and of long ones only the start.

use std::io::{self, Read as _};
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use whyslow_model::spool::{Encoder, Kind};

use crate::{clock, plain};

/// Paths, and maximum bytes of each. Hosts files may have megabytes.
const FILES: [(&str, u64); 3] = [
    ("/etc/resolv.conf", 4 << 10),
    ("/etc/nsswitch.conf", 8 << 10),
    ("/etc/hosts", 16 << 10),
];

/// The files below the root of a process.
#[derive(Debug, Default)]
pub(crate) struct Files {
    found: Vec<ResolverFile>,
    /// Files that exist but could not be read.
    pub(crate) unread: u64,
}

#[derive(Debug, PartialEq, Eq)]
struct ResolverFile {
    path: &'static str,
    /// `None` if there is no such file.
    size: Option<u64>,
    text: Vec<u8>,
}

impl Files {
    /// Reads the files below `/proc/PID/root`, or any other directory; fails if the process has
    /// exited.
    pub(crate) fn of(root: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(root, flags, Mode::empty())?;
        let mut files = Self::default();
        for (path, bytes_max) in FILES {
            match read(&root, path, bytes_max) {
                Ok((size, text)) => files.found.push(ResolverFile {
                    path,
                    size: Some(size),
                    text,
                }),
                Err(Errno::NOENT | Errno::NOTDIR) => files.found.push(ResolverFile {
                    path,
                    size: None,
                    text: Vec::new(),
                }),
                Err(_) => files.unread += 1,
            }
        }
        Ok(files)
    }

    /// The content of a file, empty if it does not exist; `None` if it could not be read.
    pub(crate) fn text(&self, path: &str) -> Option<&[u8]> {
        let found = self.found.iter().find(|file| file.path == path);
        found.map(|file| file.text.as_slice())
    }

    pub(crate) fn put(&self, encoder: &mut Encoder, ns: u32) {
        for file in &self.found {
            encoder
                .begin(Kind::ResolverFile, clock::monotonic(), (0, 0))
                .u32(ns)
                .u64(file.size.unwrap_or(u64::MAX))
                .text(file.path.as_bytes())
                .text(&file.text)
                .end();
        }
    }
}

/// Its size, and its first bytes.
fn read(root: impl AsFd, path: &str, bytes_max: u64) -> Result<(u64, Vec<u8>), Errno> {
    let (file, about) = plain::open_within(root, Path::new(path))?;
    let mut text = Vec::new();
    let failed = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    file.take(bytes_max)
        .read_to_end(&mut text)
        .map_err(failed)?;
    Ok((u64::try_from(about.st_size).unwrap_or(0), text))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_stay_within_the_root_and_only_files_are_read() {
        let outside = tempfile::TempDir::new().unwrap();
        fs::write(outside.path().join("secret"), "secret").unwrap();
        let root = tempfile::TempDir::new().unwrap();
        let in_root = |path: &str| root.path().join(path);
        fs::create_dir_all(in_root("etc")).unwrap();
        fs::create_dir_all(in_root("run")).unwrap();
        let check = |expected: [Option<&str>; 3], unread: u64| {
            let files = Files::of(root.path()).unwrap();
            let text = |path: &str| {
                let mut found = files.found.iter().filter(|file| file.path == path);
                let file = found.next().filter(|file| file.size.is_some())?;
                Some(String::from_utf8(file.text.clone()).unwrap())
            };
            let found = FILES.map(|(path, _)| text(path));
            assert_eq!(found.each_ref().map(Option::as_deref), expected);
            assert_eq!(files.unread, unread);
        };
        check([None, None, None], 0);
        // As with systemd-resolved; the leading slash and all dots refer to the root.
        fs::write(in_root("run/stub"), "nameserver 127.0.0.53\n").unwrap();
        symlink("/run/stub", in_root("etc/resolv.conf")).unwrap();
        symlink("../../../../run/stub", in_root("etc/hosts")).unwrap();
        let stub = Some("nameserver 127.0.0.53\n");
        check([stub, None, stub], 0);
        // Attempts to escape.
        fs::remove_file(in_root("etc/hosts")).unwrap();
        symlink(outside.path().join("secret"), in_root("etc/hosts")).unwrap();
        symlink("/proc/self/cwd/secret", in_root("etc/nsswitch.conf")).unwrap();
        check([stub, None, None], 0);
        // A directory, and a pipe without a writer.
        fs::remove_file(in_root("etc/hosts")).unwrap();
        fs::create_dir(in_root("etc/hosts")).unwrap();
        fs::remove_file(in_root("etc/resolv.conf")).unwrap();
        let pipe = in_root("etc/resolv.conf");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            Mode::RUSR,
            0,
        )
        .unwrap();
        check([None, None, None], 2);
    }

    #[test]
    fn a_long_list_of_hosts_is_cut_and_its_size_is_told() {
        let root = tempfile::TempDir::new().unwrap();
        fs::create_dir(root.path().join("etc")).unwrap();
        let hosts = "0.0.0.0 example.org\n".repeat(100_000);
        fs::write(root.path().join("etc/hosts"), &hosts).unwrap();
        let files = Files::of(root.path()).unwrap();
        let found = files.found.iter().find(|file| file.path == "/etc/hosts");
        let file = found.unwrap();
        assert_eq!(file.size, Some(hosts.len() as u64));
        assert_eq!(file.text, hosts.as_bytes()[..16 << 10]);
    }
}
