//! What counts as a request, and how long it takes.

use super::*;
use whyslow_model::spool::Encoder;
use whyslow_model::syscall;

const MS: u64 = 1_000_000;
/// No process has this id.
const SERVER: i32 = i32::MAX - 7;
const KEPT_MS: u64 = 30_000;

/// Builds records, and passes them on in the order of `order`.
struct Script(Vec<Vec<u8>>);

impl Script {
    fn new() -> Self {
        Self(Vec::new())
    }

    /// A call that took 1 ms.
    fn call(mut self, pid: i32, name: &str, ts: u64, (args, ret): ([i64; 3], i64)) -> Self {
        let mut encoder = Encoder::default();
        let nr = syscall::number_of(Abi::X86_64, name).expect("a call");
        let record = encoder.begin(Kind::Syscall, ts * MS, (pid, pid));
        record.u64((ts - 1) * MS).u64(ret as u64);
        record.u32(nr as u32).u32(3);
        for arg in args {
            record.u64(arg as u64);
        }
        record.end();
        self.0.push(encoder.payload().to_vec());
        self
    }

    fn accept(self, ts: u64, fd: i64) -> Self {
        self.call(SERVER, "accept4", ts, ([3, 0, 0], fd))
    }

    fn read(self, ts: u64, fd: i64, bytes: i64) -> Self {
        self.call(SERVER, "recvfrom", ts, ([fd, 0, 0], bytes))
    }

    fn write(self, ts: u64, fd: i64) -> Self {
        self.call(SERVER, "sendto", ts, ([fd, 0, 0], 99))
    }

    fn close(self, ts: u64, fd: i64) -> Self {
        self.call(SERVER, "close", ts, ([fd, 0, 0], 0))
    }

    fn life(mut self, kind: Kind, ts: u64, (pid, child): (i32, i32)) -> Self {
        let mut encoder = Encoder::default();
        let record = encoder.begin(kind, ts * MS, (pid, pid));
        record.u32(child as u32).u32(child as u32).comm(b"x").end();
        self.0.push(encoder.payload().to_vec());
        self
    }
}

fn served() -> Served {
    let mut served = Served::new(Abi::X86_64, KEPT_MS * MS);
    served.count_from(300 * MS);
    served
}

fn see(served: &mut Served, script: &Script) {
    for record in &script.0 {
        let raw = Raw(record);
        if raw.kind() == Kind::Syscall as u16 {
            served.returned(raw, false);
        } else {
            served.lived(raw);
        }
    }
}

/// When requests were reported, and their duration by then, in ms.
fn slow(slow: &[Slow]) -> Vec<(u64, u64)> {
    slow.iter()
        .map(|slow| (slow.ts / MS, slow.took / MS))
        .collect()
}

fn found(served: &mut Served, script: &Script) -> Vec<(u64, u64)> {
    see(served, script);
    served.settle(u64::MAX);
    slow(&served.take_slow())
}

#[track_caller]
fn check(script: &Script, expected: &[(u64, u64)]) {
    assert_eq!(found(&mut served(), script), expected);
    // The same, through rings drained in reverse order.
    let backwards = Script(script.0.iter().rev().cloned().collect());
    let mut served = served();
    served.know(SERVER);
    assert_eq!(found(&mut served, &backwards), expected);
}

#[test]
fn a_request_is_from_its_first_read_to_its_last_write() {
    let script = Script::new().accept(10, 7).read(20, 7, 5).read(200, 7, 5);
    check(&script.write(319, 7), &[]);
    let script = Script::new().accept(10, 7).read(20, 7, 5).read(200, 7, 5);
    check(&script.write(320, 7).write(700, 7), &[(320, 300)]);
    // The last write is late, not the first.
    let script = Script::new().accept(10, 7).read(20, 7, 5);
    check(&script.write(21, 7).write(500, 7), &[(500, 480)]);
}

#[test]
fn time_between_an_answer_and_the_next_question_is_no_request() {
    let mut script = Script::new().accept(10, 7);
    for number in 1..9 {
        let ts = number * 1000;
        script = script.read(ts, 7, 5).write(ts + 290, 7);
    }
    check(&script, &[]);
    check(&script.read(9000, 7, 5).write(9400, 7), &[(9400, 400)]);
    // Neither is a greeting, nor the shutdown by the peer.
    let script = Script::new().accept(10, 7).write(900, 7);
    check(
        &script.read(2000, 7, 0).write(2900, 7).read(2950, 7, -11),
        &[],
    );
}

