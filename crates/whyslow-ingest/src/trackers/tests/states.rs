use super::check;

const STATE: &str = "ts dur ts_end tid state reason cpu";

#[test]
fn running_asleep_woken_running() {
    let script = "
        10 c0 switch 0:swapper/0 R 7:a
        20 c0 switch 7:a S 8:b
        30 c0 waking 7:a 1
        31 c1 wakeup 7:a 1
        40 c1 switch 0:swapper/1 R 7:a
        50 c1 switch 7:a X 0:swapper/1
        60 c0 switch 8:b D 0:swapper/0
        finish 70";
    check(
        script,
        "thread_state",
        STATE,
        "
        10 10 20 7 running - 0
        20 10 30 7 sleeping - 0
        20 40 60 8 running - 0
        30 10 40 7 runnable woken 1
        40 10 50 7 running - 1
        60 - - 8 uninterruptible - 0",
    );
    check(
        script,
        "thread_state",
        "ts wakeup_id waker_utid wake_context",
        "
        10 - - -
        20 0 1 unknown
        20 - - -
        30 0 1 unknown
        40 - - -
        60 - - -",
    );
}

#[test]
fn preempted_is_runnable() {
    let script = "
        10 c0 switch 0:swapper/0 R 7:a
        20 c0 switch 7:a R+ 8:b
        30 c0 switch 8:b R 7:a
        finish 40";
    check(
        script,
        "thread_state",
        STATE,
        "
        10 10 20 7 running - 0
        20 10 30 7 runnable preempted 0
        20 10 30 8 running - 0
        30 - - 8 runnable preempted 0
        30 - - 7 running - 0",
    );
}

#[test]
fn priorities_are_those_of_the_last_event_that_told() {
    check(
        "
        10 c0 switch 0:swapper/0 R 7:a
        20 c0 switch 7:a S 8:b@98
        30 c0 waking 7:a@110 1
        40 c0 switch 8:b@98 S 7:a@111
        50 c0 switch 7:a@111 S 0:swapper/0
        finish 60",
        "thread_state",
        "ts tid state prio",
        "
        10 7 running 120
        20 7 sleeping 120
        20 8 running 98
        30 7 runnable 110
        40 8 sleeping 98
        40 7 running 111
        50 7 sleeping 111",
    );
}

#[test]
fn every_way_to_leave_has_its_state() {
    let script = "
        10 c0 switch 1:a S 2:b
        11 c0 switch 2:b D 3:c
        12 c0 switch 3:c T 4:d
        13 c0 switch 4:d t 5:e
        14 c0 switch 5:e P 6:f
        15 c0 switch 6:f I 7:g
        16 c0 switch 7:g ? 8:h
        17 c0 switch 8:h Z 0:swapper/0";
    let states = "
        1 sleeping
        2 running
        2 uninterruptible
        3 running
        3 stopped
        4 running
        4 traced
        5 running
        5 parked
        6 running
        6 idle
        7 running
        7 unknown
        8 running";
    check(script, "thread_state", "tid state", states);
}

#[test]
fn a_child_is_runnable_from_its_first_wakeup() {
    let script = "
        10 c0 switch 0:swapper/0 R 1:sh
        20 c0 fork 1/1:sh 2/2:sh
        21 c0 wakeup_new 2:sh 1
        30 c1 switch 0:swapper/1 R 2:sh
        finish 40";
    check(
        script,
        "thread_state",
        STATE,
        "
        10 - - 1 running - 0
        21 9 30 2 runnable created 1
        30 - - 2 running - 1",
    );
    check(script, "wakeup", "kind tid spurious", "wakeup_new 2 false");
}

#[test]
fn a_child_is_runnable_from_its_fork_where_first_wakeups_are_not_recorded() {
    let script = "
        10 c0 switch 0:swapper/0 R 1:sh
        20 c0 fork 1/1:sh 2/2:sh
        30 c1 switch 0:swapper/1 R 2:sh
        finish 40";
    check(
        script,
        "thread_state",
        STATE,
        "
        10 - - 1 running - 0
        20 10 30 2 runnable created 1
        30 - - 2 running - 1",
    );
}

#[test]
fn a_state_dump_tells_what_went_on_at_the_start() {
    let script = "
        10 c0 dump 1/1:init 0 5
        11 c0 dump 2/2:cc1 1 2
        12 c0 dump 3/3:zombie 1 4
        13 c0 dump 4/4:odd 1 0
        20 c0 switch 2:cc1 R+ 0:swapper/0
        30 c0 waking 1:init 0
        40 c0 switch 0:swapper/0 R 1:init";
    check(
        script,
        "thread_state",
        STATE,
        "
        10 - 30 1 sleeping - 0
        10 - 20 2 running - 0
        12 - - 3 dead - 0
        13 - - 4 unknown - 0
        20 - - 2 runnable preempted 0
        30 10 40 1 runnable woken 0
        40 - - 1 running - 0",
    );
}

#[test]
fn a_dump_does_not_overrule_what_is_known() {
    let script = "
        10 c0 switch 0:swapper/0 R 1:a
        20 c0 switch 1:a D 0:swapper/0
        30 c0 dump 1/1:a 0 2";
    check(
        script,
        "thread_state",
        STATE,
        "
        10 10 20 1 running - 0
        20 - - 1 uninterruptible - 0",
    );
}

