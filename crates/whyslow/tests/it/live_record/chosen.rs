//! Processes selected by name or cgroup, and the privileges that remain to the recorder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use whyslow_testkit::{Need, skip};

use super::{can_record, rows};
use crate::common::Place;

const WHYSLOW: &str = env!("CARGO_BIN_EXE_whyslow");

/// A running recorder, ended on drop.
struct Recorder(Child);

impl Recorder {
    fn start(place: &Place, words: &[&str]) -> Self {
        let child = Command::new(WHYSLOW)
            .args(["-q", "record", "--for", "10m", "-o", "rec.wsl"])
            .args(words)
            .current_dir(place.path())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let recorder = Self(child);
        let file = place.join("rec.wsl.spool/000001.blocks");
        wait_until(|| fs::metadata(&file).is_ok_and(|file| file.len() > 0));
        recorder
    }

    /// Ends it as Ctrl-C does.
    fn end(self) {
        let pid = self.0.id().to_string();
        let killed = Command::new("kill").args(["-INT", &pid]).status();
        assert!(killed.is_ok_and(|status| status.success()));
        self.wait();
    }

    fn wait(mut self) {
        let status = self.0.wait().expect("it is ours");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait_until(mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(
            begun.elapsed() < Duration::from_mins(1),
            "it takes too long"
        );
        sleep(Duration::from_millis(10));
    }
}

/// A script with a unique name that changes to `/` a given number of times once `go` exists.
fn start(place: &Place, name: &str, times: u32) -> Child {
    let program = place.join(name);
    if !program.exists() {
        std::os::unix::fs::symlink("/bin/sh", &program).expect("a temporary folder");
    }
    let script = format!(
        "n=0; while [ ! -e go ] && [ $n -lt 6000 ]; do sleep 0.01; n=$((n+1)); done
        i=0; while [ $i -lt {times} ]; do cd .; i=$((i+1)); done"
    );
    Command::new(program)
        .args(["-c", &script])
        .current_dir(place.path())
        .spawn()
        .expect("a shell")
}

fn changes_of(place: &Place, comm: &str) -> usize {
    let calls = rows(place, &["syscalls", "log", "rec.wsl", "--name", "chdir"]);
    let own = calls.iter().filter(|call: &&Value| call["comm"] == comm);
    own.count()
}

fn go(place: &Place, children: Vec<Child>) {
    place.write("go", "");
    for mut child in children {
        child.wait().expect("it is ours");
    }
}

#[test]
fn processes_are_recorded_by_the_names_that_they_have_and_get() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let before = [start(&place, "named-31", 31), start(&place, "other-37", 37)];
    wait_until(|| {
        let name = |child: &Child| fs::read_to_string(format!("/proc/{}/comm", child.id()));
        name(&before[0]).is_ok_and(|name| name == "named-31\n")
    });
    let recorder = Recorder::start(&place, &["--comm", "named-*,exactly"]);
    let after = [
        start(&place, "named-41", 41),
        start(&place, "exactly", 43),
        start(&place, "exactly-not", 47),
    ];
    go(&place, before.into_iter().chain(after).collect());
    recorder.end();
    let count = |comm: &str| changes_of(&place, comm);
    assert_eq!(
        (count("named-31"), count("named-41"), count("exactly")),
        (31, 41, 43)
    );
    assert_eq!((count("other-37"), count("exactly-not")), (0, 0));
}

/// A cgroup, removed on drop.
struct Group(PathBuf);

impl Group {
    /// In a hierarchy that permits it without controllers.
    fn new(name: &str) -> Option<Self> {
        let places = ["systemd", "unified", "pids", "."];
        places.iter().find_map(|place| {
            let root = Path::new("/sys/fs/cgroup").join(place);
            let folder = root.join(format!("{name}-{}", std::process::id()));
            let is_group = root.join("cgroup.procs").exists();
            (is_group && fs::create_dir(&folder).is_ok()).then_some(Self(folder))
        })
    }

    fn take(&self, child: &Child) -> bool {
        fs::write(self.0.join("cgroup.procs"), child.id().to_string()).is_ok()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(self.0.join("inner"));
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn processes_are_recorded_by_control_group() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let Some(group) = Group::new("whyslow-chosen") else {
        return skip(Need::Isolation, "cgroups cannot be created here");
    };
    let before = [start(&place, "in-53", 53), start(&place, "out-59", 59)];
    if !group.take(&before[0]) {
        return skip(Need::Isolation, "no process can be moved here");
    }
    let folder = group.0.to_str().expect("UTF-8").to_owned();
    let recorder = Recorder::start(&place, &["--cgroup", &folder]);
    let later = start(&place, "later-61", 61);
    assert!(group.take(&later));
    go(&place, before.into_iter().chain([later]).collect());
    recorder.end();
    let count = |comm: &str| changes_of(&place, comm);
    assert_eq!(
        (count("in-53"), count("later-61"), count("out-59")),
        (53, 61, 0)
    );
}

#[test]
fn what_cannot_be_chosen_is_told() {
    let place = Place::new();
    for (words, message) in [
        (
            ["--cgroup", "/no/such/group"],
            "cannot record cgroup `/no/such/group`",
        ),
        (["--comm", "a*b"], "is not a thread name"),
        (["--comm", "sixteen-letters-"], "is not a thread name"),
    ] {
        let output = place.whyslow().arg("record").args(words).output();
        let output = output.expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(message), "{said}");
    }
}