#[test]
fn only_accepted_sockets_count() {
    // Neither the file that reuses the number, nor an outbound connection.
    let script = Script::new().accept(10, 7).read(20, 7, 5).close(30, 7);
    let script = script.call(SERVER, "openat", 40, ([-100, 0, 0], 7));
    let script = script.read(50, 7, 5).write(900, 7);
    let script = script.call(SERVER, "socket", 910, ([2, 1, 0], 8));
    check(&script.read(920, 8, 5).write(1900, 8), &[]);
    // A number whose connection was lost is valid again once it refers to something else.
    let script = Script::new().accept(10, 7).read(20, 7, 5);
    let script = script.call(SERVER, "openat", 40, ([-100, 0, 0], 7));
    check(&script.write(900, 7), &[]);
}

#[test]
fn another_thread_may_have_the_number_before_the_close_returns() {
    let mut served = served();
    let script = Script::new().accept(10, 7).read(20, 7, 5);
    assert!(found(&mut served, &script).is_empty());
    // The close was entered at 39 and returned at 40; its record arrives last.
    let script = Script::new().accept(100, 7).read(110, 7, 5).close(40, 7);
    assert!(found(&mut served, &script).is_empty());
    let script = Script::new().write(500, 7);
    assert_eq!(found(&mut served, &script), [(500, 390)]);
}

#[test]
fn copies_lead_to_the_same_connection() {
    for (name, args, new) in [
        ("dup", [7, 0, 0], 9),
        ("dup2", [7, 9, 0], 9),
        ("fcntl", [7, 1030, 0], 9),
    ] {
        let script = Script::new().accept(10, 7).read(20, 7, 5);
        let script = script.call(SERVER, name, 30, (args, new)).close(40, 7);
        check(&script.write(400, 9), &[(400, 380)]);
    }
    let script = Script::new().accept(10, 7).read(20, 7, 5);
    let script = script.call(SERVER, "fcntl", 30, ([7, 3, 0], 9));
    check(&script.write(400, 9), &[]);
    let script = Script::new().accept(10, 7).read(20, 7, 5);
    let script = script.call(SERVER, "close_range", 30, ([5, -1, 0], 0));
    check(&script.write(400, 7), &[]);
    let script = Script::new().accept(10, 7).read(20, 7, 5);
    check(
        &script.call(SERVER, "sendfile", 400, ([7, 9, 0], 4096)),
        &[(400, 380)],
    );
}

#[test]
fn a_child_answers_what_its_parent_accepted() {
    let child = SERVER + 1;
    let script = || {
        let script = Script::new().accept(10, 7);
        let script = script.life(Kind::Fork, 20, (SERVER, child)).close(30, 7);
        script.call(child, "read", 40, ([7, 0, 0], 5))
    };
    let answer = ([7, 0, 0], 5);
    let mut served = served();
    let slow = found(&mut served, &script().call(child, "write", 640, answer));
    assert_eq!(slow, [(640, 600)]);
    assert_eq!(served.connections.len(), 1);
    see(
        &mut served,
        &Script::new().life(Kind::Exit, 700, (child, child)),
    );
    served.settle(u64::MAX);
    assert!(served.connections.is_empty() && served.processes.is_empty());
    assert!(!served.known.contains(&child));
    // A child that calls exec has other descriptors.
    let script = script().life(Kind::Exec, 100, (child, child));
    let slow = found(
        &mut crate::when::served::tests::served(),
        &script.call(child, "write", 640, answer),
    );
    assert!(slow.is_empty());
}

#[test]
fn one_without_an_answer_counts_once() {
    let mut served = served();
    see(&mut served, &Script::new().accept(10, 7).read(20, 7, 5));
    served.settle(u64::MAX);
    let mut check_at = |now: u64, longest: u64| {
        slow(&served.unanswered(now * MS, now.saturating_sub(longest) * MS))
    };
    assert!(check_at(310, 100).is_empty());
    assert!(check_at(900, 1000).is_empty());
    assert_eq!(check_at(1020, 1000), [(1020, 1000)]);
    assert!(check_at(2000, 1000).is_empty());
    // Nor when the response arrives after all.
    assert!(found(&mut served, &Script::new().write(3000, 7)).is_empty());
    assert_eq!(
        found(&mut served, &Script::new().read(4000, 7, 5).write(4500, 7)),
        [(4500, 500)]
    );
}

#[test]
fn what_was_read_before_all_that_is_kept_is_not_answered_any_more() {
    let script = Script::new().accept(10, 7).read(20, 7, 5).write(25, 7);
    check(&script.write(20 + KEPT_MS, 7).write(40_000, 7), &[]);
    let mut served = served();
    see(&mut served, &Script::new().accept(10, 7).read(20, 7, 5));
    served.settle(u64::MAX);
    assert!(served.unanswered(u64::MAX, u64::MAX).is_empty());
}

