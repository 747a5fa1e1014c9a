//! What handlers were busy with while a request waited for one.
//!
//! In a broker's log, `request_queue` is the wait, and `local` the time that a handler worked on a
//! request. Which handler took which request is not known, so this shows the requests served at
//! that time, not those ahead in the queue. If kernel events of the broker were recorded, they show
//! what its handlers did.

use rustc_hash::FxHashMap;
use whyslow_analysis::AnalysisError;
use whyslow_analysis::before_after::Request;
use whyslow_model::row::Row;
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::{RequestPhaseRow, ThreadStateRow};
use whyslow_model::{Ns, Symbols, Window};
use whyslow_store::{Tables, each_row};

use super::findings::RequestExplainer;
use super::handlers::{Busy, Handlers};
use crate::report::{Confidence, Finding, Part};
use crate::sentence;

/// The wait for a handler.
pub(super) const PHASE: &str = "request_queue";
/// A handler works on the request.
const SERVED: &str = "local";
/// Maximum idle share of handlers for the wait to be a lack of handlers.
const IDLE_MAX: f64 = 0.5;

/// Requests served during the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ahead {
    others: usize,
    /// Id of the request that took most of the wait, and its time.
    most: i64,
    most_ns: Ns,
}

/// A wait for a handler.
#[derive(Debug, Clone)]
pub(super) struct Queued {
    /// Start and end.
    wait: (Ns, Ns),
    ahead: Option<Ahead>,
    busy: Option<Busy>,
    /// Whether thread states were recorded.
    is_recorded: bool,
}

impl RequestExplainer<'_> {
    /// None if the source reports no such wait.
    pub(super) fn queued(&self, request: &Request) -> Result<Option<Queued>, AnalysisError> {
        let Some(wait) = wait(self.tables, request)? else {
            return Ok(None);
        };
        let states = self.tables.info().tables.get(ThreadStateRow::TABLE.name);
        let is_recorded = states.is_none_or(|table| table.rows > 0);
        let mut queued = Queued {
            wait,
            ahead: ahead(self.tables, request, wait)?,
            busy: None,
            is_recorded,
        };
        if is_recorded {
            let local = request.local.map(|sym| self.requests.symbols.get(sym));
            let port = local.and_then(|local| local.rsplit_once(':'));
            let port = port.map(|(_, port)| port);
            let window = Window {
                begin: wait.0,
                end: wait.1,
            };
            let handlers = Handlers::of(self.tables, window, (port, true))?;
            let busy = handlers.map(|handlers| handlers.busy(self.tables, wait, self.recording));
            queued.busy = busy.transpose()?;
        }
        Ok(Some(queued))
    }

    /// What the request waited for as a sentence, and caveats.
    pub(super) fn of_queue(&self, queued: &Queued) -> (String, Vec<String>) {
        let length = sentence::length(queued.wait.1 - queued.wait.0);
        let mut caveats = Vec::new();
        let mut summary = format!("{length} of it in {PHASE}, a wait for a free handler");
        if let Some(ahead) = queued.ahead {
            let other = self.requests.rows.iter().find(|one| one.id == ahead.most);
            let name = other.map_or_else(
                || format!("request {}", ahead.most),
                |other| self.of_client(other),
            );
            summary = format!(
                "{summary}: handlers were busy with {} other requests, {} of that time with {name}",
                ahead.others,
                sentence::length(ahead.most_ns),
            );
            caveats.push(format!(
                "explain the request that kept a handler busy with `whyslow explain {} --request {}`",
                self.recording, ahead.most
            ));
        }
        match &queued.busy {
            Some(busy) if busy.idle > IDLE_MAX => {
                summary = format!(
                    "{summary}; but {} were idle for {} of that time: why none took the request is unknown",
                    busy.names(),
                    sentence::percent(busy.idle)
                );
            }
            Some(busy) => {
                summary = format!(
                    "{summary}; {} spent that time: {}",
                    busy.names(),
                    busy.time_by_activity()
                );
                if let Some((part, clause)) = busy.greatest() {
                    summary = format!(
                        "{summary}; on average {} of it {}",
                        sentence::percent(part.share),
                        clause.with_grade(part.grade),
                    );
                }
                caveats.push(
                    "the handler that took the request is unknown: the wait is attributed in equal parts to what all handlers did".into(),
                );
            }
            None if queued.is_recorded => {
                caveats.push("activity of handlers unavailable: handler threads not identified".into());
            }
            None => caveats.push(format!(
                "activity of handlers unavailable: kernel events not recorded (run `whyslow record -p PID -o NAME.wsl --with LOG` on the broker); it accounts for {length} at most"
            )),
        }
        (summary, caveats)
    }
}

impl Queued {
    /// Whether the activity of handlers explains it.
    pub(super) fn is_explained(&self) -> bool {
        self.busy.as_ref().is_some_and(|busy| busy.idle <= IDLE_MAX)
    }

