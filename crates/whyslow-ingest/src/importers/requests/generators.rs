//! Request lists of load generators with dates: vegeta (`encode -to json`, `-to csv`), ab (`-g`).

use std::collections::VecDeque;

use serde::Deserialize;
use whyslow_model::Ns;
use whyslow_model::stat::{self, Stat};

use super::lines::Parse;
use super::request::{Outcome, Request, Role, Times};
use super::values::{MILLISECOND, SECOND, fields, length, timestamp};

const AB: &str = "starttime\tseconds\tctime\tdtime\tttime\twait";

pub(super) fn is_ab(head: &str) -> bool {
    head.starts_with(AB)
}

pub(super) fn is_vegeta_json(head: &str) -> bool {
    let keys = ["\"seq\":", "\"code\":", "\"timestamp\":", "\"latency\":"];
    head.starts_with("{\"attack\":") && keys.iter().all(|key| head.contains(key))
}

/// Twelve columns without a header; time, status and length are numbers.
pub(super) fn is_vegeta_csv(head: &str) -> bool {
    let line = head.lines().next().unwrap_or_default();
    let fields: Vec<&str> = line.splitn(6, ',').collect();
    let is_number = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
    fields.len() == 6
        && fields[0].len() == 19
        && fields[1].len() <= 3
        && fields[..5].iter().all(is_number)
}

/// A request of a client with its result.
pub(super) fn client_request(
    source: &'static str,
    (ts, dur): (Ns, Ns),
    status: i32,
    error: &str,
) -> Request {
    let mut request = Request {
        ts,
        dur: Some(dur),
        role: Role::Client,
        source,
        ..Request::default()
    };
    request.set_status(status);
    if status == 0 {
        request.outcome = Outcome::of_error(error);
    }
    error.clone_into(&mut request.error);
    request
}

#[derive(Debug, Default)]
pub(super) struct VegetaJson;

#[derive(Deserialize)]
struct VegetaLine {
    seq: Option<i64>,
    code: i32,
    timestamp: String,
    latency: Ns,
    bytes_out: Option<i64>,
    bytes_in: Option<i64>,
    #[serde(default)]
    error: String,
    #[serde(default)]
    method: String,
    #[serde(default)]
    url: String,
}

impl VegetaLine {
    fn request(self, ts: Ns) -> Request {
        let mut request =
            client_request("vegeta", (ts, self.latency.max(0)), self.code, &self.error);
        request.seq = self.seq;
        request.method = self.method;
        request.set_url(&self.url);
        (request.bytes_sent, request.bytes_received) = (self.bytes_out, self.bytes_in);
        request
    }
}

impl Parse for VegetaJson {
    fn line(&mut self, line: &str, found: &mut VecDeque<Request>) -> Result<bool, String> {
        let line: VegetaLine = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let ts = timestamp(&line.timestamp).ok_or("invalid time")?;
        found.push_back(line.request(ts));
        Ok(true)
    }

    fn remarks(&self) -> Vec<(&'static Stat, u64)> {
        Vec::new()
    }
}

#[derive(Debug, Default)]
pub(super) struct VegetaCsv;

impl Parse for VegetaCsv {
    fn line(&mut self, line: &str, found: &mut VecDeque<Request>) -> Result<bool, String> {
        let fields = fields(line);
        let text = |at: usize| fields.get(at).map_or("", |field| &**field);
        let number = |at: usize| -> Result<i64, String> {
            text(at)
                .parse()
                .map_err(|_| format!("{:?} is not a number", text(at)))
        };
        let ts = number(0)?;
        let line = VegetaLine {
            code: i32::try_from(number(1)?).map_err(|_| "invalid status")?,
            timestamp: String::new(),
            latency: number(2)?,
            bytes_out: number(3).ok(),
            bytes_in: number(4).ok(),
            error: text(5).to_owned(),
            seq: number(8).ok(),
            method: text(9).to_owned(),
            url: text(10).to_owned(),
        };
        found.push_back(line.request(ts));
        Ok(true)
    }

    fn remarks(&self) -> Vec<(&'static Stat, u64)> {
        Vec::new()
    }
}

/// In order of duration; the start is in whole seconds.
#[derive(Debug, Default)]
pub(super) struct Ab {
    requests: u64,
}

impl Parse for Ab {
    fn line(&mut self, line: &str, found: &mut VecDeque<Request>) -> Result<bool, String> {
        if line == AB {
            return Ok(false);
        }
        let fields: Vec<&str> = line.split('\t').collect();
        let [_, seconds, connect, _, total, wait] = fields[..] else {
            return Err("expected six columns".to_owned());
        };
        let ms = |text: &str| {
            length(text, MILLISECOND).ok_or_else(|| format!("invalid duration {text:?}"))
        };
        let ts = length(seconds, SECOND).ok_or("invalid time")?;
        let (connect, total, wait) = (ms(connect)?, ms(total)?, ms(wait)?);
        // ab does not list the status, nor failed requests.
        let mut request = client_request("ab", (ts, total), 0, "");
        request.outcome = Outcome::Unknown;
        let rest = total.saturating_sub(connect).saturating_sub(wait);
        request.times = Times {
            connect: Some(connect),
            wait: Some(wait),
            receive: Some(rest.max(0)),
            ..Times::default()
        };
        self.requests += 1;
        found.push_back(request);
        Ok(true)
    }

    fn remarks(&self) -> Vec<(&'static Stat, u64)> {
        vec![(&stat::REQUEST_TIME_COARSE, self.requests)]
    }
}
