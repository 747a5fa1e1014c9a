//! Hand-made events of every release, compared with the line of text that they are converted to.

use super::super::class::{
    ByteOrder, EnvironmentValue, EventClass, FieldClass, IntegerClass, IntegerKind, Member,
    StreamClass, StructClass, TextEncoding, TraceClass, Version,
};
use super::super::consumer::Trace;
use super::super::slot::{Slot, SlotKind};
use super::super::stream::{Plans, StreamReader};
use super::*;
use crate::importers::text;

/// Fields as `name=value`; the value is a number, `'text'`, `[numbers]` or `<hex bytes>`. A dot in
/// the name denotes a structure.
struct Case {
    release: &'static str,
    domain: Domain,
    event: &'static str,
    payload: &'static str,
    context: &'static str,
}

const KERNEL: Case = Case {
    release: "6.1.0-50-amd64",
    domain: Domain::Kernel,
    event: "",
    payload: "",
    context: "",
};

fn integer() -> FieldClass {
    FieldClass::Integer(IntegerClass {
        bits: 64,
        kind: IntegerKind::Signed,
        byte_order: ByteOrder::Little,
        bit_order: ByteOrder::Little.usual_bit_order(),
        alignment: 8,
        base: 10,
        is_text: false,
        clock: None,
        roles: Vec::new(),
        mappings: Vec::new(),
    })
}

fn fields(text: &'static str) -> Vec<(&'static str, &'static str)> {
    let fields = text.split_whitespace();
    fields
        .map(|field| field.split_once('=').expect("name=value"))
        .collect()
}

fn class_of(value: &str) -> FieldClass {
    if value.starts_with('\'') {
        FieldClass::Text {
            encoding: TextEncoding::Utf8,
        }
    } else if value.starts_with(['[', '<']) {
        FieldClass::Array {
            element: Box::new(integer()),
            length: 2,
            alignment: 8,
        }
    } else {
        integer()
    }
}

fn structure(text: &'static str) -> Option<StructClass> {
    let mut class = StructClass {
        members: Vec::new(),
        alignment: 8,
    };
    for (path, value) in fields(text) {
        let (head, rest) = path.split_once('.').unwrap_or((path, ""));
        let inner = Member {
            name: rest.to_owned(),
            class: class_of(value),
        };
        let field = if rest.is_empty() {
            class_of(value)
        } else {
            FieldClass::Struct(StructClass {
                members: vec![inner],
                alignment: 8,
            })
        };
        class.members.push(Member {
            name: head.to_owned(),
            class: field,
        });
    }
    (!class.members.is_empty()).then_some(class)
}

/// The slot that a reader produces for a value.
fn slot(value: &str, window: &mut Vec<u8>, columns: &mut Vec<Vec<u64>>) -> Slot {
    let inner = || &value[1..value.len() - 1];
    let begin = window.len();
    let of = |kind, len: usize, bits| Slot {
        kind,
        len: len as u32,
        bits,
    };
    match value.as_bytes()[0] {
        b'\'' => {
            window.extend_from_slice(inner().as_bytes());
            of(SlotKind::Str, window.len() - begin, begin as u64)
        }
        b'<' => {
            let pairs = inner().as_bytes().chunks(2);
            let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).expect("hex"), 16);
            window.extend(pairs.map(|pair| byte(pair).expect("hex")));
            of(SlotKind::Bytes, window.len() - begin, begin as u64)
        }
        b'[' => {
            let values = inner().split(',').map(str::parse::<i64>);
            columns.push(
                values
                    .map(|value| value.expect("a number") as u64)
                    .collect(),
            );
            Slot::ints(columns.len() as u16 - 1)
        }
        b'-' => {
            let number: i64 = value.parse().expect("a number");
            of(SlotKind::Signed, 0, number as u64)
        }
        _ => of(SlotKind::Unsigned, 0, value.parse().expect("a number")),
    }
}

fn line(case: &Case) -> Option<String> {
    line_among(case, &[])
}

