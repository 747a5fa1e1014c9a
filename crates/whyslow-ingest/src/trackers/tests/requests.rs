//! Requests derived from sockets.

use std::fmt::Write as _;

use super::text::check;

/// A server that accepts, reads and writes in one thread, and its client, both on the same machine.
const BOTH_SIDES: &str = "
    0.000000001 [0] (tid=9 pid=9 comm=client) syscall_enter name=socket family=2 socket_type=1
    0.000000002 [0] (tid=9 pid=9) syscall_exit name=socket ret=3
    0.000000010 [0] (tid=9 pid=9) syscall_enter name=connect fd=3 sockaddr=10.0.0.1:80
    0.000000011 [0] (tid=9 pid=9) tcp sock=0x1 from=close to=syn_sent local=10.0.0.1 peer=10.0.0.1:80
    0.000000012 [0] (tid=9 pid=9) tcp sock=0x2 from=listen to=syn_recv local=10.0.0.1:80 peer=10.0.0.1:5000
    0.000000013 [0] (tid=9 pid=9) tcp sock=0x1 from=syn_sent to=established local=10.0.0.1:5000 peer=10.0.0.1:80
    0.000000014 [0] (tid=9 pid=9) tcp sock=0x2 from=syn_recv to=established local=10.0.0.1:80 peer=10.0.0.1:5000
    0.000000015 [0] (tid=9 pid=9) syscall_exit name=connect ret=0
    0.000000020 [1] (tid=7 pid=7 comm=server) syscall_enter name=accept4 fd=4
    0.000000021 [1] (tid=7 pid=7) syscall_exit name=accept4 ret=5 sockaddr=10.0.0.1:5000
    0.000000030 [0] (tid=9 pid=9) syscall_enter name=write fd=3 count=100
    0.000000031 [1] (tid=7 pid=7) syscall_enter name=read fd=5 count=4096
    0.000000032 [1] (tid=7 pid=7) syscall_exit name=read ret=100
    0.000000033 [0] (tid=9 pid=9) syscall_exit name=write ret=100
    0.000000040 [1] (tid=7 pid=7) syscall_enter name=write fd=5 count=50
    0.000000041 [1] (tid=7 pid=7) syscall_exit name=write ret=50
    0.000000042 [1] (tid=7 pid=7) syscall_enter name=write fd=5 count=30
    0.000000043 [0] (tid=9 pid=9) syscall_enter name=read fd=3 count=4096
    0.000000044 [0] (tid=9 pid=9) syscall_exit name=read ret=80
    0.000000045 [1] (tid=7 pid=7) syscall_exit name=write ret=30
    0.000000050 [0] (tid=9 pid=9) syscall_enter name=write fd=3 count=10
    0.000000051 [0] (tid=9 pid=9) syscall_exit name=write ret=10
    0.000000060 [1] (tid=7 pid=7) syscall_enter name=read fd=5 count=4096
    0.000000061 [1] (tid=7 pid=7) syscall_exit name=read ret=10
    0.000000070 [1] (tid=7 pid=7) syscall_enter name=write fd=5 count=5
    0.000000071 [1] (tid=7 pid=7) syscall_exit name=write ret=5
    0.000000080 [0] (tid=9 pid=9) syscall_enter name=read fd=3 count=4096
    0.000000081 [0] (tid=9 pid=9) syscall_exit name=read ret=5
    0.000000090 [0] (tid=9 pid=9) syscall_enter name=close fd=3
    0.000000091 [0] (tid=9 pid=9) syscall_exit name=close ret=0
    0.000000092 [1] (tid=7 pid=7) syscall_enter name=read fd=5 count=4096
    0.000000093 [1] (tid=7 pid=7) syscall_exit name=read ret=0
    0.000000094 [1] (tid=7 pid=7) syscall_enter name=close fd=5
    0.000000095 [1] (tid=7 pid=7) syscall_exit name=close ret=0";

#[test]
fn an_exchange_is_what_was_read_until_the_last_write_before_the_next_read() {
    check(
        BOTH_SIDES,
        "request",
        "id ts dur role local peer bytes_sent bytes_received is_reused queue_ns tid outcome",
        "
        0 10 34 client 10.0.0.1:5000 10.0.0.1:80 100 80 false - 9 unknown
        1 32 13 server 10.0.0.1:80 10.0.0.1:5000 80 100 false 7 7 unknown
        2 50 31 client 10.0.0.1:5000 10.0.0.1:80 10 5 true - 9 unknown
        3 61 10 server 10.0.0.1:80 10.0.0.1:5000 5 10 true - 7 unknown",
    );
}

