//! `serve @live`: the last minute of this machine, in which every event occurs once.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::live_outliers::Running;
use super::{can_record, no_floods};
use crate::common::Place;
use crate::serve::client::Server;

/// Directories with unique names, created over several spools.
const SCRIPT: &str = "read go; \
    i=0; while [ $i -lt 151 ]; do mkdir served-$i; i=$((i+1)); sleep 0.05; done";
const FOLDERS: usize = 151;

fn now_ns() -> i64 {
    #[allow(clippy::disallowed_methods)]
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.expect("after 1970").as_nanos() as i64
}

/// The current recording, once it reaches this time.
fn recording_until(server: &Server, end_ns: i64) -> Value {
    for _ in 0..1_200 {
        let found = server.json("recordings")["recordings"][0].clone();
        assert_eq!(found["ended"], Value::Null, "{found}");
        if found["end_ns"].as_i64() >= Some(end_ns) {
            return found;
        }
        sleep(Duration::from_millis(100));
    }
    panic!("it never goes on");
}

/// Counters continue across spools, and each directory occurs once.
fn all_are_counted(server: &Server) {
    let made = |line: &str| {
        let count = line.strip_prefix("whyslow_syscall_duration_seconds_count{syscall=\"mkdir");
        count.and_then(|rest| rest.rsplit(' ').next()?.parse::<usize>().ok())
    };
    for _ in 0..600 {
        let reply = server.get("/metrics");
        assert_eq!(reply.status, 200, "{}", reply.text());
        let count: usize = reply.text().lines().filter_map(made).sum();
        assert!(count <= FOLDERS, "{count}");
        if count == FOLDERS {
            return;
        }
        sleep(Duration::from_millis(100));
    }
    panic!("they are never all there");
}

/// A shell that starts on request, and a recorder of its calls: a busy machine has more events than
/// a debug build imports in time.
fn recorded_shell(place: &Place) -> (Child, Running) {
    let shell = Command::new("/bin/sh")
        .args(["-c", SCRIPT])
        .current_dir(place.path())
        .stdin(Stdio::piped())
        .spawn()
        .expect("it starts");
    let pid = shell.id().to_string();
    let words = ["record", "-o", "rec.wsl", "--what", "syscalls", "-p", &pid];
    let recorder = Running::start(place, &words, "recording started; press Ctrl-C");
    (shell, recorder)
}

#[test]
fn what_is_live_goes_on_and_tells_everything_once() {
    if !can_record() {
        return;
    }
    let _calm = no_floods();
    let place = Place::new();
    let (mut shell, recorder) = recorded_shell(&place);
    let server = Server::start(&place, &[&format!("@live:{}", recorder.pid())]);
    let first = server.json("recordings")["recordings"][0].clone();
    assert_eq!(first["live"], true);
    assert_eq!(first["tiles"]["state"], "ready");
    let mut stdin = shell.stdin.take().expect("it is piped");
    stdin.write_all(b"go\n").expect("it reads");
    assert!(shell.wait().expect("it starts").success());
    let later = recording_until(&server, now_ns());
    assert_ne!(later["digest"], first["digest"]);
    assert_eq!(later["tiles"]["state"], "ready");
    let rows = server.json("table?what=syscalls&view=log&op=metadata&file=**/served-*&limit=0");
    let rows = rows["tables"][0]["rows"].as_array().expect("rows").clone();
    let rows = rows.iter().filter(|row| {
        row["name"]
            .as_str()
            .is_some_and(|name| name.starts_with("mkdir"))
    });
    let mut paths: Vec<&str> = rows
        .clone()
        .filter_map(|row| row["path"].as_str())
        .collect();
    assert_eq!(paths.len(), FOLDERS);
    paths.sort_unstable();
    paths.dedup();
    assert_eq!(paths.len(), FOLDERS);
    assert!(rows.clone().all(|row| row["dur_ns"].is_i64()));
    all_are_counted(&server);
    // A query about the replaced recording is refused, not answered from the new one.
    let digest = first["digest"].as_str().expect("a digest");
    let tile = format!("/api/v1/tile?track=calls&level=30&index=0&digest={digest}");
    assert_eq!(server.get(&tile).status, 404);
    // The last recording stays when the recorder ends, and its end is reported.
    recorder.stop();
    assert_eq!(recorder.wait(), Some(0));
    let ended = || server.json("recordings")["recordings"][0]["ended"].is_string();
    while !ended() {
        sleep(Duration::from_millis(100));
    }
    // Also a query that was not run before.
    for view in [
        "what=syscalls&view=stats",
        "what=files&view=top",
        "what=threads&view=list",
    ] {
        assert_eq!(
            server.get(&format!("/api/v1/table?{view}")).status,
            200,
            "{view}"
        );
    }
    assert_eq!(server.interrupt(), Some(0));
}
