//! `--host-paths`: files used by processes in other mount namespaces and chroots, by the names that
//! this test gave them.

use std::fs;

use whyslow_testkit::{Need, skip};

use super::{can_record, rows};
use crate::common::Place;

#[test]
fn files_behind_mounts_and_other_roots_have_the_names_of_the_host() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    for folder in ["data", "jail"] {
        fs::create_dir(place.join(folder)).expect("a disk");
    }
    for (name, text) in [
        ("data/bound", "1"),
        ("data/jailed", "2"),
        ("data/plain", "3"),
    ] {
        place.write(name, text);
    }
    // The chroot is the root file system mounted at another directory, with the data in it.
    let script = "\
        cat data/plain >/dev/null
        exec unshare -m sh -c '
            mount --bind $PWD/data /mnt && mount --bind / $PWD/jail &&
                mount --bind $PWD/data $PWD/jail/mnt || exit 4
            sleep 1 | cat /mnt/bound - >/dev/null
            sleep 1 | chroot $PWD/jail cat /mnt/jailed /etc/passwd - >/dev/null'";
    let output = place
        .whyslow()
        .args([
            "-q", "record", "-o", "rec.wsl", "--", "/bin/sh", "-c", script,
        ])
        .output()
        .expect("it starts");
    if output.status.code() == Some(4) {
        return skip(Need::Isolation, "nothing can be mounted here");
    }
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let opened = |options: &[&str]| {
        let query = ["io", "log", "rec.wsl", "--comm", "cat", "--op", "open"];
        let rows = rows(&place, &[&query[..], options].concat());
        let paths = rows.iter().filter_map(|row| row["path"].as_str());
        paths.map(str::to_owned).collect::<Vec<_>>()
    };
    let own = |name: &str| place.join(name).display().to_string();
    let seen = opened(&[]);
    for path in [
        &own("data/plain"),
        "/mnt/bound",
        "/mnt/jailed",
        "/etc/passwd",
    ] {
        assert!(seen.iter().any(|seen| seen == path), "{path}: {seen:?}");
    }
    let on_host = opened(&["--host-paths"]);
    for path in ["data/plain", "data/bound", "data/jailed"].map(own) {
        assert!(on_host.contains(&path), "{path}: {on_host:?}");
    }
    assert!(
        on_host.iter().any(|path| path == "/etc/passwd"),
        "{on_host:?}"
    );
    assert!(
        !on_host.iter().any(|path| path.starts_with("/mnt/")),
        "{on_host:?}"
    );
    // Groups and filters use these paths.
    let glob = own("data/*");
    let query = ["files", "usage", "rec.wsl", "--host-paths", "--file", &glob];
    let files = rows(&place, &[&query[..], &["--comm", "cat"]].concat());
    let mut used: Vec<&str> = files
        .iter()
        .filter_map(|row| row["file"].as_str())
        .collect();
    used.sort_unstable();
    let expected = ["data/bound", "data/jailed", "data/plain"].map(own);
    assert_eq!(used, expected);
}

#[test]
fn a_trace_without_mounts_cannot_tell() {
    let place = crate::common::recorded();
    let output = place
        .whyslow()
        .args(["io", "log", "t.wsl", "--host-paths"])
        .assert()
        .failure();
    let said = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(said.contains("mounts not recorded"), "{said}");
}