#[test]
fn both_sides_of_a_connection_know_each_other() {
    check(
        BOTH_SIDES,
        "request",
        "id role server_request joined_by connect_ns send_ns wait_ns receive_ns",
        "
        0 client 1 connection 3 3 11 0
        1 server - - - - - -
        2 client 3 connection - 1 30 0
        3 server - - - - - -",
    );
}

/// A thread reads the request, two wait at a queue; the one that is woken replies.
const HANDED_ON: &str = "
    0.000000001 [1] (tid=8 pid=7 comm=worker) syscall_enter name=futex address=0x40 command=393 value=0
    0.000000002 [2] (tid=6 pid=7 comm=other) syscall_enter name=futex address=0x50 command=393 value=0
    0.000000003 [0] (tid=7 pid=7 comm=reader) syscall_enter name=accept4 fd=4
    0.000000004 [0] (tid=7 pid=7) syscall_exit name=accept4 ret=5 sockaddr=10.0.0.1:5000
    0.000000010 [0] (tid=7 pid=7) syscall_enter name=recvfrom fd=5 count=100
    0.000000011 [0] (tid=7 pid=7) syscall_exit name=recvfrom ret=40
    0.000000012 [0] (tid=7 pid=7) syscall_enter name=futex address=0x50 command=129 value=1
    0.000000013 [0] (tid=7 pid=7 interrupt=none) sched_waking tid=6 comm=other prio=20 target_cpu=2
    0.000000014 [0] (tid=7 pid=7) syscall_exit name=futex ret=1
    0.000000020 [0] (tid=7 pid=7) syscall_enter name=futex address=0x40 command=129 value=1
    0.000000021 [0] (tid=7 pid=7 interrupt=none) sched_waking tid=8 comm=worker prio=20 target_cpu=1
    0.000000022 [0] (tid=7 pid=7) syscall_exit name=futex ret=1
    0.000000023 [1] (tid=8 pid=7) syscall_exit name=futex ret=0
    0.000000030 [1] (tid=8 pid=7) syscall_enter name=sendto fd=5 count=9
    0.000000031 [1] (tid=8 pid=7) syscall_exit name=sendto ret=9
    0.000000032 [2] (tid=6 pid=7) syscall_exit name=futex ret=0";

#[test]
fn a_request_goes_to_who_was_woken_and_answered_and_to_nobody_else() {
    check(
        HANDED_ON,
        "request_thread",
        "ts dur request received_by from_utid tid is_shared",
        "
        11 10 0 read - 7 false
        21 10 0 futex 2 8 false",
    );
}

/// Two threads pass a lock to each other while one of them replies to its request.
const PASSED_ROUND: &str = "
    0.000000001 [1] (tid=8 pid=7 comm=other) syscall_enter name=futex address=0x40 command=393 value=0
    0.000000003 [0] (tid=7 pid=7 comm=reader) syscall_enter name=accept4 fd=4
    0.000000004 [0] (tid=7 pid=7) syscall_exit name=accept4 ret=5 sockaddr=10.0.0.1:5000
    0.000000010 [0] (tid=7 pid=7) syscall_enter name=recvfrom fd=5 count=100
    0.000000011 [0] (tid=7 pid=7) syscall_exit name=recvfrom ret=40
    0.000000020 [0] (tid=7 pid=7) syscall_enter name=futex address=0x40 command=129 value=1
    0.000000021 [0] (tid=7 pid=7 interrupt=none) sched_waking tid=8 comm=other prio=20 target_cpu=1
    0.000000022 [0] (tid=7 pid=7) syscall_exit name=futex ret=1
    0.000000023 [0] (tid=7 pid=7) syscall_enter name=futex address=0x44 command=393 value=0
    0.000000024 [1] (tid=8 pid=7) syscall_exit name=futex ret=0
    0.000000025 [1] (tid=8 pid=7) syscall_enter name=futex address=0x44 command=129 value=1
    0.000000026 [1] (tid=8 pid=7 interrupt=none) sched_waking tid=7 comm=reader prio=20 target_cpu=0
    0.000000027 [1] (tid=8 pid=7) syscall_exit name=futex ret=1
    0.000000028 [0] (tid=7 pid=7) syscall_exit name=futex ret=0
    0.000000030 [0] (tid=7 pid=7) syscall_enter name=sendto fd=5 count=9
    0.000000031 [0] (tid=7 pid=7) syscall_exit name=sendto ret=9";

#[test]
fn a_lock_that_is_passed_round_takes_the_request_nowhere() {
    check(
        PASSED_ROUND,
        "request_thread",
        "ts dur request received_by from_utid tid is_shared",
        "
        11 20 0 read - 7 false",
    );
}

