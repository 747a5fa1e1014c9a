//! Findings that continue in recordings of other hosts that the server has.

use super::client::{Server, encoded};
use crate::common::Place;

#[test]
fn a_story_goes_on_in_other_recordings_of_the_server_and_in_no_others() {
    let folder = whyslow_testkit::fixture("across");
    let place = Place::new();
    let names = ["cli.txt", "app.txt", "db.txt"];
    for name in names {
        std::fs::copy(folder.join(name), place.join(name)).expect("a fixture");
    }
    let server = Server::start(&place, &names);
    let slow = encoded("recvfrom>100ms");
    let alone = server.json(&format!("explain?rec=cli.txt&slow={slow}"));
    assert!(alone["findings"][0].get("across").is_none(), "{alone:#}");
    let report = server.json(&format!(
        "explain?rec=cli.txt&slow={slow}&across=app.txt,db.txt"
    ));
    let finding = &report["findings"][0];
    let culprit = finding["culprit"].as_u64().expect("a culprit") as usize;
    assert_eq!(
        finding["parts"][culprit]["culprit"]["host"], "db",
        "{finding:#}"
    );
    assert_eq!(
        finding["across"].as_array().map(Vec::len),
        Some(2),
        "{finding:#}"
    );
    // With another host it is another query.
    let one = server.json(&format!("explain?rec=cli.txt&slow={slow}&across=app.txt"));
    assert_eq!(
        one["findings"][0]["across"][1]["host"],
        serde_json::Value::Null
    );
    let refused = server.get(&format!(
        "/api/v1/explain?rec=cli.txt&slow={slow}&across=/etc"
    ));
    assert_eq!(refused.status, 400);
    assert!(
        refused.text().contains("does not serve it"),
        "{}",
        refused.text()
    );
}
