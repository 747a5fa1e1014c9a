//! Loads against a test server that counts requests and misbehaves on demand.

mod errors;
mod frames;
mod kept;
mod models;
mod server;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use whyslow_load::{
    Connections, Ended, Http, Limits, LoadError, Model, Plan, Progress, Redirects, RequestTemplate,
    Row, Run, Sink, Trace, Trust,
};

/// Collects all results.
#[derive(Default)]
struct Collected(Vec<Row>);

impl Sink for Collected {
    fn stage(&mut self, _: u32) {}

    fn take(&mut self, rows: &mut dyn Iterator<Item = Row>) -> Result<(), LoadError> {
        self.0.extend(rows);
        Ok(())
    }

    fn look(&mut self, _: Progress) {}
}

/// One worker that requests each URL once.
fn plan(urls: &[&str]) -> Plan {
    let template = RequestTemplate::new(None, &[], None).expect("GET");
    let targets = urls.iter().map(|url| template.target(url, 1).expect(url));
    Plan {
        targets: targets.collect(),
        template,
        model: closed(urls.len() as u64),
        workers: vec![1],
        threads: 2,
        pause: Duration::ZERO,
        until_slow: None,
        timeout: Duration::from_secs(20),
        connections: Connections::Kept,
        redirects: Redirects::Reported,
        trace: Trace::Sent,
        http: Http::Agreed,
        tls: Trust::System,
    }
}

fn closed(total: u64) -> Model {
    Model::Closed(Limits {
        total: Some(total),
        ..Limits::default()
    })
}

fn load(plan: Plan) -> (Vec<Row>, Ended) {
    let mut collected = Collected::default();
    let run = Run::new(plan).expect("a plan");
    let ended = run
        .go(&AtomicBool::new(false), &mut collected)
        .expect("a run");
    (collected.0, ended)
}