/// The reader passes the work to another thread, and waits for the result before it replies.
const WAITED_FOR: &str = "
    0.000000001 [1] (tid=8 pid=7 comm=worker) syscall_enter name=futex address=0x40 command=393 value=0
    0.000000003 [0] (tid=7 pid=7 comm=reader) syscall_enter name=accept4 fd=4
    0.000000004 [0] (tid=7 pid=7) syscall_exit name=accept4 ret=5 sockaddr=10.0.0.1:5000
    0.000000010 [0] (tid=7 pid=7) syscall_enter name=recvfrom fd=5 count=100
    0.000000011 [0] (tid=7 pid=7) syscall_exit name=recvfrom ret=40
    0.000000020 [0] (tid=7 pid=7) syscall_enter name=futex address=0x40 command=129 value=1
    0.000000021 [0] (tid=7 pid=7 interrupt=none) sched_waking tid=8 comm=worker prio=20 target_cpu=1
    0.000000022 [0] (tid=7 pid=7) syscall_exit name=futex ret=1
    0.000000023 [0] (tid=7 pid=7) syscall_enter name=futex address=0x44 command=393 value=0
    0.000000024 [1] (tid=8 pid=7) syscall_exit name=futex ret=0
    0.030000025 [1] (tid=8 pid=7) syscall_enter name=futex address=0x44 command=129 value=1
    0.030000026 [1] (tid=8 pid=7 interrupt=none) sched_waking tid=7 comm=reader prio=20 target_cpu=0
    0.030000027 [1] (tid=8 pid=7) syscall_exit name=futex ret=1
    0.030000028 [0] (tid=7 pid=7) syscall_exit name=futex ret=0
    0.030000030 [0] (tid=7 pid=7) syscall_enter name=sendto fd=5 count=9
    0.030000031 [0] (tid=7 pid=7) syscall_exit name=sendto ret=9";

#[test]
fn who_worked_while_the_reader_waited_for_it_had_the_request() {
    check(
        WAITED_FOR,
        "request_thread",
        "ts dur request received_by from_utid tid is_shared",
        "
        11 10 0 read - 7 false
        21 30000005 0 futex 1 8 false
        30000026 5 0 futex 0 7 false",
    );
}

/// A thread created for a request, while its creator waits; the new thread first signals that it is
/// running.
const MADE_FOR_IT: &str = "
    0.000000003 [0] (tid=7 pid=7 comm=reader) syscall_enter name=accept4 fd=4
    0.000000004 [0] (tid=7 pid=7) syscall_exit name=accept4 ret=5 sockaddr=10.0.0.1:5000
    0.000000010 [0] (tid=7 pid=7) syscall_enter name=recvfrom fd=5 count=100
    0.000000011 [0] (tid=7 pid=7) syscall_exit name=recvfrom ret=40
    0.000000020 [0] (tid=7 pid=7) fork parent=7 parent_pid=7 child=8 child_pid=7
    0.000000022 [0] (tid=7 pid=7) syscall_enter name=futex address=0x48 command=393 value=0
    0.000000023 [1] (tid=8 pid=7) syscall_enter name=futex address=0x48 command=129 value=1
    0.000000024 [1] (tid=8 pid=7 interrupt=none) sched_waking tid=7 comm=reader prio=20 target_cpu=0
    0.000000025 [1] (tid=8 pid=7) syscall_exit name=futex ret=1
    0.000000026 [0] (tid=7 pid=7) syscall_exit name=futex ret=0
    0.000000027 [0] (tid=7 pid=7) syscall_enter name=futex address=0x44 command=393 value=0
    0.030000025 [1] (tid=8 pid=7) syscall_enter name=futex address=0x44 command=129 value=1
    0.030000026 [1] (tid=8 pid=7 interrupt=none) sched_waking tid=7 comm=reader prio=20 target_cpu=0
    0.030000027 [1] (tid=8 pid=7) syscall_exit name=futex ret=1
    0.030000028 [0] (tid=7 pid=7) syscall_exit name=futex ret=0
    0.030000030 [0] (tid=7 pid=7) syscall_enter name=sendto fd=5 count=9
    0.030000031 [0] (tid=7 pid=7) syscall_exit name=sendto ret=9";

#[test]
fn a_thread_that_was_made_for_a_request_has_it() {
    check(
        MADE_FOR_IT,
        "request_thread",
        "ts dur request received_by from_utid tid is_shared",
        "
        11 9 0 read - 7 false
        20 30000006 0 clone 0 8 false
        30000026 5 0 futex 1 7 false",
    );
}

