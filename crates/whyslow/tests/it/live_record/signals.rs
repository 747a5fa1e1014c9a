//! Signals, against what the sending shell and the kernel report.

use serde_json::Value;

use super::{can_record, record, rows};
use crate::common::Place;

/// Stops, continues and ends child processes. Their process ids go to files.
const SENDS: &str = "
    stopped() { while ! grep -q 'State:.T' /proc/$1/status; do sleep 0.01; done; }
    cp $(command -v sleep) sleeps59
    ./sleeps59 59 & echo $! >first
    for i in 1 2 3 4 5 6 7; do
        kill -STOP $!; stopped $!
        kill -CONT $!
    done
    kill -TERM $!; wait $!; echo $? >first.status
    ./sleeps59 59 & echo $! >second
    kill -KILL $!; wait $!; echo $? >second.status
    ./sleeps59 59 & echo $! >third
    # Signals without a sender and without an effect are not recorded.
    kill -0 $!; kill -WINCH $!; kill -URG $!; kill -USR1 $!; wait $!; echo $? >third.status
    echo $$ >shell";

#[test]
fn who_stopped_continued_and_ended_whom_is_known() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    record(&place, &[], SENDS);
    let number = |name: &str| -> i64 {
        let text = std::fs::read_to_string(place.join(name)).expect("the script wrote it");
        text.trim().parse().expect("a number")
    };
    let all = rows(&place, &["signals", "log", "rec.wsl"]);
    let to = |name: &str| {
        let pid = number(name);
        let of_it = all.iter().filter(|row| row["pid"] == pid);
        of_it.collect::<Vec<&Value>>()
    };
    let names = |rows: &[&Value]| -> Vec<String> {
        let name = |row: &&Value| row["signal"].as_str().expect("a name").to_owned();
        rows.iter().map(name).collect()
    };
    let first = to("first");
    let mut expected: Vec<&str> = ["SIGSTOP", "SIGCONT"].repeat(7);
    expected.push("SIGTERM");
    assert_eq!(names(&first), expected, "{all:?}");
    assert_eq!(names(&to("second")), ["SIGKILL"]);
    assert_eq!(names(&to("third")), ["SIGUSR1"]);
    // The shell reports which signal ended a process.
    for (name, signal) in [("first", 15), ("second", 9), ("third", 10)] {
        assert_eq!(number(&format!("{name}.status")), 128 + signal);
        let last = *to(name).last().expect("there is one");
        assert_eq!(last["action"], "end", "{last}");
        assert!(last["dur_ns"].as_i64() > Some(0), "{last}");
    }
    let shell = number("shell");
    for row in to("first") {
        assert_eq!(row["sender_pid"], shell, "{row}");
        assert_eq!(row["origin"], "kill", "{row}");
        let action = match row["signal"].as_str() {
            Some("SIGSTOP") => "stop",
            Some("SIGCONT") => "continue",
            _ => "end",
        };
        assert_eq!(row["action"], action, "{row}");
    }
    let stopped = rows(
        &place,
        &[
            "signals",
            "stats",
            "rec.wsl",
            "--op",
            "stop",
            "-p",
            &number("first").to_string(),
        ],
    );
    assert_eq!(stopped.len(), 1, "{stopped:?}");
    assert_eq!(stopped[0]["count"], 7, "{stopped:?}");
}
