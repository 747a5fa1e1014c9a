//! Recordings to cut and to follow.

use std::fmt::Write as _;
use std::sync::OnceLock;

use whyslow_test_recordings::Recorded;

/// A web server with a slow page, recorded with LTTng.
pub(crate) fn incident() -> &'static Recorded {
    static MADE: OnceLock<Recorded> = OnceLock::new();
    MADE.get_or_init(|| Recorded::of_fixture("web-incident/trace.tar.zst"))
}

/// Calls that are written after later ones because they take longer, calls without an end in the
/// middle and at the end, and lost events.
pub(crate) fn text() -> &'static Recorded {
    static MADE: OnceLock<Recorded> = OnceLock::new();
    MADE.get_or_init(|| Recorded::of_text(&lines()))
}

const STEPS: i64 = 45_000;
const STEP_US: i64 = 200;

fn lines() -> String {
    let mut text = String::from("meta hostname=made\n");
    let begin = 1_421_342_317_000_000_i64;
    for step in 0..STEPS {
        let at = |us: i64| {
            let time = begin + step * STEP_US + us;
            format!("{}.{:06}000", time / 1_000_000, time % 1_000_000)
        };
        let tid = 20 + step % 7;
        let context = format!("(tid={tid} pid={} comm=web{})", tid - tid % 2, tid % 3);
        let mut line = |us: i64, rest: &str| {
            let _ = writeln!(text, "{} [{}] {rest}", at(us), tid % 2);
        };
        line(
            0,
            &format!(
                "{context} syscall_enter name=write fd={} count=100",
                3 + step % 5
            ),
        );
        line(
            20 + step % 50,
            &format!("{context} syscall_exit name=write ret=100"),
        );
        match step % 1000 {
            // From another thread, for a few seconds.
            7 => line(
                90,
                &format!(
                    "(tid={} pid=90 comm=slow) syscall_enter name=fsync fd=3",
                    90 + step / 1000 % 20
                ),
            ),
            977 if step % 3000 != 2977 => {
                line(
                    90,
                    &format!(
                        "(tid={} pid=90 comm=slow) syscall_exit name=fsync ret=0",
                        90 + (step / 1000 + 10) % 20
                    ),
                );
            }
            100 => line(
                91,
                &format!(
                    "{context} syscall_enter name=openat path=\"/srv/file{}\" flags=66",
                    step / 1000
                ),
            ),
            101 => line(92, &format!("{context} page_alloc order=1")),
            200 => line(
                93,
                &format!(
                    "{context} block_rq_issue dev=8:0 sector={step} sectors=8 rwbs=WS bytes=4096"
                ),
            ),
            240 => line(
                94,
                &format!(
                    "(tid=0) block_rq_complete dev=8:0 sector={} sectors=8 rwbs=WS error=0",
                    step - 40
                ),
            ),
            300 => line(
                95,
                &format!(
                    "{context} sched_switch prev={tid} prev_state=D next=0 prev_comm=web{}",
                    tid % 3
                ),
            ),
            350 => line(
                95,
                &format!("(tid=0) sched_waking tid={} comm=web", 20 + (step - 50) % 7),
            ),
            360 => line(
                95,
                &format!(
                    "(tid=0) sched_switch prev=0 prev_state=R next={} next_comm=web{}",
                    20 + (step - 60) % 7,
                    (20 + (step - 60) % 7) % 3
                ),
            ),
            400 => line(
                96,
                &format!("{context} net kind=queue bytes=1500 netif=eth0 skbaddr=0x10"),
            ),
            450 => line(96, &format!("{context} irq_enter kind=hard nr=14 name=ata")),
            _ => {}
        }
        if step % 1000 == 450 {
            line(99, "irq_exit kind=hard nr=14 ret=1");
        }
        if step % 9000 == 4000 {
            let until = begin + (step + 300) * STEP_US;
            line(
                100,
                &format!(
                    "lost kind=events until={}.{:06}000 count=17 stream=ch0",
                    until / 1_000_000,
                    until % 1_000_000
                ),
            );
        }
    }
    text
}
