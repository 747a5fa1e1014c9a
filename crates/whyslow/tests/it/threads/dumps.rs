//! Thread dumps of a running JVM, and of files.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use whyslow_testkit::{Need, skip};

use super::rows;
use crate::common::Place;

/// Three threads that wait for each other, and one that sleeps.
const DEADLOCK: &str = r#"
public class Deadlock {
    static final Object[] LOCKS = { new Object(), new StringBuilder(), new Thread() };
    static void take(int first) throws Exception {
        synchronized (LOCKS[first]) {
            Thread.sleep(500);
            synchronized (LOCKS[(first + 1) % LOCKS.length]) { System.out.println("never"); }
        }
    }
    public static void main(String[] args) throws Exception {
        for (int number = 0; number < LOCKS.length; number++) {
            int own = number;
            Thread thread = new Thread(() -> { try { take(own); } catch (Exception e) { } }, "philosopher-" + own);
            thread.setDaemon(true);
            thread.start();
        }
        Thread.sleep(1000);
        System.out.println("ready");
        Thread.sleep(60_000);
    }
}
"#;

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn java(folder: &Path) -> Running {
    fs::write(folder.join("Deadlock.java"), DEADLOCK).expect("room");
    let out = fs::File::create(folder.join("out")).expect("room");
    let child = Command::new("java")
        .args(["-Xmx64m", "Deadlock.java"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(Stdio::null())
        .spawn()
        .expect("java runs");
    let running = Running(child);
    let give_up = Instant::now() + Duration::from_mins(1);
    while !fs::read_to_string(folder.join("out"))
        .expect("its output")
        .contains("ready")
    {
        assert!(Instant::now() < give_up, "the program does not begin");
        std::thread::sleep(Duration::from_millis(50));
    }
    running
}

#[test]
fn dumps_of_a_running_jvm_become_a_recording_that_shows_its_deadlock() {
    for program in ["java", "javac", "jcmd"] {
        if !is_there(program) {
            return skip(Need::Java, format!("there is no `{program}`"));
        }
    }
    let place = Place::new();
    let running = java(place.path());
    let pid = running.0.id().to_string();
    let mut command = place.whyslow();
    command.args([
        "threads",
        "dump",
        "--every",
        "400ms",
        "--for",
        "4s",
        "-p",
        &pid,
        "-o",
        "dumps.wsl",
    ]);
    let output = command.output().expect("it runs");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{message}");
    assert!(
        message.contains(" dumps in ") && message.contains("safepoints"),
        "{message}"
    );
    drop(running);
    let text = place.stdout(&["locks", "chains", "dumps.wsl", "--json"]);
    let answer: Value = serde_json::from_str(&text).expect("JSON");
    let chains = rows(&answer, "chains");
    let first = chains.first().expect("a chain");
    let verdict = first["verdict"].as_str().expect("a verdict");
    assert!(verdict.starts_with("deadlock"), "{answer:#}");
    for number in 0..3 {
        assert!(
            verdict.contains(&format!("philosopher-{number}")),
            "{verdict}"
        );
    }
    let dump = place.stdout(&["threads", "dump", "dumps.wsl", "--at", "-200ms", "--wide"]);
    assert!(dump.contains(": deadlock"), "{dump}");
}

/// As printed by a JVM; each thread holds what the other one waits for.
const TWO_THAT_WAIT: &str = r#"2026-11-25 12:00:00
Full thread dump OpenJDK 64-Bit Server VM (17.0.15+6 mixed mode, sharing):

"left" #11 prio=5 os_prio=0 cpu=1.00ms elapsed=9.00s tid=0x00007f0000000100 nid=0x65 waiting for monitor entry  [0x00007f0000001000]
   java.lang.Thread.State: BLOCKED (on object monitor)
	at a.Left.run(Left.java:7)
	- waiting to lock <0x00000000ff000002> (a a.Right)
	- locked <0x00000000ff000001> (a a.Left)

"right" #12 prio=5 os_prio=0 cpu=1.00ms elapsed=9.00s tid=0x00007f0000000200 nid=0x66 waiting for monitor entry  [0x00007f0000002000]
   java.lang.Thread.State: BLOCKED (on object monitor)
	at a.Right.run(Right.java:7)
	- waiting to lock <0x00000000ff000001> (a a.Left)
	- locked <0x00000000ff000002> (a a.Right)

"#;

#[test]
fn one_dump_shows_who_waits_for_whom() {
    let place = Place::new();
    place.write("dump.txt", TWO_THAT_WAIT);
    let dump = place.stdout(&["threads", "dump", "dump.txt", "--wide"]);
    assert!(dump.contains("right 102 (high confidence)"), "{dump}");
    assert!(dump.contains(": deadlock"), "{dump}");
    let chains = place.stdout(&["locks", "chains", "dump.txt"]);
    assert!(chains.contains("deadlock: left, right"), "{chains}");
}

#[test]
fn only_a_jvm_is_dumped() {
    let place = Place::new();
    let own = std::process::id().to_string();
    let check = |args: &[&str], want: &str| {
        let mut command = place.whyslow();
        command
            .args(["threads", "dump", "--every", "1s"])
            .args(args);
        let output = command.output().expect("it runs");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && message.contains(want),
            "{args:?}: {message}"
        );
    };
    check(&["-p", &own, "-o", "x.wsl"], "is not a JVM");
    check(&["-p", &own], "--output");
    check(&["-o", "x.wsl"], "--pid");
    check(&["-p", "1,2", "-o", "x.wsl"], "one process");
    place.write("there.wsl", "");
    check(&["-p", &own, "-o", "there.wsl"], "exists");
}
