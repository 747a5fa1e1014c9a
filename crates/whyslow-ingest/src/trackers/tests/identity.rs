use super::check;

const THREAD: &str = "utid upid tid pid comm ts_start ts_exit parent_utid";
const PROCESS: &str = "upid pid parent_upid ppid comm exe ts_start ts_exit";
const COMM: &str = "ts dur ts_end utid comm";

#[test]
fn a_child_is_named_by_its_exec_not_by_its_parent() {
    let script = "
        10 c1 fork 58/58:bash 66/66:bash
        20 c0 switch 0:swapper/0 R 66:bash
        30 c0 exec 66 66 /bin/gzip
        40 c0 switch 66:gzip X 0:swapper/0";
    check(
        script,
        "thread",
        THREAD,
        "
        0 0 58 58 bash - - -
        1 1 66 66 gzip 10 40 0",
    );
    check(
        script,
        "thread_comm",
        COMM,
        "
        10 - - 0 bash
        10 20 30 1 bash
        30 10 40 1 gzip",
    );
    check(
        script,
        "process",
        PROCESS,
        "
        0 58 - - bash - - -
        1 66 0 58 gzip /bin/gzip 10 40",
    );
}

#[test]
fn the_name_at_a_switch_out_counts() {
    let script = "
        10 c0 switch 0:swapper/0 R 7:gcc
        20 c0 switch 7:cc1 S 0:swapper/0";
    check(script, "sched_slice", "ts ts_end tid comm", "10 20 7 cc1");
    check(
        script,
        "thread_comm",
        COMM,
        "
        10 - 20 0 gcc
        20 - - 0 cc1",
    );
}

#[test]
fn a_name_is_cut_as_the_kernel_cuts_it() {
    let script = "
        10 c0 exec 7 7 /usr/lib/systemd/systemd-journald
        20 c0 switch 7:systemd-journal S 0:swapper/0";
    check(script, "thread_comm", "comm", "systemd-journal");
}

#[test]
fn a_reused_tid_is_another_thread() {
    let script = "
        10 c0 fork 1/1:init 9/9:a
        20 c0 ctx=9/9 exit 9:a
        21 c0 switch 9:a Z 1:init
        30 c0 free 9
        40 c0 fork 1/1:init 9/9:b";
    check(
        script,
        "thread",
        THREAD,
        "
        0 0 1 1 init - - -
        1 1 9 9 a 10 20 0
        2 2 9 9 b 40 - 0",
    );
    check(
        script,
        "process",
        PROCESS,
        "
        0 1 - - init - - -
        1 9 0 1 a - 10 20
        2 9 0 1 b - 40 -",
    );
}

#[test]
fn a_tid_is_reused_without_recorded_exit() {
    let script = "
        10 c0 fork 1/1:init 9/9:a
        20 c0 fork 1/1:init 9/9:b";
    check(
        script,
        "thread",
        THREAD,
        "
        0 0 1 1 init - - -
        1 1 9 9 a 10 - 0
        2 2 9 9 b 20 - 0",
    );
}

#[test]
fn a_number_in_another_process_is_another_thread() {
    let script = "
        10 c0 ctx=9/5:a other
        20 c0 ctx=9/8:b other";
    check(
        script,
        "thread",
        "utid upid tid pid comm ts_first ts_last",
        "
        0 0 9 5 a 10 10
        1 1 9 8 b 20 20",
    );
}

#[test]
fn a_dead_thread_that_comes_back_is_another_one() {
    let script = "
        10 c0 switch 9:a X 0:swapper/0
        20 c0 waking 9:b 0";
    check(
        script,
        "thread",
        THREAD,
        "
        0 - 9 - a - 10 -
        1 - 9 - b - - -",
    );
}

#[test]
fn a_late_free_does_not_end_the_next_thread_of_that_number() {
    let script = "
        10 c0 fork 1/1:init 9/9:a
        20 c0 ctx=9/9 exit 9:a
        30 c0 fork 1/1:init 9/9:b
        40 c0 free 9
        50 c0 ctx=9/9:b other";
    check(
        script,
        "thread",
        "utid tid comm ts_start ts_exit ts_last",
        "
        0 1 init - - 30
        1 9 a 10 20 20
        2 9 b 30 - 50",
    );
}

#[test]
fn a_thread_freed_while_it_runs_goes_with_its_last_switch() {
    let script = "
        5 c0 switch 0:swapper/0 R 9:a
        10 c0 exit 9:a
        20 c0 free 9
        30 c0 switch 9:a X 0:swapper/0
        40 c0 fork 1/1:init 9/9:b";
    check(
        script,
        "thread",
        THREAD,
        "
        0 - 9 - a - 10 -
        1 0 1 1 init - - -
        2 1 9 9 b 40 - 1",
    );
    check(
        script,
        "sched_slice",
        "ts dur ts_end tid end_state",
        "
        5 25 30 9 X
        40 - - 1 -",
    );
}