/// The reader wakes a thread that only wakes the next one, which replies.
const PASSED_ON: &str = "
    0.000000001 [1] (tid=8 pid=7 comm=worker) syscall_enter name=futex address=0x40 command=393 value=0
    0.000000002 [2] (tid=6 pid=7 comm=other) syscall_enter name=futex address=0x50 command=393 value=0
    0.000000003 [0] (tid=7 pid=7 comm=reader) syscall_enter name=accept4 fd=4
    0.000000004 [0] (tid=7 pid=7) syscall_exit name=accept4 ret=5 sockaddr=10.0.0.1:5000
    0.000000010 [0] (tid=7 pid=7) syscall_enter name=recvfrom fd=5 count=100
    0.000000011 [0] (tid=7 pid=7) syscall_exit name=recvfrom ret=40
    0.000000012 [0] (tid=7 pid=7) syscall_enter name=futex address=0x50 command=129 value=1
    0.000000013 [0] (tid=7 pid=7 interrupt=none) sched_waking tid=6 comm=other prio=20 target_cpu=2
    0.000000014 [0] (tid=7 pid=7) syscall_exit name=futex ret=1
    0.000000015 [2] (tid=6 pid=7) syscall_exit name=futex ret=0
    0.000000020 [2] (tid=6 pid=7) syscall_enter name=futex address=0x40 command=129 value=1
    0.000000021 [2] (tid=6 pid=7 interrupt=none) sched_waking tid=8 comm=worker prio=20 target_cpu=1
    0.000000022 [2] (tid=6 pid=7) syscall_exit name=futex ret=1
    0.000000023 [1] (tid=8 pid=7) syscall_exit name=futex ret=0
    0.001000030 [1] (tid=8 pid=7) syscall_enter name=sendto fd=5 count=9
    0.001000031 [1] (tid=8 pid=7) syscall_exit name=sendto ret=9";

#[test]
fn who_only_wakes_the_next_one_is_left_out() {
    check(
        PASSED_ON,
        "request_thread",
        "ts dur request received_by from_utid tid is_shared",
        "
        11 10 0 read - 7 false
        21 1000010 0 futex 2 8 false",
    );
}

/// A queue where each thread that takes an item wakes the next waiting one, which finds nothing and
/// waits again.
const QUEUED: &str = "
    0.000000001 [1] (tid=8 pid=7 comm=worker) syscall_enter name=futex address=0x40 command=393 value=0
    0.000000002 [2] (tid=6 pid=7 comm=other) syscall_enter name=futex address=0x40 command=393 value=0
    0.000000003 [0] (tid=7 pid=7 comm=reader) syscall_enter name=accept4 fd=4
    0.000000004 [0] (tid=7 pid=7) syscall_exit name=accept4 ret=5 sockaddr=10.0.0.1:5000
    0.000000005 [0] (tid=7 pid=7) syscall_enter name=accept4 fd=4
    0.000000006 [0] (tid=7 pid=7) syscall_exit name=accept4 ret=9 sockaddr=10.0.0.1:5001
    0.000000010 [0] (tid=7 pid=7) syscall_enter name=recvfrom fd=5 count=100
    0.000000011 [0] (tid=7 pid=7) syscall_exit name=recvfrom ret=40
    0.000000012 [0] (tid=7 pid=7) syscall_enter name=futex address=0x40 command=129 value=1
    0.000000013 [0] (tid=7 pid=7 interrupt=none) sched_waking tid=8 comm=worker prio=20 target_cpu=1
    0.000000014 [0] (tid=7 pid=7) syscall_exit name=futex ret=1
    0.000000015 [1] (tid=8 pid=7) syscall_exit name=futex ret=0
    0.000000016 [1] (tid=8 pid=7) syscall_enter name=futex address=0x40 command=129 value=1
    0.000000017 [1] (tid=8 pid=7 interrupt=none) sched_waking tid=6 comm=other prio=20 target_cpu=2
    0.000000018 [1] (tid=8 pid=7) syscall_exit name=futex ret=1
    0.000000019 [2] (tid=6 pid=7) syscall_exit name=futex ret=0
    0.000000020 [2] (tid=6 pid=7) syscall_enter name=futex address=0x40 command=393 value=0
    0.000000030 [0] (tid=7 pid=7) syscall_enter name=recvfrom fd=9 count=100
    0.000000031 [0] (tid=7 pid=7) syscall_exit name=recvfrom ret=40
    0.000000032 [0] (tid=7 pid=7) syscall_enter name=futex address=0x40 command=129 value=1
    0.000000033 [0] (tid=7 pid=7 interrupt=none) sched_waking tid=6 comm=other prio=20 target_cpu=2
    0.000000034 [0] (tid=7 pid=7) syscall_exit name=futex ret=1
    0.000000035 [2] (tid=6 pid=7) syscall_exit name=futex ret=0
    0.000000040 [2] (tid=6 pid=7) syscall_enter name=sendto fd=9 count=9
    0.000000041 [2] (tid=6 pid=7) syscall_exit name=sendto ret=9
    0.000000050 [1] (tid=8 pid=7) syscall_enter name=sendto fd=5 count=9
    0.000000051 [1] (tid=8 pid=7) syscall_exit name=sendto ret=9";

