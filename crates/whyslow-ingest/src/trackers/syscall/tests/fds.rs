use super::{Machine, Words, assert_lines};

#[track_caller]
fn check(script: &str, expected: &[&str]) {
    let machine = Machine::run(script);
    let lines: Vec<String> = machine
        .rows
        .fd_life
        .iter()
        .map(|row| {
            let name = |sym| machine.name(sym);
            let mut words = Words::span(row.ts, row.ts_end);
            words.field("pid", row.pid);
            words.put(format!("fd={}", row.fd));
            words.put(name(row.fd_class));
            words.put(row.path.map_or("?", name));
            words.put(name(row.origin));
            words.mark("cloexec", row.cloexec);
            words.mark("deleted", row.deleted);
            words.mark("whole", row.dur.is_some());
            words.field("by", row.closed_by.map(name));
            words.line()
        })
        .collect();
    assert_lines(&lines, expected);
}

#[test]
fn every_way_to_make_a_descriptor_has_its_class() {
    check(
        "1 7 = openat 3 path=/etc/a flags=0x80000
         2 7 = socketpair 0 family=1 fds=4,5
         3 7 = eventfd2 6 flags=0
         4 7 = epoll_create1 7 flags=0x80000
         5 7 = timerfd_create 8
         6 7 = signalfd4 9 fd=-1
         7 7 = inotify_init1 10
         8 7 = memfd_create 11 path=m flags=1
         9 7 = creat 12 path=/tmp/c
         10 7 = pidfd_open 13
         11 7 = fcntl 14 fd=3 command=1030
         12 7 = accept4 15 fd=4 flags=0",
        &[
            "1-? pid=7 fd=3 file /etc/a open cloexec",
            "2-? pid=7 fd=4 unix socket:#1 socketpair",
            "2-? pid=7 fd=5 unix socket:#1 socketpair",
            "3-? pid=7 fd=6 eventfd anon_inode:[eventfd] eventfd",
            "4-? pid=7 fd=7 epoll anon_inode:[eventpoll] epoll_create cloexec",
            "5-? pid=7 fd=8 timerfd anon_inode:[timerfd] timerfd_create",
            "6-? pid=7 fd=9 signalfd anon_inode:[signalfd] signalfd",
            "7-? pid=7 fd=10 inotify anon_inode:inotify inotify_init",
            "8-? pid=7 fd=11 memfd /memfd:m memfd cloexec",
            "9-? pid=7 fd=12 file /tmp/c creat",
            "10-? pid=7 fd=13 anon anon_inode:[pidfd] pidfd_open cloexec",
            "11-? pid=7 fd=14 file /etc/a dup cloexec",
            "12-? pid=7 fd=15 unix socket:#1 accept",
        ],
    );
}

#[test]
fn close_ends_a_life_unless_the_number_was_not_open() {
    check(
        "1 7 = openat 3 path=/a
         2 7 = close -5 fd=3
         3 7 = openat 3 path=/b
         4 7 = close -9 fd=4
         5 7 = close 0 fd=9",
        &[
            "1-2 pid=7 fd=3 file /a open whole by=close",
            "3-? pid=7 fd=3 file /b open",
            "5-5 pid=7 fd=9 unknown ? first_use by=close",
        ],
    );
}

#[test]
fn a_number_reused_during_close_is_not_closed() {
    check(
        "1 7/7 = openat 3 path=/a
         2 7/7 > close fd=3
         3 7/8 = openat 3 path=/b
         4 7/7 < close ret=0",
        &[
            "1-3 pid=7 fd=3 file /a open whole by=replaced",
            "3-? pid=7 fd=3 file /b open",
        ],
    );
}

#[test]
fn dup2_closes_its_target_and_does_nothing_to_itself() {
    check(
        "1 7 = openat 3 path=/a
         2 7 = openat 4 path=/b
         3 7 = dup2 4 fd=3 fd2=4
         4 7 = dup2 3 fd=3 fd2=3
         5 7 = dup3 -9 fd=77 fd2=3",
        &[
            "1-? pid=7 fd=3 file /a open",
            "2-3 pid=7 fd=4 file /b open whole by=dup",
            "3-? pid=7 fd=4 file /a dup",
        ],
    );
}

