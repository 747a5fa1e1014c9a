//! Process details, from snapshots and from exec and exit records.

use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::event::{
    Body, ProcessAbout, StateCounters, StateDevice, StateMount, StateResolverFile,
};
use whyslow_model::spool::{Head, HostRecord, Program, Record};

use super::cgroup;

/// Maximum length of a stored command line.
const COMMAND_LINE_MAX: usize = 4096;

/// Maximum number of cgroups; a machine with a thousand containers has fewer.
const CGROUPS_MAX: usize = 1 << 17;

/// State of the machine outside of the records.
#[derive(Debug, Default)]
pub(super) struct Host {
    /// Offset from the boot-time clock to wall-clock time.
    boot_offset: Option<Ns>,
    users: FxHashMap<u32, Box<[u8]>>,
    /// Cgroup paths by id; empty on machines with several hierarchies.
    cgroups: FxHashMap<u64, Box<[u8]>>,
    /// Buffer for a command line.
    text: Vec<u8>,
}

impl Host {
    pub(super) fn set_boot_offset(&mut self, offset: Ns) {
        self.boot_offset = Some(offset);
    }

    pub(super) fn learn(&mut self, record: &HostRecord<'_>) {
        match *record {
            HostRecord::User { uid, name } => {
                self.users.entry(uid).or_insert_with(|| name.into());
            }
            HostRecord::Cgroup { id, path } if self.cgroups.len() < CGROUPS_MAX => {
                self.cgroups.insert(id, path.into());
            }
            _ => {}
        }
    }

    /// A process from a snapshot.
    pub(super) fn snapshot<'a>(&'a mut self, head: &Head, record: &Record<'a>) -> Option<Body<'a>> {
        let Record::Process {
            ppid,
            uid,
            started,
            mount_ns,
            executable,
            command_line,
            cgroup,
        } = *record
        else {
            return None;
        };
        let created = |offset: Ns| (started as i64).saturating_add(offset);
        let ts_created = self.boot_offset.map(created);
        let path = cgroup::path(cgroup);
        quote(command_line, &mut self.text);
        Some(Body::ProcessAbout(ProcessAbout {
            pid: head.pid,
            ppid: Some(ppid),
            executable: some(executable),
            command_line: some(&self.text),
            uid: Some(uid.into()).filter(|_| uid != u32::MAX),
            user: self.users.get(&uid).map(|name| &name[..]),
            cgroup: path,
            container: path.and_then(cgroup::container),
            mount_ns: Some(mount_ns.into()).filter(|_| mount_ns != 0),
            root: None,
            ts_created,
        }))
    }

    /// A process when it executed a program, or exited.
    pub(super) fn program<'a>(&'a mut self, head: &Head, program: Program<'a>) -> Body<'a> {
        let Program { uid, mount_ns, .. } = program;
        quote(program.command_line, &mut self.text);
        // A process that was moved to another cgroup is no longer in its parent's.
        let cgroup = (!self.cgroups.is_empty()).then(|| {
            let path = self.cgroups.get(&program.cgroup);
            path.map_or(&[][..], |path| path)
        });
        Body::ProcessAbout(ProcessAbout {
            pid: head.pid,
            command_line: some(&self.text),
            uid: Some(uid.into()),
            user: self.users.get(&uid).map(|name| &name[..]),
            mount_ns: Some(mount_ns.into()).filter(|_| mount_ns != 0),
            cgroup,
            container: cgroup.and_then(cgroup::container),
            ..ProcessAbout::default()
        })
    }
}

/// Mounts and counters of the machine.
pub(super) fn machine<'a>(head: &Head, record: &HostRecord<'a>) -> Option<Body<'a>> {
    Some(match *record {
        HostRecord::Program(_) | HostRecord::User { .. } | HostRecord::Cgroup { .. } => {
            return None;
        }
        HostRecord::Mount(mount) => Body::StateMount(StateMount {
            mount_ns: mount.mount_ns.into(),
            id: mount.id as i32,
            parent: mount.parent as i32,
            dev: mount.dev.into(),
            root: mount.root,
            point: mount.point,
            fs: mount.kind,
            source: mount.source,
            options: mount.options,
        }),
        HostRecord::ResolverFile(file) => Body::StateResolverFile(StateResolverFile {
            mount_ns: file.mount_ns.into(),
            path: file.path,
            size: file.size,
            text: file.text,
        }),
        HostRecord::Root { path } => Body::ProcessAbout(ProcessAbout {
            pid: head.pid,
            root: Some(path),
            ..ProcessAbout::default()
        }),
        HostRecord::Counters(counters) => Body::StateCounters(StateCounters {
            pid: Some(head.pid).filter(|pid| *pid > 0),
            mount: (counters.mount_id != 0).then_some((
                counters.mount_ns.into(),
                counters.mount_id as i32,
                counters.place,
            )),
            values: counters.values,
        }),
        HostRecord::DeviceAbout(about) => Body::StateDevice(StateDevice {
            dev: about.dev.into(),
            kind: about.kind,
            size: about.size,
            rotational: about.rotational,
            label: some(about.label),
            backing: some(about.backing),
        }),
        HostRecord::DeviceLink { dev, below, kind } => Body::StateDeviceLink {
            dev: dev.into(),
            below: below.into(),
            kind,
        },
    })
}

fn some(text: &[u8]) -> Option<&[u8]> {
    (!text.is_empty()).then_some(text)
}

/// Quotes NUL-terminated words for a shell. A single word is kept as it is: programs that overwrite
/// their command line with a status do not write separate words.
fn quote(words: &[u8], text: &mut Vec<u8>) {
    text.clear();
    let words = &words[..words.len().min(COMMAND_LINE_MAX)];
    // Some programs fill the unused part with zeros.
    let end = words.iter().rposition(|byte| *byte != 0);
    let Some(end) = end else { return };
    // Empty words at the end are rare, zero padding is not.
    let words = &words[..=end];
    if !words.contains(&0) {
        text.extend(words);
        return;
    }
    for word in words.split(|byte| *byte == 0) {
        if !text.is_empty() {
            text.push(b' ');
        }
        let is_plain = |byte: &u8| {
            byte.is_ascii_alphanumeric() || b"%+,-./:=@_".contains(byte) || *byte >= 0x80
        };
        if !word.is_empty() && word.iter().all(is_plain) {
            text.extend(word);
            continue;
        }
        text.push(b'\'');
        for byte in word {
            match byte {
                b'\'' => text.extend(b"'\\''"),
                byte => text.push(*byte),
            }
        }
        text.push(b'\'');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_reads_as_a_shell_takes_it() {
        let check = |words: &[u8], expected: &str| {
            let mut text = b"before".to_vec();
            quote(words, &mut text);
            assert_eq!(String::from_utf8_lossy(&text), expected);
        };
        check(b"", "");
        check(b"\0\0", "");
        check(b"ls\0", "ls");
        check(b"nginx: worker process\0\0\0", "nginx: worker process");
        check(b"sh\0-c\0echo 'a b'; x\0", r"sh -c 'echo '\''a b'\''; x'");
        check(b"grep\0\0a*\0", "grep '' 'a*'");
        check(b"a\0\n\0b", "a '\n' b");
        let mut text = Vec::new();
        quote(&vec![b'x'; 100_000], &mut text);
        assert_eq!(text.len(), COMMAND_LINE_MAX);
    }
}