/// The event's line of text without the time, as a reader would deliver it to the mapper. The trace
/// also declares the other events.
// tidy: long because it spells out a whole trace class
fn line_among(case: &Case, others: &[&str]) -> Option<String> {
    let class = |name: &str, payload| EventClass {
        id: 0,
        name: name.to_owned(),
        log_level: None,
        emf_uri: None,
        context: None,
        payload,
    };
    let mut events = vec![class(case.event, structure(case.payload))];
    events.extend(others.iter().map(|name| class(name, None)));
    let stream = StreamClass {
        id: 0,
        name: None,
        clock: None,
        packet_context: None,
        event_header: None,
        event_context: structure(case.context),
        events,
    };
    let release = EnvironmentValue::Text(case.release.to_owned());
    let trace = Trace {
        class: TraceClass {
            version: Version::V1,
            uuid: None,
            byte_order: ByteOrder::Little,
            name: None,
            packet_header: None,
            environment: vec![("kernel_release".to_owned(), release)],
            clocks: Vec::new(),
            streams: vec![stream],
        },
        path: "trace".into(),
        layout: String::new(),
        domain: case.domain,
        source: 0,
        shift_ns: 0,
        identity: 0,
    };
    let mut mapper = Mapper::default();
    let wanted = mapper.wants(&ClassRef {
        index: 0,
        trace_index: 0,
        trace: &trace,
        stream: &trace.class.streams[0],
        event: &trace.class.streams[0].events[0],
    });
    let Want::Fields(wanted) = wanted else {
        panic!("fields are wanted by name");
    };
    let (mut window, mut columns) = (Vec::new(), Vec::new());
    let slots: Vec<Slot> = wanted
        .iter()
        .map(|field| {
            let scope_fields = match field.scope {
                Scope::Payload => fields(case.payload),
                _ => fields(case.context),
            };
            let found = scope_fields.iter().find(|(path, _)| *path == field.path);
            found.map_or(Slot::ABSENT, |(_, value)| {
                slot(value, &mut window, &mut columns)
            })
        })
        .collect();
    let decoded = DecodedEvent {
        ts: 0,
        cpu: Some(0),
        class: 0,
        trace: 0,
        stream: 0,
        offset: 0,
        slots: &slots,
        window: &window,
        columns: &columns,
        reader: &StreamReader::new(0, Vec::new(), 0),
        plans: &Plans {
            schemas: &[],
            traces: &[],
            places: &[],
            wants: Vec::new(),
            classes: Vec::new(),
        },
        body: 0,
    };
    let (mut text, mut out) = (String::new(), String::new());
    text::write_event(&mapper.map(&decoded, &mut text, &mut None)?, &mut out);
    let line = out.strip_prefix("0.000000000 [0] ").expect("time and CPU");
    Some(line.trim_end().to_owned())
}

fn check(case: &Case, expected: &str) {
    assert_eq!(line(case).as_deref(), Some(expected), "{}", case.event);
}

fn kernel(event: &'static str, payload: &'static str, expected: &str) {
    let case = Case {
        event,
        payload,
        ..KERNEL
    };
    check(&case, expected);
}

#[test]
fn switches_read_their_state_by_kernel() {
    let payload = "prev_comm='dd' prev_tid=7 prev_prio=20 prev_state=256 \
                   next_comm='swapper/0' next_tid=0 next_prio=20";
    let line = |state| {
        format!(
            "sched_switch prev=7 prev_comm=dd prev_prio=120 prev_state={state} next=0 \
             next_comm=swapper/0 next_prio=120"
        )
    };
    kernel("sched_switch", payload, &line("R+"));
    let old = Case {
        release: "4.4.0-116-generic",
        event: "sched_switch",
        payload,
        ..KERNEL
    };
    check(&old, &line("R"));
    // a number that became a structure around it
    let wrapped = "prev_comm='dd' prev_tid=7 prev_prio=20 prev_state.state=2 \
                   next_comm='swapper/0' next_tid=0 next_prio=20";
    kernel("sched_switch", wrapped, &line("D"));
}

