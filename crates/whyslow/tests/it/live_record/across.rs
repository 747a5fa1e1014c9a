//! Two hosts (network namespaces connected by a veth pair), each recorded separately, the client
//! with a wrong clock: from the client's recording the slow host and the cause on it are named.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use whyslow_testkit::{Need, skip};

use super::{can_record, no_floods};
use crate::common::Place;

const PROGRAM: &str = include_str!("across.py");
/// How far the client's clock is behind.
const APART_NS: i64 = 3_700_000_000;
const SERVER: &str = "10.213.7.2";
/// One kernel sees the packets and connections of both hosts: the client's recording is made without
/// them, because the server's end there would make the server a local process. The client binds its
/// address, which is otherwise only known from the connection's states.
const WHAT: [&str; 2] = ["syscalls,sched", "syscalls,sched,tcp,net"];

/// Two namespaces and a veth pair, deleted on drop.
struct Net {
    names: [String; 2],
}

impl Net {
    /// `None`, with a skip message, if this machine does not permit it.
    fn new() -> Option<Self> {
        let id = std::process::id();
        let net = Self {
            names: ["cli", "srv"].map(|side| format!("whyslow-{id}-{side}")),
        };
        let [here, there] = &net.names;
        let steps = [
            format!("netns add {here}"),
            format!("netns add {there}"),
            format!("-n {here} link add cable type veth peer name cable netns {there}"),
            format!("-n {here} addr add 10.213.7.1/24 dev cable"),
            format!("-n {there} addr add {SERVER}/24 dev cable"),
            format!("-n {here} link set cable up"),
            format!("-n {there} link set cable up"),
        ];
        for step in steps {
            let done = Command::new("ip").args(step.split(' ')).output();
            let is_done = done.as_ref().is_ok_and(|done| done.status.success());
            if !is_done {
                skip(
                    Need::Isolation,
                    format!("no network name spaces: ip {step}: {done:?}"),
                );
                return None;
            }
        }
        // Incoming packets are processed on another CPU than the sender's, as on real hardware:
        // otherwise the kernel processes them in the sender's own call, which reveals the sender.
        for (name, cpus) in net.names.iter().zip(["2", "1"]) {
            let set = format!("echo {cpus} > /sys/class/net/cable/queues/rx-0/rps_cpus");
            let done = Command::new("ip")
                .args(["netns", "exec", name, "sh", "-c", &set])
                .output();
            if !done.is_ok_and(|done| done.status.success()) {
                skip(Need::Isolation, "packets cannot be steered to another CPU");
                return None;
            }
        }
        Some(net)
    }

    /// A command on one of the two hosts, with its own host name and on one CPU.
    fn command(&self, place: &Place, side: usize, words: &[&str]) -> Command {
        let program = place.program();
        let host = ["cli", "srv"][side];
        let set = format!("hostname {host} && exec \"$@\"");
        let mut command = place.program();
        let mut new = Command::new("nsenter");
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => new.env(name, value),
                None => new.env_remove(name),
            };
        }
        command = new;
        command
            .current_dir(place.path())
            .arg(format!("--net=/run/netns/{}", self.names[side]))
            .args(["unshare", "--uts", "sh", "-c", &set, "sh"])
            .arg(program.get_program())
            .args(words)
            .stdout(Stdio::null());
        command
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).output();
        }
    }
}

/// A child that is killed at the end of the test.
struct Running(Child);

