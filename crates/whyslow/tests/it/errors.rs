//! Errors: message, cause, hint, exit code.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use whyslow_testkit::{Need, skip};

use crate::common::{self, Place, recorded};

/// Runs the program; expects the exit code and each part on stderr, and nothing on stdout.
fn check(place: &Place, args: &[&str], code: i32, parts: &[&str]) {
    let output = place.whyslow().args(args).assert().code(code);
    let said = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(output.get_output().stdout.is_empty(), "{args:?}");
    assert!(said.contains("error: "), "{args:?}: {said}");
    for part in parts {
        assert!(said.contains(part), "{args:?}: `{part}` is not in {said}");
    }
}

#[test]
fn wrong_words_are_exit_code_2_with_the_right_ones() {
    let place = recorded();
    let usage = |args: &[&str], parts: &[&str]| check(place, args, 2, parts);
    usage(&["io", "slowest"], &["slowest"]);
    for words in [&["io", "t.wsl"][..], &["t.wsl"], &["as", "@last"]] {
        usage(words, &["name the recording after the command"]);
    }
    usage(
        &["io", "top", "t.wsl", "--min", "200"],
        &["200us, 200ms or 200s"],
    );
    usage(&["io", "top", "t.wsl", "--min-size", "2x"], &["4096, 8k"]);
    usage(
        &["io", "top", "t.wsl", "--min", "2s", "--max", "1s"],
        &["cannot match any row"],
    );
    usage(
        &["io", "top", "t.wsl", "-w", "12:18:37"],
        &["a point in time", "+200ms"],
    );
    usage(
        &["io", "top", "t.wsl", "-w", "noon..night"],
        &["`noon` is not a time"],
    );
    usage(
        &["io", "top", "t.wsl", "-w", "12:18:36.5..13:00"],
        &["2 days", "2015-01-16, 2015-01-17"],
    );
    usage(&["io", "top", "t.wsl", "-w", "op:999999"], &["999999"]);
    usage(
        &["io", "top", "t.wsl", "-w", "finding:1"],
        &["not supported yet"],
    );
    usage(
        &[
            "io",
            "top",
            "t.wsl",
            "-w",
            "2014-01-01 00:00..2014-01-02 00:00",
        ],
        &[
            "outside of the recording",
            "hint: choose a window from 2015-01-15 12:18:37.2",
        ],
    );
    usage(&["io", "top", "t.wsl", "--sort", "speed"], &["speed"]);
    usage(
        &["io", "top", "t.wsl", "--sort", "dur_ns:up"],
        &["asc or desc"],
    );
    usage(&["io", "top", "t.wsl", "--by", "color"], &["color"]);
    usage(
        &["io", "top", "t.wsl", "--cols", "color"],
        &["unknown column `color`", "dur_ns"],
    );
    usage(
        &["io", "top", "t.wsl", "--table", "x"],
        &["unknown table `x`"],
    );
    usage(
        &["io", "top", "t.wsl", "--tz", "Mars/Olympus"],
        &["Europe/Berlin"],
    );
    usage(&["io", "stats", "t.wsl", "x"], &["units: ns"]);
    usage(
        &["io", "stats", "t.wsl", "1", "0"],
        &["as the count of intervals"],
    );
    usage(&["man", "nothing"], &["unknown command `nothing`"]);
    usage(
        &["io", "stats", "t.wsl", "--format", "arrow"],
        &["several", "hint: add --table"],
    );
}

#[test]
fn without_a_recording_it_says_how_to_get_one() {
    let place = Place::new();
    check(
        &place,
        &["io", "top"],
        2,
        &[
            "cannot open a recording: none specified",
            "hint: ",
            "whyslow import TRACE",
        ],
    );
    check(
        &place,
        &["io", "top", "no.wsl"],
        1,
        &["`no.wsl`", "hint: make one: whyslow import"],
    );
    place.write("t.txt", common::TRACE);
    place
        .whyslow()
        .args(["import", "t.txt", "-o", "x.wsl"])
        .assert()
        .success();
    std::fs::remove_dir_all(place.join("x.wsl")).expect("it was made");
    check(&place, &["io", "top"], 1, &["x.wsl` no longer exists"]);
}

