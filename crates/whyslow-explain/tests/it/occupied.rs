//! A server that works for one client while another one waits for it: the first one is named.

use whyslow_explain::{Finding, Query, explain};
use whyslow_model::Window;
use whyslow_test_recordings::Recorded;

const MS: i64 = 1_000_000;

/// A server with one thread accepts two connections. It computes for `report` for 90 ms, while
/// `client` waits.
const TRACE: &str = "\
1.000000 [0] state_process tid=10 pid=10 comm=client
1.000000 [0] state_process tid=20 pid=20 comm=server
1.000000 [0] state_process tid=40 pid=40 comm=report
1.000000 [0] state_fd pid=10 fd=3 path=\"socket:[6] tcp connected 127.0.0.1:4000 127.0.0.1:80\"
1.000000 [0] state_fd pid=20 fd=4 path=\"socket:[7] tcp accepted 127.0.0.1:80 127.0.0.1:4000\"
1.000000 [0] state_fd pid=40 fd=3 path=\"socket:[8] tcp connected 127.0.0.1:4001 127.0.0.1:80\"
1.000000 [0] state_fd pid=20 fd=5 path=\"socket:[9] tcp accepted 127.0.0.1:80 127.0.0.1:4001\"
1.000000 [0] state_end
1.000000 [0] sched_switch prev=0 next=10 prev_state=R next_comm=client
1.000000 [1] sched_switch prev=0 next=20 prev_state=R next_comm=server
1.000000 [2] sched_switch prev=0 next=40 prev_state=R next_comm=report
1.000100 [2] (tid=40 pid=40 comm=report) syscall_enter name=sendto fd=3 count=10
1.000200 [2] (tid=40) syscall_exit name=sendto ret=10
1.000300 [1] (tid=20 pid=20 comm=server) syscall_enter name=recvfrom fd=5 count=100
1.000400 [1] (tid=20) syscall_exit name=recvfrom ret=10
1.001000 [0] (tid=10 pid=10 comm=client) syscall_enter name=sendto fd=3 count=10
1.001100 [0] (tid=10) syscall_exit name=sendto ret=10
1.002000 [0] (tid=10) syscall_enter name=recvfrom fd=3 count=100
1.002100 [0] (tid=10) sched_switch prev=10 prev_state=S next=0
1.090000 [1] (tid=20) syscall_enter name=sendto fd=5 count=10
1.090100 [1] (tid=20) syscall_exit name=sendto ret=10
1.090200 [1] (tid=20) syscall_enter name=recvfrom fd=4 count=100
1.090300 [1] (tid=20) syscall_exit name=recvfrom ret=10
1.095000 [1] (tid=20) syscall_enter name=sendto fd=4 count=10
1.095100 [1] (tid=20 interrupt=none) sched_waking tid=10
1.095200 [1] (tid=20) syscall_exit name=sendto ret=10
1.095300 [0] sched_switch prev=0 prev_state=R next=10
1.095400 [0] (tid=10) syscall_exit name=recvfrom ret=10
1.096000 [0] (tid=10) syscall_enter name=getpid
";

fn finding(trace: &str) -> Finding {
    let made = Recorded::of_text(trace);
    let query = Query {
        window: Some(Window::new(1002 * MS, 1096 * MS)),
        tids: vec![10],
        ..Query::default()
    };
    let report = explain(&made.recording, &query, None).expect("an answer");
    report.findings.into_iter().next().expect("a finding")
}

#[test]
fn the_client_whose_request_occupied_the_server_is_named() {
    let finding = finding(TRACE);
    let part = &finding.parts[0];
    assert_eq!(part.culprit.tid, Some(20), "{part:?}");
    let client = part.client.as_ref().expect("a client");
    assert_eq!((client.name.as_str(), client.pid), ("report", Some(40)));
    // It was on CPU without a break, also for the waiting client's own request at the end.
    assert_eq!(part.dur_ns, 93 * MS, "{part:?}");
    let expected = "server[20] (serving a request of report[40]";
    assert!(finding.verdict.contains(expected), "{}", finding.verdict);
    let expected = "It was serving a request of report (pid 40).";
    assert!(finding.page.why.contains(expected), "{}", finding.page.why);
}

#[test]
fn the_waiting_client_is_not_behind_its_own_request() {
    // The server reads the explained client's request first.
    let is_first = |line: &&str| !line.starts_with("1.0003") && !line.starts_with("1.0004");
    let lines = TRACE.lines().filter(is_first);
    let trace: String = lines.flat_map(|line| [line, "\n"]).collect();
    let trace = trace.replace("recvfrom fd=4", "recvfrom fd=5").replace(
        "1.002000 [0]",
        "1.001300 [1] (tid=20 pid=20 comm=server) syscall_enter name=recvfrom fd=4 count=100\n\
         1.001400 [1] (tid=20) syscall_exit name=recvfrom ret=10\n\
         1.002000 [0]",
    );
    let finding = finding(&trace);
    assert_eq!(finding.parts[0].client, None, "{:?}", finding.parts[0]);
}

#[test]
fn without_the_reads_of_the_server_its_client_is_not_known() {
    let lines = TRACE.lines().filter(|line| !line.contains("recvfrom fd=5"));
    let trace: String = lines.flat_map(|line| [line, "\n"]).collect();
    let finding = finding(&trace);
    assert_eq!(finding.parts[0].culprit.tid, Some(20));
    assert_eq!(finding.parts[0].client, None, "{:?}", finding.parts[0]);
}

/// The kernel's events of connections from before the recording do not show which end is the
/// client's. Both clients have a descriptor of the server.
#[test]
fn a_client_that_was_connected_before_the_recording_has_a_name() {
    let closed = |sock: u32, port: u32| {
        format!(
            "1.0955{sock}0 [2] tcp sock={sock} from=established to=close local=127.0.0.1:{port} peer=127.0.0.1:80\n"
        )
    };
    let end = "1.096000 [0]";
    let both = closed(6, 4000) + &closed(8, 4001) + end;
    let finding = finding(&TRACE.replace(end, &both));
    let client = finding.parts[0].client.as_ref().expect("a client");
    assert_eq!((client.name.as_str(), client.pid), ("report", Some(40)));
}
