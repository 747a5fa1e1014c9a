//! Python and Ruby programs that started before the recording: functions that wait for DNS lookups,
//! and those that create temporary files, are named, also in PID namespaces.

use std::fs;
use std::process::{Child, Command, Stdio};

use whyslow_testkit::{Need, skip};

use super::can_record;
use super::lookups::{Surroundings, wait};
use crate::common::Place;

/// Looks up names, one after another, in a function that others call.
const PYTHON: &str = "
import socket, threading, time
def look(name):
    try:
        socket.getaddrinfo(name, 80, socket.AF_INET)
    except OSError:
        pass
def refresh(round):
    look('good%d.python.test' % round)
def work():
    for round in range(100000):
        refresh(round)
threading.Thread(target=work, daemon=True).start()
open('ready', 'w').close()
time.sleep(300)
";

const RUBY: &str = "
require 'socket'
def look(name)
  Addrinfo.getaddrinfo(name, 80, Socket::AF_INET)
rescue SocketError
end
def refresh(round)
  look(\"good#{round}.ruby.test\")
end
Thread.new { 100000.times { |round| refresh(round) } }
File.write('ready', '')
sleep 300
";

const FILES: &str = "
import os, time
def spill(path):
    with open(path, 'wb', buffering=0) as file:
        for _ in range(8):
            file.write(b'x' * 65536)
    os.unlink(path)
def request(number):
    for part in range(20):
        spill('parts/request-%d-%d' % (number, part))
os.mkdir('parts')
open('ready', 'w').close()
deadline = time.monotonic() + 300
number = 0
while time.monotonic() < deadline:
    request(number)
    number += 1
";

/// A child that is killed at the end of the test.
struct Program {
    child: Child,
    /// Process id of the program itself, which may be a grandchild.
    pid: i32,
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Some(pid) = rustix::process::Pid::from_raw(self.pid) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_there(interpreter: &str) -> bool {
    let version = Command::new(interpreter).arg("--version").output();
    let is_there = version.is_ok_and(|output| output.status.success());
    if !is_there {
        skip(Need::Tools, format!("no {interpreter}"));
    }
    is_there
}

/// Starts it in the directory, and waits until it works.
fn start(place: &Place, command: &mut Command) -> Program {
    let child = command
        .current_dir(place.path())
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut program = Program {
        pid: child.id() as i32,
        child,
    };
    assert!(wait(|| place.join("ready").exists()), "it never began");
    // A process with children only holds the namespaces.
    while let Some(inner) = only_child(program.pid) {
        program.pid = inner;
    }
    program
}

fn only_child(pid: i32) -> Option<i32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_ascii_whitespace().next()?.parse().ok()
}

fn record(place: &Place, pid: i32, what: &str) {
    let pid = pid.to_string();
    super::record(
        place,
        &["--stacks", "wall:10ms", "--what", what, "-p", &pid],
        "sleep 3",
    );
}

/// The answer as JSON.
fn explained(place: &Place, options: &[&str]) -> String {
    let output = place
        .whyslow()
        .args(["explain", "rec.wsl", "--json"])
        .args(options)
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).expect("JSON")
}

/// The functions with their lines appear in an explanation, in this order.
fn shows(explained: &str, functions: &[(&str, &str)]) {
    let mut rest = explained;
    for (function, line) in functions {
        // Newer versions of Ruby prefix the class name.
        let begin = format!("{function} (");
        let Some(at) = rest.find(&begin) else {
            panic!("{function} is not in {explained}");
        };
        let frame = &rest[at..];
        let end = frame.find(')').unwrap_or(frame.len());
        assert!(frame[..end].ends_with(line), "{} {line}", &frame[..end]);
        rest = frame;
    }
}

fn looks(interpreter: &str, program: &str, lines: (&str, &str), prefix: &[&str]) {
    if !can_record() || !is_there(interpreter) {
        return;
    }
    let place = Place::new();
    let Some(there) = Surroundings::new(&place) else {
        return skip(
            Need::Isolation,
            "no namespaces of one's own for network and mounts here",
        );
    };
    place.write("program", program);
    let mut command = there.enter();
    // Entering a mount namespace changes the working directory to its root.
    let begin = r#"cd "$0" && exec "$@""#;
    command
        .args(prefix)
        .args(["sh", "-c", begin])
        .arg(place.path());
    command.arg(interpreter).arg("program");
    let running = start(&place, &mut command);
    record(&place, running.pid, "dns,syscalls,sched");
    let explained = explained(&place, &["--slow", "poll>100ms"]);
    shows(&explained, &[("look", lines.0), ("refresh", lines.1)]);
}

#[test]
fn the_python_function_that_waits_for_a_name_is_told() {
    looks("python3", PYTHON, ("program:5", "program:9"), &[]);
}

#[test]
fn the_ruby_function_that_waits_for_a_name_is_told() {
    looks("ruby", RUBY, ("program:4", "program:8"), &[]);
}

/// With separate PID and mount namespaces.
const CONTAINER: &[&str] = &["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];

#[test]
fn functions_in_containers_are_told_too() {
    looks("python3", PYTHON, ("program:5", "program:9"), CONTAINER);
    looks("ruby", RUBY, ("program:4", "program:8"), CONTAINER);
}

#[test]
fn the_python_function_that_makes_files_for_nothing_is_told() {
    if !can_record() || !is_there("python3") {
        return;
    }
    let place = Place::new();
    place.write("program", FILES);
    let mut command = Command::new("python3");
    let running = start(&place, command.arg("program"));
    record(&place, running.pid, "syscalls,sched");
    let explained = explained(&place, &[]);
    assert!(explained.contains("temporary_files"), "{explained}");
    assert!(explained.contains("; spill ("), "{explained}");
}