#[test]
fn what_is_no_trace_is_named() {
    let place = Place::new();
    std::fs::create_dir(place.join("empty")).expect("a temporary folder");
    place.write("zeros", [0; 4096]);
    place.write("nothing", "");
    place.write("shell.tar.xz", "#!/bin/sh\n");
    for name in ["empty", "zeros", "nothing", "shell.tar.xz"] {
        for args in [&["import", name, "-o", "x.wsl"][..], &["io", "top", name]] {
            check(&place, args, 1, &[name]);
        }
    }
    check(
        &place,
        &["import", "missing"],
        1,
        &["`missing`", "No such file", "hint: "],
    );
    check(&place, &["import", "/"], 2, &["hint: name it"]);
    assert!(!place.join("x.wsl").exists());
}

#[test]
fn a_recording_is_not_overwritten_without_force() {
    let place = Place::new();
    place.write("t.txt", common::TRACE);
    place
        .whyslow()
        .args(["import", "t.txt", "-o", "x.wsl"])
        .assert()
        .success();
    check(
        &place,
        &["import", "t.txt", "-o", "x.wsl"],
        1,
        &["already exists", "hint: replace it: --force"],
    );
    place
        .whyslow()
        .args(["import", "t.txt", "-o", "x.wsl", "--force"])
        .assert()
        .success();
    check(
        &place,
        &["import", "x.wsl", "-o", "y.wsl"],
        1,
        &["already a recording", "whyslow info"],
    );
    place.write("precious", "data");
    check(
        &place,
        &["import", "t.txt", "-o", "precious", "--force"],
        1,
        &["precious"],
    );
    assert_eq!(
        std::fs::read(place.join("precious")).expect("still there"),
        b"data"
    );
}

#[test]
fn a_damaged_recording_says_what_is_damaged() {
    let place = Place::new();
    place.write("t.txt", common::TRACE);
    let damage = |name: &str, file: &str, bytes: &[u8]| {
        place
            .whyslow()
            .args(["import", "t.txt", "-o", name])
            .assert()
            .success();
        std::fs::write(place.join(name).join(file), bytes).expect("ours");
    };
    damage("a.wsl", "manifest.json", b"{");
    check(&place, &["io", "top", "a.wsl"], 1, &["a.wsl"]);
    damage("b.wsl", "syscall.parquet", b"PAR1 nonsense PAR1");
    check(
        &place,
        &["io", "top", "b.wsl"],
        1,
        &["table `syscall`", "hint: import the trace again"],
    );
    damage("c.wsl", "syscall.parquet", b"");
    check(&place, &["io", "top", "c.wsl"], 1, &["syscall"]);
    damage("d.wsl", "manifest.json", br#"{"format_version": 999}"#);
    check(
        &place,
        &["io", "top", "d.wsl"],
        1,
        &["999", "newer whyslow"],
    );
}

#[test]
fn what_may_not_be_read_or_written_is_told_with_a_way_out() {
    let place = Place::new();
    place.write("t.txt", common::TRACE);
    check(
        &place,
        &["io", "top", "t.txt", "-q", "-o", "no/such/folder/x.json"],
        1,
        &["cannot write `no/such/folder/x.json`", "No such file"],
    );
    check(
        &place,
        &["import", "t.txt", "-o", "no/such/folder/x.wsl"],
        1,
        &["no/such/folder", "hint: create the directory"],
    );
    if rustix::process::geteuid().is_root() {
        skip(Need::NotRoot, "root may read and write everything");
        return;
    }
    let secret = place.write("secret", common::TRACE);
    let no_access = std::fs::Permissions::from_mode(0o000);
    std::fs::set_permissions(secret, no_access).expect("ours");
    check(
        &place,
        &["import", "secret", "-o", "s.wsl"],
        1,
        &["Permission denied", "hint: "],
    );
}

#[test]
fn a_full_disk_is_an_error_and_no_answer() {
    let place = recorded();
    let full = std::path::Path::new("/dev/full");
    if !full.exists() {
        return skip(Need::Machine, "there is no /dev/full");
    }
    check(
        place,
        &["io", "log", "t.wsl", "--json", "-o", "/dev/full"],
        1,
        &["cannot write `/dev/full`", "No space left"],
    );
    let device = std::fs::File::options()
        .write(true)
        .open(full)
        .expect("a device");
    let output = std::process::Command::new(assert_cmd::cargo::cargo_bin("whyslow"))
        .current_dir(place.path())
        .env("XDG_STATE_HOME", place.join("state"))
        .args(["io", "log", "t.wsl"])
        .stdout(device)
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("No space left"));
}

