//! `record --ring --push`: while the store is unreachable, recordings wait within their limit, and
//! each is pushed to the lake exactly once, even if the recorder was killed.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::can_record;
use super::flight::{Recorder, recordings, wait_for};
use crate::common::Place;

/// An object store that keeps its address when it is stopped and restarted.
struct Store {
    process: Option<Child>,
    port: u16,
}

impl Store {
    fn new() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("it has one").port();
        Self {
            process: None,
            port,
        }
    }

    fn start(&mut self) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/object_store.py");
        let mut process = Command::new("python3")
            .arg(script)
            .args(["--port", &self.port.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is there");
        let mut line = String::new();
        let stdout = process.stdout.take().expect("it is piped");
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("it reports its place");
        self.process = Some(process);
    }

    fn environment(&self) -> [(&'static str, String); 5] {
        [
            (
                "AWS_ENDPOINT_URL",
                format!("http://127.0.0.1:{}", self.port),
            ),
            ("AWS_ACCESS_KEY_ID", "a".into()),
            ("AWS_SECRET_ACCESS_KEY", "b".into()),
            ("AWS_REGION", "here".into()),
            ("AWS_ALLOW_HTTP", "true".into()),
        ]
    }

    /// Names of objects.
    fn commits(&self) -> Vec<String> {
        let program = "import json, sys, urllib.request as r; \
                       print('\\n'.join(json.load(r.urlopen(sys.argv[1] + '/_state'))['objects']))";
        let url = format!("http://127.0.0.1:{}", self.port);
        let output = Command::new("python3").args(["-c", program, &url]).output();
        let text = String::from_utf8(output.expect("it starts").stdout).expect("UTF-8");
        let commits = text.lines().filter(|name| name.contains("/_commits/"));
        commits.map(str::to_owned).collect()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            drop(process.stdin.take());
            let _ = process.wait();
        }
    }
}

const OPTIONS: [&str; 10] = [
    "--ring",
    "10s",
    "--what",
    "syscalls,block",
    "--push",
    "s3://lake/fleet",
    "--label",
    "rack=r7",
    "--cluster",
    "here",
];

fn waiting(place: &Place) -> usize {
    let entries = fs::read_dir(place.path()).expect("it is there").flatten();
    let is_mark = |name: &str| name.ends_with(".unpushed");
    entries
        .filter(|entry| entry.file_name().to_str().is_some_and(is_mark))
        .count()
}

fn save(recorder: &Recorder, place: &Place, count: usize) {
    // Names have a resolution of seconds.
    sleep(Duration::from_millis(1100));
    recorder.signal("USR1");
    wait_for("a recording", || {
        recorder.said().matches("saved ./box-").count() >= count && recordings(place).len() >= count
    });
}

#[test]
fn what_was_promised_comes_when_the_store_is_back() {
    if !can_record() {
        return;
    }
    let _calm = super::no_floods();
    let place = Place::new();
    let mut store = Store::new();
    let recorder = Recorder::start_with(&place, &OPTIONS, &store.environment());
    save(&recorder, &place, 1);
    save(&recorder, &place, 2);
    wait_for("a word about the store", || {
        recorder.said().contains("note: cannot push")
    });
    assert_eq!(waiting(&place), 2, "{}", recorder.said());
    store.start();
    wait_for("both in the lake", || store.commits().len() == 2);
    wait_for("the marks to go", || waiting(&place) == 0);
    save(&recorder, &place, 3);
    wait_for("the third in the lake", || store.commits().len() == 3);
    let said = recorder.end();
    assert_eq!(said.matches("pushed ./box-").count(), 3, "{said}");
    assert!(!said.contains("waiting to be pushed"), "{said}");
    let commits = store.commits();
    assert!(
        commits.iter().all(|name| name.contains("/cluster=here/")),
        "{commits:?}"
    );
}

#[test]
fn a_recorder_that_was_killed_leaves_the_promise_to_the_next_one() {
    if !can_record() {
        return;
    }
    let _calm = super::no_floods();
    let place = Place::new();
    let mut store = Store::new();
    let recorder = Recorder::start_with(&place, &OPTIONS, &store.environment());
    save(&recorder, &place, 1);
    wait_for("the promise", || waiting(&place) == 1);
    recorder.signal("KILL");
    drop(recorder);
    store.start();
    let recorder = Recorder::start_with(&place, &OPTIONS, &store.environment());
    wait_for("what was promised", || store.commits().len() == 1);
    wait_for("the mark to go", || waiting(&place) == 0);
    let said = recorder.end();
    assert!(
        said.contains("1 recordings of earlier runs are waiting to be pushed"),
        "{said}"
    );
    assert_eq!(recordings(&place).len(), 1, "{said}");
}

#[test]
fn without_room_nothing_that_waits_is_given_up_and_what_was_dropped_is_told() {
    if !can_record() {
        return;
    }
    let _calm = super::no_floods();
    let place = Place::new();
    let store = Store::new();
    let mut options = OPTIONS.to_vec();
    // Room for the first window, whatever other tests do at that time.
    options.extend(["--max-disk", "6MiB"]);
    let recorder = Recorder::start_with(&place, &options, &store.environment());
    let begun = Instant::now();
    let mut answers = 0;
    while !recorder.said().contains("exceed --max-disk")
        && begun.elapsed() < Duration::from_secs(90)
    {
        sleep(Duration::from_millis(1100));
        recorder.signal("USR1");
        // One after the other: a window that arrives while another is being saved is dropped.
        wait_for("an answer", || {
            let said = recorder.said();
            said.matches("saved").count() > answers
        });
        answers = recorder.said().matches("saved").count();
    }
    wait_for("each recording's promise", || {
        recordings(&place).len() == waiting(&place)
    });
    let kept = recordings(&place);
    let said = recorder.end();
    assert!(said.contains("exceed --max-disk"), "{said}");
    assert!(said.contains("windows were not saved"), "{said}");
    assert!(
        said.contains("recordings are waiting to be pushed"),
        "{said}"
    );
    assert!(!kept.is_empty() && recordings(&place) == kept, "{said}");
}