    /// Replaces the wait by what the handlers did.
    pub(super) fn explain(self, finding: &mut Finding, length: Ns) {
        let Some(busy) = self.busy.filter(|busy| busy.idle <= IDLE_MAX) else {
            return;
        };
        let is_wait = |part: &Part| part.object.as_ref().is_some_and(|one| one.name == PHASE);
        let Some(place) = finding.parts.iter().position(is_wait) else {
            return;
        };
        let mut wait = finding.parts.remove(place);
        for mut part in busy.parts {
            part.dur_ns = part.dur_ns.min(wait.dur_ns);
            part.share = part.dur_ns as f64 / length as f64;
            wait.dur_ns -= part.dur_ns;
            if part.dur_ns > 0 {
                finding.parts.push(part);
            }
        }
        wait.share = wait.dur_ns as f64 / length as f64;
        if wait.dur_ns > 0 {
            finding.parts.push(wait);
        }
        finding
            .parts
            .index_sort_by_key(|part| std::cmp::Reverse(part.dur_ns));
        let unexplained = finding.parts.iter();
        finding.unexplained_ns = unexplained
            .filter(|part| matches!(part.root.as_str(), "unknown" | "lost"))
            .map(|part| part.dur_ns)
            .sum();
        finding.missing = busy.missing;
        let Some((place, sum, score)) = named(&finding.parts, length) else {
            return;
        };
        // Which handler it was is inferred.
        finding.confidence = match score {
            score if score >= 0.5 => Confidence::Medium,
            score if score >= 0.3 => Confidence::Low,
            _ => return,
        };
        (finding.culprit, finding.score, finding.saved_at_most_ns) = (Some(place), score, sum);
        let part = &finding.parts[place];
        finding.suggestions = crate::advice::on(&part.mechanism, &part.root);
        finding.chain = busy.chain;
    }
}

/// Index of the largest part of the culprit with most of the time, its total time, and its score.
fn named(parts: &[Part], length: Ns) -> Option<(usize, Ns, f64)> {
    let is_known = |part: &Part| {
        part.object.as_ref().is_none_or(|one| one.kind != "phase")
            && !matches!(part.root.as_str(), "unknown" | "lost" | "still_blocked")
    };
    let is_work = |part: &Part| part.root == "cpu_running";
    let sum = |of: &Part, weight: fn(&Part) -> f64| -> f64 {
        let same = parts.iter().filter(|part| {
            is_known(part) && part.culprit == of.culprit && is_work(part) == is_work(of)
        });
        same.map(|part| weight(part) * part.dur_ns as f64).sum()
    };
    let known = parts.iter().enumerate().filter(|(_, part)| is_known(part));
    let most = known.max_by(|(place_a, a), (place_b, b)| {
        let by = sum(a, |_| 1.0).total_cmp(&sum(b, |_| 1.0));
        by.then(place_b.cmp(place_a))
    });
    let (place, part) = most?;
    let score = sum(part, |part| match part.grade {
        crate::report::Grade::C => 0.3,
        _ => 0.8,
    });
    Some((
        place,
        sum(part, |_| 1.0) as Ns,
        score / length.max(1) as f64,
    ))
}

fn wait(tables: &dyn Tables, request: &Request) -> Result<Option<(Ns, Ns)>, AnalysisError> {
    let mut wait = None;
    let length = request.dur.unwrap_or(0).saturating_add(1);
    let whole = Window {
        begin: request.ts,
        end: request.ts.saturating_add(length),
    };
    let mut symbols = Symbols::new();
    each_row::<RequestPhaseRow>(tables, Some(whole), &mut symbols, |row, symbols| {
        if row.request == request.id && symbols.get(row.phase) == PHASE {
            wait = row.dur.map(|dur| (row.ts, row.ts.saturating_add(dur)));
        }
        Ok(())
    })?;
    Ok(wait.filter(|(begin, end)| end > begin))
}

/// None if no other request was served during the wait.
fn ahead(
    tables: &dyn Tables,
    request: &Request,
    (begin, end): (Ns, Ns),
) -> Result<Option<Ahead>, AnalysisError> {
    let mut served: FxHashMap<i64, Ns> = FxHashMap::default();
    each_row::<RequestPhaseRow>(
        tables,
        Some(Window { begin, end }),
        &mut Symbols::new(),
        |row, symbols| {
            let last = row.ts.saturating_add(row.dur.unwrap_or(0)).min(end);
            let meanwhile = last.saturating_sub(row.ts.max(begin));
            if meanwhile > 0 && row.request != request.id && symbols.get(row.phase) == SERVED {
                *served.entry(row.request).or_default() += meanwhile;
            }
            Ok(())
        },
    )?;
    let longest = served.iter().max_by_key(|(id, ns)| (**ns, -**id));
    Ok(longest.map(|(most, most_ns)| Ahead {
        others: served.len(),
        most: *most,
        most_ns: *most_ns,
    }))
}