#[test]
fn import_ends_with_counts_and_strict_refuses_losses() {
    let place = Place::new();
    place.write("t.txt", common::TRACE);
    let output = place
        .whyslow()
        .args(["import", "t.txt", "-o", "x.wsl"])
        .assert()
        .success();
    let said = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(output.get_output().stdout.is_empty());
    assert!(
        said.contains("x.wsl: ") && said.contains(" accepted, "),
        "{said}"
    );
    assert!(said.contains("events were lost in 1 time range"), "{said}");
    let quiet = place
        .whyslow()
        .args(["import", "t.txt", "-q", "--force"])
        .assert()
        .success();
    assert!(quiet.get_output().stderr.is_empty());
    place
        .whyslow()
        .args(["import", "t.txt", "-o", "y.wsl", "--strict"])
        .assert()
        .code(3);
}

#[test]
fn help_version_completions_manual_and_schema_are_there() {
    let place = Place::new();
    let help = place.stdout(&["--help"]);
    let examples = help.find("Examples:").expect("examples");
    assert!(
        examples < help.find("Commands:").expect("commands"),
        "examples come first"
    );
    assert!(place.stdout(&["--version"]).starts_with("whyslow "));
    for shell in ["bash", "zsh", "fish"] {
        assert!(place.stdout(&["completions", shell]).contains("whyslow"));
    }
    assert!(place.stdout(&["man"]).contains(".TH whyslow"));
    assert!(place.stdout(&["man", "io", "top"]).contains("overlaps"));
    place.stdout(&["man", "--dir", "pages"]);
    assert!(place.join("pages/whyslow-io-top.1").exists());
    for what in ["answer", "ndjson", "progress"] {
        let schema: serde_json::Value =
            serde_json::from_str(&place.stdout(&["schema", what])).expect("JSON");
        assert!(schema["$schema"].is_string());
    }
}

#[test]
fn names_of_other_tools_are_answered_with_the_command_to_type() {
    let place = recorded();
    let sudo = if rustix::process::geteuid().is_root() {
        ""
    } else {
        "sudo "
    };
    let check_tool = |args: &[&str], command: &str| {
        let hint = format!("hint: {sudo}whyslow {command}");
        check(place, args, 2, &["cannot run `", &hint]);
    };
    check_tool(&["iostat", "-x", "1"], "as iostat @live -x 1");
    check_tool(&["strace", "-p", "77"], "syscalls log @live 1 -p 77");
    check_tool(&["as", "vmstat", "1"], "use @live 1");
    check(place, &["help", "vmstat"], 2, &["use @live 1"]);
}

#[test]
fn the_words_of_other_programs_for_help_work() {
    let place = recorded();
    let version = place.stdout(&["version"]);
    assert_eq!(version, place.stdout(&["--version"]));
    assert_eq!(place.stdout(&["help"]), place.stdout(&["--help"]));
    assert_eq!(
        place.stdout(&["help", "io", "top"]),
        place.stdout(&["io", "top", "--help"])
    );
    let report = place.stdout(&["report", "t.wsl"]);
    assert_eq!(report, place.stdout(&["explain", "t.wsl"]));
    let formats = place.stdout(&["import", "--formats"]);
    assert!(formats.contains("perf record -k"), "{formats}");
    assert_eq!(formats, place.stdout(&["help", "formats"]));
    // Not a terminal: nothing is recorded.
    let short = place.whyslow().assert().code(2);
    let said = String::from_utf8_lossy(&short.get_output().stderr).into_owned();
    assert_eq!(said, place.stdout(&["-h"]));
}

