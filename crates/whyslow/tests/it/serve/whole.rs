//! The server as a program: where it listens, and how it exits.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use whyslow_testkit::{Need, skip};

use super::client::Server;
use crate::common::recorded;

#[test]
fn ctrl_c_ends_it_cleanly() {
    let server = Server::start(recorded(), &["t.wsl"]);
    // An idle connection does not keep the server running.
    let _idle = server.connect();
    assert_eq!(server.json("status")["queries"]["running"], 0);
    assert_eq!(server.interrupt(), Some(0));
}

#[test]
fn a_socket_is_for_its_user_alone_and_goes() {
    let place = recorded();
    let path = place.join("s.sock");
    let listen = format!("--listen=unix:{}", path.display());
    let mut child = place
        .program()
        .args(["serve", &listen, "t.wsl"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("cargo built it");
    let mut line = String::new();
    let mut stdout = std::io::BufReader::new(child.stdout.take().expect("it is piped"));
    std::io::BufRead::read_line(&mut stdout, &mut line).expect("text");
    let token = line
        .trim()
        .rsplit_once("token=")
        .expect("a token")
        .1
        .to_owned();
    let mode = std::fs::metadata(&path)
        .expect("a socket")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut stream = UnixStream::connect(&path).expect("it listens");
    let text = format!(
        "GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(text.as_bytes()).expect("it takes it");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("text");
    assert!(reply.starts_with("HTTP/1.1 200 "), "{reply}");
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it is ours");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert!(!path.exists());
}

#[test]
fn only_this_machine_is_listened_at() {
    let check = |words: &[&str], code: i32, part: &str| {
        let output = recorded().whyslow().arg("serve").args(words).output();
        let output = output.expect("it runs");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {text}");
        assert!(text.contains(part), "{words:?}: {text}");
        assert!(output.stdout.is_empty());
    };
    check(&["--listen", "0.0.0.0:0", "t.wsl"], 2, "other machines");
    check(&["--listen", "[::]:0", "t.wsl"], 2, "other machines");
    check(
        &["--listen", "nonsense", "t.wsl"],
        2,
        "cannot parse `nonsense`",
    );
    check(&["--query-time", "0s", "t.wsl"], 2, "greater than 0");
    check(&["no-such.wsl"], 1, "no such recording or trace");
}

#[test]
fn the_address_says_how_to_get_there_by_ssh() {
    let place = recorded();
    let server = Server::start_by(place, &["t.wsl"], |command| {
        let log = std::fs::File::create(place.join("serve.err")).expect("a file");
        command.env("SSH_CONNECTION", "10.0.0.1 5000 10.0.0.2 2222");
        command.env("USER", "ann").stderr(log);
    });
    // It listens before it prints the address.
    let port = server.port;
    server.json("status");
    let text = std::fs::read_to_string(place.join("serve.err")).expect("text");
    let line = format!("ssh -L {port}:127.0.0.1:{port} -p 2222 ann@10.0.0.2");
    assert!(text.contains(&line), "{text}");
}

#[test]
fn a_trace_of_another_tool_is_served_too() {
    let server = Server::start(recorded(), &["t.wsl", "t.txt", "t.wsl"]);
    let found = server.json("recordings");
    let ids: Vec<&str> = found["recordings"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|recording| recording["id"].as_str())
        .collect();
    assert_eq!(ids, ["t.wsl", "t.txt", "t.wsl~2"]);
    let of = |id: &str| server.json(&format!("table?what=io&view=top&rec={id}"))["tables"].clone();
    assert_eq!(of("t.wsl"), of("t.txt"));
    assert_eq!(of("t.wsl"), of("t.wsl~2"));
    // The recordings have different ids.
    server.json("explain?vs=t.txt");
}

/// Values of a key in the `status` of all threads of a process.
fn of_threads(pid: u32, key: &str) -> Vec<String> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let of = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(path.join("status")).ok()?;
        let line = text.lines().find(|line| line.starts_with(key))?.to_owned();
        Some(line[key.len()..].trim().to_owned())
    };
    threads
        .filter_map(|thread| of(thread.ok()?.path()))
        .collect()
}

#[test]
fn privileges_are_given_up() {
    let server = Server::start(recorded(), &["t.wsl"]);
    if server.json("status")["confined"] == false {
        return skip(Need::Machine, "this kernel has no Landlock");
    }
    server.json("table?what=io&view=top");
    server.json("explain");
    let pid = server.pid();
    let seen = of_threads(pid, "NoNewPrivs:");
    assert!(
        seen.len() > 2 && seen.iter().all(|value| value == "1"),
        "{seen:?}"
    );
    // Reading files of other users is the only remaining capability.
    for effective in of_threads(pid, "CapEff:") {
        let effective = u64::from_str_radix(&effective, 16).expect("a mask");
        assert_eq!(effective & !(1 << 2), 0, "{effective:x}");
    }
}