/// BPF programs of a recorder by type number.
fn programs_of_type(pid: u32, number: &str) -> usize {
    let files = fs::read_dir(format!("/proc/{pid}/fdinfo")).expect("it runs");
    let abouts = files.flatten().map(|file| fs::read_to_string(file.path()));
    let is_one = |about: &String| line(about, "prog_type:") == number;
    abouts.filter_map(Result::ok).filter(is_one).count()
}

#[test]
fn tracepoints_without_types_tell_the_same() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let script = "while [ ! -e go ]; do sleep 0.01; done
        i=0; while [ $i -lt 67 ]; do cd .; i=$((i+1)); done; cat nothing-71; true";
    let recorder = Recorder::start(
        &place,
        &[
            "--refuse", "typed", "--what", "syscalls", "--", "/bin/sh", "-c", script,
        ],
    );
    const RAW_TRACEPOINT: &str = "17";
    // Entry and exit of system calls, switches, and six that track processes.
    assert_eq!(programs_of_type(recorder.0.id(), RAW_TRACEPOINT), 8);
    place.write("go", "");
    recorder.wait();
    let calls = rows(&place, &["syscalls", "log", "rec.wsl"]);
    let number = |is_one: &dyn Fn(&&Value) -> bool| calls.iter().filter(is_one).count();
    // The name by which the shell changes to it does not matter.
    let is_change = |call: &&Value| call["name"] == "chdir" && call["path"].is_string();
    assert_eq!(number(&is_change), 67);
    let is_missed = |call: &&Value| {
        let path = call["path"].as_str().unwrap_or_default();
        call["name"] == "openat" && path.ends_with("nothing-71") && call["error"] == "ENOENT"
    };
    assert_eq!(number(&is_missed), 1);
}

/// Capabilities by bit: DAC_OVERRIDE, DAC_READ_SEARCH, SYS_PTRACE, SYSLOG, PERFMON, BPF,
/// CHECKPOINT_RESTORE.
const KEPT: u64 = 1 << 1 | 1 << 2 | 1 << 19 | 1 << 34 | 1 << 38 | 1 << 39 | 1 << 40;

fn line(status: &str, name: &str) -> String {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_default().trim().to_owned()
}

#[test]
fn a_recorder_at_work_has_given_up_what_it_needs_no_more_and_its_command_has_not() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let script = "cat /proc/self/status >status; while [ ! -e go ]; do sleep 0.01; done";
    let recorder = Recorder::start(&place, &["--", "/bin/sh", "-c", script]);
    wait_until(|| {
        let status = fs::read_to_string(place.join("status"));
        status.is_ok_and(|status| status.contains("CapBnd:"))
    });
    let tasks = fs::read_dir(format!("/proc/{}/task", recorder.0.id()));
    let tasks: Vec<_> = tasks.expect("it runs").flatten().collect();
    assert!(!tasks.is_empty());
    for task in tasks {
        // A thread may exit meanwhile.
        let Ok(status) = fs::read_to_string(task.path().join("status")) else {
            continue;
        };
        for name in ["CapEff:", "CapPrm:", "CapBnd:", "CapInh:"] {
            let bits = u64::from_str_radix(&line(&status, name), 16).expect("hexadecimal");
            // SYS_ADMIN may be raised for libraries loaded later, but is not effective.
            let may_be = if name == "CapPrm:" {
                KEPT | 1 << 21
            } else {
                KEPT
            };
            assert_eq!(bits & !may_be, 0, "{name} {bits:x}");
        }
        assert_eq!(line(&status, "NoNewPrivs:"), "1");
    }
    let of_command = fs::read_to_string(place.join("status")).expect("it was there");
    let ours = fs::read_to_string("/proc/self/status").expect("the kernel has it");
    for name in ["CapEff:", "CapPrm:", "CapBnd:", "NoNewPrivs:"] {
        assert_eq!(line(&of_command, name), line(&ours, name), "{name}");
    }
    place.write("go", "");
    recorder.wait();
    assert!(!rows(&place, &["threads", "list", "rec.wsl"]).is_empty());
}
