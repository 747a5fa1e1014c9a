use whyslow_model::stat;

use super::{check, check_count};

#[test]
fn a_packet_belongs_to_who_sends_it_in_its_own_context() {
    let script = "
        10 c0 switch 0:swapper/0 R 1:curl
        11 c0 queue eth0 100
        12 c0 tx eth0 100
        13 c0 soft+ 3
        14 c0 rx eth0 60
        15 c0 queue eth0 40
        16 c0 soft- 3
        17 c0 rx lo 60";
    check(
        script,
        "net_packet",
        "id ts kind netif bytes cpu tid comm",
        "
        0 11 queue eth0 100 0 1 curl
        1 12 transmit eth0 100 0 1 curl
        2 14 receive eth0 60 0 - -
        3 15 queue eth0 40 0 - -
        4 17 receive lo 60 0 - -",
    );
}

#[test]
fn pages_are_summed_by_thread_and_second() {
    let script = "
        1000000010 c0 switch 0:swapper/0 R 1:a
        1000000020 c0 page+ 0
        1000000030 c0 page+ 3
        1000000040 c0 page- 1
        1000000050 c0 soft+ 9
        1000000060 c0 page- 0
        1000000070 c0 soft- 9
        2000000000 c0 page- 0
        2000000010 c0 switch 1:a S 2:b
        2000000020 c0 page+ 0";
    check(
        script,
        "page_count",
        "id ts tid allocated freed",
        "
        0 1000000000 1 9 2
        1 1000000000 - 0 1
        2 2000000000 1 0 1
        3 2000000000 2 1 0",
    );
}

#[test]
fn an_impossible_page_order_is_counted() {
    check_count("10 c0 page+ 60", &stat::VALUE_IMPOSSIBLE, 1);
    check("10 c0 page+ 60", "page_count", "id", "");
}

#[test]
fn faults_are_counted_with_the_pages_of_their_thread() {
    let script = "
        1000000010 c0 switch 0:swapper/0 R 1:a
        1000000020 c0 memory fault_user 0
        1000000030 c0 memory fault_user 0
        1000000035 c0 memory fault_kernel 0
        1000000040 c0 memory cache_add 2
        1000000045 c0 memory cache_remove 0
        1000000050 c0 page+ 0
        1000000055 c0 irq+ 9
        1000000060 c0 memory fault_kernel 0
        1000000065 c0 irq- 9
        1000000070 c0 memory kswapd_wakeup 0
        2000000000 c0 memory reclaim_write 0
        2000000005 c0 memory fault_user 60";
    check(
        script,
        "page_count",
        "ts tid allocated faults_user faults_kernel cache_added cache_removed reclaim_written \
         kswapd_wakeups",
        "
        1000000000 1 1 2 1 4 1 0 1
        1000000000 - 0 0 1 0 0 0 0
        2000000000 1 0 0 0 0 0 1 0",
    );
    check_count(script, &stat::VALUE_IMPOSSIBLE, 1);
}

#[test]
fn a_thread_is_stalled_from_begin_to_end_of_its_reclaim() {
    let script = "
        10 c0 switch 0:swapper/0 R 1:a
        11 c1 switch 0:swapper/1 R 2:b
        20 c0 reclaim+ direct 3 0
        22 c0 reclaim+ cgroup_soft 0 0
        23 c0 reclaim- cgroup_soft 1 0
        25 c1 reclaim+ cgroup 0 0
        30 c0 switch 1:a D 3:c
        40 c1 switch 2:b D 1:a
        50 c1 reclaim- direct 32 0
        60 c0 switch 3:c S 2:b
        70 c0 reclaim- cgroup 8 0";
    check(
        script,
        "reclaim",
        "id ts dur ts_end kind tid comm cpu alloc_order pages",
        "
        0 20 30 50 direct 1 a 0 3 32
        1 22 1 23 cgroup_soft 1 a 0 0 1
        2 25 45 70 cgroup 2 b 1 0 8",
    );
}

#[test]
fn kswapd_is_awake_from_its_first_wake_to_its_sleep() {
    let script = "
        10 c0 switch 0:swapper/0 R 7:kswapd0
        11 c0 reclaim+ kswapd 2 0
        12 c1 reclaim+ kswapd 0 1
        15 c0 reclaim+ kswapd 0 0
        20 c0 reclaim- kswapd 0 0
        30 c1 reclaim- kswapd 0 1
        40 c0 reclaim+ kswapd 1 0";
    check(
        script,
        "reclaim",
        "id ts dur kind tid alloc_order node",
        "
        0 11 9 kswapd 7 2 0
        1 12 18 kswapd - 0 1
        2 40 - kswapd 7 1 0",
    );
}

