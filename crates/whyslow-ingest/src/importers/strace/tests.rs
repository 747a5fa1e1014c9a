//! Logs written by strace with other flags, and logs that strace does not write.

use proptest::prelude::*;

use super::*;
use crate::importers::text::{EventBuffers, Item, Line, parse};

fn translated(log: &str) -> Translated {
    translate(log, Origin::default(), 5)
}

/// Compares the lines that a log is translated to, all of which must be valid in the text format.
fn check(log: &str, want: &[&str]) {
    let done = translated(log);
    assert_eq!(done.bad, [], "{log}");
    let lines: Vec<&str> = done.text.lines().collect();
    assert_eq!(lines, want, "{log}");
    for line in lines {
        let (mut room, mut parts) = (EventBuffers::default(), Line::default());
        let item = parse(line, &mut parts, &mut room);
        assert!(matches!(item, Ok(Item::Event { .. })), "{line}: {item:?}");
    }
}

#[test]
fn a_call_is_an_entry_and_a_return() {
    check(
        "7 1700000000.000001 openat(AT_FDCWD</srv>, \"a b\", O_RDONLY|O_CLOEXEC) = 3</srv/a b> <0.000011>",
        &[
            "1700000000.000001000 [-] (tid=7) syscall_enter name=openat dirfd=-100 path=\"/srv/a b\" flags=524288",
            "1700000000.000012000 [-] (tid=7) syscall_exit name=openat ret=3",
        ],
    );
    check(
        "7 1700000000.5 openat(AT_FDCWD, \"/x\", O_WRONLY|O_NEWER, 0644) = -1 ENOENT (No such file or directory) <0.1>",
        &[
            "1700000000.500000000 [-] (tid=7) syscall_enter name=openat dirfd=-100 path=\"/x\" command=420",
            "1700000000.600000000 [-] (tid=7) syscall_exit name=openat ret=-2",
        ],
    );
    check(
        "7 1700000000.5 connect(3, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr(\"10.0.0.1\")}, 16) = 0 <0.1>",
        &[
            "1700000000.500000000 [-] (tid=7) syscall_enter name=connect fd=3 sockaddr=\"10.0.0.1:80\"",
            "1700000000.600000000 [-] (tid=7) syscall_exit name=connect ret=0",
        ],
    );
    check(
        "7 1700000000.5 pipe2([3, 4], O_CLOEXEC) = 0 <0.1>",
        &[
            "1700000000.500000000 [-] (tid=7) syscall_enter name=pipe2 flags=524288",
            "1700000000.600000000 [-] (tid=7) syscall_exit name=pipe2 fds=3,4 ret=0",
        ],
    );
}

#[test]
fn a_call_that_others_interrupted_is_put_together() {
    check(
        "7 1700000000.1 read(3,  <unfinished ...>\n\
         8 1700000000.2 getpid() = 8 <0.000001>\n\
         7 1700000000.3 <... read resumed>\"x, y)\", 5) = 5 <0.2>\n",
        &[
            "1700000000.200000000 [-] (tid=8) syscall_enter name=getpid",
            "1700000000.200001000 [-] (tid=8) syscall_exit name=getpid ret=8",
            "1700000000.100000000 [-] (tid=7) syscall_enter name=read fd=3 count=5",
            "1700000000.300000000 [-] (tid=7) syscall_exit name=read ret=5",
        ],
    );
    // Without -T the resumed line gives the end.
    let done = translated(
        "7 1700000000.1 fsync(3 <unfinished ...>\n7 1700000000.3 <... fsync resumed>) = 0\n",
    );
    assert!(
        done.text
            .contains("1700000000.300000000 [-] (tid=7) syscall_exit name=fsync ret=0")
    );
    assert_eq!(done.lacks, Lacks::default());
    // A call that is still in progress.
    check(
        "7 1700000000.1 read(3, <unfinished ...>",
        &["1700000000.100000000 [-] (tid=7) syscall_enter name=read fd=3"],
    );
}

