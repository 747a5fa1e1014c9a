//! Snapshots, made and queried on the command line.

use std::io::Read as _;
use std::process::Stdio;
use std::sync::OnceLock;

use serde_json::Value;

use crate::common::Place;

/// The fixture as a recording, and a snapshot of it.
fn made() -> &'static Place {
    static PLACE: OnceLock<Place> = OnceLock::new();
    PLACE.get_or_init(|| Place::shared("snapshot", fill))
}

fn fill(place: &Place) {
    std::fs::create_dir(place.join("tmp")).expect("a temporary folder takes it");
    let trace = whyslow_testkit::fixture("web-incident/trace.tar.zst");
    let trace = trace.to_str().expect("UTF-8");
    let run = |args: &[&str]| place.whyslow().args(args).assert().success();
    run(&["import", trace, "-o", "whole.wsl", "--no-progress"]);
    let made = run(&["export", "snapshot", "whole.wsl", "-w", WINDOW, "-o", PART]);
    let message = String::from_utf8_lossy(&made.get_output().stderr).into_owned();
    assert!(
        message.contains("next: whyslow explain part.wsl.tar.zst"),
        "{message}"
    );
}

const WINDOW: &str = "+8s..+9s";
const PART: &str = "part.wsl.tar.zst";

fn stdout(place: &Place, args: &[&str]) -> String {
    let output = place
        .whyslow()
        .env("TMPDIR", place.join("tmp"))
        .args(args)
        .assert()
        .success();
    String::from_utf8(output.get_output().stdout.clone()).expect("UTF-8")
}

fn json(place: &Place, args: &[&str]) -> Value {
    let text = stdout(place, &[args, &["--json"]].concat());
    serde_json::from_str(&text).expect("one JSON document")
}

fn unpacked(place: &Place) -> usize {
    let listing = std::fs::read_dir(place.join("tmp")).expect("it is there");
    let names = listing.map(|entry| entry.expect("an entry").file_name());
    names
        .filter(|name| name.to_string_lossy().starts_with("whyslow-unpacked-"))
        .count()
}

#[test]
fn without_a_window_a_part_is_asked_about_what_it_was_cut_for() {
    let place = made();
    for query in [
        &["io", "top"][..],
        &["states", "usage"],
        &["block", "stats"],
        &["sched", "top", "-n", "3"],
    ] {
        let part = json(place, &[query, &[PART]].concat());
        let whole = json(place, &[query, &["whole.wsl", "-w", WINDOW]].concat());
        assert_eq!(part["tables"], whole["tables"], "{query:?}");
        assert_eq!(part["window"], whole["window"], "{query:?}");
        let caveats = part["caveats"].as_array().expect("a list");
        let is_told = |caveat: &Value| {
            let text = caveat.as_str().unwrap_or_default();
            text.starts_with("snapshot of a recording of 2026-11-21 ") && text.contains("showing")
        };
        assert!(caveats.iter().any(is_told), "{caveats:?}");
    }
    // The surroundings can be queried: they start five seconds earlier.
    let part = json(place, &["io", "stats", PART, "-w", "+1s..+4s"]);
    let whole = json(place, &["io", "stats", "whole.wsl", "-w", "+4s..+7s"]);
    assert_eq!(part["tables"], whole["tables"]);
    // A window that was cut away is an error, not empty.
    let gone = ["io", "stats", PART, "-w", "2026-11-21 00:28:46+1s"];
    let refused = place.whyslow().args(gone).assert().code(2);
    let message = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(
        message.contains("snapshot of a longer recording"),
        "{message}"
    );
}

#[test]
fn explanations_exports_tools_and_facts_are_about_it_too() {
    let place = made();
    let part = json(place, &["explain", PART]);
    let whole = json(place, &["explain", "whole.wsl", "-w", WINDOW]);
    assert_eq!(
        part["findings"].as_array().map(Vec::len),
        whole["findings"].as_array().map(Vec::len)
    );
    assert_eq!(
        part["findings"][0]["target"]["id"],
        whole["findings"][0]["target"]["id"]
    );
    let named = part["findings"][0]["parts"]
        .to_string()
        .replace(PART, "whole.wsl");
    let wanted = whole["findings"][0]["parts"].to_string();
    assert!(named == wanted, "{named}");
    let folded = |args: &[&str]| stdout(place, &[&["export", "collapsed"], args].concat());
    assert_eq!(folded(&[PART]), folded(&["whole.wsl", "-w", WINDOW]));
    let tool = |args: &[&str]| stdout(place, &[&["as", "iotop"], args].concat());
    assert_eq!(tool(&[PART]), tool(&["whole.wsl", "-w", WINDOW]));
    let facts = stdout(place, &["info", PART]);
    assert!(facts.contains("cut from"), "{facts}");
}

