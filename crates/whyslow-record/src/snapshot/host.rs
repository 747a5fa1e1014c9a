//! Facts about the machine.

use std::fs;
use std::path::Path;

use whyslow_model::recorder::RECORDER_PID;
use whyslow_model::spool::{Encoder, Kind};

use crate::clock;

pub(super) fn facts(encoder: &mut Encoder, topics: &str) {
    let system = rustix::system::uname();
    let mut fact = |name: &str, value: &[u8]| {
        encoder
            .begin(Kind::Fact, clock::monotonic(), (0, 0))
            .text(name.as_bytes())
            .text(value)
            .end();
    };
    fact("hostname", system.nodename().to_bytes());
    fact("kernel_release", system.release().to_bytes());
    fact("architecture", system.machine().to_bytes());
    fact("machine", system.machine().to_bytes());
    fact(
        "tracer_name",
        concat!("whyslow ", env!("CARGO_PKG_VERSION")).as_bytes(),
    );
    fact(RECORDER_PID, std::process::id().to_string().as_bytes());
    fact("topics", topics.as_bytes());
    if let Some(version) = cgroup_version(Path::new("/sys/fs/cgroup")) {
        fact("cgroup_version", version.as_bytes());
    }
    for scheduler in io_schedulers(Path::new("/sys/block")) {
        fact("io_scheduler", scheduler.as_bytes());
    }
    if let Some(zone) = zone() {
        fact("zone", zone.as_bytes());
    }
    if let Ok(boot_id) = fs::read("/proc/sys/kernel/random/boot_id") {
        fact("boot_id", boot_id.trim_ascii_end());
    }
}

/// Name of the time zone, if `/etc/localtime` is a link to it.
fn zone() -> Option<String> {
    let target = fs::read_link("/etc/localtime").ok()?;
    let name = target.to_str()?.split_once("zoneinfo/")?.1;
    Some(name.trim_start_matches("posix/").to_owned())
}

/// Version of the hierarchy that has the controllers. With both mounted, it is version 1 unless
/// version 2 has some.
fn cgroup_version(root: &Path) -> Option<&'static str> {
    let of = |path: &Path| fs::read(path.join("cgroup.controllers")).ok();
    if of(root).is_some() {
        return Some("2");
    }
    let unified = of(&root.join("unified")).is_some_and(|names| !names.trim_ascii().is_empty());
    if unified {
        return Some("2");
    }
    root.join("cpu").exists().then_some("1")
}

/// `NAME SCHEDULER` of each disk with requests that can be scheduled.
fn io_schedulers(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<String> = entries
        .filter_map(|entry| {
            let text = fs::read_to_string(entry.path().join("queue/scheduler")).ok()?;
            let name = entry.file_name().into_string().ok()?;
            Some(format!("{name} {}", in_use(&text)?))
        })
        .collect();
    found.sort_unstable();
    found
}

/// The word in brackets: `none` of `[none] mq-deadline`.
fn in_use(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::TempDir::new().expect("a temporary folder");
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("it has one")).expect("a disk");
            fs::write(path, text).expect("a disk");
        }
        folder
    }

    #[test]
    fn the_scheduler_in_brackets_is_in_use() {
        let folder = made(&[
            ("vda/queue/scheduler", "[none] mq-deadline kyber bfq\n"),
            ("sda/queue/scheduler", "none mq-deadline [bfq]\n"),
            // Devices without a request queue.
            ("zram0/queue/scheduler", "none\n"),
            ("dm-0/queue/rotational", "0\n"),
        ]);
        assert_eq!(io_schedulers(folder.path()), ["sda bfq", "vda none"]);
        assert!(io_schedulers(Path::new("/nonexistent")).is_empty());
    }

    #[test]
    fn the_hierarchy_with_controllers_counts() {
        let version = |files: &[(&str, &str)]| cgroup_version(made(files).path());
        assert_eq!(version(&[("cgroup.controllers", "cpu io\n")]), Some("2"));
        let hybrid = ("unified/cgroup.controllers", "\n");
        assert_eq!(version(&[hybrid, ("cpu/cpu.shares", "1024\n")]), Some("1"));
        assert_eq!(version(&[]), None);
    }
}