#[test]
fn a_call_in_which_its_thread_was_killed_began() {
    check(
        "7 1700000042.8 wait4(-1,  <unfinished ...>\n7 1700000043.2 +++ killed by SIGKILL +++\n",
        &[
            "1700000042.800000000 [-] (tid=7) syscall_enter name=wait4 value=-1",
            "1700000043.200000000 [-] (tid=7) exit tid=7",
        ],
    );
    // The end of the first call was lost.
    check(
        "7 1700000001.1 read(3, <unfinished ...>\n7 1700000002.1 read(4, <unfinished ...>\n",
        &[
            "1700000001.100000000 [-] (tid=7) syscall_enter name=read fd=3",
            "1700000002.100000000 [-] (tid=7) syscall_enter name=read fd=4",
        ],
    );
    let done =
        translated("7 1700000001.1 ? <unfinished ...>\n7 1700000002.1 +++ exited with 0 +++\n");
    assert_eq!((done.bad_count, done.bad[0].line), (1, 2));
    let log = "getpid() = 7 <0.1>\n";
    let named = |unnamed| {
        let origin = Origin {
            unnamed,
            ..Origin::default()
        };
        translate(&format!("1700000001.1 {log}"), origin, 5).text
    };
    assert!(named(0).contains("(tid=4194305)") && named(1).contains("(tid=4194306)"));
}

#[test]
fn processes_threads_and_programs_are_followed() {
    check(
        "7 1700000000.1 execve(\"/bin/web\", [\"web\"], 0x7ffe /* 3 vars */) = 0 <0.1>\n\
         7 1700000000.3 clone(child_stack=0x7f, flags=CLONE_VM|CLONE_THREAD, parent_tid=[8]) = 8 <0.1>\n\
         8 1700000000.4 write(1</dev/null>, \"x\", 1) = 1 <0.1>\n\
         8 1700000000.6 +++ exited with 0 +++\n",
        &[
            "1700000000.100000000 [-] (tid=7) syscall_enter name=execve path=\"/bin/web\"",
            "1700000000.200000000 [-] (tid=7 pid=7) exec filename=\"/bin/web\"",
            "1700000000.200000000 [-] (tid=7 pid=7) syscall_exit name=execve ret=0",
            "1700000000.300000000 [-] (tid=7 pid=7) syscall_enter name=clone",
            "1700000000.300000000 [-] (tid=7 pid=7) fork parent=7 child=8 parent_pid=7 child_pid=7 child_comm=\"web\"",
            "1700000000.400000000 [-] (tid=7 pid=7) syscall_exit name=clone ret=8",
            "1700000000.400000000 [-] (tid=8 pid=7) state_fd pid=7 fd=1 path=\"/dev/null\"",
            "1700000000.400000000 [-] (tid=8 pid=7) syscall_enter name=write fd=1 count=1",
            "1700000000.500000000 [-] (tid=8 pid=7) syscall_exit name=write ret=1",
            "1700000000.600000000 [-] (tid=8 pid=7) exit tid=8",
        ],
    );
}

#[test]
fn what_a_log_lacks_is_told() {
    let lacks = |log: &str| translated(log).lacks;
    let none = Lacks::default();
    assert_eq!(lacks("7 1700000000.1 getpid() = 7 <0.1>"), none);
    let durations = Lacks {
        durations: 1,
        ..none
    };
    assert_eq!(lacks("7 1700000000.1 getpid() = 7"), durations);
    assert!(
        translated("7 1700000000.1 getpid() = 7")
            .text
            .ends_with("ret=7 untimed=1\n")
    );
    let threads = Lacks { threads: 1, ..none };
    assert_eq!(lacks("1700000000.1 getpid() = 7 <0.1>"), threads);
    let times = Lacks { times: 1, ..none };
    assert_eq!(lacks("7 getpid() = 7 <0.1>"), times);
    assert_eq!(
        translated("7 getpid() = 7").bad[0].what,
        "missing timestamp (record with strace -ttt)"
    );
    // One file per thread (-ff) with the thread id as its suffix.
    let origin = Origin {
        tid: Some(9),
        ..Origin::default()
    };
    let of_thread = translate("1700000000.1 getpid() = 9 <0.1>", origin, 5);
    assert!(of_thread.text.contains("(tid=9)") && of_thread.lacks == none);
}

