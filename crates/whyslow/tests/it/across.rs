//! `explain --across`: from the client's recording to other hosts, whose clocks differ by seconds.

use serde_json::Value;

use crate::common::Place;

fn fixture(name: &str) -> String {
    let path = whyslow_testkit::fixture("across");
    path.join(name).display().to_string()
}

/// The three hosts, and the load of the first.
fn place() -> Place {
    let place = Place::new();
    for name in ["cli", "app", "db"] {
        let (from, to) = (fixture(&format!("{name}.txt")), format!("{name}.wsl"));
        place
            .whyslow()
            .args(["import", &from, "-o", &to])
            .assert()
            .success();
    }
    let load = fixture("load.ndjson");
    place
        .whyslow()
        .args(["import", &load, "-o", "load.wsl"])
        .assert()
        .success();
    place
}

fn report(place: &Place, args: &[&str]) -> Value {
    let out = place.stdout(&[&["explain"], args, &["--json"]].concat());
    serde_json::from_str(&out).expect("one JSON document")
}

#[test]
fn the_culprit_two_hosts_away_is_named_with_its_host() {
    let place = place();
    let check = |args: &[&str]| {
        let report = report(&place, args);
        let finding = &report["findings"][0];
        let text = finding["verdict"].as_str().expect("a verdict");
        assert!(
            text.contains("on host db, where session[30]"),
            "{args:?}: {text}"
        );
        let part = &finding["parts"][finding["culprit"].as_u64().expect("a culprit") as usize];
        assert_eq!(part["culprit"]["host"], "db", "{args:?}");
        assert_eq!(part["culprit"]["tid"], 31, "{args:?}");
        let sum: i64 = finding["parts"]
            .as_array()
            .expect("parts")
            .iter()
            .map(|part| part["dur_ns"].as_i64().expect("ns"))
            .sum();
        let target = &finding["target"];
        let length = target["end_ns"].as_i64().zip(target["begin_ns"].as_i64());
        assert_eq!(
            Some(sum),
            length.map(|(end, begin)| end - begin),
            "{args:?}"
        );
        let clock = &finding["across"][0]["clock"];
        let bounds = ["low_ns", "high_ns"].map(|name| clock[name].as_i64().expect("ns"));
        assert!(
            bounds[0] <= 3_700_000_000 && 3_700_000_000 <= bounds[1],
            "{bounds:?}"
        );
    };
    let both = ["--across", "app.wsl,db.wsl"];
    check(&[&["cli.wsl", "--slow", "recvfrom>100ms"], &both[..]].concat());
    check(&[&["cli.wsl"], &both[..]].concat());
    check(&[
        "load.wsl",
        "--request",
        "17",
        "--across",
        "db.wsl",
        "--across",
        "app.wsl",
    ]);
    check(&[&["load.wsl"], &both[..]].concat());
}

#[test]
fn people_read_which_host_it_was_and_what_its_clock_was() {
    let place = place();
    let text = place.stdout(&[
        "explain",
        "load.wsl",
        "--request",
        "17",
        "--across",
        "app.wsl,db.wsl",
    ]);
    for part in [
        "vacuum[30/31] on db",
        "on app (app.wsl) by connection",
        "the clock of app was 3.",
        "the clock of db was 4.9",
        "s behind",
        "--across app.wsl,db.wsl",
    ] {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(part), "{part}: {text}");
    }
}

#[test]
fn what_cannot_be_followed_is_refused_with_a_word_on_it() {
    let place = place();
    let check = |args: &[&str], part: &str| {
        let run = place.whyslow().args(args).assert().failure();
        let message = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
        assert!(message.contains(part), "{args:?}: {message}");
    };
    check(
        &["explain", "cli.wsl", "--across", "app.wsl,app.wsl"],
        "cannot follow requests into app.wsl: --across lists it twice",
    );
    check(&["explain", "cli.wsl", "--across", "none.wsl"], "none.wsl");
    check(
        &["explain", "cli.wsl", "-d", "sda", "--across", "app.wsl"],
        "cannot be used with",
    );
    let report = report(&place, &["db.wsl", "--across", "app.wsl"]);
    let caveats = report["caveats"].to_string();
    assert!(
        caveats.contains("nothing to follow into app.wsl"),
        "{caveats}"
    );
}
