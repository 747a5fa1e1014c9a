use whyslow_model::stat;

use super::{Machine, Words, assert_lines};

#[track_caller]
fn check(script: &str, expected: &[&str]) -> Machine {
    let machine = Machine::run(script);
    let lines: Vec<String> = machine
        .rows
        .syscall
        .iter()
        .map(|row| {
            let name = |sym| machine.name(sym);
            let is_uncertain = row.cut.is_some_and(|cut| name(cut) == "lost");
            assert!(
                row.dur.is_none() == row.cut.is_some() || is_uncertain,
                "{row:?}"
            );
            let mut words = Words::span(row.ts, row.ts_end);
            words.field("tid", row.tid);
            words.put(name(row.name));
            words.field("fd", row.fd);
            words.field("fd2", row.fd2);
            words.field("class", row.fd_class.map(name));
            words.field("path", row.path.map(name));
            words.field("path2", row.path2.map(name));
            words.field("reason", row.unknown_reason.map(name));
            words.field("bytes", row.bytes);
            words.field("errno", row.errno);
            words.field("cut", row.cut.map(name));
            words.field("dur", row.dur.filter(|_| is_uncertain));
            words.line()
        })
        .collect();
    assert_lines(&lines, expected);
    machine
}

#[test]
fn a_call_shows_its_object_at_the_time_of_the_call() {
    check(
        "1 7 > openat dirfd=-100 path=/etc/a
         2 7 < openat ret=3
         3 7 > read fd=3 count=100
         5 7 < read ret=40
         6 7 = close 0 fd=3
         7 7 = openat 3 path=/etc/b
         8 7 = write 9 fd=3",
        &[
            "1-2 tid=7 openat fd=3 class=file path=/etc/a",
            "3-5 tid=7 read fd=3 class=file path=/etc/a bytes=40",
            "6-6 tid=7 close fd=3 class=file path=/etc/a",
            "7-7 tid=7 openat fd=3 class=file path=/etc/b",
            "8-8 tid=7 write fd=3 class=file path=/etc/b bytes=9",
        ],
    );
}

#[test]
fn a_failed_call_keeps_what_it_asked_for_and_has_no_bytes() {
    check(
        "1 7 = openat -2 path=/none
         2 7 = connect -111 fd=3 sockaddr=10.0.0.1:80
         3 7 = read -9 fd=44
         4 7 = close -9 fd=44
         5 7 = read -11 fd=3",
        &[
            "1-1 tid=7 openat class=file path=/none errno=2",
            "2-2 tid=7 connect fd=3 class=inet path=10.0.0.1:80 errno=111",
            "3-3 tid=7 read fd=44 errno=9",
            "4-4 tid=7 close fd=44 errno=9",
            "5-5 tid=7 read fd=3 class=unknown reason=opened before the recording errno=11",
        ],
    );
}

#[test]
fn relative_paths_follow_chdir_and_directories_and_are_never_invented() {
    check(
        "1 7 = openat 3 dirfd=-100 path=a
         2 7 = chdir 0 path=/home
         3 7 = openat 4 dirfd=-100 path=./a
         4 7 = openat 5 dirfd=-100 path=sub flags=0x10000
         5 7 = openat 6 dirfd=5 path=b
         6 7 = openat 7 dirfd=99 path=c
         7 7 = fchdir 0 fd=5
         8 7 = unlink 0 path=d
         9 7 = chdir 0 path=..
         10 7 = stat 0 path=e",
        &[
            "1-1 tid=7 openat fd=3 class=file path=a reason=relative to an unknown directory",
            "2-2 tid=7 chdir class=file path=/home",
            "3-3 tid=7 openat fd=4 class=file path=/home/a",
            "4-4 tid=7 openat fd=5 class=directory path=/home/sub",
            "5-5 tid=7 openat fd=6 class=file path=/home/sub/b",
            "6-6 tid=7 openat fd=7 class=file path=c reason=relative to an unknown directory",
            "7-7 tid=7 fchdir fd=5 class=directory path=/home/sub",
            "8-8 tid=7 unlink class=file path=/home/sub/d",
            "9-9 tid=7 chdir class=file path=/home/sub/..",
            "10-10 tid=7 stat class=file path=/home/sub/../e",
        ],
    );
}

