//! The load as requested on the command line.

use std::fs;
use std::path::Path;
use std::time::Duration;

use whyslow_base::failure::Failure;
use whyslow_load::{
    Connections, Http, Limits, Model, Plan, Redirects, RequestTemplate, Target, Trace, Trust,
};

use super::failed::failed;
use crate::cli::{AmountArgs, LoadArgs, RequestArgs};

/// Workers of an open loop: with more pending responses than this, requests start late.
const WORKERS_OF_SCHEDULE: u32 = 100;
/// More threads of this program would only take CPUs from a server on the same machine.
const THREADS_MAX: usize = 8;

pub(super) fn of(args: &LoadArgs) -> Result<Plan, Failure> {
    let request = &args.request;
    let body = match (&request.body, &request.body_file) {
        (Some(text), _) => Some(text.clone().into_bytes()),
        (None, Some(path)) => Some(fs::read(path).map_err(|error| Failure::reading(path, error))?),
        (None, None) => None,
    };
    let method = request.method.as_deref();
    let template =
        RequestTemplate::new(method, &request.headers, body.map(Into::into)).map_err(failed)?;
    Ok(Plan {
        targets: targets(args, &template)?,
        template,
        model: model(&args.amount),
        workers: workers(&args.amount),
        threads: std::thread::available_parallelism().map_or(1, |n| n.get().min(THREADS_MAX)),
        pause: args.amount.pause.unwrap_or(Duration::ZERO),
        until_slow: args.amount.until_slow,
        timeout: request.timeout,
        connections: if request.new_conn {
            Connections::New
        } else {
            Connections::Kept
        },
        redirects: if request.follow {
            Redirects::Followed
        } else {
            Redirects::Reported
        },
        trace: if request.no_trace_context {
            Trace::Silent
        } else {
            Trace::Sent
        },
        http: match (request.http1, request.http2) {
            (true, _) => Http::One,
            (_, true) => Http::Two,
            _ => Http::Agreed,
        },
        tls: trust(request),
    })
}

fn trust(request: &RequestArgs) -> Trust {
    match (&request.ca_file, request.insecure) {
        (Some(path), _) => Trust::File(path.clone()),
        (None, true) => Trust::Everyone,
        (None, false) => Trust::System,
    }
}

fn workers(amount: &AmountArgs) -> Vec<u32> {
    match (&amount.sweep, amount.threads, amount.rate) {
        (Some(sweep), _, _) => sweep.0.clone(),
        (None, Some(threads), _) => vec![threads],
        (None, None, Some(_)) => vec![WORKERS_OF_SCHEDULE],
        (None, None, None) => vec![1],
    }
}

fn model(amount: &AmountArgs) -> Model {
    if let (Some(per_second), Some(length)) = (amount.rate, amount.length) {
        return Model::Open { per_second, length };
    }
    let mut limits = Limits {
        each: amount.each,
        total: amount.total,
        length: amount.length,
    };
    // The default is one request per thread.
    if limits == Limits::default() {
        limits.each = Some(1);
    }
    Model::Closed(limits)
}

fn targets(args: &LoadArgs, template: &RequestTemplate) -> Result<Vec<Target>, Failure> {
    let mut targets = Vec::new();
    for address in &args.addresses {
        targets.push(template.target(address, 1).map_err(failed)?);
    }
    if let Some(path) = &args.urls {
        read(path, template, &mut targets)?;
    }
    Ok(targets)
}

/// Reads URLs, one per line, with an optional weight in front; lines that start with `#` are
/// comments.
fn read(path: &Path, template: &RequestTemplate, targets: &mut Vec<Target>) -> Result<(), Failure> {
    let text = fs::read_to_string(path).map_err(|error| Failure::reading(path, error))?;
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (weight, address) = match line.split_once(char::is_whitespace) {
            Some((weight, address)) => (weight.parse().ok(), address.trim()),
            None => (Some(1), line),
        };
        let weight = weight.ok_or_else(|| {
            Failure::usage(format!(
                "cannot read `{line}`: it does not start with a weight"
            ))
            .hint("write lines like `10 http://localhost/`")
        })?;
        targets.push(template.target(address, weight).map_err(failed)?);
    }
    Ok(())
}