#[test]
fn who_waits_again_where_it_got_its_work_has_none() {
    check(
        QUEUED,
        "request_thread",
        "ts ts_end request received_by tid",
        "
        11 13 0 read 7
        13 51 0 futex 8
        31 33 1 read 7
        33 41 1 futex 6",
    );
}

/// Two threads alternately wait and wake each other at one address this many times; then one
/// replies to the request that the other read.
fn in_turns(times: u64, wait: &str) -> String {
    let mut text = format!(
        "0.000000003 [0] (tid=7 pid=7 comm=reader) syscall_enter name=accept4 fd=4
        0.000000004 [0] (tid=7 pid=7) syscall_exit name=accept4 ret=5 sockaddr=10.0.0.1:5000
        0.000000005 [1] (tid=8 pid=7 comm=other) syscall_enter name=futex address=0x40 {wait}\n",
    );
    for turn in 0..times {
        let (waker, wakee) = if turn % 2 == 0 { (7, 8) } else { (8, 7) };
        let ts = 1000 * (turn + 1);
        let mut line = |ts: u64, what: &str| {
            let _ = writeln!(text, "0.{ts:09} [0] {what}");
        };
        if turn + 1 == times {
            line(
                ts,
                "(tid=7 pid=7) syscall_enter name=recvfrom fd=5 count=100",
            );
            line(ts + 1, "(tid=7 pid=7) syscall_exit name=recvfrom ret=40");
        }
        line(
            ts + 10,
            &format!(
                "(tid={waker} pid=7) syscall_enter name=futex address=0x40 command=129 value=1"
            ),
        );
        line(
            ts + 11,
            &format!(
                "(tid={waker} pid=7 interrupt=none) sched_waking tid={wakee} comm=other prio=20 target_cpu=1"
            ),
        );
        line(
            ts + 12,
            &format!("(tid={waker} pid=7) syscall_exit name=futex ret=1"),
        );
        line(
            ts + 13,
            &format!("(tid={wakee} pid=7) syscall_exit name=futex ret=0"),
        );
        if turn + 1 < times {
            line(
                ts + 14,
                &format!("(tid={waker} pid=7) syscall_enter name=futex address=0x40 {wait}"),
            );
        }
    }
    let (ts, end) = (1000 * (times + 1), 1000 * (times + 1) + 1);
    let _ = writeln!(
        text,
        "0.{ts:09} [1] (tid=8 pid=7) syscall_enter name=sendto fd=5 count=9"
    );
    let _ = write!(
        text,
        "0.{end:09} [1] (tid=8 pid=7) syscall_exit name=sendto ret=9"
    );
    text
}

#[test]
fn where_threads_wait_and_wake_in_turn_nothing_is_handed_over() {
    let handed = "
        1001 10 0 read - 7 false
        1011 990 0 futex 0 8 false";
    let columns = "ts dur request received_by from_utid tid is_shared";
    let untimed = "command=393 value=0";
    check(&in_turns(1, untimed), "request_thread", columns, handed);
    // By then the lock is recognized.
    check(
        &in_turns(7, untimed),
        "request_thread",
        columns,
        "
        7001 999 0 read - 7 false
        8000 1 0 write - 8 false",
    );
    // With timed waits it is recognized sooner.
    check(
        &in_turns(3, untimed),
        "request_thread",
        columns,
        "
        3001 10 0 read - 7 false
        3011 990 0 futex 0 8 false",
    );
    check(
        &in_turns(3, "command=393 value=0 timeout=0x7f00"),
        "request_thread",
        columns,
        "
        3001 999 0 read - 7 false
        4000 1 0 write - 8 false",
    );
}

