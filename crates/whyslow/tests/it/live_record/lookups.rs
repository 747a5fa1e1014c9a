//! DNS lookups, against what the programs that make them measure themselves. They query a server of
//! this test, which replies late, in separate namespaces: the machine's resolver is not used.

use std::fs::File;
use std::net::UdpSocket;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use serde_json::Value;
use whyslow_testkit::{Need, skip};

use super::{can_record, rows};
use crate::common::Place;

/// Delay of the server: longer than anything else in a lookup.
const LATE: Duration = Duration::from_millis(300);
/// Lookups that a program makes after the recording started.
const ROUNDS: usize = 5;
/// Waits until recording has started, looks up unique names, and prints duration and result of each
/// lookup.
const CLIENT: &str = r#"
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static long long now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void look(const char *name, int how)
{
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = 0;
	struct hostent *host, room;
	char text[64] = "-", bytes[2048];
	int code = 0, error = 0;
	long long begun = now();

	if (how == 0) {
		code = getaddrinfo(name, "80", &hints, &found);
		if (!code)
			inet_ntop(AF_INET, &((struct sockaddr_in *)found->ai_addr)->sin_addr, text, 64);
	} else if (how == 1) {
		host = gethostbyname(name);
		if (host)
			inet_ntop(AF_INET, host->h_addr_list[0], text, 64);
	} else {
		host = 0;
		gethostbyname2_r(name, AF_INET, &room, bytes, sizeof(bytes), &host, &error);
		if (host)
			inet_ntop(AF_INET, host->h_addr_list[0], text, 64);
		else
			code = error;
	}
	printf("%s %lld %d %s\n", name, now() - begun, code, text);
	fflush(stdout);
	if (found)
		freeaddrinfo(found);
}

int main(int argc, char **argv)
{
	int rounds = atoi(argv[2]);
	char name[64];

	(void)argc;
	/* Resolves lazily bound functions before anything is measured. */
	look("warm.invalid", 0);
	puts("warm");
	fflush(stdout);
	while (access(argv[3], F_OK))
		usleep(20000);
	for (int i = 0; i < rounds; i++) {
		snprintf(name, sizeof(name), "good%d.%s.test", i, argv[1]);
		look(name, i % 3);
	}
	for (int how = 0; how < 3; how += 2) {
		snprintf(name, sizeof(name), "bad%d.%s.test", how, argv[1]);
		look(name, how);
	}
	return 0;
}
"#;

/// Separate network and mount namespaces with a name server.
pub(super) struct Surroundings {
    holder: Child,
    /// Names that the server was queried for.
    queried: Arc<Mutex<Vec<String>>>,
}

impl Surroundings {
    /// A shell keeps the namespaces alive; they have their own resolver configuration.
    pub(super) fn new(place: &Place) -> Option<Self> {
        place.write(
            "resolv.conf",
            "nameserver 127.0.0.1\noptions timeout:20 attempts:1\n",
        );
        place.write("nsswitch.conf", "hosts: dns\n");
        let script = "\
            ip link set lo up || ifconfig lo up || exit 1
            for file in resolv.conf nsswitch.conf; do
                mount --bind $file /etc/$file || exit 1
            done
            : >surrounded; exec sleep 600";
        let holder = Command::new("unshare")
            .args(["--mount", "--net", "/bin/sh", "-c", script])
            .current_dir(place.path())
            .stdout(Stdio::null())
            .spawn()
            .ok()?;
        let mut surroundings = Self {
            holder,
            queried: Arc::default(),
        };
        let is_there = || place.join("surrounded").exists();
        wait(|| is_there() || !matches!(surroundings.holder.try_wait(), Ok(None)));
        if !is_there() {
            return None;
        }
        surroundings.serve().then_some(surroundings)
    }

    /// Whether the server listens. It ends with the test.
    fn serve(&self) -> bool {
        let namespace = File::open(format!("/proc/{}/ns/net", self.holder.id()));
        let queried = Arc::clone(&self.queried);
        let (ready, listens) = mpsc::channel();
        thread::spawn(move || {
            let moved = namespace.ok().and_then(|namespace| {
                let kind = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(namespace.as_fd(), kind).ok()
            });
            let socket = moved.and_then(|()| UdpSocket::bind("127.0.0.1:53").ok());
            let _ = ready.send(socket.is_some());
            let Some(socket) = socket else { return };
            let mut query = [0; 1500];
            while let Ok((size, from)) = socket.recv_from(&mut query) {
                let Some((name, reply)) = answer(&query[..size]) else {
                    continue;
                };
                queried
                    .lock()
                    .expect("the lock is not poisoned")
                    .push(name.clone());
                let socket = socket.try_clone().expect("descriptors are left");
                if !name.starts_with("never") {
                    thread::spawn(move || {
                        thread::sleep(LATE);
                        let _ = socket.send_to(&reply, from);
                    });
                }
            }
        });
        listens.recv().unwrap_or(false)
    }