#[test]
fn times_of_day_end_when_the_file_was_written() {
    let day = 20_000 * DAY_NS;
    let origin = Origin {
        written: Some(day + 3 * 3600 * 1_000_000_000),
        ..Origin::default()
    };
    let log = "7 23:59:59.5 getpid() = 7 <0.1>\n7 00:00:01 getpid() = 7 <0.1>\n";
    let done = translate(log, origin, 5);
    let times: Vec<&str> = done
        .text
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(
        times,
        [
            "1727999999.500000000",
            "1727999999.600000000",
            "1728000001.000000000",
            "1728000001.100000000"
        ]
    );
    assert_eq!(done.lacks.dates, 2);
    // Since the previous line: the last line has the modification time.
    let done = translate(
        "7 0.000000 getpid() = 7 <0.1>\n7 0.5 getpid() = 7 <0.1>\n",
        origin,
        5,
    );
    assert!(
        done.text.contains("1728010799.500000000 [-]"),
        "{}",
        done.text
    );
}

#[test]
fn lines_that_are_none_are_counted_with_their_place() {
    let log = "7 1700000000.1 getpid() = 7 <0.1>\nnonsense\n7 1700000000.2 read(3, \"cut\n\
               7 1700000000.3 <... read resumed>) = 0\n7 1700000000.4 --- SIGCHLD {si_signo=SIGCHLD} ---\n\
               strace: Process 9 attached\n > /lib/libc.so.6(read+0xe) [0xf7]\n\
               % time     seconds  usecs/call     calls    errors syscall\n\
               ------ ----------- ----------- --------- --------- ----------------\n\
               \x20 0.00    0.000000           0         1           getpid\n";
    let done = translated(log);
    let places: Vec<(usize, usize)> = done.bad.iter().map(|bad| (bad.line, bad.offset)).collect();
    assert_eq!(places, [(2, 34), (3, 43), (4, 71)]);
    assert_eq!((done.bad_count, done.unused), (3, 6));
}

#[test]
fn a_log_is_known_by_its_first_lines() {
    let check = |head: &str, want: bool| assert_eq!(is_log(head), want, "{head}");
    check("7 1700000000.1 getpid() = 7 <0.1>\n", true);
    check("getpid() = 7\nread(3, \"", true);
    check("strace: Process 9 attached\n9 1700000000.1 read(3", true);
    check(
        "12:00:00 execve(\"/bin/x\", [\"x\"], 0x7f /* 3 vars */) = 0\n",
        true,
    );
    check("", false);
    check("hello\nworld\n", false);
    check("main(int argc) {\n  return f(x) = 3;\n}\n", false);
    check("{\"a\": 1}", false);
    check("def f(x): return 1\n", false);
}

/// Random sequences of log fragments get further than random bytes.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("7 "),
        Just("[pid 8] "),
        Just("1700000000.1 "),
        Just("12:00:00.5 "),
        Just("0.1 "),
        Just("read("),
        Just("clone("),
        Just("execve("),
        Just("pipe2("),
        Just("accept4("),
        Just("3</tmp/a,b>"),
        Just("\"x\\"),
        Just("\\377\""),
        Just(", "),
        Just("[3, 4]"),
        Just("{a="),
        Just("}"),
        Just(") = "),
        Just("5"),
        Just("-1 ENOENT (x)"),
        Just("? ERESTARTSYS"),
        Just(" <0.1>"),
        Just(" <unfinished ...>"),
        Just("<... read resumed>"),
        Just("\n"),
        Just("<"),
        Just("->"),
        Just("/* "),
        Just("*/"),
        Just("O_RDWR|"),
        Just("9223372036854775807"),
        Just("\u{e9}"),
        Just("+++ exited with 0 +++"),
        Just("--- SIGX ---"),
        Just("CLONE_THREAD"),
        Just("999999999999.9 "),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn whatever_is_written_all_that_comes_out_can_be_read(log in pieces(), noise in ".*") {
        for log in [log, noise] {
            let _ = is_log(&log);
            let done = translated(&log);
            for line in done.text.lines() {
                let (mut room, mut parts) = (EventBuffers::default(), Line::default());
                let item = parse(line, &mut parts, &mut room).map(|_| ());
                prop_assert_eq!(item, Ok(()), "{}", line);
            }
        }
    }
}
