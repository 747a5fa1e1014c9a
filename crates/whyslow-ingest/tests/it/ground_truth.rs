//! Ground truth for two traces: a client's log and the pids of its commands, and a workload script
//! whose steps are marked in the trace.

use std::fs;

use serde_json::Value;
use whyslow_ingest::InMemory;

use crate::common::{calls, data, import, text};

const MS: f64 = 1e6;

fn json_lines(path: &std::path::Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("ground truth");
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().expect("JSON lines")
}

fn number(value: &Value) -> i64 {
    value.as_i64().expect("an integer")
}

/// The page times `session_start()`, which mainly opens the session file.
#[test]
fn every_request_of_the_incident_opened_its_session_file_when_the_client_says() {
    let Some(data) = data() else { return };
    let folder = data.join("ours-web-incident");
    let import = import(folder.join("trace.tar.zst"));
    let truth = fs::read_to_string(folder.join("ground-truth.json")).expect("ground truth");
    let truth: Value = serde_json::from_str(&truth).expect("JSON");
    let offset = number(&truth["trace_clock_offset_ns"]);
    let requests = json_lines(&folder.join("requests.jsonl"));
    assert_eq!(requests.len(), 101);
    for request in &requests {
        let server = &request["server"];
        let session = server["session"].as_str().expect("a name");
        let path = format!("/var/lib/php/sessions/sess_{session}");
        let opens: Vec<_> = calls(&import, "apache2", "openat", &path).collect();
        let [open] = opens[..] else {
            panic!("{} opens of {path}", opens.len());
        };
        assert_eq!(
            i64::from(open.pid.expect("known")),
            number(&server["apache_pid"])
        );
        let took_ms = open.dur.expect("whole") as f64 / MS;
        let session_start_ms = server["session_start_ms"].as_f64().expect("a number");
        assert!(
            took_ms < session_start_ms,
            "{path}: {took_ms} of {session_start_ms}"
        );
        let begin = number(&server["php_begin_mono_ns"]) + offset;
        let end = number(&server["php_end_mono_ns"]) + offset;
        assert!(
            begin < open.ts && open.ts_end.expect("whole") < end,
            "{path}"
        );
    }
}

#[test]
fn the_slow_open_of_the_incident_lies_within_the_sync() {
    let Some(data) = data() else { return };
    let import = import(data.join("ours-web-incident/trace.tar.zst"));
    let path = "sess_u77dj8kh3nvicqm50rjug6kbct";
    let open = calls(&import, "apache2", "openat", path).next();
    let open = open.expect("the slow request");
    assert_eq!(
        (open.pid, open.fd, open.dur),
        (Some(243), Some(12), Some(158_092_790))
    );
    let sync = calls(&import, "sync", "sync", "").next().expect("the sync");
    assert_eq!(sync.pid, Some(339));
    assert!(sync.ts < open.ts && open.ts_end < sync.ts_end);
    assert_eq!(import.rows.lost_events, []);
}

#[test]
fn the_actions_of_the_incident_are_processes_of_that_time() {
    let Some(data) = data() else { return };
    let folder = data.join("ours-web-incident");
    let import = import(folder.join("trace.tar.zst"));
    for action in json_lines(&folder.join("actions.jsonl")) {
        let pid = number(&action["pid"]);
        let mut processes = import.rows.process.iter();
        let process = processes.find(|process| i64::from(process.pid) == pid);
        let process = process.unwrap_or_else(|| panic!("no process {pid}"));
        let name = action["name"].as_str().expect("a name");
        // `find` runs in a shell that discards its output
        let exe = text(&import, process.exe);
        assert!(
            exe.ends_with(name) || name == "find" && exe.ends_with("sh"),
            "{exe}"
        );
        let (start, exit) = (
            process.ts_start.expect("seen"),
            process.ts_exit.expect("seen"),
        );
        let begin = number(&action["begin_realtime_ns"]);
        let end = number(&action["end_realtime_ns"]);
        assert!(begin < start && exit < end, "{name}");
    }
    let written = calls(&import, "dd", "write", "/var/tmp/upload.bin");
    let written: i64 = written.filter_map(|row| row.bytes).sum();
    assert_eq!(written, 96 * 65536);
}

fn marker(import: &InMemory, marker: &str) -> i64 {
    let mut rows = import.rows.marker.iter();
    let row = rows.find(|row| import.symbols.get(row.text) == marker);
    row.unwrap_or_else(|| panic!("no marker {marker:?}")).ts
}

fn bytes(import: &InMemory, comm: &str, name: &str, path: &str) -> i64 {
    calls(import, comm, name, path)
        .filter_map(|row| row.bytes)
        .sum()
}

#[test]
fn the_workload_moved_the_bytes_that_its_script_says() {
    let Some(data) = data() else { return };
    let import = import(data.join("basic-kernel-4.4.tar.xz"));
    let step_dd = marker(&import, "Create a 2MB random file");
    let step_gzip = marker(&import, "Compress the random file with gzip");
    let step_wget = marker(&import, "Download the 'tree' source tarball");
    let step_tar = marker(&import, "Extract the tarball");
    assert!(step_dd < step_gzip && step_gzip < step_wget && step_wget < step_tar);
    assert_eq!(import.rows.marker.len(), 12);

    const TWO_MIB: i64 = 2 << 20;
    assert_eq!(bytes(&import, "dd", "read", "/dev/urandom"), TWO_MIB);
    assert_eq!(bytes(&import, "dd", "write", "/random"), TWO_MIB);
    for row in calls(&import, "dd", "write", "/random") {
        assert!(step_dd < row.ts && row.ts_end.expect("whole") < step_gzip);
    }
    assert_eq!(bytes(&import, "gzip", "read", "/random"), TWO_MIB);
    assert!(bytes(&import, "gzip", "write", "/random.gz") > TWO_MIB);
    // what wget wrote is what gzip, run by tar, read
    let tarball = "/tree-1.7.0.tgz";
    let downloaded = bytes(&import, "wget", "write", tarball);
    assert_eq!(downloaded, 47_082);
    assert_eq!(bytes(&import, "gzip", "read", tarball), downloaded);
    for row in calls(&import, "wget", "write", tarball) {
        assert!(step_wget < row.ts && row.ts_end.expect("whole") < step_tar);
    }
}
