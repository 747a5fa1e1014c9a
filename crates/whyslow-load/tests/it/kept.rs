//! What a load stores: its spool and its result.

use std::sync::atomic::AtomicBool;

use whyslow_load::{Header, List, LoadError, Progress, Row, Run, Sink, Spool, Summary, VERSION};
use whyslow_model::answer::Value;

use crate::it::server::Server;
use crate::it::{closed, plan};

struct Keeper(Spool, Summary);

impl Sink for Keeper {
    fn stage(&mut self, workers: u32) {
        self.1.begin_stage(workers);
    }

    fn take(&mut self, rows: &mut dyn Iterator<Item = Row>) -> Result<(), LoadError> {
        for row in rows {
            self.0.write(&row)?;
            self.1.add(row);
        }
        self.0.flush()
    }

    fn look(&mut self, _: Progress) {}
}

#[test]
fn the_spool_and_the_answer_have_every_request() {
    let server = Server::start();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("load.ndjson");
    let mut plan = plan(&[&server.url("/ok?a=1"), &server.url("/missing")]);
    plan.model = closed(10);
    let run = Run::new(plan).expect("a plan");
    let begin_ns = run.begin_ns();
    let header = Header {
        whyslow_load: VERSION,
        begin_ns,
        host: "here".to_owned(),
        arguments: Vec::new(),
        model: "closed",
        threads: 1,
        zone: None,
    };
    let spool = Spool::create(&path, &header).expect("a file");
    assert!(
        Spool::create(&path, &header).is_err(),
        "an existing file is kept"
    );
    let mut keeper = Keeper(spool, Summary::new(None, true));
    let ended = run.go(&AtomicBool::new(false), &mut keeper).expect("a run");
    let Keeper(spool, summary) = keeper;
    spool
        .end(begin_ns + ended.end_ns as i64, ended.reason)
        .expect("a disk");

    let text = std::fs::read_to_string(&path).expect("a file");
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 12);
    assert_eq!(lines[0]["whyslow_load"], 1);
    assert_eq!(lines[11]["reason"], "done");
    let statuses = |status: i64| lines.iter().filter(|l| l["status"] == status).count();
    assert_eq!(statuses(200) + statuses(404), 10);
    for line in &lines[1..11] {
        let parts = ["resolve", "connect", "tls", "send", "wait", "receive"];
        let length = |name: &str| line[format!("{name}_ns")].as_i64().unwrap_or(0);
        let sum: i64 = parts.iter().map(|name| length(name)).sum();
        assert!(sum <= length("total") && length("total") - sum < 50_000_000);
        assert!(line["start_ns"].as_i64() >= Some(begin_ns));
    }

    let answer = summary.answer(&ended, begin_ns, List::All);
    assert_eq!(answer.tables[0].rows.len(), 10);
    let statuses = &answer.tables[2].rows;
    assert_eq!(statuses.len(), 2);
    assert!(statuses.iter().any(|row| row[1] == Value::Int(404)));
}
