//! The data of a report: answers for its window and for the window of each observation, and timelines
//! of the relevant threads and devices at several scales.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};
use whyslow_base::failure::Failure;
use whyslow_model::Window;
use whyslow_serve::Answers;
use whyslow_sources::recording::Opened;

use super::windows::Span;

const JSON: &str = "application/json";
const ARROW: &str = "application/vnd.apache.arrow.stream";
/// Findings with data for their own window.
const FINDINGS: usize = 6;
/// Lanes of a track.
const LANES: usize = 120;
/// Devices with a heat map each.
const DEVICES: usize = 12;
/// Placeholder for each device in a query of the pages.
const EACH_DEVICE: &str = "dev=EACH&";
/// Cells across the width of a window.
const CELLS: f64 = 1500.0;
const TILE_CELLS: f64 = 1024.0;
const TRACKS: [&str; 6] = ["states", "calls", "cpus", "block", "locks", "samples"];
/// Points in time with a thread dump.
const DUMPS: usize = 12;
/// Logs are omitted: they are long, and tables of the slowest operations are more useful.
const OMITTED: &str = "view=log";

pub(super) struct Contents {
    answers: Map<String, Value>,
    tiles: BTreeMap<String, String>,
    window: Option<String>,
}

impl Contents {
    pub(super) fn collect(
        answers: &Answers,
        opened: &Opened,
        window: Option<Window>,
        queries: &str,
    ) -> Result<Self, Failure> {
        let info = opened.tables.info();
        let total = info.end_ns.saturating_sub(info.begin_ns).max(1) as f64;
        let whole = window.map(|window| Span::of(window.begin, window.end, info.begin_ns));
        let queries: Vec<String> = serde_json::from_str(queries).map_err(|error| {
            Failure::new("cannot parse queries.json of this build").caused_by(&error)
        })?;
        let mut found = Self {
            answers: Map::new(),
            tiles: BTreeMap::new(),
            window: whole.map(Span::text),
        };
        let usual: Vec<&String> = queries
            .iter()
            .filter(|one| !one.contains(OMITTED))
            .collect();
        for query in usual.iter().filter(|one| !one.contains(EACH_DEVICE)) {
            found.fetch(answers, query, whole.filter(|_| takes_window(query)))?;
        }
        let devices = found.devices();
        for query in usual.iter().filter(|one| one.contains(EACH_DEVICE)) {
            for device in &devices {
                let name: String = form_urlencoded::byte_serialize(device.as_bytes()).collect();
                let query = query.replace(EACH_DEVICE, &format!("dev={name}&"));
                found.fetch(answers, &query, whole)?;
            }
        }
        let spans = found.spans(info.begin_ns, total);
        for (span, pages) in &spans {
            for query in usual.iter().filter(|one| is_of(one, pages)) {
                found.fetch_within(answers, query, *span)?;
            }
            found.fetch_within(answers, "wakeups?limit=301", *span)?;
        }
        for query in found.victims() {
            found.fetch(answers, &query, None)?;
        }
        for at in found.dump_times(info.begin_ns) {
            let query = format!("table?at={}&view=dump&what=threads", at.replace('+', "%2B"));
            found.fetch(answers, &query, None)?;
        }
        let all = whole.unwrap_or(Span {
            begin: 0.0,
            end: total,
        });
        let mut views = vec![all];
        views.extend(spans.iter().map(|(span, _)| *span));
        for track in TRACKS {
            found.tiles_of(answers, track, &views)?;
        }
        Ok(found)
    }

    /// Stores an answer under its address without the window, which is that of the report.
    fn fetch(
        &mut self,
        answers: &Answers,
        query: &str,
        within: Option<Span>,
    ) -> Result<(), Failure> {
        let address = within.map_or_else(|| query.to_owned(), |span| with_window(query, span));
        let address = bounded(&address);
        // Data that was not recorded has no answer; the page reports that itself.
        if let Some(bytes) = answers.get(&address, JSON)? {
            self.keep(query, &bytes)?;
        }
        Ok(())
    }

    fn fetch_within(&mut self, answers: &Answers, query: &str, span: Span) -> Result<(), Failure> {
        let address = with_window(query, span);
        if self.answers.contains_key(&address) {
            return Ok(());
        }
        if let Some(bytes) = answers.get(&bounded(&address), JSON)? {
            self.keep(&address, &bytes)?;
        }
        Ok(())
    }