#[test]
fn wakeups_have_kernel_priorities_in_all_releases() {
    let expected = "sched_wakeup tid=7 comm=dd prio=120 target_cpu=1";
    let new = "comm='dd' tid=7 prio=20 target_cpu=1";
    kernel("sched_wakeup", new, expected);
    let old = "comm='dd' tid=7 prio=120 success=1 target_cpu=1";
    kernel("sched_wakeup", old, expected);
    let unsuccessful = "comm='dd' tid=7 prio=120 success=0 target_cpu=1";
    kernel("sched_wakeup", unsuccessful, "other");
    let real_time = "comm='dd' tid=7 prio=-51 target_cpu=1";
    let expected = "sched_waking tid=7 comm=dd prio=49 target_cpu=1";
    kernel("sched_waking", real_time, expected);
}

#[test]
fn threads_come_and_go_under_old_and_new_field_names() {
    kernel(
        "sched_process_fork",
        "parent_comm='sh' parent_tid=7 parent_pid=7 parent_ns_inum=1 child_comm='sh' child_tid=8 \
         vtids=[8] child_pid=8 child_ns_inum=1",
        "fork parent=7 parent_pid=7 parent_comm=sh child=8 child_pid=8 child_comm=sh",
    );
    kernel(
        "sched_process_fork",
        "parent_comm='sh' parent_tid=7 child_comm='sh' child_tid=8",
        "fork parent=7 parent_comm=sh child=8 child_comm=sh",
    );
    let new = "filename='/bin/dd' tid=8 old_tid=9";
    let old = "filename='/bin/dd' pid=8 old_pid=9";
    let expected = "exec filename=/bin/dd tid=8 old_tid=9";
    kernel("sched_process_exec", new, expected);
    kernel("sched_process_exec", old, expected);
    kernel(
        "sched_process_exit",
        "comm='dd' tid=8 prio=20",
        "exit tid=8 comm=dd",
    );
    kernel(
        "sched_process_free",
        "comm='dd' tid=8 prio=20",
        "free tid=8",
    );
    kernel(
        "sched_migrate_task",
        "comm='dd' tid=8 dest_cpu=3",
        "sched_migrate tid=8 to_cpu=3",
    );
    kernel(
        "sched_pi_setprio",
        "comm='dd' tid=8 newprio=-10",
        "prio tid=8 prio=90",
    );
    kernel(
        "task_rename",
        "tid=8 oldcomm='a' newcomm='b'",
        "comm tid=8 comm=b",
    );
}

#[test]
fn system_calls_of_all_releases_are_the_same() {
    let payload = "dfd=-100 filename='/etc/passwd' flags=0 mode=0";
    let args = "dirfd=-100 path=/etc/passwd flags=0 command=0";
    let enter = format!("syscall_enter name=openat nr=257 {args}");
    kernel("syscall_entry_openat", payload, &enter);
    kernel("sys_openat", payload, &enter);
    let compat = format!("syscall_enter name=openat nr=295 compat=1 {args}");
    kernel("compat_syscall_entry_openat", payload, &compat);
    kernel("compat_sys_openat", payload, &compat);
    kernel(
        "syscall_exit_openat",
        "ret=3",
        "syscall_exit name=openat nr=257 ret=3",
    );
    kernel("exit_syscall", "ret=-2", "syscall_exit ret=-2");
    kernel("syscall_exit_mmap", "", "syscall_exit name=mmap nr=9");
    let renamed = "clone_flags=17 newsp=0";
    kernel(
        "syscall_entry_clone",
        renamed,
        "syscall_enter name=clone nr=56 flags=17",
    );
    kernel(
        "syscall_entry_newfstat",
        "fd=3",
        "syscall_enter name=fstat nr=5 fd=3",
    );
}