#[test]
fn sockets_have_their_family_and_get_the_name_of_their_peer() {
    check(
        "1 7 = socket 3 family=1 socket_type=1
         2 7 = write 5 fd=3
         3 7 = connect 0 fd=3 sockaddr=unix:/run/x
         4 7 = write 5 fd=3
         5 7 = socket 4 family=10 socket_type=1
         6 7 = connect -115 fd=4 sockaddr=[::1]:80
         7 7 = recvfrom 5 fd=4
         8 7 = socket 5 family=2 socket_type=2
         9 7 = sendto 5 fd=5 sockaddr=10.0.0.1:53
         10 7 = socket 6 family=2 socket_type=1
         11 7 = bind 0 fd=6 sockaddr=0.0.0.0:80
         12 7 = accept4 7 fd=6 sockaddr=10.0.0.2:999
         13 7 = read 5 fd=7
         14 7 = sendmmsg 2 fd=5",
        &[
            "1-1 tid=7 socket fd=3 class=unix path=socket:unix",
            "2-2 tid=7 write fd=3 class=unix path=socket:unix bytes=5",
            "3-3 tid=7 connect fd=3 class=unix path=/run/x",
            "4-4 tid=7 write fd=3 class=unix path=/run/x bytes=5",
            "5-5 tid=7 socket fd=4 class=inet6 path=socket:inet6",
            "6-6 tid=7 connect fd=4 class=inet6 path=[::1]:80 errno=115",
            "7-7 tid=7 recvfrom fd=4 class=inet6 path=[::1]:80 bytes=5",
            "8-8 tid=7 socket fd=5 class=inet path=socket:inet",
            "9-9 tid=7 sendto fd=5 class=inet path=10.0.0.1:53 bytes=5",
            "10-10 tid=7 socket fd=6 class=inet path=socket:inet",
            "11-11 tid=7 bind fd=6 class=inet path=0.0.0.0:80",
            "12-12 tid=7 accept4 fd=6 fd2=7 class=inet path=10.0.0.2:999",
            "13-13 tid=7 read fd=7 class=inet path=10.0.0.2:999 bytes=5",
            "14-14 tid=7 sendmmsg fd=5 class=inet path=socket:inet",
        ],
    );
}

#[test]
fn two_objects_are_both_shown() {
    check(
        "1 7 = openat 3 path=/a
         2 7 = pipe2 0 fds=4,5
         3 7 = splice 100 fd=3 fd2=5 count=4096
         4 7 = dup2 9 fd=3 fd2=9
         5 7 = rename 0 path=/a path2=/b
         6 7 = symlinkat 0 path=../t dirfd2=-100 path2=/l",
        &[
            "1-1 tid=7 openat fd=3 class=file path=/a",
            "2-2 tid=7 pipe2 fd=4 fd2=5 class=pipe path=pipe:#1",
            "3-3 tid=7 splice fd=3 fd2=5 class=file path=/a path2=pipe:#1 bytes=100",
            "4-4 tid=7 dup2 fd=3 fd2=9 class=file path=/a",
            "5-5 tid=7 rename class=file path=/a path2=/b",
            "6-6 tid=7 symlinkat class=file path=../t path2=/l",
        ],
    );
}

#[test]
fn what_does_not_pair_is_kept_and_cut() {
    let machine = check(
        "1 7 other
         3 7 < read ret=5
         4 7 > read fd=3
         5 7 > write fd=3
         6 7 < close ret=0
         7 7 > poll",
        &[
            "1-3 tid=7 read class=unknown reason=entry not recorded bytes=5 cut=begin",
            "4-? tid=7 read fd=3 class=unknown reason=opened before the recording cut=end",
            "5-? tid=7 write fd=3 class=unknown reason=opened before the recording cut=end",
            "5-6 tid=7 close class=unknown reason=entry not recorded cut=begin",
            "7-? tid=7 poll cut=end",
        ],
    );
    assert_eq!(machine.count(&stat::SYSCALL_NESTED), 1);
    assert_eq!(machine.count(&stat::SYSCALL_MISMATCH), 1);
    assert_eq!(machine.count(&stat::SYSCALL_EXIT_WITHOUT_ENTRY), 2);
    assert_eq!(machine.count(&stat::SYSCALL_ENTRY_WITHOUT_EXIT), 1);
}

#[test]
fn a_return_without_entry_still_yields_its_descriptor() {
    check(
        "1 7 other
         2 7 < accept4 ret=4 sockaddr=10.0.0.2:999
         3 7 = read 5 fd=4
         4 8 < openat ret=3
         5 8 = read 5 fd=3",
        &[
            "1-2 tid=7 accept4 fd=4 class=inet path=10.0.0.2:999 cut=begin",
            "3-3 tid=7 read fd=4 class=inet path=10.0.0.2:999 bytes=5",
            "4-4 tid=8 openat fd=3 class=unknown reason=entry not recorded cut=begin",
            "5-5 tid=8 read fd=3 class=unknown reason=entry not recorded bytes=5",
        ],
    );
}