    fn keep(&mut self, address: &str, bytes: &[u8]) -> Result<(), Failure> {
        let answer = serde_json::from_slice(bytes).map_err(|error| {
            Failure::new(format!("cannot parse the answer to {address}")).caused_by(&error)
        })?;
        self.answers.insert(address.to_owned(), answer);
        Ok(())
    }

    /// Devices with I/O, at most as many as the pages draw next to each other.
    fn devices(&self) -> Vec<String> {
        let usage = self.answers.get("table?view=usage&what=block");
        let rows = usage.and_then(|usage| usage["tables"][0]["rows"].as_array());
        let names = rows.into_iter().flatten();
        let names = names.filter_map(|row| row["dev"].as_str());
        let names: BTreeSet<&str> = names.collect();
        names.into_iter().take(DEVICES).map(str::to_owned).collect()
    }

    /// The `findings` of `explain`.
    fn observations(&self) -> impl Iterator<Item = &Value> {
        let report = self.answers.get("explain");
        let observations = report.and_then(|report| report["findings"].as_array());
        observations.into_iter().flatten().take(FINDINGS)
    }

    /// Queries that explain the victims in the drawings of the findings. The findings themselves explain
    /// their own targets.
    fn victims(&self) -> BTreeSet<String> {
        let mut queries = BTreeSet::new();
        for finding in self.observations() {
            let rows = finding["timeline"].as_array().into_iter().flatten();
            for id in rows
                .filter(|row| row["role"] == "victim")
                .filter_map(|row| row["id"].as_str())
                .filter(|id| finding["target"]["id"] != *id)
            {
                queries.insert(match id.split_once(':') {
                    Some(("request", number)) => format!("explain?request={number}"),
                    _ => format!("explain?w={}", id.replace(':', "%3A")),
                });
            }
        }
        queries
    }

    /// Windows of the observations, with the pages that show them.
    fn spans(&self, origin: i64, total: f64) -> Vec<(Span, Vec<&'static str>)> {
        let mut spans = Vec::new();
        for observation in self.observations() {
            let of = |value: &Value| {
                Some(Span::of(
                    value["begin_ns"].as_i64()?,
                    value["end_ns"].as_i64()?,
                    origin,
                ))
            };
            if let Some(span) = of(&observation["target"]) {
                spans.push((
                    span.with_margin(total),
                    vec!["states", "io", "block", "sched", "locks"],
                ));
            }
            for hop in observation["chain"].as_array().into_iter().flatten() {
                if let Some(span) = of(hop) {
                    spans.push((
                        span.with_margin(total),
                        vec!["io", "block", "locks", "sched"],
                    ));
                }
            }
        }
        spans
    }

    /// Times of the thread dumps, without duplicates: the middle of each observation's target, and of
    /// each step of its chain to the culprit.
    fn dump_times(&self, origin: i64) -> Vec<String> {
        let has_samples = self
            .answers
            .keys()
            .any(|address| address.starts_with("tracks?") && address.contains("track=samples"));
        let mut times = Vec::new();
        for observation in self.observations().filter(|_| has_samples) {
            let steps = observation["chain"].as_array().into_iter().flatten();
            for part in std::iter::once(&observation["target"]).chain(steps) {
                let (begin, end) = (part["begin_ns"].as_i64(), part["end_ns"].as_i64());
                let Some((begin, end)) = begin.zip(end) else {
                    continue;
                };
                let middle = begin.midpoint(end).saturating_sub(origin);
                let time = super::windows::offset(middle as f64);
                if middle >= 0 && !times.contains(&time) {
                    times.push(time);
                }
            }
        }
        times.truncate(DUMPS);
        times
    }

    /// The timeline of a track, coarse overall and finer in the windows of observations.
    fn tiles_of(&mut self, answers: &Answers, track: &str, views: &[Span]) -> Result<(), Failure> {
        let lanes = self.lanes(track);
        if lanes.is_empty() {
            return Ok(());
        }
        for (level, index) in places(views) {
            let address = format!("tile?track={track}&level={level}&index={index}&lanes={lanes}");
            if let Some(bytes) = answers.get(&address, ARROW)? {
                let name = format!("{track}/{level}/{index}");
                self.tiles.insert(name, BASE64.encode(&bytes));
            }
        }
        Ok(())
    }

