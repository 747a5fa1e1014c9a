//! Identity of processes: command lines, users, cgroups, mount namespaces.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use whyslow_testkit::{Need, skip};

use super::{can_record, record, rows};
use crate::common::Place;

fn threads(place: &Place, filter: &[&str]) -> Vec<Value> {
    rows(place, &[&["threads", "list", "rec.wsl"], filter].concat())
}

#[test]
fn a_command_of_a_millisecond_has_its_words() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    record(
        &place,
        &[],
        "/bin/true 7919 'two words' \"it's\" '' 'a\nline' '\u{e9}'; exec /bin/true",
    );
    let threads = threads(&place, &["--comm", "true"]);
    let commands: Vec<&str> = threads
        .iter()
        .filter_map(|row| row["command"].as_str())
        .collect();
    let expected = "/bin/true 7919 'two words' 'it'\\''s' '' 'a\nline' \u{e9}";
    assert!(commands.contains(&expected), "{commands:?}");
    // The state before exec does not count.
    assert!(commands.contains(&"/bin/true"), "{commands:?}");
}

#[test]
fn a_long_command_line_is_cut_and_not_lost() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    record(&place, &[], "/bin/true $(seq 100000 101000); true");
    let threads = threads(&place, &["--comm", "true"]);
    let words = (100_000..=101_000).map(|number| format!(" {number}"));
    let whole = format!("/bin/true{}", words.collect::<String>());
    let mut commands = threads.iter().filter_map(|row| row["command"].as_str());
    assert!(
        commands.any(|command| *command == whole[..4096]),
        "{threads:?}"
    );
}

#[test]
fn whose_a_process_is_is_told_also_if_that_changes() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let script = "\
        setpriv --reuid=65534 --clear-groups /bin/sleep 0.011 || touch missing; \
        python3 -c 'import os; os.setuid(65533); os._exit(0)' 5393 || touch missing; \
        /bin/sleep 0.013";
    record(&place, &[], script);
    if place.join("missing").exists() {
        return skip(
            Need::Isolation,
            "setpriv or python3 is not installed, or may not change the user",
        );
    }
    let user = |comm: &str, end: &str| {
        let threads = threads(&place, &["--comm", comm]);
        let is_it = |row: &&Value| {
            row["command"]
                .as_str()
                .is_some_and(|text| text.ends_with(end))
        };
        let row = threads.iter().find(is_it);
        row.unwrap_or_else(|| panic!("{end} among {threads:?}"))["user"].clone()
    };
    let passwd = fs::read_to_string("/etc/passwd").expect("there is one");
    let name = |uid: &str| {
        let mut users = passwd
            .lines()
            .map(|line| line.split(':').collect::<Vec<_>>());
        let user = users.find(|user| user.get(2) == Some(&uid));
        user.map_or_else(|| uid.to_owned(), |user| user[0].to_owned())
    };
    assert_eq!(user("sleep", " 0.011"), name("65534"));
    assert_eq!(user("python*", " 5393"), name("65533"));
    assert_eq!(user("sleep", " 0.013"), name("0"));
}

/// A cgroup of one hierarchy, removed on drop.
struct Group(PathBuf);

impl Group {
    fn new(name: &str) -> Option<Self> {
        let roots = ["pids", "memory", "freezer", "unified", ""];
        let roots = roots.map(|root| PathBuf::from("/sys/fs/cgroup").join(root));
        let mut places = roots
            .into_iter()
            .filter(|root| root.join("cgroup.procs").exists());
        let place = places.next()?.join("whyslow-test").join(name);
        fs::create_dir_all(&place).ok()?;
        Some(Self(place))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
        let _ = self.0.parent().map(fs::remove_dir);
    }
}

#[test]
fn control_groups_and_containers_are_handed_down_to_the_shortest_lives() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let id = format!("{:064x}", std::process::id());
    let Some(group) = Group::new(&id) else {
        return skip(Need::Isolation, "no control group can be made here");
    };
    // The recorder itself moves there, and so do its children.
    let script = format!(
        "echo $$ >{}/cgroup.procs && exec {} -q record -o rec.wsl -- /bin/sh -c '/bin/true 3253; :'",
        group.0.display(),
        env!("CARGO_BIN_EXE_whyslow")
    );
    let output = Command::new("/bin/sh")
        .args(["-c", &script])
        .current_dir(place.path())
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("cgroup.procs") {
        return skip(
            Need::Isolation,
            format!("processes cannot be moved to a cgroup here: {said}"),
        );
    }
    assert!(output.status.success(), "{said}");
    let threads = threads(
        &place,
        &[
            "--cgroup",
            &format!("*/whyslow-test/{id}"),
            "--comm",
            "true",
        ],
    );
    let [row] = threads.as_slice() else {
        panic!("{threads:?}");
    };
    assert_eq!(row["command"], "/bin/true 3253");
    assert_eq!(row["container"], id.as_str());
    let cgroup = row["cgroup"].as_str().expect("a path");
    assert!(cgroup.ends_with(&format!("/whyslow-test/{id}")), "{cgroup}");
}
