//! Wakeups by packets from this machine and from elsewhere.

use std::fmt::Write as _;

use super::text::check;

const CAUSES: &str = "ts tid context cause cause_id";

/// A segment from 10.0.0.1:80 to 10.0.0.1:4000.
fn segment(kind: &str, netif: &str, skb: u32, seq: u32) -> String {
    format!(
        "net kind={kind} bytes=60 netif={netif} skbaddr={skb} protocol=6 \
         source=10.0.0.1:80 destination=10.0.0.1:4000 tcp_seq={seq}"
    )
}

/// Each event at its own nanosecond, from 1; thread 20 sends.
fn script(events: &[(&str, String)]) -> String {
    let mut text = String::new();
    for (ts, (context, event)) in (1..).zip(events) {
        let context = match *context {
            "" => "(tid=20 pid=20 comm=server)".to_owned(),
            interrupt => format!("(tid=20 pid=20 comm=server interrupt={interrupt})"),
        };
        let _ = writeln!(text, "0.{ts:09} [0] {context} {event}");
    }
    text
}

fn check_causes(events: &[(&str, String)], expected: &str) {
    check(&script(events), "wakeup", CAUSES, expected);
}

fn waking(tid: i32) -> String {
    format!("sched_waking tid={tid}")
}

#[test]
fn who_gets_a_packet_over_loopback_was_woken_by_its_sender() {
    let events = [
        ("none", segment("queue", "lo", 5, 1)),
        ("none", segment("transmit", "lo", 5, 1)),
        ("soft", "irq_enter kind=soft nr=3".to_owned()),
        ("soft", segment("receive", "lo", 5, 1)),
        ("soft", waking(10)),
        ("hard", waking(11)),
        ("soft", waking(12)),
        ("soft", "irq_exit kind=soft nr=3".to_owned()),
        ("none", waking(13)),
    ];
    check_causes(
        &events,
        "
        5 10 softirq packet 0
        6 11 irq - -
        7 12 softirq packet 0
        9 13 task - -",
    );
    check(
        &script(&events),
        "net_packet",
        "id kind tid",
        "
        0 queue 20
        1 transmit 20
        2 receive -",
    );
}

#[test]
fn without_handlers_what_the_events_tell_of_the_cpu_is_enough_for_a_while() {
    let events = [
        ("none", segment("queue", "lo", 5, 1)),
        ("soft", segment("receive", "lo", 5, 1)),
        ("soft", waking(10)),
        ("none", waking(11)),
    ];
    check_causes(
        &events,
        "
        3 10 softirq packet 0
        4 11 task - -",
    );
    let late = "
        0.000000001 [0] (tid=20 interrupt=none) net kind=queue bytes=1 netif=lo skbaddr=5
        0.000000002 [0] (tid=20 interrupt=soft) net kind=receive bytes=1 netif=lo skbaddr=5
        0.000300003 [0] (tid=20 interrupt=soft) sched_waking tid=10";
    check(late, "wakeup", CAUSES, "300003 10 softirq - -");
}

#[test]
fn no_time_is_too_long_within_a_handler() {
    let text = "
        0.000000001 [0] (tid=20) irq_enter kind=soft nr=3
        0.000000002 [0] (tid=20) net kind=receive bytes=1 netif=eth0 skbaddr=5
        5.000000003 [0] (tid=20) sched_waking tid=10
        5.000000004 [0] (tid=20) irq_exit kind=soft nr=3
        5.000000005 [0] (tid=20) irq_enter kind=soft nr=1
        5.000000006 [0] (tid=20) sched_waking tid=11";
    check(
        text,
        "wakeup",
        CAUSES,
        "
        5000000003 10 softirq received 0
        5000000006 11 softirq - -",
    );
}

