//! Inter-processor interrupts, against the kernel's own counts.

use whyslow_testkit::{Need, skip};

use super::{can_record, record, rows};
use crate::common::Place;

/// Wakes a thread on another CPU as often as possible.
const LOAD: &str = "
    cat /proc/interrupts >before
    mkfifo there back
    while read -r line; do echo $line; done <there >back &
    exec 3>there 4<back
    i=0; while [ $i -lt 997 ]; do echo $i >&3; read -r line <&4; i=$((i+1)); done
    cat /proc/interrupts >after
    exec 3>&- 4<&-; wait";

/// Handlers of this name on all CPUs.
fn counted(interrupts: &str, name: &str) -> Option<i64> {
    let line = interrupts
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(name))?;
    let counts = line
        .split_whitespace()
        .map_while(|word| word.parse::<i64>().ok());
    Some(counts.sum())
}

#[test]
fn interrupts_by_other_cpus_are_those_that_the_kernel_counts() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    record(&place, &["--what", "ipi,sched"], LOAD);
    let file = |name: &str| std::fs::read_to_string(place.join(name)).expect("the script wrote it");
    let (before, after) = (file("before"), file("after"));
    // Rescheduling, and function calls on all CPUs and on one.
    let during = |name: &str| Some(counted(&after, name)? - counted(&before, name)?);
    let (Some(resched), Some(calls)) = (during("RES:"), during("CAL:")) else {
        return skip(
            Need::Machine,
            "this architecture does not count them by these names",
        );
    };
    if resched + calls == 0 {
        return skip(Need::Machine, "one CPU only");
    }
    let all = rows(&place, &["irq", "log", "rec.wsl", "--op", "ipi"]);
    if all.is_empty() {
        return skip(Need::Machine, "this kernel has no such events");
    }
    let of = |name: &str| {
        let is_it =
            |row: &&serde_json::Value| row["name"].as_str().is_some_and(|it| it.starts_with(name));
        all.iter().filter(is_it).count() as i64
    };
    // The recording starts before the first and ends after the last reading of the counters.
    assert!(
        of("RESCHEDULE") >= resched,
        "{} {resched}",
        of("RESCHEDULE")
    );
    assert!(of("CALL") >= calls, "{} {calls}", of("CALL"));
    let sent = all.iter().filter(|row| row["raise_ns"].as_i64() >= Some(0));
    let sent = sent.count();
    assert!(sent * 10 >= all.len() * 9, "{sent} of {}", all.len());
}
