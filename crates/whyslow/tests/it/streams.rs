//! Answers that are longer than the collection limit: they are streamed.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::common::Place;

/// More rows than `log` collects for formats that need all rows at once.
const CALLS: usize = 120_000;

fn long() -> &'static Place {
    static PLACE: OnceLock<Place> = OnceLock::new();
    PLACE.get_or_init(|| Place::shared("streams", fill))
}

fn fill(place: &Place) {
    let mut trace = String::from("whyslow-text 1\nmeta hostname=web1\n");
    for call in 0..CALLS {
        let thread = "(tid=10 pid=10 comm=cat) syscall";
        let at = 1_421_342_317_000_000_000 + call * 1_000;
        let (begin, end) = (at / 1_000_000_000, at % 1_000_000_000);
        let _ = writeln!(
            trace,
            "{begin}.{end:09} [0] {thread}_enter name=read fd=3 count=10"
        );
        let _ = writeln!(
            trace,
            "{begin}.{:09} [0] {thread}_exit name=read ret=10",
            end + 500
        );
    }
    place.write("long.txt", trace);
    let import = ["import", "long.txt", "-o", "long.wsl", "--no-progress"];
    place.whyslow().args(import).assert().success();
}

fn lines(args: &[&str]) -> Vec<String> {
    let text = long().stdout(&[&["io", "log", "long.wsl"], args].concat());
    text.lines().map(str::to_owned).collect()
}

#[test]
fn forms_with_a_line_for_each_row_have_all_rows() {
    let ndjson = lines(&["--format", "ndjson"]);
    assert!(ndjson[0].contains(r#""type":"answer""#), "{}", ndjson[0]);
    let is_row = |line: &&String| line.starts_with(r#"{"type":"row","table":"log","#);
    assert_eq!(ndjson.iter().filter(is_row).count(), CALLS);
    assert!(!ndjson.iter().any(|line| line.contains("only the first")));

    for (format, separator) in [("csv", ','), ("tsv", '\t')] {
        let table = lines(&["--format", format]);
        assert_eq!(table.len(), CALLS + 1, "{format}");
        assert!(
            table[0].starts_with(&format!("ts_ns{separator}")),
            "{}",
            table[0]
        );
        assert!(!table[1..].iter().any(|line| line.starts_with("ts_ns")));
    }
}

#[test]
fn a_limit_chosen_columns_and_an_empty_answer_stream_like_others() {
    assert_eq!(lines(&["--csv", "-n", "7"]).len(), 8);
    let chosen = lines(&["--csv", "--cols", "id,dur_ns", "-n", "1"]);
    assert_eq!(chosen, ["id,dur_ns,outlier,overlap", "op:0,500,false,"]);
    let nothing = lines(&["--csv", "--pid", "4711"]);
    assert_eq!(nothing.len(), 1, "only a header: {nothing:?}");
    let place = long();
    place.stdout(&["io", "log", "long.wsl", "--csv", "-o", "log.csv"]);
    let written = std::fs::read_to_string(place.join("log.csv")).expect("it was written");
    assert_eq!(written.lines().count(), CALLS + 1);
    let wrong = ["io", "log", "long.wsl", "--csv", "--cols", "nonsense"];
    place.whyslow().args(wrong).assert().code(2);
}

#[test]
fn rows_that_are_sorted_are_collected() {
    let sorted = lines(&["--csv", "--sort", "ts_ns:desc", "-n", "2"]);
    assert_eq!(sorted.len(), 3);
    assert!(sorted[1] > sorted[2]);
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let place = long();
    for format in ["ndjson", "csv"] {
        let mut child = Command::new(place.whyslow().get_program())
            .args(["io", "log", "long.wsl", "--format", format])
            .current_dir(place.path())
            .env("XDG_STATE_HOME", place.join("state"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it was built");
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut first = String::new();
        stdout.read_line(&mut first).expect("text");
        assert!(!first.is_empty());
        drop(stdout);
        let mut said = String::new();
        let mut stderr = child.stderr.take().expect("a pipe");
        stderr.read_to_string(&mut said).expect("text");
        let status = child.wait().expect("it ends");
        assert_eq!((status.code(), said.as_str()), (Some(0), ""), "{format}");
    }
}
