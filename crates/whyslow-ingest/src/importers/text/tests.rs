use super::*;

/// One line of each kind of item, as written by the writer.
const EVERY_KIND: &str = r#"
meta hostname=web1
12.000000100 [0] (tid=7 pid=7 ppid=1 comm=dd prio=120) sched_switch prev=7 prev_comm=dd prev_prio=120 prev_state=D next=0 next_comm=swapper/0 next_prio=120
12.000000101 [0] sched_switch prev=7 prev_comm= prev_state=R+ next=9 next_comm=
12.000000102 [0] sched_switch prev=7 prev_comm=dd prev_state=4711 next=9 next_comm=sh
12.000000200 [0] sched_waking tid=7 comm=dd prio=120 target_cpu=0
12.000000201 [0] sched_wakeup tid=7 comm="two words"
12.000000202 [0] sched_wakeup_new tid=8 comm=dd
12.000000203 [0] sched_migrate tid=8 to_cpu=1
12.000000300 [1] fork parent=7 parent_pid=7 parent_comm=sh child=8 child_pid=8 child_comm=sh
12.000000301 [1] exec filename=/bin/dd tid=8 old_tid=8
12.000000302 [1] exit tid=8 comm=dd
12.000000303 [1] free tid=8
12.000000304 [1] comm tid=8 comm="a\"b\\c\n\xff"
12.000000305 [1] prio tid=8 prio=100
12.000000400 [0] syscall_enter name=openat nr=257 dirfd=-100 path="/tmp/(x)" flags=577 command=438
12.000000401 [0] syscall_exit name=openat nr=257 ret=3
12.000000402 [0] syscall_exit ret=-2
12.000000403 [0] syscall_enter name=connect compat=1 fd=3 sockaddr=10.0.0.1:80
12.000000404 [0] syscall_exit name=accept4 ret=5 sockaddr=[2001:db8::1]:443
12.000000405 [0] syscall_enter name=connect fd=3 sockaddr=unix:/run/x.sock
12.000000406 [0] syscall_enter name=connect fd=3 sockaddr=family:16
12.000000407 [0] syscall_exit name=pipe2 ret=0 fds=3,4
12.000000408 [0] syscall_enter name=clone3 nr=435 raw=0x1,0x2,0x3,0x4,0x5,0xffffffffffffffff
12.000000409 [0] syscall_enter name=renameat2 dirfd=3 path=a dirfd2=4 path2=b flags=0
12.000000410 [0] syscall_enter name=mmap fd=3 count=4096 offset=0 flags=2 value=1 address=0x7fff00000000
12.000000411 [0] syscall_enter name=socket family=2 socket_type=1
12.000000500 [0] block_bio_queue dev=8:16 sector=2048 sectors=8 rwbs=WS tid=7 comm=dd
12.000000501 [0] block_bio_backmerge dev=8:16 sector=2048 sectors=8 rwbs=W
12.000000502 [0] block_bio_frontmerge dev=8:16 sector=2048 sectors=8 rwbs=R
12.000000503 [0] block_bio_complete dev=8:16 sector=2048 sectors=8 rwbs=R error=-5
12.000000504 [0] block_bio_remap dev=8:16 sector=2048 sectors=8 rwbs=RA old_dev=8:17 old_sector=0
12.000000505 [0] block_split dev=8:16 sector=2048 sectors=8 rwbs=R new_sector=2052
12.000000506 [0] block_getrq dev=8:16 sector=2048 sectors=8 rwbs=FWFSM
12.000000507 [0] block_rq_insert dev=8:16 sector=2048 sectors=8 bytes=4096 rwbs=D
12.000000508 [0] block_rq_issue dev=8:16 sector=0 sectors=0 rwbs=F
12.000000509 [0] block_rq_merge dev=8:16 sector=2048 sectors=8 rwbs=DE
12.000000510 [0] block_rq_requeue dev=8:16 sector=2048 sectors=8 rwbs=N
12.000000511 [0] block_rq_complete dev=8:16 sector=2048 sectors=8 rwbs=W error=0
12.000000600 [0] irq_enter kind=hard nr=19 name=ahci
12.000000601 [0] irq_exit kind=hard nr=19 ret=1
12.000000602 [0] irq_enter kind=soft nr=4
12.000000603 [0] irq_enter kind=hrtimer nr=0
12.000000604 [0] softirq_raise nr=4
12.000000700 [0] net kind=receive netif=eth0 bytes=60 skbaddr=0xffff880000000000 protocol=6 source=10.0.0.1:80 destination=10.0.0.2:4711 tcp_seq=99
12.000000701 [0] net kind=queue netif=lo bytes=60 protocol=58 source=fe80::1 destination=fe80::2
12.000000702 [0] net kind=transmit netif=lo bytes=60 ret=0
12.000000800 [0] page_alloc order=3
12.000000801 [0] page_free order=0
12.000000802 [0] memory kind=fault_user order=0
12.000000803 [0] memory kind=cache_add order=2
12.000000804 [0] reclaim_begin kind=direct order=3
12.000000805 [0] reclaim_end kind=direct pages=32
12.000000806 [0] reclaim_begin kind=kswapd order=0 node=1
12.000000807 [0] reclaim_end kind=kswapd node=1
12.000000808 [0] work kind=writeback phase=begin dev=254:16 reason=sync pages=9000
12.000000809 [0] work kind=reclaim_throttle phase=done reason=writeback dur=100000000
12.000000810 [0] work_item phase=queued work=0xff0 address=0xff8 function=blk_mq_run_work_fn workqueue=kblockd is_worker=false
12.000000810 [0] work_item phase=end work=0xff0 is_worker=true
12.000000810 [0] stack kind=back since=11.900000000 state=D cpu=0 user_follows=true kernel=folio_wait_bit;ext4_sync_fs
12.000000810 [0] stack kind=user since=11.900000000 user=fsync;main
12.000000810 [0] stack kind=sample since=11.900000000 kernel=copy_page user=memcpy
12.000000810 [0] stack kind=sample since=11.900000000 user="\nLorg/apache/Foo;::bar\nmain"
12.000000810 [0] lock_wait kind=rwsem lock=0xffff888000001000 since=11.900000000 is_write=true slept=true ret=0 kernel=xfs_ilock;xfs_file_buffered_write
12.000000810 [0] net_fault kind=retransmit skbaddr=0xff protocol=6 source=10.0.0.1:80 destination=10.0.0.2:4711
12.000000811 [0] net_fault kind=drop skbaddr=0xff reason=5 ethertype=2048
12.000000900 [0] state_process tid=1 pid=1 ppid=0 comm=init is_kernel=false status=5 cpu=0 file_table=0xffff8880049cb600
12.000000901 [0] state_fd file_table=0xffff8880049cb600 fd=0 flags=2 path=/dev/console
12.000000902 [0] state_fd pid=1 fd=1 path=pipe:[17]
12.000000903 [0] state_block_device dev=8:0 name=sda
12.000000904 [0] state_net_interface name=eth0 ifindex=2 address=10.0.0.1
12.000000905 [0] state_irq irq=19 name=IO-APIC action=ahci
12.000000906 [0] state_end
12.000000907 [-] (tid=7 pid=7 comm=dd) counters reported_by=pidstat pid=7 subject=0 interval=1000000000 values="%usr 9800 hundredths;kB_rd/s 4096 bytes/s"
12.000000907 [-] (tid=7) lookup_begin function=getaddrinfo host=example.org service=http
12.000000908 [-] (tid=7) lookup since=11.900000000 function=getaddrinfo host=example.org service=http code=-2 address=10.0.0.1
12.000000908 [-] (tid=7) lookup since=11.900000000 function=unknown host=example.org
12.000000909 [-] (tid=7) tcp sock=0x9 from=close to=established local=10.0.0.1:80 peer=[fe80::1]:4711 acked=1024 received=0 retransmits=1 rtt_us=70 error=0
12.000000909 [-] process pid=7 ppid=1 executable=/bin/dd command_line="dd if=a" uid=0 created=11.000000000
12.000001000 [-] marker name=lttng_logger text="begin of test 1"
12.000001001 [0] lost kind=events until=13.000000000 count=17 stream=ch0_0
12.000001002 [0] (tid=7) other
-1.500000000 [0] other
"#;

