//! Every kind of failure is reported as such.

use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use whyslow_load::{Outcome, Row};

use crate::it::server::{HUGE_BYTES, RECEIVE, Server, WAIT};
use crate::it::{load, plan};

/// The only request of a load.
fn only(url: &str) -> Row {
    let mut plan = plan(&[url]);
    plan.timeout = Duration::from_millis(300);
    if url.ends_with("/huge") || url.ends_with("/slow") {
        plan.timeout = Duration::from_secs(20);
    }
    let (mut rows, _) = load(plan);
    assert_eq!(rows.len(), 1, "{url}");
    let row = rows.remove(0);
    let phases: u64 = row.phases.all().into_iter().flatten().sum();
    assert!(
        phases <= row.total_ns(),
        "{url}: phases are parts of the whole"
    );
    row
}

#[test]
fn each_way_to_end_has_its_own_name() {
    let server = Server::start();
    let check = |path: &str, outcome: Outcome, status: Option<u16>, words: &str| {
        let row = only(&server.url(path));
        assert_eq!(row.outcome, outcome, "{path}: {:?}", row.error);
        assert_eq!(row.status, status, "{path}");
        let error = row.error.as_deref().unwrap_or_default();
        assert!(error.contains(words), "{path}: {error}");
        assert_eq!(error.is_empty(), words.is_empty(), "{path}: {error}");
    };
    check("/ok", Outcome::Ok, Some(200), "");
    check("/last", Outcome::Ok, Some(200), "");
    check("/chunked", Outcome::Ok, Some(200), "");
    check("/missing", Outcome::Error, Some(404), "");
    check("/broken", Outcome::Error, Some(500), "");
    check("/redirect", Outcome::Ok, Some(302), "");
    check("/garbage", Outcome::Protocol, None, "not HTTP");
    check("/truncated", Outcome::Closed, Some(200), "prematurely");
    check("/cut-chunk", Outcome::Closed, Some(200), "prematurely");
    check("/nothing", Outcome::Closed, None, "prematurely");
    check(
        "/silent",
        Outcome::Timeout,
        None,
        "no response within 300ms",
    );
    check(
        "/half",
        Outcome::Timeout,
        Some(200),
        "no complete response within",
    );
}

#[test]
fn without_a_connection_the_reason_is_told() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let refused = format!("http://{}/", free.local_addr().expect("an address"));
    drop(free);
    let row = only(&refused);
    assert_eq!(row.outcome, Outcome::Refused);
    assert!(row.connection.is_none() && row.phases.connect.is_some());

    let row = only("http://no-such-host.invalid/");
    assert!(
        // Without a name server there is no reply in time.
        matches!(row.outcome, Outcome::Unresolved | Outcome::Timeout),
        "{:?}",
        row.error
    );
    assert!(row.phases.resolve.is_some() && row.phases.connect.is_none());
}

#[test]
fn a_connection_that_is_reset_is_told_as_such() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a connection");
        // Closed with an unread request.
        let mut byte = [0];
        while !matches!(stream.peek(&mut byte), Ok(1)) {}
    });
    assert_eq!(only(&url).outcome, Outcome::Reset);
}

#[test]
fn phases_are_what_the_server_makes_of_them() {
    let server = Server::start();
    let row = only(&server.url("/slow"));
    let (wait, receive) = (
        row.phases.wait.expect("a wait"),
        row.phases.receive.expect("a body"),
    );
    assert!(u128::from(wait) >= WAIT.as_nanos(), "{row:?}");
    // If the first byte is noticed late, less time is left for the rest.
    let both = u128::from(wait + receive);
    assert!(both >= (WAIT + RECEIVE).as_nanos(), "{row:?}");
    assert!(receive > 0, "{row:?}");
    assert!(row.phases.connect.is_some() && row.phases.tls.is_none());
    let row = only(&server.url("/huge"));
    assert!(row.bytes_received > HUGE_BYTES as u64);
}
