//! Requests that are refused.

use std::sync::{Arc, Mutex, Weak};

use super::client::{Reply, Server};

fn server() -> Arc<Server> {
    static SERVER: Mutex<Weak<Server>> = Mutex::new(Weak::new());
    Server::shared(&SERVER)
}

fn check(reply: &Reply, status: u16) {
    assert_eq!(reply.status, status, "{} {}", reply.head, reply.text());
    assert!(
        reply.header("content-security-policy").is_some(),
        "{}",
        reply.head
    );
    assert!(reply.json()["error"].is_string(), "{}", reply.text());
}

#[test]
fn nobody_is_answered_without_the_token() {
    let server = server();
    let right = format!("Authorization: Bearer {}", server.token);
    let send = |header: &str| {
        let lines = ["GET /api/v1/recordings HTTP/1.1", "Host: localhost", header];
        server.say(&lines, b"")
    };
    assert_eq!(send(&right).status, 200);
    let zeros = "0".repeat(32);
    for wrong in [
        "X-Nothing: 1".to_owned(),
        "Authorization: Bearer".to_owned(),
        "Authorization: Bearer ".to_owned(),
        format!("Authorization: Bearer {zeros}"),
        format!("Authorization: Bearer {}0", server.token),
        format!("Authorization: Bearer {}", &server.token[1..]),
        format!("Authorization: Basic {}", server.token),
        format!("Authorization: {}", server.token),
        format!("Cookie: token={}", server.token),
        format!("{right}\r\nAuthorization: Bearer {zeros}"),
    ] {
        check(&send(&wrong), 401);
    }
    let in_address = format!("GET /api/v1/recordings?token={} HTTP/1.1", server.token);
    check(&server.say(&[&in_address, "Host: localhost"], b""), 401);
    for path in [
        "/api",
        "/api/",
        "/api/v1/no-such",
        "/api/v2/recordings",
        "/api/v1",
    ] {
        let line = format!("GET {path} HTTP/1.1");
        check(&server.say(&[&line, "Host: localhost"], b""), 401);
        check(&server.get(path), 404);
    }
}

#[test]
fn names_of_elsewhere_and_pages_of_others_are_not_answered() {
    let server = server();
    let token = format!("Authorization: Bearer {}", server.token);
    let send = |path: &str, headers: &[&str]| {
        let first = format!("GET {path} HTTP/1.1");
        let mut lines = vec![first.as_str(), token.as_str()];
        lines.extend(headers);
        server.say(&lines, b"")
    };
    for path in ["/", "/api/v1/recordings"] {
        for host in ["evil.example", "127.0.0.1.evil.example:80", "127.0.0.2", ""] {
            check(&send(path, &[&format!("Host: {host}")]), 403);
        }
        check(&send(path, &[]), 403);
        check(&send(path, &["Host: localhost", "Host: evil.example"]), 403);
        check(
            &send(path, &["Host: localhost", "Origin: http://evil.example"]),
            403,
        );
        check(
            &send(path, &["Host: localhost:7", "Origin: http://localhost:8"]),
            403,
        );
        check(
            &send(path, &["Host: localhost:7", "Origin: https://localhost:7"]),
            403,
        );
        check(&send(path, &["Host: localhost", "Origin: null"]), 403);
        let own = send(path, &["Host: localhost:7", "Origin: http://localhost:7"]);
        assert_eq!(own.status, 200, "{}", own.head);
        assert!(
            own.header("access-control-allow-origin").is_none(),
            "{}",
            own.head
        );
        assert_eq!(send(path, &["Host: [::1]:7"]).status, 200);
    }
    let across = ["Host: localhost", "Sec-Fetch-Site: same-site"];
    check(&send("/api/v1/recordings", &across), 403);
    assert_eq!(
        send("/", &["Host: localhost", "Sec-Fetch-Site: cross-site"]).status,
        200
    );
}

#[test]
fn nothing_else_is_found_changed_or_read() {
    let server = server();
    let token = format!("Authorization: Bearer {}", server.token);
    for path in [
        "/etc/passwd",
        "/../../../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "//etc/passwd",
        "/api/v1/../../etc/passwd",
        "/api/v1/table/../../../etc/passwd",
    ] {
        check(&server.get(path), 404);
    }
    for method in [
        "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND",
    ] {
        for path in ["/", "/api/v1/recordings", "/api/v1/table?what=io&view=top"] {
            let line = format!("{method} {path} HTTP/1.1");
            let reply = server.say(&[&line, "Host: localhost", &token], b"");
            check(&reply, 405);
        }
    }
    for query in [
        "what=io&view=top&output=/tmp/x",
        "what=io&view=top&o=/tmp/x",
        "what=io&view=top&color=always",
        "what=io&view=top&no-such=1",
        "what=io&view=top&min=5",
        "what=io&view=top&min=5ms&min=6ms",
        "what=io&view=top&window=x",
        "what=io&view=top&format=html",
        "what=io&view=top&format=no-such",
        "what=io&view=top&by=no_such",
        "what=io&view=top&table=no_such",
        "what=io&view=top&count=3",
        "what=io&view=stats&interval=x",
        "what=io&view=stats&interval=1&count=0",
        "what=io&view=stats&interval=1&count=1&w=1..2",
        "view=top",
        "what=io",
    ] {
        check(&server.get(&format!("/api/v1/table?{query}")), 400);
    }
    for query in [
        "what=no&view=top",
        "what=io&view=no",
        "what=--help&view=top",
        "what=io&view=top&rec=no",
    ] {
        check(&server.get(&format!("/api/v1/table?{query}")), 404);
    }
    check(&server.get("/api/v1/explain?why=list"), 400);
    check(&server.get("/api/v1/explain?vs=/etc"), 400);
    check(&server.get("/api/v1/why?mechanism=no"), 404);
    let reply = server.get_with("/api/v1/table?what=io&view=top", &["Accept: image/png"]);
    check(&reply, 406);
}

#[test]
fn what_is_too_long_is_not_read() {
    let server = server();
    let long = "x".repeat(16 << 10);
    check(
        &server.get(&format!("/api/v1/table?what=io&view=top&comm={long}")),
        414,
    );
    let longer = "x".repeat(100 << 10);
    let reply = server.get(&format!("/api/v1/table?comm={longer}"));
    assert!((400..500).contains(&reply.status), "{}", reply.head);
    let reply = server.get_with("/", &[&format!("X-Long: {longer}")]);
    assert_eq!(reply.status, 431, "{}", reply.head);
    let many: Vec<String> = (0..200).map(|number| format!("X-{number}: 1")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let reply = server.get_with("/", &many);
    assert_eq!(reply.status, 431, "{}", reply.head);
    assert_eq!(server.get("/api/v1/status").status, 200);
}
