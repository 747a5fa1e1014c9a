//! Devices that are compared with their peers.

use whyslow_analysis::AnalysisError;

use super::Explainer;
use crate::report::{Judged, Reason, Report};
use crate::{advice, judged};

impl Explainer<'_> {
    /// Completes the report about the queried devices.
    pub(super) fn compare_devices(&self, mut report: Report) -> Result<Report, AnalysisError> {
        let (tables, query) = (self.tables, self.query);
        let (window, devices) = (query.window, &query.devices);
        let mut found = crate::detectors::devices::find(tables, window, devices, &query.recording)?;
        found.retain(|observation| devices.contains(&observation.culprit.name));
        if found.is_empty() {
            report.reasons.push(Reason {
                id: "no_requests",
                summary: format!("no requests to {} in this recording", devices.join(", ")),
                next: "list the devices: whyslow block stats --by dev".into(),
            });
            report.judged = Judged::CannotTell;
            return Ok(report);
        }
        report.observations = found;
        self.add_trigger(&mut report)?;
        judged::judge(tables, window, false, &mut report)?;
        advice::fit(tables, &mut report)?;
        Ok(report)
    }
}
