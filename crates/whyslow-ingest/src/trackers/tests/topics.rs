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
