//! What made a flight recorder save a recording: its facts, and the row that they are of.

mod row;

use serde::Serialize;
use whyslow_analysis::AnalysisError;
use whyslow_model::tables::{MarkerRow, MetadataRow};
use whyslow_model::trigger::TriggerFacts;
use whyslow_model::{Ns, Symbols};
use whyslow_store::{Tables, each_row, rows};

pub(crate) use row::{FoundRow, NotFound, find, thread_at};

/// Name of the markers that users add, and of that of the trigger.
pub(crate) const MARK: &str = "mark";

/// Why the flight recorder saved the recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Trigger {
    /// The condition as typed: `request>1s`; null for a save on request.
    pub condition: Option<String>,
    /// request, call, block, sched, dns, lock, pressure; null for a save on request, and in
    /// recordings of earlier versions.
    pub kind: Option<String>,
    /// What met the condition, as the recorder reported it.
    pub what: String,
    /// Time at which the condition was met.
    pub ts_ns: Option<Ns>,
    /// Duration of the operation until then.
    pub dur_ns: Option<Ns>,
    /// Kernel id of its process.
    pub pid: Option<i32>,
    /// Kernel id of its thread.
    pub tid: Option<i32>,
    /// Id of its row, for other commands: `request:5`, `op:17`.
    pub id: Option<String>,
    /// Why it has no row or no finding, as a sentence; null if nothing is missing.
    pub missing: Option<String>,
}

impl Trigger {
    /// The trigger of a recording, with its row; `None` if no flight recorder saved it.
    pub fn read(tables: &dyn Tables) -> Result<Option<Self>, AnalysisError> {
        let Some(facts) = facts(tables)? else {
            return Ok(None);
        };
        let found = find(tables, &facts)?;
        Ok(Some(Self::new(&facts, &found)))
    }

    pub(crate) fn new(facts: &TriggerFacts, found: &Result<FoundRow, NotFound>) -> Self {
        let (id, missing) = match found {
            Ok(row) => (row.name(), None),
            Err(reason) => (None, reason.sentence()),
        };
        Self {
            condition: facts.condition.clone(),
            kind: facts.kind.map(|kind| kind.name().to_owned()),
            what: facts.what().to_owned(),
            ts_ns: facts.ts,
            dur_ns: facts.dur,
            pid: facts.pid,
            tid: facts.tid,
            id,
            missing,
        }
    }
}

/// The facts about the trigger; `None` if no flight recorder saved the recording.
pub(crate) fn facts(tables: &dyn Tables) -> Result<Option<TriggerFacts>, AnalysisError> {
    let mut symbols = Symbols::new();
    let metadata = rows::<MetadataRow>(tables, &mut symbols)?;
    let fact = |key: &str| {
        let mut all = metadata.iter();
        let found = all.find(|row| symbols.get(row.key) == key)?;
        Some(symbols.get(found.value))
    };
    let Some(mut facts) = TriggerFacts::read(fact) else {
        return Ok(None);
    };
    if facts.ts.is_none() {
        // Earlier versions have the time only as a marker.
        let mut symbols = Symbols::new();
        each_row::<MarkerRow>(tables, None, &mut symbols, |row, symbols| {
            if symbols.get(row.name) == MARK && symbols.get(row.text) == facts.text {
                facts.ts = Some(row.ts);
            }
            Ok(())
        })?;
    }
    Ok(Some(facts))
}
