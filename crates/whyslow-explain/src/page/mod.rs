//! The page of a finding: the sentences and the drawing that are shown first, made from the parts,
//! the chain and the groups of the finding, and from nothing else.

mod advice;
mod cause;
mod confidence;
mod model;
mod names;
mod phrases;
mod resources;
mod timeline;
mod victims;

use whyslow_analysis::AnalysisError;
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use crate::report::{Activity, Actor, ActorKind, Finding, Part, Report};
pub use model::{Advice, AdviceKind, Page, Resource, ResourceState, Role, TimelineRow, Victim};
use names::Names;
pub use phrases::mechanism_noun;
pub use timeline::ROWS_MAX as TIMELINE_ROWS_MAX;

/// Adds the pages, and the verdicts on resources in the window of the report.
pub(crate) fn fill(
    tables: &dyn Tables,
    window: Option<Window>,
    report: &mut Report,
) -> Result<(), AnalysisError> {
    fill_findings(tables, report)?;
    resources::fill(tables, window, report)
}

/// Adds the pages to the findings.
pub(crate) fn fill_findings(tables: &dyn Tables, report: &mut Report) -> Result<(), AnalysisError> {
    if report.findings.is_empty() {
        return Ok(());
    }
    let names = Names::read(tables)?;
    let recorded = tables.info().whole();
    for finding in &mut report.findings {
        finding.page = Drawn::new(&names, recorded, finding).page();
    }
    Ok(())
}

/// A finding and what its page is made with.
struct Drawn<'f> {
    names: &'f Names,
    /// The recording.
    recorded: Window,
    finding: &'f Finding,
    /// The part with the culprit.
    culprit: Option<&'f Part>,
}

impl<'f> Drawn<'f> {
    fn new(names: &'f Names, recorded: Window, finding: &'f Finding) -> Self {
        let culprit = finding.culprit.and_then(|place| finding.parts.get(place));
        Self {
            names,
            recorded,
            finding,
            culprit,
        }
    }

    fn page(&self) -> Page {
        let victims = self.victims();
        Page {
            why: self.why(),
            who: self.who(&victims),
            sure: self.sure(),
            timeline: self.timeline(),
            ended_ns: self.ended_ns(),
            advice: self.advice(),
            victims,
        }
    }

    /// Duration of the explained operation.
    fn length(&self) -> Ns {
        (self.finding.target.end_ns - self.finding.target.begin_ns).max(1)
    }

    /// The culprit, if it is not the slow thread itself.
    fn other(&self) -> Option<&'f Part> {
        let is_other = |part: &&Part| match part.culprit.kind {
            ActorKind::Own | ActorKind::Timer => false,
            // Its own I/O was throttled on the way to the device, for example.
            ActorKind::Device => matches!(
                part.root.as_str(),
                "block_service" | "block_queue" | "device_held" | "misbehaving_disk"
            ),
            _ => true,
        };
        self.culprit.filter(is_other)
    }

    /// What the culprit did, if that went on for most of the time that it is blamed for: otherwise
    /// it is one of many calls.
    fn activity(&self) -> Option<&'f Activity> {
        let part = self.other()?;
        let activity = part.activity.as_ref()?;
        let target = &self.finding.target;
        let end = activity.end_ns.unwrap_or(self.recorded.end);
        let overlap = end.min(target.end_ns) - activity.begin_ns.max(target.begin_ns);
        (overlap * 2 >= part.dur_ns).then_some(activity)
    }

    /// The thread that the victim waited for, if the culprit held up that one.
    fn between(&self) -> Option<&'f Actor> {
        let part = self.other()?;
        let direct = &self.finding.chain.get(1)?.actor;
        let leads_on = crate::sentence::leads_on(&part.mechanism);
        let is_other = direct.tid.is_some() && direct.tid != part.culprit.tid;
        (leads_on && is_other).then_some(direct)
    }

    /// When the activity of the culprit ended, or else the operation.
    fn ended_ns(&self) -> Option<Ns> {
        // One of many waits ended; the next one may follow.
        if let Some(contention) = &self.finding.contention {
            let quiet = self.recorded.end - contention.end_ns;
            return (quiet > 3 * self.length()).then_some(contention.end_ns);
        }
        if let Some(activity) = self.activity() {
            return activity.end_ns;
        }
        let target = &self.finding.target;
        let is_open = matches!(target.cut.as_deref(), Some("end" | "both"));
        (!is_open).then_some(target.end_ns)
    }
}
