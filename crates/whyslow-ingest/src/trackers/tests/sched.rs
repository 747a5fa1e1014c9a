use whyslow_model::stat;

use super::{check, check_count};

const SLICE: &str = "id ts dur ts_end cpu tid comm end_state";

#[test]
fn a_slice_from_switch_to_switch() {
    let script = "
        10 c0 switch 0:swapper/0 R 7:a
        20 c0 switch 7:a R+ 8:b
        35 c0 switch 8:b D 0:swapper/0
        finish 50";
    check(
        script,
        "sched_slice",
        SLICE,
        "
        0 10 10 20 0 7 a R+
        1 20 15 35 0 8 b D",
    );
    check(
        script,
        "cpu",
        "cpu ts_first ts_last events busy_ns",
        "0 10 35 3 25",
    );
}

#[test]
fn who_leaves_at_the_first_switch_had_run_since_the_first_event() {
    let script = "
        5 c0 syscall read
        10 c0 switch 7:a S 8:b
        finish 30";
    check(
        script,
        "sched_slice",
        SLICE,
        "
        0 5 - 10 0 7 a S
        1 10 - - 0 8 b -",
    );
    check(script, "cpu", "busy_ns", "25");
    check_count(script, &stat::THREAD_UNKNOWN, 1);
}

#[test]
fn contexts_before_the_first_switch_tell_since_when() {
    let script = "
        5 c0 ctx=9/9 other
        7 c0 ctx=7/7 other
        8 c0 ctx=7/7 other
        10 c0 switch 7:a S 0:swapper/0";
    check(script, "sched_slice", SLICE, "0 7 - 10 0 7 a S");
}

#[test]
fn a_thread_that_never_leaves_its_cpu_runs_all_the_time() {
    let script = "
        5 c1 ctx=7/7:spin other
        10 c0 switch 0:swapper/0 R 8:b
        20 c1 ctx=7/7:spin other
        finish 30";
    check(
        script,
        "sched_slice",
        SLICE,
        "
        1 5 - - 1 7 spin -
        0 10 - - 0 8 b -",
    );
}

#[test]
fn another_thread_than_the_known_one_leaves_a_hole() {
    let script = "
        10 c0 switch 0:swapper/0 R 7:a
        14 c0 ctx=7/7 other
        20 c0 switch 9:c S 8:b
        30 c0 switch 8:b S 0:swapper/0";
    check(
        script,
        "sched_slice",
        SLICE,
        "
        0 10 - 14 0 7 a -
        1 20 10 30 0 8 b S",
    );
    check_count(script, &stat::SCHED_PREV_MISMATCH, 1);
    check(
        script,
        "thread_state",
        "ts ts_end tid state",
        "
        10 14 7 running
        14 - 7 unknown
        20 - 9 sleeping
        20 30 8 running
        30 - 8 sleeping",
    );
}

#[test]
fn a_context_settles_who_runs_after_a_hole() {
    let script = "
        10 c0 switch 0:swapper/0 R 7:a
        20 c0 ctx=8/8:b other
        30 c0 switch 8:b S 0:swapper/0";
    check(
        script,
        "sched_slice",
        SLICE,
        "
        0 10 - 10 0 7 a -
        1 20 - 30 0 8 b S",
    );
}

#[test]
fn after_a_loss_nobody_is_known_to_run() {
    let script = "
        10 c0 switch 0:swapper/0 R 7:a
        loss 0 20 30
        40 c0 syscall read
        50 c0 switch 8:b S 9:c
        60 c0 switch 9:c S 0:swapper/0";
    check(
        script,
        "sched_slice",
        SLICE,
        "
        0 10 - 20 0 7 a -
        1 50 10 60 0 9 c S",
    );
    check_count(script, &stat::THREAD_UNKNOWN, 1);
    check_count(script, &stat::SCHED_PREV_MISMATCH, 0);
    check(
        script,
        "lost_events",
        "ts dur ts_end cpu stream kind count",
        "20 10 30 0 chan events 1",
    );
    check(script, "cpu", "lost busy_ns", "1 20");
}

#[test]
fn a_loss_elsewhere_changes_nothing_here() {
    let script = "
        10 c0 switch 0:swapper/0 R 7:a
        loss 1 20 30
        50 c0 switch 7:a S 0:swapper/0";
    check(script, "sched_slice", SLICE, "0 10 40 50 0 7 a S");
}