#[test]
fn system_calls_by_number_get_name_and_arguments() {
    let raw = "raw=0x3,0x0,0x4,0x0,0x64,0x0";
    kernel(
        "syscall_entry_unknown",
        "id=326 args=[3,0,4,0,100,0]",
        &format!("syscall_enter name=copy_file_range nr=326 fd=3 fd2=4 count=100 flags=0 {raw}"),
    );
    kernel(
        "syscall_exit_unknown",
        "id=326 ret=100 args=[3,0,4,0,100,0]",
        "syscall_exit name=copy_file_range nr=326 ret=100",
    );
    kernel(
        "compat_syscall_exit_unknown",
        "id=-1 ret=0",
        "syscall_exit name=unknown nr=-1 compat=1 ret=0",
    );
    let arm = Case {
        release: "3.10.31-armv7",
        event: "sys_unknown",
        payload: "id=322 args=[4294967196,5,0,0,0,0]",
        ..KERNEL
    };
    let raw = "raw=0xffffff9c,0x5,0x0,0x0,0x0,0x0";
    let expected = format!("syscall_enter name=openat nr=322 dirfd=-100 flags=0 command=0 {raw}");
    check(&arm, &expected);
}

#[test]
fn addresses_and_descriptors_that_come_out_are_read() {
    kernel(
        "syscall_entry_connect",
        "fd=4 uservaddr=1 addrlen=16 family=2 dport=80 v4addr=<7f000001> v6addr=<>",
        "syscall_enter name=connect nr=42 fd=4 sockaddr=127.0.0.1:80",
    );
    kernel(
        "syscall_entry_connect",
        "fd=4 family=10 dport=443 v4addr=<> v6addr=[8193,3512,0,0,0,0,0,1]",
        "syscall_enter name=connect nr=42 fd=4 sockaddr=[2001:db8::1]:443",
    );
    kernel(
        "syscall_entry_connect",
        "fd=4 family=1 dport=0 v4addr=<> v6addr=<>",
        "syscall_enter name=connect nr=42 fd=4 sockaddr=family:1",
    );
    kernel(
        "syscall_exit_accept4",
        "ret=5 upeer_addrlen=16 family=2 sport=5000 v4addr=<0a000001> v6addr=<>",
        "syscall_exit name=accept4 nr=288 ret=5 sockaddr=10.0.0.1:5000",
    );
    let pipe = "syscall_exit name=pipe2 nr=293 ret=0 fds=4,5";
    kernel("syscall_exit_pipe2", "ret=0 fildes=[4,5]", pipe);
    let pair = "syscall_exit name=socketpair nr=53 ret=0 fds=6,7";
    kernel("syscall_exit_socketpair", "ret=0 socket=[6,7]", pair);
    let socket = "syscall_enter name=socket nr=41 family=2 socket_type=1";
    kernel("syscall_entry_socket", "family=2 type=1 protocol=0", socket);
}

#[test]
fn block_events_read_masks_and_letters() {
    kernel(
        "block_rq_issue",
        "dev=8388608 sector=2048 nr_sector=8 bytes=0 tid=7 rwbs=97 comm='dd'",
        "block_rq_issue dev=8:0 sector=2048 sectors=8 rwbs=WSM tid=7 comm=dd",
    );
    kernel(
        "block_rq_issue",
        "dev=8388608 sector=0 nr_sector=0 bytes=36 rwbs='N' comm='dd'",
        "block_rq_issue dev=8:0 sector=0 sectors=0 bytes=36 rwbs=N comm=dd",
    );
    kernel(
        "block_rq_complete",
        "dev=8388608 sector=2048 nr_sector=8 error=-5 rwbs=4",
        "block_rq_complete dev=8:0 sector=2048 sectors=8 rwbs=R error=-5",
    );
    kernel(
        "block_rq_complete",
        "dev=8388608 sector=2048 nr_sector=8 errors=0 rwbs=1 cmd=<>",
        "block_rq_complete dev=8:0 sector=2048 sectors=8 rwbs=W error=0",
    );
    kernel(
        "block_bio_remap",
        "dev=8388608 sector=4096 nr_sector=8 rwbs=4 old_dev=8388609 old_sector=2048",
        "block_bio_remap dev=8:0 sector=4096 sectors=8 rwbs=R old_dev=8:1 old_sector=2048",
    );
    kernel(
        "block_split",
        "dev=8388608 sector=4096 rwbs=1 new_sector=5000 tid=7 comm='dd'",
        "block_split dev=8:0 sector=4096 sectors=0 rwbs=W tid=7 comm=dd new_sector=5000",
    );
}

