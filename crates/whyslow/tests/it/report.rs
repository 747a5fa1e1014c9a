//! Reports: findings as one page and as text.

use std::fs;

use whyslow_testkit::{Need, skip};

use crate::common::recorded;

#[test]
fn a_report_is_one_document_that_asks_nobody() {
    let place = recorded();
    let mut command = place.whyslow();
    command.args(["export", "html", "t.wsl", "-o", "report.html"]);
    let done = command.output().expect("it runs");
    if String::from_utf8_lossy(&done.stderr).contains("this build has no web pages") {
        skip(
            Need::Pages,
            "the pages that a report is made of are not built: ./dev ui",
        );
        return;
    }
    assert!(done.status.success(), "{done:?}");
    let text = fs::read_to_string(place.join("report.html")).expect("it is there");
    assert!(text.contains("default-src 'none'"));
    for outside in [
        "src=\"http",
        "href=\"http",
        "src=\"app.js",
        "href=\"app.css",
    ] {
        assert!(!text.contains(outside), "{outside}");
    }
}

#[test]
fn as_text_it_has_what_was_found_and_tables() {
    let text = recorded().stdout(&["export", "md", "t.wsl"]);
    assert!(text.starts_with("# t.wsl "), "{text}");
    assert!(text.contains("host web1"), "{text}");
    assert!(text.contains("\n## Input and output\n"), "{text}");
    assert!(text.contains("| openat |"), "{text}");
    assert!(text.contains("\n## Notes\n"), "{text}");
    // Names are chosen by the users of the recorded machine.
    assert!(!text.contains('\u{1b}'), "{text}");
}

#[test]
fn what_is_to_be_hidden_is_in_no_report() {
    let place = recorded();
    let text = place.stdout(&["export", "md", "t.wsl", "--redact"]);
    assert!(text.starts_with("# redacted.wsl "), "{text}");
    assert!(!text.contains("web1"), "{text}");
    let whole = place.stdout(&["export", "md", "t.wsl"]);
    let rows = |text: &str| text.lines().filter(|line| line.starts_with('|')).count();
    assert_eq!(rows(&whole), rows(&text), "otherwise it is the same");
}
