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
fn a_writer_that_is_found_running_is_no_longer_held_back() {
    // Not recorded: its wakeup, and the switch to it from another thread.
    let script = "
        10 c0 switch 0:swapper/0 R 1:dd
        12 c0 syscall write
        20 c0 work dirty_throttle begin 8 0
        25 c0 switch 1:dd D 0:swapper/0
        90 c0 ctx=1/1:dd return write
        92 c0 syscall write
        95 c0 work dirty_throttle begin 8 0
        96 c0 switch 1:dd D 0:swapper/0
        130 c1 switch 1:dd D 0:swapper/0
        140 c0 ctx=1/1:dd work dirty_throttle begin 8 0
        142 c0 switch 1:dd D 0:swapper/0
        150 c0 ctx=1/1:dd work dirty_throttle begin 8 0";
    check(
        script,
        "kernel_work",
        "ts dur kind tid",
        "
        20 70 dirty_throttle 1
        95 35 dirty_throttle 1
        140 10 dirty_throttle 1
        150 - dirty_throttle 1",
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

#[test]
fn work_that_is_put_off_is_known_from_its_queueing_to_its_end() {
    let script = "
        10 c0 switch 0:swapper/0 R 1:dd
        11 c1 switch 0:swapper/1 R 2:kworker
        20 c0 item queued 7 flush task
        25 c1 item begin 7 flush worker
        30 c0 item queued 7 flush task
        31 c1 item end 7 - worker
        33 c1 item activated 7 - worker
        40 c1 item begin 7 flush worker
        41 c0 irq+ 9 disk
        42 c0 item queued 8 late task
        42 c0 item queued 4 soon task
        43 c0 irq- 9
        60 c1 item end 7 - worker
        61 c1 item end 7 - worker
        65 c0 item queued 8 late task
        70 c1 item begin 6 - worker
        75 c0 item begin 8 late task
        78 c0 item end 8 late task
        80 c1 item end 6 - worker
        85 c0 item begin 4 soon task
        86 c0 item end 4 - task
        90 c0 item queued 5 never task";
    check(
        script,
        "work_item",
        "id ts dur function workqueue ts_begin queue_ns requeued held_ns run_ns tid worker_tid cpu",
        "
        0 20 11 flush events 25 5 0 - 6 1 2 1
        1 30 30 flush events 40 10 0 3 20 1 2 1
        3 42 44 soon events 85 43 0 - 1 - - 0
        4 65 13 late events 75 10 1 - 3 1 - 0
        5 70 10 ff - 70 - - - 10 - 2 1
        6 90 - never events - - 0 - - 1 - -",
    );
    check_count(script, &stat::ITEM_END_WITHOUT_BEGIN, 1);
    check_count(script, &stat::FRAME_UNNAMED, 1);
}

#[test]
fn work_that_begins_again_before_its_end_has_lost_its_end() {
    let script = "
        11 c1 switch 0:swapper/1 R 2:kworker
        25 c1 item begin 7 flush worker
        35 c1 item begin 7 flush worker
        40 c1 item end 7 - worker";
    check_count(script, &stat::ITEM_NESTED, 1);
    let rows = "
        0 25 -
        1 35 5";
    check(script, "work_item", "id ts dur", rows);
}

#[test]
fn a_connection_belongs_to_who_asked_for_it_or_closed_it() {
    let script = "
        10 c0 switch 0:swapper/0 R 1:client
        11 c1 switch 0:swapper/1 R 2:server
        20 c0 tcp 7 close syn_sent 0
        21 c1 tcp 8 listen syn_recv 0
        22 c1 tcp 8 syn_recv established 0
        24 c1 tcp 7 syn_sent established 0
        30 c0 tcp 7 established fin_wait1 0
        31 c0 tcp 8 established close_wait 0
        33 c0 tcp 7 fin_wait1 fin_wait2 0
        40 c1 tcp 8 close_wait last_ack 0
        42 c1 tcp 7 fin_wait2 close 0
        43 c0 tcp 8 last_ack close 0";
    check(
        script,
        "tcp_connection",
        "id ts dur ts_end kind outcome closed_by local peer connect_ns state bytes_sent rtt_ns comm",
        "
        0 20 22 42 connect closed local 10.0.0.1:1007 10.0.0.2:80 4 close 5 7000 client
        1 21 22 43 accept closed peer 10.0.0.1:1008 10.0.0.2:80 - close 5 7000 server",
    );
}

#[test]
fn a_connection_ends_as_its_socket_says() {
    let script = "
        10 c0 switch 0:swapper/0 R 1:client
        20 c0 tcp 1 close syn_sent 0
        21 c0 tcp 1 syn_sent close 111
        22 c0 tcp 2 close syn_sent 0
        23 c0 tcp 2 syn_sent established 0
        24 c0 tcp 2 established close 104
        25 c0 tcp 3 established close 0
        26 c0 tcp 4 close syn_sent 0
        27 c0 tcp 4 syn_sent close 110
        28 c0 tcp 5 close syn_sent 0
        29 c0 tcp 5 close syn_sent 0
        30 c0 tcp 5 syn_sent close 113
        31 c0 tcp 6 close syn_sent 0
        32 c0 tcp 6 syn_sent established 0";
    check(
        script,
        "tcp_connection",
        "id ts dur kind outcome connect_ns error",
        "
        0 20 1 connect refused - 111
        1 22 2 connect reset 1 104
        2 25 - unknown aborted - -
        3 26 1 connect timeout - 110
        4 28 - connect open - -
        5 29 1 connect unreachable - 113
        6 31 - connect open 1 -",
    );
    check_count(script, &stat::TCP_END_MISSED, 1);
}

#[test]
fn a_signal_lasts_from_its_sender_to_the_thread_that_gets_it() {
    let script = "
        10 c0 switch 0:swapper/0 R 1:killer
        11 c1 switch 0:swapper/1 R 2:victim
        20 c0 signal 19 2 2 0
        21 c0 signal 19 2 2 2
        25 c1 got 19 2 2 0
        30 c0 signal 18 2 2 1
        40 c0 signal 9 2 2 0
        42 c1 got 9 2 2 0
        43 c1 got 9 3 2 0
        50 c0 irq+ 9 disk
        51 c0 signal 15 3 2 0
        52 c0 irq- 9
        53 c1 got 9 3 2 0
        54 c1 got 15 9 9 0";
    check(
        script,
        "signal",
        "id ts dur signal action origin result tid pid sender_tid sender_comm",
        "
        0 20 5 SIGSTOP stop kill sent 2 2 1 killer
        1 21 - SIGSTOP stop kill pending 2 2 1 killer
        2 30 0 SIGCONT continue kill sent 2 2 1 killer
        3 40 2 SIGKILL end kill sent 2 2 1 killer
        4 51 2 SIGTERM end kill sent 3 2 - -",
    );
}

#[test]
fn interrupts_by_other_cpus_know_when_they_were_sent() {
    let script = "
        10 c0 switch 0:swapper/0 R 1:a
        11 c1 switch 0:swapper/1 R 2:b
        20 c0 ipi 2 0 2
        22 c0 ipi 2 0 2
        25 c1 ipi+ 2
        27 c1 ipi- 2
        30 c0 ipi 1 0 3
        31 c0 ipi+ 1
        33 c0 ipi- 1
        40 c1 ipi+ 0
        41 c1 ipi- 0
        42 c1 ipi+ 1
        45 c1 ipi- 1
        50 c0 ipi 7 0 1
        51 c0 ipi 0 -5 1";
    check(
        script,
        "irq",
        "id ts dur cpu kind nr name raise_ns tid",
        "
        0 25 2 1 ipi 2 CALL_FUNCTION_SINGLE 5 2
        1 31 2 0 ipi 1 CALL_FUNCTION 1 1
        2 40 1 1 ipi 0 RESCHEDULE - 2
        3 42 3 1 ipi 1 CALL_FUNCTION 12 2",
    );
}

/// Names of descriptors are tested with recordings.
#[test]
fn files_that_come_into_the_page_cache_have_the_names_that_mounts_give_them() {
    let script = "
        1 c0 switch 0:swapper/0 R 1:a
        2 c0 mount 5 8 / /data
        2 c0 mount 5 8 /deep /d
        3 c0 place 8 71 /deep/file
        3 c0 place 8 72 /deeper/file
        9 c0 came read 4 8 71 13 -
        9 c0 came mapped 8 8 72 1 -
        9 c0 came write 8 8 73 1 -
        9 c0 came other 8 7340033 0 2 -";
    check(
        script,
        "cache_fill",
        "ts ts_end tid path has_name dev inode cause bytes",
        "
        4 9 1 /d/file true 8 71 read 53248
        8 9 1 /data/deeper/file true 8 72 mapped 4096
        8 9 1 inode:[0:8/73] false 8 73 write 4096
        8 9 1 device:[7:1] false 7340033 - other 8192",
    );
    check(script, "page_count", "tid cache_added", "1 17");
}