#[test]
fn the_return_of_clone_in_the_child_is_no_call() {
    let machine = check(
        "1 7 > clone flags=0
         2 7 fork parent=7 child=8 child_pid=8
         3 8 < clone ret=0
         4 7 < clone ret=8
         5 8 = getpid 8",
        &["1-4 tid=7 clone", "5-5 tid=8 getpid"],
    );
    assert_eq!(machine.count(&stat::SYSCALL_EXIT_WITHOUT_ENTRY), 0);
}

#[test]
fn exec_of_another_thread_ends_under_the_number_of_the_first() {
    check(
        "1 7/7 > futex
         2 7/9 > execve path=/bin/ls
         3 7/9 exec filename=/bin/ls tid=7 old_tid=9
         4 7/7 < execve ret=0
         5 7/7 = getpid 7",
        &[
            "1-3 tid=7 futex",
            "2-4 tid=9 execve class=file path=/bin/ls",
            "5-5 tid=7 getpid",
        ],
    );
}

#[test]
fn exit_ends_with_its_thread_and_is_not_cut() {
    let machine = check(
        "1 7 > exit_group
         2 7 exit tid=7",
        &["1-2 tid=7 exit_group"],
    );
    assert_eq!(machine.count(&stat::SYSCALL_ENTRY_WITHOUT_EXIT), 0);
}

#[test]
fn a_signal_return_comes_back_as_nothing_or_without_number() {
    let machine = check(
        "1 7 > rt_sigreturn
         2 7 < -1 nr=-1 ret=77
         3 7 > rt_sigreturn
         4 7 > read fd=0
         5 7 < read ret=0
         6 7 < -1 nr=-1 ret=77",
        &[
            "1-2 tid=7 rt_sigreturn",
            "3-4 tid=7 rt_sigreturn",
            "4-5 tid=7 read fd=0 class=unknown reason=opened before the recording bytes=0",
            "5-6 tid=7 rt_sigreturn cut=begin",
        ],
    );
    assert_eq!(machine.count(&stat::SYSCALL_NESTED), 0);
}

#[test]
fn a_signal_return_known_by_number_only_forgets_it() {
    let machine = check(
        "1 7 > 15 nr=15
         2 7 < -1 nr=-1 ret=-4",
        &["1-2 tid=7 15"],
    );
    assert_eq!(machine.count(&stat::SYSCALL_MISMATCH), 0);
}

#[test]
fn returns_without_a_name_end_what_was_entered() {
    check(
        "1 7 > open path=/a
         2 7 syscall_exit ret=3
         3 7 = read 5 fd=3",
        &[
            "1-2 tid=7 open fd=3 class=file path=/a",
            "3-3 tid=7 read fd=3 class=file path=/a bytes=5",
        ],
    );
}

#[test]
fn without_threads_entries_are_kept_and_returns_counted() {
    let machine = check(
        "1 - > openat path=/a
         2 - < openat ret=3
         3 - > read fd=3 count=9
         4 - < read ret=5",
        &[
            "1-? openat class=file path=/a cut=end",
            "3-? read fd=3 class=unknown reason=thread unknown cut=end",
        ],
    );
    assert_eq!(machine.count(&stat::SYSCALL_THREAD_UNKNOWN), 4);
}

#[test]
fn calls_before_the_state_dump_get_its_names() {
    let machine = check(
        "1 7 = read 5 fd=3
         2 7 = sendfile 6 fd=3 fd2=4
         3 7 = write 7 fd=8
         4 1 state_process tid=7 pid=7
         5 1 state_fd pid=7 fd=3 path=/a
         6 1 state_fd pid=7 fd=4 path=socket:[12]
         7 1 state_end
         8 7 = read 5 fd=9",
        &[
            "1-1 tid=7 read fd=3 class=file path=/a bytes=5",
            "2-2 tid=7 sendfile fd=3 fd2=4 class=file path=/a path2=socket:[12] bytes=6",
            "3-3 tid=7 write fd=8 class=unknown reason=opened before the recording bytes=7",
            "8-8 tid=7 read fd=9 class=unknown reason=opening not seen bytes=5",
        ],
    );
    let file = &machine.rows.file_life[0];
    assert_eq!((file.reads, file.bytes_read), (2, 11));
}