fn snapshot(ts: u64, fds: &[(i32, i32, &str)]) -> Vec<u8> {
    let mut encoder = Encoder::default();
    for (pid, fd, path) in fds {
        let record = encoder.begin(Kind::Fd, ts * MS, (*pid, *pid));
        record.u32(*fd as u32).u64(2).text(path.as_bytes()).end();
    }
    encoder.payload().to_vec()
}

#[test]
fn connections_that_were_there_before_are_told_by_a_snapshot() {
    let accepted = "socket:[71] tcp accepted 127.0.0.1:80 127.0.0.1:40000";
    let fds = [
        (SERVER, 3, "socket:[70] tcp listen 0.0.0.0:80"),
        (SERVER, 7, accepted),
        (SERVER + 1, 4, accepted),
        (
            SERVER,
            8,
            "socket:[72] tcp connected 127.0.0.1:9 127.0.0.1:81",
        ),
        (SERVER, 9, "/var/lib/socket:[73] tcp accepted x y"),
        (
            SERVER,
            10,
            "socket:[74] unix accepted /run/systemd/journal/stdout",
        ),
        (SERVER, 11, "socket:[75] unix accepted /run/php.sock"),
        (
            SERVER,
            12,
            "socket:[76] unix listen /run/dbus/system_bus_socket",
        ),
        (SERVER + 2, 7, accepted),
    ];
    let mut served = served();
    served.snapshot(&snapshot(5, &fds), |pid| pid == SERVER + 2);
    let mut script = Script::new();
    for fd in [7, 8, 9, 10, 11] {
        script = script.read(10, fd, 5);
    }
    // One that is known not to count, and whose connections do not.
    script = script.call(SERVER, "accept", 11, ([12, 0, 0], 13));
    script = script.read(12, 13, 5).write(900, 13);
    for fd in [8, 9, 10, 11] {
        script = script.write(400, fd);
    }
    // Another process has the same connection.
    script = script.call(SERVER + 1, "write", 500, ([4, 0, 0], 5));
    assert_eq!(found(&mut served, &script), [(400, 390), (500, 490)]);
    // The next one reports nothing new, and drops nothing.
    let script = Script::new().read(600, 7, 5);
    assert!(found(&mut served, &script).is_empty());
    served.settled = 0;
    served.snapshot(&snapshot(610, &fds), |pid| pid == SERVER + 2);
    let script = Script::new().write(950, 7);
    assert_eq!(found(&mut served, &script), [(950, 350)]);
}

#[test]
fn a_snapshot_that_comes_late_tells_what_is_still_so() {
    let mut served = served();
    served.settle(100 * MS);
    let path = "socket:[71] tcp accepted 127.0.0.1:80 127.0.0.1:40000";
    served.snapshot(&snapshot(5, &[(SERVER, 7, path)]), |_| false);
    assert!(served.waiting.is_empty() && served.known.contains(&SERVER));
    let (ours, _theirs) = std::os::unix::net::UnixStream::pair().expect("sockets");
    let fd = std::os::fd::AsRawFd::as_raw_fd(&ours);
    let link = std::fs::read_link(format!("/proc/self/fd/{fd}")).expect("it is open");
    let path = format!("{} unix accepted /run/x", link.to_string_lossy());
    let own = std::process::id() as i32;
    served.snapshot(&snapshot(5, &[(own, fd, &path)]), |_| false);
    assert_eq!(served.waiting.len(), 1);
}

#[test]
fn after_a_loss_nothing_is_put_down_to_what_was_read_before() {
    let mut served = served();
    assert!(found(&mut served, &Script::new().accept(10, 7).read(20, 7, 5)).is_empty());
    served.lose();
    assert!(found(&mut served, &Script::new().write(900, 7)).is_empty());
    let script = Script::new().read(1000, 7, 5).write(1300, 7);
    assert_eq!(found(&mut served, &script), [(1300, 300)]);
}

#[test]
fn memory_is_bounded() {
    let mut served = served();
    let mut fd = 0;
    for _ in 0..2 {
        for _ in 0..CONNECTIONS_MAX {
            fd += 1;
            see(&mut served, &Script::new().accept(10, fd));
        }
    }
    assert!(served.waiting.len() <= OPS_MAX);
    served.settle(u64::MAX);
    assert!(served.connections.len() <= CONNECTIONS_MAX);
    for pid in 1..=(PROCESSES_MAX as i32 + 9) {
        let script = Script::new().call(pid, "listen", 10, ([3, 0, 0], 0));
        see(&mut served, &script);
    }
    assert!(served.known.len() <= PROCESSES_MAX);
}