/// A server queries a database on the same machine before it replies.
const NESTED: &str = "
    0.000000001 [0] (tid=7 pid=7 comm=web) syscall_enter name=socket family=2 socket_type=1
    0.000000002 [0] (tid=7 pid=7) syscall_exit name=socket ret=6
    0.000000003 [0] (tid=7 pid=7) syscall_enter name=connect fd=6 sockaddr=10.0.0.1:5432
    0.000000004 [0] (tid=7 pid=7) tcp sock=0x1 from=close to=syn_sent local=10.0.0.1 peer=10.0.0.1:5432
    0.000000005 [0] (tid=7 pid=7) tcp sock=0x2 from=listen to=syn_recv local=10.0.0.1:5432 peer=10.0.0.1:6000
    0.000000006 [0] (tid=7 pid=7) tcp sock=0x1 from=syn_sent to=established local=10.0.0.1:6000 peer=10.0.0.1:5432
    0.000000007 [0] (tid=7 pid=7) tcp sock=0x2 from=syn_recv to=established local=10.0.0.1:5432 peer=10.0.0.1:6000
    0.000000008 [0] (tid=7 pid=7) syscall_exit name=connect ret=0
    0.000000010 [1] (tid=20 pid=20 comm=db) syscall_enter name=accept4 fd=4
    0.000000011 [1] (tid=20 pid=20) syscall_exit name=accept4 ret=5 sockaddr=10.0.0.1:6000
    0.000000012 [0] (tid=7 pid=7) syscall_enter name=accept4 fd=4
    0.000000013 [0] (tid=7 pid=7) syscall_exit name=accept4 ret=5 sockaddr=10.0.0.9:5000
    0.000000020 [0] (tid=7 pid=7) syscall_enter name=read fd=5 count=4096
    0.000000021 [0] (tid=7 pid=7) syscall_exit name=read ret=100
    0.002000030 [0] (tid=7 pid=7) syscall_enter name=write fd=6 count=20
    0.002000031 [0] (tid=7 pid=7) syscall_exit name=write ret=20
    0.002000032 [1] (tid=20 pid=20) syscall_enter name=read fd=5 count=4096
    0.002000033 [1] (tid=20 pid=20) syscall_exit name=read ret=20
    0.002000034 [0] (tid=7 pid=7) syscall_enter name=poll value=1
    0.002000040 [1] (tid=20 pid=20) syscall_enter name=write fd=5 count=30
    0.002000041 [1] (tid=20 pid=20) syscall_exit name=write ret=30
    0.002000042 [0] (tid=7 pid=7) syscall_exit name=poll ret=1
    0.002000043 [0] (tid=7 pid=7) syscall_enter name=read fd=6 count=4096
    0.002000044 [0] (tid=7 pid=7) syscall_exit name=read ret=30
    0.002000050 [0] (tid=7 pid=7) syscall_enter name=write fd=5 count=9
    0.002000051 [0] (tid=7 pid=7) syscall_exit name=write ret=9";

#[test]
fn what_a_request_asks_of_others_belongs_to_it() {
    check(
        NESTED,
        "request",
        "id ts role protocol parent_request server_request tid connect_ns",
        "
        0 21 server - - - 7 -
        1 2000030 client postgresql 0 2 7 -
        2 2000033 server postgresql - - 20 -",
    );
    check(
        NESTED,
        "request_thread",
        "ts ts_end request received_by tid pid",
        "
        21 2000033 0 read 7 7
        2000033 2000041 2 read 20 20
        2000033 2000044 0 socket 20 20
        2000044 2000051 0 socket 7 7",
    );
}

/// An event loop connects to its upstream server for a request, and writes to it when the
/// connection is established: it waits for that as for any event, and serves another client first.
const UPSTREAM: &str = "
    0.000000001 [0] (tid=7 pid=7 comm=proxy) syscall_enter name=accept4 fd=4
    0.000000002 [0] (tid=7 pid=7) syscall_exit name=accept4 ret=5 sockaddr=10.0.0.8:5000
    0.000000003 [0] (tid=7 pid=7) syscall_enter name=accept4 fd=4
    0.000000004 [0] (tid=7 pid=7) syscall_exit name=accept4 ret=8 sockaddr=10.0.0.9:5000
    0.000000020 [0] (tid=7 pid=7) syscall_enter name=read fd=5 count=4096
    0.000000021 [0] (tid=7 pid=7) syscall_exit name=read ret=100
    0.000000022 [0] (tid=7 pid=7) syscall_enter name=socket family=2 socket_type=1
    0.000000023 [0] (tid=7 pid=7) syscall_exit name=socket ret=6
    0.000000024 [0] (tid=7 pid=7) syscall_enter name=connect fd=6 sockaddr=10.0.0.1:81
    0.000000025 [0] (tid=7 pid=7) syscall_exit name=connect ret=-115
    0.000000026 [0] (tid=7 pid=7) syscall_enter name=epoll_wait fd=3
    0.000000027 [0] (tid=7 pid=7) syscall_exit name=epoll_wait ret=2
    0.000000028 [0] (tid=7 pid=7) syscall_enter name=read fd=8 count=4096
    0.000000029 [0] (tid=7 pid=7) syscall_exit name=read ret=90
    0.000000030 [0] (tid=7 pid=7) syscall_enter name=write fd=6 count=20
    0.000000031 [0] (tid=7 pid=7) syscall_exit name=write ret=20
    0.000000032 [0] (tid=7 pid=7) syscall_enter name=epoll_wait fd=3
    0.000000041 [0] (tid=7 pid=7) syscall_exit name=epoll_wait ret=1
    0.000000043 [0] (tid=7 pid=7) syscall_enter name=read fd=6 count=4096
    0.000000044 [0] (tid=7 pid=7) syscall_exit name=read ret=30
    0.000000050 [0] (tid=7 pid=7) syscall_enter name=write fd=5 count=9
    0.000000051 [0] (tid=7 pid=7) syscall_exit name=write ret=9";