#[test]
fn the_reason_of_an_unknown_descriptor_is_the_likeliest() {
    check(
        "1 1 state_process tid=7 pid=7
         1 1 state_fd pid=7 fd=0 path=socket:[1]
         2 1 state_end
         3 7 = read 1 fd=5
         4 7 = recvmsg 1 fd=0
         5 7 = read 1 fd=6",
        &[
            "3-3 tid=7 read fd=5 class=unknown reason=opening not seen bytes=1",
            "4-4 tid=7 recvmsg fd=0 class=socket path=socket:[1] bytes=1",
            "5-5 tid=7 read fd=6 class=unknown reason=possibly passed over a socket bytes=1",
        ],
    );
    check(
        "1 1 state_process tid=7 pid=7
         1 1 state_fd pid=7 fd=0 path=/dev/null
         2 1 state_end
         2 - lost kind=events
         3 7 = read 1 fd=5",
        &["3-3 tid=7 read fd=5 class=unknown reason=lost events bytes=1"],
    );
}

#[test]
fn a_return_across_a_loss_has_a_duration_only_if_a_certain_one_was_as_long() {
    check(
        "10 7 > read fd=5
         14 7 < read ret=1
         20 7 > read fd=5
         21 - lost kind=events until=0.000000022 count=2
         23 7 < read ret=1
         30 7 > read fd=5
         31 - lost kind=events until=0.000000032 count=2
         39 7 < read ret=1
         40 7 > read fd=5
         41 - lost kind=events until=0.000000042 count=1
         49 7 < read ret=1",
        &[
            "10-14 tid=7 read fd=5 class=unknown reason=opened before the recording bytes=1",
            "20-23 tid=7 read fd=5 class=unknown reason=opened before the recording bytes=1 cut=lost dur=3",
            "30-39 tid=7 read fd=5 class=unknown reason=opened before the recording bytes=1 cut=lost",
            "40-49 tid=7 read fd=5 class=unknown reason=opened before the recording bytes=1",
        ],
    );
}

#[test]
fn a_return_may_be_lost_on_any_cpu() {
    let script = |lost: &str| {
        format!(
            "0.000000001 [0] (tid=7 pid=7) syscall_enter name=fsync fd=5
             0.000000002 [{lost}] lost kind=packets until=0.000000008 count=1
             0.000000009 [1] (tid=7 pid=7) syscall_exit name=fsync ret=0"
        )
    };
    let cut = |lost: &str| {
        let machine = Machine::of_text(&script(lost));
        let row = &machine.rows.syscall[0];
        (row.dur, row.cut.map(|cut| machine.name(cut).to_owned()))
    };
    for lost in ["0", "1", "2", "-"] {
        assert_eq!(cut(lost), (None, Some("lost".into())), "{lost}");
    }
}

#[test]
fn calls_of_a_thread_before_the_dump_tells_its_process_are_those_of_the_process() {
    let machine = Machine::run(
        "1 - other
         2 ?/9 = read 5 fd=3
         3 1 state_process tid=7 pid=7
         4 1 state_fd pid=7 fd=3 path=/a
         5 1 state_process tid=9 pid=7
         6 1 state_end",
    );
    let row = &machine.rows.syscall[0];
    assert_eq!(row.path.map(|path| machine.name(path)), Some("/a"));
    assert_eq!((row.pid, row.tid), (Some(7), Some(9)));
    assert_eq!(machine.rows.fd_life.len(), 1);
    assert_eq!(machine.rows.file_life[0].bytes_read, 5);
}

#[test]
fn an_exec_without_an_event_of_its_own_is_one() {
    let machine = Machine::run(
        "1 7 = openat 3 path=/a flags=0x80000
         2 7 = execve 0 path=/usr/bin/some-long-program-name
         3 7 = read 5 fd=0",
    );
    let row = &machine.rows.syscall[2];
    assert_eq!(
        row.comm.map(|comm| machine.name(comm)),
        Some("some-long-progr")
    );
    let life = &machine.rows.fd_life[0];
    assert_eq!(
        (life.ts_end, life.closed_by.map(|by| machine.name(by))),
        (Some(2), Some("exec"))
    );
}

#[test]
fn a_call_under_way_while_the_dump_names_its_descriptor_gets_the_name() {
    check(
        "1 7 = read 1 fd=3
         2 7 > read fd=3
         3 1 state_process tid=7 pid=7
         4 1 state_fd pid=7 fd=3 path=/a
         5 7 < read ret=2
         6 7 = read 3 fd=3
         7 1 state_end",
        &[
            "1-1 tid=7 read fd=3 class=file path=/a bytes=1",
            "2-5 tid=7 read fd=3 class=file path=/a bytes=2",
            "6-6 tid=7 read fd=3 class=file path=/a bytes=3",
        ],
    );
}