#[test]
fn what_cannot_be_imported_refers_to_the_list_of_formats() {
    let place = Place::new();
    place.write("zeros", [0; 4096]);
    let output = place
        .whyslow()
        .args(["import", "././zeros"])
        .assert()
        .code(1);
    let said = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(said.contains("cannot import `zeros`: it is "), "{said}");
    assert!(said.contains("hint: list the formats that can be imported: whyslow import --formats"));
    assert!(said.len() < 300, "{said}");
}

/// The program as a user other than the owner of the files, if root runs the tests.
fn as_another_user(place: &Place) -> Option<Command> {
    let built = place.whyslow().get_program().to_owned();
    if !rustix::process::geteuid().is_root() {
        return Some(Command::new(built));
    }
    const NOBODY: u32 = 65_534;
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.path(), open.clone()).expect("ours");
    let copy = place.join("whyslow");
    std::fs::copy(built, &copy).expect("a temporary folder takes it");
    std::fs::set_permissions(&copy, open).expect("ours");
    let home = place.join("nobody");
    std::fs::create_dir(&home).expect("a temporary folder takes it");
    std::os::unix::fs::chown(&home, Some(NOBODY), Some(NOBODY)).ok()?;
    let mut command = Command::new(copy);
    command.uid(NOBODY).gid(NOBODY).env("HOME", &home);
    for name in ["XDG_STATE_HOME", "XDG_CACHE_HOME"] {
        command.env(name, &home);
    }
    Some(command)
}

#[test]
fn a_recording_of_another_user_is_named_with_what_helps() {
    let place = Place::new();
    place.write("t.txt", common::TRACE);
    let import = ["import", "t.txt", "-o", "t.wsl"];
    place.whyslow().args(import).assert().success();
    let Some(mut command) = as_another_user(&place) else {
        return skip(Need::Isolation, "root cannot become another user here");
    };
    let none = std::fs::Permissions::from_mode(0o000);
    let mut check = |locked: &str| {
        let path = place.join(locked);
        let before = path.metadata().expect("it is there").permissions();
        std::fs::set_permissions(&path, none.clone()).expect("ours");
        command.current_dir("/").args(["io", "stats"]);
        let output = command.arg(place.join("t.wsl")).output();
        std::fs::set_permissions(&path, before).expect("ours");
        let output = match output {
            Ok(output) => output,
            Err(error) => {
                return skip(Need::Isolation, error);
            }
        };
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{locked}: {said}");
        for part in [
            "cannot open",
            "t.wsl",
            "Permission denied",
            "hint: ",
            "chown",
        ] {
            assert!(said.contains(part), "{locked}: `{part}` is not in {said}");
        }
        assert!(!said.contains("cache"), "{said}");
    };
    check("t.wsl");
}

#[test]
fn an_import_to_a_place_of_another_user_says_to_write_elsewhere() {
    let place = Place::new();
    let trace = place.write("t.txt", common::TRACE);
    let Some(mut command) = as_another_user(&place) else {
        return skip(Need::Isolation, "root cannot become another user here");
    };
    let locked = place.join("locked");
    std::fs::create_dir(&locked).expect("a temporary folder takes it");
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o555)).expect("ours");
    let mut said = |args: &[&std::ffi::OsStr]| {
        let output = command.args(args).env("XDG_CACHE_HOME", &locked).output();
        let Ok(output) = output else {
            skip(
                Need::Isolation,
                "the program cannot be started as another user",
            );
            return None;
        };
        assert_eq!(output.status.code(), Some(1));
        Some(String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let output = locked.join("x.wsl");
    let import = [
        "import".as_ref(),
        trace.as_os_str(),
        "-o".as_ref(),
        output.as_os_str(),
    ];
    let Some(said) = said(&import) else {
        return;
    };
    for part in ["Permission denied", "hint: write to another directory"] {
        assert!(said.contains(part), "`{part}` is not in {said}");
    }
    assert!(
        !said.contains("chown"),
        "the trace is not the trouble: {said}"
    );
}