    fn was_asked(&self, name: &str) -> bool {
        let queried = self.queried.lock().expect("the lock is not poisoned");
        queried.iter().any(|known| known == name)
    }

    /// The command that runs its arguments in the namespaces.
    pub(super) fn enter(&self) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args(["--mount", "--net", "--target"])
            .arg(self.holder.id().to_string())
            .arg("--");
        command
    }

    /// A program in the namespaces.
    fn start(&self, program: &Path, args: &[&str]) -> Child {
        self.enter()
            .arg(program)
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare was there too")
    }
}

impl Drop for Surroundings {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// The name in a query, and the reply: names that start with `good` have an IPv4 address, others do
/// not exist.
fn answer(query: &[u8]) -> Option<(String, Vec<u8>)> {
    const HEAD: usize = 12;
    let (mut labels, mut at) = (Vec::new(), HEAD);
    loop {
        let length = usize::from(*query.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        let label = query.get(at..at + length)?;
        labels.push(String::from_utf8_lossy(label).into_owned());
        at += length;
    }
    let section = query.get(HEAD..at + 4)?;
    let is_good = labels
        .first()
        .is_some_and(|label| label.starts_with("good"));
    let has_address = is_good && section.ends_with(&[0, 1, 0, 1]);
    let mut reply = query[..2].to_vec();
    reply.extend([0x81, if is_good { 0x80 } else { 0x83 }, 0, 1, 0]);
    reply.extend([u8::from(has_address), 0, 0, 0, 0]);
    reply.extend(section);
    if has_address {
        reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 10, 11, 12, 13]);
    }
    Some((labels.join("."), reply))
}

/// Whether the condition holds within a minute.
pub(super) fn wait(mut is_so: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_mins(1) {
        if is_so() {
            return true;
        }
        thread::sleep(Duration::from_millis(20));
    }
    false
}

/// A recording that runs until `done` exists; `recording` exists once it has started.
fn recorder(place: &Place) -> Recorder {
    // No process is left behind for more than a few minutes.
    let script =
        ": >recording; i=0; until [ -e done ] || [ $i -gt 3000 ]; do sleep 0.05; i=$((i+1)); done";
    let recorder = Command::new(env!("CARGO_BIN_EXE_whyslow"))
        .args([
            "-q",
            "record",
            "-o",
            "rec.wsl",
            "--what",
            "dns,sched",
            "--all",
        ])
        .args(["--", "/bin/sh", "-c", script])
        .current_dir(place.path())
        .env("HOME", place.path())
        .env("XDG_STATE_HOME", place.join("state"))
        .spawn()
        .expect("it starts");
    let recorder = Recorder(recorder);
    assert!(wait(|| place.join("recording").exists()));
    recorder
}

/// A child that is killed at the end of the test.
struct Recorder(Child);

impl Recorder {
    fn end(&mut self, place: &Place) {
        place.write("done", "");
        let status = self.0.wait().expect("it is ours");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The client built with this compiler, if that is installed.
fn compiled(place: &Place, name: &str, compiler: &[&str]) -> Option<PathBuf> {
    let source = place.write("client.c", CLIENT);
    let program = place.join(name);
    let output = Command::new(compiler[0])
        .args(&compiler[1..])
        .args(["-O1", "-o"])
        .args([&program, &source])
        .output();
    let is_made = output.is_ok_and(|output| output.status.success());
    is_made.then_some(program)
}

/// What a client prints about one lookup.
struct Said {
    name: String,
    took_ns: i64,
    code: i64,
    address: Option<String>,
}

impl Said {
    fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, took, code, address] = words.as_slice() else {
            return None;
        };
        Some(Self {
            name: (*name).to_owned(),
            took_ns: took.parse().ok()?,
            code: code.parse().ok()?,
            address: (*address != "-").then(|| (*address).to_owned()),
        })
    }
}

fn compare(said: &Said, all: &[Value]) {
    let name = &said.name;
    let mut rows = all.iter().filter(|row| row["host"] == name.as_str());
    let (Some(row), None) = (rows.next(), rows.next()) else {
        panic!("{name}: not once among {all:?}");
    };
    assert_eq!(row["address"].as_str(), said.address.as_deref(), "{row}");
    // The reason for a failed gethostbyname is not recorded, but it never fails here.
    let result = match (said.code, row["function"].as_str()) {
        (0, _) => "ok",
        (-2, Some("getaddrinfo")) => "EAI_NONAME",
        (1, Some("gethostbyname2_r")) => "HOST_NOT_FOUND",
        other => panic!("{other:?} of {row}"),
    };
    assert_eq!(row["result"], result, "{row}");
    assert_eq!(row["code"].as_i64(), Some(said.code), "{row}");
    let took = row["dur_ns"].as_i64().expect("it ended");
    // The client reads the clock before and after the lookup, and may lose the CPU there.
    let spare = said.took_ns - took;
    assert!((0..2_000_000_000).contains(&spare), "{spare} ns: {row}");
    assert!(took >= LATE.as_nanos() as i64, "{row}");
}