#[test]
fn interrupts_pages_and_packets_have_two_names() {
    for event in ["irq_softirq_raise", "softirq_raise"] {
        kernel(event, "vec=4", "softirq_raise nr=4");
    }
    for event in ["timer_hrtimer_expire_exit", "hrtimer_expire_exit"] {
        kernel(event, "hrtimer=1", "irq_exit kind=hrtimer nr=0");
    }
    for event in ["kmem_mm_page_alloc", "mm_page_alloc"] {
        kernel(event, "page=99 order=3", "page_alloc order=3");
        kernel(event, "page=0 order=3", "other");
    }
    for event in ["net_if_receive_skb", "netif_receive_skb"] {
        let packet = "net kind=receive netif=lo bytes=60 skbaddr=0xff";
        kernel(event, "skbaddr=255 len=60 name='lo'", packet);
    }
    let sent = "net kind=transmit netif=eth0 bytes=60 skbaddr=0xff ret=0";
    kernel("net_dev_xmit", "skbaddr=255 rc=0 len=60 name='eth0'", sent);
}

#[test]
fn faults_and_reclaim_have_their_kinds() {
    for event in ["x86_exceptions_page_fault_user", "page_fault_user"] {
        let fields = "address=4096 ip=4198400 error_code=4";
        kernel(event, fields, "memory kind=fault_user order=0");
    }
    kernel(
        "x86_exceptions_page_fault_kernel",
        "address=4096 ip=1 error_code=2",
        "memory kind=fault_kernel order=0",
    );
    kernel(
        "mm_filemap_add_to_page_cache",
        "pfn=9 i_ino=17 index=3 s_dev=8388608 order=2",
        "memory kind=cache_add order=2",
    );
    kernel(
        "mm_filemap_delete_from_page_cache",
        "pfn=9 i_ino=17 index=3 s_dev=8388608",
        "memory kind=cache_remove order=0",
    );
    kernel(
        "mm_vmscan_writepage",
        "page=9 reclaim_flags=17",
        "memory kind=reclaim_write order=0",
    );
    kernel(
        "mm_vmscan_wakeup_kswapd",
        "nid=0 zid=2 order=3",
        "memory kind=kswapd_wakeup order=0",
    );
    for (event, kind) in [
        ("direct", "direct"),
        ("memcg", "cgroup"),
        ("memcg_softlimit", "cgroup_soft"),
    ] {
        let begin: &'static str = format!("mm_vmscan_{event}_reclaim_begin").leak();
        let end: &'static str = format!("mm_vmscan_{event}_reclaim_end").leak();
        kernel(
            begin,
            "order=3 may_writepage=1 gfp_flags=131",
            &format!("reclaim_begin kind={kind} order=3"),
        );
        kernel(
            end,
            "nr_reclaimed=32",
            &format!("reclaim_end kind={kind} pages=32"),
        );
    }
    kernel(
        "mm_vmscan_kswapd_wake",
        "nid=1 order=0",
        "reclaim_begin kind=kswapd order=0 node=1",
    );
    kernel(
        "mm_vmscan_kswapd_sleep",
        "nid=1",
        "reclaim_end kind=kswapd node=1",
    );
}

#[test]
fn segments_sent_again_and_dropped_packets() {
    kernel(
        "tcp_retransmit_skb",
        "skbaddr=255 skaddr=1 state=1 sport=80 dport=4711 family=2 saddr=<0a000001> \
         daddr=<0a000002> saddr_v6=<00000000000000000000ffff0a000001> \
         daddr_v6=<00000000000000000000ffff0a000002>",
        "net_fault kind=retransmit skbaddr=0xff protocol=6 source=10.0.0.1:80 \
         destination=10.0.0.2:4711",
    );
    kernel(
        "tcp_retransmit_synack",
        "skaddr=1 req=2 sport=80 dport=4711 saddr=<00000000> daddr=<00000000> \
         saddr_v6=<fe800000000000000000000000000001> daddr_v6=<fe800000000000000000000000000002>",
        "net_fault kind=retransmit_synack protocol=6 source=[fe80::1]:80 \
         destination=[fe80::2]:4711",
    );
    kernel(
        "skb_kfree",
        "skbaddr=255 location=99 protocol=2048",
        "net_fault kind=drop skbaddr=0xff ethertype=2048",
    );
    kernel(
        "skb_kfree",
        "skbaddr=255 location=99 protocol=34525 reason=5",
        "net_fault kind=drop skbaddr=0xff reason=5 ethertype=34525",
    );
}

