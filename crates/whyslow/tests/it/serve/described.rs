//! The description of the API agrees with the responses.

use serde_json::Value;
use whyslow_testkit::{Need, skip};

use super::client::Server;
use super::schema::Schemas;
use crate::common::recorded;

fn description() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    let text = std::fs::read_to_string(path).expect("a file of this repository");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn every_path_that_is_described_is_answered_as_described() {
    let server = Server::start(recorded(), &["t.wsl"]);
    server.await_charts();
    let description = description();
    assert_eq!(server.json("openapi.json"), description);
    let schemas = Schemas(&description);
    let paths = description["paths"].as_object().expect("paths");
    assert!(paths.len() > 10, "{}", paths.len());
    for (path, operations) in paths {
        let get = &operations["get"];
        let example = get["x-example"].as_str().expect("an example");
        let reply = server.get(&format!("/api/v1{path}?{example}"));
        if path == "/sql" && reply.status == 503 {
            skip(Need::DuckDb, "there is no DuckDB");
            continue;
        }
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        let response = &get["responses"]["200"];
        for header in response["headers"].as_object().into_iter().flatten() {
            // JSON contains the notes, so they are not repeated in headers.
            if header.0 != "Whyslow-Notes" {
                assert!(reply.header(header.0).is_some(), "{path}: {}", header.0);
            }
        }
        let content = response["content"].as_object().expect("content");
        if let Some(json) = content.get("application/json") {
            schemas.check(path, &json["schema"], &reply.json());
            for media_type in content.keys() {
                check_form(&server, &format!("/api/v1{path}?{example}"), media_type);
            }
        } else {
            let (described, given) = (content.keys().next(), reply.header("content-type"));
            let given = given.and_then(|text| text.split(';').next());
            assert_eq!(given, described.map(String::as_str), "{path}");
        }
        let wrong = server.get(&format!("/api/v1{path}?no-such-key=1"));
        if get["parameters"].is_array() && path != "/status" {
            assert_eq!(wrong.status, 400, "{path}");
            let schema = &description["components"]["schemas"]["Error"];
            schemas.check(path, schema, &wrong.json());
        }
    }
}

/// Requests the format, of one table if there are several.
fn check_form(server: &Server, path: &str, media_type: &str) {
    let accept = format!("Accept: {media_type}");
    let mut reply = server.get_with(path, &[&accept]);
    if reply.status == 400 && reply.text().contains("cannot write several tables") {
        let hint = reply.json()["hint"].as_str().expect("a hint").to_owned();
        let table = hint.strip_prefix("add --table ").expect("a table");
        reply = server.get_with(&format!("{path}&table={table}"), &[&accept]);
    }
    assert_eq!(reply.status, 200, "{path} {media_type}: {}", reply.text());
    let found = reply.header("content-type").unwrap_or("");
    assert!(
        found.starts_with(media_type),
        "{path}: {found}, not {media_type}"
    );
}

/// The checker detects violations.
#[test]
fn what_is_not_as_described_is_found() {
    let description = serde_json::json!({"components": {"schemas": {"A": {
        "type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}},
    }}}});
    let schemas = Schemas(&description);
    let of = serde_json::json!({"type": "array", "items": {"$ref": "#/components/schemas/A"}});
    let check = |value: Value, is_right: bool| {
        assert_eq!(
            schemas.wrong("x", &of, &value).is_none(),
            is_right,
            "{value}"
        );
    };
    check(serde_json::json!([{"a": 1}, {"a": 2, "b": null}]), true);
    check(serde_json::json!([{"a": 1.5}]), false);
    check(serde_json::json!([{"b": 1}]), false);
    check(serde_json::json!([null]), false);
    check(serde_json::json!({}), false);
}