#[test]
fn a_buffer_that_was_sent_away_may_hold_a_packet_from_elsewhere() {
    check_causes(
        &[
            ("none", segment("queue", "eth0", 5, 1)),
            ("soft", segment("receive", "eth0", 5, 7)),
            ("soft", waking(10)),
            // Without headers, only packets sent over loopback are certain to arrive.
            (
                "none",
                "net kind=queue bytes=60 netif=eth0 skbaddr=6".to_owned(),
            ),
            (
                "soft",
                "net kind=receive bytes=60 netif=eth0 skbaddr=6".to_owned(),
            ),
            ("soft", waking(11)),
            (
                "none",
                "net kind=queue bytes=60 netif=lo skbaddr=6".to_owned(),
            ),
            (
                "soft",
                "net kind=receive bytes=60 netif=lo skbaddr=6".to_owned(),
            ),
            ("soft", waking(12)),
            // It was removed by then.
            (
                "soft",
                "net kind=receive bytes=60 netif=lo skbaddr=7".to_owned(),
            ),
            (
                "soft",
                "net kind=receive bytes=60 netif=lo skbaddr=6".to_owned(),
            ),
            ("soft", waking(13)),
        ],
        "
        3 10 softirq received 1
        6 11 softirq received 3
        9 12 softirq packet 4
        12 13 softirq received 7",
    );
}

#[test]
fn what_is_forwarded_stays_the_packet_of_its_first_sender() {
    let translated = segment("queue", "veth2", 5, 1).replace("10.0.0.1:80", "192.0.2.1:9");
    let arrives = segment("receive", "veth3", 5, 1).replace("10.0.0.1:80", "192.0.2.1:9");
    check_causes(
        &[
            ("none", segment("queue", "veth0", 5, 1)),
            ("soft", segment("receive", "veth1", 5, 1)),
            ("soft", segment("receive", "br0", 5, 1)),
            ("soft", translated),
            ("soft", arrives),
            ("soft", waking(10)),
        ],
        "6 10 softirq packet 0",
    );
}

#[test]
fn an_answer_of_the_kernel_has_no_sender() {
    let events = [
        ("none", segment("queue", "lo", 5, 1)),
        ("soft", segment("receive", "lo", 5, 1)),
        ("soft", segment("queue", "lo", 5, 900)),
        ("soft", segment("receive", "lo", 5, 900)),
        ("soft", waking(10)),
    ];
    check_causes(&events, "5 10 softirq packet 2");
    check(
        &script(&events),
        "net_packet",
        "id kind tid",
        "
        0 queue 20
        1 receive -
        2 queue -
        3 receive -",
    );
}

#[test]
fn nothing_is_said_where_nothing_tells_of_interrupts() {
    check_causes(
        &[
            ("", segment("queue", "lo", 5, 1)),
            ("", segment("receive", "lo", 5, 1)),
            ("", waking(10)),
        ],
        "3 10 unknown - -",
    );
}

#[test]
fn workers_pass_on_the_end_of_requests_but_not_packets() {
    check_causes(
        &[
            (
                "none",
                "state_process tid=2 pid=2 comm=kthreadd is_kernel=1".to_owned(),
            ),
            (
                "none",
                "state_process tid=9 pid=9 comm=kworker/0:1 is_kernel=1".to_owned(),
            ),
            ("soft", segment("receive", "eth0", 5, 1)),
            ("soft", waking(9)),
            (
                "none",
                "sched_switch prev=20 prev_state=R next=9".to_owned(),
            ),
        ],
        "4 9 softirq received 0",
    );
    let woken_by_worker = "
        0.000000001 [0] state_process tid=9 pid=9 comm=kworker/0:1 is_kernel=1
        0.000000002 [0] (tid=20 interrupt=soft) net kind=receive bytes=1 netif=eth0 skbaddr=5
        0.000000003 [0] (tid=20 interrupt=soft) sched_waking tid=9
        0.000000004 [0] sched_switch prev=20 prev_state=R next=9
        0.000000005 [0] (tid=9 interrupt=none) sched_waking tid=10";
    check(
        woken_by_worker,
        "wakeup",
        CAUSES,
        "
        3 9 softirq received 0
        5 10 task - -",
    );
}