#[test]
fn lookups_of_every_libc_are_as_the_programs_measure_them() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let Some(there) = Surroundings::new(&place) else {
        return skip(
            Need::Isolation,
            "no namespaces of one's own for network and mounts here",
        );
    };
    let compilers: [(&str, &[&str]); 3] = [
        ("glibc", &["cc"]),
        ("musl", &["musl-gcc"]),
        ("muslstatic", &["musl-gcc", "-static"]),
    ];
    let flag = place.join("recording");
    let flag = flag.to_str().expect("UTF-8");
    let mut clients = Vec::new();
    for (libc, compiler) in compilers {
        let Some(program) = compiled(&place, libc, compiler) else {
            skip(Need::Tools, format!("{libc}: no {}", compiler[0]));
            continue;
        };
        let name = format!("{libc}{}", std::process::id());
        let rounds = ROUNDS.to_string();
        clients.push((name.clone(), there.start(&program, &[&name, &rounds, flag])));
    }
    // They run, and have loaded what they need, before recording starts.
    assert!(wait(|| count(&there, "warm.invalid") >= clients.len()));
    let mut recorder = recorder(&place);
    let mut said = Vec::new();
    for (name, client) in clients {
        let output = client.wait_with_output().expect("it is ours");
        let text = String::from_utf8(output.stdout).expect("ASCII");
        let lookups: Vec<Said> = text.lines().filter_map(Said::parse).collect();
        let of_names = lookups.into_iter().filter(|said| said.name.contains(&name));
        let of_names: Vec<Said> = of_names.collect();
        assert_eq!(of_names.len(), ROUNDS + 2, "{text}");
        said.extend(of_names);
    }
    recorder.end(&place);
    let all = rows(&place, &["dns", "log", "rec.wsl"]);
    for said in &said {
        compare(said, &all);
    }
}

/// How often the server was queried for the name.
fn count(there: &Surroundings, name: &str) -> usize {
    let queried = there.queried.lock().expect("the lock is not poisoned");
    queried.iter().filter(|known| *known == name).count()
}

#[test]
fn a_lookup_that_does_not_end_is_told_without_an_end() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let Some(there) = Surroundings::new(&place) else {
        return skip(
            Need::Isolation,
            "no namespaces of one's own for network and mounts here",
        );
    };
    let mut recorder = recorder(&place);
    let names =
        ["killed", "lasting"].map(|word| format!("never.{word}{}.test", std::process::id()));
    let getent = Path::new("getent");
    let mut clients = names
        .each_ref()
        .map(|name| there.start(getent, &["hosts", name]));
    for name in &names {
        assert!(wait(|| there.was_asked(name)), "{name}");
    }
    clients[0].kill().expect("it is ours");
    clients[0].wait().expect("it is ours");
    recorder.end(&place);
    clients[1].kill().expect("it is ours");
    clients[1].wait().expect("it is ours");
    let all = rows(&place, &["dns", "log", "rec.wsl"]);
    for name in &names {
        let of_name: Vec<_> = all
            .iter()
            .filter(|row| row["host"] == name.as_str())
            .collect();
        let [row] = of_name.as_slice() else {
            panic!("{name}: {all:?}");
        };
        assert_eq!(row["comm"], "getent", "{row}");
        assert!(
            row["ts_end_ns"].is_null() && row["result"].is_null(),
            "{row}"
        );
        assert!(row["dur_ns"].is_null(), "{row}");
    }
}

/// Has its own C library, and starts during the recording.
const LATE_COMER: &str = r#"
#include <netdb.h>
#include <unistd.h>

int main(void)
{
	struct addrinfo *found = 0;

	/* New processes are inspected a while after their start. */
	for (int i = 0; i < 13; i++) {
		sleep(1);
		if (!getaddrinfo("127.43.91.7", 0, 0, &found))
			freeaddrinfo(found);
	}
	return 0;
}
"#;

#[test]
fn a_library_that_comes_later_is_watched_too() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    place.write("late.c", LATE_COMER);
    let built = Command::new("cc")
        .args(["-static", "-O1", "-w", "-o", "late", "late.c"])
        .current_dir(place.path())
        .output();
    if !built.is_ok_and(|built| built.status.success()) {
        return skip(Need::Compiler, "cc makes no static programs");
    }
    super::record(&place, &["--what", "dns"], "./late");
    let lookups = rows(&place, &["dns", "log", "rec.wsl", "-c", "late"]);
    // The first lookup may precede the probe.
    assert!((1..=13).contains(&lookups.len()), "{lookups:?}");
    for lookup in &lookups {
        assert_eq!(lookup["host"], "127.43.91.7", "{lookup}");
        assert!(lookup["dur_ns"].as_i64().is_some(), "{lookup}");
    }
}