#[test]
fn lost_events_make_the_states_of_their_cpu_unknown() {
    let script = "
        10 c0 switch 0:swapper/0 R 1:a
        11 c1 switch 0:swapper/1 R 2:b
        12 c0 switch 1:a S 3:c
        loss 0 20 30
        40 c0 waking 1:a 0
        50 c0 switch 4:d S 1:a
        60 c1 switch 2:b S 0:swapper/1";
    check(
        script,
        "thread_state",
        STATE,
        "
        10 2 12 1 running - 0
        11 49 60 2 running - 1
        12 - 20 1 sleeping - 0
        12 - 20 3 running - 0
        20 - - 3 unknown - 0
        20 20 40 1 unknown - 0
        40 10 50 1 runnable woken 0
        50 - - 4 sleeping - 0
        50 - - 1 running - 0
        60 - - 2 sleeping - 1",
    );
}

#[test]
fn a_state_that_another_cpu_reports_inside_of_a_loss_is_unknown() {
    // CPU 1 wakes the thread on CPU 0 and sees it again: on CPU 0 it may have run in between.
    let script = "
        10 c0 switch 0:swapper/0 R 1:a
        11 c1 switch 0:swapper/1 R 2:b
        12 c0 switch 1:a S 0:swapper/0
        loss 0 20 90
        30 c1 waking 1:a 0
        80 c1 switch 2:b S 1:a";
    check(
        script,
        "thread_state",
        STATE,
        "
        10 2 12 1 running - 0
        11 69 80 2 running - 1
        12 - 20 1 sleeping - 0
        20 10 30 1 unknown - 0
        30 50 80 1 unknown - 1
        80 - - 2 sleeping - 1
        80 - - 1 running - 1",
    );
}

#[test]
fn a_loss_of_a_third_cpu_changes_no_state() {
    let script = "
        10 c0 switch 0:swapper/0 R 1:a
        11 c1 switch 0:swapper/1 R 2:b
        12 c0 switch 1:a S 0:swapper/0
        loss 2 20 90
        30 c1 waking 1:a 0
        80 c1 switch 2:b S 1:a";
    check(
        script,
        "thread_state",
        STATE,
        "
        10 2 12 1 running - 0
        11 69 80 2 running - 1
        12 18 30 1 sleeping - 0
        30 50 80 1 runnable woken 1
        80 - - 2 sleeping - 1
        80 - - 1 running - 1",
    );
}

#[test]
fn a_thread_that_runs_without_having_been_woken_shows_a_missed_switch() {
    // Switched out of a CPU on which it was not known to run: it was woken and switched in
    // unnoticed.
    let script = "
        10 c0 switch 1:a S 2:b
        20 c1 switch 0:swapper/1 R 3:c
        30 c1 switch 1:a S 0:swapper/1";
    check(
        script,
        "thread_state",
        STATE,
        "
        10 20 30 1 unknown - 0
        10 - - 2 running - 0
        20 - - 3 unknown - 1
        30 - - 1 sleeping - 1",
    );
}

#[test]
fn a_thread_switched_in_twice_was_lost_between() {
    let script = "
        10 c0 switch 0:swapper/0 R 1:a
        20 c1 switch 0:swapper/1 R 1:a
        30 c0 switch 5:e S 0:swapper/0
        40 c1 switch 1:a S 0:swapper/1";
    check(
        script,
        "thread_state",
        STATE,
        "
        10 10 20 1 unknown - 0
        20 20 40 1 running - 1
        30 - - 5 sleeping - 0
        40 - - 1 sleeping - 1",
    );
}

#[test]
fn the_exit_path_still_runs() {
    let script = "
        10 c0 switch 0:swapper/0 R 1:a
        20 c0 exit 1:a
        25 c0 switch 1:a R+ 2:b
        30 c0 switch 2:b S 1:a
        35 c0 switch 1:a Z 0:swapper/0
        40 c1 free 1";
    check(
        script,
        "thread_state",
        STATE,
        "
        10 15 25 1 running - 0
        25 5 30 1 runnable preempted 0
        25 5 30 2 running - 0
        30 - - 2 sleeping - 0
        30 5 35 1 running - 0",
    );
    check(script, "thread", "tid ts_exit", "1 20\n2 -");
}

#[test]
fn a_replaced_thread_ends_with_its_last_event() {
    let script = "
        10 c0 switch 0:swapper/0 R 1:a
        20 c0 switch 1:a S 2:b
        30 c0 fork 2/2:b 1/1:b";
    check(
        script,
        "thread_state",
        "ts ts_end utid state",
        "
        10 20 0 running
        20 20 0 sleeping
        20 - 1 running
        30 - 2 runnable",
    );
}

#[test]
fn a_tracer_of_one_process_records_no_switches_to_it() {
    // `perf record -p`: the next event of the thread ends its sleep at the latest.
    let script = "
        10 c0 ctx=7/7:a other
        20 c0 ctx=7/7:a switch 7:a D 0:swapper/0
        40 c0 ctx=7/7:a other
        50 c0 ctx=7/7:a switch 7:a S 0:swapper/0
        90 c1 ctx=7/7:a other
        finish 95";
    check(
        script,
        "thread_state",
        "ts dur ts_end state",
        "
        10 - 20 running
        20 - 40 uninterruptible
        40 - 50 running
        50 - 90 sleeping
        90 - - running",
    );
}

#[test]
fn a_missing_switch_to_a_thread_that_had_others_leaves_its_sleep_unknown() {
    let script = "
        10 c0 switch 0:swapper/0 R 7:a
        20 c0 ctx=7/7:a switch 7:a D 0:swapper/0
        40 c0 ctx=7/7:a other
        finish 50";
    check(
        script,
        "thread_state",
        "ts state",
        "
        10 running
        20 unknown
        40 running",
    );
}
