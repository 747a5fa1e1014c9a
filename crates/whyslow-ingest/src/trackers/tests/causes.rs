//! Wakeups by completions of requests: the waiting threads, and unrelated wakeups nearby.

use super::check;

const CAUSES: &str = "ts tid context cause cause_id";

/// Requests 0 and 1, submitted by thread 1.
const REQUESTS: &str = "
    10 c0 switch 0:swapper/0 R 1:a
    11 c0 syscall read
    12 c0 block queue 100
    13 c0 block issue 100
    14 c0 block queue 200
    15 c0 block issue 200
    16 c0 switch 1:a D 2:b";

fn check_causes(script: &str, expected: &str) {
    check(&format!("{REQUESTS}{script}"), "wakeup", CAUSES, expected);
}

#[test]
fn who_is_woken_inside_a_completion_waited_for_the_request() {
    check_causes(
        "
        20 c0 irq+ 30 ahci
        21 c0 block done 100
        22 c0 waking 1:a 0
        23 c0 block done 200
        24 c0 waking 3:c 0
        25 c0 waking 4:d 0
        26 c0 irq- 30
        27 c0 waking 5:e 0",
        "
        22 1 irq block_io 0
        24 3 irq block_io 1
        25 4 irq block_io 1
        27 5 task - -",
    );
}

#[test]
fn a_completion_may_be_held_up_where_the_end_of_its_interrupt_is_recorded() {
    check_causes(
        "
        20 c0 soft+ 4
        21 c0 block done 100
        9000021 c0 waking 1:a 0
        9000022 c0 irq+ 31 eth0
        9000023 c0 waking 3:c 0
        9000024 c0 irq- 31
        9000025 c0 waking 4:d 0
        9000026 c0 soft- 4
        9000027 c0 soft+ 3
        9000028 c0 waking 5:e 0",
        "
        9000021 1 softirq block_io 0
        9000023 3 irq - -
        9000025 4 softirq block_io 0
        9000028 5 softirq - -",
    );
}

#[test]
fn where_interrupts_are_told_by_events_alone_a_later_one_woke_for_its_own_reasons() {
    check_causes(
        "
        20 c0 in=hard block done 100
        21 c0 in=hard waking 1:a 0
        22 c0 in=soft waking 3:c 0
        23 c0 in=none waking 4:d 0
        30 c0 in=hard block done 200
        300030 c0 in=hard waking 5:e 0",
        "
        21 1 irq block_io 0
        22 3 softirq - -
        23 4 task - -
        300030 5 irq - -",
    );
}

#[test]
fn another_thread_or_the_next_call_has_nothing_to_do_with_the_completion() {
    check_causes(
        "
        20 c0 in=none block done 100
        21 c0 in=none waking 1:a 0
        22 c0 in=none syscall write
        23 c0 in=none waking 3:c 0
        24 c0 in=none block done 200
        25 c0 switch 2:b S 6:f
        26 c0 in=none waking 4:d 0
        27 c1 in=none waking 5:e 0",
        "
        21 1 task block_io 0
        23 3 task - -
        26 4 task - -
        27 5 task - -",
    );
}

#[test]
fn a_worker_passes_the_end_of_a_request_on_until_it_sleeps() {
    check_causes(
        "
        17 c1 dump 2/2:kthreadd 0 5
        18 c1 fork 2/2:kthreadd 9/9:kworker/0:1
        20 c0 in=hard block done 100
        21 c0 in=hard waking 9:kworker/0:1 0
        22 c0 in=hard waking 3:c 0
        30 c0 switch 2:b R+ 9:kworker/0:1
        31 c0 in=none waking 1:a 0
        32 c0 in=hard waking 4:d 0
        33 c0 switch 9:kworker/0:1 R+ 2:b
        34 c0 in=none waking 5:e 0
        35 c0 switch 2:b R+ 9:kworker/0:1
        36 c0 in=none waking 6:f 0
        37 c0 switch 9:kworker/0:1 I 2:b
        40 c0 in=none waking 9:kworker/0:1 0
        41 c0 switch 2:b R+ 9:kworker/0:1
        42 c0 in=none waking 7:g 0",
        "
        21 9 irq block_io 0
        22 3 irq block_io 0
        31 1 task worker 0
        32 4 irq - -
        34 5 task - -
        36 6 task worker 0
        40 9 task - -
        42 7 task - -",
    );
}

#[test]
fn a_worker_that_is_awake_passes_on_the_request_in_whose_end_its_work_was_queued() {
    check_causes(
        "
        17 c1 dump 2/2:kthreadd 0 5
        18 c1 fork 2/2:kthreadd 9/9:kworker/0:1
        20 c1 switch 0:swapper/1 R 9:kworker/0:1
        21 c1 in=none item begin 70 other worker
        22 c0 in=hard block done 100
        23 c0 in=hard item queued 71 end_io nobody
        24 c0 in=none item queued 72 else nobody
        25 c1 in=none waking 3:c 0
        26 c1 in=none item end 70 other worker
        27 c1 in=none item begin 71 end_io worker
        28 c1 in=none waking 1:a 0
        29 c1 in=hard waking 4:d 0
        30 c1 in=none item end 71 end_io worker
        31 c1 in=none waking 5:e 0
        32 c1 in=none item begin 72 else worker
        33 c1 in=none waking 6:f 0",
        "
        25 3 task - -
        28 1 task worker 0
        29 4 irq - -
        31 5 task - -
        33 6 task - -",
    );
}

#[test]
fn a_worker_that_the_end_of_a_request_woke_may_do_something_else_first() {
    check_causes(
        "
        17 c1 dump 2/2:kthreadd 0 5
        18 c1 fork 2/2:kthreadd 9/9:kworker/0:1
        20 c0 in=hard block done 100
        21 c0 in=hard item queued 71 end_io nobody
        22 c0 in=hard waking 9:kworker/0:1 1
        23 c1 switch 0:swapper/1 R 9:kworker/0:1
        24 c1 in=none item begin 70 other worker
        25 c1 in=none waking 3:c 0
        26 c1 in=none item end 70 other worker
        27 c1 in=none item begin 71 end_io worker
        28 c1 in=none item queued 73 next nobody
        29 c1 in=none waking 1:a 0
        30 c1 in=none item end 71 end_io worker
        31 c1 in=none item begin 73 next worker
        32 c1 in=none waking 4:d 0",
        "
        22 9 irq block_io 0
        25 3 task - -
        29 1 task worker 0
        32 4 task worker 0",
    );
}

#[test]
fn the_sleep_that_ends_knows_the_request() {
    let script = format!(
        "{REQUESTS}
        20 c0 in=hard block done 100
        21 c0 in=hard waking 1:a 0
        22 c0 switch 2:b R+ 1:a
        30 c0 switch 1:a S 2:b
        31 c0 in=none waking 1:a 0
        32 c0 switch 2:b S 1:a
        finish 40"
    );
    check(
        &script,
        "thread_state",
        "ts tid state wake_cause wake_cause_id",
        "
        10 1 running - -
        16 1 uninterruptible block_io 0
        16 2 running - -
        21 1 runnable block_io 0
        22 2 runnable - -
        22 1 running - -
        30 1 sleeping - -
        30 2 running - -
        31 1 runnable - -
        32 2 sleeping - -
        32 1 running - -",
    );
}