#[test]
fn what_an_event_loop_connected_for_belongs_to_that_request() {
    check(
        UPSTREAM,
        "request",
        "id ts role peer parent_request",
        "
        0 21 server 10.0.0.8:5000 -
        1 29 server 10.0.0.9:5000 -
        2 30 client 10.0.0.1:81 0",
    );
}

/// An event loop reads two requests before it replies to the first one.
const LOOP: &str = "
    0.000000001 [0] (tid=7 pid=7 comm=loop) syscall_enter name=accept4 fd=4
    0.000000002 [0] (tid=7 pid=7) syscall_exit name=accept4 ret=5 sockaddr=10.0.0.1:5000
    0.000000003 [0] (tid=7 pid=7) syscall_enter name=accept4 fd=4
    0.000000004 [0] (tid=7 pid=7) syscall_exit name=accept4 ret=6 sockaddr=10.0.0.2:5000
    0.000000010 [0] (tid=7 pid=7) syscall_enter name=epoll_wait fd=3
    0.000000011 [0] (tid=9 pid=9 interrupt=soft) sched_waking tid=7 comm=loop target_cpu=0
    0.000000012 [0] (tid=7 pid=7) syscall_exit name=epoll_wait ret=1
    0.000000015 [0] (tid=7 pid=7) syscall_enter name=read fd=5 count=100
    0.000000016 [0] (tid=7 pid=7) syscall_exit name=read ret=40
    0.000000017 [0] (tid=7 pid=7) syscall_enter name=epoll_wait fd=3
    0.000000018 [0] (tid=7 pid=7) syscall_exit name=epoll_wait ret=1
    0.000000019 [0] (tid=7 pid=7) syscall_enter name=read fd=6 count=100
    0.000000020 [0] (tid=7 pid=7) syscall_exit name=read ret=41
    0.000000021 [0] (tid=7 pid=7) syscall_enter name=write fd=5 count=9
    0.000000022 [0] (tid=7 pid=7) syscall_exit name=write ret=9
    0.000000023 [0] (tid=7 pid=7) syscall_enter name=write fd=6 count=8
    0.000000024 [0] (tid=7 pid=7) syscall_exit name=write ret=8
    0.000000025 [0] (tid=7 pid=7) syscall_enter name=epoll_wait fd=3
    0.000000026 [0] (tid=7 pid=7) syscall_exit name=epoll_wait ret=0
    0.000000030 [0] (tid=7 pid=7) syscall_enter name=close fd=6
    0.000000031 [0] (tid=7 pid=7) syscall_exit name=close ret=0";

#[test]
fn a_loop_that_serves_others_meanwhile_says_so() {
    check(
        LOOP,
        "request_thread",
        "ts dur request received_by tid is_shared",
        "
        16 6 0 read 7 true
        20 4 1 read 7 true",
    );
    check(
        LOOP,
        "request",
        "id peer queue_ns",
        "
        0 10.0.0.1:5000 5
        1 10.0.0.2:5000 -",
    );
}

/// Both sides were connected before the recording; two server processes have the connection.
const OPEN_BEFORE: &str = "
    0.000000000 [1] (tid=8 pid=8) syscall_enter name=read fd=6 count=4096
    0.000000001 [0] state_process tid=7 pid=7 comm=server
    0.000000002 [0] state_fd pid=7 fd=5 path=\"socket:[12] tcp accepted 10.0.0.1:80 10.0.0.1:5000\"
    0.000000003 [0] state_process tid=8 pid=8 comm=server
    0.000000004 [0] state_fd pid=8 fd=6 path=\"socket:[12] tcp accepted 10.0.0.1:80 10.0.0.1:5000\"
    0.000000005 [0] state_process tid=9 pid=9 comm=client
    0.000000006 [0] state_fd pid=9 fd=3 path=\"socket:[13] tcp connected 10.0.0.1:5000 10.0.0.1:80\"
    0.000000007 [0] state_end
    0.000000008 [1] (tid=8 pid=8) syscall_exit name=read ret=10
    0.000000009 [1] (tid=8 pid=8) syscall_enter name=write fd=6 count=9
    0.000000010 [1] (tid=8 pid=8) syscall_exit name=write ret=9
    0.000000030 [0] (tid=9 pid=9) syscall_enter name=write fd=3 count=100
    0.000000031 [1] (tid=8 pid=8) syscall_enter name=read fd=6 count=4096
    0.000000032 [1] (tid=8 pid=8) syscall_exit name=read ret=100
    0.000000033 [0] (tid=9 pid=9) syscall_exit name=write ret=100
    0.000000040 [1] (tid=8 pid=8) syscall_enter name=write fd=6 count=50
    0.000000041 [1] (tid=8 pid=8) syscall_exit name=write ret=50
    0.000000043 [0] (tid=9 pid=9) syscall_enter name=read fd=3 count=4096
    0.000000044 [0] (tid=9 pid=9) syscall_exit name=read ret=50";