#[test]
fn threads_of_a_process_share_it_and_the_last_ends_it() {
    let script = "
        10 c0 fork 5/5:java 6/5:java
        20 c0 fork 5/5:java 7/5:java
        30 c0 ctx=5/5 exit 5:java
        40 c1 ctx=6/5 exit 6:java
        50 c1 ctx=7/5 exit 7:java";
    check(
        script,
        "thread",
        "utid upid tid pid is_main",
        "
        0 0 5 5 true
        1 0 6 5 false
        2 0 7 5 false",
    );
    check(script, "process", PROCESS, "0 5 - - java - - 50");
}

#[test]
fn a_thread_not_known_before_keeps_its_process_alive() {
    let script = "
        10 c0 ctx=5/5:java exit 5:java
        20 c0 ctx=6/5:worker other";
    check(script, "process", PROCESS, "0 5 - - java - - -");
}

#[test]
fn another_thread_than_the_main_one_calls_exec() {
    let script = "
        10 c0 fork 5/5:java 6/5:java
        20 c1 switch 0:swapper/1 R 6:java
        30 c0 ctx=5/5 exit 5:java
        35 c0 switch 5:java X 0:swapper/0
        40 c1 exec 5 6 /bin/ls
        50 c1 switch 5:ls S 0:swapper/1";
    check(
        script,
        "thread",
        THREAD,
        "
        0 0 5 5 java - 30 -
        1 0 5 5 ls 10 - 0",
    );
    check(
        script,
        "process",
        "upid pid comm exe ts_exit",
        "0 5 ls /bin/ls -",
    );
    check(
        script,
        "sched_slice",
        "ts ts_end utid tid",
        "
        10 35 0 5
        20 50 1 5",
    );
}

#[test]
fn a_process_is_learnt_later() {
    let script = "
        10 c0 switch 0:swapper/0 R 6:java
        20 c0 ctx=6/5 other
        30 c0 switch 6:java S 0:swapper/0";
    check(script, "thread", THREAD, "0 0 6 5 java - - -");
    check(script, "sched_slice", "upid pid tid", "0 5 6");
}

#[test]
fn a_program_started_is_its_main_thread() {
    let script = "
        10 c0 fork 5:sh 6:sh
        20 c0 exec 6 6 /bin/ls";
    check(
        script,
        "thread",
        THREAD,
        "
        0 - 5 - sh - - -
        1 0 6 6 ls 10 - 0",
    );
}

#[test]
fn a_state_dump_tells_parents_and_kernel_threads() {
    let script = "
        10 c0 dump 9/9:sh 5 5
        11 c0 dump 5/5:sshd 1 5
        12 c0 dump 2/2:kthreadd 0 5
        13 c0 fork 2/2:kthreadd 11/11:kworker/0:1
        14 c0 ctx=9/9 syscall read";
    check(
        script,
        "process",
        PROCESS,
        "
        0 9 1 5 sh - - -
        1 5 - 1 sshd - - -
        2 2 - 0 kthreadd - - -
        3 11 2 2 kworker/0:1 - 13 -",
    );
    check(
        script,
        "thread",
        "tid is_kernel",
        "
        9 false
        5 -
        2 -
        11 true",
    );
}

#[test]
fn the_tracer_is_known_with_all_its_threads() {
    let script = "
        10 c0 dump 210/200:Client_manage 1 5
        11 c0 dump 200/200:lttng-sessiond 1 5
        12 c0 fork 200/200:lttng-sessiond 300/300:lttng-sessiond
        13 c1 exec 300 300 /sbin/modprobe
        14 c0 fork 200/200:lttng-sessiond 301/301:lttng-sessiond
        15 c1 exec 301 301 /usr/lib/x86_64-linux-gnu/lttng/libexec/lttng-consumerd
        16 c1 fork 301/301:lttng-consumerd 302/301:consumer_data";
    check(
        script,
        "thread",
        "tid is_tracer",
        "
        210 true
        200 true
        300 false
        301 true
        302 true",
    );
    check(
        script,
        "process",
        "pid is_tracer",
        "
        200 true
        300 false
        301 true",
    );
}

#[test]
fn contexts_alone_make_threads_but_no_slices_or_states() {
    let script = "
        10 c0 ctx=7/7:a other
        20 c0 ctx=8/8:b other
        30 c0 other
        40 c0 ctx=7/7:a other";
    check(
        script,
        "thread",
        "tid pid comm ts_first ts_last",
        "
        7 7 a 10 40
        8 8 b 20 20",
    );
    check(script, "sched_slice", "id", "");
    check(script, "thread_state", "id", "");
    super::check_count(script, &whyslow_model::stat::THREAD_UNKNOWN, 1);
}

#[test]
fn nothing_told_nothing_known() {
    let script = "
        10 c0 syscall read
        20 c1 syscall write";
    check(script, "thread", "utid", "");
    check(
        script,
        "cpu",
        "cpu ts_first ts_last events busy_ns",
        "
        0 10 10 1 -
        1 20 20 1 -",
    );
    super::check_count(script, &whyslow_model::stat::THREAD_UNKNOWN, 2);
}

#[test]
fn idle_is_no_thread() {
    let script = "
        10 c0 ctx=0/0:swapper/0 other
        20 c0 switch 0:swapper/0 R 0:swapper/0";
    check(script, "thread", "utid", "");
    super::check_count(script, &whyslow_model::stat::THREAD_UNKNOWN, 0);
}