#[test]
fn a_part_can_be_cut_again_and_piped() {
    let place = made();
    let mut child = place
        .program()
        .args(["export", "snapshot", PART, "-w", "+5.2s..+5.4s", "-q"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut packed = Vec::new();
    let mut out = child.stdout.take().expect("a pipe");
    out.read_to_end(&mut packed).expect("it is read");
    assert!(child.wait().expect("it ends").success());
    place.write("again", packed);
    let part = json(place, &["io", "top", "again"]);
    let whole = json(place, &["io", "top", "whole.wsl", "-w", "+8.2s..+8.4s"]);
    assert_eq!(part["tables"], whole["tables"]);
}

#[test]
fn what_was_unpacked_goes_whatever_ends_the_program() {
    let place = Place::new();
    std::fs::create_dir(place.join("tmp")).expect("a temporary folder takes it");
    std::fs::copy(made().join(PART), place.join(PART)).expect("a temporary folder takes it");
    let _ = stdout(&place, &["io", "stats", PART]);
    assert_eq!(unpacked(&place), 0);
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        ended_by(&place, signal);
        assert_eq!(unpacked(&place), 0, "{signal:?}");
    }
    ended_by(&place, rustix::process::Signal::KILL);
    assert_eq!(unpacked(&place), 1);
    let _ = stdout(&place, &["io", "stats", PART]);
    assert_eq!(unpacked(&place), 0, "the next one takes away what was left");
}

/// Ends it while its output is not read.
fn ended_by(place: &Place, signal: rustix::process::Signal) {
    let mut child = place
        .program()
        .env("TMPDIR", place.join("tmp"))
        .args(["sched", "log", PART, "-w", "+1s..+9s", "--csv", "-q"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut first = [0; 4096];
    let out = child.stdout.as_mut().expect("a pipe");
    out.read_exact(&mut first).expect("it writes");
    assert_eq!(unpacked(place), 1);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, signal).expect("it runs");
    let ended = child.wait().expect("it ends");
    assert!(!ended.success());
}

#[test]
fn readers_that_leave_and_full_disks_are_met_as_everywhere() {
    let place = made();
    let mut child = place
        .program()
        .args(["export", "snapshot", "whole.wsl", "-w", WINDOW, "-q"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(child.stdout.take());
    let mut text = String::new();
    let mut errors = child.stderr.take().expect("a pipe");
    errors.read_to_string(&mut text).expect("text");
    assert!(child.wait().expect("it ends").success(), "{text}");
    assert_eq!(text, "");
    let full = [
        "export",
        "snapshot",
        "whole.wsl",
        "-w",
        WINDOW,
        "-o",
        "/dev/full",
    ];
    let failed = place.whyslow().args(full).assert().code(1);
    let text = String::from_utf8_lossy(&failed.get_output().stderr).into_owned();
    assert!(text.contains("No space left"), "{text}");
}

#[test]
fn what_is_packed_is_imported_no_more() {
    let refused = made().whyslow().args(["import", PART]).assert().code(2);
    let message = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(message.contains("it is already a recording"), "{message}");
}

#[test]
fn what_is_no_packed_recording_is_told_with_the_byte() {
    let place = made();
    let packed = std::fs::read(place.join(PART)).expect("it was made");
    place.write("short.wsl.tar.zst", &packed[..packed.len() / 2]);
    let failed = place.whyslow().args(["info", "short.wsl.tar.zst"]).assert();
    let failed = failed.code(1);
    let message = String::from_utf8_lossy(&failed.get_output().stderr).into_owned();
    assert!(
        message.contains("error: cannot unpack `short.wsl.tar.zst`"),
        "{message}"
    );
    assert!(message.contains("byte "), "{message}");
}

const SECRETS: [&str; 4] = ["acmeshop", "acme_orders", "Wolpertinger", "zwiebel.example"];

/// No redacted name remains in any format. The data of a report is packed: its own test unpacks it.
#[test]
fn every_form_hides_what_it_is_told_to() {
    let place = Place::new();
    place.write(
        "secret.txt",
        format!(
            "{STACKS}\
             2.000000000 [0] (tid=10 pid=10 comm=acmeshop) syscall_enter name=openat \
             path=/srv/Wolpertinger/zwiebel.example flags=0\n\
             2.030000000 [0] (tid=10 pid=10 comm=acmeshop) syscall_exit name=openat ret=3\n\
             2.040000000 [0] (tid=10 pid=10 comm=acmeshop) syscall_enter name=read fd=3 bytes=10\n\
             2.060000000 [0] (tid=10 pid=10 comm=acmeshop) syscall_exit name=read ret=10\n"
        ),
    );
    let written = |form: &str, flags: &[&str]| {
        let words = [&["export", form, "secret.txt", "-q", "-o", "out"], flags].concat();
        place.whyslow().args(words).assert().success();
        let bytes = std::fs::read(place.join("out")).expect("it was written");
        if form == "pprof" {
            let mut plain = Vec::new();
            let mut packed = flate2::read::GzDecoder::new(&*bytes);
            std::io::copy(&mut packed, &mut plain).expect("it is packed");
            return plain;
        }
        bytes
    };
    let has = |bytes: &[u8], word: &str| {
        bytes
            .windows(word.len())
            .any(|part| part == word.as_bytes())
    };
    let mut shown = 0;
    for form in [
        "md",
        "svg",
        "perfetto",
        "otlp",
        "openmetrics",
        "collapsed",
        "speedscope",
        "firefox",
        "pprof",
    ] {
        let plain = written(form, &[]);
        assert!(has(&plain, "acmeshop"), "{form} does not name it");
        shown += SECRETS.iter().filter(|word| has(&plain, word)).count();
        let hidden = written(form, &["--redact=names"]);
        for word in SECRETS {
            assert!(!has(&hidden, word), "{form} has {word}");
        }
    }
    assert!(shown > 20, "only {shown} names were there to be hidden");
}

const STACKS: &str = "\
whyslow-text 1
1.000000000 [0] (tid=10 pid=10 comm=acmeshop) sched_switch prev=10 prev_comm=acmeshop prev_state=D next=0
1.030000000 [0] sched_switch prev=0 prev_state=R next=10 next_comm=acmeshop
1.030000000 [0] (tid=10 comm=acmeshop) stack kind=back since=1.000000000 state=D cpu=0 kernel=io_schedule;submit user=acme_orders;main
";

#[test]
fn exports_hide_what_they_are_told_to() {
    let place = made();
    place.write("stacks.txt", STACKS);
    let svg = |flags: &[&str]| {
        let all = [&["export", "svg", "stacks.txt"], flags].concat();
        stdout(place, &all)
    };
    assert!(svg(&[]).contains("stacks.txt") && svg(&[]).contains("acmeshop"));
    let texts = svg(&["--redact"]);
    assert!(!texts.contains("stacks.txt") && texts.contains("acmeshop"));
    let names = svg(&["--redact=names"]);
    assert!(!names.contains("acmeshop") && !names.contains("acme_orders"));
    assert!(names.contains("io_schedule"));
    assert!(svg(&["--redact=names", "--keep", "acme*"]).contains("acmeshop"));

    let collapsed = |flags: &[&str]| {
        let all = [
            &["export", "collapsed", "stacks.txt", "--redact=names"],
            flags,
        ]
        .concat();
        stdout(place, &all)
    };
    place.write("key", [7; 32]);
    let key = ["--redact-key", "key"];
    assert_eq!(collapsed(&key), collapsed(&key));
    assert_ne!(collapsed(&[]), collapsed(&[]));

    let part = [
        "export",
        "snapshot",
        "whole.wsl",
        "-w",
        WINDOW,
        "--redact",
        "-o",
        "hidden",
    ];
    let _ = stdout(place, &part);
    let whole = stdout(
        place,
        &["io", "log", "whole.wsl", "-w", WINDOW, "--csv", "-n", "0"],
    );
    let hidden = stdout(place, &["io", "log", "hidden", "--csv", "-n", "0"]);
    assert_eq!(hidden.lines().count(), whole.lines().count());
    assert!(whole.contains("/var/lib/board/board.db") && !hidden.contains("board.db"));
    assert!(stdout(place, &["info", "hidden"]).contains("texts"));
    assert!(!stdout(place, &["info", "hidden", "--json"]).contains("boardhost"));
}

#[test]
fn filters_by_what_is_hidden_are_refused() {
    let place = made();
    let check = |flags: &[&str], is_refused: bool| {
        let all = [&["export", "collapsed", "whole.wsl", "-w", WINDOW], flags].concat();
        let ended = place.whyslow().args(all).assert();
        if is_refused {
            ended.code(2);
        } else {
            ended.success();
        }
    };
    check(&["--redact", "-c", "apache2"], false);
    check(&["--redact=names", "-c", "apache2"], true);
    check(
        &["--redact=names", "-c", "apache2", "--keep", "apache2"],
        false,
    );
    check(&["--redact=names", "--keep", "apache[2"], true);
    check(&["--keep", "apache2"], true);
    check(&["--redact-key", "key"], true);
}
