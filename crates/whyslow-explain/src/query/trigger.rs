//! Findings of what made a flight recorder save, which come first: also if the operation is not the
//! slowest, or no outlier.

use std::cmp::Reverse;

use whyslow_analysis::AnalysisError;
use whyslow_model::row::Row;
use whyslow_model::tables::{BlockIoRow, SyscallRow};
use whyslow_model::trigger::TriggerFacts;
use whyslow_model::{Ns, Symbols, Window};
use whyslow_store::each_row;

use super::{Explainer, FINDINGS};
use crate::finding::{Subject, finding};
use crate::page::Page;
use crate::report::{
    Actor, ActorKind, Confidence, Finding, Grade, Part, Remote, Report, Target, Thing,
};
use crate::sentence;
use crate::trigger::{self, FoundRow, Trigger};

/// A call that covers a smaller share of the block I/O did not wait for it.
const COVERED_MIN: f64 = 0.5;

impl Explainer<'_> {
    /// Adds the trigger of a flight recording, and its finding if everything is explained.
    pub(super) fn add_trigger(&self, report: &mut Report) -> Result<(), AnalysisError> {
        let Some(facts) = trigger::facts(self.tables)? else {
            return Ok(());
        };
        let found = trigger::find(self.tables, &facts)?;
        let mut trigger = Trigger::new(&facts, &found);
        let is_of_all = self.query.operation.is_none()
            && self.query.calls.is_empty()
            && self.query.tids.is_empty()
            && self.query.pids.is_empty()
            && self.query.devices.is_empty();
        if is_of_all {
            match found {
                Ok(found) if self.is_inside(&facts) => {
                    self.put_first(report, &mut trigger, found)?;
                }
                Ok(_) => {}
                Err(trigger::NotFound::Requested) => self.add_slowest_request(report)?,
                Err(_) => report.caveats.extend(trigger.missing.clone()),
            }
        } else if let Some(id) = &trigger.id {
            let is_it = |finding: &&mut Finding| finding.target.id.as_ref() == Some(id);
            for finding in report.findings.iter_mut().filter(is_it) {
                mark(finding, &trigger);
            }
        }
        report.trigger = Some(trigger);
        Ok(())
    }

    /// Whether the operation overlaps the explained window.
    fn is_inside(&self, facts: &TriggerFacts) -> bool {
        let (Some(begin), Some(end)) = (facts.begin(), facts.ts) else {
            return false;
        };
        let window = self.query.window;
        window.is_none_or(|window| window.overlaps(begin, Some(end)))
    }

    fn put_first(
        &self,
        report: &mut Report,
        trigger: &mut Trigger,
        found: FoundRow,
    ) -> Result<(), AnalysisError> {
        let known = report.findings.iter().position(|finding| {
            finding.target.kind == "operation" && finding.target.id == trigger.id
        });
        let first = match known.filter(|_| trigger.id.is_some()) {
            Some(place) => Ok(report.findings.remove(place)),
            None => self.of_trigger(trigger, found),
        };
        match first {
            Ok(mut first) => {
                mark(&mut first, trigger);
                report.findings.insert(0, first);
                match self.query.limit.unwrap_or(FINDINGS) {
                    0 => {}
                    limit => report.findings.truncate(limit),
                }
            }
            // It is in the recording, but cannot be explained.
            Err(AnalysisError::Query { message, .. }) => {
                let missing = format!("finding of the trigger unavailable: {message}");
                report.caveats.push(missing.clone());
                trigger.missing = Some(missing);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn of_trigger(&self, trigger: &Trigger, found: FoundRow) -> Result<Finding, AnalysisError> {
        match found {
            FoundRow::Thread(utid, tid, window) => {
                self.wait("a run-queue wait", None, utid, (tid, window))
            }
            FoundRow::Row("request", id) => {
                crate::requests::one(self.tables, id, &self.query.recording)
            }
            FoundRow::Row("block_io", id) => self.block(id),
            FoundRow::Row("lock_wait", id) => {
                let (_, window) = whyslow_analysis::interval_of(self.tables, "lock_wait", id)?;
                let tid = trigger.tid.unwrap_or(0);
                let Some(utid) = trigger::thread_at(self.tables, tid, window)? else {
                    return Err(unknown_thread(tid));
                };
                let name = Some(format!("lock:{id}"));
                self.wait("a kernel lock wait", name, utid, (tid, window))
            }
            FoundRow::Row(table, id) => self.operation(table, id),
        }
    }

    /// A wait of a thread that is not a system call.
    fn wait(
        &self,
        what: &str,
        id: Option<String>,
        utid: i32,
        (tid, window): (i32, Window),
    ) -> Result<Finding, AnalysisError> {
        let subject = Subject {
            utid,
            begin: window.begin,
            end: window.end,
            kind: "thread",
            id,
            what: what.to_owned(),
            cut: None,
            only_waits: true,
            baseline: None,
            reproduce: self.command(&format!(
                "-w {} -t {tid}",
                sentence::window(window.begin, window.end)
            )),
            recording: self.query.recording.clone(),
        };
        finding(self.tables, &subject)
    }

    /// Block I/O: the call of its thread that waited for it, else its own time.
    fn block(&self, id: i64) -> Result<Finding, AnalysisError> {
        let (_, window) = whyslow_analysis::interval_of(self.tables, "block_io", id)?;
        let mut symbols = Symbols::new();
        let mut io = None;
        each_row::<BlockIoRow>(self.tables, Some(window), &mut symbols, |row, _| {
            if row.id == id {
                io = Some(row);
            }
            Ok(())
        })?;
        let Some(io) = io else {
            return Err(no_row("block I/O", id));
        };
        let name = symbols.get(io.dev_name).to_owned();
        let mut longest: Option<(Ns, Reverse<i64>)> = None;
        each_row::<SyscallRow>(self.tables, Some(window), &mut symbols, |row, _| {
            let end = row.ts_end.unwrap_or(window.end);
            let covered = end.min(window.end) - row.ts.max(window.begin);
            if io.utid.is_some() && row.utid == io.utid {
                longest = longest.max(Some((covered, Reverse(row.id))));
            }
            Ok(())
        })?;
        let least = COVERED_MIN * window.length() as f64;
        if let Some((_, Reverse(call))) = longest.filter(|(covered, _)| *covered as f64 >= least) {
            let mut finding = self.operation(SyscallRow::TABLE.name, call)?;
            finding.caveats.push(format!(
                "the trigger is block I/O to {name} (block:{id}); this is the call that waited for it"
            ));
            return Ok(finding);
        }
        let comm = io.comm.map_or("?", |comm| symbols.get(comm)).to_owned();
        let op = symbols.get(io.op).to_owned();
        Ok(self.of_device(&io, window, (&name, &op, comm)))
    }

    /// Block I/O that no call waited for: its time in the queue and in the device.
    fn of_device(
        &self,
        io: &BlockIoRow,
        window: Window,
        (device, op, comm): (&str, &str, String),
    ) -> Finding {
        let length = window.length().max(1);
        let queued = io.queue_ns.unwrap_or(0).clamp(0, length);
        let id = format!("block:{}", io.id);
        let recording = &self.query.recording;
        let parts = self.device_parts(io, (length, queued), device);
        let actor = Actor {
            kind: ActorKind::Own,
            name: comm,
            pid: io.pid,
            tid: io.tid,
            host: None,
        };
        let what = format!(
            "{op} of {} KiB at sector {} of {device}",
            io.bytes / 1024,
            io.sector
        );
        let verdict = format!(
            "{what} by {} took {}: {} of it in the device, {} in the queue",
            sentence::thread(&actor),
            sentence::length(length),
            sentence::length(length - queued),
            sentence::length(queued)
        );
        let main = parts
            .first()
            .map_or("block_service", |part| part.mechanism.as_str());
        Finding {
            suggestions: crate::advice::on(main, main),
            across: Vec::new(),
            did: Vec::new(),
            behind: None,
            remote: Remote::default(),
            is_trigger: false,
            page: Page::default(),
            target: Target {
                kind: "device".into(),
                id: Some(id.clone()),
                what,
                actor,
                begin_ns: window.begin,
                end_ns: window.end,
                cut: io.dur.is_none().then(|| "end".into()),
            },
            group: None,
            contention: None,
            versus: None,
            baseline: None,
            verdict,
            confidence: Confidence::Medium,
            score: 0.5,
            culprit: Some(0),
            saved_at_most_ns: parts.first().map_or(0, |part| part.dur_ns),
            parts,
            chain: Vec::new(),
            unexplained_ns: 0,
            alternatives: Vec::new(),
            also: Vec::new(),
            neighbours: Vec::new(),
            missing: Vec::new(),
            caveats: vec!["no system call of its thread waited for it".into()],
            reproduce: format!("whyslow block top {recording} -w {id}"),
        }
    }

    /// The time in the device and in the queue, longest first.
    fn device_parts(&self, io: &BlockIoRow, (length, queued): (Ns, Ns), device: &str) -> Vec<Part> {
        let id = format!("block:{}", io.id);
        let recording = &self.query.recording;
        let part = |mechanism: &str, dur_ns: Ns| Part {
            mechanism: mechanism.into(),
            root: mechanism.into(),
            culprit: Actor {
                kind: ActorKind::Device,
                name: device.to_owned(),
                pid: None,
                tid: None,
                host: None,
            },
            activity: None,
            object: Some(Thing {
                kind: "device".into(),
                name: device.to_owned(),
            }),
            client: None,
            dur_ns,
            share: dur_ns as f64 / length as f64,
            grade: Grade::A,
            pieces: 1,
            evidence: vec![id.clone()],
            shown_by: Some(format!("whyslow block top {recording} -w {id}")),
        };
        let mut parts = vec![
            part("block_service", length - queued),
            part("block_queue", queued),
        ];
        parts.retain(|part| part.dur_ns > 0);
        parts.sort_by_key(|part| Reverse(part.dur_ns));
        parts
    }

    /// A requested save is about what was just slow: usually a request, which is a finding even if
    /// it is known from sockets only.
    fn add_slowest_request(&self, report: &mut Report) -> Result<(), AnalysisError> {
        let mut findings = report.findings.iter();
        if findings.any(|finding| finding.target.kind == "request") {
            return Ok(());
        }
        let slow = crate::requests::slow_ones(self.tables, self.query.window)?;
        let Some(slowest) = slow.iter().max_by_key(|one| (one.dur, Reverse(one.id))) else {
            return Ok(());
        };
        let finding = crate::requests::one(self.tables, slowest.id, &self.query.recording)?;
        report.findings.insert(0, finding);
        Ok(())
    }
}

/// Marks the finding as that of the trigger.
fn mark(finding: &mut Finding, trigger: &Trigger) {
    finding.is_trigger = true;
    let condition = trigger.condition.as_deref().unwrap_or_default();
    finding.verdict = format!("the trigger ({condition}): {}", finding.verdict);
}

fn unknown_thread(tid: i32) -> AnalysisError {
    AnalysisError::Query {
        message: format!("no thread {tid} in this recording"),
        hint: Some("list them with `whyslow threads list`".into()),
    }
}

fn no_row(what: &str, id: i64) -> AnalysisError {
    AnalysisError::Query {
        message: format!("no {what} {id} in this recording"),
        hint: None,
    }
}
