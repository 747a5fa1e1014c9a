//! USDT probes, against a program that hits them a given number of times, and against an
//! interpreter's own probes.

use std::process::Command;

use serde_json::Value;
use whyslow_testkit::{Need, skip};

use super::compiled::compiled;
use super::{can_record, rows};
use crate::common::Place;

/// The program with its probes, under a unique name.
fn is_built(place: &Place, name: &str, options: &[&str]) -> bool {
    compiled(place, name, "usdt.c", &[&["-O2"], options].concat()).is_some()
}

/// Records a command with these probes; returns its output.
fn run(place: &Place, probes: &[&str], command: &[&str]) -> String {
    let mut whyslow = place.whyslow();
    whyslow.args([
        "-q", "record", "--force", "-o", "rec.wsl", "--what", "sched",
    ]);
    for probe in probes {
        whyslow.args(["--usdt", probe]);
    }
    let done = whyslow.arg("--").args(command).output().expect("it starts");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    String::from_utf8_lossy(&done.stdout).into_owned()
}

fn of<'r>(all: &'r [Value], name: &str) -> Vec<&'r Value> {
    all.iter().filter(|row| row["name"] == name).collect()
}

#[test]
fn probes_are_told_with_arguments_from_wherever_they_are() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    for (name, options) in [("usdt53", &["-pie"][..]), ("usdt59", &["-no-pie"])] {
        if !is_built(&place, name, options) {
            return;
        }
        let plain = format!("./{name}:tests:plain#,,str");
        let gated = format!("./{name}:tests:gat*");
        let printed = run(&place, &[&plain, &gated], &[&format!("./{name}")]);
        // All locations of the probe are recorded.
        assert_eq!(
            printed.trim(),
            if cfg!(target_arch = "x86_64") {
                "2"
            } else {
                "0"
            }
        );
        let all = rows(&place, &["usdt", "log", "rec.wsl"]);
        let (plain, gated) = (of(&all, "plain"), of(&all, "gated"));
        assert_eq!((plain.len(), gated.len()), (31, 44), "{name}");
        for (number, row) in plain.iter().enumerate() {
            assert_eq!(row["arg1"], -(number as i64), "{row}");
            assert_eq!(row["arg2"], (200 + number) as i64, "{row}");
            assert_eq!(row["text"], format!("text {number}"), "{row}");
            let rest = ["arg4", "arg5", "arg6", "arg8"].map(|arg| row[arg].as_i64());
            assert_eq!(rest, [Some(22), Some(-5), Some(33), Some(7)], "{row}");
            // An argument that is not an integer, and no arguments.
            assert!(row["arg7"].is_null() && row["arg9"].is_null(), "{row}");
            assert_eq!(
                (&row["provider"], &row["comm"]),
                (&"tests".into(), &name.into())
            );
        }
        for (number, row) in gated.iter().take(43).enumerate() {
            assert_eq!(row["arg1"], (number * 3) as i64, "{row}");
        }
        assert_eq!(gated[43]["arg1"], 1000);
        let usage = rows(&place, &["usdt", "usage", "rec.wsl"]);
        let counts = usage.iter();
        let counts = counts.map(|row| (row["name"].as_str(), row["count"].as_i64()));
        let counts: Vec<_> = counts.collect();
        assert_eq!(
            counts,
            [(Some("gated"), Some(44)), (Some("plain"), Some(31))]
        );
    }
}

/// The machine's Python, if it has probes.
fn python() -> Option<&'static str> {
    ["/usr/bin/python3.11", "/usr/bin/python3"]
        .into_iter()
        .find(|path| {
            let notes = Command::new("readelf").args(["-n", path]).output();
            notes.is_ok_and(|notes| String::from_utf8_lossy(&notes.stdout).contains("gc__start"))
        })
}

#[test]
fn an_interpreter_tells_of_its_collections_and_imports() {
    if !can_record() {
        return;
    }
    let Some(python) = python() else {
        return skip(Need::Python, "no python3 with probes in /usr/bin");
    };
    let place = Place::new();
    // By its absolute path: another program of that name may come first in PATH.
    let probe = |name: &str| format!("{python}:python:{name}");
    let script = "import gc\ngc.disable()\nfor _ in range(41): gc.collect(1)\nimport colorsys";
    let imports = probe("import__find__load__start#str");
    run(
        &place,
        &[&probe("gc__*"), &imports],
        &[python, "-c", script],
    );
    let all = rows(&place, &["usdt", "log", "rec.wsl"]);
    let starts = of(&all, "gc__start");
    let of_generation = starts.iter().filter(|row| row["arg1"] == 1).count();
    assert!(of_generation >= 41, "{starts:?}");
    assert_eq!(starts.len(), of(&all, "gc__done").len());
    let imported = of(&all, "import__find__load__start");
    assert!(
        imported.iter().any(|row| row["text"] == "colorsys"),
        "{imported:?}"
    );
}

#[test]
fn a_probe_that_is_not_there_has_others_that_are_near() {
    let place = Place::new();
    if !can_record() || !is_built(&place, "usdt61", &[]) {
        return;
    }
    let check = |probe: &str, parts: &[&str]| {
        let output = place
            .whyslow()
            .args(["record", "-o", "no.wsl", "--usdt", probe, "--", "true"])
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{probe}");
        for part in parts {
            assert!(said.contains(part), "{probe}: {said}");
        }
    };
    check(
        "./usdt61:tests:plian",
        &[
            "cannot probe `tests:plian`: no such USDT probe in",
            "hint: use a similar name: tests:plain",
        ],
    );
    check("./usdt61:plain", &["FILE:PROVIDER:NAME"]);
    check(
        "/bin/sh:tests:plain",
        &["no such USDT probe in", "readelf -n"],
    );
}
