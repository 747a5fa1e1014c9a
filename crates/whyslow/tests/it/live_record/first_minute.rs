//! The commands of the first screen, against programs that do what they look for.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::compiled::compiled;
use super::{can_record, floods_alone, no_floods};
use crate::common::Place;

/// Ends the program when the test ends.
struct Running(Child);

impl Running {
    fn start(program: &Path, args: &[&str]) -> Self {
        let mut command = Command::new(program);
        let child = command.args(args).stdout(Stdio::null()).spawn();
        Self(child.expect("it was compiled"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn now_explains_which_thread_holds_the_lock() {
    if !can_record() {
        return;
    }
    let _alone = no_floods();
    let place = Place::new();
    let Some(program) = compiled(&place, "locks59", "first_minute.c", &["-O1", "-pthread"]) else {
        return;
    };
    let running = Running::start(&program, &["lock", "60"]);
    let pid = running.0.id().to_string();
    let done = place
        .whyslow()
        .args(["now", "--for", "3s", "-p", &pid, "--slow", "futex>20ms"])
        .output()
        .expect("it starts");
    let messages = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{messages}");
    let text = String::from_utf8(done.stdout).expect("text");
    assert!(text.contains("reporter"), "{text}");
    assert!(text.contains("saturated"), "{text}");
    // The recording is in the directory that the last line names, and is used by the next command.
    let recordings = std::fs::read_dir(place.join("state/whyslow/now")).expect("the state");
    let recordings: Vec<_> = recordings.flatten().map(|entry| entry.path()).collect();
    let [recording] = recordings.as_slice() else {
        panic!("{recordings:?}");
    };
    for command in ["explain", "io top", "serve"] {
        let line = format!("whyslow {command} {}", recording.display());
        assert!(messages.contains(&line), "`{line}` is not in {messages}");
    }
    let info = place.stdout(&["info", "--json"]);
    let name = recording.file_name().expect("a name").to_string_lossy();
    assert!(info.contains(&*name), "{info}");
}

/// The command of the first screen: nothing about the incident has to be known.
#[test]
fn now_names_the_thread_that_holds_the_lock() {
    if !can_record() {
        return;
    }
    // No other test may have a lock with a thread of this name.
    let _alone = floods_alone();
    let place = Place::new();
    let Some(program) = compiled(&place, "locks61", "first_minute.c", &["-O1", "-pthread"]) else {
        return;
    };
    let _running = Running::start(&program, &["lock", "60"]);
    let text = place.stdout(&["now", "--for", "5s"]);
    // Whatever else the machine does meanwhile, one finding is the lock.
    let why = text
        .lines()
        .filter(|line| line.contains("WHY   reporter (tid "));
    assert_eq!(why.count(), 1, "{text}");
    assert!(text.contains("worker-") && text.contains("futex"), "{text}");
    // It goes on, and the commands of the page work from anywhere.
    assert!(
        text.contains("NOW   still in progress at the end"),
        "{text}"
    );
    let next = text.lines().filter(|line| line.contains("NEXT  whyslow "));
    let state = place.join("state/whyslow/now");
    let state = state.to_str().expect("UTF-8");
    for line in next {
        assert!(line.contains(state) || line.ends_with('\\'), "{line}");
    }
}

#[test]
fn io_usage_names_the_process_that_writes_now() {
    if !can_record() {
        return;
    }
    let _alone = no_floods();
    let place = Place::new();
    let Some(program) = compiled(&place, "ships59", "first_minute.c", &["-O1", "-pthread"]) else {
        return;
    };
    let log = place.join("shipped");
    let log = log.to_str().expect("UTF-8");
    let _running = Running::start(&program, &["ship", "60", log]);
    let lines = place.stdout(&["io", "usage", "@live:new", "2", "1", "--json"]);
    let rows = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let rows: Vec<Value> = rows.collect();
    let written = |row: &Value| row["file_write_bytes"].as_i64().unwrap_or(0);
    let shipper = rows.iter().find(|row| row["comm"] == "log-shipper");
    let shipper = shipper.unwrap_or_else(|| panic!("{lines}"));
    assert!(written(shipper) > 4 << 20, "{shipper}");
}
