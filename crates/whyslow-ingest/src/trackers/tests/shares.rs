//! Requests with sectors of several threads.

use super::text::check;

const SHARES: &str = "block_io_id ts tid comm sectors";

/// Thread 7 starts a request of 8 sectors at 100.
const BEGUN: &str = "
    0.000000001 [0] (tid=7 pid=7 comm=a) block_bio_queue dev=8:0 sector=100 sectors=8 rwbs=W
    0.000000002 [0] (tid=7 pid=7) block_getrq dev=8:0 sector=100 sectors=8 rwbs=W
";

const ISSUED: &str = "
    0.000000090 [1] (tid=2 pid=2) block_rq_issue dev=8:0 sector=100 sectors=24 rwbs=W
    0.000000099 [1] (tid=2 pid=2) block_rq_complete dev=8:0 sector=100 sectors=24 rwbs=W";

fn check_shares(merges: &str, expected: &str) {
    check(
        &format!("{BEGUN}{merges}{ISSUED}"),
        "block_share",
        SHARES,
        expected,
    );
}

#[test]
fn a_request_of_one_thread_has_no_shares() {
    check_shares(
        "
        0.000000003 [0] (tid=7 pid=7) block_bio_queue dev=8:0 sector=108 sectors=16 rwbs=W
        0.000000004 [0] (tid=7 pid=7) block_bio_backmerge dev=8:0 sector=108 sectors=16 rwbs=W",
        "",
    );
}

#[test]
fn threads_whose_bios_were_merged_have_their_sectors() {
    check_shares(
        "
        0.000000003 [1] (tid=8 pid=8 comm=b) block_bio_queue dev=8:0 sector=108 sectors=4 rwbs=W
        0.000000004 [1] (tid=8 pid=8) block_bio_backmerge dev=8:0 sector=108 sectors=4 rwbs=W
        0.000000005 [0] (tid=7 pid=7) block_bio_backmerge dev=8:0 sector=112 sectors=8 rwbs=W
        0.000000006 [1] (tid=8 pid=8) block_bio_backmerge dev=8:0 sector=120 sectors=4 rwbs=W",
        "
        0 1 7 a 16
        0 4 8 b 8",
    );
}

#[test]
fn a_bio_before_the_request_counts_and_one_of_an_interrupt_is_nobodys() {
    check(
        "
        0.000000001 [0] (tid=7 pid=7 comm=a) block_getrq dev=8:0 sector=108 sectors=8 rwbs=W
        0.000000002 [0] (tid=8 pid=8 comm=b) block_bio_frontmerge dev=8:0 sector=100 sectors=8 rwbs=W
        0.000000003 [0] (tid=8 pid=8 interrupt=soft) block_bio_backmerge dev=8:0 sector=116 sectors=8 rwbs=W
        0.000000004 [0] (tid=8 pid=8) block_rq_issue dev=8:0 sector=100 sectors=24 rwbs=W",
        "block_share",
        SHARES,
        "
        0 1 7 a 8
        0 2 8 b 8
        0 3 - - 8",
    );
}

#[test]
fn merged_requests_bring_the_shares_of_both() {
    check_shares(
        "
        0.000000003 [1] (tid=8 pid=8 comm=b) block_getrq dev=8:0 sector=108 sectors=8 rwbs=W
        0.000000004 [1] (tid=9 pid=9 comm=c) block_bio_backmerge dev=8:0 sector=116 sectors=8 rwbs=W
        0.000000005 [1] (tid=9 pid=9 comm=c) block_rq_merge dev=8:0 sector=108 sectors=16 rwbs=W",
        "
        0 1 7 a 8
        0 3 8 b 8
        0 4 9 c 8",
    );
}