#[test]
fn a_loss_at_the_time_of_the_last_event_counts() {
    let script = "
        10 c0 switch 0:swapper/0 R 7:a
        loss 0 10 30
        50 c0 switch 8:b S 0:swapper/0";
    check(script, "sched_slice", SLICE, "0 10 - 10 0 7 a -");
    check(
        script,
        "thread_state",
        "ts ts_end tid state",
        "
        10 - 7 unknown
        50 - 8 sleeping",
    );
}

#[test]
fn a_loss_before_the_first_switch_leaves_the_past_unknown() {
    let script = "
        5 c0 syscall read
        loss 0 6 8
        10 c0 switch 7:a S 0:swapper/0";
    check(script, "sched_slice", SLICE, "");
}

#[test]
fn an_impossible_cpu_is_not_believed() {
    let script = "10 c2000000000 switch 0:swapper/0 R 7:a";
    check(script, "sched_slice", SLICE, "");
    check(script, "cpu", "cpu", "");
    check_count(script, &stat::CPU_IMPOSSIBLE, 1);
}

#[test]
fn a_cpu_is_known_by_its_losses_alone() {
    check(
        "loss 3 10 20\n30 c0 other",
        "cpu",
        "cpu events lost",
        "
        0 1 0
        3 0 1",
    );
}

const SPENT: &str = "ts dur tid system_ns hardirq_ns softirq_ns";

#[test]
fn time_counts_once_to_the_innermost() {
    let script = "
        10 c0 switch 0:swapper/0 R 7:a
        20 c0 syscall read
        30 c0 soft+ 3
        33 c0 irq+ 30 ahci
        37 c0 irq- 30
        45 c0 soft- 3
        60 c0 return read
        65 c0 irq+ 30 ahci
        66 c0 irq- 30
        70 c0 syscall read
        72 c0 switch 7:a S 8:b
        80 c0 switch 8:b S 7:a
        84 c0 return read
        90 c0 switch 7:a S 0:swapper/0
        95 c0 irq+ 30 ahci
        99 c0 irq- 30
        100 c0 switch 0:swapper/0 R 8:b
        104 c0 switch 8:b S 0:swapper/0
        finish 110";
    check(
        script,
        "sched_slice",
        SPENT,
        "
        10 62 7 27 5 11
        72 8 8 0 0 0
        80 10 7 4 0 0
        100 4 8 0 0 0",
    );
    check(
        script,
        "irq",
        "ts dur self_ns tid",
        "
        30 15 11 7
        33 4 4 7
        65 1 1 7
        95 4 4 -",
    );
}

#[test]
fn a_return_tells_that_the_time_before_was_inside() {
    let script = "
        10 c0 switch 0:swapper/0 R 7:a
        15 c0 soft+ 1
        17 c0 soft- 1
        20 c0 return read
        25 c0 switch 7:a S 0:swapper/0
        30 c0 switch 0:swapper/0 R 2/2:kthreadd
        31 c0 dump 2/2:kthreadd 0 6
        40 c0 switch 2/2:kthreadd S 0:swapper/0
        finish 50";
    check(
        script,
        "sched_slice",
        SPENT,
        "
        10 15 7 8 0 2
        30 10 2 0 0 0",
    );
}

#[test]
fn moves_between_cpus_are_counted_with_the_slice_that_follows() {
    let script = "
        10 c0 switch 0:swapper/0 R 7:a
        20 c0 switch 7:a S 0:swapper/0
        30 c1 switch 0:swapper/1 R 7:a
        40 c1 switch 7:a S 0:swapper/1
        50 c1 switch 0:swapper/1 R 7:a
        60 c1 switch 7:a S 0:swapper/1
        62 c0 migrate 7 2
        64 c0 migrate 7 0
        70 c0 switch 0:swapper/0 R 7:a
        80 c0 switch 7:a S 0:swapper/0
        82 c1 migrate 7 2
        84 c1 migrate 7 0
        90 c0 switch 0:swapper/0 R 7:a
        95 c0 switch 7:a S 0:swapper/0";
    check(
        script,
        "sched_slice",
        "ts cpu migrations",
        "
        10 0 0
        30 1 1
        50 1 0
        70 0 2
        90 0 2",
    );
}

#[test]
fn a_thread_does_not_inherit_the_cpu_of_one_that_is_gone() {
    let script = "
        10 c0 switch 0:swapper/0 R 9:a
        20 c0 switch 9:a X 0:swapper/0
        30 c0 free 9
        40 c1 fork 5:sh 11:sh
        50 c1 switch 0:swapper/1 R 11:b
        60 c1 switch 11:b S 0:swapper/1";
    check(
        script,
        "sched_slice",
        "tid cpu migrations",
        "
        9 0 0
        11 1 0",
    );
}