#[test]
fn reclaim_without_its_other_end_is_counted() {
    let script = "
        10 c0 switch 0:swapper/0 R 1:a
        20 c0 reclaim- direct 9 0
        30 c0 reclaim+ direct 0 0
        40 c0 reclaim+ direct 1 0
        50 c0 reclaim- direct 9 0
        60 c0 reclaim+ direct 2 0
        70 c0 exit 1:a
        80 c0 switch 1:a X 0:swapper/0
        90 c0 free 1";
    check_count(script, &stat::RECLAIM_END_WITHOUT_BEGIN, 1);
    check_count(script, &stat::RECLAIM_NESTED, 1);
    check(
        script,
        "reclaim",
        "id ts dur alloc_order",
        "
        0 30 - 0
        1 40 10 1
        2 60 - 2",
    );
}

#[test]
fn a_segment_sent_again_belongs_to_the_interface_of_its_sender() {
    let script = "
        5 c0 retransmit 2 4711
        8 c0 netif eth0 1
        10 c0 switch 0:swapper/0 R 1:curl
        11 c0 retransmit 2 4711
        12 c0 soft+ 3
        13 c0 retransmit_synack 3 99
        14 c0 drop 5 2048
        15 c0 soft- 3
        16 c0 drop 2 34525
        17 c0 drop 2 9999";
    check(
        script,
        "net_packet",
        "ts kind netif bytes tid protocol source destination drop_reason",
        "
        5 retransmit - - - tcp 10.0.0.1:80 10.0.0.2:4711 -
        11 retransmit eth0 - 1 tcp 10.0.0.1:80 10.0.0.2:4711 -
        13 retransmit_synack eth0 - - tcp 10.0.0.1:80 10.0.0.3:99 -
        14 drop - - - ipv4 - - 5
        16 drop - - 1 ipv6 - - 2
        17 drop - - 1 0x270f - - 2",
    );
}

#[test]
fn a_mark_names_its_thread() {
    let script = "
        10 c0 switch 0:swapper/0 R 1:a
        20 c0 mark lttng_logger step2";
    check(
        script,
        "marker",
        "id ts cpu tid comm name text",
        "0 20 0 1 a lttng_logger step2",
    );
}

#[test]
fn work_of_the_kernel_has_begin_end_and_phases() {
    let script = "
        10 c0 switch 0:swapper/0 R 1:jbd2
        11 c1 switch 0:swapper/1 R 2:flush
        20 c0 work journal_commit begin 8 0
        21 c1 work writeback begin 9 900
        24 c0 work journal_commit locking 8 0
        27 c0 work journal_commit flushing 8 0
        32 c0 work journal_commit logging 8 0
        40 c0 switch 1:jbd2 D 3:c
        41 c1 work writeback end 9 850
        50 c1 switch 2:flush S 1:jbd2
        61 c1 work journal_commit end 8 0
        70 c0 work reclaim_throttle done 9 25";
    check(
        script,
        "kernel_work",
        "id ts dur kind dev pages locking_ns flushing_ns logging_ns tid",
        "
        0 20 41 journal_commit 8 0 3 5 29 1
        1 21 20 writeback 9 50 - - - 2
        2 45 25 reclaim_throttle 9 - - - - 3",
    );
}

#[test]
fn a_writer_is_held_back_until_it_runs_again_after_a_sleep() {
    let script = "
        10 c0 switch 0:swapper/0 R 1:dd
        20 c0 work dirty_throttle begin 8 0
        22 c0 switch 1:dd R 2:b
        24 c0 switch 2:b S 1:dd
        25 c0 switch 1:dd D 2:b
        95 c0 switch 2:b S 1:dd
        97 c0 switch 1:dd D 2:b
        98 c0 switch 2:b S 1:dd
        99 c0 work dirty_throttle begin 8 0";
    check(
        script,
        "kernel_work",
        "id ts dur kind tid comm",
        "
        0 20 75 dirty_throttle 1 dd
        1 99 - dirty_throttle 1 dd",
    );
}

#[test]
fn work_without_its_other_end_is_counted() {
    let script = "
        10 c0 switch 0:swapper/0 R 1:a
        20 c0 work log_wait end 8 0
        30 c0 work log_wait begin 8 0
        40 c0 work log_wait begin 8 0
        50 c0 exit 1:a
        60 c0 switch 1:a X 0:swapper/0
        70 c0 free 1";
    check_count(script, &stat::WORK_END_WITHOUT_BEGIN, 1);
    check_count(script, &stat::WORK_NESTED, 1);
    let rows = "
        0 30 -
        1 40 -";
    check(script, "kernel_work", "id ts dur", rows);
}
