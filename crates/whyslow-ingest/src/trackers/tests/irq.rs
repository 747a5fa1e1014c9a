use whyslow_model::stat;

use super::{check, check_count};

const IRQ: &str = "ts dur ts_end cpu kind nr name ts_raise raise_ns tid";

#[test]
fn handlers_nest() {
    let script = "
        10 c0 switch 0:swapper/0 R 1:a
        20 c0 soft+ 3
        22 c0 irq+ 30 ahci
        25 c0 irq- 30
        29 c0 soft- 3";
    check(
        script,
        "irq",
        IRQ,
        "
        20 9 29 0 soft 3 NET_RX - - 1
        22 3 25 0 hard 30 ahci - - 1",
    );
}

#[test]
fn the_first_raise_counts_and_only_on_its_cpu() {
    let script = "
        10 c0 raise 1
        11 c1 raise 1
        12 c0 raise 1
        13 c0 raise 9
        15 c0 soft+ 1
        16 c0 raise 1
        17 c0 soft- 1
        18 c0 soft+ 1
        19 c0 soft- 1
        20 c0 soft+ 1
        21 c0 soft- 1";
    check(
        script,
        "irq",
        IRQ,
        "
        15 2 17 0 soft 1 TIMER 10 5 -
        18 1 19 0 soft 1 TIMER 16 2 -
        20 1 21 0 soft 1 TIMER - - -",
    );
}

#[test]
fn a_raise_within_a_batch_is_served_by_the_next_one() {
    let script = "
        10 c0 raise 1
        11 c0 raise 7
        12 c0 soft+ 1
        13 c0 raise 7
        14 c0 raise 7
        15 c0 soft- 1
        16 c0 soft+ 7
        17 c0 soft- 7
        18 c0 soft+ 7
        19 c0 soft- 7";
    check(
        script,
        "irq",
        "ts nr ts_raise",
        "
        12 1 10
        16 7 11
        18 7 13",
    );
}

#[test]
fn an_exit_without_entry_is_kept_from_the_last_moment_it_was_not_running() {
    let script = "
        10 c0 other
        20 c0 irq- 30
        30 c0 switch 0:swapper/0 R 1:a
        40 c0 soft- 2";
    check(
        script,
        "irq",
        "ts dur ts_end kind nr name",
        "
        10 - 20 hard 30 -
        30 - 40 soft 2 NET_TX",
    );
    check_count(script, &stat::IRQ_EXIT_WITHOUT_ENTRY, 2);
}

#[test]
fn an_entry_without_exit_ends_unseen_at_what_cannot_be_in_an_interrupt() {
    let script = "
        5 c0 switch 0:swapper/0 R 1:a
        10 c0 irq+ 30 ahci
        20 c0 syscall read
        25 c0 waking 2:b 0
        30 c0 irq- 30";
    check(
        script,
        "irq",
        "ts dur ts_end kind nr",
        "
        10 - - hard 30
        20 - 30 hard 30",
    );
    check(script, "wakeup", "context", "task");
}

#[test]
fn timers_recorded_by_entry_alone_end_with_what_they_interrupt() {
    let script = "
        5 c0 switch 0:swapper/0 R 1:a
        10 c0 timer+
        11 c0 waking 2:b 0
        12 c0 timer+
        13 c0 soft+ 1
        14 c0 waking 3:c 0
        15 c0 soft- 1
        20 c0 timer+
        21 c0 switch 1:a R+ 3:c
        22 c0 waking 4:d 0";
    check(
        script,
        "irq",
        "ts dur ts_end kind",
        "
        10 - - hrtimer
        12 - - hrtimer
        13 2 15 soft
        20 - - hrtimer",
    );
    check(
        script,
        "wakeup",
        "ts context",
        "
        11 timer
        14 softirq
        22 task",
    );
}

#[test]
fn a_state_dump_names_interrupt_lines() {
    let script = "
        5 c0 irqname 30 ahci
        10 c0 irq+ 30
        20 c0 irq- 30
        30 c0 irq+ 31 eth0
        31 c0 irq- 31
        32 c0 irq+ 31
        33 c0 irq- 31";
    check(
        script,
        "irq",
        "nr name ret",
        "
        30 ahci 1
        31 eth0 1
        31 eth0 1",
    );
}

#[test]
fn a_loss_ends_what_was_running() {
    let script = "
        10 c0 irq+ 30 ahci
        12 c0 raise 1
        loss 0 15 18
        20 c0 soft+ 1
        21 c0 soft- 1
        22 c0 irq- 30";
    check(
        script,
        "irq",
        "ts dur ts_end kind raise_ns",
        "
        10 - - hard -
        20 1 21 soft -
        21 - 22 hard -",
    );
}

#[test]
fn endless_nesting_is_bounded() {
    let lines: Vec<String> = (0..40).map(|ts| format!("{ts} c0 irq+ {ts} x")).collect();
    let script = lines.join("\n");
    check_count(&script, &stat::MAP_LIMIT, 24);
    let rows: Vec<String> = (0..40).map(|nr| format!("{nr} -")).collect();
    check(&script, "irq", "nr dur", &rows.join("\n"));
}

#[test]
fn impossible_vectors_are_kept_without_raise() {
    let script = "
        10 c0 raise 99
        11 c0 raise -1
        12 c0 soft+ 99
        13 c0 soft- 99";
    check(script, "irq", IRQ, "12 1 13 0 soft 99 - - - -");
}
