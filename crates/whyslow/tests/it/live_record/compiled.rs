//! C programs of this directory, compiled before they are recorded.

use std::path::{Path, PathBuf};
use std::process::Command;

use whyslow_testkit::{Need, skip};

use crate::common::Place;

/// A program under a unique name; `None`, with a skip message, without a compiler.
pub(super) fn compiled(
    place: &Place,
    name: &str,
    source: &str,
    options: &[&str],
) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/live_record")
        .join(source);
    let path = place.join(name);
    let made = Command::new("cc")
        .args(options)
        .arg("-o")
        .arg(&path)
        .arg(source)
        .status();
    if !made.is_ok_and(|status| status.success()) {
        skip(Need::Compiler, "no C compiler");
        return None;
    }
    Some(path)
}

/// Records a program with these options; returns its output.
pub(super) fn recorded(place: &Place, options: &[&str], program: &Path, args: &[&str]) -> String {
    let done = place
        .whyslow()
        .args(["-q", "record", "--force", "-o", "rec.wsl"])
        .args(options)
        .arg("--")
        .arg(program)
        .args(args)
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    String::from_utf8(done.stdout).expect("text")
}