    /// Lanes listed for a track, in any window.
    fn lanes(&self, track: &str) -> String {
        // Calls and samples of a thread are drawn next to its states, whichever list contains it.
        let listed: &[&str] = match track {
            "states" | "calls" | "samples" => &["track=states", "track=samples"],
            _ => &[],
        };
        let of = format!("track={track}");
        let is_of = |address: &str| {
            address.contains(&of) || listed.iter().any(|list| address.contains(list))
        };
        let lists = self
            .answers
            .iter()
            .filter(|(address, _)| address.starts_with("tracks?") && is_of(address));
        let lanes: BTreeSet<i64> = lists
            .flat_map(|(_, list)| list["tracks"].as_array().into_iter().flatten())
            .flat_map(|track| track["lanes"].as_array().into_iter().flatten())
            .filter_map(|lane| lane["lane"].as_i64())
            .collect();
        let lanes: Vec<String> = lanes.iter().map(i64::to_string).collect();
        lanes.join(",")
    }

    /// The sentences of the findings, for browsers without scripts.
    pub(super) fn sentences(&self) -> Vec<String> {
        let report = self.answers.get("explain");
        let list = |key: &str, texts: &[&str]| -> Vec<String> {
            let items = report.and_then(|report| report[key].as_array());
            let items = items.into_iter().flatten();
            items
                .flat_map(|item| texts.iter().filter_map(|text| item[*text].as_str()))
                .map(str::to_owned)
                .collect()
        };
        let mut sentences = list("findings", &["why", "who", "sure"]);
        sentences.extend(list("observations", &["summary"]));
        sentences
    }

    pub(super) fn into_json(self) -> Value {
        json!({
            "answers": self.answers,
            "tiles": self.tiles,
            "version": env!("CARGO_PKG_VERSION"),
            "window": self.window,
        })
    }
}

/// Tiles of these views as levels and indexes; the first view is the whole window.
fn places(views: &[Span]) -> BTreeSet<(u8, u64)> {
    let Some((whole, parts)) = views.split_first() else {
        return BTreeSet::new();
    };
    let top = level(*whole);
    // Every other zoom level in between, so that each step shows something.
    let on_the_way = parts
        .iter()
        .flat_map(|part| (level(*part)..top).step_by(2).map(|level| (level, *part)));
    let mut places = BTreeSet::new();
    for (level, span) in on_the_way.chain([(top, *whole)]) {
        let size = 2_f64.powi(i32::from(level)) * TILE_CELLS;
        let first = (span.begin / size).floor().max(0.0) as u64;
        let last = ((span.end / size).ceil() - 1.0).max(0.0) as u64;
        places.extend((first..=last).map(|index| (level, index)));
    }
    places
}

/// Limits lists of lanes to those with tiles; the pages show the total number.
fn bounded(query: &str) -> String {
    query.replace("tracks?limit=2000&", &format!("tracks?limit={LANES}&"))
}

/// The level with about one cell per pixel for this window.
fn level(span: Span) -> u8 {
    let cell = ((span.end - span.begin) / CELLS).max(1.0);
    cell.log2().floor().clamp(0.0, 50.0) as u8
}

fn takes_window(query: &str) -> bool {
    !query.starts_with("recordings") && !query.starts_with("series")
}

/// Whether a query is about one of these kinds.
fn is_of(query: &str, kinds: &[&str]) -> bool {
    let is_kind = |kind: &&str| {
        query.ends_with(&format!("what={kind}")) || query.contains(&format!("what={kind}&"))
    };
    let is_heavy = query.starts_with("heat") || query.contains("view=hist");
    kinds.iter().any(is_kind) && !is_heavy
}

/// The address with a window; the keys are sorted, as the pages do.
pub(super) fn with_window(query: &str, span: Span) -> String {
    let (endpoint, query) = query.split_once('?').unwrap_or((query, ""));
    let window = span.text().replace('+', "%2B");
    let mut keys: Vec<String> = query
        .split('&')
        .filter(|key| !key.is_empty())
        .map(str::to_owned)
        .collect();
    keys.push(format!("w={window}"));
    keys.sort_by(|a, b| a.split('=').next().cmp(&b.split('=').next()));
    format!("{endpoint}?{}", keys.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_their_keys_in_order() {
        let span = Span {
            begin: 0.0,
            end: 1e9,
        };
        assert_eq!(
            with_window("table?view=top&what=io", span),
            "table?view=top&w=%2B0s..%2B1s&what=io"
        );
        assert_eq!(with_window("explain", span), "explain?w=%2B0s..%2B1s");
    }
}
