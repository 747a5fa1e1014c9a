use super::check;

const WAKEUP: &str = "id ts kind tid cpu target_cpu waker_tid context context_nr spurious";

#[test]
fn the_context_of_the_waker_is_the_innermost_handler() {
    let script = "
        10 c0 switch 0:swapper/0 R 1:a
        20 c0 irq+ 30 ahci
        21 c0 waking 2:b 0
        22 c0 irq- 30
        23 c0 soft+ 4
        24 c0 waking 3:c 0
        25 c0 irq+ 31 eth0
        26 c0 waking 4:d 0
        27 c0 irq- 31
        28 c0 waking 5:e 0
        29 c0 soft- 4
        30 c0 timer+
        31 c0 waking 6:f 0
        32 c0 timer-
        33 c0 waking 7:g 0";
    check(
        script,
        "wakeup",
        WAKEUP,
        "
        0 21 waking 2 0 0 1 irq 30 false
        1 24 waking 3 0 0 1 softirq 4 false
        2 26 waking 4 0 0 1 irq 31 false
        3 28 waking 5 0 0 1 softirq 4 false
        4 31 waking 6 0 0 1 timer - false
        5 33 waking 7 0 0 1 task - false",
    );
}

#[test]
fn idle_wakes_nobody_itself() {
    let script = "
        10 c0 switch 1:a S 0:swapper/0
        20 c0 waking 1:a 0
        21 c0 wakeup 1:a 0";
    check(
        script,
        "wakeup",
        WAKEUP,
        "
        0 20 waking 1 0 0 0 irq - false
        1 21 wakeup 1 0 0 0 unknown - false",
    );
}

#[test]
fn a_thread_outside_the_kernel_may_be_a_bystander_of_an_unrecorded_timer() {
    let script = "
        10 c0 switch 0:swapper/0 R 1:a
        11 c0 soft+ 9
        12 c0 soft- 9
        13 c0 waking 2:b 0
        14 c0 syscall write
        15 c0 waking 3:c 0
        16 c0 return write
        17 c0 waking 4:d 0
        18 c0 timer+
        19 c0 timer-
        20 c0 waking 5:e 0";
    check(
        script,
        "wakeup",
        "ts context waker_tid",
        "
        13 task 1
        15 task 1
        17 unknown 1
        20 task 1",
    );
}

#[test]
fn without_recorded_interrupts_the_context_is_unknown() {
    let script = "
        10 c0 switch 0:swapper/0 R 1:a
        20 c0 waking 2:b 0";
    check(
        script,
        "wakeup",
        WAKEUP,
        "0 20 waking 2 0 0 1 unknown - false",
    );
}

#[test]
fn waking_a_thread_that_is_not_asleep_is_spurious() {
    let script = "
        10 c0 switch 0:swapper/0 R 1:a
        15 c1 switch 0:swapper/1 R 2:b
        20 c0 waking 2:b 1
        21 c0 wakeup 2:b 1
        25 c1 switch 2:b S 0:swapper/1
        30 c0 waking 2:b 1
        31 c0 waking 2:b 1
        32 c1 wakeup 2:b 1
        33 c1 wakeup 2:b 1";
    check(
        script,
        "wakeup",
        "ts kind tid spurious",
        "
        20 waking 2 true
        21 wakeup 2 true
        30 waking 2 false
        31 waking 2 true
        32 wakeup 2 true
        33 wakeup 2 true",
    );
}

#[test]
fn a_wakeup_alone_ends_the_sleep() {
    let script = "
        10 c0 switch 1:a S 2:b
        20 c0 wakeup 1:a 0
        30 c0 switch 2:b S 1:a";
    check(
        script,
        "thread_state",
        "ts ts_end tid state wakeup_id waker_utid",
        "
        10 20 1 sleeping 0 1
        10 30 2 running - -
        20 30 1 runnable 0 1
        30 - 2 sleeping - -
        30 - 1 running - -",
    );
}

#[test]
fn the_state_points_at_the_waking_not_the_wakeup() {
    let script = "
        10 c0 switch 1:a S 2:b
        20 c0 waking 1:a 0
        25 c1 wakeup 1:a 0
        30 c0 switch 2:b S 1:a";
    check(
        script,
        "thread_state",
        "tid state ts_end wakeup_id waker_utid",
        "
        1 sleeping 20 0 1
        2 running 30 - -
        1 runnable 30 0 1
        2 sleeping - - -
        1 running - - -",
    );
}

#[test]
fn an_interrupt_that_wakes_makes_nobody_the_waker() {
    let script = "
        10 c0 switch 1:a S 2:b
        20 c0 soft+ 1
        21 c0 waking 1:a 0
        22 c0 soft- 1
        30 c0 switch 2:b S 1:a";
    check(
        script,
        "thread_state",
        "tid state ts_end waker_utid wake_context",
        "
        1 sleeping 21 - softirq
        2 running 30 - -
        1 runnable 30 - softirq
        2 sleeping - - -
        1 running - - -",
    );
    check(
        script,
        "wakeup",
        "tid waker_tid waker_utid context",
        "1 2 1 softirq",
    );
}

#[test]
fn the_woken_is_known_with_its_name() {
    let script = "10 c0 waking 5:jbd2/sda-8 0";
    check(
        script,
        "wakeup",
        "utid tid comm prio waker_tid",
        "0 5 jbd2/sda-8 120 -",
    );
}
