//! The demo: what its text promises is in the answers.

use std::path::Path;
use std::process::Command;

use whyslow_testkit::{Need, skip};

use crate::common::Place;

#[test]
fn the_demo_finds_the_slow_open_and_the_sync_across_it() {
    let place = Place::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new("bash")
        .arg("docs/demo.sh")
        .current_dir(root)
        .env("WHYSLOW", place.whyslow().get_program())
        .env("WORK", place.path())
        .env("FIXTURE", "fixtures/web-incident/trace.tar.zst")
        .env("XDG_STATE_HOME", place.join("state"))
        .output()
        .expect("bash runs");
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("this build has no web pages") {
        skip(
            Need::Pages,
            "the pages are not built, which the demo ends with: ./dev ui",
        );
        return;
    }
    assert!(output.status.success(), "{said}");
    let transcript = String::from_utf8_lossy(&output.stdout);
    let (whole, cut) = transcript
        .split_once("# Cut the window")
        .expect("the window is cut");
    let row = |text: &str, parts: &[&str]| {
        let found = |line: &&str| parts.iter().all(|part| line.contains(part));
        text.lines().find(found).map(str::to_owned)
    };
    let open = ["openat", "apache2", "/var/lib/php/sessions/sess_"];
    let worst = row(whole, &open).unwrap_or_else(|| panic!("no slow open in {whole}"));
    assert!(worst.contains(" 158.093 "), "{worst}");
    let again = row(cut, &open).unwrap_or_else(|| panic!("no slow open in {cut}"));
    assert!(!again.starts_with('*'), "{again}");
    let sync = row(cut, &["sync", "339"]).unwrap_or_else(|| panic!("no sync in {cut}"));
    assert!(sync.starts_with('*'), "{sync}");
    assert!(cut.contains("* started before the window, or still in progress at its end"));
    assert!(row(cut, &["sda", "write", "jbd2"]).is_some(), "{cut}");
    let (_, explained) = transcript
        .split_once("in one query")
        .expect("it is explained");
    let explained = explained.split_whitespace().collect::<Vec<_>>().join(" ");
    let report =
        std::fs::read_to_string(place.join("incident.html")).expect("the report is written");
    assert!(
        report.contains("sync (pid 339)"),
        "its findings are shown without scripts, too"
    );
    for said in [
        "apache2 (pid 243): request 124 took 161 ms",
        "openat() of apache2 (pid 243) (158 ms)",
        "sync (pid 339) ran sync() for 1.46 s and most likely flushed dirty pages to sda.",
    ] {
        assert!(explained.contains(said), "{said}: {explained}");
    }
}