#[test]
fn connections_that_were_open_before_are_known_by_the_snapshot() {
    check(
        OPEN_BEFORE,
        "request",
        "id ts dur role local peer client tid server_request is_reused",
        "
        0 8 2 server 10.0.0.1:80 10.0.0.1:5000 10.0.0.1 8 - -
        1 30 14 client 10.0.0.1:5000 10.0.0.1:80 - 9 2 -
        2 32 9 server 10.0.0.1:80 10.0.0.1:5000 10.0.0.1 8 - true",
    );
}

/// A client that gives up: after a reply before, without one, and where nothing is ever replied.
const GIVEN_UP: &str = "
    0.000000010 [0] (tid=9 pid=9 comm=client) syscall_enter name=socket family=2 socket_type=1
    0.000000011 [0] (tid=9 pid=9) syscall_exit name=socket ret=3
    0.000000012 [0] (tid=9 pid=9) syscall_enter name=connect fd=3 sockaddr=10.0.0.1:80
    0.000000013 [0] (tid=9 pid=9) syscall_exit name=connect ret=0
    0.000000020 [0] (tid=9 pid=9) syscall_enter name=write fd=3 count=10
    0.000000021 [0] (tid=9 pid=9) syscall_exit name=write ret=10
    0.000000022 [0] (tid=9 pid=9) syscall_enter name=read fd=3 count=100
    0.000000023 [0] (tid=9 pid=9) syscall_exit name=read ret=5
    0.000000030 [0] (tid=9 pid=9) syscall_enter name=write fd=3 count=10
    0.000000031 [0] (tid=9 pid=9) syscall_exit name=write ret=10
    0.000000032 [0] (tid=9 pid=9) syscall_enter name=poll
    0.000000090 [0] (tid=9 pid=9) syscall_exit name=poll ret=0
    0.000000091 [0] (tid=9 pid=9) syscall_enter name=close fd=3
    0.000000092 [0] (tid=9 pid=9) syscall_exit name=close ret=0
    0.000000100 [0] (tid=9 pid=9) syscall_enter name=socket family=2 socket_type=1
    0.000000101 [0] (tid=9 pid=9) syscall_exit name=socket ret=3
    0.000000102 [0] (tid=9 pid=9) syscall_enter name=connect fd=3 sockaddr=10.0.0.2:6379
    0.000000103 [0] (tid=9 pid=9) syscall_exit name=connect ret=0
    0.000000110 [0] (tid=9 pid=9) syscall_enter name=write fd=3 count=10
    0.000000111 [0] (tid=9 pid=9) syscall_exit name=write ret=10
    0.000000190 [0] (tid=9 pid=9) syscall_enter name=close fd=3
    0.000000191 [0] (tid=9 pid=9) syscall_exit name=close ret=0
    0.000000200 [0] (tid=9 pid=9) syscall_enter name=socket family=2 socket_type=1
    0.000000201 [0] (tid=9 pid=9) syscall_exit name=socket ret=3
    0.000000202 [0] (tid=9 pid=9) syscall_enter name=connect fd=3 sockaddr=10.0.0.3:514
    0.000000203 [0] (tid=9 pid=9) syscall_exit name=connect ret=0
    0.000000210 [0] (tid=9 pid=9) syscall_enter name=write fd=3 count=10
    0.000000211 [0] (tid=9 pid=9) syscall_exit name=write ret=10
    0.000000290 [0] (tid=9 pid=9) syscall_enter name=close fd=3
    0.000000291 [0] (tid=9 pid=9) syscall_exit name=close ret=0";

#[test]
fn a_request_without_a_reply_lasts_until_its_client_closes_unless_nothing_is_ever_replied() {
    check(
        GIVEN_UP,
        "request",
        "id ts dur peer outcome wait_ns",
        "
        0 20 3 10.0.0.1:80 unknown 2
        1 30 62 10.0.0.1:80 closed -
        2 110 81 10.0.0.2:6379 closed -
        3 210 - 10.0.0.3:514 closed -",
    );
}