#[test]
fn state_dumps_of_all_releases() {
    kernel(
        "lttng_statedump_process_state",
        "tid=8 vtid=8 pid=7 vpid=7 ppid=1 vppid=1 name='sh' type=0 mode=5 submode=0 status=5 \
         ns_level=0",
        "state_process tid=8 pid=7 ppid=1 comm=sh is_kernel=false status=5",
    );
    kernel(
        "lttng_statedump_process_state",
        "tid=2 pid=2 ppid=0 name='kthreadd' type=1 mode=5 submode=0 status=5 cpu=1 \
         file_table_address=255",
        "state_process tid=2 pid=2 ppid=0 comm=kthreadd is_kernel=true status=5 cpu=1 \
         file_table=0xff",
    );
    let old = "state_fd pid=7 fd=3 path=/etc/x";
    kernel(
        "lttng_statedump_file_descriptor",
        "pid=7 fd=3 filename='/etc/x'",
        old,
    );
    kernel(
        "lttng_statedump_file_descriptor",
        "file_table_address=255 fd=3 flags=2 fmode=3 filename='/etc/x'",
        "state_fd file_table=0xff fd=3 flags=2 path=/etc/x",
    );
    let disk = "state_block_device dev=8:16 name=sdb";
    kernel(
        "lttng_statedump_block_device",
        "dev=8388624 diskname='sdb'",
        disk,
    );
    let netif = "state_net_interface name=lo address=127.0.0.1";
    kernel(
        "lttng_statedump_network_interface",
        "name='lo' address_ipv4=2130706433",
        netif,
    );
    kernel("lttng_statedump_end", "", "state_end");
}

#[test]
fn handlers_whose_end_is_not_recorded_are_no_intervals() {
    let entry = Case {
        event: "irq_handler_entry",
        payload: "irq=19 name='ahci'",
        ..KERNEL
    };
    check(&entry, "other");
    let both = line_among(&entry, &["irq_handler_exit"]);
    assert_eq!(both.as_deref(), Some("irq_enter kind=hard nr=19 name=ahci"));
    let timer = Case {
        event: "timer_hrtimer_expire_entry",
        payload: "hrtimer=1",
        ..KERNEL
    };
    check(&timer, "other");
    let both = line_among(&timer, &["timer_hrtimer_expire_exit"]);
    assert_eq!(both.as_deref(), Some("irq_enter kind=hrtimer nr=0"));
    let softirq = Case {
        event: "softirq_entry",
        payload: "vec=4",
        ..KERNEL
    };
    let both = line_among(&softirq, &["softirq_exit"]);
    assert_eq!(both.as_deref(), Some("irq_enter kind=soft nr=4"));
}

#[test]
fn contexts_are_not_payload_fields_of_the_same_name() {
    let case = Case {
        event: "signal_generate",
        payload: "sig=9 comm='victim' pid=99",
        context: "tid=7 pid=6 procname='killer' prio=20",
        ..KERNEL
    };
    check(&case, "(tid=7 pid=6 comm=killer prio=120) other");
    let user = Case {
        domain: Domain::User,
        event: "app:request",
        payload: "_url_length=3 url='/a' code=200 pid=3",
        context: "vtid=7 vpid=6",
        ..KERNEL
    };
    let text = r#"text="url = \"/a\", code = 200, pid = 3""#;
    check(
        &user,
        &format!("(tid=7 pid=6) marker name=app:request {text}"),
    );
    kernel(
        "lttng_logger",
        "msg='step'",
        "marker name=lttng_logger text=step",
    );
}

#[test]
fn an_event_without_a_field_it_needs_is_given_up() {
    let case = Case {
        event: "sched_switch",
        payload: "prev_comm='dd' prev_tid=7",
        ..KERNEL
    };
    assert_eq!(line(&case), None);
}