#[test]
fn close_range_closes_or_marks_the_numbers_between() {
    check(
        "1 7 = openat 3 path=/a
         1 7 = openat 4 path=/b
         1 7 = openat 5 path=/c
         2 7 = close_range 0 fd=5 fd2=-1 flags=4
         3 7 = close_range 0 fd=4 fd2=4 flags=0",
        &[
            "1-? pid=7 fd=3 file /a open",
            "1-3 pid=7 fd=4 file /b open whole by=close",
            "1-? pid=7 fd=5 file /c open cloexec",
        ],
    );
}

#[test]
fn a_fork_copies_and_exec_closes_what_is_marked() {
    check(
        "1 7 = openat 3 path=/a flags=0x80000
         2 7 = openat 4 path=/b
         3 7 > fork
         4 7 fork parent=7 child=8 child_pid=8
         5 7 = close 0 fd=4
         6 8 exec filename=/bin/ls tid=8
         7 8 = openat 3 path=/c
         8 8 exit tid=8",
        &[
            "1-? pid=7 fd=3 file /a open cloexec",
            "2-5 pid=7 fd=4 file /b open whole by=close",
            "4-6 pid=8 fd=3 file /a inherited cloexec whole by=exec",
            "4-8 pid=8 fd=4 file /b inherited whole by=exit",
            "7-8 pid=8 fd=3 file /c open whole by=exit",
        ],
    );
}

#[test]
fn threads_share_and_so_do_processes_that_ask_for_it() {
    check(
        "1 7 > clone flags=0x400
         2 7 fork parent=7 child=8 child_pid=8
         3 7 < clone ret=8
         4 8 = openat 3 path=/a
         5 7/7 = close 0 fd=3
         6 7/9 = openat 3 path=/b
         7 7/7 = read 5 fd=3
         8 7/7 = fcntl 0 fd=3 command=2 value=1",
        &[
            "4-5 pid=7 fd=3 file /a open whole by=close",
            "6-? pid=7 fd=3 file /b open cloexec",
        ],
    );
}

#[test]
fn state_dumps_of_all_releases_fill_the_tables() {
    check(
        "1 1 state_process tid=7 pid=7
         2 1 state_fd pid=7 fd=0 path=/dev/pts/1 flags=0x80002
         3 1 state_process tid=9 pid=9 file_table=0xabc
         4 1 state_fd file_table=0xabc fd=1 path=pipe:[5]
         5 1 state_process tid=10 pid=10 file_table=0xabc
         6 1 state_end
         7 10 = read 5 fd=1
         8 9 = close 0 fd=1",
        &[
            "2-? pid=7 fd=0 tty /dev/pts/1 state_dump cloexec",
            "4-8 pid=9 fd=1 pipe pipe:[5] state_dump by=close",
        ],
    );
}

#[test]
fn a_descriptor_keeps_its_path_and_tells_that_it_was_unlinked() {
    check(
        "1 7 = openat 3 path=/tmp/a flags=0x40
         2 7 = unlink 0 path=/tmp/a
         3 7 = openat 4 path=/tmp/a flags=0x40
         4 7 = rename 0 path=/tmp/a path2=/tmp/b
         5 1 state_fd pid=7 fd=5 path=\"/tmp/c (deleted)\"",
        &[
            "1-? pid=7 fd=3 file /tmp/a open deleted",
            "3-? pid=7 fd=4 file /tmp/a open",
            "5-? pid=7 fd=5 file /tmp/c state_dump deleted",
        ],
    );
}

#[test]
fn use_tells_the_class_of_a_descriptor_that_was_there_before() {
    check(
        "1 7 = recvmsg 5 fd=3
         2 7 = getdents64 5 fd=4
         3 7 = epoll_wait 0 fd=5
         4 7 = ioctl 0 fd=0 command=0x5401
         5 7 = getpeername 0 fd=3 sockaddr=10.0.0.1:80",
        &[
            "1-? pid=7 fd=3 inet 10.0.0.1:80 first_use",
            "2-? pid=7 fd=4 directory ? first_use",
            "3-? pid=7 fd=5 epoll ? first_use",
            "4-? pid=7 fd=0 tty ? first_use",
        ],
    );
}