impl Running {
    /// Whether it exits successfully in time.
    fn ends(&mut self) -> bool {
        let end = Instant::now() + Duration::from_mins(1);
        while Instant::now() < end {
            if let Some(status) = self.0.try_wait().expect("it is ours") {
                return status.success();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn recorded(place: &Place, net: &Net) {
    let record = |side: usize, output: &str, role: &str, cpu: &str| {
        let words = [
            &["-q", "record", "--no-import", "-o", output][..],
            &["--what", WHAT[side]],
            &["--", "timeout", "50", "taskset", "-c", cpu],
            &["python3", "across.py", role, SERVER],
        ];
        net.command(place, side, &words.concat())
    };
    let server = record(1, "srv.wsl", "server", "0").spawn();
    let mut server = Running(server.expect("it starts"));
    let end = Instant::now() + Duration::from_secs(40);
    while !place.join("ready.txt").exists() {
        assert!(Instant::now() < end, "the server does not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
    let client = record(0, "cli.wsl", "client", "1").spawn();
    assert!(
        Running(client.expect("it starts")).ends(),
        "the client failed"
    );
    assert!(server.ends(), "the server failed");
    let shift = format!("cli.wsl.spool=-{}s", APART_NS as f64 / 1e9);
    for words in [
        &["import", "srv.wsl.spool", "-o", "srv.wsl"][..],
        &[
            "import",
            "cli.wsl.spool",
            "-o",
            "cli.wsl",
            "--shift",
            &shift,
        ],
    ] {
        place.whyslow().args(words).assert().success();
    }
}

fn explained(place: &Place, words: &[&str]) -> Value {
    let words = [
        &["explain", "cli.wsl"],
        words,
        &["--across", "srv.wsl", "--json"],
    ]
    .concat();
    serde_json::from_str(&place.stdout(&words)).expect("one JSON document")
}

#[test]
fn the_slow_host_and_its_cause_are_named_from_the_client() {
    if !can_record() {
        return;
    }
    for tool in ["python3", "nsenter", "unshare", "taskset", "ip"] {
        if Command::new(tool).arg("--version").output().is_err() {
            return skip(Need::Tools, format!("no {tool}"));
        }
    }
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() < 2) {
        return skip(
            Need::Machine,
            "one CPU: what is sent arrives in the sender's own call",
        );
    }
    let _quiet = no_floods();
    let place = Place::new();
    place.write("across.py", PROGRAM);
    let Some(net) = Net::new() else { return };
    recorded(&place, &net);
    let child = std::fs::read_to_string(place.join("child.txt")).expect("the server wrote it");
    let child: i64 = child.trim().parse().expect("a number");

    let report = explained(&place, &["--slow", "recvfrom>300ms"]);
    check(&report["findings"][0], child);
    let request = report["findings"][0]["across"][0]["request"].to_string();
    let report = explained(&place, &["--request", &request]);
    check(&report["findings"][0], child);
}

/// The child of the server's handler is named, on its host, with correct times.
fn check(finding: &Value, child: i64) {
    let text = finding["verdict"].as_str().expect("a verdict");
    assert!(text.contains("on host srv, where python3["), "{finding:#}");
    let culprit = finding["culprit"].as_u64().expect("a culprit") as usize;
    let part = &finding["parts"][culprit];
    assert_eq!(part["culprit"]["host"], "srv", "{part}");
    assert_eq!(part["culprit"]["name"], "sleep", "{part}");
    assert_eq!(part["culprit"]["pid"], child, "{part}");
    assert_eq!(part["mechanism"], "child_wait", "{part}");
    let taken = part["dur_ns"].as_i64().expect("ns");
    assert!((380_000_000..450_000_000).contains(&taken), "{part}");
    let parts = finding["parts"].as_array().expect("parts");
    let sum: i64 = parts
        .iter()
        .filter_map(|part| part["dur_ns"].as_i64())
        .sum();
    let ends = ["begin_ns", "end_ns"].map(|name| finding["target"][name].as_i64().expect("ns"));
    assert_eq!(sum, ends[1] - ends[0]);

    // Both clocks are the same in reality; the client's is shifted by a known offset.
    let clock = &finding["across"][0]["clock"];
    let bounds = ["low_ns", "high_ns"].map(|name| clock[name].as_i64().expect("ns"));
    assert!(bounds[0] <= APART_NS && APART_NS <= bounds[1], "{bounds:?}");
    assert!(bounds[1] - bounds[0] < 5_000_000, "{bounds:?}");
    assert!(clock["pairs"].as_u64() >= Some(40), "{clock}");
}