fn rewrite(text: &str, line: &mut Line) -> String {
    let mut out = String::new();
    let mut room = EventBuffers::default();
    match parse(text, line, &mut room).unwrap_or_else(|error| panic!("{text}: {error}")) {
        Item::Nothing => {}
        Item::Metadata { key, value } => {
            write_metadata(key, std::str::from_utf8(value).expect("a test"), &mut out);
        }
        Item::Event { event, .. } => write_event(&event, &mut out),
        Item::Loss(loss) => write_loss(&loss, &mut out),
    }
    out
}

#[test]
fn every_kind_of_event_reads_back_as_written() {
    let mut line = Line::default();
    for text in EVERY_KIND.lines().filter(|text| !text.is_empty()) {
        assert_eq!(rewrite(text, &mut line), format!("{text}\n"));
    }
}

#[test]
fn spelling_is_free_where_the_grammar_says_so() {
    let mut line = Line::default();
    let check = |text: &str, canonical: &str, line: &mut Line| {
        assert_eq!(rewrite(text, line).trim_end(), canonical);
    };
    check("# a comment", "", &mut line);
    check("whyslow-text 1", "", &mut line);
    check(
        "  1  [0]  free   tid=0x10 ",
        "1.000000000 [0] free tid=16",
        &mut line,
    );
    check(
        "1 [-] counters told_by=sar values=\"a 1 count\"",
        "1.000000000 [-] counters reported_by=sar values=\"a 1 count\"",
        &mut line,
    );
    check(
        "1.5 [2] free tid=\"7\"",
        "1.500000000 [2] free tid=7",
        &mut line,
    );
}

#[test]
fn bad_lines_say_what_is_wrong() {
    let check = |text: &str, expected: &str| {
        let mut line = Line::default();
        let mut room = EventBuffers::default();
        let error = parse(text, &mut line, &mut room).err();
        assert_eq!(error.as_deref(), Some(expected), "{text}");
    };
    check("now [0] free tid=7", "`now` is not a time");
    check(
        "1.0000000001 [0] free tid=7",
        "`1.0000000001` is not a time",
    );
    check("1 0 free tid=7", "`0` is not a CPU");
    check("1 [-1] free tid=7", "`[-1]` is not a CPU");
    check("1 [0]", "missing event name");
    check("1 [0] free", "missing `tid`");
    check("1 [0] free tid=x", "invalid `tid=x`");
    check("1 [0] free tid=7 (", "`(` is not a field");
    check("1 [0] (tid=7 free tid=7", "`free tid=7` is not a field");
    check("1 [0] frees tid=7", "unknown event `frees`");
    check("1 [0] comm tid=7 comm=\"x", "unterminated quoted value");
    check("1 [0] comm tid=7 comm=\"\\q\"", "unknown escape sequence");
    check(
        "1 [0] block_rq_eat dev=8:0 sector=0 sectors=0 rwbs=R",
        "unknown event `block_rq_eat`",
    );
    check(
        "1 [0] state_block_device dev=8.0 name=x",
        "invalid `dev=8.0`",
    );
}
